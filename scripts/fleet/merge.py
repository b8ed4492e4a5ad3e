#!/usr/bin/env python3
"""Merges the profiles of a fleet with Apache Spark: one folded file a group.

    spark-submit scripts/fleet/merge.py [--by service,version] [--collapse fg-collapse] PROFILES OUTPUT

PROFILES is a folder, on any file system that Spark knows, of .../service=S/version=V/host=H/*.folded.gz (or .zst, or
plain): by whatever labels the paths have can be grouped. OUTPUT gets service=S/version=V.folded.gz for each group.
Folded files are mergeable, so each partition is merged where it is read, and what comes of that once more for each
group, both by fg-collapse, which has to be on every worker. What a lost worker did is done again by Spark.
"""

import argparse
import os
import subprocess
import tempfile
import zlib
from urllib.parse import unquote

from pyspark import SparkConf, SparkContext


def group_of(path, labels):
    """The group that a file belongs to, as in service=S/version=V."""
    found = dict(part.split("=", 1) for part in unquote(path).split("/") if "=" in part)
    for label in labels:
        if label not in found:
            raise ValueError(f"{path}: no folder is called {label}=...")
    return "/".join(f"{label}={found[label]}" for label in labels)


def merge(collapse, profiles):
    """Merges folded files, given as their bytes, plain or compressed, to one, compressed."""
    with tempfile.TemporaryDirectory(prefix="fg-fleet-") as folder:
        files = []
        for profile in profiles:
            files.append(os.path.join(folder, str(len(files))))
            with open(files[-1], "wb") as file:
                file.write(profile)
        merged = subprocess.Popen([collapse, "-q", *files], stdout=subprocess.PIPE)
        packer = zlib.compressobj(1, zlib.DEFLATED, 31)
        packed = [packer.compress(block) for block in iter(lambda: merged.stdout.read(1 << 20), b"")]
        if merged.wait() != 0:
            raise RuntimeError(f"{collapse} failed with status {merged.returncode}")
        return b"".join([*packed, packer.flush()])


def merge_partition(collapse, labels, files):
    """Merges what one task has read, group by group."""
    groups = {}
    for path, content in files:
        groups.setdefault(group_of(path, labels), []).append(content)
    for group, profiles in groups.items():
        yield group, merge(collapse, profiles)


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
    parser.add_argument("--partitions", type=int, help="tasks to read in [default: Spark's]")
    parser.add_argument("profiles")
    parser.add_argument("output")
    options = parser.parse_args()
    labels, collapse = options.by.split(","), options.collapse

    spark = SparkContext(conf=SparkConf().setAppName("fg-fleet"))
    spark._jsc.hadoopConfiguration().set("mapreduce.input.fileinputformat.input.dir.recursive", "true")
    files = spark.binaryFiles(options.profiles, options.partitions)
    merged = files.mapPartitions(lambda read: merge_partition(collapse, labels, read))
    merged = merged.groupByKey().mapValues(lambda profiles: merge(collapse, profiles))
    for group, content in merged.toLocalIterator():
        write(spark, f"{options.output}/{group}.folded.gz", content)
    spark.stop()


if __name__ == "__main__":
    main()
