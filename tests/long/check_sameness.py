#!/usr/bin/env python3
"""Tests warnings if all samples, or all outputs, are the same, and if validation samples are not new.

    check_sameness.py MSCGYM RUNTIME

RUNTIME is tools/mscgym-runtime. The small networks are made here.
(a) Validation samples that are also calibration samples are left out, and a warning says how many:
    the same file, a copy, a partly reordered copy, or repeated samples in a file that is split.
    Losses on the rest equal those of a file with only the rest. If none is left, neither the table
    nor the verdict mentions validation. A sample consists of all inputs. Files are not changed.
(b) If all samples are the same, or all outputs (zeros, a dead layer), a warning is printed at each
    start and in the result. The verdict names the tensor after which nothing varies, and does not
    recommend to deploy. `quantize` warns as well. A single sample, or one of several outputs, gives
    no warning.

Needs numpy and onnx; exits with 77 without them.
"""
import json
import os
import subprocess
import sys
import tempfile

try:
    import numpy as np
    import onnx
    from onnx import helper, numpy_helper
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

N = 24
rng = np.random.default_rng(7)
failed = []


def normal(*shape):
    return rng.standard_normal(shape).astype(np.float32)


def node(kind, inputs, outputs, **attributes):
    return helper.make_node(kind, inputs.split(), outputs.split(), **attributes)


def save(path, nodes, inputs, outputs, weights):
    info = helper.make_tensor_value_info
    graph = helper.make_graph(nodes, "net", [info(n, 1, s) for n, s in inputs.items()],
                              [info(n, 1, None) for n in outputs],
                              [numpy_helper.from_array(np.asarray(v), k) for k, v in weights.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    onnx.save(model, path)


def check(name, holds, why=""):
    print(("ok    " if holds else "BAD   ") + name + ("" if holds else f": {str(why)[:600]}"), flush=True)
    if not holds:
        failed.append(name)


class Mscgym:
    def __init__(self, program):
        self.program = program

    def run(self, *words):
        made = subprocess.run([self.program, *map(str, words)], capture_output=True, text=True)
        return made.returncode, made.stdout, made.stderr

    def search(self, model, *words, restart=True, **dataset):
        config = {"model": model, "verbose": "warning", "dataset": {"batch": 5, **dataset},
                  "quantize": {"runtime": False, "gym": [
                      {"env": {"choices": [{"bits": 8}, {"bits": 4}]}, "agent": {"type": "random"},
                       "budget": {"trials": 4}}]}}
        with open("search.json", "w", encoding="utf-8") as file:
            json.dump(config, file)
        code, out, err = self.run("search", "search.json", *(["--restart"] if restart else []), "--record",
                                  "r.jsonl", *words)
        return code, out, err

    def verdict(self):
        document = json.loads(self.run("report", "r.jsonl", "--json")[1])
        return document.get("records", [document])[0]["verdict"]

    def winner(self):
        return json.loads(self.run("show", "r.jsonl", "--json")[1])["winner"]


HELD_OUT = "the search did not use, distill_loss"


def check_all_shared(m, name, model, **dataset):
    code, out, err = m.search(model, **dataset)
    check(f"{name}: all are left out", code == 0 and "validation samples are also" in err and "all " in err, err)
    check(f"{name}: no numbers of validation", "validation." not in out, out)
    check(f"{name}: none in the record", "validation" not in m.winner().get("examined", {}), m.winner())
    reasons = " ".join(m.verdict()["reasons"])
    check(f"{name}: the verdict says so", HELD_OUT not in reasons and "calibration samples" in reasons, reasons)


def check_validation(m):
    body = [node("MatMul", "x w", "a"), node("Relu", "a", "r"), node("MatMul", "r w2", "y")]
    weights = {"w": normal(5, 4), "w2": normal(4, 3)}
    save("net.onnx", body, {"x": ["n", 6, 5]}, ["y"], weights)
    x, new = normal(N, 6, 5), normal(7, 6, 5)
    for name, array in {"x": x, "copy": x, "some": x[::-3][:5], "mixed": np.concatenate([x[2:5], new, x[:1]]),
                        "new": new, "twice": np.concatenate([x, x[:9]]),
                        "part": np.concatenate([x, x[:4], new[:5]])}.items():
        np.savez(f"{name}.npz", x=array)
    for name in ("x", "copy", "some"):
        check_all_shared(m, name, "net.onnx", inputs="x.npz", validation={"inputs": f"{name}.npz"})
    check_all_shared(m, "repeated, and split off", "net.onnx", inputs="twice.npz", validation=0.25)
    code, out, err = m.search("net.onnx", inputs="x.npz", validation={"inputs": "mixed.npz"})
    check("mixed: how many", code == 0 and "4 of 11 validation samples are also calibration samples" in err, err)
    mixed = m.winner()["examined"]["validation"]
    check("mixed: the verdict counts the others", f"On 7 samples that {HELD_OUT}" in " ".join(m.verdict()["reasons"]),
          m.verdict()["reasons"])
    code, out, err = m.search("net.onnx", inputs="x.npz", validation={"inputs": "new.npz"})
    check("new: no word", code == 0 and "also calibration samples" not in err, err)
    check("mixed: the loss is that of the new ones", mixed == m.winner()["examined"]["validation"], mixed)
    code, out, err = m.search("net.onnx", inputs="part.npz", validation=9 / 33)
    check("repeated in part: how many", code == 0 and "4 of 9 validation samples are also calibration samples" in err, err)
    code, out, err = m.search("net.onnx", inputs="x.npz", validation=0.25)
    check("a split file: no word", code == 0 and "also calibration samples" not in err and "validation.samples" in out, err)
    code, out, err = m.run("quantize", "net.onnx", "--inputs", "twice.npz", "-o", "q.onnx")
    check("quantize: nothing is called held back", code == 0 and "held_back" not in out and "held-back" not in out and
          "validation samples are also calibration samples" in out + err, out + err)
    # A sample consists of both inputs.
    save("two.onnx", [node("Add", "x m", "xm"), *[node("MatMul", "xm w", "a"), *body[1:]]],
         {"x": ["n", 6, 5], "m": ["n", 6, 5]}, ["y"], weights)
    masks = normal(N, 6, 5)
    np.savez("xm.npz", x=x, m=masks)
    np.savez("turned.npz", x=x, m=masks[::-1])
    np.savez("same.npz", x=x[4:9], m=masks[4:9])
    code, out, err = m.search("two.onnx", inputs="xm.npz", validation={"inputs": "turned.npz"})
    check("two inputs, one of them other: no word", code == 0 and "also calibration samples" not in err, err)
    check_all_shared(m, "two inputs", "two.onnx", inputs="xm.npz", validation={"inputs": "same.npz"})
    # A model for a single sample at a time.
    save("one.onnx", body, {"x": [1, 6, 5]}, ["y"], weights)
    code, out, err = m.search("one.onnx", inputs="x.npz", validation={"inputs": "mixed.npz"})
    check("one by one: how many", code == 0 and "4 of 11 validation samples are also calibration samples" in err, err)


def check_blind(m, name, model, words, **dataset):
    code, out, err = m.search(model, **dataset)
    check(f"{name}: warned of", code == 0 and words in err, err)
    check(f"{name}: in the result", words in out, out)
    verdict = m.verdict()
    reasons = " ".join(verdict["reasons"]).lower()
    check(f"{name}: the verdict", verdict["kind"] == "blind" and "Deploy" not in verdict["headline"] and
          words.lower() in reasons and "off by" not in reasons, verdict)
    code, out, err = m.run("resume", "r.jsonl", "--trials", 5)
    check(f"{name}: warned of again, and in the record", code == 0 and words in err and words in out, out + err)
    code, out, err = m.search(model, "--dry-run", **dataset)
    check(f"{name}: warned of before", code == 0 and words in err, err)
    code, out, err = m.run("quantize", model, "--inputs", dataset["inputs"], "-o", "q.onnx")
    check(f"{name}: by quantize", code == 0 and words in err and words in out, out + err)


def check_sameness(m):
    weights = {"w": normal(5, 4), "w2": normal(4, 3), "b": np.float32([-100, -90, -80, -70]), "zeros": np.zeros((5, 4),
                                                                                                           np.float32),
               "c": normal(3)}
    body = [node("MatMul", "x w", "a"), node("Relu", "a", "r"), node("MatMul", "r w2", "y0"), node("Add", "y0 c", "y")]
    shape = {"x": ["n", 6, 5]}
    save("net.onnx", body, shape, ["y"], weights)
    x = normal(N, 6, 5)
    for name, array in {"x": x, "zeros": 0 * x, "equal": np.repeat(x[:1], N, 0), "ones": np.ones_like(x),
                        "one": x[:1], "one_zero": 0 * x[:1], "small": x * np.float32(1e-12)}.items():
        np.savez(f"{name}.npz", x=array)
    for name in ("zeros", "equal", "ones"):
        check_blind(m, name, "net.onnx", "all samples are the same", inputs=f"{name}.npz")
    check_blind(m, "small numbers", "net.onnx", "nothing varies after y", inputs="small.npz")
    save("dead.onnx", [body[0], node("Add", "a b", "ab"), node("Relu", "ab", "dead"),
                       node("MatMul", "dead w2", "y0"), body[3]], shape, ["y"], weights)
    check_blind(m, "a dead layer", "dead.onnx", "nothing varies after dead", inputs="x.npz")
    save("lost.onnx", [node("MatMul", "x zeros", "lost"), *[node("Relu", "lost", "r"), *body[2:]]], shape, ["y"],
         weights)
    check_blind(m, "weights of 0", "lost.onnx", "nothing varies after lost", inputs="x.npz")
    save("branches.onnx", [node("MatMul", "x zeros", "left"), node("Sub", "x x", "none"),
                           node("MatMul", "none w", "right"), node("Add", "left right", "r"), *body[2:]], shape, ["y"],
         weights)
    check_blind(m, "two branches", "branches.onnx", "nothing varies after", inputs="x.npz")
    reasons = " ".join(m.verdict()["reasons"])
    check("two branches: both are named", "left" in reasons and "none" in reasons, reasons)
    for name in ("one", "one_zero"):
        code, out, err = m.search("net.onnx", inputs=f"{name}.npz")
        check(f"{name} sample: no word", code == 0 and "the same" not in out + err, out + err)
    code, out, err = m.search("net.onnx", inputs="x.npz")
    check("samples that differ: no word", code == 0 and "the same" not in out + err, out + err)
    save("several.onnx", [*body, node("Sub", "x x", "none"), node("MatMul", "none w", "still")], shape, ["y", "still"],
         weights)
    code, out, err = m.search("several.onnx", inputs="x.npz")
    check("one of two outputs: warned of", code == 0 and "output still is the same for all samples" in err, err)
    check("one of two outputs: no more", m.verdict()["kind"] != "blind", m.verdict())


def main():
    program, runtime = map(os.path.abspath, sys.argv[1:3])
    os.environ["MSCGYM_RUNTIME"] = f"{sys.executable} {runtime}"
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        m = Mscgym(program)
        check_validation(m)
        check_sameness(m)
        os.chdir("/")
    print(f"{len(failed)} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
