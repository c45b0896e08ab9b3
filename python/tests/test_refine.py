#!/usr/bin/env python3
"""Tests refine="torch" on the digits example.

    test_refine.py MSCGYM DIGITS

Losses are computed here, with numpy, from outputs of the program. Needs numpy and torch.
"""
import json
import os
import shutil
import sys
import tempfile
import unittest
from unittest import mock

os.environ["OMP_NUM_THREADS"] = "1"  # before torch reads it
try:
    import numpy
    import torch
except ImportError as error:
    print(f"skipped: {sys.executable}: {error}")
    sys.exit(0)

HERE = os.path.dirname(os.path.abspath(__file__))
MSCGYM, DIGITS = map(os.path.abspath, sys.argv[1:3])
del sys.argv[1:3]
sys.path.insert(0, os.path.join(HERE, ".."))
sys.dont_write_bytecode = True
HELD = tempfile.TemporaryDirectory(prefix="mscgym refine ")
os.symlink(MSCGYM, os.path.join(HELD.name, "mscgym"))
os.environ["PATH"] = HELD.name + os.pathsep + os.environ["PATH"]
os.environ["MSCGYM_RUNTIME"] = "no/runtime"  # of this machine

import mscgym  # noqa: E402
from mscgym import refining  # noqa: E402
from mscgym.graph import Graph, GraphError  # noqa: E402
from mscgym.torch.fake_quantize import FakeQuantize  # noqa: E402
from mscgym.torch.refine import _Integers  # noqa: E402
from mscgym.torch.strategy import place_dynamic  # noqa: E402

MODEL = os.path.join(DIGITS, "digits.onnx")
FOUR = {"bits": 4, "rounding": "descent", "correct": "affine"}
SHORT = {"method": "torch", "steps": 60, "rate": 0.01}


def edits(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)["edits"]


def loss(samples, **options):
    """The relative squared error of the program's outputs with `options`, against the float model."""
    model = options.pop("model", MODEL)
    wanted, = mscgym.run(MODEL, samples, progress=False).values()
    made, = mscgym.run(model, samples, progress=False, **options).values()
    return numpy.square(made.astype(float) - wanted).sum() / numpy.square(wanted.astype(float)).sum()


class TestRefine(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="mscgym refine ")
        self.addCleanup(shutil.rmtree, self.folder)
        before = os.getcwd()
        os.chdir(self.folder)
        self.addCleanup(os.chdir, before)
        self.image = numpy.load(os.path.join(DIGITS, "calibration.npz"))["image"]
        self.labels = numpy.load(os.path.join(DIGITS, "calibration_labels.npy"))

    def search(self, refine, workspace="searched", **options):
        options = {"choices": [FOUR], "trials": 1, "target": "generic", "batch": 64, **options}
        return mscgym.search(MODEL, (self.image, self.labels), workspace=workspace, refine=refine, progress=False,
                             **options)

    def test_the_loss_of_a_searched_plan_falls(self):
        result = self.search(SHORT)
        held, report = self.image[-51:], result.report["refine"]  # a fifth is held back
        self.assertEqual(report["held_back"], len(held))
        before, after = loss(held, strategy="searched/msc_quantize.json"), loss(held, strategy=result.strategy)
        self.assertLess(after, 0.97 * before)
        self.assertAlmostEqual(report["loss_before"], before, delta=1e-3 * before)
        self.assertAlmostEqual(report["loss_after"], after, delta=1e-3 * after)
        self.assertAlmostEqual(result.table["refined"]["validation.distill_loss"], after, delta=1e-3 * after)
        self.assertEqual(result.table["refined"]["size_bytes"], result.table["winner"]["size_bytes"])
        self.assertIn("refined", result.table)
        self.assertEqual(result.metrics["validation.accuracy"], result.table["refined"]["validation.accuracy"])
        self.assertLess(abs(loss(held, model=result.model) - after), 0.01 * after)  # the exported file
        steps = [block["steps"] for block in report["blocks"]]
        self.assertTrue(all(n in (60, 120) for n in steps), steps)
        again = self.search(SHORT, workspace="again")
        self.assertEqual(edits(again.strategy), edits(result.strategy))

    def test_bits_and_tensors_stay(self):
        result = self.search(SHORT)
        old, new = edits("searched/msc_quantize.json"), edits(result.strategy)
        for key in ("site", "tensor", "bits", "low", "high", "axis", "zero_points"):
            self.assertEqual([edit[key] for edit in old], [edit[key] for edit in new])
        self.assertNotEqual([e["scales"] for e in old], [e["scales"] for e in new])

    def test_quantize_with_channels_scales_and_all_sites(self):
        result = mscgym.quantize(MODEL, self.image, effort="fast", refine={**SHORT, "drop": 0.3}, progress=False,
                                 output="small.onnx")
        report = result.report["refine"]
        held = self.image[-report["held_back"]:]
        after = loss(held, model="small.onnx")
        if report["kept"]:
            self.assertLess(report["loss_after"], report["loss_before"])
        self.assertAlmostEqual(after, min(report["loss_after"], report["loss_before"]), delta=0.05 * after)
        self.assertAlmostEqual(report["loss_before"], result.table["written"]["held_back.distill_loss"],
                               delta=0.01 * report["loss_before"])

    def test_dynamic_activations_stay(self):
        rules = [{"kind": "activation", "choices": ["8 dynamic"]}, {"kind": "weight", "choices": ["4 descent affine"]}]
        result = self.search(SHORT, target="onnxruntime", choices=[FOUR, {"bits": 8, "dynamic": True}],
                             env={"rules": rules})
        report, dynamic = result.report["refine"], [e for e in edits(result.strategy) if e.get("type") == "dynamic"]
        self.assertEqual(len(dynamic), 1)
        self.assertIn(dynamic[0], edits("searched/msc_quantize.json"))
        self.assertTrue(report["kept"])
        self.assertAlmostEqual(loss(self.image[-51:], strategy=result.strategy), report["loss_after"],
                               delta=1e-3 * report["loss_after"])

    def test_without_time_the_plan_stays(self):
        result = self.search({"time": 0})
        self.assertFalse(result.report["refine"]["kept"])
        self.assertNotIn("refined", result.table)
        self.assertEqual(os.path.basename(result.strategy), "msc_quantize.json")
        self.assertFalse(os.path.exists("searched/refined.onnx"))

    def test_stopped(self):
        with mock.patch.object(refining, "Bar") as bar:
            bar.return_value.show.side_effect = KeyboardInterrupt
            with self.assertRaisesRegex(mscgym.Stopped, "refine was stopped") as caught:
                self.search(SHORT)
        self.assertTrue(os.path.exists(caught.exception.result.model.path))
        self.assertNotIn("refined", caught.exception.result.table)

    def test_what_the_outputs_alone_cannot_serve(self):
        with self.assertRaisesRegex(TypeError, "loss_tensors"):
            mscgym.quantize(MODEL, self.image, refine="torch", loss_tensors="scores")


class TestBlocks(unittest.TestCase):
    """Torch modules have no blocks of GGUF."""

    def test_the_line_names_the_edit(self):
        graph = Graph("empty")
        strategy = {"edits": [{"site": "w", "tensor": "w", "type": "q4_k", "axis": 1, "blocks": ""}]}
        with self.assertRaisesRegex(GraphError, r"^plan.json: edits\[0\] stores 'w' in blocks of type q4_k, .*search"):
            place_dynamic(graph, strategy, "plan.json")


class TestIntegers(unittest.TestCase):
    """The trained form of a weight."""

    def setUp(self):
        self.plan = FakeQuantize(2, -8, 7, axis=0)
        with torch.no_grad():
            self.plan.scale.copy_(torch.tensor([0.5, 0.25]))

    def test_it_begins_at_the_plans_integers(self):
        given = torch.tensor([[0.6, -1.0, 9.0], [0.0, 0.3, -0.4]])
        plan = torch.tensor([[1.0, -1.0, 3.5], [0.0, 0.25, -0.5]])  # 0.6 is rounded up
        made = _Integers(self.plan, plan, given, False)
        self.assertTrue(torch.equal(made(given), plan))
        self.assertAlmostEqual(float(made.levels[0, 0].detach()), 1.501, places=5)  # as near to 0.6 / 0.5 as 2 permits
        self.assertAlmostEqual(float(made.levels[1, 1].detach()), 1.2, places=5)

    def test_a_new_scale_changes_no_integer_and_zeros_stay(self):
        plan = torch.tensor([[1.0, 0.0, 3.5], [0.0, 0.25, -0.5]])
        made = _Integers(self.plan, plan, plan, True)
        with torch.no_grad():
            made.gain.copy_(torch.tensor([2.0, 0.5]).log())
            made.levels += 0.9
        expected = torch.tensor([[3.0, 0.0, 7.0], [0.0, 0.25, -0.125]])
        self.assertTrue(torch.allclose(made(plan), expected), made(plan))
        made(plan).sum().backward()
        self.assertEqual(float(made.levels.grad[0, 1]), 0.0)


if __name__ == "__main__":
    unittest.main()
