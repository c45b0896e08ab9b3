"""Reads an exported program into a graph: walks its nodes, and calls the row of each operator.

`Reader` holds the graph that is being made. `Call` is what a row (rows.py) gets: one node with its arguments. A
tensor of the program is the name of a joint's output in the graph; a parameter, a buffer or a result that depends on
neither inputs nor parameters is a `Weight`, which becomes an operand of a layer or, where data are read, a `constant`
joint. A whole number that depends on shapes is a tensor int64[1].
"""
from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Iterable, Sequence, Union

import torch
from torch import fx

from mscgym.graph import Array, Graph, GraphError, Joint, Tensor, text_of
from mscgym.torch.naming import Naming
from mscgym.torch.symbols import Symbols

Result = Union[str, list[str]]


class UnsupportedOperator(GraphError):
    """Operators of a module that no joint computes. The message names each, its module and the line that calls it."""


class _Missing(Exception):
    """One operator without a joint; the reader goes on, to name all of them at once."""


@dataclass(frozen=True, eq=False)
class Weight:
    """A tensor whose elements are known: a parameter or a buffer by its name, or a constant without a name."""
    name: str
    data: torch.Tensor
    is_trained: bool = False


def type_name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def array_of(data: torch.Tensor, name: str) -> Array:
    if data.dtype == torch.bfloat16:
        raise GraphError(f"'{name}' is bfloat16, which numpy lacks; call .float() on the module before it is exported")
    return data.detach().cpu().contiguous().numpy()


class Reader:
    """Makes a graph. `values` has the result of each node that was read."""

    def __init__(self, graph: Graph, symbols: Symbols) -> None:
        self.graph, self.symbols, self.naming = graph, symbols, Naming()
        self.values: dict[fx.Node, Any] = {}
        self.tensors: dict[str, Tensor] = {}
        self.constants: dict[Any, str] = {}
        self.layouts: dict[str, str] = {}
        self.parameters: list[str] = []
        self.padding: dict[str, int] = {}
        self.missing: list[str] = []

    def add_input(self, name: str, value: torch.Tensor) -> str:
        joint = Joint(name, "input")
        self.naming.reserve(name)
        return self.finish(joint, [list(value.shape)], [value.dtype], alias=name)[0]

    def finish(self, joint: Joint, shapes: Sequence[Iterable[Any]], dtypes: Sequence[torch.dtype],
               alias: str = "") -> list[str]:
        for i, (shape, dtype) in enumerate(zip(shapes, dtypes)):
            lengths, prims = self.symbols.shape(list(shape))
            tensor = Tensor(f"{joint.name}:{i}", lengths, type_name(dtype), alias, "", prims)
            joint.outputs.append(tensor)
            self.tensors[tensor.name] = tensor
        self.graph.joints.append(joint)
        return [tensor.name for tensor in joint.outputs]

    def layout(self, weight: Weight) -> str:
        """The layout in which joints read the weight so far, or ""."""
        return self.layouts.get(weight.name or self.constants.get(weight, ""), "")

    def weight_tensor(self, weight: Weight, layout: str = "") -> Tensor:
        """The weight as an operand. Its elements become part of the graph."""
        name = weight.name or self.constants.get(weight) or self.naming.constant()
        self.constants[weight] = name
        self.graph.arrays.setdefault(name, array_of(weight.data, name))
        if weight.is_trained and name not in self.parameters:
            self.parameters.append(name)
        layout = self.layouts.setdefault(name, layout) or layout
        if layout and not self.layouts[name]:  # mentioned before by a joint that does not name the axes
            self.layouts[name] = layout
            for joint in self.graph.joints:
                for operand in joint.weights.values():
                    operand.layout = layout if operand.name == name else operand.layout
        return Tensor(name, list(weight.data.shape), type_name(weight.data.dtype), "", layout)

    def constant(self, weight: Weight, path: str) -> str:
        """The output of a `constant` joint, which is made at its first use."""
        key = ("joint", weight)
        if key not in self.constants:
            operand = self.weight_tensor(weight)
            joint = Joint(self.naming.name_constant(operand.name), "constant", scope=path if weight.name else "",
                          weights={"const": operand})
            self.constants[key] = self.finish(joint, [weight.data.shape], [weight.data.dtype])[0]
        return self.constants[key]

    def read(self, graph: fx.Graph, module: torch.nn.Module) -> list[Any]:
        """Reads the nodes of a graph whose placeholders have values; returns what its output node holds."""
        from mscgym.torch.operators import IGNORED, ROWS
        outputs: list[Any] = []
        for node in graph.nodes:
            if node.op == "output":
                outputs = list(node.args[0])
            elif node.op == "call_function" and node.target not in IGNORED:
                try:
                    self.values[node] = self.call(node, module, ROWS)
                except _Missing as error:
                    self.missing.append(str(error))
                    self.values[node] = None
        return outputs

    def call(self, node: fx.Node, module: torch.nn.Module, rows: dict[Any, Any]) -> Any:
        if getattr(node.target, "__name__", "") == "getitem":
            source, index = node.args
            assert isinstance(source, fx.Node) and isinstance(index, int)
            values = self.values[source]
            return values[index] if values is not None and index < len(values) else None
        if isinstance(node.target, torch._ops.HigherOrderOperator):
            return self.inline(node, module)
        folded = self.fold(node)
        if folded is not None:
            return folded
        if any(self.values.get(item, 0) is None for item in node.all_input_nodes):
            return None  # an operand has no joint, which is told once
        c = Call(self, node)
        if node.target not in rows:
            raise c.unsupported("")
        return rows[node.target](c)

    def inline(self, node: fx.Node, module: torch.nn.Module) -> Any:
        """Reads the body of a region (no_grad, autocast) in place of the node."""
        bodies = [item for item in node.args if isinstance(item, fx.Node) and item.op == "get_attr"]
        if len(bodies) != 1:
            raise Call(self, node).unsupported("control flow")
        body = getattr(module, str(bodies[0].target))
        operands = node.args[node.args.index(bodies[0]) + 1:]
        for inner, outer in zip([n for n in body.graph.nodes if n.op == "placeholder"], operands):
            self.values[inner] = self.values[outer] if isinstance(outer, fx.Node) else outer
        return [self.values[item] if isinstance(item, fx.Node) else item for item in self.read(body.graph, body)]

    def fold(self, node: fx.Node) -> Weight | list[Weight] | None:
        """Computes a node that depends on neither inputs nor named floats."""
        known = {}
        for item in node.all_input_nodes:
            value = self.values.get(item)
            if not isinstance(value, Weight) or (value.name and value.data.is_floating_point()):
                return None
            known[item] = value.data
        if not isinstance(node.target, torch._ops.OpOverload) or _has_symbols(node.meta.get("val")):
            return None
        args, kwargs = fx.node.map_arg((node.args, node.kwargs), lambda item: known[item])
        result = node.target(*args, **{key: value for key, value in kwargs.items() if key != "device"})
        if isinstance(result, (list, tuple)):
            return [Weight("", item) for item in result]
        return Weight("", result) if isinstance(result, torch.Tensor) else None


def _has_symbols(value: Any) -> bool:
    if isinstance(value, torch.Tensor):
        return any(not isinstance(length, int) for length in value.shape)
    return any(_has_symbols(item) for item in value) if isinstance(value, (list, tuple)) else not (
        value is None or isinstance(value, (int, float, bool)))


class Call:
    """One node: `args` by the names of the operator's schema, `value` with the shapes and types of its results."""

    def __init__(self, reader: Reader, node: fx.Node) -> None:
        self.reader, self.node = reader, node
        self.target: Any = node.target
        self.value: Any = node.meta.get("val")
        stack = list((node.meta.get("nn_module_stack") or {}).values())
        self.path = re.sub(r"@\d+", "", stack[-1][0]) if stack else ""
        self.args: dict[str, Any] = {}
        if isinstance(node.target, torch._ops.OpOverload):
            for i, argument in enumerate(node.target._schema.arguments):
                given = node.args[i] if i < len(node.args) else node.kwargs.get(argument.name, argument.default_value)
                self.args[argument.name] = given

    # ---- Arguments

    def __getitem__(self, name: str) -> Any:
        return self.args[name]

    @property
    def first(self) -> Any:
        return self.node.args[0]

    def pair(self) -> tuple[Any, Any]:
        first, second = list(self.args.values())[:2]
        return first, second

    def _node(self, item: Any) -> Any:
        return self.args[item] if isinstance(item, str) else item

    def fake(self, item: Any) -> Any:
        """A tensor with the shape and type of an argument: a name of the schema, a node or a number."""
        item = self._node(item)
        if isinstance(item, Weight):
            return item.data
        return item.meta["val"] if isinstance(item, fx.Node) else torch.tensor(item)

    def weight(self, item: Any) -> Weight | None:
        item = self._node(item)
        value = self.reader.values.get(item) if isinstance(item, fx.Node) else item
        return value if isinstance(value, Weight) else None

    def is_weight(self, item: Any, layout: str = "") -> bool:
        """True for a weight; with `layout`, for one that no other joint reads in another layout."""
        weight = self.weight(item)
        return weight is not None and (not layout or self.reader.layout(weight) in ("", layout))

    def fill(self, name: str, data: torch.Tensor) -> None:
        """Gives an optional weight that is absent a value."""
        if self.args[name] is None:
            self.args[name] = Weight("", data)

    def promoted(self, *items: Any) -> torch.dtype:
        fakes = [self.fake(self._node(item)) if isinstance(item, (str, fx.Node)) else item for item in items]
        return torch.result_type(*[torch.empty((1,) * x.dim(), dtype=x.dtype) if isinstance(x, torch.Tensor) else x
                                   for x in fakes])

    def unsupported(self, what: str) -> _Missing:
        name = str(self.target) if isinstance(self.target, torch._ops.OpOverload) else getattr(
            self.target, "__name__", str(self.target))
        return _Missing(f"{name}{' with ' + what if what else ''} in {_place(self.path, self.node)}")

    # ---- Tensors

    def tensor(self, item: Any, dtype: torch.dtype | None = None) -> str:
        """The name of the tensor that holds an argument, in the type `dtype` if one is given."""
        item = self._node(item)
        weight = self.weight(item)
        if weight is not None:
            if dtype is not None and weight.data.dtype != dtype and not weight.name:
                weight = Weight("", weight.data.to(dtype))
            path = weight.name.rpartition(".")[0]
            name, have, shape = self.reader.constant(weight, path), weight.data.dtype, weight.data.shape
        elif isinstance(item, fx.Node):
            if isinstance(item.meta.get("val"), (torch.SymInt, torch.SymFloat)):
                return self.scalar(item, dtype or torch.int64)
            name, have, shape = self.reader.values[item], item.meta["val"].dtype, item.meta["val"].shape
        else:
            return self.constant(torch.tensor(item, dtype=dtype))
        return name if dtype is None or have == dtype else self.cast(name, dtype, shape)

    def constant(self, data: torch.Tensor) -> str:
        return self.reader.constant(Weight("", data), "")

    def cast(self, name: str, dtype: torch.dtype, shape: Any) -> str:
        return self.joint("astype", [name], {"dtype": type_name(dtype)}, shape=shape, dtype=dtype)

    # ---- Joints

    def joint(self, optype: str, inputs: list[str], attrs: dict[str, Any] | None = None, *, shape: Any = None,
              dtype: torch.dtype | None = None, owner: Any = None, local: str = "") -> str:
        """Adds a joint with one output, whose shape and type are those of the node unless they are given.

        `owner` is a weight: a joint that is the layer of this weight's module takes the module's name. `local` is the
        joint's name in its module.
        """
        shape = self.value.shape if shape is None else shape
        return self.joints(optype, inputs, attrs, shapes=[shape], dtypes=[dtype or self._type()], owner=owner,
                           local=local)[0]

    def joints(self, optype: str, inputs: list[str], attrs: dict[str, Any] | None = None, *, shapes: Sequence[Any],
               dtypes: Sequence[torch.dtype] | None = None, owner: Any = None, local: str = "",
               weights: dict[str, Tensor] | None = None) -> list[str]:
        while inputs and not inputs[-1]:
            inputs = inputs[:-1]
        path, is_owner = self._path(owner)
        name = self.reader.naming.provisional(path, local or self.node.name, is_owner)
        joint = Joint(name, optype, inputs, attrs={key: text_of(value) for key, value in (attrs or {}).items()},
                      weights=weights or {}, scope=path)
        return self.reader.finish(joint, shapes, dtypes or [self._type()] * len(shapes))

    def layer(self, optype: str, first: Any, weights: dict[str, tuple[Any, str]], attrs: dict[str, Any] | None = None,
              like: Any = None) -> str:
        """Adds a joint whose operands after the first are weights by role; computed ones, and those that another
        joint reads in another layout, become inputs.
        """
        inputs, operands = [self.tensor(first)], {}
        named = None
        for role, (item, layout) in weights.items():
            weight = self.weight(item) if self.is_weight(item, layout) else None
            if weight is not None:
                operands[role] = self.reader.weight_tensor(weight, layout)
                named = named or (weight if weight.name else None)
            elif self._node(item) is not None or self.is_weight(item):
                inputs.append(self.tensor(item))
        like = self.value if like is None else like
        return self.joints(optype, inputs, attrs, shapes=[like.shape], dtypes=[like.dtype], owner=named,
                           weights=operands)[0]

    def _type(self) -> torch.dtype:
        value = self.value[0] if isinstance(self.value, (list, tuple)) else self.value
        return value.dtype if isinstance(value, torch.Tensor) else torch.int64

    def _path(self, owner: Any) -> tuple[str, bool]:
        """The module of a joint. A weight of a child names the child, as in nn.MultiheadAttention."""
        weight = self.weight(owner) if owner is not None else None
        if weight is None or not weight.name:
            return self.path, False
        path = weight.name.rpartition(".")[0]
        is_inside = path == self.path or path.startswith(self.path + ".") or not self.path
        return (path if is_inside else self.path), True

    # ---- Lengths

    def has_symbol(self, item: Any) -> bool:
        return isinstance(item, (fx.Node, tuple))

    def sizes_of(self, item: Any) -> list[Any]:
        return [length if isinstance(length, int) else (item, axis)
                for axis, length in enumerate(self.fake(item).shape)]

    def find_length(self, length: Any, axis: int, items: Sequence[Any]) -> Any:
        """What computes a length: itself, or a tensor of `items` that has it at the axis, counted from the end."""
        for item in () if isinstance(length, int) else items:
            shape = self.fake(item).shape
            if -axis <= len(shape) and _same(shape[axis], length):
                return item, len(shape) + axis
        return length

    def length_of(self, item: Any, axis: int) -> str:
        return self.joint("shape_of", [self.tensor(item)], {"start": axis, "end": axis + 1}, shape=[1],
                          dtype=torch.int64)

    def length(self, item: Any) -> str:
        """A whole number as a tensor int64[1]: an int, a node, or a pair of a tensor's node and an axis."""
        if isinstance(item, tuple):
            return self.length_of(*item)
        if isinstance(item, fx.Node):
            return str(self.reader.values[item])
        return self.constant(torch.tensor([item]))

    def lengths(self, items: Sequence[Any]) -> str:
        return self.joint("concat", [self.length(item) for item in items], {"axis": 0}, shape=[len(items)],
                          dtype=torch.int64)

    def scalar(self, item: Any, dtype: torch.dtype) -> str:
        if not self.has_symbol(item):
            return self.constant(torch.tensor(item, dtype=dtype))
        name = self.joint("squeeze", [self.length(item)], {"axis": [0]}, shape=[], dtype=torch.int64)
        return name if dtype == torch.int64 else self.cast(name, dtype, [])

    def reshape(self, name: str, have: Any, want: Any, items: Sequence[Any]) -> str:
        """A reshape to `want`. `items` has what computes each length; 0 copies a length, -1 is inferred."""
        codes = [length if isinstance(length, int) else 0 if i < len(have) and have[i] is not None
                 and not isinstance(have[i], int) and have[i].node.expr == length.node.expr else -1
                 for i, length in enumerate(want)]
        if codes.count(-1) > 1:
            return self.joint("reshape", [name, self.lengths(items)], shape=want)
        return self.joint("reshape", [name], {"shape": codes}, shape=want)

    def expand(self, name: str, have: Any, want: Any, items: Sequence[Any], dtype: torch.dtype | None = None) -> str:
        """Broadcasts to `want`; a length that stays is written as 1."""
        lead = len(want) - len(have)
        stays = [i >= lead and _same(have[i - lead], want[i]) for i in range(len(want))]
        if all(stays):
            return name
        items = [1 if stays[i] else items[i] for i in range(len(want))]
        if any(self.has_symbol(item) for item in items):
            return self.joint("broadcast_to", [name, self.lengths(items)], shape=want, dtype=dtype)
        return self.joint("broadcast_to", [name], {"shape": items}, shape=want, dtype=dtype)

    # ---- Recurrent layers

    def gates(self, ways: Sequence[Any], order: list[int], size: int) -> str:
        """The weights of a recurrent layer as its joint reads them: [ways, gates * size, ...], gates in `order`."""
        name, rows = "", size * len(order)
        rest = list(self.fake(ways[0]).shape[1:]) if isinstance(ways[0], fx.Node) else []
        parts = []
        for way in ways:
            pieces = []
            for item in [way] if isinstance(way, fx.Node) else way:
                piece = self.tensor(item)
                if len(order) > 1:
                    split = self.joints("split", [piece], {"axis": 0}, shapes=[[size, *rest]] * len(order))
                    piece = self.joint("concat", [split[i] for i in order], {"axis": 0}, shape=[rows, *rest])
                pieces.append(piece)
                weight = self.weight(item)
                name = name or (weight.name.rpartition(".")[2] if weight is not None else "")
            whole = pieces[0] if len(pieces) == 1 else self.joint(
                "concat", pieces, {"axis": 0}, shape=[rows * len(pieces), *rest])
            parts.append((whole, [rows * len(pieces), *rest]))
        full = [self.joint("expand_dims", [part], {"axis": [0]}, shape=[1, *shape], local=name)
                for part, shape in parts]
        return full[0] if len(full) == 1 else self.joint("concat", full, {"axis": 0},
                                                         shape=[len(full), *parts[0][1]], local=name)


def _same(have: Any, want: Any) -> bool:
    if isinstance(have, int) or isinstance(want, int):
        return bool(isinstance(have, int) and isinstance(want, int) and have == want)
    return bool(have.node.expr == want.node.expr)


def _place(path: str, node: fx.Node) -> str:
    """The module of a node, and the line of the user's source that computes it."""
    frames = re.findall(r'File "([^"]+)", line (\d+), in [^\n]*(?:\n\s*(?!\s|File )([^\n]*))?',
                        node.meta.get("stack_trace") or "")
    own = [frame for frame in frames if "/torch/" not in frame[0]] or frames
    where = ": ".join(filter(None, (f"{own[-1][0]}:{own[-1][1]}", own[-1][2]))) if own else "no line known"
    return f"module '{path}' ({where})" if path else f"the module ({where})"
