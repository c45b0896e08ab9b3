"""Environments as programs (docs/environments.md)."""
from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import isfinite
from typing import Any

from mscgym import protocol


class Failed(Exception):
    """Raise it in `evaluate` if a point cannot be evaluated; the text says why."""


class Environment:
    """Base class for environments: override `space` and `evaluate`.

    Equal choices must give equal numbers, bit by bit, whatever was evaluated before, because a
    search is resumed and verified by that. At the end of the file:

        if __name__ == "__main__":
            MyEnvironment.run()
    """

    params: Mapping[str, Any]  # "params" of the configuration

    def start(self) -> None:
        """Called once after params are set, before `space`."""

    def space(self) -> Mapping[str, Any]:
        """Returns tasks, metrics and exact costs: the answer to "init". Use `task`, `metric` and
        `cost` for its parts.
        """
        raise NotImplementedError

    def evaluate(self, choices: tuple[int, ...], bound: float | None) -> Mapping[str, float | None]:
        """Returns the metrics of a point by name. It may stop early once the loss exceeds `bound`, or
        ignore `bound`.
        """
        raise NotImplementedError

    def evaluate_round(self, trials: Sequence[tuple[tuple[int, ...], float | None]]
                       ) -> Iterable[tuple[int, Mapping[str, float | None] | Failed]]:
        """Override it to evaluate points together: yields pairs of an index into `trials` and its
        metrics, or Failed, in any order, each as soon as it is available.
        """
        for i, (choices, bound) in enumerate(trials):
            try:
                yield i, self.evaluate(choices, bound)
            except Failed as error:
                yield i, error

    # ---- Parts of a space -------------------------------------------------------------------------

    @staticmethod
    def task(name: str, choices: Iterable[object], *, features: Sequence[float] = (),
             choice_features: Sequence[Sequence[float | None]] = (),
             dearest_first: Sequence[int] | None = None) -> dict[str, Any]:
        """A task. `choices` are labels, or objects whose text is the label. Without `dearest_first`
        the first cost determines the order.
        """
        task: dict[str, Any] = {"name": name, "choices": [str(choice) for choice in choices]}
        if features:
            task["features"] = list(features)
        if choice_features:
            task["choice_features"] = [list(row) for row in choice_features]
        if dearest_first is not None:
            task["dearest_first"] = list(dearest_first)
        return task

    @staticmethod
    def metric(name: str, *, unit: str = "", help: str = "", maximised: bool = False,
               measured: bool = False) -> dict[str, Any]:
        """A metric that `evaluate` returns. `measured`: its value may differ from run to run."""
        return {"name": name, "unit": unit, "help": help, "maximised": maximised, "measured": measured}

    @staticmethod
    def cost(name: str, *, unit: str = "", help: str = "", constant: float = 0.0,
             alone: Sequence[Sequence[float]] | None = None,
             products: Iterable[tuple[float, Mapping[int, Sequence[float]]]] = ()) -> dict[str, Any]:
        """A cost that is known without a run: `constant` + the sum of `alone[task][choice]` + the sum of products.
        A product is a scale and, for each of its tasks, one factor per choice.
        """
        cost: dict[str, Any] = {"name": name, "unit": unit, "help": help, "constant": constant}
        if alone is not None:
            cost["alone"] = [list(values) for values in alone]
        terms = [{"scale": scale, "factors": [{"task": task, "values": list(values)}
                                              for task, values in factors.items()]}
                 for scale, factors in products]
        if terms:
            cost["terms"] = terms
        return cost

    # ---- The protocol -----------------------------------------------------------------------------

    @classmethod
    def run(cls) -> None:
        """Answers requests of mscgym on standard input and output until it sends "done"."""
        environment = cls()
        with protocol.lines_of_its_own() as (requests, answers):
            for line in requests:
                message = json.loads(line)
                if message["method"] == "done":
                    break
                for answer in environment.answer(message):
                    protocol.write(answers, answer)

    def answer(self, message: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """The answers to one request."""
        method = message["method"]
        if method == "init":
            self.params = message["params"]
            self.start()
            yield dict(self.space())
        elif method == "evaluate":
            trials = [(tuple(trial["choices"]), trial.get("bound")) for trial in message["trials"]]
            for i, metrics in self.evaluate_round(trials):
                yield {"trial": i, **self._outcome(metrics)}
        else:
            yield {"error": f"there is no method {method}"}

    @staticmethod
    def _outcome(metrics: Mapping[str, float | None] | Failed) -> dict[str, Any]:
        if isinstance(metrics, Failed):
            return {"state": "failed", "reason": str(metrics) or "it failed"}
        return {"metrics": {name: float(value) if value is not None and isfinite(value) else None
                            for name, value in metrics.items()}}
