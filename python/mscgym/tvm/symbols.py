"""Symbolic lengths: TVM's expressions of variables as the prims of a graph (docs/graph.md)."""
from __future__ import annotations

from typing import Any

from mscgym.torch.symbols import Symbols
from mscgym.tvm.versions import kind_of, plain

_BINARY = {"Add": "Add", "Sub": "Sub", "Mul": "Mul", "FloorDiv": "FloorDiv", "Div": "FloorDiv", "FloorMod": "FloorMod",
           "Mod": "FloorMod", "Max": "Max", "Min": "Min"}


class RelaxSymbols(Symbols):
    """Adds prims to a graph. Variables of one name are one symbol."""

    def expression(self, length: Any) -> Any:
        return length

    def prim(self, expr: Any) -> str:
        key = str(expr)
        if key not in self.known:
            self.known[key] = self._add(expr)
        return self.known[key]

    def _add(self, expr: Any) -> str:
        kind = kind_of(expr)
        if isinstance(plain(expr), int):
            return self._prim(f"INT_{len(self.graph.prims)}", "Int", [], {"value": str(plain(expr))})
        if kind == "Cast":
            return self.prim(expr.value)
        if kind not in _BINARY:
            return self._prim(str(expr) if kind == "Var" else f"LENGTH_{len(self.graph.prims)}", "shape", [], {})
        return self._prim("", _BINARY[kind], [self.prim(expr.a), self.prim(expr.b)], {})
