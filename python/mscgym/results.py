"""What the functions return."""
from __future__ import annotations

import html
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mscgym.errors import Error
from mscgym.models import Model
from mscgym.record import Record
from mscgym.table import Table, flattened


COSTS = ("size_", "bit_ops", "macs", "parameters")  # names of numbers that training does not change


class Result(os.PathLike[str]):
    """A compressed model, and how it was found. It can be used wherever the path of the model can.

    Attributes:
        table: The numbers of the plan next to those of other plans and of the uncompressed model.
        plan: The choices of the plan: labels by task, or in `quantize` by kind of tensor.
        report: Everything that the program reports, as docs/json.md describes it.
        log: The lines that the program wrote to standard error.
        record: The trials of a search; None for `quantize`, which keeps none.
        strategy: The strategy file, as a path; None: nothing meets every bound.
    """

    def __init__(self, model: Model | None, table: Table, plan: Mapping[str, Any], report: Mapping[str, Any],
                 log: Sequence[str], record: Record | None = None, strategy: Path | None = None,
                 held: object = None):
        self._model = model
        self._held = held
        self.table = table
        self.plan = plan
        self.report = report
        self.log = list(log)
        self.record = record
        self.strategy = strategy

    @property
    def model(self) -> Model:
        """The compressed model.

        Raises:
            Error: There is none, because nothing meets every bound.
        """
        if self._model is None:
            where = self.record.path if self.record else "result"
            raise Error(f"{where}: there is no model: nothing meets every bound, or nothing was measured")
        return self._model

    @property
    def metrics(self) -> Mapping[str, float]:
        """The numbers of the plan: the first column of the table."""
        return self.table[next(iter(self.table))] if self.table else {}

    def __fspath__(self) -> str:
        return os.fspath(self.model)

    def add_refined(self, report: Mapping[str, Any], before: Mapping[str, float], after: Mapping[str, float],
                    model: str, strategy: str) -> None:
        """Adds what `refine` found (mscgym.refining): its report and, if the trained plan is better, the plan's
        numbers, model and strategy.
        """
        self.report = {**self.report, "refine": report}
        best, *others = self.table
        columns = {best: {**before, **self.table[best]}, **{name: self.table[name] for name in others}}
        if report["kept"]:
            costs = {key: number for key, number in self.table[best].items() if key.startswith(COSTS)}
            columns = {"refined": {**after, **costs}, **columns}
            self._model, self.strategy = Model(model, self._held), Path(strategy)
        self.table = Table(columns)

    def save(self, path: str | os.PathLike[str]) -> Model:
        """Copies the compressed model to a file."""
        return self.model.save(path)

    def __str__(self) -> str:
        return f"{self.table}\nmodel: {self._model or '-'}"

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self._model or 'no model'}>"

    def _repr_html_(self) -> str:
        return f"{self.table._repr_html_()}<p>model: <code>{html.escape(str(self._model or '-'))}</code></p>"


class Quantized(Result):
    """The result of `mscgym.quantize`.

    `table` has the columns "written", "plain 8 bits" (ranges of all values, rounded to nearest; absent if that is
    the written plan; with channels rescaled as in the written plan) and "uncompressed". `plan` has the labels "weights" and "activations", and the number of
    tensors left "float".
    """


class Searched(Result):
    """The result of `mscgym.search` and `mscgym.prune`.

    `table` has a column for the winner, for each uniform plan, and for the uncompressed model. `plan` has the label
    of each task. `estimate` has what the search will cost, after a dry run.
    """

    @property
    def estimate(self) -> Mapping[str, Any]:
        estimate: Mapping[str, Any] = self.report.get("estimate", {})
        return estimate

    def __str__(self) -> str:
        return str(self.report["estimate_text"]) if "estimate_text" in self.report else super().__str__()


class Bench:
    """The result of `mscgym.bench`: latencies side by side.

    Attributes:
        table: A column for each model: "us" and "ratio", each with lower quartile, median and upper quartile over
            the rounds, and "file_bytes". Ratios are relative to the first model.
        report: Everything that the program reports, as docs/json.md describes it.
    """

    def __init__(self, report: Mapping[str, Any], names: Sequence[str]):
        self.report = report
        self.table = Table({name: flattened({key: model[key] for key in ("us", "ratio", "file_bytes")})
                            for name, model in zip(names, report["models"])})

    def __str__(self) -> str:
        r = self.report
        return f"{self.table}\n{r['runtime']} {r.get('version', '')}, threads: {r['threads']}, rounds: {r['rounds']}"

    def _repr_html_(self) -> str:
        return self.table._repr_html_()


class Report(os.PathLike[str]):
    """The result of `mscgym.report`: a page, which a notebook shows.

    Attributes:
        path: The HTML file.
    """

    def __init__(self, path: str):
        self.path = Path(path)

    def __fspath__(self) -> str:
        return str(self.path)

    def __str__(self) -> str:
        return str(self.path)

    def __repr__(self) -> str:
        return f"Report({str(self.path)!r})"

    def _repr_html_(self) -> str:
        page = html.escape(self.path.read_text(encoding="utf-8"))
        return f'<iframe srcdoc="{page}" width="100%" height="800" style="border:0"></iframe>'


def _numbers(plan: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, float]:
    examined = {key: value for key, value in plan.get("examined", {}).items() if key not in plan.get("metrics", {})}
    return flattened({**plan.get("metrics", {}), **examined}, names)


def quantized(report: Mapping[str, Any], log: Sequence[str], held: object, strategy: str) -> Quantized:
    """`held` keeps temporary files as long as the result."""
    plans = report["plans"]
    best = plans[0]
    plain = next((plan for plan in plans[1:] if plan.get("plain")), None)
    columns = {"written": best, **({"plain 8 bits": plain} if plain else {}), "uncompressed": report["reference"]}
    names = {"validation": "held_back"}
    table = Table({name: _numbers(plan, names) for name, plan in columns.items()})
    plan = {key: best[key] for key in ("weights", "activations", "float", "improved")}
    return Quantized(Model(report["model"], held), table, plan, report, log, None, Path(strategy), held)


def searched(report: Mapping[str, Any], log: Sequence[str], metric: str | None) -> Searched:
    """`metric` is the user's name of the metric `command`."""
    names = {"command": metric, "noise": "noise_ratio"} if metric else {"noise": "noise_ratio"}
    best = report.get("delivered") or report.get("winner")
    columns = {"winner": best} if best else {}
    for plan in report.get("baselines", []):
        columns[f"uniform {plan['label']}"] = plan
    if "reference" in report:
        columns["uncompressed"] = report["reference"]
    if "applied" in report:
        columns["applied"] = report["applied"]
    files = report.get("files", {})
    record = report.get("record")
    return Searched(Model(files["model"]) if "model" in files else None,
                    Table({name: _numbers(plan, names) for name, plan in columns.items()}),
                    (best or {}).get("choices", {}), report, log,
                    Record(record) if record and os.path.exists(record) else None,
                    Path(files["strategy"]) if "strategy" in files else None)
