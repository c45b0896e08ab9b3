#!/usr/bin/env python3
"""Compares the kernel cases of tests/kernels/kernel_cases.def with ONNX Runtime.

    check_kernels.py KERNEL_TOOL

Each row is exported as a model of one operator, with random inputs. Integer outputs must equal ONNX
Runtime's, except that one element in a thousand may differ by one, because it rounds some quotients
differently. Float outputs must have NaN and infinities in the same places; elsewhere the squared
error must be at most LIMITS times the squared result. Exits with 77 if onnxruntime or numpy is
missing. bench/ops.py compares times.
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
    print(f"skipped: {error}; needs numpy and onnxruntime")
    sys.exit(77)

LIMITS = {numpy.dtype("float32"): 1e-9, numpy.dtype("float16"): 1e-5}


def session(path):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def run_tool(tool, *arguments):
    lines = subprocess.run([tool, *arguments], check=True, capture_output=True, text=True).stdout
    return [json.loads(line) for line in lines.splitlines()]


def describe(row):
    return f"row {row['row']}: {row['name'] or row['op']}, {row['attributes']}, {row['operands']}"


def open_row(folder, row):
    """The onnxruntime session and inputs of a row."""
    peer = session(os.path.join(folder, f"{row['row']}.onnx"))
    feeds = {x.name: numpy.load(os.path.join(folder, f"{row['row']}.x{i}.npy"))
             for i, x in enumerate(peer.get_inputs())}
    return peer, feeds


def difference(ours, theirs):
    """The reason why two outputs do not agree, or None."""
    if ours.dtype != theirs.dtype or ours.shape != theirs.shape:
        return f"{ours.dtype} {ours.shape}, ONNX Runtime has {theirs.dtype} {theirs.shape}"
    if ours.dtype not in LIMITS:
        steps = numpy.abs(ours.astype(numpy.int64) - theirs.astype(numpy.int64))
        n_wrong = numpy.count_nonzero(steps)
        if n_wrong > ours.size / 1000 or (n_wrong and steps.max() > 1):
            return f"{n_wrong} of {ours.size} elements differ, by up to {steps.max()}"
        return None
    a, b = ours.astype(numpy.float64), theirs.astype(numpy.float64)
    finite = numpy.isfinite(b)
    if not numpy.array_equal(a[~finite], b[~finite], equal_nan=True):
        return "other elements are NaN or infinite"
    error, power = numpy.sum((a[finite] - b[finite]) ** 2), numpy.sum(b[finite] ** 2)
    if not error <= LIMITS[ours.dtype] * power:
        return f"squared error {error:.3g} of {power:.3g}"
    return None


def check_row(folder, row):
    peer, feeds = open_row(folder, row)
    for i, theirs in enumerate(peer.run(None, feeds)):
        ours = numpy.load(os.path.join(folder, f"{row['row']}.y{i}.npy"))
        why = difference(ours, numpy.asarray(theirs))
        if why:
            return f"output {i}: {why}"
    return None


def check(tool, folder):
    """Compares all rows; returns the exit code."""
    n_wrong = 0
    rows = run_tool(tool, folder)
    for row in rows:
        try:
            why = check_row(folder, row)
        except Exception as error:  # onnxruntime raises exception types of its own
            why = str(error).splitlines()[0]
        if why:
            n_wrong += 1
            print(f"{describe(row)}: {why}")
    print(f"{len(rows)} rows, {n_wrong} differ from onnxruntime {onnxruntime.__version__}")
    return 1 if n_wrong else 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tool")
    tool = os.path.abspath(parser.parse_args().tool)
    with tempfile.TemporaryDirectory() as folder:
        return check(tool, folder)


sys.exit(main())
