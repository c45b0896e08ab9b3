"""Replaces the Ray package: workers are processes on this machine, and a seed decides which of
their messages come late, out of order or twice.

    python3 -m mscgym_ray fake:SEED
"""
import asyncio
import json
import random
import sys

LATEST_S = 0.02
TWICE = 0.05


class Bridge:
    def __init__(self, seed):
        self.chance, self.workers, self.tasks = random.Random(seed), {}, set()

    def say(self, **event):
        sys.stdout.write(json.dumps(event) + "\n")
        sys.stdout.flush()

    async def later(self, number, line):
        await asyncio.sleep(self.chance.uniform(0, LATEST_S))
        self.say(line={"w": number, "line": line})

    def begin(self, doing):
        task = asyncio.ensure_future(doing)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def run_worker(self, number, argv):
        process = await asyncio.create_subprocess_exec(
            *argv, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, limit=1 << 26)
        self.workers[number] = process
        self.say(up={"w": number, "node": "fake"})
        while line := await process.stdout.readline():
            for _ in range(1 + (self.chance.random() < TWICE)):
                self.begin(self.later(number, line.decode().rstrip("\n")))
        self.say(down={"w": number, "why": "it ended"})

    async def serve(self):
        reader = asyncio.StreamReader(limit=1 << 26)
        await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        while line := await reader.readline():
            request = json.loads(line)
            if "start" in request:
                for number in range(request["start"]["max"]):
                    self.begin(self.run_worker(number, request["start"]["argv"]))
            elif "send" in request and request["send"]["w"] in self.workers:
                process = self.workers[request["send"]["w"]]
                process.stdin.write(request["send"]["line"].encode() + b"\n")
                await process.stdin.drain()
        for process in self.workers.values():
            process.kill()


asyncio.run(Bridge(sys.argv[1]).serve())
