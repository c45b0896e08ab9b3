#!/usr/bin/env python3
"""How speed depends on threads, rounds, tasks, calibration images and memory.

    scaling.py MSCGYM [--json FILE] [--repeats 5] [--parts threads,rounds,tasks,calibration,memory]
               [--model resnet18] [--lengths 10,100,1000]

    threads, rounds   one greedy pass over the model's sites with 1 and 2 threads, in rounds of 1 … 64
    tasks             the same on chains of equal convolutions: reuse compared with counting, and whether
                      the cost of trials is proportional to the number of convolutions that they change
    calibration       digits with 8 … 256 images: images times trials per second
    memory            ocr-det at 640 x 640 with --memory 256M … 4G (from the least that --dry-run names):
                      peak of resident memory, speed
"""
import argparse
import math
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

import numpy

import common
import networks

PASS = {"type": "grid_search", "mode": "greedy", "changes": "all", "bounded": False}
FEW = [{"bits": b} for b in (8, 6, 4)]
PAIR = [{"bits": b} for b in (8, 6)]
CHAINS = {10: (64, 56), 100: (32, 28), 1000: (16, 14)}  # by length: (channels, size)
MEMORY = (256, 512, 1024, 2048, 4096)  # MB


class Part:
    def __init__(self, options, folder):
        self.options, self.folder, self.count, self.rows = options, folder, 0, []

    def new_folder(self):
        self.count += 1
        folder = os.path.join(self.folder, str(self.count))
        os.makedirs(folder)
        return folder

    def one_pass(self, name, images, choices=FEW, parallel=64, batch=None, trials=None):
        model = common.model_path(name)
        if trials is None:
            trials = 1 + common.n_sites(self.options.mscgym, model) * (len(choices) - 1)
        return common.Search(self.options.mscgym, self.new_folder(), model,
                             common.inputs(name, images), choices, PASS, trials, None, batch,
                             parallel)

    def compare(self, bench, name, runs, unit="trials/s"):
        """Runs each of {label: function that returns a rate} in turn; prints rates relative to the first."""
        rates = {label: [] for label in runs}
        for _ in range(self.options.repeats):
            for label, function in runs.items():
                rates[label].append(function())
        first = next(iter(runs))
        print(f"\n{bench}, {name}\n\n| | {unit} | beside {first} |\n|---|---|---|")
        for label in runs:
            row = common.row(bench, name, label, first, list(zip(rates[label], rates[first])))
            self.rows.append(row)
            print(f"| {label} | {row['ours']:.1f} | {row['ratio']:.2f} |", flush=True)

    # ---- Parts --------------------------------------------------------------------------------

    def threads(self):
        name = self.options.model
        search = self.one_pass(name, 8)
        self.compare("scaling threads", name, {
            f"{n} threads": lambda n=n: search.run("--threads", str(n)).rate for n in (1, 2)})

    def rounds(self):
        name = self.options.model
        searches = {n: self.one_pass(name, 8, parallel=n) for n in (1, 4, 16, 64)}
        self.compare("scaling rounds", name, {
            f"rounds of {n}": lambda s=s: s.run("--threads", "2").rate
            for n, s in searches.items()})

    def calibration(self):
        searches = {n: self.one_pass("digits", n, batch=8) for n in (8, 16, 32, 64, 128, 256)}
        self.compare("scaling calibration", "digits", {
            f"{n} images": lambda s=s, n=n: n * s.run("--threads", "2").rate
            for n, s in searches.items()}, "images times trials/s")

    def tasks(self):
        print("\nscaling tasks: chains of equal convolutions\n\n"
              "| convolutions | trials/s | reuse | counted | ratio | cost over suffix: fit | "
              "furthest |\n|---|---|---|---|---|---|---|")
        for length in self.options.lengths:
            self.chain(length)

    def chain(self, length):
        channels, size = CHAINS[length]
        folder = self.new_folder()
        model = os.path.join(folder, "chain.onnx")
        shape = networks.chain(model, length, channels, size)
        values = numpy.random.RandomState(3).uniform(0, 1, (4, *shape)).astype(numpy.float32)
        # Ten rounds, each of which changes neighbouring convolutions.
        search = common.Search(self.options.mscgym, folder, model, values, PAIR, PASS,
                               1 + 2 * length, None, None, max(2, length // 5))
        runs = [search.run("--threads", "2", "--memory", "4G")
                for _ in range(self.options.repeats)]
        # Task 2 i is the activation that convolution i reads, task 2 i + 1 its weight. Both change
        # the convolutions from i on, which all have the same size.
        suffixes = [length - next(t for t, c in enumerate(trial["choices"]) if c) // 2
                    for trial in runs[0].evaluated]
        counted = 1 - statistics.mean(suffixes) / length
        reuse = runs[0].reuse
        fit, furthest = self.straight(runs, suffixes)
        rate = statistics.median(r.rate for r in runs)
        print(f"| {length} | {rate:.1f} | {reuse:.4f} | {counted:.4f} | {reuse / counted:.4f} | "
              f"{fit:.4f} | {100 * furthest:.0f} % |", flush=True)
        name = f"chain of {length}"
        self.rows += [common.row("scaling tasks", name, "greedy", "", [(rate, None)]),
                      common.row("scaling reuse", name, "greedy", "counting", [(reuse, counted)]),
                      common.row("scaling linear", name, "greedy", "straight line", [(fit, 1.0)])]

    @staticmethod
    def straight(runs, suffixes):
        """Fits seconds of rounds by a line through zero over the number of changed convolutions.
        Returns R², and how far the furthest round is from the mean cost.
        """
        work, ends = [], []
        for k, trial in enumerate(runs[0].evaluated):
            stamp = trial["measured"]["elapsed_s"]
            if ends and stamp == runs[0].evaluated[k - 1]["measured"]["elapsed_s"]:
                work[-1] += suffixes[k]
                ends[-1] = k
            else:
                work.append(suffixes[k])
                ends.append(k)
        seconds = []
        for run in runs:
            stamps = [run.evaluated[k]["measured"]["elapsed_s"] for k in ends]
            start = run.evaluated[-1]["measured"]["elapsed_s"] - run.seconds
            seconds.append(numpy.diff([start] + stamps))
        x, y = numpy.array(work, float), numpy.median(seconds, 0)
        slope, offset = numpy.polyfit(x, y, 1)
        rest = y - (slope * x + offset)
        fit = 1 - float((rest**2).sum() / max(((y - y.mean())**2).sum(), 1e-12))
        return fit, float(abs(rest).max() / y.mean())

    def memory(self):
        name = "ocr-det"
        if not common.available(name):
            return
        search = self.one_pass(name, 8, trials=self.options.memory_trials)
        least = self.least_memory(search)
        print(f"\nscaling memory, {name} at 640 x 640, 8 images; the least named is {least} MB\n\n"
              "| --memory | trials/s | range | failed | peak resident | of --memory |\n"
              "|---|---|---|---|---|---|")
        for size in sorted({max(s, least) for s in self.options.sizes}):
            self.one_size(search, name, size)

    def one_size(self, search, name, size):
        """Measures speed and peak memory with --memory of this many MiB."""
        rates, peaks, failed = [], [], 0
        for _ in range(self.options.repeats):
            resident, code, text = peak(search.command("--restart", "--threads", "2",
                                                       "--memory", f"{size}M"))
            if code != 0:
                print(f"| {size}M | refused: {text} |", flush=True)
                return
            run = common.Run(search.record)
            rates.append(run.rate)
            peaks.append(resident)
            failed += sum(t["state"] == "failed" for t in run.trials)
        limit = size * 2**20
        print(f"| {size}M | {statistics.median(rates):.2f} | {min(rates):.2f} … {max(rates):.2f} | "
              f"{failed} | {statistics.median(peaks) / 1e6:.0f} MB | "
              f"{100 * statistics.median(peaks) / limit:.1f} % |", flush=True)
        self.rows += [
            common.row("scaling memory", name, f"--memory {size}M", "", [(r, None) for r in rates]),
            common.row("scaling memory obeyed", name, f"--memory {size}M", "limit in bytes, peak",
                       [(limit, p) for p in peaks])]

    @staticmethod
    def least_memory(search):
        """The least MiB that --dry-run names, or 0 if it names none."""
        text = subprocess.run(search.command("--dry-run"), capture_output=True, text=True)
        found = re.search(r"at least (\d+) MB", text.stdout + text.stderr)
        return math.ceil(int(found.group(1)) * 1e6 / 2**20) if found else 0


def processes(pid):
    """A process and its descendants."""
    try:
        with open(f"/proc/{pid}/task/{pid}/children") as file:
            children = file.read().split()
    except OSError:
        children = []
    return [pid] + [p for child in children for p in processes(int(child))]


def high_water(pid):
    """Peak of a process's resident bytes since its program started."""
    try:
        with open(f"/proc/{pid}/status") as file:
            found = re.search(r"VmHWM:\s*(\d+) kB", file.read())
    except OSError:
        found = None
    return int(found.group(1)) * 1024 if found else 0


def peak(command):
    """Peak of resident bytes of a program's largest process, its exit code and its last line."""
    most = 0
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=errors)
        while process.poll() is None:
            most = max([most] + [high_water(p) for p in processes(process.pid)])
            time.sleep(0.005)
        errors.seek(0)
        lines = errors.read().strip().splitlines()
    return most, process.returncode, lines[-1] if lines else ""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("mscgym", type=os.path.abspath)
    parser.add_argument("--json")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--parts", default="threads,rounds,tasks,calibration,memory")
    parser.add_argument("--model", default="resnet18")
    parser.add_argument("--lengths", default="10,100,1000",
                        type=lambda text: [int(n) for n in text.split(",")])
    parser.add_argument("--sizes", default=",".join(map(str, MEMORY)),
                        type=lambda text: [int(n) for n in text.split(",")])
    parser.add_argument("--memory-trials", type=int, default=40)
    options = parser.parse_args()
    print(f"{common.machine()}; two processes do {common.second_core():.2f} times the work of one")
    print(common.version(options.mscgym), flush=True)
    rows = []
    for name in options.parts.split(","):
        if name not in ("threads", "rounds", "tasks", "calibration", "memory"):
            sys.exit(f"scaling.py: unknown part {name}")
        with tempfile.TemporaryDirectory(prefix="bench_scaling_") as folder:
            part = Part(options, folder)
            getattr(part, name)()
            rows += part.rows
            common.save_rows(options.json, rows)


if __name__ == "__main__":
    main()
