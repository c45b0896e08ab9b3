"""The program's view of a network, for the torch side: its graph, weights, tensors, sites and channels."""
from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy

from mscgym import process
from mscgym.emitter import without_fused
from mscgym.graph import Graph, Joint

Array = numpy.ndarray[Any, Any]
Json = dict[str, Any]


def call(*arguments: str, as_json: bool = False) -> Any:
    """Runs `mscgym ARGUMENTS`, and returns the JSON that it prints, if any."""
    return process.call([*arguments, "--quiet"], progress=False, as_json=as_json).value


@dataclass
class Network:
    """A model file as the program reads it. Names of tensors are those of MSCGraph."""
    path: str
    graph: Graph               # without fused joints

    @property
    def joints(self) -> list[Joint]:
        return self.graph.joints

    @property
    def weights(self) -> dict[str, Array]:
        return self.graph.arrays

    @property
    def outputs(self) -> list[str]:
        return self.graph.outputs

    @property
    def inputs(self) -> list[str]:
        """Names in the model file."""
        aliases = {tensor.name: tensor.alias for tensor in self.graph.tensors()}
        return [aliases[name] or name for name in self.graph.inputs]

    @property
    def tensors(self) -> list[str]:
        """The names of all activations, in the order in which joints compute them."""
        return [tensor.name for tensor in self.graph.tensors()]


def read_network(path: str, folder: str) -> Network:
    """Reads a model file. `folder` is a scratch folder."""
    graph = os.path.join(folder, "graph.json")
    call("graph", path, "-o", graph)
    return Network(path, without_fused(Graph.load(graph)))


def compute(network: Network, inputs: Mapping[str, Array], tensors: Sequence[str], folder: str,
            strategy: str | None = None) -> dict[str, Array]:
    """The given tensors of one run on `inputs`, by name."""
    arguments, out = [], os.path.join(folder, "tensors.npz")
    if os.path.exists(out):
        os.remove(out)
    for i, (name, array) in enumerate(inputs.items()):
        path = os.path.join(folder, f"input_{i}.npy")
        numpy.save(path, array)
        arguments += ["--input", f"{name}={path}"]
    for name in tensors:
        arguments += ["--tensor", name]
    if strategy is not None:
        arguments += ["--strategy", strategy]
    call("run", network.path, *arguments, "--output", out, "--repeat", "0")
    with numpy.load(out) as arrays:
        return {name: arrays[name] for name in tensors}


def varying(network: Network, inputs: Mapping[str, Array], folder: str) -> list[str]:
    """The activations that depend on the inputs, in the order in which joints compute them."""
    samples, out = os.path.join(folder, "one.npz"), os.path.join(folder, "all.npz")
    numpy.savez(samples, **inputs)  # type: ignore[arg-type]
    call("run", network.path, "--inputs", samples, "--samples", "1", "--tensor", "*", "--output", out)
    with numpy.load(out) as arrays:
        found = {name.partition("/0")[0] if name.endswith("/0") else name for name in arrays}
    os.remove(out)
    return [tensor.name for tensor in network.graph.tensors() if tensor.name in found or tensor.alias in found]


def sites(path: str, target: str | None = None) -> list[Json]:
    """The tensors that can be quantised, each with the joints that read it."""
    value: list[Json] = call("graph", path, "--sites", *(["--target", target] if target else []), as_json=True)
    return value


def channels(path: str) -> list[Json]:
    """The groups of channels that can be removed (docs/json.md)."""
    groups: list[Json] = call("graph", path, "--channels", as_json=True)["groups"]
    return groups


def export(path: str, strategy: str, out: str) -> None:
    """Writes the compressed model."""
    call("export", "--model", path, "--strategy", strategy, "-o", out)


def hashes(path: str, inputs: Mapping[str, Array], folder: str) -> Json:
    """The members of a strategy file that name the model: its graph and its weights."""
    empty, filled = os.path.join(folder, "empty.json"), os.path.join(folder, "filled.json")
    samples = os.path.join(folder, "samples.npz")
    nothing = "0" * 32
    with open(empty, "w", encoding="utf-8") as file:
        json.dump({"schema": "mscgym.strategy.1", "graph": nothing, "weights": nothing, "edits": []}, file)
    numpy.savez(samples, **inputs)  # type: ignore[arg-type]
    call("export", "--model", path, "--strategy", empty, "--recalibrate", "--dataset", samples, "--save-strategy",
         filled, "-o", os.path.join(folder, "empty.onnx"))
    with open(filled, encoding="utf-8") as file:
        value: Json = json.load(file)
    return value
