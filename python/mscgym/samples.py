"""Samples in any common form, as arrays per input, and as a file that the program reads.

    samples = collect(loader, signature, n=512)
    samples.inputs             # {"image": [array, array, ...]}: chunks along the axis of samples
    path = samples.save(folder)

The axis of samples is the first, or the axis where the model's input has the symbol for their number.

Forms: an array [samples, ...]; a mapping of such arrays by input; a path (.npz, .npy, .safetensors or a
folder of images); a sequence, a DataLoader or an iterator of batches; a Dataset of torch; a function
without arguments that returns any of these. A batch is an array, a tuple of arrays in the order of the
inputs, or a mapping by input, and may end with labels: (inputs, labels).
"""
from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mscgym.safetensors import read_safetensors, write_safetensors

if TYPE_CHECKING:
    import numpy

DEFAULT_N = 512  # samples taken from a loader or iterator that does not say when to stop
LABEL_KEYS = ("labels", "label")  # of batches that are mappings
Array = Any   # what numpy.asarray takes, or a tensor of torch
Data = Any    # any form of samples


@dataclass(frozen=True)
class Signature:
    """The inputs of a model: names in order, and how many of them it needs."""
    names: Sequence[str]
    n_needed: int
    is_open: bool = False  # it may have more inputs, without names
    axes: Mapping[str, int] = field(default_factory=dict)  # of samples; 0 for inputs that are not here


@dataclass
class Samples:
    """Samples as chunks: arrays whose first axis is the samples, to be joined along it. In files the samples of an
    input are at the axis that `axes` names.
    """
    inputs: dict[str, list[numpy.ndarray]] = field(default_factory=dict)
    labels: list[numpy.ndarray] = field(default_factory=list)
    path: str | None = None  # a file or folder that the program reads itself; there are no inputs then
    axes: dict[str, int] = field(default_factory=dict)

    def n(self) -> int:
        return max((sum(_n_rows(chunk) for chunk in chunks) for chunks in self.inputs.values()), default=0)

    def first(self, n: int) -> dict[str, numpy.ndarray]:
        """The first n samples, as an example for an exporter. If samples have different shapes, there are fewer: only
        those before the first of another shape.
        """
        import numpy

        return {name: numpy.concatenate(list(_limited(_alike(chunks), n))) if chunks[0].ndim else chunks[0]
                for name, chunks in self.inputs.items()}

    def open_axes(self) -> dict[str, list[int]]:
        """The axes of each input, except that of the samples, whose length differs between samples."""
        return {name: [axis for axis in range(1, chunks[0].ndim) if len({chunk.shape[axis] for chunk in chunks}) > 1]
                for name, chunks in self.inputs.items()}

    def joined_labels(self) -> numpy.ndarray | None:
        """All labels [samples, ...]."""
        import numpy

        return numpy.concatenate(self.labels) if self.labels else None

    def classes(self) -> numpy.ndarray | None:
        """The labels, if they are classes: integers [samples]."""
        labels = self.joined_labels()
        return labels if labels is not None and labels.ndim == 1 and labels.dtype.kind in "iu" else None

    def n_bytes(self) -> int:
        return sum(chunk.nbytes for chunks in self.inputs.values() for chunk in chunks)

    def rename(self, names: Mapping[str, str]) -> None:
        self.inputs = {names.get(name, name): chunks for name, chunks in self.inputs.items()}
        self.axes = {names.get(name, name): axis for name, axis in self.axes.items()}

    def _in_place(self, name: str, chunk: numpy.ndarray) -> numpy.ndarray:
        """A chunk with the samples at their axis in files."""
        import numpy

        return numpy.moveaxis(chunk, 0, self.axes[name]) if name in self.axes else chunk

    def joined(self, name: str) -> numpy.ndarray:
        """All samples of an input, as in a file."""
        import numpy

        chunks = self.inputs[name]
        return self._in_place(name, numpy.concatenate(chunks)) if chunks[0].ndim else chunks[0]

    def save(self, folder: str, name: str = "samples") -> str:
        """Writes the inputs to a file of safetensors in the folder, and returns its path."""
        if self.path is not None:
            return self.path
        path = os.path.join(folder, name + ".safetensors")
        arrays: dict[str, list[numpy.ndarray]] = {}
        for key, chunks in self.inputs.items():
            if len({chunk.shape[1:] for chunk in chunks}) <= 1:
                arrays[key] = chunks if key not in self.axes else [self.joined(key)]
            else:  # samples of different shapes, each in an array of its own
                rows = (self._in_place(key, chunk[i:i + 1]) for chunk in chunks for i in range(len(chunk)))
                arrays.update({f"{key}/{i}": [row] for i, row in enumerate(rows)})
        write_safetensors(path, arrays)
        return path

    def save_npz(self, folder: str) -> str:
        """Writes the inputs to a .npz in the folder, and returns its path."""
        import numpy

        path = os.path.join(folder, "samples.npz")
        arrays: dict[str, Any] = {name: self.joined(name) for name in self.inputs}
        numpy.savez(path, **arrays)
        return path

    def save_labels(self, folder: str, name: str = "labels") -> str | None:
        """Writes the labels if they are classes, and returns the path."""
        import numpy

        classes = self.classes()
        if classes is None:
            return None
        path = os.path.join(folder, name + ".npy")
        numpy.save(path, classes.astype(numpy.int64))
        return path


# ---- From any form ------------------------------------------------------------------------------------

def has_base(value: Any, module: str, name: str) -> bool:
    """Is it an instance of this class? Answers without importing the module."""
    return any(base.__name__ == name and base.__module__.startswith(module) for base in type(value).__mro__)


def is_array(value: Any) -> bool:
    return hasattr(value, "__array__") or has_base(value, "torch", "Tensor")


def to_numpy(value: Array) -> numpy.ndarray:
    """An array or tensor as an array; bfloat16 becomes float32."""
    import numpy

    if has_base(value, "torch", "Tensor"):
        value = value.detach().cpu()
        value = value.float() if str(value.dtype) == "torch.bfloat16" else value
        return numpy.asarray(value.numpy())
    array = numpy.asarray(value)
    if array.dtype.kind not in "biuf":
        raise TypeError(f"samples: expected an array of numbers, found {type(value).__name__}")
    return array


def _n_rows(array: numpy.ndarray) -> int:
    return len(array) if array.ndim else 1


def _alike(chunks: Iterable[numpy.ndarray]) -> Iterator[numpy.ndarray]:
    """The chunks up to the first whose samples have another shape than those before."""
    shape: tuple[int, ...] | None = None
    for chunk in chunks:
        if shape is not None and chunk.shape[1:] != shape:
            return
        shape = chunk.shape[1:]
        yield chunk


def _limited(chunks: Iterable[numpy.ndarray], n: int) -> Iterator[numpy.ndarray]:
    """Chunks up to n rows in all."""
    for chunk in chunks:
        if n <= 0:
            return
        yield chunk[:n] if chunk.ndim else chunk
        n -= _n_rows(chunk)


def _looks_like_labels(value: Any, n_rows: int) -> bool:
    """A class for each sample."""
    if not is_array(value) and not isinstance(value, (list, tuple)):
        return False
    array = to_numpy(value)
    return array.ndim == 1 and array.dtype.kind in "iu" and len(array) == n_rows


class _Collector:
    """Takes batches apart, into inputs and labels, until there are n samples."""

    def __init__(self, signature: Signature | Callable[[], Signature], n: int | None):
        self.samples = Samples()
        self._ask = signature
        self._signature = signature if isinstance(signature, Signature) else None
        self._n = n
        self.is_whole = False  # the only array, which the program takes as it is

    def signature(self) -> Signature:
        if self._signature is None:
            assert callable(self._ask)
            self._signature = self._ask()
        return self._signature

    def left(self) -> int | None:
        return None if self._n is None else self._n - self.samples.n()

    def add(self, batch: Any) -> None:
        inputs, labels = self._split(batch)
        inputs = {name: self._samples_first(name, array) for name, array in inputs.items()}
        left = self.left()
        if not inputs:
            raise TypeError(f"samples: a batch has none of the model's inputs, {', '.join(self.signature().names)}")
        n_rows = max(_n_rows(array) for array in inputs.values())
        for name, array in inputs.items():
            chunks = self.samples.inputs.setdefault(name, [])
            if chunks and array.ndim != chunks[0].ndim:
                raise ValueError(f"samples: {name} has {array.ndim} axes in a batch, expected {chunks[0].ndim} as in "
                                 "the first")
            if array.ndim or not chunks:  # a number is the same in all batches
                chunks.append(array[:left] if _n_rows(array) == n_rows and array.ndim else array)
        if labels is not None:
            self.samples.labels.append(to_numpy(labels)[:left])

    def _split(self, batch: Any) -> tuple[dict[str, numpy.ndarray], Any]:
        if is_array(batch):
            return {self._only_name(): to_numpy(batch)}, None
        if isinstance(batch, Mapping):
            return self._split_mapping(batch)
        if isinstance(batch, (list, tuple)):
            return self._split_sequence(list(batch))
        raise TypeError(f"samples: expected an array, a tuple, a list or a dict, found {type(batch).__name__}")

    def _samples_first(self, name: str, array: numpy.ndarray) -> numpy.ndarray:
        import numpy

        axis = 0 if self.is_whole else self.signature().axes.get(name, 0)
        if axis == 0 or axis >= array.ndim:
            return array
        self.samples.axes[name] = axis
        return numpy.moveaxis(array, axis, 0)

    def _count(self, first: Array) -> int:
        """The number of samples of an array of the first input."""
        signature = self.signature()
        axis = signature.axes.get(signature.names[0], 0) if signature.names else 0
        return int(first.shape[axis])

    def _only_name(self) -> str:
        """The program takes a single array under any name."""
        if not self.is_whole:
            self.signature()
        return self._signature.names[0] if self._signature and self._signature.names else "input"

    def _split_mapping(self, batch: Mapping[str, Any]) -> tuple[dict[str, numpy.ndarray], Any]:
        signature = self.signature()
        # A module that could compute its loss is called without labels.
        names = [name for i, name in enumerate(signature.names)
                 if i < signature.n_needed or name not in LABEL_KEYS]
        if not any(name in batch for name in names):
            return {}, None
        inputs = {name: to_numpy(batch[name]) for name in names if batch.get(name) is not None}
        keys = [key for key in LABEL_KEYS if key in batch and key not in inputs]
        return inputs, batch[keys[0]] if keys else None

    def _split_sequence(self, parts: list[Any]) -> tuple[dict[str, numpy.ndarray], Any]:
        if parts and not is_array(parts[0]):
            inputs, _ = self._split(parts[0])
            return inputs, parts[1] if len(parts) > 1 else None
        signature = self.signature()
        n_most = len(parts) if signature.is_open else len(signature.names)
        labels = None
        if len(parts) > n_most or (len(parts) > signature.n_needed and len(parts) > 1
                                   and _looks_like_labels(parts[-1], self._count(parts[0]))):
            labels = parts.pop()
        if len(parts) > n_most:
            raise ValueError(f"samples: a batch has {len(parts) + 1} parts, expected "
                             f"{n_most} for the inputs {', '.join(signature.names)}, and labels")
        names = [*signature.names, *(f"input_{i}" for i in range(len(signature.names), len(parts)))]
        return {name: to_numpy(part) for name, part in zip(names, parts)}, labels


def _batches_of_dataset(dataset: Any) -> Iterator[Any]:
    """The items of a torch Dataset, which are single samples, as batches of one."""
    items = dataset if hasattr(dataset, "__iter__") else (dataset[i] for i in range(len(dataset)))
    return map(_as_batch, items)


def _as_batch(item: Any) -> Any:
    import numpy

    if is_array(item):
        return to_numpy(item)[None]
    if isinstance(item, Mapping):
        return {key: _as_batch(value) for key, value in item.items()}
    if isinstance(item, (list, tuple)):
        return tuple(_as_batch(part) for part in item)
    return numpy.asarray([item])


def collect(data: Data, signature: Signature | Callable[[], Signature], n: int | None = None,
            labels: Any = None) -> Samples:
    """Collects samples.

    Args:
        data: Any form that this module's head lists.
        signature: The model's inputs, or a function that gives them, which is called if the form needs them.
        n: At most so many samples, the first ones. None: all of data in memory, else DEFAULT_N.
        labels: None: those of the batches; False: none; else an array [samples, ...] of labels.

    Raises:
        TypeError, ValueError: The form is none of those, or does not fit the model's inputs.
    """
    import numpy

    collector = _Collector(signature, n)
    if callable(data) and not hasattr(data, "__iter__") and not is_array(data):
        data = data()
    if isinstance(data, (str, os.PathLike)):
        path = os.fspath(data)
        if n is None and not path.endswith(".npy"):
            collector.samples.path = path
        else:
            data = load_arrays(path)
    collector.is_whole = n is None and is_array(data) and (labels is None or labels is False)
    if collector.samples.path is None:
        _add_all(collector, data)
    samples = collector.samples
    if samples.path is None and samples.n() == 0:
        raise ValueError("samples: there are none")
    if labels is False:
        samples.labels = []
    elif labels is not None:
        samples.labels = [to_numpy(numpy.load(labels) if isinstance(labels, (str, os.PathLike)) else labels)[:n]]
    if samples.labels and samples.path is None and sum(map(len, samples.labels)) != samples.n():
        raise ValueError(f"labels: expected {samples.n()}, one for each sample, "
                         f"found {sum(map(len, samples.labels))}")
    return samples


def load_arrays(path: str) -> Any:
    """The only array of a file, or a dict of its arrays."""
    import numpy

    if path.endswith(".npy"):
        return numpy.load(path)
    if path.endswith(".npz"):
        with numpy.load(path) as file:
            arrays = dict(file)
        return next(iter(arrays.values())) if len(arrays) == 1 else arrays
    if path.endswith(".safetensors"):
        arrays = read_safetensors(path)
        return next(iter(arrays.values())) if len(arrays) == 1 else arrays
    raise ValueError(f"{path}: samples= needs a .npy, .npz or .safetensors file, or samples in memory")


def _add_all(collector: _Collector, data: Data) -> None:
    if is_array(data) or isinstance(data, (Mapping, tuple)):
        collector.add(data)
        return
    if not isinstance(data, list):
        collector._n = DEFAULT_N if collector._n is None else collector._n
    if has_base(data, "torch.utils.data", "Dataset"):
        data = _batches_of_dataset(data)
    if not isinstance(data, Iterable):
        raise TypeError(f"samples: expected arrays, batches or a path, found {type(data).__name__}")
    for batch in data:
        collector.add(batch)
        left = collector.left()
        if left is not None and left <= 0:
            return
