#!/usr/bin/env python3
"""How many of the characters that a text recogniser reads stay what they are: characters.py FLOAT INPUTS
MODEL, models with one output of scores [samples, steps, classes], class 0 being none. INPUTS is an .npy
for the only input. The last line is the share in percent, as a search's `command` wants it:

    "command": {"argv": ["bench/characters.py", "ocr-rec.onnx", "lines.npy", "{model}"], "maximise": true}
"""
import os
import sys

import numpy

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "peers"))
import outputs as ort  # noqa: E402


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    truth, samples, model = sys.argv[1], numpy.load(sys.argv[2]), sys.argv[3]
    print(100 * ort.agreement(ort.outputs(truth, samples, 8)[0], ort.outputs(model, samples, 8)[0]))


if __name__ == "__main__":
    main()
