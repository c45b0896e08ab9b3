#!/usr/bin/env python3
"""Runs modules of torch and of Relax that mscgym generates, each alone in an empty folder.

    check_alone.py [NAME ...]

For each network, `to_torch` and `to_relax` write a folder with the outputs of torch as the recorded ones. Its files are
moved to an empty folder, where `python -I main.py` must pass. That Python has only an installed copy of the package
mscgym, and the packages of this Python (numpy, torch or TVM); nothing of the source tree is on its path. With a wrong
weight, main.py must fail.

Needs torch, torchvision, timm and transformers (exits with 77 without them), and apache-tvm for Relax, without which
that half is skipped. Exits with 1 if a check fails.
"""
import importlib.util
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import venv
import warnings

import numpy

import torch_graphs  # exits with 77 without its packages
import torch
from mscgym.safetensors import read_safetensors, write_safetensors
from mscgym.torch import from_torch, to_torch

PYTHON = pathlib.Path(__file__).resolve().parents[2] / "python"
NETWORKS = ["squeezenet1_1", "mobilenet_v3_small", "layers.lstm", "layers.gru", "layers.encoder", "transformers.bert",
            "transformers.distilbert", "transformers.albert", "transformers.wav2vec2", "transformers.segformer",
            "transformers.clip", "transformers.vit"]


def make_python(folder):
    """A Python with the packages of this one and an installed copy of mscgym."""
    venv.create(folder, symlinks=True)
    site = next(folder.glob("lib/python*/site-packages"))
    others = [path for path in sys.path if path.endswith("-packages")]
    (site / "others.pth").write_text("\n".join(others) + "\n")
    shutil.copytree(PYTHON / "mscgym", site / "mscgym", ignore=shutil.ignore_patterns("__pycache__"))
    python = folder / "bin" / "python"
    found = subprocess.run([python, "-I", "-c", "import mscgym, sys; print(mscgym.__file__, *sys.path)"], cwd=folder,
                           capture_output=True, text=True, check=True).stdout
    assert str(PYTHON) not in found and str(site / "mscgym") in found, found
    return python


def write_torch(name, folder):
    build = torch_graphs.MODULES[name]
    torch.manual_seed(0)
    module, values = build()
    torch_graphs.models_torch.enliven(module)
    values = {key: value[:2] for key, value in values.items()}
    torch_graphs.models_torch.settle(module, {key or "x": value for key, value in values.items()})
    tensors = {key: torch.from_numpy(value) for key, value in values.items()}
    args = [tensors.pop(None)] if None in tensors else []
    with torch.no_grad():
        outputs = [x.numpy() for x in torch_graphs.flat(module(*args, **tensors))]
    graph = from_torch(module, *args, kwargs=tensors)
    aliases = {tensor.name: tensor.alias for tensor in graph.tensors()}
    to_torch(graph, folder, inputs=dict(zip([aliases[name] for name in graph.inputs], values.values())),
             outputs=outputs)


def write_relax(name, folder):
    import relax_models
    from mscgym.tvm import from_relax, to_relax
    module, values, outputs, _ = relax_models.imported(name, "torch", folder)
    graph = from_relax(module)
    aliases = {tensor.name: tensor.alias for tensor in graph.tensors()}
    to_relax(graph, folder, inputs=dict(zip([aliases[name] for name in graph.inputs], values)), outputs=outputs)


def main_passes(python, folder):
    done = subprocess.run([python, "-I", "main.py"], cwd=folder, capture_output=True, text=True, errors="replace",
                          check=False)
    differences = [line.split("largest difference ")[1] for line in done.stdout.splitlines() if "difference" in line]
    return done.returncode, "; ".join(differences) if done.returncode == 0 else done.stdout + done.stderr


def spoil(folder):
    """Makes the largest weight wrong."""
    path = folder / "weights.safetensors"
    arrays = {key: numpy.array(value) for key, value in read_safetensors(str(path)).items()}
    name = max((key for key in arrays if arrays[key].dtype.kind == "f"), key=lambda key: arrays[key].size)
    arrays[name] = 1.5 * arrays[name] + 0.1
    write_safetensors(str(path), {key: [value] for key, value in arrays.items()})
    return name


def check(write, name, python, work):
    """A line for the table, and whether all checks passed."""
    started = time.perf_counter()
    made, alone = work / "made", work / "alone"
    for folder in (made, alone):
        shutil.rmtree(folder, ignore_errors=True)
    made.mkdir()
    write(name, made)
    shutil.move(made, alone)
    files = sorted(path.name for path in alone.iterdir() if not path.name.startswith("__"))
    code, text = main_passes(python, alone)
    wrong = spoil(alone)
    spoiled, _ = main_passes(python, alone)
    is_fine = code == 0 and spoiled == 1 and "main.py" in files and text
    line = text if code == 0 else f"main.py exits with {code}: {' '.join(text.split())[-400:]}"
    more = "" if spoiled == 1 else f"; with a wrong '{wrong}' it exits with {spoiled}"
    return f"{'ok' if is_fine else 'FAILED'}  {line}{more}  {time.perf_counter() - started:.1f} s", bool(is_fine)


def main():
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    kinds = {"torch": write_torch, "Relax": write_relax}
    if importlib.util.find_spec("tvm") is None:
        print("skipped: Relax; needs apache-tvm")
        del kinds["Relax"]
    n_failed = 0
    with tempfile.TemporaryDirectory(prefix="mscgym_alone_") as holder:
        work = pathlib.Path(holder)
        python = make_python(work / "python")
        for kind, write in kinds.items():
            n_fine = 0
            names = sys.argv[1:] or NETWORKS
            for name in names:
                try:
                    line, is_fine = check(write, name, python, work)
                except Exception as error:  # pylint: disable=broad-exception-caught
                    line, is_fine = f"FAILED  {type(error).__name__}: {' '.join(str(error).split())[:400]}", False
                n_fine += is_fine
                print(f"{kind:6} {name:26} {line}", flush=True)
            print(f"{kind}: {n_fine} of {len(names)} generated programs pass alone")
            n_failed += len(names) - n_fine
    return 1 if n_failed else 0


if __name__ == "__main__":
    sys.exit(main())
