#!/usr/bin/env python3
"""Tests `mscgym export --weights`: the exported model and the printed loss are those of the new weights.

    check_weights.py MSCGYM

Networks with batch normalisation after convolutions (with and without bias, grouped, transposed),
before a convolution and after a linear layer, and with a weight that two convolutions share. They
get the weights of a second training, named as in a state dict. ONNX Runtime computes the expected
outputs.
(a) The float export computes these outputs.
(b) The loss printed for a strategy with new scales is that of the exported file relative to them.
(c) If the original file has normalisation folded into a convolution, or the new weights have only
    part of a layer's weights, a line that names one of them refuses. The same for MSCGraph JSON.
(d) If names differ by a wrapper's prefix, a line with both names and the fix refuses.
(e) Floats of another width are converted; values that do not fit are refused.
(f) The whole state dict of a network from which channels were removed gives the smaller network;
    weights that do not fit together are refused.

Exits with 1 if a check fails, 77 without onnx or onnxruntime.
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
    print(f"skipped: {error}; needs numpy, onnx and onnxruntime")
    sys.exit(77)

SHAPE = (1, 3, 8, 8)
SAMPLES = 24
NORM = ("weight", "bias", "running_mean", "running_var")


class Network:
    """Nodes and weights. A second object with another seed has new weights of the same names."""

    def __init__(self, seed):
        self.random = numpy.random.default_rng(seed)
        self.nodes, self.weights = [], {}

    def weight(self, name, *shape):
        self.weights[name] = (self.random.standard_normal(shape) / numpy.sqrt(numpy.prod(shape[1:]) or 1)
                              ).astype(numpy.float32)
        return name

    def node(self, op, inputs, output, **attributes):
        self.nodes.append(helper.make_node(op, inputs, [output], **attributes))
        return output

    def norm(self, name, x, n):
        for part, spread, centre in zip(NORM, (0.4, 0.5, 0.3, 0.5), (1.2, 0, 0, 1.5)):
            values = centre + spread * self.random.uniform(-1, 1, n)
            self.weights[f"{name}.{part}"] = values.astype(numpy.float32)
        return self.node("BatchNormalization", [x] + [f"{name}.{part}" for part in NORM], f"{name}.y",
                         epsilon=1e-3)

    def model(self, output, weights=None, nodes=None):
        weights = self.weights if weights is None else weights
        graph = helper.make_graph(
            self.nodes if nodes is None else nodes, "net",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", *SHAPE[1:]])],
            [helper.make_tensor_value_info(output, TensorProto.FLOAT, None)],
            [numpy_helper.from_array(a, name) for name, a in weights.items()])
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def behind(net, bias=True, n=8, m=16):
    """Two convolutions of n channels, the first without a bias, and two linear layers, the first of m
    units; all but the last are followed by normalisation.
    """
    x = net.node("Conv", ["x", net.weight("conv1.weight", n, 3, 3, 3)], "c1", pads=[1] * 4)
    x = net.node("Relu", [net.norm("bn1", x, n)], "r1")
    inputs = [x, net.weight("conv2.weight", n, 1, 3, 3)] + ([net.weight("conv2.bias", n)] if bias else [])
    x = net.node("Conv", inputs, "c2", group=n)
    x = net.node("Relu", [net.norm("bn2", x, n)], "r2")
    x = net.node("Flatten", [x], "f")
    x = net.node("Gemm", [x, net.weight("fc1.weight", m, n * 36), net.weight("fc1.bias", m)], "g1", transB=1)
    x = net.node("Relu", [net.norm("bn3", x, m)], "r3")
    return net.node("Gemm", [x, net.weight("fc2.weight", 10, m), net.weight("fc2.bias", 10)], "y", transB=1)


def before(net):
    """Normalisation before a convolution and after a sum."""
    x = net.node("Relu", [net.norm("bn0", "x", 3)], "r0")
    a = net.node("Conv", [x, net.weight("conv1.weight", 6, 3, 1, 1)], "c1")
    x = net.node("Relu", [net.norm("bn1", a, 6)], "r1")
    b = net.node("Conv", [x, net.weight("conv2.weight", 6, 6, 3, 3), net.weight("conv2.bias", 6)], "c2",
                 pads=[1] * 4)
    x = net.norm("bn2", net.node("Add", [a, b], "s"), 6)
    x = net.node("GlobalAveragePool", [net.node("Relu", [x], "r2")], "p")
    return net.node("Flatten", [x], "y")


def shared(net):
    """One weight used by two convolutions with different normalisations; a transposed
    convolution; a product.
    """
    w = net.weight("conv1.weight", 3, 3, 3, 3)
    x = net.node("Relu", [net.norm("bn1", net.node("Conv", ["x", w], "c1", pads=[1] * 4), 3)], "r1")
    x = net.node("Relu", [net.norm("bn2", net.node("Conv", [x, w], "c2", pads=[1] * 4), 3)], "r2")
    x = net.node("ConvTranspose", [x, net.weight("up.weight", 3, 4, 2, 2)], "c3", strides=[2, 2])
    x = net.node("Relu", [net.norm("bn3", x, 4)], "r3")
    x = net.node("GlobalAveragePool", [x], "p")
    x = net.node("Flatten", [x], "f")
    x = net.node("MatMul", [x, net.weight("fc.weight", 4, 4)], "m")
    return net.node("Add", [x, net.weight("fc.bias", 4)], "y")


def recurrent(net):
    """A recurrent layer, a layer normalisation, and a product followed by adding a 2-d constant."""
    net.weights.update({"lengths": numpy.array([0, 3, 64]), "axes": numpy.array([1])})
    x = net.node("Reshape", ["x", "lengths"], "f")
    shapes = {"w": (1, 16, 64), "r": (1, 16, 4), "b": (1, 32)}
    x = net.node("LSTM", [x] + [net.weight(f"lstm.{part}", *shape) for part, shape in shapes.items()], "l",
                 hidden_size=4)
    x = net.node("Squeeze", [x, "axes"], "s")
    x = net.node("LayerNormalization", [x, net.weight("norm.weight", 4), net.weight("norm.bias", 4)], "n")
    x = net.node("MatMul", [x, net.weight("fc.weight", 4, 5)], "m")
    return net.node("Add", [x, net.weight("fc.bias", 3, 5)], "y")


def fold(weights, conv, norm):
    """Folds a normalisation into a convolution without bias, as exporters do."""
    scale = weights[f"{norm}.weight"] / numpy.sqrt(weights[f"{norm}.running_var"] + 1e-3)
    folded = {name: a for name, a in weights.items() if not name.startswith(norm + ".")}
    folded[f"{conv}.weight"] = weights[f"{conv}.weight"] * scale.reshape(-1, 1, 1, 1)
    folded[f"{conv}_bias"] = weights[f"{norm}.bias"] - weights[f"{norm}.running_mean"] * scale
    return folded


def compute(model, x):
    session = onnxruntime.InferenceSession(
        model if isinstance(model, str) else model.SerializeToString(), providers=["CPUExecutionProvider"])
    return numpy.concatenate([session.run(None, {"x": x[i:i + 1]})[0] for i in range(len(x))])


def loss_of(y, z):
    """The loss "mse" of docs/quantize.md: relative to the mean square of all outputs."""
    return float(numpy.square(y - z, dtype=numpy.float64).sum() / numpy.square(y, dtype=numpy.float64).sum())


def save_bfloat16(path, arrays):
    """Writes a .safetensors file from bfloat16 bits."""
    header, at = {}, 0
    for key, a in arrays.items():
        header[key] = {"dtype": "BF16", "shape": a.shape, "data_offsets": [at, at + a.nbytes]}
        at += a.nbytes
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for a in arrays.values():
            file.write(a.tobytes())


class Checks:
    def __init__(self, mscgym):
        self.mscgym, self.n_failed = mscgym, 0

    def run(self, *command):
        return subprocess.run([self.mscgym, *command], capture_output=True, text=True)

    def expect(self, holds, what):
        self.n_failed += not holds
        print(f"{'ok    ' if holds else 'FAILED'} {what}")

    def refused(self, what, words, *command, all_of=(), none_of=()):
        result = self.run("export", *command, "-o", "no.onnx")
        line = result.stderr.strip()
        is_named = (any(f"'{word}'" in line for word in words) and all(word in line for word in all_of)
                    and not any(word in line for word in none_of))
        self.expect(result.returncode in (1, 2) and is_named and "\n" not in line and
                    not os.path.exists("no.onnx"), f"{what}: refused: {line[:200]}")
        if os.path.exists("no.onnx"):
            os.remove("no.onnx")

    def network(self, name, build, **more):
        """Checks (a) and (b) for one network."""
        old, new = Network(1), Network(2)
        output = build(old, **more)
        build(new, **more)
        x = new.random.uniform(-1, 1, (SAMPLES, *SHAPE[1:])).astype(numpy.float32)
        onnx.save(old.model(output), f"{name}.onnx")
        numpy.savez("x.npz", x=x)
        state = dict(new.weights)
        for key in list(state):
            if key.endswith("running_var"):
                state[key.replace("running_var", "num_batches_tracked")] = numpy.array(7)
        numpy.savez("new.npz", **state)
        wanted = compute(new.model(output), x)
        result = self.run("export", "--model", f"{name}.onnx", "--weights", "new.npz", "-o", "float.onnx")
        worst = numpy.abs(compute("float.onnx", x) - wanted).max() if result.returncode == 0 else numpy.inf
        self.expect(worst < 1e-4, f"{name}: the float export differs by {worst:.2g} {result.stderr}")
        self.search(name)
        result = self.run("export", "--model", f"{name}.onnx", "--weights", "new.npz", "--strategy",
                          "ws/msc_quantize.json", "--recalibrate", "--dataset", "x.npz", "-o", "small.onnx",
                          "--json")
        if result.returncode != 0:
            self.expect(False, f"{name}: {result.stderr}")
            return old, state
        printed = json.loads(result.stdout)["loss_after"]
        real = loss_of(wanted, compute("small.onnx", x))
        self.expect(abs(printed - real) < 0.05 * real + 1e-6, f"{name}: loss {printed:.4g} printed, {real:.4g} real")
        return old, state

    def search(self, name):
        config = {"workspace": "ws", "model": f"{name}.onnx", "verbose": "error",
                  "dataset": {"inputs": "x.npz"},
                  "quantize": {"target": "generic", "runtime": False,
                               "gym": [{"env": {"choices": [{"bits": 8}]}, "budget": {"trials": 1}}]}}
        with open("search.json", "w") as file:
            json.dump(config, file)
        result = self.run("search", "search.json", "--restart", "--quiet")
        if result.returncode != 0:
            sys.exit(result.stderr)

    def partial(self, name, state, left_out):
        numpy.savez("part.npz", **{key: a for key, a in state.items() if key not in left_out})
        self.refused(f"{name} without {', '.join(left_out)}", left_out,
                     "--model", f"{name}.onnx", "--weights", "part.npz")

    def folded(self, old, state):
        """A file in which an exporter has folded the normalisation but kept the weight's name."""
        weights = fold(old.weights, "conv1", "bn1")
        nodes = [n for n in old.nodes if n.output[0] not in ("c1", "bn1.y")]
        nodes.insert(0, helper.make_node("Conv", ["x", "conv1.weight", "conv1_bias"], ["bn1.y"], pads=[1] * 4))
        onnx.save(old.model("y", weights, nodes), "folded.onnx")
        numpy.savez("new.npz", **state)
        parts = [f"bn1.{part}" for part in NORM]
        self.refused("folded in the file, the whole state dict", parts, "--model", "folded.onnx",
                     "--weights", "new.npz")
        numpy.savez("new.npz", **{key: a for key, a in state.items() if not key.startswith("bn1.")})
        self.refused("folded in the file, without the normalisation", ["conv1_bias"], "--model",
                     "folded.onnx", "--weights", "new.npz")
        numbered = [n for n in nodes]
        for node in numbered:
            node.input[:] = [i.replace("conv1.weight", "onnx::Conv_7") for i in node.input]
        weights["onnx::Conv_7"] = weights.pop("conv1.weight")
        onnx.save(old.model("y", weights, numbered), "numbered.onnx")
        numpy.savez("new.npz", **state)
        self.refused("folded in the file under another name", parts, "--model", "numbered.onnx",
                     "--weights", "new.npz")
        numpy.savez("new.npz", **fold(state, "conv1", "bn1"))
        result = self.run("export", "--model", "folded.onnx", "--weights", "new.npz", "-o", "float.onnx")
        self.expect(result.returncode == 0, f"folded in both: {result.stderr}")

    def graph(self, name, model, state):
        """The same for MSCGraph JSON, in which normalisation is folded."""
        self.run("graph", f"{name}.onnx", "-o", "graph.json", "--quiet")
        numpy.savez("new.npz", **state)
        self.refused("MSCGraph, the whole state dict", [f"bn1.{part}" for part in NORM], "--model",
                     "graph.json", "--weights", "new.npz")
        numpy.savez("new.npz", **{f"module.{key}": a for key, a in state.items()})
        self.refused("MSCGraph, a wrapper", ["module.conv1.weight"], "--model", "graph.json", "--weights",
                     "new.npz", all_of=["'conv1.weight'", "remove 'module.'"], none_of=["normalisation"])
        onnx.save(model, "new.onnx")
        self.run("graph", "new.onnx", "-o", "new.json", "--quiet")
        result = self.run("export", "--model", "graph.json", "--weights", "new.safetensors", "-o", "float.onnx")
        x = numpy.load("x.npz")["x"]
        worst = (numpy.abs(compute("float.onnx", x) - compute(model, x)).max() if result.returncode == 0
                 else numpy.inf)
        self.expect(worst < 1e-4, f"MSCGraph, all weights differ by {worst:.2g} {result.stderr}")

    def graph_part(self, name, weights, layer):
        """For a layer of MSCGraph JSON: only one of its weights, and all but one."""
        self.run("graph", f"{name}.onnx", "-o", "graph.json", "--quiet")
        parts = {(key,) for key in layer} | {tuple(key for key in layer if key != other) for other in layer}
        for part in sorted(parts):
            numpy.savez("part.npz", **{key: weights[key] for key in part})
            self.refused(f"MSCGraph {name}, only {', '.join(part)}", set(layer) - set(part), "--model",
                         "graph.json", "--weights", "part.npz", all_of=["same layer"])
        numpy.savez("part.npz", **{key: weights[key] for key in layer})
        result = self.run("export", "--model", "graph.json", "--weights", "part.npz", "-o", "float.onnx")
        self.expect(result.returncode == 0, f"MSCGraph {name}, all of {', '.join(layer)} {result.stderr}")

    def wrapped(self, name, old, state):
        """Names with a wrapper's prefix, in the state dict and in the model."""
        plain = "bn1.running_mean"
        for wrapper in ("module.", "_orig_mod.", "model.", "module._orig_mod.", "_orig_mod.module."):
            numpy.savez("new.npz", **{wrapper + key: a for key, a in state.items()})
            given = next(iter(state))
            self.refused(f"all names begin with {wrapper}", [wrapper + given], "--model", f"{name}.onnx",
                         "--weights", "new.npz", all_of=[f"'{given}'", f"remove '{wrapper}'"],
                         none_of=["normalisation"])
            numpy.savez("new.npz", **{(wrapper if key == plain else "") + key: a for key, a in state.items()})
            self.refused(f"one name begins with {wrapper}", [wrapper + plain], "--model", f"{name}.onnx",
                         "--weights", "new.npz", all_of=[f"'{plain}'", f"remove '{wrapper}'"],
                         none_of=["normalisation"])
            weights = {wrapper + key: a for key, a in old.weights.items()}
            nodes = [onnx.NodeProto.FromString(node.SerializeToString()) for node in old.nodes]
            for node in nodes:
                node.input[:] = [wrapper + i if i in old.weights else i for i in node.input]
            onnx.save(old.model("y", weights, nodes), "wrapped.onnx")
            numpy.savez("new.npz", **state)
            self.refused(f"the model's names begin with {wrapper}", [given], "--model", "wrapped.onnx",
                         "--weights", "new.npz", all_of=[f"'{wrapper}{given}'", f"add '{wrapper}'"],
                         none_of=["normalisation"])
        # Only part of the network is wrapped; extra names from training.
        inner = {key.replace("bn1.", "bn1._orig_mod."): a for key, a in state.items()}
        numpy.savez("new.npz", **inner)
        self.refused("names within which there is _orig_mod.", ["bn1._orig_mod.weight"], "--model",
                     f"{name}.onnx", "--weights", "new.npz",
                     all_of=["'bn1.weight'", "remove '_orig_mod.'"], none_of=["normalisation"])
        numpy.savez("new.npz", **{f"model.{key}": a for key, a in state.items()}, **{"loss.weight": numpy.ones(3)})
        self.refused("a wrapper, and a weight of the loss", ["model.conv1.weight"], "--model", f"{name}.onnx",
                     "--weights", "new.npz", all_of=["remove 'model.'"])
        # Statistics of a normalisation that the model has, or of another model: nothing was folded.
        numpy.savez("new.npz", **state, **{"bn1.scale": state["bn1.weight"]})
        self.refused("a name more for a normalisation that is there", ["bn1.scale"], "--model", f"{name}.onnx",
                     "--weights", "new.npz", none_of=["normalisation"])
        numpy.savez("new.npz", **state, **{f"ema.{key}": a for key, a in state.items()})
        self.refused("the names and again with a wrapper", ["ema.conv1.weight"], "--model", f"{name}.onnx",
                     "--weights", "new.npz", none_of=["normalisation"])
        numpy.savez("new.npz", **{f"net.{key[:2]}_{key[2:]}": a for key, a in state.items()})
        self.refused("another network's state dict", ["net.co_nv1.weight"], "--model", f"{name}.onnx",
                     "--weights", "new.npz", none_of=["normalisation", "remove", "add"])

    def widths(self, name, old, state):
        """Floats of other widths, for a float32 model and for one with a float16 weight."""
        x = numpy.load("x.npz")["x"]
        floats = {key: a for key, a in state.items() if a.dtype == numpy.float32}
        self.run("graph", f"{name}.onnx", "-o", "graph.json", "--quiet")
        for width in ("float64", "float16", "bfloat16"):
            for model, part in ((f"{name}.onnx", ""), ("graph.json", "fc2.")):
                new = {key: a for key, a in floats.items() if key.startswith(part)}
                if width == "bfloat16":
                    file, new = "new.safetensors", {key: a.view(numpy.uint32) >> 16 for key, a in new.items()}
                    save_bfloat16(file, {key: a.astype(numpy.uint16) for key, a in new.items()})
                    new = {key: (a << 16).view(numpy.float32) for key, a in new.items()}
                else:
                    file, new = "new.npz", {key: a.astype(width) for key, a in new.items()}
                    numpy.savez(file, **new)
                new = {key: a.astype(numpy.float32) for key, a in new.items()}
                wanted = compute(old.model("y", {**old.weights, **new}), x)
                result = self.run("export", "--model", model, "--weights", file, "-o", "float.onnx")
                worst = (numpy.abs(compute("float.onnx", x) - wanted).max() if result.returncode == 0
                         else numpy.inf)
                self.expect(worst < 1e-4, f"{width} into {model}: differs by {worst:.2g} {result.stderr}")
        for what, value, words in (("beyond float32", numpy.full_like(state["fc2.bias"], 1e300, "float64"),
                                    ["1e+300", "float32", "element 0 of 10"]),
                                   ("of integers", numpy.arange(10), ["int64", "float32", "floats"]),
                                   ("of another shape", numpy.zeros(11), ["[10]", "[11]"])):
            numpy.savez("new.npz", **{**state, "fc2.bias": value})
            self.refused(f"a bias {what}", ["fc2.bias"], "--model", f"{name}.onnx", "--weights", "new.npz",
                         all_of=words)
            numpy.savez("new.npz", **{"fc2.weight": state["fc2.weight"], "fc2.bias": value})
            self.refused(f"a bias {what}, MSCGraph", ["fc2.bias"], "--model", "graph.json", "--weights",
                         "new.npz", all_of=words)
        self.half(x)

    def half(self, x):
        """A float16 model takes float32 weights that fit."""
        old, new = Network(3), Network(4)
        for net in (old, new):
            net.node("Cast", ["x"], "h", to=TensorProto.FLOAT16)
            net.node("Conv", ["h", net.weight("conv.weight", 4, 3, 3, 3), net.weight("conv.bias", 4)], "c")
            net.node("Cast", ["c"], "y", to=TensorProto.FLOAT)
        narrow = [{key: a.astype(numpy.float16) for key, a in net.weights.items()} for net in (old, new)]
        onnx.save(old.model("y", narrow[0]), "half.onnx")
        numpy.savez("new.npz", **new.weights)
        wanted = compute(new.model("y", narrow[1]), x)
        result = self.run("export", "--model", "half.onnx", "--weights", "new.npz", "-o", "float.onnx")
        worst = numpy.abs(compute("float.onnx", x) - wanted).max() if result.returncode == 0 else numpy.inf
        self.expect(worst < 1e-2, f"float32 into a model of float16: differs by {worst:.2g} {result.stderr}")
        numpy.savez("new.npz", **{**new.weights, "conv.bias": numpy.float32([1, 2, 65536, 3])})
        self.refused("a bias beyond float16", ["conv.bias"], "--model", "half.onnx", "--weights", "new.npz",
                     all_of=["65536", "float16", "element 2 of 4"])

    def pruned(self, name):
        """The state dict of a network from which channels were removed, and ones that do not fit."""
        small = Network(7)
        behind(small, n=5, m=9)
        x = numpy.load("x.npz")["x"]
        state = {**small.weights, "bn1.num_batches_tracked": numpy.array(7)}
        numpy.savez("small.npz", **state)
        wanted = compute(small.model("y"), x)
        result = self.run("export", "--model", f"{name}.onnx", "--weights", "small.npz", "-o", "float.onnx")
        worst = numpy.abs(compute("float.onnx", x) - wanted).max() if result.returncode == 0 else numpy.inf
        self.expect(worst < 1e-4, f"pruned: the float export differs by {worst:.2g} {result.stderr}")
        self.search(name)
        result = self.run("export", "--model", f"{name}.onnx", "--weights", "small.npz", "--strategy",
                          "ws/msc_quantize.json", "--recalibrate", "--dataset", "x.npz", "-o", "small.onnx", "--json")
        printed = json.loads(result.stdout)["loss_after"] if result.returncode == 0 else numpy.inf
        real = loss_of(wanted, compute("small.onnx", x)) if result.returncode == 0 else 0
        self.expect(abs(printed - real) < 0.05 * real + 1e-6,
                    f"pruned: loss {printed:.4g} printed, {real:.4g} real {result.stderr}")
        for what, key, shape, words in (
                ("without a weight", "fc2.bias", None, ["'fc2.bias' is missing", "give all weights"]),
                ("a normalisation that is too short", "bn1.running_mean", (4,), ["4", "5"]),
                ("a convolution of another width", "conv2.weight", (4, 1, 3, 3), ["4", "5"]),
                ("a linear layer of another width", "fc2.weight", (10, 8), ["8", "9"]),
                ("a bias that is too long", "fc1.bias", (17,), ["[16]", "[17]"]),
                ("a single channel", "bn2.bias", (1,), ["'bn2.bias' has a single element"])):
            other = {k: a for k, a in state.items() if k != key or shape}
            if shape:
                other[key] = numpy.ones(shape, numpy.float32)
            numpy.savez("part.npz", **other)
            result = self.run("export", "--model", f"{name}.onnx", "--weights", "part.npz", "-o", "no.onnx")
            line = result.stderr.strip()
            self.expect(result.returncode in (1, 2) and "\n" not in line and all(word in line for word in words) and
                        not os.path.exists("no.onnx"), f"pruned, {what}: refused: {line[:200]}")

    def head(self, name, old, state):
        """Only one layer was trained further; the other weights remain."""
        head = {key: a for key, a in state.items() if key.startswith("fc2.")}
        numpy.savez("new.npz", **head)
        x = numpy.load("x.npz")["x"]
        result = self.run("export", "--model", f"{name}.onnx", "--weights", "new.npz", "-o", "float.onnx")
        wanted = compute(old.model("y", {**old.weights, **head}), x)
        worst = numpy.abs(compute("float.onnx", x) - wanted).max() if result.returncode == 0 else numpy.inf
        self.expect(worst < 1e-4, f"one layer alone differs by {worst:.2g} {result.stderr}")


def main():
    checks = Checks(os.path.abspath(sys.argv[1]))
    os.environ["MSCGYM_RUNTIME"] = "no/runtime"
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        old, state = checks.network("behind", behind)
        for left_out in (["bn1.running_mean"], ["bn2.weight"], ["bn2.running_var", "bn2.running_mean"],
                         ["conv2.bias"], ["fc1.bias"], ["bn3.bias"],
                         ["bn1.weight", "bn1.bias", "bn1.running_mean", "bn1.running_var"], ["conv1.weight"]):
            checks.partial("behind", state, left_out)
        checks.head("behind", old, state)
        checks.pruned("behind")
        checks.network("behind", behind)
        checks.folded(old, state)
        new = Network(2)
        checks.graph("behind", new.model(behind(new)), state)
        checks.graph_part("behind", state, ["fc1.weight", "fc1.bias"])
        checks.graph_part("behind", state, ["conv2.weight", "conv2.bias"])
        checks.wrapped("behind", old, state)
        checks.widths("behind", old, state)
        checks.network("without_bias", behind, bias=False)
        checks.network("before", before)
        _, state = checks.network("shared", shared)
        checks.partial("shared", state, ["bn2.bias"])
        checks.partial("shared", state, ["fc.bias"])
        checks.graph_part("shared", state, ["up.weight", "bn3.bias"])
        checks.graph_part("shared", state, ["fc.weight", "fc.bias"])
        checks.graph_part("shared", state, ["conv1.weight"] + [f"bn{i}.{part}" for i in (1, 2) for part in NORM])
        old, new = Network(5), Network(6)
        recurrent(old)
        onnx.save(old.model("y"), "recurrent.onnx")
        recurrent(new)
        checks.graph_part("recurrent", new.weights, ["lstm.w", "lstm.r", "lstm.b"])
        checks.graph_part("recurrent", new.weights, ["norm.weight", "norm.bias"])
        checks.graph_part("recurrent", new.weights, ["fc.weight", "fc.bias"])
        os.chdir("/")
    return checks.n_failed > 0


if __name__ == "__main__":
    sys.exit(main())
