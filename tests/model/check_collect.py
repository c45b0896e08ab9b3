#!/usr/bin/env python3
"""Compares `mscgym run --inputs --tensor '*'` with onnxruntime: all tensors of all samples.

    check_collect.py MSCGYM [MODEL ...]

MODEL is a name of scripts/fetch-models (default: digits). Needs numpy, onnx and onnxruntime; exits
with 77 without them.
"""
import json
import os
import subprocess
import sys
import tempfile
import zipfile

try:
    import numpy
    import onnx
    import onnxruntime
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(HERE, "..", "long"))
from model_inputs import feeds, model_path  # noqa: E402

SAMPLES = 5
OFF = 3e-4  # relative to a tensor's largest value; rounding errors add up in deep networks


def check(holds, what):
    if not holds:
        print(f"failed: {what}")
        sys.exit(1)


def read_safetensors(path):
    """Reads the format by hand, so that no library is needed."""
    with open(path, "rb") as file:
        data = file.read()
    length = int.from_bytes(data[:8], "little")
    types = {"F32": "<f4", "F16": "<f2", "F64": "<f8", "I64": "<i8", "I32": "<i4", "U8": "u1",
             "I8": "i1", "BOOL": "?"}
    arrays = {}
    for name, entry in json.loads(data[8:8 + length]).items():
        begin, end = (8 + length + offset for offset in entry["data_offsets"])
        arrays[name] = numpy.frombuffer(data[begin:end], types[entry["dtype"]]) \
            .reshape(entry["shape"])
    return arrays


def values(path, names, samples):
    """Values of these tensors in onnxruntime: {name: [array of each sample]}"""
    model = onnx.load(path)
    del model.graph.output[:]
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options,
                                           ["CPUExecutionProvider"])
    found = [session.run(None, {k: v[i:i + 1] for k, v in samples.items()}) for i in range(SAMPLES)]
    return {name: [f[k] for f in found] for k, name in enumerate(names)}


def check_model(mscgym, name, folder):
    model, samples = model_path(name), feeds(name, SAMPLES)
    inputs, npz, other = (os.path.join(folder, f) for f in ("x.npz", "o.npz", "o.safetensors"))
    numpy.savez(inputs, **samples)
    for path in (npz, other):
        subprocess.run([mscgym, "run", model, "--inputs", inputs, "--samples", str(SAMPLES),
                        "--tensor", "*", "-o", path, "--quiet"], check=True,
                       stdout=subprocess.DEVNULL)
    check(zipfile.ZipFile(npz).testzip() is None, f"{name}: the archive's sums")
    ours, again = dict(numpy.load(npz)), read_safetensors(other)
    check(ours.keys() == again.keys(), f"{name}: the same names in both files")
    for key, array in ours.items():
        check(numpy.array_equal(array, again[key], equal_nan=array.dtype.kind == "f"),
              f"{name}: {key} is the same in both files")
    produced = {output for node in onnx.load(model).graph.node for output in node.output if output}
    names = sorted(produced & {key.rpartition("/")[0] if key not in produced else key
                               for key in ours})
    outputs = {output.name for output in onnx.load(model).graph.output}
    check(outputs <= set(names), f"{name}: {outputs - set(names)} are missing")
    for key, parts in values(model, names, samples).items():
        for i, theirs in enumerate(parts):
            mine = ours[f"{key}/{i}"] if key not in ours else \
                ours[key][i:i + 1] if theirs.ndim > 0 and theirs.shape[0] == 1 else ours[key][i]
            check(mine.shape == theirs.shape and mine.dtype == theirs.dtype,
                  f"{name}: {key}: {mine.shape} {mine.dtype}, not {theirs.shape} {theirs.dtype}")
            if theirs.size and theirs.dtype.kind == "f":
                most = numpy.abs(theirs).max()
                check(numpy.abs(mine - theirs).max() <= OFF * most, f"{name}: {key}, sample {i}")
    print(f"{name}: {len(names)} of {len(ours)} tensors beside onnxruntime", flush=True)


def main():
    mscgym = os.path.abspath(sys.argv[1])
    for name in sys.argv[2:] or ["digits"]:
        with tempfile.TemporaryDirectory() as folder:
            check_model(mscgym, name, folder)
    print("ok")


if __name__ == "__main__":
    main()
