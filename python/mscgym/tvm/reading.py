"""Reads functions of a Relax module into a graph: walks their bindings, and calls the row of each operator.

`Reader` holds the graph that is being made. `Call` is what a row (rows.py) gets. A `Value` is what an expression of
Relax has become: a tensor is the name of a joint's output, a constant is a `Weight`, which becomes an operand of a
layer or, where data are read, a `constant` joint; a tuple is a list; a shape is a `Shape`; numbers and texts are
Python's.
"""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Sequence

import numpy as np

from mscgym.emitter import free_name
from mscgym.graph import Array, Graph, GraphError, Joint, Tensor, text_of
from mscgym.tvm.symbols import RelaxSymbols
from mscgym.tvm.versions import array_of, kind_of, name_of, plain, tirx, type_of

Value = Any
"""A str, a Weight, a Turned, a Shape, a list of values, a number, or None for what no joint computes."""


class UnsupportedRelax(GraphError):
    """Operators of a module that no joint computes. The message names each and the variable it is bound to."""


class Missing(Exception):
    """One operator without a joint; the reader goes on, to name all of them at once."""


@dataclass(eq=False)
class Weight:
    """A constant."""
    data: Array
    name: str = ""


@dataclass(frozen=True)
class Turned:
    """A constant matrix, transposed as linear layers of torch are written."""
    weight: Weight


@dataclass(frozen=True)
class Shape:
    """A value of the type Shape: `lengths` if they are known, and the tensor that holds them if one does."""
    lengths: list[Any]
    tensor: str = ""


def lengths_of(kind: Any, place: str) -> list[Any]:
    """The lengths of a tensor's type: numbers, or expressions of symbols."""
    shape = kind.shape
    if shape is not None and hasattr(shape, "values"):
        return [plain(item) for item in shape.values]
    if kind.ndim < 0:
        raise Missing(f"a tensor of unknown rank at {place}")
    return [tirx.Var(f"{place}_{axis}", "int64") for axis in range(kind.ndim)]


class Reader:
    """Makes a graph. `values` has the value of each variable that is bound."""

    def __init__(self, module: Any, graph: Graph) -> None:
        self.module, self.graph, self.symbols = module, graph, RelaxSymbols(graph)
        self.values: dict[Any, Value] = {}
        self.tensors: dict[str, Tensor] = {}
        self.lengths: dict[str, list[Any]] = {}
        self.weights: dict[Any, Weight] = {}
        self.holders: dict[Weight, str] = {}
        self.operands: dict[Weight, list[Tensor]] = {}
        self.copies: dict[tuple[Weight, str], Weight] = {}
        self.taken: set[str] = set()
        self.missing: list[str] = []

    # ---- Joints and weights

    def finish(self, joint: Joint, shapes: Sequence[Sequence[Any]], dtypes: Sequence[str],
               alias: str = "") -> list[str]:
        """Adds a joint with outputs of these shapes and types; returns the names of the outputs."""
        for i, (shape, dtype) in enumerate(zip(shapes, dtypes)):
            lengths, prims = self.symbols.shape(list(shape))
            tensor = Tensor(f"{joint.name}:{i}", lengths, dtype, alias, "", prims)
            joint.outputs.append(tensor)
            self.tensors[tensor.name], self.lengths[tensor.name] = tensor, list(shape)
        self.graph.joints.append(joint)
        return [tensor.name for tensor in joint.outputs]

    def add_input(self, name: str, kind: Any) -> Value:
        """The value of a parameter of the entry: a tensor, or a list for a tuple."""
        if kind_of(kind) == "TupleType":
            return [self.add_input(f"{name}_{i}", field) for i, field in enumerate(kind.fields)]
        if kind_of(kind) != "TensorType":
            raise GraphError(f"the parameter '{name}' is a {kind_of(kind).removesuffix('Type')}, expected a tensor")
        joint = Joint(free_name(name, self.taken), "input")
        value = self.finish(joint, [lengths_of(kind, name)], [str(kind.dtype)], alias=joint.name)[0]
        self.graph.inputs.append(value)
        return value

    def weight_tensor(self, weight: Weight, layout: str = "") -> Tensor:
        """The weight as an operand. Its elements become part of the graph. All operands of a weight have one layout: one
        that is given also counts for those without, and for another one the weight is copied.
        """
        others = self.operands.setdefault(weight, [])
        layouts = {other.layout for other in others} - {""}
        if layout and layouts - {layout}:
            return self.weight_tensor(self.copies.setdefault((weight, layout), Weight(weight.data)), layout)
        weight.name = weight.name or free_name("const", self.taken)
        if weight.data.dtype.name not in ("bool", "float16") and weight.data.dtype.kind not in "fiu":
            raise GraphError(f"'{weight.name}' is {weight.data.dtype.name}, which numpy lacks; make it float32 first")
        self.graph.arrays[weight.name] = weight.data
        others.append(Tensor(weight.name, list(weight.data.shape), weight.data.dtype.name))
        for operand in others:
            operand.layout = layout or next(iter(layouts), "")
        return others[-1]

    def constant(self, weight: Weight) -> str:
        """The tensor that holds a constant: the output of a `constant` joint, which is made at its first use."""
        if weight not in self.holders:
            operand = self.weight_tensor(weight)
            name = operand.name if operand.name.startswith("const") else free_name(operand.name, self.taken)
            joint = Joint(name, "constant", weights={"const": operand})
            self.holders[weight] = self.finish(joint, [weight.data.shape], [weight.data.dtype.name])[0]
        return self.holders[weight]

    # ---- Expressions

    def value(self, expr: Any) -> Value:
        """The value of an argument."""
        kind = kind_of(expr)
        if kind == "GenericConst":
            return self.weights.setdefault(expr, Weight(array_of(expr)))
        if kind == "Var":
            if expr not in self.values:
                raise Missing(f"'{name_of(expr)}', which is not bound")
            return self.values[expr]
        if kind == "Tuple":
            return [self.value(field) for field in expr.fields]
        if kind == "ShapeExpr":
            return Shape([plain(item) for item in expr.values])
        if kind == "TupleGetItem":
            whole = self.value(expr.tuple_value)
            return whole[expr.index] if isinstance(whole, list) and expr.index < len(whole) else None
        if kind == "Call":
            return self.call(expr, "")
        if kind in ("GlobalVar", "Function"):
            return expr
        item = plain(expr)
        if kind in ("If", "ExternFunc", "PrimFunc"):
            raise Missing(f"{kind} is not read")
        return item

    def function(self, function: Any, arguments: Sequence[Value]) -> Value:
        """Reads the body of a function whose parameters have these values."""
        self.values.update(zip(function.params, arguments))
        body = function.body
        for block in body.blocks if kind_of(body) == "SeqExpr" else []:
            for binding in block.bindings:
                self.values[binding.var] = self.bind(binding)
        return self.value(body.body if kind_of(body) == "SeqExpr" else body)

    def bind(self, binding: Any) -> Value:
        name = name_of(binding.var)
        try:
            value = self.call(binding.value, name) if kind_of(binding.value) == "Call" else self.value(binding.value)
        except Missing as error:
            self.missing.append(f"{error}, bound to '{name}'")
            return None
        if kind_of(binding) == "MatchCast" and isinstance(value, Shape):
            known = type_of(binding.var).values
            return Shape([plain(item) for item in known], value.tensor) if known is not None else value
        return value

    def call(self, expr: Any, name: str) -> Value:
        callee = expr.op
        if kind_of(callee) in ("GlobalVar", "Var"):
            function = self.module[callee] if kind_of(callee) == "GlobalVar" else self.values[callee]
            if kind_of(function) != "Function":
                raise Missing(f"a call of '{name_of(callee)}', which is no Relax function")
            return self.function(function, [self.value(item) for item in expr.args])
        if kind_of(callee) != "Op":
            raise Missing(f"a call of {kind_of(callee)}")
        c = Call(self, str(callee.name).removeprefix("relax."), expr, name)
        return c.result()


class Call:
    """One call of an operator. `c[0]` is an argument's value, `c.attr("axis")` an attribute, None if it is unset."""

    def __init__(self, reader: Reader, op: str, expr: Any, bound: str) -> None:
        self.reader, self.op, self.expr, self.bound = reader, op, expr, bound
        self.args: list[Value] = [reader.value(item) for item in expr.args]
        self.kind: Any = type_of(expr)
        self.group = ""

    def result(self) -> Value:
        from mscgym.tvm.folding import fold
        from mscgym.tvm.operators import IGNORED, ROWS
        if self.op in IGNORED:
            return None
        if any(_is_unknown(item) for item in self.args):
            return None  # an argument has no joint, which is told once
        if self.op not in ROWS:
            raise self.unsupported()
        folded = fold(self)
        return ROWS[self.op](self) if folded is None else Weight(folded)

    def unsupported(self, what: str = "") -> Missing:
        return Missing(f"relax.{self.op}{' with ' + what if what else ''}")

    # ---- Arguments

    def __getitem__(self, index: int) -> Value:
        return self.args[index] if index < len(self.args) else None

    def attr(self, key: str, default: Any = None) -> Any:
        value = plain(getattr(self.expr.attrs, key, None))
        return default if value is None or value == "" else value

    def weight(self, item: Value) -> Weight | None:
        return item if isinstance(item, Weight) else None

    def tensor(self, item: Value, dtype: str = "float32") -> str:
        """The tensor that holds an argument. A number becomes a constant of the type `dtype`."""
        if isinstance(item, Turned):
            data = item.weight.data
            return self.joint("permute_dims", [self.reader.constant(item.weight)], {"axes": [1, 0]},
                              shape=data.shape[::-1], dtype=data.dtype.name, local="permute_dims")
        if isinstance(item, Weight):
            return self.reader.constant(item)
        if isinstance(item, (bool, int, float)):
            return self.constant(np.array(item, dtype))
        if isinstance(item, Shape):
            return self.lengths(item)
        if not isinstance(item, str):
            raise self.unsupported(f"an argument that is {'a tuple' if isinstance(item, list) else type(item)}")
        return item

    def constant(self, data: Array) -> str:
        return self.reader.constant(Weight(np.asarray(data)))

    def shape(self, item: Value) -> list[Any]:
        if isinstance(item, Turned):
            return list(item.weight.data.shape)[::-1]
        if isinstance(item, Weight):
            return list(item.data.shape)
        return self.reader.lengths[item] if isinstance(item, str) else []

    def rank(self, index: int) -> int:
        return len(self.shape(self.args[index]))

    def dtype(self, item: Value) -> str:
        if isinstance(item, (Turned, Weight)):
            return (item.weight if isinstance(item, Turned) else item).data.dtype.name
        return self.reader.tensors[item].dtype if isinstance(item, str) else "int64"

    # ---- Results

    @property
    def fields(self) -> list[Any]:
        """The types of the results."""
        return list(self.kind.fields) if kind_of(self.kind) == "TupleType" else [self.kind]

    @property
    def out_shape(self) -> list[Any]:
        return lengths_of(self.fields[0], self.bound or self.op)

    @property
    def out_dtype(self) -> str:
        return str(self.fields[0].dtype)

    # ---- Joints

    def joint(self, optype: str, inputs: Sequence[str], attrs: dict[str, Any] | None = None, *, shape: Any = None,
              dtype: str = "", local: str = "", weights: dict[str, Tensor] | None = None) -> str:
        """Adds a joint with one output, whose shape and type are those of the call unless they are given.

        `local` is the joint's name in its group, for all joints but the last.
        """
        return self.joints(optype, inputs, attrs, shapes=[self.out_shape if shape is None else list(shape)],
                           dtypes=[dtype or self.out_dtype], local=local, weights=weights)[0]

    def joints(self, optype: str, inputs: Sequence[str], attrs: dict[str, Any] | None = None, *,
               shapes: Sequence[Sequence[Any]], dtypes: Sequence[str], local: str = "",
               weights: dict[str, Tensor] | None = None) -> list[str]:
        given = list(inputs)
        while given and not given[-1]:
            given.pop()
        texts = {key: text_of(value) for key, value in (attrs or {}).items() if value is not None}
        return self.reader.finish(Joint(self.name(local, weights or {}), optype, given, attrs=texts,
                                        weights=weights or {}), shapes, dtypes)

    def name(self, local: str, weights: dict[str, Tensor]) -> str:
        taken, base = self.reader.taken, self.op.rpartition(".")[2]
        if local:
            self.group = self.group or free_name(base, taken)
            return free_name(f"{self.group}/{local}", taken)
        if self.group:
            return self.group
        paths = [weight.name.rpartition(".")[0] for weight in weights.values()]
        return free_name(next(filter(None, paths), base), taken)

    def layer(self, optype: str, first: Value, operands: dict[str, tuple[Value, str]],
              attrs: dict[str, Any] | None = None) -> str:
        """Adds a joint whose operands after the first are weights by role, each with its layout, if they are constant;
        computed ones become inputs."""
        inputs, weights = [self.tensor(first)], {}
        for role, (item, layout) in operands.items():
            weight = self.weight(item)
            if weight is not None:
                weights[role] = self.reader.weight_tensor(weight, layout)
            elif item is not None:
                inputs.append(self.tensor(item))
        return self.joint(optype, inputs, attrs, weights=weights)

    def cast(self, name: str, dtype: str, local: str = "astype") -> str:
        if self.dtype(name) == dtype:
            return name
        return self.joint("astype", [name], {"dtype": dtype}, shape=self.shape(name), dtype=dtype, local=local)

    # ---- Lengths

    def lengths(self, shape: Shape) -> str:
        """A shape as a tensor int64[n]. A symbol is read from a tensor that has it as a length."""
        if shape.tensor:
            return shape.tensor
        if all(isinstance(length, int) for length in shape.lengths):
            return self.constant(np.array(shape.lengths, "int64"))
        parts = [self.length(length) for length in shape.lengths]
        return parts[0] if len(parts) == 1 else self.joint(
            "concat", parts, {"axis": 0}, shape=[len(parts)], dtype="int64", local="shape")

    def length(self, length: Any) -> str:
        """A length as a tensor int64[1]: a constant, an axis of a tensor, or arithmetic on such tensors."""
        if isinstance(length, int):
            return self.constant(np.array([length], "int64"))
        for name, shape in self.reader.lengths.items():
            for axis, other in enumerate(shape):
                if not isinstance(other, int) and str(other) == str(length):
                    return self.joint("shape_of", [name], {"start": axis, "end": axis + 1}, shape=[1], dtype="int64",
                                      local="length")
        kinds = {"Add": "add", "Sub": "subtract", "Mul": "multiply", "FloorDiv": "divide", "FloorMod": "floor_mod",
                 "Max": "maximum", "Min": "minimum"}
        kind = kind_of(length)
        if kind not in kinds:
            raise self.unsupported(f"the length {length}, which no tensor has")
        return self.joint(kinds[kind], [self.length(plain(length.a)), self.length(plain(length.b))], shape=[1],
                          dtype="int64", local="length")

    def reshape(self, name: str, want: Sequence[Any], local: str = "") -> str:
        """A reshape to lengths: 0 copies a symbol of the same axis, -1 stands for one other."""
        have = self.reader.lengths[name]
        codes = [length if isinstance(length, int) else 0 if i < len(have) and str(have[i]) == str(length) else -1
                 for i, length in enumerate(want)]
        dtype = self.dtype(name)
        if codes.count(-1) > 1:
            return self.joint("reshape", [name, self.lengths(Shape(list(want)))], shape=want, dtype=dtype, local=local)
        return self.joint("reshape", [name], {"shape": codes}, shape=want, dtype=dtype, local=local)

    def broadcast(self, name: str, want: Sequence[Any], local: str = "") -> str:
        dtype = self.dtype(name)
        if all(isinstance(length, int) for length in want):
            return self.joint("broadcast_to", [name], {"shape": list(want)}, shape=want, dtype=dtype, local=local)
        return self.joint("broadcast_to", [name, self.lengths(Shape(list(want)))], shape=want, dtype=dtype, local=local)


def _is_unknown(value: Value) -> bool:
    return any(map(_is_unknown, value)) if isinstance(value, list) else value is None
