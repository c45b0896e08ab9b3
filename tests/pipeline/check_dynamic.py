#!/usr/bin/env python3
"""Compares dynamic quantisation with onnxruntime, bit by bit.

    check_dynamic.py MSCGYM [DEVICE]

Models of linear layers are quantised with dynamic activations, for each target that takes them. The
outputs of `mscgym run --strategy`, of the exported model in onnxruntime, and of the exported model
read by `mscgym run` must be equal in every bit. The model must run with onnxruntime's fused
products, and lose about as much as the model of onnxruntime's quantize_dynamic. The loss that `mscgym
quantize` reports must be that of samples which run one by one, and no higher than that of
quantize_dynamic. If a runtime says that dynamic scales are slow, the command does without them, unless the times
are too noisy to say so. Needs numpy, onnx and onnxruntime; exits with 77 without them.
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
    from onnxruntime.quantization import QuantType, quantize_dynamic
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

WIDTH, ROWS, SAMPLES, BATCH = 32, 18, 8, 4
CHOICES = [{"bits": 8, "dynamic": True}, {"bits": 8}, {"float": True}]


# A runtime in which dynamic scales make a model slow, and times differ between rounds by a factor.
FAKE = """
import json, sys
def latency(request, path):
    with open(path, "rb") as file:
        model = file.read()
    us = 3000 if b"DynamicQuantizeLinear" in model else 400 if b"QuantizeLinear" in model else 1000
    return [us * (NOISE if r % 2 and us != 1000 else 1) for r in range(request["rounds"])]
for line in sys.stdin:
    request = json.loads(line)
    answer = {"error": "not asked for"}
    if request["method"] == "done":
        break
    if request["method"] == "hello":
        answer = {"protocol": 1, "runtimes": [{"name": "onnxruntime", "version": "1"}], "processor": "", "features": [],
                  "threads": 1}
    if request["method"] == "latency":
        answer = {"version": "1", "models": [{"model": m, "runs": 1, "us": latency(request, m)}
                                             for m in request["models"]]}
    print(json.dumps(answer), flush=True)
"""


def check(holds, what):
    if not holds:
        print(f"failed: {what}")
        sys.exit(1)


class Graph:
    def __init__(self):
        self.random, self.nodes, self.weights = numpy.random.default_rng(3), [], []

    def weight(self, array):
        self.weights.append(numpy_helper.from_array(array, f"w{len(self.weights)}"))
        return self.weights[-1].name

    def add(self, op, *inputs, **attributes):
        name = f"{op.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [name], name=name, **attributes))
        return name

    def numbers(self, *shape):
        return self.weight(self.random.standard_normal(shape, numpy.float32))

    def linear(self, x, n_in, n_out, bias=True):
        y = self.add("MatMul", x, self.numbers(n_in, n_out))
        return self.add("Add", y, self.numbers(n_out)) if bias else y

    def save(self, path, output, dims):
        model = helper.make_model(
            helper.make_graph(self.nodes, "dynamic",
                              [helper.make_tensor_value_info("x", TensorProto.FLOAT, dims)],
                              [helper.make_tensor_value_info(output, TensorProto.FLOAT, None)], self.weights),
            opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        onnx.save(onnx.shape_inference.infer_shapes(model), path)


def layers(path):
    """Two layers read one tensor, and a moved tensor is quantised after the move."""
    g = Graph()
    a = g.add("Relu", g.linear("x", WIDTH, WIDTH))
    b, c = g.linear(a, WIDTH, 48), g.linear(a, WIDTH, 48, bias=False)
    y = g.add("Transpose", g.add("Relu", g.add("Add", b, c)), perm=[0, 2, 1])
    y = g.add("Reshape", y, g.weight(numpy.array([0, -1])))
    g.save(path, g.linear(y, 48 * ROWS, 10), ["N", ROWS, WIDTH])
    return (ROWS, WIDTH), 4


def gemm(path):
    """Weights [O,I]."""
    g = Graph()
    y = g.add("Gemm", "x", g.numbers(24, WIDTH), g.numbers(24), transB=1)
    y = g.add("Gemm", g.add("Relu", y), g.numbers(7, 24), g.numbers(7), transB=1)
    g.save(path, y, ["N", WIDTH])
    return (WIDTH,), 2


def run(*command):
    made = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    check(made.returncode == 0, f"{' '.join(map(str, command))}: {made.stdout}")


def in_onnxruntime(path, x, batch=BATCH):
    """Outputs batch by batch, and the operators of the optimised model."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    options.optimized_model_filepath = path + ".optimised"
    session = onnxruntime.InferenceSession(path, options, ["CPUExecutionProvider"])
    outputs = [session.run(None, {"x": x[i:i + batch]})[0] for i in range(0, len(x), batch)]
    return numpy.concatenate(outputs), [n.op_type for n in onnx.load(path + ".optimised").graph.node]


def in_mscgym(mscgym, device, model, x, *more):
    outputs = []
    for i in range(0, len(x), BATCH):
        numpy.save("x.npy", x[i:i + BATCH])
        run(mscgym, "run", model, "--input", "x=x.npy", "--output", "out", "--device", device, *more)
        outputs.append(numpy.load(os.path.join("out", os.listdir("out")[0])))
    return numpy.concatenate(outputs)


def quantize(mscgym, device, target, fixed):
    """Searches a space without alternatives, so that the strategy has these choices."""
    config = {"workspace": ".", "model": "model.onnx", "device": device, "dataset": {"inputs": "x.npz", "batch": BATCH},
              "quantize": {"target": target, "strategy_file": "strategy.json", "gym": [{
                  "record": "record.jsonl", "agent": {"type": "random"}, "budget": {"trials": 1},
                  "env": {"choices": CHOICES, **fixed}}]}}
    with open("config.json", "w", encoding="utf-8") as file:
        json.dump(config, file)
    run(mscgym, "search", "config.json", "--restart")
    run(mscgym, "export", "record.jsonl", "--trial", 0, "--save-strategy", "strategy.json", "-o", "small.onnx")
    run(mscgym, "verify", "record.jsonl")


def check_model(make, mscgym, device, target):
    dims, n_products = make("model.onnx")
    x = numpy.random.default_rng(5).standard_normal((SAMPLES, *dims), numpy.float32)
    x *= numpy.linspace(.2, 3, SAMPLES, dtype=numpy.float32).reshape(-1, *[1] * len(dims))
    numpy.savez("x.npz", x=x)
    quantize(mscgym, device, target, {"rules": [{"kind": "activation", "choices": ["8 dynamic"]},
                                                {"kind": "weight", "choices": ["8"]}]})
    ours = in_mscgym(mscgym, device, "model.onnx", x, "--strategy", "strategy.json")
    theirs, operators = in_onnxruntime("small.onnx", x)
    again = in_mscgym(mscgym, device, "small.onnx", x)
    name = f"{make.__name__}, {target}"
    fused = sum(op in ("DynamicQuantizeMatMul", "MatMulIntegerToFloat") for op in operators)
    plain = operators.count("MatMulInteger")
    check(fused + plain == n_products and fused > 0, f"{name}: products are not integer: {operators}")
    for what, other in (("onnxruntime", theirs), ("the exported model read again", again)):
        check(numpy.array_equal(ours, other), f"{name}: {what} differs by {abs(ours - other).max()}")
    with open("record.jsonl", encoding="utf-8") as file:
        trial = next(line for line in map(json.loads, file) if line.get("id") == 0)
    y = in_onnxruntime("model.onnx", x)[0].astype(numpy.float64)
    error = ((theirs - y) ** 2).reshape(SAMPLES, -1).mean(1).mean() / (y ** 2).mean()
    check(abs(trial["metrics"]["distill_loss"] - error) < 1e-5 * error,
          f"{name}: the search's loss is {trial['metrics']['distill_loss']}, in onnxruntime {error}")
    return error


def relative(found, y):
    y = y.astype(numpy.float64)
    return ((found - y) ** 2).mean() / (y ** 2).mean()


def command(mscgym, runtime):
    """The plan of `mscgym quantize`."""
    made = subprocess.run([mscgym, "quantize", "model.onnx", "--inputs", "x.npz", "-o", "small.onnx", "--json"],
                          check=True, stdout=subprocess.PIPE, env={**os.environ, "MSCGYM_RUNTIME": runtime})
    return json.loads(made.stdout)["plans"][0]


def check_noise(mscgym):
    for noise, is_dynamic in ((1.01, False), (3, True)):
        with open("fake.py", "w", encoding="utf-8") as file:
            file.write(FAKE.replace("NOISE", str(noise)))
        plan = command(mscgym, f"{sys.executable} fake.py")
        check(("dynamic" in plan["activations"]) == is_dynamic, f"times with noise {noise}: {plan['activations']}")


def check_command(mscgym):
    """`mscgym quantize` on samples of which every twelfth has an outlier: scales for a batch would suit no other."""
    layers("model.onnx")
    x = numpy.random.default_rng(6).standard_normal((60, ROWS, WIDTH), numpy.float32)
    x[::12, 0, 0] = 60
    numpy.savez("x.npz", x=x)
    plan, held_back = command(mscgym, "/missing"), x[48:]
    y = in_onnxruntime("model.onnx", held_back, 1)[0]
    said, error = plan["examined"]["validation"]["distill_loss"], relative(
        in_onnxruntime("small.onnx", held_back, 1)[0], y)
    check("dynamic" in plan["activations"], f"quantize: activations are {plan['activations']}")
    check(abs(said - error) < .01 * error, f"quantize: the loss is {said}, in onnxruntime {error}")
    quantize_dynamic("model.onnx", "dynamic.onnx", weight_type=QuantType.QInt8, per_channel=True)
    theirs = relative(in_onnxruntime("dynamic.onnx", held_back, 1)[0], y)
    check(error <= theirs, f"quantize: the loss is {error}, that of quantize_dynamic {theirs}")
    check_noise(mscgym)
    print(f"quantize: loss {error:.3g}, quantize_dynamic's {theirs:.3g}")


def loss_of_tool():
    """The loss of the same model by onnxruntime's quantize_dynamic."""
    quantize_dynamic("model.onnx", "dynamic.onnx", weight_type=QuantType.QInt8, per_channel=True)
    x = numpy.load("x.npz")["x"]
    y = in_onnxruntime("model.onnx", x)[0].astype(numpy.float64)
    return ((in_onnxruntime("dynamic.onnx", x)[0] - y) ** 2).mean() / (y ** 2).mean()


def main():
    mscgym = os.path.abspath(sys.argv[1])
    device = sys.argv[2] if len(sys.argv) > 2 else "cpu"
    for make in (layers, gemm):
        for target in ("onnxruntime", "onnxruntime_avx2", "generic"):
            with tempfile.TemporaryDirectory() as folder:
                os.chdir(folder)
                error = check_model(make, mscgym, device, target)
                others = loss_of_tool()
                check(error < 1.2 * others, f"{make.__name__}, {target}: loss {error}, quantize_dynamic's {others}")
                print(f"{make.__name__}, {target}: loss {error:.3g}, quantize_dynamic's {others:.3g}")
                os.chdir("/")
    if device == "cpu":
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            check_command(mscgym)
            os.chdir("/")


if __name__ == "__main__":
    main()
