"""Making an MSCWrapper: a module and a strategy are matched, the module is pruned, and sites are placed."""
from __future__ import annotations

import copy
import json
import os
import tempfile
import warnings
from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

from mscgym.errors import Error
from mscgym.torch import program
from mscgym.torch.fake_quantize import FakeQuantize, from_edit
from mscgym.torch.match import Match, MatchError, Weight, match
from mscgym.torch.onnx_export import export_onnx
from mscgym.torch.shrink import bias_owner, replace, set_bias, set_weight, shrink
from mscgym.torch.strategy import place_dynamic, read_numbers
from mscgym.torch.wrapper import MSCWrapper, evaluate, relative_difference, site_key


def _load(strategy: Any) -> dict[str, Any]:
    """The members of a strategy."""
    if hasattr(strategy, "strategy"):
        strategy = strategy.strategy
        if strategy is None:
            raise ValueError("the result has no strategy: make it with mscgym.search or mscgym.prune")
    if isinstance(strategy, Mapping):
        return dict(strategy)
    path = os.fspath(strategy)
    with open(path, encoding="utf-8") as file:
        try:
            value = json.load(file)
        except ValueError as error:
            raise ValueError(f"{path}: not a strategy file ({error})") from error
    if not isinstance(value, dict) or value.get("schema") != "mscgym.strategy.1":
        raise ValueError(f"{path}: not a strategy file; give the strategy_file of a search")
    return value


def wrap(module: nn.Module, strategy: Any, inputs: Any, *, model: str | os.PathLike[str] | None = None,
         learn_scales: bool | str = True, check: bool = True) -> MSCWrapper:
    """Compresses a module in place as a strategy says, and returns the wrapper to train.

    module: any torch module; its weights must be those for which the strategy was made. Removed channels are
        removed from its layers, so make optimisers afterwards. Batch normalisation stays.
    strategy: the path of a strategy file (docs/strategy.md), its members as a dict, or a result with the
        attribute `strategy`.
    inputs: example inputs of `forward`: a tensor [samples, ...] or a tuple of tensors. A few samples suffice.
    model: the ONNX file for which the strategy was made. Without it, the module is exported as
        `mscgym.export_onnx` does; this needs onnx and onnxscript.
    learn_scales: whether scales are parameters: True, False, "weights" or "activations" (only these).
    check: compares the wrapper's outputs with those of the program for the same strategy.

    MatchError (a ValueError) names a tensor or weight that the module does not have, and the fix.
    """
    members = _load(strategy)
    if members.get("multiply"):
        raise Error("the strategy multiplies activations (equalize with \"multiply\"), which a module cannot take: "
                    "search without it, or use refine=\"torch\"")
    args = tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)
    with tempfile.TemporaryDirectory(prefix="mscgym_wrap_") as folder:
        path = os.fspath(model or os.path.join(folder, "model.onnx"))
        own = copy.deepcopy(module).cpu().eval()
        args = tuple(a.detach().cpu() for a in args)
        if model is None:
            export_onnx(own, args, path)
        network = program.read_network(path, folder)
        found = match(own, args, network, folder)
        # The copy has parameters of its own; places and names are those of the module.
        wrapper = MSCWrapper(module, members)
        wrapper.example = [a.clone() for a in args]
        wrapper._teacher = [copy.deepcopy(module).eval().requires_grad_(False)]
        _prune(wrapper, found, folder)
        if check and (members.get("prune") or members.get("replace")):
            _check_pruned(wrapper, network, folder)
        _quantise(wrapper, found, learn_scales)
        if check:
            _check(wrapper, network, folder)
    return wrapper


def _prune(wrapper: MSCWrapper, found: Match, folder: str) -> None:
    members = wrapper.strategy
    if members.get("prune"):
        small = os.path.join(folder, "pruned.onnx")
        strategy = os.path.join(folder, "prune.json")
        only = {key: members[key] for key in ("schema", "graph", "weights", "prune", "replace") if key in members}
        with open(strategy, "w", encoding="utf-8") as file:
            json.dump({**only, "edits": []}, file)
        program.export(found.network.path, strategy, small)
        os.makedirs(os.path.join(folder, "pruned"))
        pruned = program.read_network(small, os.path.join(folder, "pruned"))
        by_weight = {weight.name: int(joint.attrs["groups"]) for joint in pruned.joints if "groups" in joint.attrs
                     for weight in joint.weights.values()}
        groups = {joint.name: by_weight[weight.name] for joint in found.network.joints
                  for weight in joint.weights.values() if weight.name in by_weight}
        shrink(wrapper.module, found, program.channels(found.network.path), members["prune"], groups)
    if members.get("replace"):
        for name, mask in replace(wrapper.module, found, members["replace"]).items():
            device = wrapper.module.get_parameter(name).device
            wrapper.masks[site_key(name)] = nn.Parameter(mask.to(device), requires_grad=False)


def _quantise(wrapper: MSCWrapper, found: Match, learn_scales: bool | str) -> None:
    members = wrapper.strategy
    everywhere = members.get("sites") == "all"
    listed = program.sites(found.network.path, members.get("target") if everywhere else None)
    readers = {site["tensor"]: site["joints"] for site in listed}
    owners = {weight.name: owner for joint in found.network.joints for role, weight in joint.weights.items()
              if role != "bias" and (owner := bias_owner(found, joint))}
    for edit in place_dynamic(found.network.graph, members)["edits"]:
        tensor, key = edit["tensor"], site_key(edit["site"])
        is_weight = tensor in found.network.weights
        learns = learn_scales is True or learn_scales == ("weights" if is_weight else "activations")
        quantiser = from_edit(edit, learns, is_weight)
        if is_weight:
            if tensor not in found.weights:
                raise MatchError(f"weight '{tensor}' of {found.network.path} is not a parameter of the module: fix "
                                 "its choice to float in the search")
            weight = found.weights[tensor]
            wrapper.site_weights[key] = weight
            parameter = wrapper.module.get_parameter(weight.full_name)
            if "integers" in edit and isinstance(quantiser, FakeQuantize):
                kind = "i1" if quantiser.low < 0 else "u1"
                shape = wrapper.folded_weight(key, parameter).shape
                integers = torch.from_numpy(read_numbers(edit["integers"], kind)).float().reshape(shape)
                set_weight(wrapper.module, weight, quantiser.represented(integers))
                _drop_filled_mask(wrapper, weight, edit)
            if "shifts" in edit:
                set_bias(wrapper.module, owners[tensor],
                         torch.from_numpy(read_numbers(edit["shifts"], "<f4")), is_added=True)
            quantiser.to(parameter.device)
        else:
            joints = edit.get("joints") or readers.get(tensor, [])
            at_result = everywhere and edit.get("type") != "dynamic"
            wrapper.tensor_slots.setdefault(key, []).extend([found.result(tensor)] if at_result else [
                slot for joint in joints for slot in found.operands(tensor, joint)])
            quantiser.to(next(iter(wrapper.module.parameters())).device)
        wrapper.sites[key] = quantiser
    if everywhere:
        _round_biases(wrapper, found)


def _round_biases(wrapper: MSCWrapper, found: Match) -> None:
    """Finds the biases of joints that the target computes in integers."""
    makers = {tensor.name: joint for joint in found.network.joints for tensor in joint.outputs}
    sites = {edit["tensor"]: site_key(edit["site"]) for edit in wrapper.strategy.get("edits", [])
             if int(edit.get("bits", 32)) <= 8 and not edit.get("group_size")}
    edited = {edit["tensor"] for edit in place_dynamic(found.network.graph, wrapper.strategy)["edits"]}
    for joint in found.network.joints:
        key = next((sites[weight.name] for role, weight in joint.weights.items()
                    if role != "bias" and weight.name in sites), None)
        if "bias" not in joint.weights or key is None or not joint.inputs:
            continue
        tensor = joint.inputs[0]
        while tensor not in edited and tensor in makers and makers[tensor].inputs:
            tensor = makers[tensor].inputs[0]  # through joints that keep the scale, such as pooling
        of = wrapper.site_weights[key]
        layer, bias = (of.norm, "bias") if of.norm is not None else (of.module, of.bias)
        name = f"{layer}.{bias}" if layer else bias
        if tensor in sites and getattr(wrapper.module.get_submodule(layer), bias) is not None:
            wrapper.rounded_biases[name] = (key, sites[tensor])


def _drop_filled_mask(wrapper: MSCWrapper, weight: Weight, edit: Mapping[str, Any]) -> None:
    """Drops the mask of a weight whose zeros the rounding of the strategy has filled."""
    key, name = site_key(weight.full_name), weight.full_name
    if key in wrapper.masks and bool((wrapper.module.get_parameter(name).detach() * (1 - wrapper.masks[key])).any()):
        del wrapper.masks[key]
        warnings.warn(f"'{edit['choice']}' of weight '{edit['tensor']}' fills its zeros, so no mask holds them; search "
                      "with \"rounding\": \"nearest\" to keep them", stacklevel=4)


def _run_strategy(wrapper: MSCWrapper, network: program.Network, folder: str, edits: Any) -> list[torch.Tensor]:
    """What the program computes with the strategy, or with its pruning and other edits."""
    path = os.path.join(folder, "given.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump({**wrapper.strategy, "edits": edits}, file)
    inputs = {name: a.numpy() for name, a in zip(network.inputs, wrapper.example, strict=True)}
    try:
        arrays = program.compute(network, inputs, network.outputs, folder, path)
    except Error as error:
        raise MatchError(f"the strategy does not fit {network.path}: {error}; give the ONNX file of the search as "
                         "model=") from error
    return [torch.from_numpy(arrays[name]) for name in network.outputs]


def _check_pruned(wrapper: MSCWrapper, network: program.Network, folder: str) -> None:
    """The smaller module, still in floats, must compute what the program computes."""
    advice = ("its forward names a number of channels or heads: compute it from a shape, as in unflatten(-1, (-1, "
              "size)), or exclude the group from the search of prune")
    wanted = _run_strategy(wrapper, network, folder, [])
    try:
        made = evaluate(wrapper, wrapper.example)
    except RuntimeError as error:
        raise MatchError(f"the pruned module fails: {error}; {advice}") from error
    if any(y.shape != t.shape for y, t in zip(made, wanted, strict=True)):
        raise MatchError(f"the pruned module has outputs of other shapes; {advice}")
    difference = relative_difference(made, wanted)
    if not difference <= 1e-6:
        raise MatchError(f"the pruned module differs from the strategy's network by {difference:.2g} of its outputs' "
                         f"squares; {advice}")


def _check(wrapper: MSCWrapper, network: program.Network, folder: str) -> None:
    wanted = _run_strategy(wrapper, network, folder, wrapper.strategy.get("edits", []))
    made = evaluate(wrapper, wrapper.example)
    difference = relative_difference(made, wanted)
    whole = relative_difference(wanted, evaluate(wrapper.teacher, wrapper.example))
    if not difference <= max(1e-5, 0.25 * whole):
        raise MatchError(f"the wrapped module differs from the strategy's network by {difference:.2g} of its "
                         f"outputs' squares (the strategy itself loses {whole:.2g}): a part of the strategy has no "
                         "place in the module; see which tensor differs with `mscgym track`")
