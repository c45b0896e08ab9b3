"""The peer of bench/trials.py: what people do by hand with onnx and onnxruntime.

A narrow QDQ model (QuantizeLinear/DequantizeLinear around the inputs of Conv, Gemm and MatMul only) is
built once; each trial changes one site's integers or scale in it, serialises it, creates a session and
runs the inputs. Scales come from the extremes that the float model shows on the same inputs; integers
for every choice are made beforehand, so that no trial pays for them.
"""
import multiprocessing
import time

import numpy
import onnx
import onnxruntime
from onnx import helper, numpy_helper, version_converter

QUANTISED = {"Conv": (0, 1), "Gemm": (0, 1), "MatMul": (0, 1), "ConvTranspose": (0, 1)}
CHOICES = (8, 6, 4)


def options(threads):
    o = onnxruntime.SessionOptions()
    o.intra_op_num_threads = threads
    o.inter_op_num_threads = 1
    o.log_severity_level = 4
    return o


def load(path):
    model = onnx.load(path)
    version = next(i.version for i in model.opset_import if i.domain in ("", "ai.onnx"))
    return version_converter.convert_version(model, 13) if version < 13 else model


def constants_of(model):
    found = {i.name: numpy_helper.to_array(i) for i in model.graph.initializer}
    for node in model.graph.node:
        if node.op_type == "Constant" and node.attribute[0].name == "value":
            found[node.output[0]] = numpy_helper.to_array(node.attribute[0].t)
        elif node.op_type == "Identity" and node.input[0] in found:
            found[node.output[0]] = found[node.input[0]]
    return found


def extremes(model, names, feeds):
    """Least and greatest value of each named tensor over the inputs."""
    wider = onnx.ModelProto()
    wider.CopyFrom(model)
    known = {o.name for o in wider.graph.output}
    wider.graph.output.extend(onnx.ValueInfoProto(name=n) for n in names if n not in known)
    session = onnxruntime.InferenceSession(wider.SerializeToString(), options(2))
    ranges = {n: (0.0, 0.0) for n in names}
    for feed in feeds:
        for name, value in zip(names, session.run(names, feed)):
            low, high = ranges[name]
            ranges[name] = min(low, float(value.min())), max(high, float(value.max()))
    return ranges


class Narrow:
    """The QDQ model and, for each site, the initialisers that a choice replaces."""

    def __init__(self, path, feeds):
        model = load(path)
        constants = constants_of(model)
        readers = [(n, i) for n in model.graph.node for i in QUANTISED.get(n.op_type, ())]
        activations = list(dict.fromkeys(
            n.input[i] for n, i in readers if n.input[i] not in constants))
        ranges = extremes(model, activations, feeds)
        self.nodes, self.initialisers, self.sites, replaced = [], {}, [], {}
        for name in activations:
            replaced[name] = self.add_activation(name, *ranges[name])
        for node, i in readers:
            name = node.input[i]
            if name not in replaced:
                replaced[name] = self.add_weight(name, constants[name])
            node.input[i] = replaced[name]
        self.model = self.assemble(model)
        self.by_name = {i.name: i for i in self.model.graph.initializer}

    def add(self, name, array):
        self.initialisers[name] = numpy_helper.from_array(numpy.ascontiguousarray(array), name)
        return name

    def add_activation(self, name, low, high):
        scale, zero = name + "_scale", name + "_zero"
        choices = []
        for bits in CHOICES:
            step = numpy.float32(max(high - low, 1e-9) / (2 ** bits - 1))
            point = numpy.uint8(min(255, round(-low / step)))
            choices.append({scale: step.tobytes(), zero: point.tobytes()})
            if bits == 8:
                self.add(scale, step)
                self.add(zero, point)
        self.sites.append(choices)
        self.nodes.append(helper.make_node("QuantizeLinear", [name, scale, zero], [name + "_q"]))
        self.nodes.append(
            helper.make_node("DequantizeLinear", [name + "_q", scale, zero], [name + "_dq"]))
        return name + "_dq"

    def add_weight(self, name, weight):
        axis = 0 if weight.ndim > 2 else weight.ndim - 1
        others = tuple(a for a in range(weight.ndim) if a != axis)
        top = numpy.maximum(abs(weight).max(others, keepdims=True), 1e-9)
        choices = []
        for bits in CHOICES:
            step = (top / (2 ** (bits - 1) - 1)).astype(numpy.float32)
            integers = numpy.rint(weight / step).astype(numpy.int8)
            choices.append({name + "_int": integers.tobytes(), name + "_scale": step.tobytes()})
            if bits == 8:
                self.add(name + "_int", integers)
                self.add(name + "_scale", step.ravel())
                self.add(name + "_zero", numpy.zeros(step.size, numpy.int8))
        self.sites.append(choices)
        self.nodes.append(helper.make_node(
            "DequantizeLinear", [name + "_int", name + "_scale", name + "_zero"], [name + "_dq"],
            axis=axis))
        return name + "_dq"

    def assemble(self, model):
        """Nodes in topological order: each pair after the node that makes its input."""
        waiting = list(self.nodes) + list(model.graph.node)
        initialisers = list(model.graph.initializer) + list(self.initialisers.values())
        known = {i.name for i in initialisers} | {i.name for i in model.graph.input} | {""}
        ordered = []
        while waiting:
            ready = [n for n in waiting if all(i in known for i in n.input)]
            assert ready, "cycle"
            known.update(o for n in ready for o in n.output)
            ordered += ready
            waiting = [n for n in waiting if not any(n is r for r in ready)]
        graph = helper.make_graph(ordered, "narrow", model.graph.input, model.graph.output,
                                  initialisers)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)

    def trial(self, site, choice, feeds, references, threads):
        """Edit, session, run, loss; the edit is taken back."""
        for name, data in self.sites[site][choice].items():
            self.by_name[name].raw_data = data
        session = onnxruntime.InferenceSession(self.model.SerializeToString(), options(threads))
        loss = 0.0
        for feed, reference in zip(feeds, references):
            for y, z in zip(reference, session.run(None, feed)):
                loss += float(numpy.mean((y - z) ** 2))
        for name, data in self.sites[site][0].items():
            self.by_name[name].raw_data = data
        return loss


def run_trials(path, feeds, trials, threads):
    """Seconds for some (site, choice) trials, without what is done once."""
    narrow = Narrow(path, feeds)
    session = onnxruntime.InferenceSession(path, options(threads))
    references = [session.run(None, f) for f in feeds]
    narrow.trial(*trials[0], feeds, references, threads)
    start = time.perf_counter()
    for site, choice in trials:
        narrow.trial(site, choice, feeds, references, threads)
    return time.perf_counter() - start


def _share(arguments):
    return run_trials(*arguments)


def trials_per_second(path, feeds, trials):
    """The better of one process with two threads and two processes with one: (rate, which)."""
    together = len(trials) / run_trials(path, feeds, trials, 2)
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        shares = [(path, feeds, trials[i::2], 1) for i in range(2)]
        apart = len(trials) / max(pool.map(_share, shares))
    return (together, "2 threads") if together >= apart else (apart, "2 processes")
