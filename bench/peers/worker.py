"""Peers in processes that are kept between measurements, and use both cores in the best way.

    peer = Peer("onnxruntime session, wide QDQ", job)
    peer.settle(trials[:4])                 # two threads or two processes, and the batch size
    rate, losses = peer.measure(trials)

Building models, preparing edits and the first evaluation are never timed.
"""
import multiprocessing
import os
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))

# name: (module, class)
KINDS = {
    "onnxruntime session, wide QDQ": ("wide", "WideSession"),
    "onnxruntime session, narrow QDQ": ("narrow", "NarrowSession"),
    "onnxruntime loop, weights and scales": ("wide", "IntegerLoop"),
    "onnxruntime loop, plain Q/DQ": ("narrow", "NarrowLoop"),
    "PyTorch fake-quantise": ("torch_loop", "TorchLoop"),
    "onnxruntime session, exported model": ("exported", "ExportedSession"),
}


def serve(pipe, kind, job, batch, threads):
    """Answers lists of plans: "ready" once all is prepared, then seconds and losses."""
    os.environ["OMP_NUM_THREADS"] = str(threads)
    sys.path.insert(0, HERE)
    import importlib
    import numpy
    from model import Base
    from plans import Plans
    base = Base(job["model"], numpy.load(job["inputs"]), batch)
    module, name = KINDS[kind]
    peer = getattr(importlib.import_module(module), name)(base, Plans(job["record"]), threads)
    while True:
        plans = pipe.recv()
        if plans is None:
            return
        peer.prepare(plans)
        peer.evaluate(plans[0])
        pipe.send("ready")
        pipe.recv()
        start = time.perf_counter()
        losses = [peer.evaluate(plan) for plan in plans]
        pipe.send((time.perf_counter() - start, losses))


class Crew:
    """One or two processes that share the plans."""

    def __init__(self, kind, job, batch, processes):
        context = multiprocessing.get_context("spawn")
        self.workers = []
        for _ in range(processes):
            ours, theirs = context.Pipe()
            process = context.Process(
                target=serve, args=(theirs, kind, job, batch, 2 // processes), daemon=True)
            process.start()
            theirs.close()
            self.workers.append((process, ours))

    def measure(self, plans):
        n = len(self.workers)
        for k, (_, pipe) in enumerate(self.workers):
            pipe.send(plans[k::n])
        for _, pipe in self.workers:
            pipe.recv()
        for _, pipe in self.workers:
            pipe.send("go")
        losses, seconds = [None] * len(plans), 0.0
        for k, (_, pipe) in enumerate(self.workers):
            spent, losses[k::n] = pipe.recv()
            seconds = max(seconds, spent)
        return len(plans) / seconds, losses

    def close(self):
        for process, pipe in self.workers:
            pipe.send(None)
            process.join()


class Peer:
    def __init__(self, kind, job):
        self.kind, self.job = kind, job
        self.crew, self.way = None, None

    @property
    def how(self):
        processes, batch = self.way
        return f"{'2 processes' if processes == 2 else '2 threads'}, batch {batch}"

    def settle(self, plans, way=None):
        """Chooses the fastest way, or uses `way`, if it is known."""
        if way:
            self.crew, self.way = Crew(self.kind, self.job, way[1], way[0]), way
            return
        best = 0.0
        for way in ((p, b) for b in self.job["batches"] for p in (1, 2)):
            crew = Crew(self.kind, self.job, way[1], way[0])
            rate = max(crew.measure(plans)[0] for _ in range(2))
            worse = crew
            if rate > best:
                best, worse, self.crew, self.way = rate, self.crew, crew, way
            if worse:
                worse.close()

    def measure(self, plans):
        return self.crew.measure(plans)

    def close(self):
        self.crew.close()
