"""Sleeps in functions of another interpreter of its process."""

import sys

if sys.version_info >= (3, 13):
    import _interpreters

    run = _interpreters.exec
else:
    import _xxsubinterpreters as _interpreters

    run = _interpreters.run_string

SOURCE = """
import time

def wait_innermost():
    time.sleep(100000)

def by_key(_):
    wait_innermost()

sorted([1], key=by_key)
"""


def outside(_):
    run(_interpreters.create(), SOURCE)


sorted([1], key=outside)
