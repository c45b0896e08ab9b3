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
import os
import statistics
import tempfile

import numpy
import onnx
import onnx.version_converter
import onnxruntime
from onnxruntime.quantization import CalibrationMethod, QuantFormat, QuantType, quantize_static
from onnxruntime.quantization.calibrate import CalibrationDataReader
from onnxruntime.quantization.shape_inference import quant_pre_process

import common
import delivered

METHODS = {"minmax": CalibrationMethod.MinMax, "entropy": CalibrationMethod.Entropy,
           "percentile": CalibrationMethod.Percentile}


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


def islands(trials):
    """A search that may give weights 4 bits and leave what loses most in float."""
    return {"env": {"choices": [{"float": True}, {"bits": 8}, {"bits": 8, "observer": "mse"},
                                {"bits": 4, "observer": "mse"}],
                    "bounds": {"size_ratio": {"max": 0.25}}},
            "agent": {"type": "evolutionary", "population": 16}, "budget": {"trials": trials}}


def prepare(model, ready, folder):
    """What quantize_static is to be given. Scales per channel need operator set 13."""
    loaded = onnx.load(model)
    if max(o.version for o in loaded.opset_import if o.domain in ("", "ai.onnx")) < 13:
        model = os.path.join(folder, "converted.onnx")
        onnx.save(onnx.version_converter.convert_version(loaded, 17), model)
    quant_pre_process(model, ready, skip_symbolic_shape=True)


def quantize(folder, model, samples, method):
    ready = os.path.join(folder, "ready.onnx")
    if not os.path.exists(ready):
        prepare(model, ready, folder)
    path = os.path.join(folder, method + ".onnx")
    quantize_static(ready, path, Reader(samples), quant_format=QuantFormat.QDQ, per_channel=True,
                    activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8,
                    calibrate_method=METHODS[method])
    return path


def measure_search(args, folder, model, samples, base, uniform):
    """The winner of a search with float islands, beside uniform 8: (file, loss in the runtime)."""
    name = os.path.splitext(os.path.basename(model))[0]
    winner, said, noise = delivered.search(args.mscgym, os.path.join(folder, "search"), model,
                                           samples, "onnxruntime", args.batch, islands(args.trials))
    found = loss(base, session(winner), samples, args.batch)
    delivered.tell_loss(name, f"{args.trials} trials", said, found, noise)
    ours, theirs = os.path.getsize(winner), os.path.getsize(uniform[0])
    print(f"{name}: file {ours} bytes, uniform 8 {theirs} ({ours / theirs:.3f}), loss "
          f"{found / uniform[1]:.3f} of its"
          f"{'' if ours <= theirs or found < uniform[1] else ' WRONG'}", flush=True)
    return common.row("runtime", name, "1 / loss of a search", "uniform 8",
                      [(1 / found, 1 / uniform[1])])


def measure(args, model):
    name = os.path.splitext(os.path.basename(model))[0]
    samples, batch = delivered.samples_of(model, args.samples), args.batch
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        ours, said, noise = delivered.search(args.mscgym, os.path.join(folder, "uniform"), model,
                                             samples, "onnxruntime", batch, delivered.UNIFORM)
        base, s = session(model), session(ours)
        found = loss(base, s, samples, batch)
        theirs = {}
        for method in METHODS:
            try:
                path = quantize(folder, model, samples, method)
                theirs[method] = (loss(base, session(path), samples, batch), path)
            except Exception as error:  # what it cannot quantise is a result, too
                print(f"{name}: quantize_static, {method}: {str(error).splitlines()[0][:100]}")
        delivered.tell_loss(name, "uniform 8", said, found, noise)
        if args.trials:
            rows.append(measure_search(args, folder, model, samples, base, (ours, found)))
        sessions = [base, s] + [session(theirs["minmax"][1])] * ("minmax" in theirs)
        feed = {k: v[:1] for k, v in samples.items()}
        rounds = delivered.latency([lambda s=s: s.run(None, feed) for s in sessions], args.rounds)
        print(f"{name}: latency / float {delivered.quartiles(delivered.ratios(rounds, 1, 0))}")
        if not theirs:
            return rows
        print(f"{name}: quantize_static: loss " +
              ", ".join(f"{m} {v[0]:.5g}" for m, v in theirs.items()) +
              f"; latency / float {delivered.quartiles(delivered.ratios(rounds, 2, 0))}; ours / "
              f"theirs {delivered.quartiles(delivered.ratios(rounds, 1, 2))}", flush=True)
        # Higher is better in both.
        return rows + [
            common.row("runtime", name, "speed", "quantize_static",
                       [(times[0] / times[1], times[0] / times[2]) for times in rounds]),
            common.row("runtime", name, "1 / loss", "quantize_static",
                       [(1 / found, 1 / min(v[0] for v in theirs.values()))])]


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
