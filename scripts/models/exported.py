"""Writes a network as ONNX: completely, or not at all."""
import inspect
import os
import warnings

import torch

# Newer versions of torch have a second exporter, and use it unless told otherwise.
KIND = {"dynamo": False} if "dynamo" in inspect.signature(torch.onnx.export).parameters else {}


def save(model, feed, path, opset, inputs, outputs, axes):
    with warnings.catch_warnings():  # tracing warns about each length that it cannot infer
        warnings.simplefilter("ignore")
        torch.onnx.export(model, feed, path + ".part", opset_version=opset, input_names=inputs,
                          output_names=outputs, dynamic_axes=axes, **KIND)
    os.rename(path + ".part", path)
