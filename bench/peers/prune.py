"""torch-pruning and NNCF: fewer channels, and sparse weights, without training.

    PYTHON prune.py MODEL VALIDATION.npy DENSITY SPARSITY,... FOLDER

PYTHON needs torch, onnx2torch, torch-pruning (`pip install torch-pruning`) and NNCF. Prints a line
of JSON for each preset: {preset, version, outputs: PATH, macs}, with PATH an .npz of the pruned
network's outputs for the validation samples, and macs the remaining share of multiply-accumulates;
or {preset, version, failed: WHY}.

torch-pruning reduces all groups of channels to DENSITY, except the last layer's outputs, by each of
its criteria that needs no gradient, in multiples of eight. NNCF makes all weights sparse by
magnitude, by weight or over all weights. Neither changes the weights that remain.
"""
import contextlib
import importlib.metadata
import json
import os
import sys

import numpy
import onnx
import onnx2torch
import torch

BATCH = 500


def outputs(model, samples):
    with torch.no_grad():
        parts = [model(torch.from_numpy(samples[i:i + BATCH].copy()))
                 for i in range(0, len(samples), BATCH)]
    return numpy.concatenate([part.numpy() for part in parts])


def channels(importance, density, sample):
    import torch_pruning

    def prune(model):
        weighted = [m for m in model.modules() if isinstance(m, (torch.nn.Conv2d, torch.nn.Linear))]
        before = torch_pruning.utils.count_ops_and_params(model, sample)[0]
        torch_pruning.pruner.BasePruner(
            model, sample, importance=importance(torch_pruning.importance), round_to=8,
            pruning_ratio=1 - density, ignored_layers=weighted[-1:]).step()
        return model, torch_pruning.utils.count_ops_and_params(model, sample)[0] / before
    return prune


class Whole(torch.nn.Module):
    """A traced network as a plain module, which NNCF requires."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, x):
        return self.model(x)


def weights(mode, sparsity, sample):
    import nncf

    def prune(model):
        return nncf.prune(Whole(model), nncf.PruneMode[mode], ratio=sparsity, examples_inputs=sample), 1
    return prune


CRITERIA = {
    "l1": lambda of: of.GroupMagnitudeImportance(p=1),
    "l2": lambda of: of.GroupMagnitudeImportance(p=2),
    "lamp": lambda of: of.LAMPImportance(p=2),
    "fpgm": lambda of: of.FPGMImportance(p=2),
}


def presets(density, sparsities, sample):
    for name, importance in CRITERIA.items():
        yield f"{density} torch-pruning {name}", "torch-pruning", channels(importance, density, sample)
    for sparsity in sparsities:
        for mode in "LOCAL", "GLOBAL":
            yield (f"{sparsity} sparse NNCF {mode.lower()}", "nncf",
                   weights("UNSTRUCTURED_MAGNITUDE_" + mode, sparsity, sample))


def main():
    if len(sys.argv) != 6:
        sys.exit(__doc__)
    path, validation, density, sparsities, folder = sys.argv[1:]
    samples = numpy.load(validation)
    sample = torch.from_numpy(samples[:1].copy())
    for preset, package, prune in presets(float(density), map(float, sparsities.split(",")), sample):
        line = {"preset": preset, "version": importlib.metadata.version(package)}
        try:
            with contextlib.redirect_stdout(sys.stderr):
                torch.manual_seed(0)
                model, line["macs"] = prune(onnx2torch.convert(onnx.load(path)).eval())
                found = outputs(model.eval(), samples)
            line["outputs"] = os.path.join(folder, preset.replace(" ", "_") + ".npz")
            numpy.savez(line["outputs"], found)
        except Exception as error:  # pylint: disable=broad-except
            line["failed"] = f"{type(error).__name__}: {error}".splitlines()[0]
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
