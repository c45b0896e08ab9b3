"""NNCF (see compress.py); needs nncf, onnx and onnxruntime. For ONNX it has only 8 bits."""
import logging

import nncf
import onnx
from nncf.quantization.advanced_parameters import AdvancedQuantizationParameters, OverflowFix
from nncf.quantization.range_estimator import RangeEstimatorParametersSet

import compress

MINMAX = {"activations_range_estimator_params": RangeEstimatorParametersSet.MINMAX}
HISTOGRAM = {"activations_range_estimator_params": RangeEstimatorParametersSet.HISTOGRAM}
WITHOUT = {"disable_bias_correction": True}
# Presets, named after what differs from activations with zero points and fast bias correction. The
# preset that usually loses least comes first. Without an estimator, NNCF uses means over samples of
# the least and greatest values, which cuts ranges.
PRESETS = {
    "histogram": HISTOGRAM,
    "mean of minmax, transformer": {"model_type": nncf.ModelType.TRANSFORMER},
    "minmax": MINMAX,
    "minmax, without bias correction": {**MINMAX, **WITHOUT},
    "histogram, without bias correction": {**HISTOGRAM, **WITHOUT},
    "mean of minmax": {},
    "mean of minmax, without bias correction": WITHOUT,
    "minmax, accurate bias correction": {**MINMAX, "fast_bias_correction": False},
    "mean of minmax, accurate bias correction": {"fast_bias_correction": False},
}


def main():
    nncf.set_log_level(logging.ERROR)
    job = compress.Job(__doc__)
    if (job.weight_bits, job.activation_bits) != (8, 8):
        return
    model = onnx.load(job.model)
    name = model.graph.input[0].name
    others = sorted({node.op_type for node in model.graph.node} - set(compress.JOINTS))

    def quantize(preset, path):
        options = dict(PRESETS[preset])
        outer = {key: options.pop(key) for key in ("model_type", "fast_bias_correction")
                 if key in options}
        advanced = AdvancedQuantizationParameters(overflow_fix=OverflowFix.DISABLE, **options)
        data = nncf.Dataset([{name: job.calibration[i:i + 1]} for i in range(len(job.calibration))])
        quantized = nncf.quantize(
            model, data, subset_size=len(job.calibration), preset=nncf.QuantizationPreset.MIXED,
            ignored_scope=nncf.IgnoredScope(types=others, validate=False),
            advanced_parameters=advanced, **outer)
        onnx.save(quantized, path)

    job.run("nncf " + nncf.__version__, PRESETS, quantize)


if __name__ == "__main__":
    main()
