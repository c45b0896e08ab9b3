#!/usr/bin/env python3
"""Checks the contract of every registered agent and environment, and of those in the examples.

    check_plugins.py MSCGYM [--agent LIBRARY …] [--env LIBRARY …]

Agents run on the environment toy: registered ones by name, and the libraries and programs of the
examples. Environments that need a model use the configurations of examples/digits. A registered
environment for which this script has no configuration is an error, so that new ones are added here.
Prints a line for each; exits with 1 if a rule is broken.
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..")
EXAMPLES = os.path.join(ROOT, "examples")
PYTHON = os.path.join(ROOT, "python")
TABLE = {"schema": "mscgym.table.1",
         "tasks": [{"name": name, "choices": ["8", "4"]} for name in ("a", "b", "c")],
         "metrics": [{"name": "distill_loss", "alone": [[0, 1], [0, 2], [0, 4]],
                      "pairs": [{"tasks": [0, 1], "values": [[0, 0], [0, -0.5]]}]}],
         "costs": [{"name": "size", "alone": [[8, 4]] * 3}]}


def write(path, value):
    with open(path, "w") as file:
        json.dump(value, file)
    return path


def configs(folder, libraries):
    """Configurations to check environments with, by name: the registered ones and the examples."""
    shutil.copytree(os.path.join(EXAMPLES, "digits"), os.path.join(folder, "digits"),
                    ignore=shutil.ignore_patterns("msc_workspace"))
    shutil.copytree(os.path.join(EXAMPLES, "environments"), os.path.join(folder, "environments"))
    shutil.copytree(os.path.join(PYTHON, "examples"), os.path.join(folder, "python"),
                    ignore=shutil.ignore_patterns("__pycache__"))
    write(os.path.join(folder, "table.file"), TABLE)
    table = write(os.path.join(folder, "table.json"), {
        "workspace": ".", "gym": [{"env": {"type": "table", "file": "table.file"}, "agent": {"type": "random"}}]})
    found = {"toy": "toy", "table": table, "quantize": "digits/digits.json", "prune": "digits/prune.json",
             "joint": "digits/joint.json",
             "process": f"{sys.executable} -S environments/filter_bits.py",
             "filter_bits.json": "environments/filter_bits.json"}
    for library in libraries:
        name = os.path.basename(library)
        config = os.path.join(folder, "environments", name.removesuffix(".so") + ".json")
        shutil.copy(library, os.path.join(folder, "environments", name))
        found[name] = config if os.path.exists(config) else os.path.join(folder, "environments", name)
    return found


def check(mscgym, kind, name, folder):
    process = subprocess.run([mscgym, kind, "--check", name, "--json", "--limit", "10m"], cwd=folder,
                             capture_output=True, text=True,
                             env=dict(os.environ, PYTHONPATH=PYTHON, PYTHONDONTWRITEBYTECODE="1"))
    try:
        rules = json.loads(process.stdout)
    except ValueError:
        return process.stderr.strip() or f"exit code {process.returncode}"
    broken = [f"{rule['rule']}: {rule['message']}" for rule in rules if not rule["kept"]]
    return "; ".join(broken) or (None if process.returncode == 0 else f"exit code {process.returncode}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("mscgym")
    parser.add_argument("--agent", action="append", default=[], help="library of an agent")
    parser.add_argument("--env", action="append", default=[], help="library of an environment")
    options = parser.parse_args()
    mscgym = os.path.abspath(options.mscgym)
    folder = tempfile.mkdtemp(prefix="check_plugins_")

    def registered(kind):
        return [plugin["name"] for plugin in json.loads(
            subprocess.run([mscgym, kind, "--json"], check=True, capture_output=True, text=True).stdout)]

    envs = configs(folder, [os.path.abspath(library) for library in options.env])
    agents = {name: name for name in registered("agents") if name not in ("process", "library")}
    agents.update({os.path.basename(library): os.path.abspath(library) for library in options.agent})
    agents["random_agent.py"] = f"{sys.executable} -S {os.path.join(EXAMPLES, 'agents', 'random_agent.py')}"
    agents["hill_climb.py"] = f"{sys.executable} python/hill_climb.py"
    problems = {f"environment {name}": "nothing says how to check it"
                for name in registered("envs") if name not in envs}
    for kind, subjects in ("agents", agents), ("envs", envs):
        for name, subject in subjects.items():
            problem = check(mscgym, kind, subject, folder)
            print(f"{kind[:-1]} {name}: {problem or 'kept'}", flush=True)
            if problem:
                problems[f"{kind[:-1]} {name}"] = problem
    for name, problem in problems.items():
        print(f"{name}: {problem}")
    shutil.rmtree(folder)
    sys.exit(1 if problems else 0)


main()
