#!/usr/bin/env python3
"""Compares a speech detector, whose state is carried over chunks, with onnxruntime in a loop.

usage: check_state.py MSCGYM [--models DIR] [--trials N] [--device NAME]

`mscgym run --state` must give onnxruntime's outputs chunk by chunk, within 1e-5. For the winner of
a search over six sequences, the measured loss must be that of the exported model in onnxruntime in
a loop, within 5 % (rounding changes single steps, and the state carries them on). The record must
verify, and a record that was stopped and continued must have the same lines. Needs numpy and
onnxruntime. Exits with 77 without them or without vad.onnx.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

try:
    import numpy
    import onnxruntime
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

CHUNK, LENGTH, SEQUENCES = 512, 20, 6
BIND = {"sr": 16000, "input.0": 1, "input.1": CHUNK, "state.1": 1}


def recording(seed):
    """A voice-like tone that comes and goes, in noise: [LENGTH, CHUNK] at 16 kHz."""
    rng = numpy.random.RandomState(seed)
    t = numpy.arange(LENGTH * CHUNK) / 16000
    tone = numpy.sin(2 * numpy.pi * rng.uniform(100, 400) * t)
    gate = numpy.sin(2 * numpy.pi * rng.uniform(1, 5) * t) > 0
    return (0.3 * tone * gate + 0.02 * rng.randn(len(t))).astype("float32").reshape(LENGTH, CHUNK)


def in_a_loop(path, chunks):
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    names = [i.name for i in session.get_inputs()]
    rows = []
    for i, chunk in enumerate(chunks):
        state = numpy.zeros((2, 1, 128), "float32") if i % LENGTH == 0 else state
        feeds = {"input": chunk[None], "state": state, "sr": numpy.array(16000, "int64")}
        row, state = session.run(["output", "stateN"], {n: feeds[n] for n in names})
        rows.append(row)
    return numpy.concatenate(rows).astype("float64")


def call(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip().splitlines()[-1]}")
    return done.stdout


def lines(options, record):
    return call(options.mscgym, "show", record, "--canonical").splitlines()[1:]


def write_config(options, folder, name):
    config = {
        "workspace": name, "verbose": "warning", "model": options.model, "bind": BIND,
        "dataset": {"inputs": "vad.npz", "state": {"state": "stateN"}, "batch": LENGTH},
        "quantize": {"gym": [{
            "record": "r.jsonl",
            "env": {"choices": [{"bits": 8}, {"bits": 6}, {"bits": 4}],
                    "bounds": {"size_ratio": {"max": 0.24}, "bit_ops_ratio": {"max": 0.2}}},
            "agent": {"type": "evolutionary", "population": 8},
            "budget": {"trials": options.trials}, "parallel": 8}]}}
    path = os.path.join(folder, name + ".json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(config, file)
    return path


def check_run(options, folder, chunks, reference):
    numpy.save(os.path.join(folder, "chunks.npy"), chunks[:LENGTH])
    numpy.save(os.path.join(folder, "rate.npy"), numpy.array(16000, "int64"))
    call(options.mscgym, "run", options.model, "--device", options.device, "--repeat", "0",
         "--input", f"input={folder}/chunks.npy", "--input", f"sr={folder}/rate.npy",
         "--state", "state=stateN", "--output", f"{folder}/out")
    found = numpy.load(os.path.join(folder, "out", "output.npy"))
    worst = float(numpy.abs(found - reference[:LENGTH]).max())
    print(f"run: within {worst:.2g} of onnxruntime")
    return worst <= 1e-5


def check_search(options, folder, chunks, reference):
    device = ["--device", options.device]
    record = os.path.join(folder, "whole", "r.jsonl")
    report = call(options.mscgym, "search", write_config(options, folder, "whole"), *device,
                  "--json")
    loss = json.loads(report)[0]["winner"]["metrics"]["distill_loss"]
    call(options.mscgym, "verify", record, *device)
    found = in_a_loop(os.path.join(folder, "whole", "vad.onnx"), chunks)
    expected = float(((found - reference) ** 2).mean() / (reference ** 2).mean())
    print(f"search: loss {loss:.5g}, by onnxruntime {expected:.5g}")
    config = write_config(options, folder, "parts")
    call(options.mscgym, "search", config, *device, "--trials", "5")
    call(options.mscgym, "search", config, *device, "--threads", "1")
    same = lines(options, record) == lines(options, os.path.join(folder, "parts", "r.jsonl"))
    print("stopped and continued: the same lines" if same else "the records differ")
    return same and abs(loss - expected) <= 0.05 * expected


def main():
    parser = argparse.ArgumentParser(description="State over chunks, beside onnxruntime.")
    parser.add_argument("mscgym", type=os.path.abspath)
    parser.add_argument("--models", default=os.environ.get(
        "MSC_MODELS", os.path.expanduser("~/.cache/mscgym/models")))
    parser.add_argument("--trials", type=int, default=24)
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    options.model = os.path.join(options.models, "vad.onnx")
    if not os.path.exists(options.model):
        print("skipped: run `scripts/fetch-models`")
        sys.exit(77)
    chunks = numpy.concatenate([recording(seed) for seed in range(SEQUENCES)])
    reference = in_a_loop(options.model, chunks)
    with tempfile.TemporaryDirectory() as folder:
        numpy.savez(os.path.join(folder, "vad.npz"), input=chunks,
                    sr=numpy.array(16000, "int64"))
        passed = check_run(options, folder, chunks, reference)
        passed = check_search(options, folder, chunks, reference) and passed
    sys.exit(0 if passed else 1)


if __name__ == "__main__":
    main()
