#!/usr/bin/env python3
"""Makes problems of additive and pair terms from real networks, so that searches of them can be judged
by regret.

    quality_recorded.py MSCGYM [NETWORK...] [--tasks 12] [--choices 8,6,4] [--shares 0.3,0.5] [--folder FOLDER]

`mscgym sensitivity` measures the loss of each single choice. Then the tasks that lose most are
selected, preferring those whose choices change the size. Their choices and every pair are measured
again, with all other tasks float. Writes NETWORK.json (docs/table.md) and, for each share of the
range of sizes, NETWORK_SHARE.problem.json for quality.py. Networks and samples are those of
methods_data.py. An existing NETWORK.json is used as it is.

For a pair of tasks, the choices that lose most are measured. If errors are small, the loss is a
mean square of errors that add up, mean((e1 + e2 + ...)^2). Then a pair loses 2 mean(e1 e2) = 2 r
sqrt(l1 l2) more than both choices by themselves, where r is the correlation of the two errors. A
task's other choices are assumed to err in the same direction, so r is that of the measured pair.
Larger errors saturate, and the measured r is then not a correlation: sums over many pairs can be
far below 0, which a loss cannot. So the matrix of correlations is replaced by the nearest valid
one, with ones on its diagonal and no negative eigenvalue (alternating projections: Higham 2002).
The loss of any plan is then a mean square and never below 0, and the losses of single choices
remain as measured.
"""
import argparse
import csv
import io
import json
import os
import subprocess
import sys
import tempfile

import numpy

import common
import methods_data
import quality_problems

NETWORKS = {"fashion": (128, 64), "mlsd-tiny": (4, 1), "ocr-rec": (4, 1)}  # samples, batch size
MEMORY = "/dev/shm" if os.path.isdir("/dev/shm") else None
ROUND = 64
PROJECTIONS = 500


class Sensitivity:
    """The results of `mscgym sensitivity`: `labels` and `sizes` of each task's choices, {(task,
    choice): loss}, and {((task, choice), (task, choice)): loss}. Sizes and losses are differences
    from the reference.
    """

    def __init__(self, options, name, pairs, names=None):
        samples, batch = NETWORKS[name]
        more = {"include": names} if names else {}
        with tempfile.TemporaryDirectory(prefix="bench_quality_", dir=MEMORY) as folder:
            search = common.Search(options.mscgym, folder, common.model_path(name),
                                   methods_data.calibration(name, 0)[:samples],
                                   [dict({"bits": bits, "observer": "minmax"}) for bits in options.choices],
                                   {"type": "auto"}, batch=batch, parallel=ROUND, target="onnx")
            self.add_to_env(search.path, more)
            record = os.path.join(folder, "sensitivity.jsonl")
            run = subprocess.run([options.mscgym, "sensitivity", search.path, "--record", record, "--pairs",
                                  str(pairs), "--csv", "--quiet"], capture_output=True, text=True)
            if run.returncode != 0:
                sys.exit(f"{name}: {run.stderr.strip()}")
            with open(record) as file:
                header = json.loads(file.readline())
                trials = [line for line in map(json.loads, file) if line["kind"] == "trial"]
        self.read(header, trials)
        self.alone, self.pairs = {}, {}
        for row in csv.DictReader(io.StringIO(run.stdout)):
            first, second = (row["task"], row["choice"]), (row["task_2"], row["choice_2"])
            if row["difference"] and second[0]:
                self.pairs[first, second] = float(row["difference"])
            elif row["difference"]:
                self.alone[first] = float(row["difference"])

    @staticmethod
    def add_to_env(path, more):
        with open(path) as file:
            config = json.load(file)
        config["quantize"]["gym"][0]["env"].update(more)
        with open(path, "w") as file:
            json.dump(config, file)

    def read(self, header, trials):
        """Reads labels, and the effect of each single choice on the size."""
        tasks = header["space"]["tasks"]
        self.labels = {task["name"]: task["choices"] for task in tasks}
        sizes = {tuple(t["choices"]): t["metrics"]["size_bytes"] for t in trials}
        first = (0,) * len(tasks)
        self.size = sizes[first]
        self.sizes = {task["name"]: [sizes[first[:t] + (c,) + first[t + 1:]] - self.size
                                     for c in range(len(task["choices"]))] for t, task in enumerate(tasks)}

    def most(self, task):
        """The largest loss of a task's choices, and the choice."""
        return max((self.alone.get((task, label), 0.0), c) for c, label in enumerate(self.labels[task]))


def choose_tasks(found, n):
    order = sorted(found.labels, key=lambda t: (any(found.sizes[t]), found.most(t)[0]), reverse=True)
    return [task for task in found.labels if task in order[:n]]


def nearest_correlations(matrix):
    """Alternates projections onto matrices without negative eigenvalues and onto matrices with a
    diagonal of ones.
    """
    correction = numpy.zeros_like(matrix)
    nearest = matrix.copy()
    for _ in range(PROJECTIONS):
        shifted = nearest - correction
        values, vectors = numpy.linalg.eigh(shifted)
        positive = (vectors * numpy.maximum(values, 0.0)) @ vectors.T
        correction = positive - shifted
        nearest = positive.copy()
        numpy.fill_diagonal(nearest, 1.0)
    values, vectors = numpy.linalg.eigh(nearest)  # removes small negative eigenvalues that remain
    nearest = (vectors * numpy.maximum(values, 0.0)) @ vectors.T
    scale = numpy.sqrt(numpy.diag(nearest))
    return nearest / scale / scale[:, None]


def correlations(found, tasks):
    """Correlations of the errors of any two tasks, as far as they were measured."""
    at = {task: t for t, task in enumerate(tasks)}
    matrix = numpy.eye(len(tasks))
    for ((first, a), (second, b)), difference in found.pairs.items():
        x, y = found.alone[first, a], found.alone[second, b]
        if x > 0 and y > 0:
            r = (difference - x - y) / (2 * numpy.sqrt(x * y))
            matrix[at[first], at[second]] = matrix[at[second], at[first]] = min(1.0, max(-1.0, r))
    return matrix


def record_table(options, name):
    everything = Sensitivity(options, name, 0)
    tasks = choose_tasks(everything, options.tasks)
    found = Sensitivity(options, name, len(tasks) * (len(tasks) - 1) // 2, tasks)
    # An improvement by chance counts as no loss.
    alone = [[max(0.0, found.alone.get((task, label), 0.0)) for label in found.labels[task]] for task in tasks]
    raw = correlations(found, tasks)
    nearest = nearest_correlations(raw)
    roots = [numpy.sqrt(row) for row in alone]
    pairs = [{"tasks": [i, j], "values": (2 * nearest[i, j] * numpy.outer(roots[i], roots[j])).tolist()}
             for i in range(len(tasks)) for j in range(i + 1, len(tasks))]
    off = ~numpy.eye(len(tasks), dtype=bool)
    print(f"{name}: {len(everything.labels)} tasks, {len(tasks)} of them recorded, {len(found.pairs)} pairs; "
          f"correlations {raw[off].min():.2f} to {raw[off].max():.2f}, of root mean square "
          f"{numpy.sqrt((raw[off] ** 2).mean()):.2f}, least eigenvalue {numpy.linalg.eigvalsh(raw).min():.2f}, moved "
          f"by {numpy.sqrt(((nearest - raw)[off] ** 2).mean()):.2f}")
    return {"schema": "mscgym.table.1",
            "tasks": [{"name": task, "choices": found.labels[task]} for task in tasks],
            "metrics": [{"name": "distill_loss", "alone": alone, "pairs": pairs}],
            "costs": [{"name": "size_bytes", "unit": "bytes", "constant": found.size,
                       "alone": [found.sizes[task] for task in tasks]}]}


def write_problems(options, name, table):
    metric, cost = table["metrics"][0], table["costs"][0]
    for share in options.shares:
        problem = quality_problems.Problem(f"{name}_{share:g}", f"{name}, bound {share:g}", metric["alone"],
                                           [(*pair["tasks"], pair["values"]) for pair in metric["pairs"]],
                                           cost["alone"], share)
        optimum, reference = quality_problems.optimum_of_all(problem), quality_problems.reference(problem)
        with open(os.path.join(options.folder, problem.name + ".problem.json"), "w") as file:
            json.dump({"name": problem.name, "group": problem.group, "version": quality_problems.VERSION,
                       "env": {"type": "table", "file": name + ".json",
                               "bounds": {"size_bytes": {"max": cost["constant"] + problem.bound}}},
                       "optimum": optimum, "reference": reference}, file, indent=1)
        print(f"{problem.name}: optimum {optimum:.4g}, reference {reference:.4g}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("mscgym", type=os.path.abspath)
    parser.add_argument("networks", nargs="*", default=list(NETWORKS))
    parser.add_argument("--tasks", type=int, default=12)
    parser.add_argument("--choices", type=lambda text: [int(b) for b in text.split(",")], default=[8, 6, 4])
    parser.add_argument("--shares", type=lambda text: [float(s) for s in text.split(",")], default=[0.3, 0.5])
    parser.add_argument("--folder", default=os.path.expanduser("~/.cache/mscgym/quality"))
    options = parser.parse_args()
    os.makedirs(options.folder, exist_ok=True)
    for name in options.networks:
        path = os.path.join(options.folder, name + ".json")
        if not os.path.exists(path):
            table = record_table(options, name)
            with open(path + ".part", "w") as file:
                json.dump(table, file)
            os.replace(path + ".part", path)
        with open(path) as file:
            write_problems(options, name, json.load(file))


if __name__ == "__main__":
    main()
