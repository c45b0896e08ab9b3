#!/usr/bin/env python3
"""Measures every point of a real space once, so that searches of it can be judged by their regret.

    quality_digits.py MSCGYM [--tasks 8] [--choices 8,6,4,3] [--shares 0.3,0.5] [--folder FOLDER]

The space has the tasks of examples/digits that lose most at their cheapest choice; other tensors are
float. With eight tasks of four choices it has 65,536 points. Writes digits.csv; digits.json, which
names the cost that adds up and is known without a trial (size_bytes); and, for each share of the
range of sizes, digits_SHARE.problem.json for quality.py. An existing digits.csv is used as it is.
"""
import argparse
import json
import os
import subprocess
import tempfile

import numpy

import quality_problems

HERE = os.path.dirname(os.path.abspath(__file__))
DIGITS = os.path.join(HERE, "..", "examples", "digits")
MEMORY = "/dev/shm" if os.path.isdir("/dev/shm") else None


def search(options, folder, agent, more=None):
    """The header and trials of a search of digits."""
    env = {"choices": [{"bits": bits} for bits in options.choices], **(more or {})}
    config = {
        "workspace": os.path.join(folder, "work"), "verbose": "error",
        "model": os.path.join(DIGITS, "digits.onnx"),
        "dataset": {"inputs": os.path.join(DIGITS, "calibration.npz"), "samples": 128, "batch": 64},
        "quantize": {"target": "generic", "strategy_file": "strategy.json",
                     "gym": [{"record": "r.jsonl", "env": env, "agent": agent, "parallel": 512}]}}
    path = os.path.join(folder, "search.json")
    with open(path, "w") as file:
        json.dump(config, file)
    subprocess.run([options.mscgym, "search", path, "--quiet", "--restart"], check=True,
                   stdout=subprocess.DEVNULL)
    with open(os.path.join(folder, "work", "r.jsonl")) as file:
        header = json.loads(file.readline())
        return header, [line for line in map(json.loads, file) if line["kind"] == "trial"]


def most_sensitive(options, folder):
    header, trials = search(options, folder, {"type": "grid_search", "bounded": False})
    losses = {}
    for line in trials:
        changed = [t for t, c in enumerate(line["choices"]) if c != 0]
        if len(changed) == 1 and line["state"] == "complete":
            losses[changed[0]] = max(losses.get(changed[0], 0), line["metrics"]["distill_loss"])
    names = [task["name"] for task in header["space"]["tasks"]]
    best = sorted(losses, key=losses.get, reverse=True)[:options.tasks]
    return [names[t] for t in sorted(best)]


def measure(options, folder):
    names = most_sensitive(options, folder)
    header, trials = search(options, folder, {"type": "grid_search", "mode": "full", "bounded": False},
                            {"include": names})
    tasks = header["space"]["tasks"]
    points = {}
    for line in trials:
        if "repeat_of" not in line:
            metrics = line["metrics"] if line["state"] == "complete" else {}
            points[tuple(line["choices"])] = (metrics.get("distill_loss"),
                                              metrics.get("size_bytes"))
    return tasks, points


def write_table(options, tasks, points):
    sizes = {point: size for point, (_, size) in points.items()}
    first = (0,) * len(tasks)
    alone = [[sizes[first[:t] + (c,) + first[t + 1:]] - sizes[first]
              for c in range(len(task["choices"]))] for t, task in enumerate(tasks)]
    with open(os.path.join(options.folder, "digits.json"), "w") as file:
        json.dump({"schema": "mscgym.table.1", "rows": "digits.csv",
                   "tasks": [{"name": t["name"], "choices": t["choices"]} for t in tasks],
                   "metrics": [{"name": "distill_loss"}],
                   "costs": [{"name": "size_bytes", "unit": "bytes", "constant": sizes[first],
                              "alone": alone}]}, file, indent=1)
    path = os.path.join(options.folder, "digits.csv")
    with open(path + ".part", "w") as file:
        file.write(",".join([t["name"] for t in tasks] + ["distill_loss", "size_bytes"]) + "\n")
        for point, (loss, size) in sorted(points.items()):
            labels = [t["choices"][c] for t, c in zip(tasks, point)]
            file.write(",".join(labels + ["failed" if loss is None else repr(loss), str(size)]) +
                       "\n")
    os.replace(path + ".part", path)


def write_problems(options):
    with open(os.path.join(options.folder, "digits.csv")) as file:
        rows = [line.rstrip("\n").split(",")[-2:] for line in file][1:]
    loss = numpy.array([numpy.nan if row[0] == "failed" else float(row[0]) for row in rows])
    size = numpy.array([float(row[1]) for row in rows])
    for share in options.shares:
        bound = size.min() + share * (size.max() - size.min())
        feasible = loss[(size <= bound) & ~numpy.isnan(loss)]
        drawn = numpy.random.default_rng(12345).choice(feasible, 400)
        name = f"digits_{share:g}"
        with open(os.path.join(options.folder, name + ".problem.json"), "w") as file:
            json.dump({"name": name, "group": f"digits, bound {share:g}",
                       "version": quality_problems.VERSION,
                       "env": {"type": "table", "file": "digits.json",
                               "bounds": {"size_bytes": {"max": bound}}},
                       "optimum": feasible.min(), "reference": numpy.median(drawn)}, file, indent=1)
        print(f"{name}: {len(rows)} points, {len(feasible)} feasible, optimum {feasible.min():.4g}, "
              f"reference {numpy.median(drawn):.4g}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("mscgym", type=os.path.abspath)
    parser.add_argument("--tasks", type=int, default=8)
    parser.add_argument("--choices", type=lambda text: [int(b) for b in text.split(",")],
                        default=[8, 6, 4, 3])
    parser.add_argument("--shares", type=lambda text: [float(s) for s in text.split(",")],
                        default=[0.3, 0.5])
    parser.add_argument("--folder", default=os.path.expanduser("~/.cache/mscgym/quality"))
    options = parser.parse_args()
    os.makedirs(options.folder, exist_ok=True)
    if not os.path.exists(os.path.join(options.folder, "digits.csv")):
        with tempfile.TemporaryDirectory(prefix="bench_quality_", dir=MEMORY) as folder:
            write_table(options, *measure(options, folder))
    write_problems(options)


if __name__ == "__main__":
    main()
