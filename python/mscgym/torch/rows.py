"""The table of rows: from an operator of torch to the function that adds its joints.

A row gets a `Call` (mscgym.torch.reading): the arguments of the operator by the names of its schema, and functions that
add joints. It returns the name of the tensor that holds the result, or a list of names for several results. The rows
are in operators_math.py, operators_layers.py and operators_moves.py. To add an operator, add a row if a joint computes
it, or else a formula in formulas.py.
"""
from __future__ import annotations

from typing import Any, Callable

from mscgym.torch.reading import Call, Result

Row = Callable[[Call], Result]
ROWS: dict[Any, Row] = {}


def row(*targets: Any) -> Callable[[Row], Row]:
    """Makes the function the row of these operators."""
    def add(function: Row) -> Row:
        ROWS.update(dict.fromkeys(targets, function))
        return function
    return add


def repeat(values: Any, n: int) -> list[int]:
    """The numbers of `n` axes: a single number holds for all of them."""
    items: list[int] = [values] if isinstance(values, int) else list(values)
    return items * n if len(items) == 1 else items


def axes_of(c: Call) -> list[int]:
    """The axes that a reduction names; all if it names none."""
    axes = c.args.get("dim")
    return [axes] if isinstance(axes, int) else list(axes or range(c.fake("self").dim()))
