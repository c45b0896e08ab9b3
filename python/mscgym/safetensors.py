"""Arrays in files of safetensors, without the package of that name.

    write_safetensors("samples.safetensors", {"image": [first, second]})   # chunks, joined along the first axis
    read_safetensors("samples.safetensors")["image"]                       # an array, mapped into memory
"""
from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy

TYPES = {"bool": "BOOL", "uint8": "U8", "int8": "I8", "uint16": "U16", "int16": "I16", "uint32": "U32",
                     "int32": "I32", "uint64": "U64", "int64": "I64", "float16": "F16", "float32": "F32",
                     "float64": "F64"}


def write_safetensors(path: str, arrays: Mapping[str, Sequence[numpy.ndarray]]) -> None:
    """Writes arrays, each given as chunks along its first axis. An existing file is replaced at once, because
    another process may be reading it.
    """
    import numpy

    header: dict[str, Any] = {}
    end = 0
    types = {name: numpy.result_type(*chunks) for name, chunks in arrays.items()}
    for name, chunks in arrays.items():
        dtype = types[name]
        if dtype.name not in TYPES:
            raise TypeError(f"input {name}: expected numbers, found elements of {dtype}")
        shape = [sum(map(len, chunks)), *chunks[0].shape[1:]] if chunks[0].ndim else []
        begin, end = end, end + dtype.itemsize * int(numpy.prod(shape, dtype=numpy.int64))
        header[name] = {"dtype": TYPES[dtype.name], "shape": shape, "data_offsets": [begin, end]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path + ".part", "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for name, chunks in arrays.items():
            for chunk in chunks:
                file.write(numpy.ascontiguousarray(chunk, types[name]).reshape(-1).view(numpy.uint8).data)
    os.replace(path + ".part", path)


def read_safetensors(path: str) -> dict[str, numpy.ndarray]:
    """The arrays of a file, mapped into memory and private to this process. ValueError, which names the file, if it
    has another form.
    """
    try:
        return _read(path)
    except (KeyError, OverflowError, TypeError, ValueError) as error:
        raise ValueError(f"{path}: not a safetensors file of floats and integers ({type(error).__name__}: {error})"
                         ) from error


def _read(path: str) -> dict[str, numpy.ndarray]:
    import numpy

    types = {code: name for name, code in TYPES.items()}
    with open(path, "rb") as file:
        n = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(n))
    header.pop("__metadata__", None)
    arrays = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        shape = tuple(entry["shape"])
        # BF16 has no type in numpy: its bits are the upper half of a float32.
        dtype = numpy.dtype("uint16" if entry["dtype"] == "BF16" else types[entry["dtype"]])
        array = (numpy.memmap(path, dtype, "c", 8 + n + begin, shape) if end > begin
                 else numpy.zeros(shape, dtype))
        if entry["dtype"] == "BF16":
            array = (array.astype(numpy.uint32) << 16).view(numpy.float32)
        arrays[name] = numpy.asarray(array)
    return arrays
