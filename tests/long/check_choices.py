#!/usr/bin/env python3
"""Tests every choice for a weight or an activation in onnxruntime.

    check_choices.py MSCGYM [MODEL ...]

Small networks are made here, one per kind of site: convolutions, an embedding, recurrent layers,
products of activations. Each is searched with one choice at a time and its uniform plan is
exported. The exported model must have the search's loss, within 1 % or three times the plan's
noise: in onnxruntime with the optimiser off and at its default level, and when mscgym reads it
back. With 8 bits, every factor of a product must come from a DequantizeLinear. The stored weights
must be as large as size_bytes says. Prints a table; exits with 1 if a plan fails. Needs numpy, onnx
and onnxruntime.
"""
import json
import os
import subprocess
import sys
import tempfile

import numpy
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

LEVELS = {"off": onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL,
          "default": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL}
# For each label: the choice, and further keys of weights and activations.
CHOICES = {"float16": ({"type": "float16"}, {}),
           "bfloat16": ({"type": "bfloat16"}, {}),
           "8": ({"bits": 8}, {}),
           "8 g32": ({"bits": 8, "group_size": 32}, {}),
           "4 mse g32": ({"bits": 4, "observer": "mse", "group_size": 32}, {}),
           "4 g32, weights alone": ({"bits": 4, "group_size": 32}, {"activations": {"float": True}}),
           "3 g64, zero points": ({"bits": 3, "group_size": 64}, {"weights": {"symmetric": False},
                                                                "activations": {"float": True}}),
           "6": ({"bits": 6}, {}),
           "5 g32, zero points": ({"bits": 5, "group_size": 32}, {"weights": {"symmetric": False}}),
           "12 g128": ({"bits": 12, "group_size": 128}, {})}
SAMPLES = 12


def numbers(generator, *shape):
    return generator.normal(size=shape).astype(numpy.float32)


class Network:
    """A model under construction; initialisers have names."""

    def __init__(self, seed):
        self.generator = numpy.random.RandomState(seed)
        self.nodes, self.initialisers = [], []

    def weight(self, name, *shape, scale=1.0):
        values = numbers(self.generator, *shape) * numpy.float32(scale)
        self.initialisers.append(numpy_helper.from_array(values, name))
        return name

    def constant(self, name, values):
        self.initialisers.append(numpy_helper.from_array(numpy.array(values), name))
        return name

    def add(self, op, inputs, output, **attributes):
        self.nodes.append(helper.make_node(op, inputs, output if isinstance(output, list)
                                           else [output], name=f"n{len(self.nodes)}", **attributes))
        return output

    def model(self, inputs, output):
        graph = helper.make_graph(
            self.nodes, "small", [helper.make_tensor_value_info(name, kind, shape)
                                  for name, kind, shape in inputs],
            [helper.make_tensor_value_info(output, TensorProto.FLOAT, None)], self.initialisers)
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
        made.ir_version = 8
        return made


def convolutions():
    net = Network(1)
    x = net.add("Conv", ["x", net.weight("w1", 8, 3, 3, 3, scale=0.3)], "a", pads=[1, 1, 1, 1])
    x = net.add("Relu", [x], "b")
    x = net.add("Conv", [x, net.weight("w2", 8, 1, 3, 3, scale=0.4)], "c", pads=[1, 1, 1, 1], group=8)
    x = net.add("ConvTranspose", [x, net.weight("w3", 8, 6, 2, 2, scale=0.4)], "d", strides=[2, 2])
    x = net.add("GlobalAveragePool", [x], "e")
    x = net.add("Flatten", [x], "f")
    net.add("Gemm", [x, net.weight("w4", 5, 6)], "y", transB=1)
    feeds = {"x": numbers(net.generator, SAMPLES, 3, 9, 9)}
    return net.model([("x", TensorProto.FLOAT, ["N", 3, 9, 9])], "y"), feeds


def perceptron():
    net = Network(2)
    x = net.add("MatMul", ["x", net.weight("w1", 70, 96, scale=0.1)], "a")
    x = net.add("Relu", [x], "b")
    x = net.add("Gemm", [x, net.weight("w2", 40, 96, scale=0.1)], "c", transB=1)
    x = net.add("Tanh", [x], "d")
    net.add("MatMul", [x, net.weight("w3", 40, 16, scale=0.2)], "y")
    feeds = {"x": numbers(net.generator, SAMPLES, 70)}
    return net.model([("x", TensorProto.FLOAT, ["N", 70])], "y"), feeds


def recurrent(op, gates, direction):
    net = Network(3)
    directions = 2 if direction == "bidirectional" else 1
    x = net.add("Gather", [net.weight("table", 50, 40, scale=0.5), "ids"], "a")
    x = net.add("Transpose", [x], "b", perm=[1, 0, 2])
    extra = {"linear_before_reset": 1} if op == "GRU" else {}
    outputs = net.add(op, [x, net.weight("w", directions, gates * 24, 40, scale=0.2),
                           net.weight("r", directions, gates * 24, 24, scale=0.2),
                           net.weight("bias", directions, 2 * gates * 24, scale=0.1)], ["c", "h"],
                      direction=direction, hidden_size=24, **extra)
    x = net.add("Transpose", [outputs[1]], "d", perm=[1, 0, 2])
    x = net.add("Flatten", [x], "e")
    net.add("MatMul", [x, net.weight("head", 24 * directions, 6, scale=0.3)], "y")
    feeds = {"ids": net.generator.randint(0, 50, (SAMPLES, 7)).astype(numpy.int64)}
    return net.model([("ids", TensorProto.INT64, ["N", 7])], "y"), feeds


def attention():
    net = Network(4)
    x = net.add("Gather", [net.weight("table", 50, 32, scale=0.5), "ids"], "a")
    q, k, v = (net.add("MatMul", [x, net.weight(f"w{n}", 32, 32, scale=0.3)], n) for n in "qkv")
    k = net.add("Transpose", [k], "kt", perm=[0, 2, 1])
    p = net.add("Softmax", [net.add("MatMul", [q, k], "scores")], "p", axis=-1)
    x = net.add("Add", [net.add("MatMul", [p, v], "mixed"), x], "b")
    net.add("MatMul", [x, net.weight("head", 32, 6, scale=0.3)], "y")
    feeds = {"ids": net.generator.randint(0, 50, (SAMPLES, 9)).astype(numpy.int64)}
    return net.model([("ids", TensorProto.INT64, ["N", 9])], "y"), feeds


NETWORKS = {"convolutions": convolutions, "perceptron": perceptron,
            "lstm": lambda: recurrent("LSTM", 4, "bidirectional"),
            "gru": lambda: recurrent("GRU", 3, "forward"),
            "rnn": lambda: recurrent("RNN", 1, "reverse"), "attention": attention}


def run(*command):
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode != 0:
        raise RuntimeError(f"{' '.join(command[:3])}: {result.stderr.strip()}")
    return result.stdout


def loss(reference, found):
    reference, found = reference.astype(numpy.float64), found.astype(numpy.float64)
    return float(numpy.mean((reference - found) ** 2) / numpy.mean(reference ** 2))


def in_peer(path, level, feeds):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = LEVELS[level]
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return session.run(None, feeds)[0]


BITS = {TensorProto.FLOAT: 32, TensorProto.FLOAT16: 16, TensorProto.BFLOAT16: 16, TensorProto.INT8: 8,
        TensorProto.UINT8: 8, TensorProto.INT16: 16, TensorProto.UINT16: 16, 21: 4, 22: 4}


def behind(name, held, makers):
    """The initialiser that a value is computed from, and the nodes in between."""
    nodes = []
    while name not in held:
        node = makers.get(name)
        if node is None:
            return None, []
        nodes.append(node)
        name = node.input[1 if node.op_type == "Gather" else 0]
    return held[name], nodes


def stored_bytes(path, choice_bits):
    """Bytes of the weights, their scales and the bias. A choice with fewer bits than its stored type
    counts with its own bits.
    """
    model = onnx.load(path)
    held = {i.name: i for i in model.graph.initializer}
    makers = {o: n for n in model.graph.node for o in n.output}
    total = sum(4 * int(numpy.prod(i.dims)) for i in held.values() if i.name == "bias")
    for node in model.graph.node:
        if node.op_type == "Cast" and node.input[0] in held and \
                held[node.input[0]].data_type in (TensorProto.FLOAT16, TensorProto.BFLOAT16):
            total += 2 * int(numpy.prod(held[node.input[0]].dims))
        weight, way = behind(node.input[0], held, makers) if node.op_type == "DequantizeLinear" \
            else (None, [])
        if weight is None or any(n.op_type == "QuantizeLinear" for n in way):
            continue
        dims, bits = weight.dims, min(BITS[weight.data_type], choice_bits)
        if way:  # packed weights: the final shape is that of the Reshape
            bits = choice_bits
            shaped = next(n for n in way if n.op_type == "Reshape")
            dims = makers[shaped.input[1]].attribute[0].ints
        is_unsigned = weight.data_type == TensorProto.UINT8 or len(node.input) > 2 and \
            held[node.input[2]].data_type in (TensorProto.UINT8, TensorProto.UINT16, 21)
        total += -(-int(numpy.prod(dims)) * bits // 8)
        total += (8 if is_unsigned else 4) * int(numpy.prod(held[node.input[1]].dims))
    return total


def has_all_pairs(path):
    nodes = onnx.load(path).graph.node
    made = {o for n in nodes if n.op_type == "DequantizeLinear" for o in n.output}
    products = [n for n in nodes if n.op_type in ("MatMul", "Gemm", "Conv", "ConvTranspose")]
    return products and all(name in made for n in products for name in n.input[:2])


class Case:
    def __init__(self, mscgym, folder, name):
        self.mscgym, self.folder = mscgym, folder
        model, self.feeds = NETWORKS[name]()
        self.path = os.path.join(folder, "model.onnx")
        onnx.save(model, self.path)
        self.data = os.path.join(folder, "inputs.npz")
        numpy.savez(self.data, **self.feeds)

    def run_own(self, model, *more):
        out = os.path.join(self.folder, "out")
        inputs = []
        for name, values in self.feeds.items():
            numpy.save(os.path.join(self.folder, f"{name}.npy"), values)
            inputs += ["--input", f"{name}={self.folder}/{name}.npy"]
        run(self.mscgym, "run", model, *inputs, "--output", out, "--repeat", "0", "--quiet", *more)
        return numpy.load(os.path.join(out, "y.npy"))

    def search(self, choice, more):
        env = {"choices": [choice, {"float": True}], **more}
        config = {"workspace": self.folder, "model": self.path,
                  "dataset": {"inputs": self.data, "batch": SAMPLES},
                  "quantize": {"target": "generic", "gym": [{"record": "r.jsonl", "env": env,
                                        "agent": {"type": "random"}, "budget": {"trials": 2}}]}}
        path = os.path.join(self.folder, "search.json")
        with open(path, "w") as file:
            json.dump(config, file)
        run(self.mscgym, "search", path, "--quiet", "--restart")
        with open(os.path.join(self.folder, "r.jsonl")) as file:
            return next(line for line in map(json.loads, file)
                        if line["kind"] == "trial" and line["id"] == 0)

    def check(self, choice, more):
        """Tests one choice; returns (passes, columns of the table)."""
        trial = self.search(choice, more)
        target, strategy = (os.path.join(self.folder, n) for n in ("q.onnx", "q.json"))
        record = os.path.join(self.folder, "r.jsonl")
        run(self.mscgym, "verify", record, "--quiet")
        noise = json.loads(run(self.mscgym, "export", record, "--trial", "0", "-o", target,
                               "--save-strategy", strategy, "--quiet", "--json"))["noise"]
        found, size = trial["metrics"]["distill_loss"], trial["metrics"]["size_bytes"]
        reference = self.run_own(self.path)
        moved = {"strategy": self.run_own(self.path, "--strategy", strategy),
                 "again": self.run_own(target)}
        moved.update({level: in_peer(target, level, self.feeds) for level in LEVELS})
        moved = {name: abs(loss(reference, y) - found) / max(found, 1e-30)
                 for name, y in moved.items()}
        limits = {name: max(0.01, 3 * noise) for name in moved}
        limits["strategy"] = 1e-9
        stored = stored_bytes(target, choice.get("bits", 16))
        passes = all(moved[n] <= limits[n] for n in moved) and stored == size and found > 0
        passes = passes and (choice != {"bits": 8} or has_all_pairs(target))
        return passes, [f"{found:.2e}", f"{noise:.0e}", f"{int(size)}", f"{stored}"] + [
            f"{moved[n]:.0e}" for n in ("strategy", "again", *LEVELS)]


def main():
    mscgym = os.path.abspath(sys.argv[1])
    failed = False
    print("| network | choice | loss | noise | size | stored | strategy | again | off | default | |")
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    for name in sys.argv[2:] or NETWORKS:
        for label, (choice, more) in CHOICES.items():
            with tempfile.TemporaryDirectory() as folder:
                passes, columns = Case(mscgym, folder, name).check(choice, more)
            failed = failed or not passes
            print(f"| {name} | {label} | {' | '.join(columns)} | {'' if passes else 'FAILS'} |",
                  flush=True)
    sys.exit(int(failed))


main()
