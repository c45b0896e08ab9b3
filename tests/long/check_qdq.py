#!/usr/bin/env python3
"""Compares exported QDQ models in onnxruntime with what the search computed.

    check_qdq.py MSCGYM [MODEL ...]

For each model, two plans of a short search are exported: 8 bits everywhere, and a mix of 8, 6 and
4.
(a) Joint by joint, with onnxruntime's optimiser off: each stretch of the exported model, from
    quantised tensors to the next one, gets mscgym's tensors as inputs. The integers after its
    QuantizeLinear must equal mscgym's, except that 1e-4 of all, and 1e-3 of one tensor, may differ
    by 1.
(b) End to end, with the optimiser off and at its default level: the loss must equal mscgym's within
    1 % or three times the plan's noise.
(c) The same if mscgym runs the exported model ("again").

Prints a table; exits with 1 if a plan fails. Needs onnx and onnxruntime.
"""
import json
import os
import subprocess
import sys
import tempfile

import numpy
import onnx
import onnxruntime
from onnx import helper

from model_inputs import inputs, model_path

MODELS = {"digits": (256, 64), "mlsd-tiny": (8, 1), "ocr-rec": (8, 8)}  # number of samples, batch size
LEVELS = {"off": onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL,
          "default": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL}


def session(model, level):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = LEVELS[level]
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(model.SerializeToString(), options)


def run(*command):
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode != 0:
        sys.exit(f"{' '.join(command[:3])}: {result.stderr}")
    return result.stdout


class Plans:
    """A short search, and two of its trials exported with their strategies."""

    def __init__(self, mscgym, name, folder):
        self.mscgym, self.name, self.folder = mscgym, name, folder
        samples, self.batch = MODELS[name]
        self.values = inputs(name, samples)
        self.data = os.path.join(folder, "inputs.npy")
        numpy.save(self.data, self.values)
        model = onnx.load(model_path(name))
        constants = {i.name for i in model.graph.initializer}
        self.feed = next(i.name for i in model.graph.input if i.name not in constants)
        env = {"choices": [{"bits": 8}, {"bits": 6, "observer": "mse"},
                           {"bits": 4, "observer": "mse"}]}
        if name == "mlsd-tiny":
            env["loss_tensors"] = self.loss_tensors = self.before_discontinuity(model)
        else:
            self.loss_tensors = [o.name for o in model.graph.output]
        config = {"workspace": folder, "model": model_path(name),
                  "dataset": {"inputs": self.data, "batch": self.batch},
                  "quantize": {"gym": [{"record": "r.jsonl", "env": env, "parallel": 4,
                                        "agent": {"type": "random"}, "budget": {"trials": 4}}]}}
        path = os.path.join(folder, "search.json")
        with open(path, "w") as file:
            json.dump(config, file)
        run(mscgym, "search", path, "--quiet")
        self.record = os.path.join(folder, "r.jsonl")

    @staticmethod
    def before_discontinuity(model):
        """The network's outputs, with the data that Equal reads in place of the output that depends on it."""
        equal = next(n for n in model.graph.node if n.op_type == "Equal")
        return [model.graph.output[0].name, equal.input[0]]

    def export(self, trial):
        onnx_file = os.path.join(self.folder, f"{trial}.onnx")
        strategy = os.path.join(self.folder, f"{trial}.json")
        examined = run(self.mscgym, "export", self.record, "--trial", str(trial), "-o", onnx_file,
                       "--save-strategy", strategy, "--quiet", "--json")
        return onnx_file, strategy, json.loads(examined)["noise"]

    def tensors(self, names, strategy=None, model=None):
        """mscgym's float values of tensors, under a strategy or in an exported model."""
        archive = os.path.join(self.folder, "tensors.npz")
        data = os.path.join(self.folder, "batch.npy")
        command = [self.mscgym, "run", model or model_path(self.name), "-o", archive,
                   "--input", f"{self.feed}={data}", "--quiet", "--repeat", "0"]
        command += ["--strategy", strategy] if strategy else []
        for name in names:
            command += ["--tensor", name]
        parts = []
        for batch in self.batches(self.values):
            numpy.save(data, batch)
            if os.path.exists(archive):  # it may hold other tensors, which are not overwritten
                os.remove(archive)
            run(*command)
            parts.append(dict(numpy.load(archive)))
        return {name: numpy.concatenate([part[name] for part in parts]) for name in names}

    def batches(self, values):
        return [values[i:i + self.batch] for i in range(0, len(values), self.batch)]

    def run_peer(self, model, level, names, feeds):
        """onnxruntime's values, in the same batches."""
        peer = session(model, level)
        parts = [peer.run(names, dict(zip(feeds, batch)))
                 for batch in zip(*(self.batches(v) for v in feeds.values()))]
        return [numpy.concatenate(column) for column in zip(*parts)]


def producers_of(model):
    return {o: n for n in model.graph.node for o in n.output}


def quantised_tensors(model):
    """Float tensor -> output of its QuantizeLinear. A Clip before the QDQ pair belongs to the pair."""
    producers = producers_of(model)
    found = {}
    for node in model.graph.node:
        if node.op_type != "QuantizeLinear":
            continue
        source = node.input[0]
        if source.endswith("_clipped"):
            source = producers[source].input[0]
        found[source] = node.output[0]
    return found


def stretch(model, target, cuts):
    """A model with one output: the nodes that compute `target` from the tensors in `cuts`."""
    producers = producers_of(model)
    initialisers = {i.name: i for i in model.graph.initializer}
    nodes, used, needed, pending = [], set(), set(), [target]
    seen = set()
    while pending:
        name = pending.pop()
        if name in seen or not name:
            continue
        seen.add(name)
        if name in initialisers:
            used.add(name)
        elif name in cuts:
            needed.add(name)
        else:
            nodes.append(producers[name])
            pending += producers[name].input
    keep = {id(n) for n in nodes}
    ordered = [n for n in model.graph.node if id(n) in keep]
    graph = helper.make_graph(
        ordered, "stretch",
        [helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, None) for n in needed],
        [onnx.ValueInfoProto(name=target)], [initialisers[n] for n in used])
    made = helper.make_model(graph, opset_imports=model.opset_import)
    made.ir_version = model.ir_version
    return made, needed


def check_joints(plans, model, ours):
    """Returns (share of all integers that differ, largest share in one tensor, largest difference)."""
    producers = producers_of(model)
    quantised = quantised_tensors(model)
    cuts = set(quantised) | {i.name for i in model.graph.input}
    differing = total = 0
    worst = furthest = 0
    for source, target in quantised.items():
        if source not in producers:
            continue  # nothing to compare: it is an input of the network
        # The stretch ends in this QDQ pair, so its float tensor is computed rather than an input.
        made, needed = stretch(model, target, cuts - {source})
        theirs = plans.run_peer(made, "off", None, {n: ours[n] for n in needed})[0].astype(int)
        mine, _ = stretch(model, target, {source})
        expected = plans.run_peer(mine, "off", None, {source: ours[source]})[0].astype(int)
        difference = numpy.abs(theirs - expected)
        differing += numpy.count_nonzero(difference)
        total += difference.size
        worst = max(worst, numpy.count_nonzero(difference) / difference.size)
        furthest = max(furthest, int(difference.max()))
    return differing / max(total, 1), worst, furthest


def loss(reference, outputs):
    losses = [numpy.mean((y.astype(numpy.float64) - z) ** 2) / numpy.mean(y.astype(numpy.float64) ** 2)
              for y, z in zip(reference, outputs)]
    return float(numpy.mean(losses))


def check_plan(plans, trial):
    path, strategy, noise = plans.export(trial)
    model = onnx.load(path)
    names = list(dict.fromkeys(list(quantised_tensors(model)) +
                               [i.name for i in model.graph.input] + plans.loss_tensors))
    names = [n for n in names if n != plans.feed]
    ours = plans.tensors(names, strategy)
    ours[plans.feed] = plans.values
    shares = check_joints(plans, model, ours)
    floats = plans.tensors(plans.loss_tensors)
    reference = [floats[n] for n in plans.loss_tensors]
    wider = onnx.ModelProto()
    wider.CopyFrom(model)
    known = {o.name for o in wider.graph.output}
    wider.graph.output.extend(onnx.ValueInfoProto(name=n) for n in plans.loss_tensors
                              if n not in known)
    mine = loss(reference, [ours[n] for n in plans.loss_tensors])
    moved = {}
    for level in LEVELS:
        outputs = plans.run_peer(wider, level, plans.loss_tensors, {plans.feed: plans.values})
        moved[level] = abs(loss(reference, outputs) - mine) / mine
    again = plans.tensors(plans.loss_tensors, model=path)
    moved["again"] = abs(loss(reference, [again[n] for n in plans.loss_tensors]) - mine) / mine
    passes = shares[0] <= 1e-4 and shares[1] <= 1e-3 and shares[2] <= 1
    return passes, shares, mine, moved, noise


def main():
    mscgym = os.path.abspath(sys.argv[1])
    failed = False
    print("| model | plan | differ, all | differ, worst | by | loss | noise | off | default "
          "| again | |")
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    for name in sys.argv[2:] or MODELS:
        with tempfile.TemporaryDirectory() as folder:
            plans = Plans(mscgym, name, folder)
            with open(plans.record) as file:
                lines = [line for line in map(json.loads, file) if line["kind"] == "trial"]
            for label, trial in (("8 bits", 0), ("8, 6, 4", len(lines) - 1)):
                passes, shares, mine, moved, noise = check_plan(plans, trial)
                limit = max(0.01, 3 * noise)
                fits = passes and all(m <= limit for m in moved.values())
                failed = failed or not fits
                print(f"| {name} | {label} | {shares[0]:.1e} | {shares[1]:.1e} | {shares[2]} | "
                      f"{mine:.3e} | {noise:.1e} | {moved['off']:.1e} | "
                      f"{moved['default']:.1e} | {moved['again']:.1e} | "
                      f"{'' if fits else 'FAILS'} |", flush=True)
    sys.exit(int(failed))


main()
