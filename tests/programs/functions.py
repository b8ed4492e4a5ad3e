"""Runs Python functions of known call stacks for the seconds that are given, and prints the CPU time of each kind.

Every function that works calls `burn_KIND`, whose only callers are those in CALLERS of the test.
"""

import functools
import sys
import threading
import time


def make(kind):
    """Returns a function `burn_KIND` that computes."""
    space = {}
    source = "def burn_%s(n):\n    s = 0\n    for i in range(n):\n        s += i * i\n    return s\n" % kind
    exec(compile(source, "burn.py", "exec"), space)
    return space["burn_" + kind]


burn_deep, burn_odd, burn_generator, burn_coroutine, burn_key, burn_method, burn_thread, burn_handler = map(
    make, "deep odd generator coroutine key method thread handler".split()
)


def deep(depth):
    return deep(depth - 1) if depth else burn_deep(20000)


def odd(n):
    return even(n - 1) if n else burn_odd(10000)


def even(n):
    return odd(n - 1)


def generator():
    for _ in range(3):
        yield burn_generator(5000)


class Step:
    def __await__(self):
        yield


async def inner():
    await Step()
    return burn_coroutine(10000)


async def outer():
    return await inner()


def drive():
    coroutine = outer()
    try:
        while True:
            coroutine.send(None)
    except StopIteration:
        pass


def key(n):
    return burn_key(1000) + n


def sort():
    return sorted(range(10), key=key)


class Base:
    def method(self):
        return burn_method(10000)


class Derived(Base):
    def method(self):
        return super().method()


def call_method():
    return functools.partial(Derived.method, Derived())()


def in_thread():
    thread = threading.Thread(target=lambda: burn_thread(10000))
    thread.start()
    thread.join()


def fail():
    raise ValueError


def handler():
    try:
        fail()
    except ValueError:
        burn_handler(10000)


def main():
    kinds = {
        "deep": lambda: deep(100),
        "odd": lambda: odd(50),
        "generator": lambda: list(generator()),
        "coroutine": drive,
        "key": sort,
        "method": call_method,
        "thread": in_thread,
        "handler": handler,
    }
    times = dict.fromkeys(kinds, 0.0)
    end = time.process_time() + float(sys.argv[1])
    while time.process_time() < end:
        for kind, run in kinds.items():
            start = time.process_time()
            run()
            times[kind] += time.process_time() - start
    total = sum(times.values())
    for kind, seconds in times.items():
        print(kind, seconds / total, file=sys.stderr)


main()
