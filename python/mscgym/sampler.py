"""A sampler of Optuna as a search agent.

    "agent": {"type": "process", "command": ["python3", "-m", "mscgym.sampler"], "params": {"ordinal": true}}

`sampler` is "tpe" (default) or "nsga2"; both take one or several objectives. With `ordinal`, choices
are integers from the most expensive to the cheapest, otherwise categories. Violations of bounds are
the sampler's constraints.
If a point breaks a bound by its exact costs, or was tried before, the sampler is told its result
without a trial and asked again, up to `tries` times (10). After that a random point within the
bounds is used.
"""
from __future__ import annotations

import warnings
from collections.abc import Iterable

import optuna

from mscgym.agent import Agent
from mscgym.space import Outcome

Point = tuple[int, ...]


class OptunaAgent(Agent):
    def start(self) -> None:
        warnings.simplefilter("ignore")
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self.is_ordinal = bool(self.params.get("ordinal", False))
        self.tries = int(self.params.get("tries", 10))
        self.study = optuna.create_study(directions=["minimize"] * len(self.goal.objectives),
                                         sampler=self.make_sampler(self.seed % 2 ** 32))
        self.values: dict[Point, tuple[float, list[float]]] = {}           # violation and objectives
        # Points that were proposed but not evaluated.
        self.waiting: dict[Point, optuna.trial.Trial | None] = {}
        self.worst = [0.0] * len(self.goal.objectives)

    def make_sampler(self, seed: int) -> optuna.samplers.BaseSampler:
        """Override it to use another sampler, which must be deterministic for a given seed."""
        def violation(trial: optuna.trial.FrozenTrial) -> tuple[float]:
            return (trial.user_attrs["violation"],)

        if self.params.get("sampler", "tpe") == "nsga2":
            return optuna.samplers.NSGAIISampler(seed=seed, constraints_func=violation)
        return optuna.samplers.TPESampler(multivariate=True, seed=seed, constraints_func=violation)

    def propose(self, n: int) -> Iterable[Point]:
        points = []
        for _ in range(n):
            found = self.sample() or self.draw_new()
            if found:
                points.append(found[0])
                self.waiting[found[0]] = found[1]
        return points

    def tell(self, trial: int, choices: Point, outcome: Outcome) -> None:
        waiting = self.waiting.pop(choices, None)
        if outcome.state == "failed":
            if waiting:
                self.study.tell(waiting, state=optuna.trial.TrialState.FAIL)
            return
        known = [worst if value is None else value
                 for value, worst in zip(outcome.objectives, self.worst)]
        self.values[choices] = outcome.violation, known
        self.worst = [max(pair) for pair in zip(self.worst, known)]
        if waiting:
            self.settle(waiting, self.values[choices])
        else:  # a baseline, or a random point
            self.add(choices)

    # ---- Points -----------------------------------------------------------------------------------

    def suggest(self, trial: optuna.trial.Trial) -> Point:
        def choose(t: int, order: tuple[int, ...]) -> int:
            return order[trial.suggest_int(f"t{t}", 0, len(order) - 1)] if self.is_ordinal else \
                int(trial.suggest_categorical(f"t{t}", list(range(len(order)))))

        return tuple(choose(t, task.dearest_first) for t, task in enumerate(self.space.tasks))

    def sample(self) -> tuple[Point, optuna.trial.Trial] | None:
        """A new point within the bounds, and its trial in the study; None after `tries` attempts."""
        for _ in range(self.tries):
            trial = self.study.ask()
            point = self.suggest(trial)
            violation = self.goal.exact_violation(self.space, point)
            if violation > 0:
                self.settle(trial, (violation, self.worst))
            elif point in self.values:
                self.settle(trial, self.values[point])
            elif point in self.waiting:
                self.study.tell(trial, state=optuna.trial.TrialState.FAIL)
            else:
                return point, trial
        return None

    def draw_new(self) -> tuple[Point, None] | None:
        for _ in range(1000):
            point = self.draw()
            if point not in self.values and point not in self.waiting and self.is_feasible(point):
                return point, None
        return None

    # ---- The study --------------------------------------------------------------------------------

    def settle(self, trial: optuna.trial.Trial, value: tuple[float, list[float]]) -> None:
        trial.set_user_attr("violation", value[0])
        self.study.tell(trial, value[1])

    def add(self, point: Point) -> None:
        violation, objectives = self.values[point]
        kind = optuna.distributions
        params, distributions = {}, {}
        for t, task in enumerate(self.space.tasks):
            n = len(task.choices)
            params[f"t{t}"] = task.dearest_first.index(point[t]) if self.is_ordinal else point[t]
            distributions[f"t{t}"] = kind.IntDistribution(0, n - 1) if self.is_ordinal else \
                kind.CategoricalDistribution(list(range(n)))
        self.study.add_trial(optuna.trial.create_trial(
            params=params, distributions=distributions, user_attrs={"violation": violation},
            values=objectives,
            system_attrs={"constraints": (violation,)}))


if __name__ == "__main__":
    OptunaAgent.run()
