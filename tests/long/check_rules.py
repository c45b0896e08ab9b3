#!/usr/bin/env python3
"""Applies examples/rules/common.msc to a model for every rule, and compares the outputs with ONNX Runtime.

usage: check_rules.py MSCGYM

Each model is spelled as users spell it. Its rule must match the stated number of times, and ONNX Runtime must compute the
same outputs for the rewritten model, within 1e-5. A wrong rule must be refused, and ONNX Runtime must compute different
outputs for the inputs that show it. Exits with 77 if numpy, onnx or onnxruntime are missing.
"""
import json
import os
import subprocess
import sys
import tempfile

try:
    import numpy
    import onnx
    import onnx.inliner
    import onnxruntime
    from onnx import TensorProto, helper, numpy_helper
except ImportError as error:
    print(f"skipped: {error}; needs numpy, onnx and onnxruntime")
    sys.exit(77)

TREE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
RULES = os.path.join(TREE, "examples", "rules", "common.msc")
WRONG = """# Swish is not GELU.
rule swish_as_gelu {
  match {
    ID s IN: x OPTYPE: sigmoid
    ID y IN: x,s OPTYPE: multiply
  }
  replace { ID y IN: x OPTYPE: nn.gelu }
}
"""


class Model:
    """Builds a model line by line: model.op("Add", "a", "b") returns the name of the result."""

    def __init__(self, *shapes):
        self.nodes, self.weights = [], []
        self.inputs = [helper.make_tensor_value_info(f"x{i}", TensorProto.FLOAT, shape)
                       for i, shape in enumerate(shapes)]

    def op(self, kind, *operands, **attributes):
        names = [o if isinstance(o, str) else self.constant(o) for o in operands]
        name = f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, names, [name], name=f"n{len(self.nodes)}", **attributes))
        return name

    def constant(self, value):
        array = numpy.asarray(value)
        array = array.astype(numpy.float32) if array.dtype == numpy.float64 else array
        name = f"c{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(array, name))
        return name

    def done(self, *outputs):
        values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs]
        graph = helper.make_graph(self.nodes, "g", self.inputs, values, self.weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def times_one():
    m = Model(["N", 4])
    return m.done(m.op("Relu", m.op("Mul", 1.0, m.op("Neg", "x0"))))


def plus_zero():
    m = Model(["N", 4])
    return m.done(m.op("Relu", m.op("Add", m.op("Neg", "x0"), 0.0)))


def transposed_twice():
    m = Model([2, 3, 4, 5])
    t = m.op("Transpose", m.op("Transpose", "x0", perm=[0, 2, 3, 1]), perm=[1, 0, 3, 2])
    return m.done(m.op("Relu", t))


def reshaped_twice():
    m = Model([2, 3, 4])
    a = m.op("Reshape", "x0", numpy.array([6, 4]))
    return m.done(m.op("Reshape", a, numpy.array([4, 6])))


def gelu_halved_last():
    m = Model(["N", 8])
    p = m.op("Add", 1.0, m.op("Erf", m.op("Div", "x0", 2 ** 0.5)))
    return m.done(m.op("Mul", 0.5, m.op("Mul", p, "x0")))


def gelu_halved_sum():
    m = Model(["N", 8])
    h = m.op("Mul", 0.5, m.op("Erf", m.op("Mul", "x0", 0.5 ** 0.5)))
    return m.done(m.op("Mul", m.op("Add", 0.5, h), "x0"))


def gelu_tanh():
    m = Model(["N", 8])
    cube = m.op("Mul", "x0", m.op("Mul", "x0", "x0"))
    inner = m.op("Add", m.op("Mul", 0.044715, cube), "x0")
    t = m.op("Tanh", m.op("Mul", (2 / numpy.pi) ** 0.5, inner))
    return m.done(m.op("Mul", "x0", m.op("Add", 0.5, m.op("Mul", t, 0.5))))


def silu():
    m = Model(["N", 8])
    return m.done(m.op("Div", "x0", m.op("Add", 1.0, m.op("Exp", m.op("Neg", "x0")))))


def hard_swish():
    m = Model([2, 3, 4, 4])
    high = m.op("Min", m.op("Max", m.op("Add", "x0", 3.0), 0.0), 6.0)
    return m.done(m.op("Div", m.op("Mul", "x0", high), 6.0))


def hard_sigmoid():
    m = Model([2, 3, 4, 4])
    a = m.op("Add", m.op("Mul", 0.25, "x0"), 0.5)
    return m.done(m.op("Clip", a, 0.0, 1.0))


def softplus():
    m = Model(["N", 8])
    return m.done(m.op("Log", m.op("Add", m.op("Exp", "x0"), 1.0)))


def mish():
    m = Model(["N", 8])
    s = m.op("Log", m.op("Add", 1.0, m.op("Exp", "x0")))
    return m.done(m.op("Mul", m.op("Tanh", s), "x0"))


def layer_norm():
    m = Model([2, 5, 16])
    random = numpy.random.default_rng(1)
    d = m.op("Sub", "x0", m.op("ReduceMean", "x0", axes=[-1], keepdims=1))
    v = m.op("ReduceMean", m.op("Mul", d, d), axes=[-1], keepdims=1)
    n = m.op("Div", d, m.op("Sqrt", m.op("Add", v, 1e-5)))
    return m.done(m.op("Add", random.normal(size=16), m.op("Mul", n, random.normal(size=16))))


def variance():
    m = Model([2, 5, 16])
    mean = m.op("ReduceMean", "x0", axes=[2], keepdims=1)
    squares = m.op("ReduceMean", m.op("Mul", "x0", "x0"), axes=[2], keepdims=1)
    return m.done(m.op("Sub", squares, m.op("Mul", mean, mean)), mean)


def rms_norm():
    m = Model([2, 5, 16])
    v = m.op("ReduceMean", m.op("Pow", "x0", 2.0), axes=[-1], keepdims=1)
    r = m.op("Pow", m.op("Add", 1e-6, v), -0.5)
    return m.done(m.op("Mul", numpy.random.default_rng(2).normal(size=16), m.op("Mul", r, "x0")))


def attention():
    m = Model([1, 2, 6, 16], [1, 2, 7, 16], [1, 2, 7, 16])
    q, k, v = (m.op("Neg", f"x{i}") for i in range(3))
    s = m.op("Div", m.op("MatMul", q, m.op("Transpose", k, perm=[0, 1, 3, 2])), 4.0)
    return m.done(m.op("MatMul", m.op("Softmax", s, axis=-1), v))


MODELS = [times_one, plus_zero, transposed_twice, reshaped_twice, gelu_halved_last, gelu_halved_sum, gelu_tanh, silu,
          hard_swish, hard_sigmoid, softplus, mish, layer_norm, variance, rms_norm, attention]


def compute(model, feeds):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    source = model if isinstance(model, str) else model.SerializeToString()
    return onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"]).run(None, feeds)


def draw(model, random):
    return {i.name: random.normal(scale=2, size=[d.dim_value or 3 for d in i.type.tensor_type.shape.dim]
                                  ).astype(numpy.float32) for i in model.graph.input}


def rewrite(mscgym, model, rules, *options):
    onnx.save(model, "model.onnx")
    return subprocess.run([mscgym, "rewrite", "model.onnx", "--rules", rules, "--before-passes", *options],
                          capture_output=True, text=True)


def check(mscgym, make, random):
    model = make()
    done = rewrite(mscgym, model, RULES, "-o", "out.onnx", "--json")
    if done.returncode:
        return done.stderr.strip()
    counts = {row["rule"]: row["rewrites"] for row in json.loads(done.stdout)["rules"] if row["rewrites"]}
    if counts.get(make.__name__) != 1:
        return f"expected one rewrite by {make.__name__}, found {counts}"
    feeds = draw(model, random)
    largest = max(float(numpy.abs(a - b).max())
                  for a, b in zip(compute(model, feeds), compute("out.onnx", feeds), strict=True))
    print(f"{make.__name__}: {counts}, largest difference {largest:.1e}")
    return "" if largest <= 1e-5 else f"outputs differ by {largest}"


def check_wrong(mscgym):
    m = Model(["N", 8])
    model = m.done(m.op("Mul", "x0", m.op("Sigmoid", "x0")))
    with open("wrong.msc", "w") as file:
        file.write(WRONG)
    done = rewrite(mscgym, model, "wrong.msc", "-o", "wrong.onnx", "--counterexample", "wrong.npz")
    if done.returncode == 0 or os.path.exists("wrong.onnx") or len(done.stderr.splitlines()) != 1:
        return f"the wrong rule is not refused with one line: {done.stderr}"
    print(done.stderr.strip())
    example = numpy.load("wrong.npz")
    expected, = compute(model, {"x0": example["x"]})
    if numpy.abs(expected - example["match.y"]).max() > 1e-5:
        return "the outputs of the match are not ONNX Runtime's"
    return "" if numpy.abs(expected - example["replace.y"]).max() > 1e-3 else "the example shows nothing"


LIBRARY = """
rule conv_relu {
  match {
    ID c IN: x,w OPTYPE: nn.conv2d
    ID y IN: c OPTYPE: nn.relu
  }
  replace holding { ID y IN: x,w OPTYPE: msc.external ATTRS: domain=library op=ConvRelu attr_fast="int 1" }
}
"""


def check_library(mscgym, random):
    """Two calls with equal bodies share a function, the third has an overload; ONNX Runtime computes the functions."""
    m = Model(["N", 4, 9, 9])
    value = "x0"
    for strides in ([1, 1], [1, 1], [2, 2]):
        weight = m.constant(random.normal(size=(4, 4, 3, 3)).astype("float32") / 6)
        value = m.op("Relu", m.op("Conv", value, weight, strides=strides, pads=[1, 1, 1, 1]))
    model = m.done(m.op("Neg", value))
    with open("library.msc", "w") as file:
        file.write(LIBRARY)
    done = rewrite(mscgym, model, "library.msc", "-o", "library.onnx")
    if done.returncode:
        return done.stderr.strip()
    marked = onnx.load("library.onnx")
    onnx.checker.check_model(marked, full_check=True)
    found = [(node.domain, node.op_type, node.overload, node.attribute[0].i) for node in marked.graph.node[:-1]]
    if found != [("library", "ConvRelu", overload, 1) for overload in ("", "", "1")] or len(marked.functions) != 2:
        return f"calls {found}, {len(marked.functions)} functions"
    feeds = draw(model, random)
    expected, = compute(model, feeds)
    largest = max(float(numpy.abs(compute(form, feeds)[0] - expected).max())
                  for form in ("library.onnx", onnx.inliner.inline_local_functions(marked)))
    print(f"library: {found}, largest difference {largest:.1e}")
    return "" if largest <= 1e-5 else f"outputs differ by {largest}"


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    mscgym = os.path.abspath(sys.argv[1])
    failed = 0
    random = numpy.random.default_rng(7)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for make in MODELS:
            why = check(mscgym, make, random)
            failed += bool(why)
            print(f"{make.__name__}: {why}" if why else f"{make.__name__}: ok")
        why = check_wrong(mscgym)
        failed += bool(why)
        print(why or "wrong rule: ok")
        why = check_library(mscgym, random)
        failed += bool(why)
        print(why or "library: ok")
        os.chdir("/")
    print(f"{len(MODELS)} rules, {failed} failures")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
