#!/usr/bin/env python3
"""The cost of preparing choices that replace weights, and the speed of trials over them.

    prepare.py MSCGYM [NETWORK...] [--samples 64] [--trials 128] [--rounds 5] [--json FILE]

Preparation is what a search does before its first trial. The choices are second-moment ranges,
coordinate descent and affine fit at 8, 6 and 4 bits (target generic, only inputs of joints,
--memory 1G). The cost is the processor time until RECORD.params exists, in float passes over the
samples (`mscgym run` on one thread, repeated for each sample). Other work of a search, such as
reading the model and checking the backend, is subtracted: it is the time of a plain preparation
(`minmax`) without its two passes. The table also has the most memory in use, in GB.

Then it measures trials per second of a random search over these choices and, alternately, over plain
ones, with 8 samples as in trials.py. --trials 0 leaves out the second part, --samples 0 the first.
"""
import argparse
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time

import numpy
import onnx

import common

MINMAX = {"weights": "minmax", "activations": "minmax"}
CHOICES = {"plain": [{"bits": bits} for bits in (8, 6, 4)],
           "replaced": [{"bits": bits, "rounding": "descent", "correct": "affine"}
                        for bits in (8, 6, 4)]}
MEMORY = ("--memory", "1G")
MOST_PASSES, LEAST_RATIO = 40, 0.9
N_OF_TRIALS = 8  # number of samples when trials are timed


def processor_seconds(pid):
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def most_bytes(pid):
    with open(f"/proc/{pid}/status") as file:
        return 1024 * next(int(line.split()[1]) for line in file if line.startswith("VmHWM"))


def worker_of(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        return int(file.read().split()[0])


def prepare(search):
    """Processor time and peak memory in bytes of the process that has just written RECORD.params."""
    found = None
    process = subprocess.Popen(search.command("--restart", *MEMORY), stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL, start_new_session=True)
    while process.poll() is None and found is None:
        time.sleep(0.01)
        if os.path.exists(search.record + ".params"):
            worker = worker_of(process.pid)
            found = processor_seconds(worker), most_bytes(worker)
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    os.remove(search.record + ".params")
    return found


def float_pass(mscgym, model, values, folder):
    """Processor time of the float model on all samples, one by one, on one thread."""
    numpy.save(os.path.join(folder, "one.npy"), values[:1])
    name = onnx.load(model).graph.input[0].name

    def run(repeat):
        before = os.times()
        subprocess.run([mscgym, "run", model, "--threads", "1", "--repeat", str(repeat), "--input",
                        f"{name}={folder}/one.npy", "--output", os.path.join(folder, "out")],
                       check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        after = os.times()
        return (after.children_user + after.children_system -
                before.children_user - before.children_system)
    n = len(values)
    return run(n) - run(0)


def make_searches(mscgym, name, values, trials, folder):
    """A search over plain choices, and one over choices that replace weights."""
    for label, choices in CHOICES.items():
        place = os.path.join(folder, f"{label} {len(values)}")
        os.makedirs(place)
        yield common.Search(mscgym, place, common.model_path(name), values, choices,
                            {"type": "random"}, trials=trials, observers=MINMAX)


def measure_preparing(mscgym, name, options, folder):
    """Float passes and peak memory in bytes, by round."""
    values = common.inputs(name, options.samples)
    plain, replaced = make_searches(mscgym, name, values, 1, folder)
    passes, held = [], []
    for _ in range(options.rounds):
        one = float_pass(mscgym, common.model_path(name), values, folder)
        (without, _), (all_of_it, n_bytes) = prepare(plain), prepare(replaced)
        passes.append((all_of_it - without) / one + 2)
        held.append(n_bytes)
    return passes, held


def measure_rates(mscgym, name, options, folder):
    """Trials per second over choices that replace weights and over plain ones, by round."""
    values = common.inputs(name, N_OF_TRIALS)
    plain, replaced = make_searches(mscgym, name, values, options.trials, folder)
    return [(replaced.run(*MEMORY).rate, plain.run(*MEMORY).rate) for _ in range(options.rounds)]


def spread(values):
    return f"{min(values):.3g} … {max(values):.3g}"


def tell_preparing(name, passes, held):
    n = statistics.median(passes)
    wrong = "" if n <= MOST_PASSES else f"  WRONG: more than {MOST_PASSES}"
    print(f"{name}: prepared in {n:.3g} float passes ({spread(passes)}), at most "
          f"{max(held) / 1e9:.3g} GB{wrong}", flush=True)
    return common.row("prepare", name, "1 / float passes", "", [(1 / p, None) for p in passes])


def tell_rates(name, rates):
    row = common.row("prepare", name, "trials/s", "plain choices", rates)
    wrong = "" if row["ratio"] >= LEAST_RATIO else f"  WRONG: less than {LEAST_RATIO}"
    ratios = [ours / theirs for ours, theirs in rates]
    print(f"{name}: {row['ours']:.3g} trials/s, {row['theirs']:.3g} over plain choices: "
          f"{row['ratio']:.3g} ({spread(ratios)}){wrong}", flush=True)
    return row


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("mscgym")
    parser.add_argument("networks", nargs="*", default=["mlsd-tiny", "ocr-rec"])
    parser.add_argument("--samples", type=int, default=64)
    parser.add_argument("--trials", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json")
    options = parser.parse_args()
    mscgym = os.path.abspath(options.mscgym)
    print(f"{common.version(mscgym)}, {common.machine()}")
    rows = []
    for name in options.networks:
        if not common.available(name):
            continue
        with tempfile.TemporaryDirectory() as folder:
            if options.samples > 0:
                rows.append(tell_preparing(name, *measure_preparing(mscgym, name, options, folder)))
                common.save_rows(options.json, rows)
            if options.trials > 0:
                rows.append(tell_rates(name, measure_rates(mscgym, name, options, folder)))
                common.save_rows(options.json, rows)


if __name__ == "__main__":
    main()
