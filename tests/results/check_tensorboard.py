#!/usr/bin/env python3
"""Compares what `search --log tensorboard:DIR` and `export --tensorboard` write with the record, by
TensorBoard's own reader: tags, values, steps and times. Also after several launches, after lines
were cut off the record, and after a restart.

    check_tensorboard.py MSCGYM

Needs tensorboard and numpy; exits with 77 without them.
"""
import datetime
import json
import math
import os
import subprocess
import sys
import tempfile
import time

try:
    import numpy
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from tensorboard.util import tensor_util
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

MSCGYM = os.path.abspath(sys.argv[1])
CONFIG = {
    "workspace": "w", "verbose": "warn",
    "gym": [{
        "record": "toy.jsonl",
        "env": {"type": "toy", "tasks": 5, "choices": 3, "seed": 1, "interaction": 0.5,
                "fail_at": 9, "fail_every": 0,
                "objectives": ["distill_loss", "size_bytes"], "bounds": {"size_ratio": {"max": 0.05}}},
        "agent": {"type": "random"}, "seed": 3, "parallel": 4, "budget": {"trials": 30}}],
}


def check(holds, what):
    if not holds:
        print(f"failed: {what}")
        sys.exit(1)


def run(*arguments, code=0):
    done = subprocess.run([MSCGYM, *arguments], capture_output=True, text=True)
    check(done.returncode == code, f"{arguments}: exit {done.returncode}: {done.stderr}")
    return done.stderr


def lines(path="w/toy.jsonl"):
    with open(path, encoding="utf-8") as file:
        every = [json.loads(line) for line in file]
    return every[0], [line for line in every if line["kind"] == "trial"]


def expected(path="w/toy.jsonl"):
    """{tag: [(step, value, wall time)]}, computed from the record."""
    header, trials = lines(path)
    begun = datetime.datetime.strptime(header["measured"]["time"], "%Y-%m-%dT%H:%M:%SZ").replace(
        tzinfo=datetime.timezone.utc).timestamp()
    exact = {metric["name"] for metric in header["space"]["metrics"] if metric["exact"]}
    best = {}
    out = {}
    for trial in trials:
        wall = begun + trial["measured"]["elapsed_s"]
        row = {}
        for name, value in trial["metrics"].items():
            if trial["state"] in ("complete", "infeasible") or name in exact:
                row["metrics/" + name] = value
        for objective in header["objectives"]:
            name = objective["metric"]
            if trial["state"] == "complete":
                best[name] = min(best.get(name, math.inf), trial["metrics"][name])
            if name in best:
                row["best/" + name] = best[name]
        row["violation"] = trial["violation"]
        for tag, value in row.items():
            out.setdefault(tag, []).append((trial["id"], value, wall))
    return out


def compare(folder, path="w/toy.jsonl"):
    reader = EventAccumulator(folder, size_guidance={"scalars": 0, "tensors": 0})
    reader.Reload()
    wanted = expected(path)
    check(set(reader.Tags()["scalars"]) == set(wanted), f"tags {reader.Tags()['scalars']}")
    for tag, rows in wanted.items():
        found = reader.Scalars(tag)
        check([event.step for event in found] == [row[0] for row in rows], f"{folder}: steps of {tag}")
        for event, (_, value, wall) in zip(found, rows):
            check(event.value == numpy.float32(value), f"{tag} at {event.step}")
            check(abs(event.wall_time - wall) < 1e-3, f"{folder}: time of {tag} at {event.step}: {event.wall_time} for {wall}")
    check(set(reader.Tags()["tensors"]) == {"config", "result"}, f"texts {reader.Tags()['tensors']}")
    text = tensor_util.make_ndarray(reader.Tensors("result")[-1].tensor_proto).item().decode()
    check("    objectives:" in text or "trials" in text, f"result {text!r}")
    config = tensor_util.make_ndarray(reader.Tensors("config")[-1].tensor_proto).item().decode()
    check('"interaction": 0.5' in config, f"config {config!r}")
    return reader


def check_launches():
    with open("toy.json", "w", encoding="utf-8") as file:
        json.dump(CONFIG, file)
    run("search", "toy.json", "--log", "tensorboard:runs", "--quiet")
    compare("runs/toy")
    run("resume", "w/toy.jsonl", "--trials", "50", "--log", "tensorboard:runs", "--quiet")
    compare("runs/toy")
    check(len(os.listdir("runs/toy")) == 2, "a file for each launch")
    # A launch without --log writes no events; the next launch with --log adds them.
    run("resume", "w/toy.jsonl", "--trials", "60", "--quiet")
    run("resume", "w/toy.jsonl", "--trials", "70", "--log", "tensorboard:runs", "--quiet")
    compare("runs/toy")


def check_cut():
    """Events of trials that are no longer in the record disappear."""
    with open("w/toy.jsonl", "rb") as file:
        every = file.read().splitlines(keepends=True)
    with open("w/toy.jsonl", "wb") as file:
        file.writelines(every[:-7])
    for name in ("toy.jsonl.result.json", "toy.jsonl.attempt"):
        if os.path.exists("w/" + name):
            os.remove("w/" + name)
    run("export", "w/toy.jsonl", "--tensorboard", "runs")
    compare("runs/toy")
    run("resume", "w/toy.jsonl", "--trials", "80", "--log", "tensorboard:runs", "--quiet")
    compare("runs/toy")
    # The last write was cut off inside an event.
    last = sorted(os.listdir("runs/toy"))[-1]
    os.truncate("runs/toy/" + last, os.path.getsize("runs/toy/" + last) - 2000)
    run("resume", "w/toy.jsonl", "--trials", "85", "--log", "tensorboard:runs", "--quiet")
    compare("runs/toy")


def check_export():
    run("export", "w/toy.jsonl", "--tensorboard", "exported")
    compare("exported/toy")


def check_anew():
    """After a restart the events of the new record replace those of the old one."""
    CONFIG["gym"][0]["seed"] = 4
    time.sleep(1.1)  # the two records differ by their start time, in seconds
    with open("toy.json", "w", encoding="utf-8") as file:
        json.dump(CONFIG, file)
    run("search", "toy.json", "--restart", "--log", "tensorboard:runs", "--quiet")
    compare("runs/toy")


def check_bad_place():
    with open("file", "w", encoding="utf-8"):
        pass
    said = run("search", "toy.json", "--restart", "--log", "tensorboard:file")
    check(said.count("TensorBoard gets no more") == 1, f"one warning: {said!r}")
    check(len(lines()[1]) == len(lines("w/toy.jsonl.2")[1]), "the search went on")
    if os.path.exists("/dev/full"):
        os.makedirs("full/toy")
    run("search", "toy.json", "--log", "wandb:x", code=2)


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        check_launches()
        check_cut()
        check_export()
        check_anew()
        check_bad_place()
    print("TensorBoard reads what the record holds")


main()
