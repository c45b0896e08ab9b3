#!/usr/bin/env python3
"""Compares Resize with onnxruntime: every coordinate mode, method and rounding, integer and fractional
scales, with antialiasing and cropping, along any axes.

    check_resize.py MSCGYM [--device cpu|vulkan] [--nodes 1500] [--seed 1]

Nodes are drawn at random; those that onnxruntime refuses are left out, and the others are put
together into models with one input. Then models with a Resize between convolutions are quantised.
onnxruntime runs each written file, after `quantize` with and without the runtime helper. Its
outputs must be close to the float model's, and there must be no message that the float model itself
differs in the runtime.

Prints the differences; exits with 1 if there are any. Needs numpy, onnx and onnxruntime.
"""
import argparse
import collections
import os
import subprocess
import sys
import tempfile

import numpy
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

COORDINATES = ("half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners",
               "asymmetric", "tf_half_pixel_for_nn", "tf_crop_and_resize")
ROUNDINGS = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
A_MODEL = 60
TOLERANCE = 1e-4


def session(model):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    data = model if isinstance(model, str) else model.SerializeToString()
    return onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])


def make_model(nodes, shape, initializers, out="y"):
    """A model of nodes over one input x, with one output per node."""
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info(node.output[0], TensorProto.FLOAT, [None] * len(shape))
         for node in nodes if node.output[0].startswith(out)],
        [numpy_helper.from_array(value, name) for name, value in initializers.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)])
    model.ir_version = 8
    return model


class Drawn:
    """A random node, its initialisers, and its description for messages."""

    def __init__(self, random, number, shape):
        rank = len(shape)
        self.attributes = {"mode": str(random.choice(["nearest", "linear", "cubic"])),
                           "coordinate_transformation_mode": str(random.choice(COORDINATES))}
        is_filtered = self.attributes["mode"] != "nearest" and random.random() < 0.4
        if is_filtered:
            self.attributes["antialias"] = 1
        if self.attributes["mode"] == "nearest":
            self.attributes["nearest_mode"] = str(random.choice(ROUNDINGS))
        if self.attributes["mode"] == "cubic" or is_filtered:
            self.attributes["exclude_outside"] = int(random.integers(2))
        if self.attributes["mode"] == "cubic":
            self.attributes["cubic_coeff_a"] = float(random.choice([-0.75, -0.5]))
        first = int(rank > 2) + int(rank > 3) if random.random() < 0.9 else int(rank > 3)
        axes = list(range(first, rank))
        lengths = numpy.array([shape[axis] for axis in axes])
        some = random.choice([2.0, 0.5, 1.5, 0.6, 2.3, 1.05, 0.34, 1.0, random.uniform(0.2, 3)],
                             len(axes))
        scales = some.astype(numpy.float32)
        sizes = numpy.maximum(1, (lengths * some).astype(numpy.int64))
        scales = numpy.where(scales * lengths < 1, numpy.float32(1), scales)
        self.inputs, self.initializers = ["x", "", ""], {}
        self.crops = self.attributes["coordinate_transformation_mode"] == "tf_crop_and_resize"
        if random.random() < 0.3:
            self.attributes["axes"] = axes
            whole = slice(0, len(axes))
        else:
            scales = numpy.array([1] * first + list(scales), numpy.float32)
            sizes = numpy.array(list(shape[:first]) + list(sizes), numpy.int64)
            axes = list(range(rank))
            whole = slice(first, rank)
        if self.crops:
            roi = numpy.array([0.0] * len(axes) + [1.0] * len(axes), numpy.float32)
            roi[whole] = random.uniform(-0.3, 0.6, whole.stop - whole.start)
            roi[len(axes):][whole] = random.uniform(0.2, 1.3, whole.stop - whole.start)
            self.add(1, f"roi{number}", roi)
            self.attributes["extrapolation_value"] = 7.0
        if random.random() < 0.6:
            self.add(2, f"scales{number}", scales)
        else:
            self.inputs.append("")
            self.add(3, f"sizes{number}", sizes)
            if "axes" in self.attributes and random.random() < 0.4:
                policy = random.choice(["not_larger", "not_smaller"])
                self.attributes["keep_aspect_ratio_policy"] = str(policy)
        self.node = helper.make_node("Resize", self.inputs, [f"y{number}"], f"resize{number}",
                                     **self.attributes)
        self.said = f"{shape} {self.attributes} {[v.tolist() for v in self.initializers.values()]}"
        # ONNX Runtime extrapolates this layout as if channels were not the last axis, so it is skipped.
        self.is_last = first == 1 and rank == 4

    def add(self, place, name, value):
        self.inputs[place] = name
        self.initializers[name] = value


def draw(options, random):
    """Random nodes that onnxruntime runs, by input shape."""
    drawn = collections.defaultdict(list)
    inputs = {}
    shapes = ((1, 2, 7, 5), (2, 3, 6, 9), (1, 1, 4, 14), (7,), (14,), (5, 7), (2, 3, 7), (1, 2, 5, 6, 7))
    for number in range(options.nodes):
        shape = shapes[random.integers(len(shapes))]
        inputs.setdefault(shape, random.standard_normal(shape).astype(numpy.float32))
        one = Drawn(random, number, shape)
        try:
            model = make_model([one.node], shape, one.initializers)
            one.expected = session(model).run(None, {"x": inputs[shape]})[0]
        except Exception:  # pylint: disable=broad-except
            continue
        if not (one.crops and one.is_last):
            drawn[shape].append(one)
    return drawn, inputs


def run(options, folder, group, x):
    model, outputs = (os.path.join(folder, name) for name in ("model.onnx", "outputs.npz"))
    initializers = {name: value for one in group for name, value in one.initializers.items()}
    onnx.save(make_model([one.node for one in group], x.shape, initializers), model)
    numpy.save(os.path.join(folder, "x.npy"), x)
    if os.path.exists(outputs):
        os.remove(outputs)
    done = subprocess.run([options.mscgym, "run", model, "--input", f"x={folder}/x.npy", "--output", outputs,
                           "--repeat", "0", "--quiet", "--device", options.device],
                          capture_output=True, text=True)
    return dict(numpy.load(outputs)) if done.returncode == 0 else done.stderr.strip()


def check_nodes(options, folder):
    n_wrong = n_run = 0
    drawn, inputs = draw(options, numpy.random.default_rng(options.seed))
    for shape, nodes in drawn.items():
        for first in range(0, len(nodes), A_MODEL):
            group = nodes[first:first + A_MODEL]
            found = run(options, folder, group, inputs[shape])
            if isinstance(found, str):
                print(f"refused: {found}")
                n_wrong += len(group)
                continue
            for one in group:
                got = found[one.node.output[0]]
                n_run += 1
                if got.shape != one.expected.shape or not numpy.allclose(
                        got, one.expected, TOLERANCE, TOLERANCE):
                    print(f"differs: {one.said}")
                    n_wrong += 1
    print(f"{n_run} nodes of {options.nodes} beside onnxruntime, {n_wrong} wrong")
    return n_wrong == 0 and n_run > options.nodes / 4


# ---- Quantised ---------------------------------------------------------------------------------


def chain(random, attributes, scales):
    """Convolution, Resize, convolution."""
    weights = {"w": random.standard_normal((4, 3, 3, 3)).astype(numpy.float32),
               "v": random.standard_normal((2, 4, 1, 1)).astype(numpy.float32),
               "s": numpy.array([1, 1, *scales], numpy.float32)}
    nodes = [helper.make_node("Conv", ["x", "w"], ["t"]),
             helper.make_node("Resize", ["t", "", "s"], ["r"], "resize", **attributes),
             helper.make_node("Conv", ["r", "v"], ["y"])]
    return make_model(nodes, ["n", 3, 11, 9], weights)


def check_quantized(options, folder):
    random = numpy.random.default_rng(options.seed)
    samples = random.standard_normal((24, 3, 11, 9)).astype(numpy.float32)
    numpy.savez(os.path.join(folder, "samples.npz"), x=samples)
    is_right = True
    cases = [({"mode": mode, "coordinate_transformation_mode": coordinates}, scales)
             for mode in ("nearest", "linear", "cubic")
             for coordinates in ("half_pixel", "align_corners", "asymmetric")
             for scales in ((0.5, 0.5), (1.7, 1.3), (0.7, 1.6))]
    cases += [({"mode": mode, "antialias": 1, "coordinate_transformation_mode": "pytorch_half_pixel"},
               scales) for mode in ("linear", "cubic") for scales in ((0.5, 0.6), (2.0, 1.4))]
    here = os.path.dirname(os.path.abspath(__file__))
    helpers = {"helper": f"{sys.executable} {here}/../../tools/mscgym-runtime", "none": "no/such/helper"}
    for attributes, scales in cases:
        model, written = os.path.join(folder, "chain.onnx"), os.path.join(folder, "written.onnx")
        onnx.save(chain(random, attributes, scales), model)
        truth = session(model).run(None, {"x": samples})[0]
        for said, command in helpers.items():
            done = subprocess.run([options.mscgym, "quantize", model, "--inputs", f"{folder}/samples.npz",
                                   "-o", written], capture_output=True, text=True,
                                  env=dict(os.environ, MSCGYM_RUNTIME=command))
            name = f"{attributes} {scales} {said}"
            if done.returncode != 0:
                print(f"quantize ends with {done.returncode}: {name}: {done.stderr.strip()}")
                is_right = False
                continue
            try: # at its default optimisation level, as users load it
                quantized = onnxruntime.InferenceSession(written, providers=["CPUExecutionProvider"])
                got = quantized.run(None, {"x": samples})[0]
            except Exception as error:  # pylint: disable=broad-except
                print(f"onnxruntime refuses what was written: {name}: {str(error).splitlines()[-1]}")
                is_right = False
                continue
            off = numpy.linalg.norm(got - truth) / numpy.linalg.norm(truth)
            if not off < 0.05 or "itself differs" in done.stdout:
                print(f"off by {off:.3g}: {name}\n{done.stdout}")
                is_right = False
    print(f"{len(cases)} models quantised, with and without the helper")
    return is_right


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("mscgym")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--nodes", type=int, default=1500)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    options.mscgym = os.path.abspath(options.mscgym)
    onnxruntime.set_default_logger_severity(4)
    with tempfile.TemporaryDirectory() as folder:
        is_right = check_nodes(options, folder)
        is_right = check_quantized(options, folder) and is_right
    sys.exit(0 if is_right else 1)


if __name__ == "__main__":
    main()
