#!/usr/bin/env python3
"""Search problems whose points are all listed, as rows for the environment `table` (docs/table.md).

    quality_tables.py measure FOLDER            makes the problem `product`, with the compiler cc
    quality_tables.py cache FILE.json FOLDER    makes a problem of a cache file of Kernel Tuner

quality.py uses two kinds by itself:

  saturating   losses log(1 + x) and 1 - exp(-x) of a sum x over tasks: each task alone counts
               almost as much as all together. One cost adds up and has an upper bound, as in
               quality_problems.py.
  tuning       the time of a tiled GPU kernel by a model of occupancy, traffic and waves, with 2 %
               of noise. Points that exceed the threads, registers or shared memory of the device,
               or whose vectors do not divide the tile, fail: about seven of ten.

`measure` compiles and runs tuned_product.c for every point, in some minutes; points that break its
constraints do not compile. `cache` reads measured times of a GPU kernel; points that the file lacks
or lists as errors fail. Give the files that they write to quality.py.

Random numbers come from numpy.random.default_rng(seed), in the order of the code, so changing this
order changes a problem. The regret of a point is that of quality_problems.py, except that the
reference is the median of all points that can be measured and meet the bound.
"""
import csv
import json
import os
import subprocess
import sys
import tempfile

import numpy

VERSION = 1  # version of the cached problems: increase it with any change below


class Listed:
    """A problem of tasks {name: labels} and the value of every point, NaN where it fails."""

    def __init__(self, name, group, tasks, values, cost=None, bound=None):
        self.name, self.group, self.tasks = name, group, tasks
        self.points = numpy.stack(numpy.unravel_index(
            numpy.arange(len(values)), [len(labels) for labels in tasks.values()]), axis=1)
        self.values, self.cost, self.bound = values, cost, bound

    def feasible(self):
        """The values of all points that can be measured and meet the bound."""
        is_good = numpy.isfinite(self.values)
        if self.cost is not None:
            costs = sum(row[self.points[:, t]] for t, row in enumerate(self.cost))
            is_good &= costs <= self.bound
        return self.values[is_good]

    def write_rows(self, path):
        with open(path, "w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow([*self.tasks, "distill_loss"])
            labels = list(self.tasks.values())
            for point, value in zip(self.points, self.values):
                writer.writerow([labels[t][c] for t, c in enumerate(point)] +
                                [f"{value:.9g}" if numpy.isfinite(value) else "failed"])

    def table(self):
        return {
            "schema": "mscgym.table.1", "rows": f"{self.name}.csv",
            "tasks": [{"name": name, "choices": labels} for name, labels in self.tasks.items()],
            "metrics": [{"name": "distill_loss"}],
            "costs": [{"name": "size_bytes", "alone": [row.tolist() for row in self.cost]}],
        }


# ---- Saturating losses -------------------------------------------------------------------------

def saturating(seed, kind, share=0.5):
    """Ten tasks of three choices, or eight of four (odd seeds)."""
    random = numpy.random.default_rng(8000 + seed)
    n_tasks, n_choices = (10, 3) if seed % 2 == 0 else (8, 4)
    sensitivity = numpy.exp(random.normal(0, .6, n_tasks))
    sizes = numpy.exp(random.normal(0, 1, n_tasks))
    steps = random.uniform(2.5, 6, (n_tasks, n_choices - 1))
    alone = [numpy.concatenate([[0], s * numpy.cumprod(row) / numpy.prod(row)])
             for s, row in zip(sensitivity, steps)]
    scale = numpy.exp(random.uniform(numpy.log(30), numpy.log(2000))) if kind == "log" else \
        random.uniform(5, 25)
    tasks = {f"task_{t}": [str(n_choices - c) for c in range(n_choices)] for t in range(n_tasks)}
    total = sum(row[-1] for row in alone)
    points = numpy.stack(numpy.unravel_index(numpy.arange(n_choices ** n_tasks),
                                             [n_choices] * n_tasks), axis=1)
    sums = scale / total * sum(row[points[:, t]] for t, row in enumerate(alone))
    values = numpy.log1p(sums) if kind == "log" else -numpy.expm1(-sums)
    cost = [size * numpy.linspace(8, 3, n_choices) for size in sizes]
    least, greatest = sum(row[-1] for row in cost), sum(row[0] for row in cost)
    return Listed(f"saturating_{kind}_{seed}", f"saturating {kind}", tasks, values, cost,
                  float(least + share * (greatest - least)))


# ---- Kernel tuning -----------------------------------------------------------------------------

def tuning(seed):
    """A stencil of random radius and weight of arithmetic on a device of random limits."""
    random = numpy.random.default_rng(9000 + seed)
    tasks = {"block_x": [16, 32, 48, 64, 128, 256], "block_y": [1, 2, 4, 8, 16],
             "tile_x": [1, 2, 3, 4, 6, 8], "tile_y": [1, 2, 3, 4, 6, 8], "vector": [1, 2, 4],
             "unroll": [1, 2, 4, 8], "shared": [0, 1], "stages": [1, 2]}
    columns = numpy.meshgrid(*tasks.values(), indexing="ij")
    bx, by, tx, ty, vector, unroll, shared, stages = (c.ravel().astype(float) for c in columns)
    radius, arithmetic = random.integers(1, 9), numpy.exp(random.uniform(1, 4))
    limits = {"threads": random.choice([512, 1024]), "registers": random.choice([128, 255]),
              "shared": random.choice([32, 48, 64]) * 1024, "units": random.choice([14, 40, 82])}
    registers_of_tile, wide = random.uniform(1.5, 4), random.integers(1, 3)

    threads = bx * by
    registers = 18 + registers_of_tile * tx * ty + 2 * vector * wide + unroll * random.uniform(1, 3)
    bytes_shared = shared * stages * (bx * tx + 2 * radius) * (by * ty + 2 * radius) * 4
    fails = ((threads > limits["threads"]) | (threads < 32) | (registers > limits["registers"]) |
             (bytes_shared > limits["shared"]) | (tx % vector != 0) |
             ((shared == 0) & (stages == 2)))
    resident = numpy.minimum(numpy.floor(65536 / (registers * threads)),
                             numpy.floor(2048 / threads))
    resident = numpy.where(shared > 0, numpy.minimum(
        resident, numpy.floor(2 * limits["shared"] / numpy.maximum(bytes_shared, 1))), resident)
    fails |= resident < 1
    occupancy = numpy.clip(resident * threads / 2048, 1e-3, 1)
    hidden = occupancy * numpy.sqrt(tx * ty) * (1 + .3 * (stages - 1))
    slow = 1 + 1 / (hidden * random.uniform(2, 8))
    halo = (1 + 2 * radius / (bx * tx)) * (1 + 2 * radius / (by * ty))
    reuse = numpy.where(shared > 0, halo, halo * (1 + random.uniform(.1, .6) * radius / (tx * ty)))
    coalesced = 1 + random.uniform(.2, .8) * (bx * vector < 32) + random.uniform(0, .3) * (vector == 1)
    memory = reuse * coalesced * slow
    compute = arithmetic / 20 * (1 + random.uniform(.1, .5) / unroll) * (
        1 + random.uniform(.2, 1) / (tx * ty)) * slow * (1 + .1 * (unroll > 4) * (registers > 64))
    blocks = numpy.ceil(4096 / (bx * tx)) * numpy.ceil(4096 / (by * ty))
    at_once = limits["units"] * numpy.maximum(resident, 1)
    waves = numpy.ceil(blocks / at_once) / (blocks / at_once)
    time = (numpy.maximum(memory, compute) + .3 * numpy.minimum(memory, compute)) * waves
    time *= numpy.exp(random.normal(0, .02, len(time)))
    return Listed(f"tuning_{seed}", "tuning",
                  {name: [str(v) for v in reversed(labels)] for name, labels in tasks.items()},
                  numpy.where(fails, numpy.nan, time).reshape(columns[0].shape)[
                      tuple(slice(None, None, -1) for _ in tasks)].ravel())


# ---- Measured tables ---------------------------------------------------------------------------

PRODUCT = {"BLOCK_I": [120, 48, 24, 8], "BLOCK_J": [240, 80, 48, 16], "BLOCK_K": [240, 120, 60, 30],
           "ROWS": [8, 4, 2, 1], "COLUMNS": [16, 8, 4], "UNROLL": [4, 1], "PACKED": [1, 0]}


def measure():
    """The time of each variant of tuned_product.c on this machine."""
    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "tuned_product.c")
    points = numpy.stack(numpy.unravel_index(numpy.arange(int(numpy.prod(
        [len(v) for v in PRODUCT.values()]))), [len(v) for v in PRODUCT.values()]), axis=1)
    values = numpy.full(len(points), numpy.nan)
    with tempfile.TemporaryDirectory() as folder:
        program = os.path.join(folder, "product")
        for i, point in enumerate(points):
            flags = [f"-D{name}={labels[c]}"
                     for (name, labels), c in zip(PRODUCT.items(), point)]
            built = subprocess.run(["cc", "-O2", "-march=native", "-ftree-vectorize", *flags, source,
                                    "-o", program], capture_output=True)
            if built.returncode == 0:
                values[i] = float(subprocess.run([program], check=True, capture_output=True).stdout)
    return Listed("product", "measured", {name: [str(v) for v in labels]
                                          for name, labels in PRODUCT.items()}, values)


def from_cache(path):
    """A problem of a cache file of Kernel Tuner: its time is what is minimised."""
    with open(path) as file:
        cache = json.load(file)
    names = cache["tune_params_keys"]
    times = {tuple(str(line[name]) for name in names): line["time"]
             for line in cache["cache"].values()}
    labels = [list(dict.fromkeys(point[t] for point in times)) for t in range(len(names))]
    used = [t for t in range(len(names)) if len(labels[t]) > 1]
    shape = [len(labels[t]) for t in used]
    values = numpy.full(int(numpy.prod(shape)), numpy.nan)
    for point, time in times.items():
        if isinstance(time, (int, float)) and 0 < time < 1e19:
            place = [labels[t].index(point[t]) for t in used]
            values[numpy.ravel_multi_index(place, shape)] = time
    name = os.path.basename(path).removesuffix(".json").replace(" ", "_")
    return Listed(name, "tuned kernels", {names[t]: labels[t] for t in used}, values)


def make_all(seeds):
    """All problems of these seeds."""
    return [make(seed) for seed in seeds for make in
            (lambda s: saturating(s, "log"), lambda s: saturating(s, "exp"), tuning)]


def write(problem, folder):
    """Writes the rows, the table if there are costs, and NAME.problem.json, unless they exist."""
    path = os.path.join(folder, problem.name + ".problem.json")
    if os.path.exists(path):
        with open(path) as file:
            if json.load(file).get("version") == VERSION:
                return path
    os.makedirs(folder, exist_ok=True)
    problem.write_rows(os.path.join(folder, problem.name + ".csv"))
    env = {"type": "table", "file": problem.name + ".csv"}
    if problem.cost is not None:
        env = {"type": "table", "file": problem.name + ".json",
               "bounds": {"size_bytes": {"max": problem.bound}}}
        with open(os.path.join(folder, problem.name + ".json"), "w") as file:
            json.dump(problem.table(), file)
    good = problem.feasible()
    about = {"name": problem.name, "group": problem.group, "version": VERSION, "env": env,
             "optimum": float(good.min()), "reference": float(numpy.median(good))}
    with open(path + ".part", "w") as file:
        json.dump(about, file, indent=1)
    os.replace(path + ".part", path)
    return path


def main():
    words = sys.argv[1:]
    if words[:1] == ["measure"] and len(words) == 2:
        print(write(measure(), words[1]))
    elif words[:1] == ["cache"] and len(words) == 3:
        print(write(from_cache(words[1]), words[2]))
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
