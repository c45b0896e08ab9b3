#!/usr/bin/env python3
"""Writes the cases in the folder `more` next to it: models that ONNX's data in Debian lack, with the
outputs of ONNX Runtime.

usage: more_cases.py [FOLDER]     (needs numpy, onnx and onnxruntime; made with onnx 1.23 and
onnxruntime 1.32)

If ONNX Runtime has no kernel for the case's operator version, numpy computes the outputs of an old
one, and the reference of the package onnx those of a new one.
"""
import os
import shutil
import sys

import numpy as np
import onnxruntime as ort
from onnx import AttributeProto, TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

FOLDER = sys.argv[1] if len(sys.argv) > 1 else os.path.join(
    os.path.dirname(os.path.abspath(__file__)), "more")
TYPES = {np.dtype(k): v for k, v in {
    "float32": TensorProto.FLOAT, "float64": TensorProto.DOUBLE, "int64": TensorProto.INT64,
    "int32": TensorProto.INT32, "bool": TensorProto.BOOL, "uint8": TensorProto.UINT8,
    "int8": TensorProto.INT8, "int16": TensorProto.INT16, "uint16": TensorProto.UINT16,
    "uint32": TensorProto.UINT32, "float16": TensorProto.FLOAT16}.items()}
MICROSOFT = "com.microsoft"


def ramp(*shape):
    """Distinct numbers of both signs."""
    n = int(np.prod(shape))
    return ((np.arange(n) * 7 % n - n / 2 + 0.25) / 4).reshape(shape).astype(np.float32)


def ints(*values):
    return np.array(values, np.int64)


def floats(*values):
    return np.array(values, np.float32)


def node(op, inputs, outputs, **attributes):
    return helper.make_node(op, inputs, outputs, **attributes)


def body(name, nodes, output, dtype=TensorProto.FLOAT, initializers=None):
    return helper.make_graph(
        nodes, name, [], [helper.make_tensor_value_info(output, dtype, None)],
        [numpy_helper.from_array(v, k) for k, v in (initializers or {}).items()])


def run(model):
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    return ort.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])


def write(path, message):
    with open(path, "wb") as file:
        file.write(message.SerializeToString(deterministic=True))


def case(name, nodes, inputs, constants=None, outputs=("y",), opset=17, expected=None,
         change=None):
    """Writes a case. `inputs` and `constants` are arrays by name; `change` may edit the model."""
    values = [helper.make_tensor_value_info(k, TYPES[v.dtype], v.shape) for k, v in inputs.items()]
    graph = helper.make_graph(
        nodes, name, values, [helper.make_tensor_value_info(o, TensorProto.FLOAT, None)
                              for o in outputs],
        [numpy_helper.from_array(v, k) for k, v in (constants or {}).items()])
    domains = sorted({n.domain for n in nodes if n.domain})
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)] +
                              [helper.make_opsetid(d, 1) for d in domains], producer_name="")
    model.ir_version = 3 if opset < 9 else 8 if opset < 21 else 10 if opset < 23 else 12
    if opset < 9:  # initialisers had to be inputs, too
        graph = model.graph
        graph.input.extend(helper.make_tensor_value_info(k, TYPES[v.dtype], v.shape)
                           for k, v in (constants or {}).items())
    if change is not None:
        change(model)
    if expected is None:
        for value in model.graph.output:  # the declared types do not matter, but must be valid
            value.type.Clear()
        session = run(model) if opset < 23 else ReferenceEvaluator(model)
        expected = session.run(list(outputs), inputs)
    for value, array in zip(model.graph.output, expected):
        value.type.CopyFrom(helper.make_tensor_type_proto(TYPES[array.dtype], array.shape))
    folder = os.path.join(FOLDER, name)
    data = os.path.join(folder, "test_data_set_0")
    os.makedirs(data)
    write(os.path.join(folder, "model.onnx"), model)
    for i, (key, array) in enumerate(inputs.items()):
        write(os.path.join(data, f"input_{i}.pb"), numpy_helper.from_array(array, key))
    for i, (key, array) in enumerate(zip(outputs, expected)):
        write(os.path.join(data, f"output_{i}.pb"), numpy_helper.from_array(array, key))


if os.path.isdir(FOLDER):
    shutil.rmtree(FOLDER)

# Padding with the lowest number before a max pool.
least = np.array(-np.inf, np.float32)
case("pad_infinite", [node("Pad", ["x", "widths", "least"], ["p"]),
                      node("MaxPool", ["p"], ["y"], kernel_shape=[3, 3], strides=[2, 2])],
     {"x": ramp(1, 2, 8, 8)}, {"widths": ints(0, 0, 0, 0, 0, 0, 1, 1), "least": least})
case("pad_infinite_dilated", [node("Pad", ["x", "widths", "least"], ["p"]),
                              node("MaxPool", ["p"], ["y"], kernel_shape=[2, 2], dilations=[2, 2])],
     {"x": ramp(1, 2, 8, 8)}, {"widths": ints(0, 0, 1, 0, 0, 0, 1, 1), "least": least})
case("pad_infinite_10", [node("Pad", ["x"], ["y"], pads=[1, 0, 0, 2], value=float("inf"))],
     {"x": ramp(2, 3)}, opset=10)

# Signed bytes without a zero point.
case("quantize_no_zero_point",
     [node("QuantizeLinear", ["x", "s"], ["q"], output_dtype=TensorProto.INT8),
      node("DequantizeLinear", ["q", "s"], ["y"])],
     {"x": ramp(4, 6)}, {"s": np.array(0.01, np.float32)}, opset=21)

# An average pool between QDQ pairs, which ONNX Runtime fuses.
for name, attributes in (("average", {}), ("average_padded", {"pads": [1, 1, 1, 1]})):
    case("quantized_" + name,
         [node("QuantizeLinear", ["x", "s", "z"], ["q"]), node("DequantizeLinear", ["q", "s", "z"], ["d"]),
          node("AveragePool", ["d"], ["p"], kernel_shape=[3, 3], **attributes),
          node("QuantizeLinear", ["p", "s", "z"], ["r"]), node("DequantizeLinear", ["r", "s", "z"], ["y"])],
         {"x": ramp(1, 3, 6, 6)}, {"s": np.array(0.125, np.float32), "z": np.array(128, np.uint8)})

# Scale and bias per group (opset 18), and per channel (opset 21).
x = ramp(2, 6, 4)
case("group_norm_18", [node("GroupNormalization", ["x", "s", "b"], ["y"], num_groups=2, epsilon=1e-3)],
     {"x": x}, {"s": floats(0.5, 2), "b": floats(1, -1)}, opset=18)
case("group_norm_18_computed",
     [node("Neg", ["t"], ["s"]),
      node("GroupNormalization", ["x", "s", "b"], ["y"], num_groups=3, epsilon=1e-3)],
     {"x": x, "t": floats(0.5, 2, 1)}, {"b": floats(1, -1, 0)}, opset=18)
case("group_norm_18_channels",
     [node("GroupNormalization", ["x", "s", "b"], ["y"], num_groups=6)],
     {"x": x}, {"s": floats(1, 2, 3, 4, 5, 6), "b": floats(6, 5, 4, 3, 2, 1)}, opset=18)

# Resizes that keep the aspect ratio.
photo = ramp(1, 1, 7, 5)
for name, policy, sizes, mode in (
        ("not_larger", "not_larger", (4, 3), "linear"), ("not_smaller", "not_smaller", (4, 3), "linear"),
        ("grown", "not_larger", (16, 16), "cubic"), ("grown_least", "not_smaller", (11, 13), "linear"),
        ("nearest", "not_larger", (5, 5), "nearest"), ("exact", "not_larger", (14, 10), "linear")):
    case("resize_ratio_" + name,
         [node("Resize", ["x", "", "", "z"], ["y"], mode=mode, axes=[2, 3], keep_aspect_ratio_policy=policy)],
         {"x": photo}, {"z": ints(*sizes)}, opset=18)

# Zeros of a shape without dimensions.
two = numpy_helper.from_array(floats(2))
case("constant_of_shape_scalar",
     [node("ConstantOfShape", ["none"], ["c"], value=two), node("Add", ["x", "c"], ["y"]),
      node("Identity", ["c"], ["z"])],
     {"x": ramp(2, 3)}, {"none": ints()}, outputs=("y", "z"))
case("constant_of_shape_of_sum",
     [node("ReduceSum", ["x"], ["r"], keepdims=0), node("Shape", ["r"], ["s"]),
      node("ConstantOfShape", ["s"], ["c"], value=two), node("Add", ["r", "c"], ["y"])],
     {"x": ramp(2, 3)})
case("constant_of_shape_index",
     [node("ReduceSum", ["x"], ["r"], keepdims=0), node("Shape", ["r"], ["s"]),
      node("ConstantOfShape", ["s"], ["i"], value=numpy_helper.from_array(ints(1))),
      node("Gather", ["x", "i"], ["y"], axis=0)],
     {"x": ramp(2, 3)})


# Two branches that are always taken, and joints after them, with the same names inside.
def branch(name, op, number):
    return body(name, [node("Constant", [], ["k"], value=numpy_helper.from_array(floats(number))),
                       node(op, ["x", "k"], ["inner"]), node("Mul", ["inner", "w"], [name])], name,
                initializers={"w": floats(number, 1, number)})


case("if_same_names",
     [node("If", ["yes"], ["a"], then_branch=branch("t", "Add", 1), else_branch=branch("e", "Mul", 2)),
      node("If", ["no"], ["b"], then_branch=branch("t", "Add", 1), else_branch=branch("e", "Mul", 3)),
      node("Add", ["a", "b"], ["inner"]), node("Neg", ["inner"], ["y"])],
     {"x": ramp(2, 3)}, {"yes": np.array(True), "no": np.array(False)})
case("if_same_outputs",
     [node("If", ["yes"], ["y"], then_branch=branch("y", "Add", 1), else_branch=branch("e", "Mul", 2))],
     {"x": ramp(2, 3)}, {"yes": np.array(True)})


# Attributes that are 0 and omitted, as protobuf 3 writers do.
def without_zeros(model):
    for n in model.graph.node:
        for a in n.attribute:
            for field in ("i", "f", "s"):
                if a.HasField(field) and not getattr(a, field):
                    a.ClearField(field)


case("zeros_left_out",
     [node("Concat", ["x", "x"], ["c"], axis=0), node("Gather", ["c", "i"], ["g"], axis=0),
      node("Flatten", ["g"], ["f"], axis=0), node("Gemm", ["f", "w", "b"], ["y"], beta=0.0)],
     {"x": ramp(2, 3)}, {"i": ints(0, 3), "w": ramp(6, 4), "b": ramp(4)}, change=without_zeros)

# An empty tensor, reversed.
reverse = {"from": ints(-1), "to": ints(-(1 << 63) + 1), "axis": ints(1), "step": ints(-1)}
parameters = ["from", "to", "axis", "step"]
case("slice_reversed_nothing", [node("Slice", ["x"] + parameters, ["y"])], {"x": ramp(2, 0)}, reverse)
case("slice_reversed_not_found",
     [node("NonZero", ["x"], ["n"]), node("Slice", ["n"] + parameters, ["y"])],
     {"x": np.zeros((2, 3), np.float32)}, reverse)
case("slice_reversed_one", [node("Slice", ["x"] + parameters, ["y"])], {"x": ramp(2, 1)}, reverse)

# Resize in opset 10.
image = np.arange(35, dtype=np.float32).reshape(1, 1, 5, 7)
for name, scales in (("less", (1, 1, .6, .6)), ("less_7", (1, 1, .7, .3)), ("half", (1, 1, .5, .5)),
                     ("more", (1, 1, 2, 1.5)), ("both", (1, 1, .7, 1.3)), ("turned", (1, 1, 1.7, .4))):
    case("resize_10_" + name, [node("Resize", ["x", "s"], ["y"], mode="nearest")],
         {"x": image}, {"s": floats(*scales)}, opset=10)
case("resize_10_linear", [node("Resize", ["x", "s"], ["y"], mode="linear")],
     {"x": image}, {"s": floats(1, 1, .6, 1.3)}, opset=10)
case("resize_10_computed", [node("Neg", ["t"], ["s"]), node("Resize", ["x", "s"], ["y"], mode="nearest")],
     {"x": image, "t": floats(-1, -1, -.7, -1.3)}, opset=10)

# Operators of opsets below 7.
x = ramp(2, 3)
case("reshape_1", [node("Reshape", ["x"], ["y"], shape=[3, 2])], {"x": x}, opset=4)
case("reshape_1_kept", [node("Reshape", ["x"], ["y"], shape=[0, -1, 1])], {"x": x}, opset=1)
case("concat_1", [node("Concat", ["x", "x"], ["y"])], {"x": x}, opset=3,
     expected=[np.concatenate([x, x], 1)])
case("cast_1", [node("Cast", ["x"], ["y"], to="INT64")], {"x": x}, opset=5,
     expected=[x.astype(np.int64)])
case("pad_1", [node("Pad", ["x"], ["y"], paddings=[0, 1, 1, 0], value=2.5)], {"x": x}, opset=1,
     expected=[np.pad(x, ((0, 1), (1, 0)), constant_values=2.5)])
case("tile_1", [node("Tile", ["x", "n", "a"], ["y"])], {"x": x},
     {"n": np.array(3, np.float32), "a": np.array(1, np.float32)}, opset=1,
     expected=[np.tile(x, (1, 3))])
case("selu_1", [node("Selu", ["x"], ["y"])], {"x": x}, opset=1,
     expected=[np.where(x > 0, 1.0507 * x, 1.0507 * 1.6732 * (np.exp(x) - 1)).astype(np.float32)])
case("upsample_1", [node("Upsample", ["x"], ["y"], height_scale=2.0, width_scale=3.0, mode="nearest")],
     {"x": x.reshape(1, 1, 2, 3)}, opset=1,
     expected=[x.reshape(1, 1, 2, 3).repeat(2, 2).repeat(3, 3)])

# Integers that float32 cannot represent.
large = np.array([[-3, 16777216, 16777217, 16777218, 2**31 - 1, 2**31, 2**40 + 7, -2**63]], np.int64)
for name, low, high in (("odd", 0, 16777217), ("int32", 0, 2**31 - 1), ("low", 16777217, 2**40 + 1)):
    case("clip_int64_" + name, [node("Clip", ["x", "low", "high"], ["y"])], {"x": large},
         {"low": np.array(low, np.int64), "high": np.array(high, np.int64)})
case("clip_double", [node("Clip", ["x", "low", "high"], ["y"])], {"x": np.array([.05, .3, 5], np.float64)},
     {"low": np.array(.1, np.float64), "high": np.array(1 / 3, np.float64)})
case("pad_int64", [node("Pad", ["x", "widths", "v"], ["y"])], {"x": large},
     {"widths": ints(0, 1, 0, 2), "v": np.array(2**31 - 1, np.int64)})

# An embedding whose table is also the last layer's weight.
tied = {"w": ramp(6, 4), "b": ramp(6)}
row, rows = ints(1, 4, 0), np.array([[1, 4, 0], [5, 2, 3]], np.int64)
turn = node("Transpose", ["w"], ["t"], perm=[1, 0])
case("tied_gemm", [node("Gather", ["w", "i"], ["e"]), node("Gemm", ["e", "w", "b"], ["y"], transB=1)],
     {"i": row}, tied)
case("tied_turned", [node("Gather", ["w", "i"], ["e"]), turn, node("MatMul", ["e", "t"], ["m"]),
                     node("Add", ["m", "b"], ["y"])], {"i": rows}, tied)
case("tied_turned_gemm", [node("Gather", ["w", "i"], ["e"]), turn,
                          node("Gemm", ["e", "t", "b"], ["y"], alpha=.5)], {"i": row}, tied)
case("tied_turned_first", [node("MatMul", ["x", "w"], ["a"]), turn, node("MatMul", ["a", "t"], ["y"])],
     {"x": ramp(2, 3, 6)}, tied)

# Operators of opsets 23 to 28, and what these changed.
matrix = np.array([[-3, 2, 5, 1], [4, -1, 2, 7]], np.int32)
for name, attributes in (("", {}), ("_exclusive", {"exclusive": 1, "reverse": 1})):
    case("cumprod" + name, [node("CumProd", ["x", "a"], ["y"], **attributes)],
         {"x": ramp(3, 4)}, {"a": np.array(1, np.int64)}, opset=26)
case("cumprod_int32", [node("CumProd", ["x", "a"], ["y"])], {"x": matrix},
     {"a": np.array(-1, np.int64)}, opset=26)
for name, x, to in (("float", ramp(2, 3), TensorProto.INT32), ("half", ramp(4).astype(np.float16), TensorProto.UINT16),
                    ("bool", np.array([True, False]), TensorProto.UINT8), ("back", matrix, TensorProto.FLOAT)):
    case("bitcast_" + name, [node("BitCast", ["x"], ["y"], to=to)], {"x": x}, opset=26)
cache, update = ramp(2, 3, 5, 4), -ramp(2, 3, 2, 4)
case("tensorscatter", [node("TensorScatter", ["x", "u", "i"], ["y"])], {"x": cache, "u": update, "i": ints(1, 3)},
     opset=24)
case("tensorscatter_circular", [node("TensorScatter", ["x", "u", "i"], ["y"], mode="circular", axis=3)],
     {"x": cache, "u": -ramp(2, 3, 5, 3), "i": ints(3, 6)}, opset=24)
case("tensorscatter_from_0", [node("TensorScatter", ["x", "u"], ["y"])], {"x": cache, "u": update}, opset=24)
for rule in ("linear", "gated", "delta", "gated_delta"):
    more = {"g": -abs(ramp(2, 3, 2))} if "gated" in rule else {}
    more.update({"b": 1 / (1 + np.exp(-ramp(2, 3, 1)))} if "delta" in rule else {})
    case("linearattention_" + rule,
         [node("LinearAttention", ["q", "k", "v", "s" if rule == "gated" else "", "g" if "g" in more else "",
                                   "b" if "b" in more else ""], ["y", "z"], q_num_heads=4, kv_num_heads=2,
               update_rule=rule)],
         {"q": ramp(2, 3, 12), "k": ramp(2, 3, 6) / 3, "v": ramp(2, 3, 10),
          **({"s": ramp(2, 2, 3, 5)} if rule == "gated" else {}), **more}, outputs=("y", "z"), opset=27)
signed = np.array([-128, -7, -1, 0, 5, 127], np.int8)
for direction in ("RIGHT", "LEFT"):
    case("bitshift_signed_" + direction.lower(), [node("BitShift", ["x", "n"], ["y"], direction=direction)],
         {"x": signed, "n": np.array([1, 2, -1, 9, 1, 3], np.int8)}, opset=28)
zero, inf = 0.0, float("inf")
case("mod_floor_float", [node("Mod", ["x", "d"], ["y"])],
     {"x": floats(5, -5, 5, -5, 1, -1, zero, -zero, zero, inf, 1),
      "d": floats(3, 3, -3, -3, inf, inf, 2, 2, -2, 2, zero)}, opset=28)
case("spacetodepth_crd", [node("SpaceToDepth", ["x"], ["y"], blocksize=2, mode="CRD")],
     {"x": ramp(1, 3, 4, 6)}, opset=28)
for name, op in (("max", "ReduceMax"), ("min", "ReduceMin")):
    for kind in (np.bool_, np.int32, np.uint8, np.int64):
        case(f"reduce_{name}_none_{np.dtype(kind).name}", [node(op, ["x", "a"], ["y"], keepdims=0)],
             {"x": np.zeros((2, 0), kind)}, {"a": ints(1)}, opset=24)
for name, more in (("", []), ("_odd", ["n"])):
    case("dft_real_inverse" + name, [node("DFT", ["x"] + more, ["y"], inverse=1, onesided=1)], {"x": ramp(2, 5, 2)},
         {"n": np.array(9, np.int64)} if more else {}, opset=24)
case("rmsnormalization", [node("RMSNormalization", ["x", "s"], ["y"], axis=-2)], {"x": ramp(2, 3, 4)},
     {"s": ramp(3, 4)}, opset=24)
case("swish", [node("Swish", ["x"], ["y"], alpha=0.5)], {"x": ramp(2, 3)}, opset=24)
case("swiglu", [node("SwiGLU", ["x", "u"], ["y"])], {"x": ramp(2, 3), "u": ramp(2, 3) + 1}, opset=28)
angles = np.arange(12).reshape(4, 3)
case("rotaryembedding", [node("RotaryEmbedding", ["x", "c", "s", "p"], ["y"], num_heads=2)],
     {"x": ramp(1, 3, 12), "p": np.array([[0, 2, 3]], np.int64)},
     {"c": np.cos(angles).astype(np.float32), "s": np.sin(angles).astype(np.float32)}, opset=24)
heads = {"q": ramp(1, 3, 16), "k": ramp(1, 3, 8), "v": ramp(1, 3, 8)}
case("attention_grouped", [node("Attention", ["q", "k", "v"], ["y"], q_num_heads=4, kv_num_heads=2, is_causal=1)],
     heads, opset=24)
case("attention_past",
     [node("Attention", ["q", "k", "v", "m", "pk", "pv"], ["y", "nk", "nv"], q_num_heads=4, kv_num_heads=2,
           softcap=2.0)],
     {**heads, "m": ramp(3, 5), "pk": ramp(1, 2, 2, 4), "pv": -ramp(1, 2, 2, 4)}, outputs=("y", "nk", "nv"), opset=24)
case("causalconvwithstate", [node("CausalConvWithState", ["x", "w", "b", "p"], ["y", "n"], activation="silu")],
     {"x": ramp(2, 3, 5), "p": ramp(2, 3, 2)}, {"w": ramp(3, 1, 3), "b": ramp(3)}, outputs=("y", "n"), opset=27)

# Quantisation to narrow types, and its newer attributes.
for name, kind in (("int2", TensorProto.INT2), ("uint2", TensorProto.UINT2), ("float4", TensorProto.FLOAT4E2M1),
                   ("float8", TensorProto.FLOAT8E4M3FN)):
    case("quantize_" + name,
         [node("QuantizeLinear", ["x", "s"], ["q"], output_dtype=kind), node("DequantizeLinear", ["q", "s"], ["y"])],
         {"x": ramp(4, 6)}, {"s": np.array(0.75, np.float32)}, opset=25)
case("quantize_precision",
     [node("QuantizeLinear", ["x", "s", "z"], ["q"], precision=TensorProto.FLOAT, output_dtype=TensorProto.UINT8),
      node("DequantizeLinear", ["q", "s", "z"], ["y"], output_dtype=TensorProto.FLOAT)],
     {"x": ramp(4, 6)}, {"s": np.array(0.3, np.float16), "z": np.array(128, np.uint8)}, opset=25)

# Functions of the model: nested calls, attributes with and without a default, an input left out.
def function(name, inputs, outputs, nodes, attributes=(), defaults=()):
    return helper.make_function("own", name, inputs, outputs, nodes, [
        helper.make_opsetid("", 17), helper.make_opsetid("own", 1)], list(attributes), list(defaults))


def own(op, inputs, outputs, **attributes):
    return node(op, inputs, outputs, domain="own", **attributes)


def takes(made, name, attribute):
    made.attribute.append(AttributeProto(name=name, ref_attr_name=attribute, type=AttributeProto.FLOAT))
    return made


def with_functions(*functions):
    def change(model):
        model.functions.extend(functions)
        model.opset_import.append(helper.make_opsetid("own", 1))
    return change


leaky = function("Leak", ["a"], ["b"], [takes(node("LeakyRelu", ["a"], ["b"]), "alpha", "slope")], ["slope"])
layer = function("Layer", ["a", "w"], ["c"], [
    node("MatMul", ["a", "w"], ["m"]), takes(own("Leak", ["m"], ["k"]), "slope", "alpha"),
    own("Leak", ["k"], ["c"], slope=0.5)], defaults=[helper.make_attribute("alpha", 0.25)])
limit = function("Limit", ["a", "low", "high"], ["b"], [node("Clip", ["a", "low", "high"], ["b"])])
case("function_nested", [own("Layer", ["x", "w"], ["y"], alpha=0.125)], {"x": ramp(4, 3)}, {"w": ramp(3, 5)},
     change=with_functions(layer, leaky))
case("function_default", [own("Layer", ["x", "w"], ["c"]), own("Layer", ["c", "v"], ["y"])],
     {"x": ramp(4, 3)}, {"w": ramp(3, 5), "v": ramp(5, 2)}, change=with_functions(layer, leaky))
case("function_input_left_out", [own("Limit", ["x", "", "h"], ["y"])], {"x": ramp(4, 3)},
     {"h": np.array(.5, np.float32)}, change=with_functions(limit))


# Arithmetic operators of ai.onnx.ml.
def learned(name, op, x, outputs=("y",), **attributes):
    case("ml_" + name, [node(op, ["x"], list(outputs), domain="ai.onnx.ml", **attributes)], {"x": x},
         outputs=outputs, change=lambda model: model.opset_import.append(helper.make_opsetid("ai.onnx.ml", 1)))


table = ramp(4, 3)
holes = np.where(table > 1, np.float32(np.nan), table)
learned("scaler", "Scaler", table, offset=[.5, -1., 2.], scale=[2., .25, -1.])
for norm in ("MAX", "L1", "L2"):
    learned("normalizer_" + norm.lower(), "Normalizer", table, norm=norm)
learned("imputer", "Imputer", holes, replaced_value_float=float("nan"), imputed_value_floats=[1., 2., 3.])
learned("regressor", "LinearRegressor", table, targets=2, coefficients=ramp(6).tolist(), intercepts=[.5, -.5])
learned("classifier", "LinearClassifier", table, ("l", "y"), coefficients=ramp(9).tolist(),
        intercepts=[.1, .2, .3], classlabels_ints=[4, 2, 7], post_transform="SOFTMAX")
learned("classifier_one_row", "LinearClassifier", table, ("l", "y"), coefficients=[.5, -1., .25],
        intercepts=[.1], classlabels_ints=[0, 1], post_transform="LOGISTIC")


# Operators of ONNX Runtime.
def contrib(op, inputs, outputs, **attributes):
    return node(op, inputs, outputs, domain=MICROSOFT, **attributes)


def codes(*shape, dtype=np.uint8):
    """Integers of all sizes, in no order."""
    n = int(np.prod(shape))
    return (np.arange(n) * 37 % 251).reshape(shape).astype(dtype)


def whole(*values, dtype=np.int32):
    return np.array(values, dtype)


case("contrib_fused", [contrib("FusedMatMul", ["x", "w"], ["a"], alpha=.5, transB=1),
                       contrib("BiasGelu", ["a", "b"], ["h"]),
                       contrib("FusedGemm", ["h", "v", "c"], ["g"], activation="LeakyRelu", activation_alpha=.25),
                       contrib("QuickGelu", ["g"], ["q"]), contrib("FastGelu", ["q", "c"], ["y"])],
     {"x": ramp(5, 6)}, {"w": ramp(7, 6) / 4, "b": ramp(7), "v": ramp(7, 3) / 8, "c": ramp(3)})
case("contrib_fused_conv", [contrib("FusedConv", ["x", "w", "b", "z"], ["y"], activation="Clip",
                                    activation_params=[-1.5, 2.5], pads=[1, 1, 1, 1])],
     {"x": ramp(1, 2, 4, 5), "z": ramp(1, 3, 4, 5)}, {"w": ramp(3, 2, 3, 3) / 8, "b": ramp(3)})
case("contrib_norms", [contrib("SkipLayerNormalization", ["x", "z", "g", "b"], ["n", "", "", "s"], epsilon=1e-5),
                       contrib("SkipSimplifiedLayerNormalization", ["n", "s", "g"], ["m"], epsilon=1e-6),
                       node("SimplifiedLayerNormalization", ["m", "g"], ["y"], epsilon=1e-6)],
     {"x": ramp(2, 3, 8), "z": ramp(2, 3, 8)[:, ::-1].copy()}, {"g": ramp(8) + 5, "b": ramp(8)})
case("contrib_embed", [contrib("EmbedLayerNormalization", ["i", "k", "w", "p", "t", "g", "b", "m"], ["y", "n"],
                               epsilon=1e-5)],
     {"i": whole(1, 0, 3, 2, 4, 1).reshape(2, 3), "k": whole(0, 1, 1, 0, 0, 1).reshape(2, 3),
      "m": whole(1, 1, 0, 1, 0, 0).reshape(2, 3)},
     {"w": ramp(5, 8), "p": ramp(4, 8) * .7, "t": ramp(2, 8) * .3, "g": ramp(8) + 5, "b": ramp(8)},
     outputs=("y", "n"))
case("contrib_attention", [contrib("Attention", ["x", "w", "b", "m", "p"], ["y", "q"], num_heads=2,
                                   unidirectional=1)],
     {"x": ramp(2, 3, 4) / 4, "m": whole(1, 1, 1, 1, 0, 1, 1, 1, 1, 1).reshape(2, 5), "p": ramp(2, 2, 2, 2, 2) / 2},
     {"w": ramp(4, 12) / 8, "b": ramp(12)}, outputs=("y", "q"))
case("contrib_heads", [contrib("MultiHeadAttention", ["q", "k", "v", "b", "m", "a"], ["y"], num_heads=2)],
     {"q": ramp(2, 3, 8) / 4, "k": ramp(2, 5, 8) / 4, "v": ramp(2, 5, 6), "m": whole(5, 3), "a": ramp(1, 2, 3, 5)},
     {"b": ramp(22)})
cosine, sine = np.cos(ramp(9, 8)).astype(np.float32), np.sin(ramp(9, 8)).astype(np.float32)
case("contrib_groups", [contrib("GroupQueryAttention", ["q", "k", "v", "pk", "pv", "l", "t", "c", "s"],
                                ["y", "nk", "nv"], num_heads=4, kv_num_heads=2, do_rotary=1,
                                local_window_size=3)],
     {"q": ramp(2, 1, 64) / 8, "k": ramp(2, 1, 32) / 8, "v": ramp(2, 1, 32), "pk": ramp(2, 2, 4, 16) / 8,
      "pv": ramp(2, 2, 4, 16), "l": whole(2, 4)},
     {"t": np.array(5, np.int32), "c": cosine, "s": sine}, outputs=("y", "nk", "nv"))
case("contrib_rotary", [contrib("RotaryEmbedding", ["x", "p", "c", "s"], ["y"])],
     {"x": ramp(2, 3, 32), "p": ints(5)}, {"c": cosine, "s": sine})
case("contrib_bits", [contrib("MatMulNBits", ["x", "w", "s", "z", "", "b"], ["y"], K=40, N=3, bits=4,
                              block_size=16)],
     {"x": ramp(2, 3, 40) / 8}, {"w": codes(3, 3, 8), "s": ramp(9) / 8 + 1, "z": codes(6), "b": ramp(3)})
case("contrib_bits_table", [contrib("GatherBlockQuantized", ["w", "i", "s"], ["y"], block_size=16)],
     {"i": ints(3, 0, 1)}, {"w": codes(5, 16), "s": ramp(5, 2)})
scales = {k: np.array(v, np.float32) for k, v in {"s": 1 / 16, "t": 1 / 64, "u": 1 / 256}.items()}
zeros = {"z": np.array(120, np.uint8), "o": np.array(0, np.uint8)}
case("contrib_integers", [contrib("QLinearAdd", ["x", "s", "z", "w", "t", "z", "s", "z"], ["a"]),
                          contrib("QLinearLeakyRelu", ["a", "s", "z", "s", "z"], ["l"], alpha=.25),
                          contrib("QLinearSigmoid", ["l", "s", "z", "u", "o"], ["g"]),
                          contrib("QLinearMul", ["l", "s", "z", "g", "u", "o", "s", "z"], ["m"]),
                          contrib("QLinearConcat", ["s", "z", "m", "s", "z", "g", "u", "o"], ["c"], axis=1),
                          contrib("QLinearAveragePool", ["c", "s", "z", "s", "z"], ["p"], kernel_shape=[2, 2]),
                          contrib("DequantizeLinear", ["p", "s", "z"], ["y"])],
     {"x": codes(1, 2, 4, 5)}, {"w": codes(2, 1, 5), **scales, **zeros})
case("contrib_dynamic", [contrib("DynamicQuantizeMatMul", ["x", "w", "s", "z", "b"], ["y"])],
     {"x": ramp(3, 6)}, {"w": codes(6, 4), "s": floats(.01, .02, .03, .04), "z": codes(4), "b": ramp(4)})
