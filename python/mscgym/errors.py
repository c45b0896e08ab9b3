"""Exceptions of the functions that call the program."""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mscgym.results import Result


class Error(RuntimeError):
    """The program, or the work before it, failed. The text is one line that says what is wrong.

    Attributes:
        code: The program's exit code (1 failed, 2 wrong options or configuration, 3 problem of the machine);
            None if the program did not run.
        log: All lines that the program wrote to standard error.
        result: What a search has found although it failed, such as plans that all break a bound; else None.
    """

    def __init__(self, line: str, code: int | None = None, log: Sequence[str] = (), result: Result | None = None):
        super().__init__(line)
        self.code = code
        self.log = list(log)
        self.result = result


class Stopped(KeyboardInterrupt):
    """Ctrl-C stopped the program, which ended in order. The same call continues a search.

    Attributes:
        result: The result so far of a search; None if there is none.
    """

    def __init__(self, line: str, result: Result | None = None):
        super().__init__(line)
        self.result = result
