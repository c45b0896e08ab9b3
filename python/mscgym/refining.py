"""`refine="torch"` of mscgym.quantize and mscgym.search: the plan that was found is trained without labels.

    wish = Wish("torch")                      # before the plan is searched for: torch must be there
    refined = refined_plan(wish, plan)        # a strategy file, an ONNX file, and their numbers; or None

mscgym.torch.refine trains; the program measures the plan before and after, and exports it.
"""
from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mscgym import process
from mscgym.errors import Error, Stopped
from mscgym.folders import Room
from mscgym.options import arguments, check_names
from mscgym.progress import Bar
from mscgym.results import Result
from mscgym.safetensors import read_safetensors, write_safetensors
from mscgym.samples import Samples, load_arrays

if TYPE_CHECKING:
    import numpy

    Arrays = dict[str, numpy.ndarray]

BATCH = 32            # samples of a training step, if the model leaves their number open
SHARE = 0.2           # of the samples, held back if the search held back none
MOST_CHECKED = 64     # samples on which the exported model is compared
LIMIT_S = 600.0
KEYS = ("method", "steps", "rate", "scale_rate", "drop", "time", "seed")
UNITS = {"s": 1, "m": 60, "h": 3600}


def seconds(time: Any) -> float:
    """A limit of the time, as a number or a text such as "1h30m", in seconds."""
    if isinstance(time, (int, float)):
        return float(time)
    parts = re.findall(r"([\d.]+)([hms])", str(time))
    if not parts or "".join(number + unit for number, unit in parts) != str(time):
        raise ValueError(f"refine: time is a number of seconds or a text such as \"5m\", found {time!r}")
    return sum(float(number) * UNITS[unit] for number, unit in parts)


class Wish:
    """The argument `refine`: "torch", or a mapping with "method": "torch" and options of training.

    Raises:
        ValueError, TypeError: It has another form.
        Error: torch is not installed.
    """

    def __init__(self, refine: str | Mapping[str, Any]):
        given: dict[str, Any] = {"method": refine} if isinstance(refine, str) else dict(refine)
        check_names("refine", given, KEYS)
        if given.pop("method", "torch") != "torch":
            raise ValueError(f"refine: the only method is \"torch\", found {refine!r}")
        given["time_s"] = seconds(given.pop("time", LIMIT_S))
        try:
            from mscgym.torch.refine import Options
        except ImportError as error:
            raise Error(f"refine=\"torch\" needs torch ({error}): pip install torch") from error
        self.options = Options(**given)


@dataclass
class Plan:
    """A plan as the program wrote it.

    inputs: All samples: a path, or arrays by the names of the model's inputs.
    n_held: Number of the last samples that were held back when the plan was found.
    held: Held-back samples that are not among `inputs`, or None.
    labels, held_labels: Classes [samples] of both, or None.
    name: What the table calls held-back samples.
    best: The name of the plan's column in the table.
    output: ONNX file to write; `strategy_output`: strategy file to write.
    """
    result: Result
    model: str
    strategy: str
    inputs: str | Arrays
    n_held: int
    output: str
    strategy_output: str
    held: str | Arrays | None = None
    labels: Any = None
    held_labels: Any = None
    name: str = "held_back"
    options: Mapping[str, Any] = field(default_factory=dict)
    progress: bool | None = None


def arrays_of(samples: Samples) -> str | Arrays:
    """The samples as Plan takes them.

    Raises:
        ValueError: Samples have different shapes.
    """
    ragged = [name for name, axes in samples.open_axes().items() if axes]
    if ragged:
        raise ValueError(f"refine: samples of {ragged[0]} have different shapes, expected one shape; pad or cut them")
    return samples.path or samples.first(samples.n())


def _arrays(samples: str | Arrays) -> Arrays:
    if not isinstance(samples, str):
        return samples
    found = load_arrays(samples)
    return found if isinstance(found, dict) else {"": found}


class _Refinement:
    """The work on one plan, with the files in a folder."""

    def __init__(self, wish: Wish, plan: Plan, folder: str):
        self.wish, self.plan, self.folder = wish, plan, folder
        self.members = json.loads(Path(plan.strategy).read_text(encoding="utf-8"))
        self.common = {key: value for key, value in plan.options.items()
                       if key in ("device", "isa", "threads", "memory", "bind")}
        self.n_runs = 0
        self._split()

    def _split(self) -> None:
        """Divides the samples into those to train with and those that decide."""
        samples = _arrays(self.plan.inputs)
        n = max(len(array) for array in samples.values() if array.ndim)
        labels = self.plan.labels
        if self.plan.held is not None:
            n_fit, self.held = n, _arrays(self.plan.held)
            self.held_labels = self.plan.held_labels
        else:
            n_fit = n - (self.plan.n_held or max(1, int(SHARE * n)))
            self.held = _rows(samples, n_fit, n)
            self.held_labels = labels[n_fit:n] if labels is not None else None
        self.fit, self.fit_labels = _rows(samples, 0, n_fit), labels[:n_fit] if labels is not None else None

    def _file(self, name: str) -> str:
        return os.path.join(self.folder, name)

    def _call(self, *words: str, **options: Any) -> None:
        process.call([*words, *arguments({**self.common, **options}), "--quiet"], progress=False, as_json=False)

    def graph(self) -> str:
        """The graph that the edits are for."""
        model, path = self.plan.model, self._file("graph.json")
        if any(self.members.get(key) for key in ("prune", "replace", "multiply")):
            before = self._file("before.json")
            with open(before, "w", encoding="utf-8") as file:
                json.dump({**self.members, "edits": []}, file)
            model = self._file("pruned.onnx")
            self._call("export", "--model", self.plan.model, strategy=before, output=model)
        process.call(["graph", model, "-o", path, *arguments({"bind": self.common.get("bind")}), "--quiet"],
                     progress=False, as_json=False)
        return path

    def outputs(self, inputs: str, strategy: str | None) -> Arrays:
        return self._run(self.plan.model, inputs, strategy)

    def _run(self, model: str, inputs: str, strategy: str | None = None) -> Arrays:
        self.n_runs += 1  # arrays are mapped into memory, so each run has a file of its own
        path = self._file(f"outputs_{self.n_runs}.safetensors")
        self._call("run", model, inputs=inputs, strategy=strategy, output=path)
        return read_safetensors(path)

    def numbers(self, samples: Arrays, labels: Any, strategies: Sequence[str], before: str) -> list[dict[str, float]]:
        """The loss and, with labels, the accuracy of strategies, with names that begin with `before`."""
        path = self._file("measured.safetensors")
        write_safetensors(path, {name or "input": [array] for name, array in samples.items()})
        wanted, found = self.outputs(path, None), []
        for strategy in strategies:
            made = self.outputs(path, strategy)
            numbers = {before + "distill_loss": _loss(made, wanted)}
            scores = next(iter(made.values()))
            if labels is not None and scores.ndim == 2:
                numbers[before + "accuracy"] = float((scores.argmax(1) == labels).mean())
            found.append(numbers)
        return found

    def train(self) -> dict[str, Any]:
        """Writes the trained strategy, and returns the report."""
        import torch

        from mscgym.graph import Graph
        from mscgym.torch.refine import refine

        graph, bar = Graph.load(self.graph()), Bar(self.plan.progress)
        n_threads = torch.get_num_threads()
        torch.set_num_threads(int(self.common.get("threads") or n_threads))
        try:
            made = refine(graph, self.members, _chunks(graph, self.fit), _chunks(graph, self.held), self.wish.options,
                          lambda name, left_s: bar.show({"name": "refine", "measuring": name, "left_s": left_s}))
        finally:
            bar.close()
            torch.set_num_threads(n_threads)
        with open(self._file("refined.json"), "w", encoding="utf-8") as file:
            json.dump(made.strategy, file, indent=1)
        return made.report

    def check(self, model: str, strategy: str) -> None:
        """The exported file must compute what the program computes with the strategy."""
        path = self._file("checked.safetensors")
        write_safetensors(path, {name or "input": [array] for name, array in _rows(self.held, 0, MOST_CHECKED).items()})
        wanted = self.outputs(path, strategy)
        difference = _loss(self._run(model, path), wanted)
        if not difference <= 1e-4:
            raise Error(f"{model}: outputs of the refined model differ from those of its strategy by {difference:.2g} "
                        "of their squares")


def _rows(samples: Arrays, first: int, last: int) -> Arrays:
    return {name: array[first:last] if array.ndim else array for name, array in samples.items()}


def _loss(made: Arrays, wanted: Arrays) -> float:
    """The sum of squared differences over that of squares; the mean over the outputs of floats."""
    import numpy

    losses = []
    for name, array in wanted.items():
        if array.dtype.kind == "f":
            y, t = made[name].astype(numpy.float64), array.astype(numpy.float64)
            losses.append(float(numpy.square(y - t).sum() / max(1e-30, float(numpy.square(t).sum()))))
    return sum(losses) / max(1, len(losses))


def _chunks(graph: Any, samples: Arrays) -> list[list[Any]]:
    """The samples as tensors for one run each, in the order of the graph's inputs."""
    import numpy
    import torch

    tensors = {tensor.name: tensor for tensor in graph.tensors()}
    inputs = [tensors[name] for name in graph.inputs]
    arrays = []
    for tensor in inputs:
        key = next((key for key in (tensor.alias, tensor.name) if key in samples), None)
        if key is None and len(inputs) == 1 == len(samples):
            key = next(iter(samples))
        if key is None:
            raise Error(f"refine: the samples have no array for the input '{tensor.alias or tensor.name}'")
        arrays.append(numpy.ascontiguousarray(samples[key], dtype=tensor.dtype))
    fixed = [tensor.shape[0] for tensor in inputs if tensor.shape and tensor.shape[0] > 0]
    size = fixed[0] if fixed else BATCH
    n = max(len(array) for array in arrays if array.ndim) // (size if fixed else 1) * (size if fixed else 1)
    if n == 0:
        raise Error(f"refine: the model runs {size} samples together, and there are fewer")
    return [[torch.from_numpy(array[i:min(n, i + size)] if array.ndim else array) for array in arrays]
            for i in range(0, n, size)]


def refined_plan(wish: Wish, plan: Plan) -> bool:
    """Trains a plan. If its loss on the held-back samples falls, writes the new model and strategy, and adds their
    numbers to the table of `plan.result`, as the column "refined". True: it fell.

    Raises:
        Error: The samples cannot be read, or the model has a joint without an expression in torch.
        Stopped: Ctrl-C; the result is that of the plan before.
    """
    with Room() as folder:
        try:
            return _refine(_Refinement(wish, plan, folder))
        except Stopped:
            raise
        except KeyboardInterrupt as stop:
            raise Stopped("refine was stopped; the result is the plan before it", plan.result) from stop
        except ValueError as error:  # of a graph without an expression in torch
            raise Error(f"refine: {error}", result=plan.result) from error


def _refine(work: _Refinement) -> bool:
    plan = work.plan
    made = work._file("refined.json")
    report = work.train()
    strategies = [plan.strategy, made]
    before, after = work.numbers(work.held, work.held_labels, strategies, plan.name + ".")
    key = plan.name + ".distill_loss"
    is_better = after[key] < before[key]
    report = {"method": "torch", "held_back": max(len(a) for a in work.held.values() if a.ndim), "kept": is_better,
              **report, "loss_before": before[key], "loss_after": after[key]}
    if is_better:
        model = work._file("refined.onnx")
        work._call("export", "--model", plan.model, strategy=made, output=model)
        work.check(model, made)
        for own, numbers in zip(work.numbers(work.fit, work.fit_labels, strategies, ""), (before, after)):
            numbers.update(own)
        work._call("export", "--model", plan.model, strategy=made, output=plan.output)
        shutil.copyfile(made, plan.strategy_output)
        after["file_bytes"] = float(os.path.getsize(plan.output))
    plan.result.add_refined(report, before, after, plan.output, plan.strategy_output)
    return is_better
