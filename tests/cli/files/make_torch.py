#!/usr/bin/env python3
"""Makes models as torch's exporters write them, without torch. Needs numpy and onnx.

    make_torch.py

- torch_lstm.onnx: two layers of nn.LSTM by torch.onnx.export(dynamo=False). The initial state is
  made by ConstantOfShape for the size of the batch, and sliced for each layer.
- torch_gru.onnx: nn.GRU in both directions with dynamo=True. The initial state is made by Expand;
  the directions are joined by a Reshape whose shape is computed from dimensions.
- torch_attention.onnx: two blocks of F.scaled_dot_product_attention and a feed-forward layer with
  dynamo=True. Keys are transposed by way of [samples and heads, rows, size]. All biases are a
  single tensor, as the exporter merges equal ones.

torch_*.npz have the inputs.
"""
import os

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

HERE = os.path.dirname(os.path.abspath(__file__))
RNG = np.random.default_rng(7)


class Model:
    def __init__(self):
        self.nodes, self.inits = [], {}

    def weight(self, name, *shape):
        self.inits[name] = (RNG.standard_normal(shape) / np.sqrt(shape[-1])).astype(np.float32)
        return name

    def integers(self, *values):
        name = "ints_" + "_".join(str(v).replace("-", "m") for v in values)
        self.inits[name] = np.array(values, np.int64)
        return name

    def node(self, op, inputs, name, outputs=1, **attributes):
        names = [name] + [f"{name}_{i}" for i in range(1, outputs)]
        self.nodes.append(helper.make_node(op, inputs, names, name=f"node_{name}", **attributes))
        return name

    def part(self, shape, first, end, name):
        """Part of a shape's dimensions, cut by Slice."""
        return self.node("Slice", [shape, self.integers(first), self.integers(end)], name)

    def save(self, name, shape, y, opset):
        self.node("Identity", [y], "y")
        graph = helper.make_graph(
            self.nodes, "main_graph",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", *shape])],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
            [numpy_helper.from_array(v, k) for k, v in self.inits.items()])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
        model.ir_version = 8
        model = onnx.shape_inference.infer_shapes(model)
        onnx.checker.check_model(model)
        onnx.save(model, os.path.join(HERE, name + ".onnx"))
        x = RNG.standard_normal((24, *shape)).astype(np.float32)
        np.savez(os.path.join(HERE, name + ".npz"), x=x)


def make_lstm():
    m, hidden = Model(), 12
    length = m.node("Gather", [m.node("Shape", ["x"], "shape"), "zero"], "length", axis=0)
    m.inits["zero"] = np.array(0, np.int64)
    batch = m.node("Unsqueeze", [length, m.integers(0)], "batch")
    shape = m.node("Concat", [m.integers(2), batch, m.integers(hidden)], "states", axis=0)
    number = helper.make_tensor("value", TensorProto.FLOAT, [1], [0])
    zeros = m.node("ConstantOfShape", [shape], "zeros", value=number)
    h = m.node("Transpose", ["x"], "turned", perm=[1, 0, 2])
    for i, n_in in enumerate((6, hidden)):
        state = m.node("Slice", [zeros, m.integers(i), m.integers(i + 1), m.integers(0)],
                       f"state{i}")
        h = m.node("LSTM", [h, m.weight(f"lstm{i}.weight", 1, 4 * hidden, n_in),
                            m.weight(f"lstm{i}.recurrence", 1, 4 * hidden, hidden),
                            m.weight(f"lstm{i}.bias", 1, 8 * hidden), "", state, state],
                   f"lstm{i}", outputs=3, hidden_size=hidden)
        h = m.node("Squeeze", [h, m.integers(1)], f"squeezed{i}")
    h = m.node("Transpose", [h], "back", perm=[1, 0, 2])
    m.inits["last"] = np.array(-1, np.int64)
    h = m.node("Gather", [h, "last"], "select", axis=1)
    m.weight("fc.weight", 3, hidden), m.weight("fc.bias", 3)
    m.save("torch_lstm", (5, 6), m.node("Gemm", [h, "fc.weight", "fc.bias"], "fc", transB=1), 17)


def make_gru():
    m, hidden = Model(), 8
    batch = m.node("Shape", ["x"], "length", start=0, end=1)
    shape = m.node("Concat", [m.integers(2), batch, m.integers(hidden)], "states", axis=0)
    m.inits["nothing"] = np.array(0, np.float32)
    zeros = m.node("Expand", ["nothing", shape], "zeros")
    h = m.node("Transpose", ["x"], "turned", perm=[1, 0, 2])
    h = m.node("GRU", [h, m.weight("gru.weight", 2, 3 * hidden, 6),
                       m.weight("gru.recurrence", 2, 3 * hidden, hidden),
                       m.weight("gru.bias", 2, 6 * hidden), "", zeros], "gru",
               hidden_size=hidden, direction="bidirectional", linear_before_reset=1)
    h = m.node("Transpose", [h], "sides", perm=[0, 2, 1, 3])
    shape = m.node("Shape", [h], "sides_shape", start=0)
    joined = m.node("Concat", [m.part(shape, 0, 1, "rows"), m.part(shape, 1, 2, "samples"),
                               m.integers(-1)], "joined_shape", axis=0)
    h = m.node("Reshape", [h, joined], "joined")
    h = m.node("Transpose", [h], "back", perm=[1, 0, 2])
    h = m.node("ReduceMean", [h, m.integers(1)], "mean", keepdims=0)
    m.weight("fc.weight", 3, 2 * hidden), m.weight("fc.bias", 3)
    m.save("torch_gru", (5, 6), m.node("Gemm", [h, "fc.weight", "fc.bias"], "fc", transB=1), 18)


def make_attention():
    m, size, heads = Model(), 16, 4
    x = "x"
    m.inits["scale"] = np.array(np.sqrt(0.5), np.float32)
    m.inits["zeros"] = np.full(size, 0.125, np.float32)
    m.inits["ones"] = np.ones(size, np.float32)
    for b in range(2):
        parts, normed = {}, m.node("LayerNormalization", [x, "ones", "zeros"], f"{b}.norm", axis=-1)
        for part in "qkv":
            h = m.node("MatMul", [normed, m.weight(f"{b}.{part}.weight", size, size)], f"{b}.{part}")
            h = m.node("Add", [h, "zeros"], f"{b}.{part}.linear")
            h = m.node("Reshape", [h, m.integers(-1, 5, heads, size // heads)], f"{b}.{part}.view",
                       allowzero=1)
            parts[part] = m.node("Transpose", [h], f"{b}.{part}.heads", perm=[0, 2, 1, 3])
        shape = m.node("Shape", [parts["k"]], f"{b}.shape", start=0)
        length = m.node("Slice", [shape, m.integers(-1), m.integers(2 ** 63 - 1)], f"{b}.size")
        rows = m.part(shape, -2, -1, f"{b}.rows")
        outer = m.part(shape, -2 ** 63, -2, f"{b}.outer")
        k = m.node("Concat", [m.integers(-1), rows, length], f"{b}.flat_shape", axis=0)
        k = m.node("Reshape", [parts["k"], k], f"{b}.flat", allowzero=0)
        k = m.node("Transpose", [k], f"{b}.flat_turned", perm=[0, 2, 1])
        back = m.node("Concat", [outer, length, rows], f"{b}.back_shape", axis=0)
        k = m.node("Reshape", [k, back], f"{b}.keys", allowzero=0)
        q = m.node("Mul", [parts["q"], "scale"], f"{b}.q.scaled")
        k = m.node("Mul", [k, "scale"], f"{b}.k.scaled")
        h = m.node("Softmax", [m.node("MatMul", [q, k], f"{b}.scores")], f"{b}.softmax", axis=-1)
        h = m.node("MatMul", [h, parts["v"]], f"{b}.mixed")
        h = m.node("Transpose", [h], f"{b}.mixed_turned", perm=[0, 2, 1, 3])
        h = m.node("Reshape", [h, m.integers(-1, 5, size)], f"{b}.joined", allowzero=1)
        h = m.node("MatMul", [h, m.weight(f"{b}.out.weight", size, size)], f"{b}.out")
        x = m.node("Add", [x, m.node("Add", [h, "zeros"], f"{b}.out.linear")], f"{b}.residual")
        h = m.node("MatMul", [x, m.weight(f"{b}.fc1.weight", size, 2 * size)], f"{b}.fc1")
        h = m.node("Relu", [h], f"{b}.relu")
        h = m.node("MatMul", [h, m.weight(f"{b}.fc2.weight", 2 * size, size)], f"{b}.fc2")
        x = m.node("Add", [x, m.node("Add", [h, "zeros"], f"{b}.fc2.linear")], f"{b}.sum")
    m.save("torch_attention", (5, size), m.node("MatMul", [x, m.weight("head", size, 3)], "head_y"),
           18)


if __name__ == "__main__":
    make_lstm()
    make_gru()
    make_attention()
