#!/usr/bin/env python3
"""Float latency on one thread, compared with onnxruntime on one thread.

    forward.py MSCGYM [--json FILE] [--repeats 5] [--device cpu] [MODEL ...]

Each repeat measures both, one after the other. The table has medians in milliseconds, and the
median and range of the ratio theirs / ours: higher is better.
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

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "tests", "long"))
from model_inputs import MAKERS, feeds, model_path  # noqa: E402


def session(path):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(path, options)


def theirs(peer, feed, runs):
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        peer.run(None, feed)
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e3


def ours(command, runs):
    result = subprocess.run(command + ["--repeat", str(runs)], check=True, capture_output=True)
    return json.loads(result.stdout)["latency"]["median_us"] / 1e3


def measure(mscgym, name, device, repeats):
    path = model_path(name)
    peer = session(path)
    feed = feeds(name, 1)
    peer.run(None, feed)
    runs = max(5, min(2000, int(500 / theirs(peer, feed, 3))))
    with tempfile.TemporaryDirectory() as folder:
        command = [mscgym, "run", path, "--threads", "1", "--device", device, "--json", "--quiet"]
        for key, value in feed.items():
            file = os.path.join(folder, f"input_{len(command)}.npy")
            numpy.save(file, value)
            command += ["--input", f"{key}={file}"]
        return [(ours(command, runs), theirs(peer, feed, runs)) for _ in range(repeats)]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("mscgym")
    parser.add_argument("models", nargs="*")
    parser.add_argument("--json")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_intermixed_args()
    rows = []
    print("| model | ours ms | onnxruntime ms | ratio | range |\n|---|---|---|---|---|")
    for name in options.models or MAKERS:
        if not os.path.exists(model_path(name)):
            print(f"{name}: skipped: run scripts/fetch-models", file=sys.stderr)
            continue
        pairs = measure(os.path.abspath(options.mscgym), name, options.device, options.repeats)
        mine, peer = (statistics.median(column) for column in zip(*pairs))
        ratios = [p / m for m, p in pairs]
        ratio = statistics.median(ratios)
        print(f"| {name} | {mine:.3f} | {peer:.3f} | {ratio:.2f} | {min(ratios):.2f} … "
              f"{max(ratios):.2f} |", flush=True)
        # Rates, so that higher is better.
        rows.append({"bench": "forward", "model": name, "agent": "",
                     "peer": f"onnxruntime {onnxruntime.__version__}, 1 thread",
                     "ours": 1e3 / mine, "theirs": 1e3 / peer, "ratio": ratio})
    if options.json:
        with open(options.json, "w") as file:
            json.dump(rows, file, indent=1)


main()
