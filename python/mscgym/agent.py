"""Search agents as programs (docs/agents.md)."""
from __future__ import annotations

import json
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mscgym import protocol
from mscgym.space import Goal, Outcome, Space


@dataclass(frozen=True)
class Proposal:
    """A point to try, with what may be said of it besides its choices."""
    choices: Sequence[int]
    parent: int | None = None   # id of the trial that it was made from
    bound: float | None = None  # a loss above this is of no use: the trial may be stopped there
    probe: bool = False         # measure it even if its exact costs break a bound

    def to_json(self) -> dict[str, Any]:
        message: dict[str, Any] = {"choices": [int(choice) for choice in self.choices]}
        if self.parent is not None:
            message["parent"] = self.parent
        if self.bound is not None:
            message["bound"] = self.bound
        if self.probe:
            message["probe"] = True
        return message


class Agent:
    """Base class: override `propose`, and `tell` to learn.

    Equal seeds and outcomes must give equal proposals: that is how a search resumes. So draw random numbers
    from `self.random` alone, and look at no clock. At the end of the file:

        if __name__ == "__main__":
            MyAgent.run()
    """

    space: Space
    goal: Goal
    seed: int
    params: Mapping[str, Any]  # "params" of the configuration
    random: random.Random      # of the seed

    def start(self) -> None:
        """Called once space, goal, seed and params are there."""

    def propose(self, n: int) -> Iterable[Proposal | Sequence[int]]:
        """At most `n` points to try next, as proposals or as choices alone. None: the search ends."""
        raise NotImplementedError

    def tell(self, trial: int, choices: tuple[int, ...], outcome: Outcome) -> None:
        """What came of a trial: of the uniform baselines first, then of what was proposed, in order."""

    def left(self) -> int | None:
        """At most so many will be proposed from now on; None: not known. For the time that is told alone."""
        return None

    # ---- For agents -------------------------------------------------------------------------------

    def is_feasible(self, choices: Sequence[int]) -> bool:
        """By the exact costs, which are known without a trial."""
        return self.goal.exact_violation(self.space, choices) == 0.0

    def draw(self) -> tuple[int, ...]:
        """A point at random."""
        return tuple(self.random.randrange(n) for n in self.space.n_choices)

    # ---- The protocol -----------------------------------------------------------------------------

    @classmethod
    def run(cls) -> None:
        """Answers mscgym on standard input and output until it says that it is done."""
        agent = cls()
        with protocol.lines_of_its_own() as (requests, answers):
            for line in requests:
                message = json.loads(line)
                if message["method"] == "done":
                    break
                protocol.write(answers, agent.answer(message))

    def answer(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """The answer to one request."""
        method = message["method"]
        if method == "init":
            self.space, self.goal = Space.from_json(message["space"]), Goal.from_json(message["goal"])
            self.seed, self.params = int(message["seed"]), message["params"]
            self.random = random.Random(self.seed)
            self.start()
            return {}
        if method == "ask":
            return self._ask(message["max"])
        if method == "tell":
            trial = message["trial"]
            self.tell(trial["id"], tuple(trial["choices"]), Outcome.from_json(message["outcome"]))
            return {}
        return {"error": f"there is no method {method}"}

    def _ask(self, n: int) -> dict[str, Any]:
        proposals = [p if isinstance(p, Proposal) else Proposal(p) for p in self.propose(n)]
        answer: dict[str, Any] = {"proposals": [p.to_json() for p in proposals], "done": not proposals}
        left = self.left()
        if left is not None:
            answer["left"] = left
        return answer
