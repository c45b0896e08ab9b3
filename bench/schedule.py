#!/usr/bin/env python3
"""Latency of networks under the choices by rule and under measured schedules, and trials of a search.

usage: schedule.py MSCGYM OUT.csv --device NAME [--trials N] [--repeats N] MODEL:SAMPLES.npz...

For each network, with nothing kept: `mscgym schedule` finds the fastest variants, a few times; the
row has the median of its ratios of whole runs and of the differences of two equal runs. Then a
search with the agent `auto` measures trials, and the row has the number of trials until the best
so far was within 3 % of the best of all, and the ratio of its best trial in whole runs, in turn
with the choices by rule.
"""

import argparse
import csv
import json
import os
import statistics
import subprocess
import sys
import tempfile

COLUMNS = ["network", "device", "by_rule_us", "ratio", "spread", "classes", "changed", "trials",
           "within_3_percent", "best_trial", "best_whole"]


def run(arguments, folder):
    """Standard output of a command with an empty cache of its own."""
    environment = dict(os.environ, XDG_CACHE_HOME=os.path.join(folder, "cache"))
    done = subprocess.run(arguments, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(arguments)}\n{done.stderr}")
    return done.stdout


def measure(mscgym, model, device, *more):
    """The result of `mscgym schedule`, with nothing kept before."""
    with tempfile.TemporaryDirectory() as folder:
        return json.loads(run([mscgym, "schedule", model, "--device", device, "--json", *more],
                              folder))


def search(mscgym, model, samples, device, n_trials, folder):
    """The relative latency of each trial of a search, and its record."""
    config = {
        "workspace": "work", "verbose": "error", "device": device, "model": os.path.abspath(model),
        "dataset": {"inputs": os.path.abspath(samples), "samples": 1, "batch": 1},
        "gym": [{"record": "schedule.jsonl", "parallel": 1, "budget": {"trials": n_trials},
                 "env": {"type": "schedule", "objectives": ["relative_latency"]},
                 "agent": {"type": "auto"}}]}
    path = os.path.join(folder, "search.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(config, file)
    run([mscgym, "search", path], folder)
    record = os.path.join(folder, "work", "schedule.jsonl")
    with open(record, encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    return [line["metrics"]["relative_latency"] for line in lines
            if line.get("kind") == "trial" and line["state"] == "complete"], record


def within(values, part):
    """How many trials it takes until the best so far is within a part of the best of all."""
    least = min(values)
    return next(i + 1 for i, value in enumerate(values) if value <= (1 + part) * least)


def bench(arguments, network):
    """One row."""
    model, samples = network.rsplit(":", 1)
    found = [measure(arguments.mscgym, model, arguments.device) for _ in range(arguments.repeats)]
    with tempfile.TemporaryDirectory() as folder:
        values, record = search(arguments.mscgym, model, samples, arguments.device,
                                arguments.trials, folder)
        best = measure(arguments.mscgym, model, arguments.device, "--record", record)
    return {
        "network": os.path.basename(model).removesuffix(".onnx"),
        "device": arguments.device,
        "by_rule_us": round(statistics.median(f["by_rule_us"] for f in found), 1),
        "ratio": round(statistics.median(f["us"] / f["by_rule_us"] for f in found), 3),
        "spread": round(statistics.median(f["spread"] for f in found), 3),
        "classes": len(found[0]["classes"]),
        "changed": sum(c["chosen"] != c["by_rule"] for c in found[0]["classes"]),
        "trials": len(values),
        "within_3_percent": within(values, 0.03),
        "best_trial": round(min(values), 3),
        "best_whole": round(best["us"] / best["by_rule_us"], 3),
    }


def main():
    """Writes rows as they are measured."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("mscgym")
    parser.add_argument("out")
    parser.add_argument("networks", nargs="+", metavar="MODEL:SAMPLES.npz")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--trials", type=int, default=500)
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    is_new = not os.path.exists(arguments.out)
    with open(arguments.out, "a", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        if is_new:
            writer.writeheader()
        for network in arguments.networks:
            row = bench(arguments, network)
            writer.writerow(row)
            file.flush()
            print(", ".join(f"{key} {value}" for key, value in row.items()), flush=True)


if __name__ == "__main__":
    main()
