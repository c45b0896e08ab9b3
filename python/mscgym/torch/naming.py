"""Names of joints that a module's program is read into.

A joint that is the layer of a module has the module's name in `named_modules()`: "layer1.0.conv1". Further joints of
the module are called "MODULE/NAME", where NAME is the node's name in the program. Joints of the outermost module are
called NAME. A name that is taken gets a number: "relu_1". Names are given last, when all joints of a module are known.
"""
from __future__ import annotations

import re
from dataclasses import dataclass

from mscgym.emitter import free_name
from mscgym.graph import Graph


@dataclass
class _Place:
    path: str
    local: str
    is_owner: bool


class Naming:
    """Gives provisional names while joints are made, and the final names at the end."""

    def __init__(self) -> None:
        self.places: dict[str, _Place] = {}
        self.taken: set[str] = set()
        self.weights: set[str] = set()  # names of parameters and buffers
        self._constants: set[str] = set()

    def reserve(self, name: str) -> None:
        self.taken.add(name)

    def provisional(self, path: str, local: str, is_owner: bool) -> str:
        name = f"#{len(self.places)}"
        self.places[name] = _Place(path, local, is_owner)
        return name

    def constant(self) -> str:
        """The name of a weight without a name in the module: "const", "const_1"."""
        n = len(self._constants)
        while (name := f"const_{n}" if n else "const") in self.weights | self.taken:
            n += 1
        self.taken.add(name)
        self._constants.add(name)
        return name

    def name_constant(self, weight: str) -> str:
        """The name of the `constant` joint that holds a weight."""
        return weight if weight in self._constants else self._free(weight)

    def _free(self, name: str) -> str:
        return free_name(name, self.taken)

    def finish(self, graph: Graph) -> None:
        """Gives the joints of the graph their names."""
        alive = {joint.name: self.places[joint.name] for joint in graph.joints if joint.name in self.places}
        owners: dict[str, str] = {}
        for wanted in (True, False):
            for name, place in alive.items():
                n = sum(other.path == place.path for other in alive.values()) if not wanted else 0
                if place.path and (place.is_owner if wanted else n == 1):
                    owners.setdefault(place.path, name)
        final: dict[str, str] = {}
        for name, place in alive.items():
            is_layer = place.is_owner and place.path
            local = re.sub(r"_default|_tensor", "", place.local).strip("_")
            whole = place.path if owners.get(place.path) == name or is_layer else (
                f"{place.path}/{local}" if place.path else local)
            final[name] = self._free(whole)
        tensors = {}
        for joint in graph.joints:
            joint.name = final.get(joint.name, joint.name)
            for i, tensor in enumerate(joint.outputs):
                tensors[tensor.name] = f"{joint.name}:{i}"
                tensor.name = tensors[tensor.name]
        for joint in graph.joints:
            joint.inputs = [tensors.get(name, name) for name in joint.inputs]
        graph.inputs = [tensors[name] for name in graph.inputs]
        graph.outputs = [tensors[name] for name in graph.outputs]
