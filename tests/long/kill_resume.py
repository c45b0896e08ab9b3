#!/usr/bin/env python3
"""Kills searches at random moments, and checks that nothing is lost and results are the same.

    kill_resume.py MSCGYM [--kills 50] [--trials 300] [--seed 0] [--search NAME …] [--config FILE]
                   [--library hill_climb_agent.so] [--env weight_bits.so] [--optuna PYTHON]

The digits example is searched without interruption. It is then searched again in these ways:
- killed (SIGKILL, parent and worker together) at random lengths of the record and restarted,
  `kills` times in all, at most twice in one round of trials;
- with other thread counts and cache budgets, with three local workers, with the last line cut at every byte, and with
  instructions limited to AVX2.

Each final record must equal the first one except for `measured`, what the agent says that it has learnt must be the
same, and lines that existed before a
kill must remain byte by byte. The same, without cut lines and AVX2 and with a third of the kills,
for every registered agent. Agents that stop trials at bounds, and races, use small batches; their
records must contain stopped trials, and every line must verify. The agent `auto` also searches tables: losses that
saturate, pairs of choices with features, points that fail (one or several objectives).

Searches that compute more than trials are killed at random times, so that kills also hit their
preparation and their final steps: choices that replace weights followed by the stage `distill`, all
sites of onnxruntime, dynamic activations, channels, channels and single weights, channels and bits
in one search, four searches in turn, many tasks (which needs numpy and onnx). All their files must
equal the first ones byte by byte, and verify; also with 1, 2 and 4 threads and with the least
memory.

The same, without threads and memory, for external agents and environments: programs (also in
races), those of the Python package, Optuna's samplers if --optuna names a Python that has it, an
agent and an environment in shared libraries if --library and --env name them, and an environment
that is a program.

--search selects searches by name; --config tests the first search of your own configuration in the
same way. Prints a line for each check; exits with 1 if one fails.
"""
import argparse
import atexit
import hashlib
import itertools
import json
import math
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from search_records import canonical

HERE = os.path.dirname(os.path.abspath(__file__))
EXAMPLE = os.path.join(HERE, "..", "..", "examples", "digits")
PARALLEL = 4
RACED = {"race": True, "parallel": 8}
AGENTS = {  # changes to the example: agent, batch, keys of the search
    "auto": ({"type": "auto"}, 64, {}),
    "auto with two objectives": (
        {"type": "auto"}, 64, {"env": {"choices": [{"bits": bits} for bits in (8, 6, 4)],
                                       "objectives": ["distill_loss", "size_bytes"]}}),
    "auto with three objectives": (
        {"type": "auto"}, 64, {"env": {"choices": [{"bits": bits} for bits in (8, 6, 4)],
                                       "objectives": ["distill_loss", "size_bytes", "bit_ops"]}}),
    "evolutionary with two objectives": (
        {"type": "evolutionary"}, 64, {"env": {"choices": [{"bits": bits} for bits in (8, 6, 4)],
                                               "objectives": ["distill_loss", "size_bytes"]}}),
    "evolutionary": ({"type": "evolutionary"}, 64, {}),
    "per_task": ({"type": "grid_search"}, 64, {}),
    "full": ({"type": "grid_search", "mode": "full"}, 64, {}),
    "random": ({"type": "random"}, 64, {}),
    "sensitivity": ({"type": "sensitivity"}, 64, {}),
    "bounded evolutionary": ({"type": "evolutionary", "population": 8, "bounded": True}, 16, {}),
    "bounded greedy": ({"type": "grid_search", "mode": "greedy"}, 16, {}),
    "raced": ({"type": "auto"}, 16, RACED),
    "raced evolutionary": ({"type": "evolutionary"}, 16, RACED),
    "raced per_task": ({"type": "grid_search"}, 16, RACED),
}
STOPS = ("bounded", "raced")  # first words of the names of agents that stop trials
REPLACED = [{"bits": bits, "rounding": "descent", "correct": "affine"} for bits in (8, 6, 4)]
SECTIONS = ("prune", "joint", "quantize")  # in the order in which they run
DENSITIES = [{"density": 1}, {"density": 0.75}, {"density": 0.5, "criterion": "loss"},
             {"density": 0.5}, {"density": 0.25}]
AT_ANY_TIME = {  # changes to the example: target, environment, keys of the search
    "replaced weights": ("generic", {"choices": REPLACED}, {"distill": True}),
    "dynamic": ("onnxruntime", {"choices": [{"bits": 8, "dynamic": True}, {"bits": 8}, {"bits": 4}, {"float": True}],
                                "bounds": {"size_ratio": {"max": 0.3}}}, {}),
    "all sites": ("onnxruntime", {"choices": [{"bits": 8}, {"bits": 4}, {"float": True}],
                                  "sites": "all", "bounds": {"size_ratio": {"max": 0.3}}}, {}),
}


def example():
    """The example's configuration with absolute paths."""
    return absolute(os.path.join(EXAMPLE, "digits.json"))


def absolute(path):
    with open(path) as file:
        config = json.load(file)
    folder = os.path.dirname(os.path.abspath(path))
    dataset = config["dataset"]
    for place in (config, dataset, dataset.get("validation")):
        for key in ("model", "inputs", "labels"):
            if isinstance(place, dict) and isinstance(place.get(key), str):
                place[key] = os.path.join(folder, place[key])
    return config


def with_agent(agent, batch, changes, trials):
    config = example()
    entry = config["quantize"]["gym"][0]
    entry["budget"] = {"trials": trials}
    entry["parallel"] = PARALLEL
    entry["agent"] = agent
    entry.update(changes)
    config["dataset"]["batch"] = batch
    return config


def searches_of(config):
    found = [entry for section in SECTIONS if section in config for entry in config[section]["gym"]]
    return found + config.get("gym", [])


def first_search(config):
    return searches_of(config)[0]


def entry_of(record, env, trials):
    return {"record": record, "env": env, "agent": {"type": "evolutionary"},
            "budget": {"trials": trials}, "parallel": PARALLEL}


def of_channels(trials):
    config = absolute(os.path.join(EXAMPLE, "prune.json"))
    first_search(config).update(budget={"trials": trials}, parallel=PARALLEL, env={
        "choices": DENSITIES, "round_to": 1, "bounds": {"macs_ratio": {"max": 0.4}}})
    return config


def of_weights(trials):
    config = of_channels(trials)
    first_search(config)["env"] = {
        "choices": [*DENSITIES[:2], {"sparsity": 0}, {"pattern": "2:4"},
                    {"sparsity": 0.6, "criterion": "energy"}, {"sparsity": 0.8}],
        "bounds": {"size_ratio": {"max": 0.4}}}
    return config


def of_both(trials):
    config = absolute(os.path.join(EXAMPLE, "prune.json"))
    del config["prune"]
    config["joint"] = {"gym": [entry_of("joint.jsonl", {
        "prune": {"choices": DENSITIES, "round_to": 1}, "choices": [{"bits": 8}, *REPLACED],
        "bounds": {"bit_ops_ratio": {"max": 0.02}}}, trials)]}
    return config


def in_turn(trials):
    config = absolute(os.path.join(EXAMPLE, "prune.json"))
    config["prune"]["gym"] = [
        entry_of(f"prune_{i}.jsonl", {"choices": DENSITIES, "bounds": {"macs_ratio": {"max": most}}},
                 trials // 4) for i, most in enumerate((0.7, 0.4))]
    config["quantize"] = {"target": "generic", "gym": [
        entry_of(f"quantize_{i}.jsonl", {"choices": choices, "bounds": {"bit_ops_ratio": {"max": 0.02}}},
                 trials // 4) for i, choices in enumerate(([{"bits": 8}, {"bits": 4}], REPLACED))]}
    return config


def of_many_tasks(trials):
    """A chain of convolutions. Its space is so large that losses of single choices are measured first."""
    import numpy
    sys.path.append(os.path.join(HERE, "..", "..", "bench"))
    from networks import chain
    folder = tempfile.mkdtemp(prefix="kill_resume_chain_")
    atexit.register(shutil.rmtree, folder)
    model, inputs = (os.path.join(folder, name) for name in ("chain.onnx", "inputs.npy"))
    shape = chain(model, length=30, channels=4, size=8)
    numpy.save(inputs, numpy.random.default_rng(0).normal(size=(16, *shape)).astype(numpy.float32))
    env = {"choices": [{"bits": 8}, {"bits": 6}, {"bits": 4}], "bounds": {"size_ratio": {"max": 0.3}}}
    return {"model": model, "dataset": {"inputs": inputs, "batch": 4}, "quantize": {"gym": [
        dict(entry_of("chain.jsonl", env, trials), agent={"type": "auto"})]}}


OF_EXAMPLE = {"channels": of_channels, "weights": of_weights, "joint": of_both, "in turn": in_turn,
              "many tasks": of_many_tasks}


# Searches without a network: losses from tables of all points, with features and without, some of
# which cannot be measured. Keys: the kind of loss, and the objectives beside it.
N_TASKS, N_CHOICES = 6, 3
OF_TABLE = {
    "auto, saturating slowly": ("log", ()),
    "auto, saturating": ("exp", ()),
    "auto, pairs with features": ("pairs", ()),
    "auto, base fails": ("fails", ()),
    "auto, front with failures": ("fails", ("size_bytes",)),
    "auto, front of three with failures": ("fails", ("size_bytes", "time")),
}


def loss_of(kind, generator):
    """The loss of a point, the number of steps from the most expensive choice of each task; None: it fails."""
    weights = [generator.uniform(0.5, 2) for _ in range(N_TASKS)]
    together = generator.uniform(-1, 1)

    def of(point):
        total = sum(w * 3.0 ** c / 3 for w, c in zip(weights, point) if c > 0)
        return {"log": math.log1p(20 * total), "exp": -math.expm1(-total),
                "pairs": total + together * point[1] * point[2],
                "fails": None if point[0] == 0 or point[3] + point[4] == 4 else total}[kind]
    return of


def of_table(name, trials):
    kind, more = OF_TABLE[name]
    generator = random.Random(7)
    loss, sizes = loss_of(kind, generator), [generator.uniform(1, 4) for _ in range(N_TASKS)]
    labels = [str(N_CHOICES - c) for c in range(N_CHOICES)]
    table = {"schema": "mscgym.table.1", "rows": "table.csv", "choice_features": ["bits"],
             "tasks": [{"name": f"task_{t}", "choices": labels,
                        "choice_features": [[int(label)] for label in labels]} for t in range(N_TASKS)],
             "metrics": [{"name": "distill_loss"}],
             "costs": [{"name": "size_bytes", "alone": [[s * (N_CHOICES - c) for c in range(N_CHOICES)] for s in sizes]},
                       {"name": "time", "alone": [[9 - s * c for c in range(N_CHOICES)] for s in sizes]}]}
    if kind != "pairs":
        del table["choice_features"]
        for task in table["tasks"]:
            del task["choice_features"]
    rows = [",".join([*(f"task_{t}" for t in range(N_TASKS)), "distill_loss"])]
    for point in itertools.product(range(N_CHOICES), repeat=N_TASKS):
        value = loss(point)
        rows.append(",".join([*(labels[c] for c in point), "failed" if value is None else repr(value)]))
    env = {"type": "table", "file": "table.json"}
    if more:
        env["objectives"] = ["distill_loss", *more]
    entry = dict(entry_of("table.jsonl", env, trials), agent={"type": "auto"})
    return {"gym": [entry]}, {"table.json": json.dumps(table), "table.csv": "\n".join(rows) + "\n"}


# Agents and environments that are no part of the product: programs and shared libraries.
PYTHON = os.path.join(HERE, "..", "..", "python")
EXAMPLES = os.path.join(HERE, "..", "..", "examples")
OTHERS = {  # the option that each one needs
    "agent program": None, "raced agent program": None, "agent in Python": None, "Optuna's sampler": "optuna",
    "agent library": "library", "environment program": None, "environment library": "env",
}


def program(python, *arguments):
    return {"type": "process", "command": [python, *arguments], "timeout": 600}


def script(*path):
    return program(sys.executable, os.path.abspath(os.path.join(*path)))


def of_others(name, options):
    if name == "environment program":
        env = dict(script(EXAMPLES, "environments", "filter_bits.py"), bounds={"area": {"max": 1500}})
        return {"gym": [entry_of("filter_bits.jsonl", env, options.trials)]}
    if name == "environment library":
        env = {"type": os.path.abspath(options.env), "bounds": {"size_bytes": {"max": 9000}}}
        return dict(example(), quantize={"gym": [entry_of("weight_bits.jsonl", env, options.trials)]})
    if name == "agent in Python":
        agent = script(PYTHON, "examples", "hill_climb.py")
    elif name == "Optuna's sampler":
        agent = program(options.optuna, "-m", "mscgym.sampler")
    elif name == "agent library":
        agent = {"type": "library", "path": os.path.abspath(options.library)}
    else:
        agent = script(EXAMPLES, "agents", "random_agent.py")
    if name == "raced agent program":
        return with_agent(agent, 16, RACED, options.trials)
    return with_agent(agent, 64, {}, options.trials)


def with_environment(target, env, changes, trials):
    config = example()
    config["quantize"]["target"] = target
    entry = config["quantize"]["gym"][0]
    entry.update(changes, budget={"trials": trials}, parallel=PARALLEL)
    entry["env"].update(env)
    return config


class Searches:
    def __init__(self, mscgym, folder, config, files=None):
        self.mscgym, self.folder, self.count = mscgym, folder, 0
        self.config, self.files = config, files or {}
        self.parallel = first_search(config).get("parallel", 32)
        self.records = [entry["record"] for entry in searches_of(config)]

    def new(self):
        """Writes a configuration with a new workspace; returns its path and that of its record."""
        self.count += 1
        workspace = os.path.join(self.folder, str(self.count))
        os.makedirs(workspace)
        for name, text in self.files.items():
            with open(os.path.join(workspace, name), "w") as file:
                file.write(text)
        path = os.path.join(workspace, "search.json")
        with open(path, "w") as file:
            json.dump(dict(self.config, workspace=workspace), file)
        return path, os.path.join(workspace, first_search(self.config)["record"])

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
        """The canonical record, and what the agent has learnt, if the search has ended."""
        results, learnt = record + ".result.json", ""
        if os.path.exists(results):
            with open(results) as file:
                learnt = json.dumps(json.load(file).get("learnt"))
        return canonical(self.mscgym, record) + learnt.encode()


def lines_of(record):
    with open(record, "rb") as file:
        return file.read()


def kill_all(process):
    """Kills the parent. The kernel then kills the worker, whose end closes the pipe."""
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
            this_round = lines_of(record).count(b"\n") // searches.parallel
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
    """The least memory that the dry run names, in MB, and a quarter; hardly anything is cached with it. The figure
    includes the program's own pages, of which more or fewer are in memory from run to run.
    """
    config, _ = searches.new()
    text = subprocess.run([searches.mscgym, "search", config, "--dry-run"], check=True,
                          capture_output=True, text=True).stdout
    return f"{math.ceil(1.25 * int(re.search(r'at least ([0-9]+) MB', text)[1]))}M"


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
    """Checks that some trials were stopped and that all lines verify."""
    config, record = searches.new()
    searches.finish(config)
    if b'"state":"pruned"' not in lines_of(record):
        return "no trial was stopped"
    process = subprocess.run([searches.mscgym, "verify", record], capture_output=True, text=True)
    return None if process.returncode == 0 else process.stdout + process.stderr


def run_checks(searches, options, name):
    config, record = searches.new()
    searches.finish(config)
    expected = searches.canonical(record)
    kills = options.kills if name == "auto" else max(1, options.kills // 3)
    avx2 = {"ONEDNN_MAX_CPU_ISA": "AVX2"}
    yield f"{kills} kills", check_kills(searches, expected, kills, random.Random(options.seed))
    for threads in "1", "2", "4":
        yield f"{threads} threads", check_variant(searches, expected, ["--threads", threads])
    yield "3 local workers", check_variant(searches, expected, ["--cluster", "local:3"])
    for memory in least_memory(searches), "1G":
        yield f"{memory} of memory", check_variant(searches, expected, ["--memory", memory])
    if name.startswith(STOPS):
        yield "stopped trials", check_stopped(searches)
    if name != "auto":
        return
    yield "last line torn at every byte", check_torn(searches, expected)
    config, record = searches.new()
    searches.finish(config, environment=avx2)
    limited = searches.canonical(record)
    yield "AVX2, again", check_variant(searches, limited, ["--threads", "1"], avx2)


# ---- At any time ------------------------------------------------------------------------------

def everything(searches, record):
    """All files that searches have written: canonical records, and hashes of other files, by name."""
    folder = os.path.dirname(record)
    found = {name: searches.canonical(os.path.join(folder, name)) for name in searches.records}
    # Results and logs contain times, so they are left out.
    left_out = {"search.json", *found, *(name + ".result.json" for name in found)}
    for file in sorted(os.listdir(folder)):
        if file.startswith("MSC_LOG") or file in left_out:
            continue
        with open(os.path.join(folder, file), "rb") as content:
            found[file] = hashlib.sha256(content.read()).hexdigest()
    return found


def difference(expected, found):
    names = [name for name in sorted(set(expected) | set(found))
             if expected.get(name) != found.get(name)]
    return f"{', '.join(names)}: not the same" if names else None


def phase(searches, record, total):
    """The phase of a search: "before" its first line, the number of lines, or "after" its last line."""
    paths = [os.path.join(os.path.dirname(record), name) for name in searches.records]
    lines = sum(lines_of(path).count(b"\n") for path in paths if os.path.exists(path))
    return "before" if lines == 0 else "after" if lines >= total else lines


def check_kills_at_any_time(searches, expected, seconds, kills, generator):
    """Kills at times spread evenly over a search's duration. Some searches must end, to be compared."""
    total = sum(expected[name].count(b"\n") for name in searches.records)
    met, done = {}, 0
    while done < kills:
        config, record = searches.new()
        kills_in_round, in_this, at = {}, 0, 0
        while done < kills and in_this < 4:
            begin, at = time.monotonic(), generator.uniform(0, seconds)
            process = searches.start(config)
            while process.poll() is None:
                now = phase(searches, record, total)
                this = now if isinstance(now, str) else now // searches.parallel
                # A trial in flight at three kills counts as failed.
                may = isinstance(this, str) or kills_in_round.get(this, 0) < 2
                if time.monotonic() - begin >= at and may:
                    break
                time.sleep(0.002)
            if process.poll() is not None:
                process.communicate()
                break
            kill_all(process)
            kills_in_round[this] = kills_in_round.get(this, 0) + 1
            name = this if isinstance(this, str) else "trials"
            met[name] = met.get(name, 0) + 1
            done += 1
            in_this += 1
        searches.finish(config)
        problem = difference(expected, everything(searches, record))
        if problem:
            return f"after {done} kills, {problem}"
        shutil.rmtree(os.path.dirname(record))
    print("  killed: " + ", ".join(f"{met[k]} {k}" for k in sorted(met)), flush=True)
    return None


def check_everything(searches, expected, options):
    config, record = searches.new()
    searches.finish(config, options)
    return difference(expected, everything(searches, record))


def check_verified(searches, record, options=()):
    for name in searches.records:
        path = os.path.join(os.path.dirname(record), name)
        process = subprocess.run([searches.mscgym, "verify", path, *options], capture_output=True, text=True)
        if process.returncode != 0:
            return process.stdout + process.stderr
    return None


def run_checks_at_any_time(searches, options):
    config, record = searches.new()
    begin = time.monotonic()
    searches.finish(config)
    seconds = time.monotonic() - begin
    expected = everything(searches, record)
    yield "verified", check_verified(searches, record)
    for threads in "1", "2", "4":
        yield f"{threads} threads", check_everything(searches, expected, ["--threads", threads])
    memory = least_memory(searches)
    yield f"{memory} of memory", check_everything(searches, expected, ["--memory", memory])
    yield f"{options.kills} kills", check_kills_at_any_time(
        searches, expected, seconds, options.kills, random.Random(options.seed))


def run_checks_of_tables(searches, options):
    config, record = searches.new()
    searches.finish(config)
    expected = searches.canonical(record)
    kills = max(1, options.kills // 3)
    yield f"{kills} kills", check_kills(searches, expected, kills, random.Random(options.seed))
    for threads in "1", "2":
        yield f"{threads} threads", check_variant(searches, expected, ["--threads", threads])
    yield "3 local workers", check_variant(searches, expected, ["--cluster", "local:3"])


def run_checks_of_others(searches, options):
    config, record = searches.new()
    searches.finish(config)
    expected = searches.canonical(record)
    yield "verified", check_verified(searches, record, ["--allow-plugins"])
    yield f"{options.kills} kills", check_kills(
        searches, expected, options.kills, random.Random(options.seed))


def checks_of(name, options, folder):
    mscgym = os.path.abspath(options.mscgym)
    if name in OTHERS:
        if OTHERS[name] and not getattr(options, OTHERS[name]):
            print(f"skipped: {name}: --{OTHERS[name]} does not name it", flush=True)
            return []
        return run_checks_of_others(Searches(mscgym, folder, of_others(name, options)), options)
    if name in AGENTS:
        searches = Searches(mscgym, folder, with_agent(*AGENTS[name], options.trials))
        return run_checks(searches, options, name)
    if name in OF_TABLE:
        return run_checks_of_tables(Searches(mscgym, folder, *of_table(name, options.trials)), options)
    config = (absolute(name) if name == options.config
              else OF_EXAMPLE[name](options.trials) if name in OF_EXAMPLE
              else with_environment(*AT_ANY_TIME[name], options.trials))
    return run_checks_at_any_time(Searches(mscgym, folder, config), options)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("mscgym")
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--trials", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--search", nargs="+", choices=[*AGENTS, *OF_TABLE, *AT_ANY_TIME, *OF_EXAMPLE, *OTHERS])
    parser.add_argument("--config")
    parser.add_argument("--library", help="an agent, for the search of that name")
    parser.add_argument("--env", help="an environment, likewise")
    parser.add_argument("--optuna", help="a Python that has Optuna")
    options = parser.parse_args()
    names = [options.config] if options.config else options.search or [
        *AGENTS, *OF_TABLE, *AT_ANY_TIME, *OF_EXAMPLE, *OTHERS]
    os.environ.update(PYTHONPATH=os.path.abspath(PYTHON), PYTHONDONTWRITEBYTECODE="1")
    failed = False
    for name in names:
        folder = tempfile.mkdtemp(prefix="kill_resume_")
        for check, problem in checks_of(name, options, folder):
            failed = failed or problem is not None
            print(f"{name}, {check}: {problem or 'equal'}", flush=True)
        shutil.rmtree(folder)
    sys.exit(int(failed))


if __name__ == "__main__":
    main()
