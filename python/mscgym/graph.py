"""MSCGraphs in Python: joints, tensors and weights, and the files that the program reads and writes.

    graph = Graph.load("model.json")            # with the weights of model.safetensors
    graph.joint("conv1").attrs["strides"]
    graph.save("copy.json")                     # and copy.safetensors

`Graph` only holds the JSON form of docs/graph.md; the program checks a graph when it reads the file. Reading
and writing files needs numpy.
"""
from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Iterator

from mscgym.safetensors import read_safetensors, write_safetensors

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[Any]]
else:
    Array = Any


class GraphError(ValueError):
    """A graph or a weights file that cannot be read or written. The message names the file or the joint."""


def text_of(value: Any) -> str:
    """An attribute as the graph's files write it: a list of one keeps its comma, a flag is 0 or 1."""
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, (list, tuple)):
        return ",".join(text_of(item) for item in value) + ("," if len(value) == 1 else "")
    if isinstance(value, float):
        short = format(value, ".9g")
        return short if float(short) == value or value != value else repr(value)
    return str(value)


@dataclass
class Tensor:
    """The output of a joint, or a weight. A length of -1 is symbolic; `prims` then names its expression. The program
    infers a layout that is not given.
    """
    name: str
    shape: list[int]
    dtype: str
    alias: str = ""
    layout: str = ""
    prims: list[str] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        members: dict[str, Any] = {"name": self.name, "alias": self.alias, "dtype": self.dtype, "shape": self.shape}
        return members | ({"layout": self.layout} if self.layout else {}) | (
            {"prims": self.prims} if -1 in self.shape else {})

    @staticmethod
    def from_json(value: dict[str, Any]) -> Tensor:
        return Tensor(value["name"], value["shape"], value["dtype"], value.get("alias", ""), value.get("layout", ""),
                      value.get("prims", []))


@dataclass
class Joint:
    """An operation. `inputs` are names of tensors ("" for an operand left out); `weights` are by role."""
    name: str
    optype: str
    inputs: list[str] = field(default_factory=list)
    outputs: list[Tensor] = field(default_factory=list)
    attrs: dict[str, str] = field(default_factory=dict)
    weights: dict[str, Tensor] = field(default_factory=dict)
    scope: str = ""
    graphs: list[dict[str, Any]] = field(default_factory=list)

    def ints(self, key: str, default: str = "") -> list[int]:
        """The attribute as a list of whole numbers; [] if it is empty."""
        return [int(item) for item in self.attrs.get(key, default).split(",") if item]

    def flag(self, key: str, default: bool = False) -> bool:
        return self.attrs.get(key, str(int(default))) not in ("0", "")

    def number(self, key: str, default: float) -> float:
        return float(self.attrs.get(key) or default)


@dataclass
class Graph:
    """A network as a list of joints, each after those that it reads. `arrays` has the elements of all weights.

    Attributes are written sorted by key, or in the order of `attrs` if `keeps_attr_order` is true. The program and
    `load` keep an order that is not sorted (docs/text-form.md).
    """
    name: str = "main"
    joints: list[Joint] = field(default_factory=list)
    inputs: list[str] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    prims: list[dict[str, Any]] = field(default_factory=list)
    notes: dict[str, Any] = field(default_factory=dict)
    arrays: dict[str, Array] = field(default_factory=dict)
    keeps_attr_order: bool = False

    def joint(self, name: str) -> Joint:
        """The joint of this name. KeyError if there is none."""
        for joint in self.joints:
            if joint.name == name:
                return joint
        raise KeyError(name)

    def producer(self, tensor: str) -> Joint:
        """The joint that computes the tensor of this name. KeyError if none does."""
        for joint in self.joints:
            if any(output.name == tensor for output in joint.outputs):
                return joint
        raise KeyError(tensor)

    def consumers(self, tensor: str) -> list[Joint]:
        """The joints that read the tensor, or the weight, of this name."""
        return [joint for joint in self.joints
                if tensor in joint.inputs or any(weight.name == tensor for weight in joint.weights.values())]

    def parents(self, joint: Joint) -> list[Joint]:
        """The joints that compute the inputs of a joint, each once, in the order of the inputs."""
        producers = {output.name: other for other in self.joints for output in other.outputs}
        found = {producers[name].name: producers[name] for name in joint.inputs if name in producers}
        return list(found.values())

    def children(self, joint: Joint) -> list[Joint]:
        """The joints that read an output of a joint, in order."""
        own = {output.name for output in joint.outputs}
        return [other for other in self.joints if own & set(other.inputs)]

    def text(self, joint: Joint) -> str:
        """A joint as the program prints it."""
        from mscgym.printing import joint_text
        return joint_text(self, joint)

    def __str__(self) -> str:
        """The graph as the program prints it."""
        from mscgym.printing import graph_text
        return graph_text(self)

    def prototxt(self) -> str:
        """The graph in the form that viewers of Caffe networks read."""
        from mscgym.printing import prototxt
        return prototxt(self)

    def tensors(self) -> Iterator[Tensor]:
        """The outputs of all joints, in order."""
        for joint in self.joints:
            yield from joint.outputs

    def remove_dead(self) -> None:
        """Removes joints that no output needs. Inputs stay."""
        needed = {name.rpartition(":")[0] for name in self.outputs}
        for joint in reversed(self.joints):
            if joint.name in needed:
                needed.update(name.rpartition(":")[0] for name in joint.inputs if name)
        self.joints = [joint for joint in self.joints if joint.name in needed or joint.optype == "input"]

    def to_json(self) -> dict[str, Any]:
        producers = {tensor.name: joint.name for joint in self.joints for tensor in joint.outputs}
        readers: dict[str, str] = {}
        nodes = []
        for index, joint in enumerate(self.joints):
            shared = next((readers[w.name] for w in joint.weights.values() if w.name in readers), "")
            for weight in joint.weights.values():
                readers.setdefault(weight.name, joint.name)
            node = {"index": index, "name": joint.name, "shared_ref": shared, "optype": joint.optype,
                    "parents": list(dict.fromkeys(producers[name] for name in joint.inputs if name)),
                    "inputs": joint.inputs, "outputs": [t.to_json() for t in joint.outputs],
                    "attrs": dict(joint.attrs.items() if self.keeps_attr_order else sorted(joint.attrs.items())),
                    "weights": {role: t.to_json() for role, t in joint.weights.items()}}
            nodes.append(node | ({"scope": joint.scope} if joint.scope else {})
                         | ({"graphs": joint.graphs} if joint.graphs else {}))
        prims = [{"index": i} | prim for i, prim in enumerate(self.prims)]
        return {"name": self.name, "inputs": self.inputs, "outputs": self.outputs, "prims": prims,
                "notes": self.notes, "nodes": nodes}

    def save(self, path: str | Path) -> None:
        """Writes PATH (".json") and, next to it, the weights (".safetensors"). OSError if a file cannot be written."""
        path = _json_path(path)
        write_safetensors(str(path.with_suffix(".safetensors")), {name: [array] for name, array in self.arrays.items()})
        path.write_text(json.dumps(self.to_json(), indent=1) + "\n", encoding="utf-8")

    @staticmethod
    def load(path: str | Path) -> Graph:
        """Reads a graph and its weights. GraphError, which names the file, if one of them has another form."""
        path = _json_path(path)
        try:
            value = json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise GraphError(f"{path}: not JSON ({error})") from error
        graph = Graph.from_json(value, str(path))
        try:
            arrays = read_safetensors(str(path.with_suffix(".safetensors")))
        except ValueError as error:
            raise GraphError(str(error)) from error
        graph.arrays = {name: array.copy() for name, array in arrays.items()}  # the file may change
        return graph

    @staticmethod
    def from_json(value: dict[str, Any], where: str) -> Graph:
        """The graph of a JSON value, without elements of weights. GraphError begins with `where`."""
        try:
            joints = [Joint(node["name"], node["optype"], node.get("inputs", []),
                            [Tensor.from_json(t) for t in node["outputs"]], node.get("attrs", {}),
                            {role: Tensor.from_json(t) for role, t in node.get("weights", {}).items()},
                            node.get("scope", ""), node.get("graphs", [])) for node in value["nodes"]]
            prims = [{key: item for key, item in prim.items() if key != "index"} for prim in value.get("prims", [])]
            return Graph(value["name"], joints, value["inputs"], value["outputs"], prims, value.get("notes", {}),
                         keeps_attr_order=any(list(j.attrs) != sorted(j.attrs) for j in joints))
        except (KeyError, TypeError, AttributeError) as error:
            raise GraphError(f"{where}: not an MSCGraph ({type(error).__name__}: {error}); "
                             "make one with `mscgym graph MODEL -o FILE.json`") from error


def _json_path(path: str | Path) -> Path:
    path = Path(path)
    if path.suffix != ".json":
        raise GraphError(f"{path}: the name of a graph's file ends in .json")
    return path
