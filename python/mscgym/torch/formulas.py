"""Formulas of torch operators that have no joint of their own, written in torch.

`table()` is the table of decompositions for `ExportedProgram.run_decompositions`. It is torch's own table, which leaves
the core operators, with two changes: operators of WHOLE stay whole, because one joint computes each of them; operators
of FORMULAS are replaced by the formulas here, whose operators have joints.
"""
from __future__ import annotations

import math
from typing import Any, Callable, cast

import torch

aten = torch.ops.aten

WHOLE = [
    aten.linear.default, aten.matmul.default, aten.einsum.default, aten.hardswish.default, aten.hardsigmoid.default,
    aten.mish.default, aten.softplus.default, aten.selu.default, aten.celu.default, aten.prelu.default,
    aten.instance_norm.default, aten.lstm.input, aten.gru.input, aten.rnn_tanh.input, aten.rnn_relu.input,
    aten.max_pool1d.default, aten.max_pool2d.default, aten.max_pool3d.default, aten.avg_pool1d.default,
    aten.avg_pool2d.default, aten.avg_pool3d.default, aten.reflection_pad1d.default, aten.reflection_pad2d.default,
    aten.replication_pad1d.default, aten.replication_pad2d.default, aten.upsample_nearest1d.vec,
    aten.upsample_nearest2d.vec, aten.upsample_linear1d.vec, aten.upsample_bilinear2d.vec, aten.upsample_bicubic2d.vec,
    aten.grid_sampler.default, aten.triu.default, aten.tril.default, aten.index_select.default]


def attention(query: Any, key: Any, value: Any, attn_mask: Any = None, dropout_p: float = 0.0, is_causal: bool = False,
              *, scale: float | None = None, enable_gqa: bool = False) -> Any:
    """softmax(q k' * scale + mask) v over the last two axes."""
    if enable_gqa:
        times = query.size(-3) // key.size(-3)
        key, value = key.repeat_interleave(times, -3), value.repeat_interleave(times, -3)
    factor = 1 / math.sqrt(query.size(-1)) if scale is None else scale
    scores = torch.matmul(query, key.transpose(-2, -1)) * factor
    if is_causal:
        attn_mask = torch.ones(query.size(-2), key.size(-2), dtype=torch.bool, device=query.device).tril()
    if attn_mask is not None and attn_mask.dtype == torch.bool:
        scores = torch.where(attn_mask, scores, torch.full((), -math.inf, dtype=scores.dtype, device=scores.device))
    elif attn_mask is not None:
        scores = scores + attn_mask
    return torch.matmul(torch.softmax(scores, -1), value)


def variance(x: Any, dim: Any = None, *, correction: Any = 1, keepdim: bool = False) -> Any:
    axes = [*range(x.dim())] if not dim else list(dim)
    count = math.prod(x.size(axis) for axis in axes)
    centred = x - x.mean(axes, True)
    total = (centred * centred).sum(axes, keepdim)
    return total / (count - (1 if correction is None else correction))


def roll(x: Any, shifts: Any, dims: Any = ()) -> Any:
    if not dims:
        return roll(x.flatten(), shifts, [0]).view(x.shape)
    for shift, axis in zip(shifts, dims):
        cut = (x.size(axis) - shift) % x.size(axis)
        if cut != 0:
            x = torch.cat([x.narrow(axis, cut, x.size(axis) - cut), x.narrow(axis, 0, cut)], axis)
    return x


def _averages(length: int, size: int, like: Any) -> Any:
    """The matrix [size, length] that averages as adaptive pooling does."""
    row = torch.arange(size, device=like.device).unsqueeze(1)
    column = torch.arange(length, device=like.device).unsqueeze(0)
    is_read = (column * size < (row + 1) * length) & ((column + 1) * size > row * length)
    counts = is_read.to(like.dtype)
    return counts / counts.sum(1, keepdim=True)


def adaptive_average(x: Any, output_size: Any) -> Any:
    """Adaptive average pooling of the last axes: a mean, a pool, or a product with a matrix for each axis."""
    n = len(output_size)
    sizes, lengths = list(output_size), [x.size(axis - n) for axis in range(n)]
    if sizes == [1] * n:
        return x.mean([axis - n for axis in range(n)], True)
    if sizes == lengths:
        return x.clone()
    if all(isinstance(length, int) and length % size == 0 for length, size in zip(lengths, sizes)):
        pool = [torch.nn.functional.avg_pool1d, torch.nn.functional.avg_pool2d, torch.nn.functional.avg_pool3d][n - 1]
        return pool(x, [length // size for length, size in zip(lengths, sizes)])
    for axis in range(n):
        turned = x.transpose(axis - n, -1)
        x = torch.matmul(turned, _averages(lengths[axis], sizes[axis], x).t()).transpose(axis - n, -1)
    return x


def scaled_elu(x: Any, alpha: float = 1, scale: float = 1, input_scale: float = 1) -> Any:
    below = (torch.exp(torch.clamp(x * input_scale, max=0)) - 1) * (alpha * scale)
    return torch.where(x > 0, x * scale, below)


FORMULAS: dict[Any, Callable[..., Any]] = {
    aten.scaled_dot_product_attention.default: attention,
    aten.var.correction: variance,
    aten.roll.default: roll,
    aten.adaptive_avg_pool1d.default: adaptive_average,
    aten.adaptive_avg_pool2d.default: adaptive_average,
    aten.adaptive_avg_pool3d.default: adaptive_average,
    aten.silu.default: lambda x: x * torch.sigmoid(x),
    aten.rsqrt.default: lambda x: torch.reciprocal(torch.sqrt(x)),
    aten.log2.default: lambda x: torch.log(x) * (1 / math.log(2)),
    aten.log10.default: lambda x: torch.log(x) * (1 / math.log(10)),
    aten.log1p.default: lambda x: torch.log(x + 1),
    aten.expm1.default: lambda x: torch.exp(x) - 1,
    aten.trunc.default: lambda x: torch.sign(x) * torch.floor(torch.abs(x)),
    aten.square.default: lambda x: x * x,
    aten.ne.Tensor: lambda x, y: torch.logical_not(torch.eq(x, y)),
    aten.ne.Scalar: lambda x, y: torch.logical_not(torch.eq(x, y)),
}


def table() -> dict[Any, Callable[..., Any]]:
    """The decompositions for `run_decompositions`: an operator, and the function that replaces it."""
    result: Any = torch.export.default_decompositions()
    for target in WHOLE:
        result.pop(target, None)
    for target, formula in FORMULAS.items():
        result[target] = formula
    return cast(dict[Any, Callable[..., Any]], result)
