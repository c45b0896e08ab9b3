"""Compares mscgym with ONNX Runtime on the inputs of models.py.

    difference = compare_outputs(run, outputs(path, feeds), feeds)
    difference = compare_nodes(run, path, feed)

`run(feed, more)` runs mscgym with further options and returns the tensors by name. Differences are
relative to the greatest element. compare_nodes is for quantised models: two correct kernels may
round one element differently, and later layers enlarge that. So ONNX Runtime computes each node from
mscgym's tensors; integers may differ by one step, in one element or a thousandth of a tensor.
"""
import numpy
import onnx
import onnxruntime
from onnx import helper

MOST_STEPS, MOST_SHARE = 1, 1e-3


def relative(mine, theirs):
    mine, theirs = mine.astype(float), theirs.astype(float)
    same = (mine == theirs) | (numpy.isnan(mine) & numpy.isnan(theirs))
    most = numpy.abs(theirs[numpy.isfinite(theirs)]).max(initial=1e-30)
    with numpy.errstate(invalid="ignore"):
        gap = numpy.where(same, 0, numpy.abs(mine - theirs)).max(initial=0) / most
    return float("inf") if numpy.isnan(gap) else float(gap)


def compare_outputs(run, expected, feeds):
    pairs = {}
    for feed, wanted in zip(feeds, expected):
        found = run(feed, [])
        for name, value in wanted.items():
            if name not in found:
                raise RuntimeError(f"run: output {name} is missing")
            if found[name].shape != value.shape:
                raise RuntimeError(f"run: output {name} has shape {found[name].shape}, expected {value.shape}")
            pairs.setdefault(name, []).append((found[name].ravel(), value.ravel()))
    return max(relative(*map(numpy.concatenate, zip(*arrays))) for arrays in pairs.values())


def separate(model, tensors):
    """A model in which each node reads `tensors` in place of the outputs of other nodes. Returns it,
    and the names of the tensors that it reads."""
    producers = {o: node for node in model.graph.node for o in node.output if o}
    given, nodes, outputs, done = set(), [], [], set()

    def input_of(name):
        if name in tensors and (name in producers or any(name == i.name for i in model.graph.input)):
            given.add(name)
            return "given:" + name
        if name in producers and name not in done:
            done.update(producers[name].output)
            nodes.append(copy(producers[name], lambda o: o))
        return name

    def copy(node, rename):
        result = onnx.NodeProto()
        result.CopyFrom(node)
        result.input[:] = [input_of(n) if n else "" for n in node.input]
        result.output[:] = [rename(o) if o else "" for o in node.output]
        return result

    for node in model.graph.node:
        if all(o in tensors for o in node.output if o) and not any(a.type == a.GRAPH for a in node.attribute):
            nodes.append(copy(node, lambda o: "found:" + o))
            outputs += [onnx.ValueInfoProto(name="found:" + o) for o in node.output if o]
    inputs = [helper.make_tensor_value_info("given:" + n, helper.np_dtype_to_tensor_dtype(tensors[n].dtype),
                                            tensors[n].shape) for n in sorted(given)]
    graph = helper.make_graph(nodes, "nodes", inputs, outputs, model.graph.initializer)
    result = helper.make_model(graph, opset_imports=model.opset_import, functions=model.functions)
    result.ir_version = model.ir_version
    return result, given


def evaluate(model, feed):
    """All outputs by name, without optimisation."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])
    names = [o.name for o in session.get_outputs()]
    return dict(zip(names, session.run(names, feed)))


def every_tensor(model, feed):
    """All tensors as ONNX Runtime computes them."""
    whole = onnx.ModelProto()
    whole.CopyFrom(model)
    outputs = {o.name for o in model.graph.output}
    whole.graph.output.extend(onnx.ValueInfoProto(name=o) for node in model.graph.node for o in node.output
                              if o and o not in outputs)
    return evaluate(whole, feed)


def compare_nodes(run, path, feed):
    model = onnx.load(path)
    theirs, tensors = every_tensor(model, feed), dict(feed)
    for name, array in run(feed, ["--tensor", "*"]).items():
        # A tensor may have other lengths of 1 here.
        if name in theirs and array.size == theirs[name].size and array.dtype == theirs[name].dtype:
            tensors[name] = array.reshape(theirs[name].shape)
    alone, given = separate(model, tensors)
    if not alone.graph.output:
        raise RuntimeError("no node could be compared")
    worst = 0
    for name, theirs in evaluate(alone, {"given:" + n: tensors[n] for n in given}).items():
        mine = tensors[name.partition(":")[2]]
        if theirs.dtype.kind in "iu" and theirs.dtype.itemsize <= 2:
            apart = numpy.abs(mine.astype(int) - theirs.astype(int))
            if apart.max(initial=0) > MOST_STEPS or numpy.count_nonzero(apart) - 1 > MOST_SHARE * apart.size:
                raise RuntimeError(f"{name} differs by {apart.max()} steps in {numpy.count_nonzero(apart)} "
                                   f"of {apart.size} elements")
        else:
            worst = max(worst, relative(mine, theirs))
    return worst
