#!/usr/bin/env python3
"""Tests transformer encoders from PyTorch: outputs, a search over all weights and activations, its export.

    check_transformer.py MSCGYM [--device cpu|vulkan] [--trials N] [MODEL ...]

The models are made here, with random weights and a symbolic batch: "relu" has 2 layers of width 128
and 4 heads, "gelu" 6 layers of width 384 and 12 heads. For each:
- Outputs agree with onnxruntime's within 1e-4 of the largest value (1e-3 on vulkan), for the model
  and for its float export.
- There is one msc.attention per layer, and its factors are sites.
- In a search with 8, 6 and 4 bits for every site, every trial is complete.
- `mscgym verify` of the record finds no difference.
- The 8-bit plan and the last one, exported and run by onnxruntime with its optimiser off and at
  its default level, have mscgym's loss within 1 % or three times the plan's noise.

Prints a table; exits with 1 if a model fails. Needs torch, onnx and onnxruntime.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import warnings

import numpy
import onnxruntime
import torch

MODELS = {"relu": (2, 128, 4), "gelu": (6, 384, 12)}  # layers, width, heads, by activation
TOKENS, SAMPLES, BATCH = 32, 16, 4
LIMITS = {"cpu": 1e-4, "vulkan": 1e-3}
LEVELS = [onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL,
          onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL]


def make_model(activation, path):
    """Saves a model in training mode, because PyTorch's inference fast path cannot be exported."""
    layers, width, heads = MODELS[activation]
    torch.manual_seed(layers)
    layer = torch.nn.TransformerEncoderLayer(width, heads, 4 * width, dropout=0.0,
                                             activation=activation, batch_first=True)
    model = torch.nn.TransformerEncoder(layer, layers).train()
    for layer in model.layers:
        layer.dropout = layer.dropout1 = layer.dropout2 = torch.nn.Identity()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            is_scale = "norm" in name and name.endswith("weight")
            deviation = 0.2 if parameter.dim() == 1 else parameter.shape[1] ** -0.5
            torch.nn.init.normal_(parameter, mean=float(is_scale), std=deviation)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(model, torch.zeros(2, TOKENS, width), path, opset_version=16,
                          training=torch.onnx.TrainingMode.PRESERVE, input_names=["x"],
                          output_names=["y"], dynamic_axes={"x": {0: "N"}, "y": {0: "N"}})
    return numpy.random.RandomState(0).standard_normal((SAMPLES, TOKENS, width)).astype("float32")


def run(*command):
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode != 0:
        sys.exit(f"{' '.join(command[:3])}: {result.stderr}")
    return result.stdout


def session(path, level):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = level
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(path, options)


def peer_output(path, level, values):
    peer = session(path, level)
    return numpy.concatenate([peer.run(["y"], {"x": values[i:i + BATCH]})[0]
                              for i in range(0, len(values), BATCH)])


def check_output(options, path, values, folder):
    """max |difference| / max |output|"""
    data = os.path.join(folder, "three.npy")
    numpy.save(data, values[:3])  # another batch size than that of the export
    run(options.mscgym, "run", path, "--device", options.device, "--input", f"x={data}",
        "--output", folder, "--quiet", "--repeat", "0")
    ours = numpy.load(os.path.join(folder, "y.npy"))
    again = os.path.join(folder, "again.onnx")
    run(options.mscgym, "export", "--model", path, "-o", again, "--quiet")
    theirs, exported = (session(p, LEVELS[1]).run(["y"], {"x": values[:3]})[0].astype("float64")
                        for p in (path, again))
    assert ours.shape == theirs.shape == exported.shape, (ours.shape, theirs.shape, exported.shape)
    return max(numpy.abs(y - theirs).max() for y in (ours, exported)) / numpy.abs(theirs).max()


def count_attentions(options, path, sites):
    """The number of attention joints. All factors of their products must be sites."""
    graph = json.loads(run(options.mscgym, "graph", path, "--json"))
    fused = [node for node in graph["nodes"] if node["optype"] == "msc.attention"]
    names = {site["name"] for site in sites}
    assert all(node["attrs"][key] in names for node in fused
               for key in ("q", "k", "probabilities", "v"))
    return len(fused)


def search(options, path, values, folder):
    """Searches; returns the record and its trials."""
    data = os.path.join(folder, "inputs.npy")
    numpy.save(data, values)
    choices = [{"bits": 8}, {"bits": 6, "observer": "mse"}, {"bits": 4, "observer": "mse"}]
    config = {"workspace": folder, "model": path, "device": options.device,
              "dataset": {"inputs": data, "batch": BATCH},
              "quantize": {"gym": [{"record": "r.jsonl", "env": {"choices": choices},
                                    "agent": {"type": "random"}, "parallel": 4,
                                    "budget": {"trials": options.trials}}]}}
    config_path = os.path.join(folder, "search.json")
    with open(config_path, "w") as file:
        json.dump(config, file)
    run(options.mscgym, "search", config_path, "--quiet")
    record = os.path.join(folder, "r.jsonl")
    with open(record) as file:
        lines = [json.loads(line) for line in file]
    return record, [line for line in lines if line["kind"] == "trial"]


def check_export(options, record, trial, reference, values, folder):
    """Returns (largest relative difference between onnxruntime's loss and mscgym's, the limit)."""
    path = os.path.join(folder, f"{trial['id']}.onnx")
    examined = json.loads(run(options.mscgym, "export", record, "--trial", str(trial["id"]), "-o",
                              path, "--quiet", "--json"))
    mine = trial["metrics"]["distill_loss"]
    moved = 0
    for level in LEVELS:
        output = peer_output(path, level, values)
        theirs = numpy.mean((output - reference) ** 2) / numpy.mean(reference ** 2)
        moved = max(moved, abs(theirs - mine) / mine)
    return moved, max(0.01, 3 * examined["noise"])


def check(options, name):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.onnx")
        values = make_model(name, path)
        difference = check_output(options, path, values, folder)
        record, trials = search(options, path, values, folder)
        complete = sum(t["state"] == "complete" for t in trials)
        run(options.mscgym, "verify", record, "--quiet")  # raises if verify fails
        reference = peer_output(path, LEVELS[1], values).astype(numpy.float64)
        moved = [check_export(options, record, trial, reference, values, folder)
                 for trial in (trials[0], trials[-1])]
        sites = json.loads(run(options.mscgym, "graph", path, "--sites", "--json"))
        attentions = count_attentions(options, path, sites)
    passes = (attentions == MODELS[name][0] and
              difference <= LIMITS[options.device.split(":")[0]] and
              complete == len(trials) >= options.trials and  # the uniform plans come in addition
              all(m <= limit for m, limit in moved))
    print(f"| {name} | {difference:.1e} | {attentions} | {len(sites)} | " +
          f"{complete} of {len(trials)} | " +
          " | ".join(f"{m:.1e} (at most {limit:.1e})" for m, limit in moved) +
          f" | {'' if passes else 'FAILS'} |", flush=True)
    return passes


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("mscgym")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--trials", type=int, default=12)
    options = parser.parse_args()
    options.mscgym = os.path.abspath(options.mscgym)
    print("| model | output | attentions | sites | trials complete | loss, 8 bits | loss, mixed | |\n"
          "|---|---|---|---|---|---|---|---|")
    results = [check(options, name) for name in options.names or MODELS]
    sys.exit(int(not all(results)))


main()
