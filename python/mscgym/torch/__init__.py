"""Graphs of torch modules, and torch modules of graphs. Needs numpy, and torch when a function is used.

    from mscgym.torch import from_torch, to_torch

    graph = from_torch(model, (image,), dynamic_shapes={"x": {0: "batch"}})
    graph.save("model.json")                    # mscgym run model.json, mscgym search model.json
    model = to_torch(graph, "generated")        # generated/main.py and generated/weights.safetensors

docs/torch.md is the guide. `mscgym.wrap` and `mscgym.finish`, which train a module in place, are described in
docs/training.md.
"""
from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mscgym.torch.codegen import load, source, to_torch
    from mscgym.torch.exporting import from_exported, from_torch
    from mscgym.torch.reading import UnsupportedOperator

_PLACES = {"UnsupportedOperator": "reading", "from_exported": "exporting", "from_torch": "exporting",
           "load": "codegen", "source": "codegen", "to_torch": "codegen"}

__all__ = ["UnsupportedOperator", "from_exported", "from_torch", "load", "source", "to_torch"]


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'mscgym.torch' has no attribute '{name}'")
    return getattr(importlib.import_module(f"mscgym.torch.{_PLACES[name]}"), name)
