"""Fake-quantisation with straight-through gradients, from the edits of a strategy (docs/strategy.md).

    quantise = FakeQuantize.from_edit(edit, learn=True)     # an element of a strategy's "edits"
    y = quantise(x)                                         # float32; the values that the integers represent
    quantise.to_edit()                                      # the edit with the scales as they are now

The integers are clamp(round(x / scale) + zero point, low, high), half to even, as in ONNX. The gradient passes
to elements within the range. The gradient of a scale is that of Esser and others, Learned Step Size
Quantization (2020). Edits to float16 and bfloat16 round to that type and have no scales.
"""
from __future__ import annotations

import base64
import math
from collections.abc import Mapping
from typing import Any

import numpy
import torch
from torch import nn

Edit = Mapping[str, Any]

_FLOATS = {"float16": torch.float16, "bfloat16": torch.bfloat16}
_LEAST_SCALE = 1e-12


class _Quantise(torch.autograd.Function):
    """Fake-quantisation of x by scales and zero points that broadcast to its shape."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, scale: torch.Tensor, zero_point: torch.Tensor, low: int, high: int,
                scale_factor: float) -> torch.Tensor:
        v = x / scale
        integer = torch.round(v).add_(zero_point)
        clamped = integer.clamp(low, high)
        inside = clamped == integer
        learns = ctx.needs_input_grad[1]
        ctx.save_for_backward(inside, *((x, scale, zero_point) if learns else ()))
        ctx.range, ctx.scale_factor = (low, high), scale_factor
        return clamped.sub_(zero_point).mul_(scale)

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> Any:
        grad, (inside, *others), (low, high) = grads[0], ctx.saved_tensors, ctx.range
        by_scale = None
        if others:
            x, scale, zero_point = others
            v = x / scale
            steps = torch.round(v).add_(zero_point).clamp_(low, high).sub_(zero_point).sub_(v.mul_(inside))
            by_scale = steps.mul_(grad).sum_to_size(scale.shape) * ctx.scale_factor
        return grad * inside, by_scale, None, None, None, None


class _Cast(torch.autograd.Function):
    """Rounding to a float type; numbers beyond its largest become that number."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
        most = torch.finfo(dtype).max
        ctx.save_for_backward(x.abs() <= most)
        return x.clamp(-most, most).to(dtype).to(x.dtype)

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> Any:
        return grads[0] * ctx.saved_tensors[0], None


def fake_quantize(x: torch.Tensor, scale: torch.Tensor, zero_point: torch.Tensor, low: int, high: int,
                  scale_factor: float = 1.0) -> torch.Tensor:
    """The values that the integers of x represent, with straight-through gradients.

    `scale` and `zero_point` broadcast to the shape of x. `scale_factor` multiplies the gradient of the scale.

    >>> x = torch.tensor([0.26, -3.0, 9.0])
    >>> fake_quantize(x, torch.tensor(0.5), torch.tensor(0.0), -4, 3)
    tensor([ 0.5000, -2.0000,  1.5000])
    """
    y = _Quantise.apply(x.float(), scale, zero_point, low, high, scale_factor)
    return y.to(x.dtype)  # type: ignore[no-any-return]


def read_numbers(value: Any, dtype: str) -> numpy.ndarray[Any, Any]:
    """The numbers of a strategy's field: a list, or base64 of little-endian numbers of the type `dtype`."""
    if isinstance(value, str):
        return numpy.frombuffer(base64.b64decode(value), dtype).copy()
    return numpy.asarray(value, dtype)


class FakeQuantize(nn.Module):
    """Fake-quantises a weight or an activation as an edit of a strategy says.

    `scale` [n] is a parameter if the scales are learnt and a buffer otherwise; `zero_point` [n] is a buffer.
    n is 1, the length of the axis, or the number of groups.
    """

    scale: torch.Tensor
    zero_point: torch.Tensor

    def __init__(self, edit: Edit, learn: bool = False, is_weight: bool = False):
        super().__init__()
        self.is_weight = is_weight
        self.edit = dict(edit)
        self.dtype = _FLOATS.get(str(edit.get("type", "")))
        if self.dtype is not None:
            return
        scale = torch.from_numpy(read_numbers(edit["scales"], "<f4"))
        zeros = torch.from_numpy(read_numbers(edit["zero_points"], "<i4")).float()
        if learn:
            self.scale = nn.Parameter(scale)
        else:
            self.register_buffer("scale", scale)
        self.register_buffer("zero_point", zeros.expand(len(scale)).clone())
        self.low, self.high, self.axis = int(edit["low"]), int(edit["high"]), int(edit["axis"])
        self.group_size, self.group_axes = int(edit.get("group_size", 0)), int(edit.get("group_axes", 1))

    @classmethod
    def from_edit(cls, edit: Edit, learn: bool = False, is_weight: bool = False) -> FakeQuantize:
        """Makes the quantiser of an edit.

        learn: its scales are parameters. Their gradients are divided by the square root of the number of elements
            with one scale, without the samples of an activation, times the largest integer.
        """
        return cls(edit, learn, is_weight)

    def _spread(self, numbers: torch.Tensor, shape: torch.Size) -> torch.Tensor:
        """Numbers of channels or groups in a form that broadcasts to `shape`."""
        if self.group_size > 0:
            last = self.axis + self.group_axes
            before, length, after = (math.prod(shape[:self.axis]), math.prod(shape[self.axis:last]),
                                     math.prod(shape[last:]))
            each = numbers.reshape(before, -1, after).repeat_interleave(self.group_size, 1)[:, :length]
            return each.reshape(shape)
        if self.axis < 0 or len(numbers) == 1:
            return numbers.reshape(())
        return numbers.reshape([-1 if i == self.axis else 1 for i in range(len(shape))])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Any shape that the edit's axis and groups fit; the result has the shape and type of x."""
        if self.dtype is not None:
            return _Cast.apply(x, self.dtype)  # type: ignore[no-any-return]
        scale = self.scale.abs().clamp_min(_LEAST_SCALE)
        n_elements = x.numel() // len(scale) // (1 if self.is_weight or x.ndim == 0 else max(1, len(x)))
        factor = 1 / math.sqrt(max(1, n_elements) * max(1, self.high))
        return fake_quantize(x, self._spread(scale, x.shape), self._spread(self.zero_point, x.shape), self.low,
                             self.high, factor)

    def integers(self, x: torch.Tensor) -> torch.Tensor:
        """The integers of x, as float32, without a gradient."""
        with torch.no_grad():
            scale = self._spread(self.scale.abs().clamp_min(_LEAST_SCALE), x.shape)
            return (torch.round(x / scale) + self._spread(self.zero_point, x.shape)).clamp(self.low, self.high)

    def represented(self, integers: torch.Tensor) -> torch.Tensor:
        """The values that integers of any shape that fits the edit represent."""
        scale = self._spread(self.scale.detach(), integers.shape)
        return (integers - self._spread(self.zero_point, integers.shape)) * scale

    def to_edit(self, weight: torch.Tensor | None = None) -> dict[str, Any]:
        """The edit with the present scales and, for a weight, its integers. The method by which the edit's
        first numbers were found is left out, because it did not find these.
        """
        origin = {"observer", "percentile", "range_scale", "rounding", "correct", "symmetric", "shifts", "integers"}
        edit = {key: value for key, value in self.edit.items() if key not in origin}
        if self.dtype is not None:
            return edit
        edit["scales"] = [float(s) for s in self.scale.detach().abs().clamp_min(_LEAST_SCALE).cpu()]
        edit["zero_points"] = [int(z) for z in self.zero_point.cpu()]
        if weight is not None and self.edit["bits"] <= 8:
            kind = numpy.int8 if self.low < 0 else numpy.uint8
            data = self.integers(weight).cpu().numpy().astype(kind).tobytes()
            edit["integers"] = base64.b64encode(data).decode()
        return edit

    def extra_repr(self) -> str:
        if self.dtype is not None:
            return f"type={self.edit['type']}"
        is_learnt = isinstance(self.scale, nn.Parameter)
        return f"bits={self.edit['bits']}, scales={len(self.scale)}{', learnt' if is_learnt else ''}"
