#!/usr/bin/env python3
"""Compares pruned models: run with masks, pruned in memory, and as a file in ONNX Runtime.

    check_pruned.py PRUNE_TOOL MODEL|some|all ... [--density D]... [--seed N]

Random channels of every group are removed, at densities 0.9, 0.7 and 0.5. All outputs of the three
must agree within 1e-4 of their largest value, or four times what ONNX Runtime's own optimiser
changes there, because random networks can amplify rounding. Two kinds of output have wider limits:
probabilities from a sigmoid, which runtimes approximate to 1e-6; and outputs that depend on a
comparison (a local maximum, otherwise 0), where elements that are 0 in only one of the two are
skipped. Models are names of scripts/fetch-models, or paths (with noise for inputs of fixed shape).
Exits with 77 without models or onnxruntime.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

try:
    import numpy as np
    import onnxruntime

    import model_inputs
except ImportError as e:
    print("skipped: %s" % e)
    sys.exit(77)

SOME = ("digits", "fashion", "squeezenet1_1", "mobilenet_v3_small", "shufflenet_v2_x1_0", "ocr-rec",
        "unet", "speech-embedding", "vad", "bert", "gpt")
MODELS = SOME + ("mobilenet_v2", "resnet18", "efficientnet_b0", "regnet_y_400mf", "mlsd-tiny", "ocr-det",
                 "densenet121", "convnext_tiny", "swin_t", "vit_b_16")
DENSITIES = (0.9, 0.7, 0.5)
LIMIT = 1e-4
PROBABILITIES = {"mlsd-tiny": ("scores",), "ocr-det": ("sigmoid_0.tmp_0",)}
STEPWISE = {"mlsd-tiny": ("scores",)}


def make_feeds(name):
    if not os.path.exists(name):
        return model_inputs.feeds(name, 1)
    session = onnxruntime.InferenceSession(name, providers=["CPUExecutionProvider"])
    generator = np.random.default_rng(0)
    feeds = {}
    for value in session.get_inputs():
        shape = [d if isinstance(d, int) else 1 for d in value.shape]
        feeds[value.name] = generator.standard_normal(shape).astype(np.float32)
    return feeds


def run(path, feeds, is_optimised=True):
    options = onnxruntime.SessionOptions()
    if not is_optimised:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    names = [o.name for o in session.get_outputs()]
    wanted = {i.name for i in session.get_inputs()}
    values = session.run(names, {k: v for k, v in feeds.items() if k in wanted})
    return dict(zip(names, values))


def far(a, b, name, output):
    """The largest difference of two outputs, relative to the largest value."""
    if a.shape != b.shape:
        return float("inf")
    a, b = a.astype(np.float64), b.astype(np.float64)
    apart = np.abs(a - b)
    if output in STEPWISE.get(name, ()):
        apart[(a == 0) != (b == 0)] = 0
    if output in PROBABILITIES.get(name, ()):
        apart[apart <= 1e-6] = 0
    return apart.max(initial=0) / max(np.abs(b).max(initial=0), 1e-30)


def check(tool, name, density, seed, folder, feeds=None):
    """The tool's output for the model; None if masks, pruning or the file are wrong."""
    feeds = make_feeds(name) if feeds is None else feeds
    inputs = os.path.join(folder, "inputs.npz")
    np.savez(inputs, **feeds)
    model = name if os.path.exists(name) else model_inputs.model_path(name)
    out, values = os.path.join(folder, "pruned.onnx"), os.path.join(folder, "values.npz")
    said = subprocess.run([tool, model, inputs, str(density), str(seed), out, values],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if said.returncode != 0:
        print("%s at %g: %s" % (name, density, said.stderr.strip() or said.returncode))
        return None
    worst = {"masked": 0.0, "file": 0.0}
    with np.load(values) as ours:
        for key, file in run(out, feeds).items():
            pruned = ours["pruned/" + key]
            worst["masked"] = max(worst["masked"], far(ours["masked/" + key], pruned, name, key))
            worst["file"] = max(worst["file"], far(file, pruned, name, key))
    facts = json.loads(said.stdout)
    limit = LIMIT
    if max(worst.values()) > limit:
        file, plain = run(out, feeds), run(out, feeds, is_optimised=False)
        limit = max([limit] + [4 * far(plain[key], file[key], name, key) for key in file])
    is_good = all(w <= limit for w in worst.values())
    print("%s %s at %g: %d of %d units of %d groups gone, parameters %.3f, MACs %.3f; masks %.1e, "
          "file %.1e of the largest, limit %.1e" % ("ok" if is_good else "WRONG", name, density, facts["gone"],
                                        facts["units"], facts["groups"], facts["parameters"],
                                        facts["macs"], worst["masked"], worst["file"], limit), flush=True)
    return facts if is_good else None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tool")
    parser.add_argument("models", nargs="+")
    parser.add_argument("--density", type=float, action="append")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    models = {"some": SOME, "all": MODELS}.get(arguments.models[0], arguments.models)
    models = [m for m in models if os.path.exists(m) or os.path.exists(model_inputs.model_path(m))]
    if not models:
        print("skipped: no models in %s" % model_inputs.models_folder())
        return 77
    n_wrong = 0
    for name in models:
        for density in arguments.density or DENSITIES:
            with tempfile.TemporaryDirectory() as folder:
                n_wrong += not check(arguments.tool, name, density, arguments.seed, folder)
    print("%d wrong" % n_wrong)
    return n_wrong > 0


if __name__ == "__main__":
    sys.exit(main())
