"""Who went on in a raced search, reckoned again from its record as docs/quantize.md says (Racing).

    check_race.py RECORD

Says of how many trials, and fails at the first that went further, or less far, than it should have.
"""
import json
import math
import sys

FIRST, SPREAD, ENOUGH = 4, 0.5, 0.25


class Known:
    """What lines so far tell of a race."""

    def __init__(self, race):
        self.points = race["rungs"] + [race["batches"]]
        self.squares, self.n, self.best = FIRST * SPREAD ** 2, FIRST, None

    def share(self, rung):
        return 1 / self.points[rung] - 1 / self.points[-1]

    def error(self, rung):
        return math.sqrt(self.squares / self.n * self.share(rung))

    def note(self, trial):
        sums = list(trial["rungs"])
        if trial["state"] in ("complete", "infeasible") and len(sums) == len(self.points) - 1:
            sums.append(trial["metrics"]["distill_loss"])
        factors = [math.log(a / b) for a, b in zip(sums, self.best)] if self.best else []
        for i, (a, b) in enumerate(zip(factors, factors[1:])):
            self.squares += (b - a) ** 2 / (self.share(i) - self.share(i + 1))
            self.n += 1
        if trial["state"] == "complete" and (not self.best or sums[-1] < self.best[-1]):
            self.best = sums


def going(race, known, rung, there, can_win):
    """Which of the trials that came to a rung go on, by ascending sums."""
    kept = math.ceil(race["keep"] * len(there))
    if "margin" not in race:
        return there[:kept]
    if known.error(rung) > ENOUGH and rung + 1 < len(race["rungs"]):
        return there
    if not can_win:
        return []
    n = race["batches"]
    telling = min(-(-4 * n // (4 + n)), n // 2)
    if race["rungs"][rung] >= telling:
        there = there[:kept]
    most = known.best[rung] * math.exp(race["margin"] * known.error(rung)) if known.best else math.inf
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
