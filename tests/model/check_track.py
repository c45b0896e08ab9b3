#!/usr/bin/env python3
"""Compares the ratios that `mscgym track` prints with onnxruntime, and checks that it finds the joint
(node) whose scale was made wrong.

    check_track.py MSCGYM RUNTIME [MODEL ...]

RUNTIME is tools/mscgym-runtime. MODEL is a name of scripts/fetch-models (default: digits). Needs
numpy, onnx and onnxruntime; exits with 77 without them.
"""
import json
import os
import random
import subprocess
import sys
import tempfile

try:
    import numpy
    import onnx
    import onnxruntime
    from onnx import numpy_helper
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(HERE, "..", "long"))
from model_inputs import feeds, model_path  # noqa: E402

SAMPLES, WRONG = 8, 3  # WRONG: factor of a wrong scale
OFF_DB, OFF_COSINE = 0.5, 1e-3  # tolerances: runtimes round differently
WEIGHTED = ("Conv", "ConvTranspose", "Gemm", "MatMul")
JUMPING = ("ArgMax", "Equal", "Floor", "Greater", "Less", "NonMaxSuppression", "TopK")


def check(holds, what):
    if not holds:
        print(f"failed: {what}")
        sys.exit(1)


def run(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def values(path, names, samples):
    """Values of these tensors in onnxruntime: {name: array of all samples}"""
    model = onnx.load(path)
    del model.graph.output[:]
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options,
                                           ["CPUExecutionProvider"])
    found = [session.run(None, {k: v[i:i + 1] for k, v in samples.items()}) for i in range(SAMPLES)]
    return {name: numpy.stack([f[k] for f in found]).astype("float64")
            for k, name in enumerate(names)}


def behind_jumps(path):
    """Tensors computed from discontinuous operators, where a difference in the last bit decides."""
    found = set()
    for node in onnx.load(path).graph.node:
        if node.op_type in JUMPING or found & set(node.input):
            found |= set(node.output)
    return found


def check_numbers(model, small, rows, samples):
    jumping = behind_jumps(model)
    rows = [row for row in rows if row["tensor"] not in jumping]
    names = [row["tensor"] for row in rows]
    ours, theirs = values(model, names, samples), values(small, names, samples)
    for row in rows:
        y, z = ours[row["tensor"]], theirs[row["tensor"]]
        noise = ((y - z) ** 2).sum()
        check(row["elements"] == y.size, f"{row}: {y.size} elements")
        if row["snr_db"] is None:
            check(noise == 0, f"{row}: not equal")
            continue
        db = 10 * numpy.log10((y ** 2).sum() / noise)
        check(abs(row["snr_db"] - db) < OFF_DB, f"{row}: {db} dB")
        cosine = (y * z).sum() / numpy.sqrt((y ** 2).sum() * (z ** 2).sum())
        check(abs(row["cosine"] - cosine) < OFF_COSINE, f"{row}: cosine {cosine}")


def scales_of_weights(model):
    """(the joint's output, name of the scale) of each joint whose weight is dequantised."""
    dequantise = {n.output[0]: n for n in model.graph.node if n.op_type == "DequantizeLinear"}
    constants = {t.name for t in model.graph.initializer}
    return [(node.output[0], dequantise[node.input[1]].input[1]) for node in model.graph.node
            if node.op_type in WEIGHTED and node.input[1] in dequantise and
            dequantise[node.input[1]].input[0] in constants]


def plant(small, scale, path):
    model = onnx.load(small)
    for tensor in model.graph.initializer:
        if tensor.name == scale:
            wrong = numpy_helper.from_array(WRONG * numpy_helper.to_array(tensor), scale)
            tensor.CopyFrom(wrong)
    onnx.save(model, path)


def check_model(mscgym, name, folder):
    model, samples = model_path(name), feeds(name, 64)
    inputs, small, wrong = (os.path.join(folder, f) for f in ("x.npz", "small.onnx", "wrong.onnx"))
    numpy.savez(inputs, **samples)
    # Exports for the generic target keep the names of all tensors.
    config = {"workspace": folder, "model": model, "verbose": "error", "dataset": {"inputs": inputs},
              "quantize": {"target": "generic", "runtime": False,
                           "gym": [{"record": "r.jsonl", "env": {"choices": [{"bits": 8}]},
                                    "agent": {"type": "random"}, "budget": {"trials": 0}}]}}
    path = os.path.join(folder, "search.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(config, file)
    run(mscgym, "search", path, "--quiet")
    run(mscgym, "export", os.path.join(folder, "r.jsonl"), "--trial", "0", "-o", small, "--quiet")

    def track(other):
        return json.loads(run(mscgym, "track", model, other, "--inputs", inputs, "--samples",
                              str(SAMPLES), "--json", "--quiet"))

    sound = track(small)
    check(sound["samples"] == SAMPLES, f"{name}: {sound['samples']} samples")
    check_numbers(model, small, sound["tensors"], samples)
    rows = {row["tensor"] for row in sound["tensors"]}
    places = [p for p in scales_of_weights(onnx.load(small)) if p[0] in rows]
    check(places, f"{name}: no weight is quantised")
    for output, scale in random.Random(name).sample(places, min(3, len(places))):
        plant(small, scale, wrong)
        found = track(wrong)
        worst = [r["tensor"] for r in found["tensors"] if r["joint"] == found["worst"]]
        check(worst == [output], f"{name}: {output} has the wrong scale, not {worst}")
        print(f"{name}: {found['worst']} falls by {found['fall_db']:.1f} dB", flush=True)


def main():
    mscgym, runtime = map(os.path.abspath, sys.argv[1:3])
    os.environ["MSCGYM_RUNTIME"] = f"{sys.executable} {runtime}"
    for name in sys.argv[3:] or ["digits"]:
        with tempfile.TemporaryDirectory() as folder:
            check_model(mscgym, name, folder)
    print("ok")


if __name__ == "__main__":
    main()
