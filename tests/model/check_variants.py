#!/usr/bin/env python3
"""Places a network together with a variant of it that has bytes, in onnxruntime alone.

    check_variants.py MSCGYM RUNTIME LIBRARY

RUNTIME is tools/mscgym-runtime, LIBRARY libmscgym.so. The network is slow before the cut, the variant after
it, each by a cubic enlargement, which takes onnxruntime ten times as long as the rest. So the first piece of the
variant and the second of the network are the fastest. The expected outputs and losses come from onnxruntime,
which runs the two halves of the files, as the package onnx cuts them. Needs numpy, onnx and onnxruntime; exits with
77 without them.
"""
import json
import os
import subprocess
import sys
import tempfile

try:
    import numpy
    import onnx
    import onnxruntime
    from onnx import TensorProto, helper, numpy_helper
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "python"))
LENGTH = 40
GENERATOR = numpy.random.default_rng(5)
WEIGHTS = {"w0": GENERATOR.standard_normal((8, 4, 3, 3)).astype(numpy.float32) / 6,
           "w1": GENERATOR.standard_normal((8, 8, 3, 3)).astype(numpy.float32) / 8,
           "scales": numpy.array([1, 1, 3, 3], numpy.float32), "tiny": numpy.array(1e-7, numpy.float32),
           "zero": numpy.array(128, numpy.uint8), "fine": numpy.array(0.04, numpy.float32),
           "coarse": numpy.array(0.5, numpy.float32)}


def check(holds, what):
    if not holds:
        print(f"failed: {what}")
        sys.exit(1)


def slow(value, name):
    """Nodes that give `name`: the value and next to nothing from an enlargement of it."""
    return [helper.make_node("Resize", [value, "", "scales"], [name + "_large"], mode="cubic"),
            helper.make_node("ReduceMean", [name + "_large"], [name + "_mean"], axes=[1, 2, 3]),
            helper.make_node("Mul", [name + "_mean", "tiny"], [name + "_tiny"]),
            helper.make_node("Add", [value, name + "_tiny"], [name])]


def pair(value, scale):
    """Nodes that give `value`_rounded: bytes and floats again."""
    return [helper.make_node("QuantizeLinear", [value, scale, "zero"], [value + "_bytes"]),
            helper.make_node("DequantizeLinear", [value + "_bytes", scale, "zero"], [value + "_rounded"])]


def convolve(value, weight, name):
    return [helper.make_node("Conv", [value, weight], [name], pads=[1] * 4)]


def save(path, nodes):
    used = {name for node in nodes for name in node.input}
    graph = helper.make_graph(
        nodes, "net", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 4, LENGTH, LENGTH])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 8, LENGTH, LENGTH])],
        [numpy_helper.from_array(array, name) for name, array in WEIGHTS.items() if name in used])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
    model.ir_version = 9
    onnx.save(onnx.shape_inference.infer_shapes(model), path)


def run(model, feeds, is_exact=True):
    """The output. Unless it is exact, onnxruntime may also make bytes of the weights between bytes."""
    options = onnxruntime.SessionOptions()
    if is_exact:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return session.run(None, feeds)[0]


def half(path, inputs, outputs):
    part = path.replace(".onnx", "_" + outputs[0] + ".onnx")
    onnx.utils.extract_model(path, part, inputs, outputs)
    return part


def loss(wanted, found):
    return float(numpy.mean((wanted - found) ** 2) / numpy.mean(wanted ** 2))


def place(mscgym, *arguments):
    made = subprocess.run([mscgym, "place", *arguments, "--threads", "1", "--rounds", "5", "--processes", "1",
                           "--json", "--quiet"], check=True, stdout=subprocess.PIPE)
    return json.loads(made.stdout)


def check_mix(mscgym, folder, result, samples, wanted):
    """The delivered pieces: what they hold, and that every runner gives the expected outputs."""
    from mscgym import Pieces
    with open(result["manifest"], encoding="utf-8") as file:
        pieces = json.load(file)["pieces"]
    first, last = (onnx.load(os.path.join(os.path.dirname(result["manifest"]), piece["model"])).graph for piece in pieces)
    check([node.op_type for node in first.node][-2:] == ["QuantizeLinear", "DequantizeLinear"], first.node)
    check("Resize" not in {node.op_type for graph in (first, last) for node in graph.node}, last.node)
    check(first.output[0].name == last.input[0].name == "t", first.output)
    found = Pieces(result["manifest"]).run({"x": samples})["y"]
    check(numpy.allclose(found, wanted, rtol=1e-4, atol=1e-5), "Pieces")
    outputs = os.path.join(folder, "out.npz")
    subprocess.run([mscgym, "run", result["manifest"], "--inputs", os.path.join(folder, "x.npz"), "-o", outputs,
                    "--quiet"], check=True)
    with numpy.load(outputs) as arrays:
        check(numpy.allclose(arrays["y"], wanted, rtol=1e-4, atol=1e-5), "mscgym run")


def check_broken(mscgym, folder, network, inputs):
    """A variant whose outputs overflow is outside every bound, and its loss can be read back from the table."""
    broken = os.path.join(folder, "broken.onnx")
    model = onnx.load(network)
    for weight in model.graph.initializer:
        if weight.name == "w1":
            weight.CopyFrom(numpy_helper.from_array(numpy.full_like(WEIGHTS["w1"], 3e38), "w1"))
    onnx.save(model, broken)
    arguments = "--input", inputs, "--loss-max", "1000"
    result = place(mscgym, network, "--variant", broken, "-o", os.path.join(folder, "broken"), "--groups", "2",
                   "--backend", "onnxruntime", *arguments)
    check(result["result"][-1] == "onnxruntime" and result["variant_losses"][1] == 1e30, result)  # w1 is at the end
    result = place(mscgym, network, "--table", os.path.join(folder, "broken", "placement.json"), "-o",
                   os.path.join(folder, "again"), *arguments)
    check(result["result"][-1] == "onnxruntime" and not result["cut_short"], result)


def check_half(mscgym, folder):
    """Losses of outputs of float16, and no search that is said to be cut short because the table is full."""
    paths = [os.path.join(folder, name) for name in ("half.onnx", "half_small.onnx")]
    weights = numpy.full((4, 4, 1, 1), 0.25, numpy.float16), numpy.full((4, 4, 1, 1), 0.245, numpy.float16)
    for path, weight in zip(paths, weights):
        graph = helper.make_graph(
            convolve("x", "w", "c") + [helper.make_node("Relu", ["c"], ["y"])], "half",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT16, ["N", 4, 4, 4])],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT16, ["N", 4, 6, 6])],
            [numpy_helper.from_array(weight, "w")])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
        model.ir_version = 9
        onnx.save(model, path)
    samples = GENERATOR.uniform(0.5, 1, (3, 4, 4, 4)).astype(numpy.float16)
    inputs = os.path.join(folder, "half.npz")
    numpy.savez(inputs, x=samples)
    result = place(mscgym, paths[0], "--variant", paths[1], "-o", os.path.join(folder, "half"), "--backend",
                   "onnxruntime", "--input", inputs, "--loss-max", "1", "--losses", "4")
    wanted = loss(*(run(path, {"x": samples}).astype(numpy.float64) for path in paths))
    check(abs(result["variant_losses"][1] - wanted) < 0.05 * wanted, (result, wanted))
    check(not result["cut_short"], result)


def check_open(mscgym, folder):
    """Open lengths of random inputs, also where only mscgym's own kernels name them."""
    path = os.path.join(folder, "open.onnx")
    graph = helper.make_graph(
        [helper.make_node("Conv", ["x", "w0"], ["c"]), helper.make_node("Relu", ["c"], ["y"])], "open",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 4, 8, "W"])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 8, 6, "V"])],
        [numpy_helper.from_array(WEIGHTS["w0"], "w0")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
    model.ir_version = 9
    onnx.save(model, path)
    for backend in ("onnxruntime", "cpu"):
        arguments = path, "-o", os.path.join(folder, "open"), "--backend", backend
        result = place(mscgym, *arguments, "--bind", "W=20")
        check(result["measured"][0]["error"] < 1e-4, result)
        made = subprocess.run([mscgym, "place", *arguments, "--quiet"], stderr=subprocess.PIPE, text=True, check=False)
        check(made.returncode != 0 and made.stderr.startswith(f"mscgym: {path}: ") and "--bind" in made.stderr and
              "part_" not in made.stderr, made.stderr)


def main():
    mscgym, runtime, library = sys.argv[1:4]
    os.environ["MSCGYM_RUNTIME"] = f"{sys.executable} {os.path.abspath(runtime)}"
    os.environ["MSCGYM_LIBRARY"] = os.path.abspath(library)
    os.environ["PATH"] = os.path.dirname(os.path.abspath(mscgym)) + os.pathsep + os.environ["PATH"]
    with tempfile.TemporaryDirectory() as folder:
        network, variant = os.path.join(folder, "net.onnx"), os.path.join(folder, "small.onnx")
        save(network, convolve("x", "w0", "c") + slow("c", "t") + convolve("t", "w1", "y"))
        save(variant, pair("x", "fine") + convolve("x_rounded", "w0", "t") + pair("t", "fine") +
             pair("t_rounded", "coarse") + slow("t_rounded_rounded", "s") + convolve("s", "w1", "y"))
        samples = GENERATOR.standard_normal((3, 4, LENGTH, LENGTH)).astype(numpy.float32)
        inputs = os.path.join(folder, "x.npz")
        numpy.savez(inputs, x=samples)
        exact, bytes_alone = run(network, {"x": samples}), run(variant, {"x": samples})
        halves = half(variant, ["x"], ["t_rounded"]), half(network, ["t"], ["y"])
        mixed, delivered = (run(halves[1], {"t": run(halves[0], {"x": samples}, is_exact)}, is_exact)
                            for is_exact in (True, False))
        wanted = {"bytes": loss(exact, bytes_alone), "mix": loss(exact, mixed), "delivered": loss(exact, delivered)}
        check(wanted["mix"] < wanted["bytes"] / 4, wanted)
        bound = (wanted["mix"] * wanted["bytes"]) ** 0.5
        result = place(mscgym, network, "--variant", variant, "-o", os.path.join(folder, "placed"), "--input", inputs,
                       "--loss-max", str(bound), "--backend", "onnxruntime")
        check(result["result"] == result["plan"] and result["wins"] and result["ratio"] < 0.77, result)
        check(set(result["plan"]) == {"onnxruntime small.onnx", "onnxruntime"}, result)
        for found, name in ((result["loss"], "mix"), (result["delivered_loss"], "delivered"),
                            (result["variant_losses"][1], "bytes")):
            check(abs(found - wanted[name]) < 0.02 * wanted[name], (found, name, wanted))
        check(result["variant_losses"][0] == 0, result)
        check_mix(mscgym, folder, result, samples, delivered)
        table = os.path.join(folder, "placed", "placement.json")
        tight = place(mscgym, network, "--table", table, "-o", os.path.join(folder, "tight"), "--input", inputs,
                      "--loss-max", str(wanted["mix"] / 2))
        check(set(tight["result"]) == {"onnxruntime"} and tight["loss"] == 0, tight)
        check_broken(mscgym, folder, network, inputs)
        check_half(mscgym, folder)
        check_open(mscgym, folder)
    print("passed")


if __name__ == "__main__":
    main()
