"""torch-pruning, then QAT by torchao or NNCF: half of the channels, two epochs.

    PYTHON qat.py torchao|nncf BITS NETWORK FOLDER IMAGES SEED [--held-back]

PYTHON needs torch, torch-pruning, torchao or nncf, and what methods_data.py needs. NETWORK and its
trained weights, FOLDER/NETWORK.pt, are those of ../training.py. torch-pruning removes the channels of
least magnitude, but keeps the last layer's outputs. Then the fake-quantised network is trained with
labels, at the rate and batch of ../training.py. torchao's quantiser for x86 has activations of 8 bits,
and weights of 8 or, by a specification of its own, 4 bits. nncf.quantize has 8 bits, from 512 images.
Prints one row in JSON. Bytes are those of the weights' integers, and of a float bias and a float scale
per channel. Seconds are processor time of the training.
"""
import copy
import dataclasses
import json
import os
import sys
import time
import warnings

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
warnings.simplefilter("ignore")

import torch  # noqa: E402
import torch_pruning  # noqa: E402
from torch import nn  # noqa: E402

import training  # noqa: E402


def accuracy(network, x, labels):
    with torch.no_grad():
        scores = torch.cat([network(part) for part in torch.from_numpy(x).split(500)])
    return float((scores.argmax(1).numpy() == labels).mean())


def with_torchao(network, x, batch, bits):
    """The network to train, and a function that makes the integer network of it."""
    import torchao.quantization.pt2e as pt2e
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_qat_pt2e
    from torchao.quantization.pt2e.quantizer import x86_inductor_quantizer as x86
    samples = torch.export.Dim("samples", min=2, max=1000)
    program = torch.export.export(network.train(), (x[:batch],), dynamic_shapes=({0: samples},)).module()
    config = x86.get_default_x86_inductor_quantization_config(is_qat=True)
    if bits < 8:
        low, high = -2 ** (bits - 1), 2 ** (bits - 1) - 1
        made = config.weight.observer_or_fake_quant_ctr.p
        observer = made.func.with_args(**{**made.keywords, "quant_min": low, "quant_max": high})
        weight = dataclasses.replace(config.weight, quant_min=low, quant_max=high, observer_or_fake_quant_ctr=observer)
        config = dataclasses.replace(config, weight=weight)
    quantizer = x86.X86InductorQuantizer()
    quantizer.set_global(config)
    program = prepare_qat_pt2e(program, quantizer)
    pt2e.allow_exported_model_train_eval(program)
    return program, lambda: convert_pt2e(copy.deepcopy(program))


class Root(nn.Module):
    """Around a network, because NNCF adds a module to the root, which nn.Sequential would call."""

    def __init__(self, network):
        super().__init__()
        self.network = network

    def forward(self, x):
        return self.network(x)


def with_nncf(network, x, batch, bits):
    import nncf
    if bits != 8:
        sys.exit("nncf.quantize trains 8 bits only")
    made = nncf.quantize(Root(network).eval(), nncf.Dataset(list(x[:512].split(batch))), subset_size=512 // batch)
    return made, lambda: made


TOOLS = {"torchao": with_torchao, "nncf": with_nncf}


def main(tool, bits, name, folder, most, seed, is_held_back):
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    make, n_images, _, rate, batch = training.NETWORKS[name]
    x, y, test, labels = training.images(min(n_images, most), is_held_back)
    network = make()
    network.load_state_dict(torch.load(os.path.join(folder, f"{name}.pt")))
    n_whole = sum(p.numel() for p in network.parameters())
    last = [part for part in network.modules() if isinstance(part, nn.Linear)][-1]
    torch_pruning.pruner.BasePruner(
        network.eval(), x[:2], importance=torch_pruning.importance.GroupMagnitudeImportance(p=2), pruning_ratio=0.5,
        ignored_layers=[last]).step()
    layers = [part.weight for part in network.modules() if isinstance(part, (nn.Conv2d, nn.Linear))]
    n_bytes = sum(w.numel() * bits / 8 + 8 * len(w) for w in layers)
    before, start = accuracy(network, test, labels), time.process_time()
    program, finish = TOOLS[tool](network, x, batch, bits)
    training.train(program, x, lambda z, i: nn.functional.cross_entropy(z, y[i]), 2, rate, batch, seed)
    seconds = time.process_time() - start
    print(json.dumps({"before": before, "accuracy": accuracy(finish(), test, labels), "bytes": n_bytes / (4 * n_whole),
                      "seconds": seconds}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), *sys.argv[3:5], int(sys.argv[5]), int(sys.argv[6]), "--held-back" in sys.argv)
