"""`tasks.py SECONDS [late]`: runs tasks of asyncio. Each function computes in one task, or in none.

With `late`, the recorder that runs this stands still from before the module that makes tasks is loaded to the end."""

import atexit
import os
import signal
import sys
import time

if sys.argv[2:] == ["late"]:
    time.sleep(0.5)
    recorder = os.getppid()
    atexit.register(os.kill, recorder, signal.SIGCONT)
    os.kill(recorder, signal.SIGSTOP)

import asyncio
import threading

END = time.monotonic() + float(sys.argv[1])


def spin():
    total = 0
    for i in range(20000):
        total += i


def burn_named():
    spin()


def burn_numbered():
    spin()


def burn_latin():
    spin()


def burn_greek():
    spin()


def burn_long():
    spin()


def burn_main():
    spin()


def burn_callback():
    spin()


def burn_thread():
    spin()


async def compute(burn):
    while time.monotonic() < END:
        burn()
        await asyncio.sleep(0)


def callback(loop):
    burn_callback()
    if time.monotonic() < END:
        loop.call_soon(callback, loop)


async def main():
    asyncio.get_running_loop().call_soon(callback, asyncio.get_running_loop())
    named = [(burn_named, "request 7"), (burn_latin, "größe"), (burn_greek, "Ωmega"), (burn_long, "x" * 200)]
    tasks = [asyncio.create_task(compute(burn), name=name) for burn, name in named]
    tasks.append(asyncio.create_task(compute(burn_numbered)))
    await compute(burn_main)
    await asyncio.gather(*tasks)


def run_thread():
    while time.monotonic() < END:
        burn_thread()


thread = threading.Thread(target=run_thread)
thread.start()
asyncio.run(main())
thread.join()
