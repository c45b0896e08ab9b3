#!/usr/bin/env python3
"""Checks time and memory on a model whose float32 weights are external data.

    check_memory.py MSCGYM [--parameters N] [--trials N]

Makes a chain of matrix products with N random weights (100 million) and runs, beside onnxruntime's
quantize_dynamic: graph, quantize, a search of weights, and export. The peak of resident memory,
pages of files included, may be 1.2 times --memory; times are CPU time, since other programs may run.

    graph       3 s per billion weights, and a second to start; at most 256 MB
    quantize    twice quantize_dynamic's CPU time (with --effort fast)
    search      every trial has a finite loss
    export      above 2 GB with weights in a second file; onnxruntime's outputs equal the original's
    cut short   a message says that the weights were cut short while they were in use
    too little  a search refuses a --memory that is too small in one line, which names the least

Prints a table; exits with 1 if a check fails, with 77 if onnx or onnxruntime are missing.
"""
import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

try:
    import numpy
    import onnx
    import onnxruntime
    from onnx import TensorProto, helper
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

WIDTH = 4096
PAGE = 4096
DYNAMIC = """import sys
from onnxruntime.quantization import quantize_dynamic
quantize_dynamic(sys.argv[1], sys.argv[2], use_external_data_format=True)
"""


class Model:
    """The model, written weight by weight."""

    def __init__(self, folder, parameters):
        self.path = os.path.join(folder, "model.onnx")
        self.weights = []
        self.rng = numpy.random.default_rng(0)
        nodes, value = [], "input"
        n_layers = max(2, round(parameters / WIDTH ** 2))
        with open(self.path + ".data", "wb") as file:
            for i in range(n_layers):
                scale = numpy.float32((2 / WIDTH) ** 0.5)
                self.put(file, f"w{i}", self.rng.standard_normal((WIDTH, WIDTH), numpy.float32) * scale)
                self.put(file, f"b{i}", self.rng.standard_normal(WIDTH, numpy.float32) * numpy.float32(0.1))
                out = "output" if i == n_layers - 1 else f"a{i}"
                nodes += [helper.make_node("MatMul", [value, f"w{i}"], [f"m{i}"], f"matmul_{i}"),
                          helper.make_node("Add", [f"m{i}", f"b{i}"], [out], f"add_{i}")]
                value = out
                if out != "output":
                    nodes.append(helper.make_node("Relu", [out], [f"r{i}"], f"relu_{i}"))
                    value = f"r{i}"
        ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N", WIDTH]) for name in ("input", "output")]
        graph = helper.make_graph(nodes, "chain", ends[:1], ends[1:], self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
        model.ir_version = 8
        with open(self.path, "wb") as file:
            file.write(model.SerializeToString())
        self.samples = self.rng.standard_normal((64, WIDTH), numpy.float32)
        self.inputs = os.path.join(folder, "inputs.npz")
        numpy.savez(self.inputs, input=self.samples)
        self.n_bytes = os.path.getsize(self.path + ".data")

    def put(self, file, name, array):
        file.write(b"\0" * (-file.tell() % PAGE))
        tensor = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=array.shape,
                             data_location=TensorProto.EXTERNAL)
        for key, text in (("location", "model.onnx.data"), ("offset", file.tell()), ("length", array.nbytes)):
            tensor.external_data.add(key=key, value=str(text))
        array.tofile(file)
        file.flush()
        file.seek(0, os.SEEK_END)
        self.weights.append(tensor)


class Checks:
    def __init__(self, mscgym, folder):
        self.mscgym, self.folder, self.failures = mscgym, folder, 0

    def run(self, *command):
        """The exit code, output, CPU seconds and peak bytes of a command."""
        log = os.path.join(self.folder, "log")
        with open(log, "wb") as file:
            process = subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT, cwd=self.folder)
            _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        with open(log, encoding="utf-8", errors="replace") as file:
            text = file.read()
        return process.returncode, text, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024

    def check(self, what, limit_s, limit_bytes, *arguments, code=0):
        found, text, seconds, n_bytes = self.run(self.mscgym, *arguments)
        is_good = found == code and seconds <= limit_s and n_bytes <= limit_bytes
        self.failures += not is_good
        print(f"{what:12} {seconds:8.2f} s of {limit_s:<8.4g} {n_bytes / 1e6:8.0f} MB of {limit_bytes / 1e6:<8.0f}"
              f"{'ok' if is_good else 'FAILED'}", flush=True)
        if found != code:
            print(text[-2000:])
        return text

    def expect(self, what, is_good):
        self.failures += not is_good
        if not is_good:
            print(f"{what}: FAILED")


def write_config(folder, n_trials):
    env = {"choices": [{"bits": 8}, {"bits": 4, "group_size": 32}], "activations": {"float": True},
           "bounds": {"size_ratio": {"max": 0.2}}}
    config = {"model": "model.onnx", "dataset": {"inputs": "inputs.npz"},
              "quantize": {"gym": [{"record": "r.jsonl", "agent": {"type": "evolutionary"},
                                    "budget": {"trials": n_trials}, "env": env}]}}
    with open(os.path.join(folder, "c.json"), "w", encoding="utf-8") as file:
        json.dump(config, file)


def outputs_of(path, samples):
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return session.run(None, {"input": samples})[0]


def check_all(checks, model, parameters, n_trials):
    unlimited, memory = float("inf"), max(10 ** 9, 3 * parameters)
    allowed = 1.2 * memory
    checks.check("graph", 1 + 3e-9 * parameters, 256 << 20, "graph", model.path)
    _, _, dynamic_s, _ = checks.run(sys.executable, "-c", DYNAMIC, model.path, "dynamic.onnx")
    help_text = subprocess.run([checks.mscgym, "quantize", "--help"], capture_output=True, text=True, check=True)
    effort = ["--effort", "fast"] if "--effort" in help_text.stdout else []
    checks.check("quantize", 2 * dynamic_s if effort else unlimited, allowed, "quantize", model.path, "--inputs",
                 model.inputs, "-o", "small.onnx", "--memory", str(memory), *effort)
    write_config(checks.folder, n_trials)
    checks.check("search", unlimited, allowed, "search", "c.json", "--memory", str(memory))
    with open(os.path.join(checks.folder, "msc_workspace", "r.jsonl"), encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    losses = [line["metrics"]["distill_loss"] for line in lines if line.get("state") == "complete"]
    checks.expect("losses of trials", len(losses) > 1 and all(0 <= x < 1 for x in losses))
    text = checks.check("too little", unlimited, allowed, "search", "c.json", "--restart", "--memory", "100M", code=2)
    checks.expect("the least memory is named", "needs at least" in text or "would exceed the memory limit" in text)
    checks.check("export", unlimited, max(allowed, 1.2 * model.n_bytes), "export", "--model", model.path, "-o", "copy.onnx")
    copy = os.path.join(checks.folder, "copy.onnx")
    checks.expect("weights in a second file", os.path.exists(copy + ".data") == (model.n_bytes > 2 ** 31))
    expected, found = outputs_of(model.path, model.samples), outputs_of(copy, model.samples)
    checks.expect("equal outputs", numpy.allclose(expected, found, atol=1e-5 * numpy.abs(expected).max()))


def check_cut_short(checks, model):
    """Cuts the weights short while they are in use."""
    command = [checks.mscgym, "quantize", model.path, "--inputs", model.inputs, "-o", "cut.onnx"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, cwd=checks.folder)
    time.sleep(2)
    os.truncate(model.path + ".data", PAGE)
    _, text = process.communicate()
    checks.expect("a message if weights are cut short",
                  process.returncode == -signal.SIGBUS and "model's weights" in text)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("mscgym", type=os.path.abspath)
    parser.add_argument("--parameters", type=float, default=1e8)
    parser.add_argument("--trials", type=int, default=8, help="of the search")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="check_memory_") as folder:
        checks = Checks(arguments.mscgym, folder)
        model = Model(folder, arguments.parameters)
        check_all(checks, model, int(arguments.parameters), arguments.trials)
        check_cut_short(checks, model)
    return 1 if checks.failures else 0


if __name__ == "__main__":
    sys.exit(main())
