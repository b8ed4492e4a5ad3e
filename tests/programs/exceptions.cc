// exceptions SECONDS: throws exceptions through up to 40 functions, each of which has something to destroy.
#include <cstdlib>
#include <ctime>
#include <stdexcept>

static volatile unsigned long sum;

struct Guard {
    ~Guard() { for (int round = 0; round < 30; round++) sum += round; }
};

__attribute__((noinline)) static void descend(int depth) {
    Guard guard;
    if (!depth) throw std::runtime_error("deep enough");
    descend(depth - 1);
    sum += 1;
}

__attribute__((noinline)) static void throw_and_catch(int depth) {
    try {
        descend(depth);
    } catch (const std::runtime_error &error) {
        sum += error.what()[0];
    }
}

int main(int count, char **words) {
    double seconds = count > 1 ? std::atof(words[1]) : 1;
    for (int turn = 0; std::clock() / (double)CLOCKS_PER_SEC < seconds; turn++) throw_and_catch(turn % 40);
}
