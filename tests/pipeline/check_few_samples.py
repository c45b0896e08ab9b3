#!/usr/bin/env python3
"""Checks that choices fitted to few samples lose no more on other samples than rounding to nearest.

    check_few_samples.py MSCGYM

A network of two layers is searched with few random samples, for choices that round by second
moments, and measured on many other samples in onnxruntime. Records and scales must not depend on
threads, and a second launch has nothing to say.
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile

try:
    import numpy
    import onnx
    import onnxruntime
    from onnx import helper, numpy_helper
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

WIDTH, MIDDLE, OUTPUTS, OTHERS = 96, 96, 40, 2000
FITTED = [{"bits": 4, "rounding": "descent"}, {"bits": 4, "rounding": "gptq"},
          {"bits": 4, "rounding": "descent", "correct": "affine"}, {"bits": 4, "correct": "affine"},
          {"bits": 4, "group_size": 32, "rounding": "descent"}]
CHOICES = [{"bits": 4}, {"bits": 4, "group_size": 32}, *FITTED]
NOISE = 1.03  # how much worse a choice may be by chance


def check(holds, what):
    if not holds:
        print(f"failed: {what}")
        sys.exit(1)


def make_model(path):
    random = numpy.random.default_rng(0)
    shapes = {"w": (MIDDLE, WIDTH), "b": (MIDDLE,), "v": (OUTPUTS, MIDDLE), "c": (OUTPUTS,)}
    weights = [numpy_helper.from_array(random.standard_normal(shape, numpy.float32) / 10, name)
               for name, shape in shapes.items()]
    nodes = [helper.make_node("Gemm", ["x", "w", "b"], ["h"], transB=1), helper.make_node("Relu", ["h"], ["r"]),
             helper.make_node("Gemm", ["r", "v", "c"], ["y"], transB=1)]
    graph = helper.make_graph(nodes, "few", [helper.make_tensor_value_info("x", 1, ["n", WIDTH])],
                              [helper.make_tensor_value_info("y", 1, ["n", OUTPUTS])], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def run(*command):
    made = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, check=False)
    check(made.returncode == 0, f"{' '.join(map(str, command))}: {made.stdout}")
    return made.stdout


def told(text):
    return [line for line in text.splitlines() if "few samples" in line]


def outputs(path, x):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(path, options, ["CPUExecutionProvider"]).run(None, {"x": x})[0]


def losses(mscgym, x, others, exact):
    """Losses on the other samples by label, of the plans that have one choice."""
    numpy.savez("x.npz", x=x)
    config = {"model": "model.onnx", "workspace": "w", "dataset": {"inputs": "x.npz"},
              "quantize": {"target": "generic", "runtime": False, "gym": [{
                  "env": {"choices": CHOICES, "activations": {"float": True}}, "agent": {"type": "random"},
                  "budget": {"trials": 1}}]}}
    with open("config.json", "w", encoding="utf-8") as file:
        json.dump(config, file)
    shutil.rmtree("w", ignore_errors=True)
    text = run(mscgym, "search", "config.json", "--threads", 1)
    with open("w/quantize_0.jsonl", encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    found = {}
    for line in lines:
        if line.get("baseline"):
            run(mscgym, "export", "w/quantize_0.jsonl", "--trial", line["id"], "-o", "small.onnx")
            found[line["baseline"]] = ((outputs("small.onnx", others) - exact) ** 2).mean()
    return found, text


def check_few(mscgym, n, others, exact):
    x = numpy.random.default_rng(n).standard_normal((n, WIDTH), numpy.float32)
    found, text = losses(mscgym, x, others, exact)
    check(len(told(text)) == 1, f"{n} samples: {text}")
    for label, loss in found.items():
        nearest = found["4 g32" if "g32" in label else "4"]
        check(loss <= NOISE * nearest, f"{n} samples, {label}: {loss}, rounded to nearest {nearest}")
    return text


def check_same(mscgym, text):
    """The search again, continued, and with two threads."""
    with open("w/quantize_0.jsonl.params", "rb") as file:
        params = file.read()
    check(not told(run(mscgym, "search", "config.json", "--trials", 2)), "a second launch rounds again")
    shutil.rmtree("w")
    again = run(mscgym, "search", "config.json", "--threads", 2)
    with open("w/quantize_0.jsonl.params", "rb") as file:
        check(file.read() == params and told(again) == told(text), "threads change scales")
    run(mscgym, "verify", "w/quantize_0.jsonl")


def main():
    mscgym = os.path.abspath(sys.argv[1])
    os.chdir(tempfile.mkdtemp(prefix="few_samples_"))
    make_model("model.onnx")
    others = numpy.random.default_rng(99).standard_normal((OTHERS, WIDTH), numpy.float32)
    exact = outputs("model.onnx", others)
    for n in (4, 64, 24):
        text = check_few(mscgym, n, others, exact)
    check_same(mscgym, text)
    many = numpy.random.default_rng(7).standard_normal((2000, WIDTH), numpy.float32)
    found, text = losses(mscgym, many, others, exact)
    check(not told(text), f"many samples are few: {text}")
    check(found["4 descent"] < 0.9 * found["4"], f"descent is not used: {found}")
    print("few samples: passed")


if __name__ == "__main__":
    main()
