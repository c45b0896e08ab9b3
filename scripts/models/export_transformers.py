"""Makes transformers to measure quantisers on: export_transformers.py FOLDER [NAME...]. NAME is

    bert-8m, gpt2-8m, llama-8m   random weights of the scale of trained ones; random ids, the
                                 frequent ones more often, [N, 64]; a score for each token
    encoder                      the encoder of train_text.py, trained here for about a minute

Writes NAME.onnx and NAME.pt, the weights in torch; NAME.inputs.npz, 64 samples to calibrate with; and
NAME.unseen.npz, 64 samples to measure with, which share no text with the former. Needs torch and
transformers. `build` returns a network in torch, `inputs` the names of its inputs.
"""
import contextlib
import io
import os
import sys
import warnings

import numpy
import torch
import transformers
from torch import nn

from train_text import Bert, Encoder, licences, passages, train

WORDS, LENGTH, SAMPLES = 1024, 64, 64
SIZE = {"vocab_size": WORDS, "hidden_size": 320, "num_hidden_layers": 6, "num_attention_heads": 5}
RANDOM = {  # class of the network, of its configuration, and the configuration's values
    "bert-8m": ("BertForTokenClassification", "BertConfig", {**SIZE, "intermediate_size": 1280, "num_labels": 64}),
    "gpt2-8m": ("GPT2LMHeadModel", "GPT2Config",
                {"vocab_size": WORDS, "n_embd": 320, "n_layer": 6, "n_head": 5, "n_positions": 128}),
    "llama-8m": ("LlamaForCausalLM", "LlamaConfig",
                 {**SIZE, "intermediate_size": 864, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}),
}
NAMES = (*RANDOM, "encoder")


class Logits(nn.Module):
    """A network of transformers that reads ids and returns its logits."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids):
        return self.model(input_ids=input_ids).logits


def replace_conv1d(model):
    """GPT-2's Conv1D is a linear layer with a transposed weight; tools for torch know Linear."""
    for name, part in list(model.named_modules()):
        if type(part).__name__ == "Conv1D":
            linear = nn.Linear(*part.weight.shape)
            linear.weight.data, linear.bias.data = part.weight.data.t().contiguous(), part.bias.data
            model.set_submodule(name, linear)


def build_random(name):
    kind, config, values = RANDOM[name]
    torch.manual_seed(0)
    model = getattr(transformers, kind)(getattr(transformers, config)(**values, use_cache=False))
    replace_conv1d(model)
    for part in model.modules():  # initial weights of 0.02 leave attention without effect
        if isinstance(part, nn.Linear):
            nn.init.normal_(part.weight, std=part.weight.shape[1] ** -0.5)
            if part.bias is not None:
                nn.init.normal_(part.bias, std=0.1)
        elif isinstance(part, nn.Embedding):
            nn.init.normal_(part.weight, std=part.weight.shape[1] ** -0.5)
        elif "Norm" in type(part).__name__:  # a few channels are large, as in trained networks
            nn.init.normal_(part.weight, 1, 0.3)
            part.weight.data[torch.randperm(len(part.weight))[:4]] *= 4
    return Logits(model).eval()


def build(name, folder=None):
    """The network in torch, with the weights that the folder has."""
    model = Encoder().eval() if name == "encoder" else build_random(name)
    if folder:
        model.load_state_dict(torch.load(os.path.join(folder, name + ".pt")))
    return model


def inputs(name):
    return Bert.inputs if name == "encoder" else ["input_ids"]


def random_ids(seed):
    shares = 1 / numpy.arange(1, WORDS + 1)
    ids = numpy.random.default_rng(seed).choice(WORDS, (SAMPLES, LENGTH), p=shares / shares.sum())
    return (torch.from_numpy(ids),)


def make(name, folder):
    model = build(name)
    if name == "encoder":
        torch.manual_seed(0)
        tokens = Bert.tokens(licences())
        train(Bert, model, tokens)
        blocks = tokens[:len(tokens) // 8192 * 8192].reshape(-1, 4096)
        feeds = [Bert.feed(model, passages(blocks[i::2].ravel(), SAMPLES, numpy.random.RandomState(i), False),
                           numpy.random.RandomState(2 + i)) for i in range(2)]
    else:
        feeds = [random_ids(seed) for seed in range(2)]
    path, names = os.path.join(folder, name), inputs(name)
    for feed, end in zip(feeds, ("inputs", "unseen")):
        numpy.savez_compressed(f"{path}.{end}.npz", **{n: x.numpy() for n, x in zip(names, feed)})
    torch.save(model.state_dict(), path + ".pt")
    export(name, model, feeds[0], path + ".onnx")


def export(name, model, feed, path):
    axes = Bert.axes if name == "encoder" else {"input_ids": {0: "N"}}
    shapes = {n: {axis: torch.export.Dim(d) if d == "N" else torch.export.Dim.DYNAMIC for axis, d in axes[n].items()}
              for n in inputs(name)}
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()), torch.no_grad():
        warnings.simplefilter("ignore")
        torch.onnx.export(model, tuple(x[:2] for x in feed), path + ".part", dynamo=True, opset_version=18,
                          input_names=inputs(name), output_names=["scores"], dynamic_shapes=tuple(shapes.values()),
                          external_data=False, verbose=False)
    os.replace(path + ".part", path)


def main(folder, *names):
    transformers.logging.set_verbosity_error()
    os.makedirs(folder, exist_ok=True)
    for name in names or NAMES:
        make(name, folder)
        print(name, os.path.getsize(os.path.join(folder, name + ".onnx")))


if __name__ == "__main__":
    main(*sys.argv[1:])
