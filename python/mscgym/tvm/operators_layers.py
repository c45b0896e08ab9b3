"""Rows of layers: convolutions, products, normalisations, attention, pooling and resizing (rows.py)."""
from __future__ import annotations

import math
from typing import Any

import numpy as np

from mscgym.tvm.reading import Call, Shape, Turned, Value, Weight
from mscgym.tvm.rows import axes_of, row

SPATIAL = {1: "W", 2: "HW", 3: "DHW"}
CONV_KEYS = ["data_layout", "dilation", "groups", "kernel_layout", "out_dtype", "out_layout", "padding", "strides"]
POOL_KEYS = ["ceil_mode", "count_include_pad", "dilation", "layout", "out_layout", "padding", "pool_size", "strides"]


def _kept(c: Call, keys: list[str]) -> dict[str, Any]:
    """The attributes that a joint has under the same names."""
    return {key: c.attr(key) for key in keys if c.attr(key) is not None}


def _check_layout(c: Call, key: str, n: int) -> None:
    if c.attr(key) != "NC" + SPATIAL[n]:
        raise c.unsupported(f"the layout {c.attr(key)}")


# ---- Convolutions and products ---------------------------------------------------------------------------------------

@row(*[f"nn.conv{n}d{turned}" for n in (1, 2, 3) for turned in ("", "_transpose")])
def conv(c: Call) -> Value:
    is_turned = c.op.endswith("_transpose")
    n = int(c.op[7])
    _check_layout(c, "data_layout", n)
    attrs = _kept(c, [*CONV_KEYS, "output_padding"] if is_turned else CONV_KEYS)
    layout = c.attr("kernel_layout")
    if layout not in ("OI" + SPATIAL[n], "IO" + SPATIAL[n]) or (layout[0] == "I") != is_turned:
        raise c.unsupported(f"the kernel layout {layout}")
    return c.layer(c.op, c[0], {"weight": (c[1], layout)}, attrs)


@row("matmul")
def matmul(c: Call) -> Value:
    first, second = c[0], c[1]
    matrix = second.weight if isinstance(second, Turned) else second
    if isinstance(matrix, Weight) and matrix.data.ndim == 2 and c.rank(0) >= 2:
        layout = "OI" if isinstance(second, Turned) else "IO"
        return c.layer("msc.linear", first, {"weight": (matrix, layout)}, _kept(c, ["out_dtype"]))
    return c.joint("matmul", [c.tensor(first), c.tensor(second)], _kept(c, ["out_dtype"]))


@row("outer")
def outer(c: Call) -> Value:
    column = c.joint("expand_dims", [c.tensor(c[0])], {"axis": [1]}, shape=[*c.shape(c[0]), 1], local="expand_dims")
    return c.joint("multiply", [column, c.tensor(c[1])])


@row("einsum")
def einsum(c: Call) -> Value:
    return c.joint("einsum", [c.tensor(item) for item in c[0]], {"equation": c.attr("subscripts").replace(" ", "")})


@row("nn.attention", "nn.attention_bias")
def attention(c: Call) -> Value:
    """Softmax of scaled scores. Query, key and value are [batch, length, heads, features]."""
    causal = c.attr("causal_mask")
    if c.attr("window_size") or causal not in (None, "TopLeft", "BottomRight"):
        raise c.unsupported("a window")
    batch, length, heads, features = c.shape(c[0])
    keys, values = c.shape(c[1])[1], c.shape(c[2])[3]
    scale, dtype = c.attr("scale"), c.out_dtype
    scale = 1 / math.sqrt(features) if scale is None else scale

    def turn(item: Value, axes: list[int], local: str) -> str:
        shape = [c.shape(item)[axis] for axis in axes]
        return c.joint("permute_dims", [c.tensor(item)], {"axes": axes}, shape=shape, local=local)
    scores = [batch, heads, length, keys]
    query, key = turn(c[0], [0, 2, 1, 3], "query"), turn(c[1], [0, 2, 3, 1], "key")
    x = c.joint("matmul", [query, key], shape=scores, local="scores")
    x = c.joint("multiply", [x, c.constant(np.array(scale, dtype))], shape=scores, local="scale")
    if c[3] is not None:
        x = c.joint("add", [x, c.tensor(c[3])], shape=scores, local="bias")
    if causal:
        if not isinstance(length, int) or not isinstance(keys, int):
            raise c.unsupported("a causal mask of symbols")
        seen = np.tri(length, keys, 0 if causal == "TopLeft" else keys - length, bool)
        mask = c.constant(np.where(seen, 0, -np.inf).astype(dtype))
        x = c.joint("add", [x, mask], shape=scores, local=causal)
    x = c.joint("nn.softmax", [x], {"axis": -1}, shape=scores, local="softmax")
    x = c.joint("matmul", [x, turn(c[2], [0, 2, 1, 3], "value")], shape=[batch, heads, length, values], local="mix")
    return c.joint("permute_dims", [x], {"axes": [0, 2, 1, 3]})


# ---- Normalisations --------------------------------------------------------------------------------------------------

@row("nn.batch_norm")
def batch_norm(c: Call) -> Value:
    if c.attr("training"):
        raise c.unsupported("training=True, which from_fx writes even for modules in evaluation; import the module "
                            "with from_exported_program")
    if not (c.attr("center") and c.attr("scale")) or c.attr("axis") % c.rank(0) != 1:
        raise c.unsupported("another axis than 1, or no scale or centre")
    operands = {role: (c[i + 1], "O") for i, role in enumerate(["gamma", "beta", "mean", "var"])}
    if not all(isinstance(item, Weight) for item, _ in operands.values()):
        raise c.unsupported("statistics that are no constants; give their values in `params`")
    attrs = _kept(c, ["axis", "center", "epsilon", "momentum", "scale"])
    return [c.layer("nn.batch_norm", c[0], operands, attrs), None, None]


@row("nn.layer_norm")
def layer_norm(c: Call) -> Value:
    axes, rank = axes_of(c, "axes"), c.rank(0)
    is_last = sorted(axis % rank for axis in axes) == [*range(rank - len(axes), rank)]
    if not is_last or not isinstance(c[1], Weight) or not isinstance(c[2], Weight):
        raise c.unsupported("axes that are not the last, or a scale that is no constant")
    return c.layer("nn.layer_norm", c[0], {"gamma": (c[1], ""), "beta": (c[2], "")},
                   _kept(c, ["axes", "center", "epsilon", "scale"]))


@row("nn.group_norm", "nn.instance_norm")
def group_norm(c: Call) -> Value:
    rank = c.rank(0)
    rest = [*range(2, rank)]
    axes = sorted(axis % rank for axis in axes_of(c, "axes"))
    if c.attr("channel_axis") % rank != 1 or axes not in (rest, [1, *rest] if c.op == "nn.group_norm" else rest):
        raise c.unsupported("channels that are not on axis 1")
    if not isinstance(c[1], Weight) or not isinstance(c[2], Weight):
        raise c.unsupported("a scale that is no constant")
    keys = ["epsilon", "num_groups"] if c.op == "nn.group_norm" else ["epsilon"]
    return c.layer(c.op, c[0], {"gamma": (c[1], "O"), "beta": (c[2], "O")}, _kept(c, keys))


@row("nn.rms_norm")
def rms_norm(c: Call) -> Value:
    axes, shape = axes_of(c, "axes"), c.shape(c[0])
    kept = [1 if axis in [a % len(shape) for a in axes] else length for axis, length in enumerate(shape)]
    x = c.tensor(c[0])
    squares = c.joint("multiply", [x, x], local="square")
    mean = c.joint("mean", [squares], {"axis": axes, "keepdims": True}, shape=kept, local="mean")
    epsilon = c.constant(np.array(c.attr("epsilon"), c.out_dtype))
    root = c.joint("sqrt", [c.joint("add", [mean, epsilon], shape=kept, local="add")], shape=kept, local="sqrt")
    return c.joint("multiply", [c.joint("divide", [x, root], local="divide"), c.tensor(c[1])])


@row("nn.softmax", "nn.log_softmax")
def softmax(c: Call) -> Value:
    return c.joint(c.op, [c.tensor(c[0])], {"axis": c.attr("axis")})


@row("nn.dropout")
def dropout(c: Call) -> Value:
    return [c[0], None]


# ---- Pooling and resizing --------------------------------------------------------------------------------------------

@row(*[f"nn.{kind}_pool{n}d" for kind in ("max", "avg") for n in (1, 2, 3)])
def pool(c: Call) -> Value:
    _check_layout(c, "layout", int(c.op[-2]))
    attrs = _kept(c, POOL_KEYS)
    return c.joint(c.op, [c.tensor(c[0])], attrs)


@row(*[f"nn.adaptive_avg_pool{n}d" for n in (1, 2, 3)])
def adaptive_pool(c: Call) -> Value:
    n = int(c.op[-2])
    _check_layout(c, "layout", n)
    have = c.shape(c[0])[2:]
    want = have if c.attr("output_size") is None else axes_of(c, "output_size")
    layout = "NC" + SPATIAL[n]
    if want == [1] * n:
        return c.joint("nn.global_avg_pool", [c.tensor(c[0])], {"layout": layout})
    if have == want:
        return c.joint("identity", [c.tensor(c[0])])
    if any(not isinstance(length, int) for length in have):
        raise c.unsupported(f"windows of {have}, whose lengths depend on the input's")
    if any(length % size for length, size in zip(have, want)):
        return _uneven_pool(c, have, want)
    size = [length // part for length, part in zip(have, want)]
    return c.joint(f"nn.avg_pool{n}d", [c.tensor(c[0])],
                   {"pool_size": size, "strides": size, "padding": [0] * (2 * n), "layout": layout,
                    "out_layout": layout})


def _means(length: int, size: int) -> Any:
    """A matrix [size, length], by which a product is the means of `size` windows. Window i is from i * length / size,
    rounded down, to (i + 1) * length / size, rounded up."""
    matrix = np.zeros((size, length))
    for i in range(size):
        start, end = i * length // size, -(-(i + 1) * length // size)
        matrix[i, start:end] = 1 / (end - start)
    return matrix


def _uneven_pool(c: Call, have: list[int], want: list[int]) -> Value:
    """Windows of different sizes: products with matrices of means, along the last axis and the one before it."""
    if len(have) > 2:
        raise c.unsupported(f"an output {want} that does not divide {have}")
    x, outer = c.tensor(c[0]), c.shape(c[0])[:-1]
    matrices = [c.constant(_means(length, size).astype(c.out_dtype)) for length, size in zip(have[:-1], want)]
    matrices.append(c.constant(_means(have[-1], want[-1]).T.astype(c.out_dtype)))
    x = c.joint("matmul", [x, matrices[-1]], shape=[*outer, want[-1]], local="" if len(have) == 1 else "columns")
    return x if len(have) == 1 else c.joint("matmul", [matrices[0], x])


METHODS = {"linear": "linear", "nearest_neighbor": "nearest_neighbor", "cubic": "cubic"}


@row("image.resize2d")
def resize(c: Call) -> Value:
    _check_layout(c, "layout", 2)
    if c.attr("method") not in METHODS:
        raise c.unsupported(f"the method {c.attr('method')}")
    keys = ["coordinate_transformation_mode", "cubic_alpha", "extrapolation_value", "layout", "method"]
    attrs = {**_kept(c, keys), "cubic_exclude": bool(c.attr("cubic_exclude"))}
    rounding = {"round": "round_prefer_floor", "": "round_prefer_floor"}.get(c.attr("rounding_method", ""))
    attrs["rounding_method"] = rounding or c.attr("rounding_method")
    if rounding:
        attrs["relax.rounding"] = c.attr("rounding_method")
    if c.attr("coordinate_transformation_mode") == "tf_crop_and_resize":
        raise c.unsupported("a region of interest")
    size = c[1]
    if isinstance(size, Shape) and all(isinstance(length, int) for length in size.lengths):
        return c.joint("image.resize2d", [c.tensor(c[0])], {**attrs, "axes": [2, 3], "size": size.lengths})
    return c.joint("image.resize2d", [c.tensor(c[0]), "", "", c.lengths(size)], {**attrs, "axes": [2, 3]})


@row("image.grid_sample")
def grid_sample(c: Call) -> Value:
    _check_layout(c, "layout", 2)
    shape = c.shape(c[1])
    grid = c.joint("permute_dims", [c.tensor(c[1])], {"axes": [0, 2, 3, 1]},
                   shape=[shape[axis] for axis in (0, 2, 3, 1)], local="grid")
    return c.joint("image.grid_sample", [c.tensor(c[0]), grid],
                   {"mode": c.attr("method"), "padding_mode": c.attr("padding_mode"),
                    "align_corners": c.attr("align_corners")})


@row("nn.pixel_shuffle")
def pixel_shuffle(c: Call) -> Value:
    return c.joint("nn.depth_to_space", [c.tensor(c[0])], {"blocksize": c.attr("upscale_factor"), "mode": "CRD"})


@row("nn.pad")
def pad(c: Call) -> Value:
    widths, mode = c.attr("pad_width"), c.attr("pad_mode")
    modes = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}
    if mode not in modes:
        raise c.unsupported(f"the mode {mode}")
    attrs = {"pad_width": [*widths[::2], *widths[1::2]], "pad_mode": modes[mode]}
    if mode == "constant" and c.attr("pad_value"):
        attrs["pad_value"] = c.attr("pad_value")
    return c.joint("nn.pad", [c.tensor(c[0])], attrs)


@row("vision.roi_align")
def roi_align(c: Call) -> Value:
    _check_layout(c, "layout", 2)
    rois = c.shape(c[1])
    height, width = axes_of(c, "pooled_size")
    x, boxes = c.tensor(c[0]), c.tensor(c[1])
    cut = {"axes": [1], "begin": [0], "end": [1]}
    numbers = c.joint("strided_slice", [boxes], cut, shape=[rois[0], 1], dtype="float32", local="numbers")
    numbers = c.joint("squeeze", [numbers], {"axis": [1]}, shape=[rois[0]], dtype="float32", local="squeeze")
    corners = c.joint("strided_slice", [boxes], {"axes": [1], "begin": [1], "end": [5]}, shape=[rois[0], 4],
                      local="corners")
    aligned = "half_pixel" if c.attr("aligned") else "output_half_pixel"
    mode = {0: "avg", 1: "max"}.get(c.attr("mode"), c.attr("mode"))
    return c.joint("vision.roi_align", [x, corners, c.cast(numbers, "int64")],
                   {"output_height": height, "output_width": width, "sampling_ratio": max(c.attr("sample_ratio"), 0),
                    "spatial_scale": c.attr("spatial_scale"), "mode": mode,
                    "coordinate_transformation_mode": aligned})
