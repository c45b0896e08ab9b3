"""Base of the peers' models: the float model as mscgym exports it.

Batch normalisation is already folded, so sites, weights and scales are those of the search. The
batch is made a constant, and onnxruntime folds all that depends only on shapes.
"""
import os
import tempfile

import numpy
import onnx
import onnxruntime
from onnx import helper, numpy_helper

# Optimisations that would rewrite weights that are sites. The timed sessions use all optimisations.
KEPT_APART = ["ConvMulFusion", "ConvAddFusion", "ConvBNFusion", "MatMulAddFusion",
              "MatmulTransposeFusion", "MatMulScaleFusion", "ConvActivationFusion",
              "TransposeOptimizer", "Pad_Fusion", "PadFusion"]
WEIGHTED = {"Conv": (0, 1), "ConvTranspose": (0, 1), "Gemm": (0, 1), "MatMul": (0, 1)}


def session_options(threads):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 4
    return options


def session(model, threads):
    return onnxruntime.InferenceSession(model.SerializeToString(), session_options(threads))


def rebatch(model, shape):
    """Sets the input's shape. A model exported for one image is changed to take several."""
    constants = {i.name: i for i in model.graph.initializer}
    feed = next(i for i in model.graph.input if i.name not in constants)
    was = feed.type.tensor_type.shape.dim[0].dim_value
    for dim, n in zip(feed.type.tensor_type.shape.dim, shape):
        dim.Clear()
        dim.dim_value = n
    if was == 1 and shape[0] > 1:
        for node in model.graph.node:
            position = {"Reshape": 1, "Resize": 3}.get(node.op_type)
            if position is None or len(node.input) <= position or not node.input[position]:
                continue
            values = numpy_helper.to_array(constants[node.input[position]]).copy()
            assert values[0] == 1
            values[0] = shape[0]
            constants[node.input[position]].CopyFrom(
                numpy_helper.from_array(values, node.input[position]))
    for node in model.graph.node:
        # onnxruntime fuses this pool into one that does not support the attribute.
        for attribute in list(node.attribute):
            if node.op_type == "AveragePool" and attribute.name == "dilations" and \
                    all(d == 1 for d in attribute.ints):
                node.attribute.remove(attribute)
    for output in model.graph.output:
        output.type.tensor_type.ClearField("shape")
    del model.graph.value_info[:]
    return feed.name


def fold(model):
    """Applies onnxruntime's basic optimisations, except those that rewrite weights."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "folded.onnx")
        options = session_options(1)
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
        options.optimized_model_filepath = path
        onnxruntime.InferenceSession(model.SerializeToString(), options,
                                     disabled_optimizers=KEPT_APART)
        return onnx.load(path)


class Base:
    """The float model for one batch size, with its inputs as feeds and its outputs as references."""

    def __init__(self, path, inputs, batch):
        # The model may be changed to another batch size than it was exported for.
        exported = onnx.load(path)
        self.folder = os.path.dirname(path)
        self.feed = rebatch(exported, (batch,) + inputs.shape[1:])
        outputs = {(n.name, i): o for n in exported.graph.node for i, o in enumerate(n.output)}
        self.values = {f"{name}:{i}": output for (name, i), output in outputs.items()}
        self.model = fold(exported)
        self.model.graph.name = "peer"
        self.weights = {i.name: numpy_helper.to_array(i) for i in self.model.graph.initializer}
        self.floats = self.float_values()
        self.known = {self.feed} | {o for n in self.model.graph.node for o in n.output}
        self.feeds = [{self.feed: inputs[i:i + batch]} for i in range(0, len(inputs), batch)]
        floats = session(self.model, 2)
        kept = [o.name for o in floats.get_outputs() if o.type == "tensor(float)"]
        self.outputs = kept
        self.references = [floats.run(kept, feed) for feed in self.feeds]
        self.norms = [sum(float(numpy.square(r[i], dtype=numpy.float64).sum())
                          for r in self.references) for i in range(len(kept))]

    def float_values(self):
        """Names of the float32 values."""
        found = onnx.shape_inference.infer_shapes(self.model).graph.value_info
        names = {v.name for v in found
                 if v.type.tensor_type.elem_type == onnx.TensorProto.FLOAT}
        return names | {self.feed} | {o.name for o in self.model.graph.output
                                      if o.type.tensor_type.elem_type == onnx.TensorProto.FLOAT}

    def site(self, name):
        """(whether a task is a weight, the name of its value or initialiser)"""
        if name in self.weights:
            return True, name
        bare = name[:-2] if name.endswith(":0") else name
        found = [v for v in (self.values.get(name), name, bare) if v in self.known]
        assert found, f"{name} is no value of the folded model"
        return False, found[0]

    def loss(self, results):
        """Mean over outputs of sum (y - z)^2 / sum y^2, like distill_loss with mse."""
        sums = [0.0] * len(self.outputs)
        for reference, result in zip(self.references, results):
            for i, (y, z) in enumerate(zip(reference, result)):
                d = (y - z).ravel()
                sums[i] += float(numpy.dot(d, d))
        return sum(s / n for s, n in zip(sums, self.norms)) / len(sums)

    def extremes(self, names):
        """Least and greatest value of each tensor over the inputs."""
        wider = onnx.ModelProto()
        wider.CopyFrom(self.model)
        known = {o.name for o in wider.graph.output}
        wider.graph.output.extend(onnx.ValueInfoProto(name=n) for n in names if n not in known)
        floats = session(wider, 2)
        ranges = {n: (0.0, 0.0) for n in names}
        for feed in self.feeds:
            for name, value in zip(names, floats.run(list(names), feed)):
                low, high = ranges[name]
                ranges[name] = min(low, float(value.min())), max(high, float(value.max()))
        return ranges


def assemble(base, nodes, initialisers, inputs=()):
    """Makes a model; puts the nodes into topological order."""
    known = {i.name for i in initialisers} | {base.feed, ""} | {i.name for i in inputs}
    ordered, waiting = [], list(nodes)
    while waiting:
        later = []
        for node in waiting:
            if all(i in known for i in node.input):
                known.update(node.output)
                ordered.append(node)
            else:
                later.append(node)
        assert len(later) < len(waiting), "cycle"
        waiting = later
    used = {i for n in ordered for i in n.input}
    feeds = [i for i in base.model.graph.input if i.name == base.feed] + list(inputs)
    outputs = [onnx.ValueInfoProto(name=o) for o in base.outputs]
    for o in outputs:
        o.type.tensor_type.elem_type = onnx.TensorProto.FLOAT
    graph = helper.make_graph(ordered, "peer", feeds, outputs,
                              [i for i in initialisers if i.name in used])
    return helper.make_model(graph, opset_imports=list(base.model.opset_import), ir_version=10)


def integers(weight, scales, axis, bits):
    """A weight as symmetric integers, with one scale or one for each channel of `axis`."""
    shape = [1] * weight.ndim
    shape[axis] = -1
    step = scales.reshape(shape) if scales.size > 1 else scales.reshape([1] * weight.ndim)
    high = 2 ** (bits - 1) - 1
    return numpy.clip(numpy.rint(weight / step), -high, high).astype(numpy.int8)


def weight_axis(node, weight):
    """The axis of output channels in a weight."""
    if node.op_type == "Conv":
        return 0
    if node.op_type == "ConvTranspose":
        return 1
    transposed = any(a.name == "transB" and a.i for a in node.attribute)
    return weight.ndim - 2 if transposed else weight.ndim - 1
