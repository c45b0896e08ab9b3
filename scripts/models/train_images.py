#!/usr/bin/env python3
"""Trains a network on fashion-MNIST, 70,000 images of 28 x 28 in ten classes, from Debian's
dataset-fashion-mnist: train_images.py NAME FOLDER [--epochs N] [--threads N]. NAME is

    fashion  three convolutions and two linear layers, 61,000 parameters
    resnet   torchvision's resnet18 with a quarter of its channels and a first convolution for small
             images, 700,000 parameters. Its batch normalisation is folded into the convolutions
    vit      a vision transformer of 4 layers and width 64 on patches of 7 x 7, 205,000 parameters

Writes NAME.onnx: image [N, 1, 28, 28], of values from 0 to 1, and scores [N, 10]. Writes the images
once for all networks:

    fashion.npz, fashion_labels.npy                 the first 512 images of the test set
    fashion_calibration.npz, ..._calibration_labels.npy  512 images that resnet and vit are not trained on
    fashion_validation.npz, ..._validation_labels.npy    the test set, 10,000 images

so that a search can measure accuracies:

    "dataset": {"inputs": "fashion_calibration.npz", "labels": "fashion_calibration_labels.npy",
                "validation": {"inputs": "fashion_validation.npz",
                               "labels": "fashion_validation_labels.npy"}}

Prints the accuracy on the test set and the processor seconds of the training. Images are flipped and
shifted at random, except for fashion. --epochs trains longer. MSC_DEBIAN names a folder with
unpacked packages, if they are not installed.
"""
import argparse
import gzip
import os
import sys
import time

import numpy
import torch
from torch import nn
from torch.nn import functional

from exported import save

HELD_OUT, SHIFT = 2048, 2
TEST, TRAIN = "t10k", "train"


# ---- Images -----------------------------------------------------------------------------------

def read(name, header):
    for root in (os.environ.get("MSC_DEBIAN", "/"), "/"):
        for folder in ("datasets/fashion-mnist", "dataset-fashion-mnist"):
            path = os.path.join(root, "usr/share", folder, name + ".gz")
            if os.path.exists(path):
                with gzip.open(path) as file:
                    return numpy.frombuffer(file.read(), numpy.uint8, offset=header)
    sys.exit("train_images.py: install the Debian package dataset-fashion-mnist")


def images(part):
    return (read(part + "-images-idx3-ubyte", 16).reshape(-1, 1, 28, 28) / 255).astype(numpy.float32)


def labels(part):
    return read(part + "-labels-idx1-ubyte", 8).astype(numpy.int64)


def save_images(folder):
    """The files of images and labels, unless they are there."""
    for name, part, count in (("fashion", TEST, 512), ("fashion_calibration", TRAIN, 512),
                              ("fashion_validation", TEST, 10000)):
        path = os.path.join(folder, name)
        if not os.path.exists(path + "_labels.npy"):
            numpy.savez_compressed(path + ".npz", image=images(part)[:count])
            numpy.save(path + "_labels.npy", labels(part)[:count])


def moved(x):
    """Images of a batch, half of them flipped, all shifted by up to SHIFT pixels."""
    x = torch.where(torch.rand(len(x), 1, 1, 1) < 0.5, x.flip(3), x)
    top, left = torch.randint(2 * SHIFT + 1, (2,)).tolist()
    return functional.pad(x, [SHIFT] * 4)[:, :, top:top + 28, left:left + 28]


# ---- Networks ---------------------------------------------------------------------------------

def fashion():
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 32, 3, stride=2, padding=1), nn.ReLU(),
        nn.Flatten(), nn.Linear(512, 88), nn.ReLU(), nn.Linear(88, 10))


class Block(nn.Module):
    """A residual block of two convolutions."""

    def __init__(self, n_in, n, stride):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(n_in, n, 3, stride, 1, bias=False), nn.BatchNorm2d(n)
        self.conv2, self.bn2 = nn.Conv2d(n, n, 3, 1, 1, bias=False), nn.BatchNorm2d(n)
        self.down = nn.Sequential(nn.Conv2d(n_in, n, 1, stride, bias=False), nn.BatchNorm2d(n)) \
            if stride > 1 else nn.Identity()

    def forward(self, x):
        y = self.bn2(self.conv2(functional.relu(self.bn1(self.conv1(x)))))
        return functional.relu(y + self.down(x))


def resnet(n=16):
    parts = [nn.Conv2d(1, n, 3, 2, 1, bias=False), nn.BatchNorm2d(n), nn.ReLU()]
    for i, width in enumerate((n, 2 * n, 4 * n, 8 * n)):
        parts += [Block(width if i == 0 else width // 2, width, 1 if i == 0 else 2), Block(width, width, 1)]
    return nn.Sequential(*parts, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8 * n, 10))


class Layer(nn.Module):
    """A layer of the transformer, which normalises before attention and before the feed-forward part."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.query, self.key, self.value, self.mix = (nn.Linear(width, width) for _ in range(4))
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def split(self, x):
        return x.reshape(x.shape[0], x.shape[1], self.heads, -1).transpose(1, 2)

    def forward(self, x):
        y = self.norms[0](x)
        query, key, value = self.split(self.query(y)), self.split(self.key(y)), self.split(self.value(y))
        scores = query @ key.transpose(2, 3) * query.shape[-1] ** -0.5
        mixed = (scores.softmax(-1) @ value).transpose(1, 2)
        x = x + self.mix(mixed.reshape(x.shape))
        return x + self.down(functional.gelu(self.up(self.norms[1](x))))


class VisionTransformer(nn.Module):
    def __init__(self, width=64, heads=4, layers=4, patch=7):
        super().__init__()
        self.patches = nn.Conv2d(1, width, patch, patch)
        self.token = nn.Parameter(torch.zeros(1, 1, width))
        self.places = nn.Parameter(torch.randn(1, (28 // patch) ** 2 + 1, width) * 0.02)
        self.layers = nn.Sequential(*[Layer(width, heads) for _ in range(layers)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 10)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.places
        return self.head(self.norm(self.layers(x))[:, 0])


# ---- Training ---------------------------------------------------------------------------------

def constant(epoch_share):
    return 1.0


def one_cycle(done):
    """The rate's share of its greatest value: it rises for a tenth of the training, then falls to 0."""
    return min(done / 0.1, (1 - done) / 0.9)


# Maker, epochs, optimiser, rate, schedule, and whether images are moved and some are held out.
RECIPES = {
    "fashion": (fashion, 4, torch.optim.Adam, 2e-3, constant, False),
    "resnet": (resnet, 4, torch.optim.AdamW, 4e-3, one_cycle, True),
    "vit": (VisionTransformer, 8, torch.optim.AdamW, 2e-3, one_cycle, True),
}


def train(model, x, y, epochs, optimiser, schedule, moves):
    rates = [group["lr"] for group in optimiser.param_groups]
    n_steps, step = epochs * -(-len(y) // 128), 0
    for epoch in range(epochs):
        for batch in torch.randperm(len(y)).split(128):
            for group, rate in zip(optimiser.param_groups, rates):
                group["lr"] = rate * schedule((step + 0.5) / n_steps)
            optimiser.zero_grad()
            given = moved(x[batch]) if moves else x[batch]
            loss = functional.cross_entropy(model(given), y[batch])
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0 if moves else float("inf"))
            optimiser.step()
            step += 1
        print(f"epoch {epoch + 1} of {epochs}: loss {loss.item():.3f}", flush=True)
    model.eval()


def accuracy(model):
    x = torch.from_numpy(images(TEST))
    with torch.no_grad():
        found = torch.cat([model(part).argmax(1) for part in x.split(500)])
    return float((found.numpy() == labels(TEST)).mean())


def fold(model):
    """Folds batch normalisation into the convolutions before it."""
    for module in list(model.modules()):
        if isinstance(module, Block):
            for conv, norm in (("conv1", "bn1"), ("conv2", "bn2")):
                setattr(module, conv, nn.utils.fuse_conv_bn_eval(getattr(module, conv), getattr(module, norm)))
                setattr(module, norm, nn.Identity())
        elif isinstance(module, nn.Sequential):
            for i in range(len(module) - 1):
                if isinstance(module[i + 1], nn.BatchNorm2d):
                    module[i] = nn.utils.fuse_conv_bn_eval(module[i], module[i + 1])
                    module[i + 1] = nn.Identity()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("name", choices=list(RECIPES))
    parser.add_argument("folder")
    parser.add_argument("--epochs", type=int)
    parser.add_argument("--threads", type=int)
    options = parser.parse_args()
    if options.threads:
        torch.set_num_threads(options.threads)
    make, epochs, optimiser, rate, schedule, moves = RECIPES[options.name]
    torch.manual_seed(0)
    x, y = torch.from_numpy(images(TRAIN)), torch.from_numpy(labels(TRAIN))
    if moves:
        x, y = x[HELD_OUT:], y[HELD_OUT:]
    model, start = make(), time.process_time()
    train(model, x, y, options.epochs or epochs, optimiser(model.parameters(), lr=rate), schedule, moves)
    seconds = time.process_time() - start
    print(f"{options.name}: accuracy {accuracy(model):.4f}, {seconds:.0f} s")
    fold(model)
    save_images(options.folder)
    save(model, x[:1], os.path.join(options.folder, options.name + ".onnx"), 17, ["image"], ["scores"],
         {"image": {0: "N"}, "scores": {0: "N"}})


if __name__ == "__main__":
    main()
