/* Touches 3000 pages for the first time, one every few microseconds. */
#include <sys/mman.h>
static volatile unsigned long sink;
int main(void) {
    char *pages = mmap(0, 3000 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise(pages, 3000 * 4096, MADV_NOHUGEPAGE);
    for (int page = 0; page < 3000; page++) {
        pages[page * 4096] = 1;
        for (unsigned n = 0; n < 20000; n++) sink += n;
    }
    return 0;
}
