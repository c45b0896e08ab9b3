"""onnxruntime's quantize_dynamic (see compress.py); needs onnxruntime. Quantises linear layers only."""
import onnx
import onnxruntime
from onnxruntime.quantization import QuantType, quantize_dynamic

import compress


def main():
    job = compress.Job(__doc__)
    if job.plan != (8, 8, 0) or not job.is_linear:
        return
    model = onnx.load(job.model)
    others = job.others(model)
    onnx.save(model, job.model)

    def quantize(preset, path):
        quantize_dynamic(job.model, path, weight_type=QuantType.QInt8, per_channel=preset == "by channel",
                         op_types_to_quantize=["MatMul", "Gemm"], nodes_to_exclude=others,
                         extra_options={"MatMulConstBOnly": True})

    job.run("onnxruntime " + onnxruntime.__version__, ["by channel", "one scale"], quantize)


if __name__ == "__main__":
    main()
