"""Networks of compress.py in torch."""
import os
import sys

import numpy
import torch

import compress

sys.path.insert(0, os.path.join(os.path.dirname(compress.__file__), "..", "..", "scripts", "models"))


class Stacked(torch.nn.Module):
    """A network whose integer inputs are one tensor of floats [samples, inputs, …]: tools convert what
    they feed to the type of the weights.
    """

    def __init__(self, model, count):
        super().__init__()
        self.model, self.count = model, count

    def forward(self, x):
        return self.model(*(x[:, i].long() for i in range(self.count)))


def is_transformer(path):
    return os.path.exists(os.path.splitext(path)[0] + ".pt")


def transformer(path):
    """A network of export_transformers.py by the path of its ONNX file, as one of Stacked."""
    import export_transformers
    name = os.path.splitext(os.path.basename(path))[0]
    return Stacked(export_transformers.build(name, os.path.dirname(path)), len(export_transformers.inputs(name)))


def tensor(batch):
    """What a network of `Stacked`, or of one input of floats, reads."""
    arrays = list(batch.values())
    stacked = numpy.stack(arrays, 1) if arrays[0].dtype.kind == "i" else arrays[0]
    return torch.from_numpy(numpy.ascontiguousarray(stacked).astype(numpy.float32))


def outputs(model, batches):
    """An array for each output."""
    with torch.no_grad():
        parts = [model(tensor(batch)) for batch in batches]
    parts = [part if isinstance(part, (list, tuple)) else [part] for part in parts]
    return [numpy.concatenate([array.numpy() for array in arrays]) for arrays in zip(*parts)]
