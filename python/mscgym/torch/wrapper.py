"""The MSCWrapper: a torch module compressed in place, to be trained by any loop.

    wrapped = wrap(module, "msc_quantize.json", inputs)
    ... any loop, optimiser and DistributedDataParallel, with `wrapped` in place of the module ...
    finish(wrapped, "small.onnx")

A forward of the wrapper is a forward of the module, with tensors replaced at the places that the strategy
names: activations and weights by what their integers represent, sparse weights by their product with a mask.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from mscgym.torch.calls import Change, Changes, Place, Slot, replace_tensors, tensors_of
from mscgym.torch.fake_quantize import DynamicQuantize, FakeQuantize, Narrow, Quantiser
from mscgym.torch.match import Weight, along, channel_axis, fold_scale

Strategy = Mapping[str, Any]


class MSCWrapper(nn.Module):
    """A module and the compression of its weights and activations. `wrap` makes it.

    `module` is the user's own module. `sites` holds a FakeQuantize, DynamicQuantize or Narrow for each edit of the strategy, and `masks` the
    masks of sparse weights, both under the names of tensors with dots replaced by "/". `quantises` switches
    fake-quantisation; masks always hold. `freezes_norms`: batch normalisation is in evaluation in training, too,
    from the next call of `train`. Inputs and outputs are those of the module.
    """

    quantises: bool
    freezes_norms: bool

    def __init__(self, module: nn.Module, strategy: Strategy):
        super().__init__()
        self.module = module
        self.strategy = dict(strategy)
        self.sites = nn.ModuleDict()
        self.masks = nn.ParameterDict()
        self.quantises, self.freezes_norms = True, False
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

    def train(self, mode: bool = True) -> MSCWrapper:
        """Sets training or evaluation of all modules."""
        super().train(mode)
        for part in self.module.modules() if mode and self.freezes_norms else ():
            if isinstance(part, nn.modules.batchnorm._BatchNorm):
                part.eval()
        return self

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

    def _quantiser(self, key: str) -> Quantiser:
        quantiser = self.sites[key]
        assert isinstance(quantiser, (DynamicQuantize, FakeQuantize, Narrow))
        return quantiser

    def _steps(self, key: str) -> torch.Tensor:
        """The scales of a tensor of integers."""
        quantiser = self.sites[key]
        assert isinstance(quantiser, FakeQuantize)
        return quantiser.scale.abs()

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
            folded, step = bias, self._steps(weight_key) * self._steps(input_key)
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
                    inputs[slot.at] = self._quantiser(key)
                else:
                    (results if slot.is_result else operands).setdefault(slot.place, {})[slot.at] = \
                        self._quantiser(key)
        return Changes(self.module, weights, operands, results), inputs

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        changes, inputs = self._changes()
        if inputs:
            args, kwargs = replace_tensors((args, kwargs), lambda i, t: inputs[i](t) if i in inputs else t)
        with changes:
            return self.module(*args, **kwargs)

    def fit_scales(self, *args: Any, **kwargs: Any) -> None:
        """Sets the scales of integers to those of least squared error, for the weights as they are now and for the
        activations of the inputs `args`: for use when a training without fake-quantisation has changed the weights.
        Zero points stay.
        """
        modes, quantises, hooks = {m: m.training for m in self.modules()}, self.quantises, []
        for key, of in self.site_weights.items():
            quantiser = self._quantiser(key)
            if isinstance(quantiser, FakeQuantize):
                quantiser.fit(self.folded_weight(key, self.effective_weight(of.full_name, False)))
        for key in self.tensor_slots:
            quantiser = self._quantiser(key)
            if isinstance(quantiser, FakeQuantize):
                hooks.append(quantiser.register_forward_pre_hook(lambda q, operands: q.fit(operands[0])))
        self.eval()
        self.quantises = True
        try:
            with torch.no_grad():
                self(*args, **kwargs)
        finally:
            self.quantises = quantises
            for hook in hooks:
                hook.remove()
            for m, mode in modes.items():
                m.training = mode

    # ---- Distillation -------------------------------------------------------------------------

    def distill_loss(self, outputs: Any, *args: Any, temperature: float | None = None, wanted: Any = None,
                     **kwargs: Any) -> torch.Tensor:
        """The loss of `outputs` against the teacher's outputs on the same inputs `args`; a scalar. If the same inputs
        come several times, compute the teacher's outputs once and give them as `wanted`, in place of `args`.

        Without `temperature`: the sum of squared differences over that of squares, as mscgym's distill loss.
        With it: the Kullback-Leibler divergence of the softmax over the last axis, both divided by
        `temperature`, times its square (Hinton and others 2015).
        """
        made = tensors_of(outputs)
        if wanted is None:
            self.teacher.to(made[0].device)
            with torch.no_grad():
                wanted = self.teacher(*args, **kwargs)
        losses = []
        for y, t in zip(made, tensors_of(wanted), strict=True):
            if temperature is None:
                losses.append((y - t).square().sum() / t.square().sum().clamp_min(1e-30))
            else:
                losses.append(functional.kl_div((y / temperature).log_softmax(-1).flatten(0, -2),
                                                (t / temperature).log_softmax(-1).flatten(0, -2),
                                                reduction="batchmean", log_target=True) * temperature ** 2)
        return torch.stack(losses).mean()


def site_key(tensor: str) -> str:
    """The name of a site or parameter as a key of modules and parameters."""
    return tensor.replace(".", "/")


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
