#!/usr/bin/env python3
"""Tests the bridge to Ray without Ray: a small module stands in for it.

    test_ray.py [--installed]

--installed tests the package of this Python.
"""
import os
import sys

if sys.version_info < (3, 11):
    print("skipped: the package needs Python 3.11")
    sys.exit(0)
try:
    import asyncio
    import contextvars
    import io
    import json
    import shutil
    import tempfile
    import time
    import types
    import unittest
    from unittest import mock
except ImportError as error:
    print(f"skipped: {sys.executable}: {error}")
    sys.exit(0)

if sys.argv[1:2] == ["--installed"]:
    del sys.argv[1]
else:
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
sys.dont_write_bytecode = True


class RayError(Exception):
    pass


class RayTaskError(RayError):
    def __init__(self, cause):
        super().__init__("\x1b[36mray::Node\x1b[39m\n  File ...\n" + str(cause))
        self.cause = cause


class Ray(types.ModuleType):
    """Stands in for Ray: actors are objects in this process, and each call runs in a thread."""

    def __init__(self):
        super().__init__("ray")
        self.exceptions = types.SimpleNamespace(RayError=RayError, RayTaskError=RayTaskError)
        self.listed, self.actors, self.killed, self.n_put, self.faults = [], [], [], 0, {}
        self.gpus = []  # not assigned yet
        self.given = contextvars.ContextVar("given", default=[])

    def method(self, **_):
        return lambda function: function

    def remote(self, **_):
        return lambda cls: types.SimpleNamespace(
            options=lambda **options: types.SimpleNamespace(remote=lambda *words: self.begin(cls, words, options)))

    def begin(self, cls, words, options):
        actor = Actor(self, cls(*words))
        actor.gpus = [self.gpus.pop(0) for _ in range(options["num_gpus"])]
        self.actors.append(actor)
        return actor

    def get_gpu_ids(self):
        return self.given.get()

    def kill(self, actor):
        self.killed.append(actor)
        process = getattr(actor.node, "process", None)
        if process:
            process.kill()
            process.wait()

    def nodes(self):
        return self.listed

    def put(self, data):
        self.n_put += 1
        return [data]

    def get(self, reference):
        return reference[0]


class Actor:
    def __init__(self, ray, node):
        self.ray, self.node = ray, node
        # One call at a time in each concurrency group.
        self.turns = {"take": asyncio.Lock(), "put": asyncio.Lock()}

    def __getattr__(self, name):
        def call(*words):
            error = self.ray.faults.pop(name, None)
            turn = self.turns["take" if name == "take" else "put"]
            return asyncio.ensure_future(fail(error) if error else self.call(turn, getattr(self.node, name), words))
        return types.SimpleNamespace(remote=call)

    async def call(self, turn, method, words):
        async with turn:
            self.ray.given.set(self.gpus)
            try:
                return await asyncio.to_thread(method, *words)
            except Exception as error:
                raise RayTaskError(error) from None


async def fail(error):
    raise error


ray = Ray()
sys.modules["ray"] = ray
sys.modules["ray.util"] = types.ModuleType("ray.util")
sys.modules["ray.util.scheduling_strategies"] = types.SimpleNamespace(
    NodeAffinitySchedulingStrategy=lambda node_id, soft: node_id)

from mscgym import installed  # noqa: E402
from mscgym_ray import bridge, connect, node, store  # noqa: E402
from mscgym_ray.connect import BridgeError, check_port, why_not  # noqa: E402

bridge.PAUSE_S = bridge.LOOK_S = node.WAIT_S = 0.02


class Output(io.StringIO):
    def events(self):
        return [next(iter(json.loads(line).items())) for line in self.getvalue().splitlines()]

    def of(self, key):
        return [value for name, value in self.events() if name == key]


def use_folder(test):
    """Uses a new folder for temporary files."""
    folder = tempfile.mkdtemp()
    test.addCleanup(shutil.rmtree, folder)
    test.addCleanup(setattr, tempfile, "tempdir", tempfile.tempdir)
    tempfile.tempdir = folder
    return folder


class TestBridge(unittest.IsolatedAsyncioTestCase):
    """The worker is `cat`, which returns every line it gets."""

    def setUp(self):
        ray.__init__()
        self.folder = use_folder(self)

    async def begin(self, argv=("cat",), n=1, threads=1, gpus=None):
        self.output = Output()
        resources = {"CPU": float(n), "memory": 1000.0}
        if gpus is not None:
            resources["GPU"], ray.gpus = float(len(gpus)), list(gpus)
        ray.listed = [{"NodeID": "n1", "Alive": True, "Resources": resources}]
        self.bridge = bridge.Bridge(ray, self.output, {"argv": list(argv), "max": 0, "threads": threads, "memory": 0,
                                                       "gpus": int(gpus is not None)})
        self.watching = asyncio.ensure_future(self.bridge.watch())

    async def asyncTearDown(self):
        if not hasattr(self, "watching"):
            return
        while not self.watching.done():  # wait_for ignores a cancellation that arrives as it ends
            self.watching.cancel()
            await asyncio.sleep(0.001)
        for task in list(self.bridge.tasks):
            task.cancel()
        for actor in ray.actors:
            ray.kill(actor)
        await asyncio.sleep(0.05)

    async def until(self, happens):
        end = time.monotonic() + 20
        while not happens():
            self.assertLess(time.monotonic(), end, self.output.getvalue())
            await asyncio.sleep(0.01)

    def send(self, number, line):
        self.bridge.take_request({"send": {"w": number, "line": line}})

    async def up(self, n=1):
        await self.until(lambda: len(self.output.of("up")) >= n)

    async def test_carries_lines_in_their_order(self):
        await self.begin(n=2)
        await self.up(2)
        for k in range(50):
            self.send(k % 2, f"line {k}")
        await self.until(lambda: len(self.output.of("line")) == 50)
        for number in (0, 1):
            lines = [value["line"] for value in self.output.of("line") if value["w"] == number]
            self.assertEqual(lines, [f"line {k}" for k in range(number, 50, 2)])

    async def test_replaces_who_was_dropped(self):
        await self.begin()
        await self.up()
        self.bridge.take_request({"drop": {"w": 0, "for_good": False}})
        await self.up(2)
        self.assertEqual(self.output.of("up")[1]["w"], 1)
        self.assertEqual(self.output.of("down"), [])
        self.bridge.take_request({"drop": {"w": 1, "for_good": True}})
        with self.assertRaisesRegex(BridgeError, "no worker is left"):
            await self.watching

    async def test_replaces_who_cannot_be_reached(self):
        """A call that fails may or may not have reached the worker, so the worker is killed and replaced."""
        await self.begin()
        await self.up()
        ray.faults["put"] = RayError("The actor is unavailable\nmore of it")
        self.send(0, "lost")
        await self.up(2)
        self.assertEqual(self.output.of("down"), [{"w": 0, "why": "The actor is unavailable"}])
        self.assertIn(ray.actors[0], ray.killed)

    async def test_goes_on_after_cuts(self):
        """A worker that is cut off with its node has not failed, so it is replaced more often than one
        that fails.
        """
        await self.begin()
        for n in range(1, 8):
            ray.faults["take"] = RayError("the node is cut off")
            await self.until(lambda n=n: len(self.output.of("down")) >= n)
        await self.up(8)

    async def test_tells_of_a_program_that_is_not_there(self):
        await self.begin(("/nowhere/mscgym",))
        with self.assertRaisesRegex(BridgeError, "no worker is left: .*/nowhere/mscgym is not installed on this node"):
            await self.watching
        self.assertEqual(len(ray.actors), bridge.MAX_FAILED)

    async def test_gives_up_who_dies_before_it_measures(self):
        """The program sends a beat as soon as it starts, but a beat does not count as an answer."""
        await self.begin(("sh", "-c", 'echo "{\\"beat\\":1}"; read init; exit 7'))
        for number in range(bridge.MAX_FAILED):
            await self.up(number + 1)
            self.send(number, '{"method":"init","record":"/r"}')
            await self.until(lambda number=number: len(self.output.of("down")) > number)
        with self.assertRaisesRegex(BridgeError, "no worker is left: the worker ended with status 7"):
            await asyncio.wait_for(self.watching, 5)

    async def test_gives_up_who_is_dropped_before_it_measures(self):
        """The search drops one worker after another, for instance because they send garbage."""
        await self.begin()
        for number in range(bridge.MAX_FAILED - 1):
            await self.up(number + 1)
            self.bridge.take_request({"drop": {"w": number, "for_good": False}})
        await self.up(bridge.MAX_FAILED)
        # The worker has answered, so failures are counted from 0 again.
        self.send(bridge.MAX_FAILED - 1, "measure")
        for number in range(bridge.MAX_FAILED - 1, 2 * bridge.MAX_FAILED):
            await self.up(number + 1)
            self.bridge.take_request({"drop": {"w": number, "for_good": False}})
        with self.assertRaisesRegex(BridgeError, "no worker is left"):
            await asyncio.wait_for(self.watching, 5)

    async def test_leaves_closed_who_was_dropped_last(self):
        """Once a node has left, no worker is started on it, even if the search drops its last
        worker only later.
        """
        await self.begin()
        await self.up()
        ray.listed = []
        await self.until(lambda: not self.bridge.slots)
        self.bridge.take_request({"drop": {"w": 0, "for_good": False}})
        await asyncio.sleep(0.2)
        self.assertEqual(len(self.output.of("up")), 1)

    async def test_tells_of_a_head_that_is_lost(self):
        await self.begin()
        await self.up()
        nodes, ray.nodes, bridge.HEAD_S = ray.nodes, lambda: time.sleep(0.5), 0.1
        self.addCleanup(setattr, ray, "nodes", nodes)
        self.addCleanup(setattr, bridge, "HEAD_S", 30.0)
        with self.assertRaisesRegex(BridgeError, "the head of the cluster has not answered"):
            await self.watching

    async def test_takes_nodes_as_they_come(self):
        await self.begin(n=2)
        await self.up(2)
        ray.listed = [dict(ray.listed[0], NodeID="n2")]
        await self.up(4)
        self.assertEqual({slot.node_id for slot in self.bridge.slots}, {"n2"})

    async def test_gives_each_worker_a_gpu(self):
        """Each worker sees one GPU and gets an equal share of the processors. CUDA_VISIBLE_DEVICES of
        the caller is replaced.
        """
        os.environ["CUDA_VISIBLE_DEVICES"] = "all"
        self.addCleanup(os.environ.pop, "CUDA_VISIBLE_DEVICES")
        for gpus in ([0, 3], ["GPU-77aa", "GPU-0bc1"]):
            await self.asyncTearDown()
            ray.__init__()
            await self.begin(["sh", "-c", "echo $CUDA_VISIBLE_DEVICES $OMP_NUM_THREADS; cat"], 8, 0, gpus)
            await self.until(lambda: len(self.output.of("line")) == 2)
            lines = [value["line"] for value in self.output.of("line")]
            self.assertEqual(sorted(lines), sorted(f"{gpu} 4" for gpu in gpus))

    async def test_leaves_nodes_without_a_gpu_alone(self):
        await self.begin(gpus=[])
        ray.listed.append(dict(ray.listed[0], NodeID="n2", Resources={"CPU": 1.0, "GPU": 1.0}))
        ray.gpus = [5]
        await self.up()
        self.assertEqual([slot.node_id for slot in self.bridge.slots], ["n2"])

    async def test_gives_files_to_a_node_once(self):
        path = self.write("model", b"x" * 10)
        record = self.write("record", b"header\nline\n")
        await self.begin(n=2)
        self.bridge.take_request({"file": {"path": path, "first_line": False}})
        self.bridge.take_request({"file": {"path": record, "first_line": True}})
        here, store.is_here = store.is_here, lambda file: False
        self.addCleanup(setattr, store, "is_here", here)
        await self.up(2)
        for number in (0, 1):
            self.send(number, json.dumps({"method": "init", "record": record}, separators=(",", ":")))
            await self.until(lambda number=number: len(self.output.of("line")) > number)
        self.assertEqual(ray.n_put, 2)
        own = json.loads(self.output.of("line")[0]["line"])
        with open(own["record"], "rb") as file:
            self.assertEqual(file.read(), b"header\n")
        with open(own["record"].replace("record", "model"), "rb") as file:
            self.assertEqual(file.read(), b"x" * 10)
        self.assertEqual(own["threads"], 1)

    async def test_tells_of_a_file_that_is_gone(self):
        await self.begin()
        self.bridge.take_request({"file": {"path": self.folder + "/gone", "first_line": False}})
        await self.up()
        self.send(0, '{"method":"init","record":"/r"}')
        with self.assertRaisesRegex(BridgeError, "a file of the search cannot be read: .*gone"):
            await self.bridge.broken

    async def test_tells_of_a_node_that_cannot_keep_files(self):
        """An error of one node ends only the worker on it, not the search."""
        path = self.write("model", b"x")
        await self.begin()
        self.bridge.take_request({"file": {"path": path, "first_line": False}})
        await self.up()
        home, store.home = store.home, lambda: fail_with(OSError(28, "No space left on device"))
        self.addCleanup(setattr, store, "home", home)
        self.send(0, '{"method":"init","record":"/r"}')
        await self.until(lambda: self.output.of("down"))
        self.assertIn("No space left on device", self.output.of("down")[0]["why"])

    def write(self, name, data):
        path = os.path.join(self.folder, name)
        with open(path, "wb") as file:
            file.write(data)
        return path


def fail_with(error):
    raise error


class TestStore(unittest.TestCase):
    def setUp(self):
        self.folder = use_folder(self)
        self.path = os.path.join(self.folder, "model")
        with open(self.path, "wb") as file:
            file.write(b"weights")
        self.file = store.look_at(self.path, False)

    def test_uses_what_is_in_place(self):
        self.assertEqual(store.missing([self.file]), [])
        self.assertEqual(store.lay_out([self.file]), "")

    def test_keeps_what_is_another_here(self):
        os.rename(self.path, self.path + ".own")
        self.assertEqual(store.missing([self.file]), [self.file.digest])
        with open(self.path, "wb") as file:
            file.write(b"another")
        self.assertEqual(store.missing([self.file]), [self.file.digest])
        store.keep(self.file.digest, lambda stream: stream.write(b"weights"))
        self.assertEqual(store.missing([self.file]), [])
        root = store.lay_out([self.file])
        self.assertEqual(store.look_at(root + self.path, False).digest, self.file.digest)
        self.assertEqual(store.lay_out([self.file]), root)

    def test_keeps_files_to_itself(self):
        before = os.umask(0)
        self.addCleanup(os.umask, before)
        self.assertEqual(os.stat(store.home()).st_mode & 0o777, 0o700)

    def test_leaves_nothing_half_written(self):
        with self.assertRaises(ZeroDivisionError):
            store.keep("ab", lambda stream: stream.write(b"half") + 1 // 0)
        self.assertEqual(os.listdir(os.path.join(store.home(), "blobs")), [])

    def test_forgets_what_nobody_uses(self):
        os.rename(self.path, self.path + ".own")
        store.keep(self.file.digest, lambda stream: stream.write(b"weights"))
        root = store.lay_out([self.file])
        store.prune()
        self.assertTrue(os.path.exists(root))
        old = time.time() - store.KEPT_S - 1
        os.utime(store.blob_of(self.file.digest), (old, old))
        os.utime(root, (old, old))
        store.prune()
        self.assertEqual(sorted(os.listdir(store.home())), ["blobs"])
        self.assertEqual(os.listdir(os.path.join(store.home(), "blobs")), [])


class TestWords(unittest.TestCase):
    def test_says_why_not(self):
        self.assertIn("refuses the token", why_not("a:1", RuntimeError("no"), "RPC error: InvalidAuthToken: …"))
        self.assertEqual(why_not("a:1", RuntimeError("Version mismatch: with:\n  Ray: 2.1\n"), ""),
                         "a:1: Version mismatch: with: Ray: 2.1")
        self.assertEqual(why_not("a:1", RuntimeError("\nno\nmore"), ""), "a:1 cannot be reached: no")

    def test_nodes_find_the_program_of_the_package(self):
        with tempfile.TemporaryDirectory() as folder, mock.patch.dict(os.environ, PATH=folder):
            with mock.patch.object(installed, "FOLDER", folder):
                self.assertIsNone(node.of_package("mscgym"))
                os.mkdir(os.path.join(folder, "bin"))
                program = shutil.copy(sys.executable, os.path.join(folder, "bin", "mscgym"))
                self.assertEqual(node.of_package("mscgym"), program)
                self.assertIsNone(node.of_package("other"))

    def test_asks_the_port_first(self):
        with self.assertRaisesRegex(BridgeError, "127.0.0.1:1 cannot be reached: Connection refused"):
            check_port("127.0.0.1:1")
        check_port("auto")

    def test_waits_neither_in_silence_nor_for_long(self):
        notes, ends = [], []
        with mock.patch.object(connect, "SAY_S", 0.05), mock.patch.object(connect, "LIMIT_S", 0.2):
            with connect.watched("box:1", notes.append, ends.append):
                time.sleep(0.1)
                self.assertIn("box:1 has not answered", notes[0])
                self.assertEqual(ends, [])
            time.sleep(0.2)  # it has answered in the meantime
            self.assertEqual((len(notes), ends), (1, []))
            with connect.watched("box:1", notes.append, ends.append):
                time.sleep(0.4)
            self.assertIn("box:1 has not answered", ends[0])
            with connect.watched("box:1", notes.append, ends.append):
                pass
            time.sleep(0.3)
        self.assertEqual((len(notes), len(ends)), (2, 1))


if __name__ == "__main__":
    unittest.main(warnings="ignore")  # actors close their pipes only when their process ends
