"""Graphs of Relax modules, and Relax modules of graphs. Needs numpy, and apache-tvm when a function is used.

    from mscgym.tvm import from_relax, to_relax

    graph = from_relax(module)                  # a tvm.IRModule
    graph.save("model.json")                    # mscgym run model.json, mscgym search model.json
    module = to_relax(graph, "generated")       # generated/main.py and generated/weights.safetensors

docs/tvm.md is the guide.
"""
from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mscgym.tvm.codegen import load, source, to_relax
    from mscgym.tvm.importing import from_relax
    from mscgym.tvm.reading import UnsupportedRelax

_PLACES = {"UnsupportedRelax": "reading", "from_relax": "importing", "load": "codegen", "source": "codegen",
           "to_relax": "codegen"}

__all__ = ["UnsupportedRelax", "from_relax", "load", "source", "to_relax"]


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'mscgym.tvm' has no attribute '{name}'")
    return getattr(importlib.import_module(f"mscgym.tvm.{_PLACES[name]}"), name)
