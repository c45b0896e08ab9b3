"""Tables of plans: a column for each plan, a row for each number."""
from __future__ import annotations

import html
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas

FIRST = ("distill_loss", "accuracy")  # rows


def _text(value: float | None) -> str:
    """A number as mscgym prints it; unknown numbers are "-"."""
    if value is None:
        return "-"
    return f"{value:.0f}" if abs(value) < 1e15 and value == int(value) else f"{value:.5g}"


class Table(Mapping[str, Mapping[str, float]]):
    """Numbers of plans, by the name of the plan and then by the name of the number.

        >>> table = Table({"written": {"size_bytes": 100, "accuracy": 0.875}, "uncompressed": {"size_bytes": 400}})
        >>> table["written"]["size_bytes"]
        100
        >>> print(table)
                    written  uncompressed
        accuracy      0.875             -
        size_bytes      100           400
    """

    def __init__(self, columns: Mapping[str, Mapping[str, float]]):
        self._columns = {name: dict(numbers) for name, numbers in columns.items()}
        rows = dict.fromkeys(row for numbers in self._columns.values() for row in numbers)
        self.rows = sorted(rows, key=lambda row: row not in FIRST)

    def __getitem__(self, plan: str) -> Mapping[str, float]:
        return self._columns[plan]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def _cells(self) -> list[list[str]]:
        return [["", *self._columns],
                *([row, *(_text(numbers.get(row)) for numbers in self._columns.values())] for row in self.rows)]

    def __str__(self) -> str:
        cells = self._cells()
        first, *widths = (max(map(len, column)) for column in zip(*cells))
        return "\n".join("  ".join([line[0].ljust(first), *(cell.rjust(width) for cell, width in
                                                             zip(line[1:], widths))]) for line in cells)

    def __repr__(self) -> str:
        return f"<Table of {', '.join(self._columns)}>"

    def _repr_html_(self) -> str:
        head, *lines = self._cells()
        def row(cells: list[str], kind: str) -> str:
            return "<tr>" + "".join(f"<{kind}>{html.escape(cell)}</{kind}>" for cell in cells) + "</tr>"
        return ("<table><thead>" + row(head, "th") + "</thead><tbody>"
                + "".join(row(line, "td") for line in lines) + "</tbody></table>")

    def to_pandas(self) -> pandas.DataFrame:
        """A table with a row for each number and a column for each plan; needs pandas."""
        import pandas

        return pandas.DataFrame(self._columns, index=self.rows)


def flattened(numbers: Mapping[str, object], names: Mapping[str, str] | None = None,
              before: str = "") -> dict[str, float]:
    """Numbers in an object of the program, with the names of nested ones joined by dots. `names` renames members."""
    out: dict[str, float] = {}
    for key, value in numbers.items():
        key = before + (names or {}).get(key, key)
        if isinstance(value, Mapping):
            out.update(flattened(value, names, key + "."))
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            out[key] = value
    return out
