"""onnxruntime's quantize_static (see compress.py); needs onnxruntime."""
import onnx
import onnxruntime
from onnxruntime.quantization import QuantFormat, QuantType, quantize_static

import compress
import static

WEIGHTS = {8: QuantType.QInt8, 4: QuantType.QInt4}


def main():
    job = compress.Job(__doc__)
    if job.weight_bits not in WEIGHTS or job.activation_bits != 8 or job.group:
        return
    model = onnx.load(job.model)
    others = job.others(model)
    onnx.save(model, job.model)

    def quantize(method, path):
        quantize_static(job.model, path, static.Reader(job.calibration),
                        quant_format=QuantFormat.QDQ, per_channel=True,
                        activation_type=QuantType.QUInt8, weight_type=WEIGHTS[job.weight_bits],
                        calibrate_method=static.METHODS[method],
                        op_types_to_quantize=list(compress.JOINTS),
                        nodes_to_exclude=others,
                        extra_options={"OpTypesToExcludeOutputQuantization": list(compress.JOINTS),
                                       "QuantizeBias": False, "ForceQuantizeNoInputCheck": True})

    job.run("onnxruntime " + onnxruntime.__version__, list(static.METHODS), quantize)


if __name__ == "__main__":
    main()
