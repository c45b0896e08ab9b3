"""Rows from joints to torch: the expression that computes each type of joint, and the module of a layer.

A row is a text with the operands in braces, or a function of an `Emit` (mscgym.emitter) that returns the text.
`LAYERS` has types of joints that become modules if their weights are named as torch names them.
"""
from __future__ import annotations

from typing import Any, Callable, Union

from mscgym.emitter import Emit, call
from mscgym.torch.codegen import plain

Row = Union[str, Callable[[Emit], str]]

SIMPLE: dict[str, Row] = {
    "nn.relu": "F.relu({0})", "sigmoid": "torch.sigmoid({0})", "tanh": "torch.tanh({0})",
    "silu": "F.silu({0})", "nn.hard_swish": "F.hardswish({0})", "nn.mish": "F.mish({0})", "nn.selu": "F.selu({0})",
    "nn.softplus": "F.softplus({0})", "nn.softsign": "F.softsign({0})", "exp": "torch.exp({0})",
    "log": "torch.log({0})", "sqrt": "torch.sqrt({0})", "erf": "torch.erf({0})", "abs": "torch.abs({0})",
    "negative": "-{0}", "reciprocal": "torch.reciprocal({0})", "floor": "torch.floor({0})",
    "ceil": "torch.ceil({0})", "round": "torch.round({0})", "sign": "torch.sign({0})", "sin": "torch.sin({0})",
    "cos": "torch.cos({0})", "tan": "torch.tan({0})", "asin": "torch.asin({0})", "acos": "torch.acos({0})",
    "atan": "torch.atan({0})", "sinh": "torch.sinh({0})", "cosh": "torch.cosh({0})", "asinh": "torch.asinh({0})",
    "acosh": "torch.acosh({0})", "atanh": "torch.atanh({0})", "isnan": "torch.isnan({0})",
    "isinf": "torch.isinf({0})", "logical_not": "torch.logical_not({0})", "bitwise_not": "torch.bitwise_not({0})",
    "identity": "{0}.clone()", "add": "{0} + {1}", "subtract": "{0} - {1}", "multiply": "{0} * {1}",
    "power": "{0} ** {1}", "equal": "{0} == {1}", "greater": "{0} > {1}", "less": "{0} < {1}",
    "greater_equal": "{0} >= {1}", "less_equal": "{0} <= {1}", "mod": "torch.fmod({0}, {1})",
    "floor_mod": "torch.remainder({0}, {1})", "logical_and": "torch.logical_and({0}, {1})",
    "logical_or": "torch.logical_or({0}, {1})", "logical_xor": "torch.logical_xor({0}, {1})",
    "bitwise_and": "{0} & {1}", "bitwise_or": "{0} | {1}", "bitwise_xor": "{0} ^ {1}",
    "matmul": "torch.matmul({0}, {1})", "where": "torch.where({0}, {1}, {2})",
    "gather_nd": "gather_nd({0}, {1})"}

TAKES_NUMBERS = {"add", "subtract", "multiply", "divide", "power", "equal", "greater", "less", "greater_equal",
                 "less_equal"}
"""Types of joints whose expression may have a number in place of an operand of one element."""

ROWS: dict[str, Row] = dict(SIMPLE)
LAYERS: dict[str, tuple[dict[str, str], Callable[[Emit], str]]] = {}


def row(*names: str) -> Callable[[Callable[[Emit], str]], Callable[[Emit], str]]:
    def add(function: Callable[[Emit], str]) -> Callable[[Emit], str]:
        ROWS.update(dict.fromkeys(names, function))
        return function
    return add


def layer(roles: dict[str, str], *names: str) -> Callable[[Callable[[Emit], str]], Callable[[Emit], str]]:
    """A row that makes the module of a layer. `roles` has torch's name of each role."""
    def add(function: Callable[[Emit], str]) -> Callable[[Emit], str]:
        LAYERS.update(dict.fromkeys(names, (roles, function)))
        return function
    return add


WEIGHT = {"weight": "weight", "bias": "bias"}
GAMMA = {"gamma": "weight", "beta": "bias"}
STATISTICS = {**GAMMA, "mean": "running_mean", "var": "running_var"}


# ---- Convolutions and products ---------------------------------------------------------------------------------------

def _n_axes(e: Emit) -> int:
    return int(next(char for char in e.joint.optype if char.isdigit()))


def _window(e: Emit) -> dict[str, Any]:
    ints = e.joint.ints
    return {"stride": plain(ints("strides"), 1), "dilation": plain(ints("dilation"), 1)}


def _padding(e: Emit, x: str, n: int, value: str = "") -> tuple[str, Any]:
    """The data, padded if the amounts before and after an axis differ, and the amount that is left to the operator."""
    amounts = e.joint.ints("padding") or [0] * (2 * n)
    if amounts[:n] == amounts[n:]:
        return x, plain(amounts[:n], 0)
    pairs = [amount for axis in reversed(range(n)) for amount in (amounts[axis], amounts[n + axis])]
    return call("F.pad", x, pairs, **({"value": value} if value else {})), None


CONVS = [f"{prefix}conv{n}d{suffix}" for n in (1, 2, 3) for prefix, suffix in (("nn.", ""), ("msc.", "_bias"))]
TURNED = [f"nn.conv{n}d_transpose" for n in (1, 2, 3)]


@layer(WEIGHT, *CONVS, *TURNED)
def conv_layer(e: Emit) -> str:
    n, turned, groups = _n_axes(e), e.joint.optype in TURNED, int(e.joint.number("groups", 1))
    shape = e.shape("weight")
    _, padding = _padding(e, "", n)
    first, second = shape[:2] if turned else (shape[1], shape[0])
    ins, outs = (first, second * groups) if turned else (first * groups, second)
    more = {"output_padding": plain(e.joint.ints("output_padding"), 0)} if turned else {}
    return call(f"nn.Conv{'Transpose' if turned else ''}{n}d", ins, outs, plain(shape[2:]), **_window(e),
                padding=padding, groups=groups if groups != 1 else None, **more,
                bias=None if "bias" in e.joint.weights else False)


@row(*CONVS, *TURNED)
def conv(e: Emit) -> str:
    if e.module:
        return f"{e.module}({_padding(e, e[0], _n_axes(e))[0]})"
    return convolution(e, e[0], e["weight"], e.get("bias"))


def convolution(e: Emit, x: str, weight: str, bias: str | None = None) -> str:
    n, turned, groups = e.rank(0) - 2, e.joint.optype in TURNED, int(e.joint.number("groups", 1))
    padded, padding = _padding(e, x, n)
    if turned and padded != x:
        raise e.unsupported("different amounts of padding before and after an axis")
    more = {"output_padding": plain(e.joint.ints("output_padding"), 0)} if turned else {}
    return call(f"F.conv{'_transpose' if turned else ''}{n}d", padded, weight, bias, **_window(e),
                padding=padding, groups=groups if groups != 1 else None, **more)


@layer(WEIGHT, "msc.linear", "msc.linear_bias")
def linear_layer(e: Emit) -> str:
    if e.joint.weights["weight"].layout == "IO":
        return ""
    outs, ins = e.shape("weight")
    return call("nn.Linear", ins, outs, bias=None if "bias" in e.joint.weights else False)


@row("msc.linear", "msc.linear_bias")
def linear(e: Emit) -> str:
    if e.module:
        return f"{e.module}({e[0]})"
    if e.layout("weight") == "IO":
        return f"torch.matmul({e[0]}, {e['weight']})" + (f" + {e['bias']}" if e.get("bias") else "")
    return call("F.linear", e[0], e["weight"], e.get("bias"))


@row("msc.gemm")
def gemm(e: Emit) -> str:
    a, b = (f"{e[i]}.t()" if e.joint.flag(f"trans_{'ab'[i]}") else e[i] for i in (0, 1))
    alpha, beta = e.joint.number("alpha", 1), e.joint.number("beta", 1)
    text = f"torch.matmul({a}, {b})" + (f" * {alpha}" if alpha != 1 else "")
    return text + (f" + {e[2]}" + (f" * {beta}" if beta != 1 else "") if len(e) > 2 else "")


@row("einsum")
def einsum(e: Emit) -> str:
    return call("torch.einsum", repr(e.joint.attrs["equation"]), *e.all())


@row("divide")
def divide(e: Emit) -> str:
    is_whole = e.joint.outputs[0].dtype.startswith(("int", "uint"))
    return f"torch.div({e[0]}, {e[1]}, rounding_mode='trunc')" if is_whole else f"{e[0]} / {e[1]}"


@row("maximum", "minimum")
def extremum(e: Emit) -> str:
    text = e[0]
    for other in e.all()[1:]:
        text = f"torch.{e.joint.optype}({text}, {other})"
    return text


@row("nn.lstm", "nn.gru", "nn.rnn")
def recurrent(e: Emit) -> str:
    attrs, kind = e.joint.attrs, e.joint.optype[3:]
    names = [name for name in attrs.get("activations", "").split(",") if name]
    if kind == "rnn":
        kind = "rnn_relu" if names and set(names) == {"Relu"} else "rnn_tanh"
    elif names or (kind == "gru" and not e.joint.flag("linear_before_reset")):
        raise e.unsupported("other activations than torch's, or a reset before the product")
    if e.role("lengths") or e.role("peephole") or e.joint.flag("layout") or attrs.get("direction") == "reverse":
        raise e.unsupported("lengths, peepholes, a layout or a reversed direction")
    values = [e.role(name) or "None" for name in ("weight", "recurrence", "bias", "hidden", "cell")]
    while values[-1] == "None" and len(values) > 3:
        values.pop()
    n = len(e.joint.outputs)
    values += ["is_flat=True"] if e.joint.flag("is_flat") else []
    return f"recurrent({kind!r}, {e[0]}, {', '.join(values)})" + ("[0]" if n == 1 else f"[:{n}]")


# ---- Normalisation and activations -----------------------------------------------------------------------------------

@layer(STATISTICS, "nn.batch_norm")
def batch_norm_layer(e: Emit) -> str:
    n = max(e.rank(0) - 2, 1)
    return call(f"nn.BatchNorm{n}d", e.shape("gamma")[0], eps=e.joint.number("epsilon", 1e-5),
                momentum=e.joint.number("momentum", 0.1))


@row("nn.batch_norm")
def batch_norm(e: Emit) -> str:
    if e.module:
        return f"{e.module}({e[0]})"
    return call("F.batch_norm", e[0], e["mean"], e["var"], e["gamma"], e["beta"], "self.training",
                e.joint.number("momentum", 0.1), e.joint.number("epsilon", 1e-5))


@layer(GAMMA, "nn.layer_norm")
def layer_norm_layer(e: Emit) -> str:
    return call("nn.LayerNorm", plain(e.shape("gamma")), eps=e.joint.number("epsilon", 1e-5),
                bias=None if "beta" in e.joint.weights else False)


@row("nn.layer_norm")
def layer_norm(e: Emit) -> str:
    if e.module:
        return f"{e.module}({e[0]})"
    return call("F.layer_norm", e[0], e.shape("gamma"), e["gamma"], e.get("beta"), eps=e.joint.number("epsilon", 1e-5))


@layer(GAMMA, "nn.group_norm", "nn.instance_norm")
def group_norm_layer(e: Emit) -> str:
    channels, eps = e.shape("gamma")[0], e.joint.number("epsilon", 1e-5)
    if e.joint.optype == "nn.group_norm":
        return call("nn.GroupNorm", int(e.joint.attrs["num_groups"]), channels, eps=eps)
    return call(f"nn.InstanceNorm{e.rank(0) - 2}d", channels, eps=eps, affine=True)


@row("nn.group_norm", "nn.instance_norm")
def group_norm(e: Emit) -> str:
    if e.module:
        return f"{e.module}({e[0]})"
    eps = e.joint.number("epsilon", 1e-5)
    if e.joint.optype == "nn.group_norm":
        return call("F.group_norm", e[0], int(e.joint.attrs["num_groups"]), e["gamma"], e["beta"], eps)
    return call("F.instance_norm", e[0], weight=e["gamma"], bias=e["beta"], eps=eps)


@row("nn.lrn")
def lrn(e: Emit) -> str:
    number = e.joint.number
    return call("F.local_response_norm", e[0], int(e.joint.attrs["size"]), number("alpha", 1e-4), number("beta", 0.75),
                number("bias", 1.0))


@row("nn.softmax", "nn.log_softmax")
def softmax(e: Emit) -> str:
    return call("F." + e.joint.optype[3:], e[0], int(e.joint.number("axis", -1)))


@row("nn.leaky_relu", "nn.elu", "nn.celu")
def scaled(e: Emit) -> str:
    return call("F." + e.joint.optype[3:], e[0], e.joint.number("alpha", 0.01 if "leaky" in e.joint.optype else 1.0))


@row("nn.prelu")
def prelu(e: Emit) -> str:
    return f"torch.where({e[0]} < 0, {e[0]} * {e['slope']}, {e[0]})"


@row("nn.gelu")
def gelu(e: Emit) -> str:
    kind = e.joint.attrs.get("approximate", "none")
    return call("F.gelu", e[0], approximate=repr(kind) if kind != "none" else None)


@row("nn.hard_sigmoid")
def hard_sigmoid(e: Emit) -> str:
    alpha, beta = e.joint.number("alpha", 0.2), e.joint.number("beta", 0.5)
    if abs(alpha - 1 / 6) < 1e-6 and beta == 0.5:
        return f"F.hardsigmoid({e[0]})"
    return f"torch.clamp({e[0]} * {alpha} + {beta}, 0, 1)"


@row("clip")
def clip(e: Emit) -> str:
    low, high = (e.role(key) or e.joint.attrs.get(key) or None for key in ("min", "max"))
    return call("torch.clamp", e[0], min=low, max=high) if low or high else e[0]


@row("astype")
def astype(e: Emit) -> str:
    return f"{e[0]}.to(torch.{e.joint.attrs['dtype']})"


# ---- Integers with scales --------------------------------------------------------------------------------------------

def _integers(e: Emit) -> str:
    """The integers narrower than a byte that the bytes of the joint hold, or ""."""
    kind = e.joint.attrs.get("format", "")
    if "float" in kind:
        raise e.unsupported(f"the format {kind}")
    return kind


def _levels(e: Emit, *bounds: int) -> str:
    axis, block = int(e.joint.number("axis", 1)), int(e.joint.number("block_size", 0))
    places = {"axis": axis if e.shape("scale") else None, "block": block or None}
    return call(e.joint.optype, e[0], e["scale"], e.get("zero_point"), *bounds, **places)


@row("quantize")
def quantize(e: Emit) -> str:
    tensor = e.joint.outputs[0]
    kind = _integers(e) or tensor.dtype
    n = 1 << int(kind.lstrip("uint"))
    low = 0 if kind.startswith("u") else -n // 2
    return _levels(e, low, low + n - 1)


@row("dequantize")
def dequantize(e: Emit) -> str:
    _integers(e)
    return _levels(e)


@row("msc.dynamic_quantize")
def dynamic_quantize(e: Emit) -> str:
    return f"dynamic_quantize({e[0]})" + ("[0]" if len(e.joint.outputs) == 1 else "")


def _shifted(e: Emit, role: str, zero_role: str, form: list[int]) -> str:
    """An operand without its zero points, of which there is one, or one for each element along the axis of the -1 of
    `form`."""
    zero = e.get(zero_role)
    many = zero is not None and e.shape(zero_role) not in ([], [1])
    return call("shifted", e[role], f"{zero}.reshape({form})" if many else zero)


@row("msc.matmul_integer")
def matmul_integer(e: Emit) -> str:
    rows = [-1, 1] if e.rank(0) > 1 else [-1]
    return call("torch.matmul", _shifted(e, "input", "x_zero", rows), _shifted(e, "other", "y_zero", [-1]))


@row("msc.conv_integer")
def conv_integer(e: Emit) -> str:
    weight = _shifted(e, "weight", "weight_zero", [-1] + [1] * (e.rank(0) - 1))
    return convolution(e, _shifted(e, "input", "x_zero", [1]), weight)


# ---- Pooling and resizing --------------------------------------------------------------------------------------------

@row(*[f"nn.{kind}_pool{n}d" for kind in ("max", "avg") for n in (1, 2, 3)])
def pool(e: Emit) -> str:
    n, is_max = _n_axes(e), "max" in e.joint.optype
    x, padding = _padding(e, e[0], n, "float('-inf')" if is_max else "")
    include = e.joint.flag("count_include_pad")
    if padding is None and x != e[0] and not (is_max or include):
        raise e.unsupported("different amounts of padding before and after an axis")
    window = _window(e)
    more = {"dilation": window["dilation"]} if is_max else {"count_include_pad": None if include else False}
    stride = e.joint.ints("strides") or [1] * n
    return call(f"F.{'max' if is_max else 'avg'}_pool{n}d", x, plain(e.joint.ints("pool_size")),
                stride=plain(stride), padding=padding, ceil_mode=True if e.joint.flag("ceil_mode") else None, **more)


@row("nn.global_avg_pool", "nn.global_max_pool")
def global_pool(e: Emit) -> str:
    kind = "mean" if "avg" in e.joint.optype else "amax"
    return f"{e[0]}.{kind}({tuple(range(2, e.rank(0)))}, keepdim=True)"


@row("image.resize2d")
def resize(e: Emit) -> str:
    attrs, n = e.joint.attrs, e.rank(0) - 2
    axes = [axis % (n + 2) for axis in e.joint.ints("axes")] or [*range(n + 2)]
    method, mode = attrs.get("method", "linear"), attrs.get("coordinate_transformation_mode", "half_pixel")
    kinds = {"nearest_neighbor": "nearest", "linear": {1: "linear", 2: "bilinear", 3: "trilinear"}.get(n, ""),
             "cubic": "bicubic"}
    is_nearest = method == "nearest_neighbor"
    fits = (mode == "asymmetric" and attrs.get("rounding_method") == "floor") if is_nearest else mode in (
        "half_pixel", "pytorch_half_pixel", "align_corners")
    if not fits or axes[-n:] != [*range(2, n + 2)]:
        raise e.unsupported(f"{method}, {mode}")
    size, scales = e.joint.ints("size"), [float(x) for x in attrs.get("scales", "").split(",") if x]
    given = e.role("size")
    return call("F.interpolate", e[0], size=f"whole({given})[-{n}:]" if given else tuple(size[-n:]) or None,
                scale_factor=tuple(scales[-n:]) or None, mode=repr(kinds[method]),
                align_corners=None if is_nearest else mode == "align_corners")


@row("image.grid_sample")
def grid_sample(e: Emit) -> str:
    attrs = e.joint.attrs
    return call("F.grid_sample", e[0], e[1], mode=repr(attrs.get("mode", "bilinear")),
                padding_mode=repr(attrs.get("padding_mode", "zeros")), align_corners=e.joint.flag("align_corners"))


# ---- Reductions ------------------------------------------------------------------------------------------------------

@row("mean", "sum", "max", "min", "prod")
def reduction(e: Emit) -> str:
    axes, keep = tuple(e.joint.ints("axis")) or tuple(range(e.rank(0))), e.joint.flag("keepdims")
    kind = {"max": "amax", "min": "amin"}.get(e.joint.optype, e.joint.optype)
    if kind == "prod":
        if len(axes) != 1:
            raise e.unsupported("several axes")
        return f"{e[0]}.prod({axes[0]}, keepdim={keep})"
    return f"{e[0]}.{kind}({plain([*axes])}, keepdim={keep})"


@row("argmax", "argmin")
def argument(e: Emit) -> str:
    if e.joint.flag("select_last_index"):
        raise e.unsupported("select_last_index")
    return f"{e[0]}.{e.joint.optype}({int(e.joint.number('axis', 0))}, keepdim={e.joint.flag('keepdims')})"


# ---- Shapes and moves ------------------------------------------------------------------------------------------------

@row("shape_of")
def shape_of(e: Emit) -> str:
    end = e.joint.attrs.get("end", "")
    return call("lengths", e[0], int(e.joint.number("start", 0)), int(end) if end else None)


def _sizes(e: Emit) -> str | None:
    """The lengths of the result as a tuple of numbers and lengths of inputs; None if they depend on data."""
    writer: Any = e.writer
    texts = writer.lengths.texts(e.joint.outputs[0], writer.texts)
    return None if texts is None else f"({', '.join(texts)}{',' if len(texts) == 1 else ''})"


@row("reshape")
def reshape(e: Emit) -> str:
    if len(e) > 1:
        return f"{e[0]}.reshape({_sizes(e) or f'whole({e[1]})'})"
    keep = not e.joint.flag("allowzero")
    codes = [f"{e[0]}.shape[{i}]" if code == 0 and keep else str(code) for i, code in enumerate(e.joint.ints("shape"))]
    return f"{e[0]}.reshape({', '.join(codes) or '()'})"


@row("flatten")
def flatten(e: Emit) -> str:
    axis = int(e.joint.number("axis", 1)) % max(e.rank(0), 1) if e.joint.number("axis", 1) != e.rank(0) else e.rank(0)
    return f"{e[0]}.flatten(1)" if axis == 1 else f"{e[0]}.reshape({e[0]}.shape[:{axis}].numel(), -1)"


@row("permute_dims")
def permute(e: Emit) -> str:
    return f"{e[0]}.permute({', '.join(map(str, e.joint.ints('axes')))})"


@row("expand_dims")
def expand_dims(e: Emit) -> str:
    rank, text = len(e.joint.outputs[0].shape), e[0]
    for axis in sorted(axis % rank for axis in e.joint.ints("axis")):
        text += f".unsqueeze({axis})"
    return text


@row("squeeze")
def squeeze(e: Emit) -> str:
    axes = e.joint.ints("axis")
    return f"{e[0]}.squeeze({plain(axes) if axes else ''})"


@row("concat")
def concat(e: Emit) -> str:
    return f"torch.cat([{', '.join(e.all())}], {int(e.joint.number('axis', 0))})"


@row("split")
def split(e: Emit) -> str:
    axis, cuts = int(e.joint.number("axis", 0)), e.joint.attrs.get("indices_or_sections", "")
    if len(e) > 1:
        return f"torch.split({e[0]}, whole({e[1]}), {axis})"
    sizes = [tensor.shape[axis] for tensor in e.joint.outputs]
    if -1 in sizes:
        raise e.unsupported("parts of unknown lengths")
    return f"torch.split({e[0]}, {plain(sizes) if cuts or len(set(sizes)) == 1 else sizes}, {axis})"


@row("strided_slice")
def strided_slice(e: Emit) -> str:
    ints = e.joint.ints
    if len(e) > 1:
        return f"cut({e[0]}, {e[1]}, {e[2]}, {ints('axes')}, {ints('strides')})"
    begin, end, strides = ints("begin"), ints("end"), ints("strides")
    axes = ints("axes") or [*range(len(begin))]
    if any(stride < 0 for stride in strides):
        return f"cut({e[0]}, {begin}, {end}, {axes}, {strides})"
    parts = [":"] * e.rank(0)
    for i, axis in enumerate(axes):
        step = f":{strides[i]}" if strides and strides[i] != 1 else ""
        parts[axis] = f"{begin[i] or ''}:{end[i] if abs(end[i]) < 2**31 - 1 else ''}{step}"
    while len(parts) > 1 and parts[-1] == ":":
        parts.pop()
    return f"{e[0]}[{', '.join(parts)}]"


@row("nn.pad")
def pad(e: Emit) -> str:
    widths, rank = e.joint.ints("pad_width"), e.rank(0)
    axes = [axis % rank for axis in e.joint.ints("axes")] or [*range(len(widths) // 2)]
    amounts = {axis: (widths[i], widths[len(axes) + i]) for i, axis in enumerate(axes)}
    first = min((axis for axis, both in amounts.items() if any(both)), default=rank - 1)
    pairs = [item for axis in reversed(range(first, rank)) for item in amounts.get(axis, (0, 0))]
    modes = {"constant": None, "reflect": "'reflect'", "edge": "'replicate'"}
    mode = modes.get(e.joint.attrs.get("pad_mode", "constant"))
    value = e.joint.number("pad_value", 0)
    return call("F.pad", e[0], tuple(pairs), mode=mode, value=value if value and mode is None else None)


@row("take")
def take(e: Emit) -> str:
    axis, index = int(e.joint.number("axis", 0)), e.number(1)
    if index is not None:
        return f"{e[0]}.select({axis}, {index})"
    table = e.constant(0)
    if axis == 0 and e.rank(0) == 2 and table is not None:
        writer: Any = e.writer
        return call("F.embedding", e[1], e[0], padding_idx=writer.padding.get(table.name))
    return f"take({e[0]}, {e[1]}, {axis})"


@row("broadcast_to")
def broadcast_to(e: Emit) -> str:
    sizes = _sizes(e)
    if sizes is not None:
        return f"{e[0]}.expand({sizes})"
    return f"expand({e[0]}, {e[1] if len(e) > 1 else e.joint.ints('shape')})"


@row("tile")
def tile(e: Emit) -> str:
    return f"{e[0]}.repeat({f'whole({e[1]})' if len(e) > 1 else e.joint.ints('repeats')})"


@row("gather_elements")
def gather_elements(e: Emit) -> str:
    return f"torch.gather({e[0]}, {int(e.joint.number('axis', 0))}, {e[1]})"


@row("scatter_elements")
def scatter_elements(e: Emit) -> str:
    name = {"none": "scatter", "add": "scatter_add"}.get(e.joint.attrs.get("reduction", "none"))
    if name is None:
        raise e.unsupported("a reduction")
    return f"torch.{name}({e[0]}, {int(e.joint.number('axis', 0))}, {e[1]}, {e[2]})"


@row("topk")
def topk(e: Emit) -> str:
    axis, flags = int(e.joint.number("axis", -1)), [e.joint.flag(key, True) for key in ("largest", "sorted")]
    return f"torch.topk({e[0]}, {e.joint.attrs['k']}, {axis}, {flags[0]}, {flags[1]})"


@row("cumsum")
def cumsum(e: Emit) -> str:
    if e.joint.flag("exclusive") or e.joint.flag("reverse"):
        raise e.unsupported("an exclusive or reversed sum")
    return f"torch.cumsum({e[0]}, {e.joint.attrs['axis']})"


@row("triu", "tril")
def triangle(e: Emit) -> str:
    return f"torch.{e.joint.optype}({e[0]}, {int(e.joint.number('k', 0))})"


@row("arange")
def arange(e: Emit) -> str:
    return f"torch.arange({', '.join(f'{item}.item()' for item in e.all())}, dtype=torch.{e.joint.outputs[0].dtype})"


@row("nn.depth_to_space")
def depth_to_space(e: Emit) -> str:
    if e.joint.attrs.get("mode", "DCR") != "CRD":
        raise e.unsupported("the mode DCR")
    return f"F.pixel_shuffle({e[0]}, {e.joint.attrs['blocksize']})"
