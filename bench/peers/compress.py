"""Shared parts of the programs compress_TOOL.py. Each quantises the inputs of convolutions and
products, and their weights, with every preset of its tool that supports the bits:

    PYTHON compress_TOOL.py MODEL CALIBRATION.npz VALIDATION.npz WEIGHT_BITS ACTIVATION_BITS GROUP FOLDER [--linear]

The .npz files have an array for each input. GROUP is the number of elements of a weight that share a
scale; 0: an output channel. Activations of 32 bits remain float. With --linear, products of two
activations remain float. Programs for torch read networks of scripts/models/export_transformers.py from
the .pt next to MODEL.

It prints a line of JSON for each preset as soon as it has finished: {preset, version, seconds, model: PATH};
or {preset, version, outputs: PATH}, an .npz with the outputs of the tool's own simulation for the
validation samples, if its model cannot be written as ONNX; or {preset, version, failed: WHY}. The
head of each program names the packages that it needs.
"""
import contextlib
import json
import os
import sys
import time

import numpy

JOINTS = ("Conv", "ConvTranspose", "Gemm", "MatMul")


class Job:
    def __init__(self, doc):
        if len(sys.argv) not in (8, 9):
            sys.exit(doc)
        self.model, calibration, validation = sys.argv[1:4]
        self.calibration, self.validation = (dict(numpy.load(path)) for path in (calibration, validation))
        self.weight_bits, self.activation_bits, self.group = map(int, sys.argv[4:7])
        self.plan = (self.weight_bits, self.activation_bits, self.group)
        self.folder = sys.argv[7]
        self.is_linear = sys.argv[8:] == ["--linear"]

    def batches(self, samples, size):
        """The samples in batches: [{input: array}]."""
        n = len(next(iter(samples.values())))
        return [{k: v[i:i + size] for k, v in samples.items()} for i in range(0, n, size)]

    def joints(self, model):
        """The nodes of a model in ONNX whose inputs are quantised."""
        constants = {w.name for w in model.graph.initializer}
        constants |= {node.output[0] for node in model.graph.node if node.op_type == "Constant" or
                      node.op_type == "Transpose" and node.input[0] in constants}
        return [node for node in model.graph.node if node.op_type in JOINTS and
                (not self.is_linear or node.input[1] in constants)]

    def others(self, model):
        """The names of the other nodes; nodes without a name get one."""
        kept = {id(node) for node in self.joints(model)}
        for i, node in enumerate(model.graph.node):
            node.name = node.name or f"node_{i}"
        return [node.name for node in model.graph.node if id(node) not in kept]

    def run(self, version, presets, quantize):
        """quantize(preset, path) writes a model, or returns a list of outputs."""
        for preset in presets:
            line = {"preset": preset, "version": version}
            began = time.process_time()
            path = os.path.join(self.folder, preset.replace(" ", "_"))
            try:
                with contextlib.redirect_stdout(sys.stderr):
                    found = quantize(preset, path + ".onnx")
                line["seconds"] = time.process_time() - began
                if found is None:
                    line["model"] = path + ".onnx"
                else:
                    line["outputs"] = path + ".npz"
                    numpy.savez(line["outputs"], *found)
            except Exception as error:  # the tool may raise any exception
                line["failed"] = repr(error)[:300]
            print(json.dumps(line), flush=True)
