#!/usr/bin/env python3
"""Checks `equalize` of a search against numpy and onnxruntime.

    check_equalize.py MSCGYM

Networks are built with channels of very different ranges: convolutions with Relu, pooling, groups
and a flattened linear layer; a layer normalisation, and an RMS normalisation, that two linear layers
read; and a gate. The replaced weights must be those of the formulas at the top of tools/equalizer.h,
and the exported network must compute what the original does. In another network, HardSwish is between
convolutions, so its channels can only be multiplied. In networks with attention, queries and keys are
multiplied by the matrices that tools/equalizer.h describes. Needs numpy, onnx and onnxruntime; exits
with 77 without them.
"""
import base64
import json
import os
import shutil
import subprocess
import sys
import tempfile

try:
    import numpy as np
    import onnx
    import onnxruntime
    from onnx import TensorProto, helper, numpy_helper
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

BIN = 1.02  # values are counted in 512 bins, so the ends of ranges are not exact
STRENGTHS = (0, 0.25, 0.5, 0.75, 1)


def check(holds, what):
    if not holds:
        print(f"failed: {what}")
        sys.exit(1)


def save(folder, nodes, weights, dims, outputs):
    path = os.path.join(folder, "model.onnx")
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", *dims])],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs],
        [numpy_helper.from_array(value.astype(np.float32), name) for name, value in weights.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    onnx.save(onnx.shape_inference.infer_shapes(model), path)
    return path


def conv_network(folder, rng):
    """conv a -> relu -> max pool -> conv b in 2 groups -> relu -> flatten -> linear c."""
    spread = 4.0 ** np.arange(-2, 2)
    weights = {"a": rng.normal(size=(4, 2, 3, 3)) * spread[:, None, None, None],
               "a_bias": rng.normal(size=4) * spread,
               "b": rng.normal(size=(4, 2, 3, 3)) * spread[::-1, None, None, None],
               "c": rng.normal(size=(5, 4 * 9)), "c_bias": rng.normal(size=5)}
    nodes = [helper.make_node("Conv", ["x", "a", "a_bias"], ["1"], pads=[1, 1, 1, 1]),
             helper.make_node("Relu", ["1"], ["2"]),
             helper.make_node("MaxPool", ["2"], ["3"], kernel_shape=[2, 2], strides=[2, 2]),
             helper.make_node("Conv", ["3", "b"], ["4"], pads=[1, 1, 1, 1], group=2),
             helper.make_node("Relu", ["4"], ["5"]),
             helper.make_node("Flatten", ["5"], ["6"]),
             helper.make_node("Gemm", ["6", "c", "c_bias"], ["y"], transB=1)]
    return save(folder, nodes, weights, [2, 6, 6], ["y"]), weights, rng.normal(size=(64, 2, 6, 6))


def norm_network(folder, rng):
    """layer normalisation -> linear layers d [in, out] and e [out, in], which are multiplied; the result is reshaped to
    a length that is read from the normalisation's output.
    """
    weights = {"gamma": 4.0 ** np.arange(-3, 3), "beta": rng.normal(size=6) * 3,
               "d": rng.normal(size=(6, 3)), "d_bias": rng.normal(size=3),
               "e": rng.normal(size=(3, 6)), "e_bias": rng.normal(size=3)}
    nodes = [helper.make_node("LayerNormalization", ["x", "gamma", "beta"], ["1"]),
             helper.make_node("Gemm", ["1", "d", "d_bias"], ["2"]),
             helper.make_node("Gemm", ["1", "e", "e_bias"], ["3"], transB=1),
             helper.make_node("Mul", ["2", "3"], ["4"]),
             helper.make_node("Constant", [], ["three"], value_ints=[3]), helper.make_node("Shape", ["1"], ["5"], end=1),
             helper.make_node("Concat", ["5", "three"], ["6"], axis=0), helper.make_node("Reshape", ["4", "6"], ["y"])]
    return save(folder, nodes, weights, [6], ["y"]), weights, rng.normal(size=(4096, 6)) ** 3


def swish_network(folder, rng):
    """conv a -> hard swish -> depthwise conv b -> hard swish -> convs c and d, which add up -> hard swish, read by
    conv e, which is added to it.
    """
    spread = 4.0 ** np.arange(-2, 2)
    weights = {"a": rng.normal(size=(4, 2, 3, 3)) * spread[:, None, None, None], "b": rng.normal(size=(4, 1, 3, 3)),
               "c": rng.normal(size=(4, 4, 1, 1)) * spread[:, None, None, None],
               "d": rng.normal(size=(4, 4, 3, 3)) * spread[:, None, None, None],
               "e": rng.normal(size=(4, 4, 1, 1))}
    nodes = [helper.make_node("Conv", ["x", "a"], ["1"]), helper.make_node("HardSwish", ["1"], ["2"]),
             helper.make_node("Conv", ["2", "b"], ["3"], group=4), helper.make_node("HardSwish", ["3"], ["4"]),
             helper.make_node("Conv", ["4", "c"], ["5"]), helper.make_node("Conv", ["4", "d"], ["6"], pads=[1] * 4),
             helper.make_node("Add", ["5", "6"], ["7"]), helper.make_node("HardSwish", ["7"], ["8"]),
             helper.make_node("Conv", ["8", "e"], ["9"]), helper.make_node("Add", ["8", "9"], ["y"])]
    return save(folder, nodes, weights, [2, 8, 8], ["y"]), weights, 3 * rng.normal(size=(64, 2, 8, 8))


def outputs(path, x, names):
    """The values of tensors, by onnxruntime."""
    model = onnx.load(path)
    del model.graph.output[:]
    for name in names:
        model.graph.output.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, None))
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    return session.run(names, {session.get_inputs()[0].name: x})


def run(mscgym, *arguments, fails=False):
    done = subprocess.run([mscgym, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True)
    check((done.returncode != 0) == fails, f"{arguments}: {done.stderr}")
    return done.stderr


def config(folder, path, x, entry):
    np.save(os.path.join(folder, "x.npy"), x)
    name = os.path.join(folder, "search.json")
    with open(name, "w", encoding="utf-8") as file:
        json.dump({"workspace": folder, "verbose": "warning", "model": path,
                   "dataset": {"inputs": os.path.join(folder, "x.npy")},
                   "quantize": {"target": "generic", "runtime": False, "gym": [
                       {"record": "r.jsonl", "env": {"choices": [{"bits": 4}, {"bits": 8}]},
                        "agent": {"type": "random"}, "budget": {"trials": 4}, **entry}]}}, file)
    return name


def listed(folder, key):
    """{tensor: elements} in a list of the strategy that the search starts from."""
    with open(os.path.join(folder, "r.jsonl.base.json"), encoding="utf-8") as file:
        rows = json.load(file).get(key, [])
    return {row["tensor"]: np.frombuffer(base64.b64decode(row["elements"]), np.float32).reshape(
        row["shape"]) for row in rows}


def equalized(mscgym, folder, path, x, bits, **options):
    """The replaced weights; checks that the network computes the same, and that a search resumes."""
    search = config(folder, path, x, {"equalize": {"weights": bits[0], "activations": bits[1], **options}})
    run(mscgym, "search", search, "--quiet")
    with open(os.path.join(folder, "r.jsonl"), encoding="utf-8") as file:
        record = file.read()
    run(mscgym, "verify", os.path.join(folder, "r.jsonl"), "--quiet")
    run(mscgym, "search", search, "--quiet")
    with open(os.path.join(folder, "r.jsonl"), encoding="utf-8") as file:
        check(file.read() == record, "a search that is complete changes its record")
    same = os.path.join(folder, "same.onnx")
    shutil.copyfile(os.path.join(folder, "r.jsonl.base.json"), os.path.join(folder, "same.json"))
    run(mscgym, "export", "--model", path, "--strategy", os.path.join(folder, "r.jsonl.base.json"),
        "-o", same, "--quiet")
    wanted, found = outputs(path, x, ["y"])[0], outputs(same, x, ["y"])[0]
    check(np.abs(found - wanted).max() < 1e-5 * np.abs(wanted).max(), "the outputs changed")
    return listed(folder, "replace")


def is_near(found, wanted):
    ratio = found / wanted
    return np.all((ratio < BIN) & (ratio > 1 / BIN))


def by_channel(y):
    return y.swapaxes(0, 1).reshape(y.shape[1], -1)


def rounding_error(columns, y, step, bits):
    """The expected squared error of outputs columns [rows, n] . y [n, samples], both rounded."""
    steps = np.abs(columns).max(1) / (2 ** (bits - 1) - 1)
    carried = (columns ** 2) @ (y != 0).mean(1)
    return float((steps ** 2 * (y ** 2).mean(1).sum() + step ** 2 * carried).sum() / 12)


def factors(ranges, y, weights, bits, is_signed):
    """The factors [channels] whose weights [rows, columns], of inputs y [channels, samples] that repeat,
    have the least expected error.
    """
    found = []
    for strength in STRENGTHS:
        a = (ranges / np.exp(np.log(ranges).mean())) ** strength
        step = (ranges / a).max() * (2 if is_signed else 1) / (2 ** bits[1] - 1)
        error = sum(rounding_error(w * np.repeat(a[of], w.shape[1] // len(of)),
                                   np.repeat(y[of] / a[of, None], w.shape[1] // len(of), 0), step, bits[0])
                    for w, of in weights)
        found.append((error, strength, a))
    return min(found, key=lambda row: row[0])[2]


def tail(y, share, method):
    """The quantile of each channel's values other than zero."""
    return np.array([np.quantile(row[row != 0], share, method=method) for row in y])


def check_convs(mscgym, folder, rng, bits):
    path, w, x = conv_network(folder, rng)
    x = x.astype(np.float32)
    new = equalized(mscgym, folder, path, x, bits)
    first, second = (by_channel(y).astype(np.float64) for y in outputs(path, x, ["3", "5"]))
    # The second convolution reads the first one's channels, two in each group.
    read = [(w["b"][:2].reshape(2, -1), np.array([0, 1])), (w["b"][2:].reshape(2, -1), np.array([2, 3]))]
    wanted = factors(tail(first, 0.999, "higher"), first, read, bits, False)
    a = w["a_bias"] / new["a_bias"]
    check(is_near(a, wanted), f"factors {a} of the first convolution, expected {wanted}")
    check(np.allclose(new["a"], w["a"] / a[:, None, None, None], rtol=1e-5), "its weight")
    scaled = (w["b"].reshape(2, 2, 2, 3, 3) * a.reshape(2, 1, 2, 1, 1)).reshape(w["b"].shape)
    b = (scaled / new["b"])[:, 0, 0, 0] if "b" in new else np.ones(4)
    wanted = factors(tail(second, 0.999, "higher"), second, [(w["c"], np.arange(4))], bits, False)
    check(is_near(b, wanted), f"factors {b} of the second convolution, expected {wanted}")
    check(np.allclose(new["b"], scaled / b[:, None, None, None], rtol=1e-4), "its weight")
    check(np.allclose(new.get("c", w["c"]), w["c"] * np.repeat(b, 9), rtol=1e-4), "the last weight")
    return a, b


def check_norm(mscgym, folder, rng, bits):
    path, w, x = norm_network(folder, rng)
    x = x.astype(np.float32)
    new = equalized(mscgym, folder, path, x, bits)
    y = by_channel(outputs(path, x, ["1"])[0]).astype(np.float64)
    low, high = tail(y, 0.001, "lower"), tail(y, 0.999, "higher")
    a = w["gamma"] / new["gamma"]
    wanted = factors((high - low) / 2, y - (low + high)[:, None] / 2,
                     [(w["d"].T, np.arange(6)), (w["e"], np.arange(6))], bits, True)
    check(is_near(a, wanted), f"factors {a} of the normalisation, expected {wanted}")
    shift = w["beta"] - new["beta"] * a
    check(np.all(np.abs(shift - (low + high) / 2) < 0.02 * (high - low)), f"shifts {shift}")
    check(np.allclose(new["d"], w["d"] * a[:, None], rtol=1e-5), "the weight [in, out]")
    check(np.allclose(new["e"], w["e"] * a, rtol=1e-5), "the weight [out, in]")
    check(np.allclose(new["d_bias"], w["d_bias"] + shift @ w["d"], rtol=1e-4, atol=1e-4), "a bias")
    check(np.allclose(new["e_bias"], w["e_bias"] + w["e"] @ shift, rtol=1e-4, atol=1e-4), "a bias")
    return a


def rms_network(folder, rng, shape, is_first=False):
    """RMS normalisation in single operators, whose scale has this shape -> linear layers d [in, out] and e [out, in],
    which are added up. `is_first`: the scale is the first factor.
    """
    weights = {"gamma": 4.0 ** np.arange(-3, 3).reshape(shape), "eps": np.array(1e-6), "two": np.array(2.0),
               "d": rng.normal(size=(6, 3)), "e": rng.normal(size=(3, 6))}
    factors_in = ["gamma", "n"] if is_first else ["n", "gamma"]
    nodes = [helper.make_node("Pow", ["x", "two"], ["p"]),
             helper.make_node("ReduceMean", ["p"], ["m"], axes=[-1]), helper.make_node("Add", ["m", "eps"], ["s"]),
             helper.make_node("Sqrt", ["s"], ["r"]), helper.make_node("Div", ["x", "r"], ["n"]),
             helper.make_node("Mul", factors_in, ["1"]), helper.make_node("MatMul", ["1", "d"], ["2"]),
             helper.make_node("Gemm", ["1", "e"], ["3"], transB=1), helper.make_node("Add", ["2", "3"], ["y"])]
    return save(folder, nodes, weights, [6], ["y"]), weights, rng.normal(size=(4096, 6)) ** 3


def ranges_of(y):
    return np.maximum(np.abs(tail(y, 0.001, "lower")), np.abs(tail(y, 0.999, "higher")))


def check_rms(mscgym, folder, rng, bits, shape, is_first):
    path, w, x = rms_network(folder, rng, shape, is_first)
    x = x.astype(np.float32)
    new = equalized(mscgym, folder, path, x, bits)
    y = by_channel(outputs(path, x, ["1"])[0]).astype(np.float64)
    a = (w["gamma"] / new["gamma"]).ravel()
    wanted = factors(ranges_of(y), y, [(w["d"].T, np.arange(6)), (w["e"], np.arange(6))], bits, True)
    check(is_near(a, wanted), f"factors {a} of the RMS normalisation, expected {wanted}")
    check(np.allclose(new["d"], w["d"] * a[:, None], rtol=1e-5), "the weight [in, out]")
    check(np.allclose(new["e"], w["e"] * a, rtol=1e-5), "the weight [out, in]")
    return a


def gate_network(folder, rng, gate, operator="Mul"):
    """linear layer u, times a gate, -> linear layer d. The gate is "silu" or "relu" of another linear layer; "own", u
    again; or "read", u + 1.
    """
    spread = 3.0 ** np.arange(-3, 3)
    weights = {"u": rng.normal(size=(5, 6)) * spread, "u_bias": rng.normal(size=6) * spread,
               "g": rng.normal(size=(5, 6)), "d": rng.normal(size=(6, 3)), **({"one": np.array(1.0)} if gate == "read" else {})}
    made = {"silu": [("Sigmoid", ["g0"], "s"), ("Mul", ["g0", "s"], "gate")], "relu": [("Relu", ["g0"], "gate")],
            "own": [("Identity", ["u1"], "gate")], "read": [("Add", ["u1", "one"], "gate")]}
    nodes = [helper.make_node("MatMul", ["x", "u"], ["u0"]), helper.make_node("Add", ["u0", "u_bias"], ["u1"]),
             helper.make_node("MatMul", ["x", "g"], ["g0"])]
    nodes += [helper.make_node(op, inputs, [output]) for op, inputs, output in made[gate]]
    nodes += [helper.make_node(operator, ["u1", "gate"], ["h"]), helper.make_node("MatMul", ["h", "d"], ["y"])]
    return save(folder, nodes, weights, [5], ["y"]), weights, rng.normal(size=(1024, 5))


def check_gate(mscgym, folder, rng, bits, gate, operator):
    """The channels of a factor are rescaled through the product."""
    path, w, x = gate_network(folder, rng, gate, operator)
    x = x.astype(np.float32)
    new = equalized(mscgym, folder, path, x, bits)
    maker = "g" if "g" in new else "u"  # of a product of two makers, the first one's channels are rescaled
    check(sorted(new) == ["d", "g"] * (maker == "g") + ["d", "u", "u_bias"] * (maker == "u"), f"replaced {sorted(new)}")
    y = by_channel(outputs(path, x, ["h"])[0]).astype(np.float64)
    a = (new["d"] / w["d"])[:, 0]
    wanted = factors(ranges_of(y), y, [(w["d"].T, np.arange(6))], bits, True)
    check(is_near(a, wanted), f"factors {a} of a {gate} gate, expected {wanted}")
    check(np.allclose(new["d"], w["d"] * a[:, None], rtol=1e-5), "the weight that reads the product")
    check(np.allclose(new[maker], w[maker] / a, rtol=1e-5), f"the weight {maker}")
    check(maker == "g" or np.allclose(new["u_bias"], w["u_bias"] / a, rtol=1e-5), "the bias")
    return a


def check_no_gate(mscgym, folder, rng):
    """Channels that reach a product on two ways, or that a sum reads, keep their ranges."""
    for gate, operator in (("own", "Mul"), ("read", "Mul"), ("own", "Div")):
        path, _, x = gate_network(folder, rng, gate, operator)
        text = run(mscgym, "search", config(folder, path, x.astype(np.float32), {"equalize": True}), "--restart")
        check("equalize finds 0 activations" in text, f"{gate} {operator}: {text}")


def check_multiplied(mscgym, folder, rng, bits):
    path, w, x = swish_network(folder, rng)
    x = x.astype(np.float32)
    new = equalized(mscgym, folder, path, x, bits, multiply=True)
    names = {tensor: array for tensor, array in listed(folder, "multiply").items()}
    check(len(names) == 3, f"three activations are multiplied, not {list(names)}")
    made, wanted = list(names.values()), []
    check(all(a.shape == (4, 1, 1) for a in made), f"shapes {[a.shape for a in made]}")
    depthwise = [(row.reshape(1, -1), np.array([i])) for i, row in enumerate(w["b"])]
    full = [(w["c"].reshape(4, -1), np.arange(4)), (w["d"].reshape(4, -1), np.arange(4))]
    last = [(w["e"].reshape(4, -1), np.arange(4))]
    for y, readers in zip(outputs(path, x, ["2", "4", "8"]), (depthwise, full, last)):
        y = by_channel(y).astype(np.float64)
        ranges = np.maximum(np.abs(tail(y, 0.001, "lower")), np.abs(tail(y, 0.999, "higher")))
        wanted.append(factors(ranges, y, readers, bits, True))
    for found, expected in zip(made, wanted):
        check(is_near(1 / found.ravel(), expected), f"factors {1 / found.ravel()}, expected {expected}")
    check(np.allclose(new["b"] * made[0][:, None], w["b"], rtol=1e-5), "the depthwise weight")
    for name, a in (("c", made[1]), ("d", made[1]), ("e", made[2])):
        check(np.allclose(new[name] * a, w[name], rtol=1e-5), f"the weight {name}")
    # A search that may not multiply finds nothing; a strategy that multiplies what is not there is refused.
    text = run(mscgym, "search", config(folder, path, x, {"equalize": True}), "--restart")
    check("equalize finds 0 activations" in text, text)
    strategy = os.path.join(folder, "wrong.json")
    with open(os.path.join(folder, "same.json"), encoding="utf-8") as file:
        members = json.load(file)
    good = members["multiply"]
    factors_of = lambda *shape, value=1: {  # noqa: E731
        **good[0], "shape": shape, "elements": base64.b64encode(np.full(shape, value, "<f4").tobytes()).decode()}
    for wrong, said in ({**good[0], "tensor": "absent"}, "does not have"), (factors_of(2, 1, 1), "not fit"), \
                       (factors_of(2, 4, 1, 1), "not fit"), (factors_of(1, 1, 4, 1, 1), "not fit"), \
                       (factors_of(4, 1, 1, value=np.nan), "not finite"), (good[1], "twice"):
        with open(strategy, "w", encoding="utf-8") as file:
            json.dump({**members, "multiply": [wrong, *good[1:]]}, file)
        text = run(mscgym, "export", "--model", path, "--strategy", strategy, "-o", strategy + ".onnx", fails=True)
        check(text.count("\n") == 1 and said in text and not os.path.exists(strategy + ".onnx"), text)


HEADS, SIZE, LENGTH = 2, 4, 5
RIDGE = 0.001


def attention_network(folder, rng, kind="heads"):
    """softmax(scale * queries . keys) . values. Queries come from Gemm [out, in], keys from MatMul [in, out]. `kind`:
    "heads"; "one" head without a reshape; or with heads, "read": the queries are an output too; "added": keys get
    other numbers for each position; "split": one layer of the weight [values, queries, keys] makes all three.
    """
    n = HEADS * SIZE
    weights = {"q": rng.normal(size=(n, 6)) * 3.0 ** rng.integers(-2, 3, size=(n, 1)), "q_bias": rng.normal(size=n),
               "k": rng.normal(size=(6, n)) * 3.0 ** rng.integers(-2, 3, size=n), "k_bias": rng.normal(size=n),
               "v": rng.normal(size=(6, n)), "scale": np.array(0.02),
               "add": rng.normal(size=(LENGTH, 1, SIZE))}
    shapes = {"rows": [-1, 6], "split": [-1, LENGTH, HEADS, SIZE], "flat": [-1, LENGTH, n], "rest": [LENGTH, HEADS, SIZE],
              "parts": [n, n, n]}
    if kind == "split":
        weights["all"] = np.c_[weights["v"], weights["q"].T, weights["k"]]
        weights["all_bias"] = np.r_[np.zeros(n), weights["q_bias"], weights["k_bias"]]
    nodes = [helper.make_node("Reshape", ["x", "rows"], ["x2"]),
             helper.make_node("Gemm", ["x2", "q", "q_bias"], ["q0"], transB=1),
             helper.make_node("MatMul", ["x", "k"], ["k00"]),
             helper.make_node("Add", ["k00", "k_bias"], ["k0"]), helper.make_node("MatMul", ["x", "v"], ["v0"])]
    if kind == "split":
        nodes = [helper.make_node("MatMul", ["x", "all"], ["all0"]), helper.make_node("Add", ["all0", "all_bias"], ["all1"]),
                 helper.make_node("Split", ["all1", "parts"], ["v0", "q0", "k0"], axis=-1)]
    if kind == "one":
        nodes += [helper.make_node("Reshape", ["q0", "flat"], ["q1"]), helper.make_node("Mul", ["q1", "scale"], ["q2"]),
                  helper.make_node("Transpose", ["k0"], ["k2"], perm=[0, 2, 1]),
                  helper.make_node("MatMul", ["q2", "k2"], ["s"]), helper.make_node("Softmax", ["s"], ["p"], axis=-1),
                  helper.make_node("MatMul", ["p", "v0"], ["y"])]
    else:
        nodes += [helper.make_node("Reshape", [a, "split"], [b]) for a, b in (("q0", "q1"), ("v0", "v1"))]
        # The length of the keys is read first, as in torch's exports.
        nodes += [helper.make_node("Shape", ["k0"], ["length"], end=1),
                  helper.make_node("Concat", ["length", "rest"], ["sizes"], axis=0),
                  helper.make_node("Reshape", ["k0", "sizes"], ["k1"])]
        nodes += [helper.make_node("Add", ["k1", "add"], ["k1a"])] if kind == "added" else []
        nodes += [helper.make_node("Transpose", ["q1"], ["q2"], perm=[0, 2, 1, 3]),
                  helper.make_node("Transpose", ["k1a" if kind == "added" else "k1"], ["k2"], perm=[0, 2, 3, 1]),
                  helper.make_node("Transpose", ["v1"], ["v2"], perm=[0, 2, 1, 3]),
                  helper.make_node("MatMul", ["q2", "k2"], ["s0"]), helper.make_node("Mul", ["s0", "scale"], ["s"]),
                  helper.make_node("Softmax", ["s"], ["p"], axis=-1), helper.make_node("MatMul", ["p", "v2"], ["y"])]
    path = save(folder, nodes, weights, [LENGTH, 6], ["y"] + ["q2"] * (kind == "read"))
    model = onnx.load(path)
    model.graph.initializer.extend(numpy_helper.from_array(np.array(v, np.int64), k) for k, v in shapes.items())
    onnx.save(onnx.shape_inference.infer_shapes(model), path)
    return path, weights


def root(m, power=0.5):
    values, vectors = np.linalg.eigh(m)
    return vectors @ np.diag(values ** power) @ vectors.T


def geometric_mean(a, b):
    """The symmetric m with m a^-1 m = b."""
    inner = root(root(a, -0.5) @ b @ root(a, -0.5))
    return root(a) @ inner @ root(a)


def second_moments(y):
    """Of rows y [n, size], with the ridge."""
    m = y.T @ y / len(y)
    return m + RIDGE * np.trace(m) / len(m) * np.eye(len(m))


def attention_error(pairs, matrices):
    """The expected error of the products of queries and keys of all heads [n, size], up to a factor."""
    squares = [[np.mean((y @ t.T) ** 2, 0) for y, t in zip(of, by)] for of, by in zip(zip(*pairs), zip(*matrices))]
    return sum(np.max(squares[i]) * np.sum(squares[1 - i]) for i in range(2))


def check_attention(mscgym, folder, rng, kind):
    path, w = attention_network(folder, rng, kind)
    x = (rng.normal(size=(256, LENGTH, 6)) + 1).astype(np.float32)
    new = equalized(mscgym, folder, path, x, (4, 4), rotate=True)
    if kind == "split":
        check(sorted(new) == ["all", "all_bias"], f"replaced weights {sorted(new)}")
        v, q, k = np.split(np.r_[new["all"], new["all_bias"][None]], 3, axis=1)
        check(np.array_equal(v, np.r_[w["v"], np.zeros((1, HEADS * SIZE))].astype(np.float32)), "the values changed")
        new = {"q": q[:-1].T, "q_bias": q[-1], "k": k[:-1], "k_bias": k[-1]}
    check(sorted(new) == ["k", "k_bias", "q", "q_bias"], f"replaced weights {sorted(new)}")
    rows, size = x.reshape(-1, 6).astype(np.float64), HEADS * SIZE if kind == "one" else SIZE
    for h in range(HEADS * SIZE // size):
        own = slice(h * size, (h + 1) * size)
        t_q = np.linalg.lstsq(np.c_[w["q"], w["q_bias"]][own].T, np.c_[new["q"], new["q_bias"]][own].T, rcond=None)
        t_k = np.linalg.lstsq(np.r_[w["k"], w["k_bias"][None]][:, own], np.r_[new["k"], new["k_bias"][None]][:, own],
                              rcond=None)
        if kind == "one":  # more outputs than inputs: the matrices do not follow from the weights
            q, k = rows @ w["q"].T + w["q_bias"], rows @ w["k"] + w["k_bias"]
            q2, k2 = rows @ new["q"].T + new["q_bias"], rows @ new["k"] + new["k_bias"]
            check(np.allclose(q2 @ k2[:9].T, q @ k[:9].T, rtol=1e-3, atol=1e-3 * np.abs(q @ k[:9].T).max()), "products")
            squares = np.mean(q2 ** 2, 0), np.mean(k2 ** 2, 0)
            check(max(s.max() / s.min() for s in squares) < 1.2, f"mean squares {squares}")
            continue
        t_q, t_k = t_q[0].T, t_k[0].T
        check(np.allclose(t_q.T @ t_k, np.eye(size), atol=2e-3), f"the matrices change products: {t_q.T @ t_k}")
        q = second_moments(rows @ w["q"][own].T + w["q_bias"][own])
        k = second_moments(rows @ w["k"][:, own] + w["k_bias"][own])
        wanted = geometric_mean(np.linalg.inv(k), q)
        check(np.allclose(t_k.T @ t_k, wanted, rtol=0.02, atol=0.02 * np.abs(wanted).max()),
              f"the keys' matrix gives {t_k.T @ t_k}, expected {wanted}")
        made = t_q @ q @ t_q.T, t_k @ k @ t_k.T
        level = np.trace(made[0]) / size
        check(np.allclose(made[0], made[1], atol=0.02 * level), f"moments differ: {made}")
        check(np.allclose(np.diag(made[0]), level, rtol=0.02), f"mean squares differ: {np.diag(made[0])}")


def check_no_attention(mscgym, folder, rng):
    """Nothing is multiplied if something else reads the factors, or if samples held back contradict."""
    x = rng.normal(size=(64, LENGTH, 6)).astype(np.float32)
    for kind in ("read", "added"):
        path, _ = attention_network(folder, rng, kind)
        text = run(mscgym, "search", config(folder, path, x, {"equalize": {"rotate": True}}), "--restart")
        check("equalize finds 0 activations" in text, f"{kind}: {text}")
    path, w = attention_network(folder, rng)
    others, found = x[:56], []
    direction = 10 * np.random.default_rng(273).normal(size=6)  # one in which the matrices do harm
    for strange in (x[56:], direction + x[56:] / 100):
        x = np.concatenate([others, strange]).astype(np.float32)
        parts = [[(rows @ w["q"][own].T + w["q_bias"][own], rows @ w["k"][:, own] + w["k_bias"][own])
                  for own in (slice(0, SIZE), slice(SIZE, 2 * SIZE))]
                 for rows in (others.reshape(-1, 6).astype(np.float64), x[56:].reshape(-1, 6).astype(np.float64))]
        matrices = []
        for q, k in parts[0]:
            t = root(geometric_mean(np.linalg.inv(second_moments(k)), second_moments(q)))
            matrices.append((np.linalg.inv(t).T, t))
        same = [(np.eye(SIZE), np.eye(SIZE))] * HEADS
        pays = attention_error(parts[1], matrices) < attention_error(parts[1], same)
        text = run(mscgym, "search", config(folder, path, x, {"equalize": {"rotate": True}}), "--restart")
        check(("equalize finds 0 activations" not in text) == pays, f"samples held back, pays {pays}: {text}")
        found.append(pays)
    check(found == [True, False], f"cases of samples held back: {found}")


def check_errors(mscgym, folder, rng):
    path, _, x = norm_network(folder, rng)
    x = x.astype(np.float32)
    for wrong in (2, {"weights": 9}, {"bits": 4}):
        text = run(mscgym, "search", config(folder, path, x, {"equalize": wrong}), fails=True)
        check("equalize" in text and text.count("\n") == 1, text)
    env = {"choices": [{"bits": 4}], "imatrix": "importance.dat"}
    text = run(mscgym, "search", config(folder, path, x, {"equalize": True, "env": env}), fails=True)
    check("equalize and env.imatrix exclude each other" in text and text.count("\n") == 1, text)
    base = os.path.join(folder, "base.json")
    with open(base, "w", encoding="utf-8") as file:
        json.dump({}, file)
    text = run(mscgym, "search", config(folder, path, x, {"equalize": True, "base": base}), fails=True)
    check("base and equalize exclude each other" in text and text.count("\n") == 1, text)
    run(mscgym, "search", config(folder, path, x, {"equalize": True}), "--quiet")
    for other in (False, {"weights": 8}):
        text = run(mscgym, "search", config(folder, path, x, {"equalize": other}), fails=True)
        check("r.jsonl" in text, text)
    os.remove(os.path.join(folder, "r.jsonl.base.json"))
    text = run(mscgym, "search", config(folder, path, x, {"equalize": True}), fails=True)
    check("r.jsonl.base.json" in text and text.count("\n") == 1, text)


def check_nothing(mscgym, folder, rng):
    """A network without such channels: the search runs, and continues."""
    path = save(folder, [helper.make_node("Gemm", ["x", "w"], ["y"])], {"w": rng.normal(size=(6, 3))}, [6], ["y"])
    name = config(folder, path, rng.normal(size=(64, 6)).astype(np.float32), {"equalize": True})
    check("equalize finds 0 activations" in run(mscgym, "search", name), "no warning")
    record = os.path.join(folder, "r.jsonl")
    with open(record, "rb") as file:
        whole = file.read()
    with open(record, "wb") as file:  # without its last trial
        file.write(whole[:whole.rindex(b"\n{", 0, whole.rindex(b'"kind":"trial"')) + 1])
    run(mscgym, "search", name, "--quiet")
    with open(record, "rb") as file:
        check(len(file.read().splitlines()) >= len(whole.splitlines()), "the search did not continue")


def check_held_back(mscgym, folder, rng):
    """The last samples, which are held back, have other ranges than the first: nothing is rescaled."""
    path, spread = linear_network(folder, rng), 3.0 ** np.arange(-3, 3)
    x = (np.abs(rng.normal(size=(32, 6))) * spread).astype(np.float32)
    text = run(mscgym, "search", config(folder, path, x, {"equalize": True}), "--restart")
    check("equalize finds" not in text, f"equal samples are not rescaled: {text}")
    x[-4:, :3] *= 100  # channels that the factors of the first samples widen
    text = run(mscgym, "search", config(folder, path, x, {"equalize": True}), "--restart")
    check("equalize finds 0 activations" in text, f"the samples held back do not count: {text}")


def linear_network(folder, rng):
    """linear layer that keeps channels apart -> relu -> linear layer."""
    weights = {"a": np.eye(6), "b": rng.normal(size=(6, 4))}
    nodes = [helper.make_node("MatMul", ["x", "a"], ["1"]), helper.make_node("Relu", ["1"], ["2"]),
             helper.make_node("MatMul", ["2", "b"], ["y"])]
    return save(folder, nodes, weights, [6], ["y"])


def main():
    mscgym = os.path.abspath(sys.argv[1])
    rng = np.random.default_rng(0)
    found = []
    for bits in ((4, 4), (8, 3), (2, 8)):
        with tempfile.TemporaryDirectory() as folder:
            found += [a.max() / a.min() for a in check_convs(mscgym, folder, rng, bits)]
        with tempfile.TemporaryDirectory() as folder:
            a = check_norm(mscgym, folder, rng, bits)
            found.append(a.max() / a.min())
        with tempfile.TemporaryDirectory() as folder:
            check_multiplied(mscgym, folder, np.random.default_rng(1), bits)
    for bits, shape, is_first in (((4, 4), (6,), False), ((8, 3), (1, 6), True)):
        with tempfile.TemporaryDirectory() as folder:
            a = check_rms(mscgym, folder, np.random.default_rng(4), bits, shape, is_first)
            found.append(a.max() / a.min())
    for gate, operator in (("silu", "Mul"), ("relu", "Mul")):
        with tempfile.TemporaryDirectory() as folder:
            a = check_gate(mscgym, folder, np.random.default_rng(5), (8, 4), gate, operator)
            found.append(a.max() / a.min())
    with tempfile.TemporaryDirectory() as folder:
        check_no_gate(mscgym, folder, np.random.default_rng(6))
    for kind in ("heads", "one", "split"):
        with tempfile.TemporaryDirectory() as folder:
            check_attention(mscgym, folder, np.random.default_rng(2), kind)
    with tempfile.TemporaryDirectory() as folder:
        check_no_attention(mscgym, folder, np.random.default_rng(3))
    check(max(found) > 50 and min(found) < 10, f"all strengths are alike: {found}")
    with tempfile.TemporaryDirectory() as folder:
        check_errors(mscgym, folder, rng)
    with tempfile.TemporaryDirectory() as folder:
        check_nothing(mscgym, folder, rng)
    with tempfile.TemporaryDirectory() as folder:
        check_held_back(mscgym, folder, rng)


if __name__ == "__main__":
    main()
