"""A model's outputs in onnxruntime, their distance from other outputs, and the characters that they mean."""
import numpy
import onnx
import onnxruntime


def with_exact_products(path):
    """The model, as bytes, with products of floats in place of its products of integers: the kernels of
    onnxruntime limit sums of two products to 16 bits on processors with AVX2 and without VNNI, so losses would
    depend on the processor. Sums of floats are exact up to 2^24, and nearly so above. A path if there are none.
    """
    model = onnx.load(path)
    nodes = []
    for node in model.graph.node:
        if node.op_type != "MatMulInteger":
            nodes.append(node)
            continue
        name = node.output[0]
        factors = []
        for i in range(2):
            part = f"{name}_factor_{i}"
            nodes.append(onnx.helper.make_node("Cast", [node.input[i]], [part], to=onnx.TensorProto.FLOAT))
            if len(node.input) > 2 + i and node.input[2 + i]:
                zero = [part + "_zero", part + "_shifted"]
                nodes.append(onnx.helper.make_node("Cast", [node.input[2 + i]], zero[:1], to=onnx.TensorProto.FLOAT))
                nodes.append(onnx.helper.make_node("Sub", [part, zero[0]], zero[1:]))
                part = zero[1]
            factors.append(part)
        nodes.append(onnx.helper.make_node("MatMul", factors, [name + "_float"]))
        nodes.append(onnx.helper.make_node("Cast", [name + "_float"], [name], to=onnx.TensorProto.INT32))
    if len(nodes) == len(model.graph.node):
        return path
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    return model.SerializeToString()


def session(path):
    """A session that computes node by node; with more optimisation it would fuse QDQ pairs into
    integer kernels.
    """
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(with_exact_products(path), options, ["CPUExecutionProvider"])


def outputs(path, samples, batch=64):
    """An array for each output, with a row per sample. Samples are {input: array}, or the array of
    the first input.
    """
    model = session(path)
    first = model.get_inputs()[0]
    batch = first.shape[0] if isinstance(first.shape[0], int) else batch
    samples = samples if isinstance(samples, dict) else {first.name: samples}
    n = len(next(iter(samples.values())))
    parts = [model.run(None, {k: v[i:i + batch] for k, v in samples.items()})
             for i in range(0, n, batch)]
    return [numpy.concatenate(arrays) for arrays in zip(*parts)]


def loss(truth, found):
    """Mean squared error relative to the mean square, averaged over outputs."""
    def one(y, x):
        y, x = y.astype(numpy.float64), x.astype(numpy.float64).reshape(y.shape)
        return numpy.mean((y - x) ** 2) / numpy.mean(y ** 2)
    return float(numpy.mean([one(y, x) for y, x in zip(truth, found)]))


def losses(truth, found):
    """Each sample's contribution to the loss: an array whose mean is the loss."""
    def one(y, x):
        y, x = y.astype(numpy.float64), x.astype(numpy.float64).reshape(y.shape)
        return numpy.mean(((y - x) ** 2).reshape(len(y), -1), 1) / numpy.mean(y ** 2)
    return numpy.mean([one(y, x) for y, x in zip(truth, found)], 0)


def decode(scores):
    """Decodes scores [samples, steps, classes]: the best class of each step, without repeats and
    blanks (0).
    """
    best = scores.argmax(-1)
    return [[int(c) for i, c in enumerate(line) if c != 0 and (i == 0 or c != line[i - 1])]
            for line in best]


def edits(one, other):
    """The edit distance of two lists: insertions, deletions and replacements."""
    row = list(range(len(other) + 1))
    for i, a in enumerate(one):
        above, row = row, [i + 1]
        for j, b in enumerate(other):
            row.append(min(above[j] + (a != b), above[j + 1] + 1, row[-1] + 1))
    return row[-1]


def agreement(truth, found):
    """The share of characters that need no edit."""
    lines = list(zip(decode(truth), decode(found.reshape(truth.shape))))
    return 1 - sum(edits(a, b) for a, b in lines) / sum(len(a) for a, _ in lines)
