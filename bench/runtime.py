#!/usr/bin/env python3
"""Exported models in ONNX Runtime, compared with the float model and other quantisers.

    runtime.py MSCGYM MODEL... [--samples N] [--batch N] [--rounds N] [--trials N]
               [--outputs TENSOR...] [--json FILE]

MODEL is a name of scripts/fetch-models, or a file with NAME.inputs.npz next to it. For uniform 8 bits
it compares the loss that mscgym predicts with that of the exported model in the runtime, on the same
samples and batches (of the model's own size, if that is fixed). It also measures latency at batch 1
on one thread, in interleaved rounds, as ratios. Peers are quantize_static, with the least loss of
minmax, entropy and percentile, and for the networks of trials.py the fused form of peers/wide.py.

--trials N adds two searches of N trials: for the least loss in a quarter of the bytes, over 8 and 4
bits and float; and for the least latency at twice the loss of uniform 8, over 8 bits and float.
--outputs measures the network up to these tensors, for example before a softmax, where a step of
one integer may change everything. A line with WRONG misses a requirement of the project.
"""
import argparse
import os
import statistics
import sys
import tempfile

import numpy
import onnx
import onnxruntime

import common
import delivered
import model as models
import static
import trials
from plans import Plans
from wide import WideSession


def session(model):
    """A session for a path or for a model's bytes."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def loss(base, other, samples, batch):
    """Mean over float outputs of mean (y - z)^2 / mean y^2: mscgym's `mse`."""
    n = len(next(iter(samples.values())))
    wrong, power = {}, {}
    for i in range(0, n, batch):
        feed = {k: v[i:i + batch] for k, v in samples.items()}
        names = [o.name for o in base.get_outputs() if o.type == "tensor(float)"]
        for name, y, z in zip(names, base.run(names, feed), other.run(names, feed)):
            y = y.astype(numpy.float64)
            wrong[name] = wrong.get(name, 0) + ((y - z) ** 2).sum()
            power[name] = power.get(name, 0) + (y ** 2).sum()
    return statistics.mean(wrong[k] / power[k] for k in wrong)


def islands(n):
    """A search that may give weights 4 bits, and leave tensors that lose most in float."""
    return {"env": {"choices": [{"float": True}, {"bits": 8}, {"bits": 8, "observer": "mse"},
                                {"bits": 4, "observer": "mse"}],
                    "bounds": {"size_ratio": {"max": 0.25}}},
            "agent": {"type": "evolutionary", "population": 16}, "budget": {"trials": n}}


def quickest(n, most):
    """A search for the least latency with at most this loss, as measured in the end."""
    return {"env": {"choices": [{"bits": 8}, {"float": True}], "objectives": ["latency_us"],
                    "bounds": {"distill_loss": {"max": most}}},
            "agent": {"type": "evolutionary", "population": 16}, "budget": {"trials": n},
            "rerank": {"top": 10}}


def cut(model, folder, outputs):
    """The network up to these tensors, in a file of the same name."""
    path = os.path.join(folder, os.path.basename(model))
    inputs = [value.name for value in session(model).get_inputs()]
    onnx.utils.extract_model(model, path, inputs, outputs, check_model=False)
    return path


class Network:
    """A network, its samples, and the models made from it, by name."""

    def __init__(self, args, model, folder):
        self.args, self.folder = args, folder
        self.name = os.path.splitext(os.path.basename(model))[0]
        self.samples = delivered.samples_of(model, args.samples)
        self.model = cut(model, folder, args.outputs) if args.outputs else model
        self.base = session(self.model)
        self.losses, self.sessions, self.rows = {}, {"float": self.base}, []
        fixed = self.base.get_inputs()[0].shape[0]
        self.batch = fixed if isinstance(fixed, int) else args.batch

    def loss_of(self, path):
        return loss(self.base, session(path), self.samples, self.batch)

    def search(self, what, entry, target="onnxruntime"):
        return delivered.search(self.args.mscgym, os.path.join(self.folder, what), self.model,
                                self.samples, target, self.batch, entry)

    def deliver(self, what, entry):
        """The winner of a search in the runtime: its path, and the reported loss."""
        path, said, noise = self.search(what, entry)
        self.losses[what] = self.loss_of(path)
        delivered.tell_loss(self.name, what, said, self.losses[what], noise)
        return path, said

    def quantize_static(self):
        found = {}
        for method in static.METHODS:
            try:
                path = static.quantize(self.folder, self.model, self.samples, method)
                found[method] = self.loss_of(path)
                self.sessions["quantize_static"] = session(path)
            except Exception as error:  # a failure to quantise is a result, too
                print(f"{self.name}: quantize_static, {method}: {str(error).splitlines()[0][:100]}")
        if not found:
            return
        ours, least = self.losses["uniform 8"], min(found.values())
        print(f"{self.name}: quantize_static: loss " +
              ", ".join(f"{m} {v:.5g}" for m, v in found.items()) +
              f"; ours {ours / least:.3f} of the least", flush=True)
        self.rows.append(common.row("runtime", self.name, "1 / loss", "quantize_static",
                                    [(1 / ours, 1 / least)]))

    def fused_form(self):
        """Measures peers/wide.py, which takes its ranges from a search over the inputs of
        weighted joints.
        """
        entry = dict(delivered.UNIFORM, record="ranges.jsonl")
        path, _, _ = self.search("wide", entry, "generic")
        plans = Plans(os.path.join(os.path.dirname(path), "ranges.jsonl"))
        values, = self.samples.values()
        base = models.Base(delivered.float_model(self.args.mscgym, self.model, self.folder),
                           values, 1)
        plan = [0] * len(plans.names)
        model = WideSession(base, plans, 1).apply(plan)
        self.sessions["fused form"] = session(model.SerializeToString())

    def search_size(self, uniform):
        path, _ = self.deliver("size search", islands(self.args.trials))
        ours, theirs = os.path.getsize(path), os.path.getsize(uniform)
        share = self.losses["size search"] / self.losses["uniform 8"]
        print(f"{self.name}: size search: file {ours} bytes, uniform 8 {theirs} "
              f"({ours / theirs:.3f}), loss {share:.3f} of its"
              f"{'' if ours <= theirs or share < 1 else ' WRONG'}", flush=True)

    def search_latency(self, said):
        path, _ = self.deliver("latency search", quickest(self.args.trials, 2 * said))
        self.sessions["latency search"] = session(path)

    def measure_latency(self):
        names = list(self.sessions)
        feed = {k: v[:1] for k, v in self.samples.items()}
        runs = [lambda s=s: s.run(None, feed) for s in self.sessions.values()]
        rounds = delivered.latency(runs, self.args.rounds, self.args.clock)
        rounds = [dict(zip(names, times)) for times in rounds]
        for what in names[1:]:
            self.tell_latency(rounds, what, ["float"])
        others = [n for n in ("quantize_static", "fused form") if n in names]
        if others:
            self.tell_latency(rounds, "uniform 8", others, 1.10)
        if "latency search" in names:
            self.tell_latency(rounds, "latency search",
                              [n for n in ("float", "uniform 8", "quantize_static") if n in names],
                              1.08)

    def tell_latency(self, rounds, what, others, most=None):
        """Prints the ratios to the fastest of the others, by median."""
        other = min(others, key=lambda o: statistics.median(times[o] for times in rounds))
        ratios = delivered.ratios(rounds, what, other)
        wrong = most and statistics.quantiles(ratios, n=4)[0] > most
        print(f"{self.name}: {what}: latency / {other} {delivered.quartiles(ratios)}"
              f"{' WRONG' if wrong else ''}", flush=True)
        peer = " or ".join(others) if len(others) > 1 else other
        # Rates, so that higher is better.
        self.rows.append(common.row("runtime", self.name, f"speed of {what}", peer,
                                    [(1 / times[what], 1 / times[other]) for times in rounds]))

    def measure(self):
        uniform, said = self.deliver("uniform 8", delivered.UNIFORM)
        self.sessions["uniform 8"] = session(uniform)
        self.quantize_static()
        if self.name in trials.MODELS:
            self.fused_form()
        if self.args.trials:
            self.search_size(uniform)
            self.search_latency(said)
        self.measure_latency()
        return self.rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("mscgym", type=os.path.abspath)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--samples", type=int, default=64)
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--trials", type=int, default=0)
    parser.add_argument("--clock", choices=sorted(delivered.CLOCKS), default="wall")
    parser.add_argument("--outputs", nargs="+")
    parser.add_argument("--json")
    args = parser.parse_args()
    helper = os.path.join(common.HERE, "..", "tools", "mscgym-runtime")
    os.environ.setdefault("MSCGYM_RUNTIME", f"{sys.executable} {os.path.abspath(helper)}")
    print(f"{common.machine()}; {common.version(args.mscgym)}; onnxruntime "
          f"{onnxruntime.__version__}")
    rows = []
    for model in args.models:
        path = model if os.path.exists(model) else common.model_path(model)
        with tempfile.TemporaryDirectory() as folder:
            rows += Network(args, path, folder).measure()
        common.save_rows(args.json, rows)


if __name__ == "__main__":
    main()
