#!/usr/bin/env python3
"""Reads the figures of `mscgym report --figures` back: every mark, measured by the ticks of both axes, must be a
value of the record. The links of a page lead to its parts.

usage: check_figures.py MSCGYM FILES

FILES is tests/cli/files.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as tree
from math import exp, log
from pathlib import Path

SVG = "{http://www.w3.org/2000/svg}"
UNITS = {"%": 0.01, "bytes": 1, "KB": 1e3, "MB": 1e6, "GB": 1e9}


def run(*command, rc=0):
    made = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    assert made.returncode == rc, made.stderr
    return made.stdout + made.stderr


def value_of(text):
    number, *unit = text.split()
    return float(number) * (UNITS[unit[0]] if unit else 1)


def axis(figure, attribute, anchor):
    """A function from pixels to values, by the ticks at both ends; the ticks in between say whether it is a logarithm."""
    ticks = []
    for text in figure.iter(SVG + "text"):
        if text.get("text-anchor") == anchor and re.fullmatch(r"[-\d.e]+( (%|bytes|[KMG]B))?", text.text):
            ticks.append((float(text.get(attribute)) - (4 if attribute == "y" else 0), value_of(text.text)))
    ticks.sort(key=lambda tick: tick[1])
    (p0, v0), (p1, v1) = ticks[0], ticks[-1]
    linear = lambda p: v0 + (p - p0) / (p1 - p0) * (v1 - v0)
    scales = [linear]
    if v0 > 0:
        scales.append(lambda p: exp(log(v0) + (p - p0) / (p1 - p0) * log(v1 / v0)))
    fits = [scale for scale in scales if all(abs(scale(p) - v) <= 0.01 * abs(v1 - v0) for p, v in ticks)]
    assert fits, ticks
    return fits[-1] if len(ticks) > 2 else fits[0]


def is_near(a, b):
    return abs(a - b) <= 0.01 * max(abs(a), abs(b))


def search(mscgym, files, name, gym):
    config = {"workspace": name, "verbose": "error", "model": str(files / "tiny.onnx"),
              "dataset": {"inputs": str(files / "inputs.npz")},
              "quantize": {"target": "generic", "gym": [dict(gym, record="r.jsonl")]}}
    Path(f"{name}.json").write_text(json.dumps(config), encoding="utf-8")
    run(mscgym, "search", f"{name}.json", "--quiet")
    return f"{name}/r.jsonl"


def check_tradeoff(path, document):
    figure = tree.parse(path).getroot()
    x = axis(figure, "x", "middle")
    y = axis(figure, "y", "end")
    trials = document["records"][0]["trials"]
    metrics = trials["points"]["metrics"]
    loss = document["records"][0]["numbers"]["objectives"][0]["metric"]
    expected = list(zip(metrics[trials["cost"]], metrics[loss]))
    marks = [(x(float(c.get("cx"))), y(float(c.get("cy")))) for c in figure.iter(SVG + "circle")]
    assert len(marks) == len(expected) > 5, (len(marks), len(expected))
    for a, b in expected:
        assert any(is_near(a, p) and is_near(b, q) for p, q in marks), (a, b)


def check_best(path, document):
    figure = tree.parse(path).getroot()
    y = axis(figure, "y", "end")
    steps = next(p.get("d") for p in figure.iter(SVG + "path") if "H" in p.get("d"))
    heights = [float(steps.split("H")[0].split()[1])] + [float(v) for v in re.findall(r"V([\d.]+)", steps)]
    values = document["records"][0]["trials"]["best"]["value"]
    assert len(heights) == len(values) + 1  # the last holds until the end
    for height, value in zip(heights, values + values[-1:]):
        assert is_near(y(height), value), (y(height), value)


def check_bits(path, document):
    figure = tree.parse(path).getroot()
    y = axis(figure, "y", "end")
    bars = [r for r in figure.iter(SVG + "rect") if r.get("y") and r.get("height") != "4"]
    plan = [row["bits"] for row in document["records"][0]["plan"]]
    drawn = [y(float(r.get("y"))) for r in sorted(bars, key=lambda r: float(r.get("x")))]
    assert len(drawn) == len(plan) and all(abs(a - b) < 0.1 for a, b in zip(drawn, plan)), (drawn, plan)


def check_choices(path, document):
    """The figure has a line for each trial within the bounds, from the choice on the first axis to the loss on the
    last.
    """
    trials = document["records"][0]["trials"]
    points, losses = trials["points"], trials["points"]["metrics"]["distill_loss"]
    inside = sorted((losses[i], i) for i, state in enumerate(points["state"]) if state == 0)
    figure = tree.parse(path).getroot()
    lines = [p.get("d") for p in figure.iter(SVG + "path") if p.get("stroke-opacity")]
    left, right = map(float, re.findall(r"M([\d.]+) [\d.]+H([\d.]+)", next(
        p.get("d") for p in figure.iter(SVG + "path") if "H" in p.get("d")))[0])
    assert len(lines) == len(inside) > 10, (len(lines), len(inside))
    low, high = inside[0][0], inside[-1][0]
    scale = (lambda v: log(v / low) / log(high / low)) if high > 10 * low > 0 else (lambda v: (v - low) / (high - low))
    for line, (loss, i) in zip(reversed(lines), inside):  # the best is drawn last
        places = [(float(place) - left) / (right - left) for place in re.findall(r"[ML]([\d.]+)", line)]
        task = trials["tasks"][0]
        assert abs(places[0] - task["choices"][i] / max(1, len(task["labels"]) - 1)) < 0.06, (places, i)
        assert abs(places[-1] - scale(loss)) < 0.01, (places, loss)


def check_line(path, xs, ys):
    figure = tree.parse(path).getroot()
    x, y = axis(figure, "x", "middle"), axis(figure, "y", "end")
    marks = [(x(float(c.get("cx"))), y(float(c.get("cy")))) for c in figure.iter(SVG + "circle")]
    pairs = [(a, b) for a, b in zip(xs, ys) if b is not None]
    wide, high = (max(v) - min(v) or 1 for v in zip(*pairs))
    assert len(marks) == len(pairs) > 0
    assert all(abs(a - p) < .02 * wide and abs(b - q) < .02 * high for (a, b), (p, q) in zip(pairs, marks)), marks


def check_compared(path, documents):
    """The last value of each record's steps is its best."""
    figure = tree.parse(path).getroot()
    y = axis(figure, "y", "end")
    steps = [p.get("d") for p in figure.iter(SVG + "path") if re.match(r"M[\d.]+ [\d.]+H", p.get("d"))]
    assert len(steps) == len(documents)
    for step, document in zip(steps, documents):
        value = document["records"][0]["trials"]["best"]["value"][-1]
        assert is_near(y(float(re.findall(r"V([\d.]+)", step)[-1])), value), (step, value)


def check_links(mscgym, name, tasks, choices, trials, missing):
    """Small searches lack parts of the page."""
    Path(f"{name}.json").write_text(json.dumps({"verbose": "error", "workspace": name, "gym": [{
        "record": "r.jsonl", "env": {"type": "toy", "tasks": tasks, "choices": choices, "seed": 1},
        "agent": {"type": "random"}, "budget": {"trials": trials}}]}), encoding="utf-8")
    run(mscgym, "search", f"{name}.json", "--quiet")
    run(mscgym, "report", f"{name}/r.jsonl", "-o", f"{name}.html")
    page = Path(f"{name}.html").read_text(encoding="utf-8")
    links, ids = set(re.findall(r'href="#([^"]+)"', page)), set(re.findall(r' id="([^"]+)"', page))
    assert links <= ids and "r0-box" in links, links - ids
    assert not any(f"r0-{part}" in ids for part in missing), ids


def main():
    if len(sys.argv) != 3:
        print(__doc__.strip(), file=sys.stderr)
        return 2
    mscgym, files = (Path(word).resolve() for word in sys.argv[1:])
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        record = search(mscgym, files, "one", {"budget": {"trials": 60}})
        document = json.loads(run(mscgym, "report", record, "--json"))
        check_links(mscgym, "few", 1, 2, 3, ["importance", "speed"])
        check_links(mscgym, "single", 3, 1, 3, ["importance", "speed", "choices"])
        check_links(mscgym, "many", 6, 3, 100, [])
        said = run(mscgym, "report", record, "-o", "page.html", "--figures", "new/figures")
        names = re.findall(r"figure: (.*)", said)
        assert sorted(names) == sorted(str(p) for p in Path("new/figures").iterdir()), said
        check_tradeoff("new/figures/r-tradeoff.svg", document)
        check_best("new/figures/r-best-trials.svg", document)
        check_bits("new/figures/r-bits.svg", document)
        check_choices("new/figures/r-choices.svg", document)
        speed = document["records"][0]["trials"]["speed"]
        check_line("new/figures/r-speed.svg", speed["seconds"], speed["trials_per_s"])
        check_line("new/figures/r-reuse.svg", speed["seconds"], speed["reuse"])
        before = {name: Path(name).read_bytes() for name in names}
        run(mscgym, "report", record, "-o", "page.html", "--figures", "new/figures")
        assert before == {name: Path(name).read_bytes() for name in names}
        run(mscgym, "report", record, record.replace("one", "./one"), "-o", "both.html", "--figures", "both")
        assert sorted(p.name[:4] for p in Path("both").glob("*-bits.svg")) == ["1-r-", "2-r-"]
        other = search(mscgym, files, "two", {"budget": {"trials": 30}, "seed": 5, "agent": {"type": "random"}})
        run(mscgym, "report", record, other, "-o", "both.html", "--figures", "compared")
        check_compared("compared/compared-best.svg",
                       [document, json.loads(run(mscgym, "report", other, "--json"))])
        assert Path("compared/compared-fronts.svg").exists() and not Path("compared/compared-error.svg").exists()
        Path("mine").mkdir()
        shutil.copy(files / "labels.npy", "mine/r-bits.svg")
        said = run(mscgym, "report", record, "-o", "other.html", "--figures", "mine", rc=2)
        assert said.count("\n") == 1 and "mine/r-bits.svg: a figure would replace this file" in said, said
        assert os.listdir("mine") == ["r-bits.svg"] and not Path("other.html").exists()
        said = run(mscgym, "report", record, "--json", "--figures", "mine", rc=2)
        assert said == "mscgym: report: --figures cannot be used with --json\n", said
    return 0


if __name__ == "__main__":
    sys.exit(main())
