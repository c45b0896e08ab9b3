"""A model of operators on integers, with outputs that numpy computes: dynamic quantisation, products and convolutions.

    inputs, outputs = write("model.onnx")
"""
import numpy
from numpy.lib.stride_tricks import sliding_window_view
from onnx import helper, numpy_helper, save_model

N_GROUPS, PADS, STRIDES = 2, [1, 0, 2, 1], [2, 1]


def dynamic(x):
    """DynamicQuantizeLinear of ONNX, in float32."""
    low, high = min(x.min(), numpy.float32(0)), max(x.max(), numpy.float32(0))
    scale = (high - low) / numpy.float32(255) if high > low else numpy.float32(1)
    zero = numpy.clip(numpy.rint(-low / scale), 0, 255)
    return numpy.clip(numpy.rint(x / scale) + zero, 0, 255).astype("uint8"), scale, zero.astype("uint8")


def product(a, b, a_zero, b_zero):
    """Zero points for rows of a and columns of b, or one for all."""
    return ((a.astype("int32") - numpy.reshape(a_zero, (-1, 1)).astype("int32"))
            @ (b.astype("int32") - numpy.reshape(b_zero, (1, -1)).astype("int32")))


def convolution(x, w, x_zero, w_zero):
    """Zero points for the channels of w."""
    top, left, bottom, right = PADS
    x = numpy.pad(x.astype("int32") - int(x_zero), ((0, 0), (0, 0), (top, bottom), (left, right)))
    w = w.astype("int32") - w_zero.astype("int32").reshape(-1, 1, 1, 1)
    windows = sliding_window_view(x, w.shape[2:], (2, 3))[:, :, ::STRIDES[0], ::STRIDES[1]]
    parts = zip(numpy.split(windows, N_GROUPS, 1), numpy.split(w, N_GROUPS, 0))
    return numpy.concatenate([numpy.einsum("nchwij,ocij->nohw", a, b) for a, b in parts], 1).astype("int32")


def write(path):
    random = numpy.random.default_rng(7)

    def integers(kind, *shape):
        return random.integers(-128, 128, shape).astype("int8") if kind == "int8" else random.integers(
            0, 256, shape).astype("uint8")
    inputs = {"x": random.normal(size=(5, 6)).astype("float32"), "a": integers("uint8", 3, 6),
              "u": integers("uint8", 2, 4, 8, 8), "empty": numpy.zeros((2, 3), "float32")}
    weights = {"w": integers("int8", 6, 4), "w_zero": integers("int8", 4), "a_zero": integers("uint8", 3),
               "k": integers("int8", 6, 2, 3, 3), "k_zero": integers("int8", 6), "u_zero": numpy.uint8(131)}
    q, scale, zero = dynamic(inputs["x"])
    outputs = {"q": q, "scale": numpy.array(scale), "zero": numpy.array(zero),
               "columns": product(q, weights["w"], zero, weights["w_zero"]),
               "rows": product(inputs["a"], weights["w"], weights["a_zero"], 0),
               "plain": product(inputs["a"], weights["w"], 0, 0),
               "conv": convolution(inputs["u"], weights["k"], weights["u_zero"], weights["k_zero"]),
               "nothing": dynamic(inputs["empty"])[0]}
    nodes = [("DynamicQuantizeLinear", ["x"], ["q", "scale", "zero"]),
             ("MatMulInteger", ["q", "w", "zero", "w_zero"], ["columns"]),
             ("MatMulInteger", ["a", "w", "a_zero"], ["rows"]), ("MatMulInteger", ["a", "w"], ["plain"]),
             ("ConvInteger", ["u", "k", "u_zero", "k_zero"], ["conv"]),
             ("DynamicQuantizeLinear", ["empty"], ["nothing", "", ""])]
    attrs = {"ConvInteger": {"group": N_GROUPS, "pads": PADS, "strides": STRIDES}}

    def info(name, array):
        return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
    graph = helper.make_graph(
        [helper.make_node(op, given, made, name=made[0], **attrs.get(op, {})) for op, given, made in nodes], "integers",
        [info(*item) for item in inputs.items()], [info(*item) for item in outputs.items()],
        [numpy_helper.from_array(numpy.asarray(array), name) for name, array in weights.items()])
    save_model(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10), path)
    return inputs, outputs
