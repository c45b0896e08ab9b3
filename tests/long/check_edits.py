#!/usr/bin/env python3
"""Compares the evaluator on edited models, and its exports, with ONNX Runtime.

    check_edits.py EDIT_TOOL DEVICE [MODEL ...]

ONNX Runtime runs models that are edited by hand here: a Mul by ones and a single zero before a
convolution (mask), another initialiser in place of a weight (replace), a bias rounded to steps
(round). Edits are tested at several convolutions, one by one and together (fewer on vulkan, where a
software driver is slow). Outputs must agree within 1e-4 (cpu) or 1e-3 (vulkan) of their largest value.
If an output depends on a comparison (keep local maxima), one element in a thousand may have the other
outcome. Models are those of scripts/fetch-models; exits with 77 without them or without onnxruntime.
"""
import os
import subprocess
import sys
import tempfile

try:
    import numpy as np
    import onnx
    import onnxruntime
except ImportError as e:
    print("skipped: %s" % e)
    sys.exit(77)

FOLDER = os.environ.get("MSC_MODELS", os.path.expanduser("~/.cache/mscgym/models"))
MODELS = ("resnet18", "mobilenet_v2", "mlsd-tiny")
LIMITS = {"cpu": 1e-4, "vulkan": 1e-3}
EDITS = {"cpu": ("mask", "replace", "round", "mask+replace+round"), "vulkan": ("mask", "replace")}
RANGES = {"mlsd-tiny": (0, 255)}  # value range of inputs; otherwise -1 to 1
STEP = np.float32(0.125)
STEPWISE = {"mlsd-tiny": ("scores",)}


def load(name):
    """The model with its symbolic dimensions set to 1 and a name for each node."""
    model = onnx.load(os.path.join(FOLDER, name + ".onnx"))
    for value in list(model.graph.input) + list(model.graph.output):
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_param:
                dim.dim_value = 1
    for i, node in enumerate(model.graph.node):
        node.name = "n%d_%s" % (i, node.op_type.lower())
    del model.graph.value_info[:]
    return model


def convolutions(model):
    """Three ungrouped convolutions that have a bias and read at least 8 channels."""
    weights = {w.name: w for w in model.graph.initializer}
    found = [n for n in model.graph.node if n.op_type == "Conv" and len(n.input) == 3 and
             n.input[1] in weights and n.input[2] in weights and
             weights[n.input[1]].dims[1] >= 8]
    return [found[len(found) // 2], found[0], found[-1]]


def mask(model, node, n, channel):
    factors = np.ones((n, 1, 1), np.float32)
    factors[channel] = 0
    model.graph.initializer.append(onnx.numpy_helper.from_array(factors, "the_mask"))
    mul = onnx.helper.make_node("Mul", [node.input[0], "the_mask"], ["the_masked"], "the_mul")
    at = [x.name for x in model.graph.node].index(node.name)
    model.graph.node.insert(at, mul)
    model.graph.node[at + 1].input[0] = "the_masked"


def replace(model, node, elements):
    model.graph.initializer.append(onnx.numpy_helper.from_array(elements, "the_weight"))
    next(x for x in model.graph.node if x.name == node.name).input[1] = "the_weight"


def round_bias(model, node, bias):
    rounded = (np.rint(bias / STEP) * STEP).astype(np.float32)
    model.graph.initializer.append(onnx.numpy_helper.from_array(rounded, "the_bias"))
    next(x for x in model.graph.node if x.name == node.name).input[2] = "the_bias"


def run_onnxruntime(model, x):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model.SerializeToString(), options,
                                           providers=["CPUExecutionProvider"])
    return session.run(None, {session.get_inputs()[0].name: x})


def check(tool, device, folder, name):
    model = load(name)
    path = os.path.join(folder, name + ".onnx")
    onnx.save(model, path)
    names = {w.name for w in model.graph.initializer}
    info = next(i for i in model.graph.input if i.name not in names)
    shape = [d.dim_value for d in info.type.tensor_type.shape.dim]
    rng = np.random.default_rng(7)
    x = rng.uniform(*RANGES.get(name, (-1, 1)), shape).astype(np.float32)
    np.save(os.path.join(folder, "x.npy"), x)
    plain = run_onnxruntime(model, x)
    weights = {w.name: w for w in model.graph.initializer}
    failed = 0
    for node in convolutions(model)[:3 if device == "cpu" else 1]:
        w = onnx.numpy_helper.to_array(weights[node.input[1]])
        other = (w * rng.uniform(0.5, 1.5, w.shape)).astype(np.float32)
        np.save(os.path.join(folder, "w.npy"), other)
        channel = int(np.abs(w).sum((0, 2, 3)).argmax())
        for edits in EDITS[device]:
            edited, options = onnx.ModelProto(), []
            edited.CopyFrom(model)
            if "mask" in edits:
                mask(edited, node, w.shape[1], channel)
                options += ["--mask", node.name, str(channel)]
            if "replace" in edits:
                replace(edited, node, other)
                options += ["--replace", node.name, os.path.join(folder, "w.npy")]
            if "round" in edits:
                round_bias(edited, node, onnx.numpy_helper.to_array(weights[node.input[2]]))
                options += ["--round", node.name, str(STEP)]
            expected = run_onnxruntime(edited, x)
            out = os.path.join(folder, "y")
            subprocess.run([tool, path, device, os.path.join(folder, "x.npy"), out] + options,
                           check=True)
            worst = moved = 0
            exported = run_onnxruntime(onnx.load(out + ".onnx"), x)
            for i, y in enumerate(expected):
                most = np.abs(y).max()
                moved = max(moved, np.abs(plain[i] - y).max() / most)
                for z in (np.load(out + "%d.npy" % i), exported[i]):
                    differs = np.abs(z - y).ravel() / most
                    if model.graph.output[i].name in STEPWISE.get(name, ()):
                        differs = np.sort(differs)[:differs.size - differs.size // 1000]
                    worst = max(worst, differs.max())
            # An edit of a bias may change nothing, because biases may be zero.
            is_good = worst <= LIMITS[device] and (moved > LIMITS[device] or edits == "round")
            failed += not is_good
            print("%s %-13s %-11s %-18s differs %.1e, edit moves %.1e%s" %
                  (device, name, node.name, edits, worst, moved, "" if is_good else " FAILED"),
                  flush=True)
    return failed


def main():
    tool, device, models = sys.argv[1], sys.argv[2], sys.argv[3:] or MODELS
    missing = [m for m in models if not os.path.exists(os.path.join(FOLDER, m + ".onnx"))]
    if missing:
        print("skipped: no %s in %s (scripts/fetch-models)" % (", ".join(missing), FOLDER))
        return 77
    with tempfile.TemporaryDirectory() as folder:
        return 1 if sum(check(tool, device, folder, m) for m in models) else 0


if __name__ == "__main__":
    sys.exit(main())
