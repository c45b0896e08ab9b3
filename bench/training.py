#!/usr/bin/env python3
"""What training adds to a compressed network: accuracy, loss and bytes of files in onnxruntime.

    training.py MSCGYM [NETWORK...] [--seeds 0,1,2] [--images N] [--rows TEXT] [--held-back]
                [--peers torchao=PYTHON,nncf=PYTHON] [--folder DIR] [--json FILE]

Networks are fashion, and resnet, torchvision's resnet18 with a quarter of its channels and its first
convolution for images of 28x28. resnet is trained on the first 20,000 images. Both are first trained
as floats, once. Then half of the channels of every group are removed. Activations have 8 bits, weights
8 or 4 (with 8 for the first and the last layer), and two epochs train the result (docs/training.md);
weights of 4 bits are quantised from the second epoch on. A last plan of fashion has the searched bits,
4 or 8, under a bound of operations; three epochs of 20,000 images train it with the float network as
the only teacher, and refine="torch" trains it on 2048 images without labels. Each seed draws other calibration images and another order of
training. --peers adds torch-pruning and the QAT of torchao and NNCF with the same epochs
(peers/qat.py). Seconds are processor time, of training only.

--held-back trains on the first 50,000 images and measures on the other 10,000 of the training set:
recipes were chosen so. Images are those of methods_data.py. Needs torch, onnx, onnxscript and
onnxruntime. Exits with 1 if the mean accuracy of a pruned network is more than one point below the
float network or it has more than 12 % of its bytes, or if training does not halve the loss of the
searched plan.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

import numpy
import onnxruntime
import torch
from torch.nn import functional

import methods_data

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "python"))
import mscgym  # noqa: E402
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "scripts", "models"))
from train_images import fashion, resnet  # noqa: E402

POINT, BYTES = 0.01, 0.12
DESCENT = {"bits": 4, "rounding": "descent", "correct": "affine"}


# Maker, images, epochs of the float network; rate and batch of the two epochs after compression.
NETWORKS = {"fashion": (fashion, 60000, 4, 3e-3, 64), "resnet": (resnet, 20000, 8, 3e-3, 32)}
TEMPERATURE = 4
ENDS = ["0.weight", "13.weight"]  # the first and the last layer, in both networks


def quantize(weights, activations, ends=(), **more):
    rules = [{"kind": "weight", "name": name, "choices": ["8"]} for name in ends]
    rules += [{"kind": "weight", "choices": weights}, {"kind": "activation", "choices": activations}]
    return {"choices": [{"bits": 8}, DESCENT], "rules": rules, **more}


def plan(target, env, trials, prune=None):
    first = {"prune": {"gym": [{"record": "prune.jsonl", "env": prune}]}}
    gym = {"record": "quantize.jsonl", "env": env, "budget": {"trials": trials}}
    return {**(first if prune else {}), "quantize": {"strategy_file": "plan.json", "target": target, "gym": [gym]}}


EITHER = ["8", "4 descent affine"]
BITS = {8: quantize(["8"], ["8"]), 4: quantize(EITHER[1:], ["8"], ENDS)}
FLOAT_SHARE = {8: 0, 4: 0.5}  # the share of the training that begins without quantisation
SEARCHED = plan("generic", quantize(EITHER, EITHER, bounds={"bit_ops_ratio": {"max": 0.02}}), 60)


def plans(part):
    """Descriptions of pruned plans that contain a part, their bits and the stages that make them."""
    half = {"choices": [{"density": 0.5}]}
    found = [(f"half of the channels, {bits} bits", bits, plan("onnxruntime", env, 1, half))
             for bits, env in BITS.items()]
    return [row for row in found if part in row[0]]


def images(n, is_held_back):
    """Training images and labels as tensors; those to measure with, as arrays."""
    x = torch.from_numpy((methods_data.fashion_images("train-images-idx3-ubyte") / 255).astype(numpy.float32))
    y = torch.from_numpy(methods_data.fashion_file("train-labels-idx1-ubyte", 8).astype(numpy.int64))
    if is_held_back:
        n = min(n, 50000)
        return x[:n], y[:n], x[50000:].numpy(), y[50000:].numpy()
    return x[:n], y[:n], methods_data.fashion_validation(), methods_data.fashion_labels()


def train(network, x, loss, epochs, rate, batch, seed=0):
    """`loss` gets outputs and the indices of their samples."""
    optimiser = torch.optim.Adam(network.parameters(), rate)
    n_steps = epochs * -(-len(x) // batch)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, rate, total_steps=n_steps, pct_start=0.2)
    order = torch.Generator().manual_seed(seed)
    network.train()
    for _ in range(epochs):
        for taken in torch.randperm(len(x), generator=order).split(batch):
            optimiser.zero_grad()
            loss(network(x[taken]), taken).backward()
            optimiser.step()
            schedule.step()
    network.eval()


class Bench:
    def __init__(self, mscgym_path, name, n_images, is_held_back, folder):
        self.make, most, self.epochs, self.rate, self.batch = NETWORKS[name]
        self.x, self.y, self.test, self.labels = images(most, is_held_back)
        self.mscgym, self.name, self.folder = mscgym_path, name, folder
        self.model = os.path.join(folder, f"{name}.onnx")
        self.rows = []
        torch.manual_seed(0)
        network, start, kept = self.make(), time.process_time(), os.path.join(folder, f"{name}.pt")
        if os.path.exists(kept):
            network.load_state_dict(torch.load(kept))
        else:
            train(network, self.x, lambda z, i: functional.cross_entropy(z, self.y[i]), self.epochs, 2e-3, 128)
            torch.save(network.state_dict(), kept)
        seconds = time.process_time() - start
        self.state = network.eval().state_dict()
        mscgym.export_onnx(network, (self.x[:4],), self.model)
        self.x, self.y = self.x[:n_images], self.y[:n_images]
        with torch.no_grad():
            self.wanted = torch.cat([network(part) for part in self.x.split(500)])
        self.outputs, self.accuracy = self.run(self.model)
        self.row("float", 0, self.model, seconds=seconds)

    def run(self, path):
        session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
        self.input = session.get_inputs()[0].name
        parts = [session.run(None, {self.input: x})[0] for x in numpy.array_split(self.test, 20)]
        outputs = numpy.concatenate(parts)
        return outputs, float((outputs.argmax(1) == self.labels).mean())

    def add(self, what, seed, **figures):
        """Prints and keeps a row; returns it."""
        self.rows.append({"network": self.name, "what": what, "seed": seed, **figures})
        text = " ".join(f"{key} {value:.4g}" for key, value in figures.items())
        print(f"{self.name:8} {what:45} seed {seed} {text}", flush=True)
        return self.rows[-1]

    def row(self, what, seed, path, **more):
        """A row with the accuracy, loss and bytes of a file."""
        outputs, accuracy = self.run(path)
        loss = float(numpy.square(outputs - self.outputs).sum() / numpy.square(self.outputs).sum())
        share = os.path.getsize(path) / os.path.getsize(self.model)
        return self.add(what, seed, accuracy=accuracy, loss=loss, bytes=share, **more)

    def samples(self, n, seed):
        return self.x[torch.randperm(len(self.x), generator=torch.Generator().manual_seed(5 + seed))[:n]].numpy()

    def refine(self, seed):
        """A search with the same bounds, and refine="torch"; rows of its plan before and after."""
        gym = SEARCHED["quantize"]["gym"][0]
        env = {key: value for key, value in gym["env"].items() if key not in ("choices", "bounds")}
        start = time.process_time()
        result = mscgym.search(self.model, {self.input: self.samples(2560, seed)}, choices=gym["env"]["choices"],
                               env=env, bounds=gym["env"]["bounds"], trials=gym["budget"]["trials"], target="generic",
                               batch=64, workspace=tempfile.mkdtemp(dir=self.folder), refine={"time": 3600}, threads=1)
        seconds = time.process_time() - start
        before = os.path.join(self.folder, "before_refine.onnx")
        strategy = os.path.join(os.path.dirname(result.strategy), "msc_quantize.json")
        subprocess.run([self.mscgym, "export", "--model", self.model, "--strategy", strategy, "-o", before, "--quiet"],
                       check=True)
        return (self.row("searched bits, 2048 images", seed, before),
                self.row("searched bits, 2048 images, refined", seed, result.model, seconds=seconds))

    def measure(self, what, seed, stages, loss, n_images, epochs, rate, freezes=False):
        """Rows of a plan before and after its training."""
        workspace = tempfile.mkdtemp(dir=self.folder)
        config, samples = os.path.join(workspace, "search.json"), os.path.join(workspace, "samples.npz")
        numpy.savez(samples, **{self.input: self.samples(512, seed)})
        with open(config, "w") as file:
            json.dump({"workspace": workspace, "model": self.model, "dataset": {"inputs": samples}, **stages}, file)
        subprocess.run([self.mscgym, "search", config, "--quiet"], check=True, stdout=subprocess.DEVNULL)
        strategy, path = os.path.join(workspace, "plan.json"), os.path.join(workspace, "plan.onnx")
        subprocess.run([self.mscgym, "export", "--model", self.model, "--strategy", strategy, "-o", path, "--quiet"],
                       check=True)
        before = self.row(what, seed, path)
        network = self.make()
        network.load_state_dict(self.state)
        wrapped = mscgym.wrap(network, strategy, self.x[:4], model=self.model)
        wrapped.freezes_norms = freezes
        start = time.process_time()
        train(wrapped, self.x[:n_images], lambda z, i: loss(self, wrapped, z, i), epochs, rate, self.batch, seed)
        seconds = time.process_time() - start
        return before, self.row(f"{what}, trained", seed, mscgym.finish(wrapped, path).model, seconds=seconds)

    def peer(self, tool, python, bits, seed, options):
        """A row of a peer."""
        program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "peers", "qat.py")
        made = subprocess.run([python, program, tool, str(bits), self.name, self.folder, str(len(self.x)), str(seed),
                               *options], capture_output=True, text=True)
        if made.returncode:
            print(f"{self.name:8} torch-pruning, {tool}, {bits} bits: {made.stderr.strip().splitlines()[-1]}")
        else:
            self.add(f"torch-pruning, {tool}, {bits} bits", seed, **json.loads(made.stdout.splitlines()[-1]))


def both(n_float):
    """The mean of cross entropy and distillation; the first n_float steps are without quantisation."""
    done = [0]

    def loss(bench, wrapped, z, i):
        done[0] += 1
        is_late = done[0] >= n_float
        if is_late and not wrapped.quantises:
            wrapped.fit_scales(bench.x[i])
        wrapped.quantises = is_late
        distance = wrapped.distill_loss(z, wanted=bench.wanted[i], temperature=TEMPERATURE)
        return (functional.cross_entropy(z, bench.y[i]) + distance) / 2
    return loss


def teacher(bench, wrapped, z, i):
    return wrapped.distill_loss(z, wanted=bench.wanted[i])


def summary(bench):
    """Prints means over seeds with the lowest and the highest accuracy. Do all pruned plans hold the bar?"""
    holds, groups = True, {}
    for row in bench.rows:
        groups.setdefault(row["what"], []).append(row)
    print(f"\n| {bench.name} | accuracy (least, most), % | seeds | bytes | CPU s |\n|---|---|---|---|---|")
    for what, rows in groups.items():
        found = [100 * row["accuracy"] for row in rows]
        mean, share = statistics.mean(found), statistics.mean(row["bytes"] for row in rows)
        seconds = statistics.mean(row.get("seconds", 0) for row in rows)
        print(f"| {what} | {mean:.2f} ({min(found):.2f}, {max(found):.2f}) | {len(rows)} | {share:.3f} | "
              f"{seconds:.0f} |")
        if "channels" in what and "trained" in what:
            holds = holds and mean >= 100 * (bench.accuracy - POINT) and share <= BYTES
    return holds


def add_rows(path, rows):
    if os.path.exists(path):
        with open(path) as file:
            rows = json.load(file) + rows
    with open(path, "w") as file:
        file.write("[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mscgym", type=os.path.abspath)
    parser.add_argument("networks", nargs="*", default=list(NETWORKS))
    parser.add_argument("--seeds", default="0,1,2", help="orders of training and draws of calibration images")
    parser.add_argument("--images", type=int, default=60000, help="train compressed networks with at most so many")
    parser.add_argument("--rows", default="", metavar="TEXT", help="only plans whose description contains this")
    parser.add_argument("--held-back", action="store_true", help="measure on images held back of the training set")
    parser.add_argument("--peers", default="", metavar="TOOL=PYTHON,...", help="Pythons for peers/qat.py")
    parser.add_argument("--folder", type=os.path.abspath, help="keep the float networks here, and use those that are here")
    parser.add_argument("--json", metavar="FILE", help="add the rows to this file")
    args = parser.parse_args()
    os.environ["PATH"] = os.path.dirname(args.mscgym) + os.pathsep + os.environ["PATH"]
    torch.set_num_threads(1)
    seeds = [int(seed) for seed in args.seeds.split(",")]
    peers = [item.split("=") for item in args.peers.split(",") if item]
    holds = True
    with tempfile.TemporaryDirectory() as folder:
        folder = args.folder or folder
        os.makedirs(folder, exist_ok=True)
        for name in args.networks:
            bench = Bench(args.mscgym, name, args.images, args.held_back, folder)
            n_steps = 2 * -(-len(bench.x) // bench.batch)
            for seed in seeds:
                for what, bits, stages in plans(args.rows):
                    bench.measure(what, seed, stages, both(FLOAT_SHARE[bits] * n_steps), args.images, 2, bench.rate)
                for tool, python in peers:
                    for bits in (8, 4) if tool == "torchao" else (8,):
                        bench.peer(tool, python, bits, seed, ["--held-back"] if args.held_back else [])
            if name == "fashion" and args.rows in "searched bits":
                for before, after in (bench.measure("searched bits", seeds[0], SEARCHED, teacher, 20000, 3, 5e-4, True),
                                      bench.refine(seeds[0])):
                    holds = holds and after["loss"] <= before["loss"] / 2
            holds = summary(bench) and holds
            if args.json:
                add_rows(args.json, bench.rows)
    sys.exit(0 if holds else 1)


if __name__ == "__main__":
    main()
