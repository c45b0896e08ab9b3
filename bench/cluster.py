#!/usr/bin/env python3
"""Trials per second of a search with workers, compared with one process with as many threads.

    cluster.py MSCGYM [--cluster local:2 | ray] [--repeats 5] [--trials 600] [--parallel 256] [--json FILE]
               [--memory 4G] [--clock process] [MODEL ...]
    cluster.py MSCGYM --coordinator [--cluster ray]

Both run the same trials alternately, and their records must be the same. Times are those of the
records, from the last baseline to the last trial, so the start of workers does not count. `ray`
starts its own cluster of two nodes with one processor each (tests/long/ray_cluster.py). --clock
process is for machines that others use: it measures trials per second of processor time of all
processes, from the end of the first round on, so waiting does not count.

--coordinator measures the processor time per trial of a single process, and of a coordinator and the
program that reaches Ray, with trials that cost nothing (toy, 48 tasks). Agent and record are included.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

import common
import ray_cluster
from search_records import canonical, trials_of

CHOICES = [{"bits": b} for b in (8, 6, 4)]
N_BASELINES = len(CHOICES)


# ---- The coordinator --------------------------------------------------------------------------------

def children(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="utf-8") as file:
            return [int(word) for word in file.read().split()]
    except OSError:
        return []


def cpu_s(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    except OSError:
        return 0.0


def spent(command):
    """Processor seconds of the search process, and of the first program that it started."""
    own = other = 0.0
    going = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    while going.poll() is None:
        for child in children(going.pid)[:1]:
            own = max(own, cpu_s(child))
            for bridge in children(child)[:1]:
                other = max(other, cpu_s(bridge))
        time.sleep(0.01)
    if going.returncode != 0:
        sys.exit(f"{' '.join(command)}: exit {going.returncode}")
    return own, other


def toy(folder, agent, parallel, trials):
    path = os.path.join(folder, "toy.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"workspace": folder, "verbose": "error", "gym": [{
            "record": "toy.jsonl", "agent": agent, "seed": 3, "parallel": parallel,
            "env": {"type": "toy", "tasks": 48, "choices": 4, "seed": 1, "interaction": 0.5},
            "budget": {"trials": trials}}]}, file)
    return path


def coordinator(options, folder, where):
    """Prints the processor time of additional trials, so that the start does not count."""
    clusters = [[], *([["--cluster", f"local:{n}"] for n in (1, 2, 4)]), *([where] if where else [])]
    few, many = 2000, 22000
    print("| agent | parallel | by | coordinator | what it started first |\n|---|---|---|---|---|")
    for agent in ({"type": "random"}, {"type": "evolutionary", "population": 32}):
        for more in clusters:
            takes = []
            for _ in range(options.repeats):
                base, whole = [spent([options.mscgym, "search", toy(folder, agent, options.parallel, n),
                                      "--quiet", "--restart", *more]) for n in (few, many)]
                takes.append([(w - b) / (many - few) * 1e6 for b, w in zip(base, whole)])
            own, other = [[take[k] for take in takes] for k in (0, 1)]
            name = more[1] if more else "one process"
            print(f"| {agent['type']} | {options.parallel} | {name} | {statistics.median(own):.1f} us "
                  f"({min(own):.1f} to {max(own):.1f}) | "
                  + (f"{statistics.median(other):.1f} us |" if name.startswith("ray") else "- |"), flush=True)


# ---- The rate ---------------------------------------------------------------------------------------

def of_search(going, cluster):
    """Ids of the search, of the processes that it started, and of its workers on nodes."""
    found = ray_cluster.descendants(going.pid)
    for node in (2, 3) if cluster else ():
        found += [pid for pid in cluster.of_node(node)
                  if (line := ray_cluster.command_line(pid)).startswith("ray::Node") or " worker --quiet" in line]
    return found


def spent_on_trials(search, n_wanted, more, cluster):
    """Trials per second of processor time, from the end of the first round to the last trial."""
    if os.path.exists(search.record):
        os.unlink(search.record)
    going = subprocess.Popen(search.command("--restart", *more), stdout=subprocess.DEVNULL)
    known = []
    while going.poll() is None:
        n = trials_of(search.record)
        if n > N_BASELINES and (not known or n > known[-1][0]):
            known.append((n, sum(map(cpu_s, of_search(going, cluster)))))
        if known and known[-1][0] >= n_wanted + N_BASELINES:
            going.terminate()
        time.sleep(0.02)
    (first, first_s), (last, last_s) = known[0], known[-1]
    return (last - first) / (last_s - first_s)


def measure(options, name, folder, where, cluster):
    """The rates with and without workers, and whether their records were the same."""
    values = common.inputs(name, options.images)
    agent = {"type": "evolutionary", "population": 32, "mutation": 0.05}
    rates, records = {"one process": [], options.cluster: []}, {}
    for _ in range(options.repeats):
        one = ["--threads", str(options.threads), "--memory", options.memory]
        for kind, more in (("one process", one), (options.cluster, where or [*one, "--cluster", options.cluster])):
            place = os.path.join(folder, name, kind.replace(":", "_").replace(" ", "_"))
            os.makedirs(place, exist_ok=True)
            search = common.Search(options.mscgym, place, common.model_path(name), values, CHOICES,
                                   agent, options.trials, None, options.batch, options.parallel)
            if options.clock == "process":
                own = cluster if kind != "one process" else None
                rates[kind].append(spent_on_trials(search, options.trials, more, own))
            else:
                rates[kind].append(search.run(*more).rate)
            records.setdefault(kind, canonical(options.mscgym, search.record))
        print(f"{name}: " + ", ".join(f"{k} {v[-1]:.1f}/s" for k, v in rates.items()),
              file=sys.stderr, flush=True)
    if len(set(records.values())) != 1:
        sys.exit(f"{name}: the records differ")
    return rates


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("mscgym", type=os.path.abspath)
    parser.add_argument("models", nargs="*")
    parser.add_argument("--cluster", default="local:2")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--trials", type=int, default=600)
    parser.add_argument("--parallel", type=int, default=256)
    parser.add_argument("--images", type=int, default=16)
    parser.add_argument("--batch", type=int)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--memory", default="4G")
    parser.add_argument("--coordinator", action="store_true")
    parser.add_argument("--clock", choices=("wall", "process"), default="wall")
    parser.add_argument("--json")
    options = parser.parse_intermixed_args()
    if options.cluster == "ray":
        ray_cluster.enter_namespace()
    print(f"{common.machine()}; two processes do {common.second_core():.2f} times the work of one")
    with tempfile.TemporaryDirectory(prefix="bench_cluster_") as folder, \
            tempfile.TemporaryDirectory(prefix="r", ignore_cleanup_errors=True) as sessions:
        cluster = ray_cluster.Cluster(sessions, (2, 3)) if options.cluster == "ray" else None
        # Each worker has its own node, and a share of the memory.
        where = ["--cluster", f"ray:{ray_cluster.ADDRESS}:2", "--worker-program", options.mscgym] if cluster else None
        try:
            if options.coordinator:
                coordinator(options, folder, where)
            else:
                share = ["--threads", "1", "--memory", halved(options.memory)]
                rates_of_all(options, folder, where and [*where, *share], cluster)
        finally:
            if cluster:
                cluster.close()


def halved(memory):
    """Half of an amount: "2G" for "4G", "512M" for "1G"."""
    n, unit = int(memory[:-1]), memory[-1]
    return f"{n // 2}{unit}" if n % 2 == 0 else f"{n * 512}{'KMG'['KMG'.index(unit) - 1]}"


def rates_of_all(options, folder, where, cluster):
    print(f"{common.version(options.mscgym)}; {options.trials} trials in rounds of "
          f"{options.parallel}, {options.threads} threads, {options.memory}\n")
    print("| network | one process | " + options.cluster + " | ratio, median and range |\n"
          "|---|---|---|---|")
    rows = []
    for name in options.models or ["mlsd-tiny"]:
        rates = measure(options, name, folder, where, cluster)
        one, many = rates["one process"], rates[options.cluster]
        ratios = [m / o for m, o in zip(many, one)]
        print(f"| {name} | {statistics.median(one):.1f}/s | {statistics.median(many):.1f}/s | "
              f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f}) |", flush=True)
        rows.append(common.row("cluster", name, options.cluster, "one process", list(zip(many, one))))
    common.save_rows(options.json, rows)


if __name__ == "__main__":
    main()
