#!/usr/bin/env python3
"""What networks lose with weights of 4 bits and activations of 4 or 8: loss and accuracy in onnxruntime,
on samples that no choice was based on, for each method, and the seconds that it takes.

    four_bits.py MSCGYM [NETWORK...] [--plans W4A4,W4A8] [--methods ...] [--seeds 0,...]
                 [--save ROWS.json]

The first and the last layer have 8 bits, weights one scale per channel, activations one scale (target
generic). Networks and samples are those of methods_data.py; resnet and vit are trained by
scripts/models/train_images.py. Methods, of which each contains the one before, except the first:

    minmax    weights and activations have the ranges from their least to their greatest value
    rounding  weights are rounded by `descent` and corrected by `affine`, ranges are those of `auto`
    distill   the stage `distill` improves the weights
    equalize  channels are rescaled before, for the bits of the plan
    multiply  the same with constants where no layer can rescale a channel
    rotate    the same with matrices for queries and keys

--save stores rows, which are then not measured again. Seconds are processor seconds of the program. At
the end come the ratios of losses to those of `distill`, with their geometric means. Exits with 1 if, at
W4A4, the mean of `rotate` is above 0.6, a network has more loss than with `distill`, or the accuracy of
vit drops by more than a third of its drop with `minmax`.
"""
import argparse
import json
import math
import os
import resource
import statistics
import subprocess
import sys
import tempfile

import numpy

import common
import methods
import methods_data

NETWORKS = ("digits", "fashion", "vit", "resnet", "speech-embedding", "ocr-rec")
STAGES = {  # members of the entry
    "minmax": {}, "rounding": {}, "distill": {"distill": True},
    "equalize": {"equalize": {}, "distill": True},
    "multiply": {"equalize": {"multiply": True}, "distill": True},
    "rotate": {"equalize": {"multiply": True, "rotate": True}, "distill": True},
}
MOST, MOST_DROP = 0.6, 1 / 3


def entry(mscgym, model, plan, method):
    """The entry of a search that has one plan."""
    weight_bits, activation_bits = methods.PLANS[plan]
    sites = methods.sites(mscgym, model, "generic")
    weights = [site["name"] for site in sites if site["kind"] == "weight"]
    activations = [site["name"] for site in sites if site["kind"] == "activation"]
    how = {"observer": "minmax"} if method == "minmax" else {"rounding": "descent", "correct": "affine"}
    few = " ".join([str(weight_bits), *how.values()])
    # The last activation may get another name, if it is multiplied.
    last = activations[-1].replace(":", "?") + "*"
    rules = [{"kind": "weight", "name": name, "choices": ["8"]} for name in (weights[0], weights[-1])]
    rules += [{"kind": "activation", "name": name, "choices": ["8"]} for name in (activations[0], last)]
    rules += [{"kind": "weight", "choices": [few]}, {"kind": "activation", "choices": [str(activation_bits)]}]
    choices = [{"bits": 8}, {"bits": weight_bits, **how}]
    env = {"choices": choices + [{"bits": 4}] * (activation_bits == 4), "rules": rules}
    if method == "minmax":
        env["observers"] = {"weights": "minmax", "activations": "minmax"}
    stages = json.loads(json.dumps(STAGES[method]))
    if "equalize" in stages:
        stages["equalize"]["activations"] = activation_bits
    return {"record": "r.jsonl", "env": env, "agent": {"type": "random"}, "budget": {"trials": 0}, **stages}


def measure(mscgym, network, plan, method, seed):
    """(loss, score in percent or None, processor seconds)"""
    with tempfile.TemporaryDirectory() as folder:
        inputs, path = os.path.join(folder, "inputs.npy"), os.path.join(folder, "search.json")
        numpy.save(inputs, methods_data.calibration(network.name, seed))
        with open(path, "w") as file:
            json.dump({"workspace": folder, "model": os.path.abspath(network.path), "verbose": "error",
                       "dataset": {"inputs": inputs},
                       "quantize": {"target": "generic", "runtime": False,
                                    "gym": [entry(mscgym, network.path, plan, method)]}}, file)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([mscgym, "search", path, "--quiet"], check=True, stdout=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        model = methods.export(mscgym, os.path.join(folder, "r.jsonl"))
        return (*network.judge(network.outputs(model)),
                after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def find(rows, **key):
    """The median loss and the mean score of rows, or None."""
    found = [row for row in rows if key.items() <= row.items()]
    if not found:
        return None
    scores = [row["score"] for row in found if row["score"] is not None]
    return statistics.median(row["loss"] for row in found), statistics.mean(scores) if scores else None


def judge(rows, plan, names):
    """Prints the ratios of a plan; returns whether they meet the requirements."""
    holds = True
    for method in STAGES:
        ratios = {}
        for name in names:
            own, base = (find(rows, network=name, plan=plan, method=m) for m in (method, "distill"))
            if own and base:
                ratios[name] = own[0] / base[0]
        if not ratios:
            continue
        mean = math.exp(statistics.mean(map(math.log, ratios.values())))
        is_enough = (plan, method) != ("W4A4", "rotate") or (mean <= MOST and max(ratios.values()) <= 1)
        holds = holds and is_enough
        print(f"{plan} {method:9} of distill: " + " ".join(f"{n} {r:.2f}" for n, r in ratios.items()) +
              f"; geometric mean {mean:.3f}{'' if is_enough else ': FAILED'}", flush=True)
    drops = [find(rows, network="vit", plan=plan, method=m) for m in ("float", "minmax", "rotate")]
    if plan == "W4A4" and all(drops):
        whole, worst, ours = (score for _, score in drops)
        is_enough = whole - ours <= MOST_DROP * (whole - worst)
        holds = holds and is_enough
        print(f"{plan} vit: {whole - ours:.2f} points lost, {whole - worst:.2f} with minmax"
              f"{'' if is_enough else ': FAILED'}", flush=True)
    return holds


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mscgym")
    parser.add_argument("networks", nargs="*", default=list(NETWORKS))
    parser.add_argument("--plans", default="W4A4,W4A8")
    parser.add_argument("--methods", default=",".join(STAGES))
    parser.add_argument("--seeds", default="0")
    parser.add_argument("--save")
    args = parser.parse_args()
    rows, names = [], list(filter(common.available, args.networks))
    if args.save and os.path.exists(args.save):
        with open(args.save) as file:
            rows = json.load(file)
    for plan in args.plans.split(","):
        for name in names:
            network = methods.Network(name)
            whole = {"network": name, "plan": plan, "method": "float"}
            rows = [row for row in rows if not whole.items() <= row.items()]
            rows.append({**whole, "loss": 0, "score": network.judge(network.truth)[1]})
            for method in args.methods.split(","):
                for seed in map(int, args.seeds.split(",")):
                    key = {"network": name, "plan": plan, "method": method, "seed": seed}
                    if not any(key.items() <= row.items() for row in rows):
                        loss, score, seconds = measure(args.mscgym, network, plan, method, seed)
                        rows.append({**key, "loss": loss, "score": score, "seconds": seconds})
                        common.save_rows(args.save, rows)
                    row = next(row for row in rows if key.items() <= row.items())
                    text = "" if row["score"] is None else f" {row['score']:.2f} %"
                    print(f"{name:17} {plan} {method:9} seed {seed} loss {row['loss']:.3g}{text} "
                          f"{row['seconds']:.1f} s", flush=True)
    holds = [judge(rows, plan, names) for plan in args.plans.split(",")]
    sys.exit(0 if all(holds) else 1)


if __name__ == "__main__":
    main()
