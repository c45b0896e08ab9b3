#!/usr/bin/env python3
"""Benchmarks measure integer products exactly on every processor (bench/peers/outputs.py).

On processors with AVX2 and without VNNI, onnxruntime's own products of bytes limit sums of two to 16 bits: 255 * 127
twice is more. numpy gives the expected sums. Skipped without onnxruntime.
"""
import os
import sys
import tempfile

try:
    import numpy
    import onnx
    import onnxruntime  # noqa: F401: what the measured program imports
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bench", "peers"))
import outputs  # noqa: E402

ROWS, INNER, COLUMNS = 3, 8, 5


def main():
    random = numpy.random.RandomState(0)
    x = random.randint(200, 256, (4, ROWS, INNER)).astype(numpy.uint8)
    w = random.randint(100, 128, (INNER, COLUMNS)).astype(numpy.int8)
    zeros = {"x_zero": numpy.array(3, numpy.uint8), "w_zero": random.randint(-9, 9, COLUMNS).astype(numpy.int8)}
    node, types = onnx.helper.make_node, onnx.TensorProto
    # One product with zero points, one without.
    nodes = [node("Cast", ["x"], ["bytes"], to=types.UINT8),
             node("MatMulInteger", ["bytes", "w", "x_zero", "w_zero"], ["sum_0"]),
             node("MatMulInteger", ["bytes", "w"], ["sum_1"]),
             *(node("Cast", [f"sum_{i}"], [f"y_{i}"], to=types.FLOAT) for i in range(2))]
    graph = onnx.helper.make_graph(
        nodes, "net", [onnx.helper.make_tensor_value_info("x", types.FLOAT, ["N", ROWS, INNER])],
        [onnx.helper.make_tensor_value_info(f"y_{i}", types.FLOAT, ["N", ROWS, COLUMNS]) for i in range(2)],
        [onnx.numpy_helper.from_array(array, name) for name, array in {"w": w, **zeros}.items()])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "net.onnx")
        onnx.save(model, path)
        found = outputs.outputs(path, {"x": x.astype(numpy.float32)}, 2)
    wide = [array.astype(numpy.int64) for array in (x, w, zeros["x_zero"], zeros["w_zero"])]
    expected = [(wide[0] - wide[2]) @ (wide[1] - wide[3]), wide[0] @ wide[1]]
    for i, (one, other) in enumerate(zip(found, expected)):
        if not (one == other).all():
            sys.exit(f"y_{i}: the greatest difference is {numpy.abs(one - other).max()}")
    print("both products are exact")


if __name__ == "__main__":
    main()
