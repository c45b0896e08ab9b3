"""Plain data: the space of a search, its goal, and outcomes of trials."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf, prod
from typing import Any


@dataclass(frozen=True)
class Task:
    name: str
    choices: tuple[str, ...]        # labels
    dearest_first: tuple[int, ...]  # indices of choices, from the most expensive to the cheapest
    features: tuple[float, ...] = ()
    choice_features: tuple[tuple[float | None, ...], ...] = ()  # per choice; None: unknown


@dataclass(frozen=True)
class Metric:
    name: str
    unit: str = ""
    maximised: bool = False
    exact: bool = False  # known without a run: the space has a cost of this name


@dataclass(frozen=True)
class Factor:
    task: int
    values: tuple[float, ...]  # one per choice of the task


@dataclass(frozen=True)
class Term:
    scale: float
    factors: tuple[Factor, ...]


@dataclass(frozen=True)
class Cost:
    """An exact cost: constant + sum over terms of scale * product of one factor for each of its tasks."""
    metric: str
    constant: float
    terms: tuple[Term, ...]

    def value(self, choices: Sequence[int]) -> float:
        """Computed in mscgym's order of operations, so that both agree on whether a bound is met."""
        total = self.constant
        for term in self.terms:
            total += prod((factor.values[choices[factor.task]] for factor in term.factors), start=term.scale)
        return total


@dataclass(frozen=True)
class Bound:
    min: float = -inf
    max: float = inf

    def violation(self, value: float) -> float:
        """Distance from the limit relative to the limit; 0: within."""
        over = ((value - self.max, self.max) if value > self.max else
                (self.min - value, self.min) if value < self.min else (0.0, 1.0))
        return over[0] / (abs(over[1]) or 1.0)


@dataclass(frozen=True)
class Space:
    tasks: tuple[Task, ...]
    metrics: tuple[Metric, ...]
    costs: tuple[Cost, ...] = ()
    feature_names: tuple[str, ...] = ()
    choice_feature_names: tuple[str, ...] = ()
    baselines: Mapping[str, tuple[int, ...]] = field(default_factory=dict)  # points, by label
    neighbours: tuple[tuple[int, int], ...] = ()  # pairs of tasks that are neighbours in the network

    @property
    def n_choices(self) -> list[int]:
        return [len(task.choices) for task in self.tasks]

    def cost(self, metric: str) -> Cost | None:
        return next((cost for cost in self.costs if cost.metric == metric), None)

    @staticmethod
    def from_json(message: Mapping[str, Any]) -> Space:
        return Space(
            tasks=tuple(Task(t["name"], tuple(t["choices"]), tuple(t["dearest_first"]), tuple(t["features"]),
                             tuple(tuple(row) for row in t.get("choice_features", ())))
                        for t in message["tasks"]),
            metrics=tuple(Metric(m["name"], m["unit"], m["maximised"], m["exact"]) for m in message["metrics"]),
            costs=tuple(Cost(c["metric"], c["constant"], tuple(
                Term(t["scale"], tuple(Factor(f["task"], tuple(f["values"])) for f in t["factors"]))
                for t in c["terms"])) for c in message["costs"]),
            feature_names=tuple(message["feature_names"]),
            choice_feature_names=tuple(message.get("choice_feature_names", ())),
            baselines={b["label"]: tuple(b["choices"]) for b in message["baselines"]},
            neighbours=tuple((a, b) for a, b in message.get("neighbours", ())))


@dataclass(frozen=True)
class Goal:
    objectives: tuple[str, ...]  # names of metrics; the first one decides which trial is best
    bounds: Mapping[str, Bound]

    def exact_violation(self, space: Space, choices: Sequence[int]) -> float:
        """Violation by the exact costs only. If it is 0, a trial of the point will meet the
        bounds on them.
        """
        costs = ((space.cost(metric), bound) for metric, bound in self.bounds.items())
        return sum(bound.violation(cost.value(choices)) for cost, bound in costs if cost)

    @staticmethod
    def from_json(message: Mapping[str, Any]) -> Goal:
        return Goal(tuple(message["objectives"]),
                    {name: Bound(bound.get("min", -inf), bound.get("max", inf))
                     for name, bound in message["bounds"].items()})


@dataclass(frozen=True)
class Outcome:
    state: str                     # "complete", "infeasible", "pruned" or "failed"
    metrics: Mapping[str, float]   # measured metrics and exact costs
    objectives: tuple[float | None, ...]  # less is better; None: not measured
    violation: float               # 0: within all bounds
    reason: str = ""

    @property
    def is_measured(self) -> bool:
        return self.state in ("complete", "infeasible") and bool(self.objectives) and \
            self.objectives[0] is not None

    @staticmethod
    def from_json(message: Mapping[str, Any]) -> Outcome:
        return Outcome(message["state"], message["metrics"], tuple(message["objectives"]),
                       message["violation"], message["reason"])
