"""onnxruntime on a wide QDQ model: QDQ pairs on every tensor, so that it fuses them into integer kernels.

    WideSession   (S2) edits initialisers, serialises and creates a session for each trial
    IntegerLoop   (LA) one session on the fused graph of S2, whose scales, int8 weights and int32
                  biases are inputs; zero points are constants, which keeps the fast kernels

Differences from the plan: tensors that are not tasks have 8 bits, too, except those after the last
convolution or matrix product; every consumer of a task's tensor sees it quantised, not only
convolutions and matrix products; biases are rounded to int32.
"""
import os
import tempfile

import numpy
import onnx
import onnxruntime
from onnx import TensorProto, helper

import model as models
from narrow import Edited, Quantised, pair, tensor

# Operators whose input and output have the same scale, so that they run on bytes.
PASSING = ("Transpose", "Reshape", "Flatten", "Squeeze", "MaxPool", "Slice", "Unsqueeze")
INTEGER = ("Conv", "Gemm", "MatMul", "Add", "Mul", "Concat", "Resize", "AveragePool",
           "GlobalAveragePool", "Sigmoid", "Softmax") + PASSING
SATURATING = ("Relu", "Clip")


class Scheme:
    """The tensors that are quantised, the source of each one's scale, and joints replaced by saturation."""

    def __init__(self, base, quantised):
        self.base, self.quantised = base, quantised
        self.nodes = quantised.readers()[0]
        self.maker = {o: n for n in self.nodes for o in n.output}
        self.readers = {}
        for n in self.nodes:
            for i in n.input:
                self.readers.setdefault(i, []).append(n)
        self.behind = self.find_behind()
        self.dropped = self.find_dropped()
        self.tensors = self.find_tensors()
        self.task = self.find_tasks()
        ranges = base.extremes([t for t in self.tensors if t not in self.task])
        self.fixed = {t: self.parameters(*ranges[t]) for t in ranges}

    @staticmethod
    def parameters(low, high):
        step = numpy.float32(max(high - low, 1e-9) / 255)
        return step, numpy.uint8(min(255, round(-low / step)))

    def is_float(self, name):
        return name == self.base.feed or (name in self.maker and name in self.base.floats)

    def find_behind(self):
        """Joints that are not followed by a convolution or matrix product."""
        behind = set()
        for n in reversed(self.nodes):
            readers = [r for o in n.output for r in self.readers.get(o, ())]
            if n.op_type not in models.WEIGHTED and all(id(r) in behind for r in readers):
                behind.add(id(n))
        return behind

    def find_dropped(self):
        """Relu and Clip after a sum that only they read: saturation of their output replaces them."""
        dropped = {}
        for n in self.nodes:
            behind = self.maker.get(n.input[0])
            is_sum = behind is not None and behind.op_type in ("Conv", "Gemm", "Add")
            starts_at_0 = n.op_type == "Relu" or (
                n.op_type == "Clip" and len(n.input) > 1 and
                float(self.base.weights.get(n.input[1], numpy.float32(-1))) == 0.0)
            if n.op_type in SATURATING and is_sum and starts_at_0 and \
                    len(self.readers[n.input[0]]) == 1:
                dropped[n.input[0]] = n
        return dropped

    def find_tensors(self):
        wanted = []
        for n in self.nodes:
            if n.op_type not in INTEGER or id(n) in self.behind:
                continue
            # A joint that only moves bytes remains float unless its input is quantised anyway.
            if n.op_type in PASSING and n.input[0] not in wanted:
                continue
            inputs = [i for i in n.input if self.is_float(i) and i not in self.dropped]
            outputs = [self.dropped[o].output[0] if o in self.dropped else o for o in n.output]
            if n.op_type in ("Gemm", "MatMul"):
                outputs = [o for o in outputs if o not in self.base.outputs]
            wanted += [t for t in inputs + outputs if t not in wanted]
        return wanted

    def find_tasks(self):
        """Tasks of tensors, extended over joints that only move bytes."""
        task = {t: self.quantised.task[t] for t in self.tensors if t in self.quantised.task}
        for _ in range(len(self.nodes)):
            spread = dict(task)
            for n in self.nodes:
                if n.op_type not in PASSING or n.input[0] not in self.tensors:
                    continue
                source, target = n.input[0], n.output[0]
                if target in task and source not in task:
                    spread[source] = task[target]
                elif source in task and target not in task and target in self.tensors:
                    spread[target] = task[source]
            if spread == task:
                break
            task = spread
        return task


class Wide:
    """The wide model, and for each task the edits of every choice.

    `cut` are tensors whose bytes get a Clip, which does for narrower grids what saturation does for 8 bits.
    """

    def __init__(self, base, plans, cut):
        self.base, self.plans, self.cut = base, plans, cut
        self.quantised = Quantised(base, plans)
        self.scheme = Scheme(base, self.quantised)
        self.initialisers = list(base.model.graph.initializer)
        self.made = set()
        self.edits = [[{} for _ in bits] for bits in plans.bits]
        self.biases = []  # (name, activation task or its scale, weight task, bias)
        self.nodes = []
        for t in self.scheme.tensors:
            self.add_tensor(t)
        self.add_weights()
        self.rewire()
        self.model = models.assemble(base, self.nodes, self.initialisers)

    def add(self, name, array):
        if name not in self.made:
            self.made.add(name)
            self.initialisers.append(tensor(array, name))
        return name

    def scale_of(self, value):
        task = self.scheme.task.get(value)
        return self.scheme.fixed[value][0] if task is None else self.quantised.scale(task, 0)

    def names_of(self, value):
        """Names of the initialisers of a tensor's scale and zero point."""
        task = self.scheme.task.get(value)
        if task is None:
            step, zero = self.scheme.fixed[value]
            return self.add(value + "_scale", step), self.add(value + "_zero", zero)
        name = f"task_{task}"
        for c, edit in enumerate(self.edits[task]):
            edit[name + "_scale"] = self.quantised.scale(task, c)
        return (self.add(name + "_scale", self.quantised.scale(task, 0)),
                self.add(name + "_zero", self.quantised.zero(task)))

    def add_tensor(self, value):
        scale, zero = self.names_of(value)
        nodes = pair(value, scale, zero)
        task = self.scheme.task.get(value)
        if value in self.cut and task is not None:
            top = f"task_{task}_top"
            for c, edit in enumerate(self.edits[task]):
                edit[top] = numpy.array(2 ** self.plans.bits[task][c] - 1, numpy.uint8)
            self.add(top, numpy.uint8(255))
            self.add("nothing", numpy.uint8(0))
            nodes.insert(1, helper.make_node("Clip", [value + "_q", "nothing", top],
                                             [value + "_cut"]))
            nodes[2].input[0] = value + "_cut"
        self.nodes += nodes

    def add_weights(self):
        for task, (is_weight, value) in enumerate(self.quantised.sites):
            if not is_weight:
                continue
            for c, edit in enumerate(self.edits[task]):
                edit[value + "_int"] = self.quantised.weight(task, c)
                edit[value + "_scale"] = self.quantised.scale(task, c)
            first = self.edits[task][0]
            self.add(value + "_int", first[value + "_int"])
            self.add(value + "_scale", first[value + "_scale"])
            self.add(value + "_zero", numpy.zeros(first[value + "_scale"].shape, numpy.int8))
            self.nodes.append(helper.make_node(
                "DequantizeLinear", [value + "_int", value + "_scale", value + "_zero"],
                [value + "_dq"], axis=self.quantised.axis[value]))

    def constant(self, node, position):
        """A constant operand of Add or Mul as bytes, so that the joint can be fused."""
        name = node.input[position]
        value = self.base.weights[name]
        step, zero = self.scheme.parameters(min(0.0, float(value.min())),
                                            max(0.0, float(value.max())))
        data = numpy.clip(numpy.rint(value / step) + zero, 0, 255).astype(numpy.uint8)
        self.nodes.append(helper.make_node(
            "DequantizeLinear",
            [self.add(name + "_int", data), self.add(name + "_scale", step),
             self.add(name + "_zero", zero)], [name + "_dq"]))
        return name + "_dq"

    def rewire(self):
        """Makes the model's joints read and write quantised tensors."""
        dropped = {n.output[0]: source for source, n in self.scheme.dropped.items()
                   if n.output[0] in self.scheme.tensors}
        for node in self.scheme.nodes:
            if node.output[0] in dropped:
                continue
            for k, output in enumerate(node.output):
                follower = self.scheme.dropped.get(output)
                if follower is not None and follower.output[0] in dropped:
                    node.output[k] = follower.output[0]
            is_integer = (node.op_type in INTEGER and id(node) not in self.scheme.behind and
                          any(i in self.scheme.tensors for i in node.input))
            for k, name in enumerate(node.input):
                node.input[k] = self.operand(node, k, name, is_integer)
            if node.op_type in ("Conv", "Gemm") and len(node.input) > 2 and node.input[2]:
                self.add_bias(node)
            self.nodes.append(node)
        for output in self.base.outputs:
            if output in self.scheme.tensors:
                self.hand_out(output)

    def operand(self, node, position, name, is_integer):
        """The name that a joint reads instead of a value or an initialiser."""
        if name in self.scheme.tensors or (
                name in self.quantised.task and name in self.base.weights):
            return name + "_dq"
        constant = self.base.weights.get(name)
        if is_integer and node.op_type in ("Add", "Mul") and constant is not None and \
                constant.dtype == numpy.float32:
            return name + "_dq" if name + "_int" in self.made else self.constant(node, position)
        return name

    def hand_out(self, output):
        """Makes the dequantised tensor the graph's output, under the old name."""
        for node in self.nodes:
            for names in (node.output, node.input):
                for k, name in enumerate(names):
                    if name == output:
                        names[k] = output + "_raw"
        self.nodes.append(helper.make_node("Identity", [output + "_dq"], [output]))

    def add_bias(self, node):
        value, weight, bias = (n[:-3] if n.endswith("_dq") else n for n in node.input[:3])
        if value not in self.scheme.tensors or weight not in self.quantised.task:
            return
        name = f"{bias}_of_{len(self.biases)}"
        entry = (name, self.scheme.task.get(value), self.scale_of(value),
                 self.quantised.task[weight], self.base.weights[bias])
        self.biases.append(entry)
        data, scale = self.bias(entry, [0] * len(self.plans.names))
        self.add(name + "_int", data)
        self.add(name + "_scale", scale)
        self.add(name + "_zero", numpy.zeros(scale.shape, numpy.int32))
        self.nodes.append(helper.make_node(
            "DequantizeLinear", [name + "_int", name + "_scale", name + "_zero"], [name + "_dq"],
            axis=0))
        node.input[2] = name + "_dq"

    def bias(self, entry, choices):
        """(int32 data, scale) of a bias under a plan."""
        _, task, fixed, weight, values = entry
        step = fixed if task is None else self.quantised.scale(task, choices[task])
        scale = (step * self.quantised.scale(weight, choices[weight])).astype(numpy.float32)
        data = numpy.clip(numpy.rint(values.astype(numpy.float64) / scale), -2**31, 2**31 - 1)
        return data.astype(numpy.int32), scale


class Variants:
    """The wide model with and without cuts, so that 8-bit plans do not pay for cuts."""

    def __init__(self, base, plans):
        self.base, self.plans = base, plans
        self.made = {False: Wide(base, plans, ())}
        scheme = self.made[False].scheme
        self.cuts = {n.output[0]: scheme.task[n.output[0]] for n in scheme.dropped.values()
                     if n.op_type == "Clip" and n.output[0] in scheme.task}
        self.memory = {}

    def of(self, choices):
        cuts = any(self.plans.bits[t][choices[t]] < 8 for t in self.cuts.values())
        if cuts not in self.made:
            self.made[cuts] = Wide(self.base, self.plans, set(self.cuts))
        return self.made[cuts]

    def changes(self, wide, now, choices):
        """Arrays by initialiser that differ between two plans."""
        found = {}
        changed = {t for t, (a, b) in enumerate(zip(now, choices)) if a != b}
        for t in changed:
            found.update(wide.edits[t][choices[t]])
        for entry in wide.biases:
            name, task, _, weight, _ = entry
            if task in changed or weight in changed:
                key = (id(wide), name, choices[weight], None if task is None else choices[task])
                if key not in self.memory:
                    self.memory[key] = wide.bias(entry, choices)
                found[name + "_int"], found[name + "_scale"] = self.memory[key]
        return found


class WideSession:
    def __init__(self, base, plans, threads):
        self.base, self.threads = base, threads
        self.variants = Variants(base, plans)
        self.now = {}

    def prepare(self, trials):
        """Prepares the models with the cuts that these trials need, and their biases."""
        for choices in trials:
            self.apply(choices)

    def apply(self, choices):
        wide = self.variants.of(choices)
        if id(wide) not in self.now:
            self.now[id(wide)] = ([0] * len(choices),
                                  {i.name: i for i in wide.model.graph.initializer})
        now, initialisers = self.now[id(wide)]
        for name, array in self.variants.changes(wide, now, choices).items():
            if name in initialisers:
                initialisers[name].raw_data = array.tobytes()
        self.now[id(wide)] = (list(choices), initialisers)
        return wide.model

    def evaluate(self, choices):
        session = models.session(self.apply(choices), self.threads)
        return self.base.loss([session.run(self.base.outputs, f) for f in self.base.feeds])


def fused(model):
    """The graph that onnxruntime makes of a QDQ model, with constants under their own names."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "fused.onnx")
        options = models.session_options(1)
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
        options.optimized_model_filepath = path
        onnxruntime.InferenceSession(model.SerializeToString(), options,
                                     disabled_optimizers=["ConstantSharing"])
        return onnx.load(path)


class IntegerLoop:
    def __init__(self, base, plans, threads):
        self.base, self.threads = base, threads
        self.variants = Variants(base, plans)
        self.sessions = {}

    def make(self, wide):
        """A session whose scales, weights and biases are inputs, and the values of the first plan."""
        model = fused(wide.model)
        names = {name for edits in wide.edits for edit in edits for name in edit}
        names |= {entry[0] + "_int" for entry in wide.biases}
        values = {}
        for i in list(model.graph.initializer):
            if i.name in names:
                values[i.name] = onnx.numpy_helper.to_array(i)
                model.graph.input.append(
                    helper.make_tensor_value_info(i.name, i.data_type, list(i.dims)))
                model.graph.initializer.remove(i)
        return models.session(model, self.threads), [0] * len(wide.edits), values

    def prepare(self, trials):
        for choices in trials:
            self.apply(choices)

    def apply(self, choices):
        wide = self.variants.of(choices)
        if id(wide) not in self.sessions:
            self.sessions[id(wide)] = self.make(wide)
        session, now, values = self.sessions[id(wide)]
        for name, array in self.variants.changes(wide, now, choices).items():
            if name in values:
                values[name] = array
        now[:] = choices
        return session, values

    def evaluate(self, choices):
        session, values = self.apply(choices)
        return self.base.loss([session.run(self.base.outputs, dict(values, **f))
                               for f in self.base.feeds])
