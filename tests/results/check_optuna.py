#!/usr/bin/env python3
"""Compares the journal that `export --optuna` writes with the record it was made from, by loading it
with Optuna's own storage: choices, values, constraints, state and times of every trial.

    check_optuna.py MSCGYM

Needs optuna; exits with 77 without it.
"""
import datetime
import json
import os
import subprocess
import sys
import tempfile

try:
    import optuna
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

MSCGYM = os.path.abspath(sys.argv[1])
STATES = {"complete": "COMPLETE", "infeasible": "COMPLETE", "pruned": "PRUNED", "failed": "FAIL"}
SEARCHES = {
    "one": ({"objectives": ["distill_loss"], "bounds": {"size_ratio": {"max": 0.05}},
             "fail_at": 9, "fail_every": 0}, {"type": "random"}, {}),
    "two": ({"objectives": ["distill_loss", "size_bytes"], "bounds": {"size_ratio": {"max": 0.05}}},
            {"type": "evolutionary", "population": 8}, {}),
    "stopped": ({}, {"type": "grid_search", "mode": "greedy"}, {}),
}


def check(holds, what):
    if not holds:
        print(f"failed: {what}")
        sys.exit(1)


def run(*arguments, code=0):
    done = subprocess.run([MSCGYM, *arguments], capture_output=True, text=True)
    check(done.returncode == code, f"{arguments}: exit {done.returncode}: {done.stderr}")
    return done.stderr


def search(name):
    env, agent, more = SEARCHES[name]
    with open(name + ".json", "w", encoding="utf-8") as file:
        json.dump({"workspace": "w", "verbose": "error", "gym": [{
            "record": name + ".jsonl", "agent": agent, "seed": 3, "parallel": 4,
            "env": {"type": "toy", "tasks": 5, "choices": 3, "seed": 1, "interaction": 0.5, **env},
            "budget": {"trials": 40}, **more}]}, file)
    run("search", name + ".json", "--quiet")
    run("export", f"w/{name}.jsonl", "--optuna", name + ".journal")


def constraints_of(header, metrics):
    out = []
    for bound in header["bounds"]:
        for side, sign in (("max", 1), ("min", -1)):
            if side in bound:
                out.append(sign * (metrics[bound["metric"]] - bound[side]))
    return out


def compare_trial(header, line, trial):
    tasks = header["space"]["tasks"]
    where = f"trial {line['id']}"
    check(trial.number == line["id"], where)
    check(trial.params == {task["name"]: task["choices"][choice]
                           for task, choice in zip(tasks, line["choices"])}, f"{where}: params")
    for task in tasks:
        check(list(trial.distributions[task["name"]].choices) == task["choices"], f"{where}: choices")
    names = [objective["metric"] for objective in header["objectives"]]
    state = STATES[line["state"]]
    if line["state"] == "infeasible" and not all(name in line["metrics"] for name in names):
        state = "PRUNED"  # not evaluated: its exact costs already break a bound
    check(trial.state.name == state, f"{where}: {trial.state} of {line['state']}")
    check(trial.values == ([line["metrics"][name] for name in names] if state == "COMPLETE" else None),
          f"{where}: values {trial.values}")
    if header["bounds"] and all(bound["metric"] in line["metrics"] for bound in header["bounds"]):
        check(trial.system_attrs["constraints"] == constraints_of(header, line["metrics"]),
              f"{where}: constraints")
    check(trial.user_attrs["violation"] == line["violation"], f"{where}: violation")
    for name, value in line["metrics"].items():
        check(trial.user_attrs[name] == value, f"{where}: {name}")
    check(trial.user_attrs.get("baseline") == line.get("baseline"), f"{where}: baseline")
    check(trial.user_attrs.get("repeat_of") == line.get("repeat_of"), f"{where}: repeat_of")
    check(trial.user_attrs.get("reason") == line.get("reason"), f"{where}: reason")
    begun = datetime.datetime.strptime(header["measured"]["time"], "%Y-%m-%dT%H:%M:%SZ").replace(
        tzinfo=datetime.timezone.utc)
    written = begun + datetime.timedelta(seconds=line["measured"]["elapsed_s"])
    off = trial.datetime_complete.astimezone(datetime.timezone.utc) - written
    check(abs(off.total_seconds()) < 1e-3, f"{where}: time {trial.datetime_complete}")
    check(trial.datetime_start <= trial.datetime_complete, f"{where}: began after its end")


def compare(name):
    with open(f"w/{name}.jsonl", encoding="utf-8") as file:
        header, *lines = [json.loads(line) for line in file]
    storage = JournalStorage(JournalFileBackend(name + ".journal"))
    study = optuna.load_study(study_name=name, storage=storage)
    check([d.name for d in study.directions] ==
          ["MAXIMIZE" if o["maximise"] else "MINIMIZE" for o in header["objectives"]], "directions")
    check(study.metric_names == [o["metric"] for o in header["objectives"]], "metric names")
    check(study.user_attrs["agent"] == header["agent"]["type"], "agent")
    check(len(study.trials) == len(lines), "number of trials")
    for line, trial in zip(lines, study.trials):
        compare_trial(header, line, trial)
    return header, lines, study


def compare_best(name):
    """Optuna's best trial, or its Pareto front, agrees with the record."""
    header, lines, study = compare(name)
    metric = header["objectives"][0]["metric"]
    feasible = [line for line in lines if line["state"] == "complete"]
    best = min(feasible, key=lambda line: (line["metrics"][metric], line["id"]))
    if len(header["objectives"]) == 1:
        check(study.best_value == best["metrics"][metric], f"{name}: best {study.best_value}")
    else:
        check(best["metrics"][metric] in [trial.values[0] for trial in study.best_trials],
              f"{name}: front")


def check_files():
    """export replaces a journal that it wrote itself. It refuses one that Optuna has added to, and
    any other file."""
    run("export", "w/one.jsonl", "--optuna", "one.journal")
    study = optuna.load_study(study_name="one",
                              storage=JournalStorage(JournalFileBackend("one.journal")))
    study.optimize(lambda trial: len([trial.suggest_categorical(name, d.choices) for name, d in
                                      study.trials[0].distributions.items()]), n_trials=1)
    said = run("export", "w/one.jsonl", "--optuna", "one.journal", code=2)
    check("one.journal" in said, said)
    check(study.trials[-1].value == 5, "what Optuna added stays")
    run("export", "w/one.jsonl", "--optuna", "w/two.jsonl", code=2)
    run("export", "w/one.jsonl", "--optuna", "w/one.jsonl", code=2)


def main():
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for name in SEARCHES:
            search(name)
            compare_best(name)
        check_files()
    print("Optuna reads what the record holds")


main()
