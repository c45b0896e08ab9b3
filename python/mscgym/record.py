"""Reading records of searches (docs/record.md)."""
from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import inf, nan
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy
    import pandas


class RecordError(Exception):
    """The file is no record, or damaged before its end."""


@dataclass(frozen=True)
class Trial:
    id: int
    choices: tuple[int, ...]
    state: str                     # "complete", "infeasible", "pruned" or "failed"
    metrics: Mapping[str, float]   # what was measured, and the exact costs
    violation: float               # 0: within all bounds
    baseline: str | None           # label of the plan, if it is one
    line: Mapping[str, Any]        # all of it


class Record:
    """A record as it stands: header and trials. A search may go on writing meanwhile; a last line that is
    not whole yet is left out, as mscgym does.

        record = mscgym.Record("msc_workspace/digits.jsonl")
        record.best().metrics["distill_loss"]
    """

    def __init__(self, path: str | os.PathLike[str]):
        self.path = os.fspath(path)
        with open(self.path, "rb") as file:
            lines = file.read().split(b"\n")
        self.has_torn_end = bool(lines.pop())  # what is behind the last newline
        parsed = list(self._parse(lines))
        if not parsed or parsed[0].get("kind") != "header":
            raise RecordError(f"{self.path}: it does not begin with the header of a record")
        self.header: Mapping[str, Any] = parsed[0]
        self.trials = [self._trial(line) for line in parsed[1:] if line["kind"] == "trial"]

    def _parse(self, lines: list[bytes]) -> Iterator[dict[str, Any]]:
        for number, line in enumerate(lines, 1):
            try:
                parsed = json.loads(line.decode("utf-8", "replace"))  # reasons were cut anywhere once
                parsed["kind"]
            except (ValueError, KeyError, TypeError):
                if number == len(lines) and number > 1:  # written, but not whole
                    self.has_torn_end = True
                    return
                raise RecordError(f"{self.path}:{number}: it is damaged; mscgym salvage can take out what is "
                                  "before it") from None
            yield parsed

    @staticmethod
    def _trial(line: Mapping[str, Any]) -> Trial:
        return Trial(line["id"], tuple(line["choices"]), line["state"], line["metrics"], line["violation"],
                     line.get("baseline"), line)

    def __len__(self) -> int:
        return len(self.trials)

    @property
    def tasks(self) -> list[str]:
        return [task["name"] for task in self.header["space"]["tasks"]]

    @property
    def metrics(self) -> list[str]:
        return [metric["name"] for metric in self.header["space"]["metrics"]]

    def labels(self, trial: Trial) -> dict[str, str]:
        """What a trial chooses, by task."""
        return {task["name"]: task["choices"][choice]
                for task, choice in zip(self.header["space"]["tasks"], trial.choices, strict=True)}

    def objective(self, trial: Trial) -> float:
        """The first one; the smaller the better."""
        first = self.header["objectives"][0]
        value = trial.metrics.get(first["metric"])
        return inf if value is None else -value if first["maximise"] else value

    def best(self) -> Trial | None:
        """As mscgym has it: within the bounds, by the first objective, then the lower id."""
        complete = [trial for trial in self.trials if trial.state == "complete"]
        return min(complete, key=lambda trial: (self.objective(trial), trial.id), default=None)

    def to_numpy(self) -> dict[str, numpy.ndarray]:
        """Arrays with a row for each trial: "id", "choices" [trials, tasks], "state", "violation", and every
        metric by its name (nan: not measured)."""
        import numpy

        arrays = {
            "id": numpy.array([trial.id for trial in self.trials], dtype=numpy.int64),
            "choices": numpy.array([trial.choices for trial in self.trials], dtype=numpy.int64).reshape(
                len(self.trials), len(self.tasks)),
            "state": numpy.array([trial.state for trial in self.trials], dtype=object),
            "violation": numpy.array([trial.violation for trial in self.trials], dtype=numpy.float64),
        }
        for name in self.metrics:
            arrays[name] = numpy.array([trial.metrics.get(name, nan) for trial in self.trials],
                                       dtype=numpy.float64)
        return arrays

    def to_pandas(self) -> pandas.DataFrame:
        """A table indexed by the trials' ids: "state", "baseline", "violation", a column for each metric, and
        the label that each task has, under the task's name."""
        import pandas

        rows = [{"state": trial.state, "baseline": trial.baseline, "violation": trial.violation,
                 **{name: trial.metrics.get(name, nan) for name in self.metrics}, **self.labels(trial)}
                for trial in self.trials]
        return pandas.DataFrame(rows, index=pandas.Index([trial.id for trial in self.trials], name="id"))
