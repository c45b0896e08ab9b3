"""Computes calls whose arguments are small constants, such as bounds and lengths that a front end computes."""
from __future__ import annotations

from typing import Any, Callable

import numpy as np

from mscgym.graph import Array
from mscgym.tvm.reading import Call, Shape, Weight

LIMIT = 64
"""The largest number of elements of a result that is computed here. Larger constants become joints."""

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "isnan": np.isnan, "where": np.where, "negative": np.negative, "add": np.add, "subtract": np.subtract,
    "multiply": np.multiply, "maximum": np.maximum, "minimum": np.minimum, "equal": np.equal,
    "floor_divide": np.floor_divide, "logical_not": np.logical_not, "greater": np.greater, "less": np.less}


def fold(c: Call) -> Array | None:
    """The result of a call, or None if it is not computed here."""
    if not c.args or not all(isinstance(item, (Weight, Shape)) for item in c.args) or not isinstance(c[0], Weight):
        return None
    data = [item.data for item in c.args if isinstance(item, Weight)]
    if any(part.size > LIMIT for part in data) or data[0].dtype.kind not in "biuf":
        return None
    axis = c.attr("axis")
    if c.op in FUNCTIONS and len(data) == len(c.args):
        result = FUNCTIONS[c.op](*data)
    elif c.op == "astype":
        result = data[0].astype(c.out_dtype)
    elif c.op in ("reshape", "broadcast_to", "squeeze", "expand_dims"):
        if not all(isinstance(length, int) for length in c.out_shape):
            return None
        result = np.broadcast_to(data[0], c.out_shape) if c.op == "broadcast_to" else data[0].reshape(c.out_shape)
    elif c.op == "take" and len(data) == 2:
        result = np.take(data[0], data[1], axis)
    else:
        return None
    result = np.array(result, dtype=c.out_dtype)
    return result if result.size <= LIMIT and list(result.shape) == c.out_shape else None
