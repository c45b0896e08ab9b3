#!/usr/bin/env python3
"""What weights with several widths achieve under a bound on bytes: losses and accuracies in
onnxruntime, on samples that no choice was based on, of the winners of two searches with the same
number of trials.

    mixed.py MSCGYM [NETWORK...] [--trials N] [--seeds 0,...] [--save ROWS.json]

"bits" searches only over bits, with weights rounded to nearest; "joint" over bits and rounding
methods. Each winner is measured as it was found, and after the stage `distill` has improved its
weights. Networks and samples are those of methods_data.py: digits and fashion at a packed size of
0.125 of the float model's, ocr-rec at 0.14. Activations have 8 bits, weights one scale per channel,
in all layers (target generic). Each seed draws other calibration samples.

Exits with 1 if, by the median over seeds, a network loses more than half a point of accuracy or 4 %
of the characters, or if "joint" is worse than "bits", both with the stage: the mean difference of
their losses is above twice its standard error. That is the error over samples, pair by pair, or
over seeds if that is larger.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

import numpy

import common
import methods
import methods_data
import outputs as ort

BITS = (8, 6, 5, 4, 3)
NEAREST = [{"bits": bits} for bits in BITS]
SEARCHES = {
    "bits": NEAREST,
    "joint": NEAREST + [{"bits": bits, "rounding": "descent", "correct": "affine"} for bits in BITS],
}
SIZES = {"digits": 0.125, "fashion": 0.125, "ocr-rec": 0.14}
# Points lost relative to the float model.
MOST_LOST = {"digits": 0.5, "fashion": 0.5, "ocr-rec": 4.0}
STANDARD_ERRORS = 2


def search(mscgym, folder, network, choices, samples, trials):
    """The report of a search, the model of its winner, and the model with improved weights."""
    inputs = os.path.join(folder, "inputs.npy")
    numpy.save(inputs, samples)
    fix = {site["name"]: "8" for site in methods.sites(mscgym, network.path, "generic")
           if site["kind"] == "activation"}
    entry = {"record": "r.jsonl", "agent": {"type": "evolutionary"}, "budget": {"trials": trials},
             "distill": True, "env": {"choices": choices, "fix": fix,
                                      "bounds": {"size_ratio": {"max": SIZES[network.name]}}}}
    config = {"workspace": folder, "model": os.path.abspath(network.path), "verbose": "error",
              "dataset": {"inputs": inputs},
              "quantize": {"target": "generic", "strategy_file": "s.json", "gym": [entry]}}
    path = os.path.join(folder, "search.json")
    with open(path, "w") as file:
        json.dump(config, file)
    made = subprocess.run([mscgym, "search", path, "--quiet", "--json"], check=True,
                          stdout=subprocess.PIPE, text=True)
    report = json.loads(made.stdout)[0]
    own, improved = os.path.join(folder, "own.onnx"), os.path.join(folder, "improved.onnx")
    for out, more in ((own, ["--trial", str(report["winner"]["id"])]), (improved, [])):
        subprocess.run([mscgym, "export", os.path.join(folder, "r.jsonl"), "-o", out, "--quiet",
                        *more], check=True, stdout=subprocess.DEVNULL)
    return report, own, improved


def measure(mscgym, network, seed, name, trials):
    """The rows of one search: its winner as found, and with improved weights."""
    rows = []
    samples = methods_data.calibration(network.name, seed)
    with tempfile.TemporaryDirectory() as folder:
        report, *models = search(mscgym, folder, network, SEARCHES[name], samples, trials)
        for stage, model in zip((False, True), models):
            found = network.outputs(model)
            loss, score = network.judge(found)
            rows.append({"stage": stage, "loss": loss, "score": score,
                         "size_ratio": report["winner"]["metrics"]["size_ratio"],
                         "losses": [float(value) for value in ort.losses(network.truth, found)]})
    return rows


def difference(rows):
    """Mean of how much larger the losses of "joint" are, and its standard error."""
    means, errors = [], []
    for seed in sorted({row["seed"] for row in rows}):
        joint, bits = (numpy.array(next(row["losses"] for row in rows if row["stage"]
                                        and (row["seed"], row["search"]) == (seed, name)))
                       for name in ("joint", "bits"))
        means.append(float(numpy.mean(joint - bits)))
        errors.append(float(numpy.std(joint - bits, ddof=1)) / len(bits) ** 0.5)
    n = len(means)
    over_samples = sum(error ** 2 for error in errors) ** 0.5 / n
    over_seeds = statistics.stdev(means) / n ** 0.5 if n > 1 else 0
    return statistics.mean(means), max(over_samples, over_seeds)


def tell_row(row, whole):
    print(f"{row['network']:8} seed {row['seed']} {row['search']:6}"
          f"{'+ distill' if row['stage'] else '':10}size {row['size_ratio']:.4f} "
          f"loss {row['loss']:.3g} score {row['score']:.2f} % ({row['score'] - whole:+.2f})",
          flush=True)


def judge(network, rows, whole):
    """Prints the medians over seeds; returns whether they meet the requirements."""
    def median(search, stage, what):
        return statistics.median(row[what] for row in rows
                                 if (row["search"], row["stage"]) == (search, stage))
    joint, bits = median("joint", True, "loss"), median("bits", True, "loss")
    lost = whole - median("joint", True, "score")
    more, error = difference(rows)
    is_enough, is_first = lost <= MOST_LOST[network], more <= STANDARD_ERRORS * error
    print(f"{network:8} medians: {lost:.2f} points lost, {MOST_LOST[network]:g} may be"
          f"{'' if is_enough else ': FAILED'}; loss, joint {joint:.3g} beside bits {bits:.3g}, "
          f"{more / bits:+.1%} in the mean, standard error {error / bits:.1%}"
          f"{'' if is_first else ': FAILED'}", flush=True)
    return is_enough and is_first


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mscgym")
    parser.add_argument("networks", nargs="*", default=list(SIZES))
    parser.add_argument("--trials", type=int, default=400)
    parser.add_argument("--seeds", default="0")
    parser.add_argument("--save")
    args = parser.parse_args()
    rows, holds = [], True
    if args.save and os.path.exists(args.save):
        with open(args.save) as file:
            rows = json.load(file)
    for name in filter(common.available, args.networks):
        network = methods.Network(name)
        whole, of_network = network.judge(network.truth)[1], []
        for seed in map(int, args.seeds.split(",")):
            for kind in SEARCHES:
                key = {"network": name, "seed": seed, "trials": args.trials, "search": kind}
                found = [row for row in rows if key.items() <= row.items()]
                if not found:
                    found = [{**key, **row} for row in
                             measure(args.mscgym, network, seed, kind, args.trials)]
                    rows += found
                    common.save_rows(args.save, rows)
                for row in found:
                    tell_row(row, whole)
                of_network += found
        holds = judge(name, of_network, whole) and holds
    sys.exit(0 if holds else 1)


if __name__ == "__main__":
    main()
