#!/usr/bin/env python3
"""How good the fronts of agents are with two or three objectives: agents x problems x budgets x seeds.

    quality_fronts.py MSCGYM [--agents A,B,...] [--groups WORD,...] [--seeds 3] [--problem-seeds 3]
                      [--budgets 50,150,500] [--csv FILE] [--table] [--optuna PYTHON]

Options and agents are those of quality.py. The number of a row (`regret` in the CSV) is the share
of hypervolume missed: 1 - (hypervolume of the feasible trials among the first N) / (hypervolume of
the true front). 0 is the true front. The reference point is the 0.9 quantile of each objective over
20,000 random feasible points; an exact cost has 1.01 times its greatest value instead. Points beyond
the reference point add nothing.

The true fronts come from enumeration or, for sums and chains of integer costs, from dynamic
programming over the cost. Points that fail are not feasible.
"""
import os

import numpy

import quality
import quality_problems
import quality_tables

VERSION = 1  # version of the cached problems: increase it with any change below
SAMPLES = 20000


# ---- Hypervolume ----------------------------------------------------------------------------------

def front_of(values):
    """The rows of `values` [n, objectives], all minimised, that no other row dominates."""
    values = numpy.unique(values, axis=0)
    values = values[numpy.argsort(values.sum(axis=1), kind="stable")]
    kept = []
    while len(values):
        first = values[0]
        kept.append(first)
        values = values[(values < first).any(axis=1)]
    return numpy.array(kept)


def area(front, corner):
    """The area that rows [n, 2] dominate, up to `corner`."""
    total, limit = 0.0, corner[1]
    for x, y in front[numpy.argsort(front[:, 0], kind="stable")]:
        if y < limit:
            total += (corner[0] - x) * (limit - y)
            limit = y
    return total


def hypervolume(values, corner):
    """The volume that rows [n, 2 or 3] dominate, up to `corner`: areas of slices along the last objective."""
    values = values[(values < corner).all(axis=1)]
    if len(values) == 0:
        return 0.0
    values = front_of(values)
    if values.shape[1] == 2:
        return area(values, corner)
    values = values[numpy.argsort(values[:, 2], kind="stable")]
    ends = numpy.append(values[1:, 2], corner[2])
    total, slice_front = 0.0, numpy.empty((0, 2))
    for row, end in zip(values, ends):
        slice_front = front_of(numpy.vstack([slice_front, row[:2]]))
        total += area(slice_front, corner[:2]) * (end - row[2])
    return total


# ---- Problems -------------------------------------------------------------------------------------

class Front:
    """A table with several objectives. `columns` maps each metric to (function of points, is exact, sign),
    in the order of the objectives; `bound` is (function, name, limit) or None.
    """
    def __init__(self, name, group, counts, table, columns, bound=None):
        self.name, self.group, self.counts = name, group, counts
        self.table, self.columns, self.bound = table, columns, bound

    def values(self, points):
        return numpy.stack([sign * of(points) for of, _, sign in self.columns.values()], axis=1)

    def is_feasible(self, points):
        return self.bound[0](points) <= self.bound[2] if self.bound else numpy.ones(len(points), bool)

    def corner(self):
        random = numpy.random.default_rng(12345)
        points = random.integers(self.counts, size=(SAMPLES, len(self.counts)))
        values = self.values(points[self.is_feasible(points)])
        exact = [is_exact for _, is_exact, _ in self.columns.values()]
        most = [sum(numpy.max(row) for row in cost) for cost in self.exact_rows()]
        corner = numpy.quantile(values, .9, axis=0)
        corner[exact] = 1.01 * numpy.array(most)
        return corner

    def exact_rows(self):
        """For each exact objective, an upper limit of what each task's choices add."""
        return [of.rows for of, is_exact, _ in self.columns.values() if is_exact]

    def true_front(self):
        n_points = int(numpy.prod(self.counts))
        front = None
        for first in range(0, n_points, 1 << 17):
            points = numpy.stack(numpy.unravel_index(
                numpy.arange(first, min(first + (1 << 17), n_points)), self.counts), axis=1)
            values = self.values(points)[self.is_feasible(points)]
            front = front_of(values if front is None else numpy.vstack([front, values]))
        return front


class Sum:
    """A metric that adds up over choices, pairs and products of two tasks' factors."""
    def __init__(self, name, alone, pairs=(), products=(), more=None):
        self.name, self.more = name, more or {}
        self.alone = [numpy.asarray(row, float) for row in alone]
        self.pairs = [(i, j, numpy.asarray(matrix, float)) for i, j, matrix in pairs]
        self.products = products
        # An upper limit of each task's share, for the reference point.
        self.rows = self.alone + [numpy.array([scale * max(left) * max(right)])
                                  for scale, _, left, _, right in products]

    def __call__(self, points):
        total = sum(row[points[:, t]] for t, row in enumerate(self.alone)) if self.alone else 0
        for i, j, matrix in self.pairs:
            total = total + matrix[points[:, i], points[:, j]]
        for scale, i, left, j, right in self.products:
            total = total + scale * numpy.asarray(left)[points[:, i]] * numpy.asarray(right)[points[:, j]]
        return total

    def json(self):
        made = {"name": self.name, **self.more}
        if self.alone:
            made["alone"] = [row.tolist() for row in self.alone]
        if self.pairs:
            made["pairs"] = [{"tasks": [i, j], "values": matrix.tolist()} for i, j, matrix in self.pairs]
        if self.products:
            made["terms"] = [{"scale": scale, "factors": [{"task": i, "values": list(left)},
                                                          {"task": j, "values": list(right)}]}
                             for scale, i, left, j, right in self.products]
        return made


def make(name, group, metrics, costs, objectives, bound=None):
    """A problem whose metrics and costs are Sums. `objectives` names some of them; `bound` is (name, limit)."""
    of = {m.name: m for m in [*metrics, *costs]}
    exact = {m.name for m in costs}
    n_choices = [len(row) for row in metrics[0].alone]
    table = {"schema": "mscgym.table.1",
             "tasks": [{"name": f"task_{t}", "choices": [str(n - c) for c in range(n)]}
                       for t, n in enumerate(n_choices)],
             "metrics": [m.json() for m in metrics], "costs": [c.json() for c in costs]}
    columns = {key: (of[key], key in exact, -1 if of[key].more.get("maximised") else 1)
               for key in objectives}
    return Front(name, group, n_choices, table, columns, bound and (of[bound[0]], *bound))


def loss_of(problem):
    return Sum("distill_loss", problem.alone, problem.pairs)


def size_of(problem):
    return Sum("size_bytes", problem.cost)


def time_of(seed, sizes):
    """A measured time: cheaper choices are mostly faster, and neighbours with equal choices fuse."""
    random = numpy.random.default_rng(9000 + seed)
    alone = [[size * f * random.uniform(.7, 1.3) for f in (1, .7, .45)] for size in sizes]
    pairs = []
    for i in range(len(sizes) - 1):
        saved = random.uniform(0, .5) * min(sizes[i], sizes[i + 1])
        pairs.append((i, i + 1, -saved * numpy.eye(3)))
    return Sum("time_us", alone, pairs)


def operations_of(seed, n_tasks, bits=(8, 5, 3)):
    random = numpy.random.default_rng(9100 + seed)
    return Sum("bit_operations", [], products=[
        (float(numpy.exp(random.normal(0, .7))), i, bits, i + 1, bits) for i in range(n_tasks - 1)])


def loss_and_size(seed):
    problem = quality_problems.pairwise(2000 + seed, (.5, 1.0, 2.0)[seed % 3])
    return make(f"front_pairs_{seed}", "pairs: loss, size", [loss_of(problem)], [size_of(problem)],
                ["distill_loss", "size_bytes"])


def trap_and_size(seed):
    problem = quality_problems.trap(2000 + seed)
    return make(f"front_traps_{seed}", "traps: loss, size", [loss_of(problem)], [size_of(problem)],
                ["distill_loss", "size_bytes"])


def accuracy_and_size(seed):
    problem = quality_problems.pairwise(2100 + seed, 1.0)
    accuracy = Sum("accuracy", [-.01 * row for row in problem.alone],
                   [(i, j, -.01 * m) for i, j, m in problem.pairs], more={"maximised": True})
    return make(f"front_accuracy_{seed}", "pairs: accuracy, size", [accuracy], [size_of(problem)],
                ["size_bytes", "accuracy"])


def loss_and_time(seed):
    problem = quality_problems.pairwise(2200 + seed, 1.0)
    time = time_of(seed, [row[0] for row in problem.cost])
    return make(f"front_time_{seed}", "pairs: loss, time", [loss_of(problem), time], [size_of(problem)],
                ["distill_loss", "time_us"])


def three_with_time(seed):
    problem = quality_problems.pairwise(2300 + seed, 1.0)
    random = numpy.random.default_rng(9300 + seed)
    time = time_of(seed, numpy.exp(random.normal(0, 1, 12)))
    return make(f"front_three_{seed}", "pairs: loss, size, time", [loss_of(problem), time],
                [size_of(problem)], ["distill_loss", "size_bytes", "time_us"])


def three_with_operations(seed):
    problem = quality_problems.pairwise(2400 + seed, 1.0)
    return make(f"front_operations_{seed}", "pairs: loss, size, operations", [loss_of(problem)],
                [size_of(problem), operations_of(seed, 12)],
                ["distill_loss", "size_bytes", "bit_operations"])


def bounded(seed):
    problem = quality_problems.pairwise(2500 + seed, 1.0)
    operations = operations_of(seed, 12)
    limit = .5 * sum(scale * 64 for scale, *_ in operations.products)
    return make(f"front_bounded_{seed}", "pairs: loss, size; operations bounded", [loss_of(problem)],
                [size_of(problem), operations], ["distill_loss", "size_bytes"], ("bit_operations", limit))


class Integers(Front):
    """Loss and an integer size. The losses of a task, and of a task with the task before it, add up, so
    the front follows from the least loss for each size and choice of the last task.
    """
    def true_front(self):
        loss, size = (of for of, _, _ in self.columns.values())
        matrices = {j: matrix for _, j, matrix in loss.pairs}
        n_sizes = int(sum(row.max() for row in size.alone)) + 1
        best = numpy.full((self.counts[0], n_sizes), numpy.inf)
        for c in range(self.counts[0]):
            best[c, int(size.alone[0][c])] = loss.alone[0][c]
        for t in range(1, len(self.counts)):
            after = numpy.full((self.counts[t], n_sizes), numpy.inf)
            for c in range(self.counts[t]):
                to = matrices[t][:, c] if t in matrices else numpy.zeros(len(best))
                least = (best + to[:, None]).min(axis=0) + loss.alone[t][c]
                step = int(size.alone[t][c])
                after[c, step:] = least[:n_sizes - step]
            best = after
        least = best.min(axis=0)
        found = numpy.stack([least, numpy.arange(n_sizes)], axis=1)[numpy.isfinite(least)]
        return front_of(found)


def integers(name, group, alone, pairs, sizes, bits):
    made = make(name, group, [Sum("distill_loss", alone, pairs)],
                [Sum("size_bytes", [[int(s) * b for b in bits] for s in sizes])],
                ["distill_loss", "size_bytes"])
    return Integers(made.name, made.group, made.counts, made.table, made.columns)


def additive_30(seed):
    random = numpy.random.default_rng(9400 + seed)
    scale, sizes = numpy.exp(random.normal(0, 1, 30)), random.integers(1, 40, 30)
    bits = (8, 6, 4, 3, 2)
    alone = [[s * 4.0 ** (2 - b) * random.uniform(.8, 1.2) if b < 8 else 0 for b in bits] for s in scale]
    return integers(f"front_additive_{seed}", "additive 30: loss, size", alone, [], sizes, bits)


def chain_24(seed):
    random = numpy.random.default_rng(9500 + seed)
    sizes, bits = random.integers(1, 40, 24), (8, 6, 4, 3)
    alone = [[0, .04 * s, .2 * s, s] for s in numpy.exp(random.normal(0, 1, 24))]
    pairs = []
    for i in range(23):
        matrix = random.normal(0, .7, (4, 4)) * numpy.sqrt(numpy.outer(alone[i], alone[i + 1]))
        pairs.append((i, i + 1, matrix))
    return integers(f"front_chain_{seed}", "chains 24 x 4: loss, size", alone, pairs, sizes, bits)


def chain_80(seed):
    problem = quality_problems.chain(2600 + seed, 80, 6, "without")
    return integers(f"front_chain_80_{seed}", "chains 80 x 6: loss, size", problem.alone, problem.pairs,
                    [row[-1] / 2 for row in problem.cost], range(7, 1, -1))


class Listed:
    """Loss and size of a problem of quality_tables.py, whose points are all listed."""
    columns, bound = {"distill_loss": None, "size_bytes": None}, None

    def __init__(self, name, group, listed):
        self.name, self.group, self.listed = name, group, listed
        listed.name = name
        self.table = listed.table()

    def values(self):
        costs = sum(row[self.listed.points[:, t]] for t, row in enumerate(self.listed.cost))
        values = numpy.stack([self.listed.values, costs], axis=1)
        return values[numpy.isfinite(self.listed.values)]

    def corner(self):
        most = sum(numpy.max(row) for row in self.listed.cost)
        return numpy.array([numpy.quantile(self.values()[:, 0], .9), 1.01 * most])

    def true_front(self):
        return front_of(self.values())


def saturating(seed):
    listed = quality_tables.saturating(2700 + seed, ("log", "exp")[seed % 2])
    return Listed(f"front_saturating_{seed}", "saturating: loss, size", listed)


def failing(seed):
    """Eight tasks of four choices with pairs. In even seeds the dearest choice of one task fails, so that
    the most expensive plan does; in odd seeds two choices fail, and three pairs of choices.
    """
    random = numpy.random.default_rng(9600 + seed)
    shape = [4] * 8
    points = numpy.stack(numpy.unravel_index(numpy.arange(4 ** 8), shape), axis=1)
    alone = [numpy.array([0, .04, .2, 1]) * s for s in numpy.exp(random.normal(0, 1, 8))]
    values = sum(row[points[:, t]] for t, row in enumerate(alone))
    for t in range(7):
        matrix = random.normal(0, .5, (4, 4)) * numpy.sqrt(numpy.outer(alone[t], alone[t + 1]))
        values = values + matrix[points[:, t], points[:, t + 1]]
    first, second, *tasks = random.permutation(8)
    fails = points[:, first] == (0 if seed % 2 == 0 else 2)
    if seed % 2:
        fails |= points[:, second] == 1
        for a, b in zip(tasks[::2], tasks[1::2]):
            fails |= (points[:, a] == random.integers(1, 4)) & (points[:, b] == random.integers(1, 4))
    cost = [size * numpy.array([8., 6, 4, 3]) for size in numpy.exp(random.normal(0, 1, 8))]
    tasks = {f"task_{t}": ["8", "6", "4", "3"] for t in range(8)}
    return Listed(f"front_failing_{seed}", "failing: loss, size",
                  quality_tables.Listed("", "", tasks, numpy.where(fails, numpy.nan, values), cost))


KINDS = (loss_and_size, trap_and_size, accuracy_and_size, loss_and_time, three_with_time,
         three_with_operations, bounded, additive_30, chain_24, chain_80, saturating, failing)


def make_all(seeds):
    return [kind(seed) for seed in seeds for kind in KINDS]


def describe(problem):
    """Environment, reference point and hypervolume of the true front of a problem."""
    corner = problem.corner()
    env = {"type": "table", "file": problem.name + ".json", "objectives": list(problem.columns)}
    if problem.bound:
        env["bounds"] = {problem.bound[1]: {"max": problem.bound[2]}}
    return {"env": env, "corner": corner.tolist(),
            "hypervolume": hypervolume(problem.true_front(), corner)}


def write(problem, folder):
    if isinstance(problem, Listed):
        os.makedirs(folder, exist_ok=True)
        problem.listed.write_rows(os.path.join(folder, problem.name + ".csv"))
    return quality_problems.write_with(problem, folder, VERSION, problem.table,
                                       lambda: describe(problem))


# ---- Searches -------------------------------------------------------------------------------------

def missed_after(header, lines, problem, budgets, count):
    """For each budget, the share of hypervolume that the first trials miss."""
    kinds = [(o["metric"], -1 if o["maximise"] else 1) for o in header["objectives"]]
    counted = [line for line in lines if quality.is_counted(line, count)]
    missed = {}
    for budget in budgets:
        values = [[sign * line["metrics"][metric] for metric, sign in kinds]
                  for line in counted[:budget] if line["state"] == "complete"]
        found = hypervolume(numpy.array(values), numpy.array(problem["corner"])) if values else 0.0
        missed[budget] = max(0.0, 1 - found / problem["hypervolume"])
    return missed


def search(options, problem, name, seed):
    budgets = quality.budgets_of(problem, options)
    header, lines, seconds = quality.run_counted(options, problem, name, seed)
    missed = missed_after(header, lines, problem, budgets, options.count)
    return [{"problem": problem["name"], "group": problem["group"], "budget": budget, "agent": name,
             "seed": seed, "loss": "", "regret": float(f"{missed[budget]:.5g}"), "trials": len(lines),
             "seconds": round(seconds, 3)} for budget in budgets]


def make_problems(options):
    if options.problems:
        return [quality.read_problem(path) for path in options.problems]
    made = [p for p in make_all(options.problem_seeds) if any(word in p.group for word in options.groups)]
    made.sort(key=lambda p: p.group)
    return [quality.read_problem(write(p, options.folder)) for p in made]


if __name__ == "__main__":
    quality.main(search, make_problems, default_seeds=3)
