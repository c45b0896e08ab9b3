"""The program's commands as functions: quantize, search, prune, run, bench and report.

    import mscgym
    result = mscgym.quantize(module, loader)       # of torch, or a path and an array
    result.save("small.onnx")
    print(result)

The functions write what the program reads, start the program, and read what it writes. They need numpy.
torch, onnx and tqdm are imported only if a model, a sample or a progress bar needs them.
"""
from __future__ import annotations

import inspect
import json
import os
import shutil
import tempfile
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Unpack

from mscgym import process, results, serving
from mscgym.agent import Agent
from mscgym.errors import Error, Stopped
from mscgym.models import Source
from mscgym.options import AnyPath, ModelOptions, SearchOptions, arguments, check_names
from mscgym.record import Record
from mscgym.results import Bench, Quantized, Report, Searched
from mscgym.samples import Data, Samples, collect, read_safetensors

SHARED_MEMORY = "/dev/shm"
MAXIMISED = ("accuracy",)  # metrics of the program for which a bound is a minimum
AnyNumber = float | str
DROPS = ("_drop_ratio", "_drop")  # ends of the names of bounds relative to the float model


class _Room(tempfile.TemporaryDirectory[str]):
    """A folder for files that only this call needs: in memory, if they take at most half of what is free."""

    def __init__(self, n_bytes: int = 0):
        try:
            is_roomy = 2 * n_bytes < shutil.disk_usage(SHARED_MEMORY).free and os.access(SHARED_MEMORY, os.W_OK)
        except OSError:
            is_roomy = False
        super().__init__(prefix="mscgym_", dir=SHARED_MEMORY if is_roomy else None)


class _Held:
    """A folder that exists as long as this object, or until Python ends."""

    def __init__(self) -> None:
        self.path = tempfile.mkdtemp(prefix="mscgym_")
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)


def quantize(model: Any, data: Data, *, output: AnyPath | None = None, labels: Any = None, samples: int | None = None,
             target: str | None = None, effort: str | None = None, sites: str | None = None, float: int | None = None,
             loss_tensors: str | Sequence[str] | None = None, outputs: str | Sequence[str] | None = None,
             exclude: str | Sequence[str] | None = None, batch: int | None = None, atol: AnyNumber | None = None,
             accuracy_drop: AnyNumber | None = None, workspace: AnyPath | None = None, progress: bool | None = None,
             **options: Unpack[ModelOptions]) -> Quantized:
    """Makes the best 8-bit model that needs no search: `mscgym quantize`.

        >>> result = quantize("digits.onnx", "calibration.npz", effort="fast")
        >>> result.table["uncompressed"]["file_bytes"], result.plan["weights"]
        (62750, '8 minmax bias')
        >>> _ = result.save("small.onnx")

    Args:
        model: A path (ONNX or MSCGraph JSON), an onnx.ModelProto, a torch.nn.Module, a torch.export.ExportedProgram,
            or a result. A module is exported by torch's dynamo exporter, in evaluation mode.
        data: A few hundred samples for calibration: an array [samples, ...]; a dict of such arrays by the names of
            the model's inputs; a path; a torch DataLoader or Dataset; a list or an iterator of batches; or a function
            that returns one of these. A batch is an array, a tuple of arrays or a dict, and may end with labels.
        output: ONNX file to write. Default: a temporary file, which exists as long as the result.
        labels: Classes [samples], to measure the accuracy. Default: those of the batches; False: none.
        samples: Use at most so many samples, the first ones. Default: all in memory, 512 of loaders and iterators.
        target: Runtime that will run the model; default "onnxruntime".
        effort: "fast", "default" or "best".
        sites: "all" or "inputs": which tensors are quantised.
        float: Most tensors that may stay float; 0: none. Default: a tenth.
        loss_tensors, outputs: Names of the tensors that the loss compares.
        exclude: Patterns of tensors that stay float.
        batch: Number of samples that run together. Default: from the model's shapes.
        atol: Largest difference between a backend and the reference kernels; default 0.001.
        accuracy_drop: Write only a plan whose accuracy is at most so much below the float model's, such as 0.01.
        workspace: Folder for the exported model and the samples, which are kept there. Default: a temporary one.
        progress: True or False: show a bar of tqdm, or none. Default: in notebooks and terminals, if tqdm is there.
        **options: device, isa, threads, memory, bind: see mscgym.options.ModelOptions.

    Raises:
        Error: The program refused the model, the samples or an option. If no plan keeps `accuracy_drop`, `result`
            has the plans.
        TypeError: An option or a form of data is unknown.
        Stopped: Ctrl-C stopped the program; nothing was written.
    """
    check_names("quantize", options, _keywords(quantize, ModelOptions))
    source = Source(model)
    collected = collect(data, source.signature() if source.is_module else source.signature, samples, labels)
    with _Room(collected.n_bytes()) as room:
        folder = _made(workspace) if workspace else room
        path = source.save(folder, collected)
        held = None if output or workspace else _Held()
        written = os.fspath(output) if output else os.path.join(held.path if held else folder, "quantized.onnx")
        words = arguments({"inputs": collected.save(folder), "output": written,
                           "labels": collected.save_labels(folder), "target": target, "effort": effort,
                           "sites": sites, "float": float, "loss_tensors": loss_tensors, "outputs": outputs,
                           "exclude": exclude, "batch": batch, "atol": atol, "accuracy_drop": accuracy_drop, **options})
        answer = process.call(["quantize", path, *words], progress=progress)
    result = results.quantized(answer.value, answer.lines, held)
    if answer.code != 0:
        error = process.failed(["quantize"], answer)
        error.result = result
        raise error
    return result


def _keywords(function: Callable[..., Any], options: type[Any]) -> list[str]:
    """All keyword arguments of a function with these further options."""
    return [*inspect.signature(function).parameters, *options.__annotations__]


def _made(folder: AnyPath) -> str:
    os.makedirs(folder, exist_ok=True)
    return os.path.abspath(folder)


# ---- Searches -----------------------------------------------------------------------------------------

Choice = int | float | str | Mapping[str, Any]
Bound = float | Mapping[str, Any]


def _choice(choice: Choice) -> Mapping[str, Any]:
    """A choice in the form of a configuration."""
    if isinstance(choice, Mapping):
        return choice
    if isinstance(choice, str):
        if choice == "float":
            return {"float": True}
        return {"pattern": choice} if ":" in choice else {"type": choice}
    return {"bits": choice} if choice >= 2 else {"density": choice}


class _Goal:
    """Objectives and bounds in the form of a configuration, where the user's metric is named `command`."""

    def __init__(self, metric: Callable[..., float] | None, maximise: bool):
        self.name = getattr(metric, "__name__", "metric") if metric else None
        self._is_maximised = maximise

    def _named(self, name: str) -> str:
        for end in ("", *DROPS):
            if self.name and name == self.name + end:
                return "command" + end
        return name

    def objectives(self, names: str | Sequence[str] | None, bounds: Mapping[str, Any]) -> list[str] | None:
        if names is None:
            return ["command"] if self.name and self.name not in bounds else None
        return [self._named(name) for name in ([names] if isinstance(names, str) else names)]

    def bounds(self, bounds: Mapping[str, Bound]) -> dict[str, Bound]:
        out: dict[str, Bound] = {}
        for name, bound in bounds.items():
            is_least = self._is_maximised if name == self.name else name in MAXIMISED
            if not isinstance(bound, Mapping) and not name.endswith(DROPS):
                bound = {"min" if is_least else "max": bound}
            out[self._named(name)] = bound
        return out


def _agent(agent: str | Mapping[str, Any] | Agent | None) -> Mapping[str, Any] | None:
    if isinstance(agent, Agent):
        return {"type": "process", "command": serving.command("agent")}
    return {"type": agent} if isinstance(agent, str) else agent


def _measure(metric: Callable[..., float], samples: Samples) -> Callable[[str], float]:
    """Calls the user's metric for the outputs in a file."""
    labels = samples.joined_labels()

    def measure(path: str) -> float:
        import numpy

        with numpy.load(path) as file:
            arrays = dict(file)
        outputs = next(iter(arrays.values())) if len(arrays) == 1 else arrays
        if labels is None:
            return float(metric(outputs))
        n = len(next(iter(arrays.values())))  # the last samples may be held back for validation
        return float(metric(outputs, labels[:n]))

    return measure


def search(model: Any = None, data: Data = None, *, choices: Sequence[Choice] | None = None,
           bounds: Mapping[str, Bound] | None = None, objectives: str | Sequence[str] | None = None,
           trials: int | None = None, time: str | float | None = None,
           agent: str | Mapping[str, Any] | Agent | None = None,
           metric: Callable[..., float] | None = None, maximise: bool = False,
           section: str = "quantize", target: str | None = None, env: Mapping[str, Any] | None = None,
           seed: int | None = None, parallel: int | None = None, race: bool | Mapping[str, Any] | None = None,
           rerank: Mapping[str, Any] | None = None, distill: bool | Mapping[str, Any] | None = None,
           runtime: bool | Mapping[str, Any] | None = None,
           labels: Any = None, samples: int | None = None, validation: Any = 0.2, batch: int | None = None,
           workspace: AnyPath = "msc_workspace", config: AnyPath | None = None, progress: bool | None = None,
           **options: Unpack[SearchOptions]) -> Searched:
    """Searches for the best plan within bounds, or continues a search: `mscgym search`.

        >>> result = search("digits.onnx", "calibration.npz", choices=[8, 4], bounds={"size_ratio": 0.2},
        ...                 trials=20, target="generic", batch=64, workspace="searched")
        >>> result.metrics["size_ratio"] <= 0.2, len(result.record)
        (True, 22)

    The workspace has all files, so that the same call continues a search that was stopped, and `mscgym resume`,
    `show` and `watch` work on its record. A search that has ended gives its result again.

    Args:
        model: As in `quantize`.
        data: As in `quantize`. To continue a search, they must be the same samples: do not shuffle a loader.
        choices: What a tensor can get: bits, "float", "float16", a density below 2, a pattern such as "2:4", or an
            object of a configuration, such as {"bits": 4, "rounding": "descent", "correct": "affine"}.
        bounds: Limits by metric: {"size_ratio": 0.2, "accuracy": {"min": 0.9}}. A number is the largest value or,
            for a metric that is maximised, the smallest. METRIC_drop limits how much worse than the float model's
            a metric may be: {"accuracy_drop": 0.01}.
        objectives: Metrics to improve; default "distill_loss" or, without a bound on it, `metric`.
        trials: Number of trials, without uniform plans.
        time: Time over all calls: seconds, or a text such as "8h".
        agent: Name of an agent, an object of a configuration, or an instance of a subclass of mscgym.Agent, whose
            methods are called in this process.
        metric: A function of the outputs for the calibration samples, which returns a number; it is called in this
            process for each trial. It gets an array [samples, ...], or a dict of arrays if there are several outputs,
            and the labels [samples, ...] if there are any. Objectives and bounds name it by its __name__; the record
            names it "command".
        maximise: Greater numbers of `metric` are better.
        section: "quantize", "prune" or "joint": what is searched for.
        target: Runtime that the model is for; default "onnxruntime".
        env: Further keys of `env` in a configuration, such as {"rules": [...]}.
        seed, parallel, race, rerank, distill: Keys of a search in a configuration.
        runtime: Measurement of the winner in its runtime: {threads, rounds}, or False for none.
        labels: Labels [samples, ...] for `metric` and, if they are classes, the accuracy. Default: those of batches.
        samples: Use at most so many samples, the first ones. Default: all in memory, 512 of loaders and iterators.
        validation: Share of the samples held back to measure the winner, or samples in any form of `data`; 0: none.
        batch: Number of samples computed together.
        workspace: Folder for all files.
        config: A configuration to run; of the arguments above, it takes only trials and time. The result is that
            of its last search.
        progress: As in `quantize`.
        **options: Options of the command: see mscgym.options.SearchOptions.

    Raises:
        Error: The program failed. If no trial meets every bound, `result` has the trials.
        TypeError: An option or a form of data is unknown.
        Stopped: Ctrl-C stopped the search in order; `result` has what it found so far.
    """
    check_names("search", options, _keywords(search, SearchOptions))
    if config is not None:
        if model is not None or data is not None:
            raise TypeError("search() takes either a model and data, or config")
        limits = {"trials": trials, "time": f"{time}s" if isinstance(time, (int, float)) else time}
        return _run_search(os.fspath(config), {**limits, **options}, progress, None, None)
    source = Source(model)
    signature = source.signature() if source.is_module else source.signature
    collected = collect(data, signature, samples, labels)
    goal = _Goal(metric, maximise)
    keys = {**(env or {}), "choices": [_choice(choice) for choice in choices] if choices else None,
            "objectives": goal.objectives(objectives, bounds or {}),
            "bounds": goal.bounds(bounds) if bounds else None}
    if metric:
        keys["command"] = {"argv": serving.command("metric", "{outputs}"), "maximise": maximise}
    folder = _made(workspace)
    dataset: dict[str, Any] = {"batch": batch}
    path = os.path.abspath(source.save(folder, collected))
    names = list(collected.inputs)
    dataset.update(_saved(collected, folder, ""))
    if isinstance(validation, (int, float)):
        dataset["validation"] = validation or None
    elif validation is not None:
        held_back = collect(validation, signature)
        held_back.rename(dict(zip(list(held_back.inputs), names)))
        dataset["validation"] = _saved(held_back, folder, "validation_")
    entry = {"env": _given(keys), "agent": _agent(agent), "seed": seed, "parallel": parallel, "race": race,
             "rerank": rerank, "distill": distill, "budget": _given({"trials": trials, "time": time}) or None}
    configuration = {"workspace": ".", "model": path, "dataset": _given(dataset),
                     section: _given({"target": target, "runtime": runtime, "gym": [_given(entry)]}),
                     "export": {"model": "compressed.onnx"}}
    written = os.path.join(folder, "search.json")
    with open(written, "w", encoding="utf-8") as file:
        json.dump(configuration, file, indent=2)
    measure = _measure(metric, collected) if metric else None
    server = serving.Server(agent if isinstance(agent, Agent) else None, measure) \
        if measure or isinstance(agent, Agent) else None
    return _run_search(written, options, progress, server, goal.name)


def _given(keys: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in keys.items() if value is not None}


def _saved(samples: Samples, folder: str, before: str) -> dict[str, str]:
    """Saves samples and labels; returns their keys in a configuration."""
    paths = {"inputs": samples.save(folder, before + "samples"),
             "labels": samples.save_labels(folder, before + "labels")}
    return {key: os.path.abspath(path) for key, path in paths.items() if path}


def _run_search(config: str, options: Mapping[str, Any], progress: bool | None, server: serving.Server | None,
                metric: str | None) -> Searched:
    try:
        words = ["search", config, *arguments(options)]
        answer = process.call(words, progress=progress, server=server)
    finally:
        if server:
            server.close()
    reports = [report for report in answer.value if "entry" in report]
    if not reports:
        raise Error(f"{config}: there is no search", answer.code, answer.lines)
    result = results.searched(reports[-1], answer.lines, metric)
    if answer.code == process.STOPPED:
        raise Stopped("the search was stopped; the same call continues it", result)
    if answer.code != 0:
        error = process.failed(words, answer)
        error.result = result
        raise error
    return result


def prune(model: Any, data: Data, *, density: float | None = None, sparsity: float | None = None,
          pattern: str | None = None, criterion: str | None = None, choices: Sequence[Choice] | None = None,
          **options: Any) -> Searched:
    """Removes channels or single weights, and fits the weights that read them: the section `prune`.

        >>> result = prune("digits.onnx", "calibration.npz", density=0.5, batch=64, workspace="pruned")
        >>> round(result.metrics["macs_ratio"], 2)
        0.26

    With density, sparsity or pattern, all groups or weights get the same: nothing is searched for. Otherwise it
    searches for the choice of each group, by default among densities from 0.8 to 0.2, within bounds such as
    bounds={"macs_ratio": 0.4}.

    Args:
        model, data: As in `quantize`.
        density: Share of the channels of each group that remain.
        sparsity: Share of the elements of each weight that become 0.
        pattern: "2:4": two of each four neighbours remain.
        criterion: What is removed first: "hessian" (default), "energy", "l1", "l2" or "loss".
        choices: As in `search`.
        **options: All other arguments of `search`, except section.

    Raises:
        As `search`.
    """
    known = {*_keywords(search, SearchOptions), *_keywords(prune, SearchOptions)} - {"section"}
    check_names("prune", options, known)
    one = _given({"density": density, "sparsity": sparsity, "pattern": pattern})
    if len(one) > 1 or (one and choices):
        raise TypeError("prune() takes only one of density, sparsity, pattern and choices")
    if one:
        choices = [one]
        options = {"trials": 1, **options}
    if criterion and choices is None:
        choices = [share / 10 for share in range(8, 1, -1)]
    if criterion and choices:
        choices = [{"criterion": criterion, **_choice(choice)} for choice in choices]
    return search(model, data, choices=choices, section="prune", **options)


# ---- Other commands -----------------------------------------------------------------------------------

def run(model: Any, data: Data, *, strategy: AnyPath | None = None, tensors: str | Sequence[str] | None = None,
        samples: int | None = None, state: Mapping[str, str] | None = None, progress: bool | None = None,
        **options: Unpack[ModelOptions]) -> dict[str, Any]:
    """Runs a network on all samples, and returns its outputs: `mscgym run`.

        >>> outputs = run("digits.onnx", "calibration.npz", samples=8)
        >>> {name: array.shape for name, array in outputs.items()}
        {'scores': (8, 10)}

    Args:
        model: As in `quantize`; also the record of a search, for its winner.
        data: As in `quantize`; labels of batches are dropped.
        strategy: Compress the model by this strategy file; the outputs equal those of the search bit for bit.
        tensors: Names or patterns of tensors to return in place of the outputs; "*": all.
        samples: As in `quantize`.
        state: Inputs that get an output of the previous sample: {"h": "hn"}.
        progress: As in `quantize`.
        **options: As in `quantize`.

    Returns:
        Arrays [samples, ...] by the names of the tensors.

    Raises:
        Error: The program refused the model, the samples or an option.
    """
    check_names("run", options, _keywords(run, ModelOptions))
    source = Source(model.path if isinstance(model, Record) else model)
    collected = collect(data, source.signature() if source.is_module else source.signature, samples, False)
    with _Room(2 * collected.n_bytes()) as room:
        path = source.save(room, collected)
        output = os.path.join(room, "outputs.safetensors")
        words = arguments({"inputs": collected.save(room), "output": output, "strategy": strategy, "tensor": tensors,
                           "state": [f"{i}={o}" for i, o in state.items()] if state else None, **options})
        process.call(["run", path, *words], progress=progress)
        return read_safetensors(output)


def bench(*models: Any, data: Data = None, runtime: str | None = None, batch: int | None = None,
          rounds: int | None = None, threads: int | None = None, bind: Mapping[str, int] | None = None,
          progress: bool | None = None) -> Bench:
    """Measures the latency of models side by side, in their runtime: `mscgym bench`.

        >>> measured = bench("digits.onnx", runtime="cpu", rounds=2)
        >>> sorted(measured.table["digits"])[-1]
        'us.upper'

    Args:
        *models: As in `quantize`. Ratios are relative to the first.
        data: Samples, as in `quantize`. Default: random numbers; modules of torch need samples.
        runtime: "onnxruntime" (default), "openvino", or "cpu" for the kernels of mscgym.
        batch: Number of samples that run together; default 1.
        rounds: Number of rounds, each of which runs all models; default 20.
        threads: Threads of a run; default: one per processor.
        bind: Open lengths of random inputs.
        progress: As in `quantize`.

    Raises:
        Error: The runtime is not installed, or it refused a model.
    """
    sources = [Source(model) for model in models]
    with _Room() as room:
        paths, names, collected = [], [], None
        for i, source in enumerate(sources):
            folder = _made(os.path.join(room, str(i)))
            if data is not None and (collected is None or source.is_module):
                collected = collect(data, source.signature() if source.is_module else source.signature, batch, False)
            paths.append(source.save(folder, collected))
            stem = os.path.splitext(os.path.basename(paths[-1]))[0]
            name = stem if source.path else type(source.model).__name__
            names.append(name if name not in names else f"{name} {i + 1}")
        words = arguments({"input": collected.save_npz(room) if collected else None, "runtime": runtime,
                           "batch": batch, "rounds": rounds, "threads": threads, "bind": bind})
        answer = process.call(["bench", *paths, *words], progress=progress)
    return Bench(answer.value, names)


def report(*records: AnyPath | Record | Searched, output: AnyPath | None = None) -> Report:
    """Writes records as one HTML page, which a notebook shows: `mscgym report`.

    Args:
        *records: Records of searches: paths, objects, or results of `search`.
        output: Page to write. Default: the name of the first record, ending in .html.

    Raises:
        Error: A record cannot be read.
    """
    paths = []
    for record in records:
        record = record.record if isinstance(record, Searched) and record.record else record
        paths.append(record.path if isinstance(record, Record) else os.fspath(record))
    page = os.fspath(output) if output else os.path.splitext(paths[0])[0] + ".html"
    process.call(["report", *paths, f"--output={page}"], progress=False, as_json=False)
    return Report(page)
