#!/usr/bin/env python3
"""Learns with the gym view by the cross-entropy method, with a table of probabilities for each task.
Needs gymnasium and numpy.

    cp -r ../../examples/digits .
    python3 learn.py agent.json

A second argument is the number of episodes.
"""
import sys

import numpy

from mscgym.gym import Env

# Episodes per update, and how many of the best ones the probabilities move towards.
ROUND, KEPT = 20, 5


def play(env: Env, chances: list[numpy.ndarray], random: numpy.random.Generator) -> tuple[list[int], float]:
    env.reset()
    plan: list[int] = []
    while True:
        plan.append(int(random.choice(len(chances[len(plan)]), p=chances[len(plan)])))
        _, reward, terminated, truncated, _ = env.step(plan[-1])
        if terminated or truncated:
            return plan, reward


def main() -> None:
    env = Env(sys.argv[1])
    n_episodes = int(sys.argv[2]) if len(sys.argv) > 2 else 100
    random = numpy.random.default_rng(0)
    chances = [numpy.full(n, 1.0 / n) for n in env.space.n_choices]
    best: tuple[list[int], float] = [], -numpy.inf
    for done in range(0, n_episodes, ROUND):
        episodes = sorted((play(env, chances, random) for _ in range(min(ROUND, n_episodes - done))),
                          key=lambda episode: -episode[1])
        best = max(best, episodes[0], key=lambda episode: episode[1])
        for plan, _ in episodes[:KEPT]:
            for t, choice in enumerate(plan):
                chances[t] *= 0.9
                chances[t][choice] += 0.1
        for t, chance in enumerate(chances):
            chances[t] = chance / chance.sum()
        print(f"{done + len(episodes)} episodes: the best reward is {best[1]:.5g}")
    labels = [task.choices[choice] for task, choice in zip(env.space.tasks, best[0], strict=True)]
    print("the best plan: " + ", ".join(labels))
    env.close()


if __name__ == "__main__":
    main()
