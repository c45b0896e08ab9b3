#!/usr/bin/env python3
"""Compares the losses of all trials of searches on vulkan with those on cpu.

    check_vulkan_search.py MSCGYM [--device vulkan] [--target NAME] [--own-scales] [--table]
                           [CASE ...]

The cases are per_task grids: digits (256 samples, all sites); digits-replaced, with choices that
replace weights; mlsd-tiny (8 images, the last ten convolutions; sites before them remain at 8 bits,
as in a grid over all sites); and, only if named, mlsd-float, where sites before them are float32.
The search on the device starts from the header and the scales of the record made on cpu, so that
trials have the same edits; with --own-scales each search calibrates by itself.

Losses may differ by the trial's noise, which `mscgym export --json` reports: how far rounding alone
moves the loss on cpu with the same edits. Integer joints give the same bits on every device. Float
joints do not: the noise assumes that joints before the first quantisation are exact, but two
instruction sets of one cpu already move the losses of mlsd-float further than that.

Prints counts, and with --table a row for each trial (noise 0 if losses are equal). Exits with 1 if
a trial differs by more, 77 without the device. Needs onnx.
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile

import numpy
import onnx

from model_inputs import inputs, model_path

MODELS = {"digits": (256, 64), "mlsd-tiny": (8, 1)}  # number of samples, batch size
CASES = {"digits": "digits", "digits-replaced": "digits", "mlsd-tiny": "mlsd-tiny",
         "mlsd-float": "mlsd-tiny"}
DEFAULT_CASES = ["digits", "digits-replaced", "mlsd-tiny"]
N_LAST = 10
REPLACED = [{"bits": bits, "rounding": "descent", "correct": "affine"} for bits in (8, 6, 4)]
CHOICES = [{"bits": 8}, {"bits": 6, "observer": "mse"}, {"bits": 4, "observer": "mse"}]


def run(*command):
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode != 0:
        sys.exit(f"{' '.join(command[:3])}: {result.stderr}")
    return result.stdout


def has_device(mscgym, device):
    kind = device.split(":")[0]
    return any(line.startswith(f"{kind}:0") for line in run(mscgym, "devices").splitlines())


def split_sites(mscgym, model, path):
    """Two lists of site names: those that only the last convolutions read come second."""
    convolutions = [n.name for n in model.graph.node if n.op_type == "Conv"][-N_LAST:]
    sites = json.loads(run(mscgym, "graph", path, "--sites", "--json"))
    parts = [], []
    for site in sites:
        parts[set(site["joints"]) <= set(convolutions)].append(site["name"])
    return parts


def before_discontinuity(model):
    """The network's first output, and the data that Equal reads in place of the output that depends on it."""
    equal = next(n for n in model.graph.node if n.op_type == "Equal")
    return [model.graph.output[0].name, equal.input[0]]


def make_config(mscgym, case, folder, target):
    name = CASES[case]
    samples, batch = MODELS[name]
    data = os.path.join(folder, "inputs.npy")
    numpy.save(data, inputs(name, samples))
    env = {"choices": REPLACED if case == "digits-replaced" else CHOICES}
    if name == "mlsd-tiny":
        model = onnx.load(model_path(name))
        env["loss_tensors"] = before_discontinuity(model)
        others, last = split_sites(mscgym, model, model_path(name))
        if case == "mlsd-tiny":
            env["fix"] = dict.fromkeys(others, "8")
        else:
            env["include"] = last
    # Without stopping trials early.
    agent = {"type": "grid_search", "mode": "per_task", "bounded": False}
    return {"model": model_path(name), "dataset": {"inputs": data, "batch": batch},
            "quantize": {"target": target,
                         "gym": [{"record": "r.jsonl", "env": env, "agent": agent}]}}


def search(mscgym, config, device, workspace):
    """A new search; returns its record."""
    os.makedirs(workspace)
    path = os.path.join(workspace, "search.json")
    with open(path, "w") as file:
        json.dump(dict(config, workspace=workspace, device=device), file)
    run(mscgym, "search", path, "--quiet")
    return os.path.join(workspace, "r.jsonl")


def search_alike(mscgym, record, device, workspace):
    """A search with the configuration and scales of another record; returns its record."""
    os.makedirs(workspace)
    copy = os.path.join(workspace, os.path.basename(record))
    shutil.copyfile(record + ".params", copy + ".params")
    with open(record) as source, open(copy, "w") as target:
        target.write(source.readline())
    run(mscgym, "resume", copy, "--device", device, "--accept-new-numerics", "--quiet")
    return copy


def trials(record):
    with open(record) as file:
        return [line for line in map(json.loads, file) if line["kind"] == "trial"]


def noise(mscgym, record, trial, folder):
    examined = run(mscgym, "export", record, "--trial", str(trial), "--device", "cpu", "-o",
                   os.path.join(folder, "trial.onnx"), "--quiet", "--json")
    return json.loads(examined)["noise"]


def compare(options, case, folder):
    """Returns (trials, trials with equal losses, trials within their noise, largest difference / noise)."""
    config = make_config(options.mscgym, case, folder, options.target)
    record = search(options.mscgym, config, "cpu", os.path.join(folder, "cpu"))
    other = os.path.join(folder, "device")
    if options.own_scales:
        other = search(options.mscgym, config, options.device, other)
    else:
        other = search_alike(options.mscgym, record, options.device, other)
    ours, theirs = trials(record), trials(other)
    if [t["choices"] for t in ours] != [t["choices"] for t in theirs]:
        sys.exit(f"{case}: the searches took different ways")
    n_equal, n_within, worst = 0, 0, 0
    if options.table:
        print("| trial | cpu | device | difference | noise | |\n|---|---|---|---|---|---|")
    for mine, other in zip(ours, theirs):
        a, b = (t["metrics"]["distill_loss"] for t in (mine, other))
        difference = abs(b - a) / a
        # Noise takes nine evaluations and is not needed if losses are equal.
        limit = 0 if a == b else noise(options.mscgym, record, mine["id"], folder)
        n_equal += a == b
        n_within += difference <= limit
        worst = max(worst, difference / limit if limit else numpy.inf if difference else 0)
        if options.table:
            print(f"| {mine['id']} | {a:.9e} | {b:.9e} | {difference:.2e} | {limit:.2e} | "
                  f"{'' if difference <= limit else 'FAILS'} |", flush=True)
    return len(ours), n_equal, n_within, worst


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("mscgym", type=os.path.abspath)
    parser.add_argument("--device", default="vulkan")
    parser.add_argument("--target", default="onnxruntime")
    parser.add_argument("--own-scales", action="store_true")
    parser.add_argument("--table", action="store_true")
    parser.add_argument("cases", nargs="*", metavar="CASE")
    options = parser.parse_intermixed_args()
    if not has_device(options.mscgym, options.device):
        print(f"no device {options.device}")
        sys.exit(77)
    has_failed = False
    for case in options.cases or DEFAULT_CASES:
        with tempfile.TemporaryDirectory() as folder:
            n_trials, n_equal, n_within, worst = compare(options, case, folder)
        has_failed = has_failed or n_within < n_trials
        print(f"{case}: {n_within} of {n_trials} trials within their noise, {n_equal} of them "
              f"equal, greatest difference {worst:.2f} of the noise", flush=True)
    sys.exit(int(has_failed))


main()
