#!/usr/bin/env python3
"""pygmo's simple genetic algorithm (SGA) as a search agent: 24 points per generation, tasks change with
probability 1 / tasks, otherwise SGA's defaults. The search ends after 100 generations without a new point.

Choices are integers from the most expensive to the cheapest. SGA has no bounds, so a point that
breaks one counts as worse than all others, by the size of the violation. If the exact costs break a
bound, no trial is needed. A repeated point keeps its value.

SGA calls its objective function, while an agent is called by the search. So each generation runs
twice with the same seed: first to find the points that it asks for, then, once they are measured,
with their values.
"""
import os
import sys

import pygmo

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "python"))

import mscgym  # noqa: E402

POPULATION = 24
GENERATIONS = 100
WORSE = 1e6  # larger than any loss


class Asked:
    """A problem that notes the points it is asked for, and returns known values."""

    def __init__(self, counts):
        self.counts = counts
        self.values, self.points = {}, []

    def __deepcopy__(self, memo):
        return self  # pygmo copies its problems

    def get_bounds(self):
        return [0] * len(self.counts), [n - 1 for n in self.counts]

    def get_nix(self):
        return len(self.counts)

    def fitness(self, x):
        point = tuple(int(value) for value in x)
        self.points.append(point)
        return [self.values.get(point, 0.0)]


class Sga(mscgym.Agent):
    def start(self):
        self.asked = Asked(self.space.n_choices)
        self.values = self.asked.values
        self.first = self.population = None
        self.generation = 0
        self.waiting = []  # points of this generation, as indices in order of cost

    def choices_of(self, point):
        return tuple(task.dearest_first[at] for task, at in zip(self.space.tasks, point))

    def position_of(self, choices):
        return tuple(task.dearest_first.index(c) for task, c in zip(self.space.tasks, choices))

    def evolve(self):
        """The next generation from the known values, and the points that it asked for."""
        problem = pygmo.problem(self.asked)
        population = pygmo.population(problem, seed=self.seed % 2 ** 32)
        for point, value in self.population:
            population.push_back(point, [value])
        self.asked.points.clear()
        algorithm = pygmo.algorithm(pygmo.sga(gen=1, m=1 / len(self.asked.counts),
                                              seed=(self.seed + self.generation) % 2 ** 32))
        evolved = algorithm.evolve(population)
        points = [tuple(int(x) for x in row) for row in evolved.get_x()]
        values = [float(f[0]) for f in evolved.get_f()]
        return list(zip(points, values)), list(self.asked.points)

    def judge(self, point):
        """Sets the value of a point whose exact costs break a bound."""
        violation = self.goal.exact_violation(self.space, self.choices_of(point))
        if violation > 0:
            self.values.setdefault(point, WORSE * (1 + violation))

    def first_points(self):
        """Random points. Each is within the bounds if one of a thousand draws is."""
        points = set()
        while len(points) < POPULATION:
            drawn = (self.draw() for _ in range(1000))
            choices = next((c for c in drawn if self.is_feasible(c)), None) or self.draw()
            points.add(self.position_of(choices))
        return sorted(points)

    def next_generation(self):
        """Continues from this generation, and finds the points to measure for the next one."""
        if self.first is None:
            self.first = points = self.first_points()
        else:
            self.population = [(p, self.values[p]) for p in self.first] if self.population is None else \
                self.evolve()[0]
            self.generation += 1
            points = self.evolve()[1]
        for point in points:
            self.judge(point)
        self.waiting = list(dict.fromkeys(points))

    def propose(self, n):
        for _ in range(GENERATIONS):
            unknown = [point for point in self.waiting if point not in self.values]
            if unknown:
                return [self.choices_of(point) for point in unknown[:n]]
            self.next_generation()
        return None

    def tell(self, trial, choices, outcome):
        point = self.position_of(choices)
        if not outcome.is_measured:
            self.values[point] = 2 * WORSE
        elif outcome.violation > 0:
            self.values[point] = WORSE * (1 + outcome.violation)
        else:
            self.values[point] = outcome.objectives[0]


if __name__ == "__main__":
    Sga.run()
