#!/usr/bin/env python3
"""Processor times of models in ONNX Runtime, on one thread.

    models_times.py ROUNDS SAMPLES.npz MODEL.onnx...

Prints the microseconds of each model for the first of the samples, as a JSON list.
"""
import json
import sys
import time

import numpy
import onnxruntime

LONGEST = 20  # seconds


def part_of(value, n, first, end):
    """Samples of an array: along its first axis, or its second if the first does not have length `n`."""
    if not value.ndim:
        return value
    return value[first:end] if len(value) == n else value[:, first:end]


def rows(path, count=None):
    """The samples of a file as feeds of one sample each."""
    values = dict(numpy.load(path))
    n = max(len(v) for v in values.values() if v.ndim)
    return [{k: part_of(v, n, i, i + 1) for k, v in values.items()} for i in range(min(n, count or n))]


def session(path, optimised=True):
    levels = onnxruntime.GraphOptimizationLevel
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.graph_optimization_level = levels.ORT_ENABLE_ALL if optimised else levels.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def times(paths, feed, rounds):
    """The processor time of each model in microseconds: the lower quartile of rounds, as others may
    share the processor. The models take turns, in changing order."""
    runners = [session(path) for path in paths]
    counts = []
    for runner in runners:
        seconds = []
        for _ in range(8):
            start = time.thread_time()
            runner.run(None, feed)
            seconds.append(time.thread_time() - start)
        counts.append(max(1, min(1000, int(2e-3 / max(min(seconds), 1e-6)))))
    measured = [[] for _ in paths]
    begin = time.monotonic()
    for turn in range(rounds):
        if turn > 8 and time.monotonic() > begin + LONGEST:
            break
        for i in range(len(paths)):
            at = (i + turn) % len(paths)
            runners[at].run(None, feed)  # fills the caches
            start = time.thread_time()
            for _ in range(counts[at]):
                runners[at].run(None, feed)
            measured[at].append((time.thread_time() - start) / counts[at] * 1e6)
    return [float(numpy.quantile(found, 0.25)) for found in measured]


if __name__ == "__main__":
    print(json.dumps(times(sys.argv[3:], rows(sys.argv[2], 1)[0], int(sys.argv[1]))))
