#!/usr/bin/env python3
"""Compares the report of `mscgym quantize` with its model in onnxruntime, and checks that the model
loses less than one from onnxruntime's own quantize_static.

    check_quick.py MSCGYM RUNTIME

RUNTIME is tools/mscgym-runtime. Needs numpy, onnx and onnxruntime; exits with 77 without them.
"""
import json
import os
import subprocess
import sys
import tempfile

try:
    import numpy
    import onnx  # noqa: F401
    import onnxruntime
    from onnxruntime.quantization import QuantFormat, quantize_static
    from onnxruntime.quantization.calibrate import CalibrationDataReader
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

DIGITS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples", "digits")
MODEL = os.path.join(DIGITS, "digits.onnx")
INPUTS = os.path.join(DIGITS, "calibration.npz")


def check(holds, what):
    if not holds:
        print(f"failed: {what}")
        sys.exit(1)


def loss(path, samples):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1

    def outputs(model):
        session = onnxruntime.InferenceSession(model, options, ["CPUExecutionProvider"])
        return session.run(None, {"image": samples})[0].astype("float64")

    y = outputs(MODEL)
    return numpy.mean((outputs(path) - y) ** 2) / numpy.mean(y ** 2)


class Reader(CalibrationDataReader):
    def __init__(self, samples):
        self.rows = iter([{"image": samples[i:i + 1]} for i in range(len(samples))])

    def get_next(self):
        return next(self.rows, None)


def quantize(mscgym, folder, *more):
    out = os.path.join(folder, "small.onnx")
    made = subprocess.run([mscgym, "quantize", MODEL, "--inputs", INPUTS, "-o", out, "--json", *more],
                          check=True, stdout=subprocess.PIPE, cwd=folder)
    check(os.listdir(folder) == ["small.onnx"], f"only the output is left: {os.listdir(folder)}")
    return out, json.loads(made.stdout)


def main():
    mscgym, runtime = map(os.path.abspath, sys.argv[1:3])
    os.environ["MSCGYM_RUNTIME"] = f"{sys.executable} {runtime}"
    samples = numpy.load(INPUTS)["image"]
    held_back = samples[-(len(samples) // 5):]
    unseen = numpy.load(os.path.join(DIGITS, "validation.npz"))["image"]
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "static.onnx")
        quantize_static(MODEL, path, Reader(samples), quant_format=QuantFormat.QDQ, per_channel=True)
        others = loss(path, unseen)
    losses = {}
    for n in (0, 4):
        with tempfile.TemporaryDirectory() as folder:
            path, report = quantize(mscgym, folder, "--float", str(n), "--effort", "best")
            best = report["plans"][0]
            said = best["examined"]["runtime"]["validation"]["distill_loss"]
            found = loss(path, held_back)
            check(abs(found / said - 1) < 1e-4, f"the loss in the runtime, {said} and {found}")
            check(abs(found / best["examined"]["validation"]["distill_loss"] - 1) < 0.02,
                  "the loss as mscgym computes it")
            check(report["held_back"] == len(held_back), "a fifth is held back")
            check(best["float"] <= n, "no more tensors are float than may be")
            check(best["improved"] > 0, "weights are improved")
            check(all(plan["examined"]["validation"]["distill_loss"] >=
                      best["examined"]["validation"]["distill_loss"] for plan in report["plans"]
                      if plan["float"] == best["float"]), "the best loses least")
            losses[n] = loss(path, unseen)
    for effort in ("fast", "default"):
        with tempfile.TemporaryDirectory() as folder:
            path, report = quantize(mscgym, folder, "--effort", effort)
            check(report["effort"] == effort, "the effort")
            losses[effort] = loss(path, unseen)
            check(losses[effort] < others,
                  f"{effort}: less is lost than by quantize_static, {losses[effort]} and {others}")
    check(losses["default"] < losses["fast"], f"the default loses less than fast, {losses}")
    check(losses[0] < losses["fast"], f"best loses less than fast, {losses}")
    check(losses[0] < others, f"less is lost than by quantize_static, {losses[0]} and {others}")
    check(best["float"] > 0 and losses[4] < losses[0], f"tensors left float pay, {losses}")


if __name__ == "__main__":
    main()
