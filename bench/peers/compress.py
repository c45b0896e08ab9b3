"""Shared parts of the programs compress_TOOL.py. Each quantises the inputs of convolutions and
products, and their weights per channel, with every preset of its tool that supports the bits:

    PYTHON compress_TOOL.py MODEL CALIBRATION.npy VALIDATION.npy WEIGHT_BITS ACTIVATION_BITS FOLDER

It prints a line of JSON for each preset as soon as it has finished: {preset, version, model: PATH};
or {preset, version, outputs: PATH}, an .npz with the outputs of the tool's own simulation for the
validation samples, if its model cannot be written as ONNX; or {preset, version, failed: WHY}. The
head of each program names the packages that it needs.
"""
import contextlib
import json
import os
import sys

import numpy

JOINTS = ("Conv", "ConvTranspose", "Gemm", "MatMul")


class Job:
    def __init__(self, doc):
        if len(sys.argv) != 7:
            sys.exit(doc)
        self.model, calibration, validation = sys.argv[1:4]
        self.calibration, self.validation = numpy.load(calibration), numpy.load(validation)
        self.weight_bits, self.activation_bits = int(sys.argv[4]), int(sys.argv[5])
        self.folder = sys.argv[6]

    def batches(self, samples, name, size):
        """The samples in batches: [{name: samples}]."""
        return [{name: samples[i:i + size]} for i in range(0, len(samples), size)]

    def run(self, version, presets, quantize):
        """quantize(preset, path) writes a model, or returns a list of outputs."""
        for preset in presets:
            line = {"preset": preset, "version": version}
            path = os.path.join(self.folder, preset.replace(" ", "_"))
            try:
                with contextlib.redirect_stdout(sys.stderr):
                    found = quantize(preset, path + ".onnx")
                if found is None:
                    line["model"] = path + ".onnx"
                else:
                    line["outputs"] = path + ".npz"
                    numpy.savez(line["outputs"], *found)
            except Exception as error:  # the tool may raise any exception
                line["failed"] = repr(error)[:300]
            print(json.dumps(line), flush=True)
