"""torchao (see compress.py); needs torchao, torch and transformers. Quantises linear layers of transformers, in its
own kernels or its simulation in PyTorch. Activations get a scale for each token when the network runs.
"""
import importlib.metadata

import torch
from torchao import quantization
from torchao.quantization.granularity import PerAxis, PerGroup

import compress
import compress_torch

BATCH = 16


def configurations(job):
    """Presets for the plan."""
    if job.plan == (8, 8, 0):
        return {"int8 dynamic": quantization.Int8DynamicActivationInt8WeightConfig()}
    granularity = PerGroup(job.group) if job.group else PerAxis(0)
    if job.weight_bits != 4:
        return {}
    if job.activation_bits == 8:
        return {"int4 with int8 dynamic": quantization.Int8DynamicActivationIntxWeightConfig(
            weight_dtype=torch.int4, weight_granularity=granularity)}
    if job.activation_bits == 32:
        found = {"int4": quantization.IntxWeightOnlyConfig(weight_dtype=torch.int4, granularity=granularity)}
        try:
            found["int4 hqq"] = quantization.IntxWeightOnlyConfig(
                weight_dtype=torch.int4, granularity=granularity,
                intx_choose_qparams_algorithm="hqq_scale_only")
        except (TypeError, ValueError):
            pass  # an older version
        return found
    return {}


def main():
    job = compress.Job(__doc__)
    if not compress_torch.is_transformer(job.model):
        return
    presets = configurations(job)

    def quantize(preset, _):
        model = compress_torch.transformer(job.model)
        quantization.quantize_(model, presets[preset])
        return compress_torch.outputs(model, job.batches(job.validation, BATCH))

    job.run("torchao " + importlib.metadata.version("torchao"), presets, quantize)


if __name__ == "__main__":
    main()
