"""Which tensors and weights of a model file are which of a torch module: found by their values.

Names in a model file depend on the exporter. So the network in the file and the module compute the same inputs,
and tensors are equal if their values are. Batch normalisation may be folded into a convolution in the file; the
module keeps it. If several tensors of the module have the same values, the first that is free is taken, in the
order of the file's joints.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from mscgym.torch.calls import Call, Place, Slot, record, tensors_of
from mscgym.torch.program import Network, compute, varying

_TOLERANCE = 1e-3  # relative root mean square
_NORMS = (nn.modules.batchnorm._BatchNorm,)


class MatchError(ValueError):
    """A tensor or weight of the model file that the module does not have."""


@dataclass
class Weight:
    """A weight of a model file as a parameter or buffer of the module."""
    module: str            # path in named_modules()
    name: str              # "weight", "bias", "running_mean", ...
    is_turned: bool        # transposed in the file
    norm: str | None       # path of the batch normalisation that is folded into it

    @property
    def full_name(self) -> str:
        return f"{self.module}.{self.name}" if self.module else self.name

    @property
    def bias(self) -> str:
        """The name of the bias in the layer: "bias", or "in_proj_bias" of an attention."""
        return self.name.replace("weight", "bias")


@dataclass
class Match:
    network: Network
    calls: list[Call]
    results: dict[str, Slot]       # where the module computes a tensor, by the tensor's name in the graph
    weights: dict[str, Weight]     # by the weight's name in the graph
    joints: dict[str, list[Call]]  # calls of a joint: those that read its weight, or compute its output
    values: dict[str, torch.Tensor]

    def result(self, tensor: str) -> Slot:
        """Where the module computes a tensor."""
        if tensor not in self.results:
            raise MatchError(f"tensor '{tensor}' of {self.network.path} is not computed by a call in the module: "
                             "exclude it from the search, or call the functions that compute it one by one")
        return self.results[tensor]

    def operands(self, tensor: str, joint: str) -> list[Slot]:
        """Where calls of a joint read a tensor."""
        value, slots = self.values.get(tensor, torch.empty(0)), []
        for made in self.joints.get(joint, []):
            for i, operand in enumerate(made.operands):
                if operand.numel() == value.numel() and _is_close(operand.reshape(value.shape), value):
                    slots.append(Slot(made.place, i, False))
        if not slots:
            raise MatchError(f"joint '{joint}' of {self.network.path}, which reads '{tensor}', is not a call in the "
                             "module: exclude the tensor from the search, or call the joint's function itself")
        return slots


def _is_close(a: torch.Tensor, b: torch.Tensor, tolerance: float = _TOLERANCE) -> bool:
    return _distance(a, b) <= tolerance


def _distance(a: torch.Tensor, b: torch.Tensor) -> float:
    """Root mean square of the difference, relative to that of b; infinite for other shapes and types."""
    if a.shape != b.shape or not a.is_floating_point():
        return float("inf")
    if a.numel() == 0:
        return 0.0
    a, b = a.double(), b.double()
    size = float(b.square().mean().sqrt())
    distance = float((a - b).square().mean().sqrt())
    return distance / size if size > 0 else (0.0 if distance == 0 else float("inf"))


def match(module: nn.Module, args: Sequence[torch.Tensor], network: Network, folder: str) -> Match:
    """Matches a module on the CPU with a model file of the same float network.

    `args`: the module's inputs, in the order of the file's. MatchError if outputs differ.
    """
    calls, outputs = record(module, args)
    if len(args) != len(network.inputs):
        raise MatchError(f"{network.path} has {len(network.inputs)} inputs, the module was given {len(args)}")
    feeds = {name: a.numpy() for name, a in zip(network.inputs, args, strict=True)}
    arrays = compute(network, feeds, varying(network, feeds, folder), folder)
    values = {name: torch.from_numpy(array.copy()) for name, array in arrays.items()}
    for name, out in zip(network.outputs, tensors_of(outputs), strict=False):
        if name in values and _distance(values[name], out.detach()) > _TOLERANCE:
            raise MatchError(f"output '{name}' of {network.path} differs from the module's by "
                             f"{_distance(values[name], out.detach()):.2g} of its size: give the model file that was "
                             "exported from this module with these weights")
    results = _match_results(network, values, calls, args)
    for i, joint in enumerate(j for j in network.joints if j.optype == "input"):
        results[joint.outputs[0].name] = Slot(None, i, True)
        values[joint.outputs[0].name] = args[i]
    weights = _match_weights(module, network, calls)
    return Match(network, calls, results, weights, _match_joints(module, network, calls, results, weights), values)


def _match_results(network: Network, values: dict[str, torch.Tensor], calls: list[Call],
                   args: Sequence[torch.Tensor]) -> dict[str, Slot]:
    free: dict[tuple[int, ...], list[tuple[Slot, torch.Tensor]]] = {}
    for made in calls:
        for i, result in enumerate(made.results):
            if result.is_floating_point():
                free.setdefault(tuple(result.shape), []).append((Slot(made.place, i, True), result))
    found = {}
    for name in network.tensors:
        value = values.get(name)
        if value is None or not value.is_floating_point():
            continue
        candidates = free.get(tuple(value.shape), [])
        distances = [_distance(result, value) for _, result in candidates]
        least = min(distances, default=float("inf"))
        if least <= _TOLERANCE:
            chosen = next(i for i, d in enumerate(distances) if d <= max(10 * least, 1e-6))
            found[name] = candidates.pop(chosen)[0]
    return found


# ---- Weights ----------------------------------------------------------------------------------

def fold_scale(norm: Any) -> torch.Tensor:
    """The factors [channels] by which a batch normalisation in evaluation multiplies."""
    variance: torch.Tensor = norm.running_var
    gain: torch.Tensor = norm.weight if norm.weight is not None else torch.ones_like(variance)
    return gain / torch.sqrt(variance + float(norm.eps))


def channel_axis(module: nn.Module) -> int:
    """The axis of a layer's weight along which its outputs are."""
    return 1 if isinstance(module, nn.modules.conv._ConvTransposeNd) else 0


def along(factors: torch.Tensor, axis: int, n_dims: int) -> torch.Tensor:
    """Factors of channels in a shape that broadcasts to a weight."""
    return factors.reshape([-1 if i == axis else 1 for i in range(n_dims)])


def _norms_after(module: nn.Module, calls: list[Call]) -> dict[int, str]:
    """The batch normalisation that alone reads the result of a layer, by the identity of the layer's weight."""
    modules = dict(module.named_modules())
    readers: dict[int, list[Call]] = {}
    for made in calls:
        for source in made.sources:
            readers.setdefault(id(source), []).append(made)
    found = {}
    for made in calls:
        if not made.result_sources:
            continue
        after = readers.get(id(made.result_sources[0]), [])
        if len(after) == 1 and isinstance(modules.get(after[0].place.module), _NORMS):
            for source in made.sources:
                if isinstance(source, nn.Parameter) and source.ndim > 1:
                    found[id(source)] = after[0].place.module
    return found


def _match_weights(module: nn.Module, network: Network, calls: list[Call]) -> dict[str, Weight]:
    modules = dict(module.named_modules())
    norms = _norms_after(module, calls)
    own: dict[int, list[tuple[str, torch.Tensor]]] = {}
    for full, tensor in [*module.named_parameters(), *module.named_buffers()]:
        if tensor.is_floating_point() and tensor.ndim:
            own.setdefault(tensor.numel(), []).append((full, tensor.detach()))
    parameters = dict(module.named_parameters())
    is_folded = all(joint.optype != "nn.batch_norm" for joint in network.joints)
    found: dict[str, Weight] = {}
    for name, array in network.weights.items():
        value = torch.from_numpy(array.copy())
        if not value.is_floating_point() or value.ndim == 0:
            continue
        candidates = sorted(own.get(value.numel(), []), key=lambda item: item[0] != name)
        for full, tensor in candidates:
            path, _, part = full.rpartition(".")
            layer, norm = modules[path], norms.get(id(parameters.get(full)))
            forms: list[tuple[torch.Tensor, float, str | None]] = [(tensor, 1e-5, None)]
            if norm is not None:
                folded = tensor * along(fold_scale(modules[norm]).detach(), channel_axis(layer), tensor.ndim)
                # An untrained normalisation changes nothing, so both forms may fit.
                forms.insert(0 if is_folded else 1, (folded, 1e-4, norm))
            for form, tolerance, of in forms:
                is_turned = not _is_close(value, form, tolerance)
                if name not in found and (not is_turned or (value.ndim == 2 and _is_close(value.T, form, tolerance))):
                    found[name] = Weight(path, part, is_turned, of)
            if name in found:
                break
    return found


def _match_joints(module: nn.Module, network: Network, calls: list[Call], results: dict[str, Slot],
                  weights: dict[str, Weight]) -> dict[str, list[Call]]:
    parameters = dict(module.named_parameters())
    by_place: dict[Place | None, Call] = {made.place: made for made in calls}
    found: dict[str, list[Call]] = {}
    for joint in network.joints:
        names = [weight.name for role, weight in joint.weights.items() if role != "bias"]
        own = {id(parameters[weights[n].full_name]) for n in names
               if n in weights and weights[n].full_name in parameters}
        made = [c for c in calls if own & {id(source) for source in c.sources}]
        slot = results.get(joint.outputs[0].name) if joint.outputs else None
        if not made and slot is not None and slot.place in by_place:
            made = [by_place[slot.place]]
        if made:
            found[joint.name] = made
    return found
