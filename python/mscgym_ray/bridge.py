"""The coordinator's side of the bridge: starts workers on nodes, and forwards lines to and from them."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any, TextIO

from .connect import BridgeError, connect, first_line, words_of
from .files import Files

LOOK_S = 1.0  # interval between two looks for new and lost nodes
HEAD_S = 30.0  # the head may not answer for this long
PAUSE_S = 1.0  # pause before a worker is restarted
MAX_FAILED = 3  # failures and drops in a row before the worker is asked to measure
MAX_CUT = 30  # the same, for losses of the node or the network
READ_BYTES = 1 << 26  # largest request


def say(output: TextIO, key: str, value: Any) -> None:
    output.write(json.dumps({key: value}) + "\n")
    output.flush()


def fail(output: TextIO, text: str) -> None:
    say(output, "error", " ".join(text.split()))


@dataclass
class Slot:
    """A place for a worker on a node; a restarted worker takes the same slot."""

    node_id: str
    threads: int
    memory: int
    is_closed: bool = False
    n_failed: int = 0
    n_cut: int = 0
    task: asyncio.Task[None] | None = None

    def is_hopeless(self) -> bool:
        return self.n_failed >= MAX_FAILED or self.n_cut >= MAX_CUT


@dataclass
class Worker:
    actor: Any
    slot: Slot
    is_asked: bool = False  # whether it was asked to measure
    error: BaseException | None = None  # why the worker cannot continue
    # Set after an error, or when the worker was dropped.
    ended: asyncio.Event = field(default_factory=asyncio.Event)

    def fail(self, error: BaseException) -> None:
        self.error = self.error or error
        self.ended.set()


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
        self.files = Files(ray)
        self.broken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.tasks: set[asyncio.Task[None]] = set()
        self.why = ""

    # ---- Requests -------------------------------------------------------------------------------

    def take_request(self, request: dict[str, Any]) -> None:
        if "file" in request:
            self.files.add(request["file"]["path"], request["file"]["first_line"])
        elif "send" in request:
            worker = self.workers.get(request["send"]["w"])
            if worker:
                self.send(worker, request["send"]["line"])
        elif "drop" in request:
            worker = self.workers.pop(request["drop"]["w"], None)
            if worker:
                worker.slot.is_closed |= request["drop"]["for_good"]
                worker.slot.n_failed += not worker.is_asked
                worker.ended.set()

    def send(self, worker: Worker, line: str) -> None:
        if '"method":"init"' in line:
            call = self.init(worker, line)
        else:
            # A worker that is asked to measure has answered before, so its node works.
            worker.is_asked = True
            worker.slot.n_failed = worker.slot.n_cut = 0
            call = self.put(worker, worker.actor.put.remote([line]))
        self.begin(call)

    def begin(self, doing: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Runs a coroutine; if it fails, the bridge ends."""
        task = asyncio.ensure_future(doing)
        self.tasks.add(task)
        task.add_done_callback(self.end)
        return task

    def end(self, task: asyncio.Task[None]) -> None:
        self.tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if error and not self.broken.done():
            self.broken.set_exception(error)

    async def put(self, worker: Worker, reference: Any) -> None:
        """Awaits a call of the worker. A call that fails may or may not have been made, so that worker
        is replaced.
        """
        try:
            await reference
        except self.ray.exceptions.RayError as error:
            worker.fail(error)

    async def init(self, worker: Worker, line: str) -> None:
        try:
            files = await asyncio.to_thread(self.files.known)
            missing = await worker.actor.missing.remote(files)
            chunks = {digest: await asyncio.to_thread(self.files.put, digest) for digest in missing}
            await worker.actor.init.remote(line, files, chunks)
        # Errors raised on the node arrive as RayError, even if they are OSErrors.
        except self.ray.exceptions.RayError as error:
            worker.fail(error)
        except OSError as error:
            raise BridgeError(f"a file of the search cannot be read: {error}") from None

    async def read(self, reader: asyncio.StreamReader) -> None:
        while line := await reader.readline():
            self.take_request(json.loads(line))

    # ---- Workers --------------------------------------------------------------------------------

    def make_actor(self, slot: Slot) -> Any:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        options = self.actor_class.options(
            num_cpus=slot.threads,
            num_gpus=self.start.get("gpus", 0),
            scheduling_strategy=NodeAffinitySchedulingStrategy(slot.node_id, soft=False),
        )
        return options.remote(self.start["argv"], slot.threads, slot.memory)

    async def carry(self, number: int, worker: Worker) -> str:
        """Passes on the lines of the worker until it ends. Returns why it ended, or "" if it was dropped."""
        ended = asyncio.ensure_future(worker.ended.wait())
        try:
            while True:
                taking = asyncio.ensure_future(as_future(worker.actor.take.remote()))
                await asyncio.wait({taking, ended}, return_when=asyncio.FIRST_COMPLETED)
                if ended.done():
                    taking.cancel()
                    if worker.error:
                        raise worker.error
                    return ""
                lines, why = taking.result()
                for line in lines:
                    say(self.output, "line", {"w": number, "line": line})
                if why:
                    worker.slot.n_failed += 1
                    return str(why)
        finally:
            ended.cancel()

    async def run_once(self, slot: Slot) -> None:
        """Runs one worker in the slot, from its start to its end."""
        actor = self.make_actor(slot)
        number, why = -1, ""
        try:
            name = await actor.start.remote()
            number, worker = self.n_workers, Worker(actor, slot)
            self.n_workers += 1
            self.workers[number] = worker
            say(self.output, "up", {"w": number, "node": name})
            why = await self.carry(number, worker)
        except self.ray.exceptions.RayTaskError as error:  # an error raised on the node
            slot.n_failed += 1
            why = words_of(error)
        except self.ray.exceptions.RayError as error:
            slot.n_cut += 1
            why = words_of(error)
        finally:
            await asyncio.to_thread(self.ray.kill, actor)
        self.why = why or self.why
        if self.workers.pop(number, None):
            say(self.output, "down", {"w": number, "why": why})

    async def run_slot(self, slot: Slot) -> None:
        while not slot.is_closed:
            await self.run_once(slot)
            slot.is_closed = slot.is_closed or slot.is_hopeless()
            if not slot.is_closed:
                await asyncio.sleep(PAUSE_S)

    def add_slots(self, node: dict[str, Any]) -> None:
        resources = node["Resources"]
        cpus = int(resources.get("CPU", 0))
        gpus = int(resources.get("GPU", 0)) if self.start.get("gpus") else None
        own = cpus if gpus is None else cpus // max(gpus, 1)  # GPUs share the processors equally
        threads = min(self.start["threads"] or max(own, 1), cpus)
        n = cpus // threads if threads else 0
        if gpus is not None:
            n = min(n, gpus)
        memory = self.start["memory"] or int(resources.get("memory", 0)) // max(n, 1)
        n_own = sum(slot.node_id == node["NodeID"] for slot in self.slots)
        for _ in range(n_own, n):
            n_open = sum(not slot.is_closed for slot in self.slots)
            if not self.start["max"] or n_open < self.start["max"]:
                slot = Slot(node["NodeID"], threads, memory)
                slot.task = self.begin(self.run_slot(slot))
                self.slots.append(slot)

    async def watch(self) -> None:
        """Follows the nodes of the cluster as they come and go. Fails when no slot is open any more."""
        while True:
            try:
                listed = await asyncio.wait_for(asyncio.to_thread(self.ray.nodes), HEAD_S)
            except TimeoutError:
                raise BridgeError(f"the head of the cluster has not answered for {HEAD_S:.0f} s") from None
            nodes = {node["NodeID"]: node for node in listed if node["Alive"]}
            for slot in [slot for slot in self.slots if slot.node_id not in nodes]:
                slot.is_closed = True
                self.slots.remove(slot)
            for node in nodes.values():
                self.add_slots(node)
            if self.slots and all(slot.is_closed and slot.task.done() for slot in self.slots if slot.task):
                raise BridgeError("no worker is left" + (f": {self.why}" if self.why else ""))
            await asyncio.sleep(LOOK_S)


async def as_future(reference: Any) -> Any:
    return await reference


def describe(ray: Any, address: str) -> str:
    nodes = [node for node in ray.nodes() if node["Alive"]]
    cpus = sum(int(node["Resources"].get("CPU", 0)) for node in nodes)
    return f"--cluster ray: {address} is reached: {len(nodes)} node{'s' * (len(nodes) != 1)}, {cpus} CPUs"


async def serve(address: str, output: TextIO) -> None:
    reader = asyncio.StreamReader(limit=READ_BYTES)
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    line = await reader.readline()
    if not line:
        return
    start = json.loads(line)["start"]

    def give_up(text: str) -> None:
        fail(output, text)
        os._exit(1)

    ray = connect(address, lambda text: say(output, "note", text), give_up)
    say(output, "note", describe(ray, address))
    bridge = Bridge(ray, output, start)
    tasks = {asyncio.ensure_future(bridge.read(reader)), asyncio.ensure_future(bridge.watch()), bridge.broken}
    done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    error = next((task.exception() for task in done if task.exception()), None)
    if error:
        fail(output, str(error) if isinstance(error, BridgeError) else f"{type(error).__name__}: {first_line(error)}")
        os._exit(1)  # threads may wait for a lost head; actors end with this process


def run(address: str, output: TextIO) -> None:
    """Serves until the input ends. The actors end with this process."""
    asyncio.run(serve(address, output))
