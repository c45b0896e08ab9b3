#!/usr/bin/env python3
"""Makes each call of a search fail in turn, and checks that nothing is lost and results are the same.

    fault_points.py MSCGYM_FAULTS [--points N] [--seed 0] [--only KIND] [--of COMMAND] [--all]
                    [--device cpu] [--workers 0] [--jobs 1] [--verbose]

MSCGYM_FAULTS is the command built with calls that can be made to fail (tests/faults/inject.c). A
short search of the digits example runs undisturbed. It is then repeated for each point, with one
call failing, or all calls of its kind from there on. Points are all system calls of parent and
worker, and for each place that allocates (libraries included) the first, the last and one other
allocation; with --all every allocation.

If a run fails, it must say why. The search then continues without faults, by the same command or by
`resume`. Record, strategy and model must be those of the undisturbed run, and existing lines must
remain. The same is done for a search that had been stopped, and for commands that read its files:
they must print and write the same, or say why not.

Prints a table of outcomes and each point that went wrong; exits with 1 if any did. --points N tests
N points, spread evenly over system calls and allocations. --device searches on another device,
--workers with N workers (--cluster local:N). --device vulkan --only device loses the device at
every batch that is submitted to it. Exits with 77 without that device.
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
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
EXAMPLE = os.path.join(HERE, "..", "..", "examples", "digits")
TRIALS, PARALLEL = 12, 4
LIMIT_S = 300
ROLES = ("parent", "worker")
FOREVER, HALF = -1, -1
HEADER = struct.Struct("=II128s32III24Q")
NOTE = struct.Struct("=BBHI")
NOTES = 1 << 20

# For each kind of call: how many calls fail, and with which error.
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
    "device": ((1, errno.ENODEV), (1, errno.ENOMEM), (2, errno.ENOMEM), (FOREVER, errno.ENODEV)),
}
HEAP = ("alloc", "outside")  # libraries may end the process
# Commands that read files of a search, and the file that each of them writes.
COMMANDS = {
    "show": (["show", "ws/digits.jsonl", "--top", "3"], None),
    "show --json": (["show", "ws/digits.jsonl", "--json"], None),
    "show --canonical": (["show", "ws/digits.jsonl", "--canonical"], None),
    "verify": (["verify", "ws/digits.jsonl", "--trials", "0,3", "--json", "--threads", "1"], None),
    "export": (["export", "ws/digits.jsonl", "-o", "out.onnx"], "out.onnx"),
    "run": (["run", "digits.onnx", "--strategy", "ws/msc_quantize.json", "--input",
             "image=image.npy", "-o", "out.npz", "--repeat", "0", "--threads", "1", "--device",
             "cpu"], "out.npz"),
    "graph": (["graph", "digits.onnx", "--sites"], None),
    "graph --json": (["graph", "digits.onnx", "--json"], None),
    "graph --prototxt": (["graph", "digits.onnx", "--prototxt"], None),
    "graph --placement": (["graph", "digits.onnx", "--placement", "--device", "cpu"], None),
    "config": (["config", "--show", "search.json"], None),
    "envs": (["envs", "--json"], None),
    "agents": (["agents"], None),
}
SEARCH, RESUME = "search", "resume"
SEARCHES = (SEARCH, RESUME)  # a new search, and one that had been stopped
RESULTS = ("not reached", "same", "restarted, same", "error, then same", "WRONG", "LOST", "CRASH")
BAD = RESULTS[4:]

Point = collections.namedtuple("Point", "role kind first count error command")


def fault(point):
    """The value of MSC_FAULT for a point."""
    return " ".join(map(str, point[:-1]))


def way_name(point):
    name = "short" if point.error == HALF else errno.errorcode[point.error]
    times = {1: "once", FOREVER: "from then on"}.get(point.count, f"{point.count} times")
    command = point.command if point.command in SEARCHES else "others"
    return f"{command}: {point.kind} {name} {times}"


class Folder:
    """A search with its inputs, and its results."""

    def __init__(self, mscgym, folder, options):
        self.mscgym, self.folder, self.options = mscgym, folder, options
        self.workspace = os.path.join(folder, "ws")
        self.stopped = os.path.join(folder, "stopped")
        self.page = os.path.join(folder, "page")
        os.makedirs(folder)
        for name in ("digits.onnx", "calibration.npz", "calibration_labels.npy"):
            shutil.copy(os.path.join(EXAMPLE, name), folder)
        with zipfile.ZipFile(os.path.join(folder, "calibration.npz")) as arrays:
            arrays.extract("image.npy", folder)
        with open(os.path.join(EXAMPLE, "digits.json")) as file:
            config = json.load(file)
        config.update(workspace="ws", device=options.device)
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
        """Runs mscgym; returns its exit code, output, messages, and the page on which calls are noted."""
        with open(self.page, "wb") as file:
            file.truncate(HEADER.size + n_notes * NOTE.size)
        environment = dict(os.environ, MSC_FAULT_PAGE=self.page)
        for name in ("MSC_FAULT", "MSC_FAULT_KIND"):
            environment.pop(name, None)
        if point:
            environment["MSC_FAULT"] = fault(point)
        if self.options.only:
            environment["MSC_FAULT_KIND"] = self.options.only
        process = subprocess.Popen(
            [self.mscgym, *arguments], cwd=self.folder, env=environment, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, errors="replace",
            start_new_session=True)
        try:
            printed, errors = process.communicate(timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return None, "", f"no end within {LIMIT_S} s", b""
        with open(self.page, "rb") as file:
            return process.returncode, printed, errors, file.read()

    def by_whom(self):
        n = self.options.workers
        return ["--quiet", *(["--cluster", f"local:{n}"] if n else ["--threads", "1"])]

    def search(self, *arguments, **options):
        return self.run("search", "search.json", *self.by_whom(), *arguments, **options)

    def resume(self, **options):
        return self.run("resume", "ws/digits.jsonl", "--trials", str(TRIALS), *self.by_whom(),
                        **options)

    def begin(self, command, **options):
        """Runs a search from its start, or continues a stopped one."""
        self.clear()
        if command == SEARCH:
            return self.search(**options)
        if not os.path.exists(self.stopped):
            self.search("--trials", str(TRIALS // 3))
            os.rename(self.workspace, self.stopped)
        shutil.copytree(self.stopped, self.workspace)
        return self.resume(**options)

    def read(self, command, **options):
        """Runs one of COMMANDS; returns what it printed and what it wrote."""
        arguments, target = COMMANDS[command]
        path = os.path.join(self.folder, target or "none")
        if os.path.exists(path):
            os.remove(path)
        code, printed, errors, data = self.run(*arguments, **options)
        written = None
        if os.path.exists(path):
            with open(path, "rb") as file:
                written = file.read()
        return code, (printed, written), errors, data

    def clear(self):
        shutil.rmtree(self.workspace, ignore_errors=True)

    def lines(self):
        """The complete lines of the record."""
        if not os.path.exists(self.record):
            return []
        with open(self.record, "rb") as file:
            return file.read().split(b"\n")[:-1]

    def outcome(self):
        """Results that must not depend on faults, or None if a file is missing."""
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


def list_points(command, page, takes_all, rng):
    """All points of a command, system calls first."""
    of_stack = collections.defaultdict(list)
    for role, kind, stack, n in page.notes:
        of_stack[role, kind, stack if kind in HEAP and not takes_all else n].append(n)
    chosen = collections.defaultdict(set)
    for (role, kind, _), calls in of_stack.items():
        for count, error in WAYS[kind]:
            once = (calls[-1], rng.choice(calls)) if count == 1 else ()
            chosen[role, kind, count, error].update((calls[0], *once))
    points = [Point(role, kind, n, count, error, command)
              for (role, kind, count, error), calls in chosen.items() for n in sorted(calls)]
    return sorted(points, key=lambda point: point.kind in HEAP)


def choose(points, n):
    """n of the points, spread evenly over system calls and allocations."""
    calls = [p for p in points if p.kind not in HEAP]
    heap = [p for p in points if p.kind in HEAP]
    n_calls = min(len(calls), max(n // 2, n - len(heap)))
    chosen = []
    for part, count in ((calls, n_calls), (heap, min(len(heap), n - n_calls))):
        chosen += [part[i * len(part) // count] for i in range(count)]
    return chosen


def judge_end(point, code, errors):
    """The fault of a command that failed, or None if it ended properly."""
    is_dead = code is None or code < 0 or "died of signal" in errors or "Sanitizer" in errors
    if is_dead and point.kind != "outside":
        return "CRASH"
    is_told = point.kind in ("say", "outside") or re.search(r"^mscgym: .*\S", errors, re.M)
    return None if code == 0 or is_told else "WRONG"


def judge_reading(folder, point, expected):
    code, found, errors, data = folder.read(point.command, point=point)
    page = Page(data) if data else None
    if page and not page.n_failed:
        return "not reached", "", page
    bad = judge_end(point, code, errors)
    is_told = re.search(r"^warning: .*\S", errors, re.M)
    if not bad and code == 0 and found != expected and not is_told:
        bad = "WRONG"
    text = f"exit code {code}: {errors.strip()}"
    return bad or ("same" if code == 0 and found == expected else "error, then same"), text, page


def judge_search(folder, point, number, expected):
    code, _, errors, data = folder.begin(point.command, point=point)
    page = Page(data) if data else None
    if page and not page.n_failed:
        return "not reached", "", page
    bad = judge_end(point, code, errors)
    text = f"exit code {code}: {errors.strip()}"
    if not bad and code != 0 and point.kind == "device" and point.count != FOREVER:
        bad = "WRONG"  # a device that is available again must not end a search
    if bad:
        return bad, text, page
    if code == 0:
        if folder.outcome() != expected:
            return "WRONG", f"other results, {text}", page
        return ("restarted, same" if "is restarted" in errors else "same"), "", page
    before = folder.lines()
    code, _, again, _ = folder.resume() if number % 2 and before else folder.search()
    text += f" [then {code}: {again.strip()}]"
    if code != 0 or folder.lines()[:len(before)] != before:
        return "LOST", text, page
    return ("error, then same" if folder.outcome() == expected else "WRONG"), text, page


def place(mscgym, page):
    """The functions in which the failed call was made."""
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


class Bench:
    """The results of undisturbed runs, and folders for disturbed runs."""

    def __init__(self, mscgym, top, commands, options):
        self.mscgym, self.top, self.options = mscgym, top, options
        self.own, self.expected, self.pages = threading.local(), {}, {}
        self.undisturbed = folder = Folder(mscgym, os.path.join(top, "undisturbed"), options)
        for command in [c for c in SEARCHES if c in commands or c == SEARCH]:
            code, _, errors, data = folder.begin(command, n_notes=NOTES)
            self.expected[command] = folder.outcome()
            if options.device in errors and "no device" in errors:
                print(f"skipped: {errors.strip()}")
                sys.exit(77)
            if code != 0 or not self.expected[command]:
                sys.exit(f"{command}, undisturbed, ended with {code}: {errors}")
            self.pages[command] = Page(data)
        if self.expected[SEARCH] != self.expected.get(RESUME, self.expected[SEARCH]):
            sys.exit("a search that was stopped and resumed came out differently")
        for command in commands:
            if command not in SEARCHES:
                code, self.expected[command], errors, data = folder.read(command, n_notes=NOTES)
                self.pages[command] = Page(data)
                if code != 0:
                    sys.exit(f"{command}, undisturbed, ended with {code}: {errors}")

    def folder(self, is_search):
        """The calling thread's folder. For commands that read, it has a finished search."""
        key = "searches" if is_search else "reads"
        if not hasattr(self.own, key):
            folder = Folder(self.mscgym, os.path.join(self.top, f"{threading.get_ident()}_{key}"),
                            self.options)
            if not is_search:
                shutil.copytree(self.undisturbed.workspace, folder.workspace)
            setattr(self.own, key, folder)
        return getattr(self.own, key)

    def judge(self, job):
        number, point = job
        expected = self.expected[point.command]
        if point.command in SEARCHES:
            return point, judge_search(self.folder(True), point, number, expected)
        return point, judge_reading(self.folder(False), point, expected)


def choose_points(bench, arguments, commands):
    rng = random.Random(arguments.seed)
    points = []
    for command in commands:
        points += list_points(command, bench.pages[command], arguments.all, rng)
    points = [p for p in points if arguments.only in (None, p.kind)]
    return choose(points, arguments.points) if 0 < arguments.points < len(points) else points


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("mscgym")
    parser.add_argument("--points", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", choices=WAYS)
    parser.add_argument("--of", choices=(*SEARCHES, *COMMANDS))
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--verbose", action="store_true")
    arguments = parser.parse_args()
    top = tempfile.mkdtemp(prefix="msc_faults_")
    table = collections.defaultdict(collections.Counter)
    mscgym = os.path.abspath(arguments.mscgym)
    commands = [arguments.of] if arguments.of else [*SEARCHES, *COMMANDS]
    try:
        bench = Bench(mscgym, top, commands, arguments)
        points = choose_points(bench, arguments, commands)
        print(f"{sum(sum(bench.pages[c].calls.values()) for c in commands)} calls, "
              f"{len(points)} points", flush=True)
        with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
            for point, (result, text, page) in pool.map(bench.judge, enumerate(points)):
                table[way_name(point)][result] += 1
                if result in BAD or arguments.verbose:
                    print(f"{result}: {point.command}, MSC_FAULT=\"{fault(point)}\": {text}\n"
                          f"    at {place(mscgym, page)}", flush=True)
    finally:
        shutil.rmtree(top, ignore_errors=True)
    print_table(table)
    n_bad = sum(counts[result] for counts in table.values() for result in BAD)
    n_reached = sum(sum(c.values()) - c["not reached"] for c in table.values())
    print(f"{n_reached} points, {n_bad} went wrong")
    return 1 if n_bad or not n_reached else 0


if __name__ == "__main__":
    sys.exit(main())
