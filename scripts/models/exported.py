"""Writes a network as ONNX: completely, or not at all."""
import os
import warnings

import torch


def save(model, feed, path, opset, inputs, outputs, axes):
    with warnings.catch_warnings():  # tracing warns about each length that it cannot infer
        warnings.simplefilter("ignore")
        torch.onnx.export(model, feed, path + ".part", opset_version=opset, input_names=inputs,
                          output_names=outputs, dynamic_axes=axes)
    os.rename(path + ".part", path)
