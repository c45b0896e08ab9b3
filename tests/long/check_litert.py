#!/usr/bin/env python3
"""Runs .tflite files in LiteRT, and compares with ONNX Runtime.

    check_litert.py MSCGYM [NAME|MODEL.onnx:INPUTS.npz ...]

For each network (default: the digits, and small networks, one for each operator that is written):
(a) The float model's outputs equal those of ONNX Runtime, relative to their largest number: to 1e-5.
(b) A search with target tflite is run and its 8-bit plan exported. All kernels but those at the
    model's borders are kernels of int8, except those in the table FLOAT.
(c) The plan's outputs are within a step of the output's scale of those of the ONNX export in ONNX
    Runtime, for 99 % of all elements, with and without LiteRT's default delegate; for fewer if many
    values are halfway between two steps, of which the plan's noise is a measure.
(d) The loss in LiteRT is that of the search, within 2 % or three times the plan's noise.
For small networks (d) is left out, since their losses vary with single roundings. For others (c) is
only printed, since differences add up over many layers. Refused models must leave no file.

Prints a table; exits with 1 if a check fails, and with 77 without ai-edge-litert, onnx and
onnxruntime.
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
    from ai_edge_litert.interpreter import Interpreter, OpResolverType
    from onnx import TensorProto, helper, numpy_helper
except ImportError as error:
    print(f"skipped: {error}; needs ai-edge-litert, onnx and onnxruntime")
    sys.exit(77)

HERE = os.path.dirname(os.path.abspath(__file__))
DIGITS = os.path.join(HERE, "..", "..", "examples", "digits")
SAMPLES, RUNS = 16, 8  # samples of small networks; samples of one call in LiteRT
TOLERANCE, LOSS = 1e-5, 0.02
AT_BORDERS = {"QUANTIZE", "DEQUANTIZE"}
RESOLVERS = {"default": OpResolverType.AUTO,
             "built-in": OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES}

# Small networks: [(operator, inputs, attributes)] between two convolutions of 8 channels. "x" is the
# first convolution's result of shape [N, 8, 8, 8]; names of capitals are constants.
CONSTANTS = {
    "ONE": numpy.float32(1), "FOUR": numpy.float32(4), "MINUS": numpy.float32(-1), "ZERO": numpy.float32(0),
    "SIX": numpy.float32(6), "CHANNELS": numpy.linspace(0.5, 2, 8, dtype="f4").reshape(8, 1, 1),
    "IMAGE": numpy.linspace(-1, 1, 64, dtype="f4").reshape(8, 8),
    "PADS": numpy.array([0, 0, 1, 2, 0, 0, 2, 1]), "LOW": numpy.float32(-0.25),
    "FLAT": numpy.array([-1, 512]), "GRID": numpy.array([-1, 16, 4, 8]), "BACK": numpy.array([-1, 8, 8, 8]),
    "SCALES": numpy.array([1, 1, 2, 2], "f4"), "FINER": numpy.array([1, 1, 1.5, 1.5], "f4"),
    "PARTS": numpy.array([2, 6]), "FROM": numpy.array([1, -2]), "TO": numpy.array([2 ** 62, 0]),
    "AXES": numpy.array([1, 2]), "STEPS": numpy.array([2, -1]), "HW": numpy.array([2, 3]),
    "WIDE": numpy.random.RandomState(1).randn(8, 8).astype("f4"),
}


class Wrong(Exception):
    """A command that does not do what it must."""


def weight(seed, *shape):
    return (numpy.random.RandomState(seed).randn(*shape) / numpy.prod(shape[1:]) ** 0.5).astype("f4")


CONSTANTS.update(GAMMA=numpy.linspace(0.5, 2, 8, dtype="f4"), BETA=weight(10, 8), MEAN=weight(11, 8),
                 VAR=numpy.linspace(1, 3, 8, dtype="f4"))
CONSTANTS.update(W3=weight(2, 8, 8, 3, 3), DEPTH=weight(3, 16, 1, 3, 3), GROUPED=weight(4, 8, 2, 3, 3),
                 BIAS=weight(5, 8), W16=weight(6, 8, 16, 1, 1), DENSE=weight(7, 512, 512))
SMALL = {
    "conv": [("Conv", "x W3 BIAS", {"pads": [1, 1, 1, 1]})],
    "conv strided": [("Conv", "x W3 BIAS", {"pads": [1, 1, 1, 1], "strides": [2, 2]})],
    "conv dilated": [("Conv", "x W3", {"pads": [2, 2, 2, 2], "dilations": [2, 2]})],
    "conv uneven": [("Conv", "x W3", {"pads": [2, 0, 0, 1]})],
    "conv groups": [("Conv", "x GROUPED BIAS", {"group": 4})],
    "depthwise": [("Conv", "x DEPTH", {"group": 8, "pads": [1, 1, 1, 1]}), ("Conv", "a W16", {})],
    "relu": [("Conv", "x W3", {}), ("Relu", "a", {})],
    "relu6": [("Conv", "x W3", {}), ("Clip", "a ZERO SIX", {})],
    "clip": [("Conv", "x W3", {}), ("Clip", "a LOW ONE", {})],
    "clip alone": [("Clip", "x LOW FOUR", {}), ("Add", "a x", {})],
    "relu alone": [("Relu", "x", {}), ("Add", "a x", {})],
    "add": [("Relu", "x", {}), ("Conv", "a W3", {"pads": [1, 1, 1, 1]}), ("Add", "a b", {})],
    "add constant": [("Add", "x CHANNELS", {})],
    "add image": [("Add", "x IMAGE", {})],
    "subtract": [("Relu", "x", {}), ("Conv", "a W3", {"pads": [1, 1, 1, 1]}), ("Sub", "a b", {})],
    "divide": [("Div", "x CHANNELS", {})],
    "multiply": [("GlobalAveragePool", "x", {}), ("Sigmoid", "a", {}), ("Mul", "x b", {})],
    "maximum": [("Max", "x LOW", {})],
    "sigmoid": [("Sigmoid", "x", {})],
    "tanh": [("Tanh", "x", {})],
    "hard swish": [("HardSwish", "x", {})],
    "hard sigmoid": [("HardSigmoid", "x", {"alpha": 1 / 6})],
    "leaky relu": [("LeakyRelu", "x", {"alpha": 0.1})],
    "exp": [("Exp", "x", {})],
    "batch norm": [("Relu", "x", {}), ("BatchNormalization", "a GAMMA BETA MEAN VAR", {}), ("Relu", "b", {})],
    "softmax": [("Softmax", "x", {"axis": -1})],
    "softmax channels": [("Softmax", "x", {"axis": 1})],
    "max pool": [("MaxPool", "x", {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]})],
    "max pool ceil": [("MaxPool", "x", {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1})],
    "average pool": [("AveragePool", "x", {"kernel_shape": [2, 2], "strides": [2, 2]})],
    "average pool same": [("AveragePool", "x", {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]})],
    "average pool counted": [("AveragePool", "x", {"kernel_shape": [3, 3], "strides": [2, 2],
                                                   "pads": [1, 1, 1, 1], "count_include_pad": 1})],
    "mean": [("ReduceMean", "x", {"axes": [2, 3], "keepdims": 1}), ("Mul", "x a", {})],
    "concat": [("Conv", "x W3", {"pads": [1, 1, 1, 1]}), ("Concat", "a x", {"axis": 1}), ("Conv", "b W16", {})],
    "concat rows": [("Relu", "x", {}), ("Concat", "a x", {"axis": 2})],
    "split": [("Split", "x PARTS", {"axis": 1, "outputs": 2}), ("Concat", "a1 a", {"axis": 1})],
    "slice": [("Slice", "x FROM TO AXES STEPS", {}), ("Concat", "a a", {"axis": 1})],
    "pad": [("Pad", "x PADS", {})],
    "pad constant": [("Pad", "x PADS LOW", {})],
    "pad reflect": [("Pad", "x PADS", {"mode": "reflect"})],
    "resize nearest": [("Resize", "x  SCALES", {"mode": "nearest", "nearest_mode": "floor",
                                                "coordinate_transformation_mode": "asymmetric"})],
    "resize half": [("Resize", "x  SCALES", {"mode": "nearest"})],
    "resize linear": [("Resize", "x  FINER", {"mode": "linear"})],
    "resize asymmetric": [("Resize", "x  SCALES", {"mode": "linear",
                                                   "coordinate_transformation_mode": "asymmetric"})],
    "resize corners": [("Resize", "x  SCALES", {"mode": "linear",
                                                "coordinate_transformation_mode": "align_corners"})],
    "reshape": [("Reshape", "x GRID", {}), ("Relu", "a", {}), ("Reshape", "b BACK", {})],
    "transpose": [("Transpose", "x", {"perm": [0, 2, 3, 1]}), ("Softmax", "a", {"axis": -1}),
                  ("Transpose", "b", {"perm": [0, 3, 1, 2]})],
    "linear": [("Reshape", "x FLAT", {}), ("MatMul", "a DENSE", {}), ("Reshape", "b BACK", {})],
    "matmul": [("MatMul", "x WIDE", {}), ("MatMul", "x a", {})],
    "flatten": [("Flatten", "x", {}), ("Gemm", "a DENSE", {"transB": 1}), ("Reshape", "b BACK", {})],
    "squeeze": [("GlobalAveragePool", "x", {}), ("Squeeze", "a HW", {}), ("Softmax", "b", {"axis": 1}),
                ("Unsqueeze", "c HW", {}), ("Mul", "x d", {})],
    "identity": [("Identity", "x", {}), ("Relu", "a", {})],
}
# Kernels of floats that remain in the 8-bit models: TensorFlow Lite has no kernel of int8, or the
# operand is a constant, which the target leaves float (graph/target.h).
FLOAT = {"batch norm": {"MUL", "ADD"}, "clip alone": {"MAXIMUM", "MINIMUM"}, "add image": {"ADD"},
         "divide": {"DIV"}, "maximum": {"MAXIMUM"},
         "exp": {"EXP"}, "hard sigmoid": {"MUL", "ADD", "MINIMUM"}, "pad constant": {"PADV2"}}


def make_small(path, nodes):
    """A network of a convolution, the nodes and, if its input has 8 channels, another convolution."""
    made, names = [helper.make_node("Conv", ["image", "FIRST"], ["x"], pads=[1, 1, 1, 1])], ["x"]
    used = {"FIRST": weight(8, 8, 3, 3, 3), "LAST": weight(9, 4, 8, 1, 1)}
    for letter, (op, inputs, attributes) in zip("abcdefgh", nodes):
        attributes = dict(attributes)
        outputs = [letter] + [f"{letter}{i}" for i in range(1, attributes.pop("outputs", 1))]
        inputs = inputs.split(" ")
        used.update({name: CONSTANTS[name] for name in inputs if name in CONSTANTS})
        made.append(helper.make_node(op, inputs, outputs, **attributes))
        names.append(letter)
    made.append(helper.make_node("Conv", [names[-1], "LAST"], ["y"]))
    value = helper.make_tensor_value_info
    graph = helper.make_graph(made, "small", [value("image", TensorProto.FLOAT, ["N", 3, 8, 8])],
                              [value("y", TensorProto.FLOAT, None)],
                              [numpy_helper.from_array(numpy.asarray(v), k) for k, v in used.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    onnx.save(onnx.shape_inference.infer_shapes(model), path)
    return {"image": numpy.random.RandomState(0).randn(SAMPLES, 3, 8, 8).astype("f4")}


def run(*command, fails=False):
    result = subprocess.run(command, capture_output=True, text=True)
    if (result.returncode != 0) != fails:
        raise Wrong(f"{command[1]}: {result.returncode} {result.stderr}")
    return result.stderr if fails else result.stdout


def in_onnxruntime(path, feeds):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    parts = [session.run(None, {key: x[i:i + 1] for key, x in feeds.items()})
             for i in range(len(next(iter(feeds.values()))))]
    return {o.name: numpy.concatenate([part[k] for part in parts])
            for k, o in enumerate(session.get_outputs())}


def in_litert(path, feeds, resolver):
    """The outputs, and the interpreter."""
    interpreter = Interpreter(path, num_threads=1, experimental_op_resolver_type=resolver)
    details = {d["name"]: d for d in interpreter.get_input_details()}
    parts, n = [], len(next(iter(feeds.values())))
    is_open = all(len(d["shape_signature"]) and d["shape_signature"][0] < 0 for d in details.values())
    step = RUNS if is_open else 1
    for i in range(0, n, step):
        for name, x in feeds.items():
            interpreter.resize_tensor_input(details[name]["index"], x[i:i + step].shape)
        interpreter.allocate_tensors()
        for name, x in feeds.items():
            interpreter.set_tensor(details[name]["index"], x[i:i + step])
        interpreter.invoke()
        parts.append({d["name"]: interpreter.get_tensor(d["index"])
                      for d in interpreter.get_output_details()})
    return {name: numpy.concatenate([part[name] for part in parts]) for name in parts[0]}, interpreter


def float_kernels(path):
    """Names of the kernels that read or write floats, other than those at the borders; and the scale
    of each output."""
    interpreter = Interpreter(path, experimental_op_resolver_type=RESOLVERS["built-in"])
    interpreter.allocate_tensors()
    tensors = {t["index"]: t for t in interpreter.get_tensor_details()}
    found, scales = set(), {}
    for op in interpreter._get_ops_details():
        types = {tensors[i]["dtype"] for i in (op["inputs"][0], op["outputs"][0])}
        if op["op_name"] not in AT_BORDERS and numpy.float32 in types:
            found.add(op["op_name"])
        if op["op_name"] == "DEQUANTIZE":
            scales[tensors[op["outputs"][0]]["name"]] = tensors[op["inputs"][0]]["quantization"][0]
    return found, scales


def search(mscgym, model, data, folder):
    config = {"workspace": folder, "model": model, "dataset": {"inputs": data, "batch": 1},
              "quantize": {"target": "tflite",
                           "gym": [{"record": "r.jsonl", "env": {"choices": [{"bits": 8}]},
                                    "agent": {"type": "random"}, "budget": {"trials": 1}}]}}
    path = os.path.join(folder, "search.json")
    with open(path, "w") as file:
        json.dump(config, file)
    run(mscgym, "search", path, "--quiet")
    record = os.path.join(folder, "r.jsonl")
    files = [os.path.join(folder, name) for name in ("plan.tflite", "plan.onnx")]
    for file in files:
        examined = json.loads(run(mscgym, "export", record, "--trial", "0", "-o", file, "--quiet", "--json"))
    delivered = os.path.join(folder, os.path.basename(model)[:-len(".onnx")] + ".tflite")
    if not os.path.exists(delivered):
        raise Wrong("the search delivered no .tflite file")
    return files, examined["distill_loss"], examined["noise"]


def compare(faults, is_small, noise, feeds, plan, exported, expected):
    scales = float_kernels(plan)[1]
    losses, shares = {}, {resolver: 1 for resolver in RESOLVERS}
    for resolver, kind in RESOLVERS.items():
        found, _ = in_litert(plan, feeds, kind)
        loss = numpy.mean([((found[o].astype("f8") - y) ** 2).sum() / (y.astype("f8") ** 2).sum()
                           for o, y in expected.items()])
        losses[resolver] = loss
        for output, y in exported.items():
            if output not in scales:
                continue
            near = numpy.mean(numpy.abs(found[output] - y) <= 1.01 * scales[output])
            shares[resolver] = min(shares[resolver], near)
            if near < 1 - max(0.01, 2 * noise) and is_small:
                faults.append(f"{resolver}: {output}: only {near:.1%} within a step")
    return losses, shares


def check(mscgym, name, model, feeds, folder, is_small):
    faults = []
    data = os.path.join(folder, "inputs.npz")
    numpy.savez(data, **feeds)
    whole = os.path.join(folder, "float.tflite")
    run(mscgym, "export", "--model", model, "-o", whole, "--quiet")
    expected = in_onnxruntime(model, feeds)
    for resolver, kind in RESOLVERS.items():
        found, _ = in_litert(whole, feeds, kind)
        for output, y in expected.items():
            error = numpy.abs(found[output] - y).max() / numpy.abs(y).max()
            if found[output].shape != y.shape or not error <= TOLERANCE:
                faults.append(f"float, {resolver}: {output} differs by {error:.1e}")
    (plan, exported), said, noise = search(mscgym, model, data, folder)
    kernels = float_kernels(plan)[0] - {"TRANSPOSE"}
    if not kernels <= FLOAT.get(name, set()):
        faults.append(f"kernels of floats: {sorted(kernels)}")
    losses, shares = compare(faults, is_small, noise, feeds, plan, in_onnxruntime(exported, feeds), expected)
    if not is_small and not abs(losses["default"] - said) <= max(LOSS, 3 * noise) * said:
        faults.append("loss")
    print(f"{'FAIL' if faults else 'ok  '} {name}: loss {said:.4g}, noise {noise:.1%}, in LiteRT "
          f"{losses['default']:.4g}, with built-in kernels {losses['built-in']:.4g}, "
          f"within a step {shares['default']:.1%} and {shares['built-in']:.1%} {'; '.join(faults)}", flush=True)
    return bool(faults)


def check_refused(mscgym, folder):
    model, target = os.path.join(folder, "refused.onnx"), os.path.join(folder, "refused.tflite")
    feeds = make_small(model, [("Erf", "x", {})])
    data = os.path.join(folder, "refused.npz")
    numpy.savez(data, **feeds)
    wrong = []
    for command in (["export", "--model", model, "-o", target],
                    ["quantize", model, "--inputs", data, "-o", target],
                    ["quantize", model, "--inputs", data, "-o", target, "--target", "openvino"]):
        said = run(mscgym, *command, "--quiet", fails=True)
        wanted = "needs the target tflite" if "openvino" in command else "(erf) cannot be written"
        if wanted not in said or said.count("\n") != 1 or os.path.exists(target):
            wrong.append(said)
    print(f"{'FAIL' if wrong else 'ok  '} refusals {wrong or ''}")
    return bool(wrong)


def main():
    mscgym, names = os.path.abspath(sys.argv[1]), sys.argv[2:]
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        if not names:
            failed += check_refused(mscgym, folder)
        for name in names or ["digits", *SMALL]:
            own = tempfile.mkdtemp(dir=folder)
            model = os.path.join(own, "net.onnx")
            if name in SMALL:
                feeds = make_small(model, SMALL[name])
            elif ":" in name:
                model, data = name.split(":")
                model, feeds = os.path.abspath(model), dict(numpy.load(data))
            elif name == "digits":
                model = os.path.join(DIGITS, "digits.onnx")
                feeds = dict(numpy.load(os.path.join(DIGITS, "calibration.npz")))
            else:
                import model_inputs
                model, feeds = model_inputs.model_path(name), model_inputs.feeds(name, SAMPLES)
            try:
                failed += check(mscgym, name, model, feeds, own, name in SMALL)
            except (Wrong, RuntimeError, ValueError) as error:
                print(f"FAIL {name}: {error}", flush=True)
                failed += 1
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
