#!/usr/bin/env python3
"""Checks that searches with workers on a Ray cluster write the record of a single process.

    check_ray.py MSCGYM EXAMPLES/DIGITS [--faults 100] [--seed 0] [--trials 1200]

The head and the nodes run on addresses in a network namespace of the test; nodes cannot see the
search's folder. First, errors at the start must be reported in one line each. Then the digits
network is searched. Then a toy is searched repeatedly until enough faults have happened: workers,
actors and nodes killed or stopped, addresses removed, nodes that join and leave, the coordinator or
its Ray bridge killed and the search resumed. Records must be the same, and may not stand still for
longer than thirty seconds. Needs the Python package ray and permission for a network namespace;
exits with 77 without them.
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

import ray_cluster
from ray_cluster import ADDRESS, Cluster, command_line, descendants, send
from search_records import canonical, lines_of

NODES = (2, 3, 4)
SPARE = 5
MOST_STILL_S = 30.0
TOY = {"workspace": ".", "verbose": "error", "gym": [{
    "record": "toy.jsonl",
    "env": {"type": "toy", "tasks": 12, "choices": 4, "seed": 1, "interaction": 0.5, "delay_us": 50000},
    "agent": {"type": "evolutionary"}, "seed": 3, "parallel": 16}]}


class Check:
    def __init__(self, mscgym):
        self.mscgym, self.is_good = mscgym, True

    def expect(self, what, is_so, more=""):
        print(f"{what}: {'yes' if is_so else 'NO'}{more}", flush=True)
        self.is_good = self.is_good and is_so

    def command(self, word, path, *more):
        return [self.mscgym, word, path, "--quiet", "--cluster", f"ray:{ADDRESS}", "--worker-program", self.mscgym,
                *more]

    def run(self, command, **environment):
        done = subprocess.run(command, env=dict(os.environ, **environment), capture_output=True, text=True,
                              timeout=120)
        return done.returncode, done.stderr.strip()


# ---- Errors at the start --------------------------------------------------------------------------

def check_lines(check):
    """Errors at the start: one line each, with the reason."""
    os.makedirs("older", exist_ok=True)
    with open("older/sitecustomize.py", "w", encoding="utf-8") as file:
        file.write("import ray\nray.__version__ = '2.1.0'\n")
    os.makedirs("empty", exist_ok=True)
    search = check.command("search", "digits.json", "--restart")
    elsewhere = [word.replace(ADDRESS, "10.99.0.1:1") for word in search]
    older = f"older:{os.environ['PYTHONPATH']}"
    cases = [
        ("no token is asked for", search, {"RAY_AUTH_MODE": ""}, "RAY_AUTH_MODE=token is not set"),
        ("no token", search, {"RAY_AUTH_TOKEN": "", "HOME": "/nowhere"}, "no authentication token was found"),
        ("a wrong token", search, {"RAY_AUTH_TOKEN": "0" * 64}, "refuses the token"),
        ("nobody there", elsewhere, {}, "cannot be reached: Connection refused"),
        ("another version of Ray", search, {"PYTHONPATH": older}, "Version mismatch"),
        ("no package", search, {"PYTHONPATH": "empty"}, "mscgym_ray"),
        ("no program on the nodes", search[:-2] + ["/nowhere/mscgym", "--restart"], {},
         "is not installed on this node"),
        ("a program on the nodes that is none", search[:-2] + ["/bin/true", "--restart"], {}, "the worker ended"),
    ]
    for what, command, environment, text in cases:
        start = time.monotonic()
        code, error = check.run(command, **environment)
        lines = [line for line in error.splitlines() if line.startswith("mscgym: ")]
        check.expect(f"{what} is told in a line", code != 0 and text in error and len(lines) == 1,
                     f", {time.monotonic() - start:.1f} s: {error}")


def check_gpus(check, cluster):
    """Workers open the GPU that Ray assigns. A software driver counts as one GPU, and a second UUID has
    no device. Workers that do not have the requested kind of GPU are refused with the name of theirs.
    """
    listed = json.loads(subprocess.run([check.mscgym, "devices", "--json"], capture_output=True, text=True,
                                       check=True).stdout)["vulkan"]
    if not listed or listed[0]["kind"] != "software":
        print("skipped: no software driver for Vulkan", flush=True)
        return
    cluster.wait(cluster.start_node(SPARE, gpus=[f"GPU-{listed[0]['uuid']}", "GPU-feedfeed"]))
    command = [word for word in check.command("search", "digits.json", "--restart") if word != "--quiet"]
    code, error = check.run([*command, "--numerics", "vulkan/1 a make that nobody has"])
    refused = [line for line in error.splitlines() if "is refused" in line and "no worker is left" not in line]
    is_told = (any('(numerics "vulkan/' in line and listed[0]["device"] in line for line in refused) and
               any("device 'vulkan:uuid=GPU-feedfeed': no device matches" in line for line in refused))
    check.expect("each worker opens the GPU that it was given", code == 1 and len(refused) == 2 and is_told,
                 "" if is_told else f": {error}")
    cluster.kill_node(SPARE)


# ---- Faults ---------------------------------------------------------------------------------------

class Faults:
    """Faults, one after another, while searches run; at least one node is healthy at any time."""

    def __init__(self, cluster, check, seed, log):
        self.cluster, self.check, self.chance, self.log = cluster, check, random.Random(seed), log
        self.counts, self.due, self.ill, self.starting = {}, [], {}, None
        self.missed = {}
        self.has_spare = False

    def total(self):
        return sum(self.counts.values())

    def count(self, kind, where=""):
        self.counts[kind] = self.counts.get(kind, 0) + 1
        print(f"{time.monotonic():.1f} {kind} {where}", file=self.log, flush=True)

    def later(self, seconds, what):
        self.due.append((time.monotonic() + seconds, what))

    def tend(self):
        """Undoes faults whose time is over; restarts nodes that are gone."""
        now = time.monotonic()
        for item in [item for item in self.due if item[0] <= now]:
            self.due.remove(item)
            item[1]()
        self.ill = {node: until for node, until in self.ill.items() if until > now}
        for node in NODES:
            if self.cluster.raylet(node) or node in self.ill:
                self.missed.pop(node, None)
            elif now - self.missed.setdefault(node, now) > 1 and not self.is_starting():
                self.starting = self.cluster.start_node(node)

    def is_starting(self):
        return self.starting is not None and self.starting.poll() is None

    def heal_all(self):
        for _, what in self.due:
            what()
        self.due, self.ill = [], {}

    def stop(self, pids, seconds):
        send(pids, signal.SIGSTOP)
        self.later(seconds, lambda: send(pids, signal.SIGCONT))

    def pick(self, node, is_wanted):
        found = [pid for pid in self.cluster.of_node(node) if is_wanted(command_line(pid))]
        return [self.chance.choice(found)] if found else []

    def is_worker(self, line):
        return line.startswith(self.check.mscgym + " worker") or " worker --quiet" in line and "-I -S -c" not in line

    def one(self, search):
        """Causes one fault. Returns true if the coordinator must be started again."""
        healthy = [node for node in NODES if node not in self.ill and self.cluster.raylet(node)]
        kinds = ["worker killed", "worker stopped", "actor killed", "actor stopped", "node killed", "node stopped",
                 "address cut", "node joins or leaves", "coordinator killed"]
        kind = self.chance.choice(kinds)
        if kind == "coordinator killed":
            return self.kill_coordinator(search)
        if kind == "node joins or leaves":
            self.spare()
            return False
        if len(healthy) < 2:
            return False
        node = self.chance.choice(healthy)
        seconds = self.chance.uniform(2, 14)
        is_victim = self.is_worker if "worker" in kind else (lambda line: line.startswith("ray::Node"))
        if kind.startswith("node"):
            victims = self.cluster.of_node(node)
        else:
            victims = [] if kind == "address cut" else self.pick(node, is_victim)
        if kind == "address cut":
            self.cluster.address("del", node)
            self.later(seconds, lambda: self.cluster.address("add", node))
        elif not victims:
            return False
        elif kind.endswith("stopped"):
            self.stop(victims, seconds)
        else:
            send(victims, signal.SIGKILL)
            seconds = 1
        self.ill[node] = time.monotonic() + seconds + 1
        self.count(kind, f"{node} for {seconds:.1f} s")
        return False

    def spare(self):
        if self.is_starting():
            return
        if self.has_spare:
            self.cluster.kill_node(SPARE)
            self.count("node leaves")
        else:
            self.starting = self.cluster.start_node(SPARE)
            self.count("node joins")
        self.has_spare = not self.has_spare

    def kill_coordinator(self, search):
        everybody = descendants(search.pid)
        bridge = [pid for pid in everybody if "mscgym_ray" in command_line(pid)]
        victims = self.chance.choice([[search.pid], everybody[1:2], bridge[:1]])
        if not victims or not bridge:
            return False
        send(victims, signal.SIGKILL)
        self.count("coordinator killed" if victims != bridge[:1] else "its bridge killed")
        return victims != everybody[1:2]  # the parent of a killed child starts another


class Watch:
    """Measures how long a record has not grown."""

    def __init__(self, record, log):
        self.record, self.n, self.since_s, self.longest_s, self.log = record, 0, time.monotonic(), 0.0, log

    def look(self):
        n, now = lines_of(self.record), time.monotonic()
        if n != self.n:
            if now - self.since_s > MOST_STILL_S / 3:
                print(f"{now:.1f} still for {now - self.since_s:.1f} s", file=self.log, flush=True)
            self.n, self.since_s = n, now
        self.longest_s = max(self.longest_s, now - self.since_s)


def search_once(check, faults, n_faults):
    """Searches the toy under faults to the end; returns the longest time without a new line."""
    for name in ("toy.jsonl", "toy.jsonl.result.json"):
        if os.path.exists(name):
            os.unlink(name)
    search = subprocess.Popen(check.command("search", "toy.json"), stdout=subprocess.DEVNULL, stderr=faults.log)
    n_suffered = 0
    watch, next_s, begin = Watch("toy.jsonl", faults.log), time.monotonic() + 5, time.monotonic()
    while True:
        time.sleep(0.2)
        watch.look()
        faults.tend()
        if search.poll() is not None:
            if search.returncode == 0:
                return watch.longest_s
            word = "resume" if lines_of("toy.jsonl") > 0 else "search"
            search = subprocess.Popen(check.command(word, f"toy.json{'l' if word == 'resume' else ''}"),
                                      stdout=subprocess.DEVNULL, stderr=faults.log)
        elif time.monotonic() > next_s and faults.total() < n_faults:
            next_s = time.monotonic() + faults.chance.uniform(0.5, 3)
            if watch.n > n_suffered:  # the search has recovered from the last fault
                n_suffered = watch.n
                if faults.one(search):
                    search.wait()
        if time.monotonic() - begin > 900 or watch.longest_s > 120:
            search.kill()
            sys.exit("it hangs")


def check_faults(check, cluster, options):
    TOY["gym"][0]["budget"] = {"trials": options.trials}
    with open("toy.json", "w", encoding="utf-8") as file:
        json.dump(TOY, file)
    check.run([check.mscgym, "search", "toy.json", "--quiet"])
    alone = canonical(check.mscgym, "toy.jsonl")
    n = 0
    with open(options.log, "w", encoding="utf-8") as log:
        faults = Faults(cluster, check, options.seed, log)
        while faults.total() < options.faults:
            before, start = faults.total(), time.monotonic()
            longest_s = search_once(check, faults, options.faults)
            n += 1
            is_same = canonical(check.mscgym, "toy.jsonl") == alone
            check.expect(f"search {n}, {faults.total() - before} faults, the same", is_same,
                         f", {time.monotonic() - start:.0f} s, still for {longest_s:.1f} s")
            check.expect(f"search {n} goes on", longest_s <= MOST_STILL_S)
    faults.heal_all()
    print(f"{faults.total()} faults: {faults.counts}", flush=True)
    left = [pid for pid in ray_cluster.processes() if command_line(pid).startswith(check.mscgym + " worker")]
    is_gone = ray_cluster.wait_until(lambda: not any(command_line(pid) for pid in left), 15)
    check.expect("no worker is left behind", is_gone)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("mscgym", type=os.path.abspath)
    parser.add_argument("digits", type=os.path.abspath)
    parser.add_argument("--faults", type=int, default=100)
    parser.add_argument("--trials", type=int, default=1200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--log", type=os.path.abspath, default=os.devnull, help="what the searches say")
    options = parser.parse_args()
    ray_cluster.enter_namespace()
    check = Check(options.mscgym)
    with tempfile.TemporaryDirectory(prefix="r", ignore_cleanup_errors=True) as folder, \
            tempfile.TemporaryDirectory(prefix="check_ray_") as work:
        cluster = Cluster(folder, NODES, hidden=work)
        try:
            shutil.copytree(options.digits, os.path.join(work, "digits"))
            os.chdir(os.path.join(work, "digits"))
            check_lines(check)
            check_gpus(check, cluster)
            check.run([check.mscgym, "search", "digits.json", "--quiet", "--restart"])
            alone = canonical(check.mscgym, "msc_workspace/digits.jsonl")
            code, error = check.run(check.command("search", "digits.json", "--restart"))
            check.expect("digits, the same", code == 0 and canonical(check.mscgym, "msc_workspace/digits.jsonl") == alone,
                         f" {error}")
            check_faults(check, cluster, options)
        finally:
            cluster.close()
    sys.exit(0 if check.is_good else 1)


if __name__ == "__main__":
    main()
