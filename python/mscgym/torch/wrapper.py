"""The MSCWrapper: a torch module compressed in place, to be trained by any loop.

    wrapped = wrap(module, "msc_quantize.json", inputs)
    ... any loop, optimiser and DistributedDataParallel, with `wrapped` in place of the module ...
    finish(wrapped, "small.onnx")

A forward of the wrapper is a forward of the module, with tensors replaced at the places that the strategy
names: activations and weights by what their integers represent, sparse weights by their product with a mask.
"""
from __future__ import annotations

import copy
import json
import os
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from mscgym.torch import program
from mscgym.torch.calls import Change, Changes, Place, Slot, replace_tensors, tensors_of
from mscgym.torch.export import export_onnx
from mscgym.torch.fake_quantize import FakeQuantize, read_numbers
from mscgym.torch.match import Match, MatchError, Weight, along, channel_axis, fold_scale, match
from mscgym.torch.shrink import bias_owner, replace, set_bias, set_weight, shrink

Strategy = Mapping[str, Any]


class MSCWrapper(nn.Module):
    """A module and the compression of its weights and activations. `wrap` makes it.

    `module` is the user's own module. `sites` holds a FakeQuantize for each edit of the strategy, and `masks` the
    masks of sparse weights, both under the names of tensors with dots replaced by "/". `quantises` switches
    fake-quantisation; masks always hold. Inputs and outputs are those of the module.
    """

    quantises: bool

    def __init__(self, module: nn.Module, strategy: Strategy):
        super().__init__()
        self.module = module
        self.strategy = dict(strategy)
        self.sites = nn.ModuleDict()
        self.masks = nn.ParameterDict()
        self.quantises = True
        self.tensor_slots: dict[str, list[Slot]] = {}   # key of a site: where its tensor is replaced
        self.site_weights: dict[str, Weight] = {}       # key of a site: the weight that it quantises
        # Biases that the target rounds to int32: the parameter, and the sites of the joint's weight and input.
        self.rounded_biases: dict[str, tuple[str, str]] = {}
        self.example: list[torch.Tensor] = []
        # In a list, so that the teacher is not part of the state dict and is not trained.
        self._teacher: list[nn.Module] = []

    @property
    def teacher(self) -> nn.Module:
        """The float module before its compression, in evaluation, without gradients."""
        return self._teacher[0]

    # ---- Forward ------------------------------------------------------------------------------

    def effective_weight(self, name: str, quantises: bool = True) -> torch.Tensor:
        """What replaces the parameter `name` of the module: masked, and quantised if a site quantises it. If a
        normalisation follows, the weight is quantised with the normalisation's running statistics folded in.
        """
        weight = self.module.get_parameter(name)
        if name in self._mask_keys:
            weight = weight * self.masks[self._mask_keys[name]]
        keys = [key for key, of in self.site_weights.items() if of.full_name == name]
        if not keys or not quantises:
            return weight
        key = keys[0]
        return self._unfold(key, self._quantiser(key)(self.folded_weight(key, weight)))

    def _quantiser(self, key: str) -> FakeQuantize:
        quantiser = self.sites[key]
        assert isinstance(quantiser, FakeQuantize)
        return quantiser

    @property
    def _mask_keys(self) -> dict[str, str]:
        return {key.replace("/", "."): key for key in self.masks.keys()}

    def _scale(self, key: str) -> torch.Tensor | None:
        weight = self.site_weights[key]
        if weight.norm is None:
            return None
        layer = self.module.get_submodule(weight.module)
        scale = fold_scale(self.module.get_submodule(weight.norm))
        scale = torch.where(scale == 0, torch.ones_like(scale), scale)
        return along(scale, channel_axis(layer), layer.get_parameter(weight.name).ndim)

    def folded_weight(self, key: str, weight: torch.Tensor) -> torch.Tensor:
        """A parameter as the weight that the site `key` quantises."""
        scale = self._scale(key)
        weight = weight if scale is None else weight * scale
        return weight.T if self.site_weights[key].is_turned else weight

    def _unfold(self, key: str, weight: torch.Tensor) -> torch.Tensor:
        scale = self._scale(key)
        weight = weight.T if self.site_weights[key].is_turned else weight
        return weight if scale is None else weight / scale

    def _rounded_bias(self, name: str) -> torch.Tensor:
        """A bias such that, with the normalisation's running statistics folded in, it is a multiple of the product
        of the scales of input and weight.
        """
        weight_key, input_key = self.rounded_biases[name]
        of, bias = self.site_weights[weight_key], self.module.get_parameter(name)
        with torch.no_grad():
            folded, step = bias, self._quantiser(weight_key).scale.abs() * self._quantiser(input_key).scale.abs()
            if of.norm is not None:
                norm: Any = self.module.get_submodule(of.norm)
                own = getattr(self.module.get_submodule(of.module), "bias", None)
                folded = bias + ((0 if own is None else own) - norm.running_mean) * fold_scale(norm)
            change = torch.round(folded / step) * step - folded
        return bias + change

    def _changes(self) -> tuple[Changes, dict[int, Change]]:
        names = {weight.full_name for weight in self.site_weights.values()} if self.quantises else set()
        weights = {id(self.module.get_parameter(name)): (lambda n=name: self.effective_weight(n, self.quantises))
                   for name in names | set(self._mask_keys)}
        for name in self.rounded_biases if self.quantises else ():
            weights[id(self.module.get_parameter(name))] = lambda n=name: self._rounded_bias(n)
        operands: dict[Place, dict[int, Change]] = {}
        results: dict[Place, dict[int, Change]] = {}
        inputs: dict[int, Change] = {}
        for key, slots in self.tensor_slots.items() if self.quantises else ():
            for slot in slots:
                if slot.place is None:
                    inputs[slot.index] = self._quantiser(key)
                else:
                    (results if slot.is_result else operands).setdefault(slot.place, {})[slot.index] = \
                        self._quantiser(key)
        return Changes(self.module, weights, operands, results), inputs

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        changes, inputs = self._changes()
        if inputs:
            args, kwargs = replace_tensors((args, kwargs), lambda i, t: inputs[i](t) if i in inputs else t)
        with changes:
            return self.module(*args, **kwargs)

    # ---- Distillation -------------------------------------------------------------------------

    def distill_loss(self, outputs: Any, *args: Any, temperature: float | None = None, **kwargs: Any) -> torch.Tensor:
        """The loss of `outputs` against the teacher's outputs on the same inputs `args`; a scalar.

        Without `temperature`: the sum of squared differences over that of squares, as mscgym's distill loss.
        With it: the Kullback-Leibler divergence of the softmax over the last axis, both divided by
        `temperature`, times its square (Hinton and others 2015).
        """
        made = tensors_of(outputs)
        self.teacher.to(made[0].device)
        with torch.no_grad():
            wanted = tensors_of(self.teacher(*args, **kwargs))
        losses = []
        for y, t in zip(made, wanted, strict=True):
            if temperature is None:
                losses.append((y - t).square().sum() / t.square().sum().clamp_min(1e-30))
            else:
                losses.append(functional.kl_div((y / temperature).log_softmax(-1).flatten(0, -2),
                                                (t / temperature).log_softmax(-1).flatten(0, -2),
                                                reduction="batchmean", log_target=True) * temperature ** 2)
        return torch.stack(losses).mean()


def _key(tensor: str) -> str:
    return tensor.replace(".", "/")


# ---- Making -----------------------------------------------------------------------------------

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
         learn_scales: bool | str = False, check: bool = True) -> MSCWrapper:
    """Compresses a module in place as a strategy says, and returns the wrapper to train.

    module: any torch module; its weights must be those for which the strategy was made. Removed channels are
        removed from its layers, so make optimisers afterwards. Batch normalisation stays.
    strategy: the path of a strategy file (docs/strategy.md), its members as a dict, or a result with the
        attribute `strategy`.
    inputs: example inputs of `forward`: a tensor [samples, ...] or a tuple of tensors. A few samples suffice.
    model: the ONNX file for which the strategy was made. Without it, the module is exported as
        `mscgym.torch.export.export_onnx` does; this needs onnx and onnxscript.
    learn_scales: whether scales are parameters: True, False, "weights" or "activations".
    check: compares the wrapper's outputs with those of the program for the same strategy.

    MatchError (a ValueError) names a tensor or weight that the module does not have, and the fix.
    """
    members = _load(strategy)
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
        by_weight = {t["name"]: int(j["attrs"]["groups"]) for j in pruned.joints if "groups" in j["attrs"]
                     for t in j["weights"].values()}
        groups = {j["name"]: by_weight[t["name"]] for j in found.network.joints
                  for t in j.get("weights", {}).values() if t["name"] in by_weight}
        shrink(wrapper.module, found, program.channels(found.network.path), members["prune"], groups)
    if members.get("replace"):
        for name, mask in replace(wrapper.module, found, members["replace"]).items():
            device = wrapper.module.get_parameter(name).device
            wrapper.masks[_key(name)] = nn.Parameter(mask.to(device), requires_grad=False)


def _quantise(wrapper: MSCWrapper, found: Match, learn_scales: bool | str) -> None:
    members = wrapper.strategy
    everywhere = members.get("sites") == "all"
    listed = program.sites(found.network.path, members.get("target") if everywhere else None)
    readers = {site["tensor"]: site["joints"] for site in listed}
    owners = {t["name"]: owner for j in found.network.joints for role, t in j.get("weights", {}).items()
              if role != "bias" and (owner := bias_owner(found, j))}
    for edit in members.get("edits", []):
        tensor, key = edit["tensor"], _key(edit["site"])
        is_weight = tensor in found.network.weights
        learns = learn_scales is True or learn_scales == ("weights" if is_weight else "activations")
        quantiser = FakeQuantize.from_edit(edit, learns, is_weight)
        if is_weight:
            if tensor not in found.weights:
                raise MatchError(f"weight '{tensor}' of {found.network.path} is not a parameter of the module: fix "
                                 "its choice to float in the search")
            weight = found.weights[tensor]
            wrapper.site_weights[key] = weight
            parameter = wrapper.module.get_parameter(weight.full_name)
            if "integers" in edit:
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
            wrapper.tensor_slots[key] = [found.result(tensor)] if everywhere else [
                slot for joint in joints for slot in found.operands(tensor, joint)]
            quantiser.to(next(iter(wrapper.module.parameters())).device)
        wrapper.sites[key] = quantiser
    if everywhere:
        _round_biases(wrapper, found)


def _round_biases(wrapper: MSCWrapper, found: Match) -> None:
    """Finds the biases of joints that the target computes in integers."""
    makers = {t["name"]: joint for joint in found.network.joints for t in joint["outputs"]}
    sites = {edit["tensor"]: _key(edit["site"]) for edit in wrapper.strategy.get("edits", [])
             if int(edit.get("bits", 32)) <= 8 and not edit.get("group_size")}
    for joint in found.network.joints:
        weights = joint.get("weights", {})
        key = next((sites[t["name"]] for role, t in weights.items() if role != "bias" and t["name"] in sites), None)
        if "bias" not in weights or key is None or not joint["inputs"]:
            continue
        tensor = joint["inputs"][0]
        while tensor not in sites and tensor in makers and makers[tensor]["inputs"]:
            tensor = makers[tensor]["inputs"][0]  # through joints that keep the scale, such as pooling
        of = wrapper.site_weights[key]
        layer = of.norm if of.norm is not None else of.module
        name = f"{layer}.bias" if layer else "bias"
        if tensor in sites and wrapper.module.get_submodule(layer).bias is not None:
            wrapper.rounded_biases[name] = (key, sites[tensor])


def _drop_filled_mask(wrapper: MSCWrapper, weight: Weight, edit: Mapping[str, Any]) -> None:
    """Drops the mask of a weight whose zeros the rounding of the strategy has filled."""
    key, name = _key(weight.full_name), weight.full_name
    if key in wrapper.masks and bool((wrapper.module.get_parameter(name).detach() * (1 - wrapper.masks[key])).any()):
        del wrapper.masks[key]
        warnings.warn(f"'{edit['choice']}' of weight '{edit['tensor']}' fills its zeros, so no mask holds them; search "
                      "with \"rounding\": \"nearest\" to keep them", stacklevel=4)


def relative_difference(made: Sequence[torch.Tensor], wanted: Sequence[torch.Tensor]) -> float:
    """The sum of squared differences over the sum of squares; the largest of all outputs."""
    return max(float((y.double() - t.double()).square().sum() / t.double().square().sum().clamp_min(1e-30))
               for y, t in zip(made, wanted, strict=True))


def evaluate(module: nn.Module, args: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """The outputs of a module in evaluation, without gradients, on the CPU. Its mode is restored."""
    modes = {m: m.training for m in module.modules()}
    module.eval()
    device = next((p.device for p in module.parameters()), torch.device("cpu"))
    try:
        with torch.no_grad():
            return [t.cpu() for t in tensors_of(module(*(a.to(device) for a in args)))]
    finally:
        for m, mode in modes.items():
            m.training = mode


def _run_strategy(wrapper: MSCWrapper, network: program.Network, folder: str, edits: Any) -> list[torch.Tensor]:
    """What the program computes with the strategy, or with its pruning and other edits."""
    path = os.path.join(folder, "given.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump({**wrapper.strategy, "edits": edits}, file)
    inputs = {name: a.numpy() for name, a in zip(network.inputs, wrapper.example, strict=True)}
    try:
        arrays = program.compute(network, inputs, network.outputs, folder, path)
    except program.ProgramError as error:
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
