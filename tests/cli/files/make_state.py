#!/usr/bin/env python3
"""Makes the models of the case `state`, whose outputs feed their inputs from chunk to chunk. Needs
numpy, onnx and onnxruntime.

- state.onnx: an LSTM over x [3,1,4] times gain [], from hidden state h and cell state c [1,1,5]. y
  [3,1,2] is a product with its outputs; hn and cn are its last hidden and cell state.
- state.npz: x of 12 chunks, and gain. state_x.npy: the first 6 chunks. state_y.npy, state_hn.npy,
  state_cn.npy: their outputs in ONNX Runtime, one run per chunk, starting from zeros.
- state_branch.onnx: if mode is 1, hn [1,2] is the sum of x and h; otherwise it has another number
  of dimensions. state_branch_hn.npy: ONNX Runtime's output for state_branch_x.npy, 3 chunks of
  integers, with mode 1 (state_branch_mode.npy).
"""
import os

import numpy
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

HERE = os.path.dirname(os.path.abspath(__file__))
FLOAT = TensorProto.FLOAT


def value(name, shape):
    return helper.make_tensor_value_info(name, FLOAT, shape)


def make_model(rng):
    def draw(*shape):
        return rng.uniform(-0.7, 0.7, shape).astype("float32")

    arrays = {"w": draw(1, 20, 4), "r": draw(1, 20, 5), "b": draw(1, 40), "v": draw(5, 2)}
    nodes = [helper.make_node("Mul", ["x", "gain"], ["louder"], name="louder"),
             helper.make_node("LSTM", ["louder", "w", "r", "b", "", "h", "c"],
                              ["all", "hn", "cn"], name="lstm", hidden_size=5),
             helper.make_node("Squeeze", ["all", "one"], ["rows"], name="squeeze"),
             helper.make_node("MatMul", ["rows", "v"], ["y"], name="product")]
    arrays["one"] = numpy.array([1], "int64")
    initializers = [numpy_helper.from_array(a, n) for n, a in arrays.items()]
    state = [1, 1, 5]
    graph = helper.make_graph(nodes, "state", [value("x", [3, 1, 4]), value("h", state),
                                               value("c", state), value("gain", [])],
                              [value("y", [3, 1, 2]), value("hn", state), value("cn", state)],
                              initializers)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)])
    model.ir_version = 8
    onnx.checker.check_model(model)
    return model


def make_branch():
    def body(name, node):
        return helper.make_graph([node], name, [], [helper.make_tensor_value_info(
            node.output[0], FLOAT, None)])

    then = body("then", helper.make_node("Add", ["x", "h"], ["sum"], name="add"))
    other = body("else", helper.make_node("Squeeze", ["x"], ["flat"], name="squeeze"))
    nodes = [helper.make_node("Equal", ["mode", "one"], ["c"], name="equal"),
             helper.make_node("If", ["c"], ["hn"], name="if", then_branch=then, else_branch=other)]
    arrays = {"one": numpy.array(1, "int64")}
    graph = helper.make_graph(
        nodes, "branch",
        [value("x", [1, 2]), value("h", [1, 2]),
         helper.make_tensor_value_info("mode", TensorProto.INT64, [])],
        [helper.make_tensor_value_info("hn", FLOAT, None)],
        [numpy_helper.from_array(a, n) for n, a in arrays.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)])
    model.ir_version = 8
    path = os.path.join(HERE, "state_branch.onnx")
    onnx.save(model, path)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    x, mode = numpy.array([[[1, 2]], [[3, -4]], [[5, 6]]], "float32"), numpy.array(1, "int64")
    h, rows = numpy.zeros((1, 2), "float32"), []
    for chunk in x:
        h, = session.run(None, {"x": chunk, "h": h, "mode": mode})
        rows.append(h)
    for name, array in (("x", x), ("mode", mode), ("hn", numpy.stack(rows))):
        numpy.save(os.path.join(HERE, f"state_branch_{name}.npy"), array)


def main():
    make_branch()
    rng = numpy.random.default_rng(9)
    path = os.path.join(HERE, "state.onnx")
    onnx.save(make_model(rng), path)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    x = rng.uniform(-1, 1, (12, 3, 1, 4)).astype("float32")
    gain = numpy.array(1.5, "float32")
    numpy.savez(os.path.join(HERE, "state.npz"), x=x, gain=gain)
    h = c = numpy.zeros((1, 1, 5), "float32")
    rows = []
    for chunk in x[:6]:
        y, h, c = session.run(None, {"x": chunk, "h": h, "c": c, "gain": gain})
        rows.append((y, h, c))
    numpy.save(os.path.join(HERE, "state_x.npy"), x[:6])
    numpy.save(os.path.join(HERE, "state_gain.npy"), gain)
    for name, arrays in zip(("y", "hn", "cn"), zip(*rows)):
        numpy.save(os.path.join(HERE, f"state_{name}.npy"), numpy.stack(arrays))
    # The last three of the 6 chunks, and the state that they start from.
    numpy.save(os.path.join(HERE, "state_x_late.npy"), x[3:6])
    numpy.save(os.path.join(HERE, "state_h_late.npy"), rows[2][1])
    numpy.save(os.path.join(HERE, "state_c_late.npy"), rows[2][2])


if __name__ == "__main__":
    main()
