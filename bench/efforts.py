#!/usr/bin/env python3
"""CPU time and loss of `mscgym quantize` by effort, beside ONNX Runtime's quantize_static.

    efforts.py MSCGYM [--models NAME,…] [--efforts fast,default] [--before MSCGYM] [--folder DIR] [--json FILE]

Both get the same samples. CPU time is of the user and the system, of one thread, in one process
each, without the time to start Python. The loss is the mean squared difference of the outputs to
those of the float model, relative to their mean square, on other samples than those both were given,
as ONNX Runtime computes it. Networks with random weights, and random samples, are made in --folder if
they are not there. ocr-rec is the network of scripts/fetch-models; its samples are rendered lines of
text. With --before, the same is measured of an older mscgym, whose `quantize` has no efforts.
"""
import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

import common  # noqa: F401: where model_inputs is

SAMPLES, UNSEEN, BATCH = 64, 64, 16


class Network:
    """A graph of one input and one output under construction."""

    def __init__(self, shape, seed=0):
        self.random = numpy.random.default_rng(seed)
        self.shape, self.nodes, self.weights = shape, [], []

    def weight(self, *shape, fan=None, array=None):
        name = f"weight{len(self.weights)}"
        if array is None:
            array = self.random.standard_normal(shape, numpy.float32) * numpy.sqrt(2 / fan, dtype=numpy.float32)
        self.weights.append(numpy_helper.from_array(array, name))
        return name

    def add(self, op, *inputs, **attributes):
        out = f"{op.lower()}{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, list(inputs), [out], name=out, **attributes))
        return out

    def bias(self, n):
        return self.weight(array=self.random.uniform(-.1, .1, n).astype(numpy.float32))

    def conv(self, x, channels, out, kernel, stride=1, groups=1, active=None):
        weight = self.weight(out, channels // groups, kernel, kernel, fan=channels // groups * kernel ** 2)
        x = self.add("Conv", x, weight, self.bias(out), kernel_shape=[kernel] * 2, strides=[stride] * 2,
                     pads=[kernel // 2] * 4, group=groups)
        if active == "Clip":
            return self.add("Clip", x, self.weight(array=numpy.float32(0)), self.weight(array=numpy.float32(6)))
        return self.add(active, x) if active else x

    def linear(self, x, channels, out, fan=None):
        return self.add("Add", self.add("MatMul", x, self.weight(channels, out, fan=fan or 2 * channels)),
                        self.bias(out))

    def save(self, path, output):
        graph = helper.make_graph(
            self.nodes, "bench", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", *self.shape])],
            [helper.make_tensor_value_info(output, TensorProto.FLOAT, None)], self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        onnx.save(onnx.shape_inference.infer_shapes(model), path)


def classifier(net, x, channels):
    x = net.add("Flatten", net.add("GlobalAveragePool", x))
    return net.add("Gemm", x, net.weight(1000, channels, fan=channels), net.bias(1000), transB=1)


def resnet18(path):
    net = Network((3, 224, 224))
    x = net.add("MaxPool", net.conv("x", 3, 64, 7, 2, active="Relu"), kernel_shape=[3, 3], strides=[2, 2],
                pads=[1] * 4)
    channels = 64
    for out, stride in ((64, 1), (64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), (512, 1)):
        y = net.conv(net.conv(x, channels, out, 3, stride, active="Relu"), out, out, 3)
        same = channels == out and stride == 1
        x = net.add("Relu", net.add("Add", y, x if same else net.conv(x, channels, out, 1, stride)))
        channels = out
    net.save(path, classifier(net, x, channels))


def mobilenet_v2(path):
    net = Network((3, 224, 224))
    x, channels = net.conv("x", 3, 32, 3, 2, active="Clip"), 32
    for wider, out, n, stride in ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1),
                                  (6, 160, 3, 2), (6, 320, 1, 1)):
        for i in range(n):
            wide = channels * wider
            y = net.conv(x, channels, wide, 1, active="Clip") if wider > 1 else x
            y = net.conv(y, wide, wide, 3, stride if i == 0 else 1, groups=wide, active="Clip")
            y = net.conv(y, wide, out, 1)
            x = net.add("Add", x, y) if i > 0 else y
            channels = out
    net.save(path, classifier(net, net.conv(x, channels, 1280, 1, active="Clip"), 1280))


def bert(path, layers=4, width=384, heads=6, length=128):
    net = Network((length, width))

    def split(x):
        shape = net.weight(array=numpy.array([0, 0, heads, width // heads]))
        return net.add("Transpose", net.add("Reshape", x, shape), perm=[0, 2, 1, 3])

    def normal(x):
        return net.add("LayerNormalization", x, net.weight(array=numpy.ones(width, numpy.float32)),
                       net.bias(width), axis=-1)

    x = normal("x")
    for _ in range(layers):
        q, k, v = (split(net.linear(x, width, width)) for _ in range(3))
        scores = net.add("MatMul", q, net.add("Transpose", k, perm=[0, 1, 3, 2]))
        scores = net.add("Mul", scores, net.weight(array=numpy.float32((width // heads) ** -.5)))
        y = net.add("Transpose", net.add("MatMul", net.add("Softmax", scores, axis=-1), v), perm=[0, 2, 1, 3])
        y = net.add("Reshape", y, net.weight(array=numpy.array([0, 0, width])))
        x = normal(net.add("Add", x, net.linear(y, width, width)))
        y = net.linear(x, width, 4 * width)
        y = net.add("Mul", y, net.add("Sigmoid", net.add("Mul", y, net.weight(array=numpy.float32(1.702)))))
        x = normal(net.add("Add", x, net.linear(y, 4 * width, width)))
    net.save(path, net.linear(x, width, 32))


def mlp(path, width, layers=4):
    net = Network((width,))
    x = "x"
    for _ in range(layers):
        x = net.add("Relu", net.linear(x, width, width, fan=width))
    net.save(path, net.linear(x, width, 100))


def fetched(path):
    import model_inputs
    shutil.copy(model_inputs.model_path(os.path.basename(path).removesuffix(".onnx")), path)


NETWORKS = {"resnet18": resnet18, "mobilenet_v2": mobilenet_v2, "bert": bert,
            "mlp-25m": lambda path: mlp(path, 2500), "mlp-100m": lambda path: mlp(path, 5000),
            "ocr-rec": fetched}


def random_samples(path):
    shape = [d.dim_value for d in onnx.load(path).graph.input[0].type.tensor_type.shape.dim[1:]]
    random = numpy.random.default_rng(1)
    for n in (SAMPLES, UNSEEN):
        x = random.standard_normal((n, *shape), numpy.float32)
        # neighbours in a picture resemble each other
        if len(shape) == 3:
            for axis in (2, 3):
                x = sum(numpy.roll(x, i, axis) for i in range(4)) / 2
        yield x


def lines_of_text(_):
    import methods_data
    yield methods_data.calibration("ocr-rec", 0)[:SAMPLES]
    yield methods_data.validation("ocr-rec")[:UNSEEN]


def make(folder, name):
    """The paths of a network, of the samples for both, and of other samples."""
    paths = [os.path.join(folder, name + end) for end in (".onnx", ".npz", "-unseen.npz")]
    if not all(map(os.path.exists, paths)):
        NETWORKS[name](paths[0])
        samples = lines_of_text if name == "ocr-rec" else random_samples
        for path, x in zip(paths[1:], samples(paths[0])):
            numpy.savez(path, x=x)
    return paths


def cpu_seconds(command):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


STATIC = """
import resource, sys, numpy
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static
model, samples, out, batch = *sys.argv[1:4], int(sys.argv[4])
x = numpy.load(samples)["x"]
class Reader(CalibrationDataReader):
    def __init__(self):
        self.batches = iter([{"x": x[i:i + batch]} for i in range(0, len(x), batch)])
    def get_next(self):
        return next(self.batches, None)
before = resource.getrusage(resource.RUSAGE_SELF)
quantize_static(model, out, Reader(), per_channel=True, quant_format=QuantFormat.QDQ, weight_type=QuantType.QInt8)
after = resource.getrusage(resource.RUSAGE_SELF)
print(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
"""


def static_seconds(model, samples, out):
    said = subprocess.run([sys.executable, "-c", STATIC, model, samples, out, str(BATCH)], check=True,
                          stdout=subprocess.PIPE, text=True).stdout
    return float(said.split()[-1])


def outputs(model, x):
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model, options, ["CPUExecutionProvider"])
    return numpy.concatenate([session.run(None, {"x": x[i:i + 1]})[0] for i in range(len(x))]).astype(float)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("mscgym")
    parser.add_argument("--models", default=",".join(NETWORKS))
    parser.add_argument("--efforts", default="fast,default,best")
    parser.add_argument("--folder", default=os.path.join(tempfile.gettempdir(), "mscgym-efforts"))
    parser.add_argument("--static", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--before", help="an older mscgym")
    parser.add_argument("--json", help="write the results to this file")
    given = parser.parse_args()
    rows = []
    os.makedirs(given.folder, exist_ok=True)
    print("| network | by | CPU s | ratio | loss |\n|---|---|---|---|---|", flush=True)
    for name in given.models.split(","):
        model, samples, unseen = make(given.folder, name)
        x = numpy.load(unseen)["x"]
        truth = outputs(model, x)
        out = os.path.join(given.folder, name + "-out.onnx")
        static = float("nan")

        def tell(by, seconds):
            loss = numpy.mean((outputs(out, x) - truth) ** 2) / numpy.mean(truth ** 2)
            print(f"| {name} | {by} | {seconds:.2f} | {seconds / static:.2f} | {loss:.3g} |", flush=True)
            rows.append({"network": name, "by": by, "cpu_s": seconds, "loss": loss})

        if given.static:
            static = static_seconds(model, samples, out)
            tell("quantize_static", static)
        options = [model, "--inputs", samples, "-o", out, "--quiet", "--threads", "1"]
        for effort in filter(None, given.efforts.split(",")):
            tell(effort, cpu_seconds([given.mscgym, "quantize", *options, "--effort", effort]))
        if given.before:
            tell("before", cpu_seconds([given.before, "quantize", *options]))
    if given.json:
        with open(given.json, "w") as file:
            json.dump({"machine": common.machine(), "version": common.version(given.mscgym),
                       "samples": SAMPLES, "unseen": UNSEEN, "rows": rows}, file, indent=1)
            file.write("\n")


if __name__ == "__main__":
    main()
