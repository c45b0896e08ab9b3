"""NNCF (see compress.py); needs nncf, onnx and onnxruntime. For ONNX it has only 8 bits, and weights of 4 bits
in groups.
"""
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


WEIGHTS = {
    "symmetric": {},
    "scale estimation": {"scale_estimation": True},
    "awq, scale estimation": {"awq": True, "scale_estimation": True},
}


def compress_weights(job):
    """Weights of 4 bits in groups. NNCF leaves the first and last layer at 8 bits unless told otherwise."""
    def quantize(preset, path):
        model = onnx.load(job.model)
        options = dict(WEIGHTS[preset])
        data = nncf.Dataset(job.batches(job.calibration, 1)) if options else None
        onnx.save(nncf.compress_weights(
            model, mode=nncf.CompressWeightsMode.INT4_SYM, group_size=job.group, all_layers=True, ratio=1.0,
            ignored_scope=nncf.IgnoredScope(types=["Gather"], validate=False), dataset=data,
            subset_size=len(next(iter(job.calibration.values()))), **options), path)

    job.run("nncf " + nncf.__version__, WEIGHTS, quantize)


def main():
    nncf.set_log_level(logging.ERROR)
    job = compress.Job(__doc__)
    if job.plan[:2] == (4, 32) and job.group:
        compress_weights(job)
    if job.plan != (8, 8, 0):
        return
    model = onnx.load(job.model)
    others = job.others(model)

    def quantize(preset, path):
        options = dict(PRESETS[preset])
        outer = {key: options.pop(key) for key in ("model_type", "fast_bias_correction")
                 if key in options}
        advanced = AdvancedQuantizationParameters(overflow_fix=OverflowFix.DISABLE, **options)
        data = nncf.Dataset(job.batches(job.calibration, 1))
        quantized = nncf.quantize(
            model, data, subset_size=len(next(iter(job.calibration.values()))), preset=nncf.QuantizationPreset.MIXED,
            ignored_scope=nncf.IgnoredScope(names=others, validate=False),
            advanced_parameters=advanced, **outer)
        onnx.save(quantized, path)

    job.run("nncf " + nncf.__version__, PRESETS, quantize)


if __name__ == "__main__":
    main()
