"""Shared parts of the programs that measure exported models in a runtime."""
import json
import os
import statistics
import subprocess
import time

import numpy

import common  # noqa: F401: where model_inputs is
from model_inputs import feeds


def samples_of(model, n):
    """The first n samples, an array for each input. They come from the file stored with the model, or
    from tests/long/model_inputs.py for models of scripts/fetch-models.
    """
    stem = os.path.splitext(model)[0]
    if os.path.exists(stem + ".inputs.npz"):
        with numpy.load(stem + ".inputs.npz") as file:
            return {name: file[name][:n] for name in file}
    return feeds(os.path.basename(stem), n)


UNIFORM = {"env": {"choices": [{"bits": 8}]}, "agent": {"type": "random"}, "budget": {"trials": 1}}


def noise_of(mscgym, record, folder):
    """The noise of the plan that a search delivered."""
    out = subprocess.run([mscgym, "export", record, "-o", os.path.join(folder, "delivered.onnx"),
                          "--json", "--quiet"], check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(out.stdout).get("noise")


def search(mscgym, folder, model, samples, target, batch, entry):
    """Searches; returns the path of the exported model, its reported loss, and the noise of that loss."""
    os.makedirs(folder)
    inputs = os.path.join(folder, "inputs.npz")
    numpy.savez(inputs, **samples)
    config = {"workspace": os.path.join(folder, "workspace"), "model": os.path.abspath(model),
              "verbose": "error", "dataset": {"inputs": inputs, "batch": batch},
              "quantize": {"target": target, "gym": [entry]}}
    path = os.path.join(folder, "search.json")
    with open(path, "w") as file:
        json.dump(config, file)
    out = subprocess.run([mscgym, "search", path, "--json"], check=True, stdout=subprocess.PIPE,
                         text=True)
    result = json.loads(out.stdout)
    result = result[0] if isinstance(result, list) else result
    winner = result["winner"]
    noise = winner.get("examined", {}).get("noise")
    if "reranked" in result:  # the first reranked plan is the delivered one
        winner = result["reranked"]["plans"][0]
        noise = noise_of(mscgym, result["record"], folder)
    name = os.path.splitext(os.path.basename(model))[0]
    return (os.path.join(folder, "workspace", name + ".onnx"), winner["metrics"]["distill_loss"],
            noise or 0)


def float_model(mscgym, model, folder):
    """The float model as mscgym exports it, with the same tensor names as in its searches."""
    path = os.path.join(folder, "float.onnx")
    subprocess.run([mscgym, "export", "--model", model, "-o", path, "--quiet"], check=True,
                   stdout=subprocess.DEVNULL)
    return path


def tell_loss(name, what, said, delivered, noise):
    """Prints the reported and the measured loss, and WRONG if they differ too much."""
    off = delivered / said - 1 if said else float(delivered > 1e-12)
    print(f"{name}: {what}: loss said {said:.5g}, in the runtime {delivered:.5g} "
          f"({100 * off:+.1f} %, noise {100 * noise:.1f} %)"
          f"{'' if abs(off) <= max(0.02, 3 * noise) else ' WRONG'}", flush=True)


CLOCKS = {"wall": time.perf_counter, "process": time.process_time}


def fastest(run, clock, seconds=0.05, least=3):
    """The shortest run within this many seconds, out of at least `least` runs."""
    times, until = [], time.perf_counter() + seconds
    while len(times) < least or time.perf_counter() < until:
        begin = clock()
        run()
        times.append(clock() - begin)
    return min(times)


def latency(runs, rounds, clock="wall"):
    """Seconds of each run, [round][run]; each round makes all runs in turn. The clock "process" counts
    only processor time of this process, for machines that others use.
    """
    for run in runs:
        run()
    return [[fastest(run, CLOCKS[clock]) for run in runs] for _ in range(rounds)]


def ratios(rounds, one, other):
    """Ratios of the seconds of two runs, by round."""
    return [times[one] / times[other] for times in rounds]


def quartiles(values):
    low, middle, high = statistics.quantiles(values, n=4)
    return f"{middle:.3f} ({low:.3f} to {high:.3f})"
