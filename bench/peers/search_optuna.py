#!/usr/bin/env python3
"""A sampler of Optuna as a search agent; params: {"sampler": "tpe" | "nsga2", "ordinal": true | false}.

TPE is multivariate. Violations of bounds are its constraints. A point that breaks a bound by its exact
costs, or that was tried, is told to the sampler at once, without a trial, and it is asked again, up to ten
times; then a random point within the bounds goes in its place. Choices are categories, or with "ordinal" whole
numbers in the order from the most expensive to the cheapest.
"""
import random
import warnings

import optuna

import search_space

TRIES = 10


class Sampler:
    def __init__(self, message):
        warnings.simplefilter("ignore")
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        params = message["params"]
        self.space = search_space.Space(message)
        self.is_ordinal = params.get("ordinal", False)
        seed = int(message["seed"]) % 2 ** 32
        more = {"seed": seed, "constraints_func": lambda trial: (trial.user_attrs["violation"],)}
        sampler = (optuna.samplers.TPESampler(multivariate=True, **more)
                   if params.get("sampler", "tpe") == "tpe" else
                   optuna.samplers.NSGAIISampler(**more))
        self.study = optuna.create_study(sampler=sampler)
        self.values = {}    # of points: (violation, objective)
        self.waiting = {}   # of points that were asked for: their trial
        self.worst = 0.0
        self.random = random.Random(seed)

    def suggest(self, trial):
        point = []
        for t, order in enumerate(self.space.orders):
            name = f"t{t}"
            point.append(order[trial.suggest_int(name, 0, len(order) - 1)] if self.is_ordinal else
                         trial.suggest_categorical(name, list(range(len(order)))))
        return tuple(point)

    def settle(self, trial, value):
        trial.set_user_attr("violation", value[0])
        self.study.tell(trial, self.worst if value[1] is None else value[1])

    def sample(self):
        """A point that is within the bounds and new, and its trial; or None."""
        for _ in range(TRIES):
            trial = self.study.ask()
            point = self.suggest(trial)
            violation = self.space.violation(point)
            if violation > 0:
                self.settle(trial, (violation, None))
            elif point in self.values:
                self.settle(trial, self.values[point])
            elif point in self.waiting:
                self.study.tell(trial, state=optuna.trial.TrialState.FAIL)
            else:
                return point, trial
        return None

    def draw(self):
        for _ in range(1000):
            point = tuple(self.random.randrange(n) for n in self.space.counts)
            if point not in self.values and point not in self.waiting and \
                    self.space.violation(point) == 0:
                return point, None
        return None

    def ask(self, n):
        points = []
        for _ in range(n):
            found = self.sample() or self.draw()
            if found:
                points.append(found[0])
                self.waiting[found[0]] = found[1]
        return points

    def tell(self, choices, outcome):
        objective = outcome["objectives"][0] if outcome["objectives"] else None
        trial = self.waiting.pop(choices, None)
        if outcome["state"] == "failed":
            if trial:
                self.study.tell(trial, state=optuna.trial.TrialState.FAIL)
            return
        value = outcome["violation"], objective
        self.values[choices] = value
        self.worst = max(self.worst, objective or 0.0)
        if trial:
            self.settle(trial, value)
        else:  # a baseline, or drawn
            self.study.add_trial(optuna.trial.create_trial(
                params=self.params(choices), distributions=self.distributions(),
                user_attrs={"violation": value[0]}, value=self.worst if objective is None else
                objective, system_attrs={"constraints": (value[0],)}))

    def params(self, choices):
        return {f"t{t}": order.index(c) if self.is_ordinal else c
                for t, (order, c) in enumerate(zip(self.space.orders, choices))}

    def distributions(self):
        kind = optuna.distributions
        return {f"t{t}": kind.IntDistribution(0, n - 1) if self.is_ordinal else
                kind.CategoricalDistribution(list(range(n)))
                for t, n in enumerate(self.space.counts)}


if __name__ == "__main__":
    search_space.serve(Sampler)
