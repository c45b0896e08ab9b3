#!/usr/bin/env python3
"""Kills the server and its searches at random moments while jobs of three kinds run.

    many_kills.py MSCGYM [--jobs 20] [--kills 60] [--seed 0]

Two users submit the jobs: searches of bits, of channels, and in the toy environment. Every second kill hits the
server, the others any process below it. A trial in flight at three kills counts as failed (docs/record.md), so a
search is killed again only when its record has grown. All jobs must end, with the record of `mscgym search`. Prints
what happened; exits with 1 if something differs.
"""
import argparse
import os
import random
import signal
import sys
import tempfile
import time

from check_serve import record_of, submit
from serving import ANN, BOB, Service, by_hand, children, digits, toy

KINDS = {
    "toy": toy(3000, 3000),
    "bits": digits("quantize", 2000, choices=[{"bits": 8}, {"bits": 6}, {"bits": 4}]),
    "channels": digits("prune", 800, choices=[{"density": 1}, {"density": 0.75}, {"density": 0.5}]),
}


def sizes(service):
    """The bytes of all records, by job."""
    found = {}
    for job in os.listdir(service.jobs):
        work = os.path.join(service.jobs, job, "work")
        if os.path.isdir(work):
            found[job] = sum(os.path.getsize(os.path.join(work, name)) for name in os.listdir(work)
                             if name.endswith(".jsonl"))
    return found


def kill_once(service, chance, is_server, jobs):
    """Kills the server or a process below it, once all searches have gone on since the last kill."""
    before = sizes(service)
    end = time.monotonic() + 20
    while time.monotonic() < end:
        now, below = sizes(service), children(service.process.pid)
        running = {job["id"] for client in jobs for job in client.jobs() if job["state"] == "running"}
        if running and below and all(now.get(job, 0) > before.get(job, 0) for job in running):
            break
        time.sleep(0.01)
    else:
        return "nobody"  # no search runs any more
    time.sleep(chance.uniform(0, 0.1))
    below = children(service.process.pid)
    if is_server or not below:
        service.kill()
        service.start()
        return "server"
    try:
        os.kill(chance.choice(below), signal.SIGKILL)
    except ProcessLookupError:
        return "nobody"
    return "search"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("mscgym", type=os.path.abspath)
    parser.add_argument("--jobs", type=int, default=20)
    parser.add_argument("--kills", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    chance = random.Random(given.seed)
    wrong, killed = 0, {"server": 0, "search": 0, "nobody": 0}
    with tempfile.TemporaryDirectory() as folder:
        records = {kind: by_hand(given.mscgym, folder, config, kind)[0] for kind, config in KINDS.items()}
        with Service(given.mscgym, folder, "--jobs", "2", "--threads", "2") as service:
            ids = []
            for n in range(given.jobs):
                kind, token = list(KINDS)[n % len(KINDS)], (ANN, BOB)[n % 2]
                ids.append((kind, token, submit(service.client(token), KINDS[kind])))
            while killed["server"] + killed["search"] < given.kills and not killed["nobody"]:
                clients = [service.client(token) for token in (ANN, BOB)]
                killed[kill_once(service, chance, killed["server"] <= killed["search"], clients)] += 1
            early = sum(service.client(token).job(id)["state"] == "done" for _, token, id in ids)
            for kind, token, id in ids:
                client = service.client(token)
                job = client.wait(id)
                is_equal = job["state"] == "done" and record_of(given.mscgym, service, client, id) == records[kind]
                if not is_equal:
                    wrong += 1
                    print(f"FAILED  {kind}: {job}", flush=True)
        wrong += killed["nobody"]  # the jobs were too short for the kills
        print(f"{given.jobs} jobs, killed {killed}; {early} jobs were done at the last kill; {wrong} differ")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
