"""Searches as functions: search and prune.

    result = mscgym.search(module, loader, choices=[8, 4], bounds={"size_ratio": 0.2}, trials=200)
    result.record      # the trials; the same call continues the search

They write a configuration and the files that it names to the workspace, and run `mscgym search`. An agent or a
metric of this process is reached through mscgym.serving.
"""
from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Unpack

from mscgym import process, results, serving
from mscgym.agent import Agent
from mscgym.errors import Error, Stopped
from mscgym.folders import made
from mscgym.models import Source
from mscgym.options import AnyPath, SearchOptions, arguments, check_names, keywords
from mscgym.refining import Plan, Wish, arrays_of, refined_plan
from mscgym.results import Searched
from mscgym.safetensors import read_safetensors
from mscgym.samples import Data, Samples, collect

MAXIMISED = ("accuracy",)  # metrics of the program for which a bound is a minimum
DROPS = ("_drop_ratio", "_drop")  # ends of the names of bounds relative to the float model
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
    if agent is not None and not isinstance(agent, (str, Mapping)):
        found = f"the class {agent.__name__}: call it" if isinstance(agent, type) else type(agent).__name__
        raise TypeError("search(): agent: expected the name of an agent, an object of a configuration or an instance of "
                        f"a subclass of mscgym.Agent, found {found}")
    return {"type": agent} if isinstance(agent, str) else agent


def _measure(metric: Callable[..., float], samples: Samples) -> Callable[[str], float]:
    """Calls the user's metric for the outputs in a file."""
    labels = samples.joined_labels()

    def measure(path: str) -> float:
        arrays = read_safetensors(path)
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
           equalize: bool | Mapping[str, Any] | None = None,
           runtime: bool | Mapping[str, Any] | None = None, refine: str | Mapping[str, Any] | None = None,
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
        seed: Seed of the agent.
        parallel: Trials of a round; default 8 with a race, else 32.
        race: Whether trials that cannot become the best end early; or {rungs, keep, margin}.
        rerank: Measures the best trials in their runtime: {top, command}.
        distill: True: improves the winner's weights at the end; or {ridge, held_back}.
        equalize: True: rescales channels before the search, for 4 bits; or {weights, activations, multiply}.
        runtime: Measurement of the winner in its runtime: {name, threads, rounds}, or False for none.
        refine: As in `quantize`, for the winner; writes refined.onnx and refined.json to the workspace.
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
    check_names("search", options, keywords(search, SearchOptions))
    if config is not None:
        if model is not None or data is not None:
            raise TypeError("search() takes either a model and data, or config")
        if refine is not None:
            raise TypeError("search(): refine needs a model and data, not config")
        limits = {"trials": trials, "time": f"{time}s" if isinstance(time, (int, float)) else time}
        return _run_search(os.fspath(config), {**limits, **options}, progress, None, None)
    wish = Wish(refine) if refine is not None else None
    if wish and section == "prune":
        raise TypeError("search(): refine trains quantised weights, which the section prune does not have")
    source = Source(model)
    signature = source.signature() if source.is_module else source.signature
    collected = collect(data, signature, samples, labels)
    goal = _Goal(metric, maximise)
    keys = {**(env or {}), "choices": [_choice(choice) for choice in choices] if choices else None,
            "objectives": goal.objectives(objectives, bounds or {}),
            "bounds": goal.bounds(bounds) if bounds else None}
    if metric:
        keys["command"] = {"argv": serving.command("metric", "{outputs}"), "maximise": maximise, "lasting": True}
    folder = made(workspace)
    dataset: dict[str, Any] = {"batch": batch}
    path = os.path.abspath(source.save(folder, collected))
    names = list(collected.inputs)
    dataset.update(_saved(collected, folder, ""))
    held_back = None
    if isinstance(validation, (int, float)):
        dataset["validation"] = validation or None
    elif validation is not None:
        held_back = collect(validation, signature)
        held_back.rename(dict(zip(list(held_back.inputs), names)))
        dataset["validation"] = _saved(held_back, folder, "validation_")
    entry = {"env": _given(keys), "agent": _agent(agent), "seed": seed, "parallel": parallel, "race": race,
             "rerank": rerank, "distill": distill, "equalize": equalize,
             "budget": _given({"trials": trials, "time": time}) or None}
    configuration = {"workspace": ".", "model": path, "dataset": _given(dataset),
                     section: _given({"target": target, "runtime": runtime, "gym": [_given(entry)]}),
                     "export": {"model": "compressed.onnx"}}
    written = os.path.join(folder, "search.json")
    with open(written, "w", encoding="utf-8") as file:
        json.dump(configuration, file, indent=2)
    measure = _measure(metric, collected) if metric else None
    server = serving.Server(agent if isinstance(agent, Agent) else None, measure) \
        if measure or isinstance(agent, Agent) else None
    result = _run_search(written, options, progress, server, goal.name)
    if wish and result.strategy:
        n_held = int(result.metrics.get("validation.samples", 0))
        name = "validation" if n_held else "held_back"
        refined_plan(wish, Plan(result, path, os.fspath(result.strategy), arrays_of(collected), n_held,
                                os.path.join(folder, "refined.onnx"), os.path.join(folder, "refined.json"),
                                arrays_of(held_back) if held_back else None, collected.classes(),
                                held_back.classes() if held_back else None, name, options, progress))
    return result


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
        model: As in `quantize`.
        data: As in `quantize`.
        density: Share of the channels of each group that remain.
        sparsity: Share of the elements of each weight that become 0.
        pattern: "2:4": two of each four neighbours remain.
        criterion: What is removed first: "hessian" (default), "energy", "l1", "l2" or "loss".
        choices: As in `search`.
        **options: All other arguments of `search`, except section.

    Raises:
        Error: As `search`.
        TypeError: As `search`.
        Stopped: As `search`.
    """
    known = {*keywords(search, SearchOptions), *keywords(prune, SearchOptions)} - {"section", "refine"}
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
