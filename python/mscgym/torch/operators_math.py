"""Rows of operators that compute element by element (rows.py)."""
from __future__ import annotations

from typing import Any

import torch

from mscgym.torch.reading import Call, Result
from mscgym.torch.rows import row

aten = torch.ops.aten


UNARY: dict[Any, str] = {
    aten.relu.default: "nn.relu", aten.sigmoid.default: "sigmoid", aten.tanh.default: "tanh", aten.exp.default: "exp",
    aten.log.default: "log", aten.sqrt.default: "sqrt", aten.erf.default: "erf", aten.abs.default: "abs",
    aten.neg.default: "negative", aten.reciprocal.default: "reciprocal", aten.floor.default: "floor",
    aten.ceil.default: "ceil", aten.round.default: "round", aten.sign.default: "sign", aten.sin.default: "sin",
    aten.cos.default: "cos", aten.tan.default: "tan", aten.asin.default: "asin", aten.acos.default: "acos",
    aten.atan.default: "atan", aten.sinh.default: "sinh", aten.cosh.default: "cosh", aten.asinh.default: "asinh",
    aten.acosh.default: "acosh", aten.atanh.default: "atanh", aten.isnan.default: "isnan", aten.isinf.default: "isinf",
    aten.hardswish.default: "nn.hard_swish", aten.mish.default: "nn.mish", aten.logical_not.default: "logical_not"}
BINARY: dict[Any, str] = {
    aten.mul.Tensor: "multiply", aten.div.Tensor: "divide", aten.pow.Tensor_Tensor: "power",
    aten.pow.Tensor_Scalar: "power", aten.pow.Scalar: "power", aten.maximum.default: "maximum",
    aten.minimum.default: "minimum", aten.remainder.Tensor: "floor_mod", aten.remainder.Scalar: "floor_mod",
    aten.fmod.Tensor: "mod", aten.fmod.Scalar: "mod"}
COMPARISONS: dict[Any, str] = {
    aten.eq.Tensor: "equal", aten.eq.Scalar: "equal", aten.lt.Tensor: "less", aten.lt.Scalar: "less",
    aten.le.Tensor: "less_equal", aten.le.Scalar: "less_equal", aten.gt.Tensor: "greater",
    aten.gt.Scalar: "greater", aten.ge.Tensor: "greater_equal", aten.ge.Scalar: "greater_equal"}
LOGICAL: dict[Any, str] = {aten.logical_and.default: "logical_and", aten.logical_or.default: "logical_or",
           aten.logical_xor.default: "logical_xor"}
BITWISE: dict[Any, str] = {aten.bitwise_and.Tensor: "and", aten.bitwise_or.Tensor: "or", aten.bitwise_xor.Tensor: "xor",
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
