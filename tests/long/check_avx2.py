#!/usr/bin/env python3
"""Tests models for processors without VNNI in ONNX Runtime on an emulated Haswell.

    check_avx2.py MSCGYM [MODEL ...]

(a) A configuration without a target gets onnxruntime_avx2 on that processor.
(b) The uniform 8-bit plan of each model for onnxruntime_avx2 has the same loss there as on this
    processor, within 1 %: no sum saturates. The loss of the plan for onnxruntime is printed next to
    it.

Needs onnxruntime and Debian's qemu-user; exits with 77 without them.
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile

import numpy

from model_inputs import feeds, model_path

SAMPLES = 2
TARGETS = ("onnxruntime", "onnxruntime_avx2")
HASWELL = ["qemu-x86_64", "-cpu", "Haswell"]


def run(*command):
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode != 0:
        sys.exit(f"{' '.join(command[:4])}: {result.stderr}")
    return result.stdout


def show_default(mscgym, folder):
    path = os.path.join(folder, "plain.json")
    with open(path, "w") as file:
        json.dump({"model": "m.onnx", "dataset": {"inputs": "x.npz"}, "quantize": {}}, file)
    return json.loads(run(*HASWELL, mscgym, "config", "--show", path))["quantize"]["target"]


def export(mscgym, name, target, data, folder):
    workspace = os.path.join(folder, target)
    config = {"workspace": workspace, "model": model_path(name),
              "dataset": {"inputs": data, "batch": SAMPLES},
              "quantize": {"target": target, "runtime": False,
                           "gym": [{"env": {"choices": [{"bits": 8}]}, "agent": {"type": "random"},
                                    "budget": {"trials": 1}}]}}
    path = os.path.join(folder, "search.json")
    with open(path, "w") as file:
        json.dump(config, file)
    run(mscgym, "search", path, "--quiet")
    return os.path.join(workspace, name + ".onnx")


def measure(float_model, data, *models):
    """Prints the relative squared error of each model's first output, computed in this process."""
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = 1
    values = dict(numpy.load(data))
    outputs = [onnxruntime.InferenceSession(m, options, providers=["CPUExecutionProvider"])
               .run(None, values)[0].astype("f8") for m in (float_model, *models)]
    print(json.dumps([float(((y - outputs[0]) ** 2).sum() / (outputs[0] ** 2).sum())
                      for y in outputs[1:]]))


def check(mscgym, name, folder):
    data = os.path.join(folder, "inputs.npz")
    numpy.savez(data, **feeds(name, SAMPLES))
    models = [export(mscgym, name, target, data, folder) for target in TARGETS]
    command = [sys.executable, os.path.abspath(__file__), "--measure", model_path(name), data]
    here, there = json.loads(run(*command, *models)), json.loads(run(*HASWELL, *command, *models))
    fits = abs(there[1] - here[1]) <= 0.01 * here[1]
    print(f"{'ok  ' if fits else 'FAIL'} {name}: loss {here[1]:.4g} here, {there[1]:.4g} there; of "
          f"signed weights {here[0]:.4g} here, {there[0]:.4g} there", flush=True)
    return not fits


def main():
    if sys.argv[1] == "--measure":
        return measure(*sys.argv[2:])
    try:
        import onnxruntime  # noqa: F401
    except ImportError:
        print("skipped: onnxruntime is missing")
        sys.exit(77)
    if not shutil.which(HASWELL[0]):
        print("skipped: qemu-x86_64 is missing: install qemu-user")
        sys.exit(77)
    mscgym, failures = os.path.abspath(sys.argv[1]), 0
    with tempfile.TemporaryDirectory() as folder:
        target = show_default(mscgym, folder)
        print(f"{'ok  ' if target == TARGETS[1] else 'FAIL'} by default: {target}")
        failures += target != TARGETS[1]
    for name in sys.argv[2:] or ["mobilenet_v3_small", "resnet18"]:
        with tempfile.TemporaryDirectory() as folder:
            failures += check(mscgym, name, folder)
    sys.exit(1 if failures else 0)


main()
