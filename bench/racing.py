#!/usr/bin/env python3
"""What a race saves: the time until a search with `race` has found a plan as good as that of the same
search without, compared with that search's own time.

    racing.py MSCGYM [NETWORK ...] [--trials 300] [--seeds 0,1,2] [--agent auto] [--parallel 32]
              [--race JSON] [--samples N] [--save ROWS.json]

Networks and samples are those of methods_data.py. Both searches are over 8, 6 and 4 bits under a
bound on the packed size (target generic), on one thread, one after the other. The raced one may
have twice as many trials. "same loss" is the worse of the two final losses. Times are those of the
records when each search first had a complete trial that was as good. The table has the median ratio
over seeds, with the least and the greatest.
"""
import argparse
import json
import os
import statistics
import subprocess
import tempfile

import numpy

import common
import methods_data

CHOICES = [{"bits": 8}, {"bits": 6}, {"bits": 4}]
SIZES = {"digits": 0.2, "fashion": 0.17, "mlsd-tiny": 0.19, "ocr-rec": 0.19, "speech-embedding": 0.19}
MORE_TRIALS = 2


def search(options, folder, name, samples, seed, race):
    """(elapsed, best loss so far) of each complete trial, and the number of trials."""
    os.makedirs(folder)
    inputs = os.path.join(folder, "inputs.npy")
    numpy.save(inputs, samples)
    entry = {"record": "r.jsonl", "agent": {"type": options.agent}, "seed": seed,
             "parallel": options.parallel, "budget": {"trials": options.trials},
             "env": {"choices": CHOICES, "bounds": {"size_ratio": {"max": SIZES[name]}}}}
    if race:
        entry["race"] = race
        entry["budget"]["trials"] *= MORE_TRIALS
    config = {"workspace": folder, "model": os.path.abspath(common.model_path(name)),
              "verbose": "error", "dataset": {"inputs": inputs},
              "quantize": {"target": "generic", "gym": [entry]}}
    if options.batch:
        config["dataset"]["batch"] = options.batch
    path = os.path.join(folder, "search.json")
    with open(path, "w") as file:
        json.dump(config, file)
    subprocess.run([options.mscgym, "search", path, "--quiet", "--threads", "1"], check=True,
                   stdout=subprocess.DEVNULL, env=dict(os.environ, OMP_NUM_THREADS="1"))
    return curve(os.path.join(folder, "r.jsonl"))


def work(line, rungs, n_batches):
    """The work of a trial, as a share of one that is measured on all batches."""
    if "repeat_of" in line:
        return 0.0
    return rungs[len(line["rungs"]) - 1] / n_batches if line["state"] == "pruned" else 1.0


def curve(path, n_batches=None):
    """(elapsed seconds, best loss so far) of each complete trial, and all lines. With `n_batches`, time is
    the work of the trials so far in units of full trials, which is the same on any machine, however busy.
    """
    best, found, done = float("inf"), [], 0.0
    with open(path) as file:
        lines = [json.loads(line) for line in file]
    rungs = lines[0].get("race", {}).get("rungs", [])
    for line in lines:
        if line["kind"] == "trial":
            if n_batches:
                done += work(line, rungs, n_batches)
                line["measured"]["elapsed_s"] = done
            if line["state"] == "complete":
                best = min(best, line["metrics"]["distill_loss"])
                found.append((line["measured"]["elapsed_s"], best))
    return found, lines


def reached(found, loss):
    return next(elapsed for elapsed, best in found if best <= loss)


def compare(options, name, seed):
    samples = methods_data.calibration(name, 0)[:options.samples]
    with tempfile.TemporaryDirectory() as folder:
        plain, plain_lines = search(options, os.path.join(folder, "plain"), name, samples, seed, None)
        raced, lines = search(options, os.path.join(folder, "raced"), name, samples, seed,
                              options.race)
    loss = max(plain[-1][1], raced[-1][1])
    row = {"network": name, "seed": seed, "loss": loss, "plain_loss": plain[-1][1],
           "raced_loss": raced[-1][1], "plain_s": reached(plain, loss),
           "raced_s": reached(raced, loss),
           "plain_trial_s": plain_lines[-1]["measured"]["elapsed_s"] / (len(plain_lines) - 1),
           "raced_trial_s": lines[-1]["measured"]["elapsed_s"] / (len(lines) - 1),
           "rungs": lines[0]["race"]["rungs"], "samples": len(samples)}
    row["ratio"] = row["plain_s"] / row["raced_s"]
    row["trial_ratio"] = row["plain_trial_s"] / row["raced_trial_s"]
    return row


def summary(rows):
    ratios = [row["ratio"] for row in rows]
    trials = statistics.median(row["trial_ratio"] for row in rows)
    worse = statistics.median(row["raced_loss"] / row["plain_loss"] for row in rows)
    return (f"{rows[0]['network']:18} {statistics.median(ratios):6.2f}  "
            f"({min(ratios):.2f} … {max(ratios):.2f})  {trials:6.2f}  {worse:8.3f}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("mscgym")
    parser.add_argument("networks", nargs="*", default=["fashion", "mlsd-tiny", "ocr-rec"])
    parser.add_argument("--trials", type=int, default=300)
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--agent", default="auto")
    parser.add_argument("--parallel", type=int, default=32)
    parser.add_argument("--batch", type=int)
    parser.add_argument("--samples", type=int)
    parser.add_argument("--race", type=json.loads, default=True)
    parser.add_argument("--save")
    options = parser.parse_args()
    options.mscgym = os.path.abspath(options.mscgym)
    rows = []
    print(f"{common.version(options.mscgym)}; {common.machine()}")
    print("network            less time (spread)     a trial   final loss over that without")
    for name in options.networks:
        for seed in (int(text) for text in options.seeds.split(",")):
            rows.append(compare(options, name, seed))
            if options.save:
                with open(options.save, "w") as file:
                    json.dump(rows, file, indent=1)
        print(summary([row for row in rows if row["network"] == name]), flush=True)


if __name__ == "__main__":
    main()
