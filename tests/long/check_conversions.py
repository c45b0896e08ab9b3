#!/usr/bin/env python3
"""Compares the times that `mscgym quantize` predicts with those measured in ONNX Runtime.

    check_conversions.py MSCGYM [--seed N] [--only NAME ...]

Networks with random weights: small and wider convolutions, blocks of depthwise convolutions with
HardSwish and squeeze-and-excite, transformer layers, a Mamba block (element-wise joints over an
unrolled scan), an LSTM. For each, the plan with integers everywhere (`--float 0`) and the default plan.

(a) The prediction is within a factor of 1.5 of the measurement. Both agree on faster or slower than
    the float model, unless the ratio is 0.9 to 1.15.
(b) The default plan takes at most 1.1 times as long as integers everywhere (5 % and measurement
    noise).
(c) The default plan takes at most 1.06 times as long as the float model.
(d) A message says that the result is slower than the float model if it is slower by more than 3 %,
    and there is none if it is faster by more than 3 %. Without the runtime, the message depends on
    the prediction: above 1.06.

Prints a table; exits with 1 if a network fails. Needs onnx and onnxruntime in this Python.
"""
import argparse
import json
import math
import os
import subprocess
import sys
import tempfile

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

NEAR = (0.9, 1.15)


class Network:
    def __init__(self, seed):
        self.random = numpy.random.default_rng(seed)
        self.nodes, self.arrays = [], {}

    def weight(self, *shape, scale=None):
        fan = numpy.prod(shape[1:]) if len(shape) == 4 else shape[0]
        return self.constant(self.random.standard_normal(shape) * (scale or fan ** -0.5))

    def constant(self, value, kind="float32"):
        name = f"c{len(self.arrays)}"
        self.arrays[name] = numpy.asarray(value, kind)
        return name

    def add(self, op, inputs, **attributes):
        output = f"{op.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [output], name="n_" + output, **attributes))
        return output

    def conv(self, x, outputs, inputs, size, groups=1, stride=1, act=None):
        weight = self.weight(outputs, inputs // groups, size, size)
        y = self.add("Conv", [x, weight, self.weight(outputs, scale=0.1)], group=groups,
                     strides=[stride] * 2, pads=[size // 2] * 4)
        return self.add(act, [y]) if act else y

    def linear(self, x, inputs, outputs):
        return self.add("Add", [self.add("MatMul", [x, self.weight(inputs, outputs)]),
                                self.weight(outputs, scale=0.1)])

    def classes(self, x, width):
        x = self.add("Flatten", [self.add("GlobalAveragePool", [x])])
        return self.add("Gemm", [x, self.weight(width, 10), self.weight(10, scale=0.1)])

    def save(self, path, shape, y):
        self.nodes.append(helper.make_node("Identity", [y], ["y"], name="n_y"))
        graph = helper.make_graph(
            self.nodes, "network",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", *shape])],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
            [numpy_helper.from_array(v, k) for k, v in self.arrays.items()])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
        model.ir_version = 8
        onnx.save(onnx.shape_inference.infer_shapes(model), path)


def make_convolutions(n, width):
    x = n.conv("x", width, 3, 3, act="Relu")
    for _ in range(2):
        x = n.conv(n.conv(x, width, width, 3, act="Relu"), width, width, 3, act="Relu")
        x = n.add("MaxPool", [x], kernel_shape=[2, 2], strides=[2, 2])
    return n.classes(x, width)


def make_mobile(n, width, blocks):
    x = n.conv("x", width, 3, 3, stride=2, act="HardSwish")
    for _ in range(blocks):
        wide = 4 * width
        t = n.conv(n.conv(x, wide, width, 1, act="HardSwish"), wide, wide, 3, groups=wide,
                   act="HardSwish")
        s = n.conv(n.add("GlobalAveragePool", [t]), wide // 4, wide, 1, act="Relu")
        s = n.add("HardSigmoid", [n.conv(s, wide, wide // 4, 1)], alpha=1 / 6, beta=0.5)
        x = n.add("Add", [n.conv(n.add("Mul", [t, s]), width, wide, 1), x])
    return n.classes(x, width)


def make_transformer(n, width, length, heads):
    split = n.constant([0, length, heads, width // heads], "int64")
    merge = n.constant([0, length, width], "int64")
    root = n.constant((width // heads) ** 0.5)

    def norm(x):
        return n.add("LayerNormalization", [x, n.constant(numpy.ones(width)),
                                            n.weight(width, scale=0.1)], axis=-1)

    def part(x, order):
        return n.add("Transpose", [n.add("Reshape", [n.linear(x, width, width), split])],
                     perm=order)

    x = "x"
    for _ in range(2):
        q, k, v = part(x, [0, 2, 1, 3]), part(x, [0, 2, 3, 1]), part(x, [0, 2, 1, 3])
        p = n.add("Softmax", [n.add("Div", [n.add("MatMul", [q, k]), root])], axis=-1)
        a = n.add("Transpose", [n.add("MatMul", [p, v])], perm=[0, 2, 1, 3])
        x = norm(n.add("Add", [n.linear(n.add("Reshape", [a, merge]), width, width), x]))
        t = n.linear(x, width, 4 * width)
        e = n.add("Add", [n.add("Erf", [n.add("Div", [t, n.constant(2 ** 0.5)])]),
                          n.constant(1.0)])
        g = n.add("Mul", [n.add("Mul", [t, e]), n.constant(0.5)])
        x = norm(n.add("Add", [n.linear(g, 4 * width, width), x]))
    return x


def make_mamba(n, width, length, states):
    wide = 2 * width
    both = n.linear("x", width, 2 * wide)

    def half(begin):
        return n.add("Slice", [both] + [n.constant([i], "int64") for i in (begin, begin + wide, 2)])

    def silu(t):
        return n.add("Mul", [t, n.add("Sigmoid", [t])])

    def wider(t, axis):
        return n.add("Unsqueeze", [t, n.constant([axis], "int64")])

    def at(t, i):
        return n.add("Gather", [t, n.constant(i, "int64")], axis=1)

    x, gate = silu(half(0)), half(wide)
    step = wider(n.add("Softplus", [n.linear(x, wide, wide)]), 3)
    b, c = (n.add("MatMul", [x, n.weight(wide, states)]) for _ in range(2))
    decay = n.add("Exp", [n.add("Mul", [step, n.constant(-numpy.ones((wide, states)))])])
    drive = n.add("Mul", [n.add("Mul", [step, wider(b, 2)]), wider(x, 3)])
    state, outputs = at(drive, 0), []
    for i in range(length):
        if i > 0:
            state = n.add("Add", [n.add("Mul", [at(decay, i), state]), at(drive, i)])
        outputs.append(n.add("MatMul", [state, wider(at(c, i), 2)]))
    y = n.add("Transpose", [n.add("Concat", outputs, axis=2)], perm=[0, 2, 1])
    return n.linear(n.add("Mul", [n.add("Add", [y, x]), silu(gate)]), wide, width)


def make_lstm(n, width):
    x = n.add("Transpose", [n.linear("x", 32, width)], perm=[1, 0, 2])
    weights = [n.weight(1, 4 * width, width, scale=width ** -0.5) for _ in range(2)]
    x = n.add("LSTM", [x, *weights, n.weight(1, 8 * width, scale=0.1)], hidden_size=width)
    x = n.add("Transpose", [n.add("Squeeze", [x, n.constant([1], "int64")])], perm=[1, 0, 2])
    return n.linear(n.add("Relu", [n.linear(x, width, width)]), width, 10)


NETWORKS = {
    "convolutions, narrow": ((3, 20, 20), lambda n: make_convolutions(n, 12)),
    "convolutions, wide": ((3, 28, 28), lambda n: make_convolutions(n, 48)),
    "mobile": ((3, 64, 64), lambda n: make_mobile(n, 24, 4)),
    "transformer": ((48, 96), lambda n: make_transformer(n, 96, 48, 4)),
    "mamba": ((24, 48), lambda n: make_mamba(n, 48, 24, 8)),
    "lstm": ((24, 32), lambda n: make_lstm(n, 48)),
}


def quantise(program, folder, *options, runtime=True):
    """The report on the written plan, and the message that it is slower, if any."""
    # Puts this Python, which has onnxruntime, into the PATH. With MSCGYM_RUNTIME there is no runtime.
    path = os.path.dirname(sys.executable) + os.pathsep + os.environ["PATH"]
    environment = dict(os.environ, PATH=path)
    if not runtime:
        environment["MSCGYM_RUNTIME"] = "false"
    found = []
    for form in (["--json"], []):
        result = subprocess.run(
            [program, "quantize", "m.onnx", "--inputs", "x.npz", "-o", "q.onnx", "--threads", "1",
             "--quiet", *options, *form], cwd=folder, env=environment, capture_output=True,
            text=True)
        if result.returncode != 0:
            sys.exit(result.stderr)
        found.append(result.stdout)
    best = json.loads(found[0])["plans"][0]
    runtime = best.get("examined", {}).get("runtime", {})
    lines = [s for s in found[1].splitlines() if s.startswith("slower than")]
    return best, runtime, lines


def quartiles(runtime):
    rounds = sorted(runtime["us_by_round"])
    return rounds[len(rounds) // 4], rounds[3 * len(rounds) // 4]


def check_network(program, folder, name):
    best, runtime, _ = quantise(program, folder, "--float", "0")
    default, of_default, lines = quantise(program, folder)
    alone, unmeasured, predicted_lines = quantise(program, folder, runtime=False)
    measured, predicted = runtime["latency_ratio"], best["predicted_ratio"]
    near = NEAR[0] <= measured <= NEAR[1] or NEAR[0] <= predicted <= NEAR[1]
    failures = []
    if abs(math.log(predicted / measured)) > math.log(1.5):
        failures.append("prediction is far")
    if not near and (predicted > 1) != (measured > 1):
        failures.append("prediction is on the other side")
    if of_default["latency_ratio"] > 1.1 * measured:
        failures.append("the default is slower than all integers")
    if of_default["latency_ratio"] > 1.06:
        failures.append("the default is slower than floats")
    if abs(of_default["latency_ratio"] - 1) > 0.03 and (of_default["latency_ratio"] > 1) != bool(lines):
        failures.append("what the line says is not so")
    if "latency_ratio" in unmeasured:
        failures.append("there is a runtime")
    if alone["predicted_ratio"] > 1.06 and not predicted_lines:
        failures.append("no line says that it is slower")
    low, high = quartiles(runtime)
    print(f"| {name} | {predicted:.2f} | {measured:.2f} | {low:.0f}-{high:.0f} us | "
          f"{default['float']:.0f} | {of_default['latency_ratio']:.2f} | {alone['float']:.0f} | "
          f"{'; '.join(failures)} |", flush=True)
    return not failures


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", nargs="*", default=list(NETWORKS))
    arguments = parser.parse_args()
    program, fits = os.path.abspath(arguments.program), True
    print("| network | all integers / float, predicted | measured | quartiles | default: left float | "
          "its time / float | without the runtime: left float | |\n|---|---|---|---|---|---|---|---|")
    for name in arguments.only:
        shape, make = NETWORKS[name]
        with tempfile.TemporaryDirectory() as folder:
            network = Network(arguments.seed)
            network.save(os.path.join(folder, "m.onnx"), shape, make(network))
            samples = network.random.standard_normal((40, *shape)).astype("float32")
            numpy.savez(os.path.join(folder, "x.npz"), x=samples)
            fits = check_network(program, folder, name) and fits
    sys.exit(int(not fits))


main()
