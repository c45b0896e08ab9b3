"""Edits of tensors while a module is trained: fake quantisation, narrow floats and masks.

The forward pass computes what the compressed model computes; gradients pass the rounding unchanged, and are zero beyond
the range of the integers.
"""
from __future__ import annotations

from typing import Any, Sequence

import torch
from torch import nn

Tensor = torch.Tensor


def _rounded(x: Tensor) -> Tensor:
    return x + (torch.round(x) - x).detach()


class FakeQuantize(nn.Module):
    """(clamp(round(x / scale) + zero point, low, high) - zero point) * scale.

    `axis`: the axis of x along which scales differ; -1: one scale. With `group_size`, each group of so many elements
    along `axis`, or along `group_axes` axes from there as one, has a scale. `learns` makes the scale a parameter.
    """

    def __init__(self, n: int, low: int, high: int, axis: int = -1, group_size: int = 0, group_axes: int = 1,
                 learns: bool = False) -> None:
        super().__init__()
        scale = torch.ones(n)
        self.scale: Tensor
        self.zero_point: Tensor
        if learns:
            self.scale = nn.Parameter(scale)
        else:
            self.register_buffer("scale", scale)
        self.register_buffer("zero_point", torch.zeros(n))
        self.low, self.high, self.axis = low, high, axis
        self.group_size, self.group_axes = group_size, group_axes

    def _quantise(self, x: Tensor, shape: Sequence[int]) -> Tensor:
        scale, zero = self.scale.reshape(*shape), self.zero_point.reshape(*shape)
        return (torch.clamp(_rounded(x / scale) + zero, self.low, self.high) - zero) * scale

    def forward(self, x: Tensor) -> Tensor:
        if self.axis < 0:
            return self._quantise(x, [1] * x.dim())
        if not self.group_size:
            return self._quantise(x, [-1 if i == self.axis else 1 for i in range(x.dim())])
        first, last = self.axis, self.axis + self.group_axes
        before, after = x.shape[:first].numel(), x.shape[last:].numel()
        flat = x.reshape(before, -1, after)
        n, missing = flat.shape[1], -flat.shape[1] % self.group_size
        flat = nn.functional.pad(flat, (0, 0, 0, missing)).reshape(before, -1, self.group_size, after)
        flat = self._quantise(flat, [before, flat.shape[1], 1, after]).reshape(before, -1, after)
        return flat[:, :n].reshape(x.shape)

    def extra_repr(self) -> str:
        return f"{self.low} to {self.high}, axis={self.axis}"


class Narrow(nn.Module):
    """Rounds to the nearest number of a narrower float type, limited to its largest."""

    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()
        self.dtype = dtype

    def forward(self, x: Tensor) -> Tensor:
        most = torch.finfo(self.dtype).max
        return x + (torch.clamp(x, -most, most).to(self.dtype).to(x.dtype) - x).detach()


class Mask(nn.Module):
    """Holds elements at zero: x times a mask of 0 and 1, before further edits."""

    def __init__(self, shape: Sequence[int], then: nn.Module | None = None) -> None:
        super().__init__()
        self.mask: Tensor
        self.register_buffer("mask", torch.ones(tuple(shape)))
        self.then = then

    def forward(self, x: Tensor) -> Any:
        x = x * self.mask
        return x if self.then is None else self.then(x)
