#!/usr/bin/env python3
"""Tests exported models whose depthwise convolutions read activations with one scale per channel.

    check_channels.py MSCGYM depthwise

tests/cli/files/depthwise.onnx is exported with 8 and 6 bits, symmetric and asymmetric. Each export
must load in onnxruntime, with its optimiser off and at its default level, and give the outputs of
`mscgym run --strategy` up to float32 rounding. Exits with 77 without onnxruntime.
"""
import json
import os
import subprocess
import sys
import tempfile

try:
    import numpy
    import onnx
    import onnxruntime
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

FILES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cli", "files")
LEVELS = (onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL,
          onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL)


def run(*command):
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def check(mscgym, folder, bits, is_symmetric):
    model, inputs = os.path.join(FILES, "depthwise.onnx"), os.path.join(FILES, "inputs.npz")
    place = os.path.join(folder, f"{bits}_{is_symmetric}")
    env = {"choices": [{"bits": bits}],
           "activations": {"per_channel": True, "symmetric": is_symmetric}}
    config = {"workspace": place, "model": model, "verbose": "error",
              "dataset": {"inputs": inputs, "batch": 20},
              "quantize": {"target": "generic", "gym": [
                  {"record": "r.jsonl", "env": env, "agent": {"type": "random"},
                   "budget": {"trials": 1}}]}}
    with open(place + ".json", "w", encoding="utf-8") as file:
        json.dump(config, file)
    run(mscgym, "search", place + ".json", "--quiet")
    x = numpy.load(inputs)["x"]
    numpy.save(place + ".npy", x)
    run(mscgym, "run", model, "--input", f"x={place}.npy", "--repeat", "0", "--strategy",
        os.path.join(place, "msc_quantize.json"), "--output", place)
    ours = numpy.load(os.path.join(place, "y.npy"))
    exported = onnx.load(os.path.join(place, "depthwise.onnx"))
    axes = [a.i for node in exported.graph.node if node.op_type == "QuantizeLinear"
            for a in node.attribute if a.name == "axis"]
    worst = 0.0
    for level in LEVELS:
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = level
        options.log_severity_level = 4
        session = onnxruntime.InferenceSession(exported.SerializeToString(), options,
                                               providers=["CPUExecutionProvider"])
        theirs = session.run(None, {"x": x})[0]
        # A value half-way between two codes may round either way: one activation may differ by a step.
        worst = max(worst, float(numpy.abs(theirs - ours).max() / numpy.abs(ours).max()))
    print(f"{bits} bits, symmetric {is_symmetric}: axes {axes}, worst difference {worst:.2g}")
    return axes == [1] and worst < 1e-5


def main():
    with tempfile.TemporaryDirectory() as folder:
        results = [check(sys.argv[1], folder, bits, is_symmetric)
                   for bits in (8, 6) for is_symmetric in (False, True)]
    sys.exit(0 if all(results) else 1)


if __name__ == "__main__":
    main()
