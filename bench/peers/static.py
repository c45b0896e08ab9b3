"""onnxruntime's own quantize_static, given what it does best with on x86: pairs, unsigned
activations, weights per channel, after quant_pre_process."""
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
    """What quantize_static is to be given. Scales per channel need operator set 13."""
    loaded = onnx.load(model)
    if max(o.version for o in loaded.opset_import if o.domain in ("", "ai.onnx")) < 13:
        model = os.path.join(folder, "converted.onnx")
        onnx.save(onnx.version_converter.convert_version(loaded, 17), model)
    quant_pre_process(model, ready, skip_symbolic_shape=True)


def quantize(folder, model, samples, method):
    """The path of the quantised model."""
    ready = os.path.join(folder, "ready.onnx")
    if not os.path.exists(ready):
        prepare(model, ready, folder)
    path = os.path.join(folder, method + ".onnx")
    quantize_static(ready, path, Reader(samples), quant_format=QuantFormat.QDQ, per_channel=True,
                    activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8,
                    calibrate_method=METHODS[method])
    return path
