#!/usr/bin/env python3
"""Kills a search at random moments and checks that nothing is lost and nothing differs.

    kill_resume.py MSCGYM [--kills 50] [--trials 300] [--seed 0]

Searches the digits example once without a break. Then again, killed (SIGKILL, parent and worker
together) at random lengths of the record and started anew, until `kills` kills have happened, at most
two in one round of trials; then with other thread counts and cache budgets, with the last line torn
at every byte, and with the instruction set limited to AVX2. Every final record must equal the first
one outside `measured`, and lines that were in the record before a kill must still be there, byte by
byte. The same with agents that stop trials at their bounds, in batches small enough for it; such a
record must hold stopped trials, and every one of its lines must verify. Prints a line for each check;
exit code 1 when one fails.
"""
import argparse
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
EXAMPLE = os.path.join(HERE, "..", "..", "examples", "digits")
PARALLEL = 4
AGENTS = {  # changes of the example's: agent, batch
    "example": ({}, 64),
    "bounded evolutionary": ({"population": 8, "bounded": True}, 16),
    "bounded greedy": ({"type": "grid_search", "mode": "greedy"}, 16),
}


class Searches:
    def __init__(self, mscgym, folder, trials, agent, batch):
        self.mscgym, self.folder, self.count = mscgym, folder, 0
        with open(os.path.join(EXAMPLE, "digits.json")) as file:
            self.config = json.load(file)
        for key in ("inputs", "labels"):
            self.config["dataset"][key] = os.path.join(EXAMPLE, self.config["dataset"][key])
            validation = self.config["dataset"]["validation"]
            validation[key] = os.path.join(EXAMPLE, validation[key])
        self.config["model"] = os.path.join(EXAMPLE, self.config["model"])
        entry = self.config["quantize"]["gym"][0]
        entry["budget"] = {"trials": trials}
        entry["parallel"] = PARALLEL
        entry["agent"] = agent if "type" in agent else dict(entry["agent"], **agent)
        self.config["dataset"]["batch"] = batch

    def new(self):
        """A configuration in a workspace of its own, and the path of its record."""
        self.count += 1
        workspace = os.path.join(self.folder, str(self.count))
        os.makedirs(workspace)
        path = os.path.join(workspace, "search.json")
        with open(path, "w") as file:
            json.dump(dict(self.config, workspace=workspace), file)
        return path, os.path.join(workspace, self.config["quantize"]["gym"][0]["record"])

    def start(self, config, options=(), environment=None):
        return subprocess.Popen(
            [self.mscgym, "search", config, "--quiet", *options], stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE, text=True, env=dict(os.environ, **(environment or {})),
            start_new_session=True)

    def finish(self, config, options=(), environment=None):
        process = self.start(config, options, environment)
        _, errors = process.communicate()
        if process.returncode != 0:
            sys.exit(f"search ended with {process.returncode}: {errors}")

    def canonical(self, record):
        return subprocess.run([self.mscgym, "show", record, "--canonical"], check=True,
                              capture_output=True).stdout


def lines_of(record):
    with open(record, "rb") as file:
        return file.read()


def kill_all(process):
    """The kernel kills the worker as soon as its parent is gone; its end closes the pipe."""
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def check_kills(searches, expected, kills, generator):
    done = 0
    while done < kills:
        config, record = searches.new()
        kills_in_round = {}
        kept, length, total = b"", 0, len(expected)
        while done < kills and length < total * 0.95:
            target = length + generator.randrange(1, max(2, total // 8))
            process = searches.start(config)
            while process.poll() is None:
                if os.path.exists(record) and os.path.getsize(record) >= target:
                    break
                time.sleep(0.0005)
            if process.poll() is not None:
                break
            this_round = lines_of(record).count(b"\n") // PARALLEL
            if kills_in_round.get(this_round, 0) >= 2:
                process.communicate()
                break
            kill_all(process)
            kills_in_round[this_round] = kills_in_round.get(this_round, 0) + 1
            done += 1
            now = lines_of(record)
            if not now.startswith(kept):
                return f"lines were lost or changed before kill {done}"
            length = now.rfind(b"\n") + 1
            kept = now[:length]
        searches.finish(config)
        if not lines_of(record).startswith(kept):
            return "a resumed search changed lines that were there"
        if searches.canonical(record) != expected:
            return f"the record differs after {done} kills"
    return None


def check_variant(searches, expected, options, environment=None):
    config, record = searches.new()
    searches.finish(config, options, environment)
    return None if searches.canonical(record) == expected else "the record differs"


def least_memory(searches):
    """What the dry run names as the least: nothing stays cached then."""
    config, _ = searches.new()
    text = subprocess.run([searches.mscgym, "search", config, "--dry-run"], check=True,
                          capture_output=True, text=True).stdout
    return re.search(r"at least (\d+) MB", text).group(1) + "M"


def check_torn(searches, expected):
    config, record = searches.new()
    searches.finish(config)
    whole = lines_of(record)
    last = whole.rstrip(b"\n").rfind(b"\n") + 1
    for cut in range(last, len(whole)):
        with open(record, "wb") as file:
            file.write(whole[:cut])
        searches.finish(config)
        if searches.canonical(record) != expected:
            return f"the record differs when the last line is cut to {cut - last} bytes"
    return None


def check_stopped(searches):
    """Some trials were stopped, and all lines, evaluated again, are what the record says."""
    config, record = searches.new()
    searches.finish(config)
    if b'"state":"pruned"' not in lines_of(record):
        return "no trial was stopped"
    process = subprocess.run([searches.mscgym, "verify", record], capture_output=True, text=True)
    return None if process.returncode == 0 else process.stdout + process.stderr


def run_checks(searches, options):
    config, record = searches.new()
    searches.finish(config)
    expected = searches.canonical(record)
    is_example = searches.config["dataset"]["batch"] == AGENTS["example"][1]
    kills = options.kills if is_example else max(1, options.kills // 3)
    avx2 = {"ONEDNN_MAX_CPU_ISA": "AVX2"}
    yield f"{kills} kills", check_kills(searches, expected, kills, random.Random(options.seed))
    for threads in "1", "2", "4":
        yield f"{threads} threads", check_variant(searches, expected, ["--threads", threads])
    for memory in least_memory(searches), "1G":
        yield f"{memory} of memory", check_variant(searches, expected, ["--memory", memory])
    if not is_example:
        yield "stopped trials", check_stopped(searches)
        return
    yield "last line torn at every byte", check_torn(searches, expected)
    config, record = searches.new()
    searches.finish(config, environment=avx2)
    limited = searches.canonical(record)
    yield "AVX2, again", check_variant(searches, limited, ["--threads", "1"], avx2)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("mscgym")
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--trials", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    failed = False
    for name, (agent, batch) in AGENTS.items():
        folder = tempfile.mkdtemp(prefix="kill_resume_")
        searches = Searches(os.path.abspath(options.mscgym), folder, options.trials, agent, batch)
        for check, problem in run_checks(searches, options):
            failed = failed or problem is not None
            print(f"{name}, {check}: {problem or 'equal'}", flush=True)
        shutil.rmtree(folder)
    sys.exit(int(failed))


main()
