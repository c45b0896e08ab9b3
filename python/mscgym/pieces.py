"""Runs the pieces of a manifest, of `mscgym split` or `mscgym place`, in this process.

    pieces = mscgym.Pieces("placed/manifest.json")
    outputs = pieces.run({"image": images})      # {"scores": array}

Each piece is loaded once, in the runtime that the manifest names: onnxruntime or openvino of PyPI, or
mscgym's own library. Needs numpy.
"""
from __future__ import annotations

import importlib.machinery
import importlib.util
import json
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mscgym.errors import Error
from mscgym.installed import program

if TYPE_CHECKING:
    import numpy

SCHEMA = "mscgym.pieces"


def _runtime() -> Any:
    """The module behind the program mscgym-runtime, which knows how to run a model in each runtime: part of a wheel,
    else the script next to the program.
    """
    if importlib.util.find_spec("mscgym.runtime"):
        return importlib.import_module("mscgym.runtime")
    path = os.path.join(os.path.dirname(os.path.realpath(program())), "mscgym-runtime")
    if not os.path.isfile(path):
        raise FileNotFoundError(f"there is no {path}: install mscgym-runtime next to mscgym")
    loader = importlib.machinery.SourceFileLoader("mscgym_runtime", path)
    spec = importlib.util.spec_from_loader(loader.name, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


class Pieces:
    """The pieces of a manifest, loaded. `threads`: threads of a run. External operators need plug-ins, which
    `mscgym run` takes; here their pieces are refused.
    """

    def __init__(self, manifest: str | os.PathLike[str], threads: int = 1) -> None:
        self.path = os.fspath(manifest)
        with open(self.path, encoding="utf-8") as file:
            try:
                data = json.load(file)
            except ValueError as error:
                raise Error(f"{self.path}: {error}") from error
        if not isinstance(data, dict) or data.get("schema") != SCHEMA or data.get("version") != 1:
            raise Error(f"{self.path}: is not a manifest of pieces, version 1")
        self._runtime = _runtime()
        try:
            self.inputs: list[str] = data["inputs"]
            self.outputs: list[str] = data["outputs"]
            self._pieces = [(piece, self._open(piece, threads)) for piece in data["pieces"]]
            known = {*self.inputs, *(value["name"] for piece in data["pieces"] for value in piece["outputs"])}
            wanted = {*self.outputs, *(value["name"] for piece in data["pieces"] for value in piece["inputs"])}
        except (AttributeError, KeyError, TypeError) as error:
            raise Error(f"{self.path}: is no manifest of pieces: {type(error).__name__} {error}") from error
        if not wanted <= known:
            raise Error(f"{self.path}: no piece computes {min(wanted - known)}")

    def _open(self, piece: Mapping[str, Any], threads: int) -> Any:
        path = os.path.join(os.path.dirname(self.path), piece["model"])
        if os.path.isabs(piece["model"]) or ".." in piece["model"].split("/"):
            raise Error(f"{self.path}: {piece['model']} is outside the manifest's folder")
        runtime = piece.get("runtime", "mscgym")
        backend = piece.get("device", "cpu") if runtime == "mscgym" else runtime
        return self._guard(lambda: self._runtime.open_backend(backend, path, threads))

    def _guard(self, action: Any) -> Any:
        try:
            return action()
        except Exception as error:  # each runtime has errors of its own
            raise Error(f"{self.path}: {error}") from error

    def run(self, inputs: Mapping[str, Any]) -> dict[str, numpy.ndarray]:
        """The outputs of the whole network by name. `inputs` has an array for each of its inputs, in the type that
        the network reads.
        """
        import numpy

        values = {name: numpy.asarray(array, order="C") for name, array in inputs.items()}
        for name in self.inputs:
            if name not in values:
                raise Error(f"{self.path}: the network needs an input {name}")
        for piece, session in self._pieces:
            feeds = {value["name"]: values[value["name"]] for value in piece["inputs"]}
            values.update(self._guard(lambda session=session, feeds=feeds: session.outputs(feeds)))
        return {name: values[name] for name in self.outputs}
