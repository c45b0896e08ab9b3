#!/usr/bin/env python3
"""Trials per second and float passes on a device, compared with the cpu with two threads.

    device.py MSCGYM [--device vulkan:0] [--threads 8] [--repeats 3] [--json FILE] [MODEL ...]

The search has 8 images in batches of one, widths 8, 6 and 4 under a bound of 0.2 on `size_ratio`,
and the agent `evolutionary` in rounds of 64: 512 trials on the device, 64 on the cpu. Both run
alternately; the first run on the device, in which its driver compiles shaders, does not count.
`forward` is a pass of the float network over one image.
"""
import argparse
import json
import os
import statistics
import subprocess
import tempfile

import numpy

import common
from model_inputs import feeds

CHOICES = [{"bits": b} for b in (8, 6, 4)]
AGENT = {"type": "evolutionary", "population": 32, "mutation": 0.05}


def searches(options, folder, name):
    """Pairs of rates of the device and the cpu."""
    values = common.inputs(name, 8)
    sides = []
    for side, trials in (("device", 512), ("cpu", 64)):
        where = os.path.join(folder, name, side)
        os.makedirs(where)
        sides.append(common.Search(options.mscgym, where, common.model_path(name), values, CHOICES, AGENT, trials,
                                   {"size_ratio": {"max": 0.2}}, batch=1, parallel=64))
    device = ("--device", options.device, "--threads", str(options.threads))
    sides[0].run(*device)
    return [(sides[0].run(*device).rate, sides[1].run("--device", "cpu", "--threads", "2").rate)
            for _ in range(options.repeats)]


def forward(options, folder, name):
    """Pairs of passes per second on the device and the cpu."""
    command = [options.mscgym, "run", common.model_path(name), "--json", "--quiet"]
    for key, value in feeds(name, 1).items():
        file = os.path.join(folder, f"{name}_{len(command)}.npy")
        numpy.save(file, value)
        command += ["--input", f"{key}={file}"]

    def rate(device, threads, times):
        done = subprocess.run(command + ["--device", device, "--threads", threads, "--repeat", str(times)],
                              check=True, capture_output=True)
        return 1e6 / json.loads(done.stdout)["latency"]["median_us"]
    return [(rate(options.device, "1", 200), rate("cpu", "2", 50)) for _ in range(options.repeats)]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("mscgym")
    parser.add_argument("models", nargs="*")
    parser.add_argument("--device", default="vulkan:0")
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json")
    options = parser.parse_intermixed_args()
    options.mscgym = os.path.abspath(options.mscgym)
    rows = []
    print(common.machine())
    print("| what | model | device | cpu, 2 threads | ratio | range |\n|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for name in options.models or ("mlsd-tiny", "ocr-rec"):
            for bench, agent, measure in (("trials", "evolutionary", searches), ("forward", "", forward)):
                pairs = measure(options, folder, name)
                row = common.row(bench, name, agent, "cpu, 2 threads", pairs)
                ratios = [a / b for a, b in pairs]
                print(f"| {bench} | {name} | {row['ours']:.1f} | {row['theirs']:.1f} | {statistics.median(ratios):.1f} | "
                      f"{min(ratios):.1f} … {max(ratios):.1f} |", flush=True)
                rows.append(row)
    common.save_rows(options.json, rows)


main()
