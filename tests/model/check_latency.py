#!/usr/bin/env python3
"""Compares the latency_us of a search, which is a sum of measured kernels, with whole runs in
onnxruntime.

    check_latency.py MSCGYM RUNTIME

RUNTIME is tools/mscgym-runtime. Needs numpy and onnxruntime; exits with 77 without them. Times may
be off by FACTOR, because other programs run on the machine.
"""
import json
import os
import subprocess
import sys
import tempfile

try:
    import numpy  # noqa: F401
    import onnxruntime
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

HERE = os.path.dirname(os.path.abspath(__file__))
DIGITS = os.path.join(HERE, "..", "..", "examples", "digits")
FACTOR = 3


def check(holds, what):
    if not holds:
        print(f"failed: {what}")
        sys.exit(1)


def search(mscgym, folder):
    """Searches in a folder; returns the report."""
    config = {
        "workspace": folder, "verbose": "warning", "model": os.path.join(DIGITS, "digits.onnx"),
        "dataset": {"inputs": os.path.join(DIGITS, "calibration.npz"), "samples": 64},
        "quantize": {"target": "onnxruntime", "runtime": {"rounds": 20}, "gym": [{
            "env": {"choices": [{"bits": 8}, {"float": True}], "objectives": ["latency_us"],
                    "bounds": {"distill_loss": {"max": 0.01}}},
            "agent": {"type": "evolutionary"}, "budget": {"trials": 20}}]},
    }
    path = os.path.join(folder, "search.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(config, file)
    made = subprocess.run([mscgym, "search", path, "--json"], check=True, stdout=subprocess.PIPE)
    return json.loads(made.stdout)[0]


def main():
    mscgym, runtime = sys.argv[1:3]
    os.environ["MSCGYM_RUNTIME"] = f"{sys.executable} {os.path.abspath(runtime)}"
    with tempfile.TemporaryDirectory() as folder:
        report = search(mscgym, folder)
        check(report["latency_of"].startswith(f"onnxruntime {onnxruntime.__version__}, 1 thread"),
              report["latency_of"])
        rows = [report["winner"], report["reference"], *report["baselines"]]
        for row in rows:
            said = row["metrics"]["latency_us"]
            # The report measures a whole batch.
            found = row["examined"].get("runtime", {}).get("latency_us")
            check(said > 0 and (found is None or said < FACTOR * found), f"{said} us, not {found}")
        least = min(row["metrics"]["latency_us"] for row in report["baselines"]
                    if row["state"] == "complete")
        check(report["winner"]["metrics"]["latency_us"] <= least, "the winner is the quickest")
        # `verify` reads the stored latencies and needs no runtime.
        os.environ["MSCGYM_RUNTIME"] = "no/runtime"
        verified = subprocess.run([mscgym, "verify", report["record"]], check=False,
                                  stdout=subprocess.PIPE, text=True)
        check(verified.returncode == 0, verified.stdout)
    print("ok")


if __name__ == "__main__":
    main()
