#!/usr/bin/env python3
"""What pruning achieves without training: accuracies in onnxruntime, on samples that no choice was based on.

    prune.py MSCGYM [NETWORK...] [--trials N] [--seeds 0,...] [--plans search,channels,sparse]
             [--peers PYTHON]

Under a bound on multiply-accumulates it measures the winner of a search, and uniform plans of
channels by each criterion, with and without repair of the weights that read the channels. Under a
bound on size it measures sparse weights in the same way. --peers adds what other tools make of the
same networks at the same density.

Networks and samples are those of methods_data.py: digits at 0.40 of the float model's
multiply-accumulates, fashion at 0.30. Each seed draws other calibration samples. Exits with 1 if,
by the median over seeds, the winner of digits loses more than a point, or that of fashion has an
accuracy below 86 %.
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

MACS = {"digits": 0.40, "fashion": 0.30}
CRITERIA = ("hessian", "energy", "l2", "l1", "loss")
DENSITIES = (1, 0.75, 0.5, 0.25)
DENSITY = 0.5  # density of the uniform plans
SPARSITIES = ({"pattern": "2:4"}, {"sparsity": 0.5}, {"sparsity": 0.7})
SIZE = 0.335  # bound on the size: the size with 70 % of all weights removed


def run(mscgym, network, samples, env, trials):
    """Loss and score of a search's winner on unseen samples, and its metrics."""
    with tempfile.TemporaryDirectory() as folder:
        inputs = os.path.join(folder, "inputs.npy")
        numpy.save(inputs, samples)
        entry = {"record": "r.jsonl", "agent": {"type": "evolutionary"},
                 "budget": {"trials": trials}, "env": env}
        config = {"workspace": folder, "model": os.path.abspath(network.path), "verbose": "error",
                  "dataset": {"inputs": inputs}, "prune": {"gym": [entry]}}
        path, model = os.path.join(folder, "search.json"), os.path.join(folder, "small.onnx")
        with open(path, "w") as file:
            json.dump(config, file)
        made = subprocess.run([mscgym, "search", path, "--quiet", "--json"], check=True,
                              stdout=subprocess.PIPE, text=True)
        subprocess.run([mscgym, "export", os.path.join(folder, "r.jsonl"), "-o", model, "--quiet"],
                       check=True, stdout=subprocess.DEVNULL)
        return (*network.judge(network.outputs(model)),
                json.loads(made.stdout)[0]["winner"]["metrics"])


def uniform_plans(plans):
    if "channels" in plans:
        yield from ((f"{DENSITY} {criterion}", {"density": DENSITY, "criterion": criterion})
                    for criterion in CRITERIA)
    if "sparse" in plans:
        for of in SPARSITIES:
            yield from ((f"{' '.join(map(str, of.values()))} sparse {criterion}",
                         {**of, "criterion": criterion}) for criterion in ("hessian", "energy", "l2"))


def measure(mscgym, network, seed, trials, plans):
    samples = methods_data.calibration(network.name, seed)
    choices = [{"density": density} for density in DENSITIES]
    if "search" in plans:
        yield ("search", *run(mscgym, network, samples, {
            "choices": choices, "bounds": {"macs_ratio": {"max": MACS[network.name]}}}, trials))
    if "sparse" in plans:
        yield ("search sparse", *run(mscgym, network, samples, {
            "choices": [{"sparsity": share} for share in (0, 0.3, 0.5, 0.7, 0.8, 0.9)],
            "bounds": {"size_ratio": {"max": SIZE}}}, trials))
    for name, choice in uniform_plans(plans):
        for repair in True, False:
            env = {"choices": [choice], "repair": repair}
            yield (name + ("" if repair else ", no repair"), *run(mscgym, network, samples, env, 0))


def measure_peers(python, network):
    """The rows that peers/prune.py prints, {preset, outputs or failed, ...}."""
    with tempfile.TemporaryDirectory() as folder:
        inputs = os.path.join(folder, "validation.npy")
        numpy.save(inputs, methods_data.validation(network.name))
        shares = ",".join(str(of["sparsity"]) for of in SPARSITIES if "sparsity" in of)
        made = subprocess.run(
            [python, os.path.join(common.HERE, "peers", "prune.py"), os.path.abspath(network.path),
             inputs, str(DENSITY), shares, folder], check=True, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, text=True)
        for line in map(json.loads, made.stdout.splitlines()):
            if "failed" in line:
                print(f"{network.name:8} {line['preset']:37} failed: {line['failed']}", flush=True)
                continue
            with numpy.load(line["outputs"]) as found:
                yield line["preset"], line["macs"], *network.judge(list(found.values()))


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mscgym")
    parser.add_argument("networks", nargs="*", default=list(MACS))
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--seeds", default="0")
    parser.add_argument("--plans", default="search,channels,sparse")
    parser.add_argument("--peers", metavar="PYTHON", help="one that has what peers/prune.py asks for")
    args = parser.parse_args()
    holds = True
    for name in args.networks:
        network = methods.Network(name)
        whole, found = network.judge(network.truth)[1], []
        for seed in map(int, args.seeds.split(",")):
            for plan, loss, score, metrics in measure(args.mscgym, network, seed, args.trials,
                                                      args.plans.split(",")):
                print(f"{name:8} seed {seed} {plan:30} macs {metrics['macs_ratio']:.3f} size "
                      f"{metrics['size_ratio']:.3f} loss {loss:.4g} score {score:.2f} % "
                      f"({score - whole:+.2f})", flush=True)
                found += [score] if plan == "search" else []
        for preset, macs, loss, score in measure_peers(args.peers, network) if args.peers else ():
            print(f"{name:8} {preset:37} macs {macs:.3f} loss {loss:.4g} score {score:.2f} % "
                  f"({score - whole:+.2f})", flush=True)
        if not found:
            continue
        median = statistics.median(found)
        is_enough = median >= 86 if name == "fashion" else median >= whole - 1
        print(f"{name:8} median {median:.2f} of {whole:.2f} %{'' if is_enough else ': FAILED'}",
              flush=True)
        holds = holds and is_enough
    sys.exit(0 if holds else 1)


if __name__ == "__main__":
    main()
