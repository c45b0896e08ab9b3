#!/usr/bin/env python3
"""Processor time of every family of operators, compared with onnxruntime, one thread each.

    ops.py KERNEL_TOOL [--json FILE] [--rounds 5] [NAME ...]
    ops.py KERNEL_TOOL --model MODEL.onnx [X.npy ...]

KERNEL_TOOL is build/release/tests/kernels/kernel_tool. The rows are those of the table of kernel
cases (tests/kernels/*_cases.def) with the reader `ops` or `bench`; NAME is a prefix of their names.
Each row becomes a model of one operator with random inputs, which both programs read. With --model
this model is measured instead. Times are processor times, so that
other programs do not count. In each round both programs run one after the other, a tenth of a
second each. A round's ratio is onnxruntime's time divided by ours; the table has medians over
rounds.
"""
import argparse
import glob
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

import numpy
import onnxruntime

SECONDS = 0.1  # processor time of a round


def open_peer(model, inputs):
    """The onnxruntime session of a model, and its inputs by name."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    peer = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return peer, {x.name: numpy.load(file) for x, file in zip(peer.get_inputs(), inputs)}


def peer_us(peer, feeds):
    peer.run(None, feeds)
    times = []
    end = time.process_time() + SECONDS
    while len(times) < 5 or time.process_time() < end:
        start = time.process_time()
        peer.run(None, feeds)
        times.append(time.process_time() - start)
    return statistics.median(times) * 1e6


def run_tool(tool, *arguments):
    return subprocess.run([tool, *arguments], check=True, capture_output=True, text=True).stdout


def measure(tool, rounds, model, inputs):
    """Pairs of microseconds, ours and onnxruntime's."""
    peer, feeds = open_peer(model, inputs)
    return [(float(run_tool(tool, "--time", model, *inputs)), peer_us(peer, feeds))
            for _ in range(rounds)]


def measure_row(tool, rounds, row):
    with tempfile.TemporaryDirectory() as folder:
        run_tool(tool, folder, "--row", str(row))
        inputs = sorted(glob.glob(os.path.join(folder, "*.x*.npy")))
        return measure(tool, rounds, os.path.join(folder, f"{row}.onnx"), inputs)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tool")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--json")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--model", nargs="+", metavar="FILE")
    options = parser.parse_intermixed_args()
    tool, peer = os.path.abspath(options.tool), f"onnxruntime {onnxruntime.__version__}, 1 thread"
    if options.model:
        cases = [{"name": os.path.basename(options.model[0])}]
    else:
        cases = [case for case in map(json.loads, run_tool(tool, "--list").splitlines())
                 if case["is_measured"] and case["name"].startswith(tuple(options.names or [""]))]
    rows = []
    print("| case | ours us | onnxruntime us | ratio |\n|---|---|---|---|")
    for case in cases:
        if options.model:
            pairs = measure(tool, options.rounds, options.model[0], options.model[1:])
        else:
            pairs = measure_row(tool, options.rounds, case["row"])
        ours, theirs = (statistics.median(column) for column in zip(*pairs))
        ratio = statistics.median(b / a for a, b in pairs)
        print(f"| {case['name']} | {ours:.1f} | {theirs:.1f} | {ratio:.2f} |", flush=True)
        # Rates, so that higher is better.
        rows.append({"bench": "ops", "model": case["name"], "agent": "", "peer": peer,
                     "ours": 1e6 / ours, "theirs": 1e6 / theirs, "ratio": ratio})
    ratios = [row["ratio"] for row in rows]
    print(f"{len(ratios)} rows: geometric mean {statistics.geometric_mean(ratios):.2f}, "
          f"least {min(ratios):.2f}, {sum(r < 0.5 for r in ratios)} below 0.5")
    if options.json:
        with open(options.json, "w") as file:
            json.dump(rows, file, indent=1)


main()
