"""Sleeps in functions with known callers, in two threads."""

import threading
import time


def wait_innermost():
    time.sleep(100000)


def middle(depth):
    return middle(depth - 1) if depth else wait_innermost()


def by_key(_):
    middle(2)


def outer():
    sorted([1], key=by_key)


def acquire():
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()


def generator():
    yield 1
    acquire()


def in_thread():
    list(generator())


threading.Thread(target=in_thread, daemon=True).start()
outer()
