#!/usr/bin/env python3
"""A search agent as a program: it proposes random points within the bounds on exact costs, each once.

mscgym starts it because the config says

    "agent": {"type": "process", "command": ["python3", "random_agent.py"]}

and exchanges JSON with it, one object per line. The program answers every line of standard input by one line
on standard output, and writes messages for people to standard error. The same sequence of messages must give
the same proposals, because a search resumes by repeating it. To check that:

    mscgym agents --check "python3 random_agent.py"
"""
import json
import random
import sys


class RandomAgent:
    def __init__(self, message):
        self.random = random.Random(int(message["seed"]))
        self.tasks = message["space"]["tasks"]
        self.costs = {cost["metric"]: cost for cost in message["space"]["costs"]}
        self.bounds = message["goal"]["bounds"]
        self.tries = int(message["params"].get("tries", 1000))
        self.seen = set()

    def cost(self, metric, choices):
        cost = self.costs[metric]
        total = cost["constant"]
        for term in cost["terms"]:
            product = term["scale"]
            for factor in term["factors"]:
                product *= factor["values"][choices[factor["task"]]]
            total += product
        return total

    def is_feasible(self, choices):
        for metric, bound in self.bounds.items():
            if metric not in self.costs:
                continue  # known only after a run
            value = self.cost(metric, choices)
            if value > bound.get("max", value) or value < bound.get("min", value):
                return False
        return True

    def propose(self):
        for _ in range(self.tries):
            choices = tuple(self.random.randrange(len(task["choices"])) for task in self.tasks)
            if choices not in self.seen and self.is_feasible(choices):
                self.seen.add(choices)
                return {"choices": list(choices)}
        return None

    def ask(self, message):
        proposals = []
        while len(proposals) < message["max"]:
            proposal = self.propose()
            if proposal is None:
                return {"proposals": proposals, "done": not proposals}
            proposals.append(proposal)
        return {"proposals": proposals}

    def tell(self, message):
        # A better agent would learn from message["outcome"]: "state", "metrics", "objectives" (smaller is
        # better), "violation" (0: within all bounds).
        self.seen.add(tuple(message["trial"]["choices"]))
        return {}


def main():
    agent = None
    for line in sys.stdin:
        message = json.loads(line)
        if message["method"] == "done":
            break
        if message["method"] == "init":
            agent = RandomAgent(message)
            answer = {}
        else:
            answer = getattr(agent, message["method"])(message)
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
