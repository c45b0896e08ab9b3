"""The table of rows: from an operator of Relax to the function that adds its joints.

A row gets a `Call` (mscgym.tvm.reading): the arguments and attributes of one call, and functions that add joints. It
returns the name of the tensor that holds the result, or a list for a tuple. The rows are in operators_math.py,
operators_layers.py and operators_moves.py.

If an operator has no joint of its own, its row adds a group: joints that together compute it. All but the last have
names in the group, "silu/sigmoid", and the last has the group's name, "silu". groups.py turns such joints back into
the operator.
"""
from __future__ import annotations

from typing import Callable

from mscgym.tvm.reading import Call, Value

Row = Callable[[Call], Value]
ROWS: dict[str, Row] = {}


def row(*names: str) -> Callable[[Row], Row]:
    """Makes the function the row of these operators, whose names are given without "relax."."""
    def add(function: Row) -> Row:
        ROWS.update(dict.fromkeys(names, function))
        return function
    return add


def axes_of(c: Call, key: str = "axis") -> list[int]:
    """The axes that a reduction names; all if it names none."""
    axes = c.attr(key)
    return [axes] if isinstance(axes, int) else [*range(c.rank(0))] if axes is None else list(axes)
