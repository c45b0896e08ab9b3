#!/usr/bin/env python3
"""Tests losses of outputs whose first axis is not the samples, and networks with NMS and similar operators.

    check_outputs.py MSCGYM RUNTIME [--device vulkan]

RUNTIME is tools/mscgym-runtime. The small networks are made here.
(a) Outputs [layers, samples, hidden] of LSTM and GRU, hidden states [steps, samples, width],
    samples on the last axis, on an axis without a symbol, and on two axes. For each, `quantize`
    must report the loss that numpy computes, sample by sample, from the outputs of both models in
    onnxruntime, for any batch. A search with batches must report the same loss as one sample by
    sample; its distance (cosine) depends on which axis is the samples.
(b) Outputs without samples (a constant, a single number, a mean over the batch) are left out with a
    message. If no other is left, the refusal names an option, and that option helps.
(c) If outputs depend on NonMaxSuppression, NonZero, TopK or ArgMax, `quantize` compares the tensors
    before these and quantises nothing after them. If products follow a step function, the output is
    kept.
(d) --loss-tensors, --outputs, --exclude, --batch and --atol act like the configuration's keys.

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

N = 25
rng = np.random.default_rng(5)
failed = []


def normal(*shape):
    return rng.standard_normal(shape).astype(np.float32)


def ints(*values):
    return np.array(values, np.int64)


def node(kind, inputs, outputs, **attributes):
    return helper.make_node(kind, inputs.split(), outputs.split(), **attributes)


def save(path, nodes, shape, outputs, weights):
    """Saves a network with one input x; `outputs` has a shape and a type by name."""
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes, "net", [info("x", onnx.TensorProto.FLOAT, shape)],
        [info(name, kind, dims) for name, (dims, kind) in outputs.items()],
        [numpy_helper.from_array(np.asarray(v), k) for k, v in weights.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    onnx.save(model, path)


def check(name, holds, why=""):
    print(("ok    " if holds else "BAD   ") + name + ("" if holds else f": {why}"))
    if not holds:
        failed.append(name)


def near(a, b, part):
    return a is not None and b is not None and abs(a - b) <= part * abs(b)


def evaluate(path, x):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(path, options, ["CPUExecutionProvider"])
    return dict(zip([o.name for o in session.get_outputs()], session.run(None, {"x": x})))


class Mscgym:
    def __init__(self, program, device):
        self.program, self.device = program, device

    def run(self, *words):
        made = subprocess.run([self.program, *map(str, words)], capture_output=True, text=True)
        return made.returncode, made.stdout, made.stderr

    def quantize(self, model, *words):
        code, out, err = self.run("quantize", model, "--inputs", "x.npz", "-o", "small.onnx", "--json",
                                  "--device", self.device, *words)
        return code, json.loads(out) if code == 0 else {}, err

    def loss(self, model, batch, **env):
        """The loss of 8 bits on all samples, by a search of one trial."""
        config = {"model": model, "verbose": "warning", "device": self.device,
                  "dataset": {"inputs": "x.npz", "batch": batch},
                  "quantize": {"runtime": False, "target": "generic", "gym": [
                      {"env": {"choices": [{"bits": 8}], **env}, "agent": {"type": "random"},
                       "budget": {"trials": 1}}]}}
        with open("search.json", "w", encoding="utf-8") as file:
            json.dump(config, file)
        code, _, err = self.run("search", "search.json", "--restart", "--record", "r.jsonl")
        if code != 0:
            return None, err
        _, out, _ = self.run("show", "r.jsonl", "--json")
        return json.loads(out)["winner"]["metrics"]["distill_loss"], err


# ---- (a) ----------------------------------------------------------------------------------------


def recurrent(kind, path):
    """Two recurrent layers as torch writes them, with the last states of both as an output."""
    gates = {"LSTM": 4, "GRU": 3}[kind]
    nodes, weights = [node("Transpose", "x", "t0", perm=[1, 0, 2])], {"merged": ints(0, 0, -1)}
    for k in range(2):
        weights.update({f"w{k}": normal(1, gates * 4, 5 if k == 0 else 4), f"r{k}": normal(1, gates * 4, 4),
                        f"b{k}": normal(1, gates * 8)})
        nodes += [node(kind, f"t{k} w{k} r{k} b{k}", f"o{k} h{k}", hidden_size=4),
                  node("Transpose", f"o{k}", f"p{k}", perm=[0, 2, 1, 3]),
                  node("Reshape", f"p{k} merged", f"t{k + 1}")]
    nodes += [node("Transpose", "t2", "y", perm=[1, 0, 2]), node("Concat", "h0 h1", "hn", axis=0)]
    save(path, nodes, ["n", 6, 5], {"y": (["n", 6, 4], 1), "hn": ([2, "n", 4], 1)}, weights)


def moved(path, perm, more=(), name="moved"):
    """Two products; the hidden tensor is an output too, with permuted axes."""
    nodes = [node("MatMul", "x w", "a"), node("Relu", "a", "r"), node("MatMul", "r w2", "y"),
             node("Transpose", "r", "moved", perm=perm), *more]
    save(path, nodes, ["n", 6, 5], {"y": (["n", 6, 3], 1), name: (None, 1)},
         {"w": normal(5, 4), "w2": normal(4, 3), "flat": ints(-1), "steps": ints(6, -1, 4)})


def similarity(path):
    """An output [n, n], as models that compare images and texts have: a row per sample."""
    nodes = [node("Flatten", "x", "f"), node("MatMul", "f w", "e"), node("Transpose", "e", "et", perm=[1, 0]),
             node("MatMul", "e et", "y")]
    save(path, nodes, ["n", 6, 5], {"y": (["n", "n"], 1)}, {"w": normal(30, 4)})


def numpy_loss(float_model, small, x, axes, batch):
    """Mean relative squared error over tensors and samples, from onnxruntime's outputs."""
    losses = []
    for name, axis in axes.items():
        y, z = [], []
        for begin in range(0, len(x), batch):
            part = x[begin:begin + batch]
            y += list(np.moveaxis(evaluate(float_model, part)[name], axis, 0))
            z += list(np.moveaxis(evaluate(small, part)[name], axis, 0))
        square = np.sum([np.sum(a.astype(float) ** 2) for a in y]) / sum(a.size for a in y)
        losses.append(np.mean([np.mean((a.astype(float) - b) ** 2) / square for a, b in zip(y, z)]))
    return np.mean(losses)


def check_samples(m):
    x = normal(N, 6, 5)
    np.savez("x.npz", x=x)
    recurrent("LSTM", "lstm.onnx")
    recurrent("GRU", "gru.onnx")
    moved("hidden.onnx", [1, 0, 2])
    moved("last.onnx", [1, 2, 0])
    moved("reshaped.onnx", [1, 0, 2], [node("Reshape", "moved flat", "f"), node("Reshape", "f steps", "s")], "s")
    similarity("pairs.onnx")
    for name, axes in {"lstm": {"y": 0, "hn": 1}, "gru": {"y": 0, "hn": 1}, "hidden": {"y": 0, "moved": 1},
                       "last": {"y": 0, "moved": 2}, "reshaped": {"y": 0, "s": 1}}.items():
        for batch in (6, 7, N):
            code, report, err = m.quantize(f"{name}.onnx", "--batch", batch)
            check(f"{name} in batches of {batch}: no word", code == 0 and "left out" not in err, err)
            if code != 0:
                continue
            examined = report["plans"][0]["examined"]
            held_back = x[-report["held_back"]:]
            expected = numpy_loss(f"{name}.onnx", "small.onnx", held_back, axes, batch)
            said = examined["runtime"].get("validation", {}).get("distill_loss")
            check(f"{name} in batches of {batch}: the loss in the runtime", near(said, expected, 1e-4),
                  f"{said}, expected {expected}; {err}")
            own = examined["validation"]["distill_loss"]
            check(f"{name} in batches of {batch}: the loss", near(own, expected, 0.02), f"{own}, {expected}")
        alone, err = m.loss(f"{name}.onnx", 1, loss="cosine")
        for batch in (6, 7, N):
            found, more = m.loss(f"{name}.onnx", batch, loss="cosine")
            check(f"{name}: cosine in batches of {batch} as sample by sample", near(found, alone, 1e-5),
                  f"{found}, {alone}; {err}{more}")
    code, report, err = m.quantize("pairs.onnx", "--batch", 4)
    check("pairs: rows are samples", code == 0 and "left out" not in err, err)


# ---- (b) ----------------------------------------------------------------------------------------


def check_without_samples(m):
    np.savez("x.npz", x=normal(N, 6, 5))
    body = [node("MatMul", "x w", "a"), node("Relu", "a", "r"), node("MatMul", "r w2", "y"),
            node("ReduceMean", "y", "number", keepdims=0),
            node("ReduceMean", "y", "middle", axes=[0], keepdims=0), node("Reshape", "y flat", "flattened"),
            node("Identity", "table", "anchors")]
    weights = {"w": normal(5, 4), "w2": normal(4, 3), "flat": ints(-1, 3), "table": normal(6, 4)}
    shapes = {"y": (["n", 6, 3], 1), "number": ([], 1), "middle": ([6, 3], 1), "flattened": (None, 1),
              "anchors": ([6, 4], 1)}
    save("all.onnx", body, ["n", 6, 5], shapes, weights)
    for batch in (6, 8):
        code, _, err = m.quantize("all.onnx", "--batch", batch)
        for name in ("number", "middle", "flattened", "anchors"):
            check(f"batches of {batch}: {name} is left out with a line",
                  code == 0 and any(f"output {name} is" in line and "left out of the loss" in line
                                    for line in err.splitlines()), err)
        check(f"batches of {batch}: y is compared", code == 0 and "output y " not in err, err)
        found, err = m.loss("all.onnx", batch)
        only, _ = m.loss("all.onnx", 1, loss_tensors=["y"])
        check(f"search in batches of {batch}: y alone", near(found, only, 1e-5), f"{found}, {only}; {err}")
    save("flat.onnx", body, ["n", 6, 5], {"flattened": (None, 1)}, weights)
    code, _, err = m.quantize("flat.onnx")
    check("nothing with samples: refused, with the option", code == 2 and "--batch" in err, err)
    code, _, err = m.quantize("flat.onnx", "--batch", 1)
    check("and the option helps", code == 0, err)
    found, err = m.loss("flat.onnx", 8, loss_tensors=["flattened"])
    check("search: refused with the key", found is None and "dataset.batch" in err, err)
    # A model for a single sample has no symbol: all of an output belongs to that sample.
    save("one.onnx", body, [1, 6, 5], shapes, weights)
    code, _, err = m.quantize("one.onnx")
    check("one sample at a time: only the constant is left out", code == 0 and err.count("left out") == 1, err)


# ---- (c) ----------------------------------------------------------------------------------------

BODY = [node("Conv", "x w1", "c1", pads=[1, 1, 1, 1]), node("Relu", "c1", "r1"), node("Conv", "r1 w2", "c2"),
        node("Reshape", "c2 shape", "f"), node("Split", "f sizes", "bx lg", axis=1),
        node("Transpose", "bx", "boxes", perm=[0, 2, 1]), node("Sigmoid", "lg", "scores"),
        node("Transpose", "scores", "by_box", perm=[0, 2, 1])]
NMS = [node("NonMaxSuppression", "boxes scores most iou", "kept")]
BY_NMS = NMS + [node("Gather", "kept two", "places", axis=1), node("Squeeze", "boxes zero", "b0"),
                node("Gather", "b0 places", "found"), node("Mul", "found size", "dets")]
BY_TOPK = [node("ReduceMax", "scores", "best", axes=[1], keepdims=0), node("TopK", "best five", "values at", axis=1),
           node("Unsqueeze", "at two1", "at3"), node("Expand", "at3 like", "at4"),
           node("GatherElements", "boxes at4", "found", axis=1), node("Mul", "found size", "dets")]
BY_NONZERO = [node("Greater", "scores half", "is"), node("NonZero", "is", "where"),
              node("Transpose", "where", "rows", perm=[1, 0]), node("GatherND", "scores rows", "chosen"),
              node("Mul", "chosen size1", "dets")]


def detector(path, behind, outputs, shape):
    save(path, BODY + behind, shape, outputs,
         {"w1": normal(8, 3, 3, 3) / 4, "w2": normal(6, 8, 1, 1) / 2, "shape": ints(0, 6, -1), "sizes": ints(4, 2),
          "most": ints(10), "iou": np.float32([0.5]), "two": np.array(2, np.int64), "zero": ints(0),
          "size": np.float32([8, 8, 8, 8]), "size1": np.float32([8]), "five": ints(5), "two1": ints(2),
          "like": ints(1, 1, 4), "half": np.float32(0.5)})


def quantised_tensors(path):
    """Names of the activations that the exported model quantises."""
    return {n.input[0] for n in onnx.load(path).graph.node if n.op_type == "QuantizeLinear"}


def check_detectors(m):
    np.savez("x.npz", x=normal(N, 3, 8, 8))
    cases = {
        "nms, one sample": (BY_NMS, {"dets": (None, 1)}, [1, 3, 8, 8], {"c2", "scores"}, {"dets"}),
        "nms, places alone": (NMS, {"kept": (None, 7)}, ["n", 3, 8, 8], {"c2", "scores"}, set()),
        "topk": (BY_TOPK, {"dets": (None, 1), "values": (None, 1), "at": (None, 7)}, ["n", 3, 8, 8],
                 {"c2", "best", "values"}, {"dets"}),
        "nonzero": (BY_NONZERO, {"dets": (None, 1)}, ["n", 3, 8, 8], {"scores"}, {"dets", "chosen"}),
        "nms and scores": (BY_NMS, {"dets": (None, 1), "scores": (None, 1)}, [1, 3, 8, 8], {"c2", "scores"},
                           {"dets"}),
    }
    for name, (behind, outputs, shape, expected, floats) in cases.items():
        detector("net.onnx", behind, outputs, shape)
        code, report, err = m.quantize("net.onnx")
        check(f"{name}: quantised", code == 0, err)
        lines = [line for line in err.splitlines() if "; comparing the tensors before it: " in line]
        named = {t for line in lines for t in line.split("before it: ")[1].split(", ")} | set(outputs) & {"scores",
                                                                                                         "values"}
        check(f"{name}: what is compared", named == expected, f"{named}, expected {expected}")
        if code == 0:
            check(f"{name}: a loss is measured", report["plans"][0]["examined"]["validation"]["distill_loss"] > 0)
            check(f"{name}: nothing is quantised behind it", not quantised_tensors("small.onnx") & floats,
                  quantised_tensors("small.onnx"))
            x = np.load("x.npz")["x"][:1]
            y, z = evaluate("net.onnx", x), evaluate("small.onnx", x)
            check(f"{name}: the file has the outputs of the model", list(y) == list(z))
    save("seg.onnx", BODY[:3] + [node("ArgMax", "c2", "class", axis=1)], ["n", 3, 8, 8], {"class": (None, 7)},
         {"w1": normal(8, 3, 3, 3) / 4, "w2": normal(6, 8, 1, 1) / 2})
    code, _, err = m.quantize("seg.onnx")
    check("argmax: what comes before it", code == 0 and "before it: c2" in err, err)
    gate = [node("Conv", "x w1", "c1", pads=[1, 1, 1, 1]), node("Greater", "c1 zero", "on"),
            node("Where", "on c1 zero", "r1"), node("Conv", "r1 w2", "y")]
    save("gate.onnx", gate, ["n", 3, 8, 8], {"y": (None, 1)},
         {"w1": normal(8, 3, 3, 3) / 4, "w2": normal(6, 8, 1, 1) / 2, "zero": np.float32(0)})
    code, _, err = m.quantize("gate.onnx")
    check("a step between products: the output stays", code == 0 and "; comparing the tensors before it" not in err, err)


# ---- (d) ----------------------------------------------------------------------------------------


def check_options(m):
    np.savez("x.npz", x=normal(N, 3, 8, 8))
    detector("net.onnx", BY_NMS, {"dets": (None, 1)}, [1, 3, 8, 8])
    for words in (["boxes,scores"], ["boxes", "--loss-tensors", "scores"], ['["boxes", "scores"]'],
                  ['{"boxes": 1, "scores": 1}']):
        code, report, err = m.quantize("net.onnx", "--loss-tensors", *words)
        check(f"--loss-tensors {words}", code == 0 and "before it is compared" not in err, err)
        losses = report["plans"][0]["examined"]["validation"]["distill_loss"] if code == 0 else None
        check(f"--loss-tensors {words}: the same each time", losses == getattr(m, "first", losses), losses)
        m.first = losses
    code, _, err = m.quantize("net.onnx", "--outputs", "r1", "--float", 0)
    check("--outputs: nothing behind it", code == 0 and "c2" not in quantised_tensors("small.onnx"), err)
    code, _, err = m.quantize("net.onnx", "--exclude", "w1,x", "--float", 0)
    check("--exclude: the tensors stay float", code == 0 and "x" not in quantised_tensors("small.onnx"),
          f"{err} {quantised_tensors('small.onnx')}")
    code, _, err = m.quantize("net.onnx", "--float", 0)
    check("without it they do not", code == 0 and "x" in quantised_tensors("small.onnx"),
          f"{err} {quantised_tensors('small.onnx')}")
    code, _, err = m.quantize("net.onnx", "--loss-tensors", "bxs")
    check("--loss-tensors of no tensor", code == 2 and "--loss-tensors" in err and "bxs" in err, err)
    code, _, err = m.quantize("net.onnx", "--atol", "-1")
    check("--atol below 0", code == 2 and "--atol" in err, err)
    for words in ("a,", ",", "[1", ""):
        code, _, err = m.quantize("net.onnx", "--exclude", words)
        check(f"--exclude {words!r}", code == 2 and "--exclude" in err, err)
    code, _, err = m.quantize("net.onnx", "--atol", "1e-3", "--batch", "4")
    check("--atol, and --batch of a model for one sample", code == 0 and "run one by one" in err, err)


def main():
    program, runtime = map(os.path.abspath, sys.argv[1:3])
    device = sys.argv[4] if sys.argv[3:4] == ["--device"] else "cpu"
    os.environ["MSCGYM_RUNTIME"] = f"{sys.executable} {runtime}"
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        m = Mscgym(program, device)
        for part in (check_samples, check_without_samples, check_detectors, check_options):
            part(m)
        os.chdir("/")
    print(f"{len(failed)} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
