#!/usr/bin/env python3
"""An agent: changes a few choices of the best point so far, and restarts after many changes without success.

    cp -r ../../examples/digits .
    mscgym search agent.json
"""
from collections.abc import Iterable

import mscgym


class HillClimb(mscgym.Agent):
    def start(self) -> None:
        self.patience = int(self.params.get("restart", 100))
        self.best: tuple[int, ...] | None = None
        self.value = (float("inf"), float("inf"))
        self.n_idle = 0
        self.seen: set[tuple[int, ...]] = set()

    def neighbour(self) -> tuple[int, ...]:
        if self.best is None:
            return self.draw()
        point = list(self.best)
        while True:
            task = self.random.randrange(len(point))
            point[task] = self.random.randrange(self.space.n_choices[task])
            if self.random.random() < 0.6:
                return tuple(point)

    def propose(self, n: int) -> Iterable[mscgym.Proposal]:
        for _ in range(1000 * n):
            point = self.neighbour()
            if point not in self.seen and self.is_feasible(point):
                self.seen.add(point)
                yield mscgym.Proposal(point)
                n -= 1
                if n == 0:
                    return

    def tell(self, trial: int, choices: tuple[int, ...], outcome: mscgym.Outcome) -> None:
        self.seen.add(choices)
        self.n_idle += 1
        if outcome.is_measured and (outcome.violation, outcome.objectives[0]) < self.value:
            self.best, self.value, self.n_idle = choices, (outcome.violation, outcome.objectives[0]), 0
        if self.n_idle > self.patience:
            self.best, self.value, self.n_idle = None, (float("inf"), float("inf")), 0


if __name__ == "__main__":
    HillClimb.run()
