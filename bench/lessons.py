"""How much sooner a search finds good plans if it begins with what searches of other networks learnt
about features (--warm-from, docs/warm.md).

    lessons.py MSCGYM [--seeds 3] [--bound bit_ops_ratio=0.03] [--folder FOLDER]

Five networks of 16 to 49 tasks with random weights, whose layers differ in width and gain: a
perceptron, a chain of convolutions, a network with residual sums, one with depthwise convolutions,
and a decoder of two layers. Each has 16 samples, choices of 8, 6 and 4 bits for every tensor
(observer minmax), and a bound on one metric (--bound). For each network and seed, `auto` searches
alone, and with --warm-from the records of the other four. Prints the best loss of both after some
trials (without baselines), and the geometric mean of the ratios. Needs torch and onnx.
"""
import argparse
import collections
import json
import os
import statistics
import subprocess
import tempfile

import numpy
import torch

import common
import many_tasks

SAMPLES = 16
BUDGETS = (2, 4, 8, 16, 32, 64)
PARALLEL = 2


def conv(n_in, n_out, kernel=3, stride=1, groups=1):
    return torch.nn.Conv2d(n_in, n_out, kernel, stride, kernel // 2, groups=groups)


class Residual(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.parts = torch.nn.Sequential(conv(width, width), torch.nn.ReLU(), conv(width, width))

    def forward(self, x):
        return torch.relu(x + self.parts(x))


def pooled(*parts, width):
    return torch.nn.Sequential(*parts, torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(),
                               torch.nn.Linear(width, 10))


def with_relus(parts):
    return [part for layer in parts for part in (layer, torch.nn.ReLU())]


def perceptron():
    widths = (64, 96, 128, 48, 96, 32, 64, 48, 16)
    layers = [torch.nn.Linear(a, b) for a, b in zip(widths, widths[1:])]
    return torch.nn.Sequential(*with_relus(layers)[:-1]), torch.randn(SAMPLES, 64) * torch.exp(torch.randn(64))


def convolutions():
    widths = (3, 12, 24, 16, 32, 48, 24, 64)
    layers = [conv(a, b, 3 if i % 3 else 5, 2 if i in (2, 4) else 1)
              for i, (a, b) in enumerate(zip(widths, widths[1:]))]
    return pooled(*with_relus(layers), width=64), many_tasks.images(SAMPLES, 24)


def residual():
    parts = [conv(3, 16), torch.nn.ReLU(), Residual(16), conv(16, 32, stride=2), torch.nn.ReLU(),
             Residual(32), conv(32, 48, stride=2), torch.nn.ReLU(), Residual(48)]
    return pooled(*parts, width=48), many_tasks.images(SAMPLES, 24)


def separable():
    layers = [conv(3, 16, stride=2)]
    for a, b, stride in ((16, 24, 1), (24, 32, 2), (32, 48, 1), (48, 64, 2)):
        layers += [conv(a, a, stride=stride, groups=a), conv(a, b, 1)]
    return pooled(*with_relus(layers), width=64), many_tasks.images(SAMPLES, 32)


def decoder():
    net = many_tasks.Decoder()
    net.layers = net.layers[:2]
    return net, torch.randn(SAMPLES, 16, 48) * torch.exp(.5 * torch.randn(48))


NETWORKS = {"perceptron": perceptron, "convolutions": convolutions, "residual": residual,
            "separable": separable, "decoder": decoder}


def vary(net):
    for part in net.modules():
        if isinstance(part, (torch.nn.Linear, torch.nn.Conv2d)):
            part.weight.data *= 2 * torch.exp(.5 * torch.randn(part.weight.shape[0])).reshape(
                -1, *[1] * (part.weight.dim() - 1))


def make(name, folder):
    """Writes the network and its samples unless they are there. Returns their paths."""
    model, samples = (os.path.join(folder, name + end) for end in (".onnx", ".npy"))
    if not os.path.exists(samples):
        torch.manual_seed(list(NETWORKS).index(name))
        net, x = NETWORKS[name]()
        vary(net)
        # No task has the name of a task of another network; else points of its record would be tried.
        named = torch.nn.Sequential(collections.OrderedDict({name: net}))
        inputs = f"{name}_x"
        torch.onnx.export(named.eval(), (x[:1],), model, input_names=[inputs], output_names=["y"], dynamo=False,
                          opset_version=17, dynamic_axes={inputs: {0: "n"}, "y": {0: "n"}})
        numpy.save(samples, x.numpy())
    return model, samples


def search(options, name, folder, seed, warm_from=()):
    """Searches in `folder`. Returns the record's path and the best loss after each of BUDGETS trials."""
    model, samples = make(name, options.folder)
    choices = [{"bits": bits, "observer": "minmax"} for bits in (8, 6, 4)]
    os.makedirs(folder)
    metric, limit = options.bound.split("=")
    run = common.Search(options.mscgym, folder, model, numpy.load(samples), choices, {"type": "auto"},
                        max(BUDGETS) + 19, {metric: {"max": float(limit)}}, parallel=PARALLEL, more={"seed": seed})
    run.run("--threads", "1", *[word for path in warm_from for word in ("--warm-from", path)])
    with open(run.record) as file:
        lines = [json.loads(line) for line in file]
    own = [t for t in lines if t["kind"] == "trial" and "baseline" not in t]
    given = [t for t in lines if t["kind"] == "trial" and "baseline" in t]
    best = [min((t["metrics"]["distill_loss"] for t in given + own[:n] if t["state"] == "complete"), default=None)
            for n in BUDGETS]
    return run.record, best


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("mscgym", type=os.path.abspath)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--bound", default="bit_ops_ratio=0.03")
    parser.add_argument("--folder", default=os.path.expanduser("~/.cache/mscgym/lessons"))
    options = parser.parse_args()
    os.makedirs(options.folder, exist_ok=True)
    ratios = {n: [] for n in BUDGETS}
    print("| network | seed | best loss after trials: alone / with lessons |\n|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(1, options.seeds + 1):
            alone = {name: search(options, name, os.path.join(folder, f"{name}_{seed}"), seed)
                     for name in NETWORKS}
            for name in NETWORKS:
                others = [record for other, (record, _) in alone.items() if other != name]
                _, best = search(options, name, os.path.join(folder, f"{name}_{seed}_warm"), seed, others)
                cells = []
                for n, before, after in zip(BUDGETS, alone[name][1], best):
                    if before and after:
                        ratios[n].append(after / before)
                        cells.append(f"{n}: {before:.3g} / {after:.3g}")
                print(f"| {name} | {seed} | {', '.join(cells)} |", flush=True)
    for n, values in ratios.items():
        if values:
            print(f"after {n} trials: {statistics.geometric_mean(values):.3f}")


if __name__ == "__main__":
    main()
