/* `known_callers MODE SECONDS`: functions whose names tell who called them, on stacks that are hard to take. A stack is right if
   `odd_leaf` is below `odd_caller`, and `even_leaf` below `even_caller`. Runs for so many seconds of CPU time.
   `random`: random calls of 20 to 500 us, below a large frame that both share and do not write.
   `mixed`: calls of 20 us to 2 ms.
   `rare`: one caller in 100 is odd.
   `turns`: both by turns, 0.3 ms each.
   `buffers`: frames of different sizes, which are not written, so that they contain what the other one left there.
   `shallow`: one is deep; the other is shallow and takes longer, with the deep one's frames below its own.
   `deep`: below 2,000 frames of 250 bytes.
   `huge`: below a frame of 500 KB. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define OWN __attribute__((noinline)) static
/* The compiler must neither leave a buffer out, nor a call at the end of a function. */
#define KEEP(buffer) __asm__ volatile("" ::"r"(buffer) : "memory")

static volatile unsigned long sink;
typedef void leaf(unsigned long rounds);

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return time.tv_sec + time.tv_nsec * 1e-9;
}

static void spin(unsigned long rounds) { for (unsigned long n = 0; n < rounds; n++) sink += n ^ sink; }
OWN void odd_leaf(unsigned long rounds) { spin(rounds); KEEP(0); }
OWN void even_leaf(unsigned long rounds) { spin(rounds + 1); KEEP(0); }

OWN void share(leaf *leaf, unsigned long rounds) { char frame[20000]; KEEP(frame); leaf(rounds); KEEP(frame); }
OWN void share_huge(leaf *leaf, unsigned long rounds) { char frame[500000]; KEEP(frame); leaf(rounds); KEEP(frame); }
OWN void descend(int depth, leaf *leaf, unsigned long rounds) {
    char frame[200];
    KEEP(frame);
    if (depth) descend(depth - 1, leaf, rounds);
    else leaf(rounds);
    KEEP(frame);
}
OWN void share_deep(leaf *leaf, unsigned long rounds) { descend(2000, leaf, rounds); KEEP(0); }
OWN void odd_frames(int depth, unsigned long rounds) {
    char frame[208];
    KEEP(frame);
    if (depth) odd_frames(depth - 1, rounds);
    else odd_leaf(rounds);
    KEEP(frame);
}
OWN void even_frames(int depth, unsigned long rounds) {
    char frame[336];
    KEEP(frame);
    if (depth) even_frames(depth - 1, rounds);
    else even_leaf(rounds);
    KEEP(frame);
}

/* What the callers call. */
static void (*middle)(leaf *, unsigned long);
static int odd_depth, even_depth;

OWN void odd_caller(unsigned long rounds) {
    if (odd_depth) odd_frames(odd_depth, rounds);
    else middle(odd_leaf, rounds);
    KEEP(0);
}
OWN void even_caller(unsigned long rounds) {
    if (even_depth) even_frames(even_depth, rounds);
    else middle(even_leaf, rounds);
    KEEP(0);
}

int main(int count, char **words) {
    const char *mode = words[1];
    double end = atof(words[2]), per_us, start;
    unsigned long number = 0;
#define IS(name) !strcmp(mode, name)
    srand(1);
    middle = IS("deep") ? share_deep : IS("huge") ? share_huge : share;
    odd_depth = IS("buffers") ? 100 : IS("shallow") ? 33 : 0;
    even_depth = IS("buffers") ? 100 : IS("shallow") ? 3 : 0;
    start = now();
    spin(20000000);
    per_us = 20000000 / (now() - start) / 1e6;
    for (double time = now(); time < end; time = now(), number++) {
        double us = 20 + rand() % 480;
        int is_odd = rand() & 1;
        if (IS("mixed")) us = 20 * (1 + rand() % 100);
        if (IS("rare")) is_odd = number % 100 == 0;
        if (IS("turns") || IS("shallow")) is_odd = number & 1;
        if (IS("turns")) us = 300;
        if (IS("shallow") && !is_odd) us *= 10;
        if (is_odd) odd_caller(us * per_us);
        else even_caller(us * per_us);
    }
    return 0;
}
