#!/usr/bin/env python3
"""Tests inputs whose samples are not on the first axis, as the states of a recurrent layer.

    check_axes.py MSCGYM RUNTIME

RUNTIME is tools/mscgym-runtime. An LSTM has the inputs x and h0, c0 [1, samples, hidden]. The open
lengths have one name, or none; x has the samples first, or the steps. For each, `run --inputs` must
give onnxruntime's outputs, and `quantize` must report, for any batch, the loss that numpy computes
from onnxruntime's outputs. States with the samples first are refused with what to do. On a terminal
or in JSON, the progress names the steps of the preparation.

Needs numpy, onnx and onnxruntime; exits with 77 without them.
"""
import json
import os
import subprocess
import sys
import tempfile

try:
    import numpy as np
    import onnx
    import onnxruntime
    from onnx import helper, numpy_helper
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

WIDTH, HIDDEN, STEPS, N = 8, 16, 5, 40
rng = np.random.default_rng(3)
failed = []


def normal(*shape):
    return rng.standard_normal(shape).astype(np.float32)


def save(path, x_shape, state_shape, has_steps_first):
    def info(name, shape):
        return helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape)
    weights = {"w": normal(1, 4 * HIDDEN, WIDTH) / 2, "r": normal(1, 4 * HIDDEN, HIDDEN) / 4, "zero": np.array([0]),
               "b": normal(1, 8 * HIDDEN) / 4, "head": normal(HIDDEN, 4)}
    turn = helper.make_node("Identity" if has_steps_first else "Transpose", ["x"], ["xt"],
                            **({} if has_steps_first else {"perm": [1, 0, 2]}))
    nodes = [turn, helper.make_node("LSTM", ["xt", "w", "r", "b", "", "h0", "c0"], ["ys", "hn"], hidden_size=HIDDEN),
             helper.make_node("Squeeze", ["hn", "zero"], ["last"]),
             helper.make_node("MatMul", ["last", "head"], ["y"])]
    graph = helper.make_graph(nodes, "net", [info("x", x_shape), info("h0", state_shape), info("c0", state_shape)],
                              [info("y", [state_shape[1], 4])],
                              [numpy_helper.from_array(v, k) for k, v in weights.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, path)


def check(name, holds, why=""):
    print(("ok    " if holds else "BAD   ") + name + ("" if holds else f": {why}"))
    if not holds:
        failed.append(name)


def evaluate(path, feeds):
    return onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"]).run(["y"], feeds)[0].astype(float)


def call(program, *words, **more):
    return subprocess.run([program, *map(str, words)], capture_output=True, text=True, check=False,
                          env={**os.environ, **more})


def check_model(program, name, feeds, axis_of_x):
    np.savez("samples.npz", **feeds)
    model, truth = f"{name}.onnx", evaluate(f"{name}.onnx", feeds)
    made = call(program, "run", model, "--inputs", "samples.npz", "-o", "out.npz")
    found = np.load("out.npz")["y"].reshape(truth.shape) if made.returncode == 0 else np.inf
    check(f"{name}: run", np.abs(found - truth).max() < 1e-5, f"{made.stderr} {np.abs(found - truth).max()}")
    for batch in (1, 3, N):
        made = call(program, "quantize", model, "--inputs", "samples.npz", "-o", "small.onnx", "--batch", batch,
                    "--json", "--effort", "fast")
        check(f"{name} in batches of {batch}: quantize", made.returncode == 0, made.stderr)
        if made.returncode != 0:
            continue
        report = json.loads(made.stdout)
        last = np.arange(N - report["held_back"], N)
        held = {k: v.take(last, axis=axis_of_x if k == "x" else 1) for k, v in feeds.items()}
        y, z = evaluate(model, held), evaluate("small.onnx", held)
        expected = np.mean((y - z) ** 2) / np.mean(y ** 2)
        examined = report["plans"][0]["examined"]
        said = examined["runtime"].get("validation", {}).get("distill_loss", np.nan)
        own = examined["validation"]["distill_loss"]
        check(f"{name} in batches of {batch}: the loss in the runtime", abs(said / expected - 1) < 1e-3,
              f"{said}, expected {expected}; {made.stderr}")
        check(f"{name} in batches of {batch}: the loss", abs(own / expected - 1) < 0.05, f"{own}, {expected}")


def main():
    program, runtime = map(os.path.abspath, sys.argv[1:3])
    os.environ["MSCGYM_RUNTIME"] = f"{sys.executable} {runtime}"
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        save("named.onnx", ["batch", STEPS, WIDTH], [1, "batch", HIDDEN], False)
        save("unnamed.onnx", [None, STEPS, WIDTH], [1, None, HIDDEN], False)
        save("steps.onnx", ["steps", "batch", WIDTH], [1, "batch", HIDDEN], True)
        feeds = {"x": normal(N, STEPS, WIDTH), "h0": normal(1, N, HIDDEN) / 2, "c0": normal(1, N, HIDDEN) / 2}
        turned = {**feeds, "x": np.ascontiguousarray(np.swapaxes(feeds["x"], 0, 1))}
        check_model(program, "named", feeds, 0)
        check_model(program, "unnamed", feeds, 0)
        check_model(program, "steps", turned, 1)
        np.savez("samples.npz", **{**feeds, "h0": np.moveaxis(feeds["h0"], 1, 0)})
        made = call(program, "quantize", "named.onnx", "--inputs", "samples.npz", "-o", "small.onnx")
        check("samples first", made.returncode != 0 and "numpy.moveaxis" in made.stderr, made.stderr)
        np.savez("samples.npz", **feeds)
        made = call(program, "quantize", "named.onnx", "--inputs", "samples.npz", "-o", "small.onnx",
                    MSCGYM_PROGRESS="json")
        steps = [json.loads(line)["progress"].get("measuring", "") for line in made.stderr.splitlines()
                 if line.startswith('{"progress"')]
        for step in ("values of tensors", "ranges", "rounded weights"):
            check(f"progress: {step}", any(s.startswith(step + ", ") for s in steps), f"{steps}")
        os.chdir("/")
    print(f"{len(failed)} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
