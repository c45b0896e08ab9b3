#!/usr/bin/env python3
"""Prunes a torch network, trains it with 4-bit weights, and writes it as ONNX. Needs torch, numpy, onnx and onnxscript.

    cp -r ../../examples/digits .
    python3 prune_train_quantise.py

Takes about a minute.
"""
import json
import subprocess

import numpy
import torch
from torch import nn
from torch.nn import functional

import mscgym

x = torch.from_numpy(numpy.load("digits/calibration.npz")["image"])
y = torch.from_numpy(numpy.load("digits/calibration_labels.npy"))
test = torch.from_numpy(numpy.load("digits/validation.npz")["image"])
labels = torch.from_numpy(numpy.load("digits/validation_labels.npy"))


def accuracy(network):
    network.eval()
    with torch.no_grad():
        return (network(test).argmax(1) == labels).float().mean().item()


def train(network, loss, epochs):
    optimiser = torch.optim.Adam(network.parameters(), lr=2e-3)
    network.train()
    for _ in range(epochs):
        for batch in torch.randperm(len(x)).split(32):
            optimiser.zero_grad()
            loss(x[batch] + 0.1 * torch.randn_like(x[batch]), y[batch]).backward()
            optimiser.step()


torch.manual_seed(0)
torch.set_num_threads(1)  # the network is small
network = nn.Sequential(
    nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(),
    nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
    nn.Conv2d(32, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
    nn.Flatten(), nn.Linear(128, 10))
train(network, lambda a, b: functional.cross_entropy(network(a), b), epochs=30)
print(f"float: accuracy {accuracy(network):.4f}")

# Half of the channels, and 4 bits for weights but those of the first and the last layer, found without training.
mscgym.export_onnx(network, (x[:2],), "network.onnx")
with open("train.json", "w") as file:
    json.dump({"model": "network.onnx", "workspace": "msc_train", "dataset": {"inputs": "digits/calibration.npz"},
               "prune": {"gym": [{"env": {"choices": [{"density": 0.5}]}}]},
               "quantize": {"strategy_file": "plan.json", "gym": [{
                   "env": {"choices": [{"bits": 8}, {"bits": 4}],
                           "rules": [{"kind": "weight", "name": "0.weight", "choices": ["8"]},
                                     {"kind": "weight", "name": "12.weight", "choices": ["8"]},
                                     {"kind": "weight", "choices": ["4"]},
                                     {"kind": "activation", "choices": ["8"]}]}}]}}, file)
subprocess.run([mscgym.program(), "search", "train.json", "--quiet"], check=True, stdout=subprocess.DEVNULL)

wrapped = mscgym.wrap(network, "msc_train/plan.json", x[:8], model="network.onnx")
print(f"compressed: accuracy {accuracy(wrapped):.4f}")


def loss(a, b):
    scores = wrapped(a)
    return functional.cross_entropy(scores, b) + wrapped.distill_loss(scores, a, temperature=2)


wrapped.quantises = False  # the network first recovers from the pruning
train(wrapped, loss, epochs=5)
wrapped.quantises = True
wrapped.fit_scales(x)
train(wrapped, loss, epochs=5)
print(f"trained: accuracy {accuracy(wrapped):.4f}")
print(mscgym.finish(wrapped, "small.onnx"))
