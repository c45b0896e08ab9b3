"""The progress of the program as a bar of tqdm, if tqdm is installed.

    bar = progress.Bar(None)
    bar.show({"name": "quantize[0]", "trials": 12, "of": 150, "best": 0.001})
    bar.close()
"""
from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Mapping
from typing import Any

SHARE = "{desc}: {percentage:3.0f}%|{bar}| {elapsed}{postfix}"


def _bar_class(wish: bool | None) -> Any:
    """tqdm's class; None: no bar. Without a wish, only people see bars: in notebooks and terminals."""
    if wish is False:
        return None
    try:
        kind = importlib.import_module("tqdm.auto").tqdm
    except ImportError:
        return None
    in_notebook = any(base.__module__ == "tqdm.notebook" for base in kind.__mro__)
    return kind if wish or in_notebook or sys.stderr.isatty() else None


class Bar:
    """A bar that appears with the first message, so a short call shows none.

    Args:
        wish: True: always; False: never, and tqdm is not imported; None: in notebooks and terminals.
    """

    def __init__(self, wish: bool | None):
        self._wish = wish
        self._bar: Any = None
        self._began = time.monotonic()

    def show(self, state: Mapping[str, Any]) -> None:
        """Shows a message of the program (docs/json.md, "Progress")."""
        if self._bar is None:
            kind = _bar_class(self._wish)
            self._wish = False if kind is None else self._wish
            if kind is None:
                return
            self._bar = kind(desc=state["name"], leave=False, unit="trial",
                             bar_format=None if "trials" in state else SHARE)
        if "trials" in state:
            self._show_trials(state)
        else:
            self._show_time(state)
        self._bar.refresh()

    def _show_trials(self, state: Mapping[str, Any]) -> None:
        self._bar.total, self._bar.n = state.get("of"), state["trials"]
        self._bar.set_description_str(state["name"], refresh=False)
        if "best" in state:
            self._bar.set_postfix_str(f"best {state['best']:.5g}", refresh=False)

    def _show_time(self, state: Mapping[str, Any]) -> None:
        """Without trials the bar shows the share of the time."""
        elapsed = time.monotonic() - self._began
        left = state.get("left_s")
        self._bar.bar_format = SHARE
        self._bar.n, self._bar.total = elapsed, None if left is None else elapsed + left
        self._bar.set_postfix_str("" if left is None else f"about {left:.0f} s left", refresh=False)
        self._bar.set_description_str(f"{state['name']}: {state['measuring']}", refresh=False)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()
