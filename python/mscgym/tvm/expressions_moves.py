"""Rows from joints to Relax (expressions.py): shapes, moves, indexing and groups."""
from __future__ import annotations

from typing import Any

from mscgym.emitter import Emit, call
from mscgym.graph import Tensor
from mscgym.tvm.expressions import ROWS, lengths, row, shape, short, text
from mscgym.tvm.loops import loops_name

# ---- Shapes and moves ------------------------------------------------------------------------------------------------

@row("shape_of")
def shape_of(e: Emit) -> str:
    tensor, writer = e.tensor(0), e.writer
    end = e.joint.attrs.get("end", "")
    part = slice(int(e.joint.number("start", 0)), int(end) if end else None)
    cut = Tensor(tensor.name, tensor.shape[part], tensor.dtype, prims=(tensor.prims or [])[part])
    known: Any = writer
    if known.is_known(cut):
        return f"op.shape_to_tensor(relax.ShapeExpr({known.lengths(cut)}))"
    raise e.unsupported("a length that depends on data")


@row("reshape")
def reshape(e: Emit) -> str:
    return f"op.reshape({e[0]}, {shape(e)})"


@row("flatten")
def flatten(e: Emit) -> str:
    return f"op.nn.batch_flatten({e[0]})" if e.joint.number("axis", 1) == 1 else f"op.reshape({e[0]}, {shape(e)})"


@row("permute_dims")
def permute(e: Emit) -> str:
    return f"op.permute_dims({e[0]}, {e.joint.ints('axes')})"


@row("expand_dims")
def expand_dims(e: Emit) -> str:
    return f"op.expand_dims({e[0]}, {e.joint.ints('axis')})"


@row("squeeze")
def squeeze(e: Emit) -> str:
    return call("op.squeeze", e[0], e.joint.ints("axis") or None)


@row("concat")
def concat(e: Emit) -> str:
    return f"op.concat([{', '.join(e.all())}], axis={int(e.joint.number('axis', 0))})"


@row("relax.stack")
def stack(e: Emit) -> str:
    return f"op.stack([{', '.join(e.all())}], axis={int(e.joint.number('axis', 0))})"


@row("split")
def split(e: Emit) -> str:
    axis, given = int(e.joint.number("axis", 0)), e.joint.attrs.get("indices_or_sections", "")
    n = len(e.joint.outputs)
    if n == 1:
        return f"op.split({e[0]}, 1, axis={axis})[0]"
    if len(e) == 1 and "," in given:
        return f"op.split({e[0]}, {e.joint.ints('indices_or_sections')}, axis={axis})"
    sizes = [tensor.shape[axis] for tensor in e.joint.outputs]
    if len(set(sizes)) == 1 and len(e) == 1:
        return f"op.split({e[0]}, {n}, axis={axis})"
    if -1 in sizes:
        raise e.unsupported("parts of unknown lengths")
    return f"op.split({e[0]}, {[sum(sizes[:i]) for i in range(1, n)]}, axis={axis})"


@row("strided_slice")
def strided_slice(e: Emit) -> str:
    ints = e.joint.ints
    if len(e) > 1:
        bounds = [known(e, index) for index in (1, 2)]
    else:
        bounds = [ints("begin"), ints("end")]
    n = len(ints("axes")) or len(bounds[0])
    axes = ints("axes") or [*range(n)]
    given = e.joint.attrs.get("assume_inbound")
    return call("op.strided_slice", e[0], axes, bounds[0], bounds[1], ints("strides") or [1] * n,
                assume_inbound=True if given == "1" else None)


def known(e: Emit, index: int) -> list[int]:
    """The whole numbers of an operand that is constant."""
    constant = e.constant(index)
    array = e.writer.graph.arrays.get(constant.name) if constant is not None else None
    if array is None:
        raise e.unsupported("a bound that is computed")
    return [int(item) for item in array.reshape(-1)]


@row("relax.flip")
def flip(e: Emit) -> str:
    axes = e.joint.ints("axes")
    return f"op.flip({e[0]}, {axes[0]})"


@row("nn.pad")
def pad(e: Emit) -> str:
    widths, rank = e.joint.ints("pad_width"), e.rank(0)
    axes = [axis % rank for axis in e.joint.ints("axes")] or [*range(len(widths) // 2)]
    amounts = {axis: [widths[i], widths[len(axes) + i]] for i, axis in enumerate(axes)}
    pairs = [item for axis in range(rank) for item in amounts.get(axis, [0, 0])]
    modes = {"constant": "constant", "reflect": "reflect", "edge": "replicate", "wrap": "circular"}
    mode = modes[e.joint.attrs.get("pad_mode", "constant")]
    value = e.joint.attrs.get("pad_value", "0")
    value = f"float('{value}')" if "inf" in value or "nan" in value else value
    return call("op.nn.pad", e[0], pairs, repr(mode), value if mode == "constant" else None)


@row("take")
def take(e: Emit) -> str:
    return call("op.take", e[0], e[1], axis=int(e.joint.number("axis", 0)), mode=text(e, "mode"))


@row("broadcast_to")
def broadcast_to(e: Emit) -> str:
    return f"op.broadcast_to({e[0]}, {shape(e)})"


@row("relax.full", "relax.full_like")
def full(e: Emit) -> str:
    return f"op.full({shape(e)}, {e[0]}, {e.joint.outputs[0].dtype!r})"


@row("relax.zeros", "relax.ones", "relax.zeros_like", "relax.ones_like")
def zeros(e: Emit) -> str:
    return f"op.{e.joint.optype[6:].removesuffix('_like')}({shape(e)}, {e.joint.outputs[0].dtype!r})"


@row("tile")
def tile(e: Emit) -> str:
    return f"op.tile({e[0]}, {e.joint.ints('repeats') if len(e) == 1 else known(e, 1)})"


@row("arange")
def arange(e: Emit) -> str:
    bounds = [e.constant(index) for index in range(3)]
    if any(bound is None for bound in bounds):
        raise e.unsupported("bounds that are computed")
    numbers = [e.writer.graph.arrays[bound.name].item() for bound in bounds if bound is not None]
    return f"op.arange({', '.join(map(repr, numbers))}, {e.joint.outputs[0].dtype!r})"


@row("relax.repeat")
def repeat(e: Emit) -> str:
    axis = e.joint.ints("expand_dims.axis")[0] - 1
    return f"op.repeat({e[0]}, {max(e.joint.ints('tile.repeats'))}, {axis})"


@row("gather_elements")
def gather_elements(e: Emit) -> str:
    return f"op.gather_elements({e[0]}, {e[1]}, {int(e.joint.number('axis', 0))})"


@row("gather_nd")
def gather_nd(e: Emit) -> str:
    return f"op.gather_nd({e[0]}, {e[1]}, {int(e.joint.number('batch_dims', 0))})"


@row("relax.index_tensor")
def index_tensor(e: Emit) -> str:
    x, indices = (e[0], [e[1]]) if len(e) == 2 else (e[len(e) - 1], [e[i] for i in range(len(e) - 1)])
    return f"op.index_tensor({x}, [{', '.join(indices)}])"


_REDUCTIONS = {"none": "update", "add": "add", "mul": "mul", "max": "max", "min": "min"}


@row("scatter_elements")
def scatter_elements(e: Emit) -> str:
    kind = _REDUCTIONS[e.joint.attrs.get("reduction", "none")]
    return f"op.scatter_elements({e[0]}, {e[1]}, {e[2]}, {int(e.joint.number('axis', 0))}, {kind!r})"


@row("scatter_nd")
def scatter_nd(e: Emit) -> str:
    return f"op.scatter_nd({e[0]}, {e[1]}, {e[2]}, {_REDUCTIONS[e.joint.attrs.get('reduction', 'none')]!r})"


@row("one_hot")
def one_hot(e: Emit) -> str:
    values = e.constant(1)
    if values is None:
        raise e.unsupported("values that are computed")
    low, high = e.writer.graph.arrays[values.name].tolist()
    dtype = values.dtype
    return call("op.one_hot", e[0], f"value({high!r}, {dtype!r})", f"value({low!r}, {dtype!r})", int(e.joint.attrs["depth"]),
                int(e.joint.number("axis", -1)))


@row("topk", "relax.topk")
def topk(e: Emit) -> str:
    prefix = "" if e.joint.optype == "topk" else "topk."
    kind = e.joint.attrs.get(prefix + "ret_type", "both")
    result = call("op.topk", e[0], int(e.joint.attrs[prefix + "k"]), int(e.joint.number(prefix + "axis", -1)),
                  repr(kind), e.joint.flag(prefix + "largest", True),
                  repr(e.joint.attrs.get(prefix + "relax.dtype", e.joint.outputs[-1].dtype)))
    return result if kind == "both" or len(e.joint.outputs) == 1 else f"relax.Tuple([{result}] * {len(e.joint.outputs)})"


@row("relax.sort")
def sort(e: Emit) -> str:
    return f"op.sort({e[0]}, {int(e.joint.number('axis', -1))}, {e.joint.flag('largest', True)})"


@row("relax.argsort")
def argsort(e: Emit) -> str:
    prefix = "topk." if "topk.axis" in e.joint.attrs else ""
    return (f"op.argsort({e[0]}, {int(e.joint.number(prefix + 'axis', -1))}, "
            f"{e.joint.flag(prefix + 'largest', True)}, {e.joint.outputs[-1].dtype!r})")


@row("triu", "tril")
def triangle(e: Emit) -> str:
    return f"op.{e.joint.optype}({e[0]}, {int(e.joint.number('k', 0))})"


@row("reverse_sequence")
def reverse_sequence(e: Emit) -> str:
    return call("op.reverse_sequence", e[0], e[1], int(e.joint.number("time_axis", 0)),
                int(e.joint.number("batch_axis", 1)))


# ---- Groups ----------------------------------------------------------------------------------------------------------

@row("relax.attention", "relax.attention_bias")
def attention(e: Emit) -> str:
    names = [key.rstrip(".") for key in e.joint.attrs]
    causal = next((key for key in ("TopLeft", "BottomRight") if key in names), None)
    has_bias = e.joint.optype.endswith("bias")
    features = e.tensor(0).shape[3]
    scale = short(e, 2)
    is_usual = features > 0 and abs(float(scale) * features ** 0.5 - 1) < 1e-6
    return call("op.nn.attention", e[0], e[1], e[len(e) - 1], e[3] if has_bias else None,
                scale=None if is_usual else scale, causal_mask=repr(causal) if causal else None)


@row(*[f"relax.adaptive_avg_pool{n}d" for n in (1, 2, 3)])
def adaptive_pool(e: Emit) -> str:
    return f"op.nn.{e.joint.optype[6:]}({e[0]}, {e.joint.outputs[0].shape[2:]})"


@row("relax.rms_norm")
def rms_norm(e: Emit) -> str:
    return call("op.nn.rms_norm", e[0], e[4], axes=e.joint.ints("mean.axis"), epsilon=short(e, 2))


__all__ = ["ROWS"]


# ---- External joints -------------------------------------------------------------------------------------------------

@row("msc.external")
def loops(e: Emit) -> str:
    """A call of a function of loops that `from_relax` kept (primitives.py)."""
    name = loops_name(e.joint)
    if not name:
        raise e.unsupported(f"operator {e.joint.attrs.get('op')} of domain {e.joint.attrs.get('domain')}")
    outputs = ", ".join(f"({lengths(e, i)}, {tensor.dtype!r})" for i, tensor in enumerate(e.joint.outputs))
    return f"call_loops(bb, FOLDER / {name + '.txt'!r}, [{', '.join(e.all())}], [{outputs}])"
