"""A model's outputs in onnxruntime, their distance from other outputs, and the characters that they mean."""
import numpy
import onnxruntime


def session(path):
    """A session that computes node by node; with more optimisation it would fuse QDQ pairs into
    integer kernels.
    """
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(path, options, ["CPUExecutionProvider"])


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
