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
    """A point to try, and optional hints."""
    choices: Sequence[int]
    parent: int | None = None   # id of the trial that it was derived from
    bound: float | None = None  # the trial may stop once its loss exceeds this
    probe: bool = False         # evaluate it even if its exact costs break a bound

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
    """Base class for agents: override `propose`, and `tell` to learn from outcomes.

    Equal seeds and outcomes must give equal proposals, because a search resumes by asking the agent again.
    So draw random numbers only from `self.random`, and do not use the time. At the end of the file:

        if __name__ == "__main__":
            MyAgent.run()
    """

    space: Space
    goal: Goal
    seed: int
    params: Mapping[str, Any]  # "params" of the configuration
    random: random.Random      # seeded with `seed`

    def start(self) -> None:
        """Called once, after space, goal, seed and params are set."""

    def propose(self, n: int) -> Iterable[Proposal | Sequence[int]]:
        """Returns at most `n` points to try next, as proposals or only choices. An empty result
        ends the search.
        """
        raise NotImplementedError

    def tell(self, trial: int, choices: tuple[int, ...], outcome: Outcome) -> None:
        """Observes the outcome of a trial: first the uniform baselines, then the proposals in order."""

    def left(self) -> int | None:
        """The most trials that will still be proposed, or None if unknown. Only used to estimate
        the time left.
        """
        return None

    def remarks(self) -> Iterable[str]:
        """What the agent has learnt about the space, for people: one sentence each, without a full stop. It must not
        change later proposals.
        """
        return ()

    # ---- For agents -------------------------------------------------------------------------------

    def is_feasible(self, choices: Sequence[int]) -> bool:
        """True if the exact costs, which are known without a trial, are within the bounds."""
        return self.goal.exact_violation(self.space, choices) == 0.0

    def draw(self) -> tuple[int, ...]:
        """A random point."""
        return tuple(self.random.randrange(n) for n in self.space.n_choices)

    # ---- The protocol -----------------------------------------------------------------------------

    @classmethod
    def run(cls) -> None:
        """Answers requests of mscgym on standard input and output until it sends "done"."""
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
            return {"remarks": True} if type(self).remarks is not Agent.remarks else {}
        if method == "ask":
            return self._ask(message["max"])
        if method == "tell":
            trial = message["trial"]
            self.tell(trial["id"], tuple(trial["choices"]), Outcome.from_json(message["outcome"]))
            return {}
        if method == "remarks":
            return {"remarks": [str(remark) for remark in self.remarks()]}
        return {"error": f"there is no method {method}"}

    def _ask(self, n: int) -> dict[str, Any]:
        proposals = [p if isinstance(p, Proposal) else Proposal(p) for p in self.propose(n)]
        answer: dict[str, Any] = {"proposals": [p.to_json() for p in proposals], "done": not proposals}
        left = self.left()
        if left is not None:
            answer["left"] = left
        return answer
