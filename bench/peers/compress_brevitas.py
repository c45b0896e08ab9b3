"""Brevitas (see compress.py), with the steps of its example of post-training quantisation; needs brevitas
and onnx2torch. Products of two activations remain float. Measured in its simulation in PyTorch.
"""
import importlib.metadata

import onnx
import onnx2torch
import torch
from brevitas.graph.equalize import EqualizeGraph
from brevitas_examples.imagenet_classification.ptq import ptq_common
from onnx2torch.node_converters.matmul import OnnxMatMul

import compress
import compress_torch

BATCH = 128
# The range method, and the steps after it, or before it for graph equalisation as in Brevitas's
# example. Fast presets come first.
PRESETS = {
    "stats, bias correction": ("stats", ["bias"]),
    "gpfq": ("stats", ["gpfq"]),
    "qronos": ("stats", ["qronos"]),
    "gptq": ("stats", ["gptq"]),
    "gpfq, bias correction": ("stats", ["gpfq", "bias"]),
    "gpfq, mse, equalised": ("mse", ["equalise", "gpfq"]),
    "qronos, mse, equalised": ("mse", ["equalise", "qronos"]),
    "gpfq, mse": ("mse", ["gpfq"]),
    "qronos, mse": ("mse", ["qronos"]),
    "mse, bias correction": ("mse", ["bias"]),
}
PERCENTILE = 99.999  # for ranges of activations by statistics, as in Brevitas's example


def weight_of(model, node):
    """The constant matrix that is a product's second operand, or None."""
    name = str(node.args[1].target)
    if node.args[1].op != "get_attr":
        return None
    holder, _, last = name.rpartition(".")
    value = getattr(model.get_submodule(holder), last)
    return value if value.dim() == 2 else None


def convert(path):
    """The network with modules for all joints except products of two activations."""
    if compress_torch.is_transformer(path):
        return compress_torch.transformer(path)
    model = onnx2torch.convert(onnx.load(path)).eval()
    for node in model.graph.nodes:
        if node.op != "call_module" or not isinstance(model.get_submodule(node.target), OnnxMatMul):
            continue
        weight = weight_of(model, node)
        if weight is not None:
            linear = torch.nn.Linear(*weight.shape, bias=False)
            linear.weight.data = weight.detach().t().contiguous()
            model.set_submodule(node.target, linear)
            node.args = node.args[:1]
    model.recompile()
    for module in model.modules():
        if isinstance(module, torch.nn.LayerNorm):  # onnx2torch reads 0 for an unknown length
            module.normalized_shape = tuple(module.weight.shape)
    return model


def main():
    job = compress.Job(__doc__)
    if job.group:
        return
    graph = onnx.load(job.model).graph
    size = graph.input[0].type.tensor_type.shape.dim[0].dim_value or BATCH

    def quantize(preset, _):
        torch.manual_seed(0)
        method, steps = PRESETS[preset]
        model = convert(job.model)
        if "equalise" in steps:
            model = EqualizeGraph(iterations=20, merge_bias=True).apply(model)
        model = ptq_common.quantize_model(
            model, "layerwise", weight_bit_width=job.weight_bits,
            act_bit_width=job.activation_bits, bias_bit_width=None,
            weight_quant_granularity="per_channel", act_quant_percentile=PERCENTILE,
            act_quant_type="asym", scale_factor_type="float_scale", quant_format="int",
            layerwise_first_last_bit_width=job.weight_bits, weight_param_method=method,
            act_param_method=method)
        data = [(compress_torch.tensor(batch), None) for batch in job.batches(job.calibration, size)]
        with torch.no_grad():
            ptq_common.calibrate(data, model)
            model(data[0][0])  # computes the scales of weights
            for step in steps:
                if step == "bias":
                    ptq_common.apply_bias_correction(data, model)
                elif step == "gptq":
                    ptq_common.apply_gptq(data, model, act_order=True)
                elif step == "gpfq":
                    ptq_common.apply_gpfq(data, model, act_order=True)
                elif step == "qronos":
                    ptq_common.apply_qronos(model, data)
            model.eval()
        return compress_torch.outputs(model, job.batches(job.validation, size))

    # A network that is no graph of torch.fx cannot be equalised.
    presets = [name for name, (_, steps) in PRESETS.items()
               if "equalise" not in steps or not compress_torch.is_transformer(job.model)]
    job.run("brevitas " + importlib.metadata.version("brevitas"), presets, quantize)


if __name__ == "__main__":
    main()
