"""Rows from operators of torch to joints: a function for each operator, or for operators that differ only in a name.

A row gets a `Call` (mscgym.torch.reading): the arguments of the operator by the names of its schema, and functions that
add joints. It returns the name of the tensor that holds the result, or a list of names for several results. To add an
operator, add a row here if a joint computes it, or else a formula in formulas.py.
"""
from __future__ import annotations

import operator
from typing import Any, Callable

import torch

from mscgym.torch.reading import Call, Result

aten = torch.ops.aten
Row = Callable[[Call], Result]
ROWS: dict[Any, Row] = {}


def row(*targets: Any) -> Callable[[Row], Row]:
    def add(function: Row) -> Row:
        ROWS.update(dict.fromkeys(targets, function))
        return function
    return add


# ---- Operators of one or two tensors, element by element -----------------------------------------------------------

UNARY = {
    aten.relu.default: "nn.relu", aten.sigmoid.default: "sigmoid", aten.tanh.default: "tanh", aten.exp.default: "exp",
    aten.log.default: "log", aten.sqrt.default: "sqrt", aten.erf.default: "erf", aten.abs.default: "abs",
    aten.neg.default: "negative", aten.reciprocal.default: "reciprocal", aten.floor.default: "floor",
    aten.ceil.default: "ceil", aten.round.default: "round", aten.sign.default: "sign", aten.sin.default: "sin",
    aten.cos.default: "cos", aten.tan.default: "tan", aten.asin.default: "asin", aten.acos.default: "acos",
    aten.atan.default: "atan", aten.sinh.default: "sinh", aten.cosh.default: "cosh", aten.asinh.default: "asinh",
    aten.acosh.default: "acosh", aten.atanh.default: "atanh", aten.isnan.default: "isnan", aten.isinf.default: "isinf",
    aten.hardswish.default: "nn.hard_swish", aten.mish.default: "nn.mish", aten.logical_not.default: "logical_not"}
BINARY = {
    aten.mul.Tensor: "multiply", aten.div.Tensor: "divide", aten.pow.Tensor_Tensor: "power",
    aten.pow.Tensor_Scalar: "power", aten.pow.Scalar: "power", aten.maximum.default: "maximum",
    aten.minimum.default: "minimum", aten.remainder.Tensor: "floor_mod", aten.remainder.Scalar: "floor_mod",
    aten.fmod.Tensor: "mod", aten.fmod.Scalar: "mod"}
COMPARISONS = {
    aten.eq.Tensor: "equal", aten.eq.Scalar: "equal", aten.lt.Tensor: "less", aten.lt.Scalar: "less",
    aten.le.Tensor: "less_equal", aten.le.Scalar: "less_equal", aten.gt.Tensor: "greater",
    aten.gt.Scalar: "greater", aten.ge.Tensor: "greater_equal", aten.ge.Scalar: "greater_equal"}
LOGICAL = {aten.logical_and.default: "logical_and", aten.logical_or.default: "logical_or",
           aten.logical_xor.default: "logical_xor"}
BITWISE = {aten.bitwise_and.Tensor: "and", aten.bitwise_or.Tensor: "or", aten.bitwise_xor.Tensor: "xor",
           aten.bitwise_and.Scalar: "and", aten.bitwise_or.Scalar: "or", aten.bitwise_xor.Scalar: "xor"}


@row(*UNARY)
def unary(c: Call) -> Result:
    dtype = c.value.dtype if c.value.dtype != torch.bool else None
    return c.joint(UNARY[c.target], [c.tensor(c.first, dtype)])


@row(*BINARY)
def binary(c: Call) -> Result:
    first, second = c.pair()
    return c.joint(BINARY[c.target], [c.tensor(first, c.value.dtype), c.tensor(second, c.value.dtype)])


@row(aten.add.Tensor, aten.sub.Tensor, aten.add.Scalar, aten.sub.Scalar)
def add(c: Call) -> Result:
    first, second = c.pair()
    alpha = c.args.get("alpha", 1)
    right = c.tensor(second, c.value.dtype)
    if alpha != 1:
        like = c.fake(second)
        right = c.joint("multiply", [right, c.constant(torch.tensor(alpha, dtype=c.value.dtype))], shape=like.shape)
    return c.joint("add" if "add" in str(c.target) else "subtract", [c.tensor(first, c.value.dtype), right])


@row(*COMPARISONS)
def comparison(c: Call) -> Result:
    first, second = c.pair()
    dtype = c.promoted(first, second)
    return c.joint(COMPARISONS[c.target], [c.tensor(first, dtype), c.tensor(second, dtype)])


@row(*LOGICAL)
def logical(c: Call) -> Result:
    return c.joint(LOGICAL[c.target], [c.tensor(x, torch.bool) for x in c.pair()])


@row(*BITWISE)
def bitwise(c: Call) -> Result:
    kind = "logical_" if c.value.dtype == torch.bool else "bitwise_"
    return c.joint(kind + BITWISE[c.target], [c.tensor(x, c.value.dtype) for x in c.pair()])


@row(aten.bitwise_not.default)
def bitwise_not(c: Call) -> Result:
    return c.joint("logical_not" if c.value.dtype == torch.bool else "bitwise_not", [c.tensor("self")])


@row(aten.div.Tensor_mode, aten.div.Scalar_mode, aten.floor_divide.default)
def divide(c: Call) -> Result:
    first, second = c.pair()
    if not c.value.dtype.is_floating_point:
        raise c.unsupported("a division of integers with a rounding mode")
    ratio = c.joint("divide", [c.tensor(first, c.value.dtype), c.tensor(second, c.value.dtype)])
    if c.args.get("rounding_mode", "floor") == "trunc":
        raise c.unsupported("the rounding mode 'trunc'")
    return c.joint("floor", [ratio])


@row(aten.where.self)
def where(c: Call) -> Result:
    dtype = c.value.dtype
    return c.joint("where", [c.tensor("condition"), c.tensor("self", dtype), c.tensor("other", dtype)])


@row(aten.clamp.default, aten.hardtanh.default)
def clamp(c: Call) -> Result:
    low, high = c.args.get("min", c.args.get("min_val")), c.args.get("max", c.args.get("max_val"))
    attrs = {key: value for key, value in (("min", low), ("max", high)) if value is not None}
    return c.joint("clip", [c.tensor("self", c.value.dtype)], {key: float(value) for key, value in attrs.items()})


@row(aten.clamp.Tensor)
def clamp_tensor(c: Call) -> Result:
    result = c.tensor("self", c.value.dtype)
    for key, joint in (("min", "maximum"), ("max", "minimum")):
        if c.args.get(key) is not None:
            result = c.joint(joint, [result, c.tensor(key, c.value.dtype)])
    return result


@row(aten.leaky_relu.default)
def leaky_relu(c: Call) -> Result:
    return c.joint("nn.leaky_relu", [c.tensor("self")], {"alpha": float(c["negative_slope"])})


@row(aten.elu.default)
def elu(c: Call) -> Result:
    if c["scale"] != 1 or c["input_scale"] != 1:
        raise c.unsupported("a scale other than 1")
    return c.joint("nn.elu", [c.tensor("self")], {"alpha": float(c["alpha"])})


@row(aten.celu.default)
def celu(c: Call) -> Result:
    return c.joint("nn.celu", [c.tensor("self")], {"alpha": float(c["alpha"])})


@row(aten.selu.default)
def selu(c: Call) -> Result:
    return c.joint("nn.selu", [c.tensor("self")])


@row(aten.gelu.default)
def gelu(c: Call) -> Result:
    return c.joint("nn.gelu", [c.tensor("self")], {"approximate": c["approximate"]})


@row(aten.hardsigmoid.default)
def hardsigmoid(c: Call) -> Result:
    return c.joint("nn.hard_sigmoid", [c.tensor("self")], {"alpha": 1 / 6, "beta": 0.5})


@row(aten.softplus.default)
def softplus(c: Call) -> Result:
    if c["beta"] != 1:
        raise c.unsupported("a beta other than 1")
    return c.joint("nn.softplus", [c.tensor("self")])


@row(aten.prelu.default)
def prelu(c: Call) -> Result:
    slope, n_dims = c.tensor("weight"), c.value.dim()
    if c.fake("weight").numel() > 1 and n_dims > 2:
        shape = [c.fake("weight").numel()] + [1] * (n_dims - 2)
        slope = c.joint("reshape", [slope], {"shape": shape}, shape=shape, local="weight")
    return c.joint("nn.prelu", [c.tensor("self"), slope], owner="weight")


@row(aten._to_copy.default)
def to_copy(c: Call) -> Result:
    return c.tensor("self", c.value.dtype)


@row(aten.clone.default, aten.alias.default, aten.detach.default, aten.lift_fresh_copy.default, aten.contiguous.default,
     aten.expand_copy.default, aten.copy.default)
def same(c: Call) -> Result:
    return c.tensor("src" if c.target is aten.copy.default else "self", c.value.dtype)


# ---- Layers --------------------------------------------------------------------------------------------------------

@row(aten.linear.default)
def linear(c: Call) -> Result:
    if not c.is_weight("weight") and c.fake("weight").dim() == 2:
        turned = c.joint("permute_dims", [c.tensor("weight")], {"axes": [1, 0]},
                         shape=[*reversed(c.fake("weight").shape)])
        result = c.joint("matmul", [c.tensor("input"), turned])
        return result if c["bias"] is None else c.joint("add", [result, c.tensor("bias")])
    joint = "msc.linear" if c["bias"] is None else "msc.linear_bias"
    return c.layer(joint, "input", {"weight": ("weight", "OI"), "bias": ("bias", "O")})


@row(aten.addmm.default)
def addmm(c: Call) -> Result:
    if c["beta"] != 1 or c["alpha"] != 1:
        raise c.unsupported("factors other than 1")
    if c.is_weight("mat2") and c.is_weight("self") and c.fake("self").dim() == 1:
        return c.layer("msc.linear_bias", "mat1", {"weight": ("mat2", "IO"), "bias": ("self", "O")})
    return c.joint("add", [c.joint("matmul", [c.tensor("mat1"), c.tensor("mat2")]), c.tensor("self")])


@row(aten.matmul.default, aten.mm.default, aten.bmm.default)
def matmul(c: Call) -> Result:
    first, second = c.pair()
    if c.is_weight(second) and c.fake(second).dim() == 2:
        return c.layer("msc.linear", first, {"weight": (second, "IO")})
    return c.joint("matmul", [c.tensor(first), c.tensor(second)])


@row(aten.einsum.default)
def einsum(c: Call) -> Result:
    return c.joint("einsum", [c.tensor(x) for x in c["tensors"]], {"equation": c["equation"].replace(" ", "")})


@row(aten.convolution.default)
def convolution(c: Call) -> Result:
    n = c.fake("weight").dim() - 2
    axes = {1: "W", 2: "HW", 3: "DHW"}[n]
    turned, bias = c["transposed"], c["bias"]
    padding = _both([*c["padding"]] * (n if len(c["padding"]) < n else 1))
    kernel = ("IO" if turned else "OI") + axes
    attrs = {"strides": _repeat(c["stride"], n), "padding": padding, "dilation": _repeat(c["dilation"], n),
             "groups": c["groups"], "data_layout": "NC" + axes, "out_layout": "NC" + axes, "kernel_layout": kernel}
    if turned:
        attrs["output_padding"] = _repeat(c["output_padding"], n)
    joint = f"nn.conv{n}d_transpose" if turned else f"nn.conv{n}d" if bias is None else f"msc.conv{n}d_bias"
    return c.layer(joint, "input", {"weight": ("weight", kernel), "bias": ("bias", "O")}, attrs)


def _repeat(values: Any, n: int) -> list[int]:
    values = [values] if isinstance(values, int) else list(values)
    return values * n if len(values) == 1 else values


def _both(values: list[int]) -> list[int]:
    return values + values


@row(aten._native_batch_norm_legit_no_training.default)
def batch_norm(c: Call) -> Result:
    like = c.fake("running_mean")
    weights = {"gamma": ("weight", "O"), "beta": ("bias", "O"), "mean": ("running_mean", "O"),
               "var": ("running_var", "O")}
    c.fill("weight", torch.ones(like.shape)), c.fill("bias", torch.zeros(like.shape))
    return [c.layer("nn.batch_norm", "input", weights,
                    {"axis": 1, "epsilon": float(c["eps"]), "momentum": float(c["momentum"])}, like=c.value[0])]


@row(aten.native_layer_norm.default)
def layer_norm(c: Call) -> Result:
    shape = c["normalized_shape"]
    c.fill("weight", torch.ones(shape))
    axes = [-i for i in range(len(shape), 0, -1)]
    return [c.layer("nn.layer_norm", "input", {"gamma": ("weight", ""), "beta": ("bias", "")},
                    {"axes": axes, "epsilon": float(c["eps"])}, like=c.value[0])]


@row(aten.native_group_norm.default)
def group_norm(c: Call) -> Result:
    c.fill("weight", torch.ones(c["C"])), c.fill("bias", torch.zeros(c["C"]))
    return [c.layer("nn.group_norm", "input", {"gamma": ("weight", "O"), "beta": ("bias", "O")},
                    {"num_groups": c["group"], "epsilon": float(c["eps"])}, like=c.value[0])]


@row(aten.instance_norm.default)
def instance_norm(c: Call) -> Result:
    if not c["use_input_stats"]:
        raise c.unsupported("statistics that are tracked")
    n = c.fake("input").shape[1]
    c.fill("weight", torch.ones(n)), c.fill("bias", torch.zeros(n))
    return c.layer("nn.instance_norm", "input", {"gamma": ("weight", "O"), "beta": ("bias", "O")},
                   {"epsilon": float(c["eps"])})


@row(aten._softmax.default, aten._log_softmax.default)
def softmax(c: Call) -> Result:
    joint = "nn.softmax" if c.target is aten._softmax.default else "nn.log_softmax"
    return c.joint(joint, [c.tensor("self", c.value.dtype)], {"axis": c["dim"]})


@row(aten.embedding.default)
def embedding(c: Call) -> Result:
    table = c.weight("weight")
    if table is not None and table.name and c["padding_idx"] >= 0:
        c.reader.padding[table.name] = c["padding_idx"]
    return c.joint("take", [c.tensor("weight"), c.tensor("indices")], {"axis": 0}, owner="weight")


# ---- Recurrent layers ----------------------------------------------------------------------------------------------

RECURRENT = {  # joint, order of the gates in the joint, further attributes
    aten.lstm.input: ("nn.lstm", [0, 3, 1, 2], {}),
    aten.gru.input: ("nn.gru", [1, 0, 2], {"linear_before_reset": True}),
    aten.rnn_tanh.input: ("nn.rnn", [0], {}),
    aten.rnn_relu.input: ("nn.rnn", [0], {"activations": "Relu,"})}


@row(*RECURRENT)
def recurrent(c: Call) -> Result:
    """All layers of nn.LSTM, nn.GRU or nn.RNN: a joint for each layer, with [time, batch, features] between them."""
    joint, gates, more = RECURRENT[c.target]
    n_ways, n_layers = 2 if c["bidirectional"] else 1, c["num_layers"]
    per_part = 4 if c["has_biases"] else 2
    params, states = list(c["params"]), c["hx"] if joint == "nn.lstm" else [c["hx"]]
    if len(params) != n_ways * n_layers * per_part:
        raise c.unsupported("a projection")
    size = c.fake(params[1]).shape[1]
    value, time_axis = c.fake("input"), 1 if c["batch_first"] else 0
    steps, batch = value.shape[time_axis], value.shape[1 - time_axis]
    x = c.tensor("input")
    if c["batch_first"]:
        x = c.joint("permute_dims", [x], {"axes": [1, 0, 2]}, shape=[steps, batch, value.shape[2]])
    lasts: list[list[str]] = [[] for _ in states]
    for layer in range(n_layers):
        ways = [params[(layer * n_ways + way) * per_part:][:per_part] for way in range(n_ways)]
        inputs = [x, c.gates([way[0] for way in ways], gates, size), c.gates([way[1] for way in ways], gates, size),
                  c.gates([way[2:] for way in ways], gates, size) if c["has_biases"] else "", ""]
        for state in states:
            first = layer * n_ways
            inputs.append(c.joint("strided_slice", [c.tensor(state)],
                                  {"begin": [first], "end": [first + n_ways], "axes": [0]},
                                  shape=[n_ways, batch, size]))
        shapes = [[steps, n_ways, batch, size]] + [[n_ways, batch, size]] * len(states)
        names = c.joints(joint, inputs, {"hidden_size": size, "direction": ["forward", "bidirectional"][n_ways - 1],
                                         **more}, shapes=shapes, owner=ways[0][0])
        y = c.joint("permute_dims", [names[0]], {"axes": [0, 2, 1, 3]}, shape=[steps, batch, n_ways, size])
        x = c.joint("reshape", [y], {"shape": [0, 0, n_ways * size]}, shape=[steps, batch, n_ways * size])
        for last, name in zip(lasts, names[1:]):
            last.append(name)
    if c["batch_first"]:
        x = c.joint("permute_dims", [x], {"axes": [1, 0, 2]}, shape=[batch, steps, n_ways * size])
    return [x] + [last[0] if n_layers == 1 else
                  c.joint("concat", last, {"axis": 0}, shape=[n_layers * n_ways, batch, size]) for last in lasts]


# ---- Pooling and resizing ------------------------------------------------------------------------------------------

POOLS = {
    aten.max_pool1d.default: "nn.max_pool1d", aten.max_pool2d.default: "nn.max_pool2d",
    aten.max_pool3d.default: "nn.max_pool3d", aten.avg_pool1d.default: "nn.avg_pool1d",
    aten.avg_pool2d.default: "nn.avg_pool2d", aten.avg_pool3d.default: "nn.avg_pool3d",
    aten.max_pool2d_with_indices.default: "nn.max_pool2d", aten.max_pool3d_with_indices.default: "nn.max_pool3d"}


@row(*POOLS)
def pool(c: Call) -> Result:
    joint = POOLS[c.target]
    n, has_indices = int(joint[-2]), isinstance(c.value, (list, tuple))
    like = c.value[0] if has_indices else c.value
    size = _repeat(c["kernel_size"], n)
    layout = "NC" + {1: "W", 2: "HW", 3: "DHW"}[n]
    attrs = {"pool_size": size, "strides": _repeat(c["stride"], n) if c["stride"] else size,
             "padding": _both(_repeat(c["padding"], n)), "ceil_mode": bool(c["ceil_mode"]), "layout": layout,
             "out_layout": layout}
    if "max" in joint:
        attrs["dilation"] = _repeat(c["dilation"], n)
    else:
        attrs["count_include_pad"] = bool(c["count_include_pad"])
        if c.args.get("divisor_override") is not None:
            raise c.unsupported("divisor_override")
    if c.fake("self").dim() != n + 2:
        raise c.unsupported("a picture without a batch axis")
    result = c.joint(joint, [c.tensor("self")], attrs, shape=like.shape)
    return [result] if has_indices else result


RESIZE = {aten.upsample_nearest1d.vec: "nearest_neighbor", aten.upsample_nearest2d.vec: "nearest_neighbor",
          aten.upsample_linear1d.vec: "linear", aten.upsample_bilinear2d.vec: "linear",
          aten.upsample_bicubic2d.vec: "cubic"}


@row(*RESIZE)
def resize(c: Call) -> Result:
    method, n = RESIZE[c.target], c.value.dim() - 2
    corners = c.args.get("align_corners", False)
    attrs = {"method": method, "layout": "NC" + {1: "W", 2: "HW"}[n], "coordinate_transformation_mode":
             "asymmetric" if method == "nearest_neighbor" else "align_corners" if corners else "pytorch_half_pixel"}
    if method == "nearest_neighbor":
        attrs["rounding_method"] = "floor"
    attrs["axes"] = [*range(2, n + 2)]
    if c["scale_factors"]:
        attrs["scales"] = [float(x) for x in c["scale_factors"]]
    elif any(c.has_symbol(item) for item in c["output_size"]):
        return c.joint("image.resize2d", [c.tensor("input"), "", "", c.lengths(c["output_size"])], attrs)
    else:
        attrs["size"] = list(c["output_size"])
    return c.joint("image.resize2d", [c.tensor("input")], attrs)


@row(aten.grid_sampler.default)
def grid_sample(c: Call) -> Result:
    return c.joint("image.grid_sample", [c.tensor("input"), c.tensor("grid")],
                   {"mode": ["bilinear", "nearest", "bicubic"][c["interpolation_mode"]],
                    "padding_mode": ["zeros", "border", "reflection"][c["padding_mode"]],
                    "align_corners": bool(c["align_corners"])})


# ---- Reductions ----------------------------------------------------------------------------------------------------

REDUCTIONS = {aten.mean.dim: "mean", aten.mean.default: "mean", aten.sum.dim_IntList: "sum", aten.sum.default: "sum",
              aten.amax.default: "max", aten.amin.default: "min", aten.prod.dim_int: "prod", aten.max.default: "max",
              aten.min.default: "min"}


@row(*REDUCTIONS)
def reduction(c: Call) -> Result:
    axes = c.args.get("dim")
    axes = [axes] if isinstance(axes, int) else list(axes or range(c.fake("self").dim()))
    if not axes:
        return c.tensor("self", c.value.dtype)
    return c.joint(REDUCTIONS[c.target], [c.tensor("self", c.value.dtype)],
                   {"axis": axes, "keepdims": bool(c.args.get("keepdim", False))})


@row(aten.any.dim, aten.any.dims, aten.any.default, aten.all.dim, aten.all.default)
def any_or_all(c: Call) -> Result:
    axes = c.args.get("dim")
    axes = [axes] if isinstance(axes, int) else list(axes or range(c.fake("self").dim()))
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


# ---- Shapes and moves ----------------------------------------------------------------------------------------------

@row(aten.view.default, aten._unsafe_view.default, aten.reshape.default)
def view(c: Call) -> Result:
    return c.reshape(c.tensor("self"), c.fake("self").shape, c.value.shape, c.args.get("size", c.args.get("shape")))


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
def repeat(c: Call) -> Result:
    x, shape, times = c.tensor("self"), list(c.fake("self").shape), c["repeats"]
    if len(times) > len(shape):
        full = [1] * (len(times) - len(shape)) + shape
        x = c.reshape(x, shape, full, full)
    if any(c.has_symbol(item) for item in times):
        return c.joint("tile", [x, c.lengths(times)])
    return c.joint("tile", [x], {"repeats": times})


PADS = {aten.constant_pad_nd.default: "constant", aten.reflection_pad1d.default: "reflect",
        aten.reflection_pad2d.default: "reflect", aten.replication_pad1d.default: "edge",
        aten.replication_pad2d.default: "edge"}


@row(*PADS)
def pad(c: Call) -> Result:
    amounts, n = c.args.get("pad", c.args.get("padding")), c.value.dim()
    before, after = [0] * n, [0] * n
    for i in range(len(amounts) // 2):
        before[n - 1 - i], after[n - 1 - i] = amounts[2 * i], amounts[2 * i + 1]
    attrs = {"pad_width": before + after, "pad_mode": PADS[c.target]}
    if c.args.get("value"):
        attrs["pad_value"] = float(c["value"])
    return c.joint("nn.pad", [c.tensor("self")], attrs)


# ---- Indexing, sorting, making -------------------------------------------------------------------------------------

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
    common = list(torch.broadcast_shapes(*[c.fake(indices[axis]).shape for axis in axes]))
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
    return c.joint("permute_dims", [picked], {"axes": [*range(n, n + first), *range(n), *range(n + first, n + len(rest))]})


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

ARITHMETIC = {operator.add: "add", operator.sub: "subtract", operator.mul: "multiply", operator.floordiv: "divide",
              torch.sym_max: "maximum", torch.sym_min: "minimum"}


@row(aten.sym_size.int)
def sym_size(c: Call) -> Result:
    return c.length_of("self", c["dim"])


@row(*ARITHMETIC)
def arithmetic(c: Call) -> Result:
    return c.joint(ARITHMETIC[c.target], [c.length(item) for item in c.node.args], shape=[1], dtype=torch.int64)


IGNORED = {aten._assert_scalar.default, aten._assert_tensor_metadata.default, aten.sym_constrain_range.default,
           aten.sym_constrain_range_for_size.default, aten._assert_async.msg, operator.eq, operator.ge, operator.le,
           operator.ne, operator.lt, operator.gt}
"""Operators that only check; their results are not read."""

