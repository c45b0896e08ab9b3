#!/usr/bin/env python3
"""Measures what requests of status cost a running search.

    status_rate.py MSCGYM [--rate 1000] [--seconds 10] [--rounds 3]

One search of the digits network runs on one thread. In turn nobody asks, and a client asks for the job's status
at the rate, on one connection. Prints the trials per second of the search's own processes by CPU time and by the
clock, and the CPU time of the server per request.
"""
import argparse
import http.client
import os
import statistics
import sys
import tempfile
import time

from check_serve import submit
from serving import ANN, Service, children, digits, wait_for

TICKS = os.sysconf("SC_CLK_TCK")


def cpu_s(process):
    with open(f"/proc/{process}/stat", encoding="ascii") as file:
        words = file.read().rsplit(")", 1)[1].split()
    return (int(words[11]) + int(words[12])) / TICKS


def measure(service, client, id, rate, seconds):
    """Trials per second, and requests with the server's CPU time per request."""
    link = http.client.HTTPConnection("127.0.0.1", service.port)
    below = children(service.process.pid)
    before = client.job(id)["progress"]["trials"], cpu_s(service.process.pid), sum(map(cpu_s, below))
    begin, asked = time.monotonic(), 0
    while (elapsed := time.monotonic() - begin) < seconds:
        if asked >= rate * elapsed:
            time.sleep(0.0005)
            continue
        link.request("GET", f"/v1/jobs/{id}", headers={"Authorization": f"Bearer {ANN}"})
        assert link.getresponse().read()
        asked += 1
    elapsed = time.monotonic() - begin
    after = client.job(id)["progress"]["trials"], cpu_s(service.process.pid), sum(map(cpu_s, below))
    link.close()
    done = after[0] - before[0]
    return done / elapsed, done / (after[2] - before[2]), asked / elapsed, (after[1] - before[1]) / max(asked, 1)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("mscgym", type=os.path.abspath)
    parser.add_argument("--rate", type=float, default=1000)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    config = digits("quantize", 10**7, choices=[{"bits": n} for n in range(2, 9)])
    quiet, asked = [], []
    with tempfile.TemporaryDirectory() as folder, Service(given.mscgym, folder, "--threads", "1") as service:
        client = service.client()
        id = submit(client, config)
        wait_for(lambda: client.job(id).get("progress", {}).get("trials", 0) > 100)
        for _ in range(given.rounds):
            quiet.append(measure(service, client, id, 0, given.seconds))
            asked.append(measure(service, client, id, given.rate, given.seconds))
        client.remove(id)
    for name, rows in (("quiet", quiet), ("asked", asked)):
        clock, cpu, rate, cost = (statistics.median(column) for column in zip(*rows))
        print(f"{name}: {clock:.1f} trials/s, {cpu:.1f} trials per CPU second of the search; {rate:.0f} requests/s, "
              f"{1e6 * cost:.0f} us of the server's CPU each; trials/s of the rounds: "
              + ", ".join(f"{row[0]:.1f}" for row in rows))


if __name__ == "__main__":
    sys.exit(main())
