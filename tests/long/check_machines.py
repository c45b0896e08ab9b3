#!/usr/bin/env python3
"""Checks that machines whose float arithmetic differs find the same plans.

    check_machines.py MSCGYM OTHER FOLDER

MSCGYM and OTHER are the program built for two kinds of processors. Both run on this machine, so one of
them may be emulated. Each searches FOLDER/digits.json in a copy of FOLDER. Trials must agree in their
choices, their states and all metrics that are counted. Losses, which float arithmetic measures, may
differ by at most one percent. Prints the largest difference. The exit code is 1 if they disagree.
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile

MEASURED = "distill_loss"
TOLERANCE = 0.01


def search(program, source, folder):
    """Searches in a copy of `source`; returns the numerics id and the trials."""
    shutil.copytree(source, folder, ignore=shutil.ignore_patterns("msc_workspace"))
    subprocess.run([program, "search", os.path.join(folder, "digits.json"), "--quiet", "--device", "cpu"],
                   check=True, stdout=subprocess.DEVNULL)
    record = os.path.join(folder, "msc_workspace", "digits.jsonl")
    canonical = subprocess.run([program, "show", record, "--canonical"], check=True, capture_output=True,
                               text=True).stdout
    lines = [json.loads(line) for line in canonical.splitlines()]
    with open(record) as file:
        numerics = json.loads(file.readline())["numerics"]
    return numerics, [line for line in lines if line["kind"] == "trial"]


def compare(own, other):
    """Returns a line for each disagreement, and the largest relative difference of a loss."""
    wrong, largest = [], 0.0
    if len(own) != len(other):
        wrong.append(f"{len(own)} trials, {len(other)} there")
    for a, b in zip(own, other):
        counted = [{name: value for name, value in trial["metrics"].items() if name != MEASURED}
                   for trial in (a, b)]
        if (a["choices"], a["state"]) != (b["choices"], b["state"]) or counted[0] != counted[1]:
            wrong.append(f"trial {a['id']}: {a['choices']} {a['state']} {counted[0]}, "
                         f"there {b['choices']} {b['state']} {counted[1]}")
            continue
        if MEASURED not in a["metrics"] or MEASURED not in b["metrics"]:
            continue  # without losses, equal states and metrics are enough
        loss, there = a["metrics"][MEASURED], b["metrics"][MEASURED]
        difference = abs(loss - there) / max(abs(loss), abs(there), 1e-30)
        largest = max(largest, difference)
        if difference > TOLERANCE:
            wrong.append(f"trial {a['id']}: {MEASURED} {loss}, there {there}")
    return wrong, largest


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    programs = [os.path.abspath(path) for path in sys.argv[1:3]]
    with tempfile.TemporaryDirectory() as top:
        runs = [search(program, sys.argv[3], os.path.join(top, str(i)))
                for i, program in enumerate(programs)]
    (numerics, own), (numerics_there, other) = runs
    wrong, largest = compare(own, other)
    for line in wrong[:10]:
        print(line)
    print(f"{len(own)} trials by {numerics} and by {numerics_there}: {len(wrong)} disagree, "
          f"losses differ by {largest:.2g} at most")
    return 1 if wrong or not own else 0


sys.exit(main())
