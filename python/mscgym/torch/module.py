"""What generated modules are made of: a base class that has layers under the names of the graph, and a few functions.

A generated module is a `GraphModule`. Its layers, parameters and buffers have the names of the graph's weights, so its
`state_dict` has the keys of the module from which the graph was made. A part of a name that is a number is an index, as
in torch's own containers: `self.layer1[0].conv1`.
"""
from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Sequence

import torch
from torch import nn
from torch.nn import functional

from mscgym.graph import GraphError
from mscgym.safetensors import read_safetensors
from mscgym.torch.fake_quantize import range_of

Tensor = torch.Tensor


class Scope(nn.Module):
    """A module that only has children."""

    def __getitem__(self, name: int | str) -> Any:
        return getattr(self, str(name))


class GraphModule(Scope):
    """The base of generated modules."""

    OUTPUTS: Sequence[str] = ()  # the names that the outputs have in the graph

    def _scope(self, names: Sequence[str]) -> nn.Module:
        scope: nn.Module = self
        for name in names:
            if name not in scope._modules:
                scope.add_module(name, Scope())
            scope = scope._modules[name] or scope
        return scope

    def put(self, path: str, module: nn.Module) -> None:
        """Adds a layer under its name in the graph, such as "layer1.0.conv1"."""
        *names, last = path.split(".")
        self._scope(names).add_module(last, module)

    def put_parameter(self, path: str, shape: Sequence[int]) -> None:
        *names, last = path.split(".")
        self._scope(names).register_parameter(last, nn.Parameter(torch.zeros(tuple(shape))))

    def put_buffer(self, path: str, shape: Sequence[int], dtype: torch.dtype = torch.float32) -> None:
        *names, last = path.split(".")
        self._scope(names).register_buffer(last, torch.zeros(tuple(shape), dtype=dtype))

    def put_constant(self, path: str, shape: Sequence[int], dtype: torch.dtype = torch.float32) -> None:
        """Adds a constant that the weights' file has, but not the state dict."""
        self.register_buffer(path, torch.zeros(tuple(shape), dtype=dtype), persistent=False)

    def load_weights(self, path: str | Path) -> None:
        """Reads parameters and buffers by name. GraphError if the file lacks one, or has one of another shape."""
        arrays = read_safetensors(str(path))
        for name, tensor in [*self.named_parameters(), *self.named_buffers()]:
            if name not in arrays:
                if name.endswith("num_batches_tracked"):
                    continue
                raise GraphError(f"{path}: the file has no elements for '{name}'")
            if list(arrays[name].shape) != list(tensor.shape):
                raise GraphError(f"{path}: '{name}' has the shape {list(arrays[name].shape)}, expected "
                                 f"{list(tensor.shape)}")
            with torch.no_grad():
                tensor.copy_(torch.from_numpy(arrays[name]))


def compare(module: nn.Module, path: str | Path, tolerance: float = 1e-4) -> int:
    """Runs a module on recorded inputs, and prints by how much its outputs differ from the recorded ones.

    The file has arrays "input/NAME" and "output/NUMBER". Returns 1 if an output differs by more than `tolerance` times
    the largest magnitude of the recorded output.
    """
    if not Path(path).exists():
        print(f"{path}: no recorded outputs")
        return 0
    arrays = {name: torch.from_numpy(array) for name, array in read_safetensors(str(path)).items()}
    module.eval()
    with torch.no_grad():
        result = module(**{name[6:]: array for name, array in arrays.items() if name.startswith("input/")})
    found, is_fine = result if isinstance(result, tuple) else (result,), True
    for i, value in enumerate(found):
        expected = arrays[f"output/{i}"]
        most = float(expected[expected.isfinite()].abs().max()) if expected.numel() else 0.0
        worst = float((value - expected).abs().nan_to_num().max()) if expected.numel() else 0.0
        is_fine = is_fine and value.shape == expected.shape and worst <= tolerance * (most or 1.0)
        print(f"output {i}: {list(value.shape)}, largest difference {worst:.3g} of {most:.3g}")
    return 0 if is_fine else 1


def main(module: nn.Module, folder: Path) -> None:
    """The test of a generated module: `python3 main.py`."""
    sys.exit(compare(module, folder / "baseline.safetensors"))


# ---- Operators that need more than an expression -------------------------------------------------------------------

def take(x: Tensor, indices: Tensor, axis: int) -> Tensor:
    """The parts of x at `indices` along the axis; negative indices count from the end."""
    axis %= x.dim()
    indices = torch.where(indices < 0, indices + x.shape[axis], indices)
    picked = x.index_select(axis, indices.reshape(-1).long())
    return picked.reshape(*x.shape[:axis], *indices.shape, *x.shape[axis + 1:])


def gather_nd(x: Tensor, indices: Tensor) -> Tensor:
    """x at the points of `indices` [..., n], each of which has an index for the first n axes."""
    return x[tuple(indices.unbind(-1))]


def cut(x: Tensor, begin: Any, end: Any, axes: Sequence[int], strides: Sequence[int]) -> Tensor:
    """A slice along some axes. A negative stride reverses the axis first."""
    begin, end = ([int(item) for item in bound] for bound in (begin, end))
    for i, axis in enumerate(axes or range(len(begin))):
        stride = strides[i] if strides else 1
        part = range(*slice(begin[i], end[i], stride).indices(x.shape[axis])) if stride > 0 else None
        if part is None:
            first, last = begin[i], end[i]
            last = None if last < -x.shape[axis] else last
            rows = [*range(x.shape[axis])][first:last:stride]
            x = x.index_select(axis, torch.tensor(rows, dtype=torch.int64, device=x.device))
        else:
            x = x.narrow(axis, part.start, max(part.stop - part.start, 0)) if stride == 1 else x.index_select(
                axis, torch.tensor([*part], dtype=torch.int64, device=x.device))
    return x


def expand(x: Tensor, shape: Any) -> Tensor:
    """Broadcasts x and `shape` to each other."""
    sizes = tuple(int(item) for item in shape)
    return x.expand(torch.broadcast_shapes(x.shape, sizes))  # type: ignore[no-untyped-call]


def lengths(x: Tensor, start: int = 0, end: int | None = None) -> Tensor:
    """The shape of x, or a part of it, as a tensor."""
    return torch.tensor(x.shape[start:end], dtype=torch.int64)


def _along(part: Tensor, x: Tensor, axis: int, block: int) -> Tensor:
    """Scales or zero points of x, as float32 that broadcasts to x: one, or one per index or block of the axis."""
    if part.numel() == 1:
        return part.float().reshape(())
    if block:
        return part.float().repeat_interleave(block, axis).narrow(axis, 0, x.shape[axis])
    return part.float().reshape([-1 if i == axis % x.dim() else 1 for i in range(x.dim())])


def quantize(x: Tensor, scale: Tensor, zero: Tensor | None, low: int, high: int, axis: int = 1,
             block: int = 0) -> Tensor:
    """The integers that represent x, as float32. Gradients pass the rounding, and are zero beyond the range."""
    levels = x.float() / _along(scale, x, axis, block)
    levels = levels + (torch.round(levels) - levels).detach()
    return torch.clamp(levels if zero is None else levels + _along(zero, x, axis, block), low, high)


def dequantize(x: Tensor, scale: Tensor, zero: Tensor | None = None, axis: int = 1, block: int = 0) -> Tensor:
    """What the integers x represent, in the type of the scale."""
    levels = x.float() if zero is None else x.float() - _along(zero, x, axis, block)
    return (levels * _along(scale, x, axis, block)).to(scale.dtype)


def dynamic_quantize(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The bytes that represent x, as float32, their scale, and their zero point, as float32. Gradients pass the
    rounding."""
    scale, zero = range_of(x.detach())
    return quantize(x, scale, zero, 0, 255), scale, zero


def shifted(integers: Tensor, zero: Tensor | None = None) -> Tensor:
    """Integers less their zero point, as float64, which holds every sum of products of bytes."""
    return integers.double() if zero is None else integers.double() - zero.double()


def whole(items: Any) -> list[int]:
    """The numbers of a tensor of integers."""
    return [int(item) for item in items]


_GATES = {"lstm": [0, 2, 3, 1], "gru": [1, 0, 2], "rnn_tanh": [0], "rnn_relu": [0]}


def recurrent(kind: str, x: Tensor, weight: Tensor, recurrence: Tensor, bias: Tensor | None,
              hidden: Tensor | None = None, cell: Tensor | None = None, is_flat: bool = False) -> tuple[Tensor, ...]:
    """A recurrent layer as its joint describes it: x [time, batch, features], weights with a first axis of directions.

    Returns the outputs [time, directions, batch, size], or [time, batch, directions * size] if `is_flat`, the last
    hidden state and, for an LSTM, the last cell state.
    """
    order, n_ways, size = _GATES[kind], weight.shape[0], recurrence.shape[2]

    def gates(part: Tensor) -> Tensor:
        pieces = part.split(size)  # type: ignore[no-untyped-call]
        return torch.cat([pieces[i] for i in order])
    parameters = []
    for way in range(n_ways):
        parameters += [gates(weight[way]), gates(recurrence[way])]
        if bias is not None:
            parameters += [gates(half) for half in bias[way].chunk(2)]
    zeros = x.new_zeros(n_ways, x.shape[1], size)
    states: Any = hidden.contiguous() if hidden is not None else zeros
    if kind == "lstm":
        states = (states, cell.contiguous() if cell is not None else zeros)
    functions: dict[str, Any] = {"lstm": torch.lstm, "gru": torch.gru, "rnn_tanh": torch.rnn_tanh,
                                 "rnn_relu": torch.rnn_relu}
    y, *last = functions[kind](x, states, parameters, bias is not None, 1, 0.0, False, n_ways == 2, False)
    return (y if is_flat else y.unflatten(2, (n_ways, size)).transpose(1, 2), *last)


__all__ = ["GraphModule", "compare", "cut", "dequantize", "dynamic_quantize", "expand", "functional", "gather_nd",
           "lengths", "main", "nn", "quantize", "recurrent", "shifted", "take", "torch", "whole"]
