#!/usr/bin/env python3
"""Tests details of graphs of Relax modules and of generated modules: operators, symbols, functions, refusals.

    check_tvm.py MSCGYM

Expected outputs are TVM's, for the module from which a graph was made. Exits with 77 without apache-tvm.
"""
import contextlib
import io
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

try:
    import numpy
    import tvm
    from tvm import relax
    from tvm.relax import op
except ImportError as error:
    print(f"skipped: {error}; needs numpy and apache-tvm")
    sys.exit(77)

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "tests" / "pipeline")]
from mscgym.graph import Graph, GraphError  # noqa: E402
from mscgym.tvm import UnsupportedRelax, from_relax, to_relax  # noqa: E402
from mscgym.tvm.module import const, run, symbol, tensor  # noqa: E402
from mscgym.safetensors import write_safetensors  # noqa: E402
from mscgym.tvm.versions import tirx, topi  # noqa: E402

PROGRAM = os.path.abspath(sys.argv.pop(1)) if len(sys.argv) > 1 else ""
RANDOM = numpy.random.default_rng(0)


def values(*shape):
    return RANDOM.normal(size=shape).astype("float32")


def floats(*shape):
    return relax.const(values(*shape))


def math(x, y, b):
    return [
        *[getattr(op, name)(x) for name in (
            "abs atan asinh ceil cos cosh erf exp floor negative sigmoid sign sin sinh square tanh trunc").split()],
        *[getattr(op, name)(op.sigmoid(x)) for name in "acos asin atanh log rsqrt sqrt tan".split()],
        op.acosh(op.add(op.square(x), const(1.5, "float32"))), op.round(x), op.isnan(x), op.isinf(x), op.isfinite(x),
        *[getattr(op, name)(x, y) for name in (
            "add subtract multiply divide maximum minimum floor_divide floor_mod mod equal not_equal greater "
            "greater_equal less less_equal log_add_exp").split()],
        op.power(op.abs(x), y), op.logical_and(b, op.less(x, y)), op.logical_or(b, op.less(x, y)),
        op.logical_xor(b, op.less(x, y)), op.logical_not(b), op.where(b, x, y), op.astype(x, "int32"),
        op.clip(x, -0.5, 1), op.clip(x, 0, float("inf")),
        op.bitwise_and(op.astype(x, "int64"), const(3, "int64")),
        op.floor_divide(op.astype(x, "int32"), const(2, "int32")),
        op.nn.relu(x), op.nn.silu(x), op.nn.gelu(x), op.nn.gelu_tanh(x), op.nn.selu(x), op.nn.softplus(x),
        op.nn.leakyrelu(x, 0.2), op.nn.prelu(x, floats(3), axis=1), op.nn.softmax(x, axis=1),
        op.nn.log_softmax(x, axis=-1)]


def layers(x, y, b):
    del b
    tied = floats(8, 8)
    return [
        op.nn.conv2d(x, floats(6, 3, 3, 3), padding=[1, 0, 2, 1], strides=[2, 1]),
        op.add(op.nn.conv2d(x, floats(6, 1, 3, 3), groups=3, dilation=[2, 2]), floats(1, 6, 1, 1)),
        op.nn.conv2d_transpose(x, floats(3, 4, 3, 3), strides=[2, 2], padding=[1, 1, 1, 1], output_padding=[1, 1]),
        op.nn.conv2d(x, op.nn.relu(floats(6, 3, 3, 3))),
        op.nn.conv1d(op.reshape(x, [2, 3, 64]), floats(4, 3, 5), padding=[2, 2]),
        op.nn.conv3d(op.reshape(x, [2, 3, 4, 4, 4]), floats(4, 3, 2, 2, 2)),
        op.matmul(x, floats(8, 5)), op.matmul(x, op.permute_dims(floats(5, 8), [1, 0])), op.matmul(x, y),
        op.take(tied, const([2, 0], "int64"), 0), op.matmul(x, op.permute_dims(tied, [1, 0])), op.matmul(x, tied),
        op.add(tied, op.matmul(op.permute_dims(tied, [1, 0]), tied)),
        op.matmul(floats(2, 1, 4, 8), x), op.outer(op.reshape(op.mean(x, [0, 1, 2]), [8]), floats(3)),
        op.einsum((x, y), "bchw,bdhw->bcd"),
        op.nn.batch_norm(x, floats(3), floats(3), floats(3), relax.const(abs(values(3))), axis=1, training=False)[0],
        op.nn.layer_norm(x, floats(8), floats(8), axes=[-1]), op.nn.layer_norm(x, floats(8, 8), floats(8, 8), [-2, -1]),
        op.nn.group_norm(x, floats(3), floats(3), num_groups=3, channel_axis=1, axes=[2, 3]),
        op.nn.instance_norm(x, floats(3), floats(3), channel_axis=1, axes=[2, 3]),
        op.nn.rms_norm(x, floats(8), axes=[-1], epsilon=1e-6),
        op.nn.attention(x, y, y, scale=0.3), op.nn.attention(x, y, y, floats(2, 8, 3, 3)),
        op.nn.max_pool2d(x, [3, 2], [2, 2], [1, 0, 1, 0], ceil_mode=True),
        op.nn.avg_pool2d(x, [3, 3], [2, 2], [1, 1, 1, 1], count_include_pad=True),
        op.nn.avg_pool2d(x, [3, 3], [2, 2], [1, 1, 1, 1]), op.nn.adaptive_avg_pool2d(x, [1, 1]),
        op.nn.adaptive_avg_pool2d(x, [4, 2]),
        op.nn.adaptive_avg_pool2d(x, [3, 8]), op.nn.adaptive_avg_pool2d(x, [11, 5]),
        op.nn.adaptive_avg_pool1d(op.reshape(x, [2, 3, 64]), 7), op.nn.max_pool1d(op.reshape(x, [2, 3, 64]), 3, 2),
        op.image.resize2d(x, [16, 12]), op.image.resize2d(x, [5, 13], coordinate_transformation_mode="align_corners"),
        op.image.resize2d(x, [16, 16], method="nearest_neighbor", coordinate_transformation_mode="asymmetric",
                          rounding_method="floor"),
        op.image.grid_sample(x, op.tanh(op.reshape(op.mean(x, [1]), [2, 2, 4, 8])), align_corners=True),
        op.nn.pad(x, [0, 0, 0, 0, 1, 2, 3, 0], "constant", 0.5),
        op.nn.pad(x, [0, 0, 0, 0, 1, 2, 3, 0], "reflect"), op.nn.attention(x, y, y, causal_mask="TopLeft"),
        op.nn.attention(x, y, y, floats(2, 8, 3, 3), 0.2, "BottomRight")]


def moves(x, y, b):
    ids = const([2, 0, 1, 1], "int64")
    whole = op.argsort(x, axis=-1, dtype="int64")
    return [
        *[getattr(op, name)(x, [1, -1], keep) for name in ("mean", "sum", "max", "min", "variance", "std")
          for keep in (True, False)],
        op.prod(x, [1]), op.mean(x), op.argmax(x, 1), op.argmin(x, -1, True), op.argmax(x), op.cumsum(x, 2),
        op.cumsum(op.astype(b, "int32"), 1), op.cumprod(x, 1), op.reshape(x, [6, 8, 8]), op.flatten(x),
        op.permute_dims(x, [0, 2, 3, 1]), op.expand_dims(x, [1, 5]),
        op.squeeze(op.mean(x, [1], True), [1]), op.concat([x, y], 1), op.stack([x, y, x], 2),
        *[op.split(x, 2, 3)[i] for i in range(2)], *[op.split(x, [2, 5], 2)[i] for i in range(3)],
        op.broadcast_to(op.mean(x, [1], True), [2, 3, 8, 8]),
        op.tile(x, [1, 2, 1, 1]), op.repeat(x, 3, 1), op.flip(x, 2),
        op.strided_slice(x, [1, 3], [0, 1], [2, 9223372036854775807], [1, 2]), op.take(x, ids, 1),
        op.take(x, const(1, "int64"), 1), op.gather_elements(x, whole, 3),
        op.gather_nd(x, const([[0, 1], [1, 2]], "int64")), op.index_tensor(x, [const([0, 1], "int64")]),
        op.index_tensor(x, [const([[0], [1]], "int64"), const([2, 0], "int64")]),
        op.scatter_elements(x, whole, y, 3), op.scatter_elements(x, whole, y, 3, "add"),
        op.scatter_nd(x, const([[0], [1]], "int64"), y, "add"),
        op.topk(x, 3, -1, "values"),
        op.topk(x, 3, 1, "indices", False, "int64"), op.topk(x, 2, 3, "indices"),
        op.sort(x, 3, True), op.argsort(x, 2), op.triu(x, 1), op.tril(x),
        op.where(b, x, op.zeros([2, 3, 8, 8], "float32")), op.add(x, op.full([3, 8, 8], const(2.5, "float32"))),
        op.add(x, op.ones_like(x)), op.add(x, op.astype(op.arange(0, 8, 1, "int64"), "float32")),
        op.add(x, op.eye(8, 8, 0, "float32"))]


def formulas(x, y, b):
    """Operators that do not come back as they were."""
    return [
        op.index_put(x, tuple(const(item, "int64") for item in ([0, 1], [2, 0], [3, 7], [5, 5])), floats(2)),
        op.slice_scatter(x, floats(2, 3, 2, 8), 3, 5, 1, 2), op.permute_dims(x), op.nn.dropout(y)[0],
        op.collapse_sum_to(x, [3, 1, 8]), op.where(b, x, op.eye(8, 8, 0, "float32"))]


def integers(x, y, b):
    del b
    scale, zero = const(0.02, "float32"), const(3, "int8")
    scales, zeros = const([0.01, 0.02, 0.05], "float32"), const([0, 1, -2], "int8")
    weight = relax.const(RANDOM.integers(-127, 127, (4, 3, 3, 3)).astype("int8"))
    steps = relax.const(numpy.array([0.01, 0.02, 0.03, 0.04], "float32"))
    none = relax.const(numpy.zeros(4, "int8"))
    q = op.quantize(x, scale, zero, axis=-1, out_dtype="int8")
    return [q, op.dequantize(q, scale, zero, axis=-1), op.quantize(y, scales, zeros, axis=1, out_dtype="int8"),
            op.nn.conv2d(op.dequantize(q, scale, zero, axis=-1), op.dequantize(weight, steps, none, axis=0))]


FAMILIES = [math, layers, moves, formulas, integers]


def module_of(make, shapes=((2, 3, 8, 8),), dtypes=("float32",)):
    """A module whose results `make` gives, from variables a, b, c of these shapes."""
    variables = [tensor("abc"[i], list(shape), dtype) for i, (shape, dtype) in enumerate(zip(shapes, dtypes))]
    builder = relax.BlockBuilder()
    with builder.function("main", variables):
        with builder.dataflow():
            results = [builder.emit(item) for item in make(*variables)]
            result = builder.emit_output(relax.Tuple(results))
        builder.emit_func_output(result)
    return builder.finalize()


def normal(module, entry="main"):
    steps = [relax.transform.FoldConstant(), relax.transform.CanonicalizeBindings(),
             relax.transform.DeadCodeElimination([entry])]
    return tvm.transform.Sequential(steps)(module)[entry]


class TvmTest(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)

    def mscgym(self, *command):
        done = subprocess.run([PROGRAM, *map(str, command)], cwd=self.folder, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def run_graph(self, graph, inputs):
        graph.save(self.folder / "net.json")
        given, aliases = [], {item.name: item.alias for item in graph.tensors()}
        for name, value in zip(graph.inputs, inputs):
            numpy.save(self.folder / f"{aliases[name]}.npy", value)
            given += ["--input", f"{aliases[name]}={aliases[name]}.npy"]
        self.mscgym("run", "net.json", *given, "--output", "out", "--repeat", "1")
        return [numpy.load(self.folder / "out" / f"{aliases[name]}.npy") for name in graph.outputs]

    def near(self, found, expected, names, share=1e-5):
        for a, b, name in zip(found, expected, names, strict=True):
            with self.subTest(result=name):
                self.assertEqual((a.shape, a.dtype), (b.shape, b.dtype))
                most = numpy.abs(b[numpy.isfinite(b)].astype(float)).max(initial=0)
                same = (a == b) | (numpy.isnan(a.astype(float)) & numpy.isnan(b.astype(float)))
                self.assertLessEqual(numpy.where(same, 0, numpy.abs(a.astype(float) - b)).max(initial=0),
                                     share * (most or 1))

    def test_operators(self):
        """Operators run by the program as TVM runs them, and come back as they were."""
        inputs = [values(2, 3, 8, 8), values(2, 3, 8, 8), RANDOM.integers(0, 2, (2, 3, 8, 8)).astype(bool)]
        for family in FAMILIES:
            with self.subTest(family=family.__name__):
                module = module_of(family, [part.shape for part in inputs], ["float32", "float32", "bool"])
                graph = from_relax(module)
                expected = run(module, "main", inputs)
                names = [item.alias for name in graph.outputs for item in graph.tensors() if item.name == name]
                self.near(self.run_graph(graph, inputs), expected, names)
                made = to_relax(graph)
                if family is formulas:
                    self.near(run(made, "main", inputs), expected, names)
                else:
                    tvm.ir.assert_structural_equal(normal(module), normal(made), map_free_vars=True)

    def test_symbols(self):
        n, x = symbol("n"), values(5, 3, 8, 8)

        def make(a):
            rows = op.reshape(a, [n * 3, 64])
            total = op.matmul(op.reshape(rows, [n, 3, 64]), floats(64, 4))
            return [total, op.broadcast_to(op.mean(a, [0], True), [n, 3, 8, 8]), op.concat([a, a], 0)]
        module = module_of(make, [[n, 3, 8, 8]])
        graph = from_relax(module)
        self.assertIn("n", [prim["name"] for prim in graph.prims])
        made, expected = to_relax(graph), run(module, "main", [x])
        self.near(self.run_graph(graph, [x]), expected, "abc")
        self.near(run(made, "main", [x]), expected, "abc")
        tvm.ir.assert_structural_equal(normal(module), normal(made), map_free_vars=True)

    def test_functions(self):
        """Functions that the entry calls, parameters with values, nested tuples, a result that is an input."""
        builder = relax.BlockBuilder()
        a, w = tensor("a", [2, 8], "float32"), tensor("layer.weight", [8, 8], "float32")
        with builder.function("inner", [a]):
            builder.emit_func_output(builder.emit(op.nn.relu(a)))
        x = tensor("x", [2, 8], "float32")
        inner = builder.get().get_global_var("inner")
        with builder.function("main", [x, w]):
            y = builder.emit(relax.Call(inner, [builder.emit(op.matmul(x, w))]))
            builder.emit_func_output(builder.emit(relax.Tuple([y, relax.Tuple([x, y])])))
        module, weight, data = builder.finalize(), values(8, 8), values(2, 8)
        expected = numpy.maximum(data @ weight, 0)
        for params in ({"layer.weight": weight}, {"main": [weight]}):
            graph = from_relax(module, params)
            self.assertEqual([joint.name for joint in graph.joints if joint.weights], ["layer"])
            self.near(self.run_graph(graph, [data]), [expected, data, expected], "abc")
            made = to_relax(graph)
            self.near(run(made, "main", [data]), [expected, data, expected], "abc")
        self.assertEqual(graph.notes["metadata"]["relax.result"], "[0, [1, 2]]")
        self.assertEqual(len(made["main"].ret_ty.fields) if hasattr(made["main"], "ret_ty") else 2, 2)
        self.near(run(to_relax(graph, bind=False), "main", [data, weight]), [expected, data, expected], "abc")
        doubled = to_relax(graph, weights={"layer.weight": 2 * weight})
        self.near(run(doubled, "main", [data])[:1], [2 * expected], "a")
        self.assertEqual([joint.optype for joint in from_relax(module, entry="inner").joints], ["input", "nn.relu"])

    def test_loops(self):
        """Loops that TVM's front end of ONNX writes at once are recognised."""
        x = values(2, 3, 8, 8)
        cases = [(topi.maximum, const(0.25, "float32")), (topi.minimum, const(0.25, "float32")),
                 (lambda a: topi.maximum(a, 0.5),), (lambda a: topi.nn.pad(a, [0, 0, 1, 2], [0, 0, 3, 0], 0.5),),
                 (lambda a: topi.nn.mirror_pad(a, [0, 0, 1, 2], [0, 0, 2, 2], "REFLECT"),),
                 (lambda a: topi.nn.replicate_pad(a, [0, 0, 1, 0], [0, 0, 0, 2]),),
                 (lambda a: topi.tile(a, [1, 2, 1, 3]),), (lambda a: topi.flip(a, 2),),
                 (lambda a: topi.nn.pad(a, [0] * 4, [0] * 4, 0.0),)]
        a, builder = tensor("a", x.shape, "float32"), relax.BlockBuilder()
        with builder.function("main", [a]):
            results = [builder.emit_te(make, a, *more) for make, *more in cases]
            builder.emit_func_output(builder.emit(relax.Tuple(results)))
        module = builder.finalize()
        graph = from_relax(module)
        self.assertEqual([joint.optype for joint in graph.joints if joint.optype not in ("input", "constant")],
                         ["clip"] * 3 + ["nn.pad"] * 3 + ["tile", "strided_slice", "identity"])
        self.near(self.run_graph(graph, [x]), run(module, "main", [x]), "abcdefghi")

    def test_einsum_loops(self):
        """Products that TVM's front end of ONNX writes as loops: scores, sums without an operand, three operands."""
        x, y, z = values(2, 3, 8, 5), values(2, 3, 6, 5), values(1, 7)
        cases = [("bhid,bhjd->bhij", [0, 1]), ("bhid,bhjd->", [0, 1]), ("bhid->dhb", [0]), ("bhid,bhid->bhi", [0, 0]),
                 ("bhid,bhjd,ak->ijk", [0, 1, 2]), ("ak,bhid->kdih", [2, 0])]
        variables = [tensor(name, data.shape, "float32") for name, data in zip("xyz", (x, y, z))]
        builder = relax.BlockBuilder()
        with builder.function("main", variables):
            results = [builder.emit_te(topi.einsum, equation, *[variables[i] for i in operands])
                       for equation, operands in cases]
            builder.emit_func_output(builder.emit(relax.Tuple(results)))
        module = builder.finalize()
        graph = from_relax(module)
        self.assertEqual([joint.optype for joint in graph.joints[3:]], ["einsum"] * len(cases))
        expected = [numpy.einsum(equation, *[(x, y, z)[i] for i in operands]) for equation, operands in cases]
        self.near(self.run_graph(graph, [x, y, z]), expected, "abcdef")
        self.near(run(to_relax(graph), "main", [x, y, z]), expected, "abcdef")

    def test_unknown_loops(self):
        """Loops without a joint travel as external joints, through JSON, text and ONNX, and come back as they were."""
        n, x = symbol("n"), values(3, 4)
        a, builder = tensor("a", [n, 4], "float32"), relax.BlockBuilder()
        with builder.function("main", [a]):
            with builder.dataflow():
                total = builder.emit_te(topi.sum, builder.emit(op.nn.relu(a)), 1)
                pair = builder.emit_te(lambda a: [topi.exp(a), topi.sum(a, 0)], a, primfunc_name_hint="pair")
                result = builder.emit_output(relax.Tuple([total, builder.emit(pair[0]), builder.emit(pair[1])]))
            builder.emit_func_output(result)
        module = builder.finalize()
        graph, expected = from_relax(module), run(module, "main", [x])
        joints = [joint for joint in graph.joints if joint.optype == "msc.external"]
        self.assertEqual([(joint.attrs["domain"], joint.attrs["signature"]) for joint in joints], [
            ("tvm.loops", "float32[L0,4] -> float32[L0]"),
            ("tvm.loops", "float32[L0,4] -> float32[L0,4], float32[4]")])
        graph.save(self.folder / "net.json")
        self.mscgym("graph", "net.json", "-o", "text.msc")
        self.mscgym("export", "--model", "text.msc", "-o", "net.onnx")
        self.mscgym("graph", "net.onnx", "-o", "again.json")
        for read in (graph, Graph.load(self.folder / "net.json"), Graph.load(self.folder / "again.json")):
            made = to_relax(read, self.folder / "made", inputs={"a": x}, outputs=expected)
            for found, value in zip(run(made, "main", [x]), expected, strict=True):
                numpy.testing.assert_allclose(found, value, rtol=1e-6)
            if read is graph:
                tvm.ir.assert_structural_equal(normal(module), normal(made), map_free_vars=True)
        numpy.save(self.folder / "a.npy", x)
        done = subprocess.run([PROGRAM, "run", "net.json", "--input", "a=a.npy", "--output", "out"], cwd=self.folder, capture_output=True,
                              text=True)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("tvm.loops::", done.stderr)

    def test_refusals(self):
        def refused(make, message, error=UnsupportedRelax, **options):
            with self.assertRaisesRegex(error, message):
                from_relax(module_of(make), **options)
        refused(lambda a: [op.median(a, [1])[0]], r"no joint computes relax\.median, bound to 'lv")
        one = floats(3)
        refused(lambda a: [op.nn.batch_norm(a, one, one, one, one, axis=1, training=True)[0]],
                "training=True, which from_fx writes")
        refused(lambda a: [a], "has no function 'other' of Relax; functions: main", GraphError, entry="other")
        refused(lambda a: [a], "params names 'w', which 'main' does not have; parameters: a", GraphError,
                params={"w": values(1)})
        graph = from_relax(module_of(lambda a: [op.nn.relu(a)]))
        graph.joints[1].optype = "nn.hardmax"
        with self.assertRaisesRegex(GraphError, "'relu' has the type nn.hardmax, which has no expression in Relax"):
            to_relax(graph)
        with self.assertRaisesRegex(GraphError, "the graph has no weight 'w'"):
            to_relax(from_relax(module_of(lambda a: [op.nn.relu(a)])), weights={"w": values(1)})

    def test_compressed(self):
        """A model that mscgym quantises becomes R.quantize and R.dequantize, and runs in TVM within a step."""
        try:
            import onnxruntime
        except ImportError as error:
            self.skipTest(f"skipped: {error}")

        def make(a):
            x = op.nn.relu(op.add(op.nn.conv2d(a, floats(8, 3, 3, 3), padding=[1, 1, 1, 1]), floats(1, 8, 1, 1)))
            x = op.nn.conv2d(x, floats(8, 8, 3, 3), strides=[2, 2])
            return [op.matmul(op.reshape(op.mean(x, [2, 3]), [a.ty.shape[0] if hasattr(a, "ty") else 4, 8]),
                              floats(8, 5))]
        module, data = module_of(make, [(4, 3, 8, 8)]), values(32, 3, 8, 8)
        graph = from_relax(module)
        graph.save(self.folder / "net.json")
        numpy.savez(self.folder / "in.npz", a=data.reshape(8, 4, 3, 8, 8))
        self.mscgym("quantize", "net.json", "--inputs", "in.npz", "--target", "generic", "--effort", "fast", "-o",
                    "small.onnx")
        self.mscgym("graph", "small.onnx", "-o", "small.json")
        small = Graph.load(self.folder / "small.json")
        made = to_relax(small)
        self.assertIn("R.quantize", made.script(show_meta=False))
        session = onnxruntime.InferenceSession(self.folder / "small.onnx", providers=["CPUExecutionProvider"])
        expected = session.run(None, {"a": data[:4]})[0]
        scales = [array for array in small.arrays.values() if array.dtype == "float32" and array.size == 1]
        step = max(float(scale.max()) for scale in scales)
        found = run(made, "main", [data[:4]])[0]
        self.assertLessEqual(numpy.abs(found - expected).max(), step)
        again = from_relax(made)
        kinds = [[joint.optype for joint in g.joints if joint.optype != "constant"] for g in (small, again)]
        self.assertEqual(kinds[0].count("quantize"), kinds[1].count("quantize"))
        self.near(self.run_graph(again, [data[:4]]), [found], "a", 1e-2)

    def test_integers(self):
        """Operators on integers, with zero points for all, rows, columns and channels, bit for bit."""
        try:
            import integer_models
        except ImportError as error:
            self.skipTest(f"skipped: {error}")
        inputs, outputs = integer_models.write(self.folder / "net.onnx")
        self.mscgym("graph", "net.onnx", "-o", "net.json")
        graph = Graph.load(self.folder / "net.json")
        for found in (self.run_graph(graph, inputs.values()), run(to_relax(graph), graph.name, inputs.values())):
            for (name, expected), value in zip(outputs.items(), found, strict=True):
                with self.subTest(name):
                    self.assertEqual(value.dtype, expected.dtype)
                    numpy.testing.assert_array_equal(value, expected)

    def test_dynamic(self):
        """Models whose activations are quantised dynamically have onnxruntime's bits in TVM, also read back."""
        try:
            import onnxruntime
            import check_dynamic
        except ImportError as error:
            self.skipTest(f"skipped: {error}")
        before = os.getcwd()
        os.chdir(self.folder)
        self.addCleanup(os.chdir, before)
        for make in (check_dynamic.layers, check_dynamic.gemm):
            dims, n_products = make("model.onnx")
            data = values(8, *dims)
            numpy.savez("x.npz", x=data)
            check_dynamic.quantize(PROGRAM, "cpu", "onnxruntime", {"rules": [
                {"kind": "activation", "choices": ["8 dynamic"]}, {"kind": "weight", "choices": ["8"]}]})
            self.mscgym("graph", "small.onnx", "-o", "small.json")
            small = Graph.load("small.json")
            made = to_relax(small, make.__name__)
            self.assertEqual(made.script(show_meta=False).count("R.matmul"), n_products)
            session = onnxruntime.InferenceSession("small.onnx", providers=["CPUExecutionProvider"])
            again = from_relax(made, entry=small.name)
            for n in (1, 8):
                expected = session.run(None, {"x": data[:n]})[0]
                for found in (run(made, small.name, [data[:n]]), self.run_graph(again, [data[:n]])):
                    numpy.testing.assert_array_equal(found[0], expected)
            tvm.ir.assert_structural_equal(*(normal(module, small.name) for module in (made, to_relax(again))),
                                           map_free_vars=True)

    def test_library(self):
        """The body of an external joint becomes a function that TVM's passes give to a code generator."""
        data, weight = values(2, 4), values(4, 3)
        (self.folder / "net.msc").write_text("""main <OUTPUTS: y>
            ID a OUT: a<N,4|float32> OPTYPE: input
            ID m IN: a WEIGHTS: weight: w<3,4|float32|OI> OPTYPE: msc.linear
            ID r IN: m OPTYPE: nn.relu
            ID y IN: r OPTYPE: negative""")
        write_safetensors(str(self.folder / "net.safetensors"), {"w": [weight.T.copy()]})
        (self.folder / "rules.msc").write_text("""rule linear_relu {
            match { ID m IN: x,w OPTYPE: msc.linear ID r IN: m OPTYPE: nn.relu }
            replace holding { ID r IN: x,w OPTYPE: msc.external ATTRS: domain=library op=LinearRelu } }""")
        self.mscgym("rewrite", "net.msc", "--rules", "rules.msc", "-o", "marked.json")
        made = to_relax(Graph.load(self.folder / "marked.json"))
        expected = [-numpy.maximum(data @ weight, 0)]
        self.near(run(made, "main", [data]), expected, "y")
        merged = relax.transform.MergeCompositeFunctions()(made)
        self.assertEqual(["library"], [str(f.attrs["Codegen"]) for f in merged.functions.values()
                                       if f.attrs and "Codegen" in f.attrs])
        self.assertIn('"Composite": "library.LinearRelu"', merged.script(show_meta=False))
        self.near(self.run_graph(from_relax(made), [data]), expected, "y")

    def test_document(self):
        """The examples of docs/tvm.md run one after the other."""
        text = (ROOT / "docs" / "tvm.md").read_text()
        code, commands = "", []
        for block in re.findall(r"(?:^    .*\n|^\n(?=    ))+", text, re.MULTILINE):
            lines = "\n".join(line[4:] for line in block.strip("\n").split("\n"))
            if lines.startswith("mscgym "):
                commands.append((code, lines))
                code = ""
            elif not lines.startswith("@"):
                code += lines + "\n"
        before, space = os.getcwd(), {}
        os.chdir(self.folder)
        self.addCleanup(os.chdir, before)
        for part, lines in [*commands, (code, "")]:
            with contextlib.redirect_stdout(io.StringIO()):
                exec(compile(part, "docs/tvm.md", "exec"), space)  # pylint: disable=exec-used
            for line in filter(None, lines.split("\n")):
                self.mscgym(*line.split()[1:])


if __name__ == "__main__":
    del tirx
    unittest.main()
