#!/usr/bin/env python3
"""Tests mscgym.wrap and mscgym.finish: torch modules trained as a strategy says, and their ONNX files.

    torch_wrap.py MSCGYM [CASE ...]

Small networks with random weights: residual blocks with batch normalisation, concatenation and depthwise
convolution; normalisation before convolutions; grouped and transposed convolutions; 1-d layers; attention in
five spellings; an embedding. The program searches a strategy for a file that torch exports. Then:
(a) The wrapped module computes what ONNX Runtime computes with the strategy's exported file.
(b) After training steps, the file that finish writes gives the wrapped module's outputs in ONNX Runtime.
(c) Pruned layers are smaller, keep their normalisation, and have the parameters of the pruned file.
(d) Masks hold zeros under weight decay, and the file has these zeros.
(e) A state dict restores outputs in a freshly wrapped module; copies and pickles give equal outputs.
(f) Fixed scales stay, learnt ones move. The distillation losses equal numpy's.
(g) Two processes of DistributedDataParallel train as one process does with the whole batch.
(h) What does not fit is refused with a line that names it.
(i) The distillation of docs/training.md lowers the loss.
(j) fit_scales finds the scales that numpy finds on a fine grid, and lowers the loss of changed weights.
(k) The example of docs/training.md runs, and training raises the accuracy of the compressed network.

Exits with 1 if a check fails, 77 without torch, onnx, onnxscript or onnxruntime.
"""
import copy
import doctest
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
import warnings

try:
    import numpy
    import onnx
    import onnxruntime
    import onnxscript  # noqa: F401, torch's exporter needs it
    import torch
    from torch import nn
    from torch.nn import functional
except ImportError as error:
    print(f"skipped: {error}; needs numpy, onnx, onnxruntime, onnxscript and torch")
    sys.exit(77)

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "python"))
sys.dont_write_bytecode = True
MSCGYM = os.path.abspath(sys.argv[1])
os.environ["PATH"] = os.path.dirname(MSCGYM) + os.pathsep + os.environ["PATH"]

import mscgym  # noqa: E402
from mscgym.torch.onnx_export import export_onnx  # noqa: E402
from mscgym.torch.fake_quantize import FakeQuantize  # noqa: E402
from mscgym.torch.match import MatchError  # noqa: E402

STEPS = 3
AGREES = 1e-5  # squares of differences over squares of outputs: a few activations on the border of two steps


class Block(nn.Module):
    def __init__(self, n_in, n, stride):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(n_in, n, 3, stride, 1, bias=False), nn.BatchNorm2d(n)
        self.conv2, self.bn2 = nn.Conv2d(n, n, 3, 1, 1, bias=False), nn.BatchNorm2d(n)
        self.down = nn.Sequential(nn.Conv2d(n_in, n, 1, stride), nn.BatchNorm2d(n)) if n != n_in else nn.Identity()
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x):
        y = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        y += self.down(x)
        return self.relu(y)


class Residual(nn.Module):
    """Two residual blocks, a depthwise convolution, and a concatenation."""

    def __init__(self):
        super().__init__()
        self.stem, self.bn = nn.Conv2d(3, 16, 3, 1, 1), nn.BatchNorm2d(16)
        self.blocks = nn.Sequential(Block(16, 16, 1), Block(16, 32, 2))
        self.dw, self.dwbn = nn.Conv2d(32, 32, 3, 1, 1, groups=32, bias=False), nn.BatchNorm2d(32)
        self.side, self.fc = nn.Conv2d(32, 8, 1), nn.Linear(40, 5)

    def forward(self, x):
        x = self.blocks(functional.max_pool2d(functional.relu(self.bn(self.stem(x))), 2))
        x = functional.relu6(self.dwbn(self.dw(x)))
        return self.fc(torch.cat([x, self.side(x)], 1).mean((2, 3)))


class Before(nn.Module):
    """Normalisation before convolutions, which cannot be folded into them."""

    def __init__(self):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, 16, 3, 1, 1), nn.BatchNorm2d(16)
        self.conv2, self.bn2 = nn.Conv2d(16, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(32)
        self.conv3, self.fc = nn.Conv2d(32, 24, 1), nn.Linear(24, 5)

    def forward(self, x):
        x = self.conv1(x)
        x = torch.cat([x, self.conv2(functional.relu(self.bn1(x)))], 1)
        return self.fc(self.conv3(functional.relu(self.bn2(x))).mean((-1, -2)))


class Grouped(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.bn = nn.Conv2d(3, 32, 3, 1, 1, bias=False), nn.BatchNorm2d(32)
        self.grouped, self.gbn = nn.Conv2d(32, 64, 3, 1, 1, groups=8, bias=False), nn.BatchNorm2d(64)
        self.doubled = nn.Conv2d(64, 128, 3, 1, 1, groups=64)
        self.up, self.ubn, self.out = nn.ConvTranspose2d(128, 8, 2, 2), nn.BatchNorm2d(8), nn.Conv2d(8, 4, 1)

    def forward(self, x):
        x = functional.relu(self.gbn(self.grouped(functional.relu(self.bn(self.conv(x))))))
        return self.out(functional.relu(self.ubn(self.up(functional.hardswish(self.doubled(x)))))).flatten(1)


class Rows(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.bn = nn.Conv1d(4, 16, 5, 2, 2), nn.BatchNorm1d(16)
        self.fc1, self.bn1, self.fc2 = nn.Linear(256, 32), nn.BatchNorm1d(32), nn.Linear(32, 6)

    def forward(self, x):
        return self.fc2(torch.relu(self.bn1(self.fc1(functional.gelu(self.bn(self.conv(x))).flatten(1)))))


class Attention(nn.Module):
    def __init__(self, how):
        super().__init__()
        self.how, self.first, self.norm = how, nn.Linear(12, 32), nn.LayerNorm(32)
        self.q, self.k, self.v, self.p = (nn.Linear(32, 32) for _ in range(4))
        self.fc1, self.fc2, self.last = nn.Linear(32, 64), nn.Linear(64, 32), nn.Linear(32, 5)
        if how in ("module", "weights"):
            self.attention = nn.MultiheadAttention(32, 4, batch_first=True)
        if how == "layer":
            self.attention = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True)

    def forward(self, x):
        x = self.first(x)
        h = self.norm(x)
        if self.how in ("module", "weights"):
            return self.last(self.attention(h, h, h, need_weights=self.how == "weights")[0].mean(1))
        if self.how == "layer":
            return self.last(self.attention(h).mean(1))
        q, k, v = (f(h).unflatten(-1, (-1, 8)).transpose(1, 2) for f in (self.q, self.k, self.v))
        if self.how == "function":
            a = functional.scaled_dot_product_attention(q, k, v)
        else:
            a = torch.softmax(q @ k.transpose(-1, -2) / 8 ** 0.5, -1) @ v
        x = x + self.p(a.transpose(1, 2).flatten(2))
        return self.last((x + self.fc2(functional.gelu(self.fc1(x)))).mean(1))


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.last = nn.LSTM(12, 16, batch_first=True), nn.Linear(16, 5)

    def forward(self, x):
        return self.last(self.layer(x)[0][:, -1])


class Heads(nn.Module):
    """Its forward names a number of heads, so it computes something else after heads are removed."""

    def __init__(self):
        super().__init__()
        self.q, self.k, self.v, self.last = nn.Linear(12, 32), nn.Linear(12, 32), nn.Linear(12, 32), nn.Linear(32, 5)

    def forward(self, x):
        q, k, v = (f(x).unflatten(-1, (4, -1)).transpose(1, 2) for f in (self.q, self.k, self.v))
        a = torch.softmax(q @ k.transpose(-1, -2) / 8 ** 0.5, -1) @ v
        return self.last(a.transpose(1, 2).flatten(2))


class Fixed(nn.Module):
    """Its forward names a number of channels."""

    def __init__(self):
        super().__init__()
        self.conv, self.fc = nn.Conv2d(3, 8, 3, 2, 1), nn.Linear(288, 5)

    def forward(self, x):
        return self.fc(functional.relu(self.conv(x)).view(-1, 8 * 36))


class Moved(nn.Module):
    """A tensor that a linear layer reads after moves, and that other calls read as it is."""

    def __init__(self):
        super().__init__()
        self.first, self.second, self.last = nn.Linear(12, 24), nn.Linear(24, 24), nn.Linear(168, 5)

    def forward(self, x):
        x = torch.relu(self.first(x))
        return self.last(x.transpose(1, 2).flatten(1)) + (self.second(x) * x).mean((1, 2)).unsqueeze(1)


def images():
    return torch.randn(8, 3, 12, 12)


NETWORKS = {
    "residual": (Residual, images), "before": (Before, images), "grouped": (Grouped, images), "fixed": (Fixed, images),
    "heads": (Heads, lambda: torch.randn(8, 7, 12)), "rows": (Rows, lambda: torch.randn(8, 4, 32)),
    **{how: (lambda how=how: Attention(how), lambda: torch.randn(8, 7, 12))
       for how in ("steps", "function", "module", "weights", "layer")},
    "moved": (Moved, lambda: torch.randn(8, 7, 12)),
    "recurrent": (Recurrent, lambda: torch.randn(8, 7, 12)),
    "embedding": (lambda: nn.Sequential(nn.Embedding(50, 16), nn.LayerNorm(16), nn.Linear(16, 4)),
                  lambda: torch.randint(0, 50, (8, 9)))}

PRUNE = {"prune": {"strategy_file": "prune.json", "gym": [{"env": {"choices": [{"density": 0.5}], "round_to": 1}}]}}
SPARSE = {"prune": {"strategy_file": "prune.json", "gym": [{"env": {"choices": [{"pattern": "2:4"}]}}]}}


def quantize(target, choice=None, label=None, activations="8"):
    """8 bits everywhere, or the choice for weights and 8 bits for activations. Choices of `activations` that a tensor
    does not have are those nearest."""
    rules = [{"kind": "weight", "choices": [label]}, {"kind": "activation", "choices": [activations]}]
    env = {"choices": [{"bits": 8}, choice], "rules": rules}
    gym = {"gym": [{"env": env, "budget": {"trials": 1}}]} if choice else {}
    return {"quantize": {"strategy_file": "quantize.json", "target": target, **gym}}


PLANS = {
    "generic": quantize("generic"), "onnxruntime": quantize("onnxruntime"), "openvino": quantize("openvino"),
    "float16": quantize("generic", {"type": "float16"}, "float16"),
    "groups": quantize("generic", {"bits": 4, "group_size": 32}, "4 g32"),
    "descent": quantize("onnxruntime", {"bits": 6, "rounding": "descent", "correct": "affine"}, "6 descent affine"),
    "dynamic": quantize("onnxruntime", {"bits": 8, "dynamic": True}, "8", "8 dynamic"),
    "dynamic, generic": quantize("generic", {"bits": 8, "dynamic": True}, "8", "8 dynamic"),
    "pruned": PRUNE, "sparse": SPARSE,
    "pruned, generic": {**PRUNE, **quantize("generic")},
    "pruned, onnxruntime": {**PRUNE, **quantize("onnxruntime", {"bits": 4}, "4")},
    "sparse, onnxruntime": {**SPARSE, **quantize("onnxruntime")}}


class Case:
    """A network, its file, and a strategy."""

    def __init__(self, network, plan, folder, is_older=False):
        self.make, inputs = NETWORKS[network]
        torch.manual_seed(1)
        self.inputs, self.folder = inputs(), folder
        self.model = os.path.join(folder, f"{network}{'_older' if is_older else ''}.onnx")
        if is_older:
            torch.onnx.export(self.module(), (self.inputs,), self.model, dynamo=False, opset_version=17,
                              input_names=["x"], dynamic_axes={"x": {0: "N"}})
        elif not os.path.exists(self.model):
            export_onnx(self.module(), (self.inputs,), self.model)
        samples, config = os.path.join(folder, "samples.npz"), os.path.join(folder, "search.json")
        self.name = onnx.load(self.model).graph.input[0].name
        numpy.savez(samples, **{self.name: self.inputs.numpy()})
        workspace = tempfile.mkdtemp(dir=folder)
        with open(config, "w") as file:
            json.dump({"workspace": workspace, "model": self.model, "dataset": {"inputs": samples},
                       **PLANS[plan]}, file)
        made = subprocess.run([MSCGYM, "search", config, "--quiet"], capture_output=True, text=True)
        if made.returncode:
            sys.exit(f"{network}, {plan}: {made.stderr}")
        self.strategy = os.path.join(workspace, "quantize.json" if "quantize" in PLANS[plan] else "prune.json")

    def module(self):
        """The network, always with the same weights."""
        torch.manual_seed(0)
        module = self.make()
        for part in module.modules():
            if isinstance(part, nn.modules.batchnorm._BatchNorm):
                part.running_mean.normal_(0, 0.1)
                part.running_var.uniform_(0.5, 1.5)
                nn.init.uniform_(part.weight, 0.5, 1.5)
                nn.init.normal_(part.bias, 0, 0.1)
        return module.eval()

    def wrap(self, **options):
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*fills its zeros")
            return mscgym.wrap(self.module(), self.strategy, self.inputs, model=self.model, **options)

    def exported(self):
        """The strategy's file as the program exports it."""
        path = os.path.join(self.folder, "exported.onnx")
        subprocess.run([MSCGYM, "export", "--model", self.model, "--strategy", self.strategy, "-o", path, "--quiet"],
                       check=True)
        return path


def run_onnx(path, inputs):
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return session.run(None, {session.get_inputs()[0].name: inputs.numpy()})[0]


def outputs(wrapped, inputs):
    wrapped.eval()
    with torch.no_grad():
        return wrapped(inputs).numpy()


def difference(y, z):
    return float(numpy.square(y - z, dtype=numpy.float64).sum() / numpy.square(z, dtype=numpy.float64).sum())


def expect(condition, what):
    if not condition:
        raise AssertionError(what)


def train(wrapped, inputs, steps=STEPS, **options):
    """A few steps; the loss to the teacher of the last."""
    optimiser = torch.optim.AdamW(wrapped.parameters(), 1e-3, **options)
    wrapped.train()
    for _ in range(steps):
        loss = (wrapped.module if isinstance(wrapped, nn.parallel.DistributedDataParallel) else wrapped).distill_loss(
            wrapped(inputs), inputs)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return loss.item()


# ---- Checks -----------------------------------------------------------------------------------

def check_plan(network, plan, folder):
    case = Case(network, plan, folder)
    wrapped = case.wrap()
    exported = case.exported()
    before = difference(outputs(wrapped, case.inputs), run_onnx(exported, case.inputs))
    expect(before <= AGREES, f"the wrapped module differs from the exported file by {before:.2g}")
    if "pruned" in plan:
        check_sizes(case, wrapped)
    masks = {name: mask.clone() for name, mask in wrapped.masks.items()}
    expect(bool(masks) == ("sparse" in plan), "masks for sparse weights only")
    train(wrapped, case.inputs, weight_decay=0.5)
    path = os.path.join(folder, "finished.onnx")
    made = mscgym.finish(wrapped, path)
    y = outputs(wrapped, case.inputs)
    after = difference(run_onnx(path, case.inputs), y)
    expect(after <= AGREES, f"after training, ONNX Runtime differs by {after:.2g} from the wrapped module")
    expect(made.runtime == "onnxruntime" and abs(made.difference - after) <= AGREES, "finish reports this difference")
    if plan == "sparse":
        check_zeros(path, wrapped)
    return f"before training {before:.1e}, after {after:.1e}, loss of the plan {made.loss:.1e}"


def check_older(folder):
    """A file of torch's older exporter, with other names, and a strategy for it."""
    case = Case("residual", "pruned, onnxruntime", folder, is_older=True)
    names = [t.name for t in onnx.load(case.model).graph.initializer]
    expect("blocks.0.conv1.weight" not in names, "names of folded weights differ from those of parameters")
    wrapped = case.wrap()
    before = difference(outputs(wrapped, case.inputs), run_onnx(case.exported(), case.inputs))
    expect(before <= AGREES, f"the wrapped module differs from the exported file by {before:.2g}")
    made = mscgym.finish(wrapped, os.path.join(folder, "finished.onnx"))
    expect(made.difference <= AGREES, f"ONNX Runtime differs by {made.difference:.2g} from the wrapped module")
    return f"before training {before:.1e}, after {made.difference:.1e}"


def check_sizes(case, wrapped):
    whole = {name: p.shape for name, p in case.module().named_parameters()}
    own = dict(wrapped.module.named_parameters())
    expect(set(whole) == set(own), "all parameters under their names, normalisation among them")
    expect(sum(p.numel() for p in own.values()) < 0.8 * sum(s.numel() for s in whole.values()), "smaller layers")
    for name, part in wrapped.module.named_modules():
        if isinstance(part, nn.modules.batchnorm._BatchNorm):
            expect(part.num_features == len(part.running_mean) == len(part.weight), f"sizes of {name}")
        if isinstance(part, nn.Conv2d):
            n = part.weight.shape
            expect((part.out_channels, part.in_channels) == (n[0], n[1] * part.groups), f"sizes of {name}")


def check_zeros(path, wrapped):
    stored = [onnx.numpy_helper.to_array(t) for t in onnx.load(path).graph.initializer]
    for key, mask in wrapped.masks.items():
        n_zeros = int((mask == 0).sum())
        found = [a.size - numpy.count_nonzero(a) for a in stored if a.size == mask.numel() and a.ndim > 1]
        expect(max(found, default=0) >= n_zeros, f"{key}: {n_zeros} zeros in the file, found {found}")


def check_state(folder):
    case = Case("residual", "pruned, onnxruntime", folder)
    wrapped = case.wrap()
    train(wrapped, case.inputs)
    y = outputs(wrapped, case.inputs)
    fresh = case.wrap()
    expect(difference(outputs(fresh, case.inputs), y) > 1e-6, "training has changed the outputs")
    expect(fresh.load_state_dict(wrapped.state_dict()) is not None, "all keys fit")
    expect((outputs(fresh, case.inputs) == y).all(), "equal outputs after loading the state dict")
    expect((outputs(copy.deepcopy(wrapped), case.inputs) == y).all(), "equal outputs of a copy")
    file = io.BytesIO()
    torch.save(wrapped, file)
    file.seek(0)
    expect((outputs(torch.load(file, weights_only=False), case.inputs) == y).all(), "equal outputs of a pickle")
    scales = {name: s.clone() for name, s in wrapped.state_dict().items() if name.endswith(".scale")}
    fixed = case.wrap(learn_scales=False)
    before = {name: s.clone() for name, s in fixed.state_dict().items() if name.endswith(".scale")}
    train(fixed, case.inputs)
    after = fixed.state_dict()
    expect(all(bool((after[name] == s).all()) for name, s in before.items()), "fixed scales stay")
    expect(any(bool((scales[name] != s).any()) for name, s in before.items()), "learnt scales move")
    return f"{len(scales)} scales"


def check_losses(folder):
    case = Case("rows", "generic", folder)
    x = case.inputs
    wrapped = mscgym.wrap(case.module(), case.strategy, x)  # exports the module itself
    t = outputs(case.module(), x).astype(float)
    y = (t + 0.5 * torch.randn(t.shape).numpy()).astype(numpy.float32).astype(float)
    loss = float(wrapped.distill_loss(torch.from_numpy(y).float(), x))
    expect(abs(loss - difference(y, t)) <= 1e-4 * loss, "the loss of squares is numpy's")

    def soft(z):
        e = numpy.exp((z - z.max(-1, keepdims=True)) / 2)
        return e / e.sum(-1, keepdims=True)

    divergence = 4 * (soft(t) * numpy.log(soft(t) / soft(y))).sum(-1).mean()
    loss = float(wrapped.distill_loss(torch.from_numpy(y).float(), x, temperature=2))
    expect(abs(loss - divergence) <= 1e-3 * divergence, f"the divergence {loss} is numpy's {divergence}")
    given = wrapped.distill_loss(torch.from_numpy(y).float(), wanted=wrapped.teacher(x), temperature=2)
    expect(float(given) == loss, "the loss to outputs of the teacher that were computed before")
    return f"{loss:.2e}"


def least_scale(x, zero, low, high):
    """The scale of least squared error on a fine grid, and that error; by numpy."""
    cover = max((x / (high - zero)).max(), (x / (low - zero)).max() if zero > low else 0)
    found = [(numpy.square((numpy.clip(numpy.round(x / s) + zero, low, high) - zero) * s - x).sum(), s)
             for s in cover * numpy.linspace(0.1, 1.1, 2000)]
    return min(found)


def check_fit(folder):
    torch.manual_seed(2)
    x = torch.randn(6, 40) * torch.logspace(-2, 2, 6)[:, None]
    x[5] = 0
    for axis, group_size, low, high, zero in ((0, 0, -8, 7, 0), (1, 20, -8, 7, 0), (-1, 0, -128, 127, -128),
                                              (-1, 0, -128, 127, -20)):
        n = {0: 6, 1: 12, -1: 1}[axis]
        made = FakeQuantize(n, low, high, axis=axis, group_size=group_size)
        made.zero_point.fill_(zero)
        made.fit(x.abs() if zero == low else x)
        parts = (x.abs() if zero == low else x).numpy().astype(float).reshape(n, -1)
        for scale, part in zip(made.scale.tolist(), parts, strict=True):
            if not part.any():
                expect(scale == 1, "the scale of zeros stays")
                continue
            error = numpy.square((numpy.clip(numpy.round(part / scale) + zero, low, high) - zero) * scale - part).sum()
            least, at = least_scale(part, zero, low, high)
            expect(error <= 1.2 * least, f"scale {scale} has error {error}, {at} has {least}")
    case = Case("residual", "pruned, onnxruntime", folder)
    wrapped = case.wrap()
    norm = wrapped.module.bn
    with torch.no_grad():
        norm.weight *= 4
        norm.bias *= 4
    wrapped.quantises = False
    wanted = outputs(wrapped, case.inputs)
    wrapped.train().quantises = True
    before = difference(outputs(wrapped, case.inputs), wanted)
    wrapped.train().fit_scales(case.inputs)
    expect(wrapped.training and wrapped.quantises, "modes are restored")
    after = difference(outputs(wrapped, case.inputs), wanted)
    expect(after < 0.3 * before, f"the loss falls from {before:.2g} to {after:.2g}")
    path = os.path.join(folder, "fitted.onnx")
    mscgym.finish(wrapped, path)
    made = difference(run_onnx(path, case.inputs), outputs(wrapped, case.inputs))
    expect(made <= AGREES, f"the exported file has these scales ({made:.2g})")
    return f"{before:.1e} to {after:.1e}"


def check_distiller(folder):
    """The loop of docs/training.md, with its text."""
    with open(os.path.join(HERE, "..", "..", "docs", "training.md"), encoding="utf-8") as file:
        text = file.read()
    code = text.split("## Distillation\n")[1].split("\n    ", 1)[1].split("\n\n|")[0]
    case = Case("rows", "groups", folder)
    shutil.copy(case.strategy, os.path.join(folder, "plan.json"))
    before = os.getcwd()
    os.chdir(folder)
    try:
        names = {"mscgym": mscgym, "torch": torch, "network": case.module(), "example": case.inputs,
                 "inputs": [case.inputs] * 20}
        wrapped = case.wrap()
        first = float(wrapped.distill_loss(wrapped.eval()(case.inputs), case.inputs))
        exec(textwrap.dedent("    " + code), names)
        last = difference(run_onnx("small.onnx", case.inputs), outputs(case.module(), case.inputs))
    finally:
        os.chdir(before)
    expect(last < 0.8 * first, f"the loss falls from {first:.2g} to {last:.2g}")
    return f"{first:.1e} to {last:.1e}"


def replica(rank, folder, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.distributed.init_process_group("gloo", rank=rank, world_size=2)
    wrapped = torch.load(os.path.join(folder, "wrapped.pt"), weights_only=False).eval()
    x = torch.load(os.path.join(folder, "x.pt"))[4 * rank:4 * rank + 4]
    both = nn.parallel.DistributedDataParallel(wrapped)
    both(x).square().mean().backward()
    if rank == 0:
        torch.save({name: p.grad for name, p in wrapped.named_parameters()}, os.path.join(folder, "grads.pt"))
        mscgym.finish(both, os.path.join(folder, "both.onnx"))
    torch.distributed.destroy_process_group()


def check_processes(folder):
    case = Case("residual", "onnxruntime", folder)
    wrapped = case.wrap().eval()
    torch.save(wrapped, os.path.join(folder, "wrapped.pt"))
    torch.save(case.inputs, os.path.join(folder, "x.pt"))
    torch.multiprocessing.spawn(replica, (folder, 29500 + os.getpid() % 1000), 2)
    wrapped(case.inputs).square().mean().backward()
    found = torch.load(os.path.join(folder, "grads.pt"))
    worst = max(float((found[name] - p.grad).norm() / p.grad.norm().clamp_min(1e-6))
                for name, p in wrapped.named_parameters() if p.grad is not None)
    expect(worst < 1e-3, f"gradients of two processes differ by {worst:.2g} from those of one")
    return f"gradients within {worst:.1e}"


def check_refusals(folder):
    case = Case("rows", "generic", folder)
    other = case.module()
    with torch.no_grad():
        other.fc1.weight.mul_(1.1)
    lines = []
    for make, words in (
            (lambda: mscgym.wrap(other, case.strategy, case.inputs, model=case.model), "exported from this module"),
            (lambda: Case("fixed", "pruned", folder).wrap(), "names a number of channels"),
            (lambda: Case("heads", "pruned", folder).wrap(), "names a number of channels or heads"),
            (lambda: Case("recurrent", "generic", folder).wrap(), "exclude the tensor from the search"),
            (lambda: mscgym.wrap(case.module(), case.model, case.inputs), "not a strategy file"),
            (lambda: mscgym.finish(case.module(), "x.onnx"), "what mscgym.wrap returned")):
        try:
            make()
        except (MatchError, ValueError, TypeError) as error:
            expect(words in str(error), f"'{words}' in: {error}")
            lines.append(str(error))
        else:
            expect(False, f"a refusal with '{words}'")
    return f"{len(lines)} lines"


def check_example(folder):
    examples = os.path.join(HERE, "..", "..")
    shutil.copytree(os.path.join(examples, "examples", "digits"), os.path.join(folder, "digits"))
    made = subprocess.run(
        [sys.executable, os.path.abspath(os.path.join(examples, "python", "examples", "prune_train_quantise.py"))],
        cwd=folder, env={**os.environ, "PYTHONPATH": os.path.abspath(os.path.join(examples, "python"))},
        capture_output=True, text=True)
    expect(made.returncode == 0, made.stderr[-500:])
    found = {line.split(":")[0]: float(line.split()[-1]) for line in made.stdout.splitlines() if ": accuracy" in line}
    expect(found["trained"] > found["compressed"] and found["trained"] > found["float"] - 0.02, str(found))
    sizes = [os.path.getsize(os.path.join(folder, name)) for name in ("small.onnx", "network.onnx")]
    expect(sizes[0] < 0.25 * sizes[1], f"{sizes[0]} bytes instead of {sizes[1]}")
    return ", ".join(f"{name} {value:.4f}" for name, value in found.items()) + f", bytes {sizes[0] / sizes[1]:.3f}"


def check_documentation(folder):
    import mscgym.torch.fake_quantize
    failed, tried = doctest.testmod(mscgym.torch.fake_quantize)
    expect(tried > 0 and failed == 0, f"{failed} of {tried} examples of docstrings fail")
    return f"{tried} examples"


def cases():
    for plan in PLANS:
        yield f"residual: {plan}", lambda folder, plan=plan: check_plan("residual", plan, folder)
    for network in ("before", "grouped", "rows", "steps", "function", "module", "weights", "layer", "embedding"):
        for plan in ("generic", "onnxruntime"):
            yield f"{network}: {plan}", lambda folder, n=network, plan=plan: check_plan(n, plan, folder)
    for network in ("rows", "moved", "steps", "module", "embedding"):
        for plan in ("dynamic", "dynamic, generic"):
            yield f"{network}: {plan}", lambda folder, n=network, plan=plan: check_plan(n, plan, folder)
    yield "module: descent", lambda folder: check_plan("module", "descent", folder)
    for network in ("before", "grouped", "rows", "steps"):
        plan = "pruned, onnxruntime"
        yield f"{network}: {plan}", lambda folder, n=network, plan=plan: check_plan(n, plan, folder)
    yield "older exporter", check_older
    yield "state", check_state
    yield "losses", check_losses
    yield "fit", check_fit
    yield "distiller", check_distiller
    yield "processes", check_processes
    yield "refusals", check_refusals
    yield "example", check_example
    yield "documentation", check_documentation


def main():
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore", category=UserWarning)
    wanted, n_wrong = sys.argv[2:], 0
    with tempfile.TemporaryDirectory() as folder:
        for name, check in cases():
            if wanted and not any(name.startswith(w) for w in wanted):
                continue
            try:
                print(f"{name}: {check(folder)}", flush=True)
            except (AssertionError, ValueError, RuntimeError) as error:
                n_wrong += 1
                print(f"WRONG {name}: {type(error).__name__}: {error}", flush=True)
    print(f"{n_wrong} wrong")
    sys.exit(n_wrong > 0)


if __name__ == "__main__":
    main()
