"""Lengths of tensors as text of Python: numbers, lengths of inputs, and what is computed from these.

A shape that joints compute from lengths of inputs is written as `x.shape[0]`. torch.export can follow such a text, but
not a shape in a tensor.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence

from mscgym.graph import Graph, Joint, Tensor

_FORMS = {"Add": "({} + {})", "Sub": "({} - {})", "Mul": "({} * {})", "FloorDiv": "({} // {})", "Max": "max({}, {})",
          "CeilDiv": "-(-{} // {})", "FloorMod": "({} % {})", "Min": "min({}, {})"}
_SHAPED = ("reshape", "broadcast_to")  # joints whose second operand is the shape of their result


class Lengths:
    """The symbolic lengths of a graph. The axis of an input that has a length is its text."""

    def __init__(self, graph: Graph) -> None:
        self._prims = {prim["name"]: prim for prim in graph.prims}
        self._axes: dict[str, tuple[str, int]] = {}
        for joint in graph.joints:
            for tensor in joint.outputs if joint.optype == "input" else ():
                for axis, length in enumerate(tensor.shape):
                    if length < 0:
                        self._axes.setdefault(tensor.prims[axis], (tensor.name, axis))

    def texts(self, tensor: Tensor, names: Mapping[str, str]) -> list[str] | None:
        """The text of each length of a tensor; None if one of them is no length of inputs.

        names: the variables that hold the inputs, by the names of the tensors.
        """
        found = [str(length) if length >= 0 else self._text(prim, names)
                 for length, prim in zip(tensor.shape, tensor.prims or [""] * len(tensor.shape), strict=True)]
        return None if None in found else [text for text in found if text is not None]

    def _text(self, prim: str, names: Mapping[str, str]) -> str | None:
        if prim in self._axes:
            tensor, axis = self._axes[prim]
            return f"{names[tensor]}.shape[{axis}]" if tensor in names else None
        node = self._prims.get(prim, {"optype": ""})
        if node["optype"] == "Int":
            return str(node["attrs"]["value"])
        parts = [self._text(parent, names) for parent in node.get("parents", [])]
        form = _FORMS.get(node["optype"])
        return None if form is None or None in parts else form.format(*parts)

    def without_shapes(self, joints: Sequence[Joint], outputs: Sequence[str]) -> list[Joint]:
        """The joints without those that compute only shapes that can be written as text."""
        names = {tensor: tensor for tensor, _ in self._axes.values()}
        needed = set(outputs)
        kept = []
        for joint in reversed(joints):
            if joint.optype != "input" and not any(tensor.name in needed for tensor in joint.outputs):
                continue
            kept.append(joint)
            is_text = joint.optype in _SHAPED and self.texts(joint.outputs[0], names) is not None
            needed.update(joint.inputs[:1] if is_text else joint.inputs)
        return kept[::-1]
