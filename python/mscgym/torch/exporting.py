"""Reads a module or an exported program: `from_torch` and `from_exported`."""
from __future__ import annotations

import contextlib
import inspect
from typing import Any, Iterator, Mapping, Sequence

import torch
from torch.export.graph_signature import ConstantArgument, InputKind, OutputKind
from torch.utils import _pytree as pytree

from mscgym.graph import Graph, GraphError, Joint
from mscgym.torch import formulas
from mscgym.torch.codegen import PADDING, PARAMETERS, default_outputs
from mscgym.torch.reading import Reader, UnsupportedOperator, Weight
from mscgym.torch.symbols import Symbols


@contextlib.contextmanager
def _evaluating(module: torch.nn.Module) -> Iterator[None]:
    """Sets all modules to evaluation, and uses torch's Python implementation of attention, which can be exported."""
    trained = [part for part in module.modules() if part.training]
    fast = torch.backends.mha.get_fastpath_enabled()
    module.eval()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(fast)
        for part in trained:
            part.training = True


def from_torch(module: torch.nn.Module, args: Sequence[Any] | torch.Tensor = (),
               kwargs: Mapping[str, Any] | None = None, *,
               dynamic_shapes: Mapping[str, Mapping[int, Any]] | None = None, name: str = "main") -> Graph:
    """Makes a graph of a module, in evaluation, for inputs of the shapes and types of `args` and `kwargs`.

    `dynamic_shapes` gives axes of inputs that may have any length, as in torch.export: {"x": {0: "batch"}}. The axis
    has this name in the graph; an object of torch.export.Dim may be given in place of a name. Other lengths are those
    of `args`. An axis that may have any length should be at least 2 in `args`.

    Joints and weights have the names of `named_modules()` and `named_parameters()`. Batch normalisations stay joints.

    UnsupportedOperator names each operator that no joint computes, with its module and its line in the source.
    """
    if isinstance(args, torch.Tensor):
        args = (args,)
    shapes = None
    if dynamic_shapes is not None:
        names = list(inspect.signature(module.forward).parameters)[:len(args)]
        shapes = {key: {axis: torch.export.Dim.DYNAMIC if isinstance(dim, str) else dim
                        for axis, dim in (dynamic_shapes.get(key) or {}).items()} for key in [*names, *(kwargs or {})]}
        unknown = [key for key in dynamic_shapes if key not in shapes]
        if unknown:
            raise GraphError(f"dynamic_shapes names '{unknown[0]}', which is not an input; inputs: "
                             f"{', '.join(shapes)}")
    with _evaluating(module):
        program = torch.export.export(module, tuple(args), dict(kwargs or {}), dynamic_shapes=shapes)
        return _read(program, dynamic_shapes, name, getattr(module, "OUTPUTS", ()))


def from_exported(program: torch.export.ExportedProgram, *,
                  dynamic_shapes: Mapping[str, Mapping[int, Any]] | None = None, name: str = "main") -> Graph:
    """Makes a graph of an exported program. `dynamic_shapes` only names the axes that the program leaves open."""
    return _read(program, dynamic_shapes, name, ())


def _read(program: torch.export.ExportedProgram, dynamic_shapes: Mapping[str, Mapping[int, Any]] | None, name: str,
          output_names: Sequence[str]) -> Graph:
    program = program.run_decompositions(formulas.table())
    graph = Graph(name)
    symbols = Symbols(graph)
    reader = Reader(graph, symbols)
    placeholders = {node.name: node for node in program.graph.nodes if node.op == "placeholder"}
    _name_symbols(symbols, program, placeholders, dynamic_shapes or {})
    _read_inputs(reader, program, placeholders)
    outputs = reader.read(program.graph, program.graph_module)
    if reader.missing:
        shown = list(dict.fromkeys(reader.missing))
        raise UnsupportedOperator("no joint computes " + "; ".join(shown[:10])
                                  + (f"; and {len(shown) - 10} more" if len(shown) > 10 else ""))
    _read_outputs(reader, program, outputs, output_names)
    graph.remove_dead()
    reader.naming.finish(graph)
    graph.arrays = {key: graph.arrays[key] for joint in graph.joints for key in
                    (weight.name for weight in joint.weights.values())}
    kept = [key for key in reader.parameters if key in graph.arrays]
    padding = [f"{key}={row}" for key, row in reader.padding.items() if key in graph.arrays]
    graph.notes = {"metadata": {PARAMETERS: ",".join(kept), **({PADDING: ",".join(padding)} if padding else {})}}
    return graph


def _name_symbols(symbols: Symbols, program: torch.export.ExportedProgram, placeholders: Mapping[str, torch.fx.Node],
                  dynamic_shapes: Mapping[str, Mapping[int, Any]]) -> None:
    for spec in program.graph_signature.input_specs:
        if spec.kind != InputKind.USER_INPUT or not isinstance(spec.arg.name, str):
            continue
        value = placeholders[spec.arg.name].meta["val"]
        for axis, dim in (dynamic_shapes.get(spec.arg.name) or {}).items():
            length = value.shape[axis]
            label = dim if isinstance(dim, str) else getattr(dim, "__name__", "")
            if not isinstance(length, int) and label and not label.startswith("_") and label not in ("AUTO", "DYNAMIC"):
                symbols.names.setdefault(str(length.node.expr), label)


def _read_inputs(reader: Reader, program: torch.export.ExportedProgram,
                 placeholders: Mapping[str, torch.fx.Node]) -> None:
    seen: dict[int, Weight] = {}
    for spec in program.graph_signature.input_specs:
        if isinstance(spec.arg, ConstantArgument):
            continue
        node = placeholders[spec.arg.name]
        if spec.kind == InputKind.USER_INPUT:
            if not isinstance(node.meta["val"], torch.Tensor):
                raise GraphError(f"the input '{node.name}' is {type(node.meta['val']).__name__}, expected a tensor")
            reader.values[node] = reader.add_input(node.name, node.meta["val"])
            reader.graph.inputs.append(reader.values[node])
            continue
        target = str(spec.target)
        is_named = spec.kind in (InputKind.PARAMETER, InputKind.BUFFER)
        data = program.state_dict.get(target) if is_named else None
        data = program.constants.get(target) if data is None else data
        if not isinstance(data, torch.Tensor):
            raise GraphError(f"'{target}' is {type(data).__name__}, expected a tensor")
        reader.naming.weights.update([target] if is_named else [])
        weight = Weight(target if is_named else "", data, data.requires_grad)
        reader.values[node] = seen.setdefault(id(data), weight)  # modules may share a parameter


def _output_names(program: torch.export.ExportedProgram, n: int) -> list[str]:
    """"logits" for outputs by name, else "output", "output_1" ..."""
    names = default_outputs(n)
    tree = pytree.tree_unflatten([*range(n)], program.call_spec.out_spec) if program.call_spec.out_spec else None
    for key, value in tree.items() if isinstance(tree, Mapping) else ():
        numbers = pytree.tree_leaves(value)
        for i, number in enumerate(numbers):
            names[number] = str(key) if len(numbers) == 1 else f"{key}_{i}"
    return names


def _read_outputs(reader: Reader, program: torch.export.ExportedProgram, outputs: list[Any],
                  given: Sequence[str]) -> None:
    """Names the outputs, as `given` or by the program. An output that is an input, a constant or another output is
    copied by an `identity`.
    """
    graph = reader.graph
    names = list(given) or _output_names(program, sum(spec.kind == OutputKind.USER_OUTPUT
                                              for spec in program.graph_signature.output_specs))
    taken = {tensor.alias for tensor in graph.tensors()}
    for spec, node in zip(program.graph_signature.output_specs, outputs):
        if spec.kind in (OutputKind.BUFFER_MUTATION, OutputKind.USER_INPUT_MUTATION):
            raise GraphError(f"the module changes '{spec.target}' when it runs, and a graph keeps no state")
        if spec.kind != OutputKind.USER_OUTPUT:
            continue
        alias = names.pop(0)
        if not isinstance(node, torch.fx.Node):
            continue
        value, shape = reader.values[node], list(node.meta["val"].shape)
        if isinstance(value, Weight):
            value = reader.constant(value, "")
        if reader.tensors[value].alias or isinstance(reader.values[node], Weight):
            joint = Joint(reader.naming.provisional("", "identity", False), "identity", [value])
            value = reader.finish(joint, [shape], [node.meta["val"].dtype])[0]
        reader.tensors[value].alias = alias if alias not in taken else f"{alias}_out"
        graph.outputs.append(value)
