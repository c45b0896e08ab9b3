#!/usr/bin/env python3
"""Tests channel groups of networks that torch exports here, with both of its exporters.

    check_torch_channels.py PRUNE_TOOL all|NAME ...

Recurrent layers, attention and, if timm and transformers are installed, small networks of theirs
with random weights: with a symbolic and a fixed batch, and with a symbolic sequence length. Each
must have the number of units counted by hand here: hidden units, heads, and features in between. At
densities 0.7 and 0.4, masks, the pruned model and ONNX Runtime with the pruned file must agree
(check_pruned.py). Exits with 77 without torch or onnxruntime.
"""
import inspect
import logging
import os
import sys
import tempfile
import warnings

try:
    import numpy as np
    import onnxruntime  # noqa: F401, check_pruned needs it
    import onnxscript  # noqa: F401, torch's exporter needs it
    import torch
    from torch import nn
    from torch.nn import functional
except ImportError as error:
    print(f"skipped: {error}; needs numpy, onnxruntime, onnxscript and torch")
    sys.exit(77)

import check_pruned

B, T, HEADS, SIZE = 2, 5, 4, 16


class Recurrent(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.layer = layer
        self.fc = nn.Linear(layer.hidden_size * (2 if layer.bidirectional else 1), 4)

    def forward(self, x, *state):
        y = self.layer(x, state[0] if len(state) == 1 else state or None)[0]
        return self.fc(y[:, -1] if self.layer.batch_first else y[-1])


class Attention(nn.Module):
    def __init__(self, has_weights, batch_first=True):
        super().__init__()
        self.before, self.other = nn.Linear(12, SIZE), nn.Linear(12, SIZE)
        self.after = nn.Linear(SIZE, 4)
        self.attention = nn.MultiheadAttention(SIZE, HEADS, batch_first=batch_first)
        self.has_weights = has_weights

    def forward(self, x, z=None):
        q = self.before(x)
        k = q if z is None else self.other(z)
        y, weights = self.attention(q, k, k, need_weights=self.has_weights)
        return (self.after(y), weights) if self.has_weights else self.after(y)


class Scaled(nn.Module):
    def __init__(self, is_causal):
        super().__init__()
        self.qkv, self.out, self.is_causal = nn.Linear(SIZE, 3 * SIZE), nn.Linear(SIZE, 4), is_causal

    def forward(self, x):
        b, t, _ = x.shape
        q, k, v = (p.view(b, t, HEADS, SIZE // HEADS).transpose(1, 2)
                   for p in self.qkv(x).chunk(3, -1))
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=self.is_causal)
        return self.out(y.transpose(1, 2).reshape(b, t, SIZE))


class Behind(nn.Module):
    """A network followed by a layer, so that the network's outputs are not outputs of the model."""

    def __init__(self, network):
        super().__init__()
        self.network, self.fc = network, nn.Linear(SIZE, 4)

    def forward(self, *inputs):
        return self.fc(self.network(*inputs))


class Named(nn.Module):
    """A network of transformers, called with the names of its inputs."""

    def __init__(self, network, names):
        super().__init__()
        self.network, self.names = network, names

    def forward(self, *inputs):
        return self.network(**dict(zip(self.names, inputs)), return_dict=True)[0]


def torch_models():
    """Name, model, inputs, batch axis of each input, number of units (or the least and the most)."""
    x, turned = torch.randn(B, T, 12), torch.randn(T, B, 12)
    for kind, n_states in (("LSTM", 2), ("GRU", 1)):
        layer = getattr(nn, kind)
        state = torch.randn(1, B, SIZE)
        yield kind, Recurrent(layer(12, SIZE, batch_first=True)), (x,), [0], 16
        yield kind + "_2", Recurrent(layer(12, SIZE, 2, batch_first=True)), (x,), [0], 32
        yield (kind + "_both", Recurrent(layer(12, SIZE, 2, bidirectional=True, batch_first=True)),
               (x,), [0], 32)
        yield kind + "_turned", Recurrent(layer(12, SIZE)), (turned,), [1], 16
        yield (kind + "_state", Recurrent(layer(12, SIZE, batch_first=True)),
               (x, *[state] * n_states), [0] + [1] * n_states, 16)
    z = torch.randn(B, 6, 12)
    for has_weights in (False, True):
        name = "attention" + ("_weights" if has_weights else "")
        # Units: input features, heads, output features. If averaged attention weights are an
        # output, heads remain; then features may be removed at the same place of all heads, of
        # queries, keys and values together or separately.
        most = HEADS if not has_weights else 2 * SIZE // HEADS
        least = HEADS if not has_weights else 0
        yield name, Attention(has_weights), (x,), [0], (16 + least + 16, 16 + most + 16)
        yield (name + "_cross", Attention(has_weights), (x, z), [0, 0],
               (32 + least + 16, 32 + most + 16))
    yield "attention_turned", Attention(False, False), (turned,), [1], 16 + HEADS + 16
    wide = torch.randn(B, T, SIZE)
    encoder = nn.TransformerEncoderLayer(SIZE, HEADS, 32, batch_first=True)
    yield "encoder", Behind(encoder), (wide,), [0], HEADS + 32
    yield ("decoder", Behind(nn.TransformerDecoderLayer(SIZE, HEADS, 32, batch_first=True)),
           (wide, torch.randn(B, 6, SIZE)), [0, 0], 2 * HEADS + 32)
    yield "scaled", Scaled(False), (wide,), [0], HEADS
    yield "scaled_causal", Scaled(True), (wide,), [0], HEADS


def timm_models():
    import timm
    vit = timm.create_model("vit_tiny_patch16_224", pretrained=False, img_size=32, patch_size=8,
                            depth=2, num_classes=5)
    yield "timm_vit", vit, (torch.randn(B, 3, 32, 32),), [0], 2 * (3 + 768)


def transformers_models():
    import transformers as t
    words = torch.randint(0, 50, (B, 7))
    mask = torch.ones(B, 7, dtype=torch.long)
    sizes = {"hidden_size": SIZE, "num_hidden_layers": 2, "num_attention_heads": HEADS,
             "intermediate_size": 32}
    text = {**sizes, "vocab_size": 50, "max_position_embeddings": 16}
    for how in ("eager", "sdpa"):
        bert = t.BertForSequenceClassification(t.BertConfig(**text, attn_implementation=how))
        yield ("bert_" + how, Named(bert, ("input_ids", "attention_mask")), (words, mask), [0, 0],
               2 * (HEADS + 32) + SIZE)
        distil = t.DistilBertForSequenceClassification(t.DistilBertConfig(
            dim=SIZE, n_layers=2, n_heads=HEADS, hidden_dim=32, vocab_size=50,
            max_position_embeddings=16, attn_implementation=how))
        yield ("distilbert_" + how, Named(distil, ("input_ids", "attention_mask")), (words, mask),
               [0, 0], 2 * (HEADS + 32) + SIZE)
        vit = t.ViTForImageClassification(t.ViTConfig(**sizes, image_size=16, patch_size=8,
                                                      attn_implementation=how))
        yield ("vit_" + how, Named(vit, ("pixel_values",)), (torch.randn(B, 3, 16, 16),), [0],
               2 * (HEADS + 32))
        gpt = t.GPT2LMHeadModel(t.GPT2Config(n_embd=SIZE, n_layer=2, n_head=HEADS, n_positions=16,
                                             vocab_size=50, use_cache=False,
                                             attn_implementation=how))
        # Its mask depends on whether lengths are known; torch's older exporter cannot write that.
        yield "gpt2_" + how, Named(gpt, ("input_ids",)), (words,), [0], 2 * (HEADS + 64)


def models():
    yield from torch_models()
    for more in (timm_models, transformers_models):
        try:
            yield from more()
        except ImportError as error:
            print(f"left out: {error}")


def symbols(model, inputs, axes, has_length):
    """The symbolic axes as torch.export expects them: in the form of forward's arguments."""
    batch, length = torch.export.Dim("N", min=1, max=512), torch.export.Dim("T", min=1, max=512)
    each = [{axis: batch} for axis in axes]
    if has_length:
        each[0][1 - axes[0]] = length
        for i, x in enumerate(inputs[1:], 1):
            if x.shape == inputs[0].shape and x.dtype == torch.long:
                each[i][1 - axes[i]] = length
    out = []
    for parameter in inspect.signature(model.forward).parameters.values():
        if parameter.kind == parameter.VAR_POSITIONAL:
            out += [tuple(each[len(out):])] if len(out) < len(each) else []
        elif len(out) < len(each):
            out.append(each[len(out)])
    return tuple(out)


def export(path, is_dynamo, how, model, inputs, axes):
    names = [f"x{i}" for i in range(len(inputs))]
    if is_dynamo:
        dynamic = None if how == "fixed" else symbols(model, inputs, axes, how == "length")
        torch.onnx.export(model, inputs, path, dynamo=True, input_names=names,
                          dynamic_shapes=dynamic, verbose=False, external_data=False)
        return
    dynamic = {name: {axis: "N"} for name, axis in zip(names, axes)}
    if how == "length":
        dynamic["x0"][1 - axes[0]] = "T"
        for name, axis, x in list(zip(names, axes, inputs))[1:]:
            if x.shape == inputs[0].shape and x.dtype == torch.long:
                dynamic[name][1 - axis] = "T"
    torch.onnx.export(model, inputs, path, dynamo=False, input_names=names, opset_version=17,
                      dynamic_axes=None if how == "fixed" else dynamic)


def check(tool, path, inputs, n_units, folder):
    feeds = {f"x{i}": x.numpy() for i, x in enumerate(inputs)}
    is_good = True
    for density in (0.7, 0.4):
        facts = check_pruned.check(tool, path, density, 0, folder, feeds)
        least, most = n_units if isinstance(n_units, tuple) else (n_units, n_units)
        if facts is not None and not least <= facts["units"] <= most:
            print(f"WRONG {os.path.basename(path)}: {facts['units']} units, expected {n_units}")
        is_good = is_good and facts is not None and least <= facts["units"] <= most
    return is_good


def main():
    warnings.filterwarnings("ignore")
    logging.disable(logging.ERROR)
    torch.manual_seed(0)
    wanted, n_wrong, n_checked = sys.argv[2:], 0, 0
    with tempfile.TemporaryDirectory() as folder:
        for name, model, inputs, axes, n_units in models():
            if "all" not in wanted and name not in wanted:
                continue
            model.eval()
            hows = ("batch", "fixed") + (("length",) if inputs[0].ndim < 4 else ())
            for how in hows:
                for is_dynamo in (False, True):
                    path = os.path.join(folder, f"{name}_{how}_{'dynamo' if is_dynamo else 'script'}"
                                        ".onnx")
                    try:
                        export(path, is_dynamo, how, model, inputs, axes)
                    except Exception as error:  # torch cannot export this model
                        print(f"left out: {os.path.basename(path)}: torch: {type(error).__name__}")
                        continue
                    n_checked += 1
                    n_wrong += not check(tool=sys.argv[1], path=path, inputs=inputs,
                                         n_units=n_units, folder=folder)
    print(f"{n_checked} models, {n_wrong} wrong")
    return n_wrong > 0 or n_checked == 0


if __name__ == "__main__":
    sys.exit(main())
