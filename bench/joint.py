#!/usr/bin/env python3
"""What channels and bits are worth together under a bound of bit operations: accuracies on samples that
nothing was chosen by, in onnxruntime, of the winners of three searches without training, with as many
trials each: for bits alone, for channels and then for bits, and for both at once.

    joint.py MSCGYM [NETWORK...] [--trials N] [--seeds 0,...] [--bounds 0.04,...] [--target generic]
    joint.py MSCGYM [NETWORK...] --limits size_ratio=0.2,macs_ratio=0.6 [--trials N] [--seeds 0,...]

Networks and samples are those of methods_data.py. Seeds draw the calibration samples anew. In turn, channels
have a third of the trials, and go until the square root of the bound's share of 1/16 (8 bits everywhere) is
left. Exit code 1 if by the median over seeds the joint winner at 0.04 loses more than a point of digits
or fashion.

With --limits there is one search, for both at once: densities down to a half and bits down to 4 under these
bounds, activations having 8 bits, as nothing is bounded that they cost. Exit code 1 if by the median over
seeds fewer than nine tenths of the characters of ocr-rec agree with the float model's.
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
REQUIRED = 0.04  # of bit operations, at most a point lost


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
    """The section of a search under other bounds."""
    env = {"prune": {"choices": DENSITIES[:3]}, "choices": BITS[:3],
           "fix": {site["name"]: "8" for site in methods.sites(mscgym, network.path, target)
                   if site["kind"] == "activation"},
           "bounds": {name: {"max": limit} for name, limit in limits.items()}}
    search = {**entry("last.jsonl", env, trials), "agent": {"type": "auto"}}
    return {"joint": {"target": target, "runtime": False, "gym": [search]}}


def measure_limited(args, network, whole):
    """Does it hold?"""
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
    """Loss and score on unseen samples of what searches end with, and its metrics; None: nothing meets
    the bounds."""
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
