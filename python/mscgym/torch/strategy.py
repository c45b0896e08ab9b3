"""The edits of a strategy file (docs/strategy.md) in a generated module. Needs no torch."""
from __future__ import annotations

import base64
import json
import os
import tempfile
from pathlib import Path
from typing import Any, Mapping

import numpy as np

from mscgym.emitter import free_name
from mscgym.graph import Array, Graph, GraphError, Joint, Tensor

_READ = {  # types of joints that compute with quantised operands: how many of their inputs
    **dict.fromkeys([f"{prefix}conv{n}d{suffix}" for n in (1, 2, 3)
                     for prefix, suffix in (("nn.", ""), ("msc.", "_bias"), ("nn.", "_transpose"))], 1),
    **dict.fromkeys(["msc.linear", "msc.linear_bias", "nn.lstm", "nn.gru", "nn.rnn"], 1),
    **dict.fromkeys(["matmul", "msc.gemm"], 2)}


def read_numbers(value: Any, dtype: str) -> Array:
    """The numbers of a strategy's field: a list, or base64 of little-endian numbers of the type `dtype`."""
    if isinstance(value, str):
        return np.frombuffer(base64.b64decode(value), dtype).copy()
    return np.asarray(value, dtype)


def place_dynamic(graph: Graph, strategy: Mapping[str, Any], where: str = "strategy") -> dict[str, Any]:
    """A strategy whose dynamic edits name the tensors and joints that they are for.

    Such an edit is only for the linear layers that read the tensor, perhaps moved by other joints. If these read
    several tensors, the edits for the others are appended. GraphError if there is no such layer.
    """
    members = {**strategy, "edits": list(strategy.get("edits", []))}
    for number, edit in enumerate(members["edits"]):
        if edit.get("type", "dynamic") not in ("dynamic", "float16", "bfloat16"):
            raise GraphError(f"{where}: edits[{number}] stores '{edit['tensor']}' in blocks of type {edit['type']}, "
                             "which torch modules do not have; search with integers, such as "
                             "{\"bits\": 4, \"group_size\": 32}")
    waiting = [(i, edit) for i, edit in enumerate(members["edits"]) if edit.get("type") == "dynamic"
               and not edit.get("joints")]
    readers = _readers(graph, members) if waiting and members.get("sites") == "all" else None
    for number, edit in waiting:
        places: dict[str, list[str]] = {}
        for joint in graph.joints:
            reads = edit["tensor"] in joint.inputs[:1] if readers is None else joint.name in readers[edit["tensor"]]
            if joint.optype in ("msc.linear", "msc.linear_bias") and reads:
                places.setdefault(joint.inputs[0], []).append(joint.name)
        if not places:
            raise GraphError(f"{where}: edits[{number}] quantises '{edit['tensor']}' dynamically, but no linear layer of "
                             f"graph '{graph.name}' reads it")
        placed = [{**edit, "tensor": tensor, "joints": joints} for tensor, joints in places.items()]
        members["edits"][number] = placed[0]
        members["edits"] += placed[1:]
    return members


def _readers(graph: Graph, strategy: Mapping[str, Any]) -> dict[str, list[str]]:
    """The joints that read the tensor of each site, also after moves, by the name of the tensor."""
    from mscgym.torch import program
    with tempfile.TemporaryDirectory(prefix="mscgym_sites_") as folder:
        path = os.path.join(folder, "graph.json")
        graph.save(path)
        return {site["tensor"]: site["joints"] for site in program.sites(path, strategy.get("target"))}


class Edits:
    """The edits for a graph. `arrays` has what the weights file holds for them."""

    def __init__(self, graph: Graph, strategy: str | Path | Mapping[str, Any], learns: bool) -> None:
        self.graph, self.learns = graph, learns
        self.arrays: dict[str, Array] = {}
        self.made: dict[str, str] = {}        # name of an edit: the text that makes its module
        self.weights: dict[str, str] = {}     # weight: name of its edit
        self.activations: list[tuple[str, set[str], str]] = []
        self.where = str(strategy) if isinstance(strategy, (str, Path)) else "strategy"
        value = json.loads(Path(strategy).read_text(encoding="utf-8")) if isinstance(
            strategy, (str, Path)) else strategy
        value = place_dynamic(graph, value, self.where)
        self.is_everywhere = value.get("sites") == "all"
        if value.get("prune"):
            raise GraphError(f"{self.where}: the strategy removes channels; export the pruned model, and use its graph")
        self.masks = {entry["tensor"]: self._replace(entry) for entry in value.get("replace", [])}
        activations = {key for tensor in graph.tensors() for key in (tensor.name, tensor.alias)}
        for number, edit in enumerate(value.get("edits", [])):
            if edit["tensor"] in graph.arrays:
                self._add_weight(edit, number)
            elif edit["tensor"] in activations:
                self.activations.append((edit["tensor"], set(edit.get("joints", [])), self._make(edit, number)))
            else:
                raise GraphError(f"{self.where}: edits[{number}] is of '{edit['tensor']}', which is no tensor of graph "
                                 f"'{graph.name}'")
        self._check_folded()
        for name in self.masks:
            self.weights.setdefault(name, self._name(name, f"Mask({list(graph.arrays[name].shape)})"))
            self.arrays[f"edits.{self.weights[name]}.mask"] = self.masks[name]

    def _check_folded(self) -> None:
        """Scales are those of weights into which batch normalisations are folded."""
        layers = {joint.outputs[0].name: joint for joint in self.graph.joints if joint.outputs}
        for joint in self.graph.joints:
            layer = layers.get(joint.inputs[0]) if joint.optype == "nn.batch_norm" else None
            if layer is not None and any(weight.name in self.weights for weight in layer.weights.values()):
                raise GraphError(f"{self.where}: the strategy is for the graph whose batch normalisations are folded, "
                                 f"but '{joint.name}' is not; make that graph with `mscgym graph MODEL -o FILE.json`")

    def _replace(self, entry: Mapping[str, Any]) -> Array:
        name, data = entry["tensor"], np.frombuffer(base64.b64decode(entry["elements"]), "<f4")
        old = self.graph.arrays.get(name)
        if old is None or list(old.shape) != entry["shape"] or data.size != old.size:
            raise GraphError(f"{self.where}: the new elements of '{name}' fit no weight of graph '{self.graph.name}'")
        data = data.reshape(entry["shape"])
        self.graph.arrays[name] = data.copy()
        mask: Array = (data != 0).astype(np.float32)
        return mask

    def _name(self, tensor: str, text: str) -> str:
        from mscgym.torch.codegen import name_of
        name = free_name(name_of(tensor), set(self.made))
        self.made[name] = text
        return name

    def _make(self, edit: Mapping[str, Any], number: int, shape: list[int] | None = None) -> str:
        """Adds the module of an edit; returns the edit's name."""
        is_masked = edit["tensor"] in self.masks
        if "type" in edit:
            text = "DynamicQuantize()" if edit["type"] == "dynamic" else f"Narrow(torch.{edit['type']})"
            scales = zeros = None
        else:
            scales = read_numbers(edit["scales"], "<f4")
            zeros = np.broadcast_to(read_numbers(edit["zero_points"], "<i4"), scales.shape).astype(np.float32)
            groups = f", group_size={edit['group_size']}" if edit.get("group_size") else ""
            groups += f", group_axes={edit['group_axes']}" if edit.get("group_axes", 1) > 1 else ""
            axis = edit.get("axis", -1)
            learns = ", learns=True" + (", is_weight=True" if shape else "") if self.learns else ""
            text = (f"FakeQuantize({scales.size}, {edit['low']}, {edit['high']}"
                    + (f", axis={axis}" if axis >= 0 else "") + groups + learns + ")")
        name = self._name(edit["tensor"], f"Mask({shape}, {text})" if is_masked else text)
        if scales is not None and zeros is not None:
            part = f"edits.{name}.then" if is_masked else f"edits.{name}"
            self.arrays.update({f"{part}.scale": scales, f"{part}.zero_point": zeros})
        return name

    def _add_weight(self, edit: Mapping[str, Any], number: int) -> None:
        name, data = edit["tensor"], self.graph.arrays[edit["tensor"]]
        if "shifts" in edit:
            self._shift(name, read_numbers(edit["shifts"], "<f4"))
        self.weights[name] = self._make(edit, number, list(data.shape))
        if "integers" in edit:
            self.graph.arrays[name] = self._from_integers(edit, data)

    def _from_integers(self, edit: Mapping[str, Any], data: Array) -> Array:
        """The weight that the integers represent: rounding it to the nearest gives the same integers."""
        kind = np.int8 if edit["low"] < 0 else np.uint8
        codes = np.frombuffer(base64.b64decode(edit["integers"]), kind).reshape(data.shape).astype(np.float32)
        scales = read_numbers(edit["scales"], "<f4")
        zeros = np.broadcast_to(read_numbers(edit["zero_points"], "<i4"), scales.shape).astype(np.float32)
        axis, size = edit.get("axis", -1), edit.get("group_size", 0)
        if size:
            last = axis + edit.get("group_axes", 1)
            before, after = int(np.prod(data.shape[:axis])), int(np.prod(data.shape[last:]))
            length = data.size // (before * after)
            index = np.arange(length) // size
            full = scales.reshape(before, -1, after)[:, index].reshape(data.shape)
            shift = zeros.reshape(before, -1, after)[:, index].reshape(data.shape)
        else:
            form = [-1 if i == axis else 1 for i in range(data.ndim)]
            full, shift = scales.reshape(form), zeros.reshape(form)
        result: Array = ((codes - shift) * full).astype(np.float32)
        return result

    def _shift(self, name: str, shifts: Array) -> None:
        """Adds the shifts of a weight to the biases of the joints that read it."""
        for joint in self.graph.joints:
            if joint.weights.get("weight") is not None and joint.weights["weight"].name == name:
                bias = joint.weights.get("bias")
                if bias is None:
                    raise GraphError(f"{self.where}: '{name}' has shifts, but joint '{joint.name}' has no bias")
                self.graph.arrays[bias.name] = self.graph.arrays[bias.name] + shifts

    # ---- What the writer asks

    def has(self, weight: str) -> bool:
        return weight in self.weights

    def weight(self, name: str, text: str) -> str:
        return f"self.edits.{self.weights[name]}({text})" if name in self.weights else text

    def activation(self, tensor: Tensor, joint: Joint, text: str) -> str:
        for name, joints, edit in self.activations:
            if self.is_everywhere and not joints:
                continue  # `output` applies it
            reads = tensor.name in joint.inputs[:_READ.get(joint.optype, 0)]
            if name in (tensor.name, tensor.alias) and reads and (not joints or joint.name in joints):
                return f"self.edits.{edit}({text})"
        return text

    def output(self, tensor: Tensor) -> str:
        """The edit of a tensor that applies wherever it is read, or ""."""
        names = (tensor.name, tensor.alias)
        return next((f"self.edits.{edit}" for name, joints, edit in self.activations
                     if self.is_everywhere and name in names and not joints), "")

    def imports(self) -> list[str]:
        return [name for name in ("DynamicQuantize", "FakeQuantize", "Mask", "Narrow") if any(name in text for text in self.made.values())]

    def lines(self) -> list[str]:
        return [f"self.put({f'edits.{name}'!r}, {text})" for name, text in self.made.items()]
