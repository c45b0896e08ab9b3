"""Edits of tensors while a module is trained: fake quantisation, dynamic quantisation, narrow floats and masks.

    quantise = from_edit(edit, learns=True)     # an element of a strategy's "edits" (docs/strategy.md)
    y = quantise(x)                             # float32; the values that the integers represent
    quantise.to_edit()                          # the edit with the scales as they are now

The integers are clamp(round(x / scale) + zero point, low, high), half to even, as in ONNX. The gradient passes
to elements within the range. The gradient of a scale is that of Esser and others, Learned Step Size
Quantization (2020).
"""
from __future__ import annotations

import base64
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy
import torch
from torch import nn

from mscgym.torch.strategy import read_numbers

Edit = Mapping[str, Any]

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


def range_of(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The scale and the zero point, a float32, of a dynamic quantisation of x, float32. An empty range has the scale 1.

    >>> range_of(torch.tensor([-1.0, 50.0]))
    (tensor(0.2000), tensor(5.))
    """
    low, high = (bound.clamp(**{side: 0}) for bound, side in zip(torch.aminmax(x), ("max", "min")))
    scale = torch.where(high > low, (high - low) / 255, torch.ones_like(high))
    return scale, torch.round(-low / scale).clamp(0, 255)


class Narrow(nn.Module):
    """Rounds to the nearest number of a narrower float type, limited to its largest."""

    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()
        self.dtype = dtype
        self.edit: dict[str, Any] = {}

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return _Cast.apply(x, self.dtype)  # type: ignore[no-any-return]

    def to_edit(self, weight: torch.Tensor | None = None) -> dict[str, Any]:
        """The edit, without the method by which its numbers were found."""
        return _without_origin(self.edit)

    def extra_repr(self) -> str:
        return str(self.dtype).removeprefix("torch.")


class FakeQuantize(nn.Module):
    """(clamp(round(x / scale) + zero point, low, high) - zero point) * scale.

    `scale` [n] is a parameter if it `learns`, and a buffer otherwise; `zero_point` [n] is a buffer. n is 1, the
    length of the axis, or the number of groups. `axis`: the axis of x along which scales differ; -1: one scale.
    With `group_size`, each group of so many elements along `axis`, or along `group_axes` axes from there as one,
    has a scale. The gradient of a scale is divided by the square root of the number of elements with this scale,
    times the largest integer. The samples of an activation do not count; all elements of a weight do (`is_weight`).
    """

    scale: torch.Tensor
    zero_point: torch.Tensor

    def __init__(self, n: int, low: int, high: int, axis: int = -1, group_size: int = 0, group_axes: int = 1,
                 learns: bool = False, is_weight: bool = False) -> None:
        super().__init__()
        if learns:
            self.scale = nn.Parameter(torch.ones(n))
        else:
            self.register_buffer("scale", torch.ones(n))
        self.register_buffer("zero_point", torch.zeros(n))
        self.low, self.high, self.axis = low, high, axis
        self.group_size, self.group_axes = group_size, group_axes
        self.is_weight = is_weight
        self.edit: dict[str, Any] = {}

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
        scale = self.scale.abs().clamp_min(_LEAST_SCALE)
        n_elements = x.numel() // len(scale) // (1 if self.is_weight or x.ndim == 0 else max(1, len(x)))
        factor = 1 / math.sqrt(max(1, n_elements) * max(1, self.high))
        return fake_quantize(x, self._spread(scale, x.shape), self._spread(self.zero_point, x.shape), self.low,
                             self.high, factor)

    def fit(self, x: torch.Tensor) -> None:
        """Sets each scale to that of least squared error for the elements of x that have it. 41 scales are tried, from
        0.3 to 1.1 times the one that covers all elements. Zero points stay, and so do scales of elements that are all 0.
        """
        with torch.no_grad():
            n, zero = len(self.scale), self._spread(self.zero_point, x.shape)
            index = self._spread(torch.arange(n, device=x.device), x.shape).expand(x.shape).flatten()
            room = torch.where(x > 0, self.high - zero, zero - self.low)
            needed = torch.where(room > 0, x.abs() / room.clamp_min(1), 0).flatten()
            cover = torch.zeros_like(self.scale).scatter_reduce(0, index, needed, "amax")
            fitted, least = self.scale.clone(), torch.full_like(cover, math.inf)
            for factor in torch.linspace(0.3, 1.1, 41).tolist():
                scale = (cover * factor).clamp_min(_LEAST_SCALE)
                y = fake_quantize(x, self._spread(scale, x.shape), zero, self.low, self.high)
                error = torch.zeros_like(cover).scatter_add(0, index, (y - x).square().flatten())
                is_better = (error < least) & (cover > 0)
                fitted, least = torch.where(is_better, scale, fitted), torch.where(is_better, error, least)
            self.scale.copy_(fitted)

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
        """The edit with the present scales and, for a weight, its integers. Without the method by which the edit's
        first numbers were found.
        """
        edit = _without_origin(self.edit)
        edit["scales"] = [float(s) for s in self.scale.detach().abs().clamp_min(_LEAST_SCALE).cpu()]
        edit["zero_points"] = [int(z) for z in self.zero_point.cpu()]
        if weight is not None and self.edit["bits"] <= 8:
            kind = numpy.int8 if self.low < 0 else numpy.uint8
            data = self.integers(weight).cpu().numpy().astype(kind).tobytes()
            edit["integers"] = base64.b64encode(data).decode()
        return edit

    def extra_repr(self) -> str:
        is_learnt = isinstance(self.scale, nn.Parameter)
        return f"{self.low} to {self.high}, axis={self.axis}, scales={len(self.scale)}{', learnt' if is_learnt else ''}"


class DynamicQuantize(nn.Module):
    """(clamp(round(x / scale) + zero point, 0, 255) - zero point) * scale, where scale and zero point follow from the
    tensor, as in ONNX's DynamicQuantizeLinear: its range, extended to contain 0, becomes 0 to 255. The gradient passes.
    """

    def __init__(self) -> None:
        super().__init__()
        self.edit: dict[str, Any] = {}

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scale, zero_point = range_of(x.detach().float())
        return fake_quantize(x, scale, zero_point, 0, 255)

    def to_edit(self, weight: torch.Tensor | None = None) -> dict[str, Any]:
        return dict(self.edit)


class Mask(nn.Module):
    """Holds elements at zero: x times a mask of 0 and 1, before further edits."""

    def __init__(self, shape: Sequence[int], then: nn.Module | None = None) -> None:
        super().__init__()
        self.mask: torch.Tensor
        self.register_buffer("mask", torch.ones(tuple(shape)))
        self.then = then

    def forward(self, x: torch.Tensor) -> Any:
        x = x * self.mask
        return x if self.then is None else self.then(x)


Quantiser = DynamicQuantize | FakeQuantize | Narrow


def from_edit(edit: Edit, learns: bool = False, is_weight: bool = False) -> Quantiser:
    """The module of an edit. `learns`: its scales are parameters."""
    made: Quantiser
    if edit.get("type") == "dynamic":
        made = DynamicQuantize()
    elif "type" in edit:
        made = Narrow(getattr(torch, edit["type"]))
    else:
        scale = torch.from_numpy(read_numbers(edit["scales"], "<f4"))
        zeros = torch.from_numpy(read_numbers(edit["zero_points"], "<i4")).float()
        made = FakeQuantize(len(scale), int(edit["low"]), int(edit["high"]), int(edit["axis"]),
                            int(edit.get("group_size", 0)), int(edit.get("group_axes", 1)), learns, is_weight)
        with torch.no_grad():
            made.scale.copy_(scale)
            made.zero_point.copy_(zeros.expand(len(scale)))
    made.edit = dict(edit)
    return made


def _without_origin(edit: Edit) -> dict[str, Any]:
    """An edit without the method by which its numbers were found."""
    origin = {"observer", "percentile", "range_scale", "rounding", "correct", "symmetric", "shifts", "integers"}
    return {key: value for key, value in edit.items() if key not in origin}
