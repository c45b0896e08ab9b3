"""onnxruntime on a narrow QDQ model: QDQ pairs only on the inputs of Conv, Gemm and MatMul.

    NarrowSession  (S1) edits initialisers, serialises and creates a session for each trial
    NarrowLoop     (L2) one session; activation scales and fake-quantised float weights are inputs

Zero points are always those of 8 bits. uint8 holds the narrower grids at any zero point, and ranges
come from the extremes of the same inputs, so no value that a plan represents is cut.
"""
import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

import model as models


class Quantised:
    """The values that are tasks, with scales and integers of every choice, computed beforehand."""

    def __init__(self, base, plans):
        self.base, self.plans = base, plans
        self.sites = [base.site(name) for name in plans.names]
        self.task = {value: t for t, (_, value) in enumerate(self.sites)}
        self.axis = {}
        for node in base.model.graph.node:
            for i in models.WEIGHTED.get(node.op_type, ()):
                if node.input[i] in base.weights:
                    self.axis[node.input[i]] = models.weight_axis(
                        node, base.weights[node.input[i]])
        for is_weight, value in self.sites:
            assert not is_weight or value in self.axis, value

    def scale(self, task, choice):
        """A scale in the shape that operators expect: a scalar, or one per channel."""
        scale = self.plans.scales[task][choice]
        return scale if scale.size > 1 else scale.reshape(()).copy()

    def zero(self, task):
        return numpy.uint8(self.plans.zeros[task][0][0])

    def weight(self, task, choice):
        _, name = self.sites[task]
        return models.integers(self.base.weights[name], self.plans.scales[task][choice],
                               self.axis[name], self.plans.bits[task][choice])

    def fake_weight(self, task, choice):
        _, name = self.sites[task]
        scale = self.plans.scales[task][choice]
        shape = [1] * self.base.weights[name].ndim
        shape[self.axis[name]] = scale.size
        return self.weight(task, choice).astype(numpy.float32) * scale.reshape(shape)

    def readers(self):
        """Copies of the model's nodes, and their inputs that are sites: (node, position, task)."""
        nodes = [onnx.NodeProto.FromString(n.SerializeToString())
                 for n in self.base.model.graph.node]
        found = [(n, i, self.task[n.input[i]]) for n in nodes
                 for i in models.WEIGHTED.get(n.op_type, ()) if n.input[i] in self.task]
        return nodes, found


def pair(value, scale, zero):
    return [helper.make_node("QuantizeLinear", [value, scale, zero], [value + "_q"]),
            helper.make_node("DequantizeLinear", [value + "_q", scale, zero], [value + "_dq"])]


def tensor(array, name):
    return numpy_helper.from_array(numpy.asarray(array), name)


class Edited:
    """A model whose initialisers follow a plan. edits[task][choice] = {initialiser: bytes}."""

    def __init__(self, model, edits):
        self.model, self.edits = model, edits
        self.initialisers = {i.name: i for i in model.graph.initializer}
        self.now = [0] * len(edits)

    def apply(self, choices):
        for task, (old, new) in enumerate(zip(self.now, choices)):
            if old != new:
                for name, data in self.edits[task][new].items():
                    self.initialisers[name].raw_data = data
        self.now = list(choices)


class NarrowSession:
    def __init__(self, base, plans, threads):
        self.base, self.threads = base, threads
        quantised = Quantised(base, plans)
        nodes, readers = quantised.readers()
        self.initialisers = list(base.model.graph.initializer)
        edits = [None] * len(plans.names)
        for node, i, task in readers:
            if edits[task] is None:
                edits[task] = self.add(nodes, quantised, task)
            node.input[i] = quantised.sites[task][1] + "_dq"
        self.edited = Edited(models.assemble(base, nodes, self.initialisers), edits)

    def add(self, nodes, quantised, task):
        is_weight, value = quantised.sites[task]
        scales = [quantised.scale(task, c) for c in range(len(quantised.plans.bits[task]))]
        if not is_weight:
            self.initialisers += [tensor(scales[0], value + "_scale"),
                                  tensor(quantised.zero(task), value + "_zero")]
            nodes += pair(value, value + "_scale", value + "_zero")
            return [{value + "_scale": s.tobytes()} for s in scales]
        whole = [quantised.weight(task, c) for c in range(len(scales))]
        self.initialisers += [tensor(whole[0], value + "_int"),
                              tensor(scales[0], value + "_scale"),
                              tensor(numpy.zeros(scales[0].shape, numpy.int8), value + "_zero")]
        nodes.append(helper.make_node(
            "DequantizeLinear", [value + "_int", value + "_scale", value + "_zero"],
            [value + "_dq"], axis=quantised.axis[value]))
        return [{value + "_int": w.tobytes(), value + "_scale": s.tobytes()}
                for w, s in zip(whole, scales)]

    def prepare(self, trials):
        """Nothing to do: all is prepared on construction."""

    def evaluate(self, choices):
        self.edited.apply(choices)
        session = models.session(self.edited.model, self.threads)
        return self.base.loss([session.run(self.base.outputs, f) for f in self.base.feeds])


class NarrowLoop:
    def __init__(self, base, plans, threads):
        self.base = base
        quantised = Quantised(base, plans)
        nodes, readers = quantised.readers()
        initialisers = list(base.model.graph.initializer)
        inputs, self.names, self.values = [], [None] * len(plans.names), []
        for node, i, task in readers:
            is_weight, value = quantised.sites[task]
            name = value + ("_weight" if is_weight else "_scale")
            node.input[i] = name if is_weight else value + "_dq"
            if self.names[task] is not None:
                continue
            self.names[task] = name
            if not is_weight:
                initialisers.append(tensor(quantised.zero(task), value + "_zero"))
                nodes += pair(value, name, value + "_zero")
            shape = base.weights[value].shape if is_weight else ()
            inputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))
        for task, (is_weight, _) in enumerate(quantised.sites):
            make = quantised.fake_weight if is_weight else quantised.scale
            self.values.append([make(task, c) for c in range(len(plans.bits[task]))])
        self.session = models.session(models.assemble(base, nodes, initialisers, inputs), threads)

    def prepare(self, trials):
        """Nothing to do: all is prepared on construction."""

    def evaluate(self, choices):
        plan = {name: values[c]
                for name, values, c in zip(self.names, self.values, choices)}
        return self.base.loss([self.session.run(self.base.outputs, dict(plan, **f))
                               for f in self.base.feeds])
