#!/usr/bin/env python3
"""Operators of a made-up domain, with a plug-in in C and one in Python: outputs against onnx.reference, whole and in
pieces, with pieces in onnxruntime too; compressed models and searches; nodes in exported models.

usage: check_operators.py MSCGYM LIBRARY RUNTIME_PROGRAM

The network, its operators in onnx.reference and the plug-ins are those of examples/operators.
"""
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx.reference import ReferenceEvaluator

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples/operators"
sys.path.insert(0, str(EXAMPLES))
import make_model  # noqa: E402

PROGRAM, LIBRARY, RUNTIME = (str(Path(p).resolve()) for p in sys.argv[1:4])
PLUGINS = [LIBRARY, str(EXAMPLES / "made_up_operators.py")]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT / "python"), "MSCGYM_RUNTIME": RUNTIME,
               "PATH": str(Path(sys.executable).parent) + os.pathsep + os.environ["PATH"]}


def mscgym(*words, fails=False):
    done = subprocess.run([PROGRAM, *map(str, words), "--quiet"], env=ENVIRONMENT, capture_output=True, text=True)
    assert (done.returncode != 0) == fails, (words, done.returncode, done.stderr)
    return done.stderr if fails else done.stdout


def difference(path, expected):
    found = np.load(path)
    assert sorted(found.files) == sorted(expected), (found.files, sorted(expected))
    return max(float(np.abs(found[name] - expected[name]).max()) for name in expected)


def reference(model, x):
    """Outputs by onnx.reference, which has QuantizeLinear only of newer opsets than the models'."""
    model = onnx.ModelProto.FromString(model.SerializeToString())
    next(s for s in model.opset_import if not s.domain).version = 21
    y, largest = ReferenceEvaluator(model, new_ops=make_model.OPERATORS).run(None, {"x": x})
    return {"y": y, "largest": largest}


def check_nodes(path, original):
    """The exported model has the nodes as they were, is valid, and onnxruntime refuses only the operators."""
    model = onnx.load(path)
    onnx.checker.check_model(model)
    nodes = {n.op_type: n for n in model.graph.node if n.domain == make_model.DOMAIN}
    for node in original.graph.node:
        if node.domain == make_model.DOMAIN:
            found = nodes.pop(node.op_type)
            for n in (node, found):
                n.attribute.sort(key=lambda a: a.name)
            assert list(found.attribute) == list(node.attribute), node.op_type
            assert list(found.output) == list(node.output) and len(found.input) == len(node.input)
    assert not nodes
    assert {(s.domain, s.version) for s in original.opset_import if s.domain} <= \
        {(s.domain, s.version) for s in model.opset_import}
    try:
        onnxruntime.InferenceSession(path)
    except Exception as error:
        assert "Blur" in str(error) and "not a registered" in str(error), error
    else:
        raise AssertionError("onnxruntime has the operators")
    return model


def check_plugin(plugin, original, x, expected):
    mscgym("run", "made_up.onnx", "--inputs", "made_up.npz", "-o", "out.npz", "--operators", plugin)
    d = difference("out.npz", expected)
    assert d < 1e-6, d
    print(f"{Path(plugin).name}: outputs within {d:.2g}")

    mscgym("quantize", "made_up.onnx", "--inputs", "made_up.npz", "-o", "q.onnx", "--operators", plugin, "--float", 0)
    compressed = check_nodes("q.onnx", original)
    types = [n.op_type for n in compressed.graph.node]
    assert "DequantizeLinear" in types, types
    y = reference(compressed, x)["y"]
    mscgym("run", "q.onnx", "--inputs", "made_up.npz", "-o", "q.npz", "--operators", plugin)
    steps = difference("q.npz", {**reference(compressed, x)})
    error = float(np.square(y - expected["y"]).mean() / np.square(expected["y"]).mean())
    assert 0 < error < 1e-3 and steps < 1e-2, (error, steps)
    assert os.path.getsize("q.onnx") < os.path.getsize("made_up.onnx")
    print(f"  8 bits: loss {error:.2g}, against onnx.reference within {steps:.2g}")

    config = {"workspace": "w", "model": "made_up.onnx", "operators": [plugin],
              "dataset": {"inputs": "made_up.npz", "batch": 4},
              "quantize": {"gym": [{"env": {"choices": [{"bits": 8}, {"bits": 4}]}, "agent": {"type": "random"},
                                    "budget": {"trials": 12}, "parallel": 4}]}}
    Path("search.json").write_text(json.dumps(config))
    mscgym("search", "search.json", "--restart")
    check_nodes("w/made_up.onnx", original)
    record = mscgym("show", "w/quantize_0.jsonl", "--canonical").splitlines()
    assert sum('"kind":"trial"' in line for line in record) > 12, len(record)
    mscgym("verify", "w/quantize_0.jsonl", "--sample", 3, "--allow-plugins")
    return [line for line in record if '"kind":"trial"' in line]


def check_pieces(how, words, expected):
    mscgym("split", "made_up.onnx", "-o", how, *words)
    manifest = json.loads(Path(how, "manifest.json").read_text())
    for piece in manifest["pieces"]:
        onnx.checker.check_model(onnx.load(f"{how}/{piece['model']}"))
    for plugin in PLUGINS:
        mscgym("run", f"{how}/manifest.json", "--inputs", "made_up.npz", "-o", "pieces.npz", "--operators", plugin,
               "--keep", f"{how}/samples")
        d = difference("pieces.npz", expected)
        assert d < 1e-6, (how, d)
    runtimes = [piece["runtime"] for piece in manifest["pieces"]]
    print(f"{how}: {len(runtimes)} pieces ({', '.join(runtimes)}), outputs within {d:.2g}")
    # The kept samples are those that a search of the piece needs.
    for piece in manifest["pieces"]:
        if not piece["operators"] and piece["joints"] > 1:
            mscgym("quantize", f"{how}/{piece['model']}", "--inputs", f"{how}/samples/{piece['name']}.npz", "-o",
                   "piece.onnx")
    return runtimes


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        subprocess.run([sys.executable, EXAMPLES / "make_model.py", "."], check=True)
        original, x = onnx.load("made_up.onnx"), np.load("made_up.npz")["x"]
        expected = reference(original, x)
        records = [check_plugin(plugin, original, x, expected) for plugin in PLUGINS]
        assert len(records[0]) == len(records[1])
        for command in (["run", "made_up.onnx", "--inputs", "made_up.npz", "-o", "none.npz"],
                        ["quantize", "made_up.onnx", "--inputs", "made_up.npz", "-o", "none.onnx"]):
            line = mscgym(*command, fails=True)
            assert line.count("\n") == 1 and "'blur'" in line and "--operators" in line, line
            assert not os.path.exists(command[-1])
        assert "onnxruntime" in check_pieces("target", [], expected)
        check_pieces("ops", ["--by", "ops"], expected)
        check_pieces("cut", ["--by", "cut", "--at", "r2", "--at", "blurred"], expected)
        check_pieces("integers", ["--target", "tflite", "--integers"], expected)


if __name__ == "__main__":
    main()
