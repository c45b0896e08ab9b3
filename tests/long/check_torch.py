#!/usr/bin/env python3
"""Tests details of graphs of torch modules and of generated modules.

    check_torch.py MSCGYM

Expected outputs are torch's. Exits with 77 without torch.
"""
import base64
import contextlib
import io
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import textwrap
import unittest
import warnings
from unittest import mock

try:
    import numpy
    import torch
    from torch import nn
    from torch.nn import functional
except ImportError as error:
    print(f"skipped: {error}; needs numpy and torch")
    sys.exit(77)

PYTHON = pathlib.Path(__file__).resolve().parents[2] / "python"
sys.path[:0] = [str(PYTHON), str(PYTHON.parent / "tests" / "pipeline")]
from mscgym.graph import Graph, GraphError  # noqa: E402
from mscgym.torch import UnsupportedOperator, from_exported, from_torch, to_torch  # noqa: E402

PROGRAM = os.path.abspath(sys.argv.pop(1)) if len(sys.argv) > 1 else ""
os.environ["PATH"] = os.path.dirname(PROGRAM) + os.pathsep + os.environ["PATH"]


class Twice(nn.Module):
    """One layer called twice, a tied weight, a parameter read as data, and outputs in a dictionary with a tuple."""

    def __init__(self):
        super().__init__()
        self.words, self.mix, self.act = nn.Embedding(20, 8, padding_idx=0), nn.Linear(8, 8), nn.ReLU()
        self.head = nn.Linear(8, 20, bias=False)
        self.head.weight = self.words.weight
        self.place = nn.Parameter(torch.randn(1, 1, 8))
        self.register_buffer("scale", torch.tensor([2.0]))

    def forward(self, ids, mask):
        x = self.words(ids) + self.place
        x = self.act(self.mix(self.act(self.mix(x))))
        x = x * mask.unsqueeze(-1).to(x.dtype) * self.scale
        length = ids.shape[1]
        return {"logits": self.head(x), "parts": (x.sum(1), x.reshape(-1, 8)[:length]), "same": x}


class Tied(nn.Module):
    """Weights that layers read in two layouts."""

    def __init__(self):
        super().__init__()
        self.words, self.kernel = nn.Parameter(torch.randn(8, 8)), nn.Parameter(torch.randn(3, 3, 2, 2))
        self.bias = nn.Parameter(torch.randn(8))

    def forward(self, x):
        y = functional.conv_transpose2d(functional.conv2d(x, self.kernel), self.kernel)
        z = functional.linear(torch.relu(y @ self.words), self.words, self.bias)
        return torch.addmm(self.bias, z[0, 0], self.words) + functional.linear(z, self.words)


class Images(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 16, 3, 2, 1, bias=False), nn.BatchNorm2d(16), nn.SiLU())
        self.attn, self.head = nn.MultiheadAttention(16, 2, batch_first=True), nn.Linear(16, 5)

    def forward(self, x):
        y = self.stem(x).flatten(2).transpose(1, 2)
        return self.head(self.attn(y, y, y, need_weights=False)[0].mean(1))


def operator_cases():
    """Functions of operators that no module of torch_graphs.py uses, and their inputs."""
    x, ids = torch.randn(2, 3, 8, 8), torch.tensor([[1, 0, 2], [2, 2, 1]])
    return [
        (lambda x: torch.roll(x, (1, -2), (2, 3)), x), (lambda x: functional.adaptive_avg_pool2d(x, (3, 5)), x),
        (lambda x: functional.adaptive_avg_pool2d(x, 4), x), (lambda x: torch.var(x, 1) + torch.std(x, 1), x),
        (lambda x: functional.interpolate(x, (5, 13), mode="bilinear"), x),
        (lambda x: functional.interpolate(x, scale_factor=2.0, mode="bicubic", align_corners=True), x),
        (lambda x: functional.interpolate(x, scale_factor=1.5), x),
        (lambda x: functional.pad(x, (1, 2, 3, 0), mode="reflect"), x),
        (lambda x: functional.pad(x, (1, 0, 0, 2), value=-1.5), x),
        (lambda x: functional.conv2d(x, torch.ones(4, 3, 3, 3), padding="same", dilation=2), x),
        (lambda x: torch.flip(x, [1, 3]) - x.repeat(1, 1, 1, 1), x), (lambda x: torch.cumsum(x, 2).tril(), x),
        (lambda x: x.topk(3, -1).values + x.sort(-1, descending=True).values[..., :3], x),
        (lambda x: x.max(2).values + x.amin(2) + x.argmax(2), x), (lambda x: x[:, ids[0]], x),
        (lambda x: x[:, :, ids[0], ids[1]], x), (lambda x: torch.gather(x, 3, x.argsort(3)), x),
        (lambda x: torch.einsum("bchw,bdhw->bcd", x, x), x), (lambda x: functional.elu(x) + functional.celu(x, 2.0), x),
        (lambda x: torch.clamp(x, max=0.5) + functional.hardtanh(x) + functional.leaky_relu(x, 0.2), x),
        (lambda x: functional.gelu(x, approximate="tanh") + functional.glu(x, 3).repeat(1, 1, 1, 2), x),
        (lambda x: torch.where(x > 0, x, 0.5) + (x == x) * 2 - (x.abs() != 1).float(), x),
        (lambda x: torch.logical_and(x > 0, x < 1) | (x < -1), x), (lambda x: x // 0.3 + x % 0.7, x),
        (lambda x: torch.pow(x.abs(), 1.5) + 2.0 ** x + torch.rsqrt(x.abs() + 1) + torch.log1p(x.abs()), x),
        (lambda x: torch.stack(x.unbind(1), -1) + 0 * x.permute(0, 2, 3, 1), x),
        (lambda x: functional.scaled_dot_product_attention(x, x, x, is_causal=True, scale=0.3), x),
        (lambda x: functional.conv_transpose2d(x, torch.ones(3, 4, 3, 3), stride=2, padding=1, output_padding=1), x),
        (lambda x: functional.max_pool2d(x, 3, 2, 1, ceil_mode=True), x),
        (lambda x: functional.avg_pool2d(x, 3, 2, 1, count_include_pad=False), x),
        (lambda x: functional.normalize(x, dim=1) + functional.softmin(x, 1) + torch.logsumexp(x, 1, True), x),
        (lambda x: torch.addmm(torch.ones(8), x[0, 0], x[1, 0]) @ x[0, 1], x),
        (lambda i: torch.zeros(2, 4).scatter(1, i, 1.0 * i) + functional.one_hot(i, 4).sum(1), ids),
        (lambda i: (i * 3 + 1).float().mean(), ids),
    ]


class Function(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


class Values(nn.Module):
    def forward(self, x):
        return torch.linalg.svd(x)[1]


class TorchTest(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)

    def mscgym(self, *command):
        done = subprocess.run([PROGRAM, *map(str, command)], cwd=self.folder, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def run_graph(self, model, inputs, names, *options):
        given = []
        for name, value in inputs.items():
            numpy.save(self.folder / f"{name}.npy", value.numpy())
            given += ["--input", f"{name}={name}.npy"]
        self.mscgym("run", model, *given, "--output", "out", "--repeat", "1", *options)
        return [numpy.load(self.folder / "out" / f"{name}.npy") for name in names]

    def near(self, found, expected, share=1e-5):
        for a, b in zip(found, expected, strict=True):
            b = b.detach().numpy()
            self.assertEqual((a.shape, a.dtype), (b.shape, b.dtype))
            self.assertLessEqual(abs(a.astype(float) - b).max(), share * (abs(b).max() or 1))

    def test_shared_and_named(self):
        module = Twice().train()
        inputs = {"ids": torch.randint(0, 20, (3, 6)), "mask": torch.ones(3, 6, dtype=torch.int64)}
        graph = from_torch(module, kwargs={key: x[:2] for key, x in inputs.items()},
                           dynamic_shapes={key: {0: "batch", 1: "length"} for key in inputs})
        self.assertTrue(module.training)
        names = [joint.name for joint in graph.joints if "weight" in joint.weights]
        self.assertEqual(names, ["mix", "mix_1", "head"])
        self.assertEqual(graph.joint("head").weights["weight"].name, "words.weight")
        self.assertEqual({"batch", "length"}, {p["name"] for p in graph.prims if p["optype"] == "shape"})
        aliases = {tensor.name: tensor.alias for tensor in graph.tensors()}
        outputs = [aliases[name] for name in graph.outputs]
        self.assertEqual(outputs, ["logits", "parts_0", "parts_1", "same"])
        graph.save(self.folder / "net.json")
        result = module.eval()(**inputs)
        expected = [result["logits"], *result["parts"], result["same"]]
        self.near(self.run_graph("net.json", inputs, outputs), expected)
        made = to_torch(graph, self.folder / "made", inputs={k: v.numpy() for k, v in inputs.items()},
                        outputs=[x.detach().numpy() for x in expected])
        self.near([x.detach().numpy() for x in made(**inputs)], expected)
        self.assertEqual({*made.state_dict()}, {*module.state_dict()} - {"head.weight"})
        self.assertEqual({n for n, _ in made.named_parameters()}, {n for n, _ in module.named_parameters()})
        made(**inputs)[0].sum().backward()
        self.assertEqual(made.words.weight.grad.shape, (20, 8))
        environment = {**os.environ, "PYTHONPATH": str(PYTHON)}
        done = subprocess.run([sys.executable, self.folder / "made" / "main.py"], env=environment, capture_output=True,
                              text=True)
        self.assertEqual((done.returncode, done.stdout.count("largest difference")), (0, 4), done.stdout + done.stderr)

    def test_operators(self):
        for number, (function, x) in enumerate(operator_cases()):
            with self.subTest(case=number), torch.no_grad():
                module = Function(function)
                graph = from_torch(module, x)
                graph.save(self.folder / "net.json")
                self.near(self.run_graph("net.json", {"x": x}, ["output"]), [module(x)])
                self.near([to_torch(graph, self.folder / "made")(x).numpy()], [module(x)])

    def test_two_layouts(self):
        module, x = Tied().eval(), torch.randn(2, 3, 8, 8)
        graph = from_torch(module, x)
        graph.save(self.folder / "net.json")
        with torch.no_grad():
            self.near(self.run_graph("net.json", {"x": x}, ["output"]), [module(x)])
            self.near([to_torch(graph, self.folder / "made")(x).numpy()], [module(x)])

    def test_unsupported(self):
        module = nn.Sequential(nn.Linear(4, 4), Values())
        with self.assertRaises(UnsupportedOperator) as caught:
            from_torch(module, torch.randn(4, 4))
        message = str(caught.exception)
        self.assertRegex(message, r"svd.* in module '1' \(.*check_torch.py:\d+: .*torch.linalg.svd")
        with self.assertRaisesRegex(GraphError, "names 'y', which is not an input; inputs: x"):
            from_torch(Images(), torch.randn(2, 3, 8, 8), dynamic_shapes={"y": {0: "n"}})

    def test_exported(self):
        module, x = Images().eval(), torch.randn(2, 3, 16, 16)
        graph = from_exported(torch.export.export(module, (x,), dynamic_shapes=({0: torch.export.Dim("n")},)),
                              dynamic_shapes={"x": {0: "n"}})
        self.assertEqual([p["name"] for p in graph.prims][:1], ["n"])
        self.assertEqual(graph.joint("stem.1").optype, "nn.batch_norm")

    def test_new_weights(self):
        """A state dict as it is replaces the weights, before the normalisation is folded."""
        module, x = Images().eval(), torch.randn(2, 3, 16, 16)
        from_torch(module, x).save(self.folder / "net.json")
        with torch.no_grad():
            for part in module.state_dict().values():
                if part.is_floating_point():
                    part.copy_(torch.rand_like(part) * 0.5 + 0.1)
        numpy.savez(self.folder / "new.npz", **{key: part.numpy() for key, part in module.state_dict().items()})
        self.mscgym("export", "--model", "net.json", "--weights", "new.npz", "-o", "new.onnx")
        self.near(self.run_graph("new.onnx", {"x": x}, ["output"]), [module(x)])

    def test_strategy(self):
        """Fake quantisation computes what the program computes with the strategy, and gradients pass it."""
        module, x = Images().eval(), torch.randn(8, 3, 16, 16)
        from_torch(module, x[:2], dynamic_shapes={"x": {0: "batch"}}).save(self.folder / "net.json")
        numpy.savez(self.folder / "in.npz", x=x.numpy())
        env = {"choices": [{"bits": 4, "observer": "mse"}, {"bits": 8}]}
        gym = {"record": "r.jsonl", "env": env, "agent": {"type": "random"}, "budget": {"trials": 5}}
        config = {"model": "net.json", "dataset": {"inputs": "in.npz"}, "workspace": "ws",
                  "quantize": {"target": "generic", "strategy_file": "q.json", "gym": [gym]}}
        (self.folder / "search.json").write_text(json.dumps(config))
        self.mscgym("search", "search.json")
        strategy = self.folder / "ws" / "q.json"
        with self.assertRaisesRegex(GraphError, "'stem.1' is not; make that graph with"):
            to_torch(Graph.load(self.folder / "net.json"), self.folder / "made", strategy=strategy)
        self.mscgym("graph", "net.json", "-o", "folded.json")
        graph = Graph.load(self.folder / "folded.json")
        made = to_torch(graph, self.folder / "made", strategy=strategy, learn_scales=True)
        expected = [torch.from_numpy(y) for y in self.run_graph(
            "net.json", {"x": x}, ["output"], "--strategy", strategy)]
        plain = self.run_graph("net.json", {"x": x}, ["output"])[0]
        self.assertGreater(abs(plain - expected[0].numpy()).max(), 1e-4)
        self.near([made(x).detach().numpy()], expected)
        made(x).square().mean().backward()
        without = [name for name, part in made.named_parameters() if part.grad is None]
        self.assertEqual(without, [])

    def test_integers(self):
        """Operators on integers, with zero points for all, rows, columns and channels, bit for bit."""
        try:
            import integer_models
        except ImportError as error:
            self.skipTest(f"skipped: {error}")
        inputs, outputs = integer_models.write(self.folder / "net.onnx")
        self.mscgym("graph", "net.onnx", "-o", "net.json")
        made = to_torch(Graph.load(self.folder / "net.json"), self.folder / "made")
        for (name, expected), value in zip(outputs.items(), made(*map(torch.from_numpy, inputs.values())), strict=True):
            with self.subTest(name):
                self.assertEqual(value.numpy().dtype, expected.dtype)
                numpy.testing.assert_array_equal(value.numpy(), expected)

    def test_dynamic(self):
        """Activations that are quantised dynamically: the compressed graph has onnxruntime's bits, and the float graph
        with the strategy computes the same, with gradients."""
        try:
            import onnxruntime
            import check_dynamic
        except ImportError as error:
            self.skipTest(f"skipped: {error}")
        before = os.getcwd()
        os.chdir(self.folder)
        self.addCleanup(os.chdir, before)
        for make in (check_dynamic.layers, check_dynamic.gemm):
            for target in ("onnxruntime", "generic"):
                dims, _ = make("model.onnx")
                x = torch.randn(8, *dims)
                numpy.savez("x.npz", x=x.numpy())
                check_dynamic.quantize(PROGRAM, "cpu", target, {"rules": [
                    {"kind": "activation", "choices": ["8 dynamic"]}, {"kind": "weight", "choices": ["8"]}]})
                session = onnxruntime.InferenceSession("small.onnx", providers=["CPUExecutionProvider"])
                expected = session.run(None, {"x": x.numpy()})[0]
                for model in ("small", "model"):
                    self.mscgym("graph", f"{model}.onnx", "-o", f"{model}.json")
                small = to_torch(Graph.load("small.json"), "small")
                numpy.testing.assert_array_equal(small(x).numpy(), expected)
                made = to_torch(Graph.load("model.json"), "made", strategy="strategy.json", learn_scales=True)
                self.near([made(x).detach().numpy()], [torch.from_numpy(expected)])
                made(x).square().mean().backward()
                self.assertEqual([name for name, part in made.named_parameters() if part.grad is None], [])

    def test_round_trip(self):
        """The graph of a generated module has the joints, weights and layers of the graph that it was made from."""
        module, x = Images().eval(), torch.randn(2, 3, 16, 16)
        first = from_torch(module, x)
        second = from_torch(to_torch(first, self.folder / "made"), x)
        self.assertEqual([joint.optype for joint in first.joints if joint.optype != "constant"],
                         [joint.optype for joint in second.joints if joint.optype != "constant"])
        layers = [[joint.name for joint in graph.joints if {"weight", "mean"} & {*joint.weights}]
                  for graph in (first, second)]
        self.assertEqual(*layers)
        self.assertEqual(first.notes, second.notes)
        for name, array in first.arrays.items():
            self.assertTrue(numpy.array_equal(array, second.arrays[name]), name)

    def test_from_onnx(self):
        """Graphs of ONNX become modules: fused attention, recurrent layers, slopes, constant indices."""
        try:
            import onnxscript  # noqa: F401, torch's exporter needs it
        except ImportError as error:
            self.skipTest(f"skipped: {error}")
        layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True, activation="gelu")
        modules = [(nn.TransformerEncoder(layer, 1, enable_nested_tensor=False), torch.randn(2, 5, 16)),
                   (nn.Sequential(nn.GRU(16, 8, batch_first=True), Function(lambda y: y[0])), torch.randn(2, 5, 16)),
                   (nn.Sequential(nn.Conv1d(3, 4, 3), nn.PReLU(4), nn.BatchNorm1d(4)), torch.randn(2, 3, 9))]
        torch.backends.mha.set_fastpath_enabled(False)
        self.addCleanup(torch.backends.mha.set_fastpath_enabled, True)
        for module, x in modules:
            with self.subTest(module=type(module).__name__), contextlib.redirect_stdout(io.StringIO()):
                torch.onnx.export(module.eval(), (x,), self.folder / "net.onnx", dynamo=True, external_data=False)
                self.mscgym("graph", "net.onnx", "-o", "folded.json")
                made = to_torch(Graph.load(self.folder / "folded.json"), self.folder / "made")
                self.near([made(x).detach().numpy()], [module(x)])

    def test_integers(self):
        """QuantizeLinear and DequantizeLinear: types, axes, blocks, halves; expected values are onnx's."""
        try:
            import onnx
            from onnx.reference import ReferenceEvaluator
        except ImportError as error:
            self.skipTest(f"skipped: {error}")
        kinds, helper, x = onnx.TensorProto, onnx.helper, torch.randn(4, 6, 5) * 40
        x[0, 0, :4] = torch.tensor([0.25, 0.75, -0.25, 1.25])
        for kind, axis, block, has_zero, is_half in [
                (kinds.UINT8, 1, 0, True, False), (kinds.INT8, None, 0, False, False), (kinds.INT8, -1, 0, True, False),
                (kinds.INT16, 0, 0, True, False), (kinds.UINT16, None, 0, True, False), (kinds.INT4, 1, 3, True, False),
                (kinds.UINT4, 2, 2, True, False), (kinds.UINT8, None, 0, True, True)]:
            with self.subTest(kind=kind, axis=axis, block=block):
                shape = [] if axis is None else [x.shape[axis]] if not block else [
                    -(-n // block) if i == axis else n for i, n in enumerate(x.shape)]
                scales = numpy.full(shape, 0.5, "f4") + numpy.arange(numpy.prod(shape, dtype=int)).reshape(shape) % 3
                scale_kind = kinds.FLOAT16 if is_half else kinds.FLOAT
                zeros = [int(i % 5) for i in range(scales.size)]
                constants = [helper.make_tensor("scale", scale_kind, shape, scales.reshape(-1))]
                constants += [helper.make_tensor("zero", kind, shape, zeros)] if has_zero else []
                names = [tensor.name for tensor in constants]
                places = {"axis": axis} if axis is not None else {}
                places |= {"block_size": block} if block else {}
                more = {} if has_zero else {"output_dtype": kind}
                nodes = [helper.make_node("QuantizeLinear", ["x", *names], ["q"], **places, **more),
                         helper.make_node("Transpose", ["q"], ["t"], perm=[0, 1, 2]),
                         helper.make_node("DequantizeLinear", ["t", *names], ["y"], **places)]
                data, result = (helper.make_tensor_value_info(name, scale_kind, x.shape) for name in "xy")
                results = [result]
                if kind not in (kinds.INT4, kinds.UINT4):
                    results.append(helper.make_tensor_value_info("q", kind, x.shape))
                model = helper.make_model(helper.make_graph(nodes, "net", [data], results, constants),
                                          opset_imports=[helper.make_opsetid("", 23)], ir_version=10)
                onnx.save(model, self.folder / "net.onnx")
                given = x.half() if is_half else x
                expected = ReferenceEvaluator(model).run(None, {"x": given.numpy()})
                self.mscgym("graph", "net.onnx", "-o", "net.json")
                made = to_torch(Graph.load(self.folder / "net.json"), self.folder / "made")
                found = made(given)
                for a, b in zip(found if isinstance(found, tuple) else [found], expected, strict=True):
                    self.assertEqual((a.numpy().dtype, a.tolist()), (b.dtype, b.tolist()))
                wanted = given.clone().requires_grad_()
                first = made(wanted)
                (first[0] if isinstance(first, tuple) else first).float().sum().backward()
                self.assertEqual({*wanted.grad.unique().tolist()} - {0.0, 1.0}, set())

    def test_guide(self):
        """The examples of docs/torch.md run one after the other."""
        text = (PYTHON.parent / "docs" / "torch.md").read_text(encoding="utf-8")
        blocks = re.findall(r"(?:^    [^\n]*\n|^\n(?=    ))+", text, re.M)
        space, before = {}, os.getcwd()
        os.chdir(self.folder)
        self.addCleanup(os.chdir, before)
        os.symlink(PROGRAM, self.folder / "mscgym")
        path = mock.patch.dict(os.environ, PATH=f"{self.folder}{os.pathsep}{os.environ['PATH']}")
        path.start()
        self.addCleanup(path.stop)
        for block in map(textwrap.dedent, blocks):
            first = block.split()[0]
            if first == "mscgym":
                for line in block.strip().splitlines():
                    self.mscgym(*line.split()[1:])
            elif block.lstrip().startswith("{"):
                (self.folder / "search.json").write_text(block)
            elif first == "stem_0":
                main = (self.folder / "generated" / "main.py").read_text()
                self.assertIn(textwrap.indent(block.strip(), "        "), main)
            else:
                exec(compile(block, "torch.md", "exec"), space)  # pylint: disable=exec-used
        self.assertTrue((self.folder / "trained.onnx").exists())

    def test_masks(self):
        module, x = nn.Sequential(nn.Linear(6, 4)).eval(), torch.randn(3, 6)
        graph = from_torch(module, x)
        sparse = module[0].weight.detach().numpy() * (numpy.arange(24, dtype="f4").reshape(4, 6) % 2)
        entry = {"tensor": "0.weight", "shape": [4, 6], "elements": base64.b64encode(sparse.tobytes()).decode()}
        made = to_torch(graph, self.folder / "made", strategy={"replace": [entry], "edits": []})
        optimiser = torch.optim.SGD(made.parameters(), 0.1)
        made(x).square().mean().backward()
        optimiser.step()
        self.assertTrue((made[0].weight.detach().numpy()[sparse == 0] == 0).all())
        self.assertTrue((made[0].weight.detach().numpy()[sparse != 0] != sparse[sparse != 0]).all())
        self.assertEqual(graph.arrays["0.weight"].tolist(), module[0].weight.tolist())


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    unittest.main()
