"""The best loss under a size bound, by trials, in networks of 148 to 172 tasks of three choices.

    many_tasks.py MSCGYM [--then OLD] [--networks decoder,vit,efficientnet] [--seeds 1]
                  [--folder FOLDER]

The networks have random weights, with layers of different gain: a decoder of 12 layers, a vision
transformer of 12 layers on images of 64 x 64, and torchvision's efficientnet_b0 on images of 96 x
96. Each has 16 samples, choices of 8, 6 and 4 bits for every tensor (observer minmax), and may take
0.2 of the float model's bytes. MSCGYM runs `tasks` trials; OLD, another revision's program, tasks x
3. Prints the best loss after tasks / 8, tasks / 4, ... trials, and the time until then, in seconds.
Needs torch, torchvision and onnx.
"""
import argparse
import json
import math
import os
import tempfile

import numpy
import torch
import torchvision

import common

BOUND, SAMPLES = 0.2, 16


class Layer(torch.nn.Module):
    """A layer of a decoder, with 4 heads."""

    def __init__(self, width):
        super().__init__()
        self.norms = torch.nn.ModuleList(torch.nn.LayerNorm(width) for _ in range(2))
        self.of_attention = torch.nn.ModuleList(torch.nn.Linear(width, width) for _ in range(4))
        self.up, self.down = torch.nn.Linear(width, 4 * width), torch.nn.Linear(4 * width, width)

    def attend(self, x, mask):
        n, length, width = x.shape
        query, key, value = (part(x).reshape(n, length, 4, width // 4).transpose(1, 2)
                             for part in self.of_attention[:3])
        scores = query @ key.transpose(-1, -2) / math.sqrt(width // 4) + mask
        mixed = torch.softmax(scores, -1) @ value
        return self.of_attention[3](mixed.transpose(1, 2).reshape(n, length, width))

    def forward(self, x, mask):
        x = x + self.attend(self.norms[0](x), mask)
        return x + self.down(torch.nn.functional.gelu(self.up(self.norms[1](x))))


class Decoder(torch.nn.Module):
    def __init__(self, width=48, length=16, classes=64):
        super().__init__()
        self.first, self.last = torch.nn.Linear(width, width), torch.nn.Linear(width, classes)
        self.layers = torch.nn.ModuleList(Layer(width) for _ in range(12))
        self.norm = torch.nn.LayerNorm(width)
        self.register_buffer("mask", torch.triu(torch.full((length, length), -1e4), 1))

    def forward(self, x):
        x = self.first(x)
        for layer in self.layers:
            x = layer(x, self.mask)
        return self.last(self.norm(x))


def vary_gains(net):
    for part in net.modules():
        if isinstance(part, torch.nn.Linear):
            part.weight.data *= math.exp(.5 * torch.randn(()).item())
            part.weight.data *= torch.exp(.5 * torch.randn_like(part.weight))


def images(n, size):
    """Noise of several scales."""
    parts = [torch.nn.functional.interpolate(torch.randn(n, 3, k, k), size=(size, size), mode="bicubic")
             for k in (2, 4, 8, 16, size)]
    return sum(parts) / sum(parts).std()


def fill_zeros(net):
    for weight in net.parameters():
        if weight.dim() == 2 and not weight.any():
            torch.nn.init.normal_(weight, std=weight.shape[1] ** -.5)


def decoder():
    net = Decoder()
    vary_gains(net.layers)
    return net, torch.randn(SAMPLES, 16, 48) * torch.exp(.5 * torch.randn(48))


def vit():
    net = torchvision.models.VisionTransformer(
        image_size=64, patch_size=8, num_layers=12, num_heads=4, hidden_dim=96, mlp_dim=384, num_classes=100)
    fill_zeros(net)
    vary_gains(net)
    return net, images(SAMPLES, 64)


def efficientnet():
    """Its normalisation has the means and variances of 64 images."""
    net = torchvision.models.efficientnet_b0(weights=None)
    fill_zeros(net)
    net.eval()
    for part in net.modules():
        if isinstance(part, torch.nn.BatchNorm2d):
            part.reset_running_stats()
            part.momentum = None
            part.train()
    with torch.no_grad():
        net(images(64, 96))
    return net, images(SAMPLES, 96)


NETWORKS = {"decoder": decoder, "vit": vit, "efficientnet": efficientnet}


def make(name, folder):
    """Writes the network unless it is there. Returns its path and its samples."""
    model, samples = (os.path.join(folder, name + end) for end in (".onnx", ".npy"))
    if not os.path.exists(samples):
        torch.manual_seed(0)
        net, x = NETWORKS[name]()
        torch.onnx.export(net.eval(), (x[:1],), model, input_names=["x"], output_names=["y"], dynamo=False,
                          opset_version=17, dynamic_axes={"x": {0: "n"}, "y": {0: "n"}})
        numpy.save(samples, x.numpy())
    return model, numpy.load(samples)


def search(mscgym, model, samples, seed, times):
    """Searches for tasks * times trials. Returns [(trials, best loss, seconds)]."""
    choices = [{"bits": bits, "observer": "minmax"} for bits in (8, 6, 4)]
    n_tasks = common.n_sites(mscgym, model)
    with tempfile.TemporaryDirectory() as folder:
        run = common.Search(mscgym, folder, model, samples, choices, {"type": "auto"}, n_tasks * times,
                            {"size_ratio": {"max": BOUND}}, parallel=8, more={"seed": seed})
        run.run("--threads", "1")
        with open(run.record) as file:
            trials = [line for line in map(json.loads, file) if line["kind"] == "trial"]
    n = len(trials[0]["choices"])
    found = []
    for count in [n // 8, n // 4, n // 2, *(n * k for k in range(1, times + 1))]:
        losses = [trial["metrics"]["distill_loss"] for trial in trials[:count] if trial["state"] == "complete"]
        if count <= len(trials):
            found.append((count, min(losses), trials[count - 1]["measured"]["elapsed_s"]))
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("mscgym", type=os.path.abspath)
    parser.add_argument("--then", type=os.path.abspath)
    parser.add_argument("--networks", default=",".join(NETWORKS))
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--folder", default=os.path.expanduser("~/.cache/mscgym/many_tasks"))
    options = parser.parse_args()
    os.makedirs(options.folder, exist_ok=True)
    print("| network | seed | program | best loss after trials (seconds) |\n|---|---|---|---|")
    for name in options.networks.split(","):
        model, samples = make(name, options.folder)
        for seed in range(1, options.seeds + 1):
            for word, program, times in ("new", options.mscgym, 1), ("then", options.then, 3):
                if program:
                    found = search(program, model, samples, seed, times)
                    text = ", ".join(f"{n}: {loss:.3g} ({s:.0f})" for n, loss, s in found)
                    print(f"| {name} | {seed} | {word} | {text} |", flush=True)


if __name__ == "__main__":
    main()
