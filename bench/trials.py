#!/usr/bin/env python3
"""Trials per second, compared with five ways to run the same trials by hand, on both cores.

    trials.py MSCGYM [--json FILE] [--repeats 5] [--sample 40] [--agents greedy,evolutionary]
              [--peers wide,narrow,weights,plain,PyTorch] [--target generic] [MODEL ...]

mscgym's rate is the number of trials evaluated between the last baseline and the last trial, by the
record's own times. The peers run a seeded sample of the same trials with the scales of
RECORD.params; bench/README.md describes each peer. Runs are interleaved. The table has medians and
the losses of both sides. With --target onnxruntime, all tensors that the runtime requantises are
searched, and the peer is a session with each trial's exported model.
"""
import argparse
import os
import random
import statistics
import subprocess
import sys
import tempfile

import numpy

import common
import delivered
import worker

# A pass over the sites of a small network takes almost no time, so digits gets more choices.
FEW = [{"bits": b} for b in (8, 6, 4)]
MANY = [{"bits": b, "scale": s} for b in range(8, 1, -1) for s in (1.0, 1.05, 1.1, 1.15, 1.2)]
MODELS = {  # images, our batch (None: the default), batches that peers may use, choices
    "mlsd-tiny": (8, None, (8, 1), FEW),
    "ocr-rec": (8, None, (8, 1), FEW),
    "resnet18": (8, None, (8, 1), FEW),
    "mobilenet_v2": (8, None, (8, 1), FEW),
    "digits": (64, 64, (64,), MANY),
}
GREEDY = {"type": "grid_search", "mode": "greedy", "changes": "all"}
AGENTS = {  # agent, bounds, trials (None: one pass over the sites)
    "greedy": (dict(GREEDY, bounded=False), None, None),
    "evolutionary": ({"type": "evolutionary", "population": 32, "mutation": 0.05},
                     {"size_ratio": {"max": 0.2}}, 256),
}
DIGITS_TRIALS = {"greedy": 100000, "evolutionary": 8000}


class Bench:
    """One model with one agent."""

    def __init__(self, options, folder, name, agent):
        self.options, self.name, self.agent = options, name, agent
        images, batch, self.batches, choices = MODELS[name]
        settings, bounds, trials = AGENTS[agent]
        self.folder = os.path.join(folder, f"{name}_{agent}")
        os.makedirs(self.folder)
        self.values = common.inputs(name, images)
        if name == "digits":
            trials = DIGITS_TRIALS[agent]
        elif trials is None:
            sites = common.n_sites(options.mscgym, common.model_path(name), options.target)
            # The plan from which changes start comes first, as a repeat of its baseline.
            trials = 1 + sites * (len(choices) - 1)
        self.parts = (options.mscgym, common.model_path(name), self.values, choices, trials, bounds,
                      batch)
        self.search = self.make(self.folder, settings)

    def make(self, folder, settings):
        mscgym, model, values, choices, trials, bounds, batch = self.parts
        return common.Search(mscgym, folder, model, values, choices, settings, trials, bounds,
                             batch, 64, self.options.target)

    def ours(self):
        return self.search.run("--threads", "2")

    def bounded(self):
        """The same pass, with trials that stop once they cannot be the best."""
        folder = os.path.join(self.folder, "bounded")
        os.makedirs(folder, exist_ok=True)
        search = self.make(folder, dict(AGENTS[self.agent][0], bounded=True))
        return search.run("--threads", "2")

    def job(self):
        """The input of a peer: the exported float model, samples, and the record with its parameters."""
        model = delivered.float_model(self.options.mscgym, common.model_path(self.name),
                                      self.folder)
        data = os.path.join(self.folder, "peer.npy")
        numpy.save(data, self.values)
        return {"model": model, "inputs": data, "batches": self.batches,
                "record": self.search.record}

    def export(self, trials):
        """Exports the models of trials, for the peer that runs them."""
        folder = os.path.join(self.folder, "exported")
        os.makedirs(folder, exist_ok=True)
        for trial in trials:
            subprocess.run([self.options.mscgym, "export", self.search.record, "--trial",
                            str(trial["id"]), "-o", os.path.join(folder, f"{trial['id']}.onnx"),
                            "--quiet"], check=True, stdout=subprocess.DEVNULL)

    def measure(self):
        """The rows of this model and agent."""
        first = self.ours()  # the warm-up, and the record that the peers read
        sample = random.Random(0).sample(first.complete,
                                         min(self.options.sample, len(first.complete)))
        plans = [t["choices"] for t in sample]
        job = self.job()
        if any("exported" in kind for kind in self.options.kinds):
            self.export(sample)
        peers = [worker.Peer(kind, job) for kind in self.options.kinds]
        for peer in peers:
            key = (self.name, peer.kind)
            peer.settle(plans[:4], self.options.ways.get(key))
            self.options.ways[key] = peer.way
            print(f"{self.name}, {self.agent}: {peer.kind}: {peer.how}", file=sys.stderr,
                  flush=True)
        mine, theirs, gains, losses = [], {p.kind: [] for p in peers}, [], {}
        for _ in range(self.options.repeats):
            run = self.ours()
            mine.append(run.rate)
            if self.agent == "greedy":
                stopped = self.bounded()
                gains.append(stopped.rate)
                self.check_bounded(run, stopped)
            for peer in peers:
                rate, losses[peer.kind] = peer.measure(plans)
                theirs[peer.kind].append(rate)
            print(f"{self.name}, {self.agent}: {mine[-1]:.1f} against " +
                  ", ".join(f"{theirs[p.kind][-1]:.2f}" for p in peers), file=sys.stderr,
                  flush=True)
        for peer in peers:
            peer.close()
        return self.report(first, sample, peers, mine, theirs, gains, losses)

    def check_bounded(self, run, stopped):
        if stopped.best["choices"] != run.best["choices"]:
            print(f"{self.name}: bounded evaluation found another plan", file=sys.stderr)

    def report(self, run, sample, peers, mine, theirs, gains, losses):
        rows = [common.row("trials", self.name, self.agent, "", [(m, None) for m in mine])]
        print(f"\n{self.name}, {self.agent}: {len(run.evaluated)} trials, "
              f"{statistics.median(mine):.1f} a second ({min(mine):.1f} … {max(mine):.1f}), "
              f"reuse {run.reuse:.3f}, {run.numerics}")
        if gains:
            rows.append(common.row("trials bounded", self.name, self.agent, "unbounded",
                                   list(zip(gains, mine))))
            print(f"with bounded evaluation {rows[-1]['ours']:.1f}, {rows[-1]['ratio']:.2f} times")
        print("\n| peer | trials/s | ratio | range | loss over ours, median and range |\n"
              "|---|---|---|---|---|")
        for peer in peers:
            pairs = list(zip(mine, theirs[peer.kind]))
            rows.append(common.row("trials", self.name, self.agent, f"{peer.kind}, {peer.how}",
                                   pairs))
            ratios = [m / t for m, t in pairs]
            off = [z / t["metrics"]["distill_loss"] for z, t in zip(losses[peer.kind], sample)]
            print(f"| {peer.kind}, {peer.how} | {rows[-1]['theirs']:.2f} | "
                  f"{rows[-1]['ratio']:.1f} | {min(ratios):.1f} … {max(ratios):.1f} | "
                  f"{statistics.median(off):.3f}, {min(off):.3f} … {max(off):.3f} |", flush=True)
        return rows


def summarise(rows):
    """Geometric means and least ratios over the networks, without digits."""
    groups = {}
    for r in rows:
        if r["model"] != "digits" and r["ratio"] is not None:
            kind = next((k for k in worker.KINDS if r["peer"].startswith(k)), r["peer"])
            groups.setdefault((r["bench"], r["agent"], kind), []).append(r["ratio"])
    print("\n| bench | agent | peer | networks | geometric mean | least |\n"
          "|---|---|---|---|---|---|")
    for (bench, agent, kind), ratios in groups.items():
        print(f"| {bench} | {agent} | {kind} | {len(ratios)} | "
              f"{common.geometric_mean(ratios):.1f} | {min(ratios):.1f} |")


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("mscgym", type=os.path.abspath)
    parser.add_argument("models", nargs="*")
    parser.add_argument("--json")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--sample", type=int, default=40)
    parser.add_argument("--agents", default=",".join(AGENTS))
    parser.add_argument("--target", default="generic")
    parser.add_argument("--peers")
    options = parser.parse_intermixed_args()
    if options.peers is None:
        options.peers = ("wide,narrow,weights,plain,PyTorch" if options.target == "generic"
                         else "exported")
    options.ways = {}  # how each peer is run, chosen with the first agent
    options.kinds = [k for k in worker.KINDS if any(w in k for w in options.peers.split(",") if w)]
    return options


def main():
    options = parse()
    import onnxruntime
    print(f"{common.machine()}; two processes do {common.second_core():.2f} times the work of one")
    print(f"{common.version(options.mscgym)}; onnxruntime {onnxruntime.__version__}, "
          f"numpy {numpy.__version__}", flush=True)
    rows = []
    with tempfile.TemporaryDirectory(prefix="bench_trials_") as folder:
        for agent in options.agents.split(","):
            for name in options.models or MODELS:
                if common.available(name):
                    rows += Bench(options, folder, name, agent).measure()
                    common.save_rows(options.json, rows)
    summarise(rows)


if __name__ == "__main__":
    main()
