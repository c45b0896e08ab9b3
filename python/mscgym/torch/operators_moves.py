"""Rows of reductions, of operators that move elements, and of lengths (rows.py)."""
from __future__ import annotations

import operator
from typing import Any

import torch

from mscgym.torch.reading import Call, Result
from mscgym.torch.rows import axes_of, row

aten = torch.ops.aten


# ---- Reductions ------------------------------------------------------------------------------------------------------

REDUCTIONS: dict[Any, str] = {
    aten.mean.dim: "mean", aten.mean.default: "mean", aten.sum.dim_IntList: "sum", aten.sum.default: "sum",
    aten.amax.default: "max", aten.amin.default: "min", aten.prod.dim_int: "prod", aten.max.default: "max",
    aten.min.default: "min"}


@row(*REDUCTIONS)
def reduction(c: Call) -> Result:
    axes = axes_of(c)
    if not axes:
        return c.tensor("self", c.value.dtype)
    return c.joint(REDUCTIONS[c.target], [c.tensor("self", c.value.dtype)],
                   {"axis": axes, "keepdims": bool(c.args.get("keepdim", False))})


@row(aten.any.dim, aten.any.dims, aten.any.default, aten.all.dim, aten.all.default)
def any_or_all(c: Call) -> Result:
    axes = axes_of(c)
    number = c.cast(c.tensor("self", torch.bool), torch.int64, c.fake("self").shape)
    most = c.joint("max" if "any" in str(c.target) else "min", [number],
                   {"axis": axes, "keepdims": bool(c.args.get("keepdim", False))}, dtype=torch.int64)
    return c.cast(most, torch.bool, c.value.shape)


@row(aten.max.dim, aten.min.dim)
def extremum(c: Call) -> Result:
    kind, shape = ("max" if c.target is aten.max.dim else "min"), c.value[0].shape
    axis, keep = c["dim"], bool(c["keepdim"])
    x = c.tensor("self")
    return [c.joint(kind, [x], {"axis": [axis], "keepdims": keep}, shape=shape, dtype=c.value[0].dtype),
            c.joint("arg" + kind, [x], {"axis": axis, "keepdims": keep}, shape=shape, dtype=torch.int64)]


@row(aten.argmax.default, aten.argmin.default)
def argument(c: Call) -> Result:
    joint, x, axis, keep = str(c.target).split(".")[1], c.tensor("self"), c["dim"], bool(c["keepdim"])
    if axis is None:
        x, axis, keep = c.joint("reshape", [x], {"shape": [-1]}, shape=[c.fake("self").numel()],
                                dtype=c.fake("self").dtype), 0, False
    return c.joint(joint, [x], {"axis": axis, "keepdims": keep})


# ---- Shapes and moves ------------------------------------------------------------------------------------------------

@row(aten.view.default, aten._unsafe_view.default, aten.reshape.default)
def view(c: Call) -> Result:
    return c.reshape(c.tensor("self"), c.fake("self").shape, c.value.shape, c.args.get("size") or c["shape"])


@row(aten.permute.default)
def permute(c: Call) -> Result:
    axes = [axis % len(c["dims"]) for axis in c["dims"]]
    return c.joint("permute_dims", [c.tensor("self")], {"axes": axes})


@row(aten.unsqueeze.default)
def unsqueeze(c: Call) -> Result:
    return c.joint("expand_dims", [c.tensor("self")], {"axis": [c["dim"] % c.value.dim()]})


@row(aten.squeeze.dim, aten.squeeze.dims, aten.squeeze.default)
def squeeze(c: Call) -> Result:
    shape, axes = c.fake("self").shape, c.args.get("dim")
    axes = [axes] if isinstance(axes, int) else range(len(shape)) if axes is None else axes
    axes = [axis % len(shape) for axis in axes if shape[axis] == 1]
    return c.joint("squeeze", [c.tensor("self")], {"axis": axes}) if axes else c.tensor("self")


@row(aten.expand.default)
def expand(c: Call) -> Result:
    return c.expand(c.tensor("self"), c.fake("self").shape, c.value.shape, c["size"])


@row(aten.cat.default)
def cat(c: Call) -> Result:
    parts = [x for x in c["tensors"] if not (c.fake(x).dim() == 1 and c.fake(x).shape[0] == 0)]
    return c.joint("concat", [c.tensor(x, c.value.dtype) for x in parts], {"axis": c["dim"]})


@row(aten.split_with_sizes.default)
def split(c: Call) -> Result:
    axis, cuts = c["dim"], [sum(c["split_sizes"][:i]) for i in range(1, len(c["split_sizes"]))]
    return c.joints("split", [c.tensor("self")], {"axis": axis, "indices_or_sections": cuts},
                    shapes=[x.shape for x in c.value])


@row(aten.unbind.int)
def unbind(c: Call) -> Result:
    shape, axis = list(c.fake("self").shape), c["dim"]
    n, shape[axis] = shape[axis], 1
    parts = c.joints("split", [c.tensor("self")], {"axis": axis}, shapes=[shape] * n)
    return [c.joint("squeeze", [part], {"axis": [axis]}, shape=c.value[0].shape, dtype=c.value[0].dtype)
            for part in parts]


@row(aten.slice.Tensor)
def slice_(c: Call) -> Result:
    begin, end = c["start"] or 0, c["end"]
    end = 2**63 - 1 if end is None else end
    if not c.has_symbol(begin) and not c.has_symbol(end):
        if begin == 0 and end >= 2**62 and c["step"] == 1:
            return c.tensor("self")
        return c.joint("strided_slice", [c.tensor("self")],
                       {"axes": [c["dim"]], "begin": [begin], "end": [end], "strides": [c["step"]]})
    return c.joint("strided_slice", [c.tensor("self"), c.length(begin), c.length(end)],
                   {"axes": [c["dim"]], "strides": [c["step"]]})


@row(aten.slice_scatter.default)
def slice_scatter(c: Call) -> Result:
    """A copy of the tensor whose slice is `src`: the parts before and after the slice are joined to `src`."""
    shape, axis, end = list(c.fake("self").shape), c["dim"], c["end"]
    n = shape[axis]
    if c["step"] == 1 and not c["start"] and (end is None or (isinstance(end, int) and end >= 2**62)):
        return c.tensor("src", c.value.dtype)
    if c["step"] != 1 or not isinstance(n, int) or c.has_symbol(c["start"]) or c.has_symbol(c["end"]):
        raise c.unsupported("a step, or a length that is computed")
    begin, end, _ = slice(c["start"], c["end"]).indices(n)
    parts = [c.tensor("src", c.value.dtype)]
    for first, last, at in ((0, begin, 0), (end, n, 1)):
        if first < last:
            shape[axis] = last - first
            parts.insert(at if at == 0 else len(parts), c.joint(
                "strided_slice", [c.tensor("self")], {"axes": [axis], "begin": [first], "end": [last]}, shape=shape))
    return parts[0] if len(parts) == 1 else c.joint("concat", parts, {"axis": axis})


@row(aten.select.int)
def select(c: Call) -> Result:
    if c.has_symbol(c["index"]):
        raise c.unsupported("an index that is computed")
    return c.joint("take", [c.tensor("self"), c.constant(torch.tensor(c["index"]))], {"axis": c["dim"]})


@row(aten.flip.default)
def flip(c: Call) -> Result:
    n = len(c["dims"])
    return c.joint("strided_slice", [c.tensor("self")], {"axes": c["dims"], "begin": [-1] * n,
                                                         "end": [-2**63 + 1] * n, "strides": [-1] * n})


@row(aten.repeat.default)
def tile(c: Call) -> Result:
    x, shape, times = c.tensor("self"), list(c.fake("self").shape), c["repeats"]
    if len(times) > len(shape):
        full = [1] * (len(times) - len(shape)) + shape
        x = c.reshape(x, shape, full, full)
    if any(c.has_symbol(item) for item in times):
        return c.joint("tile", [x, c.lengths(times)])
    return c.joint("tile", [x], {"repeats": times})


PADS: dict[Any, str] = {aten.constant_pad_nd.default: "constant", aten.reflection_pad1d.default: "reflect",
        aten.reflection_pad2d.default: "reflect", aten.replication_pad1d.default: "edge",
        aten.replication_pad2d.default: "edge"}


@row(*PADS)
def pad(c: Call) -> Result:
    amounts, n = c.args.get("pad") or c["padding"], c.value.dim()
    before, after = [0] * n, [0] * n
    for i in range(len(amounts) // 2):
        before[n - 1 - i], after[n - 1 - i] = amounts[2 * i], amounts[2 * i + 1]
    attrs: dict[str, Any] = {"pad_width": before + after, "pad_mode": PADS[c.target]}
    if c.args.get("value"):
        attrs["pad_value"] = float(c["value"])
    return c.joint("nn.pad", [c.tensor("self")], attrs)


# ---- Indexing, sorting, making ---------------------------------------------------------------------------------------

@row(aten.index_select.default)
def index_select(c: Call) -> Result:
    return c.joint("take", [c.tensor("self"), c.tensor("index")], {"axis": c["dim"]})


@row(aten.gather.default)
def gather(c: Call) -> Result:
    return c.joint("gather_elements", [c.tensor("self"), c.tensor("index")], {"axis": c["dim"]})


@row(aten.scatter.src, aten.scatter_add.default)
def scatter(c: Call) -> Result:
    return c.joint("scatter_elements", [c.tensor("self"), c.tensor("index"), c.tensor("src")],
                   {"axis": c["dim"], "reduction": "add" if c.target is aten.scatter_add.default else "none"})


@row(aten.index.Tensor)
def index(c: Call) -> Result:
    """x[i], x[:, i] by `take`; x[i, j] by `gather_nd`, with the indexed axes first."""
    indices, shape = list(c["indices"]), list(c.fake("self").shape)
    axes = [axis for axis, item in enumerate(indices) if item is not None]
    if any(c.fake(indices[axis]).dtype == torch.bool for axis in axes):
        raise c.unsupported("an index of booleans")
    if len(axes) == 1:
        return c.joint("take", [c.tensor("self"), c.tensor(indices[axes[0]])], {"axis": axes[0]})
    first, last = axes[0], axes[-1]
    if axes != [*range(first, last + 1)]:
        raise c.unsupported("indices of axes that are not next to each other")
    rest = [axis for axis in range(len(shape)) if axis not in axes]
    x = c.tensor("self")
    if first > 0:
        order = axes + rest
        x = c.joint("permute_dims", [x], {"axes": order}, shape=[shape[axis] for axis in order])
    shapes = [c.fake(indices[axis]).shape for axis in axes]
    common = list(torch.broadcast_shapes(*shapes))  # type: ignore[no-untyped-call]
    items = [c.find_length(length, i - len(common), [indices[axis] for axis in axes])
             for i, length in enumerate(common)]
    columns = []
    for axis in axes:
        have = c.fake(indices[axis]).shape
        item = c.expand(c.tensor(indices[axis], torch.int64), have, common, items, dtype=torch.int64)
        columns.append(c.joint("expand_dims", [item], {"axis": [len(common)]}, shape=[*common, 1], dtype=torch.int64))
    points = c.joint("concat", columns, {"axis": len(common)}, shape=[*common, len(axes)], dtype=torch.int64)
    picked = c.joint("gather_nd", [x, points], shape=common + [shape[axis] for axis in rest])
    if first == 0:
        return picked
    n = len(common)
    order = [*range(n, n + first), *range(n), *range(n + first, n + len(rest))]
    return c.joint("permute_dims", [picked], {"axes": order})


@row(aten.topk.default)
def topk(c: Call) -> Result:
    return c.joints("topk", [c.tensor("self")], {"k": c["k"], "axis": c["dim"], "largest": bool(c["largest"]),
                                                 "sorted": bool(c["sorted"])},
                    shapes=[x.shape for x in c.value], dtypes=[x.dtype for x in c.value])


@row(aten.sort.default)
def sort(c: Call) -> Result:
    n = c.fake("self").shape[c["dim"]]
    return c.joints("topk", [c.tensor("self")], {"k": n, "axis": c["dim"], "largest": bool(c["descending"])},
                    shapes=[x.shape for x in c.value], dtypes=[x.dtype for x in c.value])


@row(aten.cumsum.default)
def cumsum(c: Call) -> Result:
    return c.joint("cumsum", [c.tensor("self", c.value.dtype)], {"axis": c["dim"]})


@row(aten.triu.default, aten.tril.default)
def triangle(c: Call) -> Result:
    return c.joint(str(c.target).split(".")[1], [c.tensor("self")], {"k": c["diagonal"]})


@row(aten.arange.start_step, aten.arange.start, aten.arange.default)
def arange(c: Call) -> Result:
    ends = [c.args.get("start", 0), c["end"], c.args.get("step", 1)]
    return c.joint("arange", [c.scalar(item, c.value.dtype) for item in ends])


@row(aten.full.default, aten.full_like.default, aten.zeros_like.default, aten.ones_like.default)
def full(c: Call) -> Result:
    value = c.args.get("fill_value", 1 if "ones" in str(c.target) else 0)
    item = c.constant(torch.tensor(value, dtype=c.value.dtype))
    like = c.args.get("self")
    return c.expand(item, [], c.value.shape, c["size"] if like is None else c.sizes_of(like))


@row(aten.scalar_tensor.default)
def scalar_tensor(c: Call) -> Result:
    item = c["s"]
    return c.scalar(item, c.value.dtype) if c.has_symbol(item) else c.constant(torch.tensor(item, dtype=c.value.dtype))


# ---- Lengths: whole numbers that depend on shapes, as tensors int64[1] -----------------------------------------------

ARITHMETIC: dict[Any, str] = {
    operator.add: "add", operator.sub: "subtract", operator.mul: "multiply", operator.floordiv: "divide",
    torch.sym_max: "maximum", torch.sym_min: "minimum"}


@row(aten.sym_size.int)
def sym_size(c: Call) -> Result:
    return c.length_of("self", c["dim"])


@row(*ARITHMETIC)
def arithmetic(c: Call) -> Result:
    return c.joint(ARITHMETIC[c.target], [c.length(item) for item in c.node.args], shape=[1], dtype=torch.int64)
