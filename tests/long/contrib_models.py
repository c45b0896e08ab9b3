"""Small models as exporters write them, and what onnxruntime's optimisers make of them.

`check_models(checks)` optimises each model with onnxruntime at levels extended and all and, for
transformers, with onnxruntime.transformers.optimizer. mscgym's outputs of the optimised model must
equal onnxruntime's, and some of the operators must be those that the case names.
"""
import collections
import logging
import os

from small_onnx import numpy, numpy_helper, onnx, onnxruntime

try:
    import sympy
except ImportError:
    sympy = None

helper = onnx.helper
MICROSOFT = "com.microsoft"
LEVELS = {"extended": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED,
          "all": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL}
rng = numpy.random.default_rng(5)


class Net:
    """A model under construction. Methods return the name of a value."""

    def __init__(self, opset=17):
        self.nodes, self.constants, self.inputs, self.feeds, self.opset = [], [], [], {}, opset

    def feed(self, name, value, dims):
        dtype = helper.np_dtype_to_tensor_dtype(value.dtype)
        self.inputs.append(helper.make_tensor_value_info(name, dtype, dims))
        self.feeds[name] = value
        return name

    def const(self, value, name=None):
        name = name or f"c{len(self.constants)}"
        tensor = value if isinstance(value, onnx.TensorProto) else numpy_helper.from_array(
            numpy.asarray(value), name)
        tensor.name = name
        self.constants.append(tensor)
        return name

    def weight(self, *shape, scale=None):
        scale = scale or shape[0] ** -0.5
        return self.const((rng.standard_normal(shape) * scale).astype(numpy.float32),
                          f"weight{len(self.constants)}")

    def add(self, op, *inputs, outputs=1, domain="", **attributes):
        names = [f"{op}_{len(self.nodes)}_{i}" for i in range(outputs)]
        inputs = [i if isinstance(i, str) else "" if i is None else self.const(i) for i in inputs]
        self.nodes.append(helper.make_node(op, inputs, names, f"/{op}_{len(self.nodes)}", domain=domain,
                                           **attributes))
        return names[0] if outputs == 1 else names

    def ints(self, *values):
        return self.const(numpy.array(values, numpy.int64))

    def save(self, path, outputs):
        graph = helper.make_graph(self.nodes, "net", self.inputs,
                                  [onnx.ValueInfoProto(name=o) for o in outputs], self.constants)
        for value in graph.output:
            value.CopyFrom(helper.make_tensor_value_info(value.name, 1, None))
        opsets = [helper.make_opsetid("", self.opset), helper.make_opsetid(MICROSOFT, 1)]
        model = helper.make_model(graph, opset_imports=opsets)
        model.ir_version = 10
        onnx.save(model, path)

    # ---- Parts of networks ----

    def scalar(self, value):
        return self.const(numpy.array(value, numpy.float32))

    def linear(self, x, rows, columns):
        return self.add("Add", self.add("MatMul", x, self.weight(rows, columns)),
                        self.weight(columns, scale=0.1))

    def rms_norm(self, x, size):
        mean = self.add("ReduceMean", self.add("Pow", x, self.scalar(2)), axes=[-1], keepdims=1)
        root = self.add("Sqrt", self.add("Add", mean, self.scalar(1e-5)))
        return self.add("Mul", self.add("Mul", x, self.add("Div", self.scalar(1), root)),
                        self.weight(size, scale=1.0))

    def gelu(self, x):
        half = self.add("Add", self.add("Erf", self.add("Div", x, self.scalar(2 ** 0.5))), self.scalar(1))
        return self.add("Mul", self.add("Mul", x, half), self.scalar(0.5))

    def fast_gelu(self, x):
        cube = self.add("Mul", self.scalar(0.044714998453855515), self.add("Pow", x, self.scalar(3)))
        inner = self.add("Mul", self.scalar(0.7978845834732056), self.add("Add", x, cube))
        return self.add("Mul", self.add("Mul", self.scalar(0.5), x),
                        self.add("Add", self.scalar(1), self.add("Tanh", inner)))

    def heads(self, x, n_heads, size, axes):
        return self.add("Transpose", self.add("Reshape", x, self.ints(0, 0, n_heads, size)), perm=axes)


def bert():
    """Two layers of BERT, with a padding mask."""
    net, hidden, n_heads, length, batch = Net(12), 64, 4, 8, 2
    size = hidden // n_heads
    ids = net.feed("input_ids", rng.integers(0, 30, (batch, length)), ["batch", length])
    mask = net.feed("attention_mask", numpy.array([[1] * 8, [1] * 5 + [0] * 3]), ["batch", length])
    kinds = net.feed("token_type_ids", rng.integers(0, 2, (batch, length)), ["batch", length])
    words = net.add("Gather", net.weight(30, hidden), ids)
    words = net.add("Add", words, net.add("Gather", net.weight(2, hidden), kinds))
    end = net.add("Gather", net.add("Shape", ids), net.const(numpy.array(1, numpy.int64)))
    positions = net.add("Slice", net.const(numpy.arange(16, dtype=numpy.int64)[None]), net.ints(0),
                        net.add("Unsqueeze", end, axes=[0]), net.ints(1))
    x = old_norm(net, net.add("Add", words, net.add("Gather", net.weight(16, hidden), positions)), hidden)
    mask = net.add("Unsqueeze", net.add("Unsqueeze", mask, axes=[1]), axes=[2])
    mask = net.add("Cast", mask, to=1)
    mask = net.add("Mul", net.add("Sub", net.scalar(1), mask), net.scalar(-10000))
    for _ in range(2):
        q = net.heads(net.linear(x, hidden, hidden), n_heads, size, [0, 2, 1, 3])
        k = net.heads(net.linear(x, hidden, hidden), n_heads, size, [0, 2, 3, 1])
        v = net.heads(net.linear(x, hidden, hidden), n_heads, size, [0, 2, 1, 3])
        scores = net.add("Add", net.add("Div", net.add("MatMul", q, k), net.scalar(size ** 0.5)), mask)
        y = net.add("MatMul", net.add("Softmax", scores, axis=3), v)
        y = net.add("Reshape", net.add("Transpose", y, perm=[0, 2, 1, 3]), net.ints(0, 0, hidden))
        x = old_norm(net, net.add("Add", net.linear(y, hidden, hidden), x), hidden)
        y = net.linear(net.gelu(net.linear(x, hidden, 2 * hidden)), 2 * hidden, hidden)
        x = old_norm(net, net.add("Add", y, x), hidden)
    return net, [x]


def gpt2():
    """Two layers of GPT-2 without a past."""
    net, hidden, n_heads = Net(13), 64, 4
    size = hidden // n_heads
    ids = net.feed("input_ids", rng.integers(0, 30, (2, 7)), ["batch", "length"])
    length = net.add("Gather", net.add("Shape", ids), net.const(numpy.array(1, numpy.int64)))
    positions = net.add("Unsqueeze", net.add("Range", net.const(numpy.array(0, numpy.int64)), length,
                                             net.const(numpy.array(1, numpy.int64))), net.ints(0))
    x = net.add("Add", net.add("Gather", net.weight(30, hidden), ids),
                net.add("Gather", net.weight(16, hidden), positions))
    visible = net.const(numpy.tril(numpy.ones((1, 1, 16, 16), bool)))

    def gemm(x, rows, columns):
        flat = net.add("Reshape", x, net.ints(-1, rows))
        y = net.add("Gemm", flat, net.weight(rows, columns), net.weight(columns, scale=0.1))
        shape = net.add("Concat", net.add("Slice", net.add("Shape", x), net.ints(0), net.ints(2)),
                        net.ints(columns), axis=0)
        return net.add("Reshape", y, shape)

    for _ in range(2):
        qkv = gemm(old_norm(net, x, hidden), hidden, 3 * hidden)
        q, k, v = net.add("Split", qkv, net.ints(hidden, hidden, hidden), outputs=3, axis=2)
        q = net.heads(q, n_heads, size, [0, 2, 1, 3])
        k = net.heads(k, n_heads, size, [0, 2, 3, 1])
        v = net.heads(v, n_heads, size, [0, 2, 1, 3])
        scores = net.add("Div", net.add("MatMul", q, k), net.scalar(size ** 0.5))

        def end(axis, scores=scores):
            axis = net.add("Slice", net.add("Shape", scores), net.ints(axis), net.ints(axis + 1))
            return net.add("Squeeze", axis, net.ints(0))

        n_keys = end(3)
        first = net.add("Unsqueeze", net.add("Sub", n_keys, end(2)), net.ints(0))
        last = net.add("Unsqueeze", n_keys, net.ints(0))
        mask = net.add("Slice", visible, first, last, net.ints(2))
        mask = net.add("Slice", mask, net.ints(0), last, net.ints(3))
        scores = net.add("Where", mask, scores, net.scalar(-10000))
        y = net.add("MatMul", net.add("Softmax", scores, axis=3), v)
        y = net.add("Reshape", net.add("Transpose", y, perm=[0, 2, 1, 3]), net.ints(0, 0, hidden))
        x = net.add("Add", x, gemm(y, hidden, hidden))
        y = gemm(net.fast_gelu(gemm(old_norm(net, x, hidden), hidden, 2 * hidden)), 2 * hidden, hidden)
        x = net.add("Add", x, y)
    return net, [old_norm(net, x, hidden)]


def old_norm(net, x, size):
    """A layer normalisation as old exporters write it."""
    centred = net.add("Sub", x, net.add("ReduceMean", x, axes=[-1]))
    variance = net.add("ReduceMean", net.add("Pow", centred, net.scalar(2)), axes=[-1])
    x = net.add("Div", centred, net.add("Sqrt", net.add("Add", variance, net.scalar(1e-5))))
    return net.add("Add", net.add("Mul", x, net.weight(size, scale=1.0)), net.weight(size, scale=0.1))


def llama():
    """Two layers like those of Llama, with rotary embedding and gated layers."""
    net, hidden, n_heads, length = Net(), 64, 4, 6
    size = hidden // n_heads
    x = net.feed("x", rng.standard_normal((2, length, hidden)).astype(numpy.float32),
                 ["batch", length, hidden])
    angles = numpy.outer(numpy.arange(length), 10000.0 ** (-numpy.arange(0, size, 2) / size))
    angles = numpy.concatenate([angles, angles], 1).astype(numpy.float32)
    cosine, sine = net.const(numpy.cos(angles)), net.const(numpy.sin(angles))
    mask = net.const(numpy.triu(numpy.full((length, length), -1e9, numpy.float32), 1))

    def rotate(x):
        low = net.add("Slice", x, net.ints(0), net.ints(size // 2), net.ints(3))
        high = net.add("Neg", net.add("Slice", x, net.ints(size // 2), net.ints(size), net.ints(3)))
        turned = net.add("Concat", high, low, axis=-1)
        return net.add("Add", net.add("Mul", x, cosine), net.add("Mul", turned, sine))

    for _ in range(2):
        y = net.rms_norm(x, hidden)
        q, k, v = (net.heads(net.add("MatMul", y, net.weight(hidden, hidden)), n_heads, size, [0, 2, 1, 3])
                   for _ in range(3))
        k = net.add("Transpose", rotate(k), perm=[0, 1, 3, 2])
        scores = net.add("Mul", net.add("MatMul", rotate(q), k), net.scalar(size ** -0.5))
        y = net.add("MatMul", net.add("Softmax", net.add("Add", scores, mask), axis=-1), v)
        y = net.add("Reshape", net.add("Transpose", y, perm=[0, 2, 1, 3]), net.ints(0, 0, hidden))
        x = net.add("Add", x, net.add("MatMul", y, net.weight(hidden, hidden)))
        y = net.rms_norm(x, hidden)
        gate = net.add("MatMul", y, net.weight(hidden, 2 * hidden))
        gate = net.add("Mul", gate, net.add("Sigmoid", gate))
        y = net.add("Mul", gate, net.add("MatMul", y, net.weight(hidden, 2 * hidden)))
        x = net.add("Add", x, net.add("MatMul", y, net.weight(2 * hidden, hidden)))
    return net, [net.rms_norm(x, hidden)]


def decoder():
    """Two layers of a decoder of 4 bits with a past, as onnxruntime-genai's builder writes it."""
    net, hidden, n_heads, n_keys, past = Net(), 128, 4, 2, 5
    size = hidden // n_heads
    ids = net.feed("input_ids", rng.integers(0, 30, (2, 1)), ["batch", "length"])
    seen = net.feed("attention_mask", numpy.array([[1] * 6, [1] * 4 + [0] * 2]), ["batch", "total"])
    angles = numpy.outer(numpy.arange(32), 10000.0 ** (-numpy.arange(0, size, 2) / size))
    cosine = net.const(numpy.cos(angles).astype(numpy.float32))
    sine = net.const(numpy.sin(angles).astype(numpy.float32))
    lengths = net.add("Sub", net.add("ReduceSum", seen, net.ints(1), keepdims=0), net.ints(1))
    lengths = net.add("Cast", lengths, to=6)
    total = net.add("Gather", net.add("Shape", seen), net.const(numpy.array(1, numpy.int64)))
    total = net.add("Cast", total, to=6)

    def linear(x, rows, columns):
        packed = net.const(rng.integers(0, 256, (columns, rows // 32, 16)).astype(numpy.uint8))
        scales = net.weight(columns, rows // 32, scale=0.02)
        return net.add("MatMulNBits", x, packed, scales, domain=MICROSOFT, K=rows, N=columns, bits=4,
                       block_size=32)

    x = net.add("Gather", net.weight(30, hidden, scale=1.0), ids)
    y = net.add("SimplifiedLayerNormalization", x, net.weight(hidden, scale=1.0), axis=-1, epsilon=1e-5,
                stash_type=1)
    outputs = []
    for layer in range(2):
        q, k, v = linear(y, hidden, hidden), linear(y, hidden, n_keys * size), linear(y, hidden, n_keys * size)
        shape = (2, n_keys, past, size)
        dims = ["batch", n_keys, "past", size]
        keys, values = (net.feed(f"past_{layer}_{i}", rng.standard_normal(shape).astype(numpy.float32), dims)
                        for i in range(2))
        y, present_key, present_value = net.add(
            "GroupQueryAttention", q, k, v, keys, values, lengths, total, cosine, sine, domain=MICROSOFT,
            outputs=3, num_heads=n_heads, kv_num_heads=n_keys, do_rotary=1)
        outputs += [present_key, present_value]
        y, _, _, x = net.add("SkipSimplifiedLayerNormalization", x, linear(y, hidden, hidden),
                             net.weight(hidden, scale=1.0), domain=MICROSOFT, outputs=4, epsilon=1e-5)
        gate = linear(y, hidden, 2 * hidden)
        y = net.add("Mul", net.add("QuickGelu", gate, domain=MICROSOFT, alpha=1.0), linear(y, hidden, 2 * hidden))
        y, _, _, x = net.add("SkipSimplifiedLayerNormalization", x, linear(y, 2 * hidden, hidden),
                             net.weight(hidden, scale=1.0), domain=MICROSOFT, outputs=4, epsilon=1e-5)
    return net, [y] + outputs


def resnet():
    """Residual blocks."""
    net, channels = Net(), 6
    x = net.feed("x", rng.standard_normal((2, 3, 17, 15)).astype(numpy.float32), ["batch", 3, 17, 15])

    def conv(x, rows, columns, kernel=3, **attributes):
        y = net.add("Conv", x, net.weight(columns, rows, kernel, kernel, scale=(rows * kernel * kernel) ** -0.5),
                    pads=[kernel // 2] * 4, **attributes)
        positive = net.const(rng.uniform(0.5, 2, columns).astype(numpy.float32))
        return net.add("BatchNormalization", y, net.weight(columns, scale=1.0), net.weight(columns, scale=0.1),
                       net.weight(columns, scale=0.1), positive)

    x = net.add("MaxPool", net.add("Relu", conv(x, 3, channels, 5, strides=[2, 2])), kernel_shape=[3, 3],
                strides=[2, 2], pads=[1] * 4)
    for stride in (1, 2):
        y = conv(net.add("Relu", conv(x, channels, channels, strides=[stride] * 2)), channels, channels)
        x = conv(x, channels, channels, 1, strides=[stride] * 2) if stride > 1 else x
        x = net.add("Relu", net.add("Add", y, x))
    y = net.add("Clip", conv(x, channels, channels), net.scalar(0), net.scalar(6))
    x = net.add("LeakyRelu", conv(y, channels, channels), alpha=0.2)
    x = net.add("Flatten", net.add("GlobalAveragePool", x))
    x = net.add("Gemm", x, net.weight(channels, 10), net.weight(10), transB=0)
    return net, [net.add("Relu", x)]


def qdq():
    """A convolutional network with quantised activations and weights."""
    net = Net()
    x = net.feed("x", rng.standard_normal((2, 3, 12, 10)).astype(numpy.float32), ["batch", 3, 12, 10])

    def quantise(x, scale=0.03, zero=120):
        scale, zero = net.scalar(scale), net.const(numpy.array(zero, numpy.uint8))
        return net.add("DequantizeLinear", net.add("QuantizeLinear", x, scale, zero), scale, zero)

    def weight(*shape):
        codes = net.const(rng.integers(-127, 128, shape).astype(numpy.int8))
        return net.add("DequantizeLinear", codes, net.scalar(0.002), net.const(numpy.array(0, numpy.int8)))

    def bias(n, scale):
        codes = net.const(rng.integers(-500, 500, n).astype(numpy.int32))
        return net.add("DequantizeLinear", codes, net.scalar(scale), net.const(numpy.array(0, numpy.int32)))

    def conv(x, rows, columns):
        y = net.add("Conv", x, weight(columns, rows, 3, 3), bias(columns, 0.002 * 0.03), pads=[1] * 4)
        return y

    x = quantise(x)
    x = quantise(net.add("Relu", conv(x, 3, 8)), 0.03, 0)
    y = quantise(conv(x, 8, 8))
    x = quantise(net.add("Add", x, y))
    x = quantise(net.add("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2]))
    x = quantise(net.add("LeakyRelu", quantise(conv(x, 8, 8)), alpha=0.1))
    gate = quantise(net.add("Sigmoid", x), 1 / 256, 0)
    x = quantise(net.add("Mul", x, gate))
    x = quantise(net.add("Concat", x, gate, axis=1))
    x = quantise(net.add("AveragePool", x, kernel_shape=[2, 2]))
    x = quantise(net.add("GlobalAveragePool", x), 0.01)
    x = quantise(net.add("Flatten", x), 0.01)
    x = quantise(net.add("Gemm", x, weight(10, 16), bias(10, 0.002 * 0.01), transB=1), 0.005)
    return net, [quantise(net.add("Softmax", x, axis=-1), 1 / 256, 0)]


def dynamic():
    """Products of dynamically quantised activations, as quantize_dynamic writes them."""
    net = Net()
    x = net.feed("x", rng.standard_normal((2, 5, 24)).astype(numpy.float32), ["batch", 5, 24])
    for rows, columns in ((24, 16), (16, 12)):
        codes, scale, zero = net.add("DynamicQuantizeLinear", x, outputs=3)
        weight = net.const(rng.integers(-127, 128, (rows, columns)).astype(numpy.int8))
        y = net.add("Cast", net.add("MatMulInteger", codes, weight, zero, net.const(numpy.array(0, numpy.int8))),
                    to=1)
        y = net.add("Mul", y, net.add("Mul", scale, net.scalar(0.004)))
        x = net.add("Relu", net.add("Add", y, net.weight(columns)))
    return net, [x]


def blocks():
    """Products and a table with weights of 4 bits in blocks."""
    net = Net(21)
    ids = net.feed("ids", rng.integers(0, 16, (2, 5)), ["batch", 5])

    def weight(rows, columns, axis):
        codes = helper.make_tensor("", onnx.TensorProto.INT4, [rows, columns],
                                   rng.integers(-8, 8, rows * columns).tolist())
        shape = [rows, columns]
        shape[axis] //= 32
        return net.add("DequantizeLinear", net.const(codes), net.weight(*shape, scale=0.05), axis=axis,
                       block_size=32)

    x = net.add("Gather", weight(16, 64, 1), ids)
    x = net.add("Relu", net.add("MatMul", x, weight(64, 96, 0)))
    return net, [net.add("MatMul", x, weight(96, 32, 0))]


MODELS = {  # name: (function, operators at level extended, operators at level all)
    "bert": (bert, "Attention BiasGelu", "Attention"),
    "gpt2": (gpt2, "FastGelu FusedMatMul", "FastGelu"),
    "llama": (llama, "SimplifiedLayerNormalization QuickGelu", "SimplifiedLayerNormalization"),
    "decoder": (decoder, "GroupQueryAttention MatMulNBits", "GroupQueryAttention"),
    "resnet": (resnet, "FusedConv FusedGemm"),  # nchwc at level all
    "qdq": (qdq, "QLinearAdd QLinearMul QLinearConcat QLinearSigmoid QLinearLeakyRelu QLinearAveragePool "
                 "QLinearGlobalAveragePool QGemm QLinearSoftmax", "QLinearConv"),
    "dynamic": (dynamic, "DynamicQuantizeMatMul", "DynamicQuantizeMatMul"),
    "blocks": (blocks, "MatMulNBits", "MatMulNBits"),
}


def session_of(path, level=None, written=None):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = level or onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.add_session_config_entry("session.qdq_matmulnbits_accuracy_level", "1")
    if written:
        options.optimized_model_filepath = written
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def compare(checks, what, path, feeds, step=0.0, wanted=""):
    """Outputs of mscgym and onnxruntime; `step` is the step of a quantised output."""
    found = collections.Counter(n.op_type for n in onnx.load(path).graph.node)
    checks.expect(f"{what}: has {wanted}", all(op in found for op in wanted.split()), dict(found))
    session = session_of(path)
    expected = dict(zip([o.name for o in session.get_outputs()], session.run(None, feeds)))
    if os.path.exists("out.npz"):
        os.remove("out.npz")
    results = checks.run(path, feeds)
    for name, value in expected.items():
        result = results.get(name) if isinstance(results, dict) else None
        worst = results if result is None else numpy.abs(result - value).max() if (
            result.shape == value.shape) else result.shape
        most = numpy.abs(value).max()
        checks.expect(f"{what}: {name}", result is not None and result.shape == value.shape and
                      worst <= 1e-4 * most + 1.01 * step, worst)


def optimise_transformer(path, kind):
    """Writes what onnxruntime.transformers.optimizer makes of a model, which needs sympy."""
    from onnxruntime.transformers import optimizer  # pylint: disable=import-outside-toplevel
    logging.disable(logging.WARNING)
    written = f"{path}.transformers.onnx"
    optimizer.optimize_model(path, model_type=kind, num_heads=4, hidden_size=64, opt_level=0).save_model_to_file(
        written)
    return written


def check_quantised(checks, name, path, feeds):
    """mscgym quantize takes the optimised model, and onnxruntime loads what it writes."""
    samples = {k: numpy.concatenate([v] * 8) for k, v in feeds.items()}
    numpy.savez("samples.npz", **samples)
    code, text = checks.mscgym("quantize", path, "--inputs", "samples.npz", "-o", "small.onnx", "--quiet",
                               "--threads", 1)
    if not checks.expect(f"{name}: quantised", code == 0, text):
        return
    expected = session_of(path).run(None, feeds)[0]
    found = session_of("small.onnx").run(None, feeds)[0]
    error = numpy.linalg.norm(found - expected) / numpy.linalg.norm(expected)
    checks.expect(f"{name}: quantised outputs", error < 0.1, error)


def check_blocks(checks, path):
    """The written model has the codes of the original in 4 bits, and onnxruntime fuses its products again."""
    def count(model):
        return sum(n.op_type == "MatMulNBits" for n in onnx.load(model).graph.node)

    session_of("small.onnx", LEVELS["all"], "small.all.onnx")
    checks.expect("blocks are fused again", count("small.all.onnx") == count(path) > 0,
                  (count("small.all.onnx"), count(path)))
    codes = [t for t in onnx.load("small.onnx").graph.initializer if t.data_type == onnx.TensorProto.UINT4]
    checks.expect("codes take 4 bits", len(codes) >= count(path), len(codes))


def check_models(checks):
    for name, (make, *wanted) in MODELS.items():
        net, outputs = make()
        net.save(f"{name}.onnx", outputs)
        step = 1 / 256 if name == "qdq" else 0.0
        for (level, number), operators in zip(LEVELS.items(), wanted):
            written = f"{name}.{level}.onnx"
            session_of(f"{name}.onnx", number, written)
            compare(checks, f"{name} at level {level}", written, net.feeds, step, operators)
        if name in ("bert", "resnet", "decoder"):
            check_quantised(checks, name, f"{name}.extended.onnx", net.feeds)
        if name == "decoder":
            check_blocks(checks, f"{name}.extended.onnx")
        if name in ("bert", "gpt2") and sympy is None:
            print(f"skipped: {name} by transformers, because Python lacks sympy")
        elif name in ("bert", "gpt2"):
            wanted = {"bert": "EmbedLayerNormalization Attention SkipLayerNormalization",
                      "gpt2": "Attention FastGelu SkipLayerNormalization"}
            compare(checks, f"{name} by transformers", optimise_transformer(f"{name}.onnx", name), net.feeds,
                    wanted=wanted[name])
    session_of("resnet.onnx", LEVELS["all"], "resnet.all.onnx")
    domains = {n.domain for n in onnx.load("resnet.all.onnx").graph.node}
    if "com.microsoft.nchwc" in domains:  # depends on the processor
        code, text = checks.mscgym("graph", "resnet.all.onnx")
        checks.expect("nchwc is refused", code == 1 and "level extended or below" in " ".join(text.split()), text)
