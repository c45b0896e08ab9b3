"""Graphs of torch modules, and torch modules of graphs. Needs torch and numpy; `import mscgym` imports neither.

    from mscgym.torch import from_torch, to_torch

    graph = from_torch(model, (image,), dynamic_shapes={"x": {0: "batch"}})
    graph.save("model.json")                    # mscgym run model.json, mscgym search model.json
    to_torch(graph, "generated")                # generated/main.py and generated/weights.safetensors

docs/torch.md is the guide.
"""
from mscgym.torch.exporting import from_exported, from_torch
from mscgym.torch.reading import UnsupportedOperator

__all__ = ["UnsupportedOperator", "from_exported", "from_torch"]
