"""Operators of a domain of one's own, computed by Python functions (docs/operators.md).

A plug-in is a file that mscgym starts:

    from mscgym import operators

    @operators.operator("my.domain", "Scale")
    def scale(x, *, factor=1.0):
        return x * factor

    operators.run()

    mscgym run net.onnx --operators scale.py ...

The functions get and return arrays of numpy.
"""
from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mscgym import protocol

Shape = tuple[str, tuple[int, ...]]
"""Type and lengths of a tensor: ("float32", (2, -1))."""


class Operator:
    """One operator.

    Attributes:
        domain: Its domain in the model; "" is ONNX's own.
        op: Its name in the model.
        compute: Gets the node's inputs as arrays (None: absent), and its attributes by name. Returns an array, or a
            sequence of arrays if the node has several outputs. Equal inputs must give equal outputs, bit by bit.
        infer: Gets the types of the inputs and the attributes, and returns the types of the outputs. A length below 0
            is unknown: return the length of an input to say that both are equal, or -1. None: the types are those
            that the model states.
    """

    def __init__(self, domain: str, op: str, compute: Callable[..., Any], infer: Callable[..., Any] | None):
        self.domain = domain
        self.op = op
        self.compute = compute
        self.infer = infer


_operators: list[Operator] = []


def operator(domain: str, op: str, *, infer: Callable[..., Any] | None = None
             ) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Registers the decorated function as the `compute` of an operator.

    Attributes of the node are keyword arguments: int, float, str, and lists of these. Attributes of other types
    (tensors, graphs) are bytes: ONNX's AttributeProto, which `onnx.AttributeProto.FromString` reads.
    """
    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        _operators.append(Operator(domain, op, function, infer))
        return function
    return register


def run() -> None:
    """Answers requests of mscgym on standard input and output until it sends "done"."""
    with protocol.lines_of_its_own() as (requests, answers):
        for line in requests:
            message = json.loads(line)
            if message["method"] == "done":
                break
            protocol.write(answers, answer(message))


def answer(message: Mapping[str, Any]) -> dict[str, Any]:
    """The answer to one request. An exception of a function becomes an error."""
    method = message["method"]
    if method == "init":
        return {"operators": [{"domain": o.domain, "op": o.op, "infers": o.infer is not None} for o in _operators]}
    found = [o for o in _operators if (o.domain, o.op) == (message["domain"], message["op"])]
    if method not in ("infer", "compute") or not found:
        return {"error": f"there is no method {method} for operator {message.get('op')}"}
    try:
        return {"outputs": _infer(found[0], message) if method == "infer" else _compute(found[0], message)}
    except Exception as error:  # of the plug-in's function
        return {"error": f"{type(error).__name__}: {error}"}


def _infer(operator: Operator, message: Mapping[str, Any]) -> list[dict[str, Any]]:
    assert operator.infer is not None
    inputs = [None if t is None else (t["dtype"], tuple(t["dims"])) for t in message["inputs"]]
    types = operator.infer(*inputs, **_attributes(message))
    is_single = isinstance(types[0], str)
    return [{"dtype": dtype, "dims": list(dims)} for dtype, dims in ([types] if is_single else types)]


def _compute(operator: Operator, message: Mapping[str, Any]) -> list[dict[str, Any]]:
    import numpy as np

    results = operator.compute(*[_array(t) for t in message["inputs"]], **_attributes(message))
    many = results if isinstance(results, (tuple, list)) else [results]
    answers = []
    for wanted, result in zip(message["outputs"], many, strict=True):
        array = np.ascontiguousarray(result).reshape(np.shape(result))
        if str(array.dtype) != wanted["dtype"] and wanted["dtype"] != "bfloat16":
            raise TypeError(f"an output is {array.dtype}, expected {wanted['dtype']}")
        answers.append({"dtype": wanted["dtype"], "dims": list(array.shape),
                        "data": base64.b64encode(array.tobytes()).decode("ascii")})
    return answers


def _array(tensor: Mapping[str, Any] | None) -> Any:
    """An array; bfloat16 is passed as uint16, because numpy lacks it."""
    import numpy as np

    if tensor is None:
        return None
    dtype = "uint16" if tensor["dtype"] == "bfloat16" else tensor["dtype"]
    return np.frombuffer(base64.b64decode(tensor["data"]), dtype).reshape(tensor["dims"])


def _numbers(text: str) -> Sequence[str]:
    return [word for word in text.split(",") if word]


_READERS: dict[str, Callable[[str], Any]] = {
    "int": int,
    "float": float,
    "string": str,
    "ints": lambda text: [int(word) for word in _numbers(text)],
    "floats": lambda text: [float(word) for word in _numbers(text)],
    "strings": json.loads,
    "proto": base64.b64decode,
}


def _attributes(message: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _READERS[a["type"]](a["value"]) for name, a in message["attrs"].items()}
