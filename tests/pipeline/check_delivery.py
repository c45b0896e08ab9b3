#!/usr/bin/env python3
"""Compares the figures that a search reports for its winner in onnxruntime with onnxruntime itself:
losses, file sizes, version.

    check_delivery.py MSCGYM RUNTIME

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
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

HERE = os.path.dirname(os.path.abspath(__file__))
DIGITS = os.path.join(HERE, "..", "..", "examples", "digits")
BATCH = 64


def check(holds, what):
    if not holds:
        print(f"failed: {what}")
        sys.exit(1)


def outputs(path, samples):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(path, options, ["CPUExecutionProvider"])
    name = session.get_inputs()[0].name
    return numpy.concatenate([session.run(None, {name: samples[i:i + BATCH]})[0]
                              for i in range(0, len(samples), BATCH)]).astype("float64")


def loss(path, samples):
    y = outputs(os.path.join(DIGITS, "digits.onnx"), samples)
    return numpy.mean((outputs(path, samples) - y) ** 2) / numpy.mean(y ** 2)


def search(mscgym, folder, **more):
    """Searches in a folder; returns the report."""
    config = {
        "workspace": folder, "verbose": "warning", "model": os.path.join(DIGITS, "digits.onnx"),
        "dataset": {"inputs": os.path.join(DIGITS, "calibration.npz"), "samples": 200,
                    "batch": BATCH,
                    "validation": {"inputs": os.path.join(DIGITS, "validation.npz")}},
        "quantize": {"target": "onnxruntime", "runtime": {"rounds": 5}, "gym": [{
            "env": {"choices": [{"bits": 8}, {"bits": 4, "observer": "mse"}],
                    "bounds": {"size_ratio": {"max": 0.2}}},
            "agent": {"type": "random"}, "budget": {"trials": 40}, **more}]},
    }
    path = os.path.join(folder, "search.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(config, file)
    made = subprocess.run([mscgym, "search", path, "--json"], check=True, stdout=subprocess.PIPE)
    return json.loads(made.stdout)[0]


def main():
    mscgym, runtime = sys.argv[1:3]
    os.environ["MSCGYM_RUNTIME"] = f"{sys.executable} {os.path.abspath(runtime)}"
    calibration = numpy.load(os.path.join(DIGITS, "calibration.npz"))
    calibration = calibration[calibration.files[0]][:200]
    validation = numpy.load(os.path.join(DIGITS, "validation.npz"))
    validation = validation[validation.files[0]]
    with tempfile.TemporaryDirectory() as folder:
        report = search(mscgym, folder)
        check(report["runtime"]["version"] == onnxruntime.__version__, "the version")
        rows = {row["id"]: row for row in [report["winner"], *report["baselines"]]}
        check(len(rows) == 3 and report["winner"]["id"] > 1, "a winner of its own")
        for row in rows.values():
            path = os.path.join(folder, "plan.onnx")
            subprocess.run([mscgym, "export", report["record"], "--trial", str(row["id"]), "-o",
                            path, "--quiet"], check=True)
            said = row["examined"]["runtime"]
            for samples, value in ((calibration, said["distill_loss"]),
                                   (validation, said["validation"]["distill_loss"])):
                check(abs(value / loss(path, samples) - 1) < 1e-3, f"loss of {row['id']}")
            larger = os.path.getsize(path) - row["examined"]["file_bytes"]
            # An exported file also names its record.
            check(0 < larger < 200, f"file of {row['id']}: {larger}")
            check(len(said["us_by_round"]) == 5 and said["latency_us"] > 0, "latency")
        float_row = report["reference"]["examined"]
        check(float_row["file_bytes"] == os.path.getsize(os.path.join(DIGITS, "digits.onnx")),
              "float file")
        check(float_row["runtime"]["distill_loss"] < 1e-10, "float loss")
    with tempfile.TemporaryDirectory() as folder:
        report = search(mscgym, folder, distill=True)
        path = os.path.join(folder, "digits.onnx")  # the model that the search delivered
        said = report["distilled"]["examined"]
        for samples, value in ((calibration, said["runtime"]["distill_loss"]),
                               (validation, said["runtime"]["validation"]["distill_loss"])):
            check(abs(value / loss(path, samples) - 1) < 1e-3, "loss of the distilled plan")
        check(said["runtime"]["distill_loss"] < report["winner"]["examined"]["runtime"]["distill_loss"],
              "a lower loss in the runtime")
        check(0 < os.path.getsize(path) - said["file_bytes"] < 200, "file of the distilled plan")
    print("ok")


if __name__ == "__main__":
    main()
