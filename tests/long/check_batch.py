#!/usr/bin/env python3
"""Checks that the batch size changes nothing but the last bits of losses.

    check_batch.py MSCGYM all|MODEL ...

The models have constants that are expanded over the batch: initial states of recurrent layers, a
class token, tokens with more elements than are folded, a position grid, a table with a row per
sample. They are searched with 1, 7 and 256 samples per batch. Spaces, choices and exact costs of
trials must be the same, and exported files except for calibrated values. size_bytes of the float
model must match its initialisers, and its multiply-accumulates those counted by hand. Exits with 77
without numpy or onnx.
"""
import json
import os
import subprocess
import sys
import tempfile

try:
    import numpy as np
    import onnx
    from onnx import TensorProto, helper, numpy_helper
except ImportError as error:
    print(f"skipped: {error}; needs numpy and onnx")
    sys.exit(77)

BATCHES = (1, 7, 256)
SAMPLES = 256
RNG = np.random.default_rng(5)
COSTS = ("size_bytes", "size_ratio", "bit_ops", "bit_ops_ratio", "macs", "macs_ratio")


def floats(*shape):
    return (RNG.standard_normal(shape) / np.sqrt(shape[-1])).astype(np.float32)


class Model:
    """Nodes and initialisers under construction, with input `x` [N, ...] and output `y`."""

    def __init__(self, shape, macs):
        self.shape, self.macs, self.nodes, self.inits = shape, macs, [], {}

    def weight(self, value, name=None):
        name = name or f"w{len(self.inits)}"
        self.inits[name] = np.asarray(value)
        return name

    def node(self, op, *inputs, outputs=1, name=None, **attributes):
        names = [name or f"t{len(self.nodes)}"] + [f"t{len(self.nodes)}_{i}"
                                                   for i in range(1, outputs)]
        self.nodes.append(helper.make_node(op, list(inputs), names, name=names[0], **attributes))
        return names[0]

    def integers(self, *values):
        return self.weight(np.array(values, np.int64))

    def batch(self):
        """The batch size, as a tensor of one element."""
        return self.node("Slice", self.node("Shape", "x"), self.integers(0), self.integers(1))

    def spread(self, value, name=None):
        """A constant [1, ...] expanded over the batch."""
        rest = self.integers(*value.shape[1:])
        shape = self.node("Concat", self.batch(), rest, axis=0)
        return self.node("Expand", self.weight(value, name), shape)

    def state(self, value, layers=1):
        """A constant expanded to the initial state of a recurrent layer, [layers, N, hidden]."""
        hidden = self.integers(value.shape[-1])
        shape = self.node("Concat", self.integers(layers), self.batch(), hidden, axis=0)
        return self.node("Expand", self.weight(value), shape)

    def zeros(self, layers, hidden):
        shape = self.node("Concat", self.integers(layers), self.batch(), self.integers(hidden),
                          axis=0)
        zero = helper.make_tensor("value", TensorProto.FLOAT, [1], [0])
        return self.node("ConstantOfShape", shape, value=zero)

    def save(self, path, y):
        self.node("Identity", y, name="y")
        graph = helper.make_graph(
            self.nodes, "g",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", *self.shape])],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
            [numpy_helper.from_array(v, k) for k, v in self.inits.items()])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
        model.ir_version = 8
        onnx.save(onnx.shape_inference.infer_shapes(model), path)


def recurrent(op, state):
    """A recurrent layer over 3 steps of 8 inputs, with 24 hidden units and 4 outputs."""
    gates = 4 if op == "LSTM" else 3
    m = Model((3, 8), 3 * gates * 24 * (8 + 24) + 24 * 4)
    x = m.node("Transpose", "x", perm=[1, 0, 2])
    states = [m.zeros(1, 24) if state is None else m.state(state) for _ in range(gates - 2)]
    h = m.node(op, x, m.weight(floats(1, gates * 24, 8)), m.weight(floats(1, gates * 24, 24)),
               m.weight(floats(1, 2 * gates * 24)), "", *states, outputs=2, hidden_size=24)
    last = m.node("Squeeze", m.node("Slice", h, m.integers(2), m.integers(3)), m.integers(0, 1))
    return m, m.node("Gemm", last, m.weight(floats(24, 4)), m.weight(floats(4)))


def class_token():
    m = Model((12, 32), 13 * 32 * 64 + 64 * 4)
    x = m.node("Concat", m.spread(floats(1, 1, 32)), "x", axis=1)
    x = m.node("Add", x, m.weight(floats(1, 13, 32)))
    x = m.node("Relu", m.node("MatMul", x, m.weight(floats(32, 64))))
    x = m.node("Gather", x, m.weight(np.int64(0)), axis=1)
    return m, m.node("MatMul", x, m.weight(floats(64, 4)))


def queries():
    """A product with tokens that have more elements at 256 samples than constant folding makes."""
    m = Model((6, 96), 64 * 96 * 6 * 2 + 96 * 32 + 32 * 4)
    tokens = m.spread(floats(1, 64, 96))
    scores = m.node("MatMul", tokens, m.node("Transpose", "x", perm=[0, 2, 1]))
    mixed = m.node("MatMul", m.node("Softmax", scores, axis=-1), "x")
    y = m.node("ReduceMean", m.node("Add", mixed, tokens), axes=[1], keepdims=0)
    y = m.node("Relu", m.node("MatMul", y, m.weight(floats(96, 32))))
    return m, m.node("MatMul", y, m.weight(floats(32, 4)))


def positions():
    """An image with two more channels: the coordinates of each pixel."""
    m = Model((3, 8, 8), 8 * 8 * 9 * 5 * 16 + 16 * 4)
    row = m.node("Unsqueeze", m.weight(np.linspace(-1, 1, 8, dtype=np.float32)),
                 m.integers(0, 1, 2))
    column = m.node("Transpose", row, perm=[0, 1, 3, 2])
    shape = m.node("Concat", m.batch(), m.integers(1, 8, 8), axis=0)
    x = m.node("Concat", "x", m.node("Expand", row, shape), m.node("Expand", column, shape), axis=1)
    x = m.node("Relu", m.node("Conv", x, m.weight(floats(16, 5, 3, 3)), pads=[1, 1, 1, 1]))
    x = m.node("Flatten", m.node("GlobalAveragePool", x))
    return m, m.node("MatMul", x, m.weight(floats(16, 4)))


def looked_up():
    """The same table row for each sample, and a product with it that does not depend on the sample."""
    m = Model((16,), None)  # the product may be computed in advance
    zero = helper.make_tensor("value", TensorProto.INT64, [1], [2])
    rows = m.node("ConstantOfShape", m.batch(), value=zero)
    table = m.node("Gather", m.weight(floats(5, 32)), rows)
    place = m.node("MatMul", table, m.weight(floats(32, 32)))
    x = m.node("Relu", m.node("Add", m.node("MatMul", "x", m.weight(floats(16, 32))), place))
    return m, m.node("MatMul", x, m.weight(floats(32, 4)))


def pairs():
    """Reshapes samples to pairs, so that no sample can run by itself."""
    m = Model((16,), 16 * 32 + 32 * 4)
    x = m.node("Reshape", "x", m.integers(-1, 2, 16))
    x = m.node("Add", x, m.node("ReduceMean", x, axes=[1], keepdims=1))
    x = m.node("Relu", m.node("MatMul", x, m.weight(floats(16, 32))))
    y = m.node("MatMul", x, m.weight(floats(32, 4)))
    return m, m.node("Reshape", y, m.integers(-1, 4))


MODELS = {
    "lstm_zeros": lambda: recurrent("LSTM", None), "gru_zeros": lambda: recurrent("GRU", None),
    "lstm_state": lambda: recurrent("LSTM", floats(1, 1, 24)),
    "gru_state": lambda: recurrent("GRU", floats(1, 1, 24)),
    "class_token": class_token, "queries": queries, "positions": positions, "looked_up": looked_up, "pairs": pairs}
SECTIONS = {
    "quantize": {"choices": [{"bits": 8}, {"bits": 4}, {"bits": 16}]},
    "prune": {"choices": [{"density": 1}, {"density": 0.75}, {"density": 0.5}], "round_to": 1},
    "joint": {"prune": {"choices": [{"density": 1}, {"density": 0.5}], "round_to": 1},
              "choices": [{"bits": 8}, {"bits": 4}]}}


def search(mscgym, name, section, batch, folder):
    """Searches; returns the record's header, its trials, and the exported model."""
    place = os.path.join(folder, f"{name}_{section}_{batch}")
    env = {**SECTIONS[section], "objectives": ["distill_loss"],
           "bounds": {"size_ratio": {"max": 0.99}}}
    config = {"workspace": place, "model": os.path.join(folder, name + ".onnx"), "verbose": "error",
              "dataset": {"inputs": os.path.join(folder, name + ".npz"), "batch": batch},
              ("quantize" if section == "joint" else section): {"gym": [
                  {"record": "r.jsonl", "env": {**env, "type": section},
                   "agent": {"type": "random"}, "budget": {"trials": 24}}]}}
    with open(place + ".json", "w", encoding="utf-8") as file:
        json.dump(config, file)
    result = subprocess.run([mscgym, "search", place + ".json", "--quiet", "--threads", "1"],
                            capture_output=True, text=True, check=False)
    if result.returncode != 0:
        return None, result.stderr.strip(), None
    with open(os.path.join(place, "r.jsonl"), encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    return lines[0], [line for line in lines if "choices" in line], onnx.load(
        os.path.join(place, name + ".onnx"))


def outline(model):
    """The parts of an exported model that calibration does not change."""
    return ([(n.op_type, list(n.input), list(n.output)) for n in model.graph.node],
            [(t.name, list(t.dims), t.data_type) for t in model.graph.initializer])


def check_costs(trial, model):
    """Checks the float model's bytes and multiply-accumulates, which do not depend on the batch."""
    metrics = trial["metrics"]
    n_bytes = metrics["size_bytes"] / metrics["size_ratio"]
    weights = sum(v.nbytes for v in model.inits.values() if v.dtype == np.float32)
    integers = sum(v.nbytes for v in model.inits.values() if v.dtype != np.float32)
    faults = []
    if not weights - 0.5 <= n_bytes <= weights + integers + 0.5:
        faults.append(f"{n_bytes} bytes, expected {weights} and at most {integers} of integers")
    if model.macs and "bit_ops" in metrics and metrics["macs"] != model.macs:
        faults.append(f"{metrics['macs']} multiply-accumulates, expected {model.macs}")
    return faults


def compare(mscgym, name, section, folder, model):
    batches = (2, 8, 256) if name == "pairs" else BATCHES
    results = [search(mscgym, name, section, batch, folder) for batch in batches]
    faults = [f"batch {b}: {r[1]}" for b, r in zip(batches, results) if r[0] is None]
    if faults:
        return faults
    first, trials, file = results[0]
    faults += check_costs(trials[0], model) if section == "quantize" else []
    for batch, (header, other, exported) in zip(batches[1:], results[1:]):
        if header.get("space") != first.get("space"):
            faults.append(f"batch {batch}: another space")
        for a, b in zip(trials, other):
            costs = [{k: t.get("metrics", {}).get(k) for k in COSTS} for t in (a, b)]
            if a["choices"] != b["choices"] or costs[0] != costs[1]:
                faults.append(f"batch {batch}: trial {a.get('id')}: {costs[0]} and {costs[1]}")
                break
        if len(trials) != len(other) or outline(file) != outline(exported):
            faults.append(f"batch {batch}: another file")
    return faults


def main():
    mscgym = os.path.abspath(sys.argv[1])
    is_good = True
    with tempfile.TemporaryDirectory() as folder:
        for name in MODELS if "all" in sys.argv[2:] else sys.argv[2:]:
            m, y = MODELS[name]()
            m.save(os.path.join(folder, name + ".onnx"), y)
            x = RNG.standard_normal((SAMPLES, *m.shape)).astype(np.float32)
            np.savez(os.path.join(folder, name + ".npz"), x=x)
            for section in SECTIONS:
                faults = compare(mscgym, name, section, folder, m)
                is_good = is_good and not faults
                print(f"{'bad ' if faults else 'ok  '} {name} {section}", *faults, sep="\n     ")
    sys.exit(0 if is_good else 1)


if __name__ == "__main__":
    main()
