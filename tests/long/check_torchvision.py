#!/usr/bin/env python3
"""Tests torchvision's architectures as PyTorch exports them: outputs, a short search, its export.

    check_torchvision.py MSCGYM [--device cpu|vulkan] [MODEL ...]

The networks have random weights, random batch normalisation, and small images. For each:
- Outputs agree with onnxruntime's within 1e-4 of the largest value (1e-3 on vulkan).
- In a search of a few trials with 8 and 4 bits, every trial is complete.
- The uniform 8-bit plan, exported and run by onnxruntime, has mscgym's loss within 1 % or five
  times the plan's noise, which is large for untrained networks.

Detectors give a varying number of boxes in an order that near ties decide. For them, the number of
boxes and the scores, within 1e-2, are compared. A search of a detector is refused, and the loss is
measured on the tensors that the refusal names. Prints a table; exits with 1 if a model fails. Needs
torch, torchvision, onnx and onnxruntime.
"""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import warnings

import numpy
import onnx
import onnxruntime
import torch
import torchvision

IMAGES, SIDE = 4, 64
SIDES = {"inception_v3": 96, "vit_b_32": 224, "maxvit_t": 224, "alexnet": 224, "vgg11_bn": 224}
MODELS = [
    "alexnet", "vgg11_bn", "resnet18", "resnext50_32x4d", "squeezenet1_0", "densenet121",
    "googlenet", "inception_v3", "shufflenet_v2_x1_0", "mobilenet_v3_small", "efficientnet_b0",
    "efficientnet_v2_s", "mnasnet0_5", "regnet_y_400mf", "convnext_tiny", "vit_b_32", "swin_t",
    "maxvit_t", "segmentation.deeplabv3_mobilenet_v3_large",
    "segmentation.lraspp_mobilenet_v3_large", "segmentation.fcn_resnet50", "video.r3d_18",
    "video.r2plus1d_18", "detection.ssdlite320_mobilenet_v3_large",
    "detection.fasterrcnn_mobilenet_v3_large_320_fpn", "detection.retinanet_resnet50_fpn"]
LIMITS = {"cpu": 1e-4, "vulkan": 1e-3}
DETECTOR_LIMIT = 1e-2


class Segmentation(torch.nn.Module):
    """Returns only the class map of a segmentation model."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, x):
        return self.model(x)["out"]


def make_model(name):
    torch.manual_seed(0)
    folder, _, short = name.rpartition(".")
    models = getattr(torchvision.models, folder) if folder else torchvision.models
    options = {} if folder in ("", "video") else {"weights_backbone": None}
    model = getattr(models, short)(weights=None, **options).eval()
    for part in model.modules():
        if isinstance(part, torch.nn.modules.batchnorm._BatchNorm):
            part.running_mean.normal_(0, 0.1)
            part.running_var.uniform_(0.5, 1.5)
        elif isinstance(part, torch.nn.Linear) and not part.weight.any():
            # A head that is initialised with zeros.
            torch.nn.init.normal_(part.weight, std=part.in_features ** -0.5)
    return Segmentation(model) if folder == "segmentation" else model


def make_inputs(name):
    random = numpy.random.RandomState(0)
    if name.startswith("detection."):
        return random.rand(3, SIDE, SIDE).astype("float32")
    if name.startswith("video."):
        return random.standard_normal((IMAGES, 3, 4, 48, 48)).astype("float32")
    side = SIDES.get(name, SIDE)
    return random.standard_normal((IMAGES, 3, side, side)).astype("float32")


def export(name, values, path):
    sample = torch.from_numpy(values)
    arguments = ([sample],) if name.startswith("detection.") else (sample,)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(make_model(name), arguments, path, opset_version=16, input_names=["x"])


def run(*command):
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode != 0:
        raise RuntimeError(f"{' '.join(command[:3])}: {result.stderr.strip()[-500:]}")
    return result.stdout


def peer_outputs(path, values, tensors=None):
    """onnxruntime's outputs, or the named tensors instead."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    model = onnx.load(path)
    if tensors:
        del model.graph.output[:]
        model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in tensors)
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    return dict(zip([o.name for o in session.get_outputs()], session.run(None, {"x": values})))


def check_outputs(options, path, theirs, values, folder):
    """max |difference| / max |output| over all float outputs, or over a detector's scores."""
    data, worst = os.path.join(folder, "x.npy"), 0
    numpy.save(data, values)
    run(options.mscgym, "run", path, "--device", options.device, "--input", f"x={data}", "--output",
        folder, "--quiet", "--repeat", "0")
    is_detector = values.ndim == 3
    for name, y in theirs.items():
        ours = numpy.load(os.path.join(folder, name.replace("/", "_").replace(":", "_") + ".npy"))
        if ours.shape != y.shape:
            raise RuntimeError(f"output {name} is {ours.shape}, expected {y.shape}")
        if y.size and y.dtype.kind == "f" and not (is_detector and y.ndim > 1):
            worst = max(worst, numpy.abs(ours - y).max() / numpy.abs(y).max())
    return worst


def search(options, path, values, folder, tensors=None):
    data, record = os.path.join(folder, "x.npz"), os.path.join(folder, "r.jsonl")
    numpy.savez(data, x=values)
    config = {"workspace": folder, "model": path, "device": options.device,
              "dataset": {"inputs": data},
              "quantize": {"gym": [{"record": "r.jsonl", "parallel": 2, "budget": {"trials": 2},
                                    "env": {"choices": [{"bits": 8}, {"bits": 4}],
                                            "loss_tensors": tensors},
                                    "agent": {"type": "random"}}]}}
    config_path = os.path.join(folder, "search.json")
    with open(config_path, "w") as file:
        json.dump(config, file)
    run(options.mscgym, "search", config_path, "--quiet")
    with open(record) as file:
        lines = [json.loads(line) for line in file]
    return record, [line for line in lines if line["kind"] == "trial"]


def find_loss_tensors(options, path, values, folder):
    try:
        search(options, path, values, folder)
    except RuntimeError as error:
        named = re.search(r"such as (\[.*\])", str(error))
        if named:
            return json.loads(named[1])
        raise
    raise RuntimeError("a detector's outputs were compared")


def check_export(options, record, trial, theirs, values, folder):
    """Returns (relative difference between onnxruntime's loss and mscgym's, the limit)."""
    path = os.path.join(folder, "exported.onnx")
    examined = json.loads(run(options.mscgym, "export", record, "--trial", str(trial["id"]), "-o",
                              path, "--quiet", "--json"))
    losses = [numpy.mean((y.astype("float64") - theirs[name]) ** 2) /
              numpy.mean(theirs[name].astype("float64") ** 2)
              for name, y in peer_outputs(path, values, list(theirs)).items()]
    mine = trial["metrics"]["distill_loss"]
    return abs(numpy.mean(losses) - mine) / mine, max(0.01, 5 * examined["noise"])


def check(options, name):
    with tempfile.TemporaryDirectory() as folder:
        path, values = os.path.join(folder, "model.onnx"), make_inputs(name)
        export(name, values, path)
        theirs = peer_outputs(path, values)
        difference = check_outputs(options, path, theirs, values, folder)
        is_detector = values.ndim == 3
        limit = DETECTOR_LIMIT if is_detector else LIMITS[options.device.split(":")[0]]
        passes = difference <= limit
        tensors = None
        if is_detector:
            tensors = find_loss_tensors(options, path, values, folder)
            theirs = peer_outputs(path, values, tensors)
        record, trials = search(options, path, values, folder, tensors)
        complete = sum(t["state"] == "complete" for t in trials)
        off, most = check_export(options, record, trials[0], theirs, values, folder)
        passes = passes and complete == len(trials) > 2 and off <= most
    print(f"| {name} | {difference:.1e} | {complete} of {len(trials)} | {off:.1e} (at most "
          f"{most:.1e}) | {'' if passes else 'FAILS'} |", flush=True)
    return passes


def check_or_tell(options, name):
    try:
        return check(options, name)
    except (RuntimeError, torch.onnx.errors.OnnxExporterError) as error:
        print(f"| {name} | | | | FAILS: {error} |", flush=True)
        return False


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("mscgym", type=os.path.abspath)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    print("| model | output | trials complete | loss, 8 bits | |\n|---|---|---|---|---|")
    results = [check_or_tell(options, name) for name in options.names or MODELS]
    sys.exit(int(not all(results)))


main()
