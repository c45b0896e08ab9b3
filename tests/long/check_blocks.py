#!/usr/bin/env python3
"""Checks that 4-bit weights in groups become MatMulNBits in onnxruntime.

    check_blocks.py MSCGYM

onnxruntime's optimised model must have one MatMulNBits per product with a grouped weight, if the
group size is a power of 2 from 16 on, in either orientation of the weight. It must be about as
large as the exported file. Without optimisation, and with accuracy level 1, which keeps activations
float, its outputs must equal mscgym's, both for the record's plan and for the exported file.
"""
import collections
import json
import os
import shutil
import sys

from small_onnx import Checks, make, node, numpy, onnx, onnxruntime, run_onnxruntime

rng = numpy.random.default_rng(7)


def f(*shape):
    return (rng.standard_normal(shape) / 8).astype(numpy.float32)


def chain(rows, middle, columns, batch=8):
    """Two products without bias and a Relu between them."""
    return ([node("MatMul", ["x", "w"], ["h"]), node("Relu", ["h"], ["r"]),
             node("MatMul", ["r", "v"], ["y"])], {"w": f(rows, middle), "v": f(middle, columns)},
            ["n", batch, rows] if batch else ["n", rows], 2)


def layers(rows, middle, columns):
    """Linear layers as torch exports them, with weights [O,I]."""
    return ([node("Gemm", ["x", "w", "b"], ["h"], transB=1), node("Clip", ["h", "low", "high"], ["r"]),
             node("Gemm", ["r", "v", "c"], ["y"], transB=1)],
            {"w": f(middle, rows), "b": f(middle), "v": f(columns, middle), "c": f(columns),
             "low": numpy.float32(0), "high": numpy.float32(6)}, ["n", rows], 2)


def biased(rows, middle, columns):
    return ([node("MatMul", ["x", "w"], ["m"]), node("Add", ["m", "b"], ["h"]),
             node("Sigmoid", ["h"], ["r"]), node("MatMul", ["r", "v"], ["y"])],
            {"w": f(rows, middle), "b": f(middle), "v": f(middle, columns)}, ["n", 4, rows], 2)


def tied(rows, middle, _):
    """Two products share one weight; onnxruntime makes no MatMulNBits of it."""
    return ([node("MatMul", ["x", "w"], ["h"]), node("Tanh", ["h"], ["r"]),
             node("MatMul", ["r", "w"], ["y"])], {"w": f(rows, rows)}, ["n", rows], 0)


CASES = {  # name: (model, group size, weights are symmetric, activations are float)
    "products, groups of 32": (chain(256, 512, 256), 32, True, True),
    "products, groups of 64": (chain(64, 128, 64), 64, True, True),
    "products, groups of 128": (chain(256, 128, 64, None), 128, True, True),
    "lengths that groups do not divide": (chain(80, 72, 50), 32, True, True),
    "fewer elements than a group": (chain(20, 40, 24), 64, True, True),
    "asymmetric": (chain(96, 64, 32), 32, False, True),
    "layers [O,I]": (layers(96, 64, 32), 32, True, True),
    "layers [O,I], asymmetric, odd": (layers(70, 51, 33), 32, False, True),
    "biased, three axes": (biased(96, 64, 32), 32, True, True),
    "a weight that two read": (tied(64, 0, 0), 32, True, True),
    "activations of 8 bits": (chain(64, 64, 64), 32, True, False),
}


def export(checks, path, group, is_symmetric, are_float):
    shutil.rmtree("workspace", ignore_errors=True)
    env = {"choices": [{"bits": 4, "group_size": group}], "weights": {"symmetric": is_symmetric},
           "activations": {"float": are_float}}
    entry = {"env": env, "agent": {"type": "random"}, "budget": {"trials": 1}}
    with open("search.json", "w", encoding="utf-8") as file:
        json.dump({"model": path, "workspace": "workspace", "dataset": {"inputs": "inputs.npz"},
                   "quantize": {"runtime": False, "gym": [entry]}}, file)
    return checks.mscgym("search", "search.json", "--threads", 1, "--quiet")


def run_at_level_1(path, feed):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.optimized_model_filepath = "optimised.onnx"
    options.add_session_config_entry("session.qdq_matmulnbits_accuracy_level", "1")
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return session.run(None, feed)[0]


def check_case(checks, name):
    (nodes, initializers, shape, n_products), group, is_symmetric, are_float = CASES[name]
    make("m.onnx", nodes, {"x": shape}, {"y": onnx.helper.make_tensor_value_info("y", 1, None)},
         initializers)
    numpy.savez("inputs.npz", x=f(16, *shape[1:]) * 8)
    code, text = export(checks, "m.onnx", group, is_symmetric, are_float)
    if not checks.expect(f"{name}: searched", code == 0, text):
        return
    path, feed = "workspace/m.onnx", {"x": f(3, *shape[1:]) * 8}
    onnx.checker.check_model(onnx.load(path), full_check=True)
    plain = run_onnxruntime(path, feed)["y"]
    exact = run_at_level_1(path, feed)
    found = collections.Counter(n.op_type for n in onnx.load("optimised.onnx").graph.node)
    checks.expect(f"{name}: MatMulNBits", found["MatMulNBits"] == (n_products if are_float else 0),
                  found)
    if are_float:
        checks.expect(f"{name}: no larger than the file", n_products == 0 or
                      os.path.getsize("optimised.onnx") < 1.2 * os.path.getsize(path) + 1500,
                      (os.path.getsize("optimised.onnx"), os.path.getsize(path)))
        checks.expect(f"{name}: level 1", numpy.allclose(exact, plain, atol=1e-4, rtol=1e-4))
    for subject in (path, "m.onnx"):
        plan = ["--strategy", "workspace/msc_quantize.json"] if subject == "m.onnx" else []
        computed = checks.run(subject, feed, *plan)
        checks.expect(f"{name}: {subject} {plan}", isinstance(computed, dict) and
                      numpy.allclose(computed["y"], plain, atol=1e-4, rtol=1e-4), computed)


def main():
    checks = Checks(sys.argv[1])
    for name in CASES:
        check_case(checks, name)
    return checks.finish()


if __name__ == "__main__":
    sys.exit(main())
