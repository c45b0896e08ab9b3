"""Trains a transformer on the licences that every Debian system has (base-files), byte by byte:
train_text.py NAME FOLDER. NAME is

    bert  an encoder that learns where words end in text without spaces. Inputs input_ids [N, T] and
          attention_mask, output scores [N, T, 2]. Opset 13, so layer normalisation is several operators.
    gpt   a decoder that learns the next byte. Inputs input_ids [N, T] and, for each layer I,
          past_key_values.I.key and .value [N, 4, P, 64]; outputs scores [N, T, 256] and present.I.key
          and .value [N, 4, P + T, 64], which are the next past. Opset 17.

Writes NAME.onnx, and NAME.inputs.npz with 64 passages that were not used for training. Some of the
encoder's are shorter than the others. The decoder's are the last byte of each passage, and the past
that the network itself computes from the 63 bytes before. Takes about a minute for each on two cores.
"""
import glob
import os
import sys

import numpy
import torch

from exported import save
from transformer import BYTES, LAYERS, LENGTH, PAD, Decoder, Encoder, no_past

BATCH, SAMPLES = 16, 64


def licences():
    """All licences, in one text."""
    texts = []
    for path in sorted({os.path.realpath(p) for p in glob.glob("/usr/share/common-licenses/*")}):
        with open(path, "rb") as file:
            texts.append(file.read())
    return b"".join(texts)


def passages(tokens, count, random, seen=True):
    """Random passages [count, LENGTH]. Of each 4,096 tokens, the first nine tenths are for training,
    the rest for evaluation.
    """
    start, size = (0, 3686) if seen else (3686, 410)
    rows = random.randint(len(tokens) // 4096, size=(count, 1))
    columns = start + random.randint(size - LENGTH + 1, size=(count, 1))
    return torch.from_numpy(tokens[4096 * rows + columns + numpy.arange(LENGTH)])


class Bert:
    network, opset, steps, rate = Encoder, 13, 300, 1e-3
    inputs, outputs = ["input_ids", "attention_mask"], ["scores"]
    axes = {"input_ids": {0: "N", 1: "T"}, "attention_mask": {0: "N", 1: "T"},
            "scores": {0: "N", 1: "T"}}

    @staticmethod
    def tokens(text):
        """The bytes without spaces; bytes at the end of a word are increased by 256."""
        return numpy.concatenate([[*word[:-1], word[-1] + BYTES] for word in text.split()])

    @staticmethod
    def feed(model, tokens, random):
        """Makes some passages shorter than the others."""
        lengths = random.randint(LENGTH // 4, 3 * LENGTH, len(tokens))
        mask = torch.from_numpy(numpy.arange(LENGTH) < lengths[:, None])
        return (tokens % BYTES).masked_fill(~mask, PAD), mask.long()

    @classmethod
    def loss(cls, model, tokens, random):
        given, mask = cls.feed(model, tokens, random)
        is_text = mask == 1
        return torch.nn.functional.cross_entropy(model(given, mask)[is_text],
                                                 tokens[is_text] // BYTES)


class Gpt:
    network, opset, steps, rate = Decoder, 17, 300, 2e-3
    caches = [f"{i}.{kind}" for i in range(LAYERS) for kind in ("key", "value")]
    inputs = ["input_ids"] + ["past_key_values." + cache for cache in caches]
    outputs = ["scores"] + ["present." + cache for cache in caches]
    axes = {"input_ids": {0: "N", 1: "T"}, "scores": {0: "N", 1: "T"},
            **{"past_key_values." + cache: {0: "N", 2: "P"} for cache in caches},
            **{"present." + cache: {0: "N", 2: "P+T"} for cache in caches}}

    @staticmethod
    def tokens(text):
        return numpy.frombuffer(text, numpy.uint8).astype(numpy.int64)

    @staticmethod
    def feed(model, tokens, random):
        return (tokens[:, -1:], *model(tokens[:, :-1], *no_past(len(tokens)))[1:])

    @staticmethod
    def loss(model, tokens, random):
        scores = model(tokens, *no_past(len(tokens)))[0][:, :-1]
        return torch.nn.functional.cross_entropy(scores.reshape(-1, BYTES), tokens[:, 1:].flatten())


TASKS = {"bert": Bert, "gpt": Gpt}


def train(task, model, tokens):
    random = numpy.random.RandomState(0)
    optimiser = torch.optim.AdamW(model.parameters(), lr=task.rate)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, task.rate, task.steps)
    for step in range(task.steps):
        optimiser.zero_grad()
        loss = task.loss(model, passages(tokens, BATCH, random), random)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        schedule.step()
    model.eval()


def main(name, folder):
    task = TASKS[name]
    torch.manual_seed(0)
    torch.set_num_threads(2)
    tokens = task.tokens(licences())
    model = task.network()
    train(task, model, tokens)
    random = numpy.random.RandomState(1)
    tokens = passages(tokens, SAMPLES, random, seen=False)
    with torch.no_grad():
        loss = task.loss(model, tokens, numpy.random.RandomState(2))
        feed = task.feed(model, tokens, random)
    print(f"{name}: {loss / numpy.log(2):.2f} bits a byte")
    path = os.path.join(folder, name)
    numpy.savez_compressed(path + ".inputs.npz", **{n: x.numpy() for n, x in zip(task.inputs, feed)})
    save(model, feed, path + ".onnx", task.opset, task.inputs, task.outputs, task.axes)


if __name__ == "__main__":
    main(*sys.argv[1:])
