#!/usr/bin/env python3
"""Tests mscgym.graph and the text of generated modules, with neither torch nor, if it is missing, numpy.

Expected texts are written by hand.
"""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[1]
FILES = ROOT.parent / "tests/cli/files"
PROGRAM = sys.argv.pop(1) if len(sys.argv) > 1 and not sys.argv[1].startswith(("-", "Test")) else ""
if "--installed" not in sys.argv:
    sys.path.insert(0, str(ROOT))

from mscgym.graph import Graph, GraphError, Joint, Tensor  # noqa: E402
from mscgym.torch import source  # noqa: E402
from mscgym.torch.blocks import cut  # noqa: E402

EXPECTED = '''"""net: a torch module that mscgym wrote from a graph.

load() returns the module with its weights. `python3 main.py` compares it with recorded outputs.
"""
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional as F

from mscgym.torch.module import GraphModule, main, take

FOLDER = Path(__file__).resolve().parent


class Main(GraphModule):
    OUTPUTS = ['picked:0', 'out:0']

    def __init__(self):
        super().__init__()
        self.put('body.0', nn.Conv2d(3, 8, 3, stride=2, padding=1, bias=False))
        self.put('body.1', nn.BatchNorm2d(8, eps=1e-05, momentum=0.1))
        self.put_parameter('out.w', [8, 4])
        self.put_parameter('out.b', [4])

    def forward(self, x, n):
        body_0 = self.body[0](x)
        body_1 = self.body[1](body_0)
        gate = F.silu(body_1)
        pool = gate.mean((2, 3), keepdim=False)
        out = torch.matmul(pool, self.out.w) + self.out.b
        picked = take(out, n, 1)
        return picked, out
'''

ODD = r'''"a graph" <INPUTS: "a \\ \" b,\u202e\n\x1b:", top| OUTPUTS: out:0>
ID "a \\ \" b,\u202e\n\x1b:" OUT: "a \\ \" b,\u202e\n\x1b::0"("")<"12",4|float32> OPTYPE: input
ID top OUT: top:0("the top")<float32> OPTYPE: input
ID clip IN: "a \\ \" b,\u202e\n\x1b:", "", top OPTYPE: clip SCOPE: "a scope"
ID out IN: clip OPTYPE: mean ATTRS: keepdims=0 axis=1,
NOTES: opset=17 doc="two \"words\"" METADATA: "a key"= b="x=1,2#" INPUT_DOCS: top=é
'''


def tensor(name, *shape, dtype="float32", layout=""):
    return Tensor(name, list(shape), dtype, layout=layout)


def joint(name, optype, inputs=(), shape=(), attrs=None, weights=None, dtype="float32"):
    return Joint(name, optype, list(inputs), [tensor(f"{name}:0", *shape, dtype=dtype)], attrs or {}, weights or {})


def net():
    statistics = {role: tensor(f"body.1.{name}", 8) for role, name in (
        ("gamma", "weight"), ("beta", "bias"), ("mean", "running_mean"), ("var", "running_var"))}
    return Graph("net", [
        joint("x", "input", shape=(2, 3, 8, 8)), joint("n", "input", shape=(5,), dtype="int64"),
        joint("body.0", "nn.conv2d", ["x:0"], (2, 8, 4, 4), {"strides": "2,2", "padding": "1,1,1,1"},
              {"weight": tensor("body.0.weight", 8, 3, 3, 3, layout="OIHW")}),
        joint("body.1", "nn.batch_norm", ["body.0:0"], (2, 8, 4, 4), weights=statistics),
        joint("s", "sigmoid", ["body.1:0"], (2, 8, 4, 4)), joint("gate", "multiply", ["body.1:0", "s:0"], (2, 8, 4, 4)),
        joint("pool", "mean", ["gate:0"], (2, 8), {"axis": "2,3"}),
        joint("out", "msc.linear_bias", ["pool:0"], (2, 4), {},
              {"weight": tensor("out.w", 8, 4, layout="IO"), "bias": tensor("out.b", 4, layout="O")}),
        joint("picked", "take", ["out:0", "n:0"], (2, 5), {"axis": "1"})], ["x:0", "n:0"], ["picked:0", "out:0"])


class GraphTest(unittest.TestCase):
    def test_source(self):
        text = source(net())
        compile(text, "main.py", "exec")
        self.assertEqual(text[:len(EXPECTED)], EXPECTED)

    def test_names_of_python(self):
        graph = Graph("names", [joint("in", "input", shape=(1,)), joint("1/x", "nn.relu", ["in:0"], (1,)),
                                joint("1.x", "negative", ["1/x:0"], (1,))], ["in:0"], ["1.x:0"])
        lines = source(graph).splitlines()
        self.assertIn("    def forward(self, in_):", lines)
        self.assertIn("        _1_x = F.relu(in_)", lines)
        self.assertIn("        _1_x_1 = -_1_x", lines)

    def test_lengths(self):
        """A shape that is computed from lengths of inputs is text, and joints that computed only it are left out."""
        x = joint("x", "input", shape=(-1, 4))
        grown = joint("grown", "broadcast_to", ["c:0", "shape:0"], (-1, 3))
        flat = joint("flat", "reshape", ["x:0", "sizes:0"], (-1,))
        x.outputs[0].prims, grown.outputs[0].prims, flat.outputs[0].prims = ["N", "4"], ["N", "3"], ["MUL"]
        prims = [{"name": "N", "optype": "shape", "parents": [], "attrs": {"symbol": "N"}},
                 {"name": "FOUR", "optype": "Int", "parents": [], "attrs": {"value": "4"}},
                 {"name": "MUL", "optype": "Mul", "parents": ["FOUR", "N"], "attrs": {}}]
        joints = [x, joint("c", "constant", weights={"const": tensor("c")}),
                  joint("three", "constant", shape=(1,), weights={"const": tensor("three", 1, dtype="int64")}),
                  joint("n", "shape_of", ["x:0"], (1,), {"start": "0", "end": "1"}, dtype="int64"),
                  joint("shape", "concat", ["n:0", "three:0"], (2,), {"axis": "0"}, dtype="int64"), grown,
                  joint("sizes", "multiply", ["n:0", "three:0"], (1,), dtype="int64"), flat]
        text = source(Graph("g", joints, ["x:0"], ["grown:0", "flat:0"], prims))
        self.assertIn("        grown = self.c.expand((x.shape[0], 3))\n", text)
        self.assertIn("        flat = x.reshape(((4 * x.shape[0]),))\n        return grown, flat\n", text)
        self.assertNotIn("lengths", text)
        self.assertNotIn("three", text)
        grown.outputs[0].prims = ["M", "3"]  # the length of no input: the shape is computed
        text = source(Graph("g", joints, ["x:0"], ["grown:0"], prims))
        self.assertIn("three", text)

    def test_no_expression(self):
        joints = [joint("x", "input", shape=(1,)), joint("j", "msc.unknown", ["x:0"], (1,))]
        graph = Graph("g", joints, ["x:0"], ["j:0"])
        with self.assertRaisesRegex(GraphError, "joint 'j' has the type msc.unknown"):
            source(graph)

    def test_json(self):
        value = net().to_json()
        self.assertEqual(value["nodes"][3]["parents"], ["body.0"])
        self.assertEqual(Graph.from_json(value, "net").to_json(), value)
        with self.assertRaisesRegex(GraphError, "^f.json: not an MSCGraph .KeyError: 'nodes'"):
            Graph.from_json({"name": "x"}, "f.json")

    def test_order_of_attributes(self):
        graph = net()
        self.assertEqual(list(graph.to_json()["nodes"][2]["attrs"]), ["padding", "strides"])
        graph.keeps_attr_order = True
        value = graph.to_json()
        self.assertEqual(list(value["nodes"][2]["attrs"]), ["strides", "padding"])
        self.assertEqual(list(Graph.from_json(value, "net").to_json()["nodes"][2]["attrs"]), ["strides", "padding"])

    def test_files(self):
        try:
            import numpy
        except ImportError as error:
            self.skipTest(f"skipped: {error}")
        graph = net()
        for part in graph.joints:
            for weight in part.weights.values():
                graph.arrays[weight.name] = numpy.arange(numpy.prod(weight.shape), dtype="f4").reshape(weight.shape)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "net.json"
            graph.save(path)
            read = Graph.load(path)
            path.with_suffix(".safetensors").write_bytes(b"\xff" * 20)
            with self.assertRaisesRegex(GraphError, "net.safetensors: not a safetensors file"):
                Graph.load(path)
        self.assertEqual(read.to_json(), graph.to_json())
        self.assertEqual({name: array.tolist() for name, array in read.arrays.items()},
                         {name: array.tolist() for name, array in graph.arrays.items()})
        with self.assertRaisesRegex(GraphError, "ends in .json"):
            graph.save("net.onnx")

    @unittest.skipUnless(PROGRAM, "needs the path of mscgym as an argument")
    def test_printed(self):
        """Both printed forms are the program's, with bodies, symbols, notes, absent operands and odd names."""
        def made(path, *options):
            return subprocess.run([PROGRAM, "graph", *options, str(path)], capture_output=True, text=True,
                                  check=True).stdout
        with tempfile.TemporaryDirectory() as folder:
            odd = pathlib.Path(folder) / "odd.msc"
            odd.write_text(ODD, encoding="utf-8")
            names = ("branch", "detect", "positions", "state", "steps", "tiny", "torch_attention", "torch_lstm")
            for path in [odd, *(FILES / f"{name}.onnx" for name in names)]:
                with self.subTest(path.name):
                    graph = Graph.from_json(json.loads(made(path, "--json")), path.name)
                    self.assertEqual(str(graph), made(path))
                    self.assertEqual(graph.prototxt(), made(path, "--prototxt"))

    def test_imports(self):
        program = "import sys, mscgym, mscgym.torch; print(*({'torch', 'numpy'} & set(sys.modules)))"
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True,
                              env={"PYTHONPATH": str(ROOT)})
        self.assertEqual(done.stdout.strip(), "")


class TestBlocks(unittest.TestCase):
    """Blocks of small graphs; the expected ones are found by hand."""

    def blocks(self, joints, outputs, edits, **more):
        made = [Joint(name, kind, inputs, [Tensor(f"{name}:0", [-1, 4], "float32", name)],
                      weights={"weight": Tensor(weight, [4, 4], "float32")} if weight else {})
                for name, kind, inputs, weight in joints]
        graph = Graph("main", made, [made[0].outputs[0].name], outputs,
                      arrays={weight: [] for _, _, _, weight in joints if weight})
        return cut(graph, {"edits": [{"tensor": tensor} for tensor in edits], **more})

    RESIDUAL = [("x", "input", [], ""), ("a", "msc.linear", ["x:0"], "wa"), ("r", "nn.relu", ["a:0"], ""),
                ("b", "msc.linear", ["r:0"], "wb"), ("s", "add", ["b:0", "r:0"], ""), ("m", "exp", ["x:0"], ""),
                ("c", "msc.linear", ["s:0"], "wc"), ("y", "multiply", ["c:0", "m:0"], "")]

    def test_skips_and_unchanged_tensors(self):
        edits = ["wa", "r:0", "wb", "s", "wc"]
        found = self.blocks(self.RESIDUAL, ["y:0"], edits)
        self.assertEqual([[joint.name for joint in block.graph.joints] for block in found],
                         [["x", "a", "r"], ["r", "b", "s"], ["s", "x", "m", "c", "y"]])
        self.assertEqual([block.graph.outputs for block in found], [["r:0"], ["s:0"], ["y:0"]])
        self.assertEqual([block.source for block in found], [None, "r:0", "s:0"])
        self.assertEqual([block.inputs for block in found], [[0], [], [0]])
        self.assertEqual([block.edits for block in found], [[0], [1, 2], [3, 4]])
        self.assertEqual([sorted(block.graph.arrays) for block in found], [["wa"], ["wb"], ["wc"]])
        everywhere = self.blocks(self.RESIDUAL, ["y:0"], [*edits, "y:0"], sites="all")
        self.assertEqual([block.edits for block in everywhere], [[0], [1, 2], [3, 4, 5]])

    def test_no_cut_where_two_tensors_cross(self):
        found = self.blocks(self.RESIDUAL, ["y:0", "r:0"], ["wa", "wb", "wc"])
        self.assertEqual([[joint.name for joint in block.graph.joints] for block in found],
                         [["x", "a", "r"], ["r", "x", "b", "s", "m", "c", "y"]])
        self.assertEqual(found[-1].graph.outputs, ["y:0", "r:0"])
        inside = self.blocks([*self.RESIDUAL[:4], ("d", "msc.linear", ["b:0"], "wd"), ("s", "add", ["d:0", "r:0"], "")],
                             ["s:0"], ["wa", "wb", "wd"])
        self.assertEqual([[joint.name for joint in block.graph.joints] for block in inside],
                         [["x", "a", "r"], ["r", "b", "d", "s"]])

    def test_what_several_blocks_share(self):
        joints = [*self.RESIDUAL[:3], ("b", "msc.linear", ["r:0"], "wa")]
        self.assertEqual([block.shared for block in self.blocks(joints, ["b:0"], ["wa", "r:0"])], [{0}, {0}])


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]] + [item for item in sys.argv[1:] if item != "--installed"])
