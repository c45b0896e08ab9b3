"""What the writers of programs share: a joint with its operands by role, as texts, and a few functions on texts.

A writer has a table with a row for each type of joint. A row is a text with the operands in braces, or a function of an
`Emit`, which is one joint. mscgym.torch and mscgym.tvm have such writers.
"""
from __future__ import annotations

import keyword
import re
from dataclasses import replace
from typing import Any, Collection, Protocol, Sequence

from mscgym.graph import Graph, GraphError, Joint, Tensor

_WEIGHTED = {"input": 0, "weight": 1, "bias": 2}
ROLES = {
    **dict.fromkeys(["nn.lstm", "nn.gru", "nn.rnn"],
                    ["input", "weight", "recurrence", "bias", "lengths", "hidden", "cell", "peephole"]),
    "clip": ["input", "min", "max"], "nn.prelu": ["input", "slope"],
    **dict.fromkeys(["take", "gather_elements", "gather_nd"], ["input", "indices"]),
    "scatter_elements": ["input", "indices", "updates"], "image.resize2d": ["input", "roi", "scales", "size"],
    "nn.batch_norm": ["input", "gamma", "beta", "mean", "var"],
    **dict.fromkeys(["nn.layer_norm", "nn.group_norm", "nn.instance_norm"], ["input", "gamma", "beta"]),
    **dict.fromkeys(["quantize", "dequantize"], ["input", "scale", "zero_point"]),
    "msc.conv_integer": ["input", "weight", "x_zero", "weight_zero"],
    "msc.matmul_integer": ["input", "other", "x_zero", "y_zero"]}


class Writer(Protocol):
    """What a joint's operands are read from."""
    graph: Graph
    language: str                   # in messages: "torch"
    tensors: dict[str, Tensor]      # by name
    constants: dict[str, Tensor]    # the weights that `constant` joints hold, by the name of the joint's output

    def weight(self, weight: Tensor) -> str:
        """The text that reads a weight."""

    def read(self, joint: Joint, name: str) -> str:
        """The text by which a joint reads a tensor."""


def call(name: str, *args: Any, **options: Any) -> str:
    """The text of a call. Arguments that are None are left out, at the end or by name."""
    given = list(args)
    while given and given[-1] is None:
        given.pop()
    texts = [str(item) for item in given] + [f"{key}={item}" for key, item in options.items() if item is not None]
    return f"{name}({', '.join(texts)})"


def identifier(name: str, reserved: Collection[str] = ()) -> str:
    """A name of Python for the name of a joint: "layer1.0.conv1" becomes "layer1_0_conv1"."""
    text = re.sub(r"\W+", "_", name).strip("_") or "value"
    text = f"_{text}" if text[0].isdigit() else text
    return text + "_" if keyword.iskeyword(text) or text in reserved else text


def free_name(base: str, taken: set[str]) -> str:
    """The name `base`, or `base` with a number; adds it to `taken`."""
    free, n = base, 0
    while free in taken:
        n += 1
        free = f"{base}_{n}"
    taken.add(free)
    return free


class Emit:
    """One joint for a row of expressions.py. `e[0]` is an input, `e["weight"]` an operand by its role, as text."""

    def __init__(self, writer: Writer, joint: Joint, module: str) -> None:
        self.writer, self.joint, self.module = writer, joint, module
        roles, names = ROLES.get(joint.optype, [*_WEIGHTED]), list(joint.inputs)
        self.roles: dict[str, str] = {}
        for role in roles:
            if role not in joint.weights and not joint.attrs.get(role) and names:
                name = names.pop(0)
                if name:
                    self.roles[role] = name

    def __len__(self) -> int:
        return len(self.joint.inputs)

    def __getitem__(self, item: int | str) -> str:
        if isinstance(item, int):
            if item > 0 and self.joint.optype in ROLES:
                return self[ROLES[self.joint.optype][item]]
            return self.writer.read(self.joint, self.joint.inputs[item])
        text = self.get(item)
        if text is None:
            raise self.unsupported(f"no operand '{item}'")
        return text

    def get(self, role: str) -> str | None:
        if role in self.joint.weights:
            return self.writer.weight(self.joint.weights[role])
        return self.writer.read(self.joint, self.roles[role]) if role in self.roles else None

    def role(self, role: str) -> str | None:
        return self.get(role)

    def all(self) -> list[str]:
        """All operands in order."""
        if self.joint.optype in ROLES:
            return [text for text in map(self.get, ROLES[self.joint.optype]) if text is not None]
        return [self.writer.read(self.joint, name) for name in self.joint.inputs]

    def tensor(self, index: int) -> Tensor:
        return self.writer.tensors[self.joint.inputs[index]]

    def rank(self, index: int) -> int:
        return len(self.tensor(index).shape)

    def shape(self, role: str) -> list[int]:
        weight = self.joint.weights.get(role)
        return weight.shape if weight is not None else self.writer.tensors[self.roles[role]].shape

    def layout(self, role: str) -> str:
        return self.joint.weights[role].layout if role in self.joint.weights else "OI"

    def constant(self, index: int) -> Tensor | None:
        """The weight of an operand that a `constant` joint holds, else None."""
        role = ROLES.get(self.joint.optype, [""])[index:index + 1]
        if index > 0 and role and role[0] in self.joint.weights:
            return self.joint.weights[role[0]]
        return self.writer.constants.get(self.joint.inputs[index]) if index < len(self.joint.inputs) else None

    def number(self, index: int) -> int | None:
        """The operand if it is a constant whole number without axes, else None."""
        weight = self.constant(index)
        if weight is None or weight.shape or not weight.dtype.startswith("int"):
            return None
        return int(self.writer.graph.arrays[weight.name])

    def unsupported(self, what: str) -> GraphError:
        return GraphError(f"joint '{self.joint.name}' ({self.joint.optype}) has no expression in "
                          f"{self.writer.language}: {what}")


def without_bodies(joints: list[Joint], optypes: Sequence[str] = ("msc.attention", "msc.external")) -> list[Joint]:
    """The joints, with those of its body in place of each joint of the types `optypes` that has a body."""
    result: list[Joint] = []
    for joint in joints:
        if joint.optype not in optypes or not joint.graphs:
            result.append(joint)
            continue
        body = Graph.from_json(joint.graphs[0], joint.name)
        renamed = dict(zip(body.inputs, joint.inputs)) | {body.outputs[0]: joint.outputs[0].name}
        for inner in without_bodies(body.joints, optypes):
            if inner.optype != "input":
                inner.inputs = [renamed.get(name, name) for name in inner.inputs]
                for tensor in inner.outputs:
                    tensor.name = renamed.get(tensor.name, tensor.name)
                result.append(inner)
    return result


def without_fused(graph: Graph, keeps_marked: bool = False) -> Graph:
    """The graph without fused joints, and without external joints that have a body unless `keeps_marked` is true. Its
    table of arrays is a copy, so that edits may replace weights."""
    optypes = ["msc.attention"] if keeps_marked else ["msc.attention", "msc.external"]
    return replace(graph, joints=without_bodies(graph.joints, optypes), arrays=dict(graph.arrays))
