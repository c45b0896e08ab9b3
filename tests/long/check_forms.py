#!/usr/bin/env python3
"""Checks that ONNX Runtime runs exported models in integer arithmetic, and their losses.

    check_forms.py MSCGYM [MODEL ...]

For each model, a short search with target onnxruntime and sites "all" is run, and its plans are
exported: 8, 6 and 4 bits, activations without zero point, and float weights. For each plan:
(a) In onnxruntime's optimised graph, all convolutions and products of the network are integer,
    except those in the table FLOAT. No constant is dequantised in each run, and no Clip or Relu on
    floats is between integer nodes. With float weights there is no integer convolution or product.
(b) Its loss in onnxruntime is that of the search, within 2 % or three times the plan's noise.
(c) So is the loss of mscgym running the exported model.

Prints a table; exits with 1 if a plan fails. Needs onnx and onnxruntime.
"""
import collections
import json
import os
import subprocess
import sys
import tempfile

import numpy
import onnx
import onnxruntime

from model_inputs import feeds, model_path

# Operators that remain float: ONNX Runtime has no integer kernel for transposed convolutions.
FLOAT = {"speech-embedding": {}, "unet": {"ConvTranspose": 2}, "mlsd-tiny": {}}
SAMPLES, BATCH = 4, 1
PLANS = {"8 bits": {"choices": [{"bits": 8}]}, "6 bits": {"choices": [{"bits": 6}]},
         "4 bits": {"choices": [{"bits": 4}]},
         "symmetric": {"choices": [{"bits": 8}], "activations": {"symmetric": True}},
         "float weights": {"choices": [{"bits": 8}], "weights": {"float": True}}}
OF_FLOATS = ("Conv", "FusedConv", "Gemm", "FusedGemm", "MatMul", "FusedMatMul", "ConvTranspose",
             "Relu")
OF_INTEGERS = ("QLinearConv", "QGemm", "QLinearMatMul", "MatMulIntegerToFloat")


def run(*command):
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode != 0:
        sys.exit(f"{' '.join(command[:3])}: {result.stderr}")
    return result.stdout


def search(mscgym, name, env, data, folder):
    config = {"workspace": folder, "model": model_path(name),
              "dataset": {"inputs": data, "batch": BATCH},
              "quantize": {"target": "onnxruntime",
                           "gym": [{"record": "r.jsonl",
                                    "env": {"sites": "all", **env},
                                    "agent": {"type": "random"}, "budget": {"trials": 1}}]}}
    path = os.path.join(folder, "search.json")
    with open(path, "w") as file:
        json.dump(config, file)
    run(mscgym, "search", path, "--quiet")
    target = os.path.join(folder, "exported.onnx")
    examined = json.loads(run(mscgym, "export", os.path.join(folder, "r.jsonl"), "--trial", "0",
                              "-o", target, "--quiet", "--json"))
    with open(os.path.join(folder, "r.jsonl")) as file:
        lines = [json.loads(line) for line in file]
    loss = next(line["metrics"]["distill_loss"] for line in lines if line.get("id") == 0)
    return target, loss, examined["noise"]


def session(model, optimised=None):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = 1
    if optimised:
        options.optimized_model_filepath = optimised
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def find_faults(name, plan, optimised):
    graph = onnx.load(optimised).graph
    network = collections.Counter(node.op_type for node in onnx.load(model_path(name)).graph.node)
    constants = {value.name for value in graph.initializer}
    counts = collections.Counter(node.op_type for node in graph.node)
    floats = {op: counts[op] for op in OF_FLOATS if counts[op]}
    wanted = sum(network[op] for op in ("Conv", "Gemm", "MatMul"))
    found = sum(counts[op] for op in OF_INTEGERS)
    faults = []
    if plan == "float weights":
        return [f"{found} integer kernels of float weights"] if found else []
    if floats != FLOAT[name]:
        faults.append(f"of floats: {floats}")
    if found < wanted:
        faults.append(f"{found} integer kernels for {wanted} joints")
    if any(n.op_type == "DequantizeLinear" and n.input[0] in constants for n in graph.node):
        faults.append("constants are dequantised at each run")
    types = {value.name: value.data_type for value in graph.initializer}
    if any(n.op_type == "Clip" and len(n.input) > 1 and
           types.get(n.input[1]) == onnx.TensorProto.FLOAT for n in graph.node):
        faults.append("Clip of floats")
    return faults


def losses(name, target, values, folder, mscgym):
    """Losses in onnxruntime and in mscgym: the mean relative error over outputs."""
    reference, exported = session(model_path(name)), session(target)
    outputs = [o.name for o in reference.get_outputs() if o.type == "tensor(float)"]
    squares, errors = numpy.zeros(len(outputs)), numpy.zeros((2, len(outputs)))
    for i in range(0, SAMPLES, BATCH):
        batch = {key: value[i:i + BATCH] for key, value in values.items()}
        archive = os.path.join(folder, "out.npz")
        command = [mscgym, "run", target, "-o", archive, "--quiet", "--repeat", "0"]
        for k, (key, value) in enumerate(batch.items()):
            path = os.path.join(folder, f"in{k}.npy")
            numpy.save(path, value)
            command += ["--input", f"{key}={path}"]
        run(*command)
        ours = numpy.load(archive)
        expected = reference.run(outputs, batch)
        for k, (x, y) in enumerate(zip(expected, exported.run(outputs, batch))):
            squares[k] += numpy.square(x.astype("f8")).sum()
            errors[0, k] += numpy.square(x.astype("f8") - y).sum()
            errors[1, k] += numpy.square(x.astype("f8") - ours[outputs[k]]).sum()
    return (errors / squares).mean(1)


def check(mscgym, name, plan, folder):
    values = feeds(name, SAMPLES)
    data = os.path.join(folder, "inputs.npz")
    numpy.savez(data, **values)
    target, said, noise = search(mscgym, name, PLANS[plan], data, folder)
    optimised = os.path.join(folder, "optimised.onnx")
    session(target, optimised)
    faults = find_faults(name, plan, optimised)
    measured = losses(name, target, values, folder, mscgym)
    for what, loss in zip(("onnxruntime", "read back"), measured):
        if not abs(loss - said) <= max(0.02, 3 * noise) * said:
            faults.append(f"loss {what}: {loss:.4g}")
    print(f"{'FAIL' if faults else 'ok  '} {name}, {plan}: loss {said:.4g}, noise {noise:.1%}, "
          f"onnxruntime {measured[0]:.4g}, read back {measured[1]:.4g} {'; '.join(faults)}",
          flush=True)
    return bool(faults)


def main():
    mscgym, names = os.path.abspath(sys.argv[1]), sys.argv[2:] or list(FLOAT)
    failures = 0
    for name in names:
        for plan in PLANS:
            with tempfile.TemporaryDirectory() as folder:
                failures += check(mscgym, name, plan, folder)
    sys.exit(1 if failures else 0)


main()
