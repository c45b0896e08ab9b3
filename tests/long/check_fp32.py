#!/usr/bin/env python3
"""Compares `mscgym run` with onnxruntime on the models of scripts/fetch-models.

    check_fp32.py MSCGYM [--device cpu|vulkan] [MODEL ...]

For each model, both compute outputs for realistic inputs. max |difference| / max |output| must be
at most 1e-4 on cpu and 1e-3 on vulkan. If an output depends on a discontinuous operator, the data
before that operator are compared instead. Needs onnx and onnxruntime. Prints a table; exits with 1
if a model fails, 77 if there is none.
"""
import argparse
import os
import subprocess
import sys
import tempfile

import numpy
import onnx
import onnxruntime

from model_inputs import MAKERS, feeds, model_path

LIMITS = {"cpu": 1e-4, "vulkan": 1e-3}
SAMPLES = {"digits": 16, "fashion": 4, "mlsd-tiny": 1, "ocr-det": 1}  # other models get 2 samples
DISCONTINUOUS = {"Equal", "ArgMax", "TopK", "NonMaxSuppression"}


def decided_tensors(model):
    """Tensors that depend on the inputs' values, not only on their shapes."""
    names = {i.name for i in model.graph.input} - {i.name for i in model.graph.initializer}
    for node in model.graph.node:
        reads = names.intersection(node.input) and node.op_type not in ("Shape", "Size")
        if reads or node.op_type == "If":
            names.update(node.output)
    return names


def compared_tensors(model):
    """The outputs; if one depends on a discontinuous node, the data which that node reads instead."""
    producers = {o: n for n in model.graph.node for o in n.output}
    decided = decided_tensors(model)

    def before_discontinuity(name, seen):
        node = producers.get(name)
        if node is None or node.op_type == "If" or name in seen:
            return None
        seen.add(name)
        if node.op_type in DISCONTINUOUS:
            return next(i for i in node.input if i in decided)
        found = (before_discontinuity(i, seen) for i in node.input if i in decided)
        return next(filter(None, found), None)

    names = [before_discontinuity(o.name, set()) or o.name for o in model.graph.output]
    return list(dict.fromkeys(names))


def peer_outputs(path, values, names):
    model = onnx.load(path)
    known = {o.name for o in model.graph.output}
    for name in names:
        if name not in known:
            model.graph.output.append(onnx.ValueInfoProto(name=name))
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    return session.run(names, values)


def our_outputs(mscgym, path, device, values, names, folder):
    command = [mscgym, "run", path, "--device", device, "--output", folder, "--quiet",
               "--repeat", "0"]
    for name, value in values.items():
        file = os.path.join(folder, f"input_{len(command)}.npy")
        numpy.save(file, value)
        command += ["--input", f"{name}={file}"]
    for name in names:
        command += ["--tensor", name]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    safe = [name.replace("/", "_").replace(":", "_") for name in names]
    return [numpy.load(os.path.join(folder, name + ".npy")) for name in safe]


def check(mscgym, name, path, device):
    values = feeds(name, SAMPLES.get(name, 2))
    names = compared_tensors(onnx.load(path))
    with tempfile.TemporaryDirectory() as folder:
        ours = our_outputs(mscgym, path, device, values, names, folder)
    worst = 0
    for theirs, mine in zip(peer_outputs(path, values, names), ours):
        assert theirs.shape == mine.shape, (name, theirs.shape, mine.shape)
        difference = numpy.abs(theirs.astype(numpy.float64) - mine).max()
        worst = max(worst, difference / numpy.abs(theirs).max())
    return worst


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("mscgym")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--device", default="cpu")
    options = parser.parse_intermixed_args()
    rows = []
    for name in options.names or MAKERS:
        path = model_path(name)
        if not os.path.exists(path):
            print(f"{name}: skipped: run scripts/fetch-models", file=sys.stderr)
            continue
        rows.append((name, check(options.mscgym, name, path, options.device)))
        print(f"{name:15} {rows[-1][1]:.2e}", flush=True)
    limit = LIMITS[options.device.split(":")[0]]
    print(f"\n| model | max difference / max output on {options.device} |\n|---|---|")
    for name, worst in rows:
        print(f"| {name} | {worst:.1e} {'' if worst <= limit else 'FAILS'} |")
    sys.exit(77 if not rows else int(any(worst > limit for _, worst in rows)))


main()
