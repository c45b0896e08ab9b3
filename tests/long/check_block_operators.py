#!/usr/bin/env python3
"""Checks weights that are exported as MatMulNBits and GatherBlockQuantized.

    check_block_operators.py MSCGYM

Models are quantised for the target onnxruntime_nbits. Each product and each lookup of a weight in
groups must be one of these operators, in the file and in onnxruntime's optimised model. Outputs of
onnxruntime must equal those of the plan in mscgym, and those of the exported file that mscgym reads
again. The tensors of the file must have exactly the bytes that the search counted, except for
integers of shapes. The loss in onnxruntime must be the search's.
"""
import collections
import json
import shutil
import sys

from small_onnx import Checks, make, node, numpy, onnx, onnxruntime, value_info

rng = numpy.random.default_rng(11)
SAMPLES = 16


def f(*shape):
    return (rng.standard_normal(shape) / 8).astype(numpy.float32)


def products(rows, middle, columns):
    """Weights [I,O], no bias, three axes."""
    return ([node("MatMul", ["x", "w"], ["h"]), node("Relu", ["h"], ["r"]), node("MatMul", ["r", "v"], ["y"])],
            {"w": f(rows, middle), "v": f(middle, columns)}, ["n", 5, rows], {"MatMulNBits": 2})


def layers(rows, middle, columns):
    """Weights [O,I] with biases, as torch exports them."""
    return ([node("Gemm", ["x", "w", "b"], ["h"], transB=1), node("Tanh", ["h"], ["r"]),
             node("Gemm", ["r", "v", "c"], ["y"], transB=1)],
            {"w": f(middle, rows), "b": f(middle), "v": f(columns, middle), "c": f(columns)}, ["n", rows],
            {"MatMulNBits": 2})


def shared(rows, *_):
    """Two products share one weight."""
    return ([node("MatMul", ["x", "w"], ["h"]), node("Tanh", ["h"], ["r"]), node("MatMul", ["r", "w"], ["y"])],
            {"w": f(rows, rows)}, ["n", rows], {"MatMulNBits": 2})


def table(entries, width, columns):
    """A table of tokens, looked up from both ends, and a product."""
    return ([node("Gather", ["t", "x"], ["h"]), node("MatMul", ["h", "w"], ["y"])],
            {"t": f(entries, width), "w": f(width, columns)}, ["n", 6],
            {"MatMulNBits": 1, "GatherBlockQuantized": 1})


def tied(entries, width, *_):
    """The head has the weight of the table."""
    return ([node("Gather", ["t", "x"], ["h"]), node("Tanh", ["h"], ["r"]),
             node("Transpose", ["t"], ["u"], perm=[1, 0]), node("MatMul", ["r", "u"], ["y"])],
            {"t": f(entries, width)}, ["n", 6], {"MatMulNBits": 1, "GatherBlockQuantized": 1})


def other(rows, middle, columns):
    """The first weight is read by a sum, too, so only the second one is in blocks."""
    nodes, weights, shape, _ = products(rows, middle, columns)
    return ([*nodes[:2], node("ReduceMean", ["x"], ["m"], keepdims=0), node("Mul", ["w", "m"], ["p"]),
             node("ReduceSum", ["p"], ["s"], keepdims=0), node("Add", ["r", "s"], ["q"]),
             node("MatMul", ["q", "v"], ["y"])], weights, shape, {"MatMulNBits": 1})


CASES = {  # name: (model, choice, options of the environment)
    **{f"{bits} bits, groups of {size}, {'symmetric' if symmetric else 'asymmetric'}":
       (products(256, 80, 24), {"bits": bits, "group_size": size}, {"weights": {"symmetric": symmetric}})
       for bits in (2, 3, 4, 6, 8) for size in (16, 64, 256) for symmetric in (True, False)},
    "odd lengths": (products(83, 51, 33), {"bits": 4, "group_size": 32}, {"weights": {"symmetric": False}}),
    "layers [O,I]": (layers(96, 64, 32), {"bits": 4, "group_size": 32}, {}),
    "layers [O,I], odd, asymmetric": (layers(71, 53, 33), {"bits": 4, "group_size": 16},
                                      {"weights": {"symmetric": False}}),
    "layers, corrected": (layers(96, 64, 32), {"bits": 3, "group_size": 32, "rounding": "descent", "correct": "affine"},
                          {}),
    "a weight that two read": (shared(64), {"bits": 4, "group_size": 32}, {}),
    "table": (table(200, 48, 40), {"bits": 4, "group_size": 32}, {}),
    "table of 2 bits, asymmetric": (table(200, 64, 40), {"bits": 2, "group_size": 16},
                                    {"weights": {"symmetric": False}}),
    "table of 8 bits, odd": (table(200, 51, 40), {"bits": 8, "group_size": 16}, {}),
    "tied": (tied(120, 64), {"bits": 4, "group_size": 32}, {"weights": {"symmetric": False}}),
    "activations of 8 bits": (layers(96, 64, 32), {"bits": 8, "group_size": 32}, {"activations": {"float": False}}),
    "dynamic activations": (products(96, 64, 32), {"bits": 8, "group_size": 32, "dynamic": True},
                            {"activations": {"float": False}}),
    "read by another joint": (other(64, 48, 32), {"bits": 4, "group_size": 16}, {}),
}
NONE = {  # cases that these operators do not fit
    "a table whose rows end within a byte": (table(200, 51, 40), {"bits": 4, "group_size": 16}, {"exclude": ["w"]}),
    "no groups": (products(96, 48, 32), {"bits": 4}, {}),
}


def samples(shape, weights, n):
    if "t" not in weights:
        return f(n, *shape[1:]) * 8
    entries = len(weights["t"])
    return rng.integers(-entries, entries, (n, *shape[1:]))


def search(checks, choice, env):
    shutil.rmtree("workspace", ignore_errors=True)
    env = {"choices": [choice], "activations": {"float": True}, **env}
    entry = {"env": env, "agent": {"type": "random"}, "budget": {"trials": 1}}
    with open("search.json", "w", encoding="utf-8") as file:
        json.dump({"model": "m.onnx", "workspace": "workspace", "dataset": {"inputs": "inputs.npz", "batch": SAMPLES},
                   "quantize": {"target": "onnxruntime_nbits", "runtime": False, "gym": [entry]}}, file)
    code, text = checks.mscgym("search", "search.json", "--threads", 1, "--quiet")
    if not checks.expect("searched", code == 0, text):
        return None
    with open("workspace/quantize_0.jsonl", encoding="utf-8") as file:
        return next(line for line in map(json.loads, file) if line.get("id") == 0)["metrics"]


def run_in_onnxruntime(path, x):
    """The outputs of the optimised model, and its operators."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.optimized_model_filepath = "optimised.onnx"
    y = onnxruntime.InferenceSession(path, options, ["CPUExecutionProvider"]).run(None, {"x": x})[0]
    return y, collections.Counter(n.op_type for n in onnx.load("optimised.onnx").graph.node)


def bytes_of_tensors(path):
    return sum(len(t.raw_data) for t in onnx.load(path).graph.initializer if t.data_type != onnx.TensorProto.INT64)


def counts(operators):
    return {name: operators[name] for name in ("MatMulNBits", "GatherBlockQuantized") if operators[name] > 0}


def check_case(checks, name, case, expected):
    (nodes, weights, shape, _), choice, env = case
    integer = onnx.TensorProto.INT64 if "t" in weights else onnx.TensorProto.FLOAT
    make("m.onnx", nodes, {"x": value_info("x", shape, integer)}, {"y": value_info("y", None)}, weights)
    x = samples(shape, weights, SAMPLES)
    numpy.savez("inputs.npz", x=x)
    metrics, path = search(checks, choice, env), "workspace/m.onnx"
    if metrics is None:
        print(f"in case {name}")
        return
    y, operators = run_in_onnxruntime(path, x)
    in_file = collections.Counter(n.op_type for n in onnx.load(path).graph.node)
    checks.expect(f"{name}: operators", counts(operators) == expected == counts(in_file), (operators, in_file))
    n_weights = len([w for w in weights if w != "b" and w != "c"])
    is_stored_once = len(nodes) < 6 and sum(expected.values()) >= n_weights
    if env.get("activations", {}).get("float", True) and is_stored_once:
        checks.expect(f"{name}: bytes", bytes_of_tensors(path) == metrics["size_bytes"],
                      (bytes_of_tensors(path), metrics["size_bytes"]))
    exact = run_in_onnxruntime("m.onnx", x)[0].astype(numpy.float64)
    loss = ((y - exact) ** 2).mean() / (exact ** 2).mean()
    checks.expect(f"{name}: loss", abs(loss - metrics["distill_loss"]) <= 1e-3 * loss, (loss, metrics["distill_loss"]))
    for subject, more in (("m.onnx", ["--strategy", "workspace/msc_quantize.json"]), (path, [])):
        computed = checks.run(subject, {"x": x}, *more)
        checks.expect(f"{name}: {subject}", isinstance(computed, dict) and
                      numpy.allclose(computed["y"], y, atol=1e-4 * abs(y).max(), rtol=1e-4), computed)


def main():
    checks = Checks(sys.argv[1])
    for name, case in CASES.items():
        check_case(checks, name, case, case[0][3])
    for name, case in NONE.items():
        check_case(checks, name, case, {})
    return checks.finish()


if __name__ == "__main__":
    sys.exit(main())
