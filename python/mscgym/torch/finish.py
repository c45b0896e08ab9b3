"""From a trained wrapper to an ONNX file with its scales and integers, checked against the wrapper."""
from __future__ import annotations

import copy
import json
import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from mscgym.torch import program
from mscgym.torch.calls import Slot
from mscgym.torch.onnx_export import export_onnx
from mscgym.torch.fake_quantize import DynamicQuantize
from mscgym.torch.match import Match, MatchError, match
from mscgym.torch.wrapper import MSCWrapper, evaluate, relative_difference


@dataclass
class Finished:
    """What `finish` wrote, and how well it agrees with the wrapper on the example inputs."""
    model: str                # the ONNX file
    strategy: str | None      # the strategy file, if one was asked for
    runtime: str              # what computed the ONNX file's outputs: "onnxruntime" or "mscgym"
    difference: float         # sum of squared differences over that of squares, of the two
    largest: float            # the largest difference of an output
    loss: float               # the wrapper against the float network with the same weights, like `difference`


def finish(wrapped: nn.Module, path: str | os.PathLike[str], *, strategy: str | os.PathLike[str] | None = None,
           inputs: Any = None) -> Finished:
    """Writes a trained wrapper as ONNX with the scales and integers that it computes with, and checks the file.

    wrapped: what `wrap` returned, or a module that holds it as `module` (DistributedDataParallel).
    path: the ONNX file to write.
    strategy: a strategy file to write as well. It fits the trained float network, which is written next to it
        as NAME.float.onnx.
    inputs: tensors [samples, ...] for the check; the default is the example of `wrap`.

    The check runs the file in onnxruntime, or with the program if onnxruntime is not installed. ValueError if the
    outputs differ by more than rounding explains.
    """
    wrapper = wrapped if isinstance(wrapped, MSCWrapper) else getattr(wrapped, "module", None)
    if not isinstance(wrapper, MSCWrapper):
        raise TypeError(f"finish takes what mscgym.wrap returned, not {type(wrapped).__name__}")
    args = wrapper.example if inputs is None else list(inputs) if isinstance(inputs, (tuple, list)) else [inputs]
    args = [a.detach().cpu() for a in args]
    path = os.fspath(path)
    with tempfile.TemporaryDirectory(prefix="mscgym_finish_") as folder:
        plain = copy.deepcopy(wrapper.module).cpu().eval()
        for name in wrapper._mask_keys:
            with torch.no_grad():
                plain.get_parameter(name).copy_(wrapper.effective_weight(name, quantises=False).cpu())
        model = os.path.join(folder, "float.onnx")
        export_onnx(plain, args, model)
        network = program.read_network(model, folder)
        found = match(plain, args, network, folder)
        feeds = {name: a.numpy() for name, a in zip(network.inputs, args, strict=True)}
        members = program.hashes(model, feeds, folder)
        members.update({key: wrapper.strategy[key] for key in ("target", "sites") if key in wrapper.strategy})
        members["edits"] = _edits(wrapper, found)
        made = os.path.join(folder, "strategy.json")
        with open(made, "w", encoding="utf-8") as file:
            json.dump(members, file, indent=1)
        program.export(model, made, path)
        if strategy is not None:
            _copy(made, os.fspath(strategy))
            _copy(model, os.path.splitext(os.fspath(strategy))[0] + ".float.onnx")
        runtime, outputs = _run(path, network, feeds, folder)
        return _compare(wrapper, plain, args, outputs, path, strategy, runtime)


def _copy(source: str, target: str) -> None:
    with open(source, "rb") as file, open(target, "wb") as out:
        out.write(file.read())


def _edits(wrapper: MSCWrapper, found: Match) -> list[dict[str, Any]]:
    """The edits for the tensors of the exported network."""
    weights = {w.full_name: name for name, w in found.weights.items()}
    names = {slot: name for name, slot in found.results.items()}
    edits = []
    for key, quantiser in wrapper.sites.items():
        if key in wrapper.site_weights:
            own = wrapper.site_weights[key]
            name = weights.get(own.full_name)
            if name is None:
                raise MatchError(f"parameter '{own.full_name}' is not a weight of the exported network")
            parameter = wrapper.module.get_parameter(own.full_name).detach()
            if own.full_name in wrapper._mask_keys:
                parameter = wrapper.effective_weight(own.full_name, quantises=False).detach()
            with torch.no_grad():
                edit = quantiser.to_edit(wrapper.folded_weight(key, parameter))  # type: ignore[operator]
            if found.weights[name].is_turned != own.is_turned:
                raise MatchError(f"parameter '{own.full_name}' is transposed in one of the exported networks only")
            edits.append({**edit, "site": name, "tensor": name})
        elif isinstance(quantiser, DynamicQuantize):
            edits.append(_dynamic_edit(quantiser.to_edit(), wrapper, key, found))
        else:
            edits.append(_activation_edit(quantiser.to_edit(), wrapper.tensor_slots[key],  # type: ignore[operator]
                                          found, names))
    return edits


def _dynamic_edit(edit: dict[str, Any], wrapper: MSCWrapper, key: str, found: Match) -> dict[str, Any]:
    """The edit of the site that the linear layers read, perhaps after moves."""
    places = {slot.place for slot in wrapper.tensor_slots[key]}
    joints = {name for name, calls in found.joints.items() if {c.place for c in calls} & places}
    target = wrapper.strategy.get("target") if wrapper.strategy.get("sites") == "all" else None
    for site in program.sites(found.network.path, target):
        if site["kind"] == "activation" and joints & {*site["joints"]}:
            edit.pop("joints", None)
            return {**edit, "site": site["name"], "tensor": site["tensor"]}
    raise MatchError(f"the layer of {next(iter(places))} is not in the exported network")


def _activation_edit(edit: dict[str, Any], slots: Sequence[Slot], found: Match,
                     names: dict[Slot, str]) -> dict[str, Any]:
    first = slots[0]
    if first.place is None or first.is_result:
        tensor = names.get(first)
    else:
        tensor = _read_tensor(first, found)
    if tensor is None:
        raise MatchError(f"the tensor of {first.place} is not in the exported network")
    edit.pop("joints", None)
    edit.update(site=tensor, tensor=tensor)
    if not first.is_result:
        places = {slot.place for slot in slots}
        joints = [name for name, calls in found.joints.items() if {c.place for c in calls} & places]
        edit["joints"] = joints
    return edit


def _read_tensor(slot: Slot, found: Match) -> str | None:
    """The tensor of the exported network that an operand of a call is."""
    for joint in found.network.joints:
        if any(c.place == slot.place for c in found.joints.get(joint.name, [])):
            for tensor in joint.inputs:
                if tensor in found.values and slot in _operands(found, tensor, joint.name):
                    return tensor
    return None


def _operands(found: Match, tensor: str, joint: str) -> list[Slot]:
    try:
        return found.operands(tensor, joint)
    except MatchError:
        return []


def _run(path: str, network: program.Network, feeds: dict[str, Any], folder: str) -> tuple[str, list[torch.Tensor]]:
    try:
        import onnxruntime  # type: ignore[import-untyped, unused-ignore]
    except ImportError:
        compressed = program.read_network(path, folder)
        arrays = program.compute(compressed, feeds, compressed.outputs, folder)
        return "mscgym", [torch.from_numpy(arrays[name]) for name in compressed.outputs]
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    names = [i.name for i in session.get_inputs()]
    return "onnxruntime", [torch.from_numpy(y) for y in session.run(None, {n: feeds[n] for n in names})]


def _compare(wrapper: MSCWrapper, plain: nn.Module, args: Sequence[torch.Tensor], outputs: list[torch.Tensor],
             path: str, strategy: Any, runtime: str) -> Finished:
    made = evaluate(wrapper, args)
    difference = relative_difference(outputs, made)
    loss = relative_difference(made, evaluate(plain, args))
    largest = max(float((y - t).abs().max()) for y, t in zip(outputs, made, strict=True))
    if not difference <= max(1e-6, 0.5 * loss):
        raise ValueError(f"{path}: outputs in {runtime} differ from the wrapped module's by {difference:.2g} of their "
                         f"squares; quantisation itself changes them by {loss:.2g}")
    return Finished(path, os.fspath(strategy) if strategy is not None else None, runtime, difference, largest, loss)
