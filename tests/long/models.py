#!/usr/bin/env python3
"""Checks mscgym on models of the kinds that people export today; models_list.py has the list.

    models.py MSCGYM [--only PATTERN,…] [--folder DIR] [--again] [--csv FILE] [--table]

For each model:
- taken: `mscgym graph` reads it, or refuses it with the reason that the list expects.
- difference: outputs of `mscgym run` and of ONNX Runtime (or of the exporter, if they are stored with
  the model), relative to the greatest. The limit is 1e-4 for float32 models and 1e-2 for 16-bit
  floats, or what ONNX Runtime's optimiser changes if that is more. Models that are already quantised
  are compared node by node, within a rounding step (models_compare.py).
- quantised: `mscgym quantize` with default options gives a model. Its loss is at most that of
  quantize_static, and its time at most 1.02 times the least of the float model's and
  quantize_static's.

A loss is the mean squared difference of a float output to the float model's, relative to its mean
square, averaged over the outputs, on unseen samples. quantize_static has its default options (QDQ,
per tensor, minmax), after quant_pre_process, and the same samples. A time is the lower
quartile of the processor time of one sample in ONNX Runtime on one thread, measured in turns; a model
above the limit is measured again, with more rounds.

Models, samples and results are kept in --folder, and a later run continues there. --again repeats
the measurements of the chosen models, and --table only prints. Exits with 1 if a bar is missed, and
with 77 (skipped) if packages are missing.
"""
import argparse
import csv
import fnmatch
import json
import multiprocessing
import os
import resource
import subprocess
import sys
import tempfile
import time

try:
    import models_list
    import numpy
    from models_compare import compare_nodes, compare_outputs
    from models_times import part_of, rows, session
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

CHECKED = 4  # samples whose outputs are compared
UNSEEN = 16
LIMITS = {"float32": 1e-4, "quantised": 1e-4, "16 bits": 1e-2}
TIME_LIMIT = 1.02
SECONDS = 3600  # limit of one model
COLUMNS = ["model", "kind", "exporter", "type", "taken", "difference", "limit", "quantised", "quantize_cpu_s",
           "static_cpu_s", "loss", "static_loss", "float_us", "static_us", "us", "said"]


class Files:
    """The files of a model: the model itself, samples, and what the two quantisers make of it."""

    def __init__(self, folder, name):
        path = os.path.join(folder, name.replace("/", "-").replace(" ", "_"))
        self.model, self.samples, self.unseen = path + ".onnx", path + ".npz", path + ".unseen.npz"
        self.ours, self.static = path + ".ours.onnx", path + ".static.onnx"
        self.outputs = path + ".outputs.npz"

    def made(self):
        return all(map(os.path.exists, (self.model, self.samples, self.unseen)))


def make(entry, files):
    """Writes the model and its samples, the samples last."""
    n = entry.samples + UNSEEN
    feeds = entry.make(files.model, n)
    for path, first, end in ((files.unseen, entry.samples, n), (files.samples, 0, entry.samples)):
        numpy.savez(path, **{k: part_of(v, n, first, end) for k, v in feeds.items()})


def command(*arguments):
    environment = dict(os.environ, PATH=os.path.dirname(sys.executable) + ":" + os.environ["PATH"])
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    result = subprocess.run(arguments, capture_output=True, text=True, errors="replace", check=False,
                            env=environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    lines = (result.stderr.strip() or result.stdout.strip()).splitlines()
    said = " ".join(line.strip() for line in lines if not line.startswith("warning"))
    if result.returncode < 0:
        said = f"signal {-result.returncode} {said}"
    return result.returncode, said, seconds


def outputs(path, feeds, optimised=True):
    """Outputs of each sample by name."""
    runner = session(path, optimised)
    names = [output.name for output in runner.get_outputs()]
    return [dict(zip(names, runner.run(None, feed))) for feed in feeds]


def is_float(array):
    return isinstance(array, numpy.ndarray) and array.dtype.kind == "f"


def run_ours(mscgym, files, feed, more, bind=()):
    """Tensors of `mscgym run`, by name."""
    samples, found = files.outputs + ".feed.npz", files.outputs
    if os.path.exists(found):
        os.remove(found)
    arguments = []
    for name, value in feed.items():
        path = f"{samples}.{len(arguments)}.npy"
        numpy.save(path, value)
        arguments += ["--input", f"{name}={path}"]
    arguments += ["--repeat", "0"]
    if more:  # the options need samples
        numpy.savez(samples, **feed)
        arguments = ["--inputs", samples]
    code, said, _ = command(mscgym, "run", files.model, *arguments, *more, *bind, "--output", found, "--threads", "1",
                            "--quiet")
    if code:
        raise RuntimeError(f"run: {said}")
    return dict(numpy.load(found))


def check_outputs(mscgym, files, kind, bind=()):
    """The difference, and its limit: at least what ONNX Runtime's optimiser changes."""
    def run(feed, more):
        return run_ours(mscgym, files, feed, more, bind)
    if kind == "quantised":
        return compare_nodes(run, files.model, rows(files.unseen, 1)[0]), LIMITS[kind]
    feeds, expected = rows(files.unseen, CHECKED), files.model + ".expected.npz"
    wanted = rows(expected) if os.path.exists(expected) else outputs(files.model, feeds)
    found = compare_outputs(run, wanted, feeds)
    if found <= LIMITS[kind]:
        return found, LIMITS[kind]
    plain = iter(outputs(files.model, feeds, optimised=False))
    return found, max(LIMITS[kind], compare_outputs(lambda feed, more: next(plain), wanted, feeds))


def loss(truth, found):
    """Mean relative squared error of the float outputs; infinity if one is not finite."""
    losses = []
    for name in truth[0]:
        if not is_float(truth[0][name]) or any(t[name].shape != f[name].shape for t, f in zip(truth, found)):
            continue
        wanted = numpy.concatenate([t[name].ravel() for t in truth]).astype(float)
        mine = numpy.concatenate([f[name].ravel() for f in found]).astype(float)
        finite = numpy.isfinite(wanted)
        power = numpy.mean(wanted[finite] ** 2) if finite.any() else 0
        if power > 0:
            error = numpy.mean((mine[finite] - wanted[finite]) ** 2) / power
            losses.append(error if numpy.isfinite(error) else float("inf"))
    return float(numpy.mean(losses)) if losses else None


def quantize_static(files):
    """Makes the peer's model. Returns its processor time, or None with the reason."""
    from onnxruntime.quantization import CalibrationDataReader
    from onnxruntime.quantization import quantize_static as quantise
    from onnxruntime.quantization.shape_inference import quant_pre_process

    class Reader(CalibrationDataReader):
        def __init__(self):
            self.samples = iter(rows(files.samples))

        def get_next(self):
            return next(self.samples, None)

    try:
        try:
            quant_pre_process(files.model, files.static)
        except Exception:  # pylint: disable=broad-except
            quant_pre_process(files.model, files.static, skip_symbolic_shape=True)
        before = resource.getrusage(resource.RUSAGE_SELF)
        quantise(files.static, files.static, Reader())
        after = resource.getrusage(resource.RUSAGE_SELF)
    except Exception as problem:  # pylint: disable=broad-except
        if os.path.exists(files.static):
            os.remove(files.static)
        return None, f"static: {' '.join(str(problem).split())[:200]}"
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, ""


def times(paths, feed_of, rounds):
    """The time of each model in microseconds. A process of its own measures them (models_times.py)."""
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "models_times.py")
    made = subprocess.run([sys.executable, script, str(rounds), feed_of, *paths], check=True, stdout=subprocess.PIPE)
    return json.loads(made.stdout)


def measure_times(files, result):
    paths = {"float_us": files.model, "us": files.ours}
    if result.get("static_loss") is not None:
        paths["static_us"] = files.static
    for rounds in (15, 45, 99):
        result.update(zip(paths, times(list(paths.values()), files.unseen, rounds)))
        if is_fast(result):
            break


def is_fast(result):
    return result["us"] <= TIME_LIMIT * min(result["float_us"], result.get("static_us") or numpy.inf)


def is_accurate(result):
    return result.get("static_loss") is None or result["loss"] <= result["static_loss"] + 1e-12


def examine(mscgym, entry, files, result):
    """Fills in the result of one model."""
    if not files.made():
        make(entry, files)
    code, said, _ = command(mscgym, "graph", files.model, "--quiet", *entry.bind)
    result["taken"] = code == 0
    if code:
        result["said"] = said
        return
    result["difference"], result["limit"] = check_outputs(mscgym, files, entry.type, entry.bind)
    if not entry.quantise:
        return
    if os.path.exists(files.ours):
        os.remove(files.ours)
    code, said, result["quantize_cpu_s"] = command(
        mscgym, "quantize", files.model, "--inputs", files.samples, "-o", files.ours, "--quiet", "--threads", "1",
        *entry.bind)
    result["quantised"] = code == 0
    if code:
        result["said"] = f"quantize: {said}"
        return
    result["static_cpu_s"], result["said"] = quantize_static(files)
    feeds = rows(files.unseen)
    truth = outputs(files.model, feeds)
    result["loss"] = loss(truth, outputs(files.ours, feeds))
    if result["static_cpu_s"] is not None:
        try:
            result["static_loss"] = loss(truth, outputs(files.static, feeds))
        except Exception as problem:  # pylint: disable=broad-except
            result["static_cpu_s"], result["said"] = None, f"static: {str(problem)[:200]}"
    measure_times(files, result)


def examine_apart(mscgym, entry, files):
    """The result of one model, examined in a process of its own."""
    def work(pipe):
        result = {"model": entry.name, "kind": entry.kind, "exporter": entry.exporter, "type": entry.type}
        with tempfile.TemporaryDirectory(dir=os.path.dirname(files.model)) as folder:
            os.chdir(folder)  # the tools leave files there
            try:
                examine(mscgym, entry, files, result)
            except Exception as problem:  # pylint: disable=broad-except
                result["said"] = f"{type(problem).__name__}: {' '.join(str(problem).split())[:1000]}"
            os.chdir("/")
        if "said" in result:
            result["said"] = result["said"].replace(os.path.dirname(files.model) + os.sep, "")
        pipe.send(result)

    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()
    process = context.Process(target=work, args=(theirs,))
    process.start()
    theirs.close()
    result = {"model": entry.name, "kind": entry.kind, "exporter": entry.exporter, "type": entry.type}
    try:
        if ours.poll(SECONDS):
            result = ours.recv()
        else:
            result["said"] = f"not done after {SECONDS} s"
            process.terminate()
    except EOFError:
        result["said"] = "the process that examined it ended early"
    process.join()
    return result


def faults(entry, result):
    """What a result misses, as a list of words."""
    if not result.get("taken"):
        held = entry.refused and entry.refused in result.get("said", "")
        return [] if held else ["refused" if "taken" in result else "broken"]
    found = []
    if not result.get("difference", numpy.inf) <= result.get("limit", 0):
        found.append("outputs")
    if entry.quantise:
        if not result.get("quantised"):
            return found + ["quantize"]
        if result.get("us") is None:
            return found + ["onnxruntime"]
        found += [] if is_accurate(result) else ["loss"]
        found += [] if is_fast(result) else ["time"]
    return found


def show(entry, result):
    def number(key, form="{:.3g}"):
        return "" if result.get(key) is None else form.format(result[key])
    cells = [entry.name, number("difference", "{:.1e}"), number("loss"), number("static_loss"), number("float_us"),
             number("static_us"), number("us"), number("quantize_cpu_s"), number("static_cpu_s"),
             " ".join(faults(entry, result)), result.get("said", "")[:150]]
    print("| " + " | ".join(cells) + " |", flush=True)


def summary(chosen, results):
    """Prints the shares of the bars, and returns whether all are met."""
    pairs = [(e, results[e.name]) for e in chosen if e.name in results]
    taken = [r for _, r in pairs if r.get("taken")]
    equal = [r for r in taken if r.get("difference", numpy.inf) <= r.get("limit", 0)]
    wanted = [r for e, r in pairs if e.quantise and r.get("taken")]
    given = [r for r in wanted if r.get("us") is not None]
    accurate, fast = [r for r in given if is_accurate(r)], [r for r in given if is_fast(r)]
    held = [e for e, r in pairs if "refused" in faults(e, r) or "broken" in faults(e, r)]
    bars = [("taken", len(taken), len(pairs), 128 / 133), ("equal outputs", len(equal), len(taken), 1),
            ("give a model", len(given), len(wanted), 0.9),
            ("loss at most quantize_static's", len(accurate), len(given), 0.95),
            ("time at most 1.02 of the least", len(fast), len(given), 0.95)]
    for what, n, of, share in bars:
        print(f"{what}: {n} of {of}{'' if n >= share * of else ', MISSED'}")
    print(f"refused without the expected reason, or broken: {', '.join(e.name for e in held) or 'none'}")
    return not held and all(n >= share * of for _, n, of, share in bars)


def load_results(path):
    results = {}
    if os.path.exists(path):
        with open(path) as file:
            for line in file:
                result = json.loads(line)
                results[result["model"]] = result
    return results


def save_csv(path, chosen, results):
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, extrasaction="ignore")
        writer.writeheader()
        for entry in chosen:
            if entry.name in results:
                writer.writerow({k: f"{v:.4g}" if isinstance(v, float) else v
                                 for k, v in results[entry.name].items()})


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("mscgym")
    parser.add_argument("--only", default="*", help="names of models, with * and ?, separated by commas")
    parser.add_argument("--folder", default=os.path.join(tempfile.gettempdir(), "mscgym-models"))
    parser.add_argument("--again", action="store_true", help="repeat what was measured before")
    parser.add_argument("--faulty", action="store_true", help="repeat only what missed a bar before")
    parser.add_argument("--table", action="store_true", help="only print the results in the folder")
    parser.add_argument("--csv", help="write the results as a table")
    given = parser.parse_args()
    given.mscgym = os.path.abspath(given.mscgym)
    given.folder = os.path.abspath(given.folder)
    os.makedirs(given.folder, exist_ok=True)
    record = os.path.join(given.folder, "results.jsonl")
    results = load_results(record)
    entries = models_list.entries()
    chosen = [e for e in entries if any(fnmatch.fnmatch(e.name, p) for p in given.only.split(","))]
    print("| model | difference | loss | static | float us | static us | us | CPU s | static CPU s | misses | said |\n"
          "|---|---|---|---|---|---|---|---|---|---|---|")
    if not given.table and not all(Files(given.folder, e.name).made() for e in chosen):
        try:
            models_list.preload()
        except ImportError as error:
            print(f"skipped: {error}")
            sys.exit(77)
    for entry in chosen:
        results = load_results(record)  # others may add to it
        known = results.get(entry.name)
        repeat = given.again or (given.faulty and known and faults(entry, known))
        if (known is None or repeat) and not given.table:
            known = results[entry.name] = examine_apart(given.mscgym, entry, Files(given.folder, entry.name))
            with open(record, "a") as file:
                file.write(json.dumps(known) + "\n")
        if known:
            show(entry, known)
    if given.csv:
        save_csv(given.csv, entries, results)
    sys.exit(not summary(chosen, results))


if __name__ == "__main__":
    main()
