"""External joints for functions of loops (PrimFunc) that no joint computes.

`primitives.py` makes them, and the rows of `expressions_moves.py` write them back. They have the domain "tvm.loops" and
the function's text in TVM's language as the attribute `text`. No runtime but TVM's computes them.
"""
from __future__ import annotations

from mscgym.emitter import identifier
from mscgym.graph import Joint

DOMAIN = "tvm.loops"


def loops_name(joint: Joint) -> str:
    """The name of the function of such a joint, "" for other joints."""
    is_loops = joint.optype == "msc.external" and joint.attrs.get("domain") == DOMAIN
    return identifier(joint.attrs["op"]) if is_loops else ""


def loops_text(joint: Joint) -> str:
    return joint.attrs["attr_text"].removeprefix("string ")
