"""Rows of layers: convolutions, products, normalisations, recurrent layers, pooling and resizing (rows.py)."""
from __future__ import annotations

from typing import Any

import torch

from mscgym.torch.reading import Call, Result
from mscgym.torch.rows import repeat, row

aten = torch.ops.aten


# ---- Layers ----------------------------------------------------------------------------------------------------------

@row(aten.linear.default)
def linear(c: Call) -> Result:
    if not c.is_weight("weight", "OI") and c.fake("weight").dim() == 2:
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
    if c.is_weight("mat2", "IO") and c.is_weight("self") and c.fake("self").dim() == 1:
        return c.layer("msc.linear_bias", "mat1", {"weight": ("mat2", "IO"), "bias": ("self", "O")})
    return c.joint("add", [c.joint("matmul", [c.tensor("mat1"), c.tensor("mat2")]), c.tensor("self")])


@row(aten.matmul.default, aten.mm.default, aten.bmm.default)
def matmul(c: Call) -> Result:
    first, second = c.pair()
    if c.is_weight(second, "IO") and c.fake(second).dim() == 2:
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
    attrs = {"strides": repeat(c["stride"], n), "padding": padding, "dilation": repeat(c["dilation"], n),
             "groups": c["groups"], "data_layout": "NC" + axes, "out_layout": "NC" + axes, "kernel_layout": kernel}
    if turned:
        attrs["output_padding"] = repeat(c["output_padding"], n)
    joint = f"nn.conv{n}d_transpose" if turned else f"nn.conv{n}d" if bias is None else f"msc.conv{n}d_bias"
    return c.layer(joint, "input", {"weight": ("weight", kernel), "bias": ("bias", "O")}, attrs)


def _both(values: list[int]) -> list[int]:
    return values + values


@row(aten._native_batch_norm_legit_no_training.default)
def batch_norm(c: Call) -> Result:
    like = c.fake("running_mean")
    weights = {"gamma": ("weight", "O"), "beta": ("bias", "O"), "mean": ("running_mean", "O"),
               "var": ("running_var", "O")}
    c.fill("weight", torch.ones(like.shape))
    c.fill("bias", torch.zeros(like.shape))
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
    c.fill("weight", torch.ones(c["C"]))
    c.fill("bias", torch.zeros(c["C"]))
    return [c.layer("nn.group_norm", "input", {"gamma": ("weight", "O"), "beta": ("bias", "O")},
                    {"num_groups": c["group"], "epsilon": float(c["eps"])}, like=c.value[0])]


@row(aten.instance_norm.default)
def instance_norm(c: Call) -> Result:
    if not c["use_input_stats"]:
        raise c.unsupported("statistics that are tracked")
    n = c.fake("input").shape[1]
    c.fill("weight", torch.ones(n))
    c.fill("bias", torch.zeros(n))
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


# ---- Recurrent layers ------------------------------------------------------------------------------------------------

RECURRENT: dict[Any, tuple[str, list[int], dict[str, Any]]] = {  # joint, order of its gates, further attributes
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
            inputs.append(c.tensor(state) if n_layers == 1 else
                          c.joint("strided_slice", [c.tensor(state)],
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


# ---- Pooling and resizing --------------------------------------------------------------------------------------------

POOLS: dict[Any, str] = {
    aten.max_pool1d.default: "nn.max_pool1d", aten.max_pool2d.default: "nn.max_pool2d",
    aten.max_pool3d.default: "nn.max_pool3d", aten.avg_pool1d.default: "nn.avg_pool1d",
    aten.avg_pool2d.default: "nn.avg_pool2d", aten.avg_pool3d.default: "nn.avg_pool3d",
    aten.max_pool2d_with_indices.default: "nn.max_pool2d", aten.max_pool3d_with_indices.default: "nn.max_pool3d"}


@row(*POOLS)
def pool(c: Call) -> Result:
    joint = POOLS[c.target]
    n, has_indices = int(joint[-2]), isinstance(c.value, (list, tuple))
    like = c.value[0] if has_indices else c.value
    size = repeat(c["kernel_size"], n)
    layout = "NC" + {1: "W", 2: "HW", 3: "DHW"}[n]
    attrs = {"pool_size": size, "strides": repeat(c["stride"], n) if c["stride"] else size,
             "padding": _both(repeat(c["padding"], n)), "ceil_mode": bool(c["ceil_mode"]), "layout": layout,
             "out_layout": layout}
    if "max" in joint:
        attrs["dilation"] = repeat(c["dilation"], n)
    else:
        attrs["count_include_pad"] = bool(c["count_include_pad"])
        if c.args.get("divisor_override") is not None:
            raise c.unsupported("divisor_override")
    if c.fake("self").dim() != n + 2:
        raise c.unsupported("a picture without a batch axis")
    result = c.joint(joint, [c.tensor("self")], attrs, shape=like.shape)
    return [result] if has_indices else result


RESIZE: dict[Any, str] = {
    aten.upsample_nearest1d.vec: "nearest_neighbor", aten.upsample_nearest2d.vec: "nearest_neighbor",
    aten.upsample_linear1d.vec: "linear", aten.upsample_bilinear2d.vec: "linear",
    aten.upsample_bicubic2d.vec: "cubic"}


@row(*RESIZE)
def resize(c: Call) -> Result:
    method, n = RESIZE[c.target], c.value.dim() - 2
    corners = c.args.get("align_corners", False)
    attrs: dict[str, Any] = {"method": method, "layout": "NC" + {1: "W", 2: "HW"}[n], "coordinate_transformation_mode":
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
