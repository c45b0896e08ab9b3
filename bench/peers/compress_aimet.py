"""AIMET (see compress.py); needs aimet-onnx. Measured in its simulation, because its files have only 4
and 8 bits.
"""
import json
import os

import aimet_onnx
import numpy
import onnx
from aimet_onnx import quantsim
from aimet_onnx.cross_layer_equalization import equalize_model

import compress

BATCH = 128
ITERATIONS = 1500  # per layer, of the rounding method AdaRound
# The range method, and the step before or after it. Fast presets come first.
PRESETS = {
    "tf_enhanced": ("tf_enhanced", None),
    "min_max": ("min_max", None),
    "cle": ("min_max", "cle"),
    "cle, tf_enhanced": ("tf_enhanced", "cle"),
}
FEWER_BITS = {
    **PRESETS,
    "seqmse": ("min_max", "seqmse"),
    "adaround, tf_enhanced": ("tf_enhanced", "adaround"),
    "adaround": ("min_max", "adaround"),
}


def config(folder):
    """Writes a configuration with quantisers everywhere; those of weights are symmetric and per channel."""
    path = os.path.join(folder, "config.json")
    with open(path, "w") as file:
        json.dump({"defaults": {"ops": {"is_output_quantized": "True"},
                                "params": {"is_quantized": "True", "is_symmetric": "True"},
                                "strict_symmetric": "False", "unsigned_symmetric": "False",
                                "per_channel_quantization": "True"},
                   "params": {}, "op_type": {}, "supergroups": [], "model_output": {},
                   "model_input": {"is_input_quantized": "True"}}, file)
    return path


def leave_sites(sim, job):
    """Disables all quantisers except those of the inputs of joints, or of their weights."""
    model = onnx.load(job.model)
    read = {name for node in job.joints(model) for name in node.input[:2]}
    weights = {w.name for w in model.graph.initializer}
    for name, quantizer in sim.qc_quantize_op_dict.items():
        quantizer.enabled = name in read and (job.activation_bits < 32 or name in weights)
    return sum(quantizer.enabled for quantizer in sim.qc_quantize_op_dict.values())


def main():
    job = compress.Job(__doc__)
    if job.group and job.activation_bits < 32:
        return
    presets = FEWER_BITS if job.weight_bits < 8 else PRESETS

    def quantize(preset, _):
        model = onnx.load(job.model)
        size = model.graph.input[0].type.tensor_type.shape.dim[0].dim_value or BATCH
        scheme, step = presets[preset]
        if step == "cle":
            equalize_model(model)
        with quantsim._apply_constraints(False):  # concatenations may have their own scales
            sim = quantsim.QuantizationSimModel(
                model, param_type=aimet_onnx.qtype.int(job.weight_bits),
                activation_type=aimet_onnx.qtype.int(min(job.activation_bits, 16)),
                quant_scheme=scheme, config_file=config(job.folder))
        if job.group:
            aimet_onnx.quantsim.set_blockwise_quantization_for_weights(
                sim, ("MatMul", "Gemm"), job.weight_bits, True, job.group, strict=False)
        print(preset, leave_sites(sim, job), "quantisers", flush=True)
        calibration = job.batches(job.calibration, size)
        if step == "seqmse":
            aimet_onnx.apply_seq_mse(sim, calibration)
        if step == "adaround":
            aimet_onnx.apply_adaround(sim, calibration, ITERATIONS)
        sim.compute_encodings(calibration)
        parts = [sim.session.run(None, feed)
                 for feed in job.batches(job.validation, size)]
        return [numpy.concatenate(arrays) for arrays in zip(*parts)]

    job.run("aimet-onnx " + aimet_onnx.__version__, presets, quantize)


if __name__ == "__main__":
    main()
