"""Checks a race by its record: computes again which trials go on, as docs/quantize.md (Racing) says.

    check_race.py RECORD

Prints the number of trials; fails at the first that was eliminated too early or too late.
"""
import json
import math
import sys

FIRST, SPREAD, ENOUGH, ENOUGH_BEYOND, BASELINES = 4, 0.3, 0.25, 0.06, 4


class Known:
    """What the lines read so far determine about a race."""

    def __init__(self, race):
        self.points = race["rungs"] + [race["batches"]]
        self.squares, self.n = [FIRST * SPREAD ** 2] * 2, [FIRST] * 2
        self.best, self.baselines = None, []

    def share(self, rung):
        return 1 / self.points[rung] - 1 / self.points[-1]

    def error(self, rung, can_win):
        return math.sqrt(self.squares[can_win] / self.n[can_win] * self.share(rung))

    def reference(self, sums, can_win):
        if can_win:
            return self.best
        at = len(sums) - 1
        there = self.baselines + [self.best] * bool(self.best)
        return min(there, key=lambda of: abs(math.log(sums[at] / of[at])), default=None)

    def note(self, trial):
        sums = list(trial["rungs"])
        if trial["state"] in ("complete", "infeasible") and len(sums) == len(self.points) - 1:
            sums.append(trial["metrics"]["distill_loss"])
        can_win = trial.get("violation", 0) <= 0
        reference = self.reference(sums, can_win)
        factors = [math.log(a / b) for a, b in zip(sums, reference)] if reference else []
        for i, (a, b) in enumerate(zip(factors, factors[1:])):
            self.squares[can_win] += (b - a) ** 2 / (self.share(i) - self.share(i + 1))
            self.n[can_win] += 1
        if trial["state"] == "complete" and (not self.best or sums[-1] < self.best[-1]):
            self.best = sums
        if "baseline" in trial and len(self.baselines) < BASELINES:
            self.baselines.append(sums)


def going(race, known, rung, there, can_win):
    """The trials at a rung that go on, by ascending sums of losses."""
    kept = math.ceil(race["keep"] * len(there))
    if "margin" not in race:
        return there[:kept]
    if known.error(rung, can_win) > (ENOUGH if can_win else ENOUGH_BEYOND) and rung + 1 < len(race["rungs"]):
        return there
    if not can_win:
        return []
    n = race["batches"]
    telling = min(-(-4 * n // (4 + n)), n // 2)
    if race["rungs"][rung] >= telling:
        there = there[:kept]
    most = known.best[rung] * math.exp(race["margin"] * known.error(rung, True)) if known.best else math.inf
    return [t for t in there if t["rungs"][rung] <= most]


def main():
    lines = [json.loads(line) for line in open(sys.argv[1])]
    header, trials = lines[0], [t for t in lines if t["kind"] == "trial"]
    race, bounds = header["race"], header["bounds"]
    rest = [t for t in trials if "baseline" not in t]
    rounds = [rest[i:i + header["parallel"]] for i in range(0, len(rest), header["parallel"])]
    known = Known(dict(race, batches=race.get("batches", 2 ** 30)))
    ran = [t for t in trials if "baseline" in t]
    n, n_alone = [0, 0], 0
    for trials_of_round in rounds:
        for t in ran:
            known.note(t)
        ran = [t for t in trials_of_round if t.get("rungs") and "repeat_of" not in t]
        for can_win in (True, False):
            there = [t for t in ran if can_win == all(t["metrics"][b["metric"]] <= b["max"] for b in bounds)]
            n[can_win] += len(there)
            for rung in range(len(race["rungs"])):
                there = sorted((t for t in there if len(t["rungs"]) > rung),
                               key=lambda t: (t["rungs"][rung], t["id"]))
                on = [t for t in there if len(t["rungs"]) > rung + 1 or t["state"] != "pruned"]
                n_alone += can_win and len(on) < math.ceil(race["keep"] * len(there))
                assert on == going(race, known, rung, there, can_win), (rung, [t["id"] for t in there])
        assert all(t["rungs"][-1] == t["metrics"]["distill_loss"] for t in ran if t["state"] == "pruned")
    print(f"of {n[True]} that could win and {n[False]} that could not those went on that should; the margin let fewer go "
          f"on than a share, {n_alone} times")


main()
