#!/usr/bin/env python3
"""Trials a second, beside a loop over onnxruntime sessions, in one run on both cores.

    trials.py MSCGYM [--json FILE] [--repeats 5] [MODEL ...]

Ours: a `grid_search` per_task over all sites from the record's own clock. Theirs:
bench/peer_onnxruntime.py on a seeded sample of the same kind of trials, the better of two threads and
two processes. Runs are interleaved; the table has medians and the range of the ratio.
"""
import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile

import numpy

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "tests", "long"))
from model_inputs import inputs, model_path  # noqa: E402
import peer_onnxruntime  # noqa: E402

# A search of digits with three choices is over in some milliseconds: it gets more of them.
FEW = [{"bits": b} for b in (8, 6, 4)]
MANY = [{"bits": b, "observer": o} for b in range(8, 1, -1) for o in ("minmax", "mse", "percentile")]
MODELS = {  # model: (images, batch, choices, peer's trials a repeat)
    "digits": (64, 64, MANY, 60),
    "mlsd-tiny": (8, 1, FEW, 12),
}


def ours(mscgym, name, images, batch, choices, folder):
    values = inputs(name, images)
    data = os.path.join(folder, "inputs.npy")
    numpy.save(data, values)
    config = {
        "workspace": os.path.join(folder, "workspace"), "model": model_path(name),
        "dataset": {"inputs": data, "batch": batch},
        "quantize": {"gym": [{
            "record": "trials.jsonl",
            "env": {"choices": choices},
            "agent": {"type": "grid_search", "mode": "per_task"}, "parallel": 64}]}}
    path = os.path.join(folder, "search.json")
    with open(path, "w") as file:
        json.dump(config, file)
    subprocess.run([mscgym, "search", path, "--quiet", "--restart", "--threads", "2"], check=True,
                   stdout=subprocess.DEVNULL)
    lines = []
    with open(os.path.join(folder, "workspace", "trials.jsonl")) as file:
        lines = [line for line in map(json.loads, file) if line["kind"] == "trial"]
    baselines = len(choices)
    seconds = lines[-1]["measured"]["elapsed_s"] - lines[baselines - 1]["measured"]["elapsed_s"]
    return (len(lines) - baselines) / seconds


def theirs(name, images, batch, count, generator):
    values = inputs(name, images)
    import onnx
    model = onnx.load(model_path(name))
    constants = {i.name for i in model.graph.initializer}
    feed = next(i.name for i in model.graph.input if i.name not in constants)
    feeds = [{feed: values[i:i + batch]} for i in range(0, images, batch)]
    n_sites = len(peer_onnxruntime.Narrow(model_path(name), feeds).sites)
    trials = [(generator.randrange(n_sites), generator.randrange(1, 3)) for _ in range(count)]
    return peer_onnxruntime.trials_per_second(model_path(name), feeds, trials)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("mscgym")
    parser.add_argument("models", nargs="*")
    parser.add_argument("--json")
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    mscgym = os.path.abspath(options.mscgym)
    generator = random.Random(0)
    rows = []
    for name in options.models or MODELS:
        images, batch, choices, count = MODELS[name]
        pairs = []
        for _ in range(options.repeats):
            with tempfile.TemporaryDirectory() as folder:
                mine = ours(mscgym, name, images, batch, choices, folder)
            peer, how = theirs(name, images, batch, count, generator)
            pairs.append((mine, peer))
            print(f"{name}: {mine:.1f} against {peer:.2f} ({how})", file=sys.stderr, flush=True)
        ratios = [m / p for m, p in pairs]
        rows.append({
            "bench": "trials", "model": name, "agent": "grid_search per_task",
            "peer": f"onnxruntime {peer_onnxruntime.onnxruntime.__version__}, session a trial, narrow QDQ",
            "ours": statistics.median(m for m, _ in pairs),
            "theirs": statistics.median(p for _, p in pairs), "ratio": statistics.median(ratios)})
        print(f"| {name} | {rows[-1]['ours']:.1f} | {rows[-1]['theirs']:.2f} | "
              f"{rows[-1]['ratio']:.1f} | {min(ratios):.1f} … {max(ratios):.1f} |", flush=True)
    if options.json:
        with open(options.json, "w") as file:
            json.dump(rows, file, indent=1)


if __name__ == "__main__":
    main()
