"""onnxruntime's quantize_static with its best settings on x86: QDQ pairs, unsigned activations,
weights per channel, after quant_pre_process.
"""
import os

import onnx
import onnx.version_converter
from onnxruntime.quantization import CalibrationMethod, QuantFormat, QuantType, quantize_static
from onnxruntime.quantization.calibrate import CalibrationDataReader
from onnxruntime.quantization.shape_inference import quant_pre_process

METHODS = {"minmax": CalibrationMethod.MinMax, "entropy": CalibrationMethod.Entropy,
           "percentile": CalibrationMethod.Percentile}


class Reader(CalibrationDataReader):
    def __init__(self, samples):
        n = len(next(iter(samples.values())))
        self.rows = iter([{k: v[i:i + 1] for k, v in samples.items()} for i in range(n)])

    def get_next(self):
        return next(self.rows, None)


def prepare(model, ready, folder):
    """Prepares the input of quantize_static. Per-channel scales need opset 13."""
    loaded = onnx.load(model)
    if max(o.version for o in loaded.opset_import if o.domain in ("", "ai.onnx")) < 13:
        model = os.path.join(folder, "converted.onnx")
        onnx.save(onnx.version_converter.convert_version(loaded, 17), model)
    quant_pre_process(model, ready, skip_symbolic_shape=True)


def quantize(folder, model, samples, method):
    """Quantises by one calibration method; returns the path of the model."""
    ready = os.path.join(folder, "ready.onnx")
    if not os.path.exists(ready):
        prepare(model, ready, folder)
    path = os.path.join(folder, method + ".onnx")
    quantize_static(ready, path, Reader(samples), quant_format=QuantFormat.QDQ, per_channel=True,
                    activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8,
                    calibrate_method=METHODS[method])
    return path
