#!/usr/bin/env python3
"""Uniform 8 bits in ONNX Runtime beside the float model and ONNX Runtime's own quantize_static.

    runtime.py MSCGYM MODEL... [--samples N] [--batch N] [--rounds N] [--trials N] [--json FILE]

MODEL is a name of scripts/fetch-models, or a file with NAME.inputs.npz beside it. For each: the
loss that mscgym foretells and that of its exported model in the runtime, on the same samples and
batches; latency at batch 1 on one thread, in interleaved rounds, as ratios to the float model.
quantize_static is given what it does best with on x86: pairs, unsigned activations, weights per
channel, after quant_pre_process; its loss is the least of minmax, entropy and percentile. With
--trials a search of so many over 8 and 4 bits and float stands beside: what its winner loses, as
foretold and in the runtime, and the bytes of its file beside those of uniform 8.
"""
import argparse
import json
import os
import statistics
import subprocess
import tempfile
import time

import numpy
import onnxruntime
from onnxruntime.quantization import CalibrationMethod, QuantFormat, QuantType, quantize_static
from onnxruntime.quantization.calibrate import CalibrationDataReader
from onnxruntime.quantization.shape_inference import quant_pre_process

import common

METHODS = {"minmax": CalibrationMethod.MinMax, "entropy": CalibrationMethod.Entropy,
           "percentile": CalibrationMethod.Percentile}


def samples_of(model, n):
    """Arrays by input, from the file beside the model, or the one that all photographs share."""
    stem = os.path.splitext(model)[0]
    shared = os.path.join(os.path.dirname(model), "photographs.inputs.npz")
    path = stem + ".inputs.npz"
    with numpy.load(path if os.path.exists(path) else shared) as file:
        return {name: file[name][:n] for name in file}


class Reader(CalibrationDataReader):
    def __init__(self, samples):
        n = len(next(iter(samples.values())))
        self.rows = iter([{k: v[i:i + 1] for k, v in samples.items()} for i in range(n)])

    def get_next(self):
        return next(self.rows, None)


def session(path):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def loss(base, other, samples, batch):
    """Mean over float outputs of mean (y - z)^2 / mean y^2: mscgym's `mse`."""
    n = len(next(iter(samples.values())))
    wrong, power = {}, {}
    for i in range(0, n, batch):
        feed = {k: v[i:i + batch] for k, v in samples.items()}
        names = [o.name for o in base.get_outputs() if o.type == "tensor(float)"]
        for name, y, z in zip(names, base.run(names, feed), other.run(names, feed)):
            y = y.astype(numpy.float64)
            wrong[name] = wrong.get(name, 0) + ((y - z) ** 2).sum()
            power[name] = power.get(name, 0) + (y ** 2).sum()
    return statistics.mean(wrong[k] / power[k] for k in wrong)


UNIFORM = {"env": {"choices": [{"bits": 8}]}, "agent": {"type": "random"}, "budget": {"trials": 1}}


def islands(trials):
    """A search that may give weights 4 bits and leave what loses most in float."""
    return {"env": {"choices": [{"float": True}, {"bits": 8}, {"bits": 8, "observer": "mse"},
                                {"bits": 4, "observer": "mse"}],
                    "bounds": {"size_ratio": {"max": 0.25}}},
            "agent": {"type": "evolutionary", "population": 16}, "budget": {"trials": trials}}


def search(mscgym, folder, model, samples, batch, entry):
    """What a search finds: the exported model, what its loss is said to be, and its noise."""
    os.makedirs(folder)
    inputs = os.path.join(folder, "inputs.npz")
    numpy.savez(inputs, **samples)
    config = {"workspace": os.path.join(folder, "workspace"), "model": os.path.abspath(model),
              "verbose": "error", "dataset": {"inputs": inputs, "batch": batch},
              "quantize": {"target": "onnxruntime", "gym": [entry]}}
    path = os.path.join(folder, "search.json")
    with open(path, "w") as file:
        json.dump(config, file)
    out = subprocess.run([mscgym, "search", path, "--json"], check=True, capture_output=True,
                         text=True)
    result = json.loads(out.stdout)
    result = result[0] if isinstance(result, list) else result
    name = os.path.splitext(os.path.basename(model))[0]
    return (os.path.join(folder, "workspace", name + ".onnx"),
            result["winner"]["metrics"]["distill_loss"], result["winner"].get("examined", {}).get("noise"))


def quantize(folder, model, samples, method):
    ready = os.path.join(folder, "ready.onnx")
    if not os.path.exists(ready):
        quant_pre_process(model, ready, skip_symbolic_shape=True)
    path = os.path.join(folder, method + ".onnx")
    quantize_static(ready, path, Reader(samples), quant_format=QuantFormat.QDQ, per_channel=True,
                    activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8,
                    calibrate_method=METHODS[method])
    return path


def fastest(s, feed, seconds=0.05):
    best, until = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < until:
        begin = time.perf_counter()
        s.run(None, feed)
        best = min(best, time.perf_counter() - begin)
    return best


def latency(sessions, feed, rounds):
    """Per round the ratio of each to the first."""
    for s in sessions:
        s.run(None, feed)
    found = [[fastest(s, feed) for s in sessions] for _ in range(rounds)]
    return [[times[k] / times[0] for times in found] for k in range(len(sessions))]


def quartiles(values):
    low, middle, high = statistics.quantiles(values, n=4)
    return f"{middle:.3f} ({low:.3f} to {high:.3f})"


def tell_loss(name, what, said, delivered, noise):
    off, noise = abs(delivered / said - 1), noise or 0
    print(f"{name}: {what}: loss said {said:.5g}, in the runtime {delivered:.5g} "
          f"({100 * (delivered / said - 1):+.1f} %, noise {100 * noise:.1f} %)"
          f"{'' if off <= max(0.02, 3 * noise) else ' WRONG'}", flush=True)


def measure_search(args, folder, model, samples, base, uniform):
    """The winner of a search with float islands, beside uniform 8: (file, loss in the runtime)."""
    name = os.path.splitext(os.path.basename(model))[0]
    winner, said, noise = search(args.mscgym, os.path.join(folder, "search"), model, samples,
                                 args.batch, islands(args.trials))
    delivered = loss(base, session(winner), samples, args.batch)
    tell_loss(name, f"{args.trials} trials", said, delivered, noise)
    ours, theirs = os.path.getsize(winner), os.path.getsize(uniform[0])
    print(f"{name}: file {ours} bytes, uniform 8 {theirs} ({ours / theirs:.3f}), loss "
          f"{delivered / uniform[1]:.3f} of its"
          f"{'' if ours <= theirs or delivered < uniform[1] else ' WRONG'}", flush=True)
    return common.row("runtime", name, "1 / loss of a search", "uniform 8",
                      [(1 / delivered, 1 / uniform[1])])


def measure(args, model):
    name = os.path.splitext(os.path.basename(model))[0]
    samples, batch, rounds = samples_of(model, args.samples), args.batch, args.rounds
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        ours, said, noise = search(args.mscgym, os.path.join(folder, "uniform"), model, samples,
                                   batch, UNIFORM)
        base, s = session(model), session(ours)
        delivered = loss(base, s, samples, batch)
        theirs = {}
        for method in METHODS:
            try:
                path = quantize(folder, model, samples, method)
                theirs[method] = (loss(base, session(path), samples, batch), path)
            except Exception as error:  # what it cannot quantise is a result, too
                print(f"{name}: quantize_static, {method}: {str(error).splitlines()[0][:100]}")
        tell_loss(name, "uniform 8", said, delivered, noise)
        if args.trials:
            rows.append(measure_search(args, folder, model, samples, base, (ours, delivered)))
        sessions = [base, s] + [session(theirs["minmax"][1])] * ("minmax" in theirs)
        ratios = latency(sessions, {k: v[:1] for k, v in samples.items()}, rounds)
        print(f"{name}: latency / float {quartiles(ratios[1])}")
        if not theirs:
            return rows
        print(f"{name}: quantize_static: loss " +
              ", ".join(f"{m} {v[0]:.5g}" for m, v in theirs.items()) +
              f"; latency / float {quartiles(ratios[2])}; ours / theirs "
              f"{quartiles([a / b for a, b in zip(ratios[1], ratios[2])])}", flush=True)
        # Higher is better in both.
        return rows + [
                common.row("runtime", name, "speed", "quantize_static",
                           [(1 / a, 1 / b) for a, b in zip(ratios[1], ratios[2])]),
                common.row("runtime", name, "1 / loss", "quantize_static",
                           [(1 / delivered, 1 / min(v[0] for v in theirs.values()))])]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("mscgym", type=os.path.abspath)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--samples", type=int, default=64)
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--trials", type=int, default=0)
    parser.add_argument("--json")
    args = parser.parse_args()
    print(f"{common.machine()}; {common.version(args.mscgym)}; onnxruntime "
          f"{onnxruntime.__version__}")
    rows = []
    for model in args.models:
        path = model if os.path.exists(model) else common.model_path(model)
        rows += measure(args, path)
        common.save_rows(args.json, rows)


if __name__ == "__main__":
    main()
