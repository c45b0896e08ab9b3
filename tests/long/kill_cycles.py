#!/usr/bin/env python3
"""Kills searches of every agent a few hundred times, in environments that are cheap to evaluate.

    kill_cycles.py MSCGYM [--kills 500] [--seed 0] [--agent NAME ...]

Every agent searches the toy environment and a table, with one objective and with two. First without
interruption; then killed (SIGKILL) at random lengths of the record and restarted until the search
ends. Alternately the parent is killed, which ends the worker too, or only the worker, which the
parent restarts. At most two kills hit one round of trials, because a trial in flight at three kills
counts as failed (docs/record.md). Existing lines must remain byte by byte, and the record must equal
the first one except for `measured`. Prints a line for each search; exits with 1 if one differs.
"""
import argparse
import itertools
import json
import os
import random
import signal
import sys
import tempfile
import time

from kill_resume import EXAMPLE, Searches, kill_all, lines_of

PARALLEL = 4
PROGRAM = os.path.abspath(os.path.join(EXAMPLE, "..", "agents", "random_agent.py"))
AGENTS = {
    "auto": {"type": "auto"},
    "evolutionary": {"type": "evolutionary", "population": 8},
    "bounded evolutionary": {"type": "evolutionary", "population": 8, "bounded": True},
    "per_task": {"type": "grid_search"},
    "greedy": {"type": "grid_search", "mode": "greedy"},
    "full": {"type": "grid_search", "mode": "full"},
    "random": {"type": "random"},
    "sensitivity": {"type": "sensitivity"},
    "program": {"type": "process", "command": ["python3", PROGRAM]},
}
TWO = {"objectives": ["distill_loss", "size_bytes"]}
TOY = {"type": "toy", "tasks": 10, "choices": 4, "seed": 1, "interaction": 0.5, "delay_us": 1500}
ENVIRONMENTS = {
    "toy": TOY,
    "toy, bounds": {**TOY, "bounds": {"size_ratio": {"max": 0.07}}},
    "toy, two objectives": {**TOY, **TWO},
    "table": {"type": "table", "file": "table.json"},
}
# A table of terms: 12 tasks of 4 choices, with losses and sizes.
TABLE = {
    "schema": "mscgym.table.1",
    "tasks": [{"name": f"t{i}", "choices": ["8", "6", "4", "2"]} for i in range(12)],
    "metrics": [{"name": "distill_loss",
                 "alone": [[0, 0.01 * (i + 1), 0.05 * (i % 5 + 1), 0.3] for i in range(12)]}],
    "costs": [{"name": "size_bytes", "alone": [[8 * (i + 1), 6 * (i + 1), 4 * (i + 1), 2 * (i + 1)]
                                               for i in range(12)]}],
}


def config_of(agent, environment, folder):
    env = dict(ENVIRONMENTS[environment])
    if env["type"] == "table":
        env["file"] = os.path.join(folder, "table.json")
    return {"verbose": "error", "gym": [{
        "record": "search.jsonl", "env": env, "agent": AGENTS[agent], "seed": 5, "parallel": PARALLEL,
        "budget": {"trials": 120}}]}


def worker_of(process):
    try:
        with open(f"/proc/{process.pid}/task/{process.pid}/children", encoding="ascii") as file:
            return [int(pid) for pid in file.read().split()]
    except FileNotFoundError:
        return []


def reached(process, record, target):
    """True once the record has this many bytes; false if the search has ended."""
    while process.poll() is None:
        if os.path.exists(record) and os.path.getsize(record) >= target:
            return True
        time.sleep(0.0005)
    return False


def kill_once(process, way, generator):
    if way == "parent":
        kill_all(process)
        return
    for pid in worker_of(process):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    time.sleep(generator.random() * 0.01)
    kill_all(process)  # kills the restarted worker, too, before or after it began


def run_killed(searches, n_bytes, kills, generator):
    """A search that is killed until it ends; returns the number of kills, and what is wrong."""
    config, record = searches.new()
    done, length, kept, kills_in_round = 0, 0, b"", {}
    while done < kills and length < n_bytes * 0.95:
        process = searches.start(config)
        if not reached(process, record, length + generator.randrange(1, max(2, n_bytes // 6))):
            process.communicate()
            break
        this_round = lines_of(record).count(b"\n") // PARALLEL
        if kills_in_round.get(this_round, 0) >= 2:
            process.communicate()
            break
        kill_once(process, ("parent", "worker")[done % 2], generator)
        kills_in_round[this_round] = kills_in_round.get(this_round, 0) + 1
        done += 1
        now = lines_of(record)
        if not now.startswith(kept):
            return done, f"lines were lost or changed before kill {done}"
        length = now.rfind(b"\n") + 1
        kept = now[:length]
    searches.finish(config)
    if not lines_of(record).startswith(kept):
        return done, "a resumed search changed lines that were there"
    same = searches.canonical(record) == searches.expected
    return done, None if same else f"the record differs after {done} kills"


def check(options, name, kills, folder):
    agent, environment = name
    searches = Searches(os.path.abspath(options.mscgym), folder,
                        config_of(agent, environment, folder))
    config, record = searches.new()
    searches.finish(config)
    searches.expected = searches.canonical(record)
    n_bytes, done, wrong = len(lines_of(record)), 0, None
    generator = random.Random(f"{options.seed} {name}")
    while done < kills and not wrong:
        n, wrong = run_killed(searches, n_bytes, kills - done, generator)
        done += max(n, 1)
    print(f"{agent}, {environment}: {done} kills of {n_bytes} bytes: {wrong or 'the same record'}",
          flush=True)
    return done, wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("mscgym")
    parser.add_argument("--kills", type=int, default=500, help="in all")
    parser.add_argument("--seed", default="0")
    parser.add_argument("--agent", nargs="+", choices=AGENTS, default=list(AGENTS))
    options = parser.parse_args()
    names = list(itertools.product(options.agent, ENVIRONMENTS))
    total, failed = 0, False
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "table.json"), "w", encoding="utf-8") as file:
            json.dump(TABLE, file)
        for i, name in enumerate(names):
            kills = -(-(options.kills - total) // (len(names) - i))
            place = os.path.join(folder, str(i))
            os.makedirs(place)
            os.symlink(os.path.join(folder, "table.json"), os.path.join(place, "table.json"))
            done, wrong = check(options, name, kills, place)
            total += done
            failed = failed or bool(wrong)
    print(f"{total} kills")
    sys.exit(int(failed))


main()
