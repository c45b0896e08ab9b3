"""Reads a Relax module: `from_relax`."""
from __future__ import annotations

import json
from typing import Any, Mapping

import numpy as np

from mscgym.emitter import free_name
from mscgym.graph import Graph, GraphError, Joint
from mscgym.tvm import layouts
from mscgym.tvm.codegen import RESULT, default_form
from mscgym.tvm.reading import Reader, Shape, Turned, UnsupportedRelax, Value, Weight
from mscgym.tvm.versions import kind_of, name_of, type_of


def from_relax(module: Any, params: Mapping[str, Any] | None = None, entry: str = "main") -> Graph:
    """Makes a graph of the function `entry` of a tvm.IRModule. Functions that it calls are read in place of the calls.

    `params` gives values of parameters by their names, as arrays of numpy or TVM, or as relax.frontend.detach_params
    returns them: {"main": [arrays]} for the parameters after the inputs. These parameters become weights under their
    names, other constants are called const, const_1 and so on. Joints are called after their operators: conv2d,
    conv2d_1. Symbolic lengths keep their names.

    UnsupportedRelax names each operator that no joint computes. GraphError if there is no such function, or if its
    parameters or results are no tensors.
    """
    names = {name_of(item): item for item in module.get_global_vars()}
    if entry not in names or kind_of(module[entry]) != "Function":
        known = ", ".join(sorted(name for name in names if kind_of(module[name]) == "Function"))
        raise GraphError(f"the module has no function '{entry}' of Relax; functions: {known or 'none'}")
    function, graph = module[entry], Graph(entry)
    reader = Reader(module, graph)
    given = _by_name(function, params or {}, entry)
    arguments: list[Value] = []
    for parameter in function.params:
        name = name_of(parameter)
        if name in given:
            arguments.append(Weight(_array(given.pop(name)), free_name(name, reader.taken)))
        else:
            arguments.append(reader.add_input(name, type_of(parameter)))
    if given:
        raise GraphError(f"params names '{next(iter(given))}', which '{entry}' does not have; parameters: "
                         f"{', '.join(map(name_of, function.params))}")
    result = reader.function(function, arguments)
    if reader.missing:
        shown = list(dict.fromkeys(reader.missing))
        raise UnsupportedRelax("no joint computes " + "; ".join(shown[:10])
                               + (f"; and {len(shown) - 10} more" if len(shown) > 10 else ""))
    form = _add_outputs(reader, result)
    graph.remove_dead()
    layouts.infer(graph)
    graph.arrays = {weight.name: graph.arrays[weight.name] for joint in graph.joints
                    for weight in joint.weights.values()}
    if form != default_form(len(graph.outputs)):
        graph.notes = {"metadata": {RESULT: json.dumps(form)}}
    return graph


def _array(value: Any) -> Any:
    return value if isinstance(value, np.ndarray) else value.numpy()


def _by_name(function: Any, params: Mapping[str, Any], entry: str) -> dict[str, Any]:
    """Values by the names of parameters."""
    if isinstance(params.get(entry), (list, tuple)) or kind_of(params.get(entry)) == "Array":
        values = list(params[entry])
        return dict(zip([name_of(item) for item in function.params][-len(values):], values)) if values else {}
    return dict(params)


def _add_outputs(reader: Reader, result: Value) -> Any:
    """Names the outputs. One that is an input, a constant or another output is copied. Returns the result's form."""
    if isinstance(result, (list, tuple)):
        return [_add_outputs(reader, item) for item in result]
    if isinstance(result, (Weight, Turned)):
        data = result.weight.data.T if isinstance(result, Turned) else result.data
        result = reader.constant(Weight(np.ascontiguousarray(data)))
    if not isinstance(result, str):
        raise GraphError(f"a result is a {'shape' if isinstance(result, Shape) else type(result).__name__}, expected a "
                         "tensor")
    tensor = reader.tensors[result]
    maker = next(joint for joint in reader.graph.joints if tensor in joint.outputs)
    if tensor.alias or maker.optype in ("input", "constant"):
        copy = Joint(free_name("identity", reader.taken), "identity", [result])
        result = reader.finish(copy, [reader.lengths[result]], [tensor.dtype])[0]
        tensor, maker = reader.tensors[result], copy
    aliases = {other.alias for other in reader.tensors.values()}
    tensor.alias = free_name(maker.name if len(maker.outputs) == 1 else tensor.name.replace(":", "_"), aliases)
    reader.graph.outputs.append(result)
    return len(reader.graph.outputs) - 1
