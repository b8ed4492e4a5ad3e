"""Makes and drops functions for the seconds that are given: `outer_N` alone calls `inner_N`, which alone calls `leaf_N`."""

import sys
import time

SOURCE = """
def leaf_N(n):
    s = N
    for i in range(n):
        s = (s * 31 + i) & 0xffffff
    return s

def inner_N(n):
    return leaf_N(n) ^ leaf_N(n + 1)

def outer_N(n):
    return inner_N(n) + inner_N(n + 2)
"""

end = time.time() + float(sys.argv[1])
number = 0
while time.time() < end:
    functions = {}
    exec(compile(SOURCE.replace("N", str(number)), f"module_{number}.py", "exec"), functions)
    functions[f"outer_{number}"](200)
    number += 1
