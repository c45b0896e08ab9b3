"""Writing a torch module as ONNX by torch's own exporter, with the names of its parameters."""
from __future__ import annotations

import contextlib
import copy
import inspect
import io
import logging
import warnings
from collections.abc import Sequence
from typing import Any

import torch
from torch import nn


def input_names(module: nn.Module, args: Sequence[torch.Tensor]) -> list[str]:
    """Names of the arguments of `forward`; for *args, the name and a number."""
    names: list[str] = []
    for parameter in inspect.signature(module.forward).parameters.values():
        if parameter.kind == parameter.VAR_POSITIONAL:
            names += [f"{parameter.name}_{i}" for i in range(len(args) - len(names))]
        elif len(names) < len(args):
            names.append(parameter.name)
    return names[:len(args)]


def export_onnx(module: nn.Module, args: Sequence[torch.Tensor], path: str) -> None:
    """Writes the module, in evaluation and in float32 on the CPU, to `path`. The first axis of the inputs becomes
    symbolic if torch can export it so. Needs onnx and onnxscript. The module itself does not change.

    `args`: the tensors that `forward` gets, each [samples, ...].
    """
    try:
        import onnxscript  # noqa: F401
    except ImportError as error:
        raise ImportError("torch's exporter needs onnx and onnxscript: pip install onnx onnxscript") from error
    module = copy.deepcopy(module).cpu().eval()
    args = tuple(torch.cat([a.cpu()] * 2) if a.ndim and len(a) == 1 else a.cpu() for a in args)
    names = input_names(module, args)
    batch = torch.export.Dim("N", min=1, max=4096)
    shapes: list[Any] = [{0: batch} if a.ndim else None for a in args]
    kinds = [p.kind for p in inspect.signature(module.forward).parameters.values()]
    dynamic = (tuple(shapes),) if kinds[:1] == [inspect.Parameter.VAR_POSITIONAL] else tuple(shapes)
    options: dict[str, Any] = {"dynamo": True, "input_names": names, "external_data": False, "verbose": False}
    outputs: Any = getattr(module, "OUTPUTS", ())  # of a generated module
    if outputs:
        options["output_names"] = list(outputs)
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()), _quiet():
        warnings.simplefilter("ignore")
        try:
            torch.onnx.export(module, args, path, dynamic_shapes=dynamic, **options)
        except Exception:  # the number of samples decides the form of the network
            torch.onnx.export(module, args, path, **options)


@contextlib.contextmanager
def _quiet() -> Any:
    level = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(level)
