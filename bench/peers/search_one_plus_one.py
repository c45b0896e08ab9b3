#!/usr/bin/env python3
"""A (1+1) evolutionary algorithm as a search agent. Each task of the best point changes with
probability 1 / tasks, at least one does, and a point that is no worse replaces the best one.

Points that break a bound by their exact costs, or were tried before, are drawn again.
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "python"))

import mscgym  # noqa: E402


class OnePlusOne(mscgym.Agent):
    def start(self):
        self.best, self.value = None, None
        self.seen = set()

    def vary(self):
        if self.best is None:
            return self.draw()
        point = list(self.best)
        n = len(point)
        forced = self.random.randrange(n)
        for t, count in enumerate(self.space.n_choices):
            if (t == forced or self.random.random() < 1 / n) and count > 1:
                point[t] = (point[t] + self.random.randrange(1, count)) % count
        return tuple(point)

    def propose(self, n):
        points = []
        for _ in range(1000 * n):
            point = self.vary()
            if point not in self.seen and self.is_feasible(point):
                self.seen.add(point)
                points.append(point)
                if len(points) == n:
                    break
        return points

    def tell(self, trial, choices, outcome):
        self.seen.add(choices)
        if not outcome.is_measured:
            return
        value = outcome.violation, outcome.objectives[0]
        if self.value is None or value <= self.value:
            self.best, self.value = choices, value


if __name__ == "__main__":
    OnePlusOne.run()
