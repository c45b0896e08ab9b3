"""Rows of reductions, of operators that move or make elements, and of indexing (rows.py)."""
from __future__ import annotations

from typing import Any, Sequence

import numpy as np

from mscgym.tvm.reading import Call, Shape, Turned, Value, Weight, lengths_of
from mscgym.tvm.rows import axes_of, row


# ---- Reductions ------------------------------------------------------------------------------------------------------

@row("mean", "sum", "max", "min", "prod")
def reduction(c: Call) -> Value:
    return c.joint(c.op, [c.tensor(c[0])], {"axis": c.attr("axis", []), "keepdims": c.attr("keepdims")})


@row("variance", "std")
def variance(c: Call) -> Value:
    axes, shape, x = axes_of(c), c.shape(c[0]), c.tensor(c[0])
    kept = [1 if axis in [a % len(shape) for a in axes] else length for axis, length in enumerate(shape)]
    mean = c.joint("mean", [x], {"axis": axes, "keepdims": True}, shape=kept, local="mean")
    rest = c.joint("subtract", [x, mean], shape=shape, local="subtract")
    squares = c.joint("multiply", [rest, rest], shape=shape, local="multiply")
    attrs = {"axis": axes, "keepdims": c.attr("keepdims")}
    if c.op == "variance":
        return c.joint("mean", [squares], attrs)
    return c.joint("sqrt", [c.joint("mean", [squares], attrs, local="variance")])


@row("argmax", "argmin")
def argument(c: Call) -> Value:
    x, axis, keep = c.tensor(c[0]), c.attr("axis"), c.attr("keepdims")
    if axis is None:
        x, axis, keep = c.reshape(x, [int(np.prod(c.shape(c[0])))], "reshape"), 0, False
    return c.joint(c.op, [x], {"axis": axis, "keepdims": keep})


@row("cumsum", "cumprod")
def cumulative(c: Call) -> Value:
    x, axis = c.tensor(c[0]), c.attr("axis")
    if axis is None:
        x, axis = c.reshape(x, c.out_shape, "reshape"), 0
    attrs = {"axis": axis, "exclusive": c.attr("exclusive", False)}
    return c.joint(c.op, [c.cast(x, c.out_dtype)], attrs)


# ---- Shapes and moves ------------------------------------------------------------------------------------------------

@row("reshape")
def reshape(c: Call) -> Value:
    shape = c[1]
    if isinstance(shape, Shape) and shape.tensor and None in shape.lengths:
        return c.joint("reshape", [c.tensor(c[0]), shape.tensor])
    return c.reshape(c.tensor(c[0]), c.out_shape)


@row("flatten", "nn.batch_flatten")
def flatten(c: Call) -> Value:
    if c.op == "flatten":
        return c.joint("reshape", [c.tensor(c[0])], {"shape": [-1]})
    return c.joint("flatten", [c.tensor(c[0])], {"axis": 1})


@row("permute_dims")
def permute(c: Call) -> Value:
    rank = c.rank(0)
    axes = [axis % rank for axis in c.attr("axes", [*reversed(range(rank))])]
    if isinstance(c[0], Weight) and axes == [1, 0]:
        return Turned(c[0])
    return c.joint("permute_dims", [c.tensor(c[0])], {"axes": axes})


@row("expand_dims")
def expand_dims(c: Call) -> Value:
    return c.joint("expand_dims", [c.tensor(c[0])], {"axis": axes_of(c)})


@row("squeeze")
def squeeze(c: Call) -> Value:
    return c.joint("squeeze", [c.tensor(c[0])], {"axis": c.attr("axis", [])})


@row("concat")
def concat(c: Call) -> Value:
    parts = [c.tensor(item) for item in c[0]]
    if c.attr("axis") is None:
        parts = [c.reshape(part, [int(np.prod(c.shape(part)))], "reshape") for part in parts]
    return c.joint("concat", parts, {"axis": c.attr("axis", 0)})


@row("stack")
def stack(c: Call) -> Value:
    axis, shape = c.attr("axis") % len(c.out_shape), c.out_shape
    shape[axis] = 1
    parts = [c.joint("expand_dims", [c.tensor(item)], {"axis": [axis]}, shape=shape, local="expand_dims")
             for item in c[0]]
    return c.joint("concat", parts, {"axis": axis})


@row("split")
def split(c: Call) -> Value:
    shapes = [lengths_of(field, c.bound) for field in c.fields]
    dtypes = [str(field.dtype) for field in c.fields]
    return c.joints("split", [c.tensor(c[0])],
                    {"axis": c.attr("axis"), "indices_or_sections": c.attr("indices_or_sections")},
                    shapes=shapes, dtypes=dtypes)


@row("broadcast_to")
def broadcast_to(c: Call) -> Value:
    shape = c[1]
    if isinstance(shape, Shape) and shape.tensor and None in shape.lengths:
        return c.joint("broadcast_to", [c.tensor(c[0]), shape.tensor])
    return c.broadcast(c.tensor(c[0]), c.out_shape)


@row("collapse_sum_to", "collapse_sum_like")
def collapse(c: Call) -> Value:
    have, want = c.shape(c[0]), c.out_shape
    axes = [*range(len(have) - len(want))] + [axis for axis in range(len(have) - len(want), len(have))
                                              if str(want[axis - len(have)]) != str(have[axis])]
    if not axes:
        return c[0]
    total = c.joint("sum", [c.tensor(c[0])], {"axis": axes, "keepdims": False},
                    shape=[length for axis, length in enumerate(have) if axis not in axes], local="sum")
    return c.reshape(total, want)


@row("tile")
def tile(c: Call) -> Value:
    x, repeats, shape = c.tensor(c[0]), axes_of(c, "repeats"), c.shape(c[0])
    repeats = [1] * (len(shape) - len(repeats)) + repeats
    if len(repeats) > len(shape):
        x = c.reshape(x, [1] * (len(repeats) - len(shape)) + shape, "reshape")
    return c.joint("tile", [x], {"repeats": repeats})


@row("repeat")
def repeat(c: Call) -> Value:
    x, shape, axis, times = c.tensor(c[0]), c.shape(c[0]), c.attr("axis"), c.attr("repeats")
    if axis is None:
        shape, axis = [int(np.prod(shape))], 0
        x = c.reshape(x, shape, "flat")
    axis %= len(shape)
    wide = [*shape[:axis + 1], 1, *shape[axis + 1:]]
    x = c.joint("expand_dims", [x], {"axis": [axis + 1]}, shape=wide, local="expand_dims")
    wide[axis + 1] = times
    x = c.joint("tile", [x], {"repeats": [times if i == axis + 1 else 1 for i in range(len(wide))]}, shape=wide,
                local="tile")
    return c.reshape(x, c.out_shape)


@row("flip")
def flip(c: Call) -> Value:
    axes = axes_of(c)
    n = len(axes)
    return c.joint("strided_slice", [c.tensor(c[0])],
                   {"axes": axes, "begin": [-1] * n, "end": [-2**63 + 1] * n, "strides": [-1] * n})


@row("strided_slice")
def strided_slice(c: Call) -> Value:
    axes, begin, end = c[1], c[2], c[3]
    strides = c[4] if c[4] is not None else [1] * len(axes)
    if all(isinstance(item, int) for item in [*begin, *end, *strides]):
        return c.joint("strided_slice", [c.tensor(c[0])],
                       {"assume_inbound": True if c.attr("assume_inbound") else None, "axes": axes, "begin": begin,
                        "end": end, "strides": strides})
    bounds = [c.lengths(Shape(list(bound))) for bound in (begin, end)]
    return c.joint("strided_slice", [c.tensor(c[0]), *bounds], {"axes": axes, "strides": strides})


@row("dynamic_strided_slice")
def dynamic_strided_slice(c: Call) -> Value:
    bounds = [item.data.astype("int64").tolist() if isinstance(item, Weight) else None for item in c.args[1:]]
    axes = [*range(c.rank(0))]
    if None not in bounds:
        return c.joint("strided_slice", [c.tensor(c[0])],
                       {"axes": axes, "begin": bounds[0], "end": bounds[1], "strides": bounds[2]})
    if bounds[2] is None:
        raise c.unsupported("strides that are computed")
    return c.joint("strided_slice", [c.tensor(c[0]), c.tensor(c[1]), c.tensor(c[2])],
                   {"axes": axes, "strides": bounds[2]})


@row("slice_scatter")
def slice_scatter(c: Call) -> Value:
    """The parts before and after the slice, joined to the new part."""
    shape, axis = c.shape(c[0]), c.attr("axis") % c.rank(0)
    n = shape[axis]
    if c[4] != 1 or not all(isinstance(item, int) for item in (n, c[2], c[3])):
        raise c.unsupported("a step, or a length that is computed")
    begin, end, _ = slice(c[2], c[3]).indices(n)
    parts = [c.tensor(c[1])]
    for first, last, at in ((0, begin, 0), (end, n, 1)):
        if first < last:
            shape = [*shape[:axis], last - first, *shape[axis + 1:]]
            parts.insert(at if at == 0 else len(parts), c.joint(
                "strided_slice", [c.tensor(c[0])], {"axes": [axis], "begin": [first], "end": [last]}, shape=shape,
                local="part"))
    return parts[0] if len(parts) == 1 else c.joint("concat", parts, {"axis": axis})


# ---- Indexing and sorting --------------------------------------------------------------------------------------------

@row("take")
def take(c: Call) -> Value:
    x, axis = c.tensor(c[0]), c.attr("axis")
    if axis is None:
        x, axis = (x, 0) if c.rank(0) == 1 else (c.reshape(x, [int(np.prod(c.shape(c[0])))], "reshape"), 0)
    return c.joint("take", [x, c.tensor(c[1], "int64")], {"axis": axis, "mode": c.attr("mode")})


@row("gather_elements")
def gather_elements(c: Call) -> Value:
    return c.joint("gather_elements", [c.tensor(c[0]), c.tensor(c[1])], {"axis": c.attr("axis")})


@row("gather_nd")
def gather_nd(c: Call) -> Value:
    return c.joint("gather_nd", [c.tensor(c[0]), c.tensor(c[1])], {"batch_dims": c.attr("batch_dims")})


REDUCTIONS = {"update": "none", "add": "add", "mul": "mul", "max": "max", "min": "min"}


@row("scatter_elements", "scatter_nd")
def scatter(c: Call) -> Value:
    reduction = REDUCTIONS.get(c.attr("reduction"))
    if reduction is None:
        raise c.unsupported(f"the reduction {c.attr('reduction')}")
    attrs = {"reduction": reduction, **({"axis": c.attr("axis")} if c.op == "scatter_elements" else {})}
    return c.joint(c.op, [c.tensor(item) for item in c.args], attrs)


def _points(c: Call, indices: Sequence[Value]) -> tuple[str, list[Any]]:
    """The indices of several axes as one tensor [..., n], and the shape that they are broadcast to."""
    common: list[Any] = []
    for item in indices:
        shape = c.shape(item)
        common = [1] * (len(shape) - len(common)) + common
        for axis in range(1, len(shape) + 1):
            common[-axis] = shape[-axis] if common[-axis] == 1 else common[-axis]
    columns = []
    for item in indices:
        name = c.cast(c.tensor(item), "int64")
        if list(map(str, c.shape(item))) != list(map(str, common)):
            name = c.broadcast(name, common, "broadcast")
        columns.append(c.joint("expand_dims", [name], {"axis": [len(common)]}, shape=[*common, 1], dtype="int64",
                               local="expand_dims"))
    if len(columns) == 1:
        return columns[0], common
    return c.joint("concat", columns, {"axis": len(common)}, shape=[*common, len(indices)], dtype="int64",
                   local="points"), common


@row("index_tensor")
def index_tensor(c: Call) -> Value:
    indices = c[1]
    if any(c.dtype(item) == "bool" for item in indices):
        raise c.unsupported("an index of booleans")
    if len(indices) == 1:
        return c.joint("take", [c.tensor(c[0]), c.tensor(indices[0])], {"axis": 0})
    return c.joint("gather_nd", [c.tensor(c[0]), _points(c, indices)[0]])


@row("index_put")
def index_put(c: Call) -> Value:
    indices = c[1]
    if any(c.dtype(item) == "bool" for item in indices):
        raise c.unsupported("an index of booleans")
    points, common = _points(c, indices)
    want = [*common, *c.shape(c[0])[len(indices):]]
    values = c.tensor(c[2])
    if list(map(str, c.shape(c[2]))) != list(map(str, want)):
        values = c.broadcast(values, want, "values")
    return c.joint("scatter_nd", [c.tensor(c[0]), points, values],
                   {"reduction": "add" if c.attr("accumulate") else "none"})


@row("one_hot")
def one_hot(c: Call) -> Value:
    values = c.constant(np.array([_number(c, c[2]), _number(c, c[1])], c.out_dtype))
    return c.joint("one_hot", [c.tensor(c[0]), values], {"axis": c.attr("axis"), "depth": c.attr("depth")})


def _number(c: Call, item: Value) -> Any:
    if isinstance(item, Weight) and item.data.size == 1:
        return item.data.item()
    if not isinstance(item, (bool, int, float)):
        raise c.unsupported("a value that is computed")
    return item


@row("topk")
def topk(c: Call) -> Value:
    kind, shape = c.attr("ret_type"), lengths_of(c.fields[0], c.bound)
    dtype, want = c.dtype(c[0]), c.attr("dtype")
    attrs = {"k": c.attr("k"), "axis": c.attr("axis"), "largest": c.attr("largest"),
             "relax.dtype": want if kind == "values" else None, "ret_type": None if kind == "both" else kind}
    names = c.joints("topk", [c.tensor(c[0])], attrs, shapes=[shape, shape], dtypes=[dtype, "int64"],
                     local="topk" if want != "int64" and kind != "values" else "")
    if kind == "values":
        return names[0]
    last = names[1] if want == "int64" else c.joint("astype", [names[1]], {"dtype": want}, shape=shape, dtype=want)
    return last if kind == "indices" else [names[0], last]


@row("sort", "argsort")
def sort(c: Call) -> Value:
    shape, axis = c.shape(c[0]), c.attr("axis")
    if not isinstance(shape[axis], int):
        raise c.unsupported("a length that is a symbol")
    attrs = {"k": shape[axis], "axis": axis, "largest": bool(c.attr("descending"))}
    names = c.joints("topk", [c.tensor(c[0])], attrs, shapes=[shape, shape], dtypes=[c.dtype(c[0]), "int64"],
                     local="topk" if c.op == "argsort" and c.out_dtype != "int64" else "")
    if c.op == "sort":
        return names[0]
    return names[1] if c.out_dtype == "int64" else c.joint("astype", [names[1]], {"dtype": c.out_dtype})


@row("nonzero")
def nonzero(c: Call) -> Value:
    return c.joint("nonzero", [c.tensor(c[0])])


@row("reverse_sequence")
def reverse_sequence(c: Call) -> Value:
    return c.joint("reverse_sequence", [c.tensor(c[0]), c.cast(c.tensor(c[1]), "int64")],
                   {"batch_axis": c.attr("batch_axis"), "time_axis": c.attr("seq_axis")})


@row("meshgrid")
def meshgrid(c: Call) -> Value:
    items, n = c[0], len(c[0])
    order = [1, 0, *range(2, n)] if c.attr("indexing") == "xy" and n > 1 else [*range(n)]
    results = []
    for i, item in enumerate(items):
        want = lengths_of(c.fields[i], c.bound)
        shape = [want[axis] if axis == order[i] else 1 for axis in range(n)]
        results.append(c.broadcast(c.reshape(c.tensor(item), shape, "reshape"), want, "broadcast"))
    return results


# ---- Making ----------------------------------------------------------------------------------------------------------

@row("full", "zeros", "ones", "full_like", "zeros_like", "ones_like")
def full(c: Call) -> Value:
    shape = c.out_shape
    value = c[1] if c.op.startswith("full") else int(c.op.startswith("ones"))
    if isinstance(value, str):
        return c.broadcast(c.cast(value, c.out_dtype), shape)
    data = value.data if isinstance(value, Weight) else np.asarray(value)
    return c.broadcast(c.constant(data.astype(c.out_dtype).reshape(())), shape)


@row("arange")
def arange(c: Call) -> Value:
    names = []
    for item in c.args:
        whole = c.constant(np.array(item, c.out_dtype)) if isinstance(item, (int, float)) else c.cast(
            c.joint("squeeze", [c.length(item)], {"axis": [0]}, shape=[], dtype="int64", local="squeeze"), c.out_dtype)
        names.append(whole)
    return c.joint("arange", names)


@row("eye", "eye_like")
def eye(c: Call) -> Value:
    shape, k = c.out_shape, c.args[-1] if isinstance(c.args[-1], int) else 0
    if not all(isinstance(length, int) for length in shape):
        raise c.unsupported("a length that is a symbol")
    return Weight(np.eye(shape[0], shape[1], k, dtype=c.out_dtype))


@row("triu", "tril")
def triangle(c: Call) -> Value:
    if not isinstance(c[1], int):
        raise c.unsupported("a diagonal that is computed")
    return c.joint(c.op, [c.tensor(c[0])], {"k": c[1]})


@row("hamming_window")
def hamming_window(c: Call) -> Value:
    size, periodic, alpha, beta = c.args[:4]
    if not isinstance(size, int):
        raise c.unsupported("a length that is a symbol")
    steps = np.arange(size) * (2 * np.pi / (size if periodic else max(size - 1, 1)))
    return Weight((alpha - beta * np.cos(steps)).astype(c.out_dtype))
