"""Functions of loops (PrimFunc) that a front end wrote in place of an operator, recognised by their structure.

TVM's front end of ONNX writes Clip, Pad, Tile, Einsum and a few others as loops at once. Such a function is compared with the
loops that TVM's own library of operators (topi) makes for the same types; names of functions do not matter. Any other
function becomes an external joint, with its text as an attribute. The graph carries it, and `to_relax` writes it back.
"""
from __future__ import annotations

import itertools
import math
import re
import string
from functools import partial
from typing import Any, Callable, Iterator, Sequence

import numpy as np

from mscgym.tvm.loops import DOMAIN
from mscgym.tvm.reading import Call, Value, Weight, lengths_of
from mscgym.tvm.rows import row
from mscgym.tvm.versions import is_same, kind_of, name_of, plain, relax, tensor_type, topi, tvm, type_of

MOST_PADS = 200
"""The largest number of ways to share out a padding that are compared."""


@row("call_tir")
def call_tir(c: Call) -> Value:
    variable = c.expr.args[0]
    function = c.reader.module[variable]
    operands = list(c.args[1])
    c.op = name_of(variable).rstrip("0123456789_") or "call_tir"
    for make, write in _candidates(c, function, operands):
        if _is_same(function, make, [type_of(item) for item in c.expr.args[1].fields]):
            return write()
    return _external(c, name_of(variable), function, operands)


Candidate = tuple[Callable[..., Any], Callable[[], Value]]


def _candidates(c: Call, function: Any, operands: Sequence[Value]) -> Iterator[Candidate]:
    """Pairs of loops that the function may be and of what adds the joints."""
    numbers, equation = _numbers(function), _equation(function, len(operands))
    if equation:
        yield lambda *items: topi.einsum(equation, *items), lambda: c.joint(
            "einsum", [c.tensor(item) for item in operands], {"equation": equation})
    if len(operands) == 2:
        for kind in ("maximum", "minimum", "add", "subtract", "multiply", "divide", "power"):
            yield getattr(topi, kind), partial(_extremum, c, kind, *operands)
    if len(operands) != 1:
        return
    operand, shape, want = operands[0], c.shape(operands[0]), c.out_shape
    if shape == want:
        for kind, number in itertools.product(("maximum", "minimum"), numbers):
            yield _before(getattr(topi, kind), number), partial(_clip, c, kind, operand, number)
        for axis in range(len(shape)):
            yield _before(topi.flip, axis), partial(_joint, c, operand, "strided_slice", {
                "axes": [axis], "begin": [-1], "end": [-2**63 + 1], "strides": [-1]})
    if not all(isinstance(length, int) for length in [*shape, *want]) or len(shape) != len(want) or 0 in shape:
        return
    if all(b % a == 0 for a, b in zip(shape, want)):
        times = [b // a for a, b in zip(shape, want)]
        yield _before(topi.tile, times), partial(_joint, c, operand, "tile", {"repeats": times})
    yield from _pads(c, operand, [b - a for a, b in zip(shape, want)], numbers)


def _before(function: Callable[..., Any], *more: Any) -> Callable[..., Any]:
    """The function with these arguments after the first."""
    return lambda x: function(x, *more)


def _pads(c: Call, operand: Value, totals: Sequence[int], numbers: Sequence[Any]) -> Iterator[Candidate]:
    if min(totals) < 0 or math.prod(total + 1 for total in totals) > MOST_PADS:
        return
    ways = sorted(itertools.product(*[range(total + 1) for total in totals]),
                  key=lambda way: sum(abs(2 * part - total) for part, total in zip(way, totals)))
    for way in ways:
        first, last = [*way], [total - part for part, total in zip(way, totals)]
        attrs = {"pad_width": [*first, *last]}
        for number in numbers:
            more = {"pad_value": number} if number else {}
            yield _before(topi.nn.pad, first, last, number), partial(
                _padded, c, operand, {**attrs, "pad_mode": "constant", **more})
        for mode, make, rest in (("reflect", topi.nn.mirror_pad, ["REFLECT"]), ("edge", topi.nn.replicate_pad, []),
                                 ("wrap", topi.nn.circular_pad, [])):
            yield _before(make, first, last, *rest), partial(_padded, c, operand, {**attrs, "pad_mode": mode})


def _numbers(function: Any) -> list[Any]:
    """The floats in the text of the function, and 0."""
    found = [float(text) for text in re.findall(r'T\.float\d+\("?([-+.\w]+)"?\)', function.script())]
    return [*dict.fromkeys(found), 0]


def _equation(function: Any, n: int) -> str:
    """The equation of a function that sums products of n operands as topi.einsum writes it: "ab,cb->ac". "" for other
    functions. Axes have letters in the order of the loops."""
    text = function.script()
    axes = re.search(r"^ *([\w, ]+) = T\.axis\.remap\(", text, re.MULTILINE)
    total = re.findall(r"^ *T_einsum\[([^]]*)\] = (.*)$", text, re.MULTILINE)
    names = axes[1].split(", ") if axes else []
    if not total or len(names) > len(string.ascii_letters):
        return ""
    letters = dict(zip(names, string.ascii_letters))
    parts = [part for buffer, part in re.findall(r"(\w+)\[([^]]*)\]", total[-1][1]) if buffer != "T_einsum"]
    places = [[letters.get(name, "") for name in part.split(", ") if name != "()"] for part in [*parts, total[-1][0]]]
    if len(parts) != n or not all(map(all, places)):
        return ""
    return ",".join(map("".join, places[:-1])) + "->" + "".join(places[-1])


def _is_same(function: Any, make: Callable[..., Any], kinds: Sequence[Any]) -> bool:
    operands = [relax.Var(f"x{i}", tensor_type(kind.shape, str(kind.dtype))) for i, kind in enumerate(kinds)]
    builder = relax.BlockBuilder()
    try:
        with builder.function("probe", operands):
            builder.emit_func_output(builder.emit_te(make, *operands))
        module = builder.finalize()
    except Exception:  # pylint: disable=broad-exception-caught
        return False  # topi refuses these types or amounts
    made = [part for part in module.functions.values() if kind_of(part) == "PrimFunc"]
    return len(made) == 1 and is_same(_without_attrs(made[0]), _without_attrs(function))


def _without_attrs(function: Any) -> Any:
    for key in ("global_symbol", "tir.noalias", "tirx.noalias", "op_pattern"):
        if function.attrs and key in function.attrs:
            function = function.without_attr(key)
    return function


def _external(c: Call, name: str, function: Any, operands: Sequence[Value]) -> Value:
    """An external joint for a function of loops."""
    if len(c.expr.args) > 2 or not is_same(function, tvm.script.from_source(function.script())):
        raise c.unsupported(f"loops: the function '{name}', whose text does not give it back")
    names: dict[str, str] = {}
    inputs = [c.tensor(item) for item in operands]
    shapes = [lengths_of(field, c.bound) for field in c.fields]
    dtypes = [str(field.dtype) for field in c.fields]
    given = ", ".join(_type_text(c.shape(item), c.dtype(item), names) for item in inputs)
    made = ", ".join(_type_text(shape, dtype, names) for shape, dtype in zip(shapes, dtypes, strict=True))
    attrs = {"domain": DOMAIN, "op": name, "version": 1, "signature": f"{given} -> {made}",
             "attr_text": f"string {function.script()}"}
    results = c.joints("msc.external", inputs, attrs, shapes=shapes, dtypes=dtypes)
    return results[0] if kind_of(c.kind) == "TensorType" else results


def _type_text(shape: Sequence[Any], dtype: str, names: dict[str, str]) -> str:
    """A type of a signature: "float32[N,4]". Equal expressions of symbols have one name."""
    texts = [str(length) if isinstance(length, int) else names.setdefault(str(length), f"L{len(names)}")
             for length in shape]
    return f"{dtype}[{','.join(texts)}]"


# ---- What adds the joints --------------------------------------------------------------------------------------------

def _joint(c: Call, operand: Value, optype: str, attrs: dict[str, Any]) -> Value:
    return c.joint(optype, [c.tensor(operand)], attrs)


def _padded(c: Call, operand: Value, attrs: dict[str, Any]) -> Value:
    """Front ends also write loops for a padding of nothing, which only copy."""
    return _joint(c, operand, "nn.pad", attrs) if any(attrs["pad_width"]) else operand


def _extremum(c: Call, kind: str, first: Value, second: Value) -> Value:
    if kind in ("maximum", "minimum") and isinstance(second, Weight) and second.data.size == 1:
        return _clip(c, kind, first, plain(second.data.item()))
    return c.joint(kind, [c.tensor(first), c.tensor(second)])


def _clip(c: Call, kind: str, operand: Value, bound: float) -> Value:
    """A bound on one side. A bound on the other side of the same tensor, which nothing else reads, joins it."""
    key, x = ("min" if kind == "maximum" else "max"), c.tensor(operand)
    if math.isinf(bound) and (bound < 0) == (key == "min"):
        return x
    graph = c.reader.graph
    last = graph.joints[-1]
    is_fresh = last.outputs[0].name == x and last.optype == "clip" and key not in last.attrs
    if is_fresh and key == "max" and float(last.attrs["min"]) <= bound and np.isfinite(bound):
        last.attrs["max"] = format(bound, ".9g")
        return x
    return c.joint("clip", [x], {key: bound})
