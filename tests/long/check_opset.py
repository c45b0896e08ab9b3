#!/usr/bin/env python3
"""Checks the opset of exported models: the lowest that has all written operators, and at least the
input's if that is at most 21.

    check_opset.py MSCGYM

Pruned float models and quantised models, of opsets 11 to 28, with operators whose form changed
between opsets, or that are newer than opset 21. onnx.checker and onnxruntime must accept each file, with and without optimisation,
and mscgym must compute the same outputs from it. Through MSCGraph JSON the opset is the same.
"""
import json
import os
import shutil
import sys

from small_onnx import (Checks, helper, is_close, make, node, numpy, onnx, run_onnxruntime)

rng = numpy.random.default_rng(6)


def f(*shape):
    return rng.standard_normal(shape).astype(numpy.float32)


def ints(*values):
    return numpy.array(values, numpy.int64)


def reduction(op, opset, **more):
    if opset < 18:
        return [node(op, ["u"], ["y"], axes=[2, 3], keepdims=1, **more)], {}
    return [node(op, ["u", "axes"], ["y"], keepdims=1, **more)], {"axes": ints(2, 3)}


def case_layers(opset):
    """Layers that nearly every network has."""
    return [node("BatchNormalization", ["u", "s", "b", "m", "v"], ["n"]),
            node("Clip", ["n", "lo", "hi"], ["c"]),
            node("AveragePool", ["c"], ["p"], kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1),
            node("GlobalAveragePool", ["p"], ["g"]), node("Flatten", ["g"], ["h"]),
            node("Gemm", ["h", "k"], ["z"], transB=1), node("Softmax", ["z"], ["y"], axis=1)], {
                "s": abs(f(8)), "b": f(8), "m": f(8), "v": abs(f(8)) + 1, "k": f(5, 8),
                "lo": numpy.float32(-1), "hi": numpy.float32(6)}


def case_pad_resize_split(opset):
    split = ([node("Split", ["r"], ["a", "b"], axis=1)] if opset < 18 else
             [node("Split", ["r"], ["a", "b"], axis=1, num_outputs=2)])
    return [node("Pad", ["u", "p"], ["q"], mode="reflect"),
            node("Resize", ["q", "", "t"], ["r"], mode="linear")] + split + [
                node("Sub", ["a", "b"], ["y"])], {
                    "p": ints(0, 0, 1, 1, 0, 0, 1, 1), "t": numpy.array([1, 1, 2, 2], numpy.float32)}


def case_squeeze(opset):
    if opset < 13:
        nodes = [node("ReduceSum", ["u"], ["s"], axes=[3], keepdims=1),
                 node("Squeeze", ["s"], ["q"], axes=[3]), node("Unsqueeze", ["q"], ["y"], axes=[1])]
        return nodes, {}
    nodes = [node("ReduceSum", ["u", "three"], ["s"], keepdims=1),
             node("Squeeze", ["s", "three"], ["q"]), node("Unsqueeze", ["q", "one"], ["y"])]
    return nodes, {"three": ints(3), "one": ints(1)}


def case_gelu(opset):
    """Exact Gelu, written as several operators before opset 20."""
    if opset >= 20:
        return [node("Gelu", ["u"], ["y"])], {}
    return [node("Div", ["u", "root"], ["d"]), node("Erf", ["d"], ["e"]),
            node("Add", ["e", "one"], ["a"]), node("Mul", ["u", "a"], ["m"]),
            node("Mul", ["m", "half"], ["y"])], {
                "root": numpy.float32(2 ** 0.5), "one": numpy.float32(1), "half": numpy.float32(0.5)}


def case_gelu_tanh(opset):
    if opset >= 20:
        return [node("Gelu", ["u"], ["y"], approximate="tanh")], {}
    return [node("Pow", ["u", "three"], ["c"]), node("Mul", ["c", "k"], ["d"]),
            node("Add", ["u", "d"], ["e"]), node("Mul", ["e", "r"], ["g"]), node("Tanh", ["g"], ["t"]),
            node("Add", ["t", "one"], ["a"]), node("Mul", ["u", "a"], ["m"]),
            node("Mul", ["m", "half"], ["y"])], {
                "three": numpy.float32(3), "k": numpy.float32(0.044715), "one": numpy.float32(1),
                "r": numpy.float32((2 / numpy.pi) ** 0.5), "half": numpy.float32(0.5)}


def case_lstm(opset):
    return [node("Flatten", ["u"], ["h"]), node("Unsqueeze", ["h", "zero"] if opset > 12 else ["h"],
                                                ["q"], **({} if opset > 12 else {"axes": [0]})),
            node("LSTM", ["q", "lw", "lr"], ["l", "", ""], hidden_size=4),
            node("Shape", ["l"], ["d"]), node("Reshape", ["l", "d"], ["y"])], {
                "zero": ints(0), "lw": f(1, 16, 8 * 36) / 8, "lr": f(1, 16, 4)}


def case_scatter(opset):
    return [node("Flatten", ["u"], ["h"]), node("ScatterElements", ["h", "i", "v"], ["s"], axis=1),
            node("CumSum", ["s", "one"], ["y"])], {
                "i": ints([0, 3]), "v": f(1, 2), "one": numpy.array(1, numpy.int64)}


def case_if(opset):
    """If, with a reduction in each body."""
    def body(name, op):
        nodes, initializers = reduction(op, opset)
        nodes[0].output[0] = name
        tensors = [onnx.numpy_helper.from_array(v, k) for k, v in initializers.items()]
        return helper.make_graph(nodes, name, [], [helper.make_tensor_value_info(
            name, onnx.TensorProto.FLOAT, None)], tensors)
    return [node("ReduceMax", ["u"], ["t"], keepdims=0), node("Greater", ["t", "k"], ["c"]),
            node("If", ["c"], ["y"], then_branch=body("then", "ReduceMean"),
                 else_branch=body("other", "ReduceMax"))], {"k": numpy.float32(0.5)}


def case_grid_sample(opset):
    return [node("GridSample", ["u", "grid"], ["y"], mode="bilinear" if opset < 20 else "linear")], {
        "grid": (f(1, 4, 4, 2) / 2).clip(-1, 1)}


def case_layer_norm(opset):
    return [node("LayerNormalization", ["u", "s"], ["y"], axis=-1)], {"s": f(6)}


def case_rms_norm(opset):
    return [node("RMSNormalization", ["u", "s"], ["y"], axis=-1)], {"s": f(6)}


def case_swish(opset):
    return [node("Swish", ["u"], ["y"], alpha=0.5)], {}


def case_attention(opset):
    return [node("Attention", ["u", "u", "u"], ["y"], is_causal=1)], {}


def case_tensor_scatter(opset):
    return [node("TensorScatter", ["cache", "u"], ["y"], axis=2)], {"cache": f(1, 8, 9, 6)}


def case_cumprod(opset):
    return [node("CumProd", ["u", "two"], ["y"], exclusive=1)], {"two": numpy.array(2, numpy.int64)}


def case_linear_attention(opset):
    return [node("Reshape", ["u", "shape"], ["q"]),
            node("LinearAttention", ["q", "q", "q"], ["y", "state"], q_num_heads=2, kv_num_heads=2, update_rule="linear")], {
                "shape": ints(0, 8, 36)}


OPSETS = (11, 13, 17, 18, 21, 23, 26, 28)
FORMS = 21  # the newest opset of the input that an export keeps
# Builder of each case, and `least`, the first opset that has the operators written for it. Last:
# the first opset that has the case's own operators.
CASES = {
    "layers": (case_layers, 13), "pad, resize, split": (case_pad_resize_split, 13),
    "mean": (lambda o: reduction("ReduceMean", o), 13),
    "maximum": (lambda o: reduction("ReduceMax", o), 13),
    "minimum": (lambda o: reduction("ReduceMin", o), 13),
    "product": (lambda o: reduction("ReduceProd", o), 13),
    "norm": (lambda o: reduction("ReduceL2", o), 13),
    "squeeze": (case_squeeze, 13), "gelu": (case_gelu, 13), "gelu, tanh": (case_gelu_tanh, 13),
    "lstm": (case_lstm, 13), "scatter": (case_scatter, 13), "if": (case_if, 13),
    "grid sample": (case_grid_sample, 16, 16), "layer norm": (case_layer_norm, 17, 17),
    "rms norm": (case_rms_norm, 13, 23), "attention": (case_attention, 13, 23),
    "swish": (case_swish, 13, 24), "tensor scatter": (case_tensor_scatter, 24, 24),
    "cumprod": (case_cumprod, 26, 26), "linear attention": (case_linear_attention, 27, 27),
}
IR_VERSIONS = {13: 7, 14: 7, 15: 8, 16: 8, 17: 8, 18: 8, 19: 9, 20: 9, 21: 10, 22: 10, 23: 11, 24: 12, 25: 13,
               26: 13, 27: 13, 28: 14}


def search(checks, section):
    shutil.rmtree("workspace", ignore_errors=True)
    with open("search.json", "w", encoding="utf-8") as file:
        json.dump({"model": "m.onnx", "workspace": "workspace", "dataset": {"inputs": "inputs.npz", "batch": 1}, **section}, file)
    code, text = checks.mscgym("search", "search.json", "--threads", 1, "--quiet")
    return "workspace/m.onnx" if code == 0 and os.path.exists("workspace/m.onnx") else text


def check_file(checks, what, path, expected):
    if not checks.expect(f"{what}: written", os.path.exists(path), path):
        return
    model = onnx.load(path)
    opset = model.opset_import[0].version
    checks.expect(f"{what}: opset {expected}, IR version {IR_VERSIONS[expected]}",
                  (opset, model.ir_version) == (expected, IR_VERSIONS[expected]),
                  (opset, model.ir_version))
    feed = {"x": f(1, 3, 8, 8)}
    try:
        onnx.checker.check_model(model, full_check=True)
        outputs = [run_onnxruntime(path, feed, optimised) for optimised in (False, True)]
    except Exception as error:  # any exception of the packages is a failure
        checks.expect(f"{what}: taken", False, error)
        return
    found = checks.run(path, feed)
    checks.expect(f"{what}: the same outputs", is_close(found, outputs[0], 1e-3) and
                  is_close(outputs[1], outputs[0], 1e-3), found)


def make_case(name, opset):
    build = CASES[name][0]
    nodes, initializers = build(opset)
    layers = [node("Conv", ["x", "w"], ["first"]), node("Relu", ["first"], ["second"]),
              node("Conv", ["second", "o"], ["u"])]
    output = onnx.ValueInfoProto(name="y")
    output.type.tensor_type.elem_type = onnx.TensorProto.FLOAT
    return make("m.onnx", layers + nodes, {"x": ["n", 3, 8, 8]}, {"y": output},
                {"w": f(16, 3, 3, 3), "o": f(8, 16, 1, 1) / 4, **initializers}, opset,
                IR_VERSIONS.get(opset, 6))


def check_pruned(checks):
    gym = {"agent": {"type": "random"}, "budget": {"trials": 2}}
    for name, (_, least, *first) in CASES.items():
        for opset in OPSETS:
            if first and opset < first[0]:
                continue  # the operator does not exist in this opset
            make_case(name, opset)
            path = search(checks, {"prune": {"gym": [gym]}})
            check_file(checks, f"{name}, opset {opset}, pruned", path, max(min(opset, FORMS), least))


def check_quantised(checks):
    """8-bit types need opset 13; 16-bit and 4-bit types need opset 21."""
    for bits, least in ((8, 13), (12, 21), (4, 21)):
        choice = {"bits": bits}
        gym = {"env": {"choices": [choice]}, "agent": {"type": "random"}, "budget": {"trials": 1}}
        for opset in (13, 17):
            make_case("layers", opset)
            path = search(checks, {"quantize": {"gym": [gym]}})
            check_file(checks, f"{bits} bits, opset {opset}", path, max(min(opset, FORMS), least))


def check_json(checks):
    """Quantised from the ONNX file and from its MSCGraph JSON."""
    numpy.savez("many.npz", x=f(20, 3, 8, 8))
    for name in ("layers", "mean", "pad, resize, split"):
        for opset in OPSETS:
            make_case(name, opset)
            code, text = checks.mscgym("graph", "m.onnx", "-o", "g.json", "--quiet")
            checks.expect(f"{name}, opset {opset}: graph -o", code == 0, text)
            for model in ("m.onnx", "g.json"):
                code, text = checks.mscgym("quantize", model, "--inputs", "many.npz", "-o", "q.onnx",
                                           "--threads", 1, "--quiet")
                what = f"{name}, opset {opset}, {model} quantised"
                if checks.expect(what, code == 0, text):
                    check_file(checks, what, "q.onnx", max(min(opset, FORMS), 13))


def main():
    checks = Checks(sys.argv[1])
    numpy.savez("inputs.npz", x=f(4, 3, 8, 8))
    check_pruned(checks)
    check_quantised(checks)
    check_json(checks)
    return checks.finish()


if __name__ == "__main__":
    sys.exit(main())
