#!/usr/bin/env python3
"""Tests networks with finite outputs whose intermediate tensors hold NaN or infinity.

    check_not_finite.py MSCGYM RUNTIME [--device vulkan]

RUNTIME is tools/mscgym-runtime. The small networks are made here: attention whose padded rows are
NaN and are masked afterwards; masks with -inf as inputs, constants and logarithms of 0; +inf before
a division and a Clip that remove it; missing values marked by NaN and filled in (IsNaN, x != x); a
branch that is all NaN; samples that are NaN where a mask removes them. Each is quantised, and
searched with every observer and rounding:
(a) The exported model's outputs in onnxruntime are finite. Its loss, computed by numpy, is the one
    that the search measured, within 2 % and 1e-6.
(b) The loss is below 0.002, as small as 8 bits allow.
(c) Tensors that hold infinity, or that are tested for NaN, are float in the file, and a message
    names them. The ranges of other tensors come from their finite values.
(d) `verify` reproduces the record's trials. A killed search continues from the saved scales.
(e) `prune` and `joint` handle such networks as well. An output that is not finite is refused, with
    its name and sample.

Needs numpy, onnx and onnxruntime; exits with 77 without them.
"""
import json
import os
import subprocess
import sys
import tempfile

try:
    import numpy as np
    import onnx
    import onnxruntime
    from onnx import helper, numpy_helper
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

N, T, D = 32, 6, 16
rng = np.random.default_rng(3)
failed = []


def normal(*shape):
    return rng.standard_normal(shape).astype(np.float32)


def node(kind, inputs, outputs, **attributes):
    return helper.make_node(kind, inputs.split(), outputs.split(), **attributes)


def check(name, holds, why=""):
    print(("ok    " if holds else "BAD   ") + name + ("" if holds else f": {str(why)[:500]}"), flush=True)
    if not holds:
        failed.append(name)


# ---- Networks -----------------------------------------------------------------------------------


class Case:
    """A network: nodes, samples by input, weights. `floats` must remain float, `quantised` must not."""

    def __init__(self, nodes, samples, weights, floats=(), quantised=()):
        self.nodes, self.samples, self.weights = nodes, samples, weights
        self.floats, self.quantised = set(floats), set(quantised)

    def save(self, path):
        info = helper.make_tensor_value_info
        kinds = {np.dtype(np.float32): 1, np.dtype(bool): 9}
        inputs = [info(k, kinds[v.dtype], ["n", *v.shape[1:]]) for k, v in self.samples.items()]
        graph = helper.make_graph(self.nodes, "net", inputs, [info("y", 1, None)],
                                  [numpy_helper.from_array(np.asarray(v), k) for k, v in self.weights.items()])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
        model.ir_version = 8
        onnx.save(model, path)
        np.savez("x.npz", **self.samples)

    def evaluate(self, path):
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        return onnxruntime.InferenceSession(path, options, ["CPUExecutionProvider"]).run(["y"], self.samples)[0]


def attention(scores, more=()):
    """Attention over T tokens x. `scores` compute "sm"; `more` removes the padded rows."""
    return [node("MatMul", "x wq", "q"), node("Transpose", "x", "kt", perm=[0, 2, 1]), node("MatMul", "q kt", "s"),
            *scores, node("Softmax", "sm", "p", axis=-1), node("MatMul", "p x", "o"), *more]


def cases():
    mask = np.zeros((N, T, T), np.float32)
    keep = np.ones((N, T, 1), bool)
    mask[::2, :, 3:] = -np.inf
    all_rows = mask.copy()
    all_rows[::2, 3:] = -np.inf  # softmax of only -inf is NaN
    keep[::2, 3:] = False
    w = {"wq": normal(D, D) / D, "wo": normal(D, 5), "zero": np.float32(0)}
    behind = [node("Where", "keep o zero", "ok"), node("MatMul", "ok wo", "y")]
    yield "rows of NaN, masked behind", Case(attention([node("Add", "s mask", "sm")], behind), {
        "x": normal(N, T, D), "mask": all_rows, "keep": keep}, w, {"mask", "sm"}, {"p"})
    yield "a mask of -inf", Case(attention([node("Add", "s mask", "sm")], [node("MatMul", "o wo", "y")]), {
        "x": normal(N, T, D), "mask": mask}, w, {"mask", "sm"}, {"p", "x"})
    causal = np.triu(np.full((1, T, T), -np.inf, np.float32), 1)
    yield "a causal mask that is constant", Case(attention([node("Add", "s causal", "sm")], [
        node("MatMul", "o wo", "y")]), {"x": normal(N, T, D)}, {**w, "causal": causal}, {"sm"}, {"p", "x"})
    seen = (mask > -1).astype(np.float32)
    yield "logarithms of 0", Case(attention([node("Log", "seen", "lm"), node("Add", "s lm", "sm")], [
        node("MatMul", "o wo", "y")]), {"x": normal(N, T, D), "seen": seen}, w, {"lm", "sm"}, {"p"})
    x = normal(N, T, D)
    divisor = np.where(rng.random((N, T, D)) < 0.1, 0, normal(N, T, D)).astype(np.float32)
    yield "a division by 0, cut off", Case([
        node("Abs", "x", "a"), node("Div", "a divisor", "d"), node("Clip", "d low high", "c"),
        node("MatMul", "c wo", "y")], {"x": x, "divisor": divisor},
        {**w, "low": np.float32(-3), "high": np.float32(3)}, {"d"}, {"c"})
    holes = np.where(rng.random((N, T, D)) < 0.1, np.nan, x).astype(np.float32)
    fill = [node("Where", "is mean x", "filled"), node("MatMul", "filled wq", "h"), node("Relu", "h", "r"),
            node("MatMul", "r wo", "y")]
    weights = {**w, "mean": normal(D)}
    yield "missing values", Case([node("IsNaN", "x", "is"), *fill], {"x": holes}, weights, {"x"}, {"filled"})
    yield "missing values, x != x", Case([node("Equal", "x x", "eq"), node("Not", "eq", "is"), *fill], {"x": holes},
                                         weights, {"x"}, {"filled"})
    yield "a branch of NaN", Case([
        node("Sub", "x x", "none"), node("Div", "none none", "nan"), node("MatMul", "nan wq", "nh"),
        node("MatMul", "x wq", "h"), node("Where", "on nh h", "c"), node("MatMul", "c wo", "y")], {"x": x},
        {**w, "on": np.array([False])}, {"nan"}, {"x", "c"})
    padded = x.copy()
    padded[::2, 3:] = np.nan
    yield "padding that is NaN in the samples", Case([
        node("MatMul", "x wq", "h"), node("Relu", "h", "r"), node("Where", "keep r zero", "ok"),
        node("MatMul", "ok wo", "y")], {"x": padded, "keep": keep}, w, (), {"x", "ok"})
    kernel = normal(4, 3, 3, 3) / 4
    image = normal(N, 3, 8, 8)
    image[::2, :, :, 5:] = np.nan
    shown = np.ones((N, 1, 8, 8), bool)
    shown[::2, :, :, 4:] = False
    yield "convolutions beside NaN", Case([
        node("Conv", "x k", "c", pads=[1, 1, 1, 1]), node("Where", "keep c zero", "ok"),
        node("Conv", "ok k2", "y")], {"x": image, "keep": shown},
        {"k": kernel, "k2": normal(2, 4, 1, 1), "zero": np.float32(0)}, (), {"x", "ok"})


# ---- The program --------------------------------------------------------------------------------


class Mscgym:
    def __init__(self, program, device):
        self.program, self.device = program, device

    def run(self, *words):
        made = subprocess.run([self.program, *map(str, words)], capture_output=True, text=True)
        return made.returncode, made.stdout, made.stderr

    def search(self, section, env, target="onnxruntime", trials=1):
        entry = {"env": env, "agent": {"type": "random"}, "budget": {"trials": trials}, "seed": 5}
        config = {"model": "net.onnx", "verbose": "warning", "device": self.device, "workspace": "w",
                  "dataset": {"inputs": "x.npz", "batch": 8},
                  section: {"gym": [entry], **({} if section == "prune" else {"target": target, "runtime": False})}}
        with open("search.json", "w", encoding="utf-8") as file:
            json.dump(config, file)
        return self.run("search", "search.json", "--restart", "--record", "r.jsonl")

    def loss(self):
        return json.loads(self.run("show", "r.jsonl", "--json")[1])["winner"]["metrics"]["distill_loss"]


def quantised_tensors(path):
    return {n.input[0] for n in onnx.load(path).graph.node if n.op_type == "QuantizeLinear"}


def relative_loss(y, z):
    return np.mean((z.astype(float) - y) ** 2) / np.mean(y.astype(float) ** 2)


def check_file(name, case, path, y, said):
    z = case.evaluate(path)
    found = relative_loss(y, z)
    check(f"{name}: finite in onnxruntime", np.isfinite(z).all())
    check(f"{name}: its loss is small", found < 0.002, found)
    check(f"{name}: as it was measured", abs(found - said) <= 0.02 * said + 1e-6, f"{found}, said {said}")


CHOICES = [{"bits": 8, "observer": "minmax"}, {"bits": 8, "observer": "percentile"}, {"bits": 8, "observer": "mse"},
           {"bits": 8, "rounding": "gptq"}, {"bits": 8, "rounding": "descent", "correct": "affine"}]


def check_case(m, name, case):
    case.save("net.onnx")
    y = case.evaluate("net.onnx")
    assert np.isfinite(y).all(), name
    code, out, err = m.run("quantize", "net.onnx", "--inputs", "x.npz", "-o", "small.onnx", "--json", "--device",
                           m.device, "--float", 0)
    check(f"{name}: quantize", code == 0, err)
    if code == 0:
        z = case.evaluate("small.onnx")
        check(f"{name}: quantize: finite and near", np.isfinite(z).all() and relative_loss(y, z) < 0.002,
              relative_loss(y, z))
        made = quantised_tensors("small.onnx")
        check(f"{name}: what must stay float does", not made & case.floats, made)
    for choice in CHOICES:
        code, out, err = m.search("quantize", {"choices": [choice]})
        check(f"{name}: search {choice}", code == 0, err)
        if code == 0:
            m.run("export", "r.jsonl", "-o", "found.onnx")
            check_file(f"{name}: {choice}", case, "found.onnx", y, m.loss())
            made = quantised_tensors("found.onnx")
            check(f"{name}: {choice}: the rest is quantised", made >= case.quantised, made)
    code, out, err = m.search("quantize", {"choices": [{"bits": 8}, {"bits": 6}, {"float": True}]}, "generic", 6)
    check(f"{name}: generic", code == 0, err)
    code, out, err = m.run("verify", "r.jsonl")
    check(f"{name}: verify", code == 0, out + err)
    code, out, err = m.run("resume", "r.jsonl", "--trials", 9)
    check(f"{name}: resume", code == 0, err)
    os.remove("r.jsonl.params")
    code, out, err = m.run("resume", "r.jsonl", "--trials", 10)
    check(f"{name}: resume without the scales", code == 0, err)


def main():
    program, runtime = map(os.path.abspath, sys.argv[1:3])
    device = sys.argv[4] if sys.argv[3:4] == ["--device"] else "cpu"
    os.environ["MSCGYM_RUNTIME"] = f"{sys.executable} {runtime}"
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        m = Mscgym(program, device)
        for name, case in cases():
            check_case(m, name, case)
        found = dict(cases())
        found["convolutions beside NaN"].save("net.onnx")
        code, _, err = m.search("prune", {"choices": [{"density": 0.5}]})
        check("prune", code == 0, err)
        code, _, err = m.search("joint", {"choices": [{"bits": 8}], "prune": {"choices": [{"density": 0.75}]}})
        check("joint", code == 0, err)
        found["a branch of NaN"].save("net.onnx")
        code, _, err = m.search("quantize", {"choices": [{"bits": 8}]})
        check("a line names what stays float", "in the float model they have NaN, infinity or no elements: 1 (divide:0)" in err, err)
        bad = normal(N, T, D)
        bad[7, 2, 1] = np.nan
        Case([node("MatMul", "x wo", "y")], {"x": bad}, {"wo": normal(D, 5)}).save("net.onnx")
        code, _, err = m.search("quantize", {"choices": [{"bits": 8}]})
        check("an output that is not finite: refused, with output and sample",
              code != 0 and "output y" in err and "sample 7" in err, err)
        code, _, err = m.run("quantize", "net.onnx", "--inputs", "x.npz", "-o", "small.onnx")
        check("and by quantize", code == 2 and "output y" in err and "sample 7" in err, err)
        os.chdir("/")
    print(f"{len(failed)} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
