#!/usr/bin/env python3
"""Merges the profiles of a fleet with Apache Spark: one folded file for each group.

    spark-submit scripts/fleet/merge.py [--by service,version] [--collapse fg-collapse] PROFILES OUTPUT

PROFILES is a folder on any file system that Spark supports, with files like service=S/version=V/host=H/*.folded.gz (or
.folded.zst, .folded; other files are ignored). Files can be grouped by any label in the names of their folders. OUTPUT gets
one file service=S/version=V.folded.gz for each group. fg-collapse, which must be installed on every worker, merges each
partition where it is read, and then the results of each group. Spark repeats the work of lost workers.

A file that cannot be read or lacks a label is left out with a message, and the exit status is 1. Lines that fg-collapse left
out are reported with status 0.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import zlib

PROFILE = re.compile(r"\.folded(\.gz|\.zst)?$")


def group_of(path, labels):
    """Returns the group of a file, as in service=S/version=V, or None. Escapes in folder names (%2F) are kept, because the
    output path needs them too."""
    found = dict(part.split("=", 1) for part in path.split("/")[:-1] if "=" in part)
    if all(label in found for label in labels):
        return "/".join(f"{label}={found[label]}" for label in labels)
    return None


def collapse_files(collapse, files):
    """Runs fg-collapse on files; returns its output, compressed, whether it succeeded, and its messages by line."""
    with tempfile.TemporaryFile() as messages:
        merged = subprocess.Popen([collapse, *files], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=messages)
        packer = zlib.compressobj(1, zlib.DEFLATED, 31)
        packed = [packer.compress(block) for block in iter(lambda: merged.stdout.read(1 << 20), b"")]
        merged.stdout.close()
        status = merged.wait()
        messages.seek(0)
        lines = [line.removeprefix("fg-collapse: ") for line in messages.read().decode(errors="replace").splitlines()]
        if status == 1 and len(lines) == 1 and "no stacks in" in lines[0]:
            return b"", True, []
        if status not in (0, 1):
            raise RuntimeError(f"{collapse} ended with status {status}: {lines}")
        return b"".join([*packed, packer.flush()]), status == 0, lines


def merge(collapse, profiles):
    """Merges folded files, given by name and content, into one compressed file. Returns it with notes: pairs of a flag, true if a
    file was left out, and a message."""
    with tempfile.TemporaryDirectory(prefix="fg-fleet-") as folder:
        names = {}
        for name, profile in profiles:
            path = os.path.join(folder, f"{len(names)}.")
            names[path] = name
            with open(path, "wb") as file:
                file.write(profile)
        merged, complete, said = collapse_files(collapse, names)
        if complete and not said:
            return merged, []
        # Read each alone, to find the files with problems.
        notes, good = [], []
        for path, name in names.items():
            _, readable, messages = collapse_files(collapse, [path])
            if readable:
                good.append(path)
                notes += [(False, f"{name}: {line}") for line in messages[-1:]]
            else:
                notes.append((True, f"{name}: {messages[0].removeprefix(path + ': ')}"))
        if len(good) < len(names):
            merged, complete, said = collapse_files(collapse, good) if good else (b"", True, [])
        if not complete:
            # Each file is readable, but they cannot be merged: plain and differential ones.
            refused = [line.split(": ", 1) for line in said if line.split(": ", 1)[0] in names]
            if not refused:
                raise RuntimeError(f"{collapse} failed: {said}")
            notes += [(True, f"{names[path]}: {why}") for path, why in refused]
        return merged, notes


def merge_partition(collapse, labels, files):
    """Merges the files of one partition by group; yields pairs of a group and the result of merge."""
    groups = {}
    for path, content in files:
        if PROFILE.search(path):
            groups.setdefault(group_of(path, labels), []).append((path, content))
    for path, _ in groups.pop(None, []):
        missing = ", ".join(f"{label}=" for label in labels)
        yield None, (b"", [(True, f"{path}: the folder names lack {missing}")])
    for group, profiles in groups.items():
        yield group, merge(collapse, profiles)


def merge_group(collapse, group, parts):
    """Merges the parts of one group from all partitions."""
    parts = list(parts)
    notes = [note for _, notes in parts for note in notes]
    packed = [part for part, _ in parts if part]
    if group is None or not packed:
        return b"", notes
    merged, more = merge(collapse, [(group, part) for part in packed])
    return merged, notes + more


def write(spark, path, content):
    """Writes a file to the file system of its path."""
    target = spark._jvm.org.apache.hadoop.fs.Path(path)
    out = target.getFileSystem(spark._jsc.hadoopConfiguration()).create(target)
    out.write(bytearray(content))
    out.close()


def main():
    parser = argparse.ArgumentParser(description="Merge the profiles of a fleet: one folded file for each group.")
    parser.add_argument("--by", default="service,version", help="labels to group by [default: %(default)s]")
    parser.add_argument("--collapse", default="fg-collapse", help="path of fg-collapse on the workers [default: %(default)s]")
    parser.add_argument("--partitions", type=int, help="number of tasks [default: one for each core]")
    parser.add_argument("profiles")
    parser.add_argument("output")
    options = parser.parse_args()
    labels, collapse = options.by.split(","), options.collapse

    from pyspark import SparkConf, SparkContext, StorageLevel

    spark = SparkContext(conf=SparkConf().setAppName("fg-fleet").set("spark.files.openCostInBytes", "1"))
    # Small files are distributed over all workers too.
    tasks = options.partitions or spark.defaultParallelism
    spark._jsc.hadoopConfiguration().set("mapreduce.input.fileinputformat.input.dir.recursive", "true")
    files = spark.binaryFiles(options.profiles, tasks)
    merged = files.mapPartitions(lambda read: merge_partition(collapse, labels, read))
    merged = merged.groupByKey(tasks).map(lambda group: (group[0], merge_group(collapse, *group)))
    # Compute all groups in parallel, then fetch them one by one.
    merged = merged.persist(StorageLevel.DISK_ONLY)
    merged.count()
    groups, left_out = 0, 0
    for group, (content, notes) in merged.toLocalIterator():
        for is_left_out, note in notes:
            left_out += is_left_out
            print(f"merge.py: {note}{': left out' if is_left_out else ''}", file=sys.stderr)
        if content:
            write(spark, f"{options.output}/{group}.folded.gz", content)
            groups += 1
    spark.stop()
    if left_out:
        sys.exit(f"merge.py: {left_out} left out, {groups} groups written")
    if groups == 0:
        sys.exit(f"merge.py: {options.profiles}: no *.folded, *.folded.gz or *.folded.zst file with stacks")


if __name__ == "__main__":
    main()
