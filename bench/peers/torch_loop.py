"""PyTorch with fake quantisation, whose parameters are changed in place.

The folded ONNX graph is run in eager mode, with one torch function per joint. An activation that is
a site is passed through fake_quantize_per_tensor_affine once, whatever its consumers. Weights are
fake-quantised for every choice beforehand, and a trial only replaces them. The memory format
(contiguous or channels last) is the faster one.
"""
import time

import numpy
import torch
from onnx import helper, numpy_helper
from torch.nn import functional

from model import WEIGHTED
from narrow import Quantised


def attributes(node):
    return {a.name: helper.get_attribute_value(a) for a in node.attribute}


def pads_of(a, dims):
    """ONNX pads as (symmetric padding, the argument of functional.pad or None)."""
    pads = a.get("pads", [0] * 2 * dims)
    begins, ends = list(pads[:dims]), list(pads[dims:])
    if begins == ends:
        return begins, None
    flat = [p for pair in zip(reversed(begins), reversed(ends)) for p in pair]
    return [0] * dims, flat


def conv(node, a):
    padding, extra = pads_of(a, 2)
    stride, dilation = list(a.get("strides", [1, 1])), list(a.get("dilations", [1, 1]))
    groups = a.get("group", 1)

    def run(x, w, b=None):
        x = functional.pad(x, extra) if extra else x
        return functional.conv2d(x, w, b, stride, padding, dilation, groups)
    return run


def gemm(node, a):
    assert a.get("alpha", 1.0) == a.get("beta", 1.0) == 1.0 and not a.get("transA", 0)
    if a.get("transB", 0):
        return functional.linear
    return lambda x, w, b=None: functional.linear(x, w.t(), b)


def pool(node, a):
    padding, extra = pads_of(a, 2)
    kernel, stride = list(a["kernel_shape"]), list(a.get("strides", [1, 1]))
    if node.op_type == "MaxPool":
        def largest(x):
            x = functional.pad(x, extra, value=-torch.inf) if extra else x
            return functional.max_pool2d(x, kernel, stride, padding)
        return largest
    counts = bool(a.get("count_include_pad", 0))
    assert extra is None
    return lambda x: functional.avg_pool2d(x, kernel, stride, padding, count_include_pad=counts)


def resize(node, a):
    mode = a.get("mode", b"nearest").decode()
    ways = a.get("coordinate_transformation_mode", b"half_pixel").decode()
    if mode == "nearest":
        assert ways == "asymmetric" and a.get("nearest_mode", b"") == b"floor", (ways, a)
    aligned = True if ways == "align_corners" else (None if mode == "nearest" else False)
    kind = {"nearest": "nearest", "linear": "bilinear"}[mode]

    def run(x, roi=None, scales=None, sizes=None):
        size = (sizes[2:].tolist() if sizes is not None and sizes.numel() else
                [int(n * s) for n, s in zip(x.shape[2:], scales[2:].tolist())])
        return functional.interpolate(x, size, mode=kind, align_corners=aligned)
    return run


def cut(node, a):
    def run(x, starts, ends, axes=None, steps=None):
        index = [slice(None)] * x.dim()
        axes = range(starts.numel()) if axes is None else axes.tolist()
        steps = [1] * len(starts) if steps is None else steps.tolist()
        for axis, start, end, step in zip(axes, starts.tolist(), ends.tolist(), steps):
            index[axis] = slice(start, None if end > 2**31 else end, step)
        return x[tuple(index)]
    return run


def pad(node, a):
    def run(x, pads, value=None, axes=None):
        n = x.dim()
        flat = [int(p) for i in reversed(range(n)) for p in (pads[i], pads[n + i])]
        return functional.pad(x, flat, value=0.0 if value is None else float(value))
    return run


def reduce_mean(node, a):
    keep = bool(a.get("keepdims", 1))

    def run(x, axes=None):
        dims = list(a["axes"]) if axes is None else axes.tolist()
        return x.mean(dims, keepdim=keep)
    return run


def squeeze(node, a):
    def run(x, axes=None):
        for axis in sorted(a["axes"] if axes is None else axes.tolist(), reverse=True):
            x = x.squeeze(axis)
        return x
    return run


def clip(node, a):
    def run(x, low=None, high=None):
        return torch.clamp(x, None if low is None else float(low),
                           None if high is None else float(high))
    return run


def reshape(node, a):
    def run(x, shape):
        dims = [n if n else x.shape[i] for i, n in enumerate(shape.tolist())]
        return x.reshape(dims)
    return run


def simple(function):
    return lambda node, a: function


JOINTS = {
    "Conv": conv, "Gemm": gemm, "MaxPool": pool, "AveragePool": pool, "Resize": resize,
    "Slice": cut, "Pad": pad, "ReduceMean": reduce_mean, "Squeeze": squeeze, "Clip": clip,
    "Reshape": reshape,
    "MatMul": simple(torch.matmul), "Add": simple(torch.add), "Sub": simple(torch.sub),
    "Mul": simple(torch.mul), "Div": simple(torch.div), "Pow": simple(torch.pow),
    "Sqrt": simple(torch.sqrt), "Relu": simple(torch.relu), "Sigmoid": simple(torch.sigmoid),
    "Equal": simple(torch.eq), "Identity": simple(lambda x: x),
    "GlobalAveragePool": simple(lambda x: x.mean((2, 3), keepdim=True)),
    "Flatten": lambda node, a: lambda x: x.flatten(a.get("axis", 1)),
    "Transpose": lambda node, a: lambda x: x.permute(*a["perm"]),
    "Concat": lambda node, a: lambda *x: torch.cat(x, a["axis"]),
    "Softmax": lambda node, a: lambda x: torch.softmax(x, a.get("axis", -1)),
    "Cast": lambda node, a: lambda x: x.to({1: torch.float32, 9: torch.bool}[a["to"]]),
    "HardSigmoid": lambda node, a: lambda x: torch.clamp(
        x * a.get("alpha", 0.2) + a.get("beta", 0.5), 0.0, 1.0),
    "LayerNormalization": lambda node, a: lambda x, w, b=None: functional.layer_norm(
        x, w.shape, w, b, a.get("epsilon", 1e-5)),
}


class TorchLoop:
    def __init__(self, base, plans, threads):
        torch.set_num_threads(threads)
        self.base, self.plans = base, plans
        quantised = Quantised(base, plans)
        self.constants = {n: torch.from_numpy(numpy.array(w)) for n, w in base.weights.items()}
        for node in base.model.graph.node:
            if node.op_type == "Constant":
                value = numpy_helper.to_array(node.attribute[0].t)
                self.constants[node.output[0]] = torch.from_numpy(numpy.array(value))
        self.joints = self.compile()
        self.parameters = {}  # for activations: (scale, zero point, highest level)
        self.weights = []     # for weights: [task][choice]
        for task, (is_weight, value) in enumerate(quantised.sites):
            made = []
            for c in range(len(plans.bits[task])) if is_weight else ():
                made.append(torch.from_numpy(quantised.fake_weight(task, c)))
            self.weights.append(made)
        self.sites = quantised.sites
        self.now = [None] * len(self.sites)
        self.put([0] * len(self.sites))
        self.format = torch.contiguous_format
        self.format = self.quicker()

    def compile(self):
        """For each joint: (function, inputs, positions of quantised inputs, output, values that are
        read for the last time).
        """
        nodes = [n for n in self.base.model.graph.node if n.op_type != "Constant"]
        last = {}
        for k, n in enumerate(nodes):
            last.update({i: k for i in n.input})
        kept = set(self.base.outputs) | set(self.constants) | {""}
        joints = []
        for k, n in enumerate(nodes):
            over = [i for i in set(n.input) if i not in kept and last[i] == k]
            joints.append((JOINTS[n.op_type](n, attributes(n)), list(n.input),
                           WEIGHTED.get(n.op_type, ()), n.output[0], over))
        return joints

    def put(self, choices):
        """Applies the differences from the current plan."""
        for task, (old, new) in enumerate(zip(self.now, choices)):
            is_weight, value = self.sites[task]
            if old == new:
                continue
            if is_weight:
                self.constants[value] = self.weights[task][new]
            else:
                self.parameters[value] = (float(self.plans.scales[task][new][0]),
                                          int(self.plans.zeros[task][new][0]),
                                          2 ** self.plans.bits[task][new] - 1)
        self.now = list(choices)

    def quantise(self, name, x):
        scale, zero_point, most = self.parameters[name]
        return torch.fake_quantize_per_tensor_affine(x, scale, zero_point, 0, most)

    def forward(self, feed):
        """Computes values by name. Values that are sites are kept in both forms until their last use."""
        values, fake = {}, {}
        for name, array in feed.items():
            x = torch.from_numpy(array)
            values[name] = x.to(memory_format=self.format) if x.dim() == 4 else x
        for run, inputs, weighted, output, over in self.joints:
            operands = []
            for i, name in enumerate(inputs):
                if name in self.constants:
                    operands.append(self.constants[name])
                elif i in weighted and name in self.parameters:
                    if name not in fake:
                        fake[name] = self.quantise(name, values[name])
                    operands.append(fake[name])
                else:
                    operands.append(values[name] if name else None)
            values[output] = run(*operands)
            for name in over:
                values.pop(name, None)
                fake.pop(name, None)
        return [values[o].numpy() for o in self.base.outputs]

    def quicker(self):
        times = {}
        with torch.inference_mode():
            for form in (torch.contiguous_format, torch.channels_last):
                self.format = form
                self.forward(self.base.feeds[0])
                start = time.perf_counter()
                self.forward(self.base.feeds[0])
                times[form] = time.perf_counter() - start
        return min(times, key=times.get)

    def prepare(self, trials):
        """Nothing to do: all is prepared on construction."""

    def evaluate(self, choices):
        self.put(choices)
        with torch.inference_mode():
            return self.base.loss([self.forward(f) for f in self.base.feeds])
