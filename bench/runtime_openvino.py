#!/usr/bin/env python3
"""Uniform 8 bits in OpenVINO, compared with the float model and NNCF's nncf.quantize.

    runtime_openvino.py MSCGYM MODEL... [--samples N] [--rounds N] [--presets A,B]
                        [--clock wall|process] [--json FILE]

MODEL is a name of scripts/fetch-models, or a file with NAME.inputs.npz next to it. It compares the
loss that mscgym predicts with that of the exported model in OpenVINO, on the same samples; counts
the convolutions and products that its executed graph computes in integers; and measures latency at
batch 1 on one thread in one stream, in interleaved rounds, compared with the float model and NNCF's
models. All are compiled with INFERENCE_PRECISION_HINT=f32. NNCF gets the same samples and its
presets performance (its default: symmetric activations), mixed (activations with a zero point) and
transformer (mixed with model_type TRANSFORMER). Its models are saved as IR with 32-bit floats, and
loaded like mscgym's.
"""
import argparse
import contextlib
import logging
import os
import statistics
import tempfile

import nncf
import numpy
import onnx
import openvino

import common
import delivered

PRESETS = {"performance": {}, "mixed": {"preset": nncf.QuantizationPreset.MIXED},
           "transformer": {"model_type": nncf.ModelType.TRANSFORMER}}
SETTINGS = {"INFERENCE_NUM_THREADS": 1, "NUM_STREAMS": 1, "PERFORMANCE_HINT": "LATENCY",
            "INFERENCE_PRECISION_HINT": "f32"}
# Layer types in an executed graph that are sums of products.
PRODUCTS = ("Convolution", "Deconvolution", "FullyConnected", "MatMul")
# The tensors to compare, for models with outputs after a discontinuity or inputs passed on as outputs.
COMPARED = {"gpt": ["scores"],
            "mlsd-tiny": ["offsets", "WireFrameModel_with_alpha/Decoder/Sigmoid_4:0"]}


class Network:
    """A model in OpenVINO, compiled for the shapes of one sample."""

    def __init__(self, path, sample):
        core = openvino.Core()
        model = core.read_model(path)
        model.reshape({name: list(array.shape) for name, array in sample.items()})
        self.compiled = core.compile_model(model, "CPU", SETTINGS)
        self.request = self.compiled.create_infer_request()

    def bind(self, sample):
        for name, array in sample.items():
            self.request.set_tensor(name, openvino.Tensor(numpy.ascontiguousarray(array)))

    def run(self):
        self.request.infer()

    def outputs(self, sample, names):
        self.bind(sample)
        self.run()
        return [self.request.get_tensor(name).data.astype(numpy.float64) for name in names]

    def products(self):
        """The number of convolutions and products that run in integers, and of all of them."""
        nodes = [node.get_rt_info() for node in self.compiled.get_runtime_model().get_ops()]
        kernels = [node["primitiveType"].astype(str) for node in nodes
                   if node["layerType"].astype(str) in PRODUCTS]
        return sum(kernel.lower().endswith("i8") for kernel in kernels), len(kernels)


def loss(base, other, samples, names):
    """Mean over outputs of mean (y - z)^2 / mean y^2: mscgym's `mse`."""
    wrong, power = numpy.zeros(len(names)), numpy.zeros(len(names))
    for sample in samples:
        for i, (y, z) in enumerate(zip(base.outputs(sample, names), other.outputs(sample, names))):
            wrong[i] += ((y - z) ** 2).sum()
            power[i] += (y ** 2).sum()
    return (wrong / power).mean()


def without_dropout(model):
    """Removes Dropout in training mode, which OpenVINO refuses; some exporters write it with ratio 0."""
    dropped = {n.output[0]: n.input[0] for n in model.graph.node if n.op_type == "Dropout"}
    for node in model.graph.node:
        node.input[:] = [dropped.get(name, name) for name in node.input]
    nodes = [n for n in model.graph.node if n.op_type != "Dropout"]
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    return len(dropped) > 0


def prepare(folder, path, compared):
    """The model to be measured, and the names of the tensors to compare.

    The model is cut at these tensors if they are not outputs.
    """
    model = onnx.load(path)
    inputs = [i.name for i in model.graph.input]
    floats = [o.name for o in model.graph.output
              if o.type.tensor_type.elem_type == onnx.TensorProto.FLOAT]
    names = compared or floats
    is_cut = not all(name in floats for name in names)
    if is_cut:
        model = onnx.shape_inference.infer_shapes(model)
        model = onnx.utils.Extractor(model).extract_model(inputs, names)
    if without_dropout(model) or is_cut:
        path = os.path.join(folder, os.path.basename(path))
        onnx.save(model, path)
    return path, names


def one_by_one(path, arrays):
    """Samples in the form that the model takes: with a batch axis, or in its own shapes."""
    n_dims = {i.name: len(i.type.tensor_type.shape.dim) for i in onnx.load(path).graph.input}
    n = max(len(array) for array in arrays.values() if array.ndim > 0)
    return [{name: array[i:i + 1] if array.ndim == n_dims[name] else array[i]
             for name, array in arrays.items()} for i in range(n)]


def quantize(folder, path, samples, preset):
    """Quantises by NNCF; returns the path of the model."""
    model = openvino.Core().read_model(path)
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
        quantized = nncf.quantize(model, nncf.Dataset(samples), subset_size=len(samples),
                                  **PRESETS[preset])
    out = os.path.join(folder, preset + ".xml")
    openvino.save_model(quantized, out, compress_to_fp16=False)
    return out


def theirs(folder, path, samples, presets):
    """{preset: NNCF's network}"""
    found = {}
    for preset in presets:
        try:
            found[preset] = Network(quantize(folder, path, samples, preset), samples[0])
        except Exception as error:  # a failure to quantise is a result, too
            print(f"{os.path.basename(path)}: nncf {preset}: {' '.join(str(error).split())[:200]}")
    return found


def measure(args, model, folder):
    name = os.path.splitext(os.path.basename(model))[0]
    path, names = prepare(folder, model, COMPARED.get(name))
    arrays = delivered.samples_of(model, args.samples)
    samples = one_by_one(path, arrays)
    entry = {**delivered.UNIFORM, "env": {"choices": [{"bits": 8}], "loss_tensors": names}}
    file, said, noise = delivered.search(args.mscgym, os.path.join(folder, "uniform"), path, arrays,
                                         "openvino", 1, entry)
    base, ours = Network(path, samples[0]), Network(file, samples[0])
    nncfs = theirs(folder, path, samples, args.presets.split(","))
    found = loss(base, ours, samples, names)
    delivered.tell_loss(name, "uniform 8", said, found, noise)
    losses = {preset: loss(base, peer, samples, names) for preset, peer in nncfs.items()}
    networks = [base, ours, *nncfs.values()]
    for network in networks:
        network.bind(samples[0])
    rounds = delivered.latency([network.run for network in networks], args.rounds, args.clock)
    print(f"{name}: integer products {'%d of %d' % ours.products()}; latency / float "
          f"{delivered.quartiles(delivered.ratios(rounds, 1, 0))}")
    rows = []
    for i, (preset, peer) in enumerate(nncfs.items()):
        print(f"{name}: nncf {preset}: loss {losses[preset]:.5g}; integer products "
              f"{'%d of %d' % peer.products()}; latency / float "
              f"{statistics.median(delivered.ratios(rounds, i + 2, 0)):.3f}; ours / theirs "
              f"{delivered.quartiles(delivered.ratios(rounds, 1, i + 2))}", flush=True)
        # Rates, so that higher is better.
        rows += [common.row("openvino", name, "speed", f"nncf {preset}",
                            [(times[0] / times[1], times[0] / times[i + 2]) for times in rounds]),
                 common.row("openvino", name, "1 / loss", f"nncf {preset}",
                            [(1 / found, 1 / losses[preset])])]
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("mscgym", type=os.path.abspath)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--samples", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--presets", default="performance,mixed,transformer")
    parser.add_argument("--clock", choices=delivered.CLOCKS, default="wall")
    parser.add_argument("--json")
    args = parser.parse_args()
    logging.getLogger("nncf").setLevel(logging.ERROR)
    print(f"{common.machine()}; {common.version(args.mscgym)}; openvino "
          f"{openvino.__version__}, nncf {nncf.__version__}")
    rows = []
    for model in args.models:
        if not os.path.exists(model) and not common.available(model):
            continue
        path = model if os.path.exists(model) else common.model_path(model)
        with tempfile.TemporaryDirectory() as folder:
            rows += measure(args, path, folder)
    if args.json:
        common.save_rows(args.json, rows)


if __name__ == "__main__":
    main()
