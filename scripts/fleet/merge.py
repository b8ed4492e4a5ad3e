#!/usr/bin/env python3
"""Merges the profiles of a fleet with Apache Spark: one folded file a group.

    spark-submit scripts/fleet/merge.py [--by service,version] [--collapse fg-collapse] PROFILES OUTPUT

PROFILES is a folder, on any file system that Spark knows, of .../service=S/version=V/host=H/*.folded.gz (or .folded.zst,
or .folded; other files are not looked at): by whatever labels the folders' names have can be grouped. OUTPUT gets
service=S/version=V.folded.gz for each group, named as the folders are. Folded files are mergeable, so each partition is
merged where it is read, and what comes of that once more for each group, both by fg-collapse, which has to be on every
worker. What a lost worker did is done again by Spark.

A file that cannot be read, or has no such label, is left out and said, and the status is 1 at the end; so are lines that
fg-collapse left out, with status 0.
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
    """The group that a file belongs to, as in service=S/version=V, or None. Names of folders are kept as they are: what
    stands there for a slash (%2F) is right where the group's file is written, too."""
    found = dict(part.split("=", 1) for part in path.split("/")[:-1] if "=" in part)
    if all(label in found for label in labels):
        return "/".join(f"{label}={found[label]}" for label in labels)
    return None


def collapse_files(collapse, files):
    """What fg-collapse makes of files, compressed; whether it succeeded; and what it said, a line each."""
    with tempfile.TemporaryFile() as said:
        merged = subprocess.Popen([collapse, *files], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=said)
        packer = zlib.compressobj(1, zlib.DEFLATED, 31)
        packed = [packer.compress(block) for block in iter(lambda: merged.stdout.read(1 << 20), b"")]
        merged.stdout.close()
        status = merged.wait()
        said.seek(0)
        lines = [line.removeprefix("fg-collapse: ") for line in said.read().decode(errors="replace").splitlines()]
        if status not in (0, 1):
            raise RuntimeError(f"{collapse} ended with status {status}: {lines}")
        return b"".join([*packed, packer.flush()]), status == 0, lines


def merge(collapse, profiles):
    """Merges folded files, given as their names and bytes, plain or compressed, to one, compressed. Returns it with what
    there is to say of any: pairs of whether something was left out as a whole, and what."""
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
        # One after the other, to see which of them it is.
        notes, good = [], []
        for path, name in names.items():
            _, readable, of_it = collapse_files(collapse, [path])
            if readable:
                good.append(path)
                notes += [(False, f"{name}: {line}") for line in of_it[-1:]]
            else:
                notes.append((True, f"{name}: {of_it[0].removeprefix(path + ': ')}"))
        if len(good) < len(names):
            merged, complete, said = collapse_files(collapse, good) if good else (b"", True, [])
        if not complete:
            # Each can be read alone, but they do not fit together.
            refused = [line.split(": ", 1) for line in said if line.split(": ", 1)[0] in names]
            if not refused:
                raise RuntimeError(f"{collapse} failed: {said}")
            notes += [(True, f"{names[path]}: {why}") for path, why in refused]
        return merged, notes


def merge_partition(collapse, labels, files):
    """Merges what one task has read, group by group: pairs of a group, and what merge returns of it."""
    groups = {}
    for path, content in files:
        if PROFILE.search(path):
            groups.setdefault(group_of(path, labels), []).append((path, content))
    for path, _ in groups.pop(None, []):
        missing = ", ".join(f"{label}=" for label in labels)
        yield None, (b"", [(True, f"{path}: its folders' names do not have {missing}")])
    for group, profiles in groups.items():
        yield group, merge(collapse, profiles)


def merge_group(collapse, group, parts):
    """Merges what the tasks made of one group."""
    parts = list(parts)
    notes = [note for _, notes in parts for note in notes]
    packed = [part for part, _ in parts if part]
    if group is None or not packed:
        return b"", notes
    merged, more = merge(collapse, [(group, part) for part in packed])
    return merged, notes + more


def write(spark, path, content):
    """Writes a file to whatever file system the path is on."""
    target = spark._jvm.org.apache.hadoop.fs.Path(path)
    out = target.getFileSystem(spark._jsc.hadoopConfiguration()).create(target)
    out.write(bytearray(content))
    out.close()


def main():
    parser = argparse.ArgumentParser(description="Merge the profiles of a fleet: one folded file a group.")
    parser.add_argument("--by", default="service,version", help="labels to group by [default: %(default)s]")
    parser.add_argument("--collapse", default="fg-collapse", help="fg-collapse, if not on the workers' PATH")
    parser.add_argument("--partitions", type=int, help="tasks to read and to merge in [default: a core each]")
    parser.add_argument("profiles")
    parser.add_argument("output")
    options = parser.parse_args()
    labels, collapse = options.by.split(","), options.collapse

    from pyspark import SparkConf, SparkContext, StorageLevel

    spark = SparkContext(conf=SparkConf().setAppName("fg-fleet").set("spark.files.openCostInBytes", "1"))
    # Small files too are spread over all workers.
    tasks = options.partitions or spark.defaultParallelism
    spark._jsc.hadoopConfiguration().set("mapreduce.input.fileinputformat.input.dir.recursive", "true")
    files = spark.binaryFiles(options.profiles, tasks)
    merged = files.mapPartitions(lambda read: merge_partition(collapse, labels, read))
    merged = merged.groupByKey(tasks).map(lambda group: (group[0], merge_group(collapse, *group)))
    # All groups at once, and then one after the other to here.
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
        sys.exit(f"merge.py: {options.profiles}: no *.folded, *.folded.gz or *.folded.zst with a stack in it")


if __name__ == "__main__":
    main()
