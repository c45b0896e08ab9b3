#!/usr/bin/env python3
"""Checks `mscgym report --layers` on the digits network: errors against ONNX Runtime, bytes against the metric
size_bytes, histograms against numpy, and the figures against the document.

usage: check_layers.py MSCGYM

Needs numpy, onnx and onnxruntime; exits with 77 without them.
"""

import json
import os
import re
import shutil
import sys
import tempfile
import xml.etree.ElementTree as tree
from pathlib import Path

from check_figures import SVG, axis, is_near, run

DIGITS = Path(__file__).resolve().parents[2] / "examples" / "digits"
CHOICES = [{"bits": 8}, {"bits": 4}, {"bits": 6, "rounding": "descent", "correct": "affine"}]


def search(mscgym, section, env):
    config = {"workspace": section, "verbose": "error", "model": "digits.onnx",
              "dataset": {"inputs": "calibration.npz", "samples": 64, "batch": 16},
              section: {"target": "generic", "runtime": False, "strategy_file": "strategy.json",
                        "gym": [{"record": "r.jsonl", "agent": {"type": "random"}, "seed": 2,
                                 "budget": {"trials": 16}, "env": env}]}}
    Path(f"{section}.json").write_text(json.dumps(config), encoding="utf-8")
    run(mscgym, "search", f"{section}.json", "--quiet")
    document = json.loads(run(mscgym, "report", f"{section}/r.jsonl", "--layers", "--json"))
    return document["records"][0]


def check_error(record, section):
    """The error after the last layer is that of the exported model's outputs."""
    import numpy
    import onnxruntime
    inputs = numpy.load("calibration.npz")
    feed = {name: inputs[name][:16] for name in inputs.files}
    y, z = (onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"]).run(None, feed)[0]
            for path in ("digits.onnx", f"{section}/digits.onnx"))
    error = float(numpy.linalg.norm(y - z) / numpy.linalg.norm(y))
    measured = record["layers"]["layers"][-1]["error"]
    assert abs(measured / error - 1) < 0.02, (measured, error)
    assert record["layers"]["samples"] == 16


def check_bytes(record):
    layers, metrics = record["layers"]["layers"], record["delivered"]["metrics"]
    assert sum(row["bytes"] for row in layers) == metrics["size_bytes"], (layers, metrics)
    assert abs(metrics["size_bytes"] / sum(row["float_bytes"] for row in layers) - metrics["size_ratio"]) < 1e-9
    assert all(row["us"] >= 0 and row["float_us"] >= 0 for row in layers)
    assert sum(row["us"] for row in layers) > 0


def check_histograms(record, section):
    """The bins hold the weights of the file, divided by the scales of the strategy."""
    import numpy
    import onnx
    from onnx import numpy_helper
    model = onnx.load("digits.onnx")
    weights = {one.name: numpy_helper.to_array(one) for one in model.graph.initializer}
    edits = {edit["tensor"]: edit for edit in json.loads(Path(section, "strategy.json").read_text())["edits"]}
    found = record["layers"]["weights"]
    assert len(found) == 4, [one["tensor"] for one in found]
    for one in found:
        edit, x = edits[one["tensor"]], weights[one["tensor"]].astype(numpy.float64)
        shape = [-1 if axis == edit["axis"] else 1 for axis in range(x.ndim)]
        scales = numpy.array(edit["scales"], numpy.float32).astype(numpy.float64).reshape(shape)
        zeros = numpy.array(edit.get("zero_points", [0] * scales.size)).reshape(shape)
        levels = x / scales + zeros
        edges = one["from"] + one["step"] * numpy.arange(len(one["counts"]) + 1)
        counts = numpy.histogram(numpy.clip(levels, edges[0], edges[-1]), edges)[0]
        assert (one["bits"], one["low"], one["high"]) == (edit["bits"], edit["low"], edit["high"]), one
        assert sum(one["counts"]) == x.size and abs(counts - one["counts"]).sum() <= 4, (counts, one["counts"])
        clipped = ((levels < one["low"] - .5) | (levels > one["high"] + .5)).mean()
        assert abs(clipped - one["clipped"]) < 1e-3, (clipped, one["clipped"])
        clip = numpy.sort(scales.ravel() * max(abs(one["low"]), abs(one["high"])))[scales.size // 2]
        assert not zeros.any() and is_near(clip, one["clip"]), (clip, one["clip"])


def check_activations(record, section):
    """The bins hold what ONNX Runtime computes in the exported model before it is rounded."""
    import numpy
    import onnx
    import onnxruntime
    model = onnx.load(f"{section}/digits.onnx")
    edits = {edit["tensor"]: edit for edit in json.loads(Path(section, "strategy.json").read_text())["edits"]}
    found = record["layers"]["activations"]
    quantised = [name for name in edits if ":" in name and not name.startswith("image")]  # "joint:k", not the input
    assert len(found) == len(quantised) >= 3, (len(found), quantised)
    inputs = numpy.load("calibration.npz")
    feed = {name: inputs[name][:16] for name in inputs.files}
    names = [one["tensor"] for one in found]
    model.graph.output.extend(onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None) for name in names)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    for one, name, value in zip(found, quantised, session.run(names, feed)):
        edit = edits[name]
        levels = value.astype(numpy.float64).ravel() / edit["scales"][0] + edit.get("zero_points", [0])[0]
        edges = one["from"] + one["step"] * numpy.arange(len(one["counts"]) + 1)
        counts = numpy.histogram(numpy.clip(levels, edges[0], edges[-1]), edges)[0]
        assert sum(one["counts"]) == value.size, (one["tensor"], sum(one["counts"]), value.size)
        # Sums in another order may move an element over an edge, and one of the levels before it.
        assert abs(counts - one["counts"]).sum() <= 0.02 * value.size, (one["tensor"], counts, one["counts"])
        clipped = ((levels < one["low"] - .5) | (levels > one["high"] + .5)).mean()
        assert abs(clipped - one["clipped"]) < 2e-3, (clipped, one["clipped"])


def check_figures(mscgym, record, section):
    run(mscgym, "report", f"{section}/r.jsonl", "--layers", "-o", "page.html", "--figures", "figures")
    for k, one in enumerate(record["layers"]["weights"]):
        figure = tree.parse(f"figures/r-weights-{k + 1}.svg").getroot()
        y = axis(figure, "y", "end")
        bars = [r for r in figure.iter(SVG + "rect") if r.get("y") and r.get("height") != "4"]
        drawn = [y(float(r.get("y"))) for r in sorted(bars, key=lambda r: float(r.get("x")))]
        most = max(one["counts"])
        assert len(drawn) == len(one["counts"])
        assert all(abs(a - b) < .01 * most for a, b in zip(drawn, one["counts"])), (drawn, one["counts"])
    layers = record["layers"]["layers"]
    figure = tree.parse("figures/r-layers-bytes.svg").getroot()
    names = [text.text for text in figure.iter(SVG + "text") if text.get("text-anchor") == "end"]
    expected = sorted((row for row in layers if row["bytes"]), key=lambda row: -row["bytes"])
    assert names == [row["joint"] for row in expected], names
    figure = tree.parse("figures/r-network.svg").getroot()
    titles = {title.text for title in figure.iter(SVG + "title")}
    assert {joint["name"] for joint in record["graph"]["joints"]} < titles, titles
    page = Path("page.html").read_text(encoding="utf-8")
    rows = re.search(r"<h2 [^>]*>Layer by layer.*?</table>", page, re.S)[0]
    assert rows.count("<tr>") == 1 + len(layers) + 1 and page.count("aria-label=\"Histogram") == 4 + len(record["layers"]["activations"])


def check_beside(mscgym):
    """Two records on one page: a row for each joint with the numbers of both, and figures of both."""
    said = run(mscgym, "report", "quantize/r.jsonl", "prune/r.jsonl", "--layers", "-o", "both.html", "--figures", "both")
    both = json.loads(run(mscgym, "report", "quantize/r.jsonl", "prune/r.jsonl", "--layers", "--json"))["records"]
    page = Path("both.html").read_text(encoding="utf-8")
    rows = re.findall(r"<tr>.*?</tr>", page.split("Layers side by side")[1].split("</table>")[0], re.S)[2:]
    layers = [{row["joint"]: row for row in record["layers"]["layers"]} for record in both]
    joints = list(dict.fromkeys(joint for of in layers for joint in of))
    cells = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in rows]
    assert [row[0] for row in cells] == joints + ["sum"], cells
    for row, joint in zip(cells, joints):
        for k, of in enumerate(layers):
            error, bytes_ = of.get(joint, {}).get("error"), of.get(joint, {}).get("bytes")
            shown = "–" if error is None else f"{100 * error:.2g} %" if error else "0"
            assert row[3 + k] == shown, (row, joint, error)
            assert (row[5 + k] == "–") == (not bytes_), (row, bytes_)
    assert "Two networks side by side" in page
    assert all(f"both/compared-{what}.svg" in said for what in ("best", "error", "bytes", "time")), said


def check_long(mscgym):
    """The table of a network of 230 layers has the 200 with the longest bars, in the order of the network."""
    import numpy
    from onnx import TensorProto, helper, numpy_helper, save
    generator, n = numpy.random.default_rng(4), 230
    shapes = [(8, 4), (4, 8)] * 20 + [(8, 8)] * 190
    weights = [generator.standard_normal(shape).astype(numpy.float32) / shape[0] ** .5 for shape in shapes]
    graph = helper.make_graph(
        [helper.make_node("MatMul", [f"v{i}", f"w{i}"], [f"v{i + 1}"], name=f"layer{i}.") for i in range(n)], "long",
        [helper.make_tensor_value_info("v0", TensorProto.FLOAT, ["N", 8])],
        [helper.make_tensor_value_info(f"v{n}", TensorProto.FLOAT, ["N", 8])],
        [numpy_helper.from_array(weight, f"w{i}") for i, weight in enumerate(weights)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
    model.ir_version = 9
    save(model, "long.onnx")
    numpy.savez("long.npz", v0=generator.standard_normal((8, 8)).astype(numpy.float32))
    Path("long.json").write_text(json.dumps({
        "workspace": "long", "verbose": "error", "model": "long.onnx", "dataset": {"inputs": "long.npz", "batch": 8},
        "quantize": {"target": "generic", "runtime": False, "gym": [{
            "record": "r.jsonl", "agent": {"type": "random"}, "budget": {"trials": 2},
            "env": {"choices": [{"bits": 8}, {"bits": 4}]}}]}}), encoding="utf-8")
    run(mscgym, "search", "long.json", "--quiet")
    document = json.loads(run(mscgym, "report", "long/r.jsonl", "--layers", "--json"))
    run(mscgym, "report", "long/r.jsonl", "--layers", "-o", "long.html")
    layers = document["records"][0]["layers"]["layers"]
    assert len(layers) == n, len(layers)
    rows = Path("long.html").read_text(encoding="utf-8").split("The plan, layer by layer")[1].split("</table>")[0]
    shown = [row for row in layers if f">{row['joint']}<" in rows]
    assert rows.count("<tr>") == 1 + 200 + 1 and len(shown) == 200, (rows.count("<tr>"), len(shown))
    places = [rows.index(f">{row['joint']}<") for row in shown]
    assert places == sorted(places)
    # Times differ from run to run. Bytes do not, and the last 190 layers have the most, so theirs are the longest bars.
    assert all(row["bytes"] > layers[0]["bytes"] and row in shown for row in layers[40:])


def check_refused(mscgym):
    Path("toy.json").write_text(json.dumps({"workspace": "toy", "verbose": "error", "gym": [{
        "record": "r.jsonl", "env": {"type": "toy", "tasks": 3, "choices": 2}, "budget": {"trials": 8}}]}))
    run(mscgym, "search", "toy.json", "--quiet")
    for words, rc, line in ((["toy/r.jsonl"], 1, "its environment has no model"),
                            (["toy/r.jsonl", "--serve"], 2, "--layers cannot be used with --serve")):
        said = run(mscgym, "report", *words, "--layers", rc=rc)
        assert line in said and said.count("\n") == 1 and not Path("toy/r.html").exists(), said


def main():
    if len(sys.argv) != 2:
        print(__doc__.strip(), file=sys.stderr)
        return 2
    mscgym = Path(sys.argv[1]).resolve()
    try:
        import numpy, onnx, onnxruntime  # noqa: E401, F401
    except ImportError as error:
        print(f"skipped: {error}")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for name in ("digits.onnx", "calibration.npz"):
            shutil.copy(DIGITS / name, name)
        record = search(mscgym, "quantize", {"choices": CHOICES})
        check_bytes(record)
        check_error(record, "quantize")
        check_histograms(record, "quantize")
        check_activations(record, "quantize")
        check_figures(mscgym, record, "quantize")
        pruned = search(mscgym, "prune", {"choices": [{"density": 1}, {"density": 0.5}],
                                          "bounds": {"size_ratio": {"max": 0.8}}})
        check_bytes(pruned)
        check_error(pruned, "prune")
        check_beside(mscgym)
        check_long(mscgym)
        check_refused(mscgym)
    return 0


if __name__ == "__main__":
    sys.exit(main())
