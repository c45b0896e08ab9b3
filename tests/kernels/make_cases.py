#!/usr/bin/env python3
"""Writes the cases in cases/: small models of one operator with inputs and the outputs of ONNX
Runtime (CPU, no graph optimisation), in the form of ONNX's own node cases.

They cover what ONNX's cases lack: groups, dilations and uneven padding, ceil_mode, newer resize
modes, integer arithmetic, batched products. Needs onnx, onnxruntime and numpy:

    python3 make_cases.py
"""
import os
import shutil

import numpy as np
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper
from onnx.mapping import NP_TYPE_TO_TENSOR_TYPE as DTYPES

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "cases")
rng = np.random.default_rng(7)


def normal(*shape):
    return rng.standard_normal(shape).astype(np.float32)


def whole(low, high, *shape, dtype=np.int64):
    return rng.integers(low, high, shape).astype(dtype)


def run_model(model, feeds):
    """Runs a model whose outputs have no types yet; ONNX Runtime infers them."""
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(model.SerializeToString(), options,
                                   providers=["CPUExecutionProvider"])
    return [np.array(y, order="C") for y in session.run(None, feeds)]


def write_tensor(folder, name, array, file_name):
    with open(os.path.join(folder, file_name), "wb") as file:
        file.write(numpy_helper.from_array(array, name).SerializeToString())


def write_case(name, op, inputs, opset=17, constants=0, n_outputs=1, **attrs):
    """Writes a case. The last `constants` inputs are initialisers; None is an absent input."""
    inputs = [None if x is None else np.asarray(x) for x in inputs]
    names = ["" if x is None else "x%d" % i for i, x in enumerate(inputs)]
    out_names = ["y%d" % i for i in range(n_outputs)]
    first_constant = len(inputs) - constants
    fed = {names[i]: inputs[i] for i in range(first_constant) if names[i]}
    initializers = [numpy_helper.from_array(inputs[i], names[i])
                    for i in range(first_constant, len(inputs)) if names[i]]
    graph = helper.make_graph(
        [helper.make_node(op, names, out_names, name=op.lower(), **attrs)], name,
        [helper.make_tensor_value_info(key, DTYPES[x.dtype], x.shape)
         for key, x in fed.items()],
        [helper.ValueInfoProto(name=key) for key in out_names], initializers)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    save_case(name, model, fed, out_names)


def save_case(name, model, fed, out_names):
    results = run_model(model, fed)
    for i, y in enumerate(results):
        model.graph.output[i].CopyFrom(helper.make_tensor_value_info(
            out_names[i], DTYPES[y.dtype], y.shape))
    folder = os.path.join(FOLDER, "test_" + name)
    data = os.path.join(folder, "test_data_set_0")
    os.makedirs(data)
    with open(os.path.join(folder, "model.onnx"), "wb") as file:
        file.write(model.SerializeToString())
    for i, key in enumerate(fed):
        write_tensor(data, key, fed[key], "input_%d.pb" % i)
    for i, y in enumerate(results):
        write_tensor(data, out_names[i], y, "output_%d.pb" % i)


def halves(name, values, shape, signed, in_fields=False):
    """An initialiser with 4-bit elements, stored as raw bytes or as numbers."""
    values = [v & 15 for v in values]
    values += [0] * (len(values) % 2)
    packed = bytes(a | b << 4 for a, b in zip(values[::2], values[1::2]))
    tensor = TensorProto(name=name, dims=shape, data_type=22 if signed else 21)
    if in_fields:
        tensor.int32_data.extend(packed)
    else:
        tensor.raw_data = packed
    return tensor


def write_chain(name, x, nodes, initializers, opset=21):
    """Writes a case of several nodes from x to y; everything else is constant."""
    graph = helper.make_graph(
        nodes, name, [helper.make_tensor_value_info("x", DTYPES[x.dtype], x.shape)],
        [helper.ValueInfoProto(name="y")], initializers)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    save_case(name, model, {"x": x}, ["y"])


class Spelling:
    """Builds models from Python expressions of Values; write() makes a case with given outputs."""

    def __init__(self):
        self.nodes, self.initializers, self.fed = [], [], {}

    def input(self, array):
        self.fed["x%d" % len(self.fed)] = array
        return Value(self, list(self.fed)[-1])

    def name(self, value):
        if value is None:
            return ""  # an absent operand
        if isinstance(value, Value):
            return value.name
        if not isinstance(value, np.ndarray):
            value = np.array(value, np.float32)
        self.initializers.append(numpy_helper.from_array(value, "c%d" % len(self.initializers)))
        return self.initializers[-1].name

    def node(self, op, *inputs, **attrs):
        value = Value(self, "%s_%d" % (op.lower(), len(self.nodes)))
        names = [self.name(i) for i in inputs]
        self.nodes.append(helper.make_node(op, names, [value.name], name=value.name, **attrs))
        return value

    def write(self, name, *outputs, opset=17):
        graph = helper.make_graph(
            self.nodes, name, [helper.make_tensor_value_info(key, DTYPES[x.dtype], x.shape)
                               for key, x in self.fed.items()],
            [helper.ValueInfoProto(name=y.name) for y in outputs], self.initializers)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)],
                                  ir_version=8)
        save_case(name, model, self.fed, [y.name for y in outputs])


class Value:
    __array_ufunc__ = None  # leaves operators with numpy arrays to this class

    def __init__(self, spelling, name):
        self.spelling, self.name = spelling, name

    def __add__(self, other):
        return self.spelling.node("Add", self, other)

    def __sub__(self, other):
        return self.spelling.node("Sub", self, other)

    def __mul__(self, other):
        return self.spelling.node("Mul", self, other)

    def __rmul__(self, other):
        return self.spelling.node("Mul", other, self)

    def __radd__(self, other):
        return self.spelling.node("Add", other, self)

    def __truediv__(self, other):
        return self.spelling.node("Div", self, other)

    def __pow__(self, other):
        return self.spelling.node("Pow", self, other)

    def __getattr__(self, op):
        """value.Erf() is the node Erf applied to it."""
        return lambda *inputs, **attrs: self.spelling.node(op, self, *inputs, **attrs)


def conv_cases():
    write_case("conv_groups_dilation", "Conv", [normal(2, 6, 9, 8), normal(9, 2, 3, 2), normal(9)],
               constants=2, group=3, dilations=[2, 1], strides=[1, 2], pads=[1, 0, 3, 1])
    write_case("conv_depthwise", "Conv", [normal(1, 5, 7, 7), normal(5, 1, 3, 3)], constants=1,
               group=5, strides=[2, 2], pads=[1, 1, 1, 1])
    write_case("conv_1d", "Conv", [normal(2, 3, 17), normal(4, 3, 5), normal(4)], constants=2,
               strides=[3], pads=[2, 4], dilations=[2])
    write_case("conv_3d", "Conv", [normal(1, 2, 4, 5, 6), normal(3, 2, 2, 3, 1), normal(3)],
               constants=2, pads=[0, 1, 0, 1, 0, 2], strides=[1, 2, 1])
    write_case("conv_same_upper", "Conv", [normal(1, 2, 8, 7), normal(3, 2, 3, 4)], constants=1,
               auto_pad="SAME_UPPER", strides=[2, 3])
    write_case("convtranspose_groups", "ConvTranspose",
               [normal(2, 6, 4, 5), normal(6, 2, 3, 2), normal(6)], constants=2, group=3,
               strides=[2, 3], pads=[1, 0, 0, 1], output_padding=[1, 2], dilations=[2, 1])
    write_case("gemm_transposed", "Gemm", [normal(5, 4), normal(3, 5), normal(1, 3)], constants=2,
               transA=1, transB=1, alpha=0.5, beta=2.0)
    write_case("gemm_weight", "Gemm", [normal(4, 5), normal(3, 5), normal(3)], constants=2,
               transB=1)
    write_case("matmul_weight", "MatMul", [normal(2, 3, 70), normal(70, 66)], constants=1)
    write_case("matmul_broadcast", "MatMul", [normal(2, 1, 3, 4), normal(5, 4, 2)])
    write_case("matmul_vector", "MatMul", [normal(4), normal(3, 4, 2)])
    write_case("batchnorm_3d", "BatchNormalization",
               [normal(2, 3, 4), normal(3), normal(3), normal(3), np.abs(normal(3))], constants=4,
               epsilon=0.01)


def pool_cases():
    write_case("averagepool_ceil_include_pad", "AveragePool", [normal(1, 2, 9, 10)], opset=19,
               kernel_shape=[3, 4], strides=[2, 3], pads=[1, 0, 1, 2], ceil_mode=1,
               count_include_pad=1)
    write_case("averagepool_ceil", "AveragePool", [normal(1, 2, 8, 8)], kernel_shape=[3, 3],
               strides=[2, 2], pads=[0, 0, 0, 0], ceil_mode=1)
    write_case("maxpool_dilation_ceil", "MaxPool", [normal(1, 2, 11, 10)], kernel_shape=[3, 2],
               strides=[2, 3], dilations=[2, 2], pads=[1, 0, 1, 1], ceil_mode=1)
    write_case("globalaveragepool_3d", "GlobalAveragePool", [normal(2, 3, 2, 3, 4)])
    x = normal(1, 2, 4, 5)
    scales = np.array([1, 1, 2.3, 1.7], np.float32)
    # With align_corners and fractional scales ONNX and ONNX Runtime differ, so sizes are used
    # instead.
    write_case("resize_linear_align_corners", "Resize", [x, None, None, np.array([1, 2, 9, 8])],
               opset=19, constants=3, mode="linear",
               coordinate_transformation_mode="align_corners")
    for mode in ["half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "asymmetric"]:
        write_case("resize_linear_" + mode, "Resize", [x, None, scales], opset=19, constants=2,
                   mode="linear", coordinate_transformation_mode=mode)
    write_case("resize_cubic_down", "Resize", [x, None, np.array([1, 1, 0.6, 0.7], np.float32)],
               opset=19, constants=2, mode="cubic", cubic_coeff_a=-0.5, exclude_outside=1)
    write_case("resize_nearest_sizes", "Resize", [x, None, None, np.array([1, 2, 7, 3])], opset=19,
               constants=3, mode="nearest", nearest_mode="ceil",
               coordinate_transformation_mode="half_pixel")
    write_case("resize_nearest_legacy", "Resize", [x, np.array([1, 1, 2, 2], np.float32)],
               opset=10, constants=1, mode="nearest")


def value_cases():
    integers = whole(-9, 10, 3, 4)
    nonzero = whole(1, 5, 4) * np.array([1, -1, 1, -1])
    for op in ["Add", "Sub", "Mul", "Div", "Equal", "Greater", "Less"]:
        write_case(op.lower() + "_int64", op, [integers, nonzero])
    write_case("max_broadcast", "Max", [normal(2, 1, 3), normal(4, 1), normal(1)])
    write_case("where_int64", "Where", [whole(0, 2, 3, 1, dtype=bool), integers, nonzero])
    write_case("cast_float_to_int64", "Cast", [normal(5) * 10], to=TensorProto.INT64)
    write_case("cast_int64_to_bool", "Cast", [whole(-1, 2, 6)], to=TensorProto.BOOL)
    write_case("gelu_erf", "Gelu", [normal(3, 5)], opset=20)
    write_case("gelu_tanh", "Gelu", [normal(3, 5)], opset=20, approximate="tanh")
    write_case("hardswish", "HardSwish", [normal(20) * 4], opset=14)
    write_case("pow_float", "Pow", [np.abs(normal(6)), np.float32(1.7)], constants=1)
    write_case("argmax_last", "ArgMax", [whole(0, 3, 3, 6, dtype=np.int32)], axis=1, keepdims=0,
               select_last_index=1)
    write_case("reducemean_axes", "ReduceMean", [normal(2, 3, 4, 5), np.array([1, -1])], opset=18,
               constants=1)
    write_case("reducesum_int64", "ReduceSum", [whole(-5, 5, 2, 3, 4), np.array([0, 2])],
               opset=18, constants=1, keepdims=0)
    write_case("reducemax_axis", "ReduceMax", [normal(2, 3, 4)], axes=[1])


def move_cases():
    write_case("slice_steps", "Slice", [whole(0, 99, 5, 6, 7), np.array([4, -1]),
                                        np.array([-9, 1]), np.array([0, 2]), np.array([-2, -1])],
               constants=4)
    write_case("split_uneven", "Split", [normal(3, 7)], opset=18, n_outputs=3, axis=1,
               num_outputs=3)
    write_case("pad_wrap", "Pad", [normal(2, 5), np.array([1, 2, 0, 3])], opset=19, constants=1,
               mode="wrap")
    write_case("pad_negative", "Pad", [normal(4, 5), np.array([-1, 2, 1, -2]), np.float32(0.5)],
               constants=2)
    write_case("pad_axes", "Pad", [normal(3, 4, 5), np.array([1, 2, 0, 1]), None,
                                   np.array([2, 0])], opset=18, constants=3, mode="reflect")
    write_case("gather_axis1", "Gather", [normal(3, 5, 2), whole(-5, 5, 2, 2)], axis=1)
    write_case("expand_rank", "Expand", [normal(3, 1), np.array([2, 1, 4])], constants=1)
    write_case("tile_3d", "Tile", [whole(0, 99, 2, 3, 1), np.array([2, 1, 3])], constants=1)
    write_case("transpose_int8", "Transpose", [whole(-9, 9, 2, 3, 4, dtype=np.int8)],
               perm=[2, 0, 1])
    write_case("concat_int64", "Concat", [whole(0, 9, 2, 3), whole(0, 9, 2, 1)], axis=-1)


def quant_cases():
    wide = np.array([-1e30, -9.5, -0.75, -0.25, 0, 0.25, 0.75, 1.25, 300, 1e30], np.float32)
    half = np.float32(0.5)
    write_case("quantize_ties", "QuantizeLinear", [wide, half, np.uint8(3)], opset=10)
    write_case("quantize_default_type", "QuantizeLinear", [wide, half], opset=13)
    write_case("quantize_output_type", "QuantizeLinear", [wide, half], opset=21,
               output_dtype=TensorProto.INT16)
    write_case("quantize_float16", "QuantizeLinear",
               [normal(3, 5).astype(np.float16), np.array([0.1, 0.25, 0.3], np.float16),
                whole(-4, 4, 3, dtype=np.int8)], opset=21, axis=0)
    write_case("quantize_last_axis", "QuantizeLinear",
               [normal(2, 3, 4), np.abs(normal(4)) / 50, whole(0, 65536, 4, dtype=np.uint16)],
               opset=21, axis=-1)
    write_case("quantize_blocks_inside", "QuantizeLinear",
               [normal(2, 7, 3), np.abs(normal(2, 3, 3)) / 40, whole(-9, 9, 2, 3, 3, dtype=np.int8)],
               opset=21, axis=1, block_size=3)
    write_case("quantize_blocks_last", "QuantizeLinear",
               [normal(2, 3, 7), np.abs(normal(2, 3, 4)) / 40], opset=21, axis=-1, block_size=2)
    write_case("dequantize_int32", "DequantizeLinear",
               [whole(-2**24, 2**24, 3, 4, dtype=np.int32), np.abs(normal(3))], opset=13, axis=0)
    write_case("dequantize_int16", "DequantizeLinear",
               [whole(-2**15, 2**15, 2, 3, 2, dtype=np.int16), np.abs(normal(3)),
                whole(-99, 99, 3, dtype=np.int16)], opset=21, axis=1)
    write_case("dequantize_float16", "DequantizeLinear",
               [whole(0, 256, 2, 6, dtype=np.uint8), np.float16(0.37), np.uint8(128)], opset=19)
    write_case("dequantize_blocks", "DequantizeLinear",
               [whole(0, 2**16, 5, 4, dtype=np.uint16), np.abs(normal(3, 4)),
                whole(0, 2**16, 3, 4, dtype=np.uint16)], opset=21, axis=0, block_size=2)
    for name, x in (("zeros", np.zeros((2, 3), np.float32)), ("above", np.abs(normal(7)) + 1),
                    ("below", -np.abs(normal(2, 4)) - 1)):
        write_case("dynamic_quantize_" + name, "DynamicQuantizeLinear", [x], opset=11, n_outputs=3)

    def number(name, value):
        return numpy_helper.from_array(np.asarray(value, np.float32), name)

    pair = [helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
            helper.make_node("DequantizeLinear", ["q", "s", "z"], ["y"])]
    for signed in (False, True):
        write_chain("quantize_%sint4" % ("" if signed else "u"), normal(5, 3) * 4, pair,
                    [number("s", 0.6), halves("z", [-3 if signed else 5], [], signed)])
    write_chain("dequantize_int4_weight", normal(2, 3), [
        helper.make_node("DequantizeLinear", ["w", "s", "z"], ["d"], axis=0),
        helper.make_node("DequantizeLinear", ["v", "t"], ["e"]),
        helper.make_node("Add", ["d", "e"], ["both"]),
        helper.make_node("MatMul", ["x", "both"], ["y"])], [
            halves("w", whole(-8, 8, 15).tolist(), [3, 5], True), number("s", [0.5, 0.25, 0.75]),
            halves("z", [1, -2, 0], [3], True, in_fields=True),
            halves("v", whole(0, 16, 15).tolist(), [3, 5], False, in_fields=True),
            number("t", 0.125)])
    # Weights that the model itself quantises, from floats.
    write_chain("quantize_weight", normal(2, 4), [
        helper.make_node("QuantizeLinear", ["w", "s", "z"], ["q"], axis=1),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["d"], axis=1),
        helper.make_node("MatMul", ["x", "d"], ["y"])], [
            number("w", normal(4, 3) * 3), number("s", [0.01, 0.02, 0.4]),
            numpy_helper.from_array(np.array([0, 5, -7], np.int8), "z")])


def fused_cases():
    """Patterns that passes fuse into one joint (tests/graph/test_fuse.c counts them)."""
    s = Spelling()
    x = s.input(normal(2, 3, 5) * 3)
    exact = [(x / 2 ** 0.5).Erf() + 1, 1 + (x * 0.5 ** 0.5).Erf()]
    cubes = [0.044715 * x ** 3, x * x * x * 0.044715, 0.044715 * x * x * x]
    tanh = [((x + cube) * (2 / np.pi) ** 0.5).Tanh() + 1 for cube in cubes]
    tanh.append((x * 0.79788456 * (1 + 0.044715 * x * x)).Tanh() + 1)
    s.write("fused_gelu", x * exact[0] * 0.5, 0.5 * x * exact[1], x * tanh[0] / 2,
            x * (0.5 * tanh[1]), x * 0.5 * tanh[2], 0.5 * (x * tanh[3]))

    s = Spelling()
    x = s.input(normal(2, 3, 5) * 3)
    six = [(x + 3).Clip(0, 6) for _ in range(4)]
    s.write("fused_hard_swish", x * six[0] / 6, six[1] * x * (1 / 6), x * (six[2] / 6),
            x * (six[3] * np.array([1 / 6], np.float32)),
            x * x.HardSigmoid(alpha=1 / 6, beta=0.5))

    s = Spelling()
    x = s.input(np.linspace(-9, 9, 105, dtype=np.float32).reshape(3, 5, 7))
    six = [(x + 3).Clip(0).Clip(None, 6), (x + 3).Clip(None, 6).Clip(0),
           (x + 3).Relu().Clip(None, 6)]
    s.write("fused_hard_swish_limits", x * six[0] / 6, six[1] * x * (1 / 6), x * (six[2] / 6))

    s = Spelling()
    x, y = s.input(normal(2, 4, 3)), s.input(normal(1, 4, 5, 6))
    line = normal(3) + x.MatMul(normal(3, 3))
    image = y.Conv(normal(7, 4, 3, 3)) + normal(7, 1, 1)
    up = y.ConvTranspose(normal(4, 2, 2, 2)) + normal(1, 2, 1, 1)
    norm = (y.Conv(normal(3, 4, 1, 1)) + normal(3, 1, 1)).BatchNormalization(
        normal(3), normal(3), normal(3), np.abs(normal(3)))
    s.write("fused_bias", line, image, up, norm)

    s = Spelling()
    x, z = s.input(normal(2, 3, 35) * 3 + 1), s.input(normal(2, 3, 4, 5))
    gamma, beta = normal(35), normal(35)

    def mean(value, *axes):
        return value.ReduceMean(axes=list(axes), keepdims=1)

    def centred(value, *axes):
        return value - mean(value, *axes)

    c, p, q = centred(x, -1), centred(x, 2), centred(z, 2, 3)
    s.write("fused_layer_norm", c / (mean(c ** 2, -1) + 1e-5).Sqrt() * gamma + beta,
            beta + gamma * (p / (mean(p * p, -1) + 1e-3).Sqrt()),
            centred(x, -1) / (mean(centred(x, -1) ** 2, -1) + 1e-5).Sqrt() * gamma + beta,
            q / (mean(q ** 2, 3, -2) + 1e-5).Sqrt() * normal(4, 5),
            x.LayerNormalization(gamma, beta, epsilon=1e-2),
            z.LayerNormalization(normal(3, 4, 5), axis=1))

    # Similar patterns that must not be fused.
    s = Spelling()
    x, y = s.input(normal(2, 3)), s.input(normal(2, 3))
    read_twice, shown = (x / 2 ** 0.5).Erf(), (x + 3).Clip(0, 6)
    s.write("fused_not", x * ((x / 1.414).Erf() + 1) * 0.5,  # not the square root of 2
            x * (read_twice + 1) * 0.5 + read_twice,
            x * ((x * 0.5 ** 0.5).Erf() + 1) * 0.4, y * ((x / 2 ** 0.5).Erf() + 1) * 0.5,
            x * shown / 6, shown, x * (x + 3).Clip(0, 5) / 6, x * (y + 3).Clip(0, 6) / 6,
            x * x.HardSigmoid(alpha=0.2, beta=0.5),
            x * (x + 3).Clip(0, 6) / np.full((1, 1, 1), 6, np.float32),  # an additional dimension
            x.MatMul(normal(3, 3)) + normal(2, 1), x.MatMul(normal(3, 1)) + normal(3))

    s = Spelling()
    x, z = s.input(normal(2, 3, 5)), s.input(normal(2, 3, 5))
    first, c, d = centred(x, 1), centred(x, -1), centred(x, -1)
    spread = (mean(d ** 2, -1) + 1e-5).Sqrt()
    s.write("fused_no_layer_norm",
            first / (mean(first ** 2, 1) + 1e-5).Sqrt() * normal(5) + normal(5),  # not the last axis
            c / (mean(c ** 2, 0) + 1e-5).Sqrt() * normal(5) + normal(5),
            d / spread * normal(5) + normal(5), spread,
            z / (mean(centred(z, -1) ** 2, -1) + 1e-5).Sqrt() * normal(5) + normal(5),
            centred(z, -1) / (mean(centred(z, -1) ** 2, -1) + 1e-5).Sqrt() * normal(3, 1))

    # Normalised along the channels of the convolution, which are not those of the product.
    s = Spelling()
    x = s.input(normal(2, 3, 6))
    line = x.Conv(normal(4, 3, 1)).MatMul(normal(6, 4))
    s.write("fused_not_across", line.BatchNormalization(normal(4), normal(4), normal(4),
                                                        np.abs(normal(4))))


def sample_cases():
    # Positions outside the image, with neighbours on both sides of its edge.
    for mode in ("zeros", "border", "reflection"):
        grid = normal(1, 4, 5, 2)
        write_case("gridsample_cubic_" + mode, "GridSample", [normal(1, 2, 3, 4), grid],
                   mode="bicubic", padding_mode=mode)


def region_cases():
    # Regions that extend far beyond the image, with one sample per element.
    x = np.random.default_rng(8).standard_normal((2, 3, 6, 7)).astype(np.float32)
    images = np.array([0, 1, 1, 0, 1])
    regions = np.array([[-300, 1, 500, 4.5], [2, -40.5, 3, 60], [-90, -90, 130, 130],
                        [50, 60, 70, 80], [-3.25, 0, 0.5, 9]], np.float32)
    for mode in ("avg", "max"):
        for transform in ("half_pixel", "output_half_pixel"):
            write_case("roialign_far_%s_%s" % (mode, transform), "RoiAlign", [x, regions, images],
                       mode=mode, coordinate_transformation_mode=transform, output_height=2,
                       output_width=3, spatial_scale=0.5, sampling_ratio=0)


HEADS, WIDTH = 3, 4  # per head


def split_heads(value, *axes):
    """[samples, tokens, heads * width] with axes (sample, token, head, width) permuted."""
    return value.Reshape(np.array([0, 0, HEADS, WIDTH])).Transpose(perm=axes)


def heads_of(x, transpose=(0, 2, 3, 1)):
    """Query, key (transposed) and value."""
    q, k, v = [x.MatMul(normal(HEADS * WIDTH, HEADS * WIDTH)) for _ in range(3)]
    return split_heads(q, 0, 2, 1, 3), split_heads(k, *transpose), split_heads(v, 0, 2, 1, 3)


def attention_cases():
    """Attention in the forms that exporters write; tests/graph/test_fuse_attention.c counts them."""
    tokens = 6
    causal = np.tril(np.ones((1, 1, tokens, tokens), bool))
    scale = WIDTH ** -0.5
    s = Spelling()
    x = s.input(normal(2, tokens, HEADS * WIDTH))
    mask = s.input(np.where(normal(2, 1, 1, tokens) > 0.8, -10000, 0).astype(np.float32))
    outputs = []

    # BERT: a division after the product, and a computed mask.
    q, k, v = heads_of(x)
    scores = q.MatMul(k) / WIDTH ** 0.5 + mask
    outputs.append(scores.Softmax(axis=-1).MatMul(v).Transpose(perm=[0, 2, 1, 3]))
    # torch 2: both factors times the square root of the scale; masked scores are minus infinity.
    q, k, v = heads_of(x)
    scores = (q * scale ** 0.5).MatMul(k * scale ** 0.5) + np.where(causal, 0, -np.inf).astype("f")
    outputs.append(scores.Softmax(axis=3).MatMul(v).Transpose(perm=[0, 2, 1, 3]))
    # GPT-2: a choice between scores and a low number; the key is transposed twice.
    q, k, v = heads_of(x, (0, 2, 1, 3))
    scores = s.node("Where", causal, q.MatMul(k.Transpose(perm=[0, 1, 3, 2])) * scale,
                    np.array(-1e4, "f"))
    outputs.append(scores.Softmax(axis=-1).MatMul(v))
    # The factors swapped, and the division before the transposition.
    q, k, v = [x.MatMul(normal(12, 12)).Reshape(np.array([0, 0, HEADS, WIDTH])) for _ in range(3)]
    scores = (q / WIDTH ** 0.5).Transpose(perm=[0, 2, 1, 3]).MatMul(k.Transpose(perm=[0, 2, 3, 1]))
    scores = s.node("Where", ~causal, np.array(-np.inf, "f"), scores)
    outputs.append(scores.Softmax(axis=-1).MatMul(v.Transpose(perm=[0, 2, 1, 3])))
    # One head, no scale, and one tensor as query, key and value.
    outputs.append(x.MatMul(x.Transpose(perm=[0, 2, 1])).Softmax(axis=-1).MatMul(x))
    # T5: an added constant, and the scale applied elsewhere. Two queries share the keys.
    q, k, v = heads_of(x)
    other = split_heads(x.MatMul(normal(12, 12)), 0, 2, 1, 3)
    bias = normal(1, HEADS, tokens, tokens)
    outputs += [(bias + a.MatMul(k)).Softmax(axis=-1).MatMul(v) for a in (q, other)]
    s.write("fused_attention", *outputs)

    # In a branch that remains, because only the run decides which branch is taken.
    shape = (2, tokens, HEADS * WIDTH)
    then, x = Spelling(), normal(*shape)
    q = Value(then, "x1")
    y = q.MatMul(q.Transpose(perm=[0, 2, 1])).Softmax(axis=-1).MatMul(q)
    branches = [helper.make_graph(nodes, name, [], [helper.make_tensor_value_info(out, 1, shape)])
                for name, nodes, out in (("then", then.nodes, y.name),
                                         ("else", [helper.make_node("Relu", ["x1"], ["r"])], "r"))]
    node = helper.make_node("If", ["x0"], ["y"], name="if", then_branch=branches[0],
                            else_branch=branches[1])
    s = Spelling()
    s.input(np.array(True)), s.input(x)
    s.nodes.append(node)
    s.write("fused_attention_in_branch", Value(s, "y"))

    # Similar patterns that must not be fused.
    s = Spelling()
    x = s.input(normal(2, tokens, HEADS * WIDTH))
    outputs = []

    def parts():
        q, k, v = heads_of(x)
        return q.MatMul(k), v

    scores, v = parts()  # another axis
    outputs.append((scores * scale).Softmax(axis=2).MatMul(v))
    scores, v = parts()  # probabilities with another consumer
    probabilities = (scores * scale).Softmax(axis=-1)
    outputs += [probabilities.MatMul(v), probabilities]
    scores, v = parts()  # scores with another consumer
    outputs += [(scores * scale).Softmax(axis=-1).MatMul(v), scores.ReduceSum(keepdims=0)]
    scores, v = parts()  # the scale after the softmax
    outputs.append(((scores.Softmax(axis=-1)) * scale).MatMul(v))
    scores, v = parts()  # the scale after the mask
    outputs.append(((scores + normal(tokens, tokens)) * scale).Softmax(axis=-1).MatMul(v))
    scores, v = parts()  # one scale per head
    outputs.append((scores * normal(HEADS, 1, 1)).Softmax(axis=-1).MatMul(v))
    scores, v = parts()  # minus the scores
    outputs.append(s.node("Sub", normal(tokens, tokens), scores).Softmax(axis=-1).MatMul(v))
    scores, v = parts()  # probabilities on the right-hand side
    outputs.append(v.Transpose(perm=[0, 1, 3, 2]).MatMul(scores.Softmax(axis=-1)))
    scores, v = parts()  # values that are the probabilities or the scores
    probabilities = scores.Softmax(axis=-1)
    outputs.append(probabilities.MatMul(probabilities))
    scores, v = parts()
    outputs.append(scores.Softmax(axis=-1).MatMul(scores))
    q, k, v = heads_of(x)  # constant values and keys
    outputs.append(q.MatMul(k).Softmax(axis=-1).MatMul(normal(HEADS, tokens, WIDTH)))
    q, k, v = heads_of(x)
    outputs.append(q.MatMul(normal(HEADS, WIDTH, tokens)).Softmax(axis=-1).MatMul(v))
    s.write("fused_no_attention", *outputs)


def pad_cases():
    """Zero padding before a convolution, and padding that must remain (tests/graph/test_fuse.c)."""

    def padded(value, *widths, **attrs):
        return value.Pad(np.array(widths, np.int64), **attrs)

    s = Spelling()
    x, y = s.input(normal(1, 4, 5, 6)), s.input(normal(1, 2, 7))
    even = padded(x, 0, 0, 1, 1, 0, 0, 1, 1).Conv(normal(3, 4, 3, 3), strides=[2, 2])
    uneven = padded(x, 0, 0, 0, 1, 0, 0, 1, 0).Conv(normal(4, 1, 3, 3), normal(4), group=4,
                                                    pads=[1, 0, 0, 1])
    line = padded(y, 0, 0, 2, 0, 0, 0).Conv(normal(3, 2, 2), dilations=[2])
    s.write("fused_pad", even, uneven, line)

    s = Spelling()
    x = s.input(normal(1, 4, 5, 6))
    twice, shown = padded(x, 0, 0, 1, 1, 0, 0, 1, 1), padded(x, 0, 0, 1, 1, 0, 0, 1, 1)
    s.write("fused_no_pad", twice.Conv(normal(3, 4, 3, 3)) + twice.Conv(normal(3, 4, 3, 3)),
            shown.Conv(normal(3, 4, 3, 3)), shown,
            padded(x, 0, 0, 1, 1, 0, 0, 1, 1, mode="edge").Conv(normal(3, 4, 3, 3)),
            x.Pad(np.array([0, 0, 1, 1, 0, 0, 1, 1]), np.float32(0.5)).Conv(normal(3, 4, 3, 3)),
            padded(x, 0, 1, 0, 0, 0, 0, 0, 0).Conv(normal(3, 5, 3, 3)),  # channels
            padded(x, 0, 0, -1, 0, 0, 0, 0, 0).Conv(normal(3, 4, 3, 3)),  # negative padding
            padded(x, 0, 0, 3, 0, 0, 0, 0, 0).Conv(normal(3, 4, 3, 3)),  # windows of only zeros
            padded(x, 0, 0, 1, 1, 0, 0, 1, 1).ConvTranspose(normal(4, 2, 2, 2)))


def einsum_cases():
    """Einsums that are matrix products, and others (tests/graph/test_fuse.c)."""
    s = Spelling()
    q, k = s.input(normal(2, 3, 4, 5)), s.input(normal(2, 3, 6, 5))
    p, r = s.input(normal(2, 3, 4, 6)), s.input(normal(2, 4, 3, 5))
    s.write("fused_einsum", *[s.node("Einsum", a, b, equation=e) for e, a, b in [
        ("bhid,bhjd->bhij", q, k), ("bhij, bhjd -> bhid", p, k), ("...ij,...jd->...id", p, k),
        ("bhid,bhjd->bhji", q, k), ("bhid,bhjd->ibhj", q, k), ("bihd,bhjd->bhij", r, k),
        ("bhid,do->bhio", q, normal(5, 2)), ("bhid,hjd->bhij", q, normal(3, 7, 5)),
        ("bhid,ijd->bhij", q, normal(4, 7, 5))]])

    s = Spelling()
    q, v, w = s.input(normal(2, 3, 4, 5)), s.input(normal(2, 3, 5)), s.input(normal(3, 4, 4))
    s.write("fused_no_einsum", *[s.node("Einsum", a, b, equation=e) for e, a, b in [
        ("bhid,hdo->bio", q, normal(3, 5, 2)),  # two summed axes: a linear layer
        ("bhid,bhd->bhi", q, v),  # one operand is a vector
        ("hii,bhid->bhd", w, q),  # takes a diagonal
        ("bhid,dk->bhk", q, normal(5, 2)),  # rows are summed, too
        ("bhid,bjd->bhij", q, normal(2, 7, 5))]])  # h is not shared, and follows b, which is



def rank_cases():
    """TopK along an axis. There are few distinct values, hence many ties; lines and planes are
    longer than the 512 elements that are compared at a time."""
    few = whole(-9, 10, 3, 530).astype(np.float32)
    write_case("topk_long", "TopK", [few, np.array([7])], constants=1, n_outputs=2)
    write_case("topk_most", "TopK", [few[:1], np.array([500])], constants=1, n_outputs=2,
               largest=0)
    write_case("topk_all", "TopK", [whole(-5, 6, 40, 3), np.array([40])], constants=1,
               n_outputs=2, axis=0)
    write_case("topk_middle", "TopK", [whole(-5, 6, 2, 30, 5, dtype=np.int32), np.array([4])],
               constants=1, n_outputs=2, axis=1, largest=0)
    write_case("topk_one", "TopK", [whole(-5, 6, 9, 20).astype(np.float64), np.array([1])],
               constants=1, n_outputs=2)
    write_case("topk_none", "TopK", [normal(3, 4), np.array([0])], constants=1, n_outputs=2)
    limits = rng.choice(np.array([np.inf, -np.inf, 0.0, -0.0, 1.0], np.float32), (4, 12))
    nan = np.where(rng.random((9, 40)) < 0.3, np.float32(np.nan), whole(-3, 4, 9, 40))
    nan = nan.astype(np.float32)
    nan[0] = np.nan
    for largest in (0, 1):
        write_case("topk_limits_%d" % largest, "TopK", [limits, np.array([12])], constants=1,
                   n_outputs=2, largest=largest)
    for last in (0, 1):
        for name, x, axis in (("long", few, 1), ("short", few.T, 1),
                              ("across", few, 0), ("pairs", few.reshape(3, 265, 2), 1),
                              ("limits", limits, 0), ("nan", nan, 1), ("nan_across", nan.T, 0),
                              ("whole", whole(-9, 10, 4, 9, dtype=np.int8), 0)):
            write_case("argmax_%s_%d" % (name, last), "ArgMax", [x], axis=axis,
                       select_last_index=last)
            write_case("argmin_%s_%d" % (name, last), "ArgMin", [x], axis=axis,
                       select_last_index=last, keepdims=0)


def einsum_weight_cases():
    """Linear layers with every order of axes, and a product with a constant per head."""
    s = Spelling()
    x, q = s.input(normal(2, 3, 4)), s.input(normal(2, 3, 4, 5))
    s.write("fused_einsum_weights", *[s.node("Einsum", a, b, equation=e) for e, a, b in [
        ("abi,io->abo", x, normal(4, 5)), ("abi,oi->abo", x, normal(5, 4)),
        ("oi,abi->abo", normal(5, 4), x), ("abi,oi->oab", x, normal(5, 4)),
        ("aib,io->abo", x, normal(3, 5)), ("abi,iop->abop", x, normal(4, 2, 3)),
        ("abi,opi->abpo", x, normal(2, 3, 4)), ("abi,oip->abop", x, normal(2, 4, 3)),
        ("abij,ijo->abo", q, normal(4, 5, 3)), ("abij,jio->abo", q, normal(5, 4, 3)),
        ("abij,ojip->opab", q, normal(2, 5, 4, 3)), ("bhid,hod->bhio", q, normal(3, 7, 5))]])


def quantised_layer_cases():
    """Layers between pairs, with dequantised weights."""
    def constant(name, value, kind=np.float32):
        return numpy_helper.from_array(np.asarray(value, kind), name)

    def pair(x, y, scale, zero):
        return [helper.make_node("QuantizeLinear", [x, scale, zero], [y + "_q"]),
                helper.make_node("DequantizeLinear", [y + "_q", scale, zero], [y])]

    write_chain("quantised_conv", normal(2, 6, 7, 5) * 3, [
        *pair("x", "a", "s", "z"),
        helper.make_node("DequantizeLinear", ["w", "t"], ["f"], axis=0),
        helper.make_node("DequantizeLinear", ["b", "u"], ["g"], axis=0),
        helper.make_node("Conv", ["a", "f", "g"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["r"]),
        *pair("r", "y", "v", "o")], [
            constant("s", 0.061), constant("z", 117, np.uint8),
            constant("w", whole(-127, 128, 8, 6, 3, 3), np.int8),
            constant("t", np.linspace(0.001, 0.003, 8)), constant("v", 0.05),
            constant("b", whole(-9000, 9000, 8), np.int32),
            constant("u", 0.061 * np.linspace(0.001, 0.003, 8)), constant("o", 3, np.uint8)],
        opset=13)
    write_chain("quantised_matmul", normal(3, 40) * 3, [
        *pair("x", "a", "s", "z"),
        helper.make_node("DequantizeLinear", ["w", "t"], ["f"]),
        helper.make_node("MatMul", ["a", "f"], ["c"]),
        *pair("c", "y", "v", "z")], [
            constant("s", 0.083), constant("z", -9, np.int8), constant("t", 0.0041),
            constant("w", whole(-127, 128, 40, 11), np.int8), constant("v", 0.2)], opset=13)


if __name__ == "__main__":
    shutil.rmtree(FOLDER, ignore_errors=True)
    conv_cases()
    pool_cases()
    value_cases()
    move_cases()
    quant_cases()
    fused_cases()
    sample_cases()
    attention_cases()
    pad_cases()
    einsum_cases()
    rank_cases()
    einsum_weight_cases()
    region_cases()
    quantised_layer_cases()
