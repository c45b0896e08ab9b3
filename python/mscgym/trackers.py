"""Trials of a record in MLflow and in Weights & Biases.

    python3 -m mscgym.trackers mlflow RECORD [--experiment NAME] [--uri URI]
    python3 -m mscgym.trackers wandb RECORD [--project NAME]

Each record is one run. The step of a trial is its number. Metrics keep their names; `best/NAME` is the
best value so far of each objective, among trials within the bounds. The configuration's search becomes
the run's parameters. To follow a search, call the command again, for example by `mscgym search
--on-improve`: a run that exists gets only the trials that it lacks.
"""
from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
from collections.abc import Iterator, Mapping
from datetime import datetime
from math import isfinite
from typing import Any

from mscgym.record import Record, RecordError, Trial

MOST_LENGTH = 500  # of a parameter's text; MLflow refuses longer ones
BATCH = 500        # metrics of one request; MLflow takes at most 1,000


def identity(record: Record) -> str:
    """The same for every state of one record, and another one for a new record under the same name."""
    header = json.dumps(record.header, sort_keys=True).encode()
    return hashlib.sha256(header).hexdigest()[:32]


def name_of(record: Record) -> str:
    """The file's name without its ending: "digits" for digits.jsonl."""
    return os.path.basename(record.path).removesuffix(".jsonl")


def began_s(record: Record) -> float:
    """When the search began, in seconds since 1970."""
    return datetime.fromisoformat(record.header["measured"]["time"]).timestamp()


def parameters(record: Record) -> dict[str, str]:
    """The search's environment, agent and bounds as texts, by the keys that `mscgym config` lists."""
    header = record.header
    found = {key: header[key] for key in ("agent", "env", "seed", "objectives", "bounds") if key in header}
    texts = {key: value if isinstance(value, str) else json.dumps(value) for key, value in found.items()}
    return {key: text if len(text) <= MOST_LENGTH else text[:MOST_LENGTH - 3] + "..."
            for key, text in texts.items()}


def rows(record: Record, first: int = 0) -> Iterator[tuple[Trial, dict[str, float]]]:
    """Each trial from number `first` on with the numbers to log: finite metrics, the violation of bounds,
    and the best objectives so far.
    """
    best: dict[str, float] = {}
    for trial in record.trials:
        if trial.state == "complete":
            for objective in record.header["objectives"]:
                name, sign = objective["metric"], -1 if objective["maximise"] else 1
                value = trial.metrics.get(name)
                if value is not None and sign * value < sign * best.get(name, sign * float("inf")):
                    best[name] = value
        if trial.id >= first:
            numbers = {**trial.metrics, "violation": trial.violation,
                       **{f"best/{name}": value for name, value in best.items()}}
            yield trial, {name: value for name, value in numbers.items() if isfinite(value)}


def to_mlflow(record: Record | str | os.PathLike[str], experiment: str = "mscgym", uri: str | None = None) -> str:
    """Writes the trials that the record's run lacks, and returns the id of the run.

    `uri` is the tracking server or folder; None: as MLflow's environment variables say.
    """
    from mlflow.entities import Metric, Param
    from mlflow.tracking import MlflowClient

    record = record if isinstance(record, Record) else Record(record)
    client = MlflowClient(uri)
    found = client.get_experiment_by_name(experiment)
    place = found.experiment_id if found else client.create_experiment(experiment)
    key = identity(record)
    known = client.search_runs([place], f"tags.`mscgym.record` = '{key}'", max_results=1)
    if known:
        run, first = known[0], int(known[0].data.tags["mscgym.trials"])
    else:
        run, first = client.create_run(place, run_name=name_of(record), tags={"mscgym.record": key}), 0
        client.log_batch(run.info.run_id, params=[Param(k, v) for k, v in parameters(record).items()])
    began = began_s(record)
    waiting: list[Metric] = []
    for trial, numbers in rows(record, first):
        time = int(1000 * (began + trial.line["measured"]["elapsed_s"]))
        waiting += [Metric(name, value, time, trial.id) for name, value in numbers.items()]
        if len(waiting) >= BATCH:
            client.log_batch(run.info.run_id, metrics=waiting)
            waiting = []
    client.log_batch(run.info.run_id, metrics=waiting)
    last = record.trials[-1].id + 1 if record.trials else 0
    client.set_tag(run.info.run_id, "mscgym.trials", str(last))
    run_id: str = run.info.run_id
    return run_id


def to_wandb(record: Record | str | os.PathLike[str], project: str = "mscgym", **options: Any) -> str:
    """Writes the trials that the record's run lacks, and returns the id of the run.

    `options` are passed to `wandb.init`, such as `mode="offline"`. An offline run cannot be read again, so
    each call writes a whole run; `wandb sync` merges those of one record by their id.
    """
    import wandb

    record = record if isinstance(record, Record) else Record(record)
    config: Mapping[str, str] = parameters(record)
    run = wandb.init(project=project, id=identity(record), name=name_of(record), resume="allow",
                     config=dict(config), **options)
    first = run.step
    for trial, numbers in rows(record, first):
        run.log({**numbers, "state": trial.state}, step=trial.id)
    best = record.best()
    if best:
        run.summary["winner"] = best.id
        run.summary["plan"] = record.labels(best)
    run.finish()
    run_id: str = run.id
    return run_id


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python3 -m mscgym.trackers",
                                     description="Writes the trials of a record to MLflow or Weights & Biases.")
    parser.add_argument("tracker", choices=("mlflow", "wandb"))
    parser.add_argument("record")
    parser.add_argument("--experiment", default="mscgym", help="of MLflow (default: mscgym)")
    parser.add_argument("--uri", help="of MLflow's server or folder (default: MLFLOW_TRACKING_URI)")
    parser.add_argument("--project", default="mscgym", help="of Weights & Biases (default: mscgym)")
    parser.add_argument("--offline", action="store_true", help="for Weights & Biases: write to the folder wandb")
    given = parser.parse_args(arguments)
    try:
        record = Record(given.record)
        if given.tracker == "mlflow":
            to_mlflow(record, given.experiment, given.uri)
        else:
            to_wandb(record, given.project, **({"mode": "offline"} if given.offline else {}))
    except (OSError, RecordError) as error:
        print(f"mscgym.trackers: {error}", file=sys.stderr)
        return 1
    except ModuleNotFoundError as error:
        print(f"mscgym.trackers: {error.name} is not installed: pip install {error.name}", file=sys.stderr)
        return 1
    except Exception as error:  # mlflow and wandb have no common class of errors
        reason = str(error).strip().partition("\n")[0]
        print(f"mscgym.trackers: {given.tracker}: {reason}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
