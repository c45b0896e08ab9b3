#!/usr/bin/env python3
"""Makes every call of a search fail that can, and checks that nothing is lost and nothing differs.

    fault_points.py MSCGYM_FAULTS [--points N] [--seed 0] [--only KIND] [--all] [--jobs 1] [--verbose]

MSCGYM_FAULTS is the command with calls that fail at will (tests/faults/inject.c). It searches the
digits example, a few trials of it, undisturbed; then again for each point with one call failing, or
all of a kind from one on: every call to the system of parent and worker, and of allocations the
first, the last and one between from each place in the program, that of libraries too (--all: every
one). Where that did
not end well it must have said why; the search then goes on without faults, by the same command or by
`resume`. Record, strategy and model must come out as undisturbed, and lines that a record had must
stay. Prints a table of what came of it and each point that went wrong; exit code 1 if any did.
With --points that many points, chosen evenly; those of calls to the system come first.
"""
import argparse
import collections
import concurrent.futures
import errno
import json
import os
import random
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
EXAMPLE = os.path.join(HERE, "..", "..", "examples", "digits")
TRIALS, PARALLEL = 12, 4
LIMIT_S = 300
ROLES = ("parent", "worker")
FOREVER, HALF = -1, -1
HEADER = struct.Struct("=II128s32III24Q")
NOTE = struct.Struct("=BBHI")
NOTES = 1 << 20

# What fails how: once or from then on, and with which error.
WAYS = {
    "alloc": ((1, errno.ENOMEM), (8, errno.ENOMEM), (FOREVER, errno.ENOMEM)),
    "outside": ((1, errno.ENOMEM), (FOREVER, errno.ENOMEM)),
    "open": ((1, errno.EMFILE), (1, errno.EIO), (FOREVER, errno.EMFILE)),
    "stat": ((1, errno.EIO),),
    "read": ((1, errno.EIO), (1, errno.EINTR), (1, HALF)),
    "write": ((1, errno.EIO), (1, errno.EINTR), (1, HALF), (FOREVER, errno.ENOSPC)),
    "say": ((1, errno.EIO), (1, errno.EINTR), (1, HALF), (FOREVER, errno.EPIPE)),
    "sync": ((1, errno.EIO), (FOREVER, errno.EIO)),
    "close": ((1, errno.EIO), (1, errno.EINTR)),
    "name": ((1, errno.EIO), (FOREVER, errno.ENOSPC)),
    "size": ((1, errno.EIO), (FOREVER, errno.ENOSPC)),
    "map": ((1, errno.ENOMEM),),
    "lock": ((1, errno.EINTR), (1, errno.ENOLCK)),
    "process": ((1, errno.EAGAIN), (FOREVER, errno.EAGAIN)),
}
HEAP = ("alloc", "outside")  # libraries may well end the process
RESULTS = ("not reached", "same", "restarted, same", "error, then same", "WRONG", "LOST", "CRASH")
BAD = RESULTS[4:]

Point = collections.namedtuple("Point", "role kind first count error")


def way_name(point):
    name = "short" if point.error == HALF else errno.errorcode[point.error]
    times = {1: "once", FOREVER: "from then on"}.get(point.count, f"{point.count} times")
    return f"{point.kind} {name} {times}"


class Folder:
    """A search with its inputs, and what became of it."""

    def __init__(self, mscgym, folder):
        self.mscgym, self.folder = mscgym, folder
        self.workspace = os.path.join(folder, "ws")
        self.page = os.path.join(folder, "page")
        os.makedirs(folder)
        for name in ("digits.onnx", "calibration.npz", "calibration_labels.npy"):
            shutil.copy(os.path.join(EXAMPLE, name), folder)
        with open(os.path.join(EXAMPLE, "digits.json")) as file:
            config = json.load(file)
        config["workspace"] = "ws"
        config["dataset"].update(samples=8, batch=4, validation=0.02)
        entry = config["quantize"]["gym"][0]
        entry["agent"]["population"] = PARALLEL
        entry.update(budget={"trials": TRIALS}, parallel=PARALLEL)
        self.record = os.path.join(self.workspace, entry["record"])
        self.files = [os.path.join(self.workspace, name)
                      for name in (config["quantize"]["strategy_file"], "digits.onnx")]
        with open(os.path.join(folder, "search.json"), "w") as file:
            json.dump(config, file)

    def run(self, *arguments, point=None, n_notes=0):
        """The command's exit code, its messages and the page of its calls."""
        with open(self.page, "wb") as file:
            file.truncate(HEADER.size + n_notes * NOTE.size)
        environment = dict(os.environ, MSC_FAULT_PAGE=self.page)
        environment.pop("MSC_FAULT", None)
        if point:
            environment["MSC_FAULT"] = " ".join(map(str, point))
        process = subprocess.Popen(
            [self.mscgym, *arguments], cwd=self.folder, env=environment, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, errors="replace", start_new_session=True)
        try:
            _, errors = process.communicate(timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return None, "", b""
        with open(self.page, "rb") as file:
            return process.returncode, errors, file.read()

    def search(self, **options):
        return self.run("search", "search.json", "--quiet", "--threads", "1", **options)

    def resume(self):
        return self.run("resume", self.record, "--quiet", "--threads", "1")

    def clear(self):
        shutil.rmtree(self.workspace, ignore_errors=True)

    def lines(self):
        """The record's whole lines."""
        if not os.path.exists(self.record):
            return []
        with open(self.record, "rb") as file:
            return file.read().split(b"\n")[:-1]

    def outcome(self):
        """What must be the same however the search came about; None where a file is missing."""
        result = []
        for path in self.files:
            if not os.path.exists(path):
                return None
            with open(path, "rb") as file:
                result.append(file.read())
        canonical = subprocess.run([self.mscgym, "show", self.record, "--canonical"],
                                   capture_output=True)
        return result + [canonical.stdout] if canonical.returncode == 0 else None


class Page:
    def __init__(self, data):
        fields = HEADER.unpack_from(data)
        names = [fields[2][i * 8:i * 8 + 8].rstrip(b"\0").decode() for i in range(fields[0])]
        calls = fields[3:35]
        self.calls = {(role, kind): calls[r * 16 + k]
                      for r, role in enumerate(ROLES) for k, kind in enumerate(names)}
        self.n_failed, n_noted = fields[35:37]
        self.frames = fields[37:37 + fields[1]]
        self.notes = []
        counts = collections.Counter()
        for i in range(min(n_noted, (len(data) - HEADER.size) // NOTE.size)):
            role, kind, _, stack = NOTE.unpack_from(data, HEADER.size + i * NOTE.size)
            counts[role, kind] += 1
            self.notes.append((ROLES[role], names[kind], stack, counts[role, kind]))


def list_points(page, takes_all, rng):
    """Every point, those of calls to the system first."""
    of_stack = collections.defaultdict(list)
    for role, kind, stack, n in page.notes:
        of_stack[role, kind, stack if kind in HEAP and not takes_all else n].append(n)
    chosen = collections.defaultdict(set)
    for (role, kind, _), calls in of_stack.items():
        for count, error in WAYS[kind]:
            once = (calls[-1], rng.choice(calls)) if count == 1 else ()
            chosen[role, kind, count, error].update((calls[0], *once))
    points = [Point(role, kind, n, count, error)
              for (role, kind, count, error), calls in chosen.items() for n in sorted(calls)]
    return sorted(points, key=lambda point: point.kind in HEAP)


def choose(points, n):
    """n of them, evenly over system and heap."""
    calls = [p for p in points if p.kind not in HEAP]
    heap = [p for p in points if p.kind in HEAP]
    n_calls = min(len(calls), max(n // 2, n - len(heap)))
    chosen = []
    for part, count in ((calls, n_calls), (heap, min(len(heap), n - n_calls))):
        chosen += [part[i * len(part) // count] for i in range(count)]
    return chosen


def judge(folder, point, number, expected):
    """What came of a point, and what to say of it."""
    folder.clear()
    code, errors, data = folder.search(point=point)
    if code is None:
        return "CRASH", f"no end within {LIMIT_S} s", None
    page = Page(data)
    if not page.n_failed:
        return "not reached", "", page
    is_dead = code < 0 or "died of signal" in errors or "Sanitizer" in errors
    if is_dead and point.kind != "outside":
        return "CRASH", f"exit code {code}: {errors}", page
    if code == 0:
        if folder.outcome() != expected:
            return "WRONG", f"exit code 0 with other results: {errors}", page
        return ("restarted, same" if "is started again" in errors else "same"), "", page
    who = "" if point.kind == "outside" else "mscgym: "
    if point.kind != "say" and not re.search(rf"^{who}.*\S", errors, re.M):
        return "WRONG", f"exit code {code} without a word", page
    before = folder.lines()
    code, again, _ = folder.resume() if number % 2 and before else folder.search()
    told = f"{errors.strip()} [then {code}: {again.strip()}]"
    if code != 0 or folder.lines()[:len(before)] != before:
        return "LOST", told, page
    return ("error, then same" if folder.outcome() == expected else "WRONG"), told, page


def place(mscgym, page):
    """Where the call that failed was made, function by function."""
    if not page or not page.frames:
        return ""
    found = subprocess.run(["addr2line", "-f", "-s", "-e", mscgym,
                            *(hex(frame - 1) for frame in page.frames[2:])],
                           capture_output=True, text=True).stdout.split("\n")
    return " < ".join(name for name in found[0:40:2] if name not in ("", "??"))


def print_table(table):
    width = max(map(len, table), default=0)
    print(f"{'':{width}}  " + "  ".join(RESULTS))
    for way, counts in table.items():
        print(f"{way:{width}}  " +
              "  ".join(f"{counts[result] or '-':>{len(result)}}" for result in RESULTS))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("mscgym")
    parser.add_argument("--points", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", choices=WAYS)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--verbose", action="store_true")
    arguments = parser.parse_args()
    mscgym = os.path.abspath(arguments.mscgym)
    top = tempfile.mkdtemp(prefix="msc_faults_")
    table = collections.defaultdict(collections.Counter)
    try:
        folder = Folder(mscgym, os.path.join(top, "undisturbed"))
        code, errors, data = folder.search(n_notes=NOTES)
        expected = folder.outcome()
        if code != 0 or not expected:
            sys.exit(f"the undisturbed search ended with {code}: {errors}")
        page = Page(data)
        points = list_points(page, arguments.all, random.Random(arguments.seed))
        points = [p for p in points if arguments.only in (None, p.kind)]
        if 0 < arguments.points < len(points):
            points = choose(points, arguments.points)
        print(f"{sum(page.calls.values())} calls, {len(points)} points", flush=True)
        own = threading.local()

        def run(job):
            if not hasattr(own, "folder"):
                own.folder = Folder(mscgym, os.path.join(top, f"{threading.get_ident()}"))
            return job, judge(own.folder, job[1], job[0], expected)

        with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
            for (_, point), (result, text, failed) in pool.map(run, enumerate(points)):
                table[way_name(point)][result] += 1
                if result in BAD or arguments.verbose:
                    print(f"{result}: MSC_FAULT=\"{' '.join(map(str, point))}\": {text}\n    at "
                          f"{place(mscgym, failed)}", flush=True)
    finally:
        shutil.rmtree(top, ignore_errors=True)
    print_table(table)
    n_bad = sum(counts[result] for counts in table.values() for result in BAD)
    n_reached = sum(sum(c.values()) - c["not reached"] for c in table.values())
    print(f"{n_reached} points, {n_bad} went wrong")
    return 1 if n_bad or not n_reached else 0


if __name__ == "__main__":
    sys.exit(main())
