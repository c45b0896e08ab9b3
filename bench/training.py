#!/usr/bin/env python3
"""What training adds to a compressed network: accuracy, loss and bytes of files in onnxruntime.

    training.py MSCGYM [NETWORK...] [--images N] [--peers PYTHON]

Networks are fashion, and resnet, torchvision's resnet18 with a quarter of its channels and its first
convolution for images of 28x28. resnet is trained on the first 20,000 images. Both are first trained
as floats. Then half of the channels of every group are removed, or 30 %, which leaves half of the
parameters. Activations have 8 bits and weights 8 or 4, and two epochs train the result
(docs/training.md); weights of 4 bits are quantised from the second epoch on. A last plan of fashion
has the searched bits, 4 or 8, under a bound of operations; three epochs of 20,000 images train it
with the float network as the only teacher, and refine="torch" trains it on 2048 images without
labels. --peers adds torch-pruning and torchao's QAT with the same epochs (peers/qat.py).

Images are those of methods_data.py. Needs torch, onnx, onnxscript and onnxruntime. Exits with 1 if a
pruned network is more than one point below the float network or has more than 12 % of its bytes, or
if training does not halve the loss of the searched plan.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

import numpy
import onnxruntime
import torch
from torch import nn
from torch.nn import functional

import methods_data

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "python"))
import mscgym  # noqa: E402

POINT, BYTES = 0.01, 0.12
DESCENT = {"bits": 4, "rounding": "descent", "correct": "affine"}


def fashion():
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 32, 3, stride=2, padding=1), nn.ReLU(),
        nn.Flatten(), nn.Linear(512, 88), nn.ReLU(), nn.Linear(88, 10))


class Block(nn.Module):
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


# Maker, images, epochs of the float network; rate and batch of the two epochs after compression.
NETWORKS = {"fashion": (fashion, 60000, 4, 3e-3, 64), "resnet": (resnet, 20000, 8, 3e-3, 64)}
TEMPERATURE = 4


def quantize(weights, activations, **more):
    rules = [{"kind": "weight", "choices": weights}, {"kind": "activation", "choices": activations}]
    return {"choices": [{"bits": 8}, DESCENT], "rules": rules, **more}


def plan(target, env, trials, density=None):
    prune = {"prune": {"gym": [{"record": "prune.jsonl", "env": {"choices": [{"density": density}]}}]}}
    gym = {"record": "quantize.jsonl", "env": env, "budget": {"trials": trials}}
    return {**(prune if density else {}), "quantize": {"strategy_file": "plan.json", "target": target, "gym": [gym]}}


EITHER = ["8", "4 descent affine"]
# Stages, and the share of the training that begins without quantisation.
PLANS = {"half of the channels, 8 bits": (plan("onnxruntime", quantize(["8"], ["8"]), 1, 0.5), 0),
         "half of the channels, weights of 4 bits": (plan("onnxruntime", quantize(EITHER[1:], ["8"]), 1, 0.5), 0.5),
         "half of the parameters, weights of 4 bits": (plan("onnxruntime", quantize(EITHER[1:], ["8"]), 1, 0.7), 0.5)}
SEARCHED = plan("generic", quantize(EITHER, EITHER, bounds={"bit_ops_ratio": {"max": 0.02}}), 60)


def train(network, x, y, loss, epochs, rate, batch):
    optimiser = torch.optim.Adam(network.parameters(), rate)
    n_steps = epochs * len(torch.arange(len(y)).split(batch))
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, rate, total_steps=n_steps, pct_start=0.2)
    order = torch.Generator().manual_seed(0)
    network.train()
    for _ in range(epochs):
        for taken in torch.randperm(len(y), generator=order).split(batch):
            optimiser.zero_grad()
            loss(network(x[taken]), x[taken], y[taken]).backward()
            optimiser.step()
            schedule.step()
    network.eval()


class Bench:
    def __init__(self, mscgym_path, name, n_images, folder):
        self.make, most, self.epochs, self.rate, self.batch = NETWORKS[name]
        n = min(n_images, most)
        images = methods_data.fashion_images("train-images-idx3-ubyte")[:n]
        self.x = torch.from_numpy((images / 255).astype(numpy.float32))
        self.y = torch.from_numpy(methods_data.fashion_file("train-labels-idx1-ubyte", 8)[:n].astype(numpy.int64))
        self.test, self.labels = methods_data.fashion_validation(), methods_data.fashion_labels()
        self.mscgym, self.name, self.folder = mscgym_path, name, folder
        self.model = os.path.join(folder, f"{name}.onnx")
        torch.manual_seed(0)
        network = self.make()
        train(network, self.x, self.y, lambda z, x, y: functional.cross_entropy(z, y), self.epochs, 2e-3, 128)
        self.state = network.state_dict()
        torch.save(self.state, os.path.join(folder, f"{name}.pt"))
        mscgym.export_onnx(network, (self.x[:4],), self.model)
        self.outputs, self.accuracy = self.run(self.model)

    def run(self, path):
        session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
        self.input = session.get_inputs()[0].name
        parts = [session.run(None, {self.input: x})[0] for x in numpy.array_split(self.test, 20)]
        outputs = numpy.concatenate(parts)
        return outputs, float((outputs.argmax(1) == self.labels).mean())

    def row(self, what, path):
        """Prints accuracy, loss and bytes of a file; returns them."""
        outputs, accuracy = self.run(path)
        loss = float(numpy.square(outputs - self.outputs).sum() / numpy.square(self.outputs).sum())
        share = os.path.getsize(path) / os.path.getsize(self.model)
        print(f"{self.name:8} {what:55} accuracy {accuracy:.4f} loss {loss:.2g} bytes {share:.3f}", flush=True)
        return accuracy, loss, share

    def samples(self, n):
        return self.x[torch.randperm(len(self.x), generator=torch.Generator().manual_seed(5))[:n]].numpy()

    def refine(self):
        """A search with the same bounds, and refine="torch"; rows of its plan before and after."""
        gym = SEARCHED["quantize"]["gym"][0]
        env = {key: value for key, value in gym["env"].items() if key not in ("choices", "bounds")}
        result = mscgym.search(self.model, {self.input: self.samples(2560)}, choices=gym["env"]["choices"], env=env,
                               bounds=gym["env"]["bounds"], trials=gym["budget"]["trials"], target="generic", batch=64,
                               workspace=tempfile.mkdtemp(dir=self.folder), refine={"time": 3600}, threads=1)
        before = os.path.join(self.folder, "before_refine.onnx")
        strategy = os.path.join(os.path.dirname(result.strategy), "msc_quantize.json")
        subprocess.run([self.mscgym, "export", "--model", self.model, "--strategy", strategy, "-o", before, "--quiet"],
                       check=True)
        return self.row("searched bits, 2048 images", before), self.row("the same, refined", result.model)

    def measure(self, what, stages, loss, n_images, epochs, rate, freezes):
        workspace = tempfile.mkdtemp(dir=self.folder)
        config, samples = os.path.join(workspace, "search.json"), os.path.join(workspace, "samples.npz")
        numpy.savez(samples, **{self.input: self.samples(512)})
        with open(config, "w") as file:
            json.dump({"workspace": workspace, "model": self.model, "dataset": {"inputs": samples}, **stages}, file)
        subprocess.run([self.mscgym, "search", config, "--quiet"], check=True, stdout=subprocess.DEVNULL)
        strategy, path = os.path.join(workspace, "plan.json"), os.path.join(workspace, "plan.onnx")
        subprocess.run([self.mscgym, "export", "--model", self.model, "--strategy", strategy, "-o", path, "--quiet"],
                       check=True)
        before = self.row(what, path)
        network = self.make()
        network.load_state_dict(self.state)
        wrapped = mscgym.wrap(network, strategy, self.x[:4], model=self.model, learn_scales=True)
        wrapped.freezes_norms = freezes
        train(wrapped, self.x[:n_images], self.y[:n_images], lambda z, x, y: loss(wrapped, z, x, y), epochs, rate,
              self.batch)
        return before, self.row(f"{what}, trained", mscgym.finish(wrapped, path).model)


def both(n_float):
    """The mean of cross entropy and distillation; the first n_float steps are without quantisation."""
    done = [0]

    def loss(wrapped, z, x, y):
        done[0] += 1
        wrapped.quantises = done[0] >= n_float
        return (functional.cross_entropy(z, y) + wrapped.distill_loss(z, x, temperature=TEMPERATURE)) / 2
    return loss


def teacher(wrapped, z, x, y):
    return wrapped.distill_loss(z, x)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mscgym", type=os.path.abspath)
    parser.add_argument("networks", nargs="*", default=list(NETWORKS))
    parser.add_argument("--images", type=int, default=60000, help="train with at most this many images")
    parser.add_argument("--peers", metavar="PYTHON", help="one that has what peers/qat.py asks for")
    args = parser.parse_args()
    os.environ["PATH"] = os.path.dirname(args.mscgym) + os.pathsep + os.environ["PATH"]
    torch.set_num_threads(1)
    holds = True
    with tempfile.TemporaryDirectory() as folder:
        for name in args.networks:
            bench = Bench(args.mscgym, name, args.images, folder)
            bench.row("float", bench.model)
            n_steps = 2 * -(-len(bench.x) // bench.batch)
            for what, (stages, float_share) in PLANS.items():
                _, (accuracy, _, share) = bench.measure(what, stages, both(float_share * n_steps), args.images, 2,
                                                        bench.rate, False)
                holds = holds and accuracy >= bench.accuracy - POINT and share <= BYTES
            if name == "fashion":
                before, after = bench.measure("searched bits", SEARCHED, teacher, 20000, 3, 5e-4, True)
                holds = holds and after[1] <= before[1] / 2
                before, after = bench.refine()
                holds = holds and after[1] <= before[1] / 2
            if args.peers:
                subprocess.run([args.peers, os.path.join(os.path.dirname(os.path.abspath(__file__)), "peers",
                                                         "qat.py"), name, folder, str(args.images)], check=True)
    sys.exit(0 if holds else 1)


if __name__ == "__main__":
    main()
