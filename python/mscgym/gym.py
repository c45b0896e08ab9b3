"""A search as a Gymnasium environment: one episode is one trial, one step chooses for one task.

    env = mscgym.gym.Env("search.json")
    observation, info = env.reset(seed=0)
    observation, reward, terminated, truncated, info = env.step(env.action_space.sample(info["action_mask"]))
"""
from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy

from mscgym.installed import program
from mscgym.protocol import Child
from mscgym.space import Goal, Outcome, Space


class Env(gymnasium.Env[numpy.ndarray, numpy.int64]):
    """The environment of a configuration's first search: a network, a table or a program.

    The observation is the share of tasks that have a choice, 0 to 1, and the features of the next task.
    An action is the index of a choice. An index beyond the task's choices counts as the last one;
    `info["action_mask"]` marks the valid ones. The reward is 0 until the last task. Then it is minus
    the objective or, if the point breaks a bound, minus (the worst objective so far + violation).
    """

    metadata: dict[str, Any] = {"render_modes": []}

    def __init__(self, config: str | os.PathLike[str], *, command: Sequence[str] | None = None,
                 options: Sequence[str] = ()):
        """`command` starts mscgym (default: `mscgym.program()`); `options` are options of `mscgym
        gym`, such as ["--threads", "1"].
        """
        self.child = Child([*(command or [program()]), "gym", os.fspath(config), *options])
        hello = self.child.ask("init")
        self.space, self.goal = Space.from_json(hello["space"]), Goal.from_json(hello["goal"])
        features = numpy.array([task.features for task in self.space.tasks], dtype=numpy.float64).reshape(
            len(self.space.tasks), len(self.space.feature_names))
        self._low, self._high = features.min(axis=0, initial=0.0), features.max(axis=0, initial=0.0)
        self.observation_space = gymnasium.spaces.Box(
            numpy.concatenate(([0.0], self._low)), numpy.concatenate(([1.0], self._high)), dtype=numpy.float64)
        self.action_space = gymnasium.spaces.Discrete(max(self.space.n_choices))
        self._n_choices = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None
              ) -> tuple[numpy.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        observation, _, _, _, info = self._take(self.child.ask("reset", seed=str(seed or 0)))
        return observation, info

    def step(self, action: Any) -> tuple[numpy.ndarray, float, bool, bool, dict[str, Any]]:
        choice = min(int(action), self._n_choices - 1) if self._n_choices else int(action)
        return self._take(self.child.ask("step", choice=choice))

    def _take(self, step: dict[str, Any]) -> tuple[numpy.ndarray, float, bool, bool, dict[str, Any]]:
        self._n_choices = step["n_choices"]
        n_tasks = len(self.space.tasks)
        is_over = step["terminated"] or step["truncated"]
        part = 1.0 if is_over else step["task"] / n_tasks
        features = step["observation"] if not is_over else [0.0] * len(self._low)
        info: dict[str, Any] = {
            "action_mask": (numpy.arange(max(self.space.n_choices)) < self._n_choices).astype(numpy.int8)}
        if "outcome" in step:
            info["outcome"] = Outcome.from_json(step["outcome"])
        return (numpy.array([part, *features], dtype=numpy.float64), float(step["reward"]), step["terminated"],
                step["truncated"], info)

    def close(self) -> None:
        self.child.close()
