#!/usr/bin/env python3
"""Runs the tutorial of MSC's graphs line by line, and compares with the texts that it shows.

    check_tutorial.py MSCGYM

The tutorial (TVM, "MSCGraph") imports a small torch module by from_fx, makes a graph, prints it in three forms, finds
joints, and makes modules of Relax and torch again. Its texts are written below as it shows them. They list attributes
in the order of a hash table, so attributes are compared without their order. Three more differences are known:
- JSON also has the keys `prims` and `notes`, which the tutorial's version lacks.
- TVM 0.27 calls a constant in a printed module ir.GenericConst.
- The class of the torch module is called Main, and an activation is a function and no module of its own.

Exits with 77 without apache-tvm and torch.
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

try:
    import numpy
    import torch
    import tvm  # noqa: F401
    from torch import fx
    from tvm.relax.frontend.torch import from_fx
except ImportError as error:
    print(f"skipped: {error}; needs apache-tvm and torch")
    sys.exit(77)

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))
from mscgym.graph import Graph  # noqa: E402
from mscgym.torch import to_torch  # noqa: E402
from mscgym.tvm import from_relax, to_relax  # noqa: E402

PROGRAM = os.path.abspath(sys.argv.pop(1)) if len(sys.argv) > 1 else ""

PRINTED = """main <INPUTS: inp_0:0| OUTPUTS: relu:0>
ID_0 inp_0 <PARENTS: | CHILDERN: conv2d>
  OUT: inp_0:0(inp_0)<1,3,4,4|float32|NCHW>
  OPTYPE: input

ID_1 conv2d <PARENTS: inp_0| CHILDERN: relu>
  IN: inp_0:0(inp_0)<1,3,4,4|float32|NCHW>
  OUT: conv2d:0<1,6,4,4|float32|NCHW>
  OPTYPE: nn.conv2d
  SCOPE: block
  ATTRS: out_dtype=float32 strides=1,1 kernel_layout=OIHW groups=1 padding=0,0,0,0 data_layout=NCHW dilation=1,1 out_layout=NCHW 
  WEIGHTS: 
    weight: const<6,3,1,1|float32|OIHW>

ID_2 relu <PARENTS: conv2d| CHILDERN: >
  IN: conv2d:0<1,6,4,4|float32|NCHW>
  OUT: relu:0(relu)<1,6,4,4|float32|NCHW>
  OPTYPE: nn.relu
  SCOPE: block

"""
NODES = [text + "\n" for text in PRINTED.split("\n\n")[:3]]
NODES[0] = NODES[0].split("\n", 1)[1]

JSON = """{"name": "main", "inputs": ["inp_0:0"], "outputs": ["relu:0"], "nodes": [
  {"index": 0, "name": "inp_0", "shared_ref": "", "optype": "input", "parents": [], "inputs": [], "outputs": [
    {"name": "inp_0:0", "alias": "inp_0", "dtype": "float32", "layout": "NCHW", "shape": [1, 3, 4, 4]}],
   "attrs": {}, "weights": {}},
  {"index": 1, "name": "conv2d", "shared_ref": "", "optype": "nn.conv2d", "parents": ["inp_0"],
   "inputs": ["inp_0:0"], "outputs": [
    {"name": "conv2d:0", "alias": "", "dtype": "float32", "layout": "NCHW", "shape": [1, 6, 4, 4]}],
   "attrs": {"out_layout": "NCHW", "data_layout": "NCHW", "padding": "0,0,0,0", "groups": "1",
             "kernel_layout": "OIHW", "strides": "1,1", "dilation": "1,1", "out_dtype": "float32"},
   "weights": {"weight": {"name": "const", "alias": "", "dtype": "float32", "layout": "OIHW",
                          "shape": [6, 3, 1, 1]}}},
  {"index": 2, "name": "relu", "shared_ref": "", "optype": "nn.relu", "parents": ["conv2d"],
   "inputs": ["conv2d:0"], "outputs": [
    {"name": "relu:0", "alias": "relu", "dtype": "float32", "layout": "NCHW", "shape": [1, 6, 4, 4]}],
   "attrs": {}, "weights": {}}]}"""

PROTOTXT = """name: "main"
layer {
  name: "inp_0"
  type: "input"
  top: "inp_0"
  layer_param {
    idx: 0
    output_0: "inp_0:0(inp_0)<1,3,4,4|float32|NCHW>"
  }
}
layer {
  name: "conv2d"
  type: "nn_conv2d"
  top: "conv2d"
  bottom: "inp_0"
  layer_param {
    out_layout: "NCHW"
    out_dtype: "float32"
    groups: "1"
    kernel_layout: "OIHW"
    param_weight: "const<6,3,1,1|float32|OIHW>"
    strides: "1,1"
    idx: 1
    padding: "0,0,0,0"
    data_layout: "NCHW"
    dilation: "1,1"
    output_0: "conv2d:0<1,6,4,4|float32|NCHW>"
    input_0: "inp_0:0(inp_0)<1,3,4,4|float32|NCHW>"
  }
}
layer {
  name: "relu"
  type: "nn_relu"
  top: "relu"
  bottom: "conv2d"
  layer_param {
    idx: 2
    input_0: "conv2d:0<1,6,4,4|float32|NCHW>"
    output_0: "relu:0(relu)<1,6,4,4|float32|NCHW>"
  }
}
"""

RELAX = """@I.ir_module
class Module:
    @R.function
    def main(inp_0: R.Tensor((1, 3, 4, 4), dtype="float32")) -> R.Tensor((1, 6, 4, 4), dtype="float32"):
        with R.dataflow():
            conv2d: R.Tensor((1, 6, 4, 4), dtype="float32") = R.nn.conv2d(inp_0, metadata["relax.expr.Constant"][0], \
strides=[1, 1], padding=[0, 0, 0, 0], dilation=[1, 1], groups=1, data_layout="NCHW", kernel_layout="OIHW", \
out_layout="NCHW", out_dtype="float32")
            relu: R.Tensor((1, 6, 4, 4), dtype="float32") = R.nn.relu(conv2d)
            R.output(relu)
        return relu"""

TORCH = """main(
  (conv2d): Conv2d(3, 6, kernel_size=(1, 1), stride=(1, 1), bias=False)
  (relu): ReLU()
)"""

BLOCK = "    res_1 = relax.op.nn.conv2d(res_0, weight_1, strides=[1, 1], padding=[0, 0, 0, 0], dilation=[1, 1], " \
        "groups=1, data_layout=\"NCHW\", kernel_layout=\"OIHW\", out_layout=\"NCHW\", out_dtype=\"float32\")"


class M(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 6, 1, bias=False)
        self.relu = torch.nn.ReLU()

    def forward(self, data):
        x = self.conv(data)
        return self.relu(x)


def in_order(text):
    """A printed joint, or an entry of prototxt, with its attributes sorted."""
    lines = []
    for line in text.split("\n"):
        head, found, rest = line.partition("ATTRS: ")
        lines.append(head + found + "".join(sorted(part + " " for part in rest.split())) if found else line)
    text = "\n".join(lines)

    def entries(match):
        return match[1] + "".join(sorted(match[2].splitlines(True))) + match[3]
    return re.sub(r"(  layer_param \{\n)(.*?)(  \}\n)", entries, text, flags=re.DOTALL)


class TutorialTest(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        torch.manual_seed(0)
        cls.module = M().eval()
        with torch.no_grad():
            cls.relax = from_fx(fx.symbolic_trace(cls.module), [((1, 3, 4, 4), "float32")],
                                keep_params_as_input=False)
        cls.graph = from_relax(cls.relax)

    def test_printed(self):
        self.assertEqual(in_order(str(self.graph)), in_order(PRINTED))

    def test_json(self):
        value = self.graph.to_json()
        self.assertEqual({key: value[key] for key in json.loads(JSON)}, json.loads(JSON))
        self.assertEqual(set(value) - set(json.loads(JSON)), {"prims", "notes"})

    def test_prototxt(self):
        self.assertEqual(in_order(self.graph.prototxt()), in_order(PROTOTXT))

    def test_program(self):
        """The program prints the same from the file."""
        with tempfile.TemporaryDirectory() as folder:
            self.graph.save(pathlib.Path(folder) / "net.json")
            for option, expected in (([], PRINTED), (["--prototxt"], PROTOTXT)):
                done = subprocess.run([PROGRAM, "graph", "net.json", *option], cwd=folder, capture_output=True, text=True)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual(in_order(done.stdout), in_order(expected))

    def test_queries(self):
        graph = self.graph
        found = [graph.text(joint) for joint in graph.joints if joint.optype == "nn.conv2d"]
        self.assertEqual(list(map(in_order, found)), [in_order(NODES[1])])
        node = graph.joint("conv2d")
        self.assertEqual([graph.text(parent) for parent in graph.parents(node)], [NODES[0]])
        self.assertEqual([graph.text(child) for child in graph.children(node)], [NODES[2]])
        output = node.outputs[0]
        self.assertEqual((output.name, output.shape, output.dtype, output.layout),
                         ("conv2d:0", [1, 6, 4, 4], "float32", "NCHW"))
        self.assertEqual(in_order(graph.text(graph.producer(output.name))), in_order(NODES[1]))
        self.assertEqual([graph.text(joint) for joint in graph.consumers(output.name)], [NODES[2]])

    def test_to_relax(self):
        with tempfile.TemporaryDirectory() as folder:
            module = to_relax(self.graph, folder)
            script = (pathlib.Path(folder) / "main.py").read_text()
        shown = module.script(show_meta=False)
        shown = shown[shown.index("@I.ir_module"):].split("\n\n#")[0].rstrip()
        self.assertEqual(shown.replace("ir.GenericConst", "relax.expr.Constant"), RELAX)
        options = re.search(r"weight_1, (.*)\)$", BLOCK)[1].replace('"', "'")
        self.assertIn(f"bb.emit(op.nn.conv2d(inp_0, const_, {options}), 'conv2d')", script)

    def test_to_torch(self):
        with tempfile.TemporaryDirectory() as folder:
            self.graph.save(pathlib.Path(folder) / "net.json")
            module = to_torch(Graph.load(pathlib.Path(folder) / "net.json"), pathlib.Path(folder) / "made")
        self.assertEqual(repr(module), TORCH.replace("main(", "Main(").replace("  (relu): ReLU()\n", ""))
        x = torch.from_numpy(numpy.random.default_rng(0).normal(size=(1, 3, 4, 4)).astype("float32"))
        self.assertTrue(torch.equal(module(x), self.module(x)))


if __name__ == "__main__":
    unittest.main()
