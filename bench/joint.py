#!/usr/bin/env python3
"""What channels and bits achieve together under a bound on bit operations, without training.

    joint.py MSCGYM [NETWORK...] [--trials N] [--seeds 0,...] [--bounds 0.04,...] [--target generic]
    joint.py MSCGYM [NETWORK...] --limits size_ratio=0.2,macs_ratio=0.6 [--trials N] [--seeds 0,...]

Compares the winners of three searches with the same number of trials: over bits; over channels and
then bits; over both at once (combined). It prints accuracies in onnxruntime on samples that no
choice was based on.

Networks and samples are those of methods_data.py. Each seed draws other calibration samples. In the
search over channels and then bits, channels get a third of the trials and a bound of the square
root of bound / (1/16), where 1/16 is the share of 8 bits everywhere. Exits with 1 if the combined
winner at 0.04 loses more than one point on digits or fashion, by the median over seeds.

With --limits there is only the combined search, under these bounds: densities down to a half, bits
down to 4. Activations have 8 bits, because nothing that they cost is bounded. Exits with 1 if fewer
than nine tenths of ocr-rec's characters agree with the float model's, by the median over seeds.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

import numpy

import methods
import methods_data

BITS = [{"bits": 8}] + [{"bits": bits, "rounding": "descent", "correct": "affine"}
                        for bits in (6, 4, 3)]
DENSITIES = [{"density": density} for density in (1, 0.75, 0.5, 0.25)]
REQUIRED = 0.04  # bound on bit operations at which at most a point may be lost


def entry(record, env, trials):
    return {"record": record, "agent": {"type": "evolutionary"}, "env": env,
            "budget": {"trials": trials}}


def sections(how, bound, target, trials):
    bounds = {"bit_ops_ratio": {"max": bound}}
    if how == "both":
        env = {"prune": {"choices": DENSITIES}, "choices": BITS, "bounds": bounds}
        return {"joint": {"target": target, "gym": [entry("last.jsonl", env, trials)]}}
    found = {"quantize": {"target": target, "gym": [
        entry("last.jsonl", {"choices": BITS, "bounds": bounds}, trials)]}}
    if how == "in turn":
        left = min(1, max(0.1, (bound * 16) ** 0.5))
        found["quantize"]["gym"][0]["budget"]["trials"] = trials - trials // 3
        found["prune"] = {"gym": [entry("first.jsonl", {
            "choices": DENSITIES, "bounds": {"macs_ratio": {"max": left}}}, trials // 3)]}
    return found


def limited(mscgym, network, target, limits, trials):
    """The section of a combined search under other bounds."""
    env = {"prune": {"choices": DENSITIES[:3]}, "choices": BITS[:3],
           "fix": {site["name"]: "8" for site in methods.sites(mscgym, network.path, target)
                   if site["kind"] == "activation"},
           "bounds": {name: {"max": limit} for name, limit in limits.items()}}
    search = {**entry("last.jsonl", env, trials), "agent": {"type": "auto"}}
    return {"joint": {"target": target, "runtime": False, "gym": [search]}}


def measure_limited(args, network, whole):
    """Measures one network; returns whether it meets the requirement."""
    limits = {name: float(limit) for name, limit in
              (part.split("=") for part in args.limits.split(","))}
    searches, scores = limited(args.mscgym, network, args.target, limits, args.trials), []
    for seed in map(int, args.seeds.split(",")):
        row = run(args.mscgym, network, methods_data.calibration(network.name, seed), searches)
        if row is None:
            print(f"{network.name:8} seed {seed} nothing meets the bounds", flush=True)
            continue
        loss, score, metrics = row
        scores.append(score)
        print(f"{network.name:8} seed {seed} size {metrics['size_ratio']:.4f} macs "
              f"{metrics['macs_ratio']:.4f} loss {loss:.4g} score {score:.2f} % ({score - whole:+.2f})",
              flush=True)
    return network.name != "ocr-rec" or (scores != [] and statistics.median(scores) >= 90)


def run(mscgym, network, samples, searches):
    """Loss and score on unseen samples of a search's winner, and its metrics. None if nothing
    meets the bounds.
    """
    with tempfile.TemporaryDirectory() as folder:
        inputs = os.path.join(folder, "inputs.npy")
        numpy.save(inputs, samples)
        config = {"workspace": folder, "model": os.path.abspath(network.path), "verbose": "error",
                  "dataset": {"inputs": inputs}, **searches}
        path, model = os.path.join(folder, "search.json"), os.path.join(folder, "small.onnx")
        with open(path, "w") as file:
            json.dump(config, file)
        made = subprocess.run([mscgym, "search", path, "--quiet", "--json"],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if "no choice can meet" in made.stderr:
            return None
        if made.returncode != 0:
            sys.exit(made.stderr)
        subprocess.run([mscgym, "export", os.path.join(folder, "last.jsonl"), "-o", model, "--quiet"],
                       check=True, stdout=subprocess.DEVNULL)
        metrics = json.loads(made.stdout)[-1]["winner"]["metrics"]
        return (*network.judge(network.outputs(model)), metrics)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mscgym")
    parser.add_argument("networks", nargs="*", default=["digits", "fashion"])
    parser.add_argument("--trials", type=int, default=400)
    parser.add_argument("--seeds", default="0")
    parser.add_argument("--bounds", default="0.04,0.02,0.01,0.005")
    parser.add_argument("--target", default="generic")
    parser.add_argument("--limits")
    args = parser.parse_args()
    holds = True
    for name in args.networks:
        network = methods.Network(name)
        whole = network.judge(network.truth)[1]
        if args.limits:
            holds = measure_limited(args, network, whole) and holds
            continue
        for bound in map(float, args.bounds.split(",")):
            found = {}
            for how in ("bits", "in turn", "both"):
                for seed in map(int, args.seeds.split(",")):
                    samples = methods_data.calibration(name, seed)
                    row = run(args.mscgym, network, samples,
                              sections(how, bound, args.target, args.trials))
                    if row is None:
                        print(f"{name:8} {bound:<5} {how:8} seed {seed} nothing meets the bound",
                              flush=True)
                        continue
                    loss, score, metrics = row
                    found.setdefault(how, []).append((score, loss))
                    print(f"{name:8} {bound:<5} {how:8} seed {seed} bit_ops "
                          f"{metrics['bit_ops_ratio']:.4f} size {metrics['size_ratio']:.4f} "
                          f"loss {loss:.4g} score {score:.2f} % ({score - whole:+.2f})", flush=True)
            for how, rows in found.items():
                print(f"{name:8} {bound:<5} {how:8} median loss "
                      f"{statistics.median(loss for _, loss in rows):.4g} score "
                      f"{statistics.median(score for score, _ in rows):.2f} % of {whole:.2f}", flush=True)
            if bound == REQUIRED and name in ("digits", "fashion"):
                median = statistics.median(score for score, _ in found["both"])
                holds = holds and median >= whole - 1
                print(f"{name:8} {bound:<5} {'holds' if median >= whole - 1 else 'FAILED'}", flush=True)
    sys.exit(0 if holds else 1)


if __name__ == "__main__":
    main()
