#!/usr/bin/env python3
"""Checks that a weight which the model computes from constants is a weight for mscgym, too.

    check_constants.py MSCGYM

Each network multiplies its input by a matrix that some operator computes from constants. It must
have a weight site, compute what onnxruntime computes, and be as small after `quantize` as the same
network with the matrix stored. Results of random operators, and of operators on the input, are not
weights. Results with more elements than the limit are computed at run time, and a message says so.
"""
import json
import os
import sys

from small_onnx import (Checks, helper, is_close, make, node, numpy, onnx, run_onnxruntime,
                        value_info)

N = 48  # rows and columns of each weight
rng = numpy.random.default_rng(4)


def f(*shape):
    return rng.standard_normal(shape).astype(numpy.float32)


def positive(*shape):
    return (numpy.abs(f(*shape)) % 0.8 + 0.1).astype(numpy.float32)


def ints(*values):
    return numpy.array(values, numpy.int64)


V, P = f(N, N), positive(N, N)
S = numpy.float32  # S(x) is a scalar


def branch(name, scale):
    """A body of If that reads `v` from the outer graph."""
    return helper.make_graph(
        [node("Constant", [], [name + "_k"], value=onnx.numpy_helper.from_array(S(scale), "k")),
         node("Mul", ["v", name + "_k"], [name])], name, [], [value_info(name, [N, N])])


def loop_body():
    return helper.make_graph(
        [node("Tanh", ["state"], ["next"]), node("Identity", ["go"], ["go_on"])], "turn",
        [value_info("i", [], onnx.TensorProto.INT64), value_info("go", [], onnx.TensorProto.BOOL),
         value_info("state", [N, N])],
        [value_info("go_on", [], onnx.TensorProto.BOOL), value_info("next", [N, N])])


def chain(*nodes):
    """Makes nodes from strings "Op in,in out,out", or from pairs of such a string and attributes."""
    made = []
    for item in nodes:
        text, attributes = (item, {}) if isinstance(item, str) else item
        op, inputs, outputs = text.split(" ")
        inputs = [] if inputs == "-" else inputs.replace("_", "").split(",")
        made.append(node(op, inputs, outputs.replace("_", "").split(","), **attributes))
    return made


UNARY = ("Abs Neg Exp Log Sqrt Erf Reciprocal Floor Ceil Round Sigmoid Tanh Relu LeakyRelu Elu Selu "
         "Celu Softplus Softsign HardSigmoid HardSwish ThresholdedRelu Shrink Sin Cos Tan Asin Acos "
         "Atan Sinh Cosh Asinh Atanh Softmax LogSoftmax Hardmax Sign Mish Identity").split()

CASES = {  # name: (nodes that make w [N, N], initialisers)
    "clip, empty max": (chain("Clip v,lo,_ w"), {"v": V, "lo": S(-0.5)}),
    "clip, empty min": (chain("Clip v,_,hi w"), {"v": V, "hi": S(0.5)}),
    "gate": (chain("Sigmoid m g", "Mul v,g w"), {"v": V, "m": f(N, 1)}),
    "weight normalisation": (chain(("ReduceL2 v n", {"axes": [1]}), "Div v,n u", "Mul u,g w"),
                             {"v": V, "g": f(N, 1)}),
    "weight standardisation": (chain(("ReduceMean v m", {"axes": [1]}), "Sub v,m c", "Mul c,c q",
                                     ("ReduceMean q s", {"axes": [1]}), "Sqrt s d", "Div c,d w"),
                               {"v": V}),
    "low rank": (chain("MatMul a,b w"), {"a": f(N, 8), "b": f(8, N)}),
    "low rank added": (chain("MatMul a,b d", "Mul d,k e", "Add v,e w"),
                       {"v": V, "a": f(N, 8), "b": f(8, N), "k": S(0.25)}),
    "gemm": (chain(("Gemm a,b w", {"transA": 1})), {"a": f(8, N), "b": f(8, N)}),
    "gemm with bias": (chain(("Gemm a,b,c w", {"alpha": 0.5})),
                       {"a": f(N, 8), "b": f(8, N), "c": f(N)}),
    "einsum": (chain(("Einsum a,b w", {"equation": "ri,rj->ij"})), {"a": f(4, N), "b": f(4, N)}),
    "batch normalisation": (chain("BatchNormalization v,s,b,m,q w"),
                            {"v": V, "s": f(N), "b": f(N), "m": f(N), "q": positive(N)}),
    "layer normalisation": (chain("LayerNormalization v,s,b w"), {"v": V, "s": f(N), "b": f(N)}),
    "layer normalisation, no bias": (chain("LayerNormalization v,s w"), {"v": V, "s": f(N)}),
    "instance normalisation": (chain("Unsqueeze v,z u", "InstanceNormalization u,s,b i",
                                     "Squeeze i,z w"),
                               {"v": V, "z": ints(0), "s": f(N), "b": f(N)}),
    "cumulative sum": (chain("CumSum v,z w"), {"v": V, "z": numpy.array(1, numpy.int64)}),
    "pad": (chain("Pad v,p w"), {"v": f(N - 2, N - 4), "p": ints(1, 2, 1, 2)}),
    "pad, reflected": (chain(("Pad v,p w", {"mode": "reflect"})),
                       {"v": f(N - 2, N - 4), "p": ints(1, 2, 1, 2)}),
    "scatter nd": (chain("ScatterND v,i,u w"), {"v": V, "i": ints([0], [3]), "u": f(2, N)}),
    "scatter elements": (chain(("ScatterElements v,i,u w", {"axis": 1})),
                         {"v": V, "i": ints([0, 3], [1, 2]), "u": f(2, 2)}),
    "gather elements": (chain("GatherElements v,i w"),
                        {"v": V, "i": rng.integers(0, N, (N, N)).astype(numpy.int64)}),
    "gather nd": (chain("GatherND v,i w"),
                  {"v": f(2 * N, N), "i": rng.integers(0, N, (N, 1)).astype(numpy.int64)}),
    "top k": (chain("TopK v,k w,places"), {"v": f(N, N + 5), "k": ints(N)}),
    "places of top k": (chain("TopK v,k values,places", "GatherElements u,places w"),
                        {"v": V, "u": f(N, N), "k": ints(N)}),
    "second of a split": (chain(("Split v a,w,b", {"axis": 0}), ), {"v": f(3 * N, N)}),
    "two of a split": (chain(("Split v a,b", {"axis": 0}), "Mul a,b w"), {"v": f(2 * N, N)}),
    "non zero": (chain("NonZero m i", "Squeeze i,z j", "Gather v,j w"),
                 {"m": numpy.tile([1.0, 0.0], N).astype(numpy.float32), "z": ints(0),
                  "v": f(2 * N, N)}),
    "compress": (chain(("Compress v,m w", {"axis": 0})),
                 {"v": f(2 * N, N), "m": numpy.tile([True, False], N)}),
    "unique": (chain("Unique i j", "Gather v,j w"),
               {"i": numpy.repeat(numpy.arange(N), 2).astype(numpy.int64), "v": V}),
    "where over nan": (chain("Log v l", "IsNaN l n", "Where n,v,l w"), {"v": V}),
    "one hot": (chain("OneHot i,d,o h", "MatMul h,v w"),
                {"i": numpy.arange(N)[::-1].astype(numpy.int64).copy(), "d": ints(N),
                 "o": numpy.array([0, 1], numpy.float32), "v": V}),
    "range and cast": (chain("Range a,b,c i", ("Cast i r", {"to": 1}), "Sin r s", "Mul v,s w"),
                       {"v": V, "a": numpy.array(0, numpy.int64), "b": numpy.array(N, numpy.int64),
                        "c": numpy.array(1, numpy.int64)}),
    "triangle": (chain("Trilu v w"), {"v": V}),
    "eye": (chain("EyeLike v e", "Sub v,e w"), {"v": V}),
    "resize": (chain(("Resize v,_,s r", {"mode": "linear"}), "Reshape r,d w"),
               {"v": f(1, 1, N // 2, N // 2), "s": numpy.array([1, 1, 2, 2], numpy.float32),
                "d": ints(N, N)}),
    "convolution of a weight": (chain(("Conv v,k c", {"pads": [1, 1, 1, 1]}), "Reshape c,d w"),
                                {"v": f(1, 1, N, N), "k": f(1, 1, 3, 3), "d": ints(N, N)}),
    "transposed convolution": (chain(("ConvTranspose v,k c", {"strides": [2, 2]}), "Reshape c,d w"),
                               {"v": f(1, 1, N // 2, N // 2), "k": f(1, 1, 2, 2), "d": ints(N, N)}),
    "max pool": (chain(("MaxPool v c", {"kernel_shape": [2, 2], "strides": [2, 2]}),
                       "Reshape c,d w"), {"v": f(1, 1, 2 * N, 2 * N), "d": ints(N, N)}),
    "depth to space": (chain(("DepthToSpace v c", {"blocksize": 2}), "Reshape c,d w"),
                       {"v": f(1, 4, N // 2, N // 2), "d": ints(N, N)}),
    "lstm of constants": (chain(("LSTM v,a,b h,_,_", {"hidden_size": N}), "Reshape h,d w"),
                          {"v": f(N, 1, 4), "a": f(1, 4 * N, 4), "b": f(1, 4 * N, N),
                           "d": ints(N, N)}),
    "quantised on the way": (chain("DynamicQuantizeLinear v q,s,z", "DequantizeLinear q,s,z w"),
                             {"v": V}),
    "integer product": (chain("MatMulInteger a,b i", ("Cast i r", {"to": 1}), "Mul r,s w"),
                        {"a": rng.integers(-9, 9, (N, 8)).astype(numpy.int8),
                         "b": rng.integers(-9, 9, (8, N)).astype(numpy.int8), "s": S(0.01)}),
    "doubles": (chain(("Cast v d", {"to": 11}), "Exp d e", ("Cast e w", {"to": 1})), {"v": V}),
    "half floats": (chain("Sigmoid v h", ("Cast h w", {"to": 1})), {"v": V.astype(numpy.float16)}),
    "dropout of inference": (chain("Dropout v w"), {"v": V}),
    "bits": (chain(("BitShift q,s h", {"direction": "RIGHT"}), ("Cast h r", {"to": 1}), "Mul r,k w"),
             {"q": rng.integers(0, 255, (N, N)).astype(numpy.uint8),
              "s": numpy.array(2, numpy.uint8), "k": S(0.02)}),
    "logic": (chain("Greater v,z a", "Less v,t b", "And a,b c", "Not c d", "Where d,v,u w"),
              {"v": V, "u": f(N, N), "z": S(0), "t": S(1)}),
    "branch": ([node("If", ["c"], ["w"], then_branch=branch("first", 2.0),
                     else_branch=branch("second", 3.0))],
               {"v": V, "c": numpy.array(False)}),
    "loop": ([node("Loop", ["n", "c", "v"], ["w"], body=loop_body())],
             {"v": V, "n": numpy.array(3, numpy.int64), "c": numpy.array(True)}),
}
# Mish, and axes as an input, need opset 18.
NEWER = {"Mish", "mean, axes as an input"}
# onnxruntime approximates functions in an LSTM, and rounds half floats at other points.
TOLERANCES = {"lstm of constants": 1e-2, "half floats": 1e-2}
CASES["mean, axes as an input"] = (chain("ReduceMean v,a m", "Sub v,m w"), {"v": V, "a": ints(1)})
for op in UNARY:
    CASES[op] = (chain(f"{op} v w"), {"v": P})


def sites(checks, path):
    code, text = checks.mscgym("graph", path, "--sites", "--json", "--quiet")
    return [s["kind"] for s in json.loads(text)] if code == 0 else text


def product(path, nodes, initializers, opset=17, inputs=None):
    return make(path, nodes + [node("MatMul", ["x", "w"], ["y"])], {"x": ["n", N], **(inputs or {})},
                {"y": ["n", N]}, initializers, opset=opset)


def check_case(checks, name, nodes, initializers):
    path = product("m.onnx", nodes, initializers, 18 if name in NEWER else 17)
    feed = {"x": f(5, N)}
    found = sites(checks, path)
    checks.expect(f"{name}: a weight", "weight" in found, found)
    computed = checks.run(path, feed)
    checks.expect(f"{name}: the same outputs",
                  is_close(computed, run_onnxruntime(path, feed), TOLERANCES.get(name, 1e-4)),
                  computed)


def check_size(checks, name, plain):
    nodes, initializers = CASES[name]
    path = product("m.onnx", nodes, initializers)
    numpy.savez("inputs.npz", x=f(64, N))
    code, text = checks.mscgym("quantize", path, "--inputs", "inputs.npz", "-o", "q.onnx",
                               "--threads", 1)
    size = os.path.getsize("q.onnx") if code == 0 else None
    checks.expect(f"{name}: as small as one that is stored", size is not None and size < plain + 200,
                  f"{size} bytes, stored {plain}; {text}")
    return size


def check_kept(checks):
    """A result that differs from run to run, or with the input, is not a weight."""
    shape = {"shape": [N, N], "seed": 1.0}
    kept = {
        "random": (chain(("RandomNormal - w", shape)), {}),
        "like": (chain("RandomNormalLike v r", "Add v,r w"), {"v": V}),
        "bernoulli": (chain("Bernoulli v b", "Mul v,b w"), {"v": P}),
        "of the input": (chain(("ReduceMean x m", {"axes": [0, 1], "keepdims": 0}), "Mul v,m w"),
                         {"v": V}),
    }
    for name, (nodes, initializers) in kept.items():
        found = sites(checks, product("m.onnx", nodes, initializers))
        checks.expect(f"{name}: no weight", "weight" not in found and "activation" in found, found)


def check_limit(checks):
    """A result larger than its operands and the limit is left to run time, with a message;
    others are folded.
    """
    big = make("m.onnx", chain("MatMul a,b w", "MatMul x,w y"), {"x": ["n", 4100]},
               {"y": ["n", 4100]}, {"a": f(4100, 1), "b": f(1, 4100)})
    code, text = checks.mscgym("graph", big, "--sites")
    checks.expect("beyond the limit: a line", code == 0 and "16810000" in text and "16777216" in text,
                  text)
    numpy.savez("inputs.npz", x=f(8, 4100))
    code, text = checks.mscgym("quantize", big, "--inputs", "inputs.npz", "-o", "q.onnx")
    checks.expect("beyond the limit: quantize says so", code == 0 and "16810000" in text, text)
    for name, nodes, initializers in (
            ("a product of 2.4 million", "MatMul a,b w", {"a": f(768, 4), "b": f(4, 3072)}),
            ("a gate on 2.4 million", "Mul a,b w", {"a": f(768, 3072), "b": f(768, 1)})):
        path = make("m.onnx", chain(nodes, "MatMul x,w y"), {"x": ["n", 768]}, {"y": ["n", 3072]},
                    initializers)
        code, text = checks.mscgym("graph", path, "--sites")
        checks.expect(f"{name}: a weight", "[768,3072]" in text and "weight" in text and
                      "elements" not in text, text)


def main():
    checks = Checks(sys.argv[1])
    for name, (nodes, initializers) in CASES.items():
        check_case(checks, name, nodes, initializers)
    stored = product("m.onnx", [], {"w": V})
    numpy.savez("inputs.npz", x=f(64, N))
    checks.mscgym("quantize", stored, "--inputs", "inputs.npz", "-o", "q.onnx", "--threads", 1)
    plain = os.path.getsize("q.onnx")
    for name in ("clip, empty max", "gate", "low rank", "batch normalisation", "top k", "loop"):
        check_size(checks, name, plain)
    check_kept(checks)
    check_limit(checks)
    return checks.finish()


if __name__ == "__main__":
    sys.exit(main())
