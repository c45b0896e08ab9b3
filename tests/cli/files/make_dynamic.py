#!/usr/bin/env python3
"""Makes the models of the case `dynamic`, whose branches or lengths depend on input values. Needs
numpy, onnx and onnxruntime.

- branch.onnx: if mode is 1 a convolution of x [1,2,4,4], otherwise another one and Relu; then Gemm
  to y [1,3].
- detect.onnx: boxes and scores of the 16 positions of x [1,2,4,4], NonMaxSuppression, and a MatMul
  over the K boxes that are kept: head [K,2].
- fixed.onnx: no input; y is a sum of constants.
- steps.onnx: y [T,2] is the running sum of x [T,2] over its rows, plus h [1,2].
- positions.onnx: x [1,T,4] plus positions [T] times a row, as a product; queries of the result
  times a table that depends only on T, as another product; y [1,T,4]. Samples have 3 or 5 rows.
- jump.onnx: y [1,4,6,6] is the parity of a convolution of x [1,16,8,8] times 2^18. The last bit of
  a sum decides it, so another order of additions gives other zeros and ones.
- cancel.onnx: y [1,4,1,1] is a convolution of x [1,16,8,8], times 2^18, whose terms cancel in
  pairs of channels. It is 0 or the rounding error of another order of additions.

NAME_*.npy are ONNX Runtime's outputs. In all models but the last two, numbers are small integers,
so that every order of additions gives the same bits.
"""
import os

import numpy
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

HERE = os.path.dirname(os.path.abspath(__file__))
FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64


def value(name, kind, shape):
    return helper.make_tensor_value_info(name, kind, shape)


def save(name, nodes, inputs, outputs, arrays):
    initializers = [numpy_helper.from_array(a, n) for n, a in arrays.items()]
    graph = helper.make_graph(nodes, name, inputs, outputs, initializers)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
    model.ir_version = 8
    onnx.checker.check_model(model)
    path = os.path.join(HERE, name + ".onnx")
    onnx.save(model, path)
    return onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])


def keep(name, array):
    numpy.save(os.path.join(HERE, name + ".npy"), array)


def whole(rng, low, high, shape):
    return rng.integers(low, high, size=shape).astype("float32")


def make_branch(rng, x):
    def body(name, nodes, output):
        return helper.make_graph(nodes, name, [], [value(output, FLOAT, ["N", 2, 4, 4])])

    def conv(name, weight, output):
        return helper.make_node("Conv", ["x", weight], [output], name=name, pads=[1, 1, 1, 1])

    then = body("then", [conv("conv", "w_then", "t")], "t")
    other = body("else", [conv("conv", "w_else", "e"),
                          helper.make_node("Relu", ["e"], ["r"], name="relu")], "r")
    nodes = [helper.make_node("Equal", ["mode", "one"], ["c"], name="equal"),
             helper.make_node("If", ["c"], ["b"], name="if_1", then_branch=then,
                              else_branch=other),
             helper.make_node("Flatten", ["b"], ["f"], name="flatten"),
             helper.make_node("Gemm", ["f", "w_fc"], ["y"], name="fc")]
    session = save("branch", nodes, [value("x", FLOAT, ["N", 2, 4, 4]), value("mode", INT64, [])],
                   [value("y", FLOAT, ["N", 3])],
                   {"one": numpy.array(1, "int64"), "w_then": whole(rng, -2, 3, (2, 2, 3, 3)),
                    "w_else": whole(rng, -2, 3, (2, 2, 3, 3)), "w_fc": whole(rng, -2, 3, (32, 3))})
    for mode in range(2):
        keep(f"branch_mode{mode}", numpy.array(mode, "int64"))
        keep(f"branch_y{mode}",
             session.run(None, {"x": x[:1], "mode": numpy.array(mode, "int64")})[0])
    numpy.savez(os.path.join(HERE, "branch.npz"), x=x, mode=numpy.zeros(len(x), "int64"))
    numpy.savez(os.path.join(HERE, "branch_both.npz"), x=x,
                mode=numpy.arange(len(x), dtype="int64") % 2)


def make_detect(rng, x):
    nodes = [helper.make_node("Conv", ["x", "w_box"], ["cb"], name="conv_box"),
             helper.make_node("Conv", ["x", "w_score"], ["cs"], name="conv_score"),
             helper.make_node("Reshape", ["cb", "box_shape"], ["rb"], name="reshape_box"),
             helper.make_node("Transpose", ["rb"], ["boxes"], name="transpose", perm=[0, 2, 1]),
             helper.make_node("Reshape", ["cs", "score_shape"], ["scores"], name="reshape_score"),
             helper.make_node("NonMaxSuppression",
                              ["boxes", "scores", "most", "overlap", "threshold"], ["kept"],
                              name="nms"),
             helper.make_node("Gather", ["kept", "two"], ["place"], name="place", axis=1),
             helper.make_node("Squeeze", ["boxes", "zero"], ["all"], name="squeeze"),
             helper.make_node("Gather", ["all", "place"], ["chosen"], name="chosen"),
             helper.make_node("MatMul", ["chosen", "w_head"], ["head"], name="head")]
    int64 = {"box_shape": [1, 4, 16], "score_shape": [1, 1, 16], "most": [2 ** 63 - 1], "two": 2,
             "zero": [0]}
    arrays = {n: numpy.array(v, "int64") for n, v in int64.items()}
    arrays.update({"overlap": numpy.array([0.5], "float32"),
                   "threshold": numpy.array([2.5], "float32"),
                   "w_box": whole(rng, -3, 4, (4, 2, 1, 1)),
                   "w_score": whole(rng, 1, 3, (1, 2, 1, 1)), "w_head": whole(rng, -2, 3, (4, 2))})
    session = save("detect", nodes, [value("x", FLOAT, [1, 2, 4, 4])],
                   [value("scores", FLOAT, [1, 1, 16]), value("kept", INT64, ["K", 3]),
                    value("head", FLOAT, ["K", 2])], arrays)
    for i in range(2):
        keep(f"detect_x{i}", x[i:i + 1])
        _, kept, head = session.run(None, {"x": x[i:i + 1]})
        print(kept.shape)
        keep(f"detect_kept{i}", kept)
        keep(f"detect_head{i}", head)
    numpy.savez(os.path.join(HERE, "detect.npz"), x=x)
    # Samples for which no box is kept.
    numpy.savez(os.path.join(HERE, "detect_none.npz"), x=numpy.zeros_like(x[:2]))


def make_positions(rng):
    nodes = [helper.make_node("Shape", ["x"], ["dims"], name="shape"),
             helper.make_node("Gather", ["dims", "one"], ["length"], name="length"),
             helper.make_node("Range", ["zero", "length", "one"], ["places"], name="range"),
             helper.make_node("Cast", ["places"], ["floats"], name="cast", to=FLOAT),
             helper.make_node("Unsqueeze", ["floats", "axis"], ["column"], name="column"),
             helper.make_node("Transpose", ["column"], ["line"], name="line", perm=[1, 0]),
             helper.make_node("MatMul", ["rates", "line"], ["angles"], name="angles"),
             helper.make_node("Transpose", ["angles"], ["turned"], name="turned", perm=[1, 0]),
             helper.make_node("Add", ["x", "turned"], ["placed"], name="placed"),
             helper.make_node("MatMul", ["placed", "w_query"], ["query"], name="query"),
             helper.make_node("Mul", ["column", "scale"], ["table"], name="table"),
             helper.make_node("Transpose", ["table"], ["keys"], name="keys", perm=[1, 0]),
             helper.make_node("MatMul", ["query", "keys"], ["scores"], name="scores"),
             helper.make_node("MatMul", ["scores", "placed"], ["y"], name="mix")]
    session = save("positions", nodes, [value("x", FLOAT, [1, "T", 4])],
                   [value("y", FLOAT, [1, "T", 4])],
                   {"zero": numpy.array(0, "int64"), "one": numpy.array(1, "int64"),
                    "axis": numpy.array([1], "int64"), "rates": whole(rng, -2, 3, (4, 1)),
                    "scale": whole(rng, -2, 3, (1, 4)), "w_query": whole(rng, -2, 3, (4, 4))})
    samples = {f"x/{i}": whole(rng, -4, 5, (1, 3 + i % 2 * 2, 4)) for i in range(6)}
    for i in range(2):
        keep(f"positions_x{i}", samples[f"x/{i}"])
        keep(f"positions_y{i}", session.run(None, {"x": samples[f"x/{i}"]})[0])
    numpy.savez(os.path.join(HERE, "positions.npz"), **samples)


def make_steps(rng):
    session = save("steps", [helper.make_node("CumSum", ["x", "axis"], ["s"], name="sum"),
                             helper.make_node("Add", ["s", "h"], ["y"], name="add")],
                   [value("x", FLOAT, ["T", 2]), value("h", FLOAT, [1, 2])],
                   [value("y", FLOAT, ["T", 2])], {"axis": numpy.array(0, "int64")})
    x, h = whole(rng, -4, 5, (3, 2)), whole(rng, -4, 5, (1, 2))
    keep("steps_x", x)
    keep("steps_h", h)
    keep("steps_y", session.run(None, {"x": x, "h": h})[0])


def make_jump(rng):
    nodes = [helper.make_node("Conv", ["x", "w"], ["c"], name="conv"),
             helper.make_node("Mul", ["c", "large"], ["scaled"], name="scale"),
             helper.make_node("Floor", ["scaled"], ["whole"], name="floor"),
             helper.make_node("Mod", ["whole", "two"], ["y"], name="parity", fmod=1)]
    save("jump", nodes, [value("x", FLOAT, [1, 16, 8, 8])], [value("y", FLOAT, [1, 4, 6, 6])],
         {"w": rng.random((4, 16, 3, 3), "float32"), "large": numpy.array(2 ** 18, "float32"),
          "two": numpy.array(2, "float32")})
    numpy.save(os.path.join(HERE, "jump_x.npy"), rng.random((1, 16, 8, 8), "float32"))


def make_cancel(rng):
    x = rng.random((1, 8, 8, 8), "float32")
    w = rng.random((4, 8, 8, 8), "float32") - numpy.float32(0.5)
    nodes = [helper.make_node("Conv", ["x", "w"], ["c"], name="conv"),
             helper.make_node("Mul", ["c", "large"], ["y"], name="scale")]
    save("cancel", nodes, [value("x", FLOAT, [1, 16, 8, 8])], [value("y", FLOAT, [1, 4, 1, 1])],
         {"w": numpy.stack([w, -w], 2).reshape(4, 16, 8, 8), "large": numpy.array(2 ** 18, "float32")})
    numpy.save(os.path.join(HERE, "cancel_x.npy"), numpy.repeat(x, 2, 1))


def main():
    rng = numpy.random.default_rng(5)
    x = whole(rng, -4, 5, (6, 2, 4, 4))
    make_branch(rng, x)
    make_detect(rng, x)
    make_positions(numpy.random.default_rng(6))
    make_steps(numpy.random.default_rng(7))
    make_jump(numpy.random.default_rng(8))
    make_cancel(numpy.random.default_rng(9))
    session = save("fixed", [helper.make_node("Add", ["a", "b"], ["y"], name="add")], [],
                   [value("y", FLOAT, [3])], {"a": numpy.array([1, 2, 3], "float32"),
                                              "b": numpy.array([4, 4, 4], "float32")})
    keep("fixed_y", session.run(None, {})[0])


if __name__ == "__main__":
    main()
