#!/usr/bin/env python3
"""A (1+1) evolutionary algorithm as a search agent: each task of the best point changes with probability
1 / tasks, at least one does, and what is no worse takes its place.

Points that break a bound by their exact costs are drawn again, and so are those that were tried.
"""
import random

import search_space


class OnePlusOne:
    def __init__(self, message):
        self.random = random.Random(int(message["seed"]))
        self.space = search_space.Space(message)
        self.best, self.value = None, None
        self.seen = set()

    def draw(self):
        if self.best is None:
            return tuple(self.random.randrange(n) for n in self.space.counts)
        point = list(self.best)
        n = len(point)
        forced = self.random.randrange(n)
        for t in range(n):
            if (t == forced or self.random.random() < 1 / n) and self.space.counts[t] > 1:
                point[t] = (point[t] + self.random.randrange(1, self.space.counts[t])) % \
                    self.space.counts[t]
        return tuple(point)

    def ask(self, n):
        points = []
        for _ in range(1000 * n):
            point = self.draw()
            if point not in self.seen and self.space.violation(point) == 0:
                self.seen.add(point)
                points.append(point)
                if len(points) == n:
                    break
        return points

    def tell(self, choices, outcome):
        self.seen.add(choices)
        if outcome["state"] not in ("complete", "infeasible") or not outcome["objectives"] or \
                outcome["objectives"][0] is None:
            return
        value = outcome["violation"], outcome["objectives"][0]
        if self.value is None or value <= self.value:
            self.best, self.value = choices, value


if __name__ == "__main__":
    search_space.serve(OnePlusOne)
