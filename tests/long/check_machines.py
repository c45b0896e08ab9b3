#!/usr/bin/env python3
"""Checks that machines whose float arithmetic differs find the same plans.

    check_machines.py MSCGYM OTHER FOLDER

MSCGYM and OTHER are the program built for two kinds of processors. Both run on this machine, so one of
them may be emulated. Each searches FOLDER/digits.json in a copy of FOLDER. The last bits of losses
differ, so the agent may propose plans in another order, and some other plans. A plan that both have
tried must have the same state and the same counted metrics, and losses that differ by at most one
percent; so must the losses of the two winners. At least a third of the plans must be common. Prints the
largest difference. The exit code is 1 if they disagree.
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


def differ(a, b):
    return abs(a - b) / max(abs(a), abs(b), 1e-30)


def winner(trials):
    return min(t["metrics"][MEASURED] for t in trials if t["state"] == "complete")


def compare(own, other):
    """Returns a line for each disagreement, the number of common plans, and the largest relative difference of a
    loss.
    """
    there = {tuple(trial["choices"]): trial for trial in other}
    pairs = [(trial, there[tuple(trial["choices"])]) for trial in own if tuple(trial["choices"]) in there]
    wrong, largest = [], differ(winner(own), winner(other))
    if 3 * len(pairs) < max(len(own), len(other)):
        wrong.append(f"{len(own)} trials, {len(other)} there, of which only {len(pairs)} are of the same plans")
    if largest > TOLERANCE:
        wrong.append(f"the winners' losses: {winner(own)}, there {winner(other)}")
    for a, b in pairs:
        counted = [{name: value for name, value in trial["metrics"].items() if name != MEASURED}
                   for trial in (a, b)]
        if a["state"] != b["state"] or counted[0] != counted[1]:
            wrong.append(f"{a['choices']}: {a['state']} {counted[0]}, there {b['state']} {counted[1]}")
        elif MEASURED in a["metrics"] and MEASURED in b["metrics"]:
            difference = differ(a["metrics"][MEASURED], b["metrics"][MEASURED])
            largest = max(largest, difference)
            if difference > TOLERANCE:
                wrong.append(f"{a['choices']}: {MEASURED} {a['metrics'][MEASURED]}, there {b['metrics'][MEASURED]}")
    return wrong, len(pairs), largest


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    programs = [os.path.abspath(path) for path in sys.argv[1:3]]
    with tempfile.TemporaryDirectory() as top:
        runs = [search(program, sys.argv[3], os.path.join(top, str(i)))
                for i, program in enumerate(programs)]
    (numerics, own), (numerics_there, other) = runs
    wrong, n_common, largest = compare(own, other)
    for line in wrong[:10]:
        print(line)
    print(f"{len(own)} trials by {numerics}, {len(other)} by {numerics_there}, {n_common} plans by both: "
          f"{len(wrong)} disagree, losses differ by {largest:.2g} at most")
    return 1 if wrong or not own else 0


sys.exit(main())
