"""Runs the program: its result, messages and progress, requests to this process, and Ctrl-C.

    answer = process.call(["quantize", "model.onnx", ...], progress=None)
    answer.value    # the JSON that the program printed

The program is in a process group of its own, so only this process gets Ctrl-C. It passes each on, once
per key press, as the program expects: the first ends the program in order, the second at once.
"""
from __future__ import annotations

import contextlib
import json
import logging
import os
import selectors
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import FrameType
from typing import IO, Any

from mscgym.errors import Error, Stopped
from mscgym.installed import FOLDER, environment, program
from mscgym.progress import Bar
from mscgym.serving import Connection, Server

STOPPED = 4  # exit code: stopped on request
POLL_S = 0.2
MOST_REQUESTS = 50  # to end
HEARD = 3           # number of requests after which the program has heard of the second one
log = logging.getLogger("mscgym")


@dataclass
class Answer:
    """What the program said."""
    value: Any                # its result; None if it printed none
    code: int = 0             # its exit code
    lines: list[str] = field(default_factory=list)  # its messages
    failure: str | None = None  # the message that says why it failed


def call(arguments: Sequence[str], *, progress: bool | None = None, server: Server | None = None,
         as_json: bool = True) -> Answer:
    """Runs the program to its end, and returns its result also if it failed after a result. Without `as_json`
    there is no result.

    Raises:
        Error: The program failed, and printed no result.
        Stopped: Ctrl-C stopped the program, and it printed no result.
    """
    words = [*arguments, "--json"] if as_json else arguments
    with _Presses() as presses, _Run(words, progress, server) as run:
        presses.pass_to(run.stop)
        answer = run.wait()
    if answer.value is None and (presses.n > 0 or answer.code == STOPPED):
        raise Stopped(answer.failure or f"mscgym {arguments[0]} was stopped")
    if answer.value is None and answer.code != 0:
        raise failed(arguments, answer)
    return answer


def failed(arguments: Sequence[str], answer: Answer) -> Error:
    line = answer.failure or f"mscgym {arguments[0]} ended with exit status {answer.code}"
    return Error(line, answer.code, answer.lines)


class _Presses:
    """Counts presses of Ctrl-C and passes them on, where Python lets a thread do so: in the main thread."""

    def __init__(self) -> None:
        self.n = 0
        self._stop: Callable[[], None] | None = None
        self._before: Any = None

    def __enter__(self) -> _Presses:
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, self._press)
        return self

    def __exit__(self, *_: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    def _press(self, number: int, frame: FrameType | None) -> None:
        self.n += 1
        if self._stop:
            self._stop()

    def pass_to(self, stop: Callable[[], None]) -> None:
        self._stop = stop
        for _ in range(self.n):  # presses while the program was started
            stop()


class _Run:
    """A run of the program, and everything that it may ask for."""

    def __init__(self, arguments: Sequence[str], progress: bool | None, server: Server | None):
        variables = {**_runtime(), **environment(), "MSCGYM_PROGRESS": "json", "MSCGYM_PARENT": str(os.getpid()),
                     "NO_COLOR": "1"}
        if server:
            variables["MSCGYM_BRIDGE"] = server.address
        self._bar = Bar(progress)
        self._server = server
        self._output = b""
        self._error = b""
        self._answer = Answer(None)
        self._is_json = arguments[-1] == "--json"
        self._process = subprocess.Popen([program(), *arguments], env=variables, stdin=subprocess.DEVNULL,
                                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, process_group=0)
        self._selector = selectors.DefaultSelector()
        assert self._process.stdout and self._process.stderr
        self._watch(self._process.stdout, self._read_output)
        self._watch(self._process.stderr, self._read_error)
        if server:
            self._selector.register(server.listener, selectors.EVENT_READ, self._accept)

    def __enter__(self) -> _Run:
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.close()
        self._end()
        self._disconnect()
        self._selector.close()
        for pipe in (self._process.stdout, self._process.stderr):
            if pipe:
                pipe.close()

    def _end(self) -> None:
        """Ends the program after an exception of this process, such as one of a metric."""
        for i in range(MOST_REQUESTS):  # signals in quick succession would count as one
            self.stop()
            # After the second request, a trial whose connection ends is not recorded. Before it, the
            # trial would count as failed.
            if i == HEARD:
                self._disconnect()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(POLL_S)
                return
        self._process.kill()
        self._process.wait()

    def _disconnect(self) -> None:
        for key in list(self._selector.get_map().values()):
            if isinstance(key.data, Connection):
                self._selector.unregister(key.fileobj)
                key.data.link.close()

    def stop(self) -> None:
        """Asks the program to stop: the first time in order, the second time at once."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)

    def wait(self) -> Answer:
        n_pipes = 2  # a process that the program left behind may keep its pipes open
        while n_pipes > 0 and self._process.poll() is None:
            for key, _ in self._selector.select(POLL_S):
                n_pipes -= not self._serve(key)
        for pipe, read in ((self._process.stdout, self._read_output), (self._process.stderr, self._read_error)):
            while pipe and read(pipe):
                pass
        self._finish()
        return self._answer

    def _serve(self, key: selectors.SelectorKey) -> bool:
        """Reads what has arrived. False: a pipe of the program has ended."""
        if isinstance(key.data, Connection):
            if not key.data.read():
                self._selector.unregister(key.data.link)
                key.data.link.close()
            return True
        if key.data(key.fileobj):
            return True
        self._selector.unregister(key.fileobj)
        return False

    def _watch(self, pipe: IO[bytes], read: Callable[[IO[bytes]], bool]) -> None:
        os.set_blocking(pipe.fileno(), False)
        self._selector.register(pipe, selectors.EVENT_READ, read)

    def _accept(self, listener: object) -> bool:
        assert self._server
        connection = self._server.accept()
        self._selector.register(connection.link, selectors.EVENT_READ, connection)
        return True

    # ---- What the program writes: false at its end, or if nothing is there ------------------------

    def _read_output(self, pipe: IO[bytes]) -> bool:
        data = _read(pipe)
        self._output += data
        return bool(data)

    def _read_error(self, pipe: IO[bytes]) -> bool:
        data = _read(pipe)
        *lines, self._error = (self._error + data).split(b"\n")
        for line in lines:
            self._take_line(line.decode("utf-8", "replace"))
        return bool(data)

    def _take_line(self, line: str) -> None:
        if line.startswith('{"progress":'):
            self._bar.show(json.loads(line)["progress"])
            return
        self._answer.lines.append(line)
        for before in ("mscgym: ", "error: "):
            if line.startswith(before):
                self._answer.failure = line[len(before):]
                return
        if line.startswith("warning: "):
            log.warning("%s", line[len("warning: "):])
        else:
            log.info("%s", line)

    def _finish(self) -> None:
        if self._error:
            self._take_line(self._error.decode("utf-8", "replace"))
        self._answer.code = self._process.wait()
        if self._output.strip() and self._is_json:
            self._answer.value = json.loads(self._output)


def _runtime() -> dict[str, str]:
    """Models are measured in the runtimes of this Python. A wheel's mscgym-runtime does so by itself."""
    path = os.path.join(os.path.dirname(os.path.realpath(program())), "mscgym-runtime")
    is_own = path.startswith(FOLDER + os.sep)
    is_word = " " not in sys.executable + path
    return {"MSCGYM_RUNTIME": f"{sys.executable} {path}"} if os.path.isfile(path) and is_word and not is_own else {}


def _read(pipe: IO[bytes]) -> bytes:
    try:
        return os.read(pipe.fileno(), 1 << 16)
    except BlockingIOError:
        return b""
