#!/usr/bin/env python3
"""Tests that graphs survive their way through torch and ONNX, and that trained weights fit every one of them.

    torch_trip.py MSCGYM [NETWORK ...]

For each network: torch -> JSON -> a generated module of torch -> ONNX -> JSON, where the ONNX file is written by
torch's exporter, and by `mscgym export` from the JSON of the generated module. The last JSON must be the first one:
- the same operators, attributes, connections, types, lengths with their symbols, layouts, inputs and outputs
- the same elements of weights and constants
- the same names of inputs, outputs and layers.
Names of other joints, of constants, and the form in which operands are stored (a constant or a weight, transposed
or not, a slice of the whole) belong to the writer of a file, and may differ.

A state dict that was trained further must fit the JSON and the ONNX file before normalisations are folded, also of a
pruned module; outputs are torch's. What does not fit is refused with a line that names the weight.

Exits with 1 if a check fails, 77 without torch, torchvision, onnx, onnxscript or onnxruntime.
"""
import contextlib
import inspect
import io
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import warnings

try:
    import numpy
    import onnx  # noqa: F401, torch's exporter needs it
    import onnxruntime
    import onnxscript  # noqa: F401
    import torch
    import torchvision
    from torch import nn
    from torch.nn import functional
except ImportError as error:
    print(f"skipped: {error}; needs numpy, onnx, onnxruntime, onnxscript, torch and torchvision")
    sys.exit(77)

PYTHON = pathlib.Path(__file__).resolve().parents[2] / "python"
sys.path.insert(0, str(PYTHON))
PROGRAM = os.path.abspath(sys.argv.pop(1))
os.environ["PATH"] = os.path.dirname(PROGRAM) + os.pathsep + os.environ["PATH"]
import mscgym  # noqa: E402
from mscgym.emitter import ROLES, without_fused  # noqa: E402
from mscgym.graph import Graph  # noqa: E402
from mscgym.torch import from_torch, to_torch  # noqa: E402

N = 4  # samples


class Convolutional(nn.Module):
    """Convolutions with and without a bias, before a normalisation; two outputs by name."""

    def __init__(self, n=8):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, n, 3, 1, 1, bias=False), nn.BatchNorm2d(n)
        self.conv2, self.bn2 = nn.Conv2d(n, 16, 3, 2, 1), nn.BatchNorm2d(16)
        self.fc = nn.Linear(256, 5)

    def forward(self, image):
        x = functional.max_pool2d(functional.relu(self.bn1(self.conv1(image))), 2)
        x = functional.relu(self.bn2(self.conv2(x)))
        return {"scores": self.fc(x.flatten(1)), "features": x}


class Recurrent(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.layer, self.fc = kind(8, 12, 2, batch_first=True, bidirectional=True), nn.Linear(24, 5)

    def forward(self, rows):
        return self.fc(self.layer(rows)[0][:, -1])


def encoder():
    layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True, activation="gelu")
    return nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)


NETWORKS = {
    "convolutional": (Convolutional, (3, 16, 16)),
    "resnet18": (lambda: torchvision.models.resnet18(num_classes=10), (3, 64, 64)),
    "mobilenet_v3": (lambda: torchvision.models.mobilenet_v3_small(num_classes=10), (3, 64, 64)),
    "encoder": (encoder, (5, 16)),
    "lstm": (lambda: Recurrent(nn.LSTM), (6, 8)),
    "gru": (lambda: Recurrent(nn.GRU), (6, 8)),
}


def make(name):
    torch.manual_seed(0)
    build, shape = NETWORKS[name]
    module = build()
    randomise(module)
    return module.eval(), torch.randn(N, *shape)


def randomise(module):
    """Other parameters and running statistics, as a training leaves them."""
    with torch.no_grad():
        for key, part in module.state_dict().items():
            if part.is_floating_point():
                part.mul_(1.1).add_(0.02 + 0.05 * torch.rand_like(part))


def first_input(module):
    return next(iter(inspect.signature(module.forward).parameters))


# ---- Two graphs side by side -------------------------------------------------------------------

class Side:
    """A graph as the program reads it, with fused joints split."""

    def __init__(self, path):
        self.graph = without_fused(Graph.load(path))
        self.prims = {prim["name"]: prim for prim in self.graph.prims}
        self.makers = {t.name: (joint, i) for joint in self.graph.joints for i, t in enumerate(joint.outputs)}

    def tensor(self, name):
        joint, i = self.makers[name]
        return joint.outputs[i]

    def operands(self, joint):
        """Tensors and arrays, in the order of the operator's operands."""
        roles, names, found = ROLES.get(joint.optype, ["input", "weight", "bias"]), list(joint.inputs), []
        for role in roles:
            if role in joint.weights:
                weight = joint.weights[role]
                array = self.graph.arrays[weight.name]
                found.append(array.T if role == "weight" and weight.layout == "IO" else array)
            elif names:
                found.append(self.operand(names.pop(0)))
        return found + [self.operand(name) for name in names]

    def length(self, name):
        """A length as an expression of symbols. Factors and terms may have any order."""
        prim = self.prims.get(name, {"optype": "", "attrs": {"value": name}, "parents": []})
        parts = [self.length(parent) for parent in prim["parents"]]
        parts = sorted(parts, key=str) if prim["optype"] in ("Add", "Mul") else parts
        return (prim["optype"], parts) if parts else prim["attrs"].get("value", name)

    def source(self, name):
        """The tensor, or what a slice of it takes as a whole."""
        joint, _ = self.makers.get(name, (None, 0))
        if joint and joint.optype == "strided_slice" and joint.ints("strides") in ([], [1]):
            before, after = self.tensor(joint.inputs[0]), joint.outputs[0]
            if (before.shape, before.prims) == (after.shape, after.prims):
                return self.source(before.name)
        return name

    def operand(self, name):
        name = self.source(name)
        if name and self.makers[name][0].optype == "constant":
            return self.graph.arrays[self.makers[name][0].weights["const"].name]
        return name


def number(text):
    """A number with the digits that float32 has."""
    try:
        return f"{float(text):.6g}"
    except ValueError:
        return text


def attributes(joint, rank):
    """The attributes in one spelling. The shape of a reshape is that of its output."""
    derived = {"reshape": ["shape", "allowzero"], "broadcast_to": ["shape"]}.get(joint.optype, [])
    found = {key: number(value) for key, value in joint.attrs.items() if key not in derived}
    if set(found.get("strides", "").split(",")) <= {"1", ""}:
        found.pop("strides", None)
    if "axis" in found and rank:
        axes = sorted(int(axis) % rank for axis in joint.attrs["axis"].split(",") if axis)
        found["axis"] = ",".join(map(str, axes))
    return found


class Comparison:
    """Walks two graphs from their outputs. `differences` says where they are not the same."""

    def __init__(self, a, b):
        self.a, self.b = a, b
        self.pairs, self.differences = {}, []
        names = [[side.tensor(name).alias for name in side.graph.outputs] for side in (a, b)]
        self.expect(names[0] == names[1], "outputs", *names)
        inputs = [[side.tensor(name).alias or name.rpartition(":")[0] for name in side.graph.inputs] for side in (a, b)]
        self.expect(inputs[0] == inputs[1], "inputs", *inputs)
        for x, y in zip(a.graph.outputs, b.graph.outputs):
            self.compare(x, y)

    def expect(self, is_same, where, x, y):
        if not is_same:
            self.differences.append(f"{where}: {x} | {y}")
        return is_same

    def compare(self, x, y):
        """Tensors by name, or constants as arrays."""
        if isinstance(x, str) != isinstance(y, str):
            self.differences.append(f"a constant for a tensor: {x if isinstance(x, str) else x.shape} | "
                                    f"{y if isinstance(y, str) else y.shape}")
        elif not isinstance(x, str):
            is_same = x.shape == y.shape and x.dtype == y.dtype and numpy.allclose(x, y, 1e-6, 1e-7)
            self.expect(is_same, "elements", f"{x.dtype}{x.shape}", f"{y.dtype}{y.shape}")
        elif x and y and x not in self.pairs:
            self.pairs[x] = y
            self.compare_joints(x, y)
        else:
            self.expect(self.pairs.get(x, "") == y, "connections", x, y)

    def compare_joints(self, x, y):
        (p, i), (q, k) = self.a.makers[x], self.b.makers[y]
        if not self.expect((p.optype, i) == (q.optype, k), x, p.optype, q.optype):
            return
        t, u = p.outputs[i], q.outputs[k]
        for member in ("shape", "dtype", "layout"):
            self.expect(getattr(t, member) == getattr(u, member), f"{x} {member}", getattr(t, member),
                        getattr(u, member))
        lengths = [[side.length(prim) for prim in z.prims] for side, z in ((self.a, t), (self.b, u))]
        self.expect(lengths[0] == lengths[1], f"{x} lengths", *lengths)
        rank = len(self.a.tensor(p.inputs[0]).shape) if p.inputs and p.inputs[0] else len(t.shape)
        rank = max(rank, len(t.shape)) if p.optype == "expand_dims" else rank
        self.expect(attributes(p, rank) == attributes(q, rank), f"{x} attributes", p.attrs, q.attrs)
        if f"{p.name}.weight" in [weight.name for weight in p.weights.values()]:
            self.expect(p.name == q.name, "layer", p.name, q.name)
        operands = self.a.operands(p), self.b.operands(q)
        if self.expect(len(operands[0]) == len(operands[1]), f"{x} operands", *map(len, operands)):
            for one, other in zip(*operands):
                self.compare(one, other)


SELECTED = [name for name in sys.argv[1:] if name in NETWORKS]
sys.argv[1:] = [word for word in sys.argv[1:] if word not in NETWORKS]


class TripTest(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)

    def mscgym(self, *command):
        done = subprocess.run([PROGRAM, *map(str, command)], cwd=self.folder, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)

    def read(self, model):
        """A model as the program reads it."""
        path = self.folder / f"{model}.read.json"
        self.mscgym("graph", model, "-o", path)
        return Side(path)

    def same(self, first, other):
        self.assertEqual(Comparison(self.read(first), self.read(other)).differences[:10], [])

    def test_round_trip(self):
        for name in SELECTED or NETWORKS:
            with self.subTest(network=name):
                module, x = make(name)
                lengths = {first_input(module): {0: "N"}}
                from_torch(module, x, dynamic_shapes=lengths).save(self.folder / "first.json")
                made = to_torch(Graph.load(self.folder / "first.json"), self.folder / "made")
                from_torch(made, x, dynamic_shapes=lengths).save(self.folder / "second.json")
                self.same("first.json", "second.json")
                self.mscgym("export", "--model", "second.json", "-o", "program.onnx")
                self.same("first.json", "program.onnx")
                mscgym.export_onnx(made, (x,), str(self.folder / "torch.onnx"))
                self.same("first.json", "torch.onnx")

    # ---- Weights ---------------------------------------------------------------------------------

    def save_state(self, module, change=lambda state: state):
        state = {key: part.numpy() for key, part in module.state_dict().items()}
        numpy.savez(self.folder / "state.npz", **change(state))

    def update(self, model):
        """The lines with which the program refuses the weights in state.npz, or "" if it takes them."""
        command = [PROGRAM, "export", "--model", model, "--weights", "state.npz", "-o", "new.onnx"]
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True)
        self.assertEqual(done.returncode != 0, bool(done.stderr.strip()), done.stderr)
        self.assertLessEqual(len(done.stderr.strip().splitlines()), 1, done.stderr)
        return done.stderr.strip()

    def expect_outputs(self, module, x):
        session = onnxruntime.InferenceSession(self.folder / "new.onnx")
        found = session.run(None, {session.get_inputs()[0].name: x.numpy()})
        with torch.no_grad():
            expected = module(x)
        expected = [*expected.values()] if isinstance(expected, dict) else [expected]
        for a, b in zip(found, expected, strict=True):
            self.assertEqual(a.shape, b.shape)
            self.assertLessEqual(numpy.abs(a - b.numpy()).max(), 1e-5 * float(b.abs().max()))

    def write_files(self, name):
        """The network as JSON of its module and of the generated module, and as ONNX with its normalisations."""
        module, x = make(name)
        lengths = {first_input(module): {0: "N"}}
        graph = from_torch(module, x, dynamic_shapes=lengths)
        graph.save(self.folder / "first.json")
        made = to_torch(graph, self.folder / "made")
        from_torch(made, x, dynamic_shapes=lengths).save(self.folder / "second.json")
        with contextlib.redirect_stdout(io.StringIO()):
            torch.onnx.export(module, (x,), self.folder / "torch.onnx", dynamo=True, external_data=False,
                              optimize=False)
        return module, x

    def test_update(self):
        """A state dict of the module fits all files."""
        for name in SELECTED or ["convolutional", "encoder", "lstm"]:
            module, x = self.write_files(name)
            randomise(module)
            self.save_state(module)
            for model in ("first.json", "second.json", "torch.onnx"):
                with self.subTest(network=name, model=model):
                    self.assertEqual(self.update(model), "")
                    self.expect_outputs(module, x)

    def test_update_pruned(self):
        """A state dict of a pruned module fits the ONNX file of the whole module, and the graph of the pruned module.
        The graph of the whole module keeps its lengths, and says so.
        """
        _, x = self.write_files("convolutional")
        small = Convolutional(4).eval()
        randomise(small)
        from_torch(small, x, dynamic_shapes={"image": {0: "N"}}).save(self.folder / "small.json")
        randomise(small)
        self.save_state(small)
        for model in ("torch.onnx", "small.json"):
            self.assertEqual(self.update(model), "")
            self.expect_outputs(small, x)
        self.assertRegex(self.update("first.json"), r"'conv1.weight' is float32\[8,3,3,3\], but .* float32\[4,3,3,3\]")

    def test_refused(self):
        module, _ = self.write_files("convolutional")
        cases = [
            (lambda state: {f"module.{key}": part for key, part in state.items()}, "remove 'module.' from the names"),
            (lambda state: {key: part for key, part in state.items() if not key.startswith("bn1.")},
             "have 'conv1.weight' but not 'bn1"),
            (lambda state: state | {"fc.weight": state["fc.weight"].T}, r"'fc.weight' is float32\[5,256\], but"),
            (lambda state: {key.replace("fc", "head"): part for key, part in state.items()},
             "'head.weight' is not in the model"),
            (lambda state: state | {"fc.bias": numpy.full(5, numpy.nan, "f4")},
             "element 0 of 5 of the new 'fc.bias' is"),
        ]
        for change, line in cases:
            self.save_state(module, change)
            for model in ("first.json", "second.json", "torch.onnx"):
                with self.subTest(line=line, model=model):
                    self.assertRegex(self.update(model), line)
        self.mscgym("graph", "first.json", "-o", "folded.json")
        self.save_state(module)
        self.assertRegex(self.update("folded.json"), "normalisation bn1 was folded into another layer")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    unittest.main()
