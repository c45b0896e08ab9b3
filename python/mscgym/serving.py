"""Lets the program ask objects of this process: an agent, and a metric that is a function.

The program starts `bridge.py`, which connects to a socket of this process. All requests are answered in
the thread that waits for the program (mscgym.process), so objects need no locks.
"""
from __future__ import annotations

import copy
import json
import math
import os
import socket
import sys
import tempfile
from collections.abc import Callable, Mapping
from typing import Any

from mscgym.agent import Agent
from mscgym.installed import FOLDER
from mscgym.protocol import plain

BRIDGE = os.path.join(FOLDER, "bridge.py")
LONGEST_FOLDER = 70


def command(role: str, *words: str) -> list[str]:
    """The command that a configuration names for an object of this process."""
    return [sys.executable, "-I", "-S", BRIDGE, role, *words]


class Connection:
    """A connection of bridge.py; its lines are requests."""

    def __init__(self, server: Server, link: socket.socket):
        self.link = link
        self._server = server
        self._text = b""
        self._role: str | None = None

    def read(self) -> bool:
        """Answers what has arrived. False: the connection is closed."""
        data = self.link.recv(1 << 16)
        *lines, self._text = (self._text + data).split(b"\n")
        return bool(data) and all(self._take(line) for line in lines)

    def _take(self, line: bytes) -> bool:
        if self._role is None:
            self._role = line.decode()
            return True
        is_metric = self._role == "metric"  # a path must keep its bytes
        message = json.loads(line.decode("utf-8", "surrogateescape" if is_metric else "replace"))
        if message["method"] == "done":
            return False
        answer = self._server.score(message) if is_metric else self._server.ask(message)
        self._send(json.dumps(answer, allow_nan=False, default=plain))
        return True

    def _send(self, text: str) -> None:
        self.link.sendall(text.encode() + b"\n")


class Server:
    """The objects, and the socket at which bridge.py reaches them.

    Args:
        agent: Answers the requests of the agent's protocol.
        measure: Returns the metric of the outputs in a .safetensors file, whose path it gets.
    """

    def __init__(self, agent: Agent | None, measure: Callable[[str], float] | None):
        self.agent = agent
        self.measure = measure or (lambda path: float("nan"))
        self._pristine = self._copy() if agent else None
        # Addresses of sockets are short.
        is_long = len(tempfile.gettempdir()) > LONGEST_FOLDER
        self._folder = tempfile.TemporaryDirectory(prefix="mscgym_", dir="/tmp" if is_long else None)
        self.address = os.path.join(self._folder.name, "bridge")
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.address)
        self.listener.listen()

    def _copy(self) -> dict[str, Any] | None:
        try:
            return copy.deepcopy(vars(self.agent))
        except Exception:  # whatever a member raises: it cannot be copied
            return None

    def ask(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """The agent's answer. A search that begins or continues finds the agent as it was given."""
        assert self.agent is not None
        if message["method"] == "init" and self._pristine is not None:
            vars(self.agent).clear()
            vars(self.agent).update(copy.deepcopy(self._pristine))
        return self.agent.answer(message)

    def score(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """The metric of a trial; a number that JSON lacks is no number, and the trial fails."""
        value = self.measure(message["outputs"])
        return {"value": value if math.isfinite(value) else None}

    def accept(self) -> Connection:
        return Connection(self, self.listener.accept()[0])

    def close(self) -> None:
        self.listener.close()
        self._folder.cleanup()
