#!/bin/sh
# usage: random.sh PYTHON GENERATOR TEST_CONFORMANCE DEVICE
#
# Compares 300 random models with ONNX Runtime. If terms cancel, rounding errors of other
# summation orders remain, so numbers may differ by 1e-5.
set -eu
"$1" -c 'import numpy, onnx, onnxruntime' 2>/dev/null || exit 77
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
OMP_NUM_THREADS=1 "$1" "$2" "$folder" 300 1
"$3" --device "$4" --atol 1e-5 --at-least 300 "$folder"
