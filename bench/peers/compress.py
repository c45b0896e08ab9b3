"""What the programs compress_TOOL.py share. Each quantises what convolutions and products read, and the
weights of these, per channel, by every preset of its tool that knows the bits:

    PYTHON compress_TOOL.py MODEL CALIBRATION.npy VALIDATION.npy WEIGHT_BITS ACTIVATION_BITS FOLDER

and prints a line of JSON for each, as soon as it is through: {preset, version, model: PATH}, or outputs:
PATH, an .npz of what the tool's own simulation gives for the validation samples, where its model cannot
be written as ONNX; or {preset, version, failed: WHY}. Which names the package that it needs.
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
        """[{name: some samples}]"""
        return [{name: samples[i:i + size]} for i in range(0, len(samples), size)]

    def run(self, version, presets, quantize):
        """quantize(preset) returns a path of a model, or a list of outputs."""
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
            except Exception as error:  # of whatever kind: it is the tool's
                line["failed"] = repr(error)[:300]
            print(json.dumps(line), flush=True)
