#!/usr/bin/env python3
"""Checks that time grows no faster than the number of tasks, and that SIGTERM ends a search soon.

    check_large.py MSCGYM [--tasks N]

Every agent searches tables of N / 5 and of N (50,000) tasks, with and without a bound. The larger
table may take ten times as long plus a second; `auto` with a bound, whose steps look at all tasks,
may take a minute. Commands that read such a record may take half a minute. A search that gets
SIGTERM at any time, during set-up or while an agent works, must exit within two seconds with code
4, and must be resumable. Prints a table; exits with 1 if a check fails.
"""
import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

AGENTS = ("random", "grid_search", "evolutionary", "sensitivity", "auto")
READERS = (["show"], ["show", "--json"], ["show", "--canonical"], ["export", "--optuna", "o.log"],
           ["report", "-o", "page.html"], ["verify"], ["resume"])
LIMIT_S = 300
# A table of rows rarely has the row of a random point, so all trials may fail.
ENDS = {"json": (0,), "csv": (0, 1)}


def write_table(path, n, rng):
    sizes = [rng.randint(1, 100) for _ in range(n)]
    tasks = [{"name": f"task_{i}", "choices": ["8", "6", "4"]} for i in range(n)]
    losses = [[0, round(rng.random(), 3), round(1 + rng.random(), 3)] for _ in range(n)]
    table = {"schema": "mscgym.table.1", "tasks": tasks,
             "metrics": [{"name": "distill_loss", "alone": losses,
                          "pairs": [{"tasks": [i, i + 1], "values": [[0, 0, 0], [0, .1, .2], [0, .2, .3]]}
                                    for i in range(n - 1)]}],
             "costs": [{"name": "size_bytes", "alone": [[8 * k, 6 * k, 4 * k] for k in sizes]}]}
    with open(path, "w", encoding="utf-8") as file:
        json.dump(table, file)
    return 6 * sum(sizes)


def write_rows(path, n, rng):
    with open(path, "w", encoding="utf-8") as file:
        file.write(",".join(f"task_{i}" for i in range(n)) + ",distill_loss\n")
        for _ in range(40):
            file.write(",".join(rng.choice("864") for _ in range(n)) + f",{rng.random()}\n")


def write_config(folder, table, agent, bound):
    env = {"type": "table", "file": os.path.join(folder, table)}
    if bound:
        env["bounds"] = {"size_bytes": {"max": bound}}
    path = os.path.join(folder, "c.json")
    shutil.rmtree(os.path.join(folder, "w"), ignore_errors=True)
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"workspace": "w", "gym": [{"record": "r.jsonl", "env": env, "agent": {"type": agent},
                                              "budget": {"trials": 20}}]}, file)
    return path


def timed(command, folder):
    begin = time.monotonic()
    done = subprocess.run(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                          timeout=LIMIT_S, check=False)
    return time.monotonic() - begin, done.returncode, done.stderr[-200:]


class Check:
    def __init__(self, mscgym, n, folder):
        self.mscgym, self.folder, self.n = mscgym, folder, n
        self.failures = 0
        self.rng = random.Random(0)
        self.bounds = {}
        for size in (n // 5, n):
            self.bounds[size] = write_table(os.path.join(folder, f"{size}.json"), size, self.rng)
            write_rows(os.path.join(folder, f"{size}.csv"), size, self.rng)

    def fail(self, what):
        self.failures += 1
        print(f"FAILED  {what}", flush=True)

    def search(self, size, kind, agent, has_bound):
        config = write_config(self.folder, f"{size}.{kind}", agent, self.bounds[size] if has_bound else None)
        seconds, code, said = timed([self.mscgym, "search", config, "--quiet"], self.folder)
        if code not in ENDS[kind]:
            self.fail(f"{size} tasks, {kind}, {agent}: exit {code}: {said}")
        return seconds

    def check_growth(self, kind, agent, has_bound):
        small, large = (self.search(size, kind, agent, has_bound) for size in (self.n // 5, self.n))
        limit = 60 if agent == "auto" and has_bound else 10 * small + 1
        print(f"{kind:5} {agent:13} {'bound' if has_bound else '-':6} {small:6.2f} s {large:6.2f} s", flush=True)
        if large > limit:
            self.fail(f"{kind}, {agent}: {large:.1f} s, expected at most {limit:.1f}")

    def check_readers(self):
        for command, *options in READERS:
            seconds, code, said = timed([self.mscgym, command, "w/r.jsonl", *options], self.folder)
            print(f"{command} {' '.join(options):20} {seconds:6.2f} s", flush=True)
            if code != 0 or seconds > 30:
                self.fail(f"{command}: exit {code} after {seconds:.1f} s: {said}")

    def check_signal(self, kind, agent, has_bound, delay):
        config = write_config(self.folder, f"{self.n}.{kind}", agent, self.bounds[self.n] if has_bound else None)
        with subprocess.Popen([self.mscgym, "search", config, "--quiet"], cwd=self.folder,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            time.sleep(delay)
            was_over = process.poll() is not None
            begin = time.monotonic()
            process.send_signal(signal.SIGTERM)
            code = process.wait(LIMIT_S)
            seconds = time.monotonic() - begin
        if not was_over and (seconds > 2 or code not in (*ENDS[kind], 4)):
            self.fail(f"SIGTERM to {kind}, {agent} after {delay:.2f} s: exit {code} after {seconds:.2f} s")
        return seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("mscgym")
    parser.add_argument("--tasks", type=int, default=50000)
    values = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        check = Check(os.path.abspath(values.mscgym), values.tasks, folder)
        worst = max(check.check_signal(kind, agent, has_bound, check.rng.uniform(0.05, most))
                    for kind, agent, has_bound, most in
                    4 * [("json", "auto", True, 8), ("json", "grid_search", True, 0.6), ("csv", "random", False, 1)])
        print(f"SIGTERM: {worst:.2f} s at most", flush=True)
        for agent in AGENTS:
            for has_bound in (False, True):
                check.check_growth("json", agent, has_bound)
        check.check_growth("csv", "random", False)
        check.search(values.tasks, "json", "random", True)
        check.check_readers()
    print(f"{check.failures} failures")
    return 1 if check.failures else 0


if __name__ == "__main__":
    sys.exit(main())
