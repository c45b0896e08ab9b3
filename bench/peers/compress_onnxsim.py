"""onnxsim (see compress.py); needs onnxsim >= 0.8 and onnxruntime. Quantises linear layers only. Weights of 4 bits
are in groups of 32, and need opset 21; with them, activations are float, or of 4 bits with a scale for each token when the network runs.
"""
import onnx
import onnx.version_converter
import onnxsim

import compress

STATIC = ("minmax", "entropy", "mse", "percentile")
# Steps after quantize_weight_only_int4, with the float model and the samples.
STEPS = {
    "nearest": [],
    "gptq": [onnxsim.apply_gptq],
    "gptaq": [onnxsim.apply_gptaq],
    "qronos": [onnxsim.apply_qronos],
    "quantease": [onnxsim.apply_quantease],
    "awq": [onnxsim.apply_awq],
    "awq, gptq": [onnxsim.apply_awq, onnxsim.apply_gptq],
    "autoround": [onnxsim.apply_autoround],
}
ROTATIONS = {"quarot, gptq": onnxsim.apply_quarot_gptq, "duquant": onnxsim.apply_duquant}


def static(model, data):
    def quantize(preset, path):
        if preset == "dynamic":
            onnx.save(onnxsim.quantize_dynamic(model), path)
            return
        smooth, _, method = preset.rpartition(" ")
        source = onnxsim.apply_smoothquant(model, data) if smooth else model
        onnx.save(onnxsim.quantize_static(source, data, method=method), path)
    return ["dynamic", *STATIC, "smooth minmax", "smooth mse"], quantize


def weights(model, data):
    def quantize(preset, path):
        if preset == "hqq":
            onnx.save(onnxsim.quantize_weight_only_int4_hqq(model), path)
            return
        made = onnxsim.quantize_weight_only_int4(model)
        for step in STEPS[preset]:
            made = step(model, made, data)
        onnx.save(made, path)
    return [*STEPS, "hqq"], quantize


def rotated(model, data):
    def quantize(preset, path):
        onnx.save(ROTATIONS[preset](model, data), path)
    return list(ROTATIONS), quantize


def main():
    job = compress.Job(__doc__)
    model = onnx.load(job.model)
    if job.weight_bits < 8:
        model = onnx.version_converter.convert_version(model, 21)
    data = job.batches(job.calibration, 8)
    plans = {(8, 8, 0): lambda: static(model, data), (4, 32, 32): lambda: weights(model, data),
             (4, 4, 32): lambda: rotated(model, data)}
    if job.plan in plans:
        presets, quantize = plans[job.plan]()
        job.run("onnxsim " + onnxsim.__version__.lstrip("v"), presets, quantize)


if __name__ == "__main__":
    main()
