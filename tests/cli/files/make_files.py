#!/usr/bin/env python3
"""Makes the models and arrays of the command-line tests. Needs numpy, onnx and onnxruntime.

    make_files.py MSCGYM

- tiny.onnx: x [N,1,4,4] -> 3x3 convolution to 2 channels, Relu, Flatten, Gemm to y [N,3].
- outputs.npy: ONNX Runtime's outputs for the first two samples of inputs.npz.
- tiny_4.onnx: mscgym's export of tiny.onnx with 4 bits everywhere. outputs_4.npy: its outputs in
  ONNX Runtime without optimisation.
- tiny_doubled.onnx: tiny.onnx with every weight doubled.
- tiny_half.onnx: tiny.onnx with weights, inputs and outputs in float16.
- depthwise.onnx: x [N,1,4,4] -> 3x3 convolution to 6 channels, Relu, depthwise convolution,
  Flatten, Gemm to y [N,3]. Its channels have very different ranges.
"""
import json
import os
import subprocess
import sys
import tempfile

import numpy
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

HERE = os.path.dirname(os.path.abspath(__file__))


def save(model, name):
    model.ir_version = 8
    onnx.save(model, os.path.join(HERE, name))


def make(weight, op="Relu"):
    rng = numpy.random.default_rng(1)
    initializers = [
        numpy_helper.from_array(weight, "conv.weight"),
        numpy_helper.from_array(rng.normal(size=2).astype("float32"), "conv.bias"),
        numpy_helper.from_array(rng.normal(size=(3, 32)).astype("float32") / 6, "fc.weight"),
        numpy_helper.from_array(rng.normal(size=3).astype("float32"), "fc.bias"),
    ]
    nodes = [
        helper.make_node("Conv", ["x", "conv.weight", "conv.bias"], ["c"], name="conv",
                         pads=[1, 1, 1, 1], kernel_shape=[3, 3]),
        helper.make_node(op, ["c"], ["r"], name="relu"),
        helper.make_node("Flatten", ["r"], ["f"], name="flatten"),
        helper.make_node("Gemm", ["f", "fc.weight", "fc.bias"], ["y"], name="fc", transB=1),
    ]
    graph = helper.make_graph(
        nodes, "tiny",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 1, 4, 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 3])], initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])


def make_depthwise():
    rng = numpy.random.default_rng(2)
    sizes = (10.0 ** numpy.linspace(-1, 1, 6)).astype("float32").reshape(6, 1, 1, 1)
    initializers = [
        numpy_helper.from_array(rng.normal(size=(6, 1, 3, 3)).astype("float32") * sizes, "conv.weight"),
        numpy_helper.from_array(rng.normal(size=(6, 1, 3, 3)).astype("float32") / sizes, "deep.weight"),
        numpy_helper.from_array(rng.normal(size=6).astype("float32"), "deep.bias"),
        numpy_helper.from_array(rng.normal(size=(3, 96)).astype("float32") / 6, "fc.weight"),
    ]
    nodes = [
        helper.make_node("Conv", ["x", "conv.weight"], ["c"], name="conv", pads=[1, 1, 1, 1],
                         kernel_shape=[3, 3]),
        helper.make_node("Relu", ["c"], ["r"], name="relu"),
        helper.make_node("Conv", ["r", "deep.weight", "deep.bias"], ["d"], name="deep",
                         pads=[1, 1, 1, 1], kernel_shape=[3, 3], group=6),
        helper.make_node("Flatten", ["d"], ["f"], name="flatten"),
        helper.make_node("Gemm", ["f", "fc.weight"], ["y"], name="fc", transB=1),
    ]
    graph = helper.make_graph(
        nodes, "depthwise",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 1, 4, 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 3])], initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])


def double(model):
    """The same network with every weight and bias doubled, as if it had been trained further."""
    for tensor in model.graph.initializer:
        tensor.CopyFrom(numpy_helper.from_array(2 * numpy_helper.to_array(tensor), tensor.name))
    return model


def narrow(model):
    """The same network in float16."""
    for tensor in model.graph.initializer:
        tensor.CopyFrom(numpy_helper.from_array(
            numpy_helper.to_array(tensor).astype("float16"), tensor.name))
    for value in [*model.graph.input, *model.graph.output]:
        value.type.tensor_type.elem_type = TensorProto.FLOAT16
    return model


def export_4(mscgym):
    """Exports the uniform plan of 4 bits: weights stored in 4 bits, activations clipped to 16 steps."""
    with tempfile.TemporaryDirectory() as folder:
        config = {"workspace": folder, "model": os.path.join(HERE, "tiny.onnx"),
                  "dataset": {"inputs": os.path.join(HERE, "inputs.npz")},
                  "quantize": {"gym": [{"record": "r.jsonl", "env": {"choices": [{"bits": 4}]},
                                        "agent": {"type": "random"}, "budget": {"trials": 1}}]}}
        path = os.path.join(folder, "c.json")
        with open(path, "w") as file:
            json.dump(config, file)
        subprocess.run([mscgym, "search", path, "--quiet"], check=True, capture_output=True)
        out = os.path.join(HERE, "tiny_4.onnx")
        subprocess.run([mscgym, "export", os.path.join(folder, "r.jsonl"), "--trial", "0", "-o",
                        out], check=True)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(out, options, providers=["CPUExecutionProvider"])


def main():
    rng = numpy.random.default_rng(0)
    weight = rng.normal(size=(2, 1, 3, 3)).astype("float32")
    save(make(weight), "tiny.onnx")
    save(double(make(weight)), "tiny_doubled.onnx")
    save(narrow(make(weight)), "tiny_half.onnx")
    save(make(weight, "Frobnicate"), "unknown_op.onnx")
    save(make_depthwise(), "depthwise.onnx")
    broken = weight.copy()
    broken[1, 0, 2, 2] = numpy.nan
    save(make(broken), "nan_weight.onnx")

    x = rng.uniform(size=(20, 1, 4, 4)).astype("float32")
    numpy.savez(os.path.join(HERE, "inputs.npz"), x=x)
    numpy.savez(os.path.join(HERE, "inputs_other.npz"), x=x[::-1])
    numpy.savez(os.path.join(HERE, "inputs_uint8.npz"), x=(x * 255).astype("uint8"))
    numpy.savez(os.path.join(HERE, "inputs_shape.npz"), x=x.reshape(20, 4, 4, 1))
    numpy.savez(os.path.join(HERE, "inputs_name.npz"), image=x, other=x)
    numpy.save(os.path.join(HERE, "x.npy"), x[:2])
    session = onnxruntime.InferenceSession(os.path.join(HERE, "tiny.onnx"),
                                           providers=["CPUExecutionProvider"])
    y = session.run(None, {"x": x})[0]
    numpy.save(os.path.join(HERE, "outputs.npy"), y[:2])
    numpy.save(os.path.join(HERE, "labels.npy"), y.argmax(1).astype("int64"))
    y_4 = export_4(sys.argv[1]).run(None, {"x": x[:2]})[0]
    numpy.save(os.path.join(HERE, "outputs_4.npy"), y_4)
    print(y[:2], y_4)


if __name__ == "__main__":
    main()
