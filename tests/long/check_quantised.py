#!/usr/bin/env python3
"""Tests models that are already quantised. Two correct kernels may differ by one step, but no more.

    check_quantised.py MSCGYM [--device cpu|vulkan:0] [--seeds N] [--only NAME ...]

Small networks with random weights, quantised by onnxruntime.quantization in every form:

    cnn    convolutions, a depthwise one, ReLU, a sum   QDQ: u8 and s8, per tensor and per channel
    chain  only convolutions and a matrix product       QOperator (QLinearConv, QLinearMatMul)
    bert   three layers of attention, from word indices QDQ, and quantize_dynamic: u8, s8, per channel

(a) Joint by joint: onnxruntime runs each node by itself, optimiser off, on mscgym's tensors. Floats
    must be close to mscgym's, and at most 1 of 1,000 integers may differ, by one step.
(b) `mscgym search` with the stage `baseline`, which counts these steps, must pass.
(c) In a copy of a cnn, the zero points of one tensor are moved by one. (a) must report it.

The table shows how far mscgym is from onnxruntime without its optimiser end to end, and how far
onnxruntime is from itself with it: the share of output elements that differ by more than 1e-4, and
the maximum. Exits with 1 if a model fails. Needs onnx and onnxruntime.
"""
import argparse
import json
import logging
import os
import re
import subprocess
import sys
import tempfile

import numpy
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import QuantFormat, QuantType, quantize_dynamic, quantize_static

BATCH, SEQUENCE, WORDS, WIDTH, HEADS = 8, 24, 400, 64, 4
U8, S8 = QuantType.QUInt8, QuantType.QInt8
STATIC = {"u8s8": (U8, S8, False), "u8s8 channels": (U8, S8, True), "s8s8": (S8, S8, False),
          "s8s8 channels": (S8, S8, True), "u8u8": (U8, U8, False)}
DYNAMIC = {"s8": (S8, False), "u8": (U8, False), "s8 channels": (S8, True)}


class Network:
    """Nodes and initialisers of a float model under construction."""

    def __init__(self, seed):
        self.random = numpy.random.default_rng(seed)
        self.nodes, self.weights = [], {}

    def weight(self, name, *shape, scale=None):
        fan = numpy.prod(shape[1:]) if len(shape) == 4 else shape[0]
        scale = fan ** -0.5 if scale is None else scale
        self.weights[name] = (self.random.standard_normal(shape) * scale).astype("float32")
        return name

    def constant(self, name, value, kind="float32"):
        self.weights[name] = numpy.asarray(value, kind)
        return name

    def add(self, op, inputs, output, **attributes):
        self.nodes.append(helper.make_node(op, inputs, [output], name="node_" + output,
                                           **attributes))
        return output

    def conv(self, x, name, channels, inputs, size, groups=1):
        self.weight(name + "_w", channels, inputs // groups, size, size)
        self.weight(name + "_b", channels, scale=0.3)
        return self.add("Conv", [x, name + "_w", name + "_b"], name, group=groups,
                        pads=[size // 2] * 4)

    def linear(self, x, name, inputs, outputs):
        self.weight(name + "_w", inputs, outputs)
        self.weight(name + "_b", outputs, scale=0.1)
        return self.add("Add", [self.add("MatMul", [x, name + "_w"], name + "_mm"), name + "_b"],
                        name)

    def norm(self, x, name):
        self.weights[name + "_g"] = (1 + 0.2 * self.random.standard_normal(WIDTH)).astype("float32")
        self.weight(name + "_b", WIDTH, scale=0.1)
        return self.add("LayerNormalization", [x, name + "_g", name + "_b"], name, axis=-1)

    def save(self, path, inputs, outputs):
        arrays = [numpy_helper.from_array(v, k) for k, v in self.weights.items()]
        graph = helper.make_graph(self.nodes, "network", inputs, outputs, arrays)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
        model.ir_version = 8
        onnx.checker.check_model(model)
        onnx.save(model, path)


def value(name, shape, kind=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, kind, shape)


def images(seed, n):
    return {"x": numpy.random.default_rng(seed).standard_normal((n, 3, 24, 24)).astype("float32")}


def words(seed, n):
    random = numpy.random.default_rng(seed)
    lengths = random.integers(SEQUENCE // 3, SEQUENCE + 1, n)
    mask = (numpy.arange(SEQUENCE) < lengths[:, None]).astype("int64")
    return {"ids": random.integers(1, WORDS, (n, SEQUENCE)) * mask, "mask": mask}


def make_cnn(path, seed):
    n = Network(seed)
    a = n.add("Relu", [n.conv("x", "c1", 16, 3, 3)], "r1")
    b = n.add("Relu", [n.conv(a, "c2", 16, 16, 3, groups=16)], "r2")
    c = n.add("Relu", [n.add("Add", [n.conv(b, "c3", 16, 16, 1), a], "sum")], "r3")
    n.conv(c, "y", 8, 16, 3)
    n.save(path, [value("x", ["n", 3, 24, 24])], [value("y", ["n", 8, 24, 24])])


def make_chain(path, seed):
    n = Network(seed)
    n.conv(n.conv("x", "c1", 16, 3, 3), "c2", 8, 16, 3)
    n.weight("w", 24, 12)
    n.add("MatMul", ["c2", "w"], "y")
    n.save(path, [value("x", ["n", 3, 24, 24])], [value("y", ["n", 8, 24, 12])])


def make_bert(path, seed):
    n = Network(seed)
    n.weight("words", WORDS, WIDTH, scale=0.5)
    n.weight("places", SEQUENCE, WIDTH, scale=0.5)
    x = n.norm(n.add("Add", [n.add("Gather", ["words", "ids"], "e"), "places"], "ep"), "norm")
    n.constant("heads", [0, SEQUENCE, HEADS, WIDTH // HEADS], "int64")
    n.constant("merged", [0, SEQUENCE, WIDTH], "int64")
    n.constant("root", (WIDTH // HEADS) ** 0.5)
    n.constant("axes", [1, 2], "int64")
    n.constant("one", 1.0)
    n.constant("half", 0.5)
    n.constant("root_of_2", 2 ** 0.5)
    n.constant("far", -10000.0)
    m = n.add("Unsqueeze", [n.add("Cast", ["mask"], "m", to=TensorProto.FLOAT), "axes"], "mu")
    m = n.add("Mul", [n.add("Sub", ["one", m], "padded"), "far"], "masked")
    for layer in range(3):
        p = f"l{layer}_"

        def split(name, perm):
            t = n.add("Reshape", [n.linear(x, p + name, WIDTH, WIDTH), "heads"], p + name + "r")
            return n.add("Transpose", [t], p + name + "t", perm=perm)

        q, k, v = split("q", [0, 2, 1, 3]), split("k", [0, 2, 3, 1]), split("v", [0, 2, 1, 3])
        s = n.add("Div", [n.add("MatMul", [q, k], p + "qk"), "root"], p + "s")
        s = n.add("Softmax", [n.add("Add", [s, m], p + "sm")], p + "p", axis=-1)
        a = n.add("Transpose", [n.add("MatMul", [s, v], p + "av")], p + "at", perm=[0, 2, 1, 3])
        a = n.linear(n.add("Reshape", [a, "merged"], p + "ar"), p + "o", WIDTH, WIDTH)
        x = n.norm(n.add("Add", [a, x], p + "r1"), p + "n1")
        f = n.linear(x, p + "f1", WIDTH, 4 * WIDTH)
        e = n.add("Erf", [n.add("Div", [f, "root_of_2"], p + "d")], p + "e")
        g = n.add("Mul", [f, n.add("Add", [e, "one"], p + "e1")], p + "g")
        g = n.linear(n.add("Mul", [g, "half"], p + "gelu"), p + "f2", 4 * WIDTH, WIDTH)
        x = n.norm(n.add("Add", [g, x], p + "r2"), p + "n2")
    n.add("Identity", [x], "hidden")
    n.save(path, [value(name, ["n", SEQUENCE], TensorProto.INT64) for name in ("ids", "mask")],
           [value("hidden", ["n", SEQUENCE, WIDTH])])


class Calibration:
    def __init__(self, arrays):
        self.arrays = iter([arrays])

    def get_next(self):
        return next(self.arrays, None)


NETWORKS = {"cnn": (make_cnn, images), "chain": (make_chain, images), "bert": (make_bert, words)}


def variants(network):
    if network == "bert":
        yield from ((f"dynamic {n}", "dynamic", v) for n, v in DYNAMIC.items())
    form = QuantFormat.QOperator if network == "chain" else QuantFormat.QDQ
    label = "QOperator" if network == "chain" else "QDQ"
    for name, how in STATIC.items():
        # onnxruntime.quantization writes no per-channel u8 scales for QOperator products.
        if not (network == "bert" and name in ("s8s8", "u8s8 channels")):
            yield f"{label} {name}", form, how


def quantise(source, path, form, how, samples):
    logging.disable(logging.WARNING)
    if form == "dynamic":
        quantize_dynamic(source, path, weight_type=how[0], per_channel=how[1])
    else:
        quantize_static(source, path, Calibration(samples), quant_format=form,
                        activation_type=how[0], weight_type=how[1], per_channel=how[2])


def session(model, optimised):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.graph_optimization_level = (
        onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL if optimised
        else onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL)
    return onnxruntime.InferenceSession(model.SerializeToString(), options,
                                        providers=["CPUExecutionProvider"])


def run_peer(model, feeds, optimised):
    return session(model, optimised).run(None, feeds)


def run_ours(program, path, feeds, names, device):
    """mscgym's values of the named tensors. Tensors that are folded at import are left out."""
    folder = os.path.dirname(path)
    archive = os.path.join(folder, "ours.npz")
    if os.path.exists(archive):
        os.remove(archive)
    command = [program, "run", path, "-o", archive, "--repeat", "0", "--threads", "1", "--quiet",
               "--device", device]
    for name, array in feeds.items():
        numpy.save(os.path.join(folder, name + ".npy"), array)
        command += ["--input", f"{name}={folder}/{name}.npy"]
    names = list(names)
    while True:
        result = subprocess.run(command + [f"--tensor={n}" for n in names], capture_output=True,
                                text=True)
        unknown = re.search(r'there is no tensor "(.*?)"', result.stderr)
        if result.returncode == 0:
            return dict(numpy.load(archive))
        if not unknown:
            sys.exit(result.stderr)
        names.remove(unknown.group(1))


def check_node(model, node, tensors, constants):
    """Runs a node by itself on mscgym's tensors; returns (most steps, share of elements that are off,
    largest float error), or None if it cannot be run.
    """
    reads = [n for n in node.input if n and n not in constants]
    if any(n not in tensors for n in reads) or any(n not in tensors for n in node.output):
        return None
    graph = helper.make_graph(
        [node], "alone",
        [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(tensors[n].dtype),
                                       tensors[n].shape) for n in dict.fromkeys(reads)],
        [onnx.ValueInfoProto(name=n) for n in node.output],
        [constants[n] for n in dict.fromkeys(node.input) if n in constants])
    alone = helper.make_model(graph, opset_imports=model.opset_import)
    alone.ir_version = model.ir_version
    steps = share = error = 0
    for name, theirs in zip(node.output, run_peer(alone, {n: tensors[n] for n in reads}, False)):
        ours = tensors[name]
        if ours.dtype.kind in "iu" and ours.dtype.itemsize == 1:
            apart = numpy.abs(ours.astype(int) - theirs.astype(int))
            steps = max(steps, int(apart.max()))
            # A single element may differ, however few there are.
            share = max(share, (numpy.count_nonzero(apart) - 1) / apart.size)
        else:
            scale = max(float(numpy.abs(theirs).max()), 1e-30)
            error = max(error, float(numpy.abs(ours - theirs).max()) / scale)
    return steps, share, error


def check_joints(program, path, feeds, device, model):
    constants = {i.name: i for i in model.graph.initializer}
    names = [o for node in model.graph.node for o in node.output if o]
    tensors = dict(feeds, **run_ours(program, path, feeds, names, device))
    found = [check_node(model, node, tensors, constants) for node in model.graph.node]
    found = [f for f in found if f]
    if len(found) < len(model.graph.node) // 2:
        sys.exit(f"{path}: only {len(found)} of {len(model.graph.node)} nodes could be compared")
    return [max(column) for column in zip(*found)], tensors


def check_baseline(program, path, feeds, device):
    """What the stage reports on steps, or its error."""
    folder = os.path.dirname(path)
    numpy.savez(os.path.join(folder, "inputs.npz"), **feeds)
    config = {"workspace": folder, "model": path,
              "dataset": {"inputs": os.path.join(folder, "inputs.npz"), "batch": BATCH},
              "baseline": {},
              "quantize": {"gym": [{"env": {"choices": [{"bits": 8}]}, "agent": {"type": "random"},
                                    "budget": {"trials": 1}}]}}
    with open(os.path.join(folder, "c.json"), "w") as file:
        json.dump(config, file)
    result = subprocess.run([program, "search", os.path.join(folder, "c.json"), "--restart",
                             "--threads", "1", "--device", device], capture_output=True, text=True)
    said = [line for line in result.stderr.splitlines() if "baseline: " in line]
    # A model of integers only leaves nothing to search.
    if not said or " agree with " not in said[-1]:
        return False, (said or result.stderr.splitlines() or ["no word"])[-1]
    steps = re.search(r"(\d+) of (\d+) elements that the network quantises", said[-1])
    return True, f"{steps.group(1)} of {steps.group(2)}" if steps else "none"


def differences(a, b):
    apart = numpy.concatenate([numpy.abs(x.astype(float) - y.astype(float)).ravel()
                               for x, y in zip(a, b)])
    return f"{numpy.mean(apart > 1e-4):.1e}, {apart.max():.2g}"


def is_close(worst):
    return worst[0] <= 1 and worst[1] <= 1e-3 and worst[2] <= 1e-4


def moved_zero_point(model):
    """The model with the zero point of its second activation moved by one where it is dequantised."""
    moved = onnx.ModelProto()
    moved.CopyFrom(model)
    of = [n for n in moved.graph.node if n.op_type == "QuantizeLinear"][1]
    zero = next(i for i in moved.graph.initializer if i.name == of.input[2])
    other = onnx.TensorProto()
    other.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(zero) + 1, zero.name + "_moved"))
    moved.graph.initializer.append(other)
    of.input[2] = other.name
    return moved


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", nargs="*", default=list(NETWORKS))
    arguments = parser.parse_args()
    program, failed, folder = os.path.abspath(arguments.program), False, tempfile.TemporaryDirectory()
    print("| model | seed | joints: steps, share, floats | baseline: steps | ours / onnxruntime | "
          "onnxruntime optimised / not | |\n|---|---|---|---|---|---|---|")
    for network in arguments.only:
        make, samples = NETWORKS[network]
        for seed in range(arguments.seeds):
            source = os.path.join(folder.name, "float.onnx")
            path = os.path.join(folder.name, "quantised.onnx")
            make(source, seed)
            feeds = samples(100 + seed, BATCH)
            for label, form, how in variants(network):
                quantise(source, path, form, how, samples(seed, 64))
                model = onnx.load(path)
                worst, tensors = check_joints(program, path, feeds, arguments.device, model)
                passes, said = check_baseline(program, path, feeds, arguments.device)
                plain = run_peer(model, feeds, False)
                ours = [tensors[o.name] for o in model.graph.output]
                fits = is_close(worst) and passes
                if network == "cnn" and label == "QDQ u8s8":
                    onnx.save(moved_zero_point(model), path)
                    ours_of_moved = run_ours(program, path, feeds, list(tensors), arguments.device)
                    constants = {i.name: i for i in model.graph.initializer}
                    wrong = [check_node(model, n, dict(feeds, **ours_of_moved), constants)
                             for n in model.graph.node if n.op_type == "QuantizeLinear"]
                    fits = fits and not all(is_close(w) for w in wrong if w)
                failed = failed or not fits
                print(f"| {network} {label} | {seed} | {worst[0]}, {max(worst[1], 0):.1e}, "
                      f"{worst[2]:.1e} | {said} | {differences(ours, plain)} | "
                      f"{differences(run_peer(model, feeds, True), plain)} | "
                      f"{'' if fits else 'FAILS'} |", flush=True)
    sys.exit(int(failed))


main()
