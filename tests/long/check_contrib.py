#!/usr/bin/env python3
"""Checks the import of ONNX Runtime's own operators (domain com.microsoft).

    check_contrib.py MSCGYM

Each operator alone, with several attributes, optional inputs and odd lengths: outputs must equal
those of onnxruntime without optimisation within 1e-4 of the largest, and quantised ones within a
step. contrib_models.py has models that onnxruntime's optimisers write.
"""
import os
import sys

from contrib_models import check_models
from small_onnx import Checks, numpy, numpy_helper, onnx, onnxruntime

DOMAIN = "com.microsoft"
helper = onnx.helper
rng = numpy.random.default_rng(11)


def f(*shape, scale=1.0):
    return (rng.standard_normal(shape) * scale).astype(numpy.float32)


def u8(*shape):
    return rng.integers(0, 256, shape).astype(numpy.uint8)


def i8(*shape):
    return rng.integers(-128, 128, shape).astype(numpy.int8)


def i32(*values):
    return numpy.array(values, numpy.int32)


def i64(values):
    return numpy.array(values, numpy.int64)


def s(value):
    return numpy.array(value, numpy.float32)


def z(value, dtype=numpy.uint8):
    return numpy.array(value, dtype)


def node(op, inputs, outputs, domain=DOMAIN, **attributes):
    return helper.make_node(op, inputs, outputs, domain=domain, **attributes)


class Case:
    """A node: `inputs` are arrays by name, in order; None is an absent input. Names that begin with
    a capital letter are constants."""

    def __init__(self, name, op, inputs, n_outputs=1, domain=DOMAIN, opset=17, outputs=None, symbols=False,
                 softmax_opset=None, **attributes):
        self.name, self.op, self.domain, self.opset = f"{op} {name}".strip(), op, domain, opset
        self.symbols = symbols
        self.outputs = outputs or [f"y{i}" for i in range(n_outputs)]
        self.inputs = {k: v for k, v in inputs.items() if v is not None}
        names = [k if v is not None else "" for k, v in inputs.items()]
        self.node = node(op, names, self.outputs, domain, **attributes)
        if softmax_opset:
            self.node.attribute.append(helper.make_attribute("opset", softmax_opset))

    def save(self, path):
        feeds = {k: v for k, v in self.inputs.items() if not k[0].isupper()}

        def dims(k, v):
            open_axes = {3: (0, 1), 4: (0, 2)}.get(v.ndim, range(v.ndim))
            return [f"{k}{i}" if self.symbols and i in open_axes else v.shape[i] for i in range(v.ndim)]
        infos = [helper.make_tensor_value_info(k, helper.np_dtype_to_tensor_dtype(v.dtype), dims(k, v))
                 for k, v in feeds.items()]
        constants = [v if isinstance(v, onnx.TensorProto) else numpy_helper.from_array(v, k)
                     for k, v in self.inputs.items() if k[0].isupper()]
        graph = helper.make_graph([self.node], "one", infos, [
            onnx.ValueInfoProto(name=o) if o != "qk" else helper.make_tensor_value_info(o, 1, None)
            for o in self.outputs if o], constants)
        opsets = [helper.make_opsetid("", self.opset), helper.make_opsetid(DOMAIN, 1)]
        model = helper.make_model(graph, opset_imports=opsets)
        model.ir_version = 10
        onnx.save(model, path)
        return feeds


def run_runtime(path, feeds):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, feeds)))


def is_equal(found, expected):
    if not isinstance(found, numpy.ndarray) or found.shape != expected.shape:
        return False
    if expected.dtype.kind in "iub":
        return expected.size == 0 or numpy.abs(found.astype(int) - expected.astype(int)).max() <= 1
    most = max(numpy.abs(expected).max(initial=0), 1e-30)
    return numpy.abs(found.astype(float) - expected).max(initial=0) <= 1e-4 * most


def check_case(checks, case):
    try:
        feeds = case.save("one.onnx")
        expected = run_runtime("one.onnx", feeds)
    except Exception as error:  # pylint: disable=broad-except
        checks.expect(f"{case.name}: onnxruntime", False, error)
        return
    if os.path.exists("out.npz"):
        os.remove("out.npz")
    found = checks.run("one.onnx", feeds)
    for name, value in expected.items():
        result = found.get(name) if isinstance(found, dict) else found
        worst = result
        if isinstance(result, numpy.ndarray) and result.shape == value.shape:
            worst = numpy.abs(result.astype(float) - value).max(initial=0)
        elif isinstance(result, numpy.ndarray):
            worst = f"shape {result.shape}, expected {value.shape}"
        checks.expect(f"{case.name}: {name}", is_equal(result, value), worst)


# ---- Products, convolutions, activations --------------------------------------------------------

def products():
    x = f(2, 3, 5, 7)
    for a, b in ((0, 0), (1, 0), (0, 1), (1, 1)):
        left = x.swapaxes(2, 3) if a else x
        yield Case(f"transA={a} transB={b}", "FusedMatMul",
                   {"x": left.copy(), "W": f(4, 7) if b else f(7, 4)}, transA=a, transB=b, alpha=0.5)
        yield Case(f"of activations transA={a} transB={b}", "FusedMatMul",
                   {"x": left.copy(), "w": f(2, 3, 4, 7) if b else f(2, 3, 7, 4)}, transA=a, transB=b,
                   alpha=-1.5)
    yield Case("plain", "FusedMatMul", {"x": f(3, 5), "W": f(5, 6)})
    yield Case("transBatchA", "FusedMatMul", {"x": f(5, 2, 7), "w": f(2, 7, 3)}, transBatchA=1)
    yield Case("transBatchB", "FusedMatMul", {"x": f(2, 5, 7), "w": f(7, 2, 3)}, transBatchB=1)
    yield Case("transBatchA transA", "FusedMatMul", {"x": f(7, 2, 5), "w": f(2, 7, 3)}, transBatchA=1,
               transA=1)
    yield Case("", "TransposeMatMul", {"x": f(3, 5), "W": f(6, 5)}, transB=1, alpha=2.0)
    for activation, more in (("Relu", {}), ("Tanh", {}), ("Sigmoid", {}),
                             ("LeakyRelu", {"activation_alpha": 0.3}),
                             ("Elu", {"activation_alpha": 0.7}),
                             ("Selu", {"activation_alpha": 1.5, "activation_gamma": 1.1}),
                             ("ThresholdedRelu", {"activation_alpha": 0.4}),
                             ("HardSigmoid", {"activation_alpha": 0.3, "activation_beta": 0.4}),
                             ("Softplus", {}), ("Softsign", {})):
        yield Case(activation, "FusedGemm", {"x": f(3, 5), "W": f(6, 5), "B": f(6)}, transB=1,
                   activation=activation, alpha=0.5, beta=2.0, **more)
    yield Case("without bias", "FusedGemm", {"x": f(5, 3), "W": f(5, 6)}, transA=1, activation="Relu")
    for activation, params in (("Relu", []), ("Tanh", []), ("Sigmoid", []), ("LeakyRelu", [0.2]),
                               ("Clip", [-0.5, 0.75]), ("HardSigmoid", [0.3, 0.4])):
        more = {"activation_params": params} if params else {}
        yield Case(activation, "FusedConv", {"x": f(1, 4, 9, 7), "W": f(6, 2, 3, 3), "B": f(6)}, group=2,
                   pads=[1, 0, 1, 2], strides=[2, 1], activation=activation, **more)
    yield Case("sum", "FusedConv", {"x": f(1, 4, 9, 7), "W": f(6, 4, 3, 3), "B": f(6), "r": f(1, 6, 7, 5)},
               activation="Relu")
    yield Case("sum without bias", "FusedConv",
               {"x": f(1, 4, 9, 7), "W": f(6, 4, 3, 3), "b": None, "r": f(1, 6, 9, 7)},
               auto_pad="SAME_UPPER", activation="Relu")
    yield Case("", "Gelu", {"x": f(3, 5, 7, scale=3)})
    yield Case("", "BiasGelu", {"x": f(3, 5, 7), "B": f(7)})
    yield Case("", "FastGelu", {"x": f(3, 5, 7, scale=3)})
    yield Case("with bias", "FastGelu", {"x": f(3, 5, 7), "B": f(7)})
    yield Case("", "QuickGelu", {"x": f(3, 5, 7)})
    yield Case("alpha", "QuickGelu", {"x": f(3, 5, 7)}, alpha=1.0)
    yield Case("int8", "NhwcMaxPool", {"x": i8(1, 9, 7, 3)}, kernel_shape=[3, 3], strides=[2, 2],
               pads=[1, 1, 1, 1])
    yield Case("uint8 ceil", "NhwcMaxPool", {"x": u8(2, 10, 7, 3)}, kernel_shape=[2, 2], strides=[2, 2],
               ceil_mode=1)


# ---- Normalisations -----------------------------------------------------------------------------

def norms():
    x, skip = f(2, 5, 12), f(2, 5, 12)
    gamma, beta, bias = f(12), f(12), f(12)
    for shape in ((2, 5, 12), (1, 5, 12), (5, 12)):
        yield Case(f"skip {shape}", "SkipLayerNormalization",
                   {"x": x, "s": f(*shape), "G": gamma, "B": beta, "C": bias}, epsilon=1e-5)
    yield Case("without beta", "SkipLayerNormalization", {"x": x, "s": skip, "G": gamma})
    yield Case("bias without beta", "SkipLayerNormalization",
               {"x": x, "s": skip, "G": gamma, "B": None, "C": bias})
    yield Case("sum", "SkipLayerNormalization", {"x": x, "s": skip, "G": gamma, "B": beta, "C": bias},
               outputs=["y", "", "", "sum"])
    yield Case("symbols", "SkipLayerNormalization", {"x": x, "s": skip, "G": gamma, "B": beta},
               symbols=True)
    yield Case("2-D", "SkipLayerNormalization", {"x": f(5, 12), "s": f(5, 12), "G": gamma, "B": beta})
    yield Case("", "SkipSimplifiedLayerNormalization", {"x": x, "s": skip, "G": gamma}, epsilon=1e-6)
    yield Case("sum", "SkipSimplifiedLayerNormalization", {"x": x, "s": skip, "G": gamma, "C": bias},
               outputs=["y", "", "", "sum"])
    for axis in (-1, 1):
        shape = x.shape[axis:]
        yield Case(f"axis {axis}", "SimplifiedLayerNormalization", {"x": x, "G": f(*shape)}, domain="",
                   axis=axis, epsilon=1e-6)
    words, segments = i32(*rng.integers(0, 9, 10)).reshape(2, 5), i32(*rng.integers(0, 2, 10)).reshape(2, 5)
    mask = i32(1, 1, 1, 0, 0, 1, 1, 1, 1, 1).reshape(2, 5)
    tables = {"W": f(9, 12), "P": f(8, 12)}
    last = {"G": gamma, "B": beta}
    yield Case("segments", "EmbedLayerNormalization",
               {"w": words, "s": segments, **tables, "S": f(2, 12), **last}, outputs=["y", ""])
    yield Case("mask", "EmbedLayerNormalization",
               {"w": words, "s": segments, **tables, "S": f(2, 12), **last, "m": mask}, n_outputs=2,
               mask_index_type=1)
    yield Case("sum", "EmbedLayerNormalization",
               {"w": words, "s": None, **tables, "S": None, **last}, outputs=["y", "", "sum"])
    yield Case("positions", "EmbedLayerNormalization",
               {"w": words, "s": None, **tables, "S": None, **last, "m": None,
                "p": i32(3, 1, 0, 2, 7).reshape(1, 5)}, outputs=["y", ""],
               epsilon=1e-5)
    yield Case("positions of each", "EmbedLayerNormalization",
               {"w": words, "s": None, **tables, "S": None, **last, "m": mask,
                "p": i32(*rng.integers(0, 8, 10)).reshape(2, 5)}, n_outputs=2)


# ---- Attention ----------------------------------------------------------------------------------

def attentions():
    b, n, d, h = 2, 5, 4, 3
    x, w, bias = f(b, n, 10), f(10, 3 * h * d), f(3 * h * d)
    base = {"x": x, "W": w, "B": bias}
    mask = i32(1, 1, 1, 0, 0, 1, 1, 1, 1, 0).reshape(2, 5)
    yield Case("plain", "Attention", base, num_heads=h)
    yield Case("without bias", "Attention", {"x": x, "W": w}, num_heads=h, scale=0.3)
    yield Case("mask [b, t]", "Attention", {**base, "m": mask}, num_heads=h)
    yield Case("mask [b, s, t]", "Attention",
               {**base, "m": i32(*rng.integers(0, 2, 50)).reshape(2, 5, 5)}, num_heads=h,
               mask_filter_value=-50.0)
    yield Case("ends", "Attention", {**base, "m": i32(3, 5)}, num_heads=h)
    yield Case("ends and begins", "Attention", {**base, "m": i32(4, 5, 1, 0)}, num_heads=h)
    yield Case("nothing visible", "Attention", {**base, "m": i32(0, 3)}, num_heads=h,
               mask_filter_value=-5.0)
    yield Case("causal", "Attention", base, num_heads=h, unidirectional=1)
    yield Case("causal with mask", "Attention", {**base, "m": mask}, num_heads=h, unidirectional=1)
    yield Case("bias", "Attention", {**base, "m": None, "p": None, "a": f(1, h, n, n)}, num_heads=h)
    yield Case("bias and mask", "Attention", {**base, "m": mask, "p": None, "a": f(b, 1, n, n)},
               num_heads=h)
    past = f(2, b, h, 3, d)
    yield Case("past", "Attention", {**base, "m": None, "p": past}, n_outputs=2, num_heads=h,
               unidirectional=1)
    yield Case("past with mask", "Attention",
               {**base, "m": i32(*rng.integers(0, 2, 16)).reshape(2, 8), "p": past}, n_outputs=2,
               num_heads=h, unidirectional=1)
    yield Case("present", "Attention", base, n_outputs=2, num_heads=h)
    yield Case("sizes", "Attention", {"x": x, "W": f(10, 2 * 6 + 9), "B": f(2 * 6 + 9)}, num_heads=h,
               qkv_hidden_sizes=[6, 6, 9])
    yield Case("symbols", "Attention", {**base, "m": mask}, num_heads=h, unidirectional=1, symbols=True)

    q, k, v = f(b, n, h * d), f(b, 7, h * d), f(b, 7, h * 5)
    cross = {"q": q, "k": k, "v": v}
    wide = i32(*rng.integers(0, 2, 14)).reshape(2, 7)
    wide[:, 0] = 1
    yield Case("cross", "MultiHeadAttention", cross, num_heads=h)
    yield Case("scale", "MultiHeadAttention", cross, num_heads=h, scale=0.7)
    yield Case("bias", "MultiHeadAttention", {**cross, "B": f(2 * h * d + h * 5)}, num_heads=h)
    yield Case("mask [b, t]", "MultiHeadAttention", {**cross, "B": None, "m": wide}, num_heads=h)
    yield Case("mask [b]", "MultiHeadAttention", {**cross, "B": None, "m": i32(7, 4)}, num_heads=h)
    yield Case("mask [b, s, t]", "MultiHeadAttention",
               {**cross, "B": None, "m": i32(*rng.integers(0, 2, 70)).reshape(2, 5, 7)}, num_heads=h)
    yield Case("added", "MultiHeadAttention", {**cross, "B": None, "m": None, "a": f(1, 1, n, 7)},
               num_heads=h)
    yield Case("causal", "MultiHeadAttention", {"q": q, "k": f(b, n, h * d), "v": f(b, n, h * d)},
               num_heads=h, unidirectional=1)
    yield Case("past", "MultiHeadAttention",
               {"q": q, "k": f(b, n, h * d), "v": f(b, n, h * d), "B": f(3 * h * d), "m": None, "a": None,
                "pk": f(b, h, 3, d), "pv": f(b, h, 3, d)}, n_outputs=3, num_heads=h)
    yield Case("past, causal, mask", "MultiHeadAttention",
               {"q": q, "k": f(b, n, h * d), "v": f(b, n, h * d), "B": None,
                "m": i32(*([1] * 7 + [0] + [1] * 8)).reshape(2, 8), "a": None,
                "pk": f(b, h, 3, d), "pv": f(b, h, 3, d)}, n_outputs=3, num_heads=h, unidirectional=1)
    yield Case("keys by head", "MultiHeadAttention", {"q": q, "k": f(b, h, 7, d), "v": f(b, h, 7, d)},
               num_heads=h)
    yield Case("scores", "MultiHeadAttention", {**cross, "B": None, "m": None, "a": f(1, h, n, 7)},
               outputs=["y", "", "", "qk"], num_heads=h)
    yield Case("symbols", "MultiHeadAttention", {**cross, "B": None, "m": wide}, num_heads=h,
               symbols=True)

    for interleaved in (0, 1):
        cos, sin = f(16, 4), f(16, 4)
        more = {"interleaved": interleaved}
        yield Case(f"3-D {more}", "RotaryEmbedding",
                   {"x": f(2, 5, 24), "p": i64([[0, 1, 2, 3, 4], [4, 5, 6, 7, 8]]), "C": cos, "S": sin}, **more)
        yield Case(f"4-D {more}", "RotaryEmbedding",
                   {"x": f(2, 3, 5, 8), "p": i64([[0, 1, 2, 3, 4], [4, 5, 6, 7, 8]]), "C": cos, "S": sin},
                   **more)
        yield Case(f"offset {more}", "RotaryEmbedding", {"x": f(2, 5, 24), "p": i64([6]), "C": cos, "S": sin},
                   **more)
        yield Case(f"part {more}", "RotaryEmbedding", {"x": f(2, 5, 36), "p": i64([2]), "C": cos, "S": sin},
                   num_heads=3, rotary_embedding_dim=8, **more)
    yield Case("symbols", "RotaryEmbedding", {"x": f(2, 3, 5, 8), "p": i64([6]), "C": f(16, 4), "S": f(16, 4)},
               symbols=True)


def grouped():
    b, n, h, g, d = 2, 5, 6, 2, 32
    q, k, v = f(b, n, h * d), f(b, n, g * d), f(b, n, g * d)
    none = {"pk": None, "pv": None}
    first = {"q": q, "k": k, "v": v, **none, "L": i32(4, 4), "T": z(5, numpy.int32)}
    heads = {"num_heads": h, "kv_num_heads": g}
    cache = {"C": f(32, d // 2), "S": f(32, d // 2)}
    yield Case("prompt", "GroupQueryAttention", first, n_outputs=3, **heads)
    yield Case("packed", "GroupQueryAttention",
               {**first, "q": f(b, n, (h + 2 * g) * d), "k": None, "v": None}, n_outputs=3, **heads)
    yield Case("rotary", "GroupQueryAttention", {**first, **cache}, n_outputs=3, do_rotary=1, **heads)
    yield Case("packed, rotary", "GroupQueryAttention",
               {**first, "q": f(b, n, (h + 2 * g) * d), "k": None, "v": None, **cache}, n_outputs=3,
               do_rotary=1, rotary_interleaved=1, **heads)
    yield Case("part rotary", "GroupQueryAttention", {**first, "C": f(32, 8), "S": f(32, 8)}, n_outputs=3,
               do_rotary=1, **heads)
    yield Case("window", "GroupQueryAttention", first, n_outputs=3, local_window_size=2, **heads)
    yield Case("softcap", "GroupQueryAttention", first, n_outputs=3, softcap=0.5, scale=0.9, **heads)
    yield Case("smooth", "GroupQueryAttention", first, n_outputs=3, smooth_softmax=1, **heads)
    yield Case("not causal", "GroupQueryAttention", first, n_outputs=3, causal=0, **heads)
    full = {**first, "C": None, "S": None, "P": None}
    yield Case("added", "GroupQueryAttention", {**full, "a": f(1, 1, n, n)}, n_outputs=3, **heads)
    yield Case("sink", "GroupQueryAttention", {**full, "a": None, "H": f(h)}, n_outputs=3, **heads)
    yield Case("sink, window", "GroupQueryAttention", {**full, "a": None, "H": f(h)}, n_outputs=3,
               local_window_size=3, **heads)
    for shown in (1, 2):
        yield Case(f"qk_output={shown}", "GroupQueryAttention", first, n_outputs=4, qk_output=shown, **heads)
    one = {"q": f(b, 1, h * d), "k": f(b, 1, g * d), "v": f(b, 1, g * d)}
    past = {"pk": f(b, g, 6, d), "pv": f(b, g, 6, d)}
    for name, more in (("constant", {"L": i32(6, 6), "T": z(7, numpy.int32)}),
                       ("given", {"l": i32(6, 6), "t": z(7, numpy.int32)}),
                       ("ragged", {"L": i32(3, 6), "T": z(7, numpy.int32)}),
                       ("ragged, given", {"l": i32(4, 6), "t": z(7, numpy.int32)}),
                       ("buffer", {"l": i32(3, 4), "T": z(5, numpy.int32)})):
        yield Case(f"past, {name}", "GroupQueryAttention", {**one, **past, **more, **cache}, n_outputs=3,
                   do_rotary=1, **heads)
    yield Case("past, window", "GroupQueryAttention",
               {**one, **past, "l": i32(4, 6), "T": z(7, numpy.int32)}, n_outputs=3, local_window_size=3, **heads)
    yield Case("past, symbols", "GroupQueryAttention",
               {**one, **past, "l": i32(4, 6), "t": z(7, numpy.int32), **cache}, n_outputs=3, do_rotary=1,
               symbols=True, **heads)
    yield Case("past of one, several queries", "GroupQueryAttention",
               {"q": f(1, 3, h * d), "k": f(1, 3, g * d), "v": f(1, 3, g * d), "pk": f(1, g, 6, d),
                "pv": f(1, g, 6, d), "l": i32(8), "t": z(9, numpy.int32), **cache,
                "p": i64([[6, 7, 8]])}, n_outputs=3, do_rotary=1, **heads)
    yield Case("prompt into a buffer", "GroupQueryAttention",
               {**first, "pk": f(b, g, 9, d), "pv": f(b, g, 9, d)}, n_outputs=3, **heads)


# ---- Weights in blocks --------------------------------------------------------------------------

def blocks():
    for bits, k, n, size in ((4, 64, 8, 32), (4, 40, 7, 16), (4, 100, 5, 32), (8, 70, 6, 32), (2, 64, 6, 16),
                             (4, 257, 5, 64), (4, 83, 6, 128), (8, 301, 5, 256), (2, 129, 6, 128)):
        n_blocks = -(-k // size)
        packed, scales = u8(n, n_blocks, size * bits // 8), f(n * n_blocks, scale=0.1)
        attributes = {"K": k, "N": n, "bits": bits, "block_size": size}
        name = f"{bits} bits, {k} x {n} / {size}"
        base = {"x": f(2, 3, k), "B": packed, "S": scales}
        yield Case(name, "MatMulNBits", base, **attributes)
        yield Case(f"{name}, level 1", "MatMulNBits", {"x": f(4, k), "B": packed, "S": scales.reshape(n, -1)},
                   accuracy_level=1, **attributes)
        yield Case(f"{name}, zeros", "MatMulNBits", {**base, "Z": u8(n * -(-n_blocks * bits // 8))}, **attributes)
        if bits < 8:  # onnxruntime has no kernel for 8
            yield Case(f"{name}, float zeros", "MatMulNBits", {**base, "Z": f(n, n_blocks, scale=4) + 8},
                       **attributes)
        yield Case(f"{name}, bias", "MatMulNBits", {**base, "Z": None, "G": None, "C": f(n)}, **attributes)
    indices = i64([[0, 5], [3, 5]])
    for bits in (4, 8):
        packed, scales = u8(6, 64 * bits // 8), f(6, 4, scale=0.1)
        base = {"D": packed, "i": indices, "S": scales}
        yield Case(f"{bits} bits", "GatherBlockQuantized", base, bits=bits, block_size=16, quantize_axis=1)
        yield Case(f"{bits} bits, zeros", "GatherBlockQuantized", {**base, "Z": u8(6, 4 * bits // 8)}, bits=bits,
                   block_size=16, quantize_axis=1)
    for signed in (True, False):
        low = -8 if signed else 0
        kind = onnx.TensorProto.INT4 if signed else onnx.TensorProto.UINT4
        table = helper.make_tensor("D", kind, [6, 3, 32], rng.integers(low, low + 16, 6 * 96).tolist())
        zeros = helper.make_tensor("Z", kind, [6, 3, 2], rng.integers(low, low + 16, 36).tolist())
        base = {"D": table, "i": indices, "S": f(6, 3, 2)}
        yield Case(f"signed={signed}", "GatherBlockQuantized", base, opset=21, block_size=16, quantize_axis=2)
        yield Case(f"signed={signed}, zeros", "GatherBlockQuantized", {**base, "Z": zeros}, opset=21,
                   block_size=16, quantize_axis=-1)
        axis = {"D": table, "i": i64([1, 2]), "S": f(6, 3, 2)}
        yield Case(f"signed={signed}, axis 1", "GatherBlockQuantized", axis, opset=21, block_size=16,
                   gather_axis=1, quantize_axis=2)


# ---- Integers -----------------------------------------------------------------------------------

def integers():
    for dtype, make in ((numpy.uint8, u8), (numpy.int8, i8)):
        name, low = numpy.dtype(dtype).name, 0 if dtype == numpy.uint8 else -128
        zero = lambda value, low=low, dtype=dtype: z(value + low, dtype)
        a, b = make(2, 3, 5, 7), make(3, 1, 7)
        for op, scale in (("QLinearAdd", 0.03), ("QLinearMul", 0.011)):
            for other in (b, make(2, 3, 5, 7)):
                yield Case(f"{name} {other.shape}", op, {
                    "a": a, "As": s(0.02), "Az": zero(130), "b": other, "Bs": s(0.015), "Bz": zero(110),
                    "Cs": s(scale), "Cz": zero(120)})
        one = {"x": a, "Xs": s(0.02), "Xz": zero(128), "Ys": s(1 / 256), "Yz": zero(0)}
        yield Case(name, "QLinearSigmoid", one)
        yield Case(name, "QLinearLeakyRelu", {**one, "Ys": s(0.02), "Yz": zero(100)}, alpha=0.2)
        for opset, axis in ((13, -1), (13, 1), (12, 2)):
            yield Case(f"{name} opset {opset} axis {axis}", "QLinearSoftmax", one, axis=axis,
                       softmax_opset=opset)
        pool = {"x": a, "Xs": s(0.02), "Xz": zero(128), "Ys": s(0.015), "Yz": zero(120)}
        for last in (0, 1):
            yield Case(f"{name} channels_last={last}", "QLinearAveragePool", pool, kernel_shape=[3, 2],
                       strides=[2, 1], pads=[1, 0, 1, 1], channels_last=last, count_include_pad=last)
            yield Case(f"{name} channels_last={last}", "QLinearGlobalAveragePool", pool, channels_last=last)
        yield Case(name, "QLinearConcat", {
            "Ys": s(0.03), "Yz": zero(120), "a": a, "As": s(0.02), "Az": zero(130), "b": make(2, 1, 5, 7),
            "Bs": s(0.04), "Bz": zero(99)}, axis=1)
        yield Case(name, "QLinearWhere", {
            "c": rng.integers(0, 2, (5, 7)).astype(bool), "x": a, "Xs": s(0.02), "Xz": zero(130),
            "w": b, "Ws": s(0.03), "Wz": zero(120), "Zs": s(0.025), "Zz": zero(128)})
        yield Case(name, "QGemm", {
            "a": make(4, 6), "As": s(0.02), "Az": zero(130), "B": i8(5, 6), "Bs": s(0.01), "Bz": z(3, numpy.int8),
            "C": rng.integers(-900, 900, 5).astype(numpy.int32), "Ys": s(0.04), "Yz": zero(128)}, transB=1,
                   alpha=1.5)
        yield Case(f"{name} float", "QGemm", {
            "a": make(4, 6), "As": s(0.02), "Az": zero(130), "B": i8(6, 5), "Bs": f(5, scale=0.01) ** 2 + s(0.001),
            "Bz": i8(5)})
        yield Case(name, "QLinearConv", {
            "x": make(1, 6, 7, 4), "Xs": s(0.02), "Xz": zero(128), "W": i8(5, 4, 3, 3), "Ws": f(5) ** 2 + s(0.01),
            "Wz": numpy.zeros(5, numpy.int8), "Ys": s(0.5), "Yz": zero(128),
            "B": rng.integers(-900, 900, 5).astype(numpy.int32)}, channels_last=1, pads=[1, 1, 1, 1])
        yield Case(f"{name} channels first", "QLinearConv", {
            "x": make(1, 4, 6, 7), "Xs": s(0.02), "Xz": zero(128), "W": i8(6, 2, 3, 3), "Ws": s(0.01),
            "Wz": z(0, numpy.int8), "Ys": s(0.5), "Yz": zero(128)}, group=2, strides=[2, 1])
    for make in (u8, i8):
        weight = make(6, 5)
        dtype = weight.dtype
        yield Case(dtype.name, "DynamicQuantizeMatMul", {"x": f(2, 3, 6), "B": weight, "Bs": s(0.01)})
        yield Case(f"{dtype.name} by column", "DynamicQuantizeMatMul", {
            "x": f(2, 3, 6), "B": weight, "Bs": f(5, scale=0.01) ** 2 + s(0.001), "Bz": make(5), "C": f(5)})
        yield Case(dtype.name, "MatMulIntegerToFloat", {
            "a": u8(2, 3, 6), "B": weight, "As": s(0.02), "Bs": s(0.01)})
        yield Case(f"{dtype.name} by column", "MatMulIntegerToFloat", {
            "a": u8(2, 3, 6), "B": weight, "As": s(0.02), "Bs": f(5, scale=0.01) ** 2 + s(0.001), "Az": z(131),
            "Bz": make(5), "C": f(5)})
    for dtype in (numpy.uint8, numpy.int8, numpy.uint16, numpy.int16):
        name = numpy.dtype(dtype).name
        yield Case(name, "QuantizeLinear", {"x": f(3, 4, 5), "Ys": s(0.01), "Yz": z(7, dtype)})
        yield Case(name, "DequantizeLinear", {
            "x": rng.integers(0, 100, (3, 4, 5)).astype(dtype), "Xs": s(0.01), "Xz": z(7, dtype)})
    yield Case("axis", "QuantizeLinear", {
        "x": f(3, 4, 5), "Ys": f(4) ** 2 + s(0.01), "Yz": u8(4)}, axis=1)
    yield Case("axis", "DequantizeLinear", {
        "x": u8(3, 4, 5), "Xs": f(5) ** 2 + s(0.01), "Xz": u8(5)}, axis=2)
    yield Case("int32", "DequantizeLinear", {"x": i32(-70000, 5, 90000), "Xs": s(0.01)})


REFUSED = (  # (domain, operator, attributes, inputs, words of the message)
    ("com.microsoft.nchwc", "Conv", {}, "level extended or below"),
    ("com.ms.internal.nhwc", "Conv", {}, "level extended or below"),
    (DOMAIN, "LongformerAttention", {}, "before ONNX Runtime's optimiser"),
)


def check_refused(checks):
    for domain, op, attributes, words in REFUSED:
        graph = helper.make_graph(
            [node(op, ["x", "w"], ["y"], domain, name="the_node", **attributes)], "refused",
            [helper.make_tensor_value_info("x", 1, [1, 8, 8, 8])],
            [helper.make_tensor_value_info("y", 1, None)], [numpy_helper.from_array(f(8, 8, 1, 1), "w")])
        onnx.save(helper.make_model(graph, opset_imports=[
            helper.make_opsetid("", 17), helper.make_opsetid(domain, 1)]), "refused.onnx")
        code, text = checks.mscgym("graph", "refused.onnx")
        text = " ".join(text.split())
        checks.expect(f"{domain}.{op} is refused", code == 1 and words in text and "the_node" in text and
                      op in text, text)


def check_order_refused(checks):
    """Codes whose columns are in another order."""
    weights = {"B": u8(4, 2, 8), "S": f(8), "G": numpy.arange(32, dtype=numpy.int32) // 16}
    graph = helper.make_graph(
        [node("MatMulNBits", ["x", "B", "S", "", "G"], ["y"], domain=DOMAIN, name="the_node", K=32, N=4, bits=4,
              block_size=16)], "refused", [helper.make_tensor_value_info("x", 1, [2, 32])],
        [helper.make_tensor_value_info("y", 1, None)], [numpy_helper.from_array(v, k) for k, v in weights.items()])
    onnx.save(helper.make_model(graph, opset_imports=[
        helper.make_opsetid("", 17), helper.make_opsetid(DOMAIN, 1)]), "refused.onnx")
    code, text = checks.mscgym("graph", "refused.onnx")
    checks.expect("g_idx is refused", code == 1 and text.count("\n") == 1 and "the_node" in text and
                  "quantise without it" in text, text)


def main():
    checks = Checks(sys.argv[1])
    check_order_refused(checks)
    for cases in (products, norms, attentions, grouped, blocks, integers):
        for case in cases():
            check_case(checks, case)
    check_refused(checks)
    check_models(checks)
    return checks.finish()


if __name__ == "__main__":
    sys.exit(main())
