#!/usr/bin/env python3
"""Writes operators.onnx: a network with operators of a made-up domain.

usage: make_operators.py

- Blur has attributes of all types, and its output's type is stated in value_info
- Choose has a graph in an attribute, which reads r1, a value of the network, and calls operators of two other domains
  (the name of one ends the name of the other)
- Count has an output whose length nothing determines, and an optional input that is absent
"""
import os

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

HERE = os.path.dirname(os.path.abspath(__file__))


def info(name, shape, dtype=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, dtype, shape)


def main():
    rng = np.random.default_rng(1)
    body = helper.make_graph(
        [helper.make_node("Add", ["r1", "one"], ["sum"]),
         helper.make_node("Twist", ["sum"], ["turned"], domain="other.domain"),
         helper.make_node("Twist", ["turned"], ["twisted"], domain="r.domain")],
        "body", [], [info("twisted", ["N", 4])],
        [numpy_helper.from_array(np.ones(1, np.float32), "one")])
    blur = helper.make_node("Blur", ["r1", "kernel"], ["blurred"], "blur", domain="made.up", step=2, gain=0.1,
                            note="two columns", sizes=[3, -1], scales=[0.5, 2.0], names=["a", "b,c\""], one=[7],
                            table=numpy_helper.from_array(np.arange(6, dtype=np.int64).reshape(2, 3), "t"),
                            odd=float("nan"), raw=b"\x00\xff")
    nodes = [
        helper.make_node("Relu", ["x"], ["r1"], "relu1"),
        blur,
        helper.make_node("Choose", ["blurred"], ["chosen"], "choose", domain="made.up", body=body),
        helper.make_node("Count", ["chosen", "", "chosen"], ["counted"], "count", domain="made.up"),
        helper.make_node("MatMul", ["chosen", "w"], ["y"], "linear"),
    ]
    graph = helper.make_graph(
        nodes, "operators", [info("x", ["N", 4])],
        [info("y", ["N", 3]), info("counted", ["found", 2], TensorProto.INT64)],
        [numpy_helper.from_array(np.array([0.25, 0.75], np.float32), "kernel"),
         numpy_helper.from_array(rng.standard_normal((4, 3)).astype(np.float32), "w")],
        value_info=[info("blurred", ["N", 4]), info("chosen", ["N", 4])])
    model = helper.make_model(graph, ir_version=8, opset_imports=[
        helper.make_opsetid("", 17), helper.make_opsetid("made.up", 3), helper.make_opsetid("other.domain", 2),
        helper.make_opsetid("r.domain", 2)])
    onnx.checker.check_model(model)
    onnx.save(model, os.path.join(HERE, "operators.onnx"))


if __name__ == "__main__":
    main()
