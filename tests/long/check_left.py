#!/usr/bin/env python3
"""Compares the time left that a search predicts after 20 trials with the time it then took.

    check_left.py MSCGYM [--trials 300] [--samples N] [--threads N] [MODEL ...]

Each of three agents searches each network with a budget of trials. MSC_LOG has a line per commit
(log_every); the prediction is in the first line with at least 20 trials, and the record has the
time of the last trial. An agent that ends by itself without knowing its number of trials ("at
most", or no prediction in that line) is exempt; its prediction is printed only.

Prints a table; exits with 1 if a predicted end is off by more than a factor of 1.5. Needs numpy,
onnx and Pillow.
"""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile

import numpy

from model_inputs import inputs, model_path

MODELS = ("digits", "ocr-rec", "mlsd-tiny")
CHOICES = [{"bits": 8}, {"bits": 6, "observer": "mse"}, {"bits": 4, "observer": "mse"}]
AGENTS = {
    "grid_search": {"type": "grid_search"},
    "greedy": {"type": "grid_search", "mode": "greedy", "changes": "all"},
    "random": {"type": "random"},
    "evolutionary": {"type": "evolutionary"},
}
UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}
LINE = re.compile(r": (\d+) trials(?: of (at most )?(\d+))?,.* after ([^,]*)(?:, left (at most )?(.*))?$")
ENOUGH = 20
LIMIT = 1.5


def seconds(text):
    """Converts a time such as "12 min 03 s" to seconds."""
    return sum(float(n) * UNITS[unit] for n, unit in re.findall(r"([\d.e+-]+) (us|ms|s|min|h)", text))


def search(options, folder, model, agent, samples):
    numpy.save(os.path.join(folder, "inputs.npy"), inputs(model, samples))
    env = {"choices": CHOICES, "bounds": {"size_ratio": {"max": 0.2}}}
    config = {"model": os.path.abspath(model_path(model)), "log_every": 1e-6,
              "dataset": {"inputs": "inputs.npy"},
              "quantize": {"gym": [{"env": env, "agent": AGENTS[agent],
                                    "budget": {"trials": options.trials}}]}}
    path = os.path.join(folder, "search.json")
    with open(path, "w") as file:
        json.dump(config, file)
    command = [options.mscgym, "search", path, "--quiet", "--device", "cpu"]
    if options.threads:
        command += ["--threads", str(options.threads)]
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if not os.path.exists(os.path.join(folder, "msc_workspace", "MSC_LOG")):
        sys.exit(done.stderr)
    with open(os.path.join(folder, "msc_workspace", "MSC_LOG")) as file:
        lines = [LINE.search(line.rstrip("\n")) for line in file]
    with open(os.path.join(folder, "msc_workspace", "quantize_0.jsonl")) as file:
        trials = [json.loads(line) for line in file]
    return [line for line in lines if line], [t for t in trials if t["kind"] == "trial"]


def judge(lines, trials):
    """Returns (trials, trials at the prediction, its time, predicted and actual duration in seconds,
    whether the agent is exempt).
    """
    real_s = trials[-1]["measured"]["elapsed_s"]
    told = next((line for line in lines if int(line[1]) >= ENOUGH), None)
    if not told or not told[6]: # the search ended before, or there is no prediction
        return len(trials), len(trials), real_s, float("nan"), real_s, True
    after_s, left_s = seconds(told[4]), seconds(told[6])
    ends_itself = int(told[3]) != len([t for t in trials if "baseline" not in t])
    return (len(trials), int(told[1]), after_s, after_s + left_s, real_s,
            bool(told[5]) and ends_itself)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("mscgym", type=os.path.abspath)
    parser.add_argument("models", nargs="*")
    parser.add_argument("--trials", type=int, default=300)
    parser.add_argument("--samples", type=int, default=0, help="0: 512 of digits, 2 of others")
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--agents", default="grid_search,random,evolutionary")
    options = parser.parse_intermixed_args()
    n_failed = 0
    print("| network | agent | trials | told after | predicted end | real end | ratio | of the "
          "time left | load |\n|---|---|---|---|---|---|---|---|---|")
    for model in options.models or MODELS:
        for agent in options.agents.split(","):
            samples = options.samples or (512 if model == "digits" else 2)
            with tempfile.TemporaryDirectory(prefix="check_left_") as folder:
                n, when, after_s, told_s, real_s, is_exempt = judge(
                    *search(options, folder, model, agent, samples))
            ratio = max(told_s / real_s, real_s / told_s)
            left = (told_s - after_s) / max(real_s - after_s, 1e-9)
            n_failed += not is_exempt and not ratio <= LIMIT
            print(f"| {model} | {agent} | {n} | {when} trials, {after_s:.2f} s | {told_s:.2f} s | "
                  f"{real_s:.2f} s | {'exempt' if is_exempt else f'{ratio:.2f}'} | {left:.2f} | "
                  f"{os.getloadavg()[0]:.1f} |", flush=True)
    sys.exit(1 if n_failed else 0)


if __name__ == "__main__":
    main()
