"""Writes made_up.onnx, a network with two operators of the domain "made.up", samples and expected outputs.

    python3 make_model.py .

It needs numpy and onnx, and writes to the folder that it gets. `OPERATORS` are the two operators for onnx.reference, which computes the expected outputs.
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
        moved = np.roll(x, step, axis=-1)
        return ((kernel[0] * moved + kernel[1] * x) * np.float32(gain)).astype(np.float32),


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

    def value(name, *shape):
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N", *shape])

    table = numpy_helper.from_array(np.arange(6, dtype=np.int64).reshape(2, 3), "t")
    nodes = [
        helper.make_node("Conv", ["x", "w1", "b1"], ["c1"], "conv1", pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c1"], ["r1"], "relu1"),
        helper.make_node("Blur", ["r1", "kernel"], ["blurred"], "blur", domain=DOMAIN, step=2, gain=0.5,
                         note="two columns", sizes=[3, 1], scales=[0.5, 2.0], names=["a", "b,c"], table=table),
        helper.make_node("Conv", ["blurred", "w2", "b2"], ["c2"], "conv2", pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c2"], ["r2"], "relu2"),
        helper.make_node("GlobalAveragePool", ["r2"], ["p"], "pool"),
        helper.make_node("Flatten", ["p"], ["f"], "flatten"),
        helper.make_node("Fold", ["f"], ["folded", "largest"], "fold", domain=DOMAIN, mode="add"),
        helper.make_node("Gemm", ["folded", "w3", "b3"], ["y"], "fc", transB=1),
    ]
    graph = helper.make_graph(
        nodes, "made_up", [value("x", 3, 8, 8)], [value("y", 5), value("largest")],
        [weight("w1", 8, 3, 3, 3), weight("b1", 8), weight("kernel", 2), weight("w2", 12, 8, 3, 3), weight("b2", 12),
         weight("w3", 5, 6), weight("b3", 5)],
        value_info=[value("blurred", 8, 8, 8), value("folded", 6)])  # the types of the operators' outputs
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid(DOMAIN, 3)],
                             ir_version=8)


def main():
    folder = sys.argv[1]
    made = model()
    onnx.checker.check_model(made)
    onnx.save(made, f"{folder}/made_up.onnx")
    x = np.random.default_rng(7).standard_normal((16, 3, 8, 8)).astype(np.float32)
    y, largest = ReferenceEvaluator(made, new_ops=OPERATORS).run(None, {"x": x})
    np.savez(f"{folder}/made_up.npz", x=x)
    np.savez(f"{folder}/made_up_expected.npz", y=y, largest=largest)


if __name__ == "__main__":
    main()
