"""Exports a torchvision network with seeded random weights: export_torchvision.py NAME FOLDER."""
import os
import sys

import torch
import torchvision


def main(name, folder):
    torch.manual_seed(0)
    model = getattr(torchvision.models, name)(weights=None).eval()
    path = os.path.join(folder, name + ".onnx")
    torch.onnx.export(model, torch.zeros(1, 3, 224, 224), path + ".part", opset_version=13,
                      input_names=["input"], output_names=["output"],
                      dynamic_axes={"input": {0: "N"}, "output": {0: "N"}})
    os.rename(path + ".part", path)


main(*sys.argv[1:])
