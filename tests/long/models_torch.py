"""Models of torch's layers, of torchvision and of timm, with random weights, as torch exports them.

Each maker writes a model and returns its samples, as models_list.py requires. Normalisations measure
their statistics on samples, and parameters that start as a constant get values as after training, so
that tensors have the ranges of a trained network and no layer is without effect.
"""
import contextlib
import io
import warnings

import numpy
import torch
from torch import nn

BATCH = "batch"
torch.backends.mha.set_fastpath_enabled(False)  # its operator cannot be exported


def quiet():
    warnings.simplefilter("ignore")
    return contextlib.redirect_stdout(io.StringIO())


def export(model, values, path, exporter, opset, dynamic=True):
    """Exports with the first sample of each input, and a free batch axis unless `dynamic` is false."""
    first = {k: torch.from_numpy(v[:2 if dynamic and exporter == "dynamo" else 1]) for k, v in values.items()}
    model.eval()
    with torch.no_grad():
        result = model(**first)
    n_outputs = len(result) if isinstance(result, (tuple, list)) else 1
    names = [f"output_{i}" if i else "output" for i in range(n_outputs)]
    with quiet(), torch.no_grad():
        if exporter == "dynamo":
            shapes = {k: {0: BATCH} for k in first} if dynamic else None
            torch.onnx.export(model, (), path, kwargs=first, dynamo=True, opset_version=opset, input_names=[*first],
                              output_names=names, dynamic_shapes=shapes, external_data=False, verbose=False)
        else:
            axes = {k: {0: BATCH} for k in [*first, *names]} if dynamic else None
            torch.onnx.export(model, tuple(first.values()), path, dynamo=False, opset_version=opset,
                              input_names=[*first], output_names=names, dynamic_axes=axes)


def enliven(model):
    """Gives parameters that start as a constant values as after training."""
    for name, value in model.named_parameters():
        if value.numel() > 1 and value.dim() > 0 and bool((value == value.flatten()[0]).all()):
            with torch.no_grad():
                base = float(value.flatten()[0])
                if 0 < abs(base) < 1e-2:  # a scale of a branch
                    base = 0.1
                spread = 0.1 if value.dim() == 1 or base else value.shape[-1] ** -0.5
                value.copy_(base + spread * torch.randn_like(value))


def settle(model, values):
    """Sets the statistics of batch normalisation to those of some samples."""
    parts = [m for m in model.modules() if isinstance(m, nn.modules.batchnorm._BatchNorm)]
    for part in parts:
        part.reset_running_stats()
        part.momentum = None
        part.train()
    if parts:
        with torch.no_grad():
            model(**{k: torch.from_numpy(v[:32]) for k, v in values.items()})
    return model.eval()


# ---- Samples -------------------------------------------------------------------------------------

def noise(count, *shape, seed=0):
    return numpy.random.default_rng(seed).standard_normal((count, *shape), numpy.float32)


def pictures(count, side, seed=0):
    """Crops of scikit-learn's photographs, [count, 3, side, side], normalised."""
    from PIL import Image
    from sklearn.datasets import load_sample_images
    random, images, crops = numpy.random.default_rng(seed), load_sample_images().images, []
    for i in range(count):
        image = images[i % len(images)]
        edge = random.integers(min(side, 150), 427)
        top, left = random.integers(427 - edge + 1), random.integers(640 - edge + 1)
        crop = Image.fromarray(image[top:top + edge, left:left + edge, ::random.choice([1, -1])])
        crops.append(numpy.asarray(crop.resize((side, side), Image.BILINEAR)))
    scaled = numpy.stack(crops).astype(numpy.float32) / 255
    mean, std = numpy.float32([0.485, 0.456, 0.406]), numpy.float32([0.229, 0.224, 0.225])
    return numpy.ascontiguousarray(((scaled - mean) / std).transpose(0, 3, 1, 2))


def words(count, length, vocabulary, seed=0):
    """Frequent and rare words, [count, length]."""
    random = numpy.random.default_rng(seed)
    shares = 1 / numpy.arange(1, vocabulary + 1)
    return random.choice(vocabulary, (count, length), p=shares / shares.sum())


def mask(count, length, seed=1):
    lengths = numpy.random.default_rng(seed).integers(length // 2, length + 1, count)
    return (numpy.arange(length) < lengths[:, None]).astype(numpy.int64)


# ---- Layers --------------------------------------------------------------------------------------

class Wrapped(nn.Module):
    """A module whose forward is a function of the module and its inputs."""

    def __init__(self, forward, **parts):
        super().__init__()
        self.run = forward
        for name, part in parts.items():
            setattr(self, name, part)

    def forward(self, x):
        return self.run(self, x)


def conv(a, b, kernel=3, stride=1, groups=1, active=nn.ReLU):
    return nn.Sequential(nn.Conv2d(a, b, kernel, stride, kernel // 2, groups=groups, bias=False), nn.BatchNorm2d(b),
                         active())


class Recurrent(nn.Module):
    def __init__(self, kind, layers=1, both=False):
        super().__init__()
        self.rnn = kind(24, 48, layers, batch_first=True, bidirectional=both)
        self.head = nn.Linear(96 if both else 48, 12)

    def forward(self, x):
        return self.head(self.rnn(x)[0])


class Residual(nn.Module):
    def __init__(self, part):
        super().__init__()
        self.part = part

    def forward(self, x):
        return x + self.part(x)


class Heads(nn.Module):
    """Attention by scaled_dot_product_attention, with fewer heads of keys than of queries."""

    def __init__(self, width, heads, groups):
        super().__init__()
        self.heads, self.groups, size = heads, groups, width // heads
        self.q, self.k, self.v = (nn.Linear(width, n * size) for n in (heads, groups, groups))
        self.out = nn.Linear(width, width)

    def forward(self, x):
        def split(y, n):
            return y.reshape(x.shape[0], x.shape[1], n, -1).transpose(1, 2)
        q, k, v = split(self.q(x), self.heads), split(self.k(x), self.groups), split(self.v(x), self.groups)
        k, v = (y.repeat_interleave(self.heads // self.groups, 1) for y in (k, v))
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).reshape(x.shape))


class SwiGlu(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.a, self.b = nn.RMSNorm(width), nn.Linear(width, 2 * width), nn.Linear(width, 2 * width)
        self.c = nn.Linear(2 * width, width)

    def forward(self, x):
        y = self.norm(x)
        return self.c(nn.functional.silu(self.a(y)) * self.b(y))


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = conv(3, 16), conv(16, 32, stride=2), conv(32, 64, stride=2)
        self.up, self.d = nn.ConvTranspose2d(64, 32, 2, 2), conv(64, 32)
        self.e, self.head = conv(48, 16), nn.Conv2d(16, 4, 1)

    def forward(self, x):
        a = self.a(x)
        b = self.b(a)
        d = self.d(torch.cat([self.up(self.c(b)), b], 1))
        d = nn.functional.interpolate(d, scale_factor=2.0, mode="bilinear", align_corners=False)
        return self.head(self.e(torch.cat([d, a], 1)))


class Crnn(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(conv(3, 16), nn.MaxPool2d(2), conv(16, 32), nn.MaxPool2d(2), conv(32, 64),
                                   nn.MaxPool2d((4, 1)))
        self.rnn, self.head = nn.LSTM(128, 64, batch_first=True, bidirectional=True), nn.Linear(128, 40)

    def forward(self, x):
        y = self.trunk(x).flatten(1, 2).transpose(1, 2)
        return self.head(self.rnn(y)[0]).log_softmax(-1)


class Bag(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.head = nn.Embedding(500, 32), nn.Sequential(nn.Linear(32, 64), nn.Tanh(), nn.Linear(64, 5))

    def forward(self, x):
        return self.head(self.words(x).mean(1))


class Vae(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(conv(3, 16, stride=2), conv(16, 32, stride=2), nn.Flatten())
        self.mean, self.spread, self.back = nn.Linear(2048, 32), nn.Linear(2048, 32), nn.Linear(32, 2048)
        self.up = nn.Sequential(nn.ConvTranspose2d(32, 16, 4, 2, 1), nn.ReLU(), nn.ConvTranspose2d(16, 3, 4, 2, 1))

    def forward(self, x):
        y = self.trunk(x)
        mean = self.mean(y)
        return self.up(torch.relu(self.back(mean)).reshape(-1, 32, 8, 8)), mean, self.spread(y)


class Siamese(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(conv(3, 16, stride=2), conv(16, 32, stride=2), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                                   nn.Linear(32, 32))

    def forward(self, a, b):
        a, b = (nn.functional.normalize(self.trunk(x), dim=-1) for x in (a, b))
        return (a * b).sum(-1), (a - b).norm(dim=-1)


class Recommender(nn.Module):
    def __init__(self):
        super().__init__()
        self.user, self.item = nn.Embedding(200, 16), nn.Embedding(500, 16)
        self.deep = nn.Sequential(nn.Linear(40, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, user, item, dense):
        u, i = self.user(user), self.item(item)
        return torch.sigmoid(self.deep(torch.cat([u, i, dense], -1))[:, 0] + (u * i).sum(-1))


class WaveNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Conv1d(1, 24, 1)
        self.gates = nn.ModuleList(nn.Conv1d(24, 48, 3, dilation=2 ** i) for i in range(4))
        self.mixes = nn.ModuleList(nn.Conv1d(24, 24, 1) for _ in range(4))
        self.head = nn.Conv1d(24, 8, 1)

    def forward(self, x):
        x = self.first(x)
        for i, (gate, mix) in enumerate(zip(self.gates, self.mixes)):
            a, b = gate(nn.functional.pad(x, (2 ** (i + 1), 0))).chunk(2, 1)
            x = x + mix(torch.tanh(a) * torch.sigmoid(b))
        return self.head(torch.relu(x))


def encoder():
    layer = nn.TransformerEncoderLayer(64, 4, 128, batch_first=True, activation="gelu", norm_first=True)
    return nn.Sequential(nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), nn.Linear(64, 16))


LAYERS = {  # what builds each network, and its inputs
    "mlp": (lambda: nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.BatchNorm1d(128), nn.Linear(128, 128), nn.GELU(),
                                  nn.Linear(128, 10)), lambda n: noise(n, 64)),
    "cnn": (lambda: nn.Sequential(conv(3, 16), conv(16, 32, stride=2), conv(32, 32), nn.AdaptiveAvgPool2d(1),
                                  nn.Flatten(), nn.Linear(32, 10)), lambda n: pictures(n, 32)),
    "depthwise": (lambda: nn.Sequential(
        conv(3, 16, stride=2), Residual(nn.Sequential(conv(16, 64, 1, active=nn.Hardswish), conv(
            64, 64, groups=64, active=nn.SiLU), nn.Conv2d(64, 16, 1))), nn.AvgPool2d(4), nn.Flatten(),
        nn.Linear(256, 10)), lambda n: pictures(n, 32)),
    "lstm": (lambda: Recurrent(nn.LSTM, 2, True), lambda n: noise(n, 20, 24)),
    "gru": (lambda: Recurrent(nn.GRU), lambda n: noise(n, 20, 24)),
    "rnn": (lambda: Recurrent(nn.RNN, 1, True), lambda n: noise(n, 20, 24)),
    "encoder": (encoder, lambda n: noise(n, 16, 64)),
    "sdpa": (lambda: nn.Sequential(Residual(nn.Sequential(nn.LayerNorm(64), Heads(64, 4, 2))), nn.Linear(64, 64),
                                   Residual(Heads(64, 4, 4)), nn.Linear(64, 16)), lambda n: noise(n, 16, 64)),
    "swiglu": (lambda: nn.Sequential(nn.Linear(64, 64), Residual(SwiGlu(64)), Residual(SwiGlu(64)), nn.RMSNorm(64),
                                     nn.Linear(64, 16)), lambda n: noise(n, 16, 64)),
    "tcn": (lambda: nn.Sequential(nn.Conv1d(8, 32, 5, padding=2), nn.BatchNorm1d(32), nn.ReLU(), Residual(nn.Sequential(
        nn.Conv1d(32, 32, 3, padding=4, dilation=4), nn.PReLU())), nn.Conv1d(32, 16, 4, 4), nn.ELU(), nn.Flatten(),
        nn.Linear(256, 10)), lambda n: noise(n, 8, 64)),
    "conv3d": (lambda: nn.Sequential(nn.Conv3d(1, 8, 3, 1, 1), nn.BatchNorm3d(8), nn.ReLU(), nn.MaxPool3d(2),
                                     nn.Conv3d(8, 16, 3, 1, 1), nn.LeakyReLU(0.1), nn.AdaptiveAvgPool3d(1),
                                     nn.Flatten(), nn.Linear(16, 4)), lambda n: noise(n, 1, 8, 16, 16)),
    "unet": (UNet, lambda n: pictures(n, 32)),
    "norms": (lambda: nn.Sequential(nn.Conv2d(3, 16, 3, 1, 1), nn.GroupNorm(4, 16), nn.Mish(), nn.Conv2d(
        16, 16, 3, 2, 1), nn.InstanceNorm2d(16, affine=True), nn.Softplus(), nn.Conv2d(16, 16, 3, 2, 1), nn.LayerNorm(
            [16, 8, 8]), nn.Hardsigmoid(), nn.Flatten(), nn.Linear(1024, 10), nn.Softmax(-1)),
        lambda n: pictures(n, 32)),
    "super_resolution": (lambda: nn.Sequential(
        nn.Conv2d(3, 32, 5, 1, 2), nn.ReLU(), nn.Conv2d(32, 16, 3, 1, 1), nn.Tanh(), nn.Conv2d(16, 12, 3, 1, 1),
        nn.PixelShuffle(2)), lambda n: pictures(n, 32)),
    "crnn": (Crnn, lambda n: pictures(n, 32)),
    "bag": (Bag, lambda n: words(n, 20, 500)),
    "gan": (lambda: nn.Sequential(nn.Linear(32, 1024), nn.Unflatten(1, (64, 4, 4)), nn.BatchNorm2d(64), nn.LeakyReLU(
        0.2), nn.ConvTranspose2d(64, 32, 4, 2, 1), nn.BatchNorm2d(32), nn.LeakyReLU(0.2), nn.ConvTranspose2d(
            32, 3, 4, 2, 1), nn.Tanh()), lambda n: noise(n, 32)),
    "vae": (Vae, lambda n: pictures(n, 32)),
    "siamese": (Siamese, lambda n: {"a": pictures(n, 32), "b": pictures(n, 32, seed=1)}),
    "recommender": (Recommender, lambda n: {"user": words(n, 1, 200)[:, 0], "item": words(n, 1, 500, 1)[:, 0],
                                            "dense": noise(n, 8)}),
    "wavenet": (WaveNet, lambda n: noise(n, 1, 64)),
}


def layers(path, count, name, exporter, opset, dtype=None, dynamic=True, returns_model=False):
    torch.manual_seed(0)
    build, samples = LAYERS[name]
    values = samples(count)
    model = build()
    if not isinstance(values, dict):
        values = {"input": values}
        model = Named(model, [*values])
    enliven(model)
    settle(model, values)
    if dtype:
        model = Casting(model, dtype)
    export(model, values, path, exporter, opset, dynamic)
    return (values, model) if returns_model else values


class Casting(nn.Module):
    """A network in another float type, with inputs and outputs of float32."""

    def __init__(self, model, dtype):
        super().__init__()
        self.model, self.dtype = model.to(dtype), dtype

    def forward(self, input):
        return self.model(input.to(self.dtype)).float()


class Named(nn.Module):
    """Names the only input of a module `input`."""

    def __init__(self, model, names):
        super().__init__()
        self.model = model
        assert names == ["input"]

    def forward(self, input):
        return self.model(input)


class Pick(nn.Module):
    """The float tensors that a network returns, without dictionaries."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input):
        result = self.model(input)
        if isinstance(result, dict):
            result = result["out"]
        return result


class Detector(nn.Module):
    """Boxes, scores and labels of one image."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input):
        found = self.model([input[0]])[0]
        return found["boxes"], found["scores"], found["labels"]


def vision(path, count, name, exporter, opset, side=64, **options):
    import torchvision
    torch.manual_seed(0)
    folder, _, short = name.rpartition(".")
    models = getattr(torchvision.models, folder) if folder else torchvision.models
    more = {"weights_backbone": None} if folder in ("segmentation", "detection") else {}
    if short in ("vit_b_32",):
        more["image_size"] = side
    if short in ("googlenet", "inception_v3"):
        more["init_weights"] = False
    model = getattr(models, short)(weights=None, **more)
    if folder == "video":
        values = {"input": numpy.stack([pictures(count, 48, seed) for seed in range(4)], 2)}
    else:
        values = {"input": pictures(count, side)}
    enliven(model)
    if folder == "detection":
        export(Detector(model), values, path, exporter, opset, dynamic=False)
        return values
    settle(Named(model, ["input"]), values)
    export(Pick(model), values, path, exporter, opset, **options)
    return values


def timm(path, count, name, exporter, opset, side=64, **options):
    import timm as library
    torch.manual_seed(0)
    sized = any(part in name for part in ("vit_tiny", "deit", "swin", "mixer", "mlp", "xcit", "cait", "eva"))
    model = library.create_model(name, pretrained=False, exportable=True, num_classes=50,
                                 **({"img_size": side} if sized else {}))
    values = {"input": pictures(count, side)}
    enliven(model)
    settle(Named(model, ["input"]), values)
    export(Pick(model), values, path, exporter, opset, **options)
    return values
