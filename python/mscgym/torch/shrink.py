"""Removing channels from torch's own layers in place, as the `prune` and `replace` members of a strategy say.

Convolutions, linear layers, normalisations and element-wise parameters become smaller; the modules, their hooks
and their names stay. Optimisers made before hold the old parameters, so make optimisers afterwards.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import nn

from mscgym.graph import Joint
from mscgym.torch.match import Match, MatchError, Weight, along, channel_axis, fold_scale
from mscgym.torch.strategy import read_numbers

_CONVS = (nn.modules.conv._ConvNd,)
_NORMS = (nn.modules.batchnorm._BatchNorm, nn.InstanceNorm1d, nn.InstanceNorm2d, nn.InstanceNorm3d)
_CAN_SHRINK = (*_CONVS, nn.Linear, *_NORMS, nn.PReLU, nn.LayerNorm, nn.Embedding)

Json = Mapping[str, Any]


def _describe(module: nn.Module, path: str) -> str:
    return f"module '{path}' ({type(module).__name__})"


def bias_owner(match: Match, joint: Joint) -> Weight | None:
    """The weight of the layer that a joint is, if the module has it."""
    for role, weight in joint.weights.items():
        if role != "bias" and weight.name in match.weights:
            return match.weights[weight.name]
    return None


def _keep(module: nn.Module, match: Match, groups: Sequence[Json], prunes: Sequence[Json]) -> dict[
        str, dict[int, torch.Tensor]]:
    """For each weight of the graph, the indices that remain along its axes."""
    by_name = {group["name"]: group for group in groups}
    kept: dict[str, dict[int, torch.Tensor]] = {}
    for prune in prunes:
        if len(prune["kept"]) == prune["units"]:
            continue
        group = by_name.get(prune["group"])
        if group is None or group["units"] != prune["units"]:
            raise MatchError(f"the strategy prunes the group '{prune['group']}' of {prune['units']} units, which "
                             f"{match.network.path} does not have: give the model for which the strategy was made")
        units = set(prune["kept"])
        for part in ("makes", "reads", "follows"):
            for axis in group[part]:
                gone = {i for i, u in enumerate(axis["unit_of_index"]) if u >= 0 and u not in units}
                axes = kept.setdefault(axis["weight"], {})
                before = axes.get(axis["axis"], torch.arange(len(axis["unit_of_index"])))
                axes[axis["axis"]] = torch.tensor([i for i in before.tolist() if i not in gone])
    return kept


def _take(module: nn.Module, name: str, axis: int, kept: torch.Tensor) -> None:
    """Keeps the given indices of a parameter or buffer."""
    tensor = getattr(module, name, None)
    if not isinstance(tensor, torch.Tensor) or tensor.ndim <= axis:
        return
    part = tensor.detach().index_select(axis, kept.to(tensor.device)).clone()
    if isinstance(tensor, nn.Parameter):
        setattr(module, name, nn.Parameter(part, tensor.requires_grad))
    else:
        module.register_buffer(name, part, name not in module._non_persistent_buffers_set)


def _take_norm(norm: nn.Module, kept: torch.Tensor) -> None:
    for name in ("weight", "bias", "running_mean", "running_var"):
        _take(norm, name, 0, kept)
    if hasattr(norm, "num_features"):
        norm.num_features = len(kept)  # type: ignore[assignment]


def _set_sizes(module: Any) -> None:
    """Makes the attributes of a layer those of its weight."""
    if isinstance(module, nn.Linear):
        module.out_features, module.in_features = module.weight.shape
    elif isinstance(module, nn.Embedding):
        module.num_embeddings, module.embedding_dim = module.weight.shape
    elif isinstance(module, nn.LayerNorm):
        module.normalized_shape = tuple(module.weight.shape)
    elif isinstance(module, nn.PReLU):
        module.num_parameters = module.weight.numel()


def _set_conv_sizes(module: Any, groups: int) -> None:
    out, into = (1, 0) if isinstance(module, nn.modules.conv._ConvTransposeNd) else (0, 1)
    module.groups = groups
    module.out_channels = module.weight.shape[out] * (groups if out == 1 else 1)
    module.in_channels = module.weight.shape[into] * (groups if into == 1 else 1)


def shrink(module: nn.Module, match: Match, groups: Sequence[Json], prunes: Sequence[Json],
           conv_groups: Mapping[str, int]) -> None:
    """Removes the channels that `prunes` does not keep.

    `groups`: those of `mscgym graph --channels --json`; `conv_groups`: the number of groups of each joint after
    pruning. MatchError names the module if a layer cannot become smaller.
    """
    modules, done = dict(module.named_modules()), set()
    for name, axes in _keep(module, match, groups, prunes).items():
        owners = [joint for joint in match.network.joints for role, weight in joint.weights.items()
                  if weight.name == name and role == "bias" and bias_owner(match, joint)]
        if owners:
            continue  # taken with the layer's weight
        weight = match.weights.get(name)
        if weight is None:
            raise MatchError(f"weight '{name}' of {match.network.path}, which has channels to remove, is not a "
                             "parameter of the module: exclude its group from the search of prune")
        layer = modules[weight.module]
        if not isinstance(layer, _CAN_SHRINK):
            raise MatchError(f"{_describe(layer, weight.module)} cannot become smaller: exclude the group of its "
                             f"weight '{name}' from the search of prune")
        for axis, kept in axes.items():
            own_axis = 1 - axis if weight.is_turned else axis
            if (weight.full_name, own_axis) in done:
                continue
            done.add((weight.full_name, own_axis))
            if isinstance(layer, _NORMS) or weight.name != "weight":
                _take(layer, weight.name, own_axis, kept)
                if hasattr(layer, "num_features"):
                    layer.num_features = len(kept)
                continue
            _take(layer, "weight", own_axis, kept)
            if own_axis == channel_axis(layer) and not isinstance(layer, (nn.PReLU, nn.Embedding)):
                _take(layer, "bias", 0, kept)
                if weight.norm is not None:
                    _take_norm(modules[weight.norm], kept)
            _set_sizes(layer)
    for joint in match.network.joints:
        owner = bias_owner(match, joint)
        if owner is not None and isinstance(modules[owner.module], _CONVS):
            _set_conv_sizes(modules[owner.module], conv_groups.get(joint.name, modules[owner.module].groups))


# ---- New elements -----------------------------------------------------------------------------

def set_weight(module: nn.Module, weight: Weight, value: torch.Tensor) -> None:
    """Makes a parameter such that the folded weight of the graph is `value`."""
    layer = module.get_submodule(weight.module)
    if weight.is_turned:
        value = value.T
    own = getattr(layer, weight.name)
    if weight.norm is not None:
        scale = fold_scale(module.get_submodule(weight.norm)).detach().cpu()
        scale = torch.where(scale == 0, torch.ones_like(scale), scale)
        value = value / along(scale, channel_axis(layer), value.ndim)
    if own.shape != value.shape:
        raise MatchError(f"{_describe(layer, weight.module)}: {weight.name} is {list(own.shape)}, the strategy has "
                         f"{list(value.shape)}: give the model for which the strategy was made")
    with torch.no_grad():
        own.copy_(value)


def set_bias(module: nn.Module, weight: Weight, value: torch.Tensor, is_added: bool = False) -> None:
    """Makes the bias of a layer such that the folded bias of the graph is `value`, or more by `value`."""
    layer: Any = module.get_submodule(weight.module)
    with torch.no_grad():
        if weight.norm is None:
            bias = getattr(layer, weight.bias)
            if bias is None:
                bias = nn.Parameter(torch.zeros_like(value, device=getattr(layer, weight.name).device))
                setattr(layer, weight.bias, bias)
            bias.copy_(value.to(bias) + (bias if is_added else 0))
            return
        norm: Any = module.get_submodule(weight.norm)
        own = layer.bias if layer.bias is not None else torch.zeros_like(norm.running_mean)
        now = (own - norm.running_mean) * fold_scale(norm)
        if norm.bias is None:
            raise MatchError(f"{_describe(norm, weight.norm)} has no bias (affine=False), and the strategy changes "
                             "the bias: make the normalisation with affine=True")
        norm.bias.copy_(norm.bias + value.to(own) if is_added else value.to(own) - now)


def _dead_channels(module: nn.Module, weight: Weight, mask: torch.Tensor) -> torch.Tensor:
    """1 for elements that are zeros only because the normalisation after them multiplies by 0."""
    if weight.norm is None:
        return torch.zeros_like(mask)
    scale = fold_scale(module.get_submodule(weight.norm)).detach().cpu()
    axis = channel_axis(module.get_submodule(weight.module))
    return along((scale == 0).float(), axis, mask.ndim).expand_as(mask)


def replace(module: nn.Module, match: Match, replaced: Sequence[Json]) -> dict[str, torch.Tensor]:
    """Gives weights their new elements. Returns the masks of weights with zeros, by the parameter's full name:
    1 for elements that remain.
    """
    masks = {}
    biases = {weight.name: bias_owner(match, joint) for joint in match.network.joints
              for role, weight in joint.weights.items() if role == "bias"}
    for item in replaced:
        value = torch.from_numpy(read_numbers(item["elements"], "<f4")).reshape(item["shape"])
        name, owner = item["tensor"], biases.get(item["tensor"])
        if owner is not None:
            set_bias(module, owner, value)
        elif name in match.weights:
            weight = match.weights[name]
            set_weight(module, weight, value)
            if value.ndim > 1 and bool((value == 0).any()):
                mask = ((value != 0).T if weight.is_turned else value != 0).float().contiguous()
                masks[weight.full_name] = torch.maximum(mask, _dead_channels(module, weight, mask))
        else:
            raise MatchError(f"weight '{name}' of {match.network.path}, which the strategy replaces, is not a "
                             "parameter of the module: exclude it from the search of prune")
    return masks
