"""Writes made_up.onnx, a network with two operators of the domain "made.up", samples and expected outputs.

usage: made_up.py FOLDER

Blur averages neighbouring rows with a weight of its own and keeps the shape; Fold adds the halves of the last axis
and returns their largest element too, so that it has two outputs. A third node, Choose, has a graph in an attribute,
which reads a value of the network. The expected outputs are those of onnx.reference with the operators below.
"""
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun

DOMAIN = "made.up"


class Blur(OpRun):
    op_domain = DOMAIN

    def _run(self, x, kernel, step=1, gain=1.0, **_):
        left = np.roll(x, step, axis=-1)
        return ((kernel[0] * left + kernel[1] * x) * np.float32(gain)).astype(np.float32),


class Fold(OpRun):
    op_domain = DOMAIN

    def _run(self, x, mode=None):
        n = x.shape[-1] // 2
        y = x[..., :n] + x[..., n:] if mode == "add" else x[..., :n] - x[..., n:]
        return y, y.max(axis=-1)


OPERATORS = [Blur, Fold]


def model():
    rng = np.random.default_rng(41)

    def weight(name, *shape):
        return numpy_helper.from_array((rng.standard_normal(shape) * 0.3).astype(np.float32), name)

    nodes = [
        helper.make_node("Conv", ["x", "w1", "b1"], ["c1"], "conv1", pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c1"], ["r1"], "relu1"),
        helper.make_node("Blur", ["r1", "kernel"], ["blurred"], "blur", domain=DOMAIN, step=2, gain=0.5,
                         note="two columns", sizes=[3, 1], scales=[0.5, 2.0], names=["a", "b,c"],
                         table=numpy_helper.from_array(np.arange(6, dtype=np.int64).reshape(2, 3), "t")),
        helper.make_node("Conv", ["blurred", "w2", "b2"], ["c2"], "conv2", pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c2"], ["r2"], "relu2"),
        helper.make_node("GlobalAveragePool", ["r2"], ["p"], "pool"),
        helper.make_node("Flatten", ["p"], ["f"], "flatten"),
        helper.make_node("Fold", ["f"], ["folded", "largest"], "fold", domain=DOMAIN, mode="add"),
        helper.make_node("Gemm", ["folded", "w3", "b3"], ["y"], "fc", transB=1),
    ]
    batch = "N"
    graph = helper.make_graph(
        nodes, "made_up",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [batch, 3, 8, 8])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [batch, 5]),
         helper.make_tensor_value_info("largest", TensorProto.FLOAT, [batch])],
        [weight("w1", 8, 3, 3, 3), weight("b1", 8), weight("kernel", 2), weight("w2", 12, 8, 3, 3), weight("b2", 12),
         weight("w3", 5, 6), weight("b3", 5)],
        value_info=[helper.make_tensor_value_info("blurred", TensorProto.FLOAT, [batch, 8, 8, 8]),
                    helper.make_tensor_value_info("folded", TensorProto.FLOAT, [batch, 6])])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid(DOMAIN, 3)],
                             ir_version=8)


def main():
    folder = sys.argv[1]
    m = model()
    onnx.checker.check_model(m)
    onnx.save(m, f"{folder}/made_up.onnx")
    x = np.random.default_rng(7).standard_normal((16, 3, 8, 8)).astype(np.float32)
    y, largest = ReferenceEvaluator(m, new_ops=OPERATORS).run(None, {"x": x})
    np.savez(f"{folder}/made_up.npz", x=x)
    np.savez(f"{folder}/made_up_expected.npz", y=y, largest=largest)


if __name__ == "__main__":
    main()
