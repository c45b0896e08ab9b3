"""Trains a decoder of 11 million parameters on text: train_decoder.py FOLDER [--minutes N].

The text is Python's standard library, Perl's manuals and the licences, as Debian's python3, perl-doc
and base-files install them. Whole files are held back, a twentieth of them. Writes

    decoder.onnx        a llama-like decoder: input_ids [N, T], logits [N, T, 2048]. Opset 18.
    decoder.train.npy   token ids of the text that it was trained on
    decoder.unseen.npy  token ids of the files that were held back

and prints the cross-entropy, in nats per token, on the files that were held back. The training stops
when the minutes (45 by default) are over; one core is used. Needs torch, transformers and tokenizers.
"""
import argparse
import glob
import os
import time

import numpy
import tokenizers
import torch
import transformers

TOKENS, LENGTH, BATCH = 2048, 128, 16
SHAPE = dict(vocab_size=TOKENS, hidden_size=384, intermediate_size=1024, num_hidden_layers=6,
             num_attention_heads=6, num_key_value_heads=2, max_position_embeddings=512,
             tie_word_embeddings=False, attn_implementation="eager")
PLACES = ("/usr/share/common-licenses/*", "/usr/share/perl/**/*.pod", "/usr/lib/python3*/**/*.py")


def documents():
    """The texts of all files, without files that begin alike, in a random but fixed order."""
    texts = {}
    for place in PLACES:
        for path in sorted(glob.glob(place, recursive=True)):
            if os.path.isfile(path) and not os.path.islink(path):
                with open(path, encoding="utf8", errors="ignore") as file:
                    text = file.read(200000)
                if len(text) >= 500:
                    texts.setdefault(text[:500], text)
    texts = list(texts.values())
    return [texts[i] for i in numpy.random.RandomState(0).permutation(len(texts))]


def encode(texts, folder):
    """Token ids of the text to train on and of the rest, which are also saved."""
    bytes_ = tokenizers.pre_tokenizers.ByteLevel()
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = bytes_
    kept = len(texts) * 19 // 20
    tokenizer.train_from_iterator(texts[:kept:4], tokenizers.trainers.BpeTrainer(
        vocab_size=TOKENS, initial_alphabet=bytes_.alphabet(), show_progress=False))
    parts = []
    for name, part in (("train", texts[:kept]), ("unseen", texts[kept:])):
        ids = [encoded.ids for encoded in tokenizer.encode_batch(part)]
        parts.append(numpy.concatenate([numpy.array(i, numpy.int64) for i in ids]))
        numpy.save(os.path.join(folder, f"decoder.{name}.npy"), parts[-1])
    return parts


def optimisers(model):
    """Muon for the matrices of the layers, AdamW for everything else."""
    inner = [p for p in model.model.layers.parameters() if p.ndim == 2]
    others = [p for p in model.parameters() if all(p is not q for q in inner)]
    return (torch.optim.Muon(inner, lr=3e-3, weight_decay=0.05, adjust_lr_fn="match_rms_adamw"),
            torch.optim.AdamW(others, lr=3e-3, betas=(0.9, 0.95), weight_decay=0.01))


def train(model, ids, seconds):
    random, start, step, done = numpy.random.RandomState(1), time.time(), 0, 0.0
    steppers = optimisers(model)
    while done < 1:
        for stepper in steppers:
            for group in stepper.param_groups:
                group["lr"] = 3e-3 * min(1, (step + 1) / 30) * min(1, 1.6 * (1 - done))
        at = random.randint(len(ids) - LENGTH, size=BATCH)
        rows = torch.from_numpy(ids[at[:, None] + numpy.arange(LENGTH)])
        with torch.autocast("cpu", torch.bfloat16):
            loss = model(input_ids=rows, labels=rows).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for stepper in steppers:
            stepper.step()
            stepper.zero_grad()
        step, done = step + 1, (time.time() - start) / seconds
        if step % 20 == 0:
            print(f"step {step}, {done:.3f} of the time: {loss.item():.3f}", flush=True)


class Scores(torch.nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids):
        return self.model(input_ids=input_ids, use_cache=False).logits


def export(model, path):
    axes = {0: torch.export.Dim("N", min=1, max=4096), 1: torch.export.Dim("T", min=2, max=512)}
    torch.onnx.export(Scores(model), (torch.zeros(2, LENGTH, dtype=torch.int64),), path, dynamo=True,
                      opset_version=18, input_names=["input_ids"], output_names=["logits"],
                      dynamic_shapes={"input_ids": axes}, external_data=False)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder")
    parser.add_argument("--minutes", type=float, default=45)
    options = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    ids, unseen = encode(documents(), options.folder)
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**SHAPE))
    count = sum(p.numel() for p in model.parameters())
    print(f"{count} parameters, {len(ids)} tokens to train on, {len(unseen)} held back", flush=True)
    train(model, ids, 60 * options.minutes)
    model.eval()
    rows = torch.from_numpy(unseen[:128 * LENGTH].reshape(-1, LENGTH))
    with torch.no_grad():
        losses = [model(input_ids=r, labels=r).loss.item() for r in rows.split(8)]
    print(f"decoder: {numpy.mean(losses):.3f} nats per token on text that was held back")
    export(model, os.path.join(options.folder, "decoder.onnx"))


main()
