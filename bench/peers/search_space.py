"""What search agents that are programs have in common: exact costs, and the loop of requests."""
import json
import sys


class Space:
    def __init__(self, message):
        self.tasks = message["space"]["tasks"]
        self.counts = [len(task["choices"]) for task in self.tasks]
        self.orders = [task["dearest_first"] for task in self.tasks]
        self.costs = {cost["metric"]: cost for cost in message["space"]["costs"]}
        self.bounds = message["goal"]["bounds"]

    def cost(self, metric, choices):
        cost = self.costs[metric]
        total = cost["constant"]
        for term in cost["terms"]:
            product = term["scale"]
            for factor in term["factors"]:
                product *= factor["values"][choices[factor["task"]]]
            total += product
        return total

    def violation(self, choices):
        """By the exact costs: 0 where the point meets their bounds."""
        total = 0.0
        for metric, bound in self.bounds.items():
            if metric not in self.costs:
                continue
            value = self.cost(metric, choices)
            for limit, over in ((bound.get("max"), 1), (bound.get("min"), -1)):
                if limit is not None:
                    total += max(0.0, over * (value - limit)) / (abs(limit) or 1.0)
        return total


def serve(make):
    """make(message of init) gives an object with ask(max) -> points, and tell(choices, outcome)."""
    agent = None
    for line in sys.stdin:
        message = json.loads(line)
        if message["method"] == "done":
            break
        answer = {}
        if message["method"] == "init":
            agent = make(message)
        elif message["method"] == "ask":
            answer = {"proposals": [{"choices": [int(c) for c in point]}
                                    for point in agent.ask(message["max"])]}
        else:
            agent.tell(tuple(message["trial"]["choices"]), message["outcome"])
        print(json.dumps(answer), flush=True)
