"""Calls of torch functions within a module's forward: naming, recording and changing them.

A call is named by the module that runs it, and by its position there: ("layer1.0", 0, "add", 0) is the first
addition in the first run of layer1.0. Such a name is the same in each forward, in training and in evaluation,
as long as the module calls the same functions of one name in the same order.

    calls = record(module, inputs)                  # every call with its tensors
    with Changes(paths, weights, before, after):    # forward of the same module, with some tensors replaced
        module(*inputs)

Only functions that Python calls are seen. Functions that torch calls inside others are not, except those of
nn.MultiheadAttention, and the products and the softmax of scaled_dot_product_attention, which is computed in steps
here, as in an exported model.
"""
from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import FunctionType
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

Change = Callable[[torch.Tensor], torch.Tensor]


class Place(NamedTuple):
    """The name of a call."""
    module: str
    run: int
    function: str
    number: int

    def __str__(self) -> str:
        run = f" (run {self.run})" if self.run else ""
        return f"{self.function}#{self.number} of {repr(self.module) if self.module else 'the module'}{run}"


class Slot(NamedTuple):
    """A tensor of a call: operand or result `at`, counted among its tensors from 0. Input `at` of the network
    has no place.
    """
    place: Place | None
    at: int
    is_result: bool


@dataclass
class Call:
    """A recorded call. Tensors are copies; `sources` are the operands themselves, to compare identities."""
    place: Place
    operands: list[torch.Tensor]
    sources: list[torch.Tensor]
    results: list[torch.Tensor]
    result_sources: list[torch.Tensor]


def tensors_of(value: Any) -> list[torch.Tensor]:
    """The tensors in nested tuples, lists and dicts, in order."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, Mapping):
        return [t for item in value.values() for t in tensors_of(item)]
    if isinstance(value, (tuple, list)):
        return [t for item in value for t in tensors_of(item)]
    return []


def replace_tensors(value: Any, replace: Callable[[int, torch.Tensor], torch.Tensor],
                    count: list[int] | None = None) -> Any:
    """The same nested value with each tensor t, the i-th, replaced by replace(i, t)."""
    count = count if count is not None else [0]
    if isinstance(value, torch.Tensor):
        count[0] += 1
        return replace(count[0] - 1, value)
    if isinstance(value, dict):
        return {key: replace_tensors(item, replace, count) for key, item in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(replace_tensors(item, replace, count) for item in value))
    if isinstance(value, (tuple, list)) and type(value) in (tuple, list, torch.Size):
        return type(value)(replace_tensors(item, replace, count) for item in value)
    return value


def attention_in_steps(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor,
                       attn_mask: torch.Tensor | None = None, dropout_p: float = 0.0, is_causal: bool = False,
                       scale: float | None = None, enable_gqa: bool = False) -> torch.Tensor:
    """scaled_dot_product_attention, as torch's documentation and its ONNX exporter spell it."""
    factor = math.sqrt(1 / math.sqrt(query.shape[-1]) if scale is None else scale)
    if enable_gqa:
        key = key.repeat_interleave(query.shape[-3] // key.shape[-3], -3)
        value = value.repeat_interleave(query.shape[-3] // value.shape[-3], -3)
    if is_causal:
        attn_mask = torch.ones(query.shape[-2], key.shape[-2], dtype=torch.bool, device=query.device).tril()
    scores = torch.matmul(torch.mul(query, factor), torch.mul(key.transpose(-2, -1), factor))
    if attn_mask is not None:
        if attn_mask.dtype == torch.bool:
            attn_mask = torch.zeros_like(attn_mask, dtype=scores.dtype).masked_fill(~attn_mask, float("-inf"))
        scores = torch.add(scores, attn_mask)
    shares = torch.softmax(scores, -1)
    return torch.matmul(torch.dropout(shares, dropout_p, dropout_p > 0), value)


# torch's own function of nn.MultiheadAttention, whose calls a mode sees one by one: otherwise it asks the mode first.
_of_heads = nn.functional.multi_head_attention_forward
heads_in_steps = FunctionType(_of_heads.__code__, {**vars(nn.functional), "has_torch_function": lambda tensors: False},
                              _of_heads.__name__, _of_heads.__defaults__)
_IN_STEPS: dict[Any, Callable[..., Any]] = {nn.functional.scaled_dot_product_attention: attention_in_steps,
                                            _of_heads: heads_in_steps}


class _Frame(NamedTuple):
    module: str
    run: int
    functions: Counter[str]


class _Mode(TorchFunctionMode):
    """Names each call. Hooks on all modules report which module runs."""

    def __init__(self, root: nn.Module):
        super().__init__()
        self.root = root
        self.runs: Counter[str] = Counter()
        self.frames = [_Frame("", 0, Counter())]

    def __enter__(self) -> Any:
        # In evaluation torch computes layers with attention by one function, unless it is told not to.
        self.fast = torch.backends.mha.get_fastpath_enabled()
        torch.backends.mha.set_fastpath_enabled(False)
        self.hooks = []
        for path, module in self.root.named_modules():
            self.hooks.append(module.register_forward_pre_hook(self._enter(path)))
            self.hooks.append(module.register_forward_hook(self._leave, always_call=True))
        return super().__enter__()  # type: ignore[no-untyped-call]

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)  # type: ignore[no-untyped-call]
        torch.backends.mha.set_fastpath_enabled(self.fast)
        for hook in self.hooks:
            hook.remove()

    def _enter(self, path: str) -> Callable[..., None]:
        def enter(module: nn.Module, args: Any) -> None:
            self.frames.append(_Frame(path, self.runs[path], Counter()))
            self.runs[path] += 1
        return enter

    def _leave(self, module: nn.Module, args: Any, result: Any) -> None:
        self.frames.pop()

    def name(self, function: Any) -> Place:
        frame, name = self.frames[-1], getattr(function, "__name__", str(function))
        frame.functions[name] += 1
        return Place(frame.module, frame.run, name, frame.functions[name] - 1)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if getattr(func, "__name__", "") in ("__get__", "__set__"):  # properties, such as shape
            return func(*args, **kwargs)
        if func in _IN_STEPS:
            super().__enter__()  # type: ignore[no-untyped-call]
            try:
                return _IN_STEPS[func](*args, **kwargs)
            finally:
                super().__exit__(None, None, None)  # type: ignore[no-untyped-call]
        return self.call(self.name(func), func, args, kwargs)

    def call(self, place: Place, func: Any, args: Any, kwargs: Any) -> Any:
        raise NotImplementedError


class _Recorder(_Mode):
    def __init__(self, root: nn.Module):
        super().__init__(root)
        self.calls: list[Call] = []

    def call(self, place: Place, func: Any, args: Any, kwargs: Any) -> Any:
        sources = tensors_of((args, kwargs))
        operands = [t.detach().clone() for t in sources]
        result = func(*args, **kwargs)
        results = tensors_of(result)
        if results:
            self.calls.append(Call(place, operands, sources, [t.detach().clone() for t in results], results))
        return result


def record(module: nn.Module, args: Sequence[Any]) -> tuple[list[Call], Any]:
    """The calls of one evaluation of the module, and its result. The module's mode is restored."""
    modes = {m: m.training for m in module.modules()}
    module.eval()
    try:
        with torch.no_grad(), _Recorder(module) as recorder:
            result = module(*args)
    finally:
        for m, mode in modes.items():
            m.training = mode
    return recorder.calls, result


class Changes(_Mode):
    """Within this context, the module's calls get other tensors.

    `weights` maps the identity of a parameter to what replaces it, computed once; `operands` and `results`
    map a place to changes of its operands and results by index.
    """

    def __init__(self, root: nn.Module, weights: Mapping[int, Callable[[], torch.Tensor]],
                 operands: Mapping[Place, Mapping[int, Change]], results: Mapping[Place, Mapping[int, Change]]):
        super().__init__(root)
        self.weights, self.operands, self.results = weights, operands, results
        self.computed: dict[int, torch.Tensor] = {}

    def _weight(self, tensor: torch.Tensor) -> torch.Tensor:
        key = id(tensor)
        if key not in self.weights:
            return tensor
        if key not in self.computed:
            self.computed[key] = self.weights[key]()
        return self.computed[key]

    def call(self, place: Place, func: Any, args: Any, kwargs: Any) -> Any:
        changes = self.operands.get(place, {})

        def replace(i: int, tensor: torch.Tensor) -> torch.Tensor:
            tensor = self._weight(tensor)
            return changes[i](tensor) if i in changes else tensor

        args, kwargs = replace_tensors((args, kwargs), replace)
        result = func(*args, **kwargs)
        after = self.results.get(place)
        if after:
            result = replace_tensors(result, lambda i, t: after[i](t) if i in after else t)
        return result
