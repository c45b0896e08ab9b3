"""The part that runs on a node: an actor with its worker. Nodes need Ray and mscgym, but not this package."""

from __future__ import annotations

import json
import os
import queue
import shutil
import subprocess
import sys
import threading
from typing import Any, BinaryIO

import ray

from . import store

# Becomes the worker process, which the kernel kills when the actor's process ends for any reason.
LAUNCH = """
import ctypes, os, sys
ctypes.CDLL(None).prctl(1, 9)
if os.getppid() == int(sys.argv[1]):
    os.execv(sys.argv[2], sys.argv[2:])
"""
WAIT_S = 10.0  # longest wait for a line
MAX_LINES = 1000  # per answer


class Node:
    """A worker on this node. Threads forward its lines in order."""

    def __init__(self, argv: list[str], threads: int, memory: int) -> None:
        self.argv = argv
        self.share: dict[str, Any] = {"threads": threads}
        if memory:
            self.share["memory"] = str(memory)
        self.lines: queue.Queue[str | None] = queue.Queue()

    def start(self) -> str:
        """Starts the worker; returns its name. Errors here are raised as they are, not as the
        actor's death.
        """
        program = shutil.which(self.argv[0]) or of_package(self.argv[0])
        if not program:
            raise RuntimeError(f"{os.uname().nodename}: {self.argv[0]} is not installed on this node")
        # Ray sets this to 1.
        environment = dict(os.environ, OMP_NUM_THREADS=str(self.share["threads"]))
        # Ray may not set this, but the worker depends on it: numbers, or UUIDs if the node has them.
        if gpus := ray.get_gpu_ids():
            environment["CUDA_VISIBLE_DEVICES"] = ",".join(map(str, gpus))
        self.process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", LAUNCH, str(os.getpid()), program, *self.argv[1:]],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
        )
        threading.Thread(target=self._read, daemon=True).start()
        return f"{os.uname().nodename} {self.process.pid}"

    def _read(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            self.lines.put(line.decode(errors="replace").rstrip("\n"))
        self.lines.put(None)

    @ray.method(concurrency_group="put")
    def put(self, lines: list[str]) -> None:
        self._write(lines)

    def _write(self, lines: list[str]) -> None:
        assert self.process.stdin
        try:
            self.process.stdin.write("".join(line + "\n" for line in lines).encode())
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # the worker has ended; its output says why

    @ray.method(concurrency_group="put")
    def missing(self, files: list[store.File]) -> list[str]:
        return store.missing(files)

    @ray.method(concurrency_group="put")
    def init(self, line: str, files: list[store.File], references: dict[str, list[Any]]) -> None:
        """Sends the request init, after storing the search's files in the same layout as on the
        coordinator.
        """
        request = json.loads(line)
        if files:
            with store.locked(store.home()):
                for digest, chunks in references.items():
                    store.keep(digest, lambda stream, chunks=chunks: fetch(chunks, stream))  # type: ignore[misc]
                request["record"] = store.lay_out(files) + request["record"]
                store.prune()
        # Without spaces, because a new worker accepts nothing else before init.
        self._write([json.dumps(request | self.share, separators=(",", ":"))])

    @ray.method(concurrency_group="take")
    def take(self) -> tuple[list[str], str | None]:
        """Lines that the worker has written and, if it has ended, how."""
        lines: list[str] = []
        try:
            line = self.lines.get(timeout=WAIT_S)
            while line is not None and len(lines) < MAX_LINES:
                lines.append(line)
                line = self.lines.get_nowait()
        except queue.Empty:
            return lines, None
        if line is not None:
            return [*lines, line], None
        code = self.process.wait()
        how = f"by signal {-code}" if code < 0 else f"with status {code}"
        return lines, f"the worker ended {how}"


def of_package(name: str) -> str | None:
    """The program in the wheel installed for this node's Python."""
    if name != "mscgym":
        return None
    try:
        from mscgym.installed import program

        return program()
    except (ImportError, FileNotFoundError):
        return None


def fetch(chunks: list[Any], stream: BinaryIO) -> None:
    for chunk in chunks:
        stream.write(ray.get(chunk))
