#!/usr/bin/env python3
"""Compares the programs with models of them on random profiles.

    tests/models/compare.py FOLDER-OF-PROGRAMS [INPUTS [SEED [FIRST]]]

The models are written from the man pages, with dictionaries of tuples. Whatever a program writes, all other programs must read
without a message. A profile depends on the seed and its number only, and FIRST is the number of the first one: many can be
compared in parts. Prints a line for each mismatch, and exits with status 1 if there is one.
"""

import csv
import io
import os
import random
import re
import subprocess
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

PROGRAMS = sys.argv[1]
INPUTS, SEED, FIRST = (int(given or default) for given, default in zip([*sys.argv[2:], "", "", ""], ("40", "1", "0")))
NAMES = ["main", "a", "b", "c", "a::b", "std::vec<a::b>::push", "f(int, char)", "x_[k]", "y_[j]", "[unknown]", "-", "--", "a b", "w-1",
         "w-2", "é", "e 1", "f 2 3", "#x", "a/b.c", "_4", "[lost]", "[off-cpu]", "f.cold", "1", "0x1f", '"q,', "'", "<&>", "%e", "\\"]
STATES = ("[off-cpu]", "[runnable]", "[unsampled]")
READERS = [["fg-collapse"], ["fg-collapse", "--sorted"], ["fg-filter"], ["fg-csv"], ["fg-report"], ["fg-svg"], ["fg-pprof"],
           ["fg-check", "--lost", "100%"], ["fg-csv", "--by", "stack"]]
mismatches = 0


def run(arguments, text):
    process = subprocess.run([f"{PROGRAMS}/{arguments[0]}", *arguments[1:]], input=text.encode(), capture_output=True, timeout=60)
    return process.returncode, process.stdout, process.stderr.decode(errors="replace")


def report(arguments, text, what):
    global mismatches
    mismatches += 1
    print(f"MISMATCH {' '.join(arguments)}: {what}\n--- input\n{text}---", flush=True)


def expect(arguments, text, expected):
    """Runs a program and compares what it writes, as folded stacks."""
    status, out, errors = run(arguments, text)
    if status != 0 or "skipped" in errors:
        return report(arguments, text, f"status {status}: {errors}")
    found = out.decode()
    if found != expected:
        report(arguments, text, f"wrote\n{found}--- expected\n{expected}")
    return found


def random_name(rng):
    return rng.choice(NAMES) if rng.random() < 0.95 else "".join(rng.choice("ab:.<>() _-é#") for _ in range(rng.randint(1, 6))).strip() or "z"


def random_profile(rng, differential):
    """Returns stacks with their weights in the order of the lines, and the text."""
    names = [random_name(rng) for _ in range(rng.randint(1, 9))]
    # Filters may leave what is on one side only.
    empty_side = rng.choice([None, None, 0, 1]) if differential else None
    lines = []
    for _ in range(rng.randint(1, 25)):
        leaf = rng.choice(names)
        # A leaf that ends in a number is read as if it were a weight, and one like `# key :` as a comment.
        is_comment = leaf.startswith("# ") and (leaf.endswith(":") or " : " in leaf)
        if is_comment or is_number(leaf.rpartition(" ")[2]) and " " in leaf:
            leaf = "leaf"
        stack = tuple(rng.choice(names) for _ in range(rng.randint(0, 6))) + (leaf,)
        weights = tuple(random_weight(rng) for _ in range(1 + differential))
        lines.append((stack, tuple(Fraction(0) if side == empty_side else weight for side, weight in enumerate(weights))))
    # A profile whose weights are all 0 has nothing to report.
    lines.append((("main", "base"), (Fraction(7), Fraction(5))[: 1 + differential]))
    text = "".join(f"{';'.join(stack)} {' '.join(show_somehow(rng, weight) for weight in weights)}{line_end(rng)}" for stack, weights in lines)
    return lines, text


def line_end(rng):
    return rng.choice(["\n"] * 12 + ["\r\n", "\n\n", " \n", "\t\n"])


def show_somehow(rng, weight):
    """The ways in which programs write a number: mawk uses an exponent from 2³¹ on."""
    text = show(weight)
    if rng.random() < 0.8 or weight.denominator > 1:
        return text
    digits = len(text.rstrip("0")) or 1
    forms = [f"{text}.", f"{text}.0", f"0{text}", f"{text}e0", f"{int(weight)}E+00", f"{text[:1]}.{text[1:] or 0}e+{len(text) - 1:02}"]
    return rng.choice(forms if digits else [text])


def random_weight(rng):
    kind = rng.random()
    if kind < 0.1:
        return Fraction(0)
    if kind < 0.2:
        return Fraction(rng.randint(1, 10**6), 1000)
    return Fraction(rng.randint(1, 10 ** rng.randint(1, 12)))


def show(weight):
    whole, millionths = divmod(int(weight * 10**6), 10**6)
    return f"{whole}.{millionths:06}".rstrip("0") if millionths else str(whole)


def is_number(text):
    return re.fullmatch(r"[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]+)?", text) is not None


def as_leaf(name):
    """A leaf that ends in a blank and a number would be read as a weight."""
    head, blank, last = name.rpartition(" ")
    return f"{head}_{last}" if blank and is_number(last) else name


def normalize(stack):
    return stack[:-1] + (as_leaf(stack[-1]),)


def add_up(lines):
    sums = {}
    for stack, weights in lines:
        before = sums.get(stack, (0,) * len(weights))
        sums[stack] = tuple(a + b for a, b in zip(before, weights))
    return sums


def order(stack):
    """The separator sorts below every other byte."""
    return [name.encode() for name in stack]


def write(sums):
    lines = []
    for stack in sorted(sums, key=order):
        name = ";".join(stack)
        lines.append(f"{name} {' '.join(show(weight) for weight in sums[stack])}\n")
    return "".join(lines)


def model(lines, keep):
    """Applies a function from a stack to a stack or None, and adds up."""
    kept = [(normalize(new), weights) for stack, weights in lines for new in [keep(normalize(stack))] if new]
    return write(add_up(kept))


def heaviest(lines, count):
    sums = add_up([(normalize(stack), weights) for stack, weights in lines])
    ranked = sorted(sums, key=lambda stack: (-max(sums[stack]), order(stack)))
    return write({stack: sums[stack] for stack in ranked[:count]})


def unique(stack):
    return tuple(dict.fromkeys(stack))


def adjacent(stack):
    return tuple(name for at, name in enumerate(stack) if at == 0 or stack[at - 1] != name)


def cut_from(stack, pattern):
    first = next((at for at, name in enumerate(stack) if re.search(pattern, name)), None)
    return None if first is None else stack[first:]


def show_frames(stack):
    shown = [name for name in stack if "a" in name or "b" in name]
    return tuple(name for name in stack if name in shown or name in STATES) if shown else ()


def split_name(name):
    """Returns the parts of a name between `::`, without those within brackets."""
    parts, depth = [""], 0
    for piece in re.findall("::|.", name):
        depth += (piece in "<([{") - (piece in ">)]}")
        if piece == "::" and depth == 0:
            parts.append("")
        else:
            parts[-1] += piece
    return [part for part in parts if part] or [name]


def split(stack):
    return tuple(part for name in stack for part in split_name(name))


def strip_suffix(name):
    return name[:-4] if re.search(r".(_\[[kjiw]\])$", name, re.S) else name


VERBS = [
    (["--focus", "a"], lambda stack: stack if any("a" in name for name in stack) else None),
    (["--ignore", "b"], lambda stack: None if any("b" in name for name in stack) else stack),
    (["--root", "^m"], lambda stack: stack if stack[0].startswith("m") else None),
    (["--hide", "^[ab]$"], lambda stack: tuple(name for name in stack if name not in ("a", "b"))),
    (["--show", "[ab]"], show_frames),
    (["--show-from", "b"], lambda stack: cut_from(stack, "b")),
    (["--drop-unknown"], lambda stack: tuple(name for name in stack if name != "[unknown]")),
    (["--no-delimiters"], lambda stack: tuple(name for name in stack if name not in ("-", "--"))),
    (["--collapse-recursion"], adjacent),
    (["--collapse-recursion=all"], unique),
    (["--strip-suffix"], lambda stack: tuple(strip_suffix(name) for name in stack)),
    (["--split", "::"], split),
    (["--rename", "^a$=zz"], lambda stack: tuple("zz" if name == "a" else name for name in stack)),
]


def charged_function(stack):
    """Returns the function to which the weight of a stack counts: the leaf of the thread itself. If the thread waits, that is the last
    function before the kernel, as far as there is one."""
    end = stack.index("--") if "--" in stack else 0
    has_waker = 0 < end < len(stack) - 1
    own = stack[:end] if has_waker else stack
    leaf = next((name for name in reversed(own) if name not in STATES), own[-1])
    if not has_waker and stack[-1] not in STATES:
        return leaf
    kernel = next((at for at, name in enumerate(own) if name.endswith("_[k]")), len(own))
    return next((name for name in reversed(own[:kernel]) if name not in STATES), leaf)


def check_csv(lines, text):
    """Self and inclusive weights of functions."""
    own, inclusive = Counter(), Counter()
    for stack, (weight,) in add_up([(normalize(stack), weights) for stack, weights in lines]).items():
        own[charged_function(stack)] += weight
        for name in set(stack):
            inclusive[name] += weight
    status, out, errors = run(["fg-csv"], text)
    if status:
        return report(["fg-csv"], text, errors)
    for row in csv.DictReader(io.StringIO(out.decode())):
        name = row["function"]
        found = Fraction(row["self_samples"]), Fraction(row["inclusive_samples"])
        if found != (own[name], inclusive[name]):
            report(["fg-csv"], text, f"{name}: {found}, expected {own[name]}, {inclusive[name]}")


def check_pairs(outputs):
    """Lets all programs read what one wrote. If several wrote the same bytes, these are read once."""
    for text, arguments in {text: arguments for arguments, text in reversed(outputs)}.items():
        for reader in READERS:
            # Names and numbers without a `;`, or behind an operator as in `i <- i + 1`, may be something else: then fg-collapse asks
            # for the format's name.
            if reader[0] == "fg-collapse" and (";" not in text or re.search(r" (=|\+|-|\*|<-) [0-9.]+( [0-9.]+)?$", text, re.M)):
                reader = [*reader, "--format", "folded"]
            status, _, errors = run(reader, text)
            # A gate that passes because nothing was measured would be none.
            if reader[0] == "fg-check" and re.fullmatch(r"(.* 0\n)+", text):
                if status != 2 or "the total weight after is 0" not in errors:
                    report(reader, text, f"accepts what {' '.join(arguments)} wrote, of which nothing is left: {errors}")
                continue
            if status != 0 or "skipped" in errors or "panicked" in errors:
                report(reader, text, f"reads what {' '.join(arguments)} wrote with status {status}: {errors}")


def check_difference(rng, before_lines, before, folder):
    after_lines, after = random_profile(rng, False)
    for name, content in [("before", before), ("after", after)]:
        with open(f"{folder}/{name}", "w", encoding="utf-8") as file:
            file.write(content)
    lines = [(normalize(stack), (weight, Fraction(0))) for stack, (weight,) in before_lines]
    lines += [(normalize(stack), (Fraction(0), weight)) for stack, (weight,) in after_lines]
    arguments = ["fg-diff", "--exact-names", f"{folder}/before", f"{folder}/after"]
    return arguments, expect(arguments, "", write(add_up(lines)))


def compare(number):
    """Compares all programs on one random profile."""
    rng = random.Random(f"{SEED}.{number}")
    lines, text = random_profile(rng, number % 3 == 2)
    merged = expect(["fg-collapse"], text, model(lines, lambda stack: stack))
    outputs = [(["fg-collapse"], merged)]
    options, keep = rng.choice(VERBS)
    expected = model(lines, keep)
    outputs.append((["fg-filter", *options], expect(["fg-filter", *options], text, expected)))
    count = rng.randint(1, 9)
    top = ["fg-filter", "--top", str(count)]
    outputs.append((top, expect(top, text, heaviest(lines, count))))
    if number % 3 < 2:
        check_csv(lines, text)
        with tempfile.TemporaryDirectory() as folder:
            outputs.append(check_difference(rng, lines, text, folder))
    check_pairs([(arguments, written) for arguments, written in outputs if written and has_weight(written)])


def main():
    # The threads only wait for programs.
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        for _ in threads.map(compare, range(FIRST, FIRST + INPUTS)):
            pass
    print(f"{INPUTS} inputs from {FIRST}, {mismatches} mismatches")
    sys.exit(1 if mismatches else 0)


def has_weight(text):
    """True if there is weight, on one side at least, so that there is something to report or to compare."""
    sides = list(zip(*[re.search(r"((?: [0-9.]+)+)$", line)[1].split()[-count_weights(text):] for line in text.splitlines()]))
    return any(Fraction(weight) for side in sides for weight in side)


def count_weights(text):
    """The number of weights of each line, which the writer makes unambiguous."""
    return 2 if all(re.search(r" [0-9.]+ [0-9.]+$", line) for line in text.splitlines()) else 1


main()
