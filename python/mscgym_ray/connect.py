"""Connects to a Ray cluster, or fails with a single line that says why."""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

ANSWER_S = 10.0  # longest wait for an answer of the named machine
SAY_S = 4.0  # time without an answer after which a note is printed
LIMIT_S = 30.0  # time without an answer after which the attempt ends


class BridgeError(Exception):
    """Ends the bridge; the text is a line for the user."""


def first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__


def words_of(error: BaseException) -> str:
    """The message of an error raised on a node, without the traceback that Ray puts before it."""
    cause = getattr(error, "cause", None)
    return first_line(error if cause is None else cause)


def check_port(where: str) -> None:
    """Tries the port first, because Ray would retry for minutes."""
    host, _, port = where.rpartition(":")
    if not host or not port.isdigit():
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), ANSWER_S).close()
    except OSError as error:
        raise BridgeError(f"{where} cannot be reached: {error.strerror or error}") from None


@contextlib.contextmanager
def held_back() -> Iterator[BinaryIO]:
    """Holds back standard error, which includes Ray's repeated messages."""
    sys.stderr.flush()
    shown = os.dup(2)
    with tempfile.TemporaryFile() as held:
        os.dup2(held.fileno(), 2)
        try:
            yield held
        finally:
            os.dup2(shown, 2)
            os.close(shown)


@contextlib.contextmanager
def watched(where: str, note: Callable[[str], None], give_up: Callable[[str], None]) -> Iterator[None]:
    """Ray retries for minutes, and so may the lookup of a name. Prints a note after a while, and gives
    up in the end.
    """
    answered = threading.Event()

    def watch() -> None:
        if answered.wait(SAY_S):
            return
        note(f"--cluster ray: {where} has not answered for {SAY_S:.0f} s; it is waited for up to {LIMIT_S:.0f} s")
        if not answered.wait(LIMIT_S - SAY_S):
            give_up(
                f"{where} has not answered for {LIMIT_S:.0f} s: is it the address of a Ray head, "
                "HOST:PORT as ray start --head has printed it?"
            )

    threading.Thread(target=watch, daemon=True).start()
    try:
        yield
    finally:
        answered.set()


def why_not(where: str, error: BaseException, told: str) -> str:
    if "InvalidAuthToken" in told or "InvalidAuthToken" in str(error):
        return f"{where} refuses the token: RAY_AUTH_TOKEN or ~/.ray/auth_token must have that of its cluster"
    if "Version mismatch" in str(error):
        return f"{where}: {' '.join(str(error).split())}"
    return f"{where} cannot be reached: {first_line(error)}"


def connect(address: str, note: Callable[[str], None], give_up: Callable[[str], None]) -> Any:
    """Returns Ray, connected with the cluster's token. `give_up` ends the process, `note` does not."""
    if os.environ.get("RAY_AUTH_MODE") != "token":
        raise BridgeError(
            "RAY_AUTH_MODE=token is not set: whoever reaches a cluster without tokens runs programs on it"
        )
    try:
        import ray
    except ImportError as error:
        raise BridgeError(f"Ray is not installed for {sys.executable}: {first_line(error)}") from None
    where = os.environ.get("RAY_ADDRESS", "auto") if address == "auto" else address
    with watched(where, note, give_up), held_back() as held:
        try:
            check_port(where)
            ray.init(where, log_to_driver=False, logging_level=logging.ERROR, configure_logging=True)
        except BridgeError:
            raise
        except Exception as error:  # Ray raises many types, some of them RuntimeError
            held.seek(0)
            raise BridgeError(why_not(where, error, held.read().decode(errors="replace"))) from None
    from . import node, store

    for module in (node, store):  # so that nodes need not have this package
        ray.cloudpickle.register_pickle_by_value(module)
    return ray
