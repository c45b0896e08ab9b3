#!/usr/bin/env python3
"""Checks the importance of tasks (results/effects.h) in `mscgym report --json`: for losses that add up, against the
analysis of their variance by hand; for losses that do not, against numpy's least squares. The figure has the same
shares.

usage: check_importance.py MSCGYM

Needs numpy; exits with 77 without it.
"""

import json
import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as tree
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))
from mscgym.record import Record  # noqa: E402

SVG = "{http://www.w3.org/2000/svg}"
ALONE = [[0.001, 0.01, 0.2], [0.001, 0.02], [0.002, 0.03, 0.5, 0.1], [0.01, 0.01, 0.01]]
PAIRS = [{"tasks": [0, 2], "values": [[0, 0, 0, 0], [0, 0.02, -0.1, 0.05], [0, 0.01, -0.15, 0.1]]}]
NAMES = [f"task{t}" for t in range(len(ALONE))]


def run(*words):
    made = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    return made.stdout


def search(mscgym, name, pairs, trials):
    """Searches a table at random. Returns the importance of the report."""
    Path(f"{name}.table.json").write_text(json.dumps({
        "schema": "mscgym.table.1",
        "tasks": [{"name": task, "choices": [f"c{c}" for c in range(len(of))]} for task, of in zip(NAMES, ALONE)],
        "metrics": [{"name": "distill_loss", "alone": ALONE, "pairs": pairs}]}), encoding="utf-8")
    Path(f"{name}.json").write_text(json.dumps({"verbose": "error", "workspace": name, "gym": [{
        "record": "r.jsonl", "env": {"type": "table", "file": f"{name}.table.json"}, "agent": {"type": "random"},
        "budget": {"trials": trials}, "seed": 1}]}), encoding="utf-8")
    run(mscgym, "search", f"{name}.json", "--quiet")
    record = json.loads(run(mscgym, "report", f"{name}/r.jsonl", "--json"))["records"][0]
    return record["effects"].get("importance")


def shares_of(effects):
    """Shares of the variance, if each choice of a task is equally likely."""
    import numpy
    variances = numpy.array([numpy.var(of) for of in effects])
    return dict(zip(NAMES, variances / variances.sum()))


def fit(name):
    """The weighted least squares of results/additive.h: effects of each task's choices, and the explained share."""
    import numpy
    trials = [t for t in Record(f"{name}/r.jsonl").trials if t.state == "complete" and t.line.get("repeat_of") is None]
    y = numpy.array([t.metrics["distill_loss"] for t in trials])
    far = y - y.min()
    weights = 1 / (far + numpy.sort(far)[len(far) // 2] / 10) ** 2
    weights /= weights.sum()
    columns = [(t, c) for t, of in enumerate(ALONE) for c in range(len(of))]
    design = numpy.array([[1.0] + [float(trial.choices[t] == c) for t, c in columns] for trial in trials])
    root = numpy.sqrt(weights)
    found = numpy.linalg.lstsq(design * root[:, None], y * root, rcond=1e-9)[0]
    left = y - design @ found
    explained = 1 - (weights * (left - weights @ left) ** 2).sum() / (weights * (y - weights @ y) ** 2).sum()
    effects = [[found[1 + k] for k, (at, _) in enumerate(columns) if at == t] for t in range(len(ALONE))]
    return effects, explained


def check(found, expected, explained):
    shares = {row["task"]: row["share"] for row in found["tasks"]}
    order = [row["share"] for row in found["tasks"]]
    assert order == sorted(order, reverse=True) and abs(sum(order) - 1) < 1e-9, order
    assert all(abs(shares[name] - expected[name]) < 2e-3 for name in NAMES), (shares, expected)
    assert abs(found["explained"] - explained) < 2e-3, (found["explained"], explained)


def check_figure(mscgym, name, found):
    run(mscgym, "report", f"{name}/r.jsonl", "-o", "page.html", "--figures", "figures")
    figure = tree.parse("figures/r-importance.svg").getroot()
    bars = [float(r.get("width")) for r in figure.iter(SVG + "rect") if r.get("fill") == "#1d5fbf"]
    wanted = [row["share"] for row in found["tasks"]]
    assert len(bars) == len(wanted)
    assert all(abs(bar / bars[0] - share / wanted[0]) < 0.01 for bar, share in zip(bars, wanted)), (bars, wanted)
    assert "Importance of tasks</h2>" in Path("page.html").read_text(encoding="utf-8")


def main():
    if len(sys.argv) != 2:
        print(__doc__.strip(), file=sys.stderr)
        return 2
    try:
        import numpy  # noqa: F401
    except ImportError as error:
        print(f"skipped: {error}")
        return 77
    mscgym = Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        found = search(mscgym, "sums", [], 50)
        check(found, shares_of(ALONE), 1.0)
        check_figure(mscgym, "sums", found)
        found = search(mscgym, "pairs", PAIRS, 60)
        effects, explained = fit("pairs")
        assert 0.1 < explained < 0.99
        check(found, shares_of(effects), explained)
        assert search(mscgym, "few", [], 12) is None  # too few trials
    return 0


if __name__ == "__main__":
    sys.exit(main())
