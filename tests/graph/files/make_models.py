#!/usr/bin/env python3
"""Writes the small ONNX models next to it, each for a case of the importer's tests.

usage: make_models.py [FOLDER]     (needs onnx and numpy; made with onnx 1.12, and modules.onnx with onnx 1.23)
"""
import os
import sys

import numpy as np
from onnx import TensorProto, helper, numpy_helper

FOLDER = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.abspath(__file__))
F32, I64 = TensorProto.FLOAT, TensorProto.INT64


def tensor(name, values, dtype=np.float32):
    return numpy_helper.from_array(np.array(values, dtype), name)


def ramp(name, *shape):
    return tensor(name, (np.arange(np.prod(shape)) * 0.25 - 1).reshape(shape))


def value(name, shape, dtype=F32):
    return helper.make_tensor_value_info(name, dtype, shape)


def node(op, inputs, outputs, name=None, **attributes):
    return helper.make_node(op, inputs, outputs, name=name, **attributes)


def build(nodes, inputs, outputs, initializers=(), opset=13, domain=""):
    graph = helper.make_graph(nodes, "main", inputs, outputs, list(initializers))
    opsets = [helper.make_opsetid("", opset)]
    if domain:
        opsets.append(helper.make_opsetid(domain, 1))
    model = helper.make_model(graph, opset_imports=opsets, producer_name="")
    model.ir_version = 7
    return model


def save(name, model):
    with open(os.path.join(FOLDER, name + ".onnx"), "wb") as file:
        file.write(model.SerializeToString(deterministic=True))


# Two joints with the same name, one without a name, one named like an input; an unused
# initialiser; and an initialiser that is also listed as an input.
save("names", build(
    [node("Relu", ["x"], ["a"], "same"), node("Sigmoid", ["a"], ["b"], "same"),
     node("Tanh", ["b"], ["c"]), node("Abs", ["c"], ["d"], "x"),
     node("Add", ["d", "w"], ["y"], "relu")],
    [value("x", [2, 3]), value("w", [3])], [value("y", [2, 3])],
    [ramp("w", 3), ramp("unused", 4)]))

# Forms of Gemm: [O,I] and [I,O] weights, alpha and beta, a scalar bias, no bias, computed
# operands.
save("gemm", build(
    [node("Gemm", ["x", "w_oi", "b"], ["oi"], "oi", transB=1),
     node("Gemm", ["x", "w_io", "b"], ["io"], "io"),
     node("Gemm", ["x", "w_io", "b"], ["scaled"], "scaled", alpha=0.5, beta=2.0),
     node("Gemm", ["x", "w_io", "one"], ["scalar"], "scalar"),
     node("Gemm", ["x", "w_oi"], ["bare"], "bare", transB=1),
     node("Gemm", ["x", "w_io", "full"], ["full_bias"], "full_bias"),
     node("Gemm", ["z", "w_io"], ["turned"], "turned", transA=1),
     node("MatMul", ["x", "w_io"], ["product"], "product"),
     node("Add", ["product", "b"], ["sum"], "sum"),
     node("MatMul", ["w_oi", "z"], ["left"], "left")],
    [value("x", ["N", 3]), value("z", [3, 2])],
    [value(name, None) for name in ("oi", "io", "scaled", "scalar", "bare", "full_bias", "turned",
                                    "sum", "left")],
    [ramp("w_oi", 2, 3), ramp("w_io", 3, 2), tensor("b", [1, -1]), tensor("one", 3),
     ramp("full", 4, 2)]))

# The chain that a flattening view becomes in exports of networks with symbolic lengths.
save("view", build(
    [node("Conv", ["x", "w"], ["c"], "conv", strides=[2, 2], pads=[1, 1, 1, 1]),
     node("Shape", ["c"], ["shape"], "shape_1"),
     node("Gather", ["shape", "zero"], ["batch"], "gather", axis=0),
     node("Unsqueeze", ["batch", "axes"], ["batch_1"], "unsqueeze"),
     node("Concat", ["batch_1", "rest"], ["to"], "concat", axis=0),
     node("Reshape", ["c", "to"], ["y"], "reshape")],
    [value("x", ["N", 3, "H", "W"])], [value("y", None)],
    [ramp("w", 4, 3, 3, 3), tensor("zero", 0, np.int64), tensor("axes", [0], np.int64),
     tensor("rest", [-1], np.int64)]))

# Dimensions without a number or name, and one that two inputs share.
save("dims", build(
    [node("Add", ["x", "y"], ["z"], "add")],
    [value("x", ["N", None]), value("y", ["N", 1])], [value("z", None)]))

# A dimension name without meaning.
save("dims_unnamed", build([node("Abs", ["x"], ["y"], "abs")], [value("x", ["?", "?"])],
                           [value("y", None)]))

# Outputs that are an input, a constant, and the result of an identity.
save("outputs", build(
    [node("Relu", ["x"], ["r"], "relu"), node("Identity", ["r"], ["i"], "id"),
     node("Identity", ["x"], ["j"], "id_of_input")],
    [value("x", [2])], [value("x", [2]), value("k", [3]), value("i", [2]), value("j", [2])],
    [ramp("k", 3)]))

# Constant nodes of every form, arithmetic on constants, and a weight that is transposed.
save("constants", build(
    [node("Constant", [], ["c_float"], "n_float", value_float=0.5),
     node("Constant", [], ["c_floats"], "n_floats", value_floats=[1.0, 2.0]),
     node("Constant", [], ["c_ints"], "n_ints", value_ints=[1, 2]),
     node("Constant", [], ["c_tensor"], "n_tensor", value=ramp("v", 2, 3)),
     node("Transpose", ["c_tensor"], ["w"], "turn", perm=[1, 0]),
     node("MatMul", ["x", "w"], ["m"], "matmul"),
     node("Mul", ["m", "c_float"], ["s"], "mul"),
     node("Sqrt", ["four"], ["two"], "sqrt"),
     node("Add", ["two", "c_floats"], ["bias"], "add_constants"),
     node("Add", ["s", "bias"], ["t"], "add"),
     node("Reshape", ["t", "c_ints"], ["y"], "reshape")],
    [value("x", [1, 3])], [value("y", None)], [tensor("four", [4.0])]))

# Padding to a multiple of 7, as window attention computes it: 5 after 16 rows; and -16 mod 7.
save("remainders", build(
    [node("Mod", ["rows", "seven"], ["over"], "over"), node("Sub", ["seven", "over"], ["lacks"], "lacks"),
     node("Mod", ["lacks", "seven"], ["more"], "more"), node("Neg", ["rows"], ["below"], "below"),
     node("Mod", ["below", "seven"], ["same"], "same"),
     node("Concat", ["zero", "zero", "more", "same"], ["widths"], "widths", axis=0),
     node("Pad", ["x", "widths"], ["y"], "pad")],
    [value("x", [16, 3])], [value("y", None)],
    [tensor("rows", [16], np.int64), tensor("seven", [7], np.int64), tensor("zero", [0], np.int64)]))

# Padding from reductions of constants, as detectors compute it: [0, 16, 36, 6].
save("reductions", build(
    [node("ReduceMax", ["sizes"], ["largest"], "largest", axes=[0], keepdims=0),
     node("Cast", ["largest"], ["whole"], "whole", to=I64),
     node("ReduceMin", ["whole"], ["least"], "least", keepdims=1),
     node("ReduceSum", ["whole", "first_axis"], ["total"], "total", keepdims=1),
     node("ReduceProd", ["factors"], ["product"], "product", axes=[-1], keepdims=1),
     node("Concat", ["zero", "least", "total", "product"], ["widths"], "widths", axis=0),
     node("Pad", ["x", "widths"], ["y"], "pad")],
    [value("x", [16, 3])], [value("y", None)],
    [tensor("sizes", [[3.0, 16.0], [20.0, 1.0]]), tensor("factors", [2, -1, -3], np.int64),
     tensor("first_axis", [-1], np.int64), tensor("zero", [0], np.int64)]))

# Batch normalisation after a convolution with and without bias, after a shared weight, and after
# a convolution whose result is also an output.
bn = [tensor("gamma", [4.0, 0.25]), tensor("beta", [0.25, -1.0]), tensor("mean", [1.0, -2.0]),
      tensor("var", [3.99999, 0.24999]), tensor("beta_a", [1.0, 0.5])]
bn_names = ["gamma", "beta", "mean", "var"]
save("batch_norm", build(
    [node("Conv", ["x", "w_a"], ["a"], "conv_a"),
     node("BatchNormalization", ["a", "gamma", "beta_a", "mean", "var"], ["a_norm"], "norm_a", epsilon=1e-5),
     node("Conv", ["a_norm", "w_b", "b_b"], ["b"], "conv_b"),
     node("BatchNormalization", ["b"] + bn_names, ["b_norm"], "norm_b", epsilon=1e-5),
     node("Conv", ["b_norm", "w_c"], ["c"], "conv_c"),
     node("BatchNormalization", ["c"] + bn_names, ["c_norm"], "norm_c", epsilon=1e-5)],
    [value("x", [1, 2, 3, 3])], [value("b_norm", None), value("c", None), value("c_norm", None)],
    [tensor("w_a", [[[[1.0]], [[2.0]]], [[[-1.0]], [[4.0]]]]),
     tensor("w_b", [[[[1.0]], [[0.5]]], [[[0.0]], [[1.0]]]]), tensor("b_b", [1.0, 2.0]),
     tensor("w_c", [[[[1.0]], [[1.0]]], [[[1.0]], [[-1.0]]]])] + bn))

# Before opset 13, Softmax flattens all axes from its own onwards.
save("softmax_12", build(
    [node("Softmax", ["x"], ["y"], "flat", axis=1), node("Softmax", ["x"], ["z"], "last", axis=3),
     node("Softmax", ["s"], ["t"], "symbolic", axis=1)],
    [value("x", [2, 3, 4, 5]), value("s", [2, "A", "B"])],
    [value("y", None), value("z", None), value("t", None)], opset=12))

# Attention of one sequence to another, with symbolic lengths.
save("attention", build(
    [node("Transpose", ["m"], ["k"], "turn", perm=[0, 2, 1]), node("Mul", ["x", "c"], ["q"], "scale"),
     node("MatMul", ["q", "k"], ["s"], "scores"), node("Softmax", ["s"], ["p"], "softmax", axis=2),
     node("MatMul", ["p", "m"], ["y"], "mix")],
    [value("x", ["N", "S", 4]), value("m", ["N", "M", 4])], [value("y", ["N", "S", 4])],
    [tensor("c", 0.5)]))

# Operators whose parameters are attributes in old opsets.
save("opset_9", build(
    [node("Slice", ["x"], ["s"], "slice", axes=[3, 2], starts=[1, 0], ends=[1000, -1]),
     node("Pad", ["s"], ["p"], "pad", pads=[0, 0, 1, 0, 0, 0, 0, 2], value=1.5),
     node("Clip", ["p"], ["c"], "clip", min=0.0, max=6.0),
     node("Upsample", ["c", "scales"], ["u"], "upsample", mode="nearest"),
     node("Dropout", ["u"], ["d"], "dropout", ratio=0.5),
     node("ReduceMean", ["d"], ["m"], "mean", axes=[2, 3], keepdims=0),
     node("Unsqueeze", ["m"], ["v"], "unsqueeze", axes=[0, 3]),
     node("Squeeze", ["v"], ["q"], "squeeze", axes=[0]),
     node("Split", ["q"], ["l", "r"], "split", axis=1, split=[1, 2]),
     node("BatchNormalization", ["x", "g", "g", "g", "g"], ["n"], "norm")],
    [value("x", [1, 3, 4, 5])], [value("l", None), value("r", None), value("n", None)],
    [tensor("scales", [1, 1, 2, 2]), tensor("g", [1, 2, 3])], opset=9))

# Automatic padding, ceil mode, and a transposed convolution with a given output shape.
save("windows", build(
    [node("Conv", ["x", "w"], ["same"], "same", auto_pad="SAME_UPPER", strides=[2, 2]),
     node("Conv", ["x", "w"], ["lower"], "lower", auto_pad="SAME_LOWER", strides=[2, 2]),
     node("MaxPool", ["x"], ["ceil"], "ceil", kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1),
     node("ConvTranspose", ["x", "t"], ["up"], "up", strides=[2, 2], output_shape=[11, 12]),
     node("ConvTranspose", ["x", "t"], ["padded"], "padded", strides=[2, 2], pads=[1, 1, 1, 1],
          output_padding=[1, 0])],
    [value("x", [1, 3, 5, 6])],
    [value(n, None) for n in ("same", "lower", "ceil", "up", "padded")],
    [ramp("w", 4, 3, 2, 3), ramp("t", 3, 2, 3, 3)]))

# One weight read by two joints, and the same elements in two orientations.
save("shared", build(
    [node("Conv", ["x", "w"], ["a"], "first", pads=[1, 1, 1, 1]),
     node("Conv", ["a", "w"], ["b"], "second", pads=[1, 1, 1, 1]),
     node("Flatten", ["b"], ["f"], "flatten"),
     node("Gemm", ["f", "m"], ["g"], "gemm", transB=1), node("MatMul", ["g", "m"], ["y"], "matmul")],
    [value("x", [1, 2, 2, 2])], [value("y", None)], [ramp("w", 2, 2, 3, 3), ramp("m", 8, 8)]))

# Weights stored as integers: 8 bits per channel, a 32-bit bias, and 4 bits; and an activation
# that is quantised and dequantised.
nibbles = TensorProto(name="m", data_type=22, dims=[3], raw_data=b"\x8f\x07")  # -1, -8, 7
save("quantised", build(
    [node("QuantizeLinear", ["x", "xs", "xz"], ["xq"], "to"),
     node("DequantizeLinear", ["xq", "xs", "xz"], ["xd"], "fro"),
     node("DequantizeLinear", ["w", "ws", "wz"], ["wd"], "weight", axis=0),
     node("DequantizeLinear", ["b", "bs"], ["bd"], "bias", axis=0),
     node("Conv", ["xd", "wd", "bd"], ["c"], "conv"),
     node("DequantizeLinear", ["m", "ms"], ["md"], "narrow"), node("Mul", ["c", "md"], ["y"], "mul")],
    [value("x", ["N", 1, 1, 3])], [value("y", None)],
    [tensor("xs", 0.5), tensor("xz", 3, np.uint8),
     tensor("w", [[[[-128]]], [[[127]]]], np.int8), tensor("ws", [0.5, 0.25]),
     tensor("wz", [1, -1], np.int8), tensor("b", [40000, -3], np.int32), tensor("bs", [0.5, 2]),
     nibbles, tensor("ms", 0.25)], opset=21))

# Models that must be refused.
save("quantised_scales", build(
    [node("QuantizeLinear", ["x", "s"], ["y"], "q", axis=1)], [value("x", [1, 2, 4])],
    [value("y", None)], [ramp("s", 3)]))
save("quantised_blocks", build(
    [node("QuantizeLinear", ["x", "s"], ["y"], "q", axis=-1, block_size=3)],
    [value("x", [1, 2, 4])], [value("y", None)], [ramp("s", 1, 2, 3)], opset=21))
save("quantised_zeros", build(
    [node("QuantizeLinear", ["x", "s", "z"], ["y"], "q", axis=1)], [value("x", [1, 2, 4])],
    [value("y", None)], [ramp("s", 2), tensor("z", 0, np.uint8)]))
# Attributes and types that are newer than opset 22, in forms that are not supported.
codes = TensorProto(name="c", data_type=17, dims=[2], raw_data=b"\x38\x40")  # float8e4m3fn
save("narrow_float", build([node("Add", ["x", "c"], ["y"], "add")], [value("x", [2])],
                           [value("y", None)], [codes], opset=23))
save("quantised_precision", build(
    [node("QuantizeLinear", ["x", "s"], ["y"], "q", precision=TensorProto.FLOAT16)],
    [value("x", [2])], [value("y", None)], [tensor("s", 0.5)], opset=23))
save("quantised_types", build(
    [node("QuantizeLinear", ["x", "s", "z"], ["y"], "q", output_dtype=TensorProto.INT8)],
    [value("x", [2])], [value("y", None)], [tensor("s", 0.5), tensor("z", 1, np.uint8)], opset=23))
save("range_stash", build(
    [node("Range", ["a", "b", "c"], ["y"], "range", stash_type=TensorProto.FLOAT16)], [],
    [value("y", None)], [tensor(k, v, np.float16) for k, v in (("a", 0), ("b", 3), ("c", 1))], opset=27))
save("bitcast_width", build([node("BitCast", ["x"], ["y"], "bits", to=TensorProto.INT16)],
                            [value("x", [2])], [value("y", None)], opset=26))
save("scatter_batch", build([node("TensorScatter", ["x", "u"], ["y"], "scatter", axis=0)],
                            [value("x", [2, 3]), value("u", [1, 3])], [value("y", None)], opset=24))
save("attention_rule", build(
    [node("LinearAttention", ["q", "q", "q"], ["y"], "attention", q_num_heads=2, kv_num_heads=2)],
    [value("q", [1, 3, 4])], [value("y", None)], opset=27))
conv = node("Conv", ["x", "w"], ["y"], "conv")
io = ([value("x", [1, 1, 4, 4])], [value("y", None)])
save("nan", build([conv], *io, [tensor("w", [[[[1.0, 2.0, float("nan")]]]])]))
save("infinite", build([conv], *io, [tensor("w", [[[[1.0, float("inf")]]]])]))
save("unknown", build([node("Det", ["x"], ["y"], "corner", domain="com.example")], *io,
                      domain="com.example"))
save("nchwc", build([node("Conv", ["x", "w"], ["y"], "conv", domain="com.microsoft.nchwc")], *io,
                    [ramp("w", 4, 1, 3, 3)], domain="com.microsoft.nchwc"))
# Weights in blocks that do not have the shapes of ONNX Runtime's operators: scales without axes, scales
# for three of four rows, and rows of 17 bytes, where 16 are expected.
codes = tensor("w", np.zeros((4, 16)), np.uint8)
gather = node("GatherBlockQuantized", ["w", "i", "s", "z"], ["y"], "table", domain="com.microsoft", block_size=32)
for name, scales in (("block_scalar", np.ones(())), ("block_rows", np.ones((3, 1)))):
    save(name, build([gather], [value("i", [2], I64)], [value("y", [2, 32])],
                     [codes, tensor("s", scales), tensor("z", np.zeros((4, 1)), np.uint8)], domain="com.microsoft"))
save("block_bytes", build(
    [node("MatMulNBits", ["x", "w", "s"], ["y"], "product", domain="com.microsoft", K=32, N=4, bits=4, block_size=32)],
    [value("x", [2, 32])], [value("y", [2, 4])],
    [tensor("w", np.zeros((4, 1, 17)), np.uint8), tensor("s", np.ones(4))], domain="com.microsoft"))
# The nodes are listed from the last to the first. The first one reads another by its body.
yes = helper.make_graph([node("Exp", ["c"], ["v"], "exp"), node("Neg", ["v"], ["u"], "neg")], "yes", [],
                        [value("u", [1, 1, 4, 4])])
no = helper.make_graph([node("Identity", ["b"], ["t"], "same")], "no", [], [value("t", [1, 1, 4, 4])])
save("unsorted", build(
    [node("If", ["is_large"], ["y"], "if", then_branch=yes, else_branch=no), node("Sigmoid", ["b"], ["c"], "sigmoid"),
     node("Greater", ["m", "zero"], ["is_large"], "greater"), node("ReduceMean", ["b"], ["m"], "mean", keepdims=0),
     node("Tanh", ["a"], ["b"], "tanh"), node("Relu", ["x"], ["a"], "relu")], *io,
    [tensor("zero", 0)]))

save("undefined", build([node("Relu", ["nothing"], ["y"], "relu")], *io))
save("twice", build([node("Relu", ["x"], ["y"], "a"), node("Abs", ["x"], ["y"], "b")], *io))
save("mismatch", build([conv], *io, [ramp("w", 4, 3, 3, 3)]))
save("opset_29", build([node("Relu", ["x"], ["y"], "relu")], *io, opset=29))
save("training_output", build(
    [node("BatchNormalization", ["x", "g", "g", "g", "g"], ["b", "mean"], "norm"),
     node("Relu", ["b"], ["y"], "relu"), node("Abs", ["mean"], ["z"], "abs")],
    io[0], [value("y", None), value("z", None)], [ramp("g", 1)], opset=14))


# Before opset 14 these outputs mean training mode, even if nothing reads them.
def with_outputs(*outputs, **attributes):
    return build([node("BatchNormalization", ["x", "g", "g", "g", "g"], ["y", *outputs], "norm",
                       **attributes)], *io, [tensor("g", [0.5])],
                 opset=6 if attributes else 8)


save("training_outputs", with_outputs("mean", "var", "saved_mean", "saved_var"))
save("training_no_outputs", with_outputs("", "", "", ""))
save("training_is_test", with_outputs("mean", "var", "saved_mean", "saved_var", is_test=1))


# Exporters leave a Dropout with ratio 0 in inference models.
def dropout(ratio):
    return build([node("Dropout", ["x", "ratio", "training"], ["y"], "dropout")],
                 [value("x", [2])], [value("y", [2])],
                 [tensor("ratio", ratio), tensor("training", True, bool)])


save("dropout_nothing", dropout(0.0))
save("dropout_half", dropout(0.5))

# The branch taken determines the number of dimensions, so the model can be read once `n` is
# bound.
def branch(op):
    return helper.make_graph([node(op, ["x"], [op + "_y"], op)], op, [], [value(op + "_y", None)])


save("branches", build(
    [node("Constant", [], ["one"], "one", value_int=1), node("Equal", ["n", "one"], ["c"], "equal"),
     node("If", ["c"], ["y"], "if", then_branch=branch("Squeeze"), else_branch=branch("Abs"))],
    [helper.make_tensor_value_info("x", F32, [3, 1]),
     helper.make_tensor_value_info("n", TensorProto.INT64, [])], [value("y", None)]))

# Branches that return a value that the outer graph also returns, one value twice, and a constant.
# Every output has its own name.
def outputs_of(op, name):
    return helper.make_graph(
        [node("Identity", ["a"], [name + "_a"]), node(op, ["a"], [name + "_b"], op),
         node("Identity", [name + "_b"], [name + "_c"]),
         node("Constant", [], [name + "_d"], value=tensor(name + "_d", [1.0, 2.0]))],
        name, [], [value(name + letter, [2]) for letter in ("_a", "_b", "_c", "_d")])


save("branch_outputs", build(
    [node("Relu", ["x"], ["a"], "relu"), node("Constant", [], ["one"], "one", value_int=1),
     node("Equal", ["n", "one"], ["is_one"], "equal"),
     node("If", ["is_one"], ["p", "q", "r", "s"], "if", then_branch=outputs_of("Neg", "t"),
          else_branch=outputs_of("Abs", "e"))],
    [value("x", [2]), value("n", [], I64)],
    [value(name, [2]) for name in ("a", "p", "q", "r", "s")], opset=14))

# Sizes of parts that sum to the length only with overflow, or not at all.
for name, sizes in (("split_wraps", [1 << 62, 4 - (1 << 62)]), ("split_negative", [-1, 5]),
                    ("split_large", [1 << 62, 1 << 62]), ("split_short", [1, 2]),
                    ("split_long", [1, 1 << 40])):
    save(name, build([node("Split", ["x", "sizes"], ["a", "b"], "split", axis=0)],
                     [value("x", [4])], [value("a", None), value("b", None)],
                     [tensor("sizes", sizes, np.int64)]))

# One axis is requested longer than any memory; the other keeps its ratio to it.
save("resize_ratio", build(
    [node("Resize", ["x", "", "", "sizes"], ["y"], "resize",
          keep_aspect_ratio_policy="not_smaller")],
    [value("x", [1, 1000])], [value("y", None)], [tensor("sizes", [1 << 60, 1], np.int64)],
    opset=18))

# Loops without a count whose condition stays true: one adds, one doubles the length of its state.
def endless(op, count="", **attributes):
    body = helper.make_graph(
        [node("Identity", ["go"], ["goes_on"], "goes_on"),
         node(op, ["s", "s"], ["t"], "again", **attributes)],
        "turn", [value("i", [], I64), value("go", [], TensorProto.BOOL), value("s", ["L"])],
        [value("goes_on", [], TensorProto.BOOL), value("t", ["M"])])
    return build([node("Loop", [count, "", "x"], ["y"], "loop", body=body)],
                 [value("x", ["N"])] + ([value("n", [], I64)] if count else []),
                 [value("y", ["K"])])


# Loops of known lengths: one with 2^31 - 2 iterations, and one around the loop that doubles.
def fixed(count, turn):
    body = helper.make_graph(
        [node("Identity", ["go"], ["goes_on"], "goes_on")] + turn, "turn",
        [value("i", [], I64), value("go", [], TensorProto.BOOL), value("s", [3])],
        [value("goes_on", [], TensorProto.BOOL), value("t", [3])])
    return build([node("Loop", ["n", "", "x"], ["y"], "loop", body=body)],
                 [value("x", [3])], [value("y", [3])], [tensor("n", count, np.int64)])


def doubling():
    inner = endless("Concat", axis=0).graph.node[0].attribute[0].g
    return [node("Loop", ["", "", "s"], ["all"], "inner", body=rename(inner)),
            node("ReduceMax", ["all"], ["most"], "most", axes=[0], keepdims=1),
            node("Add", ["s", "most"], ["t"], "add")]


# Names of values must be unique across a graph and its bodies.
def rename(graph):
    for n in graph.node:
        n.input[:] = ["inner_" + i for i in n.input]
        n.output[:] = ["inner_" + o for o in n.output]
        n.name = "inner_" + n.name
    for v in list(graph.input) + list(graph.output):
        v.name = "inner_" + v.name
    return graph


save("loop_long", fixed((1 << 31) - 2, [node("Add", ["s", "s"], ["t"], "again")]))
save("loop_nested", fixed(1, doubling()))
save("loop_endless", endless("Add"))
save("loop_counted", endless("Add", "n"))
save("loop_doubles", endless("Concat", axis=0))

# The deciding inputs have data-dependent numbers of elements: a loop's count and condition, the
# condition that its body returns, and a branch's condition.
truth = TensorProto.BOOL
save("loop_lengths", build(
    [node("Loop", ["n", "c", "x"], ["y"], "loop", body=helper.make_graph(
        [node("Less", ["left", "s"], ["goes_on"], "goes_on"), node("Add", ["s", "s"], ["t"], "add")],
        "turn", [value("i", [], I64), value("go", ["G"], truth), value("s", [1])],
        [value("goes_on", ["H"], truth), value("t", [1])]))],
    [value("x", [1]), value("n", ["N"], I64), value("c", ["C"], truth), value("left", ["L"])],
    [value("y", [1])]))
save("branch_lengths", build(
    [node("If", ["c"], ["y"], "if", then_branch=branch("Abs"), else_branch=branch("Neg"))],
    [value("c", ["C"], truth), value("x", [2])], [value("y", [2])]))

short = ramp("w", 1, 1, 2, 2)
short.raw_data = short.raw_data[:-1]
save("short_weight", build([conv], *io, [short]))

huge = TensorProto(name="w", data_type=F32, dims=[1 << 40, 1 << 40, 3, 3])
save("huge_weight", build([conv], *io, [huge]))


def external(location, offset=0, length=None):
    t = TensorProto(name="w", data_type=F32, dims=[1, 1, 2, 2], data_location=TensorProto.EXTERNAL)
    entries = {"location": location, "offset": str(offset)}
    if length is not None:
        entries["length"] = str(length)
    for key, text in entries.items():
        entry = t.external_data.add()
        entry.key, entry.value = key, text
    return t


with open(os.path.join(FOLDER, "external.bin"), "wb") as file:
    file.write(b"\0" * 8 + np.array([1, 2, 3, 4], np.float32).tobytes())
save("external", build([conv], *io, [external("external.bin", 8, 16)]))
save("external_outside", build([conv], *io, [external("../../../etc/passwd", 0, 16)]))
save("external_short", build([conv], *io, [external("external.bin", 16, 16)]))


# Forms that no exporter writes: omitted operands of Scan, axes and counts beyond 32 bits, lengths
# larger than any memory, and nested bodies.
def scan(name, inputs, **attributes):
    body = helper.make_graph(
        [node("Add", ["s", "e"], ["t"], "add"), node("Identity", ["t"], ["u"], "copy")], "body",
        [value("s", [2]), value("e", [2])], [value("t", [2]), value("u", [2])])
    save(name, build([node("Scan", inputs, ["y", "z"], "scan", body=body, **attributes)],
                     [value("a", [2]), value("x", [3, 2])], [value("y", None), value("z", None)]))


scan("scan_left_out", ["", "x"], num_scan_inputs=1)
scan("scan_axis", ["a", "x"], num_scan_inputs=1, scan_input_axes=[1 << 31])
scan("scan_count", ["a", "x"], num_scan_inputs=1 << 31)
save("loop_left_out", build(
    [node("Loop", ["n", "c", "", "x"], ["y", "z"], "loop", body=helper.make_graph(
        [node("Abs", ["s"], ["t"], "abs"), node("Identity", ["d"], ["e"], "copy")], "body",
        [value("i", [], I64), value("d", [], truth), value("s", [2]), value("u", [2])],
        [value("e", [], truth), value("t", [2]), value("t", [2])]))],
    [value("n", [], I64), value("c", [], truth), value("x", [2])], [value("z", [2])]))
save("too_long", build([node("Relu", ["x"], ["y"], "relu")], [value("x", [3, 1 << 41])], io[1]))
save("too_many", build([node("Relu", ["x"], ["y"], "relu")],
                       [value("x", [1 << 20, 1 << 20, 1 << 9])], io[1]))
save("n_grams", build(
    [node("TfIdfVectorizer", ["x"], ["y"], "words", mode="TF", min_gram_length=1,
          max_gram_length=1, max_skip_count=0, ngram_counts=[0], ngram_indexes=[(1 << 63) - 1],
          pool_int64s=[7])], [value("x", [4], TensorProto.INT32)], io[1]))


def nested(depth):
    inner = node("Abs", ["x"], [f"y{depth}"], f"abs{depth}") if depth == 0 else node(
        "If", ["c"], [f"y{depth}"], f"if{depth}", then_branch=nested(depth - 1),
        else_branch=branch("Abs"))
    return helper.make_graph([inner], f"body{depth}", [], [value(f"y{depth}", None)])


save("nested", build(
    [node("If", ["c"], ["y"], "if", then_branch=nested(24), else_branch=branch("Abs"))],
    [value("c", [], truth), value("x", [2])], io[1]))


# Two scanned inputs of different lengths.
save("scan_lengths", build(
    [node("Scan", ["x", "u"], ["y"], "scan", num_scan_inputs=2, body=helper.make_graph(
        [node("Add", ["s", "e"], ["t"], "add")], "body", [value("s", [2]), value("e", [2])],
        [value("t", [2])]))],
    [value("x", [3, 2]), value("u", [1, 2])], [value("y", None)]))


# A channel shuffle of two groups; then a convolution, a loop whose body is a chain, and a
# computed choice between two chains.
def chain(name, first, last, ops, n):
    names = [first] + [f"{name}_{i}" for i in range(n - 1)] + [last]
    return [node(ops[i % len(ops)], [names[i]], [names[i + 1]], f"{name}_{i}") for i in range(n)]


def chain_branch(name, ops):
    return helper.make_graph(chain(name, "l", name, ops, 30), name, [], [value(name, None)])


save("bodies", build(
    [node("Reshape", ["x", "parts"], ["x_1"], "split"),
     node("Transpose", ["x_1"], ["x_2"], "turn", perm=[0, 2, 1, 3, 4]),
     node("Reshape", ["x_2", "merged"], ["x_3"], "merge"),
     node("Conv", ["x_3", "w"], ["c"], "conv"),
     node("Loop", ["n", "", "c"], ["l"], "loop", body=helper.make_graph(
         [node("Identity", ["go"], ["goes_on"], "goes_on")] +
         chain("turn", "s", "t", ("Sigmoid", "Tanh", "Neg"), 39), "turn",
         [value("i", [], I64), value("go", [], truth), value("s", None)],
         [value("goes_on", [], truth), value("t", None)])),
     node("ReduceSum", ["c"], ["sum"], "sum", keepdims=0),
     node("Greater", ["sum", "zero"], ["is_more"], "more"),
     node("If", ["is_more"], ["y"], "if", then_branch=chain_branch("then", ("Relu", "Tanh")),
          else_branch=chain_branch("else", ("Neg", "Sigmoid")))],
    [value("x", [1, 4, 4, 4]), value("n", [], I64)], [value("y", None)],
    [tensor("parts", [1, 2, 2, 4, 4], np.int64), tensor("merged", [1, 4, 4, 4], np.int64),
     ramp("w", 2, 4, 1, 1), tensor("zero", 0.0)]))


# An embedding whose table is also the last layer's weight, read by a Gemm or transposed for a
# MatMul.
for name, last in (
        ("tied", [node("Gemm", ["e", "w"], ["y"], transB=1)]),
        ("tied_turned", [node("Transpose", ["w"], ["turned"], perm=[1, 0]),
                         node("MatMul", ["e", "turned"], ["y"])])):
    save(name, build([node("Gather", ["w", "i"], ["e"])] + last, [value("i", [None], I64)],
                     [value("y", [None, 6])], [ramp("w", 6, 4)]))

# Names of modules in metadata, as torch's exporter writes them: a convolution merged with its batch
# normalisation, a layer with its own path, a second node of a module, a parent that uses a child's
# weight, a block that shares the weight of another one, a node outside all modules, and damage.
def of_module(made, *path):
    made.metadata_props.add(key="pkg.torch.onnx.name_scopes", value=str(["", *path]))
    return made


damaged = node("Relu", ["i"], ["y"], "plain")
damaged.metadata_props.add(key="pkg.torch.onnx.name_scopes", value="['', 'cut off")
save("modules", build(
    [of_module(node("Conv", ["x", "body.conv1.weight"], ["a"], "node_1"), "body", "body.bn1", "_native_batch_norm"),
     of_module(node("Relu", ["a"], ["b"], "node_2"), "body", "body.act", "relu"),
     of_module(node("GlobalAveragePool", ["b"], ["c"], "node_3"), "mean"),
     of_module(node("Flatten", ["c"], ["d"], "node_4"), "flatten"),
     of_module(node("MatMul", ["d", "val_3"], ["e"], "node_5"), "layers.0", "layers.0.fc", "linear"),
     of_module(node("Sigmoid", ["e"], ["f"], "node_6"), "layers.0", "layers.0.fc", "gate"),
     of_module(node("MatMul", ["f", "layers.0.out.weight"], ["g"], "node_7"), "layers.0", "linear"),
     of_module(node("MatMul", ["g", "layers.0.out.weight"], ["h"], "node_8"), "layers.1", "linear_1"),
     of_module(node("Exp", ["h"], ["i"], "node_9"), "_empty_nn_module_stack_from_metadata_hook", "exp"),
     damaged],
    [value("x", [1, 2, 4, 4])], [value("y", [1, 3])],
    [ramp("body.conv1.weight", 3, 2, 3, 3), ramp("val_3", 3, 3), ramp("layers.0.out.weight", 3, 3)]))


def sparse(name, dims, indices, values):
    return helper.make_sparse_tensor(tensor(name, values), tensor("", indices, np.int64), dims)


def sparse_model(indices):
    """A matrix product by a sparse initialiser [2,3], given by coordinates, plus a sparse constant [4] in a column."""
    model = build(
        [node("MatMul", ["x", "w"], ["p"], "product"),
         node("Constant", [], ["c"], "constant", sparse_value=sparse("", [4, 1], [1, 3], [3, 4])),
         node("Add", ["p", "c"], ["y"], "sum")],
        [value("x", [4, 2])], [value("y", [4, 3])])
    model.graph.sparse_initializer.append(sparse("w", [2, 3], indices, [2, -1, 0.5]))
    return model


save("sparse", sparse_model([[0, 1], [1, 0], [1, 2]]))
save("sparse_outside", sparse_model([[0, 1], [2, 0], [1, 2]]))

# A function with a sparse constant.
model = build([node("Shift", ["x"], ["y"], "call", domain="my")], [value("x", [4, 2])], [value("y", [4, 2])],
              domain="my")
model.ir_version = 8
model.functions.append(helper.make_function("my", "Shift", ["x"], ["y"], [
    node("Constant", [], ["c"], "constant", sparse_value=sparse("", [4, 1], [1, 3], [3, 4])),
    node("Add", ["x", "c"], ["y"], "sum")], [helper.make_opsetid("", 13)]))
save("sparse_function", model)

# The end of a classifier as skl2onnx writes it by default.
save("zip_map", build([
    node("Softmax", ["x"], ["p"], "softmax"),
    node("ZipMap", ["p"], ["y"], "zip", domain="ai.onnx.ml", classlabels_int64s=[0, 1])],
    [value("x", [1, 2])],
    [helper.make_value_info("y", helper.make_sequence_type_proto(
        helper.make_map_type_proto(I64, helper.make_tensor_type_proto(F32, []))))], domain="ai.onnx.ml"))
