"""torch-pruning and torchao: half of the channels, then two epochs of QAT with 8 bits.

    PYTHON qat.py NETWORK FOLDER IMAGES

PYTHON needs torch, torch-pruning, torchao and what methods_data.py needs. NETWORK and its trained
weights, FOLDER/NETWORK.pt, are those of ../training.py. torch-pruning removes the channels of least
magnitude, but keeps the last layer's outputs. torchao's quantiser for x86 trains the exported program.
Prints one row. Bytes are those of 8-bit weights, and of a float bias and a float scale per channel.
"""
import copy
import os
import sys
import warnings

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
warnings.simplefilter("ignore")

import numpy  # noqa: E402
import torch  # noqa: E402
import torch_pruning  # noqa: E402
import torchao.quantization.pt2e as pt2e  # noqa: E402
from torch import nn  # noqa: E402
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_qat_pt2e  # noqa: E402
from torchao.quantization.pt2e.quantizer import x86_inductor_quantizer as x86  # noqa: E402

import methods_data  # noqa: E402
import training  # noqa: E402


def accuracy(network, x, labels):
    with torch.no_grad():
        scores = torch.cat([network(part) for part in torch.from_numpy(x).split(500)])
    return float((scores.argmax(1).numpy() == labels).mean())


def main(name, folder, most):
    torch.set_num_threads(1)
    make, n_images, _, rate, batch = training.NETWORKS[name]
    n = min(n_images, most)
    x = torch.from_numpy((methods_data.fashion_images("train-images-idx3-ubyte")[:n] / 255).astype(numpy.float32))
    y = torch.from_numpy(methods_data.fashion_file("train-labels-idx1-ubyte", 8)[:n].astype(numpy.int64))
    test, labels = methods_data.fashion_validation(), methods_data.fashion_labels()
    network = make()
    network.load_state_dict(torch.load(os.path.join(folder, f"{name}.pt")))
    n_whole = sum(p.numel() for p in network.parameters())
    last = [part for part in network.modules() if isinstance(part, nn.Linear)][-1]
    torch_pruning.pruner.BasePruner(
        network.eval(), x[:2], importance=torch_pruning.importance.GroupMagnitudeImportance(p=2), pruning_ratio=0.5,
        ignored_layers=[last]).step()
    before = accuracy(network, test, labels)
    samples = torch.export.Dim("samples", min=2, max=1000)
    program = torch.export.export(network.train(), (x[:batch],), dynamic_shapes=({0: samples},)).module()
    quantizer = x86.X86InductorQuantizer()
    quantizer.set_global(x86.get_default_x86_inductor_quantization_config(is_qat=True))
    program = prepare_qat_pt2e(program, quantizer)
    pt2e.allow_exported_model_train_eval(program)
    training.train(program, x, y, lambda z, _, labels: nn.functional.cross_entropy(z, labels), 2, rate, batch)
    made = convert_pt2e(copy.deepcopy(program))
    layers = [part.weight for part in network.modules() if isinstance(part, (nn.Conv2d, nn.Linear))]
    n_bytes = sum(w.numel() + 8 * len(w) for w in layers)
    print(f"{name:8} torch-pruning {torch_pruning.__version__}, torchao, 8 bits: accuracy {before:.4f} before "
          f"training, {accuracy(made, test, labels):.4f} after, bytes {n_bytes / (4 * n_whole):.3f}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
