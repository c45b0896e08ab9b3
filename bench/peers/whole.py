"""Models of 8 bits by other tools, each as its user would call it:

    PYTHON whole.py TOOL MODEL CALIBRATION.npz FOLDER

TOOL is static or dynamic (onnxruntime), onnxsim, or nncf; PYTHON has its package and onnxruntime. Prints a line
of JSON for each preset: {preset, version, model: PATH, seconds}, or {preset, version, failed: WHY}. Seconds are of
the processor.
"""
import contextlib
import json
import os
import sys
import time

import numpy
import onnx


def batches(samples, size=1):
    n = len(next(iter(samples.values())))
    return [{k: v[i:i + size] for k, v in samples.items()} for i in range(0, n, size)]


def of_static(ready, samples):
    import onnxruntime
    from onnxruntime.quantization import QuantFormat, QuantType, quantize_static

    import static

    def quantize(method, path):
        quantize_static(ready, path, static.Reader(samples), quant_format=QuantFormat.QDQ, per_channel=True,
                        activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8,
                        calibrate_method=static.METHODS[method])
    return "onnxruntime " + onnxruntime.__version__, {m: lambda path, m=m: quantize(m, path) for m in static.METHODS}


def of_dynamic(ready, _):
    import onnxruntime
    from onnxruntime.quantization import QuantType, quantize_dynamic

    def quantize(path, **options):
        quantize_dynamic(ready, path, weight_type=QuantType.QInt8, **options)
    return "onnxruntime " + onnxruntime.__version__, {
        "one scale": quantize,
        "by channel": lambda path: quantize(path, per_channel=True),
        "by channel, weights of products": lambda path: quantize(
            path, per_channel=True, op_types_to_quantize=["MatMul", "Gemm"],
            extra_options={"MatMulConstBOnly": True})}


def of_onnxsim(ready, samples):
    import onnxsim
    data = batches(samples)

    def smooth(_):
        return onnxsim.quantize_static(onnxsim.apply_smoothquant(ready, data), data)
    makers = {
        "dynamic": lambda: onnxsim.quantize_dynamic(ready),
        "dynamic, fused": lambda: onnxsim.quantize_dynamic_matmul_integer_to_float(ready),
        "static": lambda: onnxsim.quantize_static(ready, data),
        "static, smooth": lambda: smooth(ready),
    }
    return "onnxsim " + onnxsim.__version__.lstrip("v"), {
        name: lambda path, make=make: onnx.save(make(), path) for name, make in makers.items()}


def of_nncf(ready, samples):
    import logging

    import nncf
    nncf.set_log_level(logging.ERROR)
    model, data = onnx.load(ready), nncf.Dataset(batches(samples))

    def quantize(path, **options):
        onnx.save(nncf.quantize(model, data, subset_size=len(next(iter(samples.values()))), **options), path)
    return "nncf " + nncf.__version__, {
        "default": quantize, "transformer": lambda path: quantize(path, model_type=nncf.ModelType.TRANSFORMER)}


TOOLS = {"static": of_static, "dynamic": of_dynamic, "onnxsim": of_onnxsim, "nncf": of_nncf}


def main(tool, model, calibration, folder):
    with numpy.load(calibration) as file:
        samples = dict(file)
    version, presets = TOOLS[tool](model, samples)
    for preset, quantize in presets.items():
        line = {"preset": preset, "version": version}
        path = os.path.join(folder, f"{tool}-{preset}.onnx".replace(" ", "_"))
        began = time.process_time()
        try:
            with contextlib.redirect_stdout(sys.stderr):
                quantize(path)
            line.update(model=path, seconds=time.process_time() - began)
        except Exception as error:  # the tool may raise any exception
            line["failed"] = repr(error)[:300]
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
