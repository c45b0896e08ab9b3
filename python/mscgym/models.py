"""Models in any common form, as ONNX files that the program reads; and models that it wrote.

    model = Source(module)
    samples = collect(loader, model.signature)
    path = model.save(folder, samples)     # exported by torch
"""
from __future__ import annotations

import contextlib
import inspect
import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mscgym import process
from mscgym.errors import Error
from mscgym.folders import Held
from mscgym.samples import Samples, Signature, has_base

if TYPE_CHECKING:
    import onnx
    from torch import nn

LARGEST_PROTO = (1 << 31) - 1  # protobuf's limit, in bytes


class Model(os.PathLike[str]):
    """A model that the program wrote. It can be used wherever a path can.

    Args:
        path: The ONNX file.
        held: Kept as long as the model, such as the temporary folder of the file.
    """

    def __init__(self, path: str, held: object = None):
        self.path = Path(path)
        self._held = held

    def __fspath__(self) -> str:
        return str(self.path)

    def __str__(self) -> str:
        return str(self.path)

    def __repr__(self) -> str:
        return f"Model({str(self.path)!r})"

    def save(self, path: str | os.PathLike[str]) -> Model:
        """Copies the file, and returns the copy. A model above 2 GB has a second file, which is found by its
        name: such a model can be copied to another folder, but not renamed.
        """
        data = Path(f"{self.path}.data")
        target = Path(path)
        if data.exists():
            if target.name != self.path.name:
                raise Error(f"{self.path}: its weights are in {data.name}, which it names: "
                            f"save it as FOLDER/{self.path.name}, or give output=")
            shutil.copyfile(data, f"{target}.data")
        shutil.copyfile(self.path, target)
        return Model(str(target))

    def proto(self) -> onnx.ModelProto:
        """The model as an object of onnx, which must be installed."""
        import onnx

        return onnx.load(self.path)

    def torch(self, folder: str | os.PathLike[str] | None = None) -> nn.Module:
        """The model as a module of torch, in evaluation, that computes what the compressed model computes
        (docs/torch.md). Its weights are what the stored integers represent. Its activations are rounded as in the
        model, and gradients pass the rounding.

        Args:
            folder: Gets the text of the module and its weights. Without it, no files remain.

        Raises:
            Error: The model has an operation that has no expression in torch.
        """
        from mscgym.graph import Graph, GraphError
        from mscgym.torch import to_torch

        held = Held()
        path = os.path.join(held.path, "model.json")
        process.call(["graph", str(self.path), "-o", path], progress=False, as_json=False)
        try:
            return to_torch(Graph.load(path), Path(folder or os.path.join(held.path, "torch")))
        except GraphError as error:
            raise Error(f"{self.path}: {error}") from error


class Source:
    """A model as the user gave it.

    Args:
        model: A path (ONNX, MSCGraph text or JSON), a result, an onnx.ModelProto, a torch.nn.Module, a
            torch.export.ExportedProgram, or what torch.onnx.export returns.
    """

    def __init__(self, model: Any):
        self.model = model
        self.is_module = has_base(model, "torch.nn", "Module")
        self.is_program = has_base(model, "torch.export", "ExportedProgram")
        self.is_proto = has_base(model, "onnx", "ModelProto")
        self.is_onnx_program = has_base(model, "torch.onnx", "ONNXProgram")
        self.path = os.fspath(model) if isinstance(model, (str, os.PathLike)) else None
        if not (self.path or self.is_module or self.is_program or self.is_proto or self.is_onnx_program):
            raise TypeError("model: expected a path, an onnx.ModelProto, a torch.nn.Module or an ExportedProgram, "
                            f"found {type(model).__name__}")

    def signature(self) -> Signature:
        """The model's inputs."""
        if self.is_module:
            return _signature_of_forward(self.model.forward)
        shapes: dict[str, list[str]]
        if self.is_program:
            shapes = {name: [] for name in self.model.graph_signature.user_inputs}
        elif self.is_proto or self.is_onnx_program:
            graph = (self.model if self.is_proto else self.model.model_proto).graph
            stored = {tensor.name for tensor in graph.initializer}
            shapes = {value.name: [dim.dim_param for dim in value.type.tensor_type.shape.dim]
                      for value in graph.input if value.name not in stored}
        else:
            graph = process.call(["graph", str(self.path)], progress=False).value
            nodes = [node for node in graph["nodes"] if node["optype"] == "input"]
            tensors = [node["outputs"][0] | {"node": node["name"]} for node in nodes]
            shapes = {tensor.get("alias") or tensor["node"]: [
                prim if length < 0 else "" for length, prim in zip(tensor["shape"], tensor.get("prims", []))]
                for tensor in tensors}
        return Signature(list(shapes), len(shapes), axes=_sample_axes(list(shapes.items())))

    def save(self, folder: str, samples: Samples | None) -> str:
        """Writes the model to the folder, unless it is a file. Returns its path. Samples get the names of the
        model's inputs; a module is exported with the first of them as its example.
        """
        path = os.path.join(folder, "model.onnx")
        if self.path:
            return self.path
        if self.is_proto:
            _save_proto(self.model, path)
            return path
        program = self.model if self.is_onnx_program else self._export(samples)
        program.save(path, external_data=program.model_proto.ByteSize() > LARGEST_PROTO // 2)
        if samples and samples.path is None and not self.is_onnx_program:
            names = [value.name for value in program.model.graph.inputs]
            samples.rename(dict(zip(list(samples.inputs), names)))
        return path

    def _export(self, samples: Samples | None) -> Any:
        import torch

        try:
            if self.is_program:
                return torch.onnx.export(self.model, dynamo=True, verbose=False)
            if samples is None or samples.path is not None:
                raise Error("a torch.nn.Module is exported with an example of its inputs: "
                            "give samples as arrays, tensors or a loader")
            return _export_module(self.model, samples, self.signature())
        except torch.onnx.errors.OnnxExporterError as error:
            cause: BaseException = error
            while cause.__cause__ is not None:
                cause = cause.__cause__
            line = (str(cause).strip().splitlines() or [""])[0]
            raise Error(f"torch.onnx.export cannot export {type(self.model).__name__}: {type(cause).__name__}: "
                        f"{line}") from error


def _sample_axes(shapes: Sequence[tuple[str, Sequence[str]]]) -> dict[str, int]:
    """The axes of samples that are not the first. Shapes have names of open lengths, and "" for others. As in the
    program, the number of samples is the first length of an input, if it is open and no other length is in all inputs.
    """
    leading = [shape[0] for _, shape in shapes if shape and shape[0]]
    names = [length for _, shape in shapes for length in shape if length]
    shared = [length for length in names if all(length in shape for _, shape in shapes)]
    is_leading = leading and (len(shapes) == 1 or leading[0] in shared or not shared)
    symbol = leading[0] if is_leading else next(iter(shared or names), "")
    return {name: list(shape).index(symbol) for name, shape in shapes if symbol in shape and symbol != shape[0]}


def _signature_of_forward(forward: Any) -> Signature:
    kinds = inspect.Parameter
    parameters = inspect.signature(forward).parameters.values()
    named = [p for p in parameters if p.kind in (kinds.POSITIONAL_ONLY, kinds.POSITIONAL_OR_KEYWORD,
                                                 kinds.KEYWORD_ONLY)]
    needed = [p for p in named if p.default is kinds.empty]
    return Signature([p.name for p in named], len(needed), any(p.kind == kinds.VAR_POSITIONAL for p in parameters))


def _save_proto(proto: Any, path: str) -> None:
    if proto.ByteSize() <= LARGEST_PROTO:
        Path(path).write_bytes(proto.SerializeToString())
        return
    import onnx

    onnx.save(proto, path, save_as_external_data=True, location="model.onnx.data")


@contextlib.contextmanager
def _evaluating(module: Any) -> Iterator[None]:
    """In evaluation mode; afterwards each submodule has its own mode again."""
    modes = [(part, part.training) for part in module.modules()]
    module.eval()
    try:
        yield
    finally:
        for part, mode in modes:
            part.training = mode


def _export_module(module: Any, samples: Samples, signature: Signature) -> Any:
    """Exports with a dynamic number of samples and dynamic lengths that differ between samples, unless the module fixes
    them.
    """
    import torch

    tensors = {name: _example(array, module) for name, array in samples.first(2).items()}
    names = list(tensors)
    lengths = samples.open_axes()
    free = {name: dict.fromkeys([0, *lengths[name]], torch.export.Dim.AUTO) if tensor.ndim else None
            for name, tensor in tensors.items()}
    by_position = names == list(signature.names)[:len(names)]
    unnamed = [name for name in names if name not in signature.names]
    args = tuple(tensors.values()) if by_position or unnamed else ()
    shapes: Any = tuple(free.values()) if not unnamed else (tuple(free.values()),)
    with _evaluating(module), torch.no_grad():
        return torch.onnx.export(module, args, kwargs=None if args else tensors, dynamo=True, verbose=False,
                                 dynamic_shapes=shapes if args else free)


def _example(array: Any, module: Any) -> Any:
    """A tensor of at least two samples (torch fixes an axis of length 1), where the module computes."""
    import torch

    tensor = torch.tensor(array)
    if tensor.ndim and len(tensor) == 1:
        tensor = torch.cat([tensor, tensor])
    parameter = next(module.parameters(), torch.zeros(()))
    if tensor.dtype == torch.float64 and parameter.dtype != torch.float64:
        tensor = tensor.float()
    return tensor.to(parameter.device)
