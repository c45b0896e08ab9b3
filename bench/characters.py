#!/usr/bin/env python3
"""Prints the share of characters that a text recogniser still reads like its float model, in percent.

    characters.py FLOAT INPUTS MODEL

The models have one output of scores [samples, steps, classes]; class 0 means no character. INPUTS
is an .npy for the only input. The share is the last line, so that a search's `command` can use it:

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
