"""Messages as lines of JSON, over a program's standard input and output or those of a child."""
from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import IO, Any, TextIO

from mscgym.installed import environment


class ProtocolError(Exception):
    """The other program broke the protocol, or reported an error."""


@contextlib.contextmanager
def lines_of_its_own() -> Iterator[tuple[TextIO, TextIO]]:
    """Reserves standard input and output for messages. Meanwhile prints, also those of children and C
    libraries, go to standard error, and other readers of standard input find it empty.
    """
    # A name may come from a file that is not UTF-8.
    requests = os.fdopen(os.dup(0), "r", encoding="utf-8", errors="replace")
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    sys.stdout.flush()  # text that was printed before
    kept = sys.stdout
    sys.stdout = sys.stderr  # immediately, and in order
    try:
        yield requests, answers
    finally:
        sys.stdout = kept
        kept.flush()
        os.dup2(requests.fileno(), 0)
        os.dup2(answers.fileno(), 1)
        requests.close()
        answers.close()


def write(out: IO[str], message: Mapping[str, Any]) -> None:
    # JSON has no NaN, so it is sent as null.
    out.write(json.dumps(message, allow_nan=False, default=plain) + "\n")
    out.flush()


def plain(value: Any) -> Any:
    """Converts numbers and arrays of numpy, and similar types, to what JSON supports."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if hasattr(value, "item"):
        return value.item()
    raise TypeError(f"{type(value).__name__} cannot be sent: expected numbers, texts, lists and dictionaries")


class Child:
    """A child program that answers requests, each a line of JSON."""

    def __init__(self, command: Sequence[str], folder: str | None = None):
        self.name = " ".join(command)
        self.process = subprocess.Popen(command, cwd=folder, env=environment(), stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True, encoding="utf-8", errors="replace")

    def ask(self, method: str, **members: Any) -> dict[str, Any]:
        assert self.process.stdin and self.process.stdout
        try:
            write(self.process.stdin, {"method": method, **members})
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            raise ProtocolError(f"{self.name}: ended with exit status {self.process.wait()}, asked to {method}")
        try:
            answer = json.loads(line)
        except json.JSONDecodeError as error:
            raise ProtocolError(f"{self.name}, {method}: no JSON: {error}") from None
        if not isinstance(answer, dict):
            raise ProtocolError(f"{self.name}, {method}: expected an object, found {line.strip()[:80]}")
        if "error" in answer:
            raise ProtocolError(f"{self.name}, {method}: {answer['error']}")
        return answer

    def close(self) -> None:
        if self.process.poll() is None and self.process.stdin:
            with contextlib.suppress(BrokenPipeError, OSError):
                write(self.process.stdin, {"method": "done"})
                self.process.stdin.close()
            try:
                self.process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        if self.process.stdout:
            self.process.stdout.close()
