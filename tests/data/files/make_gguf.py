#!/usr/bin/env python3
"""Makes the GGUF files next to it and the values that other programs find in them.

    python3 make_gguf.py

Blocks and their values are those of the package gguf 0.19 of llama.cpp, which also writes the files;
logits are those of transformers 5.24, which reads the files through that package. Needs both, torch
and accelerate.
"""
import os
import struct
import sys

import gguf
import numpy as np

os.chdir(os.path.dirname(os.path.abspath(__file__)))
Type = gguf.GGMLQuantizationType
BLOCKS = "Q4_0 Q4_1 Q5_0 Q5_1 Q8_0 Q2_K Q3_K Q4_K Q5_K Q6_K".split()
# Places of the float16 numbers of a block.
HALVES = {"Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q8_0": [0], "Q2_K": [80, 82],
          "Q3_K": [108], "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208]}


def make_blocks():
    """Random blocks with finite numbers and their values, and rows with the error of the package's
    own encoders (mean square, relative to the rows'; there are none for 256 elements)."""
    rng = np.random.default_rng(1)
    arrays = {}
    rows = (rng.standard_normal((8, 256)) * rng.random((8, 1)) + 0.1 * rng.random((8, 1))).astype("f4")
    arrays["rows"] = rows
    for name in BLOCKS:
        kind = Type[name]
        n, n_bytes = gguf.GGML_QUANT_SIZES[kind]
        blocks = rng.integers(0, 256, (4, n_bytes), dtype=np.uint8)
        for at in HALVES[name]:
            halves = (rng.standard_normal((4, 1)) * 0.01).astype("f2")
            blocks[:, at:at + 2] = halves.view(np.uint8)
        arrays[f"{name.lower()}/bytes"] = blocks
        arrays[f"{name.lower()}/values"] = gguf.quants.dequantize(blocks, kind).reshape(4, n)
        if n == 32:
            coded = gguf.quants.dequantize(gguf.quants.quantize(rows, kind), kind)
            error = np.mean((coded.astype("f8") - rows) ** 2) / np.mean(rows.astype("f8") ** 2)
            arrays[f"{name.lower()}/error"] = np.float64(error)
    np.savez_compressed("gguf_blocks.npz", **arrays)


def finish(writer):
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def make_small():
    """One value of each type, and one tensor of some types."""
    writer = gguf.GGUFWriter("small.gguf", "none")
    writer.add_uint8("u8", 200)
    writer.add_int8("i8", -3)
    writer.add_uint16("u16", 60000)
    writer.add_int16("i16", -300)
    writer.add_uint32("u32", 4000000000)
    writer.add_int32("i32", -70000)
    writer.add_float32("f32", 1.5)
    writer.add_bool("bool", True)
    writer.add_string("text", "a text")
    writer.add_array("texts", ["one", "two"])
    writer.add_array("numbers", [1, 2, 3])
    writer.add_uint64("u64", 1 << 40)
    writer.add_int64("i64", -(1 << 40))
    writer.add_float64("f64", 0.1)
    ramp = (np.arange(64, dtype="f4").reshape(2, 32) - 3) / 2
    # The last tensor fills the file, so that every cut is noticed.
    writer.add_tensor("other", np.zeros((1, 18), dtype="u1"), raw_dtype=Type.IQ4_NL)
    writer.add_tensor("q8_0", gguf.quants.quantize(ramp, Type.Q8_0), raw_dtype=Type.Q8_0)
    writer.add_tensor("bf16", gguf.quants.quantize(ramp, Type.BF16), raw_dtype=Type.BF16)
    writer.add_tensor("f16", ramp.astype("f2"))
    writer.add_tensor("f32", ramp)
    finish(writer)


def make_importance():
    """The same importance in both forms; importance_large.dat has it times 2^124."""
    rng = np.random.default_rng(2)
    entries = {f"blk.0.{name}.weight": (rng.random(n) ** 4).astype("f4")
               for name, n in (("attn_q", 64), ("ffn_down", 256))}
    writer = gguf.GGUFWriter("importance.gguf", "none")
    writer.add_type("imatrix")
    writer.add_array("imatrix.datasets", ["text.txt"])
    writer.add_uint32("imatrix.chunk_count", 2)
    data = large = struct.pack("<i", len(entries))
    for name, x in entries.items():
        writer.add_tensor(f"{name}.in_sum2", (x * 64).reshape(1, -1))
        writer.add_tensor(f"{name}.counts", np.array([[64]], dtype="f4"))
        head = struct.pack("<i", len(name)) + name.encode() + struct.pack("<ii", 4, len(x))
        data += head + (x * 4).tobytes()
        large += head + np.ldexp(x, 126).tobytes()
    finish(writer)
    with open("importance.dat", "wb") as file:
        file.write(data + struct.pack("<ii", 2, 8) + b"text.txt")
    with open("importance_large.dat", "wb") as file:
        file.write(large)
    np.savez("importance.npz", **entries)


def make_decoder(path, arch, is_tied, embedding=64, inner=256):
    rng = np.random.default_rng(3)
    heads, kv_heads, words = 4, 2, 48
    writer = gguf.GGUFWriter(path, arch)
    writer.add_block_count(1)
    writer.add_context_length(128)
    writer.add_embedding_length(embedding)
    writer.add_feed_forward_length(inner)
    writer.add_head_count(heads)
    writer.add_head_count_kv(kv_heads)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(10000.0)
    writer.add_rope_dimension_count(embedding // heads)
    writer.add_vocab_size(words)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list([f"t{i}" for i in range(words)])
    writer.add_token_types([1] * words)
    writer.add_token_merges(["t 1"])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)

    def add(name, shape, kind, scale=1.0):
        x = (rng.standard_normal(shape) * scale).astype("f4")
        if kind == Type.F32:
            writer.add_tensor(name, x + 1 if len(shape) == 1 and "bias" not in name else x)
        elif kind == Type.F16:
            writer.add_tensor(name, x.astype("f2"))
        else:
            writer.add_tensor(name, gguf.quants.quantize(x, kind), raw_dtype=kind)

    keys = embedding // heads * kv_heads
    add("token_embd.weight", (words, embedding), Type.Q8_0, 0.3)
    if not is_tied:
        add("output.weight", (words, embedding), Type.F16, 0.2)
    for name in ("attn_norm", "ffn_norm"):
        add(f"blk.0.{name}.weight", (embedding,), Type.F32, 0.1)
    add("blk.0.attn_q.weight", (embedding, embedding), Type.Q5_0, 0.3)
    add("blk.0.attn_k.weight", (keys, embedding), Type.Q5_1, 0.3)
    add("blk.0.attn_v.weight", (keys, embedding), Type.Q4_1, 0.1)
    add("blk.0.attn_output.weight", (embedding, embedding), Type.Q4_0, 0.1)
    for name, n in (("q", embedding), ("k", keys), ("v", keys)):
        if arch == "qwen2":
            add(f"blk.0.attn_{name}.bias", (n,), Type.F32, 0.1)
    add("blk.0.ffn_gate.weight", (inner, embedding), Type.Q8_0, 0.1)
    add("blk.0.ffn_up.weight", (inner, embedding), Type.BF16, 0.1)
    add("blk.0.ffn_down.weight", (embedding, inner), Type.Q4_1, 0.1)
    add("output_norm.weight", (embedding,), Type.F32, 0.1)
    finish(writer)


def compute_logits(path, ids):
    import torch
    from transformers import AutoModelForCausalLM
    model = AutoModelForCausalLM.from_pretrained(".", gguf_file=path, dtype=torch.float32,
                                                 attn_implementation="eager").eval()
    with torch.no_grad():
        return model(input_ids=torch.tensor(ids), use_cache=False).logits.numpy()


def make_decoders():
    ids = np.random.default_rng(4).integers(0, 48, (2, 9))
    arrays = {"ids": ids}
    for name, arch, is_tied in (("llama", "llama", True), ("qwen2", "qwen2", False)):
        make_decoder(f"{name}.gguf", arch, is_tied)
        arrays[name] = compute_logits(f"{name}.gguf", ids)
    # A seed for the fuzzer.
    make_decoder("../../fuzz/corpus/gguf/tiny", "qwen2", False, 32, 32)
    np.savez("gguf_logits.npz", **arrays)
    np.save("gguf_ids.npy", ids)


if __name__ == "__main__":
    make_blocks()
    make_small()
    make_importance()
    make_decoders()
    sys.exit(0)
