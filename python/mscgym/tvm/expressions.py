"""Rows from joints to Relax: the expression that computes each type of joint.

A row is a text with the operands in braces, or a function of an `Emit` (mscgym.emitter) that returns the text. Calls
inside a call are fine: the BlockBuilder binds each of them.
"""
from __future__ import annotations

from typing import Any, Callable, Union

from mscgym.emitter import Emit, call

Row = Union[str, Callable[[Emit], str]]

_SAME = ["abs", "acos", "acosh", "asin", "asinh", "atan", "atanh", "bitwise_not", "ceil", "cos", "cosh", "erf", "exp",
         "floor", "isinf", "isnan", "log", "logical_not", "negative", "nn.relu", "round", "sigmoid", "sign", "sin",
         "sinh", "sqrt", "tan", "tanh"]
_PAIRS = ["add", "bitwise_and", "bitwise_or", "bitwise_xor", "equal", "floor_mod", "greater", "greater_equal",
          "left_shift", "less", "less_equal", "logical_and", "logical_or", "logical_xor", "mod", "multiply", "power",
          "right_shift", "subtract"]

ROWS: dict[str, Row] = {
    **{name: f"op.{name}({{0}})" for name in _SAME}, **{name: f"op.{name}({{0}}, {{1}})" for name in _PAIRS},
    "identity": "{0}", "where": "op.where({0}, {1}, {2})", "size": "op.size({0})", "nonzero": "op.nonzero({0})",
    "relax.silu": "op.nn.silu({0})", "relax.rsqrt": "op.rsqrt({0})", "relax.not_equal": "op.not_equal({0}, {1})",
    "relax.square": "op.square({0})", "relax.floor_divide": "op.floor_divide({0}, {1})",
    "relax.trunc": "op.trunc({0})", "relax.isfinite": "op.isfinite({0})",
    "relax.ewise_fma": "op.ewise_fma({0}, {1}, {2})", "relax.outer": "op.outer({0}, {1})",
    "relax.argmax": "op.argmax({0})", "relax.argmin": "op.argmin({0})", "relax.flatten": "op.flatten({0})",
    "relax.log_add_exp": "op.log_add_exp({0}, {1})"}


def row(*names: str) -> Callable[[Callable[[Emit], str]], Callable[[Emit], str]]:
    def add(function: Callable[[Emit], str]) -> Callable[[Emit], str]:
        ROWS.update(dict.fromkeys(names, function))
        return function
    return add


def number(e: Emit, value: float, index: int = 0) -> str:
    """A number as a constant of the type of an input."""
    return f"const({value!r}, {e.tensor(index).dtype!r})"


def text(e: Emit, key: str, default: str = "") -> str | None:
    value = e.joint.attrs.get(key, default)
    return repr(value) if value else None


def short(e: Emit, index: int) -> str:
    """A constant number, with the digits that its type needs."""
    constant = e.constant(index)
    if constant is None:
        raise e.unsupported("a number that is computed")
    return str(e.writer.graph.arrays[constant.name].reshape(-1)[0])


def lengths(e: Emit, index: int = 0) -> str:
    writer: Any = e.writer
    return str(writer.lengths(e.joint.outputs[index]))


def is_known(e: Emit) -> bool:
    writer: Any = e.writer
    return bool(writer.is_known(e.joint.outputs[0]))


def shape(e: Emit) -> str:
    """The shape of the result: from the inputs' lengths, else from a tensor that has it."""
    if is_known(e):
        return lengths(e)
    if len(e) > 1:
        return f"op.tensor_to_shape({e[1]})"
    raise e.unsupported("a length that depends on data")


# ---- Convolutions and products ---------------------------------------------------------------------------------------

_TURNED = [f"nn.conv{n}d_transpose" for n in (1, 2, 3)]


@row(*[f"nn.conv{n}d" for n in (1, 2, 3)], *[f"msc.conv{n}d_bias" for n in (1, 2, 3)], *_TURNED)
def conv(e: Emit) -> str:
    result, bias, n = convolution(e, e[0], e["weight"]), e.get("bias"), e.rank(0) - 2
    return f"op.add({result}, op.reshape({bias}, {[1, -1] + [1] * n}))" if bias else result


def convolution(e: Emit, x: str, weight: str) -> str:
    n, ints = e.rank(0) - 2, e.joint.ints
    axes = {1: "W", 2: "HW", 3: "DHW"}[n]
    turned = e.joint.optype in _TURNED
    more = {"output_padding": ints("output_padding") or [0] * n} if turned else {}
    layout = text(e, "kernel_layout", ("IO" if turned else "OI") + axes)
    return call(f"op.nn.conv{n}d{'_transpose' if turned else ''}", x, weight,
                strides=ints("strides") or [1] * n, padding=ints("padding") or [0] * (2 * n), **more,
                dilation=ints("dilation") or [1] * n, groups=int(e.joint.number("groups", 1)),
                data_layout=text(e, "data_layout", "NC" + axes), kernel_layout=layout,
                out_layout=text(e, "out_layout", "NC" + axes), out_dtype=text(e, "out_dtype"))


def product(e: Emit, first: str, second: str) -> str:
    return call("op.matmul", first, second, out_dtype=text(e, "out_dtype"))


@row("msc.linear", "msc.linear_bias")
def linear(e: Emit) -> str:
    weight = e["weight"] if e.layout("weight") == "IO" else f"op.permute_dims({e['weight']}, [1, 0])"
    bias = e.get("bias")
    return f"op.add({product(e, e[0], weight)}, {bias})" if bias else product(e, e[0], weight)


@row("matmul")
def matmul(e: Emit) -> str:
    return product(e, e[0], e[1])


@row("msc.gemm")
def gemm(e: Emit) -> str:
    a, b = (f"op.permute_dims({e[i]}, [1, 0])" if e.joint.flag(f"trans_{'ab'[i]}") else e[i] for i in (0, 1))
    result, alpha, beta = f"op.matmul({a}, {b})", e.joint.number("alpha", 1), e.joint.number("beta", 1)
    if alpha != 1:
        result = f"op.multiply({result}, {number(e, alpha)})"
    if len(e) < 3:
        return result
    return f"op.add({result}, {e[2] if beta == 1 else f'op.multiply({e[2]}, {number(e, beta)})'})"


@row("einsum")
def einsum(e: Emit) -> str:
    return f"op.einsum(({', '.join(e.all())},), {e.joint.attrs['equation']!r})"


@row("divide")
def divide(e: Emit) -> str:
    return f"op.divide({e[0]}, {e[1]})"


@row("maximum", "minimum")
def extremum(e: Emit) -> str:
    first, *others = e.all()
    for other in others:
        first = f"op.{e.joint.optype}({first}, {other})"
    return first


@row("nn.lstm", "nn.gru", "nn.rnn")
def recurrent(e: Emit) -> str:
    attrs, kind = e.joint.attrs, e.joint.optype[3:]
    names = [name for name in attrs.get("activations", "").split(",") if name]
    usual = {"lstm": ["Sigmoid", "Tanh", "Tanh"], "gru": ["Sigmoid", "Tanh"], "rnn": ["Tanh"]}[kind]
    if names and (names[:len(usual)] != usual or set(names) != set(usual)):
        raise e.unsupported(f"the activations {attrs['activations']}")
    if e.get("lengths") or e.get("peephole") or e.joint.flag("layout") or attrs.get("clip") or (
            e.joint.flag("input_forget")):
        raise e.unsupported("lengths, peepholes, a layout or a bound")
    steps = e.tensor(0).shape[0]
    if steps < 0:
        raise e.unsupported("a number of steps that is a symbol")
    values = [e.get(name) or "None" for name in ("weight", "recurrence", "bias", "hidden", "cell")]
    reset = ", reset_last=True" if kind == "gru" and e.joint.flag("linear_before_reset") else ""
    n = len(e.joint.outputs)
    return (f"recurrent(bb, {kind!r}, {e[0]}, {', '.join(values)}, {attrs.get('direction', 'forward')!r}{reset})"
            + ("[0]" if n == 1 else ""))


# ---- Normalisations --------------------------------------------------------------------------------------------------

@row("nn.batch_norm")
def batch_norm(e: Emit) -> str:
    options = {"axis": int(e.joint.number("axis", 1)), "epsilon": e.joint.attrs.get("epsilon", "1e-05"),
               "center": e.joint.flag("center", True), "scale": e.joint.flag("scale", True),
               "momentum": e.joint.attrs.get("momentum", "0.1"), "training": False}
    return call("op.nn.batch_norm", *[e[key] for key in ("input", "gamma", "beta", "mean", "var")], **options) + "[0]"


def _zeros(e: Emit, role: str) -> str:
    return f"op.zeros({e.shape(role)}, {e.tensor(0).dtype!r})"


@row("nn.layer_norm")
def layer_norm(e: Emit) -> str:
    return call("op.nn.layer_norm", e[0], e["gamma"], e.get("beta") or _zeros(e, "gamma"),
                axes=e.joint.ints("axes", "-1,"), epsilon=e.joint.attrs.get("epsilon", "1e-05"))


@row("nn.group_norm", "nn.instance_norm")
def group_norm(e: Emit) -> str:
    is_group = e.joint.optype == "nn.group_norm"
    more = {"num_groups": e.joint.attrs["num_groups"]} if is_group else {}
    return call(f"op.{e.joint.optype}", e[0], e["gamma"], e["beta"], **more, channel_axis=1,
                axes=[*range(2, e.rank(0))], epsilon=e.joint.attrs.get("epsilon", "1e-05"))


@row("nn.lrn")
def lrn(e: Emit) -> str:
    """x / (bias + alpha / size * sum of squares of near channels) ^ beta; the sum is an average pool over channels."""
    size, get = int(e.joint.attrs["size"]), e.joint.number
    if e.rank(0) != 4 or -1 in e.tensor(0).shape:
        raise e.unsupported("a picture of unknown size")
    n, channels, height, width = e.tensor(0).shape
    flat = f"op.reshape(op.square({e[0]}), {[n, 1, channels, height * width]})"
    pads = [(size - 1) // 2, 0, size - 1 - (size - 1) // 2, 0]
    mean = f"op.nn.avg_pool2d({flat}, pool_size={[size, 1]}, padding={pads}, count_include_pad=True)"
    scaled = f"op.multiply(op.reshape({mean}, {e.tensor(0).shape}), {number(e, get('alpha', 1e-4))})"
    power = f"op.power(op.add({scaled}, {number(e, get('bias', 1.0))}), {number(e, get('beta', 0.75))})"
    return f"op.divide({e[0]}, {power})"


@row("nn.softmax", "nn.log_softmax")
def softmax(e: Emit) -> str:
    return call(f"op.{e.joint.optype}", e[0], axis=int(e.joint.number("axis", -1)))


# ---- Activations -----------------------------------------------------------------------------------------------------

@row("nn.leaky_relu")
def leaky_relu(e: Emit) -> str:
    return call("op.nn.leakyrelu", e[0], e.joint.attrs.get("alpha", "0.01"))


@row("nn.gelu")
def gelu(e: Emit) -> str:
    return f"op.nn.gelu{'_tanh' if e.joint.attrs.get('approximate') == 'tanh' else ''}({e[0]})"


@row("nn.selu")
def selu(e: Emit) -> str:
    alpha, gamma = e.joint.number("alpha", 1.6732632), e.joint.number("gamma", 1.050701)
    if abs(alpha - 1.6732632) > 1e-6 or abs(gamma - 1.050701) > 1e-6:
        raise e.unsupported("other factors than the usual ones")
    return f"op.nn.selu({e[0]})"


@row("nn.elu", "nn.celu")
def elu(e: Emit) -> str:
    alpha, x = e.joint.number("alpha", 1), e[0]
    inner = x if alpha == 1 or e.joint.optype == "nn.elu" else f"op.divide({x}, {number(e, alpha)})"
    low = f"op.subtract(op.exp({inner}), {number(e, 1.0)})"
    low = low if alpha == 1 else f"op.multiply({low}, {number(e, alpha)})"
    return f"op.where(op.greater({x}, {number(e, 0.0)}), {x}, {low})"


@row("nn.hard_swish")
def hard_swish(e: Emit) -> str:
    bounded = f"op.clip(op.add({e[0]}, {number(e, 3.0)}), 0, 6)"
    return f"op.divide(op.multiply({e[0]}, {bounded}), {number(e, 6.0)})"


@row("nn.hard_sigmoid")
def hard_sigmoid(e: Emit) -> str:
    alpha, beta = e.joint.number("alpha", 0.2), e.joint.number("beta", 0.5)
    return f"op.clip(op.add(op.multiply({e[0]}, {number(e, alpha)}), {number(e, beta)}), 0, 1)"


@row("nn.softplus")
def softplus(e: Emit) -> str:
    return f"op.nn.softplus({e[0]})"


@row("nn.softsign")
def softsign(e: Emit) -> str:
    return f"op.divide({e[0]}, op.add(op.abs({e[0]}), {number(e, 1.0)}))"


@row("nn.mish")
def mish(e: Emit) -> str:
    return f"op.multiply({e[0]}, op.tanh(op.nn.softplus({e[0]})))"


@row("nn.thresholded_relu")
def thresholded_relu(e: Emit) -> str:
    x = e[0]
    return f"op.where(op.greater({x}, {number(e, e.joint.number('alpha', 1))}), {x}, {number(e, 0.0)})"


@row("reciprocal")
def reciprocal(e: Emit) -> str:
    return f"op.divide({number(e, 1.0)}, {e[0]})"


@row("nn.prelu")
def prelu(e: Emit) -> str:
    """x where it is positive, else x * slope; the slope is broadcast."""
    return f"op.where(op.less({e[0]}, {number(e, 0.0)}), op.multiply({e[0]}, {e['slope']}), {e[0]})"


@row("relax.prelu")
def prelu_axis(e: Emit) -> str:
    after = len(e.joint.ints("reshape.shape")) - 1
    return call("op.nn.prelu", e[1], e[0], axis=e.rank(1) - 1 - after)


@row("clip")
def clip(e: Emit) -> str:
    given = [e.get(key) for key in ("min", "max")]
    x = e[0]
    if any(given):
        for kind, key, bound in zip(("maximum", "minimum"), ("min", "max"), given):
            value = e.joint.attrs.get(key)
            bound = bound or (number(e, float(value)) if value else None)
            x = f"op.{kind}({x}, {bound})" if bound else x
        return x
    low, high = (e.joint.attrs.get(key) or f"float('{sign}inf')" for key, sign in (("min", "-"), ("max", "")))
    return f"op.clip({x}, {low}, {high})"


@row("astype")
def astype(e: Emit) -> str:
    return f"op.astype({e[0]}, {e.joint.attrs['dtype']!r})"


# ---- Integers with scales --------------------------------------------------------------------------------------------

def _levels(e: Emit, dtype: str, integers: str) -> str:
    if e.joint.attrs.get("format") or e.joint.number("block_size", 0):
        raise e.unsupported("integers narrower than a byte, or scales for blocks")
    scale = e.shape("scale")
    zero = e.get("zero_point") or (
        f"const(0, {integers!r})" if not scale else f"op.zeros({scale}, {integers!r})")
    axis = int(e.joint.number("axis", 1)) if scale else -1
    return f"op.{e.joint.optype}({e[0]}, {e['scale']}, {zero}, axis={axis}, out_dtype={dtype!r})"


@row("quantize")
def quantize(e: Emit) -> str:
    return _levels(e, e.joint.outputs[0].dtype, e.joint.outputs[0].dtype)


@row("dequantize")
def dequantize(e: Emit) -> str:
    return _levels(e, e.joint.outputs[0].dtype, e.tensor(0).dtype)


@row("msc.dynamic_quantize")
def dynamic_quantize(e: Emit) -> str:
    return f"dynamic_quantize(bb, {e[0]})" + ("[0]" if len(e.joint.outputs) == 1 else "")


def _shifted(e: Emit, role: str, zero_role: str, form: list[int]) -> str:
    """An operand without its zero points, of which there is one, or one for each element along the axis of the -1 of
    `form`."""
    zero = e.get(zero_role)
    many = zero is not None and e.shape(zero_role) not in ([], [1])
    return call("shifted", e[role], f"op.reshape({zero}, {form})" if many else zero)


@row("msc.matmul_integer")
def matmul_integer(e: Emit) -> str:
    rows = [-1, 1] if e.rank(0) > 1 else [-1]
    return f"op.matmul({_shifted(e, 'input', 'x_zero', rows)}, {_shifted(e, 'other', 'y_zero', [-1])})"


@row("msc.conv_integer")
def conv_integer(e: Emit) -> str:
    weight = _shifted(e, "weight", "weight_zero", [-1] + [1] * (e.rank(0) - 1))
    return convolution(e, _shifted(e, "input", "x_zero", [1]), weight)


# ---- Pooling and resizing --------------------------------------------------------------------------------------------

@row(*[f"nn.{kind}_pool{n}d" for kind in ("max", "avg") for n in (1, 2, 3)])
def pool(e: Emit) -> str:
    n, ints = int(e.joint.optype[-2]), e.joint.ints
    layout = "NC" + {1: "W", 2: "HW", 3: "DHW"}[n]
    return call(f"op.{e.joint.optype}", e[0], pool_size=ints("pool_size"), strides=ints("strides") or [1] * n,
                padding=ints("padding") or [0] * (2 * n), dilation=ints("dilation") or [1] * n,
                ceil_mode=e.joint.flag("ceil_mode"), count_include_pad=e.joint.flag("count_include_pad"),
                layout=text(e, "layout", layout), out_layout=text(e, "out_layout"))


@row("nn.global_avg_pool")
def global_avg_pool(e: Emit) -> str:
    n = e.rank(0) - 2
    return f"op.nn.adaptive_avg_pool{n}d({e[0]}, {[1] * n})"


@row("nn.global_max_pool")
def global_max_pool(e: Emit) -> str:
    return f"op.max({e[0]}, {[*range(2, e.rank(0))]}, True)"


@row("image.resize2d")
def resize(e: Emit) -> str:
    attrs, n = e.joint.attrs, e.rank(0)
    axes = [axis % n for axis in e.joint.ints("axes")] or [*range(n)]
    if n != 4 or axes[-2:] != [2, 3] or attrs.get("roi"):
        raise e.unsupported("axes other than height and width, or a region of interest")
    method, mode = attrs.get("method", "linear"), attrs.get("coordinate_transformation_mode", "half_pixel")
    rounding = attrs.get("rounding_method", "round_prefer_floor")
    writer: Any = e.writer
    if not is_known(e):
        raise e.unsupported("a size that depends on data")
    size = "[" + writer.lengths(e.joint.outputs[0])[1:-1].split(", ", 2)[2] + "]"
    return call("op.image.resize2d", e[0], size, layout="'NCHW'", method=repr(method),
                coordinate_transformation_mode=repr(mode), rounding_method=repr(attrs.get("relax.rounding", rounding)),
                cubic_alpha=attrs.get("cubic_alpha"), cubic_exclude=1 if e.joint.flag("cubic_exclude") else None)


@row("image.grid_sample")
def grid_sample(e: Emit) -> str:
    return _sample(e, e[0], f"op.permute_dims({e[1]}, [0, 3, 1, 2])")


@row("relax.grid_sample")
def grid_sample_turned(e: Emit) -> str:
    return _sample(e, e[1], e[0])


def _sample(e: Emit, x: str, grid: str) -> str:
    return call("op.image.grid_sample", x, grid, method=text(e, "mode", "bilinear"), layout="'NCHW'",
                padding_mode=text(e, "padding_mode", "zeros"), align_corners=e.joint.flag("align_corners"))


@row("nn.depth_to_space")
def depth_to_space(e: Emit) -> str:
    block = int(e.joint.attrs["blocksize"])
    if e.joint.attrs.get("mode", "DCR") == "CRD":
        return f"op.nn.pixel_shuffle({e[0]}, {block})"
    n, c, h, w = e.tensor(0).shape
    if -1 in (n, c, h, w):
        raise e.unsupported("the mode DCR with a symbol")
    parts = f"op.reshape({e[0]}, {[n, block, block, c // block ** 2, h, w]})"
    return f"op.reshape(op.permute_dims({parts}, [0, 3, 4, 1, 5, 2]), {lengths(e)})"


@row("nn.space_to_depth")
def space_to_depth(e: Emit) -> str:
    block, shape_ = int(e.joint.attrs["blocksize"]), e.tensor(0).shape
    if -1 in shape_ or e.joint.attrs.get("mode", "DCR") != "DCR":
        raise e.unsupported("a symbol or the mode CRD")
    n, c, h, w = shape_
    parts = f"op.reshape({e[0]}, {[n, c, h // block, block, w // block, block]})"
    return f"op.reshape(op.permute_dims({parts}, [0, 3, 5, 1, 2, 4]), {lengths(e)})"


# ---- Reductions ------------------------------------------------------------------------------------------------------

@row("mean", "sum", "max", "min", "prod")
def reduction(e: Emit) -> str:
    return call(f"op.{e.joint.optype}", e[0], e.joint.ints("axis") or "None", e.joint.flag("keepdims"))


@row("relax.variance", "relax.std")
def variance(e: Emit) -> str:
    return call(f"op.{e.joint.optype[6:]}", e[0], e.joint.ints("mean.axis"),
                e.joint.flag("keepdims") or e.joint.flag("variance.keepdims"))


@row("argmax", "argmin")
def argument(e: Emit) -> str:
    if e.joint.flag("select_last_index"):
        raise e.unsupported("select_last_index")
    return call(f"op.{e.joint.optype}", e[0], int(e.joint.number("axis", 0)), e.joint.flag("keepdims"))


@row("cumsum", "cumprod")
def cumulative(e: Emit) -> str:
    if e.joint.flag("reverse"):
        raise e.unsupported("a reversed sum")
    return call(f"op.{e.joint.optype}", e[0], int(e.joint.attrs["axis"]),
                exclusive=True if e.joint.flag("exclusive") else None)
