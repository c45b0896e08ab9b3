"""All rows (rows.py), and the operators that a reader leaves out."""
from __future__ import annotations

import operator

import torch

from mscgym.torch import operators_layers, operators_math, operators_moves  # noqa: F401, they fill the table
from mscgym.torch.rows import ROWS

aten = torch.ops.aten

IGNORED = {aten._assert_scalar.default, aten._assert_tensor_metadata.default, aten.sym_constrain_range.default,
           aten.sym_constrain_range_for_size.default, aten._assert_async.msg, operator.eq, operator.ge, operator.le,
           operator.ne, operator.lt, operator.gt}
"""Operators that only check; their results are not read."""

__all__ = ["IGNORED", "ROWS"]
