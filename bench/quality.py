#!/usr/bin/env python3
"""How good the results of agents are: agents x problems x budgets x seeds, as regret.

    quality.py MSCGYM [PROBLEM.problem.json...] [--agents A,B,...] [--groups WORD,...] [--seeds 10]
               [--problem-seeds 10] [--budgets 50,150,500] [--csv FILE] [--shares 0.3,...] [--table]
               [--luck OTHER.csv]

--seeds 10 means 0 to 9, and 100:110 means 100 to 109. Without files, the problems are those of
quality_problems.py and quality_tables.py, which are written to --folder. Your own file has
{"name", "group", "env", "optimum", "reference"}, where paths in the environment are relative to
the file.

Regret is (loss - optimum) / (reference - optimum), cut to 0 to 1: 0 is the optimum, 1 the median of
random feasible points. The loss is that of the best feasible trial among the first N evaluated ones.
Baselines count; repeats, and points that exact costs rule out, do not (--count lines: all lines count).

The table has a row for each group and budget, with medians over problems of medians over seeds.
Below it are, for each agent, the number of rows (problem x budget) in which it is within 0.01 of
the best one, the most by which it is behind, and the number of rows in which it is more than 0.05
behind. An agent is a name of AGENTS below, or NAME={"type": ...}. Peers are slow and run only if
--agents names them: a (1+1)-EA, and Optuna's samplers and pygmo's genetic algorithm with a Python
that has them (--optuna PYTHON).

Each search is added to the CSV when it is done, seed after seed. Searches in the CSV are not
repeated (another program needs another file), but shown. `--table` only shows them; `--rows` lists
each row in which `auto` is more than 0.01 behind. `--luck OTHER.csv`, with the same problems and
other seeds of the agents, shows how much seeds change a row: how far an agent's two medians are
apart, and how far agents with the seeds of OTHER are behind the best median of --csv, of any agent.
"""
import argparse
import concurrent.futures
import csv
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

import quality_problems
import quality_tables

HERE = os.path.dirname(os.path.abspath(__file__))
PEERS = os.path.join(HERE, "peers")
# With the package mscgym, which has Optuna's samplers as agents.
PYTHON = os.path.join(HERE, "..", "python")
OWN = ("auto", "evolutionary", "evolutionary_32", "grid_search", "greedy", "random")
AGENTS = {
    "auto": {"type": "auto"},
    "evolutionary": {"type": "evolutionary"},
    "evolutionary_32": {"type": "evolutionary", "population": 32},
    "grid_search": {"type": "grid_search"},
    "greedy": {"type": "grid_search", "mode": "greedy"},
    "random": {"type": "random"},
    "optuna_tpe": {"type": "process", "command": ["OPTUNA", "-m", "mscgym.sampler"],
                   "params": {"sampler": "tpe"}, "timeout": 600},
    "optuna_tpe_ordinal": {"type": "process", "command": ["OPTUNA", "-m", "mscgym.sampler"],
                           "params": {"sampler": "tpe", "ordinal": True}, "timeout": 600},
    "optuna_nsga2": {"type": "process", "command": ["OPTUNA", "-m", "mscgym.sampler"],
                     "params": {"sampler": "nsga2"}, "timeout": 600},
    "one_plus_one": {"type": "process",
                     "command": [sys.executable, f"{PEERS}/search_one_plus_one.py"]},
    "pygmo_sga": {"type": "process", "command": ["OPTUNA", f"{PEERS}/search_pygmo.py"], "timeout": 600},
}
# In memory, because syncing records after each round is not what this measures.
MEMORY = "/dev/shm" if os.path.isdir("/dev/shm") else None
COLUMNS = ("problem", "group", "budget", "agent", "seed", "loss", "regret", "trials", "seconds")


def is_counted(line, count):
    if count == "lines":
        return True
    is_measured = line["state"] in ("complete", "pruned", "failed") or \
        line["metrics"].get("distill_loss") is not None
    return is_measured and "repeat_of" not in line


def best_after(lines, objective, sign, budgets, count):
    """For each budget, the best feasible value among the first trials, or None."""
    found, best, n = {}, None, 0
    for line in lines:
        if not is_counted(line, count):
            continue
        n += 1
        value = line["metrics"].get(objective)
        if line["state"] == "complete" and (best is None or sign * value < sign * best):
            best = value
        found.update((b, best) for b in budgets if b == n)
    found.update((b, best) for b in budgets if b > n)  # the search ended earlier
    return found


def regret(problem, value):
    if value is None:
        return 1.0
    scale = problem["reference"] - problem["optimum"]
    return min(1.0, max(0.0, (value - problem["optimum"]) / scale))


def budgets_of(problem, options):
    return sorted(set(options.budgets + problem.get("more_budgets", [])))


def run(options, problem, name, seed, trials):
    """The header and trials of one search, and its seconds."""
    with tempfile.TemporaryDirectory(prefix="bench_quality_", dir=MEMORY) as folder:
        config = {"workspace": folder, "verbose": "error",
                  "gym": [{"record": "r.jsonl", "env": problem["env"], "agent": options.agents[name],
                           "budget": {"trials": trials}, "seed": seed,
                           "parallel": options.parallel}]}
        path = os.path.join(folder, "search.json")
        with open(path, "w") as file:
            json.dump(config, file)
        start = time.perf_counter()
        done = subprocess.run([options.mscgym, "search", path, "--quiet", "--threads", "1"],
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                              env=dict(os.environ, OMP_NUM_THREADS="1", PYTHONPATH=PYTHON))
        seconds = time.perf_counter() - start
        # Exit code 1 means that no trial meets every bound, which the record shows as well.
        if done.returncode not in (0, 1) or not os.path.exists(os.path.join(folder, "r.jsonl")):
            sys.exit(f"{name}, {problem['name']}, seed {seed}: ended with {done.returncode}: {done.stderr.strip()}")
        with open(os.path.join(folder, "r.jsonl")) as file:
            lines = [json.loads(line) for line in file]
    return lines[0], [line for line in lines if line["kind"] == "trial"], seconds


def run_counted(options, problem, name, seed):
    """Like `run`, with enough trials for the greatest budget. Lines that do not count need more."""
    most = max(budgets_of(problem, options))
    for more in (1.1, 2, 4):
        trials = round(more * most)
        header, lines, seconds = run(options, problem, name, seed, trials)
        if len(lines) < trials or sum(is_counted(line, options.count) for line in lines) >= most:
            break
    return header, lines, seconds


def search(options, problem, name, seed):
    """The rows of one search."""
    budgets = budgets_of(problem, options)
    header, lines, seconds = run_counted(options, problem, name, seed)
    objective = header["objectives"][0]
    found = best_after(lines, objective["metric"], -1 if objective["maximise"] else 1, budgets,
                       options.count)
    return [{"problem": problem["name"], "group": problem["group"], "budget": budget, "agent": name,
             "seed": seed, "loss": found[budget] and f"{found[budget]:.6g}",
             "regret": float(f"{regret(problem, found[budget]):.5g}"),
             "trials": len(lines), "seconds": round(seconds, 3)} for budget in budgets]


def run_all(options, problems, rows, search):
    """Calls `search` for every search whose rows are missing, seed after seed and agents in turn, so that all agents
    have progressed equally if it is stopped.
    """
    there = {(row["problem"], row["budget"], row["agent"], row["seed"]) for row in rows}
    work = [(problem, name, seed) for seed in options.seeds for problem in problems
            for name in options.agents
            if not all((problem["name"], budget, name, seed) in there
                       for budget in budgets_of(problem, options))]
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        jobs = [pool.submit(search, options, *item) for item in work]
        for n, job in enumerate(jobs):
            new = [row for row in job.result()
                   if (row["problem"], row["budget"], row["agent"], row["seed"]) not in there]
            append_csv(options.csv, new)
            rows += new
            if sys.stderr.isatty():
                print(f"\r{n + 1} of {len(jobs)} searches", end="", file=sys.stderr, flush=True)


def medians(rows):
    """{(problem, budget): {agent: median regret over seeds}}, and each problem's group."""
    found, groups = {}, {}
    for row in rows:
        key = row["problem"], row["budget"]
        groups[row["problem"]] = row["group"]
        found.setdefault(key, {}).setdefault(row["agent"], []).append(row["regret"])
    return {key: {name: statistics.median(values) for name, values in agents.items()}
            for key, agents in found.items()}, groups


def report(rows, names):
    cells, groups = medians(rows)
    table = {}
    for (problem, budget), agents in cells.items():
        for name, value in agents.items():
            table.setdefault((groups[problem], budget), {}).setdefault(name, []).append(value)
    print("| problems | trials | " + " | ".join(names) + " |")
    print("|---|---|" + "---|" * len(names))
    for (group, budget), agents in table.items():
        print(f"| {group} | {budget} | " + " | ".join(
            f"{statistics.median(agents[name]):.4f}" if name in agents else "-" for name in names) +
            " |")
    rated = [agents for agents in cells.values() if len(agents) == len(names)]
    print(f"\n| agent | within 0.01 of the best, of {len(rated)} rows | more than 0.05 behind | furthest | "
          "ms a search |\n|---|---|---|---|---|")
    for name in names if rated else []:
        behind = [agents[name] - min(agents.values()) for agents in rated]
        near = sum(b <= 0.01 for b in behind) / len(behind)
        seconds = [float(row["seconds"]) for row in rows if row["agent"] == name]
        print(f"| {name} | {100 * near:.0f} % | {sum(b > 0.05 for b in behind)} | {max(behind):.3f} | "
              f"{1000 * statistics.median(seconds):.0f} |")


def show_rows(rows):
    """Lists the rows in which `auto` is more than 0.01 behind."""
    print("\n| problem | trials | auto | best | of |\n|---|---|---|---|---|")
    for (problem, budget), agents in medians(rows)[0].items():
        best = min(agents, key=agents.get)
        if agents.get("auto", 0.0) - agents[best] > 0.01:
            print(f"| {problem} | {budget} | {agents['auto']:.3f} | {agents[best]:.3f} | {best} |")


def show_luck(rows, other):
    """Compares agents with one set of seeds and the same agents with another."""
    ours, theirs = medians(rows)[0], medians(other)[0]
    pairs = {}
    for key, agents in theirs.items():
        for name, value in agents.items():
            if name in ours.get(key, {}):
                pairs.setdefault(name, []).append((ours[key][name], value))
    print("\n| agent | rows | more than 0.05 apart by its seeds | furthest |\n|---|---|---|---|")
    for name, values in pairs.items():
        apart = [abs(a - b) for a, b in values]
        print(f"| {name} | {len(apart)} | {sum(a > 0.05 for a in apart)} | {max(apart):.3f} |")
    best = {key: min(agents[name] for name in theirs[key]) for key, agents in ours.items()
            if key in theirs and set(theirs[key]) <= set(agents)}
    print(f"\n| agent, with other seeds | more than 0.05 behind the best of {len(best)} rows | furthest |"
          "\n|---|---|---|")
    for name in pairs:
        behind = [theirs[key][name] - best[key] for key in best if name in theirs[key]]
        print(f"| {name} | {sum(b > 0.05 for b in behind)} | {max(behind):.3f} |")
    behind = [min(theirs[key].values()) - best[key] for key in best]
    print(f"| the best of them | {sum(b > 0.05 for b in behind)} | {max(behind):.3f} |")


def load_csv(path):
    if not path or not os.path.exists(path):
        return []
    with open(path, newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        row["budget"], row["seed"] = int(row["budget"]), int(row["seed"])
        row["regret"] = float(row["regret"])
    return rows


def append_csv(path, rows):
    if not path:
        return
    is_new = not os.path.exists(path)
    with open(path, "a", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        if is_new:
            writer.writeheader()
        writer.writerows(rows)


def read_problem(path):
    with open(path) as file:
        problem = json.load(file)
    env = dict(problem["env"], file=os.path.join(os.path.dirname(os.path.abspath(path)),
                                                 problem["env"]["file"]))
    return dict(problem, env=env)


def make_problems(options):
    if options.problems:
        return [read_problem(path) for path in options.problems]
    made = [p for p in quality_problems.make_all(options.problem_seeds, options.shares)
            if any(word in p.group for word in options.groups)]
    made.sort(key=lambda p: p.group)
    listed = [p for p in quality_tables.make_all(options.problem_seeds)
              if any(word in p.group for word in options.groups)]
    listed.sort(key=lambda p: p.group)
    return [read_problem(quality_problems.write(p, options.folder)) for p in made] + \
        [read_problem(quality_tables.write(p, options.folder)) for p in listed]


def choose_agents(options):
    listed = json.loads(subprocess.run([options.mscgym, "agents", "--json"], check=True,
                                       capture_output=True, text=True).stdout)
    known = {agent["name"] for agent in listed}
    chosen = {}
    for text in options.names or OWN:
        name, _, given = text.partition("=")
        agent = json.loads(given) if given else dict(AGENTS[name])
        if agent["type"] not in known:
            print(f"{name}: skipped: there is no agent {agent['type']}", file=sys.stderr)
            continue
        if agent.get("command", [""])[0] == "OPTUNA":
            if not options.optuna:
                print(f"{name}: skipped: --optuna names a Python that has it", file=sys.stderr)
                continue
            agent["command"] = [options.optuna, *agent["command"][1:]]
        chosen[name] = agent
    return chosen


def seeds_of(text):
    first, colon, end = text.partition(":")
    return range(int(first), int(end)) if colon else range(int(first))


def parse(default_seeds):
    words = [lambda text: text.split(","), lambda text: [int(w) for w in text.split(",")],
             lambda text: [float(w) for w in text.split(",")]]
    parser = argparse.ArgumentParser()
    parser.add_argument("mscgym", type=os.path.abspath)
    parser.add_argument("problems", nargs="*")
    parser.add_argument("--agents", dest="names", action="append")
    parser.add_argument("--groups", type=words[0], default=[""])
    parser.add_argument("--seeds", type=seeds_of, default=range(default_seeds))
    parser.add_argument("--problem-seeds", type=seeds_of, default=range(default_seeds))
    parser.add_argument("--budgets", type=words[1], default=[50, 150, 500])
    parser.add_argument("--shares", type=words[2], default=[])
    parser.add_argument("--count", choices=("evaluated", "lines"), default="evaluated")
    parser.add_argument("--parallel", type=int, default=8)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--optuna")
    parser.add_argument("--csv")
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--rows", action="store_true")
    parser.add_argument("--luck")
    parser.add_argument("--folder", default=os.path.expanduser("~/.cache/mscgym/quality"))
    options = parser.parse_intermixed_args()
    # A list of names, or one definition, which may contain commas.
    options.names = [name for text in options.names or []
                     for name in ([text] if "=" in text else text.split(","))]
    return options


def main(search=search, make_problems=make_problems, default_seeds=10):
    options = parse(default_seeds)
    rows = load_csv(options.csv)
    if not options.table:
        options.agents = choose_agents(options)
        run_all(options, make_problems(options), rows, search)
    report(rows, [name for name in AGENTS if any(row["agent"] == name for row in rows)])
    if options.rows:
        show_rows(rows)
    if options.luck:
        show_luck(rows, load_csv(options.luck))


if __name__ == "__main__":
    main()
