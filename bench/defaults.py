#!/usr/bin/env python3
"""`mscgym quantize` at its default on transformers, beside the 8-bit models that other tools make.

    defaults.py MSCGYM FOLDER [NETWORK...] [--peers static,dynamic,onnxsim=PYTHON,nncf=PYTHON] [--rounds N]
                [--keep DIR] [--csv FILE] [--search TRIALS]

FOLDER has the networks of scripts/models/export_transformers.py. All tools get the same 64 samples. A row has the
loss on 64 other samples, in onnxruntime, one sample a run; the bytes of the file; the processor time of a run on one
thread, all models of a network in turn; and the processor time of the tool. The last lines compare ours with the
peer that loses least. `onnxruntime` and `sympy` are needed, and what peers/whole.py names. With --keep, models stay
in DIR and are not made again. --search adds a row for a search with as many trials, whose bound on the latency is that
of quantize_dynamic's model with the least loss.
"""
import argparse
import csv
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile

import numpy
import onnxruntime

import common
import delivered
import static

NETWORKS = ("bert-8m", "gpt2-8m", "llama-8m", "encoder")
COLUMNS = ("network", "tool", "preset", "loss", "bytes", "us", "cpu_s", "version")


def session(path):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(path, options, ["CPUExecutionProvider"])


def outputs(model, samples):
    n = len(next(iter(samples.values())))
    return numpy.concatenate([model.run(None, {k: v[i:i + 1] for k, v in samples.items()})[0].ravel()
                              for i in range(n)]).astype(numpy.float64)


def loss(model, samples, truth):
    """The loss of a session, or of a file."""
    model = session(model) if isinstance(model, str) else model
    return float(numpy.mean((outputs(model, samples) - truth) ** 2) / numpy.mean(truth ** 2))


def ours(mscgym, path, inputs, folder):
    out, before = os.path.join(folder, "ours.onnx"), resource.getrusage(resource.RUSAGE_CHILDREN)
    said = subprocess.run([mscgym, "quantize", path, "--inputs", inputs, "-o", out, "--threads", "1", "--json"],
                          check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    plan = json.loads(said)["plans"][0]
    preset = f"{plan['weights']}, {plan['activations']}, {plan['float']:.0f} float"
    return [{"tool": "mscgym", "preset": preset, "model": out, "version": common.version(mscgym),
             "seconds": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime}]


def searched(mscgym, path, inputs, folder, most, trials):
    """The winner of a search. Its time, relative to the float model's, is at most `most` by the table of latencies."""
    choices = [{"bits": 8}, {"bits": 8, "observer": "minmax"}, {"bits": 8, "rounding": "descent", "correct": "affine"},
               {"bits": 8, "dynamic": True}, {"float": True}]
    env = {"choices": choices, "bounds": {"latency_ratio": {"max": most}, "size_ratio": {"max": 0.3}}}
    entry = {"record": "search.jsonl", "env": env, "agent": {"type": "auto"}, "budget": {"trials": trials},
             "distill": True, "equalize": {"weights": 8, "activations": 8}}
    config, out = os.path.join(folder, "search.json"), os.path.join(folder, "searched.onnx")
    with open(config, "w") as file:
        json.dump({"workspace": folder, "model": path, "verbose": "error", "dataset": {"inputs": inputs, "batch": 1},
                   "quantize": {"target": "onnxruntime", "gym": [entry]}}, file)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    for command in (["search", config, "--threads", "1"], ["export", os.path.join(folder, "search.jsonl"), "-o", out]):
        subprocess.run([mscgym, *command, "--quiet"], check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return [{"tool": "search", "preset": f"{trials} trials, latency at most {most:.3f}", "model": out,
             "version": common.version(mscgym),
             "seconds": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime}]


def theirs(tool, python, path, inputs, folder):
    ready = os.path.join(folder, "ready.onnx")
    if not os.path.exists(ready):
        static.prepare(path, ready, folder)
    program = os.path.join(common.HERE, "peers", "whole.py")
    said = subprocess.run([python, program, tool, ready, inputs, folder], check=False, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True).stdout
    rows = [json.loads(line) for line in said.splitlines() if line.startswith('{"preset"')]
    return [{"tool": tool, **row} for row in rows] or [{"tool": tool, "preset": "", "failed": "it stopped"}]


def made(name, make):
    """The rows that `make` returns, or that it returned when they were stored."""
    if not os.path.exists(name):
        common.save_rows(name, make())
    with open(name) as file:
        return json.load(file)


def measure(args, network, folder):
    path, inputs = (os.path.join(args.folder, network + end) for end in (".onnx", ".inputs.npz"))
    with numpy.load(os.path.join(args.folder, network + ".unseen.npz")) as file:
        samples = dict(file)
    rows = [{"tool": "float", "preset": "", "model": path}]
    rows += made(os.path.join(folder, "mscgym.json"), lambda: ours(args.mscgym, path, inputs, folder))
    for tool, python in args.peers.items():
        rows += made(os.path.join(folder, tool + ".json"), lambda t=tool, p=python: theirs(t, p, path, inputs, folder))
    truth, first, runs = outputs(session(path), samples), {k: v[:1] for k, v in samples.items()}, []
    if args.search:
        named = [row["model"] for row in rows if row["tool"] == "dynamic"]
        models = [session(name) for name in (path, min(named, key=lambda name: loss(name, samples, truth)))]
        times = delivered.latency([lambda m=m: m.run(None, first) for m in models], args.rounds, "process")
        most = statistics.median(its[1] / its[0] for its in times)
        rows += made(os.path.join(folder, "searched.json"),
                     lambda: searched(args.mscgym, path, inputs, folder, most, args.search))
    for row in rows:
        row["network"] = network
        try:
            model = session(row["model"])
        except Exception as error:  # the runtime refuses the model, or there is none
            print(f"{network}: {row['tool']}, {row['preset']}: {row.get('failed', error)}"[:250], file=sys.stderr)
            continue
        row["bytes"] = os.path.getsize(row["model"])
        row["loss"] = loss(model, samples, truth)
        runs.append((row, lambda m=model: m.run(None, first)))
    times = delivered.latency([run for _, run in runs], args.rounds, "process")
    for (row, _), its in zip(runs, zip(*times)):
        row["us"] = 1e6 * statistics.median(its)
        row["cpu_s"] = row.get("seconds")
    return [row for row, _ in runs]


def tell(rows):
    for row in rows:
        print(f"{row['network']:9} {row['tool']:8} {row['preset']:32} {row['loss']:9.3g} {row['bytes']:9} bytes "
              f"{row['us']:7.0f} us {row['cpu_s'] or 0:7.2f} s", flush=True)
    our = next(row for row in rows if row["tool"] == "mscgym")
    peers = [row for row in rows if row["tool"] not in ("mscgym", "search", "float")]
    best = min(peers, key=lambda row: row["loss"], default=None)
    if best:
        print(f"{our['network']}: beside {best['tool']}, {best['preset']}: loss {our['loss'] / best['loss']:.2f}, "
              f"bytes {our['bytes'] / best['bytes']:.2f}, time {our['us'] / best['us']:.2f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("mscgym", type=os.path.abspath)
    parser.add_argument("folder", type=os.path.abspath)
    parser.add_argument("networks", nargs="*", default=NETWORKS)
    parser.add_argument("--peers", default="static,dynamic")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--keep", type=os.path.abspath)
    parser.add_argument("--csv")
    parser.add_argument("--search", type=int, default=0)
    args = parser.parse_args()
    named = (part.partition("=") for part in args.peers.split(",") if part)
    args.peers = {tool: python or sys.executable for tool, _, python in named}
    helper = os.path.abspath(os.path.join(common.HERE, "..", "tools", "mscgym-runtime"))
    os.environ.setdefault("MSCGYM_RUNTIME", f"{sys.executable} {helper}")
    print(f"{common.machine()}; onnxruntime {onnxruntime.__version__}")
    rows = []
    for network in args.networks:
        with tempfile.TemporaryDirectory() as scratch:
            folder = os.path.join(args.keep or scratch, network)
            os.makedirs(folder, exist_ok=True)
            found = measure(args, network, folder)
        tell(found)
        rows += found
    if args.csv:
        with open(args.csv, "w", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS, extrasaction="ignore", lineterminator="\n")
            writer.writeheader()
            writer.writerows({key: float(f"{value:.4g}") if isinstance(value, float) else value
                              for key, value in row.items()} for row in rows)


if __name__ == "__main__":
    main()
