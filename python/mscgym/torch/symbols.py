"""Symbolic lengths: torch's expressions of symbols as the prims of a graph (docs/graph.md)."""
from __future__ import annotations

from typing import Any

from mscgym.graph import Graph

_BINARY = {"Add": "Add", "Mul": "Mul", "FloorDiv": "FloorDiv", "CleanDiv": "FloorDiv", "Mod": "FloorMod",
           "PythonMod": "FloorMod", "Max": "Max", "Min": "Min"}


class Symbols:
    """Adds prims to a graph. `names` has the names that the caller gives to torch's symbols: {"s77": "batch"}."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.names: dict[str, str] = {}
        self.known: dict[Any, str] = {}

    def shape(self, lengths: list[Any]) -> tuple[list[int], list[str]]:
        """The lengths as numbers, -1 for a symbolic one, and the names of their prims."""
        numbers = [length if isinstance(length, int) else -1 for length in lengths]
        return numbers, [str(length) if isinstance(length, int) else self.prim(self.expression(length))
                         for length in lengths]

    def expression(self, length: Any) -> Any:
        """The expression of a length that is no number."""
        return length.node.expr

    def prim(self, expr: Any) -> str:
        if expr not in self.known:
            self.known[expr] = self._add(expr)
        return self.known[expr]

    def _add(self, expr: Any) -> str:
        kind = _BINARY.get(type(expr).__name__)
        if expr.is_Integer:
            return self._prim(f"INT_{len(self.graph.prims)}", "Int", [], {"value": str(int(expr))})
        if kind is None or (kind == "Mul" and any(part.is_Rational and not part.is_Integer for part in expr.args)):
            name = self.names.get(str(expr), str(expr)) if expr.is_Symbol else f"LENGTH_{len(self.graph.prims)}"
            return self._prim(name, "shape", [], {})
        name = self.prim(expr.args[0])
        for part in expr.args[1:]:
            name = self._prim("", kind, [name, self.prim(part)], {})
        return name

    def _prim(self, name: str, optype: str, parents: list[str], attrs: dict[str, str]) -> str:
        for prim in self.graph.prims:
            is_same = prim["optype"] == optype and prim["parents"] == parents
            if is_same and (parents or (prim["attrs"] == attrs if attrs else prim["name"] == name)):
                return str(prim["name"])
        name = name or f"{optype.upper()}_{len(self.graph.prims)}"
        attrs = attrs or ({"symbol": name} if optype == "shape" else {})
        self.graph.prims.append({"name": name, "optype": optype, "parents": parents, "attrs": attrs})
        return name
