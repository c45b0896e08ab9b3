"""Brevitas, as compress.py says, with what its example of post-training quantisation does; brevitas, onnx2torch.
Models whose products onnx2torch does not make modules of are refused; its simulation in PyTorch is measured."""
import importlib.metadata

import numpy
import onnx
import onnx2torch
import torch
from brevitas_examples.imagenet_classification.ptq import ptq_common

import compress

BATCH = 128
# How ranges are found, and what is done after; what mostly loses least comes first.
PRESETS = {
    "qronos": ("stats", ["qronos"]),
    "gpfq": ("stats", ["gpfq"]),
    "qronos, bias correction": ("stats", ["qronos", "bias"]),
    "gpfq, bias correction": ("stats", ["gpfq", "bias"]),
    "mse": ("mse", []),
    "stats, bias correction": ("stats", ["bias"]),
    "stats": ("stats", []),
    "gptq": ("stats", ["gptq"]),
}


def convert(path, joints):
    model = onnx2torch.convert(onnx.load(path)).eval()
    modules = sum(isinstance(module, (torch.nn.Conv1d, torch.nn.Conv2d, torch.nn.Linear,
                                      torch.nn.ConvTranspose2d)) for module in model.modules())
    if modules != joints:
        raise ValueError(f"{joints} joints, of which {modules} are modules")
    return model


def main():
    job = compress.Job(__doc__)
    joints = sum(node.op_type in compress.JOINTS for node in onnx.load(job.model).graph.node)

    def quantize(preset, _):
        torch.manual_seed(0)
        method, steps = PRESETS[preset]
        model = ptq_common.quantize_model(
            convert(job.model, joints), "layerwise", weight_bit_width=job.weight_bits,
            act_bit_width=job.activation_bits, bias_bit_width=None,
            weight_quant_granularity="per_channel", act_quant_percentile=99.99,
            act_quant_type="asym", scale_factor_type="float_scale", quant_format="int",
            layerwise_first_last_bit_width=job.weight_bits, weight_param_method=method,
            act_param_method=method)
        data = [(torch.from_numpy(batch["x"].copy()), None)
                for batch in job.batches(job.calibration, "x", BATCH)]
        with torch.no_grad():
            ptq_common.calibrate(data, model)
            model(data[0][0])  # weights find their scales
            for step in steps:
                if step == "bias":
                    ptq_common.apply_bias_correction(data, model)
                elif step == "gptq":
                    ptq_common.apply_gptq(data, model, act_order=True)
                elif step == "gpfq":
                    ptq_common.apply_gpfq(data, model, act_order=True)
                else:
                    ptq_common.apply_qronos(model, data)
            model.eval()
            parts = [model(torch.from_numpy(batch["x"].copy()))
                     for batch in job.batches(job.validation, "x", BATCH)]
        first = parts[0]
        if not isinstance(first, (list, tuple)):
            parts = [[part] for part in parts]
        return [numpy.concatenate([array.numpy() for array in arrays]) for arrays in zip(*parts)]

    job.run("brevitas " + importlib.metadata.version("brevitas"), PRESETS, quantize)


if __name__ == "__main__":
    main()
