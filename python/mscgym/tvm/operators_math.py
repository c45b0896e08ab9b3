"""Rows of operators that compute element by element (rows.py)."""
from __future__ import annotations

import math

import numpy as np

from mscgym.tvm.reading import Call, Shape, Value, Weight
from mscgym.tvm.rows import row

UNARY = ["abs", "acos", "acosh", "asin", "asinh", "atan", "atanh", "bitwise_not", "ceil", "cos", "cosh", "erf", "exp",
         "floor", "isinf", "isnan", "log", "logical_not", "negative", "nn.relu", "nn.selu", "round", "sigmoid", "sign",
         "sin", "sinh", "sqrt", "tan", "tanh"]
BINARY = ["add", "bitwise_and", "bitwise_or", "bitwise_xor", "divide", "equal", "floor_mod", "greater",
          "greater_equal", "left_shift", "less", "less_equal", "logical_and", "logical_or", "logical_xor", "maximum",
          "minimum", "mod", "multiply", "power", "right_shift", "subtract"]


@row(*UNARY)
def unary(c: Call) -> Value:
    return c.joint(c.op, [c.tensor(c[0])])


def pair(c: Call) -> tuple[str, str]:
    """Both operands as tensors; a number takes the type of the other operand."""
    first, second = c[0], c[1]
    is_number = [isinstance(item, (bool, int, float)) for item in (first, second)]
    return (c.tensor(first, c.dtype(second) if is_number[0] else ""),
            c.tensor(second, c.dtype(first) if is_number[1] else ""))


@row(*BINARY)
def binary(c: Call) -> Value:
    return c.joint(c.op, pair(c))


@row("not_equal")
def not_equal(c: Call) -> Value:
    return c.joint("logical_not", [c.joint("equal", pair(c), dtype="bool", local="equal")])


@row("floor_divide")
def floor_divide(c: Call) -> Value:
    first, second = pair(c)
    if c.out_dtype.startswith("float"):
        return c.joint("floor", [c.joint("divide", [first, second], local="divide")])
    rest = c.joint("floor_mod", [first, second], local="floor_mod")
    return c.joint("divide", [c.joint("subtract", [first, rest], local="subtract"), second])


@row("rsqrt")
def rsqrt(c: Call) -> Value:
    return c.joint("reciprocal", [c.joint("sqrt", [c.tensor(c[0])], local="sqrt")])


@row("square")
def square(c: Call) -> Value:
    return c.joint("multiply", [c.tensor(c[0])] * 2)


@row("trunc")
def trunc(c: Call) -> Value:
    x = c.tensor(c[0])
    size = c.joint("floor", [c.joint("abs", [x], local="abs")], local="floor")
    return c.joint("multiply", [c.joint("sign", [x], local="sign"), size])


@row("isfinite")
def isfinite(c: Call) -> Value:
    x = c.tensor(c[0])
    tests = [c.joint(kind, [x], local=kind) for kind in ("isnan", "isinf")]
    return c.joint("logical_not", [c.joint("logical_or", tests, local="logical_or")])


@row("log_add_exp")
def log_add_exp(c: Call) -> Value:
    first, second = pair(c)
    most = c.joint("maximum", [first, second], local="maximum")
    parts = [c.joint("exp", [c.joint("subtract", [x, most], local="subtract")], local="exp") for x in (first, second)]
    return c.joint("add", [most, c.joint("log", [c.joint("add", parts, local="add")], local="log")])


@row("ewise_fma")
def fma(c: Call) -> Value:
    product = c.joint("multiply", [c.tensor(c[0]), c.tensor(c[1])], local="multiply")
    return c.joint("add", [product, c.tensor(c[2])])


@row("nn.silu")
def silu(c: Call) -> Value:
    x = c.tensor(c[0])
    return c.joint("multiply", [x, c.joint("sigmoid", [x], local="sigmoid")])


@row("nn.gelu", "nn.gelu_tanh")
def gelu(c: Call) -> Value:
    return c.joint("nn.gelu", [c.tensor(c[0])], {"approximate": "tanh" if c.op.endswith("tanh") else "none"})


@row("nn.leakyrelu")
def leaky_relu(c: Call) -> Value:
    return c.joint("nn.leaky_relu", [c.tensor(c[0])], {"alpha": c.attr("alpha")})


@row("nn.softplus")
def softplus(c: Call) -> Value:
    if c.attr("beta") != 1:
        raise c.unsupported("a beta other than 1")
    return c.joint("nn.softplus", [c.tensor(c[0])])


@row("nn.prelu")
def prelu(c: Call) -> Value:
    axis, slope, rank = c.attr("axis"), c[1], c.rank(0)
    after = rank - 1 - axis % rank
    name = c.tensor(slope)
    if len(c.shape(slope)) == 1 and after and c.shape(slope) != [1]:
        shape = [*c.shape(slope), *[1] * after]
        name = c.joint("reshape", [name], {"shape": shape}, shape=shape, local="reshape")
    return c.joint("nn.prelu", [c.tensor(c[0]), name])


@row("clip")
def clip(c: Call) -> Value:
    bounds = {key: repr(value) for key, value in (("min", c[1]), ("max", c[2])) if not math.isinf(value)}
    return c.joint("clip", [c.tensor(c[0])], bounds)


@row("where")
def where(c: Call) -> Value:
    return c.joint("where", [c.tensor(item) for item in c.args])


@row("astype", "wrap_param")
def astype(c: Call) -> Value:
    return c.joint("astype", [c.tensor(c[0])], {"dtype": c.out_dtype})


@row("to_vdevice", "hint_on_device")
def same(c: Call) -> Value:
    return c[0]


@row("quantize")
def quantize(c: Call) -> Value:
    return c.joint("quantize", [c.tensor(item) for item in c.args], {"axis": _axis(c), "dtype": c.out_dtype})


@row("dequantize")
def dequantize(c: Call) -> Value:
    result = c.joint("dequantize", [c.tensor(item) for item in c.args], {"axis": _axis(c)}, dtype=c.dtype(c[1]),
                     local="dequantize" if c.dtype(c[1]) != c.out_dtype else "")
    return result if c.dtype(result) == c.out_dtype else c.joint("astype", [result], {"dtype": c.out_dtype})


def _axis(c: Call) -> int:
    """The axis of the scales. One scale for all elements has none; ONNX's default stands for it."""
    return int(c.attr("axis")) if c.shape(c[1]) else 1


# ---- Shapes as values ------------------------------------------------------------------------------------------------

@row("shape_of")
def shape_of(c: Call) -> Value:
    return Shape(c.shape(c[0]))


@row("shape_to_tensor")
def shape_to_tensor(c: Call) -> Value:
    if isinstance(c[0], Shape) and all(isinstance(length, int) for length in c[0].lengths):
        return Weight(np.array(c[0].lengths, "int64"))
    return c.lengths(c[0])


@row("tensor_to_shape")
def tensor_to_shape(c: Call) -> Value:
    if isinstance(c[0], Weight):
        return Shape([int(item) for item in c[0].data])
    return Shape([None] * c.shape(c[0])[0], c.tensor(c[0]))


@row("size")
def size(c: Call) -> Value:
    shape = c.shape(c[0])
    if all(isinstance(length, int) for length in shape):
        return Weight(np.array(math.prod(shape), "int64"))
    return c.joint("size", [c.tensor(c[0])])
