"""Exports a torchvision network with seeded random weights, and normalisation measured on photographs:
export_measured.py NAME FOLDER.

Batch normalisation gets the mean and variance of 64 crops (photographs.py), layer by layer, so that
activations have the ranges of a network on real data. Parameters that torchvision initialises to
zero, or almost zero, would hide whole layers from the output. They get values as after training:
vit's head random ones, convnext's layer scales of 1e-6 become 0.1.
"""
import os
import sys

import torch
import torchvision

from exported import save
from photographs import crops, normalised

# The first opset with LayerNormalization.
OPSETS = {"swin_t": 17, "vit_b_16": 17, "convnext_tiny": 17}
OPSET = 13  # for the other networks


def enliven(model):
    for name, value in model.named_parameters():
        if name.endswith("layer_scale"):
            torch.nn.init.constant_(value, 0.1)
        elif value.dim() == 2 and not value.any():
            torch.nn.init.normal_(value, std=value.shape[1] ** -0.5)


def measure(model):
    """Sets the statistics of batch normalisation to the mean over the batches, and changes nothing else."""
    parts = [part for part in model.modules() if isinstance(part, torch.nn.BatchNorm2d)]
    for part in parts:
        part.reset_running_stats()
        part.momentum = None
        part.train()
    if parts:
        with torch.no_grad():
            for batch in torch.from_numpy(normalised(crops(64, 224, seed=1))).split(32):
                model(batch)
    model.eval()


def main(name, folder):
    torch.manual_seed(0)
    torch.set_num_threads(2)
    model = getattr(torchvision.models, name)(weights=None).eval()
    enliven(model)
    measure(model)
    save(model, torch.zeros(1, 3, 224, 224), os.path.join(folder, name + ".onnx"),
         OPSETS.get(name, OPSET), ["input"], ["output"], {"input": {0: "N"}, "output": {0: "N"}})


main(*sys.argv[1:])
