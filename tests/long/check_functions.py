#!/usr/bin/env python3
"""Checks models with functions of their own, and operators of domain ai.onnx.ml, against onnxruntime.

    check_functions.py MSCGYM

Functions: nested calls, attributes and their defaults, inputs and outputs that a call leaves out,
overloads, another opset than the model's, control flow inside a function, calls inside branches.
Each model must have the outputs of onnxruntime, joints named after the call, and a quantised file
that onnxruntime runs. Wrong models must be refused with the node's name.
"""
import os
import sys

from small_onnx import Checks, numpy, onnx, onnxruntime, run_onnxruntime

helper = onnx.helper
node = helper.make_node
rng = numpy.random.default_rng(3)
OPSET = [helper.make_opsetid("", 18)]


def f(*shape):
    return rng.standard_normal(shape).astype(numpy.float32)


def function(name, inputs, outputs, nodes, attributes=(), defaults=(), opset=18, overload="",
             domain="own"):
    return helper.make_function(domain, name, inputs, outputs, nodes,
                                [helper.make_opsetid("", opset), helper.make_opsetid("own", 1)],
                                list(attributes), list(defaults), overload=overload)


def reference(name, of, kind):
    """An attribute that takes the value of the call's attribute."""
    made = onnx.AttributeProto(name=name, ref_attr_name=of, type=kind)
    return made


def with_reference(made, *attributes):
    made.attribute.extend(attributes)
    return made


def save(path, nodes, inputs, outputs, weights=(), functions=(), domains=("own",)):
    graph = helper.make_graph(
        nodes, "net", [helper.make_tensor_value_info(k, kind, shape) for k, kind, shape in inputs],
        [helper.make_tensor_value_info(k, kind, shape) for k, kind, shape in outputs],
        [onnx.numpy_helper.from_array(value, name) for name, value in dict(weights).items()])
    model = helper.make_model(graph, functions=list(functions), ir_version=10,
                              opset_imports=OPSET + [helper.make_opsetid(d, 1) for d in domains])
    onnx.save(model, path)
    return path


F = onnx.TensorProto.FLOAT
I = onnx.TensorProto.INT64


def functions():
    """Yields (name, path, feed, names of joints that the graph must have)."""
    x = [("x", F, ["n", 6])]
    w = {"w": f(6, 5), "v": f(5, 4)}
    swish = function("Swish", ["a"], ["b"], [node("Sigmoid", ["a"], ["s"], name="gate"),
                                             node("Mul", ["a", "s"], ["b"], name="product")])
    feed = {"x": f(3, 6)}
    yield "a call", save("call.onnx", [
        node("MatMul", ["x", "w"], ["c"], name="fc"), node("Swish", ["c"], ["y"], domain="own", name="act")],
        x, [("y", F, ["n", 5])], w, [swish]), feed, ["fc", "act/gate", "act/product"]
    yield "two calls, and the same names outside", save("twice.onnx", [
        node("MatMul", ["x", "w"], ["a"], name="fc"), node("Swish", ["a"], ["s"], domain="own", name="one"),
        node("MatMul", ["s", "v"], ["b"], name="fd"), node("Swish", ["b"], ["y"], domain="own")],
        x, [("y", F, ["n", 4]), ("s", F, ["n", 5])], w, [swish]), feed, ["one/gate", "fd"]
    inner = function("Scale", ["a"], ["b"], [
        with_reference(node("LeakyRelu", ["a"], ["b"], name="leaky"),
                       reference("alpha", "slope", onnx.AttributeProto.FLOAT))], ["slope"])
    outer = function("Twice", ["a", "w"], ["c"], [
        node("MatMul", ["a", "w"], ["m"], name="fc"),
        with_reference(node("Scale", ["m"], ["k"], domain="own", name="scale"),
                       reference("slope", "alpha", onnx.AttributeProto.FLOAT)),
        node("Scale", ["k"], ["c"], domain="own", name="fixed", slope=0.5)],
        defaults=[helper.make_attribute("alpha", 0.25)])
    for name, more in (("an attribute", {"alpha": 0.1}), ("a default", {})):
        yield f"nested calls, {name}", save("nested.onnx", [
            node("Twice", ["x", "w"], ["y"], domain="own", name="layer", **more)],
            x, [("y", F, ["n", 5])], w, [outer, inner]), feed, ["layer/fc", "layer/scale/leaky"]
    clip = function("Limit", ["a", "low", "high"], ["b"], [node("Clip", ["a", "low", "high"], ["b"])])
    low = {**w, "low": numpy.float32(-0.5)}
    yield "an input left out", save("absent.onnx", [
        node("MatMul", ["x", "w"], ["c"]), node("Limit", ["c", "low"], ["y"], domain="own", name="limit")],
        x, [("y", F, ["n", 5])], low, [clip]), feed, []
    two = function("Parts", ["a"], ["p", "q"], [node("Neg", ["a"], ["p"]), node("Exp", ["a"], ["q"])])
    yield "an output left out", save("output.onnx", [
        node("Parts", ["x"], ["p", ""], domain="own"), node("Relu", ["p"], ["y"])],
        x, [("y", F, ["n", 6])], {}, [two]), feed, []
    yield "an input returned", save("through.onnx", [
        node("Same", ["x"], ["s", "t"], domain="own"), node("MatMul", ["s", "w"], ["y"])],
        x, [("y", F, ["n", 5])], w, [function("Same", ["a"], ["b", "c"], [
            node("Identity", ["a"], ["b"]), node("Relu", ["a"], ["c"])])]), feed, []
    branch = [helper.make_graph([node(op, ["a"], ["r"])], op, [], [helper.make_tensor_value_info(
        "r", F, None)]) for op in ("Relu", "Neg")]
    either = function("Either", ["a", "c"], ["b"], [
        node("If", ["c"], ["b"], then_branch=branch[0], else_branch=branch[1])])
    for taken in (True, False):
        yield f"control flow inside, {taken}", save("if.onnx", [
            node("MatMul", ["x", "w"], ["m"]), node("Either", ["m", "c"], ["y"], domain="own", name="e")],
            x + [("c", onnx.TensorProto.BOOL, [])], [("y", F, ["n", 5])], w, [either]), {
                **feed, "c": numpy.array(taken)}, []
    bodies = [helper.make_graph([node(op, ["m"], ["r"], domain=domain)], op, [],
                                [helper.make_tensor_value_info("r", F, None)])
              for op, domain in (("Swish", "own"), ("Neg", ""))]
    yield "a call inside a branch", save("inside.onnx", [
        node("MatMul", ["x", "w"], ["m"]),
        node("If", ["c"], ["y"], then_branch=bodies[0], else_branch=bodies[1])],
        x + [("c", onnx.TensorProto.BOOL, [])], [("y", F, ["n", 5])], w, [swish]), {
            **feed, "c": numpy.array(True)}, []
    constant = function("Shift", ["a"], ["b"], [
        with_reference(node("Constant", [], ["k"]), reference("value_float", "by", onnx.AttributeProto.FLOAT)),
        node("Add", ["a", "k"], ["b"])], ["by"])
    yield "constants of two calls", save("constant.onnx", [
        node("Shift", ["x"], ["a"], domain="own", by=1.5), node("Shift", ["a"], ["b"], domain="own", by=-4.0),
        node("MatMul", ["b", "w"], ["y"])], x, [("y", F, ["n", 5])], w, [constant]), feed, []


def refusals():
    x, y = [("x", F, ["n", 6])], [("y", F, ["n", 6])]
    loop = function("Again", ["a"], ["b"], [node("Again", ["a"], ["b"], domain="own", name="more")])
    yield "a function that calls itself", save(
        "loop.onnx", [node("Again", ["x"], ["y"], domain="own", name="first")], x, y, {}, [loop]), \
        "levels deep"
    doubled = [function(f"F{i}", ["a"], ["b"], [
        node(f"F{i + 1}", ["a"], ["k"], domain="own"), node(f"F{i + 1}", ["k"], ["b"], domain="own")])
        for i in range(28)] + [function("F28", ["a"], ["b"], [node("Relu", ["a"], ["b"])])]
    yield "functions that double in size", save(
        "laughs.onnx", [node("F0", ["x"], ["y"], domain="own")], x, y, {}, doubled), "levels deep"
    yield "too many inputs", save(
        "many.onnx", [node("G", ["x", "x"], ["y"], domain="own", name="g")], x, y, {},
        [function("G", ["a"], ["b"], [node("Relu", ["a"], ["b"])])]), "found 2 inputs"
    yield "a required input that the call leaves out", save(
        "required.onnx", [node("H", ["x"], ["y"], domain="own", name="h")], x, y, {},
        [function("H", ["a", "k"], ["b"], [node("Add", ["a", "k"], ["b"])])]), "found 1 inputs"


def learned():
    """Yields (name, path, feed) of models with operators of ai.onnx.ml."""
    def one(name, op, x, outputs, **attributes):
        shape = ["n", *x.shape[1:]] if x.ndim > 1 else list(x.shape)
        kind = helper.np_dtype_to_tensor_dtype(x.dtype)
        return name, save("ml.onnx", [node(op, ["x"], [k for k, _ in outputs], domain="ai.onnx.ml",
                                           **attributes)], [("x", kind, shape)],
                          [(k, t, None) for k, t in outputs], {}, [], ["ai.onnx.ml"]), {"x": x}
    y = [("y", F)]
    yield one("Scaler", "Scaler", f(4, 3), y, offset=[0.5, -1.0, 2.0], scale=[2.0, 0.25, -1.0])
    yield one("Scaler, one number", "Scaler", f(4, 3), y, offset=[0.5], scale=[2.0])
    yield one("Scaler, integers", "Scaler", numpy.arange(6).reshape(2, 3), y, offset=[1.0] * 3, scale=[0.5] * 3)
    for norm in ("MAX", "L1", "L2"):
        yield one(f"Normalizer {norm}", "Normalizer", f(5, 7), y, norm=norm)
        yield one(f"Normalizer {norm}, zeros", "Normalizer", numpy.zeros((2, 3), numpy.float32), y, norm=norm)
    yield one("Binarizer", "Binarizer", f(5, 7), y, threshold=0.25)
    hole = f(4, 3)
    hole[1, 2] = hole[3, 0] = numpy.nan
    yield one("Imputer, NaN", "Imputer", hole, y, replaced_value_float=float("nan"),
              imputed_value_floats=[1.0, 2.0, 3.0])
    zeros = numpy.float32([[0, 1], [2, 0]])
    yield one("Imputer, 0", "Imputer", zeros, y, replaced_value_float=0.0, imputed_value_floats=[9.0])
    yield one("Imputer, integers", "Imputer", numpy.int64([[-1, 1], [2, -1]]), [("y", I)],
              replaced_value_int64=-1, imputed_value_int64s=[7, 8])
    for transform in ("NONE", "SOFTMAX", "LOGISTIC"):
        yield one(f"LinearRegressor {transform}", "LinearRegressor", f(4, 3), y, targets=2,
                  coefficients=f(6).tolist(), intercepts=[0.5, -0.5], post_transform=transform)
        yield one(f"LinearClassifier {transform}", "LinearClassifier", f(9, 3), [("l", I), ("y", F)],
                  coefficients=f(9).tolist(), intercepts=f(3).tolist(), classlabels_ints=[4, 2, 7],
                  post_transform=transform)
    yield one("LinearRegressor, no intercepts", "LinearRegressor", f(4, 3), y, coefficients=f(3).tolist())
    for transform in ("NONE", "LOGISTIC", "SOFTMAX"):
        yield one(f"LinearClassifier, one row, {transform}", "LinearClassifier", f(9, 3), [("l", I), ("y", F)],
                  coefficients=f(3).tolist(), intercepts=[0.1], classlabels_ints=[0, 1],
                  post_transform=transform)
    for shape in ((4, 5), (5,), (2, 3, 5)):
        data = f(*shape)
        kind = [("x", F, ["n", *shape[1:]] if len(shape) > 1 else list(shape))]
        yield f"ArrayFeatureExtractor {shape}", save("pick.onnx", [
            node("ArrayFeatureExtractor", ["x", "i"], ["y"], domain="ai.onnx.ml")], kind, [("y", F, None)],
            {"i": numpy.int64([[3, 0, 3]])}, [], ["ai.onnx.ml"]), {"x": data}


def compare(checks, name, path, feed):
    if os.path.exists("out.npz"):
        os.remove("out.npz")
    ours, theirs = checks.run(path, feed), run_onnxruntime(path, feed)
    if not checks.expect(f"{name}: runs", isinstance(ours, dict) and isinstance(theirs, dict),
                         f"{ours} {theirs}"):
        return
    for key, want in theirs.items():
        got = ours.get(key)
        checks.expect(f"{name}: {key}", got is not None and got.shape == want.shape and
                      got.dtype == want.dtype and
                      numpy.allclose(got, want, rtol=1e-4, atol=1e-5, equal_nan=True), f"{got} {want}")


def main():
    checks = Checks(sys.argv[1])
    for name, path, feed, joints in functions():
        compare(checks, name, path, feed)
        code, text = checks.mscgym("graph", path)
        missing = [joint for joint in joints if joint not in text]
        checks.expect(f"{name}: names", code == 0 and not missing, f"{missing} {text}")
    for name, path, feed in learned():
        compare(checks, name, path, feed)
    for name, path, words in refusals():
        code, text = checks.mscgym("graph", path, "--quiet")
        checks.expect(f"{name}: refused", code == 1 and words in text and text.count("\n") == 1, text)
    # A call's layers are quantised like any others, and the file has no functions.
    _, path, _, _ = next(iter(functions()))
    numpy.savez("x.npz", x=f(32, 6))
    code, text = checks.mscgym("quantize", path, "--inputs", "x.npz", "--output", "small.onnx")
    checks.expect("quantize", code == 0, text)
    made = onnx.load("small.onnx")
    bytes_types = (onnx.TensorProto.INT8, onnx.TensorProto.UINT8)
    checks.expect("the file has bytes and no functions", not made.functions and any(
        weight.data_type in bytes_types for weight in made.graph.initializer))
    onnxruntime.InferenceSession("small.onnx", providers=["CPUExecutionProvider"])
    return checks.finish()


if __name__ == "__main__":
    sys.exit(main())
