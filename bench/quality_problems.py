"""Search problems with known optima, as files for the environment `table` (docs/table.md).

A task's choices go from the most expensive, with the least loss, to the cheapest. Losses add up,
with additional terms for pairs of choices. One cost adds up, too, and has an upper bound. Random
numbers come from numpy.random.default_rng(seed), in the order of the code, so changing this order
changes a problem.

The regret of a point with loss v is (v - optimum) / (reference - optimum), cut to 0 … 1: 0 is the
optimum, 1 the reference, which is the median loss of 400 random feasible points.
"""
import json
import os

import numpy

VERSION = 1  # version of the cached problems: increase it with any change below
PAIRWISE_STRENGTHS = (0.5, 1.0, 2.0)
ADDITIVE_TASKS = (18, 50, 200)
CHAINS = ((80, 6), (200, 4))  # tasks, choices


class Problem:
    def __init__(self, name, group, alone, pairs, cost, share, features=None):
        self.name, self.group = name, group
        self.neighbours = None  # pairs of tasks that the table gives to agents
        # the name of a feature, and its values of each choice of each task; or None
        self.feature_name, self.features = features or (None, None)
        self.alone = [numpy.asarray(row, float) for row in alone]
        self.pairs = [(i, j, numpy.asarray(matrix, float)) for i, j, matrix in pairs]
        self.cost = [numpy.asarray(row, float) for row in cost]
        greatest = sum(row[0] for row in self.cost)
        least = sum(row[-1] for row in self.cost)
        self.bound = float(least + share * (greatest - least))
        self.flat_cost = numpy.concatenate(self.cost)
        self.offsets = numpy.cumsum([0] + [len(row) for row in self.cost[:-1]])

    def loss(self, points):
        """Losses of points [n, tasks]."""
        total = sum(row[points[:, t]] for t, row in enumerate(self.alone))
        for i, j, matrix in self.pairs:
            total = total + matrix[points[:, i], points[:, j]]
        return total

    def is_feasible(self, points):
        return self.flat_cost[self.offsets + points].sum(axis=1) <= self.bound

    def table(self):
        tasks = [{"name": f"task_{t}", "choices": [str(len(row) - c) for c in range(len(row))]}
                 for t, row in enumerate(self.alone)]
        for task, rows in zip(tasks, self.features or []):
            task["choice_features"] = [[float(value)] for value in rows]
        return {
            "schema": "mscgym.table.1",
            **({"choice_features": [self.feature_name]} if self.features else {}),
            "tasks": tasks,
            **({"neighbours": self.neighbours} if self.neighbours else {}),
            "metrics": [{"name": "distill_loss", "alone": [row.tolist() for row in self.alone],
                         "pairs": [{"tasks": [i, j], "values": matrix.tolist()}
                                   for i, j, matrix in self.pairs]}],
            "costs": [{"name": "size_bytes", "alone": [row.tolist() for row in self.cost]}],
        }


def pairwise(seed, strength, share=0.5):
    """Twelve tasks of three choices. Any two tasks interact, with random sign."""
    random = numpy.random.default_rng(5000 + seed)
    sensitivity = numpy.exp(random.normal(0, 1, 12))
    sizes = numpy.exp(random.normal(0, 1, 12))
    alone = [[0, s * random.uniform(.08, .25), s * random.uniform(.6, 1.4)] for s in sensitivity]
    pairs = []
    for i in range(12):
        for j in range(i + 1, 12):
            matrix = numpy.zeros((3, 3))
            for a in (1, 2):
                for b in (1, 2):
                    scale = numpy.sqrt(alone[i][a] * alone[j][b])
                    matrix[a, b] = strength * random.normal() * scale * .5
            pairs.append((i, j, matrix))
    cost = [[size * bits for bits in (8, 5, 3)] for size in sizes]
    return Problem(f"pairwise_{strength:g}_{seed}", f"pairwise {strength:g}", alone, pairs, cost,
                   share)


def trap(seed, share=0.45):
    """Six pairs of tasks. In half of them each task looks expensive by itself, but together they
    cancel; in the others each looks harmless, but together they are not.
    """
    random = numpy.random.default_rng(6000 + seed)
    order = random.permutation(12)
    sizes = numpy.exp(random.normal(0, .5, 12))
    alone, pairs = [[0, 0, 0] for _ in range(12)], []
    for couple in range(6):
        i, j = sorted(int(t) for t in order[2 * couple:2 * couple + 2])
        unit = random.uniform(.7, 1.3)
        matrix = numpy.zeros((3, 3))
        if couple % 2 == 0:
            alone[i] = alone[j] = [0, .5 * unit, unit]
            matrix[1, 1], matrix[2, 2] = -.92 * unit, -1.85 * unit
            matrix[1, 2] = matrix[2, 1] = -.2 * unit
        else:
            alone[i] = alone[j] = [0, .05 * unit, .12 * unit]
            matrix[1, 1], matrix[2, 2] = .5 * unit, 2 * unit
            matrix[1, 2] = matrix[2, 1] = 1.1 * unit
        pairs.append((i, j, matrix))
    for i in range(12):
        for j in range(i + 1, 12):
            matrix = numpy.zeros((3, 3))
            matrix[1:, 1:] = numpy.abs(random.normal(0, .01, (2, 2)))
            pairs.append((i, j, matrix))
    cost = [[size * bits for bits in (8, 5, 3)] for size in sizes]
    return Problem(f"trap_{seed}", "trap", alone, pairs, cost, share)


def additive(seed, n_tasks, n_choices=8, share=0.35):
    """Tasks without interaction; each additional bit divides the loss by four."""
    random = numpy.random.default_rng(7000 + seed)
    scale = numpy.exp(random.normal(0, 1.2, n_tasks))
    sizes = numpy.exp(random.normal(0, 1, n_tasks))
    bits = range(n_choices + 1, 1, -1)
    alone = [[s * 4.0 ** (2 - b) for b in bits] for s in scale]
    cost = [[size * b for b in bits] for size in sizes]
    return Problem(f"additive_{n_tasks}_{seed}", f"additive {n_tasks}", alone, [], cost, share)


# The feature of a chain's choices, with the standard deviations of the logarithm of its error: of
# the factor of a task, and of the factor of a choice.
CHAIN_FEATURES = {"without": None, "with features": ("output_error", .7, .2),
                  "with losses": ("distill_loss", 0, .4)}


def chain(seed, n_tasks, n_choices, word, share=0.4):
    """A chain: each task interacts with the next one, with random sign. Sizes are whole numbers. The
    feature of a choice is its own loss, wrong by random factors (CHAIN_FEATURES).
    """
    random = numpy.random.default_rng(8000 + seed)
    scale = numpy.exp(random.normal(0, 1, n_tasks))
    sizes = random.integers(1, 20, n_tasks)
    alone = []
    for s in scale:
        falls = numpy.concatenate([[1], numpy.cumprod(random.uniform(.2, .5, n_choices - 2))])
        alone.append(numpy.concatenate([[0], s * falls[::-1]]))
    pairs = []
    for t in range(n_tasks - 1):
        scales = numpy.sqrt(numpy.outer(alone[t], alone[t + 1]))
        pairs.append((t, t + 1, .5 * random.normal(size=scales.shape) * scales))
    cost = [[int(size) * bits for bits in range(n_choices + 1, 1, -1)] for size in sizes]
    name, of_task, of_choice = CHAIN_FEATURES[word] or ("", 0, 0)
    wrong = numpy.exp(random.normal(0, of_task, n_tasks))
    features = [row * w * numpy.exp(random.normal(0, of_choice, n_choices))
                for row, w in zip(alone, wrong)]
    short = {"without": "", "with features": "features_", "with losses": "losses_"}[word]
    return Problem(f"chain_{n_tasks}_{n_choices}_{short}{seed}",
                   f"chain {n_tasks} x {n_choices} {word}", alone, pairs, cost, share,
                   (name, features) if name else None)


class ShuffledChain(Problem):
    """A chain whose tasks are listed in random order, with or without its pairs as neighbours."""
    def __init__(self, seed, n_tasks, n_choices, has_graph, share=0.4):
        self.chain = of = chain(seed, n_tasks, n_choices, "without", share)
        order = [int(t) for t in numpy.random.default_rng(8500 + seed).permutation(n_tasks)]
        place = [order.index(t) for t in range(n_tasks)]  # of each task of the chain
        pairs = [(place[i], place[j], matrix) for i, j, matrix in of.pairs]
        words = ("graph", "shuffled, with the graph") if has_graph else ("shuffled", "shuffled")
        super().__init__(f"chain_{n_tasks}_{n_choices}_{words[0]}_{seed}",
                         f"chain {n_tasks} x {n_choices} {words[1]}", [of.alone[t] for t in order],
                         pairs, [of.cost[t] for t in order], share)
        self.neighbours = [[i, j] for i, j, _ in pairs] if has_graph else None


def optimum_of_chain(problem):
    """The optimum of a chain whose costs are whole numbers, by dynamic programming over the last
    task's choice and the cost so far.
    """
    matrices = {(i, j): matrix for i, j, matrix in problem.pairs}
    room = int(numpy.floor(problem.bound))
    best = numpy.full((len(problem.alone[0]), room + 1), numpy.inf)
    for c, loss in enumerate(problem.alone[0]):
        best[c, int(problem.cost[0][c]):] = loss
    for t in range(1, len(problem.alone)):
        after = numpy.full((len(problem.alone[t]), room + 1), numpy.inf)
        for c, loss in enumerate(problem.alone[t]):
            size = int(problem.cost[t][c])
            least = (best + matrices[t - 1, t][:, c][:, None]).min(axis=0)
            after[c, size:] = loss + least[:room + 1 - size]
        best = after
    return float(best.min())


def optimum_of_all(problem):
    """The optimum by trying every point, a million at a time."""
    counts = [len(row) for row in problem.alone]
    n_points = int(numpy.prod(counts))
    best = numpy.inf
    for first in range(0, n_points, 1 << 20):
        points = numpy.stack(numpy.unravel_index(
            numpy.arange(first, min(first + (1 << 20), n_points)), counts), axis=1)
        loss = problem.loss(points)[problem.is_feasible(points)]
        best = min(best, loss.min(initial=numpy.inf))
    return float(best)


def optimum_of_sums(problem):
    """The optimum of a problem without pairs: a multiple-choice knapsack, solved as an integer programme."""
    import scipy.optimize
    import scipy.sparse
    counts = [len(row) for row in problem.alone]
    owner = numpy.repeat(numpy.arange(len(counts)), counts)
    loss, cost = numpy.concatenate(problem.alone), numpy.concatenate(problem.cost)
    one_each = scipy.sparse.csr_matrix((numpy.ones(len(owner)), (owner, numpy.arange(len(owner)))))
    found = scipy.optimize.milp(
        loss, integrality=numpy.ones(len(owner)), bounds=scipy.optimize.Bounds(0, 1),
        constraints=[scipy.optimize.LinearConstraint(one_each, 1, 1),
                     scipy.optimize.LinearConstraint(cost[None], -numpy.inf, problem.bound)],
        options={"mip_rel_gap": 0})
    if not found.success:
        raise RuntimeError(f"{problem.name}: {found.message}")
    points = numpy.array([[int(numpy.argmax(found.x[owner == t])) for t in range(len(counts))]])
    assert problem.is_feasible(points)[0]
    return float(problem.loss(points)[0])


def optimum(problem):
    if not problem.pairs:
        return optimum_of_sums(problem)
    if isinstance(problem, ShuffledChain):
        return optimum_of_chain(problem.chain)
    return optimum_of_chain(problem) if all(j == i + 1 for i, j, _ in problem.pairs) \
        else optimum_of_all(problem)


def reference(problem):
    """Median loss of 400 random feasible points. If 100 draws break the bound, random tasks of the
    last one are made cheaper by one choice until it meets the bound.
    """
    random = numpy.random.default_rng(12345)
    counts = numpy.array([len(row) for row in problem.alone])
    points = []
    while len(points) < 400:
        for _ in range(100):
            point = random.integers(counts)
            if problem.is_feasible(point[None])[0]:
                break
        while not problem.is_feasible(point[None])[0]:
            task = random.integers(len(counts))
            point[task] = min(point[task] + 1, counts[task] - 1)
        points.append(point)
    return float(numpy.median(problem.loss(numpy.array(points))))


def make_all(seeds, shares=()):
    """All problems of these seeds, with their own bounds and those of `shares`. Additive ones and chains
    only for the first three seeds.
    """
    made = []
    for seed in seeds:
        makers = [lambda strength=s, **kw: pairwise(seed, strength, **kw) for s in PAIRWISE_STRENGTHS]
        makers.append(lambda **kw: trap(seed, **kw))
        if seed - seeds[0] < 3:
            makers += [lambda n=n, c=c, f=f, **kw: chain(seed, n, c, f, **kw)
                       for n, c in CHAINS for f in CHAIN_FEATURES]
            makers += [lambda n=n, c=c, g=g, **kw: ShuffledChain(seed, n, c, g, **kw)
                       for n, c in CHAINS for g in (False, True)]
            makers += [lambda n=n, **kw: additive(seed, n, **kw) for n in ADDITIVE_TASKS]
        for make in makers:
            made.append(make())
            for share in shares:
                problem = make(share=share)
                problem.name += f"_{share:g}"
                problem.group += f", bound {share:g}"
                made.append(problem)
    return made


def write_with(problem, folder, version, table, describe):
    """Writes the table, and NAME.problem.json with what `describe()` returns, unless they exist."""
    path = os.path.join(folder, problem.name + ".problem.json")
    if os.path.exists(path):
        with open(path) as file:
            if json.load(file).get("version") == version:
                return path
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, problem.name + ".json"), "w") as file:
        json.dump(table, file)
    about = {"name": problem.name, "group": problem.group, "version": version, **describe()}
    with open(path + ".part", "w") as file:
        json.dump(about, file, indent=1)
    os.replace(path + ".part", path)
    return path


def describe(problem):
    """Environment, optimum and reference of a problem."""
    about = {
        "env": {"type": "table", "file": problem.name + ".json",
                "bounds": {"size_bytes": {"max": problem.bound}}},
        "optimum": optimum(problem),
        "reference": reference(problem),
    }
    if not problem.pairs:  # the budget that solving a knapsack of measured losses needs
        about["more_budgets"] = [sum(len(row) for row in problem.alone) + 20]
    return about


def write(problem, folder):
    return write_with(problem, folder, VERSION, problem.table(), lambda: describe(problem))
