#!/usr/bin/env python3
"""Tests the parts that need packages, and the examples, started as in docs/python.md in an empty folder.

    test_extras.py MSCGYM DIGITS

Parts whose packages are missing are skipped with a message.
"""
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGE = os.path.join(HERE, "..")
sys.path.insert(0, PACKAGE)
sys.dont_write_bytecode = True
os.environ.update(PYTHONPATH=PACKAGE, PYTHONDONTWRITEBYTECODE="1")
MSCGYM, DIGITS = (os.path.abspath(path) for path in sys.argv[1:3])


def has(*packages):
    missing = [name for name in packages if not importlib.util.find_spec(name)]
    if missing:
        print(f"skipped: there is no {', no '.join(missing)} in {sys.executable}", flush=True)
    return not missing


def run(*command):
    print("$ " + " ".join(command), flush=True)
    process = subprocess.run(command, capture_output=True, text=True)
    if process.returncode != 0:
        sys.exit(f"it ended with {process.returncode}: {process.stdout}{process.stderr}")
    return process.stdout


def expect(condition, what):
    if not condition:
        sys.exit(f"expected: {what}")


def check_arrays():
    from mscgym import Record

    record = Record("msc_workspace/agent.jsonl")
    if has("numpy"):
        arrays = record.to_numpy()
        expect(arrays["choices"].shape == (len(record), len(record.tasks)), "choices of every trial")
        expect([int(i) for i in arrays["id"]] == [t.id for t in record.trials], "ids in order")
        expect(arrays["size_bytes"][0] == record.trials[0].metrics["size_bytes"], "metrics by name")
    if has("numpy", "pandas"):
        table = record.to_pandas()
        expect(list(table.index) == [t.id for t in record.trials], "a row for each trial")
        expect(table.loc[0, record.tasks[0]] == "8" and table.loc[0, "baseline"] == "8", "labels by task")
        expect("the best is" in run("python3", "front.py", "msc_workspace/agent.jsonl", "front.csv"), "a front")


def check_guide(title, without=()):
    """Runs the code of a section of docs/python.md. A block that has a word of `without` is left out."""
    with open(os.path.join(PACKAGE, "..", "docs", "python.md"), encoding="utf-8") as file:
        section = file.read().split(f"\n## {title}\n")[1].split("\n## ")[0]
    space = {}
    for block in re.findall(r"(?:^    [^\n]*\n|^\n(?=    ))+", section, re.M):
        if "import" in block and not any(word in block for word in without):
            exec(compile(textwrap.dedent(block), "python.md", "exec"), space)
    return space


def check_gymnasium():
    from gymnasium.utils.env_checker import check_env
    from mscgym.gym import Env

    env = Env("agent.json", command=[MSCGYM])
    check_env(env, skip_render_check=True)
    env.reset(seed=1)
    while True:
        _, reward, terminated, _, info = env.step(env.action_space.n - 1)
        if terminated:
            break
    outcome = info["outcome"]
    expect(outcome.state == "complete" and reward == -outcome.objectives[0], "minus the objective at the end")
    env.close()
    expect("the best plan: " in run("python3", "learn.py", "agent.json", "20"), "a plan that was learnt")
    if has("stable_baselines3"):
        space = check_guide("The gym view")
        result, tasks = space["result"], space["env"].space.tasks
        labels = [task.choices[choice] for task, choice in zip(tasks, space["plan"])]
        expect(list(result.plan.values()) == labels, f"{labels}, found {result.plan}")
    else:
        check_guide("The gym view", ["stable_baselines3", "plan"])


def check_trackers():
    """A record is written in two parts: the second call adds the trials that the run lacks."""
    lines = open("msc_workspace/agent.jsonl", encoding="utf-8").readlines()
    for part in (lines[:len(lines) // 2], lines):
        with open("tracked.jsonl", "w", encoding="utf-8") as file:
            file.writelines(part)
        if has("mlflow"):
            os.environ["MLFLOW_ALLOW_FILE_STORE"] = "true"
            run(sys.executable, "-m", "mscgym.trackers", "mlflow", "tracked.jsonl", "--uri", f"file:{os.getcwd()}/mlruns")
        if has("wandb"):
            run(sys.executable, "-m", "mscgym.trackers", "wandb", "tracked.jsonl", "--offline")
    if has("mlflow"):
        from mlflow.tracking import MlflowClient

        import mscgym

        record = mscgym.Record("tracked.jsonl")
        client = MlflowClient(f"file:{os.getcwd()}/mlruns")
        runs = client.search_runs([client.get_experiment_by_name("mscgym").experiment_id])
        expect(len(runs) == 1 and runs[0].info.run_name == "tracked", "one run")
        found = {m.step: m.value for m in client.get_metric_history(runs[0].info.run_id, "size_bytes")}
        expect(found == {t.id: t.metrics["size_bytes"] for t in record.trials}, "each trial once, at its number")
        best = [m.value for m in client.get_metric_history(runs[0].info.run_id, "best/distill_loss")]
        expect(best[-1] == record.best().metrics["distill_loss"], "the best value so far")


def main():
    folder = tempfile.mkdtemp(prefix="mscgym_python_")
    os.makedirs(os.path.join(folder, "bin"))
    # The PATH has what a virtual environment and an installed mscgym would add.
    os.symlink(MSCGYM, os.path.join(folder, "bin", "mscgym"))
    with open(os.path.join(folder, "bin", "python3"), "w") as file:
        file.write(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    os.chmod(os.path.join(folder, "bin", "python3"), 0o755)
    os.environ["PATH"] = os.path.join(folder, "bin") + os.pathsep + os.environ["PATH"]
    os.chdir(folder)
    for name in os.listdir(os.path.join(PACKAGE, "examples")):
        if os.path.isfile(os.path.join(PACKAGE, "examples", name)):
            shutil.copy(os.path.join(PACKAGE, "examples", name), folder)
    shutil.copytree(DIGITS, "digits", ignore=shutil.ignore_patterns("msc_workspace"))
    expect("winner: trial" in run(MSCGYM, "search", "agent.json", "--quiet"), "a winner of the agent")
    run(MSCGYM, "agents", "--check", "python3 hill_climb.py")
    if has("numpy"):
        expect("winner: trial" in run(MSCGYM, "search", "environment.json", "--quiet"), "a winner")
        run(MSCGYM, "envs", "--check", "environment.json")
    if has("optuna"):
        expect("winner: trial" in run(MSCGYM, "search", "sampler.json", "--quiet", "--trials", "60"), "a winner")
        if has("numpy"):
            result = check_guide("A sampler of Optuna")["result"]
            expect(result.metrics["size_ratio"] <= 0.2 and len(result.record) > 40, "trials within the bounds")
    check_arrays()
    check_trackers()
    if has("gymnasium", "numpy"):
        check_gymnasium()
    os.chdir(HERE)
    shutil.rmtree(folder)


main()
