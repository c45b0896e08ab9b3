#!/usr/bin/env python3
"""Tests graphs of torch modules: torch.export, the program, and generated modules.

    torch_graphs.py MSCGYM [NAME ...]

Each module below has random weights. It is read with a free number of samples and then checked with another number:
- The graph runs by the program; outputs are within 1e-4 of torch's largest value.
- Joints with weights have names of `named_modules()`, weights have names of parameters and buffers.
- The generated module, read from its files, gives outputs within 1e-5 of torch's largest value.
- One step of training changes the generated module's loss as the original's, within 1e-3 of the loss's change.

Prints a line for each module, and the time of its parts; exits with 1 if one fails, with 77 without torch, torchvision,
timm or transformers.
"""
import importlib.util
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import warnings

try:
    import numpy
    import timm as timm_library
    import torch
    import torchvision
    import transformers
    from torch import nn
except ImportError as error:
    print(f"skipped: {error}; needs torch, torchvision, timm and transformers")
    sys.exit(77)

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))
import models_torch
import models_transformers
from mscgym.torch import from_torch, to_torch

RUN_LIMIT, CODE_LIMIT, STEP_LIMIT = 1e-4, 1e-5, 1e-3
COUNT = 3  # samples that are checked; the graph is read with 2


def vision(name, side=64):
    def build():
        folder, _, short = name.rpartition(".")
        models = getattr(torchvision.models, folder) if folder else torchvision.models
        more = {"weights_backbone": None} if folder == "segmentation" else {}
        more |= {"init_weights": False, "aux_logits": False} if short == "googlenet" else {}
        return models_torch.Pick(getattr(models, short)(weights=None, **more)), pictures(side)
    return build


def video(name):
    def build():
        frames = numpy.stack([models_torch.pictures(COUNT, 32, seed) for seed in range(4)], 2)
        return getattr(torchvision.models.video, name)(weights=None), {"x": frames}
    return build


def timm(name, side=64, **options):
    def build():
        model = timm_library.create_model(name, pretrained=False, num_classes=50, **options)
        return models_torch.Pick(model), pictures(side)
    return build


def text(name):
    def build():
        values = models_transformers.MODELS[name][3](COUNT)
        return models_transformers.Outputs(models_transformers.build(name), [*values]), values
    return build


def layers(name):
    def build():
        make, samples = models_torch.LAYERS[name]
        values = samples(COUNT)
        return make(), values if isinstance(values, dict) else {None: values}
    return build


def pictures(side):
    return {"input": models_torch.pictures(COUNT, side)}


MODULES = {
    **{name: vision(name) for name in [
        "resnet18", "mobilenet_v2", "mobilenet_v3_small", "efficientnet_b0", "shufflenet_v2_x0_5", "squeezenet1_1",
        "densenet121", "googlenet", "mnasnet0_5", "regnet_y_400mf", "convnext_tiny", "swin_t",
        "segmentation.lraspp_mobilenet_v3_large"]},
    "video.r2plus1d_18": video("r2plus1d_18"),
    "timm.resnet10t": timm("resnet10t"), "timm.mobilenetv4_conv_small": timm("mobilenetv4_conv_small"),
    "timm.ghostnet_100": timm("ghostnet_100"), "timm.repvit_m0_9": timm("repvit_m0_9"),
    "timm.convnext_atto": timm("convnext_atto"), "timm.pvt_v2_b0": timm("pvt_v2_b0"),
    "timm.vit_tiny_patch16_224": timm("vit_tiny_patch16_224", img_size=64),
    "timm.mixer_s32_224": timm("mixer_s32_224", img_size=64), "timm.fastvit_t8": timm("fastvit_t8"),
    **{f"transformers.{name}": text(name) for name in [
        "bert", "distilbert", "albert", "gpt2", "llama", "qwen3", "t5", "bart", "whisper", "wav2vec2", "clip", "vit",
        "segformer"]},
    **{f"layers.{name}": layers(name) for name in [
        "lstm", "gru", "rnn", "encoder", "sdpa", "swiglu", "tcn", "conv3d", "unet", "norms", "crnn", "gan", "vae",
        "siamese", "super_resolution"]},
}


def flat(result):
    if isinstance(result, dict):
        result = list(result.values())
    return [result] if isinstance(result, torch.Tensor) else [x for part in result for x in flat(part)]


def check_names(graph, module):
    modules, tensors = dict(module.named_modules()), {**dict(module.named_parameters()), **dict(module.named_buffers())}
    for joint in graph.joints:
        if joint.optype == "constant":
            continue
        if joint.weights and joint.name not in modules:
            base = joint.name.rpartition("_")[0]
            if not (base in modules and joint.name.rpartition("_")[2].isdigit()):
                return f"joint {joint.name} is no module"
        for weight in joint.weights.values():
            if weight.name not in tensors and not weight.name.startswith("const"):
                return f"weight {weight.name} of {joint.name} is no parameter"
    return ""


def worst(found, expected):
    shares = []
    for a, b in zip(found, expected, strict=True):
        b = b.detach().numpy()
        if a.shape != b.shape or a.dtype != b.dtype:
            raise AssertionError(f"{a.dtype}{list(a.shape)}, expected {b.dtype}{list(b.shape)}")
        most = numpy.abs(b[numpy.isfinite(b)]).max(initial=0) if b.size else 0
        difference = numpy.abs(numpy.where(a == b, 0, a.astype(float) - b)).max(initial=0)
        shares.append(float(difference) / (float(most) or 1.0))
    return max(shares)


def run(program, graph, values, names, folder):
    graph.save(folder / "graph.json")
    command = [program, "run", str(folder / "graph.json"), "--output", str(folder / "out"), "--repeat", "1"]
    for name, value in values.items():
        numpy.save(folder / f"{name}.npy", value)
        command += ["--input", f"{name}={folder / f'{name}.npy'}"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise AssertionError(f"mscgym run: {done.stderr.strip()[-600:]}")
    return [numpy.load(folder / "out" / f"{name}.npy") for name in names]


def load(folder):
    spec = importlib.util.spec_from_file_location("generated", folder / "main.py")
    space = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(space)
    return space.load()


def train_step(module, inputs):
    """The loss before and after a step of gradient descent, without dropout and other random numbers."""
    module.train()
    for part in module.modules():
        if getattr(getattr(part, "config", None), "apply_spec_augment", False):
            part.config.apply_spec_augment = False  # random masks of the input
        for name, value in list(vars(part).items()):
            kind = type(part).__name__
            is_rate = "drop" in name or (name == "p" and ("Drop" in kind or kind == "StochasticDepth"))
            if is_rate and isinstance(value, float):
                setattr(part, name, 0.0)

    def loss():
        return sum((x.float() ** 2).mean() for x in flat(module(**inputs)) if x.is_floating_point())
    before = loss()
    parameters = [p for p in module.parameters() if p.requires_grad]
    gradients = torch.autograd.grad(before, parameters, allow_unused=True)
    size = sum(float((g ** 2).sum()) for g in gradients if g is not None) ** 0.5
    with torch.no_grad():
        for parameter, gradient in zip(parameters, gradients):
            if gradient is not None:
                parameter -= (1e-2 / (size or 1.0)) * gradient
        return float(before), float(loss())


def check(program, name, folder):
    torch.manual_seed(0)
    times = [time.perf_counter()]
    module, values = MODULES[name]()
    values = {key: v.astype(numpy.int64) if v.dtype.kind == "i" else v for key, v in values.items()}
    models_torch.enliven(module)
    keys = [key or "x" for key in values]
    if None in values:
        import inspect
        keys = [next(iter(inspect.signature(module.forward).parameters))]
        values = {keys[0]: values[None]}
    models_torch.settle(module, values)
    inputs = {key: torch.from_numpy(value) for key, value in values.items()}
    with torch.no_grad():
        expected = flat(module(**inputs))
    graph = from_torch(module, kwargs={key: x[:2] for key, x in inputs.items()},
                       dynamic_shapes={key: {0: "batch"} for key in keys})
    times.append(time.perf_counter())
    wrong = check_names(graph, module)
    if wrong:
        raise AssertionError(wrong)
    aliases = {tensor.name: tensor.alias for tensor in graph.tensors()}
    found = run(program, graph, values, [aliases[output] for output in graph.outputs], folder)
    ran = worst(found, expected)
    times.append(time.perf_counter())
    to_torch(graph, folder / "generated", inputs=values, outputs=[x.numpy() for x in expected])
    made = load(folder / "generated")
    with torch.no_grad():
        generated = worst([x.numpy() for x in flat(made(**inputs))], expected)
    times.append(time.perf_counter())
    before, after = train_step(module, inputs)
    made_before, made_after = train_step(made, inputs)
    step = max(abs(made_before - before), abs(made_after - after)) / (abs(before - after) or 1.0)
    times.append(time.perf_counter())
    fine = ran <= RUN_LIMIT and generated <= CODE_LIMIT and step <= STEP_LIMIT
    print(f"{name:40} {'ok' if fine else 'FAILED'} {len(graph.joints):5} joints  run {ran:.1e}  code {generated:.1e}  "
          f"loss {before:.4g} -> {after:.4g}, generated {made_before:.4g} -> {made_after:.4g} ({step:.1e})  "
          + " ".join(f"{b - a:.1f}" for a, b in zip(times, times[1:])) + " s", flush=True)
    return fine


def main():
    warnings.simplefilter("ignore")
    transformers.logging.set_verbosity_error()
    torch.set_num_threads(1)
    names = sys.argv[2:] or [*MODULES]
    failed = []
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            try:
                fine = check(os.path.abspath(sys.argv[1]), name, pathlib.Path(folder))
            except Exception as error:  # pylint: disable=broad-exception-caught
                print(f"{name:40} FAILED {type(error).__name__}: {str(error)[:1500]}", flush=True)
                fine = False
        failed += [] if fine else [name]
    print(f"{len(names) - len(failed)} of {len(names)} modules" + (f"; failed: {' '.join(failed)}" if failed else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
