#!/usr/bin/env python3
"""Checks compression of models whose weights and activations are float16 or bfloat16.

    check_half.py MSCGYM

The models are converted as tools convert them: with and without float32 inputs and outputs, and
with some operators left in float32 between Casts. Each is quantised and pruned. Exported files must
keep the types of inputs, outputs and uncompressed weights, and load in onnxruntime. There, their
loss against the model in its own type must be the loss that the search found. Sizes count two bytes
for an uncompressed weight. A model that is exported without a strategy must not change.
"""
import json
import os
import shutil
import sys

from small_onnx import Checks, helper, node, numpy, numpy_helper, onnx, onnxruntime

try:
    import ml_dtypes
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

rng = numpy.random.default_rng(11)
TYPES = {"float16": (numpy.float16, onnx.TensorProto.FLOAT16),
         "bfloat16": (ml_dtypes.bfloat16, onnx.TensorProto.BFLOAT16)}
N_SAMPLES = 32


def f(*shape):
    inputs = numpy.prod(shape[1:]) if len(shape) > 1 else 8
    return (rng.standard_normal(shape) / numpy.sqrt(inputs)).astype(numpy.float32)


def mlp():
    return ([node("MatMul", ["x", "w"], ["m"]), node("Add", ["m", "a"], ["h"]),
             node("Relu", ["h"], ["r"]), node("Gemm", ["r", "v", "b"], ["g"], transB=1),
             node("Sigmoid", ["g"], ["s"]), node("MatMul", ["s", "u"], ["y"])],
            {"w": f(32, 64), "a": f(64), "v": f(64, 64), "b": f(64), "u": f(64, 10)}, [32], [10])


def cnn():
    """Convolutions with batch normalisation, a sum, a pool and a hard swish."""
    nodes, weights = [], {}

    def layer(x, y, channels, kernel, groups=1):
        weights[f"{y}.w"] = f(channels[1], channels[0] // groups, kernel, kernel)
        weights.update({f"{y}.beta": f(channels[1]), f"{y}.mean": f(channels[1]),
                        f"{y}.gamma": numpy.abs(f(channels[1])) + 0.5,
                        f"{y}.var": numpy.abs(f(channels[1])) + 0.5})
        nodes.append(node("Conv", [x, f"{y}.w"], [f"{y}.conv"], pads=[kernel // 2] * 4, group=groups))
        nodes.append(node("BatchNormalization", [f"{y}.conv"] + [
            f"{y}.{part}" for part in ("gamma", "beta", "mean", "var")], [f"{y}.norm"]))
        nodes.append(node("Relu", [f"{y}.norm"], [y]))

    layer("x", "a", (3, 16), 3)
    layer("a", "b", (16, 16), 3, 16)
    layer("b", "c", (16, 16), 1)
    nodes.append(node("Add", ["a", "c"], ["sum"]))
    nodes.append(node("MaxPool", ["sum"], ["pool"], kernel_shape=[2, 2], strides=[2, 2]))
    layer("pool", "d", (16, 32), 3)
    nodes.append(node("HardSigmoid", ["d"], ["gate"], alpha=1 / 6, beta=0.5))
    nodes += [node("Mul", ["d", "gate"], ["swish"]), node("GlobalAveragePool", ["swish"], ["mean"]),
              node("Flatten", ["mean"], ["flat"]), node("Gemm", ["flat", "w", "v"], ["y"], transB=1)]
    weights.update({"w": f(10, 32), "v": f(10)})
    return nodes, weights, [3, 16, 16], [10]


def attention():
    width = 32
    weights = {name: f(width, width) for name in ("wq", "wk", "wv", "wo")}
    weights.update({"ones": numpy.ones(width, numpy.float32), "beta": f(width), "bq": f(width),
                    "w1": f(width, 64), "w2": f(64, width),
                    "root": numpy.array(8 ** -0.5, numpy.float32),
                    "heads": numpy.array([0, 0, 4, 8]), "back": numpy.array([0, 0, width])})
    nodes = [node("LayerNormalization", ["x", "ones", "beta"], ["n"], axis=-1),
             node("MatMul", ["n", "wq"], ["q_product"]), node("Add", ["q_product", "bq"], ["q0"]),
             node("MatMul", ["n", "wk"], ["k0"]), node("MatMul", ["n", "wv"], ["v0"])]
    for name in "qkv":
        nodes.append(node("Reshape", [f"{name}0", "heads"], [f"{name}1"]))
        nodes.append(node("Transpose", [f"{name}1"], [f"{name}2"],
                          perm=[0, 2, 3, 1] if name == "k" else [0, 2, 1, 3]))
    nodes += [node("MatMul", ["q2", "k2"], ["s0"]), node("Mul", ["s0", "root"], ["s1"]),
              node("Softmax", ["s1"], ["s2"], axis=-1), node("MatMul", ["s2", "v2"], ["o0"]),
              node("Transpose", ["o0"], ["o1"], perm=[0, 2, 1, 3]),
              node("Reshape", ["o1", "back"], ["o2"]), node("MatMul", ["o2", "wo"], ["o3"]),
              node("Add", ["o3", "x"], ["sum"]), node("MatMul", ["sum", "w1"], ["f1"]),
              node("Tanh", ["f1"], ["f2"]), node("MatMul", ["f2", "w2"], ["f3"]),
              node("Add", ["f3", "sum"], ["y"])]
    return nodes, weights, [12, width], [12, width]


def lstm():
    return ([node("Transpose", ["x"], ["xt"], perm=[1, 0, 2]),
             node("LSTM", ["xt", "w", "r", "b"], ["h"], hidden_size=16),
             node("Squeeze", ["h", "one"], ["hs"]), node("Transpose", ["hs"], ["ht"], perm=[1, 0, 2]),
             node("MatMul", ["ht", "v"], ["y"])],
            {"w": f(1, 64, 8), "r": f(1, 64, 16), "b": f(1, 128), "v": f(16, 5),
             "one": numpy.array([1])}, [9, 8], [9, 5])


def branches():
    """An If whose body computes in the narrow type between products."""
    def body(name, operator):
        output = helper.make_tensor_value_info(f"{name}.out", 1, ["n", 24])
        return helper.make_graph([node(operator, ["m"], [f"{name}.out"])], name, [], [output])
    return ([node("MatMul", ["x", "w"], ["m"]), node("ReduceMax", ["m"], ["most"], keepdims=0),
             node("Greater", ["most", "limit"], ["is_large"]),
             node("If", ["is_large"], ["z"], then_branch=body("then", "Tanh"),
                  else_branch=body("else", "Sigmoid")),
             node("MatMul", ["z", "v"], ["y"])],
            {"w": f(16, 24), "v": f(24, 6), "limit": numpy.array(2.5, numpy.float32)}, [16], [6])


MODELS = {"mlp": mlp, "cnn": cnn, "attention": attention, "lstm": lstm, "branches": branches}


def set_type(graph, old, new):
    for value in list(graph.output) + list(graph.value_info):
        if value.type.tensor_type.elem_type == old:
            value.type.tensor_type.elem_type = new


def around(item, weights, onnx_type, count):
    """Casts around a node that stays float32, with its weights."""
    before, after = [], []
    for i, name in enumerate(item.input):
        if name and name not in weights:
            before.append(node("Cast", [name], [f"{name}.wide{count}.{i}"], to=1))
            item.input[i] = f"{name}.wide{count}.{i}"
    for i, name in enumerate(item.output):
        if name:
            after.append(node("Cast", [f"{name}.wide"], [name], to=onnx_type))
            item.output[i] = f"{name}.wide"
    return before + [item] + after


def convert(model, kind, keeps_io, kept):
    """The float32 model in another type; nodes of the operators `kept` stay float32."""
    numpy_type, onnx_type = TYPES[kind]
    graph = model.graph
    weights = {t.name: numpy_helper.to_array(t) for t in graph.initializer}
    nodes = []
    wide = {name for item in graph.node if item.op_type in kept for name in item.input}
    for count, item in enumerate(graph.node):
        for attribute in item.attribute:
            if attribute.HasField("g"):
                set_type(attribute.g, 1, onnx_type)
        nodes += around(item, weights, onnx_type, count) if item.op_type in kept else [item]
    shape = [d.dim_param or d.dim_value for d in graph.input[0].type.tensor_type.shape.dim]
    if keeps_io:
        for item in nodes:
            for names in (item.input, item.output):
                for i, name in enumerate(names):
                    names[i] = f"{name}.narrow" if name in ("x", "y") else name
        nodes.insert(0, node("Cast", ["x"], ["x.narrow"], to=onnx_type))
        nodes.append(node("Cast", ["y.narrow"], ["y"], to=1))
    io_type = 1 if keeps_io else onnx_type
    y_shape = [d.dim_param or d.dim_value for d in graph.output[0].type.tensor_type.shape.dim]
    tensors = [numpy_helper.from_array(
        v.astype(numpy_type) if v.dtype == numpy.float32 and k not in wide else v, k)
        for k, v in weights.items()]
    made = helper.make_model(
        helper.make_graph(nodes, graph.name, [helper.make_tensor_value_info("x", io_type, shape)],
                          [helper.make_tensor_value_info("y", io_type, y_shape)], tensors),
        opset_imports=model.opset_import)
    made.ir_version = model.ir_version
    return made


def build(path, name, kind, keeps_io, kept):
    nodes, weights, shape, y_shape = MODELS[name]()
    graph = helper.make_graph(
        nodes, name, [helper.make_tensor_value_info("x", 1, ["n", *shape])],
        [helper.make_tensor_value_info("y", 1, ["n", *y_shape])],
        [numpy_helper.from_array(v, k) for k, v in weights.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])
    model.ir_version = 10
    model = convert(model, kind, keeps_io, kept)
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, path)
    x = rng.standard_normal([N_SAMPLES, *shape]).astype(numpy.float32)
    numpy.savez("inputs.npz", x=x)
    return model, x


def run(path, x):
    """The output in onnxruntime, whose release 1.32 crashes when it optimises this float16 LSTM."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    is_half = session.get_inputs()[0].type == "tensor(float16)"
    return session.run(None, {"x": x.astype(numpy.float16) if is_half else x})[0].astype(numpy.float32)


def loss_of(found, expected):
    return float(numpy.mean((found - expected) ** 2) / numpy.mean(expected ** 2))


def io_types(model):
    return [v.type.tensor_type.elem_type for v in list(model.graph.input) + list(model.graph.output)]


def float_types(model):
    floats = (onnx.TensorProto.FLOAT, *[onnx_type for _, onnx_type in TYPES.values()])
    return {t.name: t.data_type for t in model.graph.initializer if t.data_type in floats}


def check_file(checks, what, path, model):
    """Checks a compressed file; returns it, or None."""
    if not checks.expect(f"{what}: written", os.path.exists(path)):
        return None
    small = onnx.load(path)
    try:
        onnx.checker.check_model(small, full_check=True)
    except onnx.checker.ValidationError as error:
        checks.expect(f"{what}: valid", False, error)
    checks.expect(f"{what}: inputs and outputs", io_types(small) == io_types(model), io_types(small))
    return small


# Each search measures a few plans, some of which leave parts in the model's own type.
SEARCHES = {
    "quantize": {"choices": [{"bits": 8}, {"float": True}]},
    "generic": {"choices": [{"bits": 8}, {"type": "float16"}, {"float": True}], "target": "generic"},
    "weights": {"choices": [{"bits": 4, "group_size": 32}, {"float": True}],
                "activations": {"float": True}},
    "prune": {"choices": [{"density": 1}, {"density": 0.5}], "round_to": 2},
}


def search(checks, what, kind):
    shutil.rmtree("work", ignore_errors=True)
    section = "prune" if kind == "prune" else "quantize"
    entry = {"env": SEARCHES[kind], "agent": {"type": "random"}, "budget": {"trials": 4}}
    with open("search.json", "w", encoding="utf-8") as file:
        json.dump({"model": "m.onnx", "workspace": "work", "dataset": {"inputs": "inputs.npz"},
                   "baseline": {}, section: {"runtime": False, "gym": [entry]}}, file)
    code, text = checks.mscgym("search", "search.json", "--threads", 1, "--quiet")
    record = f"work/{section}_0.jsonl"
    if not checks.expect(f"{what}: searched", code == 0, text):
        return []
    code, text = checks.mscgym("verify", record, "--threads", 1)
    checks.expect(f"{what}: verified", code == 0, text)
    with open(record, encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    found = [(record, line) for line in lines if line.get("state") == "complete"]
    checks.expect(f"{what}: trials", len(found) >= 3, len(found))
    return found


def check_trial(checks, what, record, line, model, x, reference):
    trial, metrics = line["id"], line["metrics"]
    code, text = checks.mscgym("export", record, "--trial", trial, "--output", "trial.onnx")
    what = f"{what}, trial {trial}"
    if not checks.expect(f"{what}: exported", code == 0, text):
        return
    small = check_file(checks, what, "trial.onnx", model)
    found = metrics["distill_loss"]
    if small is None or reference is None:
        return
    loss = loss_of(run("trial.onnx", x), reference)
    # Rounding to float16 alone is a loss of about 1e-7; it may also move a value across a step.
    checks.expect(f"{what}: loss", abs(loss - found) < 0.5 * found + 1e-6, (loss, found))


def check_searches(checks, what, model, x, reference, kinds):
    n_bytes = sum(numpy_helper.to_array(t).nbytes for t in model.graph.initializer)
    for kind in kinds:
        lines = search(checks, f"{what}, {kind}", kind)
        for record, line in lines:
            check_trial(checks, f"{what}, {kind}", record, line, model, x, reference)
        sizes = [line["metrics"]["size_bytes"] / line["metrics"]["size_ratio"] for _, line in lines]
        # Folding removes a few small weights of batch normalisation.
        checks.expect(f"{what}, {kind}: size", all(0.8 * n_bytes < s < n_bytes + 1 for s in sizes),
                      (sizes, n_bytes))


def check_plain(checks, what, model, x, reference):
    """Nothing changes without a strategy."""
    code, text = checks.mscgym("export", "--model", "m.onnx", "--output", "plain.onnx")
    if not checks.expect(f"{what}: plain export", code == 0, text):
        return
    plain = check_file(checks, f"{what}: plain", "plain.onnx", model)
    own = set(float_types(model).values())
    checks.expect(f"{what}: plain types", set(float_types(plain).values()) <= own,
                  float_types(plain))
    if reference is not None:
        checks.expect(f"{what}: plain outputs", loss_of(run("plain.onnx", x), reference) < 1e-6)


def check_quick(checks, what, model, x, reference):
    code, text = checks.mscgym("quantize", "m.onnx", "--inputs", "inputs.npz", "--output", "q.onnx",
                               "--threads", 1, "--quiet")
    if not checks.expect(f"{what}: quantised", code == 0, text):
        return
    small = check_file(checks, f"{what}: quantised", "q.onnx", model)
    n_integers = sum(t.data_type in (onnx.TensorProto.INT8, onnx.TensorProto.UINT8) and
                     len(t.dims) > 1 for t in small.graph.initializer)
    checks.expect(f"{what}: weights are integers", n_integers >= 2, n_integers)
    if reference is not None:
        loss = loss_of(run("q.onnx", x), reference)
        checks.expect(f"{what}: loss of the quantised model", loss < 2e-3, loss)


def check_excluded(checks, what, model, weight):
    """A weight that is left out keeps its type."""
    entry = {"env": {"choices": [{"bits": 8}], "exclude": [weight]}, "agent": {"type": "random"},
             "budget": {"trials": 1}}
    with open("search.json", "w", encoding="utf-8") as file:
        json.dump({"model": "m.onnx", "workspace": "work", "dataset": {"inputs": "inputs.npz"},
                   "quantize": {"runtime": False, "gym": [entry]}}, file)
    shutil.rmtree("work", ignore_errors=True)
    code, text = checks.mscgym("search", "search.json", "--threads", 1, "--quiet")
    if not checks.expect(f"{what}: searched without {weight}", code == 0, text):
        return
    small = check_file(checks, f"{what}: without {weight}", "work/m.onnx", model)
    checks.expect(f"{what}: type of {weight}",
                  float_types(small).get(weight) == float_types(model)[weight], float_types(small))


def main():
    checks = Checks(sys.argv[1])
    cases = [(name, "float16", keeps_io, ()) for name in MODELS for keeps_io in (False, True)]
    cases += [("attention", "float16", False, ("Softmax", "LayerNormalization")),
              ("cnn", "float16", True, ("MaxPool", "BatchNormalization")),
              ("mlp", "float16", False, ("Gemm",)),
              ("mlp", "bfloat16", False, ()), ("mlp", "bfloat16", True, ()),
              ("attention", "bfloat16", True, ("Softmax",))]
    for name, kind, keeps_io, kept in cases:
        what = f"{name} {kind}{', float32 around it' if keeps_io else ''}{' with ' if kept else ''}" \
               f"{', '.join(kept)}"
        model, x = build("m.onnx", name, kind, keeps_io, kept)
        # onnxruntime computes nothing in bfloat16.
        reference = run("m.onnx", x) if kind == "float16" else None
        check_plain(checks, what, model, x, reference)
        check_quick(checks, what, model, x, reference)
        # Channels that a body reads are not pruned.
        kinds = [k for k in SEARCHES if k != "prune" or name not in ("lstm", "branches")]
        check_searches(checks, what, model, x, reference, kinds if not kept else ["quantize"])
    model, x = build("m.onnx", "mlp", "float16", False, ())
    check_excluded(checks, "mlp", model, "v")
    return checks.finish()


if __name__ == "__main__":
    sys.exit(main())
