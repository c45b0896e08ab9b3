#!/usr/bin/env python3
"""Tests Relax -> MSCGraph -> Relax on networks that TVM's front ends import.

    relax_models.py MSCGYM [--front torch|onnx] [--no-run] [NAME ...]

Each network is imported by TVM, from torch.export ("torch") and from ONNX ("onnx"), and then:
- `from_relax` makes a graph, `to_relax` writes it as a module again.
- Both modules are compared by TVM, after FoldConstant, CanonicalizeBindings and DeadCodeElimination. A module with
  loops that the front end wrote in place of operators cannot be compared; its graph is compared with the graph of the
  module that was written.
- The graph runs by the program, and the written module by TVM (LLVM, without optimisation). Expected outputs are
  torch's, or ONNX Runtime's for models that are ONNX files. If TVM's front end reads a file as another function, they
  are TVM's for the module that it imported, and the line says so.
- Outputs are within 1e-5 of the largest value. Networks that amplify the rounding of sums differ more, whoever
  computes them. So outputs also pass if they are as near to those of a computation in 64 bits, within a factor of 4, as
  the expected ones, and these within 1e-3. The line shows both distances. The computation in 64 bits is torch's, or for
  an ONNX file that of onnx's reference evaluator.

Prints a line for each network. Exits with 1 if fewer than nine of ten are read, or if one that is read is wrong; with
77 without apache-tvm, torch, torchvision, timm or transformers. Models of ONNX files are in $MSC_MODELS
(scripts/fetch-models); absent ones are left out, with a line.
"""
import argparse
import copy
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import warnings

try:
    import numpy
    import tvm
    from tvm import relax
    from tvm.relax.frontend.onnx import from_onnx
    from tvm.relax.frontend.torch import from_exported_program
    import torch_graphs  # exits with 77 without its packages
    import models_torch
    import torch
    from torch import nn
except ImportError as error:
    print(f"skipped: {error}; needs apache-tvm and torch")
    sys.exit(77)

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))
from mscgym.graph import Graph, GraphError  # noqa: E402
from mscgym.tvm import from_relax, to_relax  # noqa: E402
from mscgym.tvm.module import run  # noqa: E402

LIMIT = 1e-5
FACTOR = 4
MOST = 1e-3
COUNT = 2
CALM = ["efficientnet_v2_s"]
FILES = {"ocr-det": {"x": (1, 3, 64, 64)}, "ocr-rec": {"x": (1, 3, 48, 64)}, "mlsd-tiny": None}


def vision(name, side=64):
    return torch_graphs.vision(name, side)


MODULES = {
    **{name: vision(name) for name in [
        "alexnet", "vgg11_bn", "resnet18", "resnext50_32x4d", "wide_resnet50_2", "mobilenet_v2", "mobilenet_v3_small",
        "mobilenet_v3_large", "efficientnet_b0", "efficientnet_v2_s", "shufflenet_v2_x0_5", "squeezenet1_1",
        "densenet121", "googlenet", "mnasnet0_5", "regnet_y_400mf", "regnet_x_400mf", "convnext_tiny", "swin_t",
        "swin_v2_t", "maxvit_t", "vit_b_16", "segmentation.lraspp_mobilenet_v3_large", "segmentation.fcn_resnet50",
        "segmentation.deeplabv3_mobilenet_v3_large"]},
    **{name: torch_graphs.MODULES[name] for name in torch_graphs.MODULES
       if name.startswith(("transformers.", "layers.lstm", "layers.encoder", "layers.gru"))}}
SIDES = {"alexnet": 96, "vit_b_16": 224, "maxvit_t": 224, "googlenet": 96}
MODULES |= {name: vision(name, side) for name, side in SIDES.items()}


class Positional(nn.Module):
    """A module with inputs by position, which TVM's front ends want."""

    def __init__(self, module, names):
        super().__init__()
        self.module, self.names = module, names

    def forward(self, *values):
        return tuple(torch_graphs.flat(self.module(**dict(zip(self.names, values)))))


def calm(module):
    """Makes residual branches weaker than what they are added to. Fifty random branches of equal strength amplify the
    rounding of a sum until nothing of the outputs is left."""
    for part in module.modules():
        if getattr(part, "use_res_connect", False):
            norms = [m for m in part.modules() if isinstance(m, nn.BatchNorm2d)]
            norms[-1].weight.data.mul_(0.2)


def build(name):
    """A module, its inputs by name, and torch's outputs, of 32 and of 64 bits."""
    torch.manual_seed(0)
    module, values = MODULES[name]()
    values = {key or "x": v.astype(numpy.int64) if v.dtype.kind == "i" else v for key, v in values.items()}
    if name.startswith("layers."):
        import inspect
        names = [key for key in inspect.signature(module.forward).parameters]
        values = dict(zip(names, values.values()))
    models_torch.enliven(module)
    if name in CALM:
        calm(module)
    models_torch.settle(module, values)
    values = {key: value[:COUNT] for key, value in values.items()}
    whole = Positional(module.eval(), [*values]).eval()
    with torch.no_grad():
        tensors = [torch.from_numpy(value) for value in values.values()]
        expected = [x.numpy() for x in whole(*tensors)]
        doubles = [x.double() if x.is_floating_point() else x for x in tensors]
        exact = [x.numpy() for x in copy.deepcopy(whole).double()(*doubles)]
    return whole, values, expected, exact


def folded(path, folder, shapes):
    """A model with fixed shapes and computed constants, and without empty operands of Resize, as TVM's front end needs
    it."""
    import onnx
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath = str(folder / "folded.onnx")
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.log_severity_level = 3
    for item in onnx.load(path).graph.input:
        for dim, length in zip(item.type.tensor_type.shape.dim, shapes.get(item.name, ())):
            if dim.dim_param:
                options.add_free_dimension_override_by_name(dim.dim_param, length)
    onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    model = onnx.load(folder / "folded.onnx")
    empty = {item.name for item in model.graph.initializer if 0 in item.dims}
    for node in model.graph.node:
        if node.op_type == "Resize":
            names = ["" if name in empty else name for name in node.input]
            node.input[:] = names
    return model


def in_doubles(model):
    """The model with numbers of 64 bits in place of 32, and products and sums in place of normalisations, for which
    onnx's evaluator uses statistics of the batch before version 14."""
    import onnx
    model = copy.deepcopy(model)
    arrays = {item.name: onnx.numpy_helper.to_array(item) for item in model.graph.initializer}
    for i, node in reversed([*enumerate(model.graph.node)]):
        if node.op_type == "BatchNormalization":
            gain, shift, mean, variance = (arrays[name].astype("float64").reshape(-1, 1, 1) for name in node.input[1:])
            epsilon = next((item.f for item in node.attribute if item.name == "epsilon"), 1e-5)
            factor = gain / numpy.sqrt(variance + epsilon)
            name = node.output[0]
            model.graph.initializer.extend([onnx.numpy_helper.from_array(factor, f"{name}_factor"),
                                            onnx.numpy_helper.from_array(shift - mean * factor, f"{name}_term")])
            made = [onnx.helper.make_node("Mul", [node.input[0], f"{name}_factor"], [f"{name}_product"]),
                    onnx.helper.make_node("Add", [f"{name}_product", f"{name}_term"], [name])]
            del model.graph.node[i]
            for part in reversed(made):
                model.graph.node.insert(i, part)
    single, double = onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE

    def widened(tensor):
        if tensor.data_type == single:
            tensor.CopyFrom(onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(tensor).astype("float64"),
                                                         tensor.name))
    for tensor in model.graph.initializer:
        widened(tensor)
    for node in model.graph.node:
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.TENSOR:
                widened(attribute.t)
            elif node.op_type == "Cast" and attribute.name == "to" and attribute.i == single:
                attribute.i = double
    for item in [*model.graph.input, *model.graph.output]:
        if item.type.tensor_type.elem_type == single:
            item.type.tensor_type.elem_type = double
    del model.graph.value_info[:]
    return model


def imported(name, front, folder):
    """TVM's module, its inputs in order, the expected outputs, and those of a computation in 64 bits."""
    if name in FILES:
        import onnxruntime
        from onnx.reference import ReferenceEvaluator
        path = pathlib.Path(os.environ.get("MSC_MODELS", pathlib.Path.home() / ".cache/mscgym/models")) / f"{name}.onnx"
        session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
        shapes = FILES[name] or {item.name: item.shape for item in session.get_inputs()}
        values = {key: numpy.random.default_rng(0).uniform(-1, 1, shape).astype("float32")
                  for key, shape in shapes.items()}
        model = folded(path, folder, shapes)
        exact = ReferenceEvaluator(in_doubles(model)).run(
            None, {key: value.astype("float64") for key, value in values.items()})
        return from_onnx(model, shape_dict={k: list(v) for k, v in shapes.items()}), [*values.values()], session.run(
            None, values), exact
    module, values, expected, exact = build(name)
    tensors = tuple(map(torch.from_numpy, values.values()))
    if front == "torch":
        with torch.no_grad():
            program = torch.export.export(module, tensors)
        return from_exported_program(program), [*values.values()], expected, exact
    import onnx
    path = folder / "net.onnx"
    with models_torch.quiet(), torch.no_grad():
        torch.onnx.export(module, tensors, path, dynamo=True, external_data=False, verbose=False, opset_version=18)
    return from_onnx(onnx.load(path)), [*values.values()], expected, exact


def normal(module):
    """The module in the form that is compared: constants computed, without unused bindings and attributes."""
    steps = [relax.transform.FoldConstant(), relax.transform.CanonicalizeBindings(),
             relax.transform.DeadCodeElimination(["main"])]
    function = tvm.transform.Sequential(steps)(module)["main"]
    for key in list(function.attrs.keys()) if function.attrs else []:
        function = function.without_attr(key)
    return function


def has_loops(module):
    return any(type(function).__name__ == "PrimFunc" for function in module.functions.values())


def differs(module, made, graph):
    """What differs between a module and the one that was written from its graph, or ""."""
    if has_loops(module):
        again = from_relax(made)
        first, second = ([(joint.optype, joint.attrs) for joint in g.joints if joint.optype != "constant"]
                         for g in (graph, again))
        return "" if first == second else "the graphs differ"
    first, second = normal(module), normal(made)
    try:
        tvm.ir.assert_structural_equal(first, second, map_free_vars=True)
    except ValueError as error:
        place = re.search(r"blocks\[(\d+)\]\.bindings\[(\d+)\]", str(error))
        if place is None:
            return " ".join(str(error).split())[:300]
        bindings = [function.body.blocks[int(place[1])].bindings for function in (first, second)]
        return " and ".join(str(items[int(place[2])].value) if int(place[2]) < len(items) else "nothing"
                            for items in bindings)
    return ""


def by_program(program, graph, values, folder):
    graph.save(folder / "graph.json")
    command = [program, "run", str(folder / "graph.json"), "--output", str(folder / "out"), "--repeat", "1"]
    aliases = {tensor.name: tensor.alias for tensor in graph.tensors()}
    for name, value in zip(graph.inputs, values):
        numpy.save(folder / f"{aliases[name]}.npy", value)
        command += ["--input", f"{aliases[name]}={folder / f'{aliases[name]}.npy'}"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise AssertionError(f"mscgym run: {done.stderr.strip()[-600:]}")
    return [numpy.load(folder / "out" / f"{aliases[name]}.npy") for name in graph.outputs]


def worst(found, expected):
    shares = [0.0]
    for a, b in zip(found, expected, strict=True):
        if a.shape != b.shape:
            raise AssertionError(f"{list(a.shape)}, expected {list(b.shape)}")
        difference = numpy.abs(numpy.where(a == b, 0, a.astype(float) - b)).max(initial=0)
        shares.append(float(difference) / (float(numpy.abs(b[numpy.isfinite(b)]).max(initial=0)) or 1.0))
    return max(shares)


class Distance:
    """How far outputs are from the expected ones, and from those of a computation in 64 bits."""

    def __init__(self, found, expected, exact):
        self.expected, self.exact, self.theirs = worst(found, expected), worst(found, exact), worst(expected, exact)
        self.is_near = self.expected <= LIMIT or self.exact <= max(LIMIT, FACTOR * min(self.theirs, MOST))

    def __str__(self):
        return f"{self.expected:.1e} (64 bits: {self.exact:.1e}, theirs {self.theirs:.1e})"


def check(program, name, front, folder, runs):
    """A line of the table, and one of "ok", "unread", "wrong", "absent"."""
    times = [time.perf_counter()]
    try:
        module, values, expected, exact = imported(name, front, folder)
    except Exception as error:  # pylint: disable=broad-exception-caught
        return f"TVM does not import it: {type(error).__name__}: {' '.join(str(error).split())[:200]}", "absent"
    times.append(time.perf_counter())
    try:
        graph = from_relax(module)
        made = to_relax(graph, folder / "made")
    except GraphError as error:
        return f"not read: {error}", "unread"
    times.append(time.perf_counter())
    found = differs(module, made, graph)
    times.append(time.perf_counter())
    results, note = by_program(program, graph, values, folder), ""
    ran = Distance(results, expected, exact)
    if not ran.is_near and runs:
        expected = run(module, "main", values)
        note = f"  TVM's import differs from the file by {ran}"
        ran = Distance(results, expected, exact)
    kept = {name: value for name, value in zip(graph.inputs, values)}
    times.append(time.perf_counter())
    code = Distance(run(made, "main", [*kept.values()]), expected, exact) if runs else None
    times.append(time.perf_counter())
    same = "loops" if has_loops(module) and not found else "equal" if not found else f"differs: {found}"
    is_fine = ran.is_near and (code is None or code.is_near) and not found
    return (f"{'ok' if is_fine else 'FAILED'} {len(graph.joints):5} joints  run {ran}  TVM {code or '-'}  {same}{note}  "
            + " ".join(f"{b - a:.1f}" for a, b in zip(times, times[1:])) + " s"), "ok" if is_fine else "wrong"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--front", choices=["torch", "onnx"])
    parser.add_argument("--no-run", action="store_true")
    parser.add_argument("names", nargs="*")
    options = parser.parse_intermixed_args()
    unknown = set(options.names) - {*MODULES, *FILES}
    if unknown:
        parser.error(f"unknown: {', '.join(sorted(unknown))}; expected some of {', '.join([*MODULES, *FILES])}")
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    results = []
    for name in options.names or [*MODULES, *FILES]:
        for front in [options.front] if options.front else ["torch", "onnx"]:
            if name in FILES and front == "torch":
                continue
            with tempfile.TemporaryDirectory() as folder:
                try:
                    line, result = check(os.path.abspath(options.program), name, front, pathlib.Path(folder),
                                         not options.no_run)
                except Exception as error:  # pylint: disable=broad-exception-caught
                    line, result = f"FAILED {type(error).__name__}: {' '.join(str(error).split())[:500]}", "wrong"
            print(f"{name:44} {front:5} {line}", flush=True)
            results.append(result)
    n_read, n_known = results.count("ok"), len(results) - results.count("absent")
    print(f"{n_read} of {n_known} networks that TVM imports; {results.count('unread')} not read, "
          f"{results.count('wrong')} wrong, {results.count('absent')} not imported by TVM")
    return 1 if results.count("wrong") or n_read < 0.9 * n_known else 0


if __name__ == "__main__":
    sys.exit(main())
