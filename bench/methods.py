#!/usr/bin/env python3
"""Compares the methods that find a weight's integers: losses of uniform plans in onnxruntime, on
samples that no choice was based on.

    methods.py MSCGYM [NETWORK...] [--seeds 0,1,2] [--target generic,onnxruntime] [--rows W4A8,...]
               [--methods nearest,...,distill] [--peers aimet=PYTHON,... [--minutes 60]]
               [--beside FIGURES.json] [--save ROWS.json] [--json FILE]

Networks and samples are those of methods_data.py: digits, fashion, resnet, vit, speech-embedding,
mlsd-tiny, ocr-rec; and bert-8m, gpt2-8m, llama-8m, encoder, which are not measured unless named. Each
seed draws other calibration samples. The table has medians and their spread, and the accuracy or the
agreement of decoded characters. Weights are quantised per channel, in all layers; of transformers, only
in linear layers, and other products remain float. W4 is weights of 4 bits in groups of 32 and float
activations.
--target generic quantises the inputs of joints, onnxruntime all tensors that it requantises.
"distill by channel" gives activations of depthwise convolutions one scale per channel; it and the methods
of several words must be named in --methods and need generic. Products of integers are computed exactly
(peers/outputs.py).

--peers measures other tools at the sites of generic, each in a Python that has it (peers/compress.py).
A row names the preset with the least loss of those that finished within --minutes. --save stores rows,
which are then not measured again. FIGURES.json, {network: {row: loss}}, adds another program's figures
and the ratio; --json writes rows like those of the other benchmarks.
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
import methods_peers
import outputs as ort

# For each method, its choices for weights. Of several choices, the best on the validation samples
# counts.
METHODS = {
    "nearest": [{"observer": "minmax"}, {"observer": "mse"}],
    "hessian": [{"observer": "hessian"}],
    "gptq": [{"rounding": "gptq"}],
    "descent": [{"rounding": "descent"}],
    "affine": [{"rounding": "descent", "correct": "affine"}],
}
# Methods with a search of their own, whose bounds allow only the plan of "affine". Their words are stages of that
# search, "dynamic" (scales of activations are found when the network runs; only with 8 bits), "by channel" (scales of
# the inputs of depthwise convolutions), and "products" (equalize with the key multiply).
STAGES = ("distill", "distill by channel", "equalize + distill", "products + distill", "dynamic", "dynamic + distill",
          "dynamic + equalize + distill", "dynamic + products + distill")
# Bits of weights, bits of activations (32: float), elements of a weight that share a scale (0: a channel).
PLANS = {"W8A8": (8, 8, 0), "W6A8": (6, 8, 0), "W4A8": (4, 8, 0), "W4A4": (4, 4, 0), "W4": (4, 32, 32),
         "W4A8 in groups": (4, 8, 32), "W4A4 in groups": (4, 4, 32)}
USUAL = ("W8A8", "W6A8", "W4A8", "W4A4")


def sites(mscgym, model, target):
    text = subprocess.run([mscgym, "graph", model, "--sites", "--target", target, "--json"],
                          check=True, stdout=subprocess.PIPE, text=True).stdout
    return json.loads(text)


def not_of_linear_layers(found):
    """The names of the sites that no linear layer reads. A joint that reads a weight and an activation is one."""
    def joints(kind):
        return {joint for site in found if site["kind"] == kind for joint in site["joints"]}
    linear = joints("weight") & joints("activation")
    return [site["name"] for site in found if not linear & set(site["joints"])]


def share_of(found, names):
    """The share of the weights that these sites hold."""
    sizes = {site["name"]: numpy.prod(site["shape"]) for site in found if site["kind"] == "weight"}
    return float(sum(sizes.get(name, 0) for name in names) / max(sum(sizes.values()), 1))


def search(mscgym, folder, network, samples, target, plan, methods):
    """The record of uniform plans: from trial 1 on, one per choice of the methods, in their order. In
    trial 0 weights have the bits of activations, or are float like these.
    """
    weight_bits, activation_bits, group = PLANS[plan]
    grouped = {"group_size": group} if group else {}
    weights = [{"bits": weight_bits, **grouped, **choice} for method in methods
               for choice in METHODS["affine" if method in STAGES else method]]
    stage, found = methods[0] if methods[0] in STAGES else "", sites(mscgym, network.path, target)
    first, label = {"bits": activation_bits}, str(activation_bits)
    if activation_bits == 32:
        first, label = {"float": True}, "float"
    if "dynamic" in stage:
        first, label = {**first, "dynamic": True}, label + " dynamic"
    env = {"choices": [first, *weights],
           "rules": [{"kind": "activation", "choices": [label]}],
           "exclude": not_of_linear_layers(found) if network.is_linear else []}
    if "by channel" in stage:
        env["activations"] = {"per_channel": True}
    if weight_bits < activation_bits:
        between = (weight_bits + activation_bits) / 2 / 32
        left = share_of(found, env["exclude"])
        env["bounds"] = {"size_ratio": {"max": left + (1 - left) * between}}
    inputs = os.path.join(folder, "inputs.npz")
    numpy.savez(inputs, **samples)
    equalize = {"weights": weight_bits, "activations": min(activation_bits, 8), "multiply": "products" in stage}
    config = {"workspace": folder, "model": os.path.abspath(network.path), "verbose": "error",
              "dataset": {"inputs": inputs, **({"batch": 1} if "dynamic" in stage else {})},
              "quantize": {"target": target, "runtime": False, "gym": [
                  {"record": "r.jsonl", "env": env, "agent": {"type": "random"},
                   "budget": {"trials": 0}, "distill": "distill" in stage,
                   **({"equalize": equalize} if {"equalize", "products"} & set(stage.split()) else {})}]}}
    path = os.path.join(folder, "search.json")
    with open(path, "w") as file:
        json.dump(config, file)
    subprocess.run([mscgym, "search", path, "--quiet"], check=True, stdout=subprocess.DEVNULL)
    return os.path.join(folder, "r.jsonl")


def export(mscgym, record, *options):
    path = record + ".onnx"
    subprocess.run([mscgym, "export", record, "-o", path, "--quiet", *options], check=True,
                   stdout=subprocess.DEVNULL)
    return path


class Network:
    """A network and its outputs on the validation samples."""

    def __init__(self, name):
        self.name = name
        self.path = common.model_path(name)
        self.is_linear = name in methods_data.TRANSFORMERS  # only linear layers are quantised
        self.samples = methods_data.validation_by_input(name)
        self.labels = methods_data.labels(name)
        self.truth = self.outputs(self.path)

    def outputs(self, model):
        return ort.outputs(model, self.samples, 1 if self.is_linear else 8)

    def judge(self, found):
        """(loss, score in percent or None) of a model's outputs."""
        score = None
        if self.labels is not None:
            score = float(numpy.mean(found[0].reshape(len(found[0]), -1).argmax(1) == self.labels))
        elif self.name == "ocr-rec":
            score = ort.agreement(self.truth[0], found[0])
        return ort.loss(self.truth, found), None if score is None else 100 * score


def measure(mscgym, network, target, plan, seed, methods):
    """{method: (loss, score)} of one method with a stage, or of all methods without."""
    samples = methods_data.calibration_by_input(network.name, seed)
    with tempfile.TemporaryDirectory() as folder:
        record = search(mscgym, folder, network, samples, target, plan, methods)
        if methods[0] in STAGES:
            return {methods[0]: network.judge(network.outputs(export(mscgym, record)))}
        by_method, trial = {}, 1
        for method in methods:
            judged = []
            for _ in METHODS[method]:
                path = export(mscgym, record, "--trial", str(trial))
                judged.append(network.judge(network.outputs(path)))
                trial += 1
            by_method[method] = min(judged)
    return by_method


def tell(rows, network, target, plan, beside):
    for method in (*METHODS, *STAGES, *methods_peers.PEERS):
        found = [row for row in rows if row["loss"] is not None and
                 (row["network"], row["target"], row["plan"], row["method"]) ==
                 (network, target, plan, method)]
        if not found:
            continue
        losses = [row["loss"] for row in found]
        line = (f"{network:17} {target:12} {plan} {method:18} {statistics.median(losses):10.3g} "
                f"({min(losses):.3g} to {max(losses):.3g}, {len(found)} seeds)")
        if found[0]["score"] is not None:
            line += f"  {statistics.median(row['score'] for row in found):5.1f} %"
        other = beside.get(network, {}).get(f"{plan} {method}")
        if other and target == "generic":
            line += f"  beside {other:.3g}: {statistics.median(losses) / other:.2f}"
        if "preset" in found[0]:
            line += "  " + ", ".join(sorted({row["preset"] for row in found}))
        print(line, flush=True)


def pairs(rows, key, methods):
    """Pairs (1 / loss of our best, 1 / loss of the best peer or None) for each seed, and the names of the peers.

    If a peer was measured with only some of the seeds, only these count.
    """
    found, names = [], set()
    measured = [row for row in rows if key.items() <= row.items() and row["loss"] is not None]
    for seed in sorted({row["seed"] for row in measured}):
        ours = [row for row in measured if row["seed"] == seed and row["method"] in methods]
        peers = [row for row in measured if row["seed"] == seed and
                 row["method"] in methods_peers.PEERS]
        if ours:
            best = min(peers, key=lambda row: row["loss"], default=None)
            names |= {f"{best['version']}, {best['preset']}"} if best else set()
            found.append((1 / min(row["loss"] for row in ours), 1 / best["loss"] if best else None))
    return ([pair for pair in found if pair[1] is not None] or found,
            "; ".join(sorted(names)) or None)


def result_rows(rows):
    """Rows in the form of bench/results: medians over seeds, compared with the best peer of each seed."""
    found = []
    kinds = {**{method: [method] for method in (*METHODS, *STAGES)},
             "best": [*METHODS, *STAGES]}
    for network in (*methods_data.NETWORKS, *methods_data.TRANSFORMERS):
        for target in ("generic", "onnxruntime"):
            for plan in PLANS:
                key = {"network": network, "target": target, "plan": plan}
                for kind, methods in kinds.items():
                    measured, peer = pairs(rows, key, methods)
                    if measured:
                        agent = f"1 / loss of {plan} {kind}, {target}"
                        found.append(common.row("methods", network, agent, peer, measured))
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("mscgym")
    parser.add_argument("networks", nargs="*", default=list(methods_data.NETWORKS))
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--target", default="generic,onnxruntime")
    parser.add_argument("--rows", default=",".join(USUAL))
    parser.add_argument("--beside")
    parser.add_argument("--methods", default=",".join((*METHODS, "distill")))
    parser.add_argument("--save")
    parser.add_argument("--peers", type=methods_peers.parse, default="")
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--json")
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
                    known = {row["method"] for row in rows if key.items() <= row.items()}
                    wanted = [m for m in args.methods.split(",") if m and m not in known and
                              (PLANS[plan][1] == 8 or "dynamic" not in m)]
                    for methods in ([m for m in METHODS if m in wanted],
                                    *([m] for m in wanted if m in STAGES)):
                        if methods:
                            found = measure(args.mscgym, network, target, plan, seed, methods)
                            rows += [{**key, "method": method, "loss": loss, "score": score}
                                     for method, (loss, score) in found.items()]
                            common.save_rows(args.save, rows)
                    for peer, python in args.peers.items():
                        if target == "generic" and peer not in known:
                            with tempfile.TemporaryDirectory() as folder:
                                found = methods_peers.measure(peer, python, network, PLANS[plan],
                                                              seed, folder, args.minutes)
                            if found:
                                rows.append({**key, "method": peer, **found})
                                common.save_rows(args.save, rows)
                tell(rows, name, target, plan, beside)
    common.save_rows(args.json, result_rows(rows))


if __name__ == "__main__":
    main()
