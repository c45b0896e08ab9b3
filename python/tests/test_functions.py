#!/usr/bin/env python3
"""Tests the functions that call the program (quantize, search, prune, run, bench, report), on the digits example.

    test_functions.py MSCGYM|--installed DIGITS

Expected values come from the command line, from numpy, and from the example's files. Needs numpy.
"""
import base64
import contextlib
import doctest
import importlib.util
import inspect
import io
import json
import logging
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import time

if sys.version_info < (3, 11):
    print("skipped: the package needs Python 3.11")
    sys.exit(0)
try:
    import unittest
    from unittest import mock

    import numpy
except ImportError as error:
    print(f"skipped: {sys.executable}: {error}")
    sys.exit(0)

HERE = os.path.dirname(os.path.abspath(__file__))
ASKED, DIGITS = (os.path.abspath(path) if not path.startswith("--") else path for path in sys.argv[1:3])
del sys.argv[1:3]
HELD = tempfile.TemporaryDirectory(prefix="mscgym functions ")
if ASKED != "--installed":
    PACKAGE = os.path.join(HERE, "..")
    sys.path.insert(0, PACKAGE)
    os.environ["PYTHONPATH"] = PACKAGE
    os.mkdir(os.path.join(HELD.name, "bin"))
    os.symlink(ASKED, os.path.join(HELD.name, "bin", "mscgym"))
    os.environ["PATH"] = os.path.join(HELD.name, "bin") + os.pathsep + os.environ["PATH"]
os.environ["MSCGYM_RUNTIME"] = "no/runtime"  # of this machine
os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
sys.dont_write_bytecode = True

import mscgym  # noqa: E402
from mscgym import (folders, functions, models, operators, options, progress, refining, safetensors,  # noqa: E402
                    samples, searches, table)
from mscgym.samples import Signature, collect  # noqa: E402

MSCGYM = mscgym.program()
SMALL = {"target": "generic", "batch": 64, "progress": False}  # options of searches here
logging.getLogger("mscgym").setLevel(logging.ERROR)


def said(*words, code=0):
    """What the command line prints."""
    done = subprocess.run([MSCGYM, *words], capture_output=True, text=True, check=False)
    assert done.returncode == code, f"mscgym {' '.join(words)}: {done.stdout}{done.stderr}"
    return done.stdout


def python(code, *words):
    return subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=False)


class InFolder(unittest.TestCase):
    """Each test runs in a folder with the digits example; `image` and `labels` are its samples."""

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="mscgym functions ")
        self.addCleanup(shutil.rmtree, self.folder)
        for name in ("digits.onnx", "digits.json", "calibration.npz", "calibration_labels.npy", "validation.npz",
                     "validation_labels.npy"):
            shutil.copy(os.path.join(DIGITS, name), self.folder)
        before = os.getcwd()
        os.chdir(self.folder)
        self.addCleanup(os.chdir, before)
        self.image = numpy.load("calibration.npz")["image"]
        self.labels = numpy.load("calibration_labels.npy")


class TestSamples(unittest.TestCase):
    """Forms of samples; the expected arrays are those that were put in."""

    def setUp(self):
        self.x = numpy.arange(24, dtype=numpy.float32).reshape(6, 4)
        self.z = numpy.arange(6, dtype=numpy.int64)
        self.one, self.two = Signature(["x"], 1), Signature(["x", "z"], 2)

    def expect(self, found, labels=None, **arrays):
        self.assertEqual(list(found.inputs), list(arrays))
        for name, array in arrays.items():
            numpy.testing.assert_array_equal(numpy.concatenate(found.inputs[name]), array)
        if labels is None:
            self.assertIsNone(found.joined_labels())
        else:
            numpy.testing.assert_array_equal(found.joined_labels(), labels)

    def test_one_array_needs_no_names(self):
        found = collect(self.x, lambda: self.fail("it asked for names"))
        self.expect(found, input=self.x)

    def test_a_mapping_has_names(self):
        self.expect(collect({"z": self.z, "x": self.x, "other": self.x}, self.two), x=self.x, z=self.z)
        self.expect(collect({"x": self.x, "labels": self.z}, self.one), x=self.x, labels=self.z)
        self.expect(collect({"x": [[1.0], [2.0]]}, self.one), x=[[1], [2]])
        batch = {"x": self.x, "labels": self.z}
        self.expect(collect(batch, Signature(["x", "labels"], 0)), x=self.x, labels=self.z)
        found = collect(batch, Signature(["x", "labels"], 2))
        self.assertEqual(list(found.inputs), ["x", "labels"])
        with self.assertRaisesRegex(TypeError, "none of the model's inputs, x"):
            collect({"y": self.x}, self.one)

    def test_a_tuple_is_inputs_and_labels(self):
        self.expect(collect((self.x, self.z), self.two), x=self.x, z=self.z)
        self.expect(collect((self.x, self.z), self.one), x=self.x, labels=self.z)
        self.expect(collect((self.x, self.x, self.z), self.two), x=self.x, z=self.x, labels=self.z)
        self.expect(collect(((self.x, self.z), self.z), self.two), x=self.x, z=self.z, labels=self.z)
        self.expect(collect(({"x": self.x}, self.x), self.one), x=self.x, labels=self.x)
        # The second input is optional: integers, one per sample, are labels.
        maybe = Signature(["x", "z"], 1)
        self.expect(collect((self.x, self.z), maybe), x=self.x, labels=self.z)
        self.expect(collect((self.x, self.x), maybe), x=self.x, z=self.x)
        with self.assertRaisesRegex(ValueError, "has 4 parts"):
            collect((self.x, self.x, self.x, self.z), self.two)

    def test_batches_are_joined_and_limited(self):
        batches = [(self.x[:4], self.z[:4]), (self.x[4:], self.z[4:])]
        self.expect(collect(batches, self.one), x=self.x, labels=self.z)
        self.expect(collect(iter(batches), self.one, 5), x=self.x[:5], labels=self.z[:5])
        self.expect(collect(lambda: (x for x, _ in batches), self.one), x=self.x)
        endless = (self.x for _ in iter(int, 1))
        self.assertEqual(collect(endless, self.one).n(), samples.DEFAULT_N)
        with self.assertRaisesRegex(ValueError, "there are none"):
            collect([], self.one)

    def test_labels_may_be_given_or_refused(self):
        self.expect(collect((self.x, self.z), self.one, labels=False), x=self.x)
        self.expect(collect(self.x, self.one, 4, labels=self.z), x=self.x[:4], labels=self.z[:4])
        with self.assertRaisesRegex(ValueError, "expected 6, one for each sample, found 3"):
            collect(self.x, self.one, labels=self.z[:3])
        self.assertIsNone(collect((self.x, self.x), self.one).classes())
        numpy.testing.assert_array_equal(collect((self.x, self.z), self.one).classes(), self.z)

    def test_other_forms_are_refused(self):
        for data in (7, [object()], numpy.array(["a"]), {"x": "text"}):
            with self.assertRaises(TypeError):
                collect(data, self.one)

    def test_samples_on_a_later_axis(self):
        """A recurrent layer's inputs [steps, samples, features] and state [layers, samples, size]."""
        shapes = [("x", ["steps", "n", ""]), ("h", ["", "n", ""])]
        axes = models._sample_axes(shapes)
        self.assertEqual(axes, {"x": 1, "h": 1})
        self.assertEqual(models._sample_axes([("x", ["n", "steps"]), ("h", ["", "n", ""])]), {"h": 1})
        self.assertEqual(models._sample_axes([("x", ["steps", "n"])]), {})
        self.assertEqual(models._sample_axes([("x", ["", "n"])]), {"x": 1})
        signature = samples.Signature(["x", "h"], 2, axes=axes)
        x, h = numpy.arange(120.0).reshape(3, 10, 4), numpy.arange(40.0).reshape(2, 10, 2)
        labels = numpy.arange(10)
        batches = [(x[:, i:j], h[:, i:j], labels[i:j]) for i, j in ((0, 4), (4, 8), (8, 10))]
        for data, n in (((x, h, labels), None), (batches, None), (batches, 7), ({"x": x, "h": h}, 7)):
            found = samples.collect(data, signature, n)
            self.assertEqual(found.n(), n or 10)
            with tempfile.TemporaryDirectory() as folder:
                read = safetensors.read_safetensors(found.save(folder))
                self.assertTrue(numpy.array_equal(read["x"], x[:, :n]) and numpy.array_equal(read["h"], h[:, :n]))
        self.assertEqual(samples.collect(batches, signature, 7).joined_labels().tolist(), [*range(7)])
        one = samples.Signature(["x"], 1, axes={"x": 1})
        self.assertEqual(samples.collect((x, labels), one).joined_labels().tolist(), [*range(10)])

    def test_a_file_of_safetensors_has_all_types(self):
        arrays = {name: numpy.arange(6).astype(name).reshape(3, 2) for name in safetensors.TYPES}
        arrays |= {"number": numpy.array(2.5), "empty": numpy.zeros((0, 3)),
                   "turned": numpy.arange(6.0).reshape(2, 3).T}
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "a.safetensors")
            chunks = {name: [a[:1], a[1:]] if a.ndim else [a] for name, a in arrays.items()}
            safetensors.write_safetensors(path, chunks)
            with open(path, "rb") as file:
                content = file.read()
            n = int.from_bytes(content[:8], "little")
            header = json.loads(content[8:8 + n])
            self.assertEqual(n % 8, 0)
            for name, array in arrays.items():  # the format itself
                begin, end = header[name]["data_offsets"]
                self.assertEqual(content[8 + n + begin:8 + n + end], array.tobytes())
                self.assertEqual(header[name]["shape"], list(array.shape))
            read = safetensors.read_safetensors(path)
        for name, array in arrays.items():
            numpy.testing.assert_array_equal(read[name], array)
            self.assertEqual(read[name].dtype, array.dtype)

    def test_samples_of_different_shapes_have_arrays_of_their_own(self):
        found = collect([self.x[:, :3], self.x[:2]], self.one)
        with tempfile.TemporaryDirectory() as folder:
            read = safetensors.read_safetensors(found.save(folder))
            self.assertEqual([read[f"x/{i}"].shape for i in range(8)], [(1, 3)] * 6 + [(1, 4)] * 2)

    def test_an_example_has_samples_of_one_shape(self):
        found = collect([(self.x[:1, :3], self.x[:1]), (self.x[1:3], self.x[1:3])], Signature(["x", "y"], 2))
        self.assertEqual({name: array.shape for name, array in found.first(2).items()}, {"x": (1, 3), "y": (2, 4)})
        self.assertEqual(found.open_axes(), {"x": [1], "y": []})
        with self.assertRaisesRegex(ValueError, "refine: samples of x have different shapes"):
            refining.arrays_of(found)

    def test_batches_have_the_same_axes(self):
        for x in self.x[:1, 0], self.x[:1, :, None]:
            with self.assertRaisesRegex(ValueError, "^samples: x has [13] axes in a batch, expected 2 as in the first$"):
                collect([(self.x[:1],), (x,)], self.one)


class TestOptions(unittest.TestCase):
    def test_become_arguments(self):
        given = {"loss_tensors": ["a", "b,c"], "threads": 2, "restart": True, "serve": False, "device": None,
                 "bind": {"H": 3, "W": 4}, "warm_from": ["a", "b"], "exclude": "x*"}
        self.assertEqual(options.arguments(given),
                         ['--loss-tensors=["a", "b,c"]', "--threads=2", "--restart", "--bind=H=3", "--bind=W=4",
                          "--warm-from=a", "--warm-from=b", "--exclude=x*"])

    def test_unknown_ones_are_refused(self):
        for call, near in ((lambda: mscgym.quantize("a", [1.0], taget="x"), "target"),
                           (lambda: mscgym.search("a", [1.0], bound={}), "bounds"),
                           (lambda: mscgym.prune("a", [1.0], densty=1), "density"),
                           (lambda: mscgym.run("a", [1.0], tensor="x"), "tensors")):
            with self.assertRaisesRegex(TypeError, f"did you mean '{near}'?"):
                call()
        with self.assertRaisesRegex(TypeError, "unexpected keyword argument 'qqq'$"):
            mscgym.quantize("a", [1.0], qqq=1)
        with self.assertRaisesRegex(TypeError, "only one of density"):
            mscgym.prune("a", [1.0], density=0.5, sparsity=0.5)

    def test_are_all_that_the_commands_have(self):
        basic = {"json", "quiet", "log_level", "color", "help", "allow_plugins", "keep"}
        renamed = {"inputs": "data", "input": "data", "tensor": "tensors", "repeat": "data"}
        searches = set(options.keywords(mscgym.search, options.SearchOptions))
        models_ = options.ModelOptions
        for command, known in (("quantize", options.keywords(mscgym.quantize, models_)), ("search", searches),
                               ("run", options.keywords(mscgym.run, models_)),
                               ("bench", list(inspect.signature(mscgym.bench).parameters))):
            text = said(command, "--help")
            flags = {name.replace("-", "_") for name in re.findall(r"^  (?:-\w, |    )--([a-z-]+)", text, re.M)}
            self.assertTrue(flags)
            missing = {renamed.get(flag, flag) for flag in flags - basic} - set(known) - {"output", "save_strategy"}
            self.assertEqual(missing, set(), command)


class TestImports(InFolder):
    def test_only_what_is_used(self):
        heavy = "{'torch', 'transformers', 'onnx', 'tqdm', 'onnxruntime'} & set(sys.modules)"
        done = python(f"import sys, mscgym; assert not ({heavy} | {{'numpy'}} & set(sys.modules)); import numpy; "
                      "x = numpy.load('calibration.npz')['image']; "
                      "r = mscgym.quantize('digits.onnx', [(x, x)], effort='fast', progress=False); str(r), "
                      f"r._repr_html_(); print({heavy})")
        self.assertEqual((done.stdout, done.returncode), ("set()\n", 0), done.stderr)


class TestQuantize(InFolder):
    def test_token_ids(self):
        files = os.path.join(HERE, "..", "..", "tests", "cli", "files")
        model, ids = os.path.join(files, "decoder.onnx"), os.path.join(files, "decoder_ids.npy")
        said("quantize", model, "--inputs", ids, "--sequence", "16", "--labels", "next", "--effort", "fast",
             "-o", "expected.onnx")
        for data in (ids, {"input_ids": numpy.load(ids)}):
            result = mscgym.quantize(model, data, labels="next", sequence=16, effort="fast", progress=False)
            with open("expected.onnx", "rb") as expected, open(result.model, "rb") as found:
                self.assertEqual(found.read(), expected.read())
        mse = mscgym.quantize(model, ids, sequence=16, loss="mse", effort="fast", progress=False)
        self.assertNotEqual(mse.table, result.table)

    def test_writes_the_file_of_the_command(self):
        said("quantize", "digits.onnx", "--inputs", "calibration.npz", "-o", "expected.onnx", "--labels",
             "calibration_labels.npy", "--effort", "fast")
        result = mscgym.quantize("digits.onnx", [(self.image[:9], self.labels[:9]), (self.image[9:], self.labels[9:])],
                                 effort="fast", output="small.onnx", progress=False)
        with open("expected.onnx", "rb") as expected, open(result.model, "rb") as found:
            self.assertEqual(found.read(), expected.read())
        self.assertEqual(str(result.model), "small.onnx")
        self.assertEqual(result.table["uncompressed"]["file_bytes"], os.path.getsize("digits.onnx"))
        self.assertEqual(result.metrics["held_back.accuracy"], 1)
        self.assertEqual(result.plan["weights"], result.report["plans"][0]["weights"])
        self.assertIn("held_back.distill_loss", str(result))
        self.assertIn("<td>size_bytes</td>", result._repr_html_())

    def test_bounds_the_drop_of_the_accuracy(self):
        data = (self.image, self.labels)
        result = mscgym.quantize("digits.onnx", data, effort="fast", accuracy_drop=0.01, progress=False)
        self.assertLessEqual(result.metrics["held_back.accuracy_drop"], 0.01)
        with self.assertRaisesRegex(mscgym.Error, "--accuracy-drop is"):
            mscgym.quantize("digits.onnx", data, accuracy_drop=2)

    def test_keeps_a_temporary_file_as_long_as_the_result(self):
        result = mscgym.quantize("digits.onnx", self.image, effort="fast", samples=50, progress=False)
        self.assertEqual(result.report["samples"] + result.report["held_back"], 50)
        path = result.model.path
        self.assertTrue(path.exists())
        self.assertEqual(result.save("copy.onnx").path.read_bytes(), path.read_bytes())
        del result
        self.assertFalse(path.exists())

    def test_leaves_nothing_else(self):
        for name in "temporary", "memory":
            os.mkdir(name)
        with (mock.patch.object(tempfile, "tempdir", os.path.abspath("temporary")),
              mock.patch.object(folders, "SHARED_MEMORY", os.path.abspath("memory"))):
            mscgym.quantize("digits.onnx", self.image, effort="fast", output="small.onnx", progress=False)
            mscgym.run("digits.onnx", self.image, progress=False)
            mscgym.search("digits.onnx", self.image, choices=[8, 4], trials=2, metric=numpy.std, **SMALL)
        self.assertEqual(os.listdir("temporary") + os.listdir("memory"), [])

    def test_says_the_program_s_line(self):
        with self.assertRaisesRegex(mscgym.Error, '^quantize: --target: unknown target "x"') as caught:
            mscgym.quantize("digits.onnx", self.image, target="x")
        self.assertEqual(caught.exception.code, 2)
        with self.assertRaisesRegex(mscgym.Error, r'input "image": expected \[N,1,8,8\] float32'):
            mscgym.quantize("digits.onnx", self.image[:, :, :5])
        with self.assertRaisesRegex(mscgym.Error, "no.onnx"):
            mscgym.quantize("no.onnx", self.image)
        with self.assertRaisesRegex(TypeError, "model: expected a path"):
            mscgym.quantize(7, self.image)

    def test_warnings_are_logged(self):
        with self.assertLogs("mscgym", "WARNING") as caught:
            mscgym.quantize("digits.onnx", self.image[:20], labels=numpy.full(20, 77), effort="fast", progress=False)
        self.assertIn("are not classes of scores", " ".join(caught.output))


class TestRefine(InFolder):
    """test_refine.py tests the training, which needs torch."""

    def test_needs_torch(self):
        for call in (mscgym.quantize, mscgym.search):
            with mock.patch.dict(sys.modules, {"torch": None}), self.assertRaisesRegex(mscgym.Error, "needs torch"):
                call("digits.onnx", self.image, refine="torch")

    def test_other_wishes_are_refused(self):
        for wish, kind, text in (("onnx", ValueError, 'only method is "torch"'), ({"step": 3}, TypeError, "'steps'"),
                                 ({"time": "5 days"}, ValueError, '"5m"')):
            with self.assertRaisesRegex(kind, text):
                mscgym.quantize("digits.onnx", self.image, refine=wish)
        with self.assertRaisesRegex(TypeError, "not config"):
            mscgym.search(config="digits.json", refine="torch")
        with self.assertRaisesRegex(TypeError, "unexpected keyword argument 'refine'"):
            mscgym.prune("digits.onnx", self.image, density=0.5, refine="torch")
        self.assertEqual([refining.seconds(time) for time in (7, "90s", "1h30m")], [7, 90, 5400])

    def test_strategy_of_quantize(self):
        result = mscgym.quantize("digits.onnx", self.image, effort="fast", progress=False)
        outputs = [mscgym.run(*model, self.image, progress=False, strategy=strategy)["scores"]
                   for model, strategy in ((["digits.onnx"], result.strategy), ([result], None))]
        self.assertLess(numpy.abs(outputs[0] - outputs[1]).max(), 1e-3 * numpy.abs(outputs[0]).max())


class TestOperators(InFolder):
    """Plug-ins that compute operators: requests and answers, and a network that needs one."""
    x = numpy.arange(6, dtype=numpy.float32).reshape(2, 3)

    def setUp(self):
        super().setUp()
        registered = mock.patch.object(operators, "_operators", [])
        registered.start()
        self.addCleanup(registered.stop)

    def ask(self, method, op="Scale", inputs=None, outputs=1, **attributes):
        def tensor(x):
            data = base64.b64encode(x.tobytes()).decode()
            return {"dtype": str(x.dtype), "dims": list(x.shape), "data": data}

        message = {"method": method, "domain": "own", "op": op, "inputs": [tensor(x) for x in inputs or [self.x]],
                   "attrs": attributes, "outputs": [{"dtype": "float32", "dims": [2, 3]}] * outputs}
        return operators.answer(message)

    def test_attributes_have_their_types(self):
        seen = {}

        @operators.operator("own", "Scale")
        def scale(x, **attributes):
            seen.update(attributes)
            return x * numpy.float32(attributes["f"])

        answer = self.ask("compute", i={"type": "int", "value": "-3"}, f={"type": "float", "value": "0.5"},
                          s={"type": "string", "value": "a b"}, e={"type": "ints", "value": ""},
                          n={"type": "ints", "value": "7,"}, r={"type": "floats", "value": "0.5,1"},
                          t={"type": "strings", "value": '["a","b,c"]'}, p={"type": "proto", "value": "AP8="})
        self.assertEqual(seen, {"i": -3, "f": 0.5, "s": "a b", "e": [], "n": [7], "r": [0.5, 1.0],
                                "t": ["a", "b,c"], "p": b"\x00\xff"})
        got = numpy.frombuffer(base64.b64decode(answer["outputs"][0]["data"]), numpy.float32).reshape(2, 3)
        numpy.testing.assert_array_equal(got, self.x * 0.5)

    def test_types_are_inferred(self):
        operators.operator("own", "Scale", infer=lambda x: x)(lambda x: x)
        operators.operator("own", "Two", infer=lambda x: [x, ("int64", (-1,))])(lambda x: (x, x))
        self.assertEqual(operators.answer({"method": "init"})["operators"][1],
                         {"domain": "own", "op": "Two", "infers": True})
        one = {"dtype": "float32", "dims": [2, 3]}
        self.assertEqual(self.ask("infer"), {"outputs": [one]})
        self.assertEqual(self.ask("infer", "Two"), {"outputs": [one, {"dtype": "int64", "dims": [-1]}]})

    def test_errors_are_answers(self):
        operators.operator("own", "Scale")(lambda x: x.astype(numpy.float64))
        operators.operator("own", "Broken")(lambda x: 1 / 0)
        self.assertIn("float64, expected float32", self.ask("compute")["error"])
        self.assertIn("ZeroDivisionError", self.ask("compute", "Broken")["error"])
        self.assertIn("error", self.ask("compute", "Other"))
        self.assertIn("error", self.ask("compute", outputs=2))

    def test_a_network_runs(self):
        model = os.path.join(HERE, "../../examples/operators/made_up.onnx")
        plugin = os.path.join(HERE, "../../examples/operators/made_up_operators.py")
        x = numpy.load(os.path.join(HERE, "../../examples/operators/made_up.npz"))["x"]
        got = mscgym.run(model, x, operators=plugin, tensors=["f", "folded", "largest"])
        folded = got["f"][:, :6] + got["f"][:, 6:]
        numpy.testing.assert_array_equal(got["folded"], folded)
        numpy.testing.assert_array_equal(got["largest"], folded.max(axis=-1))
        with self.assertRaisesRegex(mscgym.Error, "'blur' is the external operator made.up::Blur"):
            mscgym.run(model, x)


class TestRunAndBench(InFolder):
    def test_outputs_are_those_of_the_command(self):
        said("run", "digits.onnx", "--inputs", "validation.npz", "--output", "expected.npz")
        data = numpy.load("validation.npz")["image"]
        found = mscgym.run("digits.onnx", (data, data), progress=False)
        with numpy.load("expected.npz") as expected:
            self.assertEqual(list(found), list(expected))
            for name in expected:
                numpy.testing.assert_array_equal(found[name], expected[name])
        labels = numpy.load("validation_labels.npy")
        self.assertGreater((next(iter(found.values())).argmax(1) == labels).mean(), 0.98)

    def test_tensors_by_pattern(self):
        found = mscgym.run("digits.onnx", self.image, tensors="*Conv*", samples=3, progress=False)
        self.assertEqual(len(found), 3)
        self.assertTrue(all(array.shape[0] == 3 for array in found.values()))

    def test_bench(self):
        shutil.copy("digits.onnx", "other.onnx")
        found = mscgym.bench("digits.onnx", "other.onnx", data=self.image, runtime="cpu", rounds=2, progress=False)
        self.assertEqual(list(found.table), ["digits", "other"])
        self.assertEqual(found.table["digits"]["ratio.median"], 1)
        self.assertGreater(found.table["other"]["us.median"], 0)


def margin(outputs, labels):
    """Mean score of the label, minus the mean of all scores."""
    return float(numpy.take_along_axis(outputs, labels[:, None], 1).mean() - outputs.mean())


class Drawn(mscgym.Agent):
    def start(self):
        self.told = []

    def propose(self, n):
        return [self.draw() for _ in range(min(n, 3))]

    def tell(self, trial, choices, outcome):
        self.told.append((trial, choices, outcome.objectives[0]))


DRAWN = """
import mscgym
class Drawn(mscgym.Agent):
    def propose(self, n):
        return [self.draw() for _ in range(min(n, 3))]
Drawn.run()
"""


class TestSearch(InFolder):
    def search(self, **more):
        return mscgym.search("digits.onnx", self.image, **{"choices": [8, 6, 4], "trials": 8, **SMALL, **more})

    def test_bounds_and_results(self):
        result = self.search(bounds={"size_ratio": 0.2}, labels=self.labels)
        self.assertLessEqual(result.metrics["size_ratio"], 0.2)
        self.assertEqual(list(result.table), ["winner", "uniform 8", "uniform 6", "uniform 4", "uncompressed"])
        self.assertEqual(result.metrics["validation.samples"], 51)  # a fifth of 256
        self.assertEqual(result.metrics["distill_loss"], result.record.best().metrics["distill_loss"])
        self.assertEqual(result.plan, result.record.labels(result.record.best()))
        self.assertTrue(result.strategy.exists() and result.model.path.exists())
        shown = json.loads(said("show", result.record.path, "--json"))
        self.assertEqual(shown["winner"]["metrics"], result.report["winner"]["metrics"])
        said("resume", result.record.path, "--trials", "9")  # everything is in the workspace
        self.assertEqual(len(mscgym.Record(result.record.path)), len(result.record) + 1)

    def test_a_metric_is_a_function(self):
        result = mscgym.search("digits.onnx", (self.image, self.labels), choices=[8, 4], trials=6, metric=margin,
                               maximise=True, bounds={"size_ratio": 0.25}, **SMALL)
        n = 256 - 51
        scores = next(iter(mscgym.run("digits.onnx", self.image[:n], progress=False).values()))
        self.assertAlmostEqual(result.table["uncompressed"]["margin"], margin(scores, self.labels[:n]), 4)
        # The winner has the greatest value of all trials within the bound.
        best = max(trial.metrics["command"] for trial in result.record.trials if trial.state == "complete")
        self.assertEqual(result.metrics["margin"], best)
        # The strategy gives the outputs that the metric was measured on.
        outputs = mscgym.run("digits.onnx", self.image[:n], strategy=result.strategy, progress=False)
        self.assertAlmostEqual(margin(next(iter(outputs.values())), self.labels[:n]), best, 5)

    def test_an_agent_is_an_object(self):
        agent = Drawn()
        result = self.search(agent=agent, seed=5)
        with open("drawn.py", "w", encoding="utf-8") as file:
            file.write(DRAWN)
        command = [sys.executable, os.path.abspath("drawn.py")]
        other = self.search(agent={"type": "process", "command": command}, seed=5, workspace="other")
        self.assertEqual([t.choices for t in result.record.trials], [t.choices for t in other.record.trials])
        trials = [(t.id, t.choices, t.metrics["distill_loss"]) for t in result.record.trials]
        self.assertEqual(agent.told, trials[:len(agent.told)])  # the last round ends the search
        self.assertGreater(len(agent.told), 3)
        longer = self.search(agent=agent, seed=5, trials=12)
        self.assertEqual(len(longer.record), len(result.record) + 4)
        self.assertLessEqual(len(agent.told), len(longer.record))  # it began as it was given
        self.assertEqual(agent.told[:3], trials[:3])

    def test_errors_of_objects_are_raised(self):
        def divide(outputs):
            return 1 / 0

        class Broken(mscgym.Agent):
            def propose(self, n):
                raise LookupError("no point")

        with self.assertRaises(ZeroDivisionError):
            self.search(metric=divide)
        with self.assertRaisesRegex(LookupError, "no point"):
            self.search(agent=Broken(), workspace="broken")
        with self.assertRaisesRegex(TypeError, "found the class Broken: call it"):
            self.search(agent=Broken)
        for name in "msc_workspace", "broken":  # nothing counts as failed
            path = os.path.join(name, "quantize_0.jsonl")
            self.assertFalse(os.path.exists(path) and any(t.state == "failed" for t in mscgym.Record(path).trials))

    def test_nothing_within_the_bounds(self):
        with self.assertRaisesRegex(mscgym.Error, "no trial meets every bound") as caught:
            self.search(bounds={"distill_loss": 1e-9})
        result = caught.exception.result
        self.assertGreater(len(result.record), 3)
        with self.assertRaisesRegex(mscgym.Error, "there is no model"):
            result.save("x.onnx")
        with self.assertRaisesRegex(mscgym.Error, "no choice can meet max 0.001"):
            self.search(bounds={"size_ratio": 0.001}, workspace="other")

    def test_bounds_by_drop(self):
        result = self.search(bounds={"accuracy_drop": 0.01}, objectives="size_bytes", labels=self.labels)
        self.assertGreaterEqual(result.metrics["accuracy"], result.table["uncompressed"]["accuracy"] - 0.01)
        self.assertLess(result.metrics["size_bytes"], result.table["uniform 8"]["size_bytes"])

    def test_choices_and_configurations(self):
        self.assertEqual([searches._choice(c) for c in (8, 0.5, 1.0, "float", "float16", "2:4", {"bits": 3})],
                         [{"bits": 8}, {"density": 0.5}, {"density": 1.0}, {"float": True}, {"type": "float16"},
                          {"pattern": "2:4"}, {"bits": 3}])
        result = mscgym.search(config="digits.json", trials=5, progress=False)
        self.assertEqual(len(result.record), 8)
        estimate = self.search(dry_run=True).estimate
        self.assertEqual((estimate["space_points"], estimate["calibration_samples"]), (6561, 205))

    def test_goals(self):
        goal = searches._Goal(margin, True)
        found = goal.bounds({"size_ratio": 0.2, "accuracy": 0.9, "margin": 3, "margin_drop": 0.1, "accuracy_drop": 0.01,
                             "macs": {"max": 5}})
        self.assertEqual(found, {"size_ratio": {"max": 0.2}, "accuracy": {"min": 0.9}, "command": {"min": 3},
                                 "command_drop": 0.1, "accuracy_drop": 0.01, "macs": {"max": 5}})
        self.assertEqual(goal.objectives(None, {}), ["command"])
        self.assertIsNone(goal.objectives(None, {"margin": 3}))
        self.assertEqual(goal.objectives("margin", {}), ["command"])
        self.assertIsNone(searches._Goal(None, False).objectives(None, {}))

    def test_prune(self):
        result = mscgym.prune("digits.onnx", self.image, density=0.5, batch=64, progress=False)
        self.assertEqual(set(result.plan.values()), {"0.5"})
        # Half of 16, 32 and 32 channels: 64 * 8 * 9 + 64 * 8 * 16 * 9 + 16 * 16 * 16 * 9 + 64 * 10 products.
        self.assertEqual(result.metrics["macs"], 64 * 8 * 9 + 64 * 8 * 16 * 9 + 16 * 16 * 16 * 9 + 64 * 10)
        found = mscgym.prune("digits.onnx", self.image, bounds={"macs_ratio": 0.4}, trials=5, criterion="l2", batch=64,
                             workspace="search", progress=False)
        self.assertLessEqual(found.metrics["macs_ratio"], 0.4)
        self.assertTrue(all("l2" in label for label in found.plan.values()), found.plan)

    def test_report(self):
        result = self.search()
        page = mscgym.report(result, output="page.html")
        self.assertIn("<html", page.path.read_text(encoding="utf-8"))
        self.assertIn("srcdoc=", page._repr_html_())
        self.assertEqual(mscgym.report(result.record).path.name, "quantize_0.html")


SLOW = """
import sys, time, mscgym, numpy
def slow(outputs):
    time.sleep(0.05)
    return float(outputs.std())
try:
    r = mscgym.search("digits.onnx", "calibration.npz", choices=[8, 6, 4], trials=int(sys.argv[1]), target="generic",
                      batch=64, parallel=2, objectives="distill_loss", bounds={"slow": 1e9}, metric=slow,
                      workspace=sys.argv[2], progress=False)
    print("ended", len(r.record))
except mscgym.Stopped as stopped:
    print("stopped:", stopped, len(stopped.result.record))
"""


class TestEnds(InFolder):
    """Ctrl-C, and the death of the calling process."""

    def start(self, trials, workspace):
        process = subprocess.Popen([sys.executable, "-c", SLOW, str(trials), workspace], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True, env={**os.environ, "TMPDIR": self.folder})
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        record = os.path.join(workspace, "quantize_0.jsonl")
        end = time.monotonic() + 60
        while not os.path.exists(record) or len(mscgym.Record(record)) < 5:
            self.assertIsNone(process.poll())
            self.assertLess(time.monotonic(), end)
            time.sleep(0.05)
        return process, record

    def test_ctrl_c_stops_in_order(self):
        process, record = self.start(400, "a")
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        self.assertRegex(out, "^stopped: the search was stopped; the same call continues it [0-9]+", err)
        n = len(mscgym.Record(record))
        self.assertLess(n, 100)
        for workspace, trials in (("a", n + 3), ("b", n + 3)):
            done = python(SLOW, str(trials), workspace)
            self.assertEqual(done.stdout, f"ended {n + 6}\n", done.stderr)
        points = [[t.choices for t in mscgym.Record(os.path.join(name, "quantize_0.jsonl")).trials] for name in "ab"]
        self.assertEqual(*points)

    def test_the_program_ends_with_its_caller(self):
        process, record = self.start(400, "a")
        process.kill()
        process.wait()
        end = time.monotonic() + 30
        while True:  # a record that is being written cannot be continued
            done = subprocess.run([MSCGYM, "watch", record, "--json"], capture_output=True, text=True, check=True)
            if not json.loads(done.stdout)["running"]:
                break
            self.assertLess(time.monotonic(), end)
            time.sleep(0.2)
        self.assertLess(len(mscgym.Record(record)), 100)


class TestShown(InFolder):
    def test_texts_are_escaped(self):
        shown = table.Table({"<b>": {"a&b": 1}})._repr_html_()
        self.assertIn("<th>&lt;b&gt;</th>", shown)
        self.assertIn("<td>a&amp;b</td>", shown)

    def test_a_bar_shows_the_program_s_messages(self):
        if not importlib.util.find_spec("tqdm"):
            self.skipTest("there is no tqdm")
        with contextlib.redirect_stderr(io.StringIO()) as shown:
            mscgym.quantize("digits.onnx", self.image, effort="fast", progress=True)
        self.assertIn("quantize: ", shown.getvalue())

    def test_no_bar_without_a_terminal(self):
        with contextlib.redirect_stderr(io.StringIO()) as shown:
            bar = progress.Bar(None)
            bar.show({"name": "a", "trials": 1})
            bar.close()
        self.assertEqual(shown.getvalue(), "")

    def test_code_of_the_guide(self):
        with open(os.path.join(HERE, "..", "..", "docs", "python.md"), encoding="utf-8") as file:
            section = file.read().split("\n## One line\n")[1].split("\n## ")[0]
        blocks = re.findall(r"(?:^    .*\n|^\n(?=    ))+", section, re.M)
        code = [textwrap.dedent(block) for block in blocks if "import mscgym" in block]
        self.assertEqual(len(code), 3)
        for block in code:
            if "torch" in block and not (importlib.util.find_spec("torch") and importlib.util.find_spec("onnxscript")):
                continue
            done = python(block)
            self.assertEqual(done.returncode, 0, done.stderr)

    def test_examples_of_the_documentation(self):
        for module in functions, searches, table:
            found = doctest.testmod(module)
            self.assertEqual(found.failed, 0, module.__name__)


if __name__ == "__main__":
    unittest.main()
