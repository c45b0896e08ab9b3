#!/usr/bin/env python3
"""Trials a second of a search by workers beside one process with as many threads.

    cluster.py MSCGYM [--cluster local:2] [--repeats 5] [--trials 600] [--parallel 256] [--json FILE]
               [--memory 4G] [MODEL ...]

Both run the same trials, interleaved, and their records must be the same. By the records' own clock:
from the last baseline to the last trial, so that the start of workers does not count.
"""
import argparse
import os
import statistics
import subprocess
import sys
import tempfile

import common

CHOICES = [{"bits": b} for b in (8, 6, 4)]


def canonical(mscgym, record):
    return subprocess.run([mscgym, "show", record, "--canonical"], check=True,
                          capture_output=True).stdout


def measure(options, name, folder):
    """Rates of both, and whether the records were the same."""
    values = common.inputs(name, options.images)
    agent = {"type": "evolutionary", "population": 32, "mutation": 0.05}
    rates, records = {"one process": [], options.cluster: []}, {}
    for _ in range(options.repeats):
        for kind, more in (("one process", []), (options.cluster, ["--cluster", options.cluster])):
            place = os.path.join(folder, name, kind.replace(":", "_").replace(" ", "_"))
            os.makedirs(place, exist_ok=True)
            search = common.Search(options.mscgym, place, common.model_path(name), values, CHOICES,
                                   agent, options.trials, None, options.batch, options.parallel)
            run = search.run("--threads", str(options.threads), "--memory", options.memory, *more)
            rates[kind].append(run.rate)
            records.setdefault(kind, canonical(options.mscgym, search.record))
        print(f"{name}: " + ", ".join(f"{k} {v[-1]:.1f}/s" for k, v in rates.items()),
              file=sys.stderr, flush=True)
    if len(set(records.values())) != 1:
        sys.exit(f"{name}: the records differ")
    return rates


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("mscgym", type=os.path.abspath)
    parser.add_argument("models", nargs="*")
    parser.add_argument("--cluster", default="local:2")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--trials", type=int, default=600)
    parser.add_argument("--parallel", type=int, default=256)
    parser.add_argument("--images", type=int, default=16)
    parser.add_argument("--batch", type=int)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--memory", default="4G")
    parser.add_argument("--json")
    options = parser.parse_intermixed_args()
    print(f"{common.machine()}; two processes do {common.second_core():.2f} times the work of one")
    print(f"{common.version(options.mscgym)}; {options.trials} trials in rounds of "
          f"{options.parallel}, {options.threads} threads, {options.memory}\n")
    print("| network | one process | " + options.cluster + " | ratio, median and range |\n"
          "|---|---|---|---|")
    rows = []
    with tempfile.TemporaryDirectory(prefix="bench_cluster_") as folder:
        for name in options.models or ["mlsd-tiny"]:
            rates = measure(options, name, folder)
            one, many = rates["one process"], rates[options.cluster]
            ratios = [m / o for m, o in zip(many, one)]
            print(f"| {name} | {statistics.median(one):.1f}/s | {statistics.median(many):.1f}/s | "
                  f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f}) |",
                  flush=True)
            rows.append(common.row("cluster", name, options.cluster, "one process",
                                   list(zip(many, one))))
    common.save_rows(options.json, rows)


if __name__ == "__main__":
    main()
