#!/usr/bin/env python3
"""What the ways to find a weight's integers are worth: losses of uniform plans on samples that nothing
was chosen by, in onnxruntime.

    methods.py MSCGYM [NETWORK...] [--seeds 0,1,2] [--target generic,onnxruntime] [--rows W4A8,...]
               [--beside FIGURES.json] [--save ROWS.json]

Networks and samples are those of methods_data.py: digits, fashion, speech-embedding, mlsd-tiny, ocr-rec.
Each seed draws the calibration samples anew; medians are printed, with the accuracy, or the agreement of
decoded characters, in brackets. Weights are per channel, and no layer is left out. --target generic
quantises what joints read, onnxruntime all that it requantises. --save keeps rows, which are not measured
again. FIGURES.json, {network: {row: loss}}, puts those of another program beside them, with the ratio.
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
import outputs as ort

# What is done with a weight, one after the other; of several choices the best on validation counts.
METHODS = {
    "nearest": [{"observer": "minmax"}, {"observer": "mse"}],
    "hessian": [{"observer": "hessian"}],
    "gptq": [{"rounding": "gptq"}],
    "descent": [{"rounding": "descent"}],
    "affine": [{"rounding": "descent", "correct": "affine"}],
}
PLANS = {"W8A8": (8, 8), "W6A8": (6, 8), "W4A8": (4, 8), "W4A4": (4, 4)}


def sites(mscgym, model, target):
    text = subprocess.run([mscgym, "graph", model, "--sites", "--target", target, "--json"],
                          check=True, stdout=subprocess.PIPE, text=True).stdout
    return json.loads(text)


def choices(weight_bits, activation_bits):
    """Those of all methods, and the one that activations are fixed to, by its label, "8"."""
    found = [{"bits": activation_bits}]
    for method in METHODS.values():
        found += [{"bits": weight_bits, **choice} for choice in method]
    return found


def baselines(mscgym, folder, model, samples, target, plan):
    """The exported model of each choice of the methods, in their order."""
    weight_bits, activation_bits = PLANS[plan]
    inputs = os.path.join(folder, "inputs.npy")
    numpy.save(inputs, samples)
    fix = {site["name"]: str(activation_bits) for site in sites(mscgym, model, target)
           if site["kind"] == "activation"}
    env = {"choices": choices(weight_bits, activation_bits), "fix": fix}
    config = {"workspace": folder, "model": os.path.abspath(model), "verbose": "error",
              "dataset": {"inputs": inputs},
              "quantize": {"target": target, "runtime": False, "gym": [
                  {"record": "r.jsonl", "env": env, "agent": {"type": "random"},
                   "budget": {"trials": 0}}]}}
    path = os.path.join(folder, "search.json")
    with open(path, "w") as file:
        json.dump(config, file)
    subprocess.run([mscgym, "search", path, "--quiet"], check=True, stdout=subprocess.DEVNULL)
    record = os.path.join(folder, "r.jsonl")
    models = []
    for trial in range(1, len(env["choices"])):
        models.append(os.path.join(folder, f"{trial}.onnx"))
        subprocess.run([mscgym, "export", record, "--trial", str(trial), "-o", models[-1],
                        "--quiet"], check=True, stdout=subprocess.DEVNULL)
    return models


class Network:
    """A network with what it gives on the validation samples."""

    def __init__(self, name):
        self.name = name
        self.path = common.model_path(name)
        self.samples = methods_data.validation(name)
        self.labels = methods_data.labels(name)
        self.truth = ort.outputs(self.path, self.samples, 8)

    def judge(self, model):
        """(loss, score in percent or None)"""
        found = ort.outputs(model, self.samples, 8)
        score = None
        if self.labels is not None:
            score = float(numpy.mean(found[0].reshape(len(found[0]), -1).argmax(1) == self.labels))
        elif self.name == "ocr-rec":
            score = ort.agreement(self.truth[0], found[0])
        return ort.loss(self.truth, found), None if score is None else 100 * score


def measure(mscgym, network, target, plan, seed):
    """{method: (loss, score)}"""
    samples = methods_data.calibration(network.name, seed)
    with tempfile.TemporaryDirectory() as folder:
        found = [network.judge(path) for path in
                 baselines(mscgym, folder, network.path, samples, target, plan)]
    by_method, at = {}, 0
    for method, options in METHODS.items():
        by_method[method] = min(found[at:at + len(options)])
        at += len(options)
    return by_method


def tell(rows, network, target, plan, beside):
    for method in METHODS:
        found = [row for row in rows if (row["network"], row["target"], row["plan"],
                                         row["method"]) == (network, target, plan, method)]
        if not found:
            continue
        losses = [row["loss"] for row in found]
        line = (f"{network:17} {target:12} {plan} {method:8} {statistics.median(losses):10.3g} "
                f"({min(losses):.3g} to {max(losses):.3g}, {len(found)} seeds)")
        if found[0]["score"] is not None:
            line += f"  {statistics.median(row['score'] for row in found):5.1f} %"
        other = beside.get(network, {}).get(f"{plan} {method}")
        if other and target == "generic":
            line += f"  beside {other:.3g}: {statistics.median(losses) / other:.2f}"
        print(line, flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("mscgym")
    parser.add_argument("networks", nargs="*", default=list(methods_data.NETWORKS))
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--target", default="generic,onnxruntime")
    parser.add_argument("--rows", default=",".join(PLANS))
    parser.add_argument("--beside")
    parser.add_argument("--save")
    args = parser.parse_args()
    rows, beside = [], {}
    if args.save and os.path.exists(args.save):
        with open(args.save) as file:
            rows = json.load(file)
    if args.beside:
        with open(args.beside) as file:
            beside = json.load(file)
    for name in filter(common.available, args.networks):
        network = Network(name)
        for target in args.target.split(","):
            for plan in args.rows.split(","):
                for seed in map(int, args.seeds.split(",")):
                    key = {"network": name, "target": target, "plan": plan, "seed": seed}
                    if not any(key.items() <= row.items() for row in rows):
                        found = measure(args.mscgym, network, target, plan, seed)
                        rows += [{**key, "method": method, "loss": loss, "score": score}
                                 for method, (loss, score) in found.items()]
                        common.save_rows(args.save, rows)
                tell(rows, name, target, plan, beside)


if __name__ == "__main__":
    main()
