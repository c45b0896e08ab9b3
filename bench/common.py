"""Shared parts of the benchmarks: searches, rows, tables, and the description of the machine."""
import json
import os
import re
import signal
import statistics
import subprocess
import sys

import numpy

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "tests", "long"))
sys.path.insert(0, os.path.join(HERE, "peers"))
from model_inputs import inputs, model_path  # noqa: E402
from plans import load_record  # noqa: E402

# A benchmark that is stopped also ends the search that it waits for.
signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))

ISAS = ("amx_int8", "avx512_vnni", "avx_vnni", "avx512f", "avx2")


def machine():
    """The processor, and the widest instruction sets that it has."""
    text = subprocess.run(["lscpu"], check=True, capture_output=True, text=True,
                          env=dict(os.environ, LC_ALL="C")).stdout
    name = re.search(r"Model name:\s*(.*)", text).group(1)
    flags = re.search(r"Flags:\s*(.*)", text).group(1).split()
    found = [isa for isa in ISAS if isa in flags]
    limit = os.environ.get("ONEDNN_MAX_CPU_ISA")
    return (f"{name}, {os.cpu_count()} cores, {' '.join(found)}" +
            (f", ONEDNN_MAX_CPU_ISA={limit}" if limit else ""))


def second_core():
    """Work of two busy processes relative to one: 2.0 if a second core is available."""
    import multiprocessing
    import time
    with multiprocessing.get_context("fork").Pool(2) as pool:
        pool.map(_busy, [1, 1])
        start = time.perf_counter()
        pool.map(_busy, [4])
        alone = time.perf_counter() - start
        start = time.perf_counter()
        pool.map(_busy, [4, 4], chunksize=1)
        return 2 * alone / (time.perf_counter() - start)


def _busy(n):
    total = 0
    for i in range(n * 1000 * 1000):
        total += i
    return total


def version(mscgym):
    text = subprocess.run([mscgym, "--version"], check=True, capture_output=True, text=True).stdout
    return text.splitlines()[0]


class Search:
    """A search of a model, with its record in a separate folder. `more` are further keys of its entry."""

    def __init__(self, mscgym, folder, model, values, choices, agent, trials=None, bounds=None,
                 batch=None, parallel=64, target="generic", observers=None, more=None):
        self.mscgym = mscgym
        self.path = os.path.join(folder, "search.json")
        self.record = os.path.join(folder, "workspace", "trials.jsonl")
        data = os.path.join(folder, "inputs.npy")
        numpy.save(data, values)
        env = {"choices": choices}
        if bounds:
            env["bounds"] = bounds
        if observers:
            env["observers"] = observers
        entry = {"record": "trials.jsonl", "env": env, "agent": agent, "parallel": parallel,
                 **(more or {})}
        if trials:
            entry["budget"] = {"trials": trials}
        dataset = {"inputs": data}
        if batch:
            dataset["batch"] = batch
        config = {"workspace": os.path.join(folder, "workspace"), "model": os.path.abspath(model),
                  "dataset": dataset, "quantize": {"target": target, "gym": [entry]}}
        with open(self.path, "w") as file:
            json.dump(config, file)

    def command(self, *options):
        return [self.mscgym, "search", self.path, "--quiet", *options]

    def run(self, *options, environment=None):
        result = subprocess.run(self.command("--restart", *options), stdout=subprocess.DEVNULL,
                                stderr=subprocess.PIPE, text=True,
                                env=dict(os.environ, **(environment or {})))
        if result.returncode != 0:
            sys.exit(f"mscgym: {result.stderr.strip()}")
        return Run(self.record)


class Run:
    """The search itself, according to its record; baselines are left out."""

    def __init__(self, record):
        self.header, self.trials = load_record(record)
        baselines = [t for t in self.trials if "baseline" in t]
        own = [t for t in self.trials if "baseline" not in t]
        self.evaluated = [t for t in own if "repeat_of" not in t and
                          t["state"] in ("complete", "pruned")]
        self.complete = [t for t in self.evaluated if t["state"] == "complete"]
        # the duration until the last trial was written
        self.seconds = (self.evaluated[-1]["measured"]["elapsed_s"] -
                        baselines[-1]["measured"]["elapsed_s"])
        self.rate = len(self.evaluated) / max(self.seconds, 1e-3)
        self.reuse = statistics.mean(t["measured"]["reuse"] for t in self.evaluated)
        usable = [t for t in self.trials if t["state"] == "complete"]
        self.best = min(usable, key=lambda t: (t["metrics"]["distill_loss"], t["id"]), default=None)
        self.numerics = self.header["numerics"]


def n_sites(mscgym, model, target="generic"):
    text = subprocess.run([mscgym, "graph", model, "--sites", "--target", target, "--json"],
                          check=True, capture_output=True, text=True).stdout
    return len(json.loads(text))


def row(bench, model, agent, peer, pairs):
    """A row with the medians of (ours, theirs) pairs that were measured together; theirs may be None."""
    ours = statistics.median(o for o, _ in pairs)
    theirs = ratio = None
    if pairs[0][1] is not None:
        theirs = statistics.median(t for _, t in pairs)
        ratio = statistics.median(o / t for o, t in pairs)
    return {"bench": bench, "model": model, "agent": agent, "peer": peer, "ours": ours,
            "theirs": theirs, "ratio": ratio}


def save_rows(path, rows):
    if path:
        with open(path + ".part", "w") as file:
            json.dump(rows, file, indent=1)
        os.replace(path + ".part", path)


def geometric_mean(values):
    return statistics.geometric_mean(values) if values else float("nan")


def available(name):
    if os.path.exists(model_path(name)):
        return True
    print(f"{name}: skipped: run scripts/fetch-models", file=sys.stderr)
    return False
