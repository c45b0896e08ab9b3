#!/usr/bin/env python3
"""Writes structurally random models of many operators as cases for test_conformance, with the
outputs of ONNX Runtime.

usage: random_graphs.py FOLDER [COUNT] [SEED]

Each model is a random walk: a node reads one or more suitable values of those made so far. Values
stay small and finite, so that float32 results can be compared. Needs numpy, onnx and onnxruntime.
"""
import os
import sys

import numpy as np
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

OPSET = 17
MOST_ELEMENTS = 20000


class Model:
    """A model under construction: nodes, initialisers, and the values that nodes may read."""

    def __init__(self, rng):
        self.rng = rng
        self.nodes, self.initializers, self.inputs = [], [], []
        self.values = []  # (name, array as computed by ONNX Runtime)
        self.count = 0

    def name(self, base):
        self.count += 1
        return f"{base}_{self.count}"

    def constant(self, array):
        name = self.name("const")
        self.initializers.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def weight(self, *shape):
        scale = 1.0 / max(1.0, np.sqrt(np.prod(shape[1:]) if len(shape) > 1 else 1.0))
        return self.constant((self.rng.standard_normal(shape) * scale).astype(np.float32))

    def pick(self, *, rank=None, least=0):
        fitting = [v for v in self.values
                   if (rank is None or v[1].ndim == rank) and v[1].ndim >= least and v[1].size]
        return fitting[self.rng.integers(len(fitting))] if fitting else None

    def choose(self, *choices):
        return choices[self.rng.integers(len(choices))]


def unary(m):
    x = m.pick()
    op = m.choose("Relu", "Sigmoid", "Tanh", "Abs", "Neg", "Softplus", "Softsign", "Sin", "Cos",
                  "Atan", "Erf", "Elu", "Selu", "Celu", "LeakyRelu", "HardSigmoid", "HardSwish",
                  "Identity", "Asinh", "ThresholdedRelu", "Shrink")
    return op, [x[0]], {}, 1


def binary(m):
    a = m.pick()
    fitting = [v for v in m.values if v[1].shape == a[1].shape]
    kind = m.rng.integers(3)
    if kind == 0:
        b = fitting[m.rng.integers(len(fitting))][0]
    elif kind == 1:
        b = m.constant(m.rng.standard_normal(a[1].shape[-1:]).astype(np.float32))
    else:
        b = m.constant(np.float32(m.rng.standard_normal()))
    op = m.choose("Add", "Sub", "Mul", "Max", "Min", "PRelu")
    return op, [a[0], b], {}, 1


def reduction(m):
    x = m.pick(least=1)
    axes = sorted(set(m.rng.integers(x[1].ndim, size=m.rng.integers(1, 3)).tolist()))
    op = m.choose("ReduceMean", "ReduceMax", "ReduceMin", "ReduceL1", "ReduceL2",
                  "ReduceSumSquare", "ReduceLogSumExp")
    return op, [x[0]], {"axes": axes, "keepdims": int(m.rng.integers(2))}, 1


def normalisation(m):
    x = m.pick(least=1)
    op = m.choose("Softmax", "LogSoftmax", "LpNormalization", "Hardmax")
    return op, [x[0]], {"axis": int(m.rng.integers(x[1].ndim))}, 1


def layer_norm(m):
    x = m.pick(least=2)
    n = x[1].shape[-1]
    return "LayerNormalization", [x[0], m.weight(n), m.weight(n)], {"axis": -1}, 1


def batch_norm(m):
    x = m.pick(least=3)
    c = x[1].shape[1]
    variance = m.constant((m.rng.random(c) + 0.5).astype(np.float32))
    return "BatchNormalization", [x[0], m.weight(c), m.weight(c), m.weight(c), variance], {}, 1


def instance_norm(m):
    x = m.pick(least=3)
    if x[1][0, 0].size < 2:
        return None
    c = x[1].shape[1]
    return "InstanceNormalization", [x[0], m.weight(c), m.weight(c)], {}, 1


def conv(m):
    rank = int(m.rng.integers(1, 4))
    x = m.pick(rank=rank + 2)
    if x is None:
        return None
    c = x[1].shape[1]
    groups = c if m.rng.integers(4) == 0 else 1
    k = [int(min(d, m.rng.integers(1, 4))) for d in x[1].shape[2:]]
    out = groups * int(m.rng.integers(1, 5)) if groups > 1 else int(m.rng.integers(1, 9))
    inputs = [x[0], m.weight(out, c // groups, *k)]
    if m.rng.integers(2):
        inputs.append(m.weight(out))
    strides = m.rng.integers(1, 3, rank).tolist()
    pads = (m.rng.integers(0, 2, 2 * rank)).tolist()
    return "Conv", inputs, {"group": int(groups), "strides": strides, "pads": pads}, 1


def conv_transpose(m):
    rank = int(m.rng.integers(1, 4))
    x = m.pick(rank=rank + 2)
    if x is None:
        return None
    k = m.rng.integers(1, 4, rank).tolist()
    return "ConvTranspose", [x[0], m.weight(x[1].shape[1], int(m.rng.integers(1, 5)), *k)], \
        {"strides": m.rng.integers(1, 3, rank).tolist()}, 1


def pool(m):
    rank = int(m.rng.integers(1, 4))
    x = m.pick(rank=rank + 2)
    if x is None:
        return None
    op = m.choose("MaxPool", "AveragePool", "LpPool")
    k = [int(min(d, m.rng.integers(1, 4))) for d in x[1].shape[2:]]
    attrs = {"kernel_shape": k, "strides": m.rng.integers(1, 3, rank).tolist()}
    if op == "AveragePool":
        attrs["pads"] = [int(min(p, n - 1)) for p, n in zip(m.rng.integers(0, 2, 2 * rank), k + k)]
        attrs["count_include_pad"] = int(m.rng.integers(2))
    return op, [x[0]], attrs, 1


def global_pool(m):
    x = m.pick(least=3)
    return m.choose("GlobalAveragePool", "GlobalMaxPool"), [x[0]], {}, 1


def matmul(m):
    x = m.pick(least=2)
    return "MatMul", [x[0], m.weight(x[1].shape[-1], int(m.rng.integers(1, 9)))], {}, 1


def gemm(m):
    x = m.pick(rank=2)
    if x is None:
        return None
    n = int(m.rng.integers(1, 9))
    w = m.weight(n, x[1].shape[1])
    return "Gemm", [x[0], w, m.weight(n)], {"transB": 1, "alpha": 0.5}, 1


def transpose(m):
    x = m.pick(least=1)
    return "Transpose", [x[0]], {"perm": m.rng.permutation(x[1].ndim).tolist()}, 1


def reshape(m):
    x = m.pick(least=1)
    shape = list(x[1].shape)
    if len(shape) > 1 and m.rng.integers(2):
        i = int(m.rng.integers(len(shape) - 1))
        shape[i:i + 2] = [shape[i] * shape[i + 1]]
    elif len(shape) < 5:
        shape.insert(int(m.rng.integers(len(shape) + 1)), 1)
    return "Reshape", [x[0], m.constant(np.array(shape, np.int64))], {}, 1


def slice_(m):
    x = m.pick(least=1)
    axis = int(m.rng.integers(x[1].ndim))
    n = x[1].shape[axis]
    begin = int(m.rng.integers(n))
    step = int(m.choose(1, 1, 2, -1))
    end = n if step > 0 else -n - 1
    lists = [m.constant(np.array([v], np.int64)) for v in (begin, end, axis, step)]
    return "Slice", [x[0]] + lists, {}, 1


def concat(m):
    x = m.pick(least=1)
    axis = int(m.rng.integers(x[1].ndim))
    def fits(v):
        return v[1].ndim == x[1].ndim and all(
            d == axis or a == b for d, (a, b) in enumerate(zip(v[1].shape, x[1].shape)))
    names = [v[0] for v in m.values if fits(v)][:3]
    return "Concat", names, {"axis": axis}, 1


def split(m):
    x = m.pick(least=1)
    axis = int(m.rng.integers(x[1].ndim))
    n = x[1].shape[axis]
    if n < 2:
        return None
    first = int(m.rng.integers(1, n))
    return "Split", [x[0], m.constant(np.array([first, n - first], np.int64))], {"axis": axis}, 2


def pad(m):
    x = m.pick(least=1)
    mode = m.choose("constant", "edge", "reflect")
    widths = np.array([int(m.rng.integers(0, max(1, min(d, 3)))) for d in x[1].shape * 2], np.int64)
    return "Pad", [x[0], m.constant(widths)], {"mode": mode}, 1


def gather(m):
    x = m.pick(least=1)
    axis = int(m.rng.integers(x[1].ndim))
    n = x[1].shape[axis]
    indices = m.constant(m.rng.integers(-n, n, (int(m.rng.integers(1, 4)),)))
    return "Gather", [x[0], indices], {"axis": axis}, 1


def gather_elements(m):
    x = m.pick(least=1)
    axis = int(m.rng.integers(x[1].ndim))
    indices = m.constant(m.rng.integers(0, x[1].shape[axis], x[1].shape))
    return "GatherElements", [x[0], indices], {"axis": axis}, 1


def scatter_elements(m):
    x = m.pick(least=1)
    axis = int(m.rng.integers(x[1].ndim))
    reduction = m.choose("none", "add", "mul")
    n = x[1].shape[axis]
    if reduction == "none":  # ONNX does not define which of equal indices wins
        indices = np.argsort(m.rng.random(x[1].shape), axis=axis)
    else:
        indices = m.rng.integers(-n, n, x[1].shape)
    return "ScatterElements", [x[0], m.constant(indices.astype(np.int64)),
                               m.weight(*x[1].shape)], {"axis": axis, "reduction": reduction}, 1


def scatter_nd(m):
    x = m.pick(least=2)
    if x is None:
        return None
    n, depth = x[1].shape[0], int(m.rng.integers(1, 3))
    reduction = m.choose("none", "add", "mul")
    first = m.rng.permutation(n) if reduction == "none" else m.rng.integers(0, n, 2 * n)
    indices = np.stack([first, m.rng.integers(0, x[1].shape[1], len(first))][:depth], axis=1)
    updates = m.weight(len(first), *x[1].shape[depth:])
    return "ScatterND", [x[0], m.constant(indices.astype(np.int64)), updates], \
        {"reduction": reduction}, 1


def grid_sample(m):
    x = m.pick(rank=4)
    if x is None:
        return None
    shape = (x[1].shape[0], int(m.rng.integers(1, 6)), int(m.rng.integers(1, 6)), 2)
    grid = m.constant((m.rng.random(shape) * 2.6 - 1.3).astype(np.float32))
    return "GridSample", [x[0], grid], {
        "mode": m.choose("bilinear", "nearest", "bicubic"),
        "padding_mode": m.choose("zeros", "border", "reflection"),
        "align_corners": int(m.rng.integers(2))}, 1


def roi_align(m):
    x = m.pick(rank=4)
    if x is None:
        return None
    n = int(m.rng.integers(1, 4))
    corners = m.rng.random((n, 2)) * 4
    rois = np.concatenate([corners, corners + m.rng.random((n, 2)) * 6 + 1], axis=1)
    images = m.constant(m.rng.integers(0, x[1].shape[0], n))
    return "RoiAlign", [x[0], m.constant(rois.astype(np.float32)), images], {
        "output_height": 2, "output_width": 3, "sampling_ratio": int(m.rng.integers(0, 3)),
        "coordinate_transformation_mode": m.choose("half_pixel", "output_half_pixel")}, 1


def reverse_sequence(m):
    x = m.pick(least=2)
    if x is None:
        return None
    batch = int(m.rng.integers(2))
    lengths = m.rng.integers(1, x[1].shape[1 - batch] + 1, x[1].shape[batch])
    return "ReverseSequence", [x[0], m.constant(lengths)], \
        {"batch_axis": batch, "time_axis": 1 - batch}, 1


def expand(m):
    x = m.pick(least=1)
    shape = [d if d > 1 else int(m.rng.integers(1, 4)) for d in x[1].shape]
    return "Expand", [x[0], m.constant(np.array(shape, np.int64))], {}, 1


def tile(m):
    x = m.pick(least=1)
    return "Tile", [x[0], m.constant(m.rng.integers(1, 3, x[1].ndim))], {}, 1


def resize(m):
    x = m.pick(rank=4)
    if x is None:
        return None
    mode = m.choose("nearest", "linear", "cubic")
    scales = m.constant(np.array([1, 1, *m.rng.choice([0.5, 1.0, 1.5, 2.0], 2)], np.float32))
    transform = m.choose("half_pixel", "asymmetric", "pytorch_half_pixel")
    return "Resize", [x[0], "", scales], {
        "mode": mode, "coordinate_transformation_mode": transform, "nearest_mode": "floor"}, 1


def cumsum(m):
    x = m.pick(least=1)
    axis = m.constant(np.int64(m.rng.integers(x[1].ndim)))
    return "CumSum", [x[0], axis], {"exclusive": int(m.rng.integers(2)),
                                    "reverse": int(m.rng.integers(2))}, 1


def trilu(m):
    x = m.pick(least=2)
    return "Trilu", [x[0]], {"upper": int(m.rng.integers(2))}, 1


def topk(m):
    x = m.pick(least=1)
    axis = int(m.rng.integers(x[1].ndim))
    k = m.constant(np.array([m.rng.integers(1, x[1].shape[axis] + 1)], np.int64))
    return "TopK", [x[0], k], {"axis": axis, "largest": int(m.rng.integers(2))}, 1


def depth_to_space(m):
    x = m.pick(rank=4)
    if x is None or x[1].shape[1] % 4:
        return None
    return "DepthToSpace", [x[0]], {"blocksize": 2, "mode": m.choose("DCR", "CRD")}, 1


def einsum(m):
    x = m.pick(rank=3)
    if x is None:
        return None
    return "Einsum", [x[0], m.weight(x[1].shape[2], 4)], {"equation": "bij,jk->bki"}, 1


def recurrent(m):
    x = m.pick(rank=3)
    if x is None:
        return None
    op, gates = m.choose(("RNN", 1), ("GRU", 3), ("LSTM", 4))
    h, directions = int(m.rng.integers(1, 6)), int(m.rng.integers(1, 3))
    inputs = [x[0], m.weight(directions, gates * h, x[1].shape[2]),
              m.weight(directions, gates * h, h), m.weight(directions, 2 * gates * h)]
    return op, inputs, {"hidden_size": h,
                        "direction": "bidirectional" if directions == 2 else "forward"}, 1


def where(m):
    a = m.pick()
    fitting = [v for v in m.values if v[1].shape == a[1].shape]
    b = fitting[m.rng.integers(len(fitting))]
    flags = m.constant(m.rng.integers(0, 2, a[1].shape).astype(bool))
    return "Where", [flags, a[0], b[0]], {}, 1


def clip(m):
    x = m.pick()
    return "Clip", [x[0], m.constant(np.float32(-0.5)), m.constant(np.float32(0.75))], {}, 1


MAKERS = [unary, unary, unary, binary, binary, reduction, normalisation, layer_norm, batch_norm,
          instance_norm, conv, conv, conv_transpose, pool, pool, global_pool, matmul, gemm,
          transpose, reshape, slice_, concat, split, pad, gather, gather_elements, scatter_elements,
          scatter_nd, grid_sample, roi_align, reverse_sequence, expand, tile, resize, cumsum, trilu,
          topk, depth_to_space, einsum, recurrent, where, clip]


def run(m, outputs, all_outputs=False):
    """ONNX Runtime's values for these outputs, without graph optimisations."""
    graph = helper.make_graph(
        m.nodes, "random", [helper.make_tensor_value_info(n, TensorProto.FLOAT, a.shape)
                            for n, a in m.inputs],
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in outputs],
        m.initializers)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)])
    model.ir_version = 8
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    session = ort.InferenceSession(model.SerializeToString(), options,
                                   providers=["CPUExecutionProvider"])
    return model, session.run(outputs, dict(m.inputs))


def try_node(m, maker):
    """Adds a node if ONNX Runtime accepts it and its values are finite, small and few."""
    n_before = len(m.initializers)
    made = maker(m) if m.pick(least=3 if maker in (batch_norm, instance_norm, global_pool)
                              else 2 if maker in (layer_norm, matmul, trilu) else 1) else None
    if made is None:
        return
    op, inputs, attrs, n_outputs = made
    outputs = [m.name(op.lower()) for _ in range(n_outputs)]
    if op == "TopK":
        outputs.append(m.name("indices"))
    node = helper.make_node(op, inputs, outputs, **attrs)
    m.nodes.append(node)
    try:
        _, arrays = run(m, outputs[:n_outputs])
    except Exception:  # ONNX Runtime does not support this form
        arrays = [np.array([np.inf])]
    good = all(a.dtype == np.float32 and 0 < a.size <= MOST_ELEMENTS and a.ndim <= 5
               and np.isfinite(a).all() and np.abs(a).max() < 1e3 for a in arrays)
    if not good:
        m.nodes.pop()
        del m.initializers[n_before:]
        return
    m.values += list(zip(outputs, arrays))


def write_case(folder, m):
    read = {i for node in m.nodes for i in node.input}
    outputs = [n for n, _ in m.values if n not in read and n not in dict(m.inputs)][:8]
    model, arrays = run(m, outputs)
    for info, array in zip(model.graph.output, arrays):
        info.CopyFrom(helper.make_tensor_value_info(info.name, TensorProto.FLOAT, array.shape))
    data = os.path.join(folder, "test_data_set_0")
    os.makedirs(data, exist_ok=True)
    with open(os.path.join(folder, "model.onnx"), "wb") as file:
        file.write(model.SerializeToString())
    for kind, list_ in (("input", [a for _, a in m.inputs]), ("output", arrays)):
        for i, array in enumerate(list_):
            with open(os.path.join(data, f"{kind}_{i}.pb"), "wb") as file:
                file.write(numpy_helper.from_array(array).SerializeToString())


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__.strip())
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 300
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    for i in range(count):
        rng = np.random.default_rng([seed, i])
        m = Model(rng)
        rank = int(rng.integers(1, 6))
        for k in range(int(rng.integers(1, 3))):
            dims = rng.integers(1, 9, rank if k == 0 else 4)
            array = rng.standard_normal(dims).astype(np.float32)
            m.inputs.append((f"x{k}", array))
            m.values.append((f"x{k}", array))
        n_wanted = int(rng.integers(3, 25))
        for _ in range(4 * n_wanted):
            if len(m.nodes) < n_wanted:
                try_node(m, MAKERS[rng.integers(len(MAKERS))])
        if m.nodes:
            write_case(os.path.join(sys.argv[1], f"random_{seed}_{i}"), m)


if __name__ == "__main__":
    main()
