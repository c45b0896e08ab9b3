#!/usr/bin/env python3
"""Checks that searches with 1, 2, 4 and 8 workers write the record of a single process, by any bridge.

    check_workers.py MSCGYM [--bridges fake local ray slurm] [--networks digits mlsd-tiny ocr-rec]
                     [--workers 1 2 4 8] [--trials 24]

Each network is searched at random, by evolution and greedily: without bounds, and with a size bound
and trials that stop early. The bridge `fake` delivers messages late, out of order and twice. Networks
are those of scripts/fetch-models. The package ray, and Slurm with munge, are needed as by check_ray.py
and check_slurm.py. Missing parts are skipped with a message; exits with 77 if nothing is left.
"""
import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

import numpy

import check_slurm
import ray_cluster
from model_inputs import inputs, model_path
from search_records import canonical, trials_of

HERE = os.path.dirname(os.path.abspath(__file__))
AGENTS = {
    "random": {"type": "random"},
    "evolutionary": {"type": "evolutionary", "population": 8},
    "greedy": {"type": "grid_search", "mode": "greedy", "bounded": False},
}
N_SAMPLES = {"digits": 64, "mlsd-tiny": 4, "ocr-rec": 4}
SLOTS = 8
N_BASELINES = 3
# Found, none within the bounds, stopped on request, interrupted at its very end.
ENDED = (0, 1, 4, -signal.SIGINT)


def configure(folder, network, name, is_bounded, trials):
    """Writes the search's configuration; returns it and its record."""
    agent = dict(AGENTS[name], **({"bounded": True} if is_bounded and name != "random" else {}))
    env = {"choices": [{"bits": bits} for bits in (8, 6, 4)]}
    if is_bounded:
        env["bounds"] = {"size_ratio": {"max": 0.2}}
    what = f"{name}-{'bounded' if is_bounded else 'free'}"
    data = os.path.join(folder, "inputs.npy")
    if not os.path.exists(data):
        numpy.save(data, inputs(network, N_SAMPLES[network]))
    path = os.path.join(folder, f"{what}.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"workspace": folder, "model": model_path(network), "verbose": "error",
                   "dataset": {"inputs": data, "batch": N_SAMPLES[network] // 4},
                   "quantize": {"target": "generic", "gym": [{
                       "record": f"{what}.jsonl", "env": env, "agent": agent, "seed": 11, "parallel": 12,
                       "budget": {"trials": trials}}]}}, file)
    return path, os.path.join(folder, f"{what}.jsonl")


def search(mscgym, config, record, n_trials, *more, environment=None):
    """Searches until all trials are recorded. Measuring the winner afterwards would take longer and
    involves no workers.
    """
    command = [mscgym, "search", config, "--restart", "--quiet", "--threads", "1", "--memory", "2G", *more]
    if os.path.exists(record):
        os.unlink(record)
    with tempfile.TemporaryFile("w+") as told:
        going = subprocess.Popen(command, env=dict(os.environ, **(environment or {})),
                                 stdout=subprocess.DEVNULL, stderr=told)
        deadline = time.monotonic() + 900
        while going.poll() is None and time.monotonic() < deadline:
            time.sleep(0.1)
            if trials_of(record) >= n_trials:
                going.send_signal(signal.SIGINT)
                going.wait(timeout=120)
        going.kill()
        told.seek(0)
        return going.wait() in ENDED, told.read().strip()


# ---- Bridges: the value of --cluster for n workers, and the environment
# ---------------------------

@contextlib.contextmanager
def by_local(_):
    yield lambda n: ([f"local:{n}"], {})


@contextlib.contextmanager
def by_fake(mscgym):
    package = {"PYTHONPATH": os.path.join(HERE, "fake_cluster")}
    yield lambda n: ([f"ray:fake:{n}:{n}", "--worker-program", mscgym], package)


@contextlib.contextmanager
def by_ray(mscgym):
    with tempfile.TemporaryDirectory(prefix="r", ignore_cleanup_errors=True) as folder:
        cluster = ray_cluster.Cluster(folder, (2, 3), cpus=SLOTS // 2)
        try:
            yield lambda n: ([f"ray:{ray_cluster.ADDRESS}:{n}", "--worker-program", mscgym], {})
        finally:
            cluster.close()


@contextlib.contextmanager
def by_slurm(mscgym):
    with tempfile.TemporaryDirectory(prefix="check_workers_") as folder:
        cluster = check_slurm.Cluster(folder, cpus=SLOTS // 2)
        try:
            yield lambda n: ([f"slurm:night:{n}", "--worker-program", mscgym], {})
        finally:
            cluster.close()


BRIDGES = {"fake": by_fake, "local": by_local, "ray": by_ray, "slurm": by_slurm}


def check(options, bridge, subjects):
    good = True
    with BRIDGES[bridge](options.mscgym) as cluster_of:
        for network, name, is_bounded, config, record, alone in subjects:
            for n in options.workers:
                start = time.monotonic()
                (where, *program), environment = cluster_of(n)
                is_done, error = search(options.mscgym, config, record, options.trials + N_BASELINES, "--cluster", where,
                                        *program, environment=environment)
                same = is_done and canonical(options.mscgym, record) == alone
                good = good and same
                print(f"| {bridge} | {network} | {name} | {'yes' if is_bounded else 'no'} | {n} | "
                      f"{'the same' if same else 'DIFFERS ' + error} | {time.monotonic() - start:.1f} s |", flush=True)
    return good


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("mscgym", type=os.path.abspath)
    parser.add_argument("--bridges", nargs="+", default=list(BRIDGES), choices=BRIDGES)
    parser.add_argument("--networks", nargs="+", default=list(N_SAMPLES), choices=N_SAMPLES)
    parser.add_argument("--workers", nargs="+", type=int, default=[1, 2, 4, 8])
    parser.add_argument("--trials", type=int, default=24)
    options = parser.parse_args()
    if "ray" in options.bridges:
        ray_cluster.enter_namespace()
    if "slurm" in options.bridges:
        check_slurm.check_installed()
    with tempfile.TemporaryDirectory(prefix="check_workers_") as work:
        subjects = []
        for network in options.networks:
            if not os.path.exists(model_path(network)):
                print(f"skipped: {network} is not there (scripts/fetch-models)")
                continue
            folder = os.path.join(work, network)
            os.mkdir(folder)
            for name in AGENTS:
                for is_bounded in (False, True):
                    config, record = configure(folder, network, name, is_bounded, options.trials)
                    is_done, error = search(options.mscgym, config, record, options.trials + N_BASELINES)
                    if not is_done:
                        sys.exit(f"{config}: {error}")
                    subjects.append((network, name, is_bounded, config, record,
                                     canonical(options.mscgym, record)))
        print("| bridge | network | agent | bounds | workers | record | time |\n|---|---|---|---|---|---|---|", flush=True)
        results = [check(options, bridge, subjects) for bridge in options.bridges]
    if not subjects:
        sys.exit(77)
    print(f"{len(subjects) * len(options.workers) * len(results)} searches: "
          f"{'all the same' if all(results) else 'SOME DIFFER'}")
    sys.exit(0 if all(results) else 1)


if __name__ == "__main__":
    main()
