"""Blocks of a graph: the parts between tensors through which everything that a strategy changes must pass.

    for block in cut(graph, strategy):
        block.graph         # from the block's source to its result, a graph of its own
        block.strategy      # the edits of this graph

A residual block, or a layer that no connection skips, is a block. Joints that the strategy does not change, such as
masks computed from inputs, are computed in each block that reads them.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mscgym.emitter import without_fused
from mscgym.graph import Graph, Joint

Strategy = Mapping[str, Any]


@dataclass
class Block:
    """A part of a graph.

    The inputs of `graph` are `source`, the only result of the block before, unless it is None, and the inputs of
    the whole graph with the indices `inputs`. `edits` are the indices of the edits in `strategy`, and `shared` those
    of them that another block has, too.
    """
    graph: Graph
    strategy: dict[str, Any]
    source: str | None
    inputs: list[int]
    edits: list[int]
    shared: set[int]


class _Cutter:
    def __init__(self, graph: Graph, strategy: Strategy) -> None:
        self.graph = without_fused(graph)
        self.strategy = strategy
        self.is_everywhere = strategy.get("sites") == "all"
        self.number = {tensor.name: i for i, joint in enumerate(self.graph.joints) for tensor in joint.outputs}
        names = {key: tensor.name for tensor in self.graph.tensors() for key in (tensor.alias, tensor.name)}
        # The tensor of each edit, by its name.
        self.edited = [names.get(edit["tensor"], edit["tensor"]) for edit in strategy.get("edits", [])]
        self.weights = set(self.edited) & self.graph.arrays.keys()
        self.crossing = self._crossing()

    def _has_weight(self, joint: Joint) -> bool:
        return any(weight.name in self.weights for weight in joint.weights.values())

    def _crossing(self) -> list[set[str]]:
        """For each joint, the tensors that the strategy changes and that later joints read."""
        joints, edited = self.graph.joints, set(self.edited)
        changed: set[str] = set()
        for joint in joints:
            read = changed if joint.optype == "shape" else changed | edited
            if self._has_weight(joint) or read.intersection(joint.inputs):
                changed.update(tensor.name for tensor in joint.outputs)
        changed |= edited
        last = {name: i for i, joint in enumerate(joints) for name in joint.inputs}
        last.update({name: len(joints) for name in self.graph.outputs})
        return [{name for name in changed if self.number.get(name, len(joints)) <= i < last.get(name, 0)}
                for i in range(len(joints))]

    def ends(self) -> list[int]:
        """The last joint of each block: the last place before the next weight where one tensor crosses."""
        joints, found, place, is_begun = self.graph.joints, [], None, False
        floats = {t.name for t in self.graph.tensors() if t.dtype.startswith("float")}
        for i, crossing in enumerate(self.crossing):
            if self._has_weight(joints[i]):
                if is_begun and place is not None:
                    found.append(place)
                is_begun, place = True, None
            if is_begun and len(crossing) == 1 and crossing <= floats:
                place = i
        return [*found, len(joints) - 1]

    def _needed(self, results: Sequence[str], source: str | None) -> list[Joint]:
        """The joints that compute `results` from `source` and the graph's inputs, in order."""
        needed: set[int] = set()
        waiting = list(results)
        while waiting:
            name = waiting.pop()
            if name and name != source and self.number[name] not in needed:
                needed.add(self.number[name])
                waiting += self.graph.joints[self.number[name]].inputs
        return [self.graph.joints[i] for i in sorted(needed)]

    def block(self, last: int, source: str | None) -> Block:
        """The block from `source` to the joint `last`."""
        joints = self.graph.joints
        is_last = last == len(joints) - 1
        results = self.graph.outputs if is_last else sorted(self.crossing[last])
        taken = self._needed(results, source)
        inputs = sorted(self.graph.inputs.index(joint.outputs[0].name) for joint in taken if joint.optype == "input")
        begin: list[Joint] = []
        if source is not None:
            maker = joints[self.number[source]]
            begin = [Joint(maker.name, "input", [], [t for t in maker.outputs if t.name == source])]
        names = {weight.name for joint in taken for weight in joint.weights.values()}
        graph = replace(self.graph, joints=begin + taken,
                        inputs=([source] if source is not None else []) + [self.graph.inputs[i] for i in inputs],
                        outputs=results,
                        arrays={name: array for name, array in self.graph.arrays.items() if name in names})
        edits = self._edits(graph, is_last)
        members = {key: self.strategy[key] for key in ("target", "sites") if key in self.strategy}
        return Block(graph, {**members, "edits": [self.strategy["edits"][i] for i in edits]}, source, inputs, edits,
                     set())

    def _edits(self, graph: Graph, is_last: bool) -> list[int]:
        """The edits of a block. A tensor between two blocks is quantised in the second one."""
        made = {tensor.name for tensor in graph.tensors()} - (set() if is_last else set(graph.outputs))
        read = {name for joint in graph.joints for name in joint.inputs}
        own = graph.arrays.keys() | (made if self.is_everywhere else read)
        return [i for i, tensor in enumerate(self.edited) if tensor in own]


def cut(graph: Graph, strategy: Strategy, *, is_whole: bool = False) -> list[Block]:
    """The blocks of a graph, in order; each has at least one quantised weight, if the graph has one. If it `is_whole`,
    the graph is one block.

    `graph`: the graph that the strategy's edits are for, after its pruning.
    """
    cutter = _Cutter(graph, strategy)
    blocks: list[Block] = []
    source = None
    for last in [len(cutter.graph.joints) - 1] if is_whole else cutter.ends():
        blocks.append(cutter.block(last, source))
        source = blocks[-1].graph.outputs[0]
    owners: dict[int, int] = {}
    for block in blocks:
        for edit in block.edits:
            owners[edit] = owners.get(edit, 0) + 1
    for block in blocks:
        block.shared = {edit for edit in block.edits if owners[edit] > 1}
    return blocks


__all__ = ["Block", "cut"]
