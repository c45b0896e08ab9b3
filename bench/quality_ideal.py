#!/usr/bin/env python3
"""The best possible results on the `pairwise` problems of quality.py, by an agent that knows
everything except the pair terms themselves. Regret beyond this is `auto`'s own fault.

    quality_ideal.py [--trials 50] [--probes 18] [--round 8] [--problem-seeds 0:10] [--strengths 1,2]
                     [--guess] [--correlation 0]

The agent knows the loss of every single choice and the distribution of the pair terms. So the
losses of all feasible points are a Gaussian process with known mean and covariance. The first
--probes of --trials count as spent on learning single losses. With the rest, in rounds of --round,
it measures the point of greatest expected improvement over all feasible points, or of least mean
minus two standard deviations. Within a round, points count as measured in the variance, as in
`auto`. Regrets are those of quality.py.

With --guess it knows only the losses of the cheapest choices, and assumes a third of that for the
next ones. With --correlation it assumes that choices of a task are correlated to this degree, which
is not true here.
"""
import argparse
import math

import numpy

import quality_problems

BOUND_SPREADS = 2.0
JITTER = 1e-9  # relative to the mean variance

erfc = numpy.vectorize(math.erfc, otypes=[numpy.float64])


class Posterior:
    """Mean and variance at all feasible points [n, tasks]. Each measurement adds a row to the
    Cholesky factor.
    """

    def __init__(self, alone, points, strength, correlation):
        self.points = points
        self.scales = numpy.sqrt(alone).astype(numpy.float32)  # 0 at the base choice
        self.correlation = correlation
        self.strength = 0.5 * strength  # as in quality_problems.pairwise
        own = numpy.stack([self.scales[t, points[:, t]] ** 2 for t in range(points.shape[1])])
        self.mean = sum(row[points[:, t]] for t, row in enumerate(alone))
        self.variance = self.strength ** 2 * 0.5 * (own.sum(0) ** 2 - (own ** 2).sum(0))
        self.jitter = JITTER * float(self.variance.mean())
        self.rows = numpy.empty((0, len(points)), numpy.float32)

    def covariance(self, at):
        """Covariance of point `at` with all points."""
        total = numpy.zeros(len(self.points), numpy.float32)
        squares = numpy.zeros_like(total)
        for task, choice in enumerate(self.points[at]):
            alike = numpy.where(numpy.arange(3) == choice, 1, self.correlation)
            shared = (alike * self.scales[task] * self.scales[task, choice])[self.points[:, task]]
            total += shared
            squares += shared * shared
        return self.strength ** 2 * 0.5 * (total ** 2 - squares)

    def add(self, at, value=None):
        """Adds a measurement; without a value, only to the variance."""
        known = self.rows[:, at]
        left = math.sqrt(max(float(self.variance[at]), 0.0) + self.jitter)
        row = (self.covariance(at) - known @ self.rows) / left
        self.rows = numpy.vstack([self.rows, row.astype(numpy.float32)])
        self.variance = numpy.maximum(self.variance - row * row, 0.0)
        if value is not None:
            self.mean = self.mean + row * ((value - self.mean[at]) / left)

    def spread(self):
        return numpy.sqrt(self.variance + self.jitter)


def improvement(posterior, best):
    spread, by_mean = posterior.spread(), best - posterior.mean
    z = by_mean / spread
    return (by_mean * 0.5 * erfc(-z / math.sqrt(2)) +
            spread * numpy.exp(-0.5 * z * z) / math.sqrt(2 * math.pi))


def bound(posterior, _):
    return BOUND_SPREADS * posterior.spread() - posterior.mean


WAYS = {"improvement": improvement, "bound": bound}


def search(problem, points, losses, strength, way, options):
    alone = numpy.stack(problem.alone)
    if options.guess:
        alone[:, 1] = alone[:, 2] / 3
    posterior, measured = Posterior(alone, points, strength, options.correlation), []
    while len(measured) < options.trials - options.probes:
        n = min(options.round, options.trials - options.probes - len(measured))
        before = posterior.rows, posterior.variance
        best = losses[measured].min() if measured else posterior.mean.min()
        proposed = []
        for _ in range(n):
            wanted = WAYS[way](posterior, best)
            wanted[measured + proposed] = -numpy.inf
            proposed.append(int(numpy.argmax(wanted)))
            posterior.add(proposed[-1])
        posterior.rows, posterior.variance = before
        for at in proposed:
            posterior.add(at, losses[at])
        measured += proposed
    return losses[measured].min()


def show(name, regrets):
    print(f"| {name} | " + " | ".join(f"{regret:.3f}" for regret in regrets) + " |", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--trials", type=int, default=50)
    parser.add_argument("--probes", type=int, default=18)
    parser.add_argument("--round", type=int, default=8)
    parser.add_argument("--problem-seeds", default="0:10")
    parser.add_argument("--strengths", default="1,2")
    parser.add_argument("--guess", action="store_true")
    parser.add_argument("--correlation", type=float, default=0.0)
    options = parser.parse_args()
    first, _, end = options.problem_seeds.partition(":")
    print("| problem | " + " | ".join(WAYS) + " |\n|---|" + "---|" * len(WAYS))
    for strength in map(float, options.strengths.split(",")):
        found = []
        for seed in range(int(first), int(end)):
            problem = quality_problems.pairwise(seed, strength)
            points = numpy.stack(numpy.unravel_index(numpy.arange(3 ** 12), [3] * 12), 1)
            points = points[problem.is_feasible(points)].astype(numpy.int8)
            losses = problem.loss(points)
            least, reference = losses.min(), quality_problems.reference(problem)
            regrets = [(search(problem, points, losses, strength, way, options) - least) /
                       (reference - least) for way in WAYS]
            show(problem.name, regrets)
            found.append(regrets)
        show(f"median of strength {strength:g}", numpy.median(found, 0))


if __name__ == "__main__":
    main()
