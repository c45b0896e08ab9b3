"""Label-free training of a strategy's integers and scales, block by block.

    refined = refine(graph, strategy, samples, held_back, Options(seed=0))
    refined.strategy        # the same edits with new scales, integers and shifts

Each block of the quantised network (blocks.py) is fitted to the outputs of the float block: it reads what the quantised
blocks before it make, its targets are the outputs of the float network, its loss is the mean squared error. At the end
the whole network is trained as one block. Rounding has straight-through gradients. The idea of blocks is that of BRECQ
(Li and others 2021); that of activations which are quantised only in part is QDrop's (Wei and others 2022). A block
stays as it was unless the loss of the whole network on held-back samples falls.
"""
from __future__ import annotations

import math
import os
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from mscgym.graph import Graph
from mscgym.torch.blocks import Block, cut
from mscgym.torch.codegen import to_torch
from mscgym.torch.fake_quantize import FakeQuantize
from mscgym.torch.strategy import place_dynamic

Chunk = list[torch.Tensor]              # the inputs of the network for a few samples, or outputs of a block
Stream = list[torch.Tensor | None]      # for each chunk, what a block reads from the block before it
Tell = Callable[[str, float], None]     # what is trained, and the seconds left
_EDGE = 0.499        # how far from its integer a weight may begin, in steps
WHOLE_FROM = 0.7     # share of the time after which the whole network is trained
_LEAST_BIAS = 1e-3   # biases are trained as if they were at least so large


@dataclass
class Options:
    """How long and how to train.

    steps: Training steps of each block, and of the whole network.
    rate: Learning rate of weights, in steps of their integers. It falls to 0 along a cosine.
    scale_rate: The same for scales and biases, relative to them.
    drop: Share of the elements of activations that training leaves unquantised, drawn for each step.
    time_s: Limit of the time in seconds, of which each block gets an equal part; infinite: none.
    seed: Of the order of samples and of the drawn elements.
    """
    steps: int = 300
    rate: float = 0.02
    scale_rate: float = 0.002
    drop: float = 0.0
    time_s: float = math.inf
    seed: int = 0


@dataclass
class Refined:
    """strategy: the edits after training. report: `loss_before` and `loss_after` of the network on the held-back
    samples, `seconds`, and a list `blocks`, each with its `result` (a tensor), `weights` (how many), `steps`,
    `loss_before`, `loss_after` and `kept`.
    """
    strategy: dict[str, Any]
    report: dict[str, Any]


class _Round(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return torch.round(x)

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> Any:
        return grads[0]


class _Integers(nn.Module):
    """A quantised weight: (clamp(round(levels)) - zero point) * scale * exp(gain). `levels` and `gain` are trained.

    A change of the scale changes no integer. The weight begins at the integers of `plan` and, within half a step of
    them, at the float weight `given`. Elements that are 0 in a weight that `is_sparse` stay 0.
    """

    def __init__(self, plan: FakeQuantize, weight: torch.Tensor, given: torch.Tensor, is_sparse: bool) -> None:
        super().__init__()
        self.low, self.high = plan.low, plan.high
        integers, zero = plan.integers(weight), plan._spread(plan.zero_point, weight.shape)
        self.zero_point, self.begin = zero, plan.scale.detach().abs().clone()
        self.spread = plan._spread
        floats = given / self.spread(self.begin, given.shape) + zero
        self.levels = nn.Parameter(torch.minimum(torch.maximum(floats, integers - _EDGE), integers + _EDGE))
        self.gain = nn.Parameter(torch.zeros_like(self.begin))
        self.mask = (integers != zero) if is_sparse else None

    def scale(self) -> torch.Tensor:
        return self.begin * self.gain.exp()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The weight, whatever x is."""
        levels: torch.Tensor = _Round.apply(self.levels)
        integers = levels.clamp(self.low, self.high) - self.zero_point
        weight = integers * self.spread(self.scale(), integers.shape)
        return weight if self.mask is None else weight * self.mask


@dataclass
class _Weight:
    plan: FakeQuantize            # with the edit
    integers: _Integers
    bias: torch.Tensor | None     # of the only joint that reads the weight
    bias_before: torch.Tensor     # in the graph, before any shifts


class _Part:
    """A block as a float and a quantised module."""

    def __init__(self, block: Block, sparse: set[str], folder: str, options: Options,
                 generator: torch.Generator) -> None:
        self.block, self.options, self.generator = block, options, generator
        self.floats = to_torch(block.graph, os.path.join(folder, "float"))
        self.quantised = to_torch(block.graph, os.path.join(folder, "quantised"), strategy=block.strategy,
                                  learn_scales=True)
        self.is_training = False
        self.weights: dict[int, _Weight] = {}
        self.scales: dict[int, FakeQuantize] = {}
        made = self.quantised.edits if block.edits else nn.Module()
        assert isinstance(made, nn.Module)
        modules = list(made.named_children())
        for number, edit, (name, module) in zip(block.edits, block.strategy["edits"], modules, strict=True):
            if not isinstance(module, FakeQuantize):
                continue
            module.edit = dict(edit)
            is_weight = edit["tensor"] in block.graph.arrays
            if not is_weight and options.drop > 0:
                module.register_forward_hook(self._drop)
            if number in block.shared:
                continue
            if not is_weight:
                self.scales[number] = module
            elif edit["bits"] <= 8:
                self.weights[number] = self._weight(module, edit["tensor"] in sparse)
                setattr(made, name, self.weights[number].integers)
        self.groups = self._groups()
        self.trained = [p for group in self.groups for p in group["params"]]
        for p in [*self.quantised.parameters(), *self.trained]:
            p.requires_grad_(False)

    def _drop(self, module: nn.Module, args: Any, result: torch.Tensor) -> torch.Tensor | None:
        if not self.is_training:
            return None
        is_quantised = torch.rand(result.shape, generator=self.generator) >= self.options.drop
        return torch.where(is_quantised, result, args[0])

    def _weight(self, plan: FakeQuantize, is_sparse: bool) -> _Weight:
        name, joints = plan.edit["tensor"], self.block.graph.joints
        own: dict[str, torch.Tensor] = {**dict(self.quantised.named_buffers()),
                                        **dict(self.quantised.named_parameters())}
        given = torch.from_numpy(self.block.graph.arrays[name])
        made = _Integers(plan, own[name], given, is_sparse)
        readers = [joint for joint in joints if any(w.name == name for w in joint.weights.values())]
        bias = readers[0].weights.get("bias") if len(readers) == 1 else None
        if bias is None or sum(w.name == bias.name for joint in joints for w in joint.weights.values()) > 1:
            return _Weight(plan, made, None, torch.empty(0))
        return _Weight(plan, made, own[bias.name], torch.from_numpy(self.block.graph.arrays[bias.name]))

    def _groups(self) -> list[dict[str, Any]]:
        o, groups = self.options, list[dict[str, Any]]()
        for weight in self.weights.values():
            groups += [{"params": [weight.integers.levels]},
                       {"params": [weight.integers.gain], "lr": o.scale_rate}]
            if weight.bias is not None:
                size = max(_LEAST_BIAS, float(weight.bias.detach().abs().mean()))
                groups.append({"params": [weight.bias], "lr": o.scale_rate * size})
        for module in self.scales.values():
            groups.append({"params": [module.scale], "lr": o.scale_rate * float(module.scale.detach().abs().mean())})
        return groups

    def run(self, source: torch.Tensor | None, chunk: Chunk, is_float: bool = False) -> Chunk:
        """The block's outputs."""
        inputs = [chunk[i] for i in self.block.inputs]
        module = self.floats if is_float else self.quantised
        result = module(*(inputs if source is None else [source, *inputs]))
        return list(result) if isinstance(result, tuple) else [result]

    def stream(self, sources: Stream, chunks: list[Chunk], is_float: bool = False) -> list[Chunk]:
        with torch.no_grad():
            return [self.run(source, chunk, is_float) for source, chunk in zip(sources, chunks, strict=True)]

    def edits(self) -> dict[int, dict[str, Any]]:
        """The trained edits by their indices in the strategy."""
        made = {number: module.to_edit() for number, module in self.scales.items()}
        for number, weight in self.weights.items():
            with torch.no_grad():
                weight.plan.scale.copy_(weight.integers.scale())
                made[number] = weight.plan.to_edit(weight.integers(weight.integers.levels))
            if weight.bias is not None:
                made[number]["shifts"] = [float(x) for x in weight.bias - weight.bias_before]
            elif "shifts" in weight.plan.edit:
                made[number]["shifts"] = weight.plan.edit["shifts"]
        return made


def _loss(outputs: Sequence[Chunk], targets: Sequence[Chunk]) -> float:
    """The sum of squared differences over that of squares; the mean over outputs of floats."""
    losses = []
    for made, wanted in zip(zip(*outputs), zip(*targets), strict=True):
        if wanted[0].is_floating_point():
            error = sum(float((y.double() - t.double()).square().sum()) for y, t in zip(made, wanted))
            losses.append(error / max(1e-30, sum(float(t.double().square().sum()) for t in wanted)))
    return sum(losses) / max(1, len(losses))


class _Pass:
    """The training of all blocks in turn."""

    def __init__(self, blocks: Sequence[Block], sparse: set[str], fit: list[Chunk], held: list[Chunk], folder: str,
                 options: Options, generator: torch.Generator, tell: Tell) -> None:
        self.fit, self.held = fit, held
        self.options, self.generator, self.tell = options, generator, tell
        self.parts = [_Part(block, sparse, os.path.join(folder, str(i)), options, generator)
                      for i, block in enumerate(blocks)]
        clean: Stream = [None] * len(held)
        for part in self.parts:
            self.wanted = part.stream(clean, held, is_float=True)
            clean = [out[0] for out in self.wanted]

    def loss_from(self, first: int, sources: Stream) -> float:
        """The loss of the network on the held-back samples, given what the block `first` reads."""
        for part in self.parts[first:]:
            outputs = part.stream(sources, self.held)
            sources = [out[0] for out in outputs]
        return _loss(outputs, self.wanted)

    def run(self, ends: float) -> list[dict[str, Any]]:
        """Trains the blocks until the time `ends`, and returns the report of each."""
        clean: Stream = [None] * len(self.fit)
        fit: Stream = [None] * len(self.fit)
        held: Stream = [None] * len(self.held)
        least, rows = self.loss_from(0, held), list[dict[str, Any]]()
        for i, part in enumerate(self.parts):
            self.name = f"block {i + 1} of {len(self.parts)}" if len(self.parts) > 1 else "the whole network"
            targets = part.stream(clean, self.fit, is_float=True)
            row: dict[str, Any] = {"result": part.block.graph.outputs[0], "weights": len(part.weights), "steps": 0,
                                   "loss_before": least, "loss_after": least, "kept": False}
            for rate in (self.options.rate, 0.0):  # if other integers are worse, only scales and biases
                before = [p.clone() for p in part.trained]
                limit_s = (ends - time.monotonic()) / (len(self.parts) - i)
                if row["kept"] or not part.trained or limit_s <= 0:
                    break
                row["steps"] += self.train(part, fit, clean, targets, limit_s, rate)
                row["loss_after"] = self.loss_from(i, held)
                row["kept"] = row["loss_after"] < least
                for p, old in zip(part.trained, before, strict=True):
                    p.copy_(p if row["kept"] else old)
            least = row["loss_after"] if row["kept"] else least
            rows.append(row)
            clean = [out[0] for out in targets]
            fit = [out[0] for out in part.stream(fit, self.fit)]
            held = [out[0] for out in part.stream(held, self.held)]
        return rows

    def train(self, part: _Part, sources: Stream, clean: Stream, targets: list[Chunk], limit_s: float,
              rate: float) -> int:
        """Trains integers with the given rate, and everything else. Returns the number of steps."""
        o = self.options
        sizes = [max(1e-30, sum(float(t.float().square().mean()) for t in of) / len(of)) for of in zip(*targets)]
        part.is_training = True
        for p in part.trained:
            p.requires_grad_(True)
        optimiser = torch.optim.Adam([dict(group) for group in part.groups])
        rates = [group["lr"] if "lr" in group else rate for group in part.groups]
        began, n, i, order = time.monotonic(), o.steps, 0, list[int]()
        while i < n:
            order = order or torch.randperm(len(targets), generator=self.generator).tolist()
            k = order.pop()
            for group, most in zip(optimiser.param_groups, rates, strict=True):
                group["lr"] = most * 0.5 * (1 + math.cos(math.pi * i / n))
            outputs = part.run(self._mixed(sources[k], clean[k]), self.fit[k])
            losses = [(y - t).square().mean() / size for y, t, size in zip(outputs, targets[k], sizes, strict=True)
                      if t.is_floating_point()]
            optimiser.zero_grad()
            torch.stack(losses).mean().backward()  # type: ignore[no-untyped-call]
            optimiser.step()
            i += 1
            if i == 4 or i % 32 == 0:
                step_s = (time.monotonic() - began) / i
                n = min(n, max(i, int(min(limit_s / step_s, n))))
                self.tell(self.name, (n - i) * step_s)
        part.is_training = False
        for p in part.trained:
            p.requires_grad_(False)
        return i

    def _mixed(self, source: torch.Tensor | None, clean: torch.Tensor | None) -> torch.Tensor | None:
        """What a block reads in training: the quantised network's values, some replaced by the float network's."""
        if source is None or clean is None or self.options.drop == 0:
            return source
        is_quantised = torch.rand(source.shape, generator=self.generator) >= self.options.drop
        return torch.where(is_quantised, source, clean)


def refine(graph: Graph, strategy: Mapping[str, Any], fit: list[Chunk], held: list[Chunk], options: Options,
           tell: Tell = lambda name, left_s: None) -> Refined:
    """Trains the edits of a strategy on samples without labels.

    graph: The graph that the edits are for: with folded normalisations, and after the strategy's pruning.
    fit: The samples to train with, in chunks of one training step, each with a tensor for each input of the graph.
    held: Further samples, on which the network's loss decides what is kept.
    tell: Called now and then.

    GraphError names a joint that has no expression in torch.
    """
    began = time.monotonic()
    generator = torch.Generator().manual_seed(options.seed)
    sparse = {entry["tensor"] for entry in strategy.get("replace", [])}
    members, rows = {**strategy, "edits": list(strategy["edits"])}, list[dict[str, Any]]()
    with tempfile.TemporaryDirectory(prefix="mscgym_refine_") as folder:
        for is_whole in (False, True):
            if is_whole and len(rows) == 1:
                break
            trainer = _Pass(cut(graph, place_dynamic(graph, members), is_whole=is_whole), sparse, fit, held,
                            os.path.join(folder, "whole" if is_whole else "blocks"), options, generator, tell)
            made = trainer.run(began + options.time_s * (1 if is_whole or len(trainer.parts) == 1 else WHOLE_FROM))
            for part, row in zip(trainer.parts, made, strict=True):
                for index, edit in part.edits().items() if row["kept"] else ():
                    members["edits"][index] = edit
            rows += made
    return Refined(members, {"loss_before": rows[0]["loss_before"],
                             "loss_after": rows[-1]["loss_after" if rows[-1]["kept"] else "loss_before"],
                             "seconds": time.monotonic() - began, "blocks": rows})
