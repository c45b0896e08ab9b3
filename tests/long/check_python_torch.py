#!/usr/bin/env python3
"""Tests the Python functions with modules, loaders and programs of torch.

    check_python_torch.py MSCGYM

The float model that a function runs must give the outputs of the module itself, for modules with several
inputs, named, optional and open ones, on any number of samples. A quantised model must be close to it in
onnxruntime. Exits with 77 without numpy, onnx, onnxruntime, onnxscript or torch.
"""
import copy
import os
import sys
import tempfile

try:
    import numpy as np
    import onnx
    import onnxruntime
    import onnxscript  # noqa: F401, torch's exporter needs it
    import torch
    from torch import nn
except ImportError as error:
    print(f"skipped: {error}; needs numpy, onnx, onnxruntime, onnxscript and torch")
    sys.exit(77)

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGE = os.path.join(HERE, "..", "..", "python")
sys.path.insert(0, PACKAGE)
N = 24


class Convolutional(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.Dropout(0.5),
                                  nn.AdaptiveAvgPool2d(2), nn.Flatten())
        self.head = nn.Linear(32, 5)

    def forward(self, image):
        return self.head(self.body(image))


class Two(nn.Module):
    """A needed input, and an optional one that is not the next."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(6, 8), nn.Embedding(10, 8)

    def forward(self, x, scale=None, index=None):
        y = self.a(x)
        y = y if index is None else y + self.b(index)
        return y if scale is None else y * scale


class Mean(nn.Module):
    """A row of any length for each sample."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Embedding(10, 8), nn.Linear(8, 4)

    def forward(self, index):
        return self.b(self.a(index).mean(1))


class Open(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(6, 4)

    def forward(self, *xs):
        return sum(self.a(x) for x in xs)


def expect_close(found, expected, what):
    expected = expected.detach().numpy()
    difference = np.abs(found - expected).max() / np.abs(expected).max()
    assert found.shape == expected.shape and difference < 1e-4, f"{what}: {found.shape}, differs by {difference}"


def only(outputs):
    array, = outputs.values()
    return array


def check_module(name, module, data, expected):
    import mscgym

    modes = [part.training for part in module.modules()]
    expect_close(only(mscgym.run(module, data, progress=False)), expected, name)
    assert modes == [part.training for part in module.modules()], f"{name}: the mode of a submodule has changed"
    result = mscgym.quantize(module, data, effort="fast", progress=False)
    assert result.report["samples"] + result.report["held_back"] == N, name
    session = onnxruntime.InferenceSession(result.model)
    assert session.get_inputs()[0].shape[0] != N, f"{name}: the number of samples is fixed"
    assert isinstance(result.model.proto(), onnx.ModelProto)
    print(f"{name}: ok", flush=True)
    return result


def check_forms():
    x, index = torch.randn(N, 6), torch.randint(0, 10, (N,))
    two = Two().eval()
    check_module("a tensor", two, x, two(x))
    check_module("inputs by name", two, {"x": x, "index": index, "other": x}, two(x, index=index))
    check_module("labels", two, [(x[:10], index[:10]), (x[10:], index[10:])], two(x))
    several = Open().eval()
    check_module("open inputs", several, [(x, 2 * x)], several(x, 2 * x))
    check_module("float64 samples", two, x.double().numpy(), two(x))
    mean = Mean().eval()
    for name, n in (("samples of different lengths", 1), ("batches of different lengths", 3)):
        rows = [torch.randint(0, 10, (n, 3 + i % 4)) for i in range(N // n)]
        check_module(name, mean, rows, torch.cat([mean(row) for row in rows]))


def check_loader():
    torch.manual_seed(1)
    module = Convolutional()
    module.head.train(False)
    image, labels = torch.rand(N, 3, 8, 8), torch.randint(0, 5, (N,))
    dataset = torch.utils.data.TensorDataset(image, labels)
    reference = Convolutional()
    reference.load_state_dict(module.state_dict())
    expected = reference.eval()(image)
    for name, data in (("a loader", torch.utils.data.DataLoader(dataset, batch_size=7)), ("a dataset", dataset)):
        result = check_module(name, module, data, expected)
        assert "held_back.accuracy" in result.metrics, name
        found = onnxruntime.InferenceSession(result.model).run(None, {"image": image.numpy()})[0]
        loss = np.square(found - expected.detach().numpy()).mean() / np.square(expected.detach().numpy()).mean()
        assert loss < 0.01, f"{name}: the loss is {loss}"


def check_programs():
    import mscgym

    x = torch.randn(N, 6)
    two = Two().eval()
    program = torch.export.export(two, (x[:2],), dynamic_shapes=({0: torch.export.Dim.AUTO},))
    expect_close(only(mscgym.run(program, x, progress=False)), two(x), "an exported program")
    exported = torch.onnx.export(program, dynamo=True, verbose=False)
    expect_close(only(mscgym.run(exported, x, progress=False)), two(x), "a program of ONNX")
    expect_close(only(mscgym.run(exported.model_proto, [(x, torch.ones(N, dtype=torch.int64))], progress=False)),
                 two(x), "a ModelProto")
    measured = mscgym.bench(two, exported.model_proto, data=x, runtime="cpu", rounds=2, progress=False)
    assert list(measured.table) == ["Two", "ModelProto"]


def check_errors():
    import mscgym

    class Broken(nn.Module):
        def forward(self, x):
            return x + 1 if x.sum() > 0 else x

    for model, data, kind, text in ((Broken(), torch.randn(N, 3), mscgym.Error, "cannot export Broken"),
                                    (Two(), "x.npz", mscgym.Error, "give samples as arrays")):
        try:
            mscgym.quantize(model, data, progress=False)
        except kind as error:
            assert text in str(error), error
        else:
            raise AssertionError(f"expected an error with {text!r}")


def check_back():
    """A compressed model is a module of torch again, with equal outputs up to a step of its integers."""
    import mscgym

    torch.manual_seed(3)
    image = torch.rand(N, 3, 8, 8)
    options = {"trials": 2, "target": "generic", "progress": False}
    for name, choice in (("eight", 8), ("four", {"bits": 4}), ("half", {"type": "float16"}),
                         ("groups", {"bits": 3, "group_size": 32})):
        result = mscgym.search(Convolutional(), image, choices=[choice], workspace=name, **options)
        module = result.model.torch(f"torch_{name}")
        assert os.path.exists(f"torch_{name}/main.py") and not module.training
        found = module(image).detach().numpy()
        outputs = only(mscgym.run(result, image, progress=False))
        step = np.abs(outputs).max() / 2 ** {"eight": 8, "four": 4, "half": 10, "groups": 3}[name]
        assert np.abs(found - outputs).max() <= step, f"{name}: {np.abs(found - outputs).max()}, a step is {step}"
    result = mscgym.quantize(Convolutional(), image, effort="fast", progress=False)
    module = result.model.torch()
    session = onnxruntime.InferenceSession(result.model)
    expected = session.run(None, {"image": image.numpy()})[0]
    found = module(image)
    assert np.abs(found.detach().numpy() - expected).max() <= np.abs(expected).max() / 2 ** 7
    found.square().mean().backward()
    assert all(part.grad is not None for part in module.parameters())


def check_search():
    import mscgym

    torch.manual_seed(2)
    module = Convolutional()
    image, labels = torch.rand(N, 3, 8, 8), torch.randint(0, 5, (N,))

    def agreement(outputs, labels):
        assert outputs.shape == (len(labels), 5)
        return float((outputs.argmax(1) == labels).mean())

    for _ in range(2):  # the second call finds the same model and samples
        result = mscgym.search(module, (image, labels), choices=[8, 4], trials=4, metric=agreement, maximise=True,
                               bounds={"size_ratio": 0.5}, validation=(image + 0.01, labels), progress=False)
    assert result.metrics["validation.samples"] == N, result.table
    pruned = mscgym.prune(module, image, density=0.5, workspace="pruned", progress=False)
    assert pruned.metrics["macs_ratio"] < 1


class Skipping(nn.Module):
    """A residual block between two convolutions."""

    def __init__(self):
        super().__init__()
        self.stem, self.bn = nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16)
        self.one, self.two, self.head = nn.Conv2d(16, 16, 3, padding=1), nn.Conv2d(16, 16, 1), nn.Linear(16, 5)

    def forward(self, image):
        x = torch.relu(self.bn(self.stem(image)))
        x = torch.relu(x + self.two(torch.relu(self.one(x))))
        return self.head(x.mean((2, 3)))


def check_refine():
    """The loss in onnxruntime falls, also of a plan that removes channels; the file is that of the report."""
    import mscgym

    torch.manual_seed(4)
    module, image = Skipping().eval(), torch.rand(200, 3, 8, 8)
    expected, held = module(image[-40:]).detach().numpy(), {"image": image[-40:].numpy()}
    four = {"bits": 4, "rounding": "descent", "correct": "affine"}
    options = {"trials": 1, "target": "generic", "progress": False, "refine": {"steps": 100, "rate": 0.01},
               "threads": 1}
    searches = {"quantize": {"choices": [four]},
                "joint": {"choices": [four], "env": {"prune": {"choices": [{"density": 0.5}]}}}}
    for section, given in searches.items():
        result = mscgym.search(module, image, section=section, workspace=f"refine_{section}", **given, **options)
        report = result.report["refine"]
        losses = [result.table[column]["validation.distill_loss"] for column in ("winner", "refined")]
        found = onnxruntime.InferenceSession(result.model).run(None, held)[0]
        loss = np.square(found - expected).sum() / np.square(expected).sum()
        assert losses[1] < losses[0] and abs(losses[1] - loss) < 0.1 * loss, f"{section}: {losses}, {loss}"
        assert [block["weights"] for block in report["blocks"]] == [1, 2, 1, 4], report["blocks"]
        wrapped = mscgym.wrap(copy.deepcopy(module), result.strategy, image[:4], model=f"refine_{section}/model.onnx")
        made = wrapped.eval()(image[-40:]).detach().numpy()
        assert np.abs(made - found).max() < 0.1 * np.abs(found).max(), section
        print(f"refine, {section}: {losses[0]:.2g} to {losses[1]:.2g}", flush=True)
    result = mscgym.quantize(module, image, effort="fast", progress=False, refine={"steps": 60}, threads=1)
    assert result.report["refine"]["loss_after"] < result.table["written"]["held_back.distill_loss"]


def main():
    program = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory(prefix="mscgym torch ") as folder:
        os.symlink(program, os.path.join(folder, "mscgym"))
        os.environ.update(PATH=folder + os.pathsep + os.environ["PATH"], PYTHONPATH=PACKAGE)
        os.chdir(folder)
        for check in (check_forms, check_loader, check_programs, check_errors, check_back, check_search, check_refine):
            check()
            print(f"{check.__name__}: done", flush=True)


main()
