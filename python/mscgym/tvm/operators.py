"""All rows (rows.py), and the operators that a reader leaves out."""
from __future__ import annotations

from mscgym.tvm import operators_layers, operators_math, operators_moves, primitives  # noqa: F401, they fill the table
from mscgym.tvm.rows import ROWS

IGNORED = {"assert_op", "print", "null_value"}
"""Operators that only check or print, or stand for an argument that is left out."""

__all__ = ["IGNORED", "ROWS"]
