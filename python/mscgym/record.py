"""Reading records of searches (docs/record.md)."""
from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import inf, nan
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy
    import pandas


class RecordError(Exception):
    """The file is not a record, or is damaged before its end."""


def _parse(line: bytes) -> dict[str, Any]:
    parsed: dict[str, Any] = json.loads(line.decode("utf-8", "replace"))  # a forged record may hold other bytes
    return parsed


def _number(value: float | str) -> float:
    """JSON has no infinities, so they are stored as strings."""
    return float(value) if isinstance(value, str) else value


@dataclass(frozen=True, slots=True)
class Trial:
    id: int
    choices: tuple[int, ...]
    state: str                     # "complete", "infeasible", "pruned" or "failed"
    metrics: Mapping[str, float]   # measured metrics and exact costs
    violation: float               # 0: within all bounds
    baseline: str | None           # label of the plan, if it is one
    text: bytes = field(repr=False)  # the line in the file

    @property
    def line(self) -> Mapping[str, Any]:
        """All members of the line, parsed on each call."""
        return _parse(self.text)


def _trial(line: Mapping[str, Any], text: bytes) -> Trial:
    baseline = line.get("baseline")
    return Trial(line["id"], tuple(line["choices"]), sys.intern(line["state"]),
                 {sys.intern(name): _number(value) for name, value in line["metrics"].items()},
                 _number(line["violation"]), None if baseline is None else sys.intern(baseline), text)


class Record:
    """A record as it is now: header and trials. A search may still be writing it; incomplete lines at
    the end are left out, as mscgym does.

        record = mscgym.Record("msc_workspace/digits.jsonl")
        record.best().metrics["distill_loss"]
    """

    def __init__(self, path: str | os.PathLike[str]):
        self.path = os.fspath(path)
        self.has_torn_end = False
        self.header: Mapping[str, Any] = {}
        self.trials: list[Trial] = []
        with open(self.path, "rb") as file:
            self._read(file)

    def _read(self, lines: Iterable[bytes]) -> None:
        first_damaged = n_lines = n_good = 0
        for n_lines, line in enumerate(lines, 1):
            if not line.endswith(b"\n"):
                self.has_torn_end = True
                n_lines -= 1
                break
            is_good = self._take(n_lines, line)
            if is_good and first_damaged:
                raise self._damaged(first_damaged)
            n_good += is_good
            first_damaged = first_damaged or (0 if is_good else n_lines)
        if not self.header:
            raise RecordError(f"{self.path}: it does not begin with the header of a record")
        # An interrupted write may have left part of its lines.
        if first_damaged and (n_good < 2 or n_lines - first_damaged >= self.header["parallel"]):
            raise self._damaged(first_damaged)
        self.has_torn_end |= first_damaged > 0

    def _take(self, number: int, text: bytes) -> bool:
        """Returns false if the line is damaged."""
        try:
            line = _parse(text)
            kind = line["kind"]
            if number == 1:
                self.header = line if kind == "header" and line["parallel"] > 0 else {}
                return bool(self.header)
            if kind == "trial":
                self.trials.append(_trial(line, text))
        except (ValueError, KeyError, TypeError, AttributeError):
            return False
        return True

    def _damaged(self, number: int) -> RecordError:
        if number == 1:
            return RecordError(f"{self.path}: it does not begin with the header of a record")
        return RecordError(f"{self.path}:{number}: it is damaged; mscgym salvage can take out what is before it")

    def __len__(self) -> int:
        return len(self.trials)

    @property
    def tasks(self) -> list[str]:
        return [task["name"] for task in self.header["space"]["tasks"]]

    @property
    def metrics(self) -> list[str]:
        return [metric["name"] for metric in self.header["space"]["metrics"]]

    def labels(self, trial: Trial) -> dict[str, str]:
        """The labels of a trial's choices, by task."""
        return {task["name"]: task["choices"][choice]
                for task, choice in zip(self.header["space"]["tasks"], trial.choices, strict=True)}

    def objective(self, trial: Trial) -> float:
        """The first objective, with its sign changed if it is maximised, so that less is better."""
        first = self.header["objectives"][0]
        value = trial.metrics.get(first["metric"])
        return inf if value is None else -value if first["maximise"] else value

    def best(self) -> Trial | None:
        """The best trial as mscgym defines it: within the bounds, by the first objective, then
        by the lower id.
        """
        complete = [trial for trial in self.trials if trial.state == "complete"]
        return min(complete, key=lambda trial: (self.objective(trial), trial.id), default=None)

    def to_numpy(self) -> dict[str, numpy.ndarray]:
        """Arrays with one row per trial: "id", "choices" [trials, tasks], "state", "violation", and
        every metric by its name (nan if not measured).
        """
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
        """A table indexed by trial ids: "state", "baseline", "violation", a column for each metric,
        and for each task a column with the label of its choice.
        """
        import pandas

        rows = [{"state": trial.state, "baseline": trial.baseline, "violation": trial.violation,
                 **{name: trial.metrics.get(name, nan) for name in self.metrics}, **self.labels(trial)}
                for trial in self.trials]
        return pandas.DataFrame(rows, index=pandas.Index([trial.id for trial in self.trials], name="id"))
