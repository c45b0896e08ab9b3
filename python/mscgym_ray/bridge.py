"""The coordinator's side: who is there, and what is carried to whom."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import sys
from dataclasses import dataclass, field
from typing import Any, TextIO

LOOK_S = 1.0  # for nodes that come and go
PAUSE_S = 1.0  # before a worker is started anew
MAX_MUTE = 3  # ends in a row without a word
READ_BYTES = 1 << 26  # of one request, at most


class BridgeError(Exception):
    """What ends the bridge; a line for people."""


def say(output: TextIO, key: str, value: Any) -> None:
    output.write(json.dumps({key: value}) + "\n")
    output.flush()


def fail(output: TextIO, text: str) -> None:
    say(output, "error", " ".join(text.split()))


def first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__


def connect(address: str) -> Any:
    """Ray, connected; with the token that its cluster asks for."""
    if os.environ.get("RAY_AUTH_MODE") != "token":
        raise BridgeError(
            "RAY_AUTH_MODE=token is not set: whoever reaches a cluster without tokens runs programs on it"
        )
    try:
        import ray
    except ImportError as error:
        raise BridgeError(f"Ray is not installed for {sys.executable}: {first_line(error)}") from None
    where = os.environ.get("RAY_ADDRESS", "auto") if address == "auto" else address
    try:
        ray.init(where, log_to_driver=False, logging_level="ERROR", configure_logging=True)
    except Exception as error:  # Ray has many, some of them RuntimeError
        raise BridgeError(f"{where} cannot be reached: {first_line(error)}") from None
    from . import node

    ray.cloudpickle.register_pickle_by_value(node)
    return ray


@dataclass
class Slot:
    """A place for a worker: one after another is in it."""

    node_id: str
    threads: int
    memory: int
    is_closed: bool = False
    n_mute: int = 0
    task: asyncio.Task[None] | None = None


@dataclass
class Worker:
    actor: Any
    slot: Slot
    dropped: asyncio.Event = field(default_factory=asyncio.Event)


class Bridge:
    def __init__(self, ray: Any, output: TextIO, start: dict[str, Any]) -> None:
        from .node import Node

        self.ray = ray
        self.output = output
        self.start = start
        self.actor_class = ray.remote(concurrency_groups={"put": 1, "take": 1}, max_restarts=0)(Node)
        self.slots: list[Slot] = []
        self.workers: dict[int, Worker] = {}
        self.n_workers = 0
        self.paths: list[dict[str, Any]] = []
        self.key = ""
        self.files: list[tuple[str, Any]] = []
        self.why = ""

    # ---- Files ----------------------------------------------------------------------------------

    def put_files(self) -> None:
        """Files go to Ray's store once, from which each node takes them once."""
        if self.files or not self.paths:
            return
        key = hashlib.sha256()
        for blob in self.paths:
            with open(blob["path"], "rb") as file:
                data = file.readline() if blob.get("first_line") else file.read()
            key.update(json.dumps([blob["path"], hashlib.sha256(data).hexdigest()]).encode())
            # In a list it stays a reference; as an argument it would be fetched for each call.
            self.files.append((blob["path"], self.ray.put(data)))
        self.key = key.hexdigest()[:32]

    # ---- Requests -------------------------------------------------------------------------------

    def take_request(self, request: dict[str, Any]) -> None:
        if "blob" in request:
            self.paths.append(request["blob"])
        elif "send" in request:
            worker = self.workers.get(request["send"]["w"])
            if worker:
                self.send(worker, request["send"]["line"])
        elif "drop" in request:
            worker = self.workers.pop(request["drop"]["w"], None)
            if worker:
                worker.slot.is_closed = request["drop"]["for_good"]
                worker.dropped.set()

    def send(self, worker: Worker, line: str) -> None:
        if '"method":"init"' in line:
            try:
                self.put_files()
            except OSError as error:
                raise BridgeError(f"a file of the search cannot be read: {error}") from None
            worker.actor.init.remote(line, self.key, self.files)
        else:
            worker.actor.put.remote([line])

    async def read(self, reader: asyncio.StreamReader) -> None:
        while line := await reader.readline():
            self.take_request(json.loads(line))

    # ---- Workers --------------------------------------------------------------------------------

    def make_actor(self, slot: Slot) -> Any:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        options = self.actor_class.options(
            num_cpus=slot.threads,
            scheduling_strategy=NodeAffinitySchedulingStrategy(slot.node_id, soft=False),
        )
        return options.remote(self.start["argv"], slot.threads, slot.memory)

    async def carry(self, number: int, worker: Worker) -> str:
        """Lines of the worker, until it ends; how."""
        dropped = asyncio.ensure_future(worker.dropped.wait())
        try:
            while True:
                taking = asyncio.ensure_future(as_future(worker.actor.take.remote()))
                await asyncio.wait({taking, dropped}, return_when=asyncio.FIRST_COMPLETED)
                if dropped.done():
                    taking.cancel()
                    return ""
                lines, why = taking.result()
                for line in lines:
                    worker.slot.n_mute = 0
                    say(self.output, "line", {"w": number, "line": line})
                if why:
                    return str(why)
        finally:
            dropped.cancel()

    async def run_once(self, slot: Slot) -> None:
        """One worker in the slot, from its start to its end."""
        actor = self.make_actor(slot)
        number = -1
        slot.n_mute += 1
        try:
            name = await actor.name.remote()
            number, worker = self.n_workers, Worker(actor, slot)
            self.n_workers += 1
            self.workers[number] = worker
            say(self.output, "up", {"w": number, "node": name})
            why = await self.carry(number, worker)
        except self.ray.exceptions.RayError as error:
            why = last_line(error)
        finally:
            self.ray.kill(actor)
        self.why = why or self.why
        if self.workers.pop(number, None):
            say(self.output, "down", {"w": number, "why": why})

    async def run_slot(self, slot: Slot) -> None:
        while not slot.is_closed:
            await self.run_once(slot)
            slot.is_closed = slot.is_closed or slot.n_mute >= MAX_MUTE
            if not slot.is_closed:
                await asyncio.sleep(PAUSE_S)

    def add_slots(self, node: dict[str, Any]) -> None:
        resources = node["Resources"]
        cpus = int(resources.get("CPU", 0))
        threads = min(self.start["threads"] or cpus, cpus)
        n = cpus // threads if threads else 0
        memory = self.start["memory"] or int(resources.get("memory", 0)) // max(n, 1)
        for _ in range(n):
            n_open = sum(not slot.is_closed for slot in self.slots)
            if not self.start["max"] or n_open < self.start["max"]:
                slot = Slot(node["NodeID"], threads, memory)
                slot.task = asyncio.ensure_future(self.run_slot(slot))
                self.slots.append(slot)

    async def watch(self) -> None:
        """Nodes come and go; when no slot is open any more, there is nothing to wait for."""
        while True:
            nodes = {node["NodeID"]: node for node in self.ray.nodes() if node["Alive"]}
            for slot in [slot for slot in self.slots if slot.node_id not in nodes]:
                slot.is_closed = True
                self.slots.remove(slot)
            known = {slot.node_id for slot in self.slots}
            for node_id, node in nodes.items():
                if node_id not in known:
                    self.add_slots(node)
            if self.slots and all(slot.is_closed and slot.task.done() for slot in self.slots if slot.task):
                raise BridgeError("no worker is left" + (f": {self.why}" if self.why else ""))
            await asyncio.sleep(LOOK_S)


async def as_future(reference: Any) -> Any:
    return await reference


def last_line(error: BaseException) -> str:
    """Of what was raised on a node: Ray puts its traceback first."""
    cause = getattr(error, "cause", None)
    if cause is not None:
        return first_line(cause)
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__


async def serve(address: str, output: TextIO) -> None:
    reader = asyncio.StreamReader(limit=READ_BYTES)
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    line = await reader.readline()
    if not line:
        return
    start = json.loads(line)["start"]
    bridge = Bridge(connect(address), output, start)
    tasks = {asyncio.ensure_future(bridge.read(reader)), asyncio.ensure_future(bridge.watch())}
    done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in done:
        task.result()


def run(address: str, output: TextIO) -> None:
    """Until the input ends; actors end with this process."""
    asyncio.run(serve(address, output))
