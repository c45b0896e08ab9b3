#!/usr/bin/env python3
"""What weights of few bits cost a language model: divergence per token in onnxruntime on text that
no method saw, bytes of the file, and time, beside onnxruntime's MatMulNBitsQuantizer.

    language.py MSCGYM MODEL.onnx --ids IDS.npy --unseen IDS.npy [--table PATTERN] [--groups 32,128]
        [--peers default,hqq,...] [--samples N] [--length N] [--mixed TRIALS] [--json FILE]

The model reads input_ids [N, T] and writes `logits`. Of the first file, N samples of --length ids
calibrate; all ids of the second are measured. Our rows are uniform plans of 4 bits for the target
onnxruntime_nbits: rounded to nearest, and with `descent` and `affine`. The peer quantises weights of
MatMul only, so ours leave the table of token ids float (--table is a pattern of its name). The peers
are MatMulNBitsQuantizer's algorithms: default (with zero points, as it is by default), symmetric,
hqq, k_quant, and gptq, which calibrates on the same samples. `said` is the size that our record
says; "calibration" is the divergence on our calibration samples, in our program.

--mixed N: a search of N trials over 3 to 8 bits for each weight, the table too, such that all take
4.5 bits a weight: 4 bits and 4 bytes of scale for each 64. Uniform is that for each weight. Both are
for the target generic, and measured by our program on the second file.

With --folder, the searches and models stay there, and finished searches are not run again.

Exits with 1 if the divergence of `descent` is above 0.6 of a peer's in the same groups, if its file
is larger, has fewer MatMulNBits, or is 2 % larger than was said, if its time is above 1.05 of the
peers' (--time 0: not compared), or if the mixed plan's divergence is above 0.7 of uniform's, both
rounded to nearest.
"""
import argparse
import collections
import contextlib
import json
import logging
import os
import statistics
import subprocess
import sys
import tempfile
import time

import numpy
import onnx
import onnxruntime
from onnxruntime.quantization import CalibrationDataReader
from onnxruntime.quantization import matmul_nbits_quantizer as nbits

MOST_KL, MOST_MIXED, MOST_BYTES, MOST_TIME = 0.6, 0.7, 1.02, 1.05
FITTED = {"rounding": "descent", "correct": "affine"}


# ---- Our side ---------------------------------------------------------------------------------


def lines(record):
    if not os.path.exists(record):
        return []
    with open(record) as file:
        return [json.loads(line) for line in file if line.endswith("\n")]


def plans(record):
    """The uniform plans."""
    return [line for line in lines(record) if line.get("baseline")]


def run(command, is_enough):
    """Runs a command until it ends or `is_enough`: the report of a search takes long, too."""
    with open(os.devnull, "w") as nothing, tempfile.TemporaryFile("w+") as said:
        process = subprocess.Popen(command, stdout=nothing, stderr=said)
        while process.poll() is None:
            if is_enough():
                process.terminate()
                process.wait()
                return
            time.sleep(1)
        if process.returncode != 0:
            said.seek(0)
            sys.exit(said.read())


def search(o, name, choices, target, trials, more):
    """Runs a search, and returns its record. Without trials, only uniform plans are measured."""
    workspace = os.path.join(o.folder, name)
    env = {"choices": choices, "activations": {"float": True}, "loss": "kl",
           "loss_tensors": ["logits"], **more}
    agent = {} if trials else {"agent": {"type": "random"}}
    dataset = {"inputs": os.path.abspath(o.ids), "sequence": o.length, "samples": o.samples,
               "labels": "next",
               "validation": {"inputs": os.path.abspath(o.unseen), "labels": "next"}}
    config = {"model": os.path.abspath(o.model), "workspace": workspace, "dataset": dataset,
              "verbose": "info", "quantize": {"target": target, "runtime": False, "gym": [
                  {"env": env, "budget": {"trials": trials}, **agent}]}}
    path = workspace + ".json"
    with open(path, "w") as file:
        json.dump(config, file)
    record = os.path.join(workspace, "quantize_0.jsonl")
    if trials or len(plans(record)) < len(choices):
        run([o.mscgym, "search", path, "--quiet", "--threads", str(o.threads)],
            lambda: not trials and len(plans(record)) == len(choices))
    return record


def our_uniform(o, group):
    """Rows of the uniform plans with this group, exported."""
    choices = [{"bits": 4, "group_size": group, **more} for more in ({}, FITTED)]
    more = {"exclude": [o.table]} if o.table else {}
    record = search(o, f"g{group}", choices, "onnxruntime_nbits", 0, more)
    for line in plans(record):
        path = os.path.join(o.folder, f"ours_{group}_{line['id']}.onnx")
        subprocess.run([o.mscgym, "export", record, "--trial", str(line["id"]), "-o", path],
                       check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        yield {"group": group, "method": f"ours: {line['baseline']}", "path": path,
               "said": line["metrics"]["size_bytes"],
               "calibration": line["metrics"]["distill_loss"],
               "is_fitted": "descent" in line["baseline"]}


def our_mixed(o, fitted):
    """The winner of a search over bits at the size of uniform 4 bits in groups of 64, and uniform."""
    how = FITTED if fitted else {}
    four = {"bits": 4, "group_size": 64, **how}
    choices = [four] + [{"bits": bits, "group_size": group, **how}
                        for bits, group in ((3, 64), (3, 128), (4, 128), (5, 64), (5, 128), (6, 128),
                                            (8, 128))]
    record = search(o, "four", [{"bits": 4, "group_size": 64}], "generic", 0, {})
    most = plans(record)[0]["metrics"]["size_bytes"]
    record = search(o, "mixed_fitted" if fitted else "mixed", choices, "generic", o.mixed,
                    {"bounds": {"size_bytes": {"max": most}}})
    with open(record + ".result.json") as file:
        result = json.load(file)
    examined = {plan["id"]: plan["examined"]["validation"]
                for plan in [*result["baselines"], result["winner"]]}
    uniform = next(plan for plan in plans(record) if plan["metrics"]["size_bytes"] == most)
    best = next(line for line in lines(record) if line.get("id") == result["winner"]["id"])
    for what, line in (("uniform", uniform), ("mixed", best)):
        yield {"method": f"{what}, {'descent affine' if fitted else 'nearest'}",
               "bytes": line["metrics"]["size_bytes"],
               "calibration": line["metrics"]["distill_loss"],
               "kl": examined[line["id"]]["distill_loss"]}


# ---- The peer ---------------------------------------------------------------------------------


class Reader(CalibrationDataReader):
    def __init__(self, o):
        ids = numpy.load(o.ids).reshape(-1)[:o.samples * o.length].reshape(-1, o.length)
        self.rows = iter([{"input_ids": row[None]} for row in ids])

    def get_next(self):
        return next(self.rows, None)


def algorithm(o, peer, group):
    if peer == "hqq":
        return nbits.HQQWeightOnlyQuantConfig(block_size=group, bits=4)
    if peer == "k_quant":
        return nbits.KQuantWeightOnlyQuantConfig()
    if peer == "gptq":
        return nbits.GPTQWeightOnlyQuantConfig(Reader(o), block_size=group)
    return nbits.DefaultWeightOnlyQuantConfig(block_size=group, is_symmetric=peer == "symmetric")


def peer_row(o, peer, group):
    path = os.path.join(o.folder, f"{peer}_{group}.onnx")
    try:
        with open(os.devnull, "w") as nothing, contextlib.redirect_stdout(nothing):
            quantizer = nbits.MatMulNBitsQuantizer(onnx.load(o.model),
                                                   algo_config=algorithm(o, peer, group))
            quantizer.process()
        onnx.save(quantizer.model.model, path)
    except Exception as error:  # a peer that does not run here is told and left out
        text = (str(error) or repr(error)).splitlines()[0]
        print(f"MatMulNBitsQuantizer, {peer}: {text[:120]}", file=sys.stderr)
        return []
    return [{"group": group, "method": f"MatMulNBitsQuantizer, {peer}", "path": path, "is_peer": True}]


# ---- Measuring --------------------------------------------------------------------------------


def session(path, optimised=None):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    if optimised:
        options.optimized_model_filepath = optimised
    return onnxruntime.InferenceSession(path, options, ["CPUExecutionProvider"])


def log_probabilities(model, ids):
    x = model.run(["logits"], {"input_ids": ids})[0].astype(numpy.float64)
    x -= x.max(-1, keepdims=True)
    return x - numpy.log(numpy.exp(x).sum(-1, keepdims=True))


def measure(o, rows):
    """Adds the divergence, the bytes, the number of MatMulNBits and the time of the rows' models."""
    ids = numpy.load(o.unseen).reshape(-1)
    ids = ids[:len(ids) // o.length * o.length].reshape(-1, o.length)
    truth, optimised = session(o.model), os.path.join(o.folder, "optimised.onnx")
    expected = [log_probabilities(truth, ids[i:i + 1]).astype(numpy.float32) for i in range(len(ids))]
    models = [truth]
    for row in rows:
        model = session(row["path"], optimised)
        nodes = onnx.load(optimised, load_external_data=False).graph.node
        row["n"] = collections.Counter(node.op_type for node in nodes)["MatMulNBits"]
        row["bytes"] = os.path.getsize(row["path"])
        sums = [(numpy.exp(p.astype(numpy.float64)) * (p - log_probabilities(model, ids[i:i + 1]))).sum()
                for i, p in enumerate(expected)]
        row["kl"] = float(sum(sums) / ids.size)
        models.append(model)
    times = [[] for _ in models]
    for _ in range(o.rounds):
        for model, its in zip(models, times):
            start = time.process_time()
            model.run(["logits"], {"input_ids": ids[:1]})
            its.append(time.process_time() - start)
    for row, its in zip([{}, *rows], times):
        row["ms"] = 1e3 * statistics.median(its)
    return 1e3 * statistics.median(times[0])


# ---- Verdicts ---------------------------------------------------------------------------------


def verdicts(o, rows):
    """Lines for what is not met."""
    for row in rows:
        if row.get("is_fitted"):
            if row["bytes"] > MOST_BYTES * row["said"]:
                yield f"{row['path']}: {row['bytes']} bytes, said {row['said']}"
            for other in rows:
                if other.get("is_peer") and other["group"] == row["group"]:
                    yield from against(o, row, other)


def against(o, row, peer):
    what = f"groups of {row['group']}, {peer['method']}"
    if row["kl"] > MOST_KL * peer["kl"]:
        yield f"{what}: divergence {row['kl'] / peer['kl']:.2f} of its"
    if row["bytes"] > peer["bytes"]:
        yield f"{what}: {row['bytes']} bytes, it has {peer['bytes']}"
    if row["n"] < peer["n"]:
        yield f"{what}: {row['n']} MatMulNBits, it has {peer['n']}"
    if o.time and row["ms"] > MOST_TIME * peer["ms"]:
        yield f"{what}: time {row['ms'] / peer['ms']:.2f} of its"


def print_rows(rows, columns):
    print("| " + " | ".join(columns) + " |\n|" + "---|" * len(columns))
    for row in rows:
        cells = [row.get(c, "") for c in columns]
        print("| " + " | ".join(f"{c:.3g}" if isinstance(c, float) else str(c) for c in cells) + " |",
              flush=True)


def compare(o, failures):
    rows = []
    for group in o.groups:
        rows += our_uniform(o, group)
        for peer in o.peers:
            rows += peer_row(o, peer, group)
    ms = measure(o, rows)
    print(f"float: {os.path.getsize(o.model)} bytes, {ms:.1f} ms a sample of {o.length} tokens")
    print_rows(rows, ["method", "group", "kl", "calibration", "bytes", "said", "n", "ms"])
    failures += verdicts(o, rows)
    return rows


def compare_mixed(o, failures):
    rows = []
    for fitted in (False, True):
        rows += our_mixed(o, fitted)
        ratio = rows[-1]["kl"] / rows[-2]["kl"]
        print(f"mixed, {'fitted' if fitted else 'nearest'}: divergence {ratio:.2f} of uniform's")
        if ratio > MOST_MIXED and not fitted:
            failures.append(f"mixed: divergence {ratio:.2f} of uniform's")
    print_rows(rows, ["method", "kl", "calibration", "bytes"])
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("mscgym")
    parser.add_argument("model")
    parser.add_argument("--ids", required=True)
    parser.add_argument("--unseen", required=True)
    parser.add_argument("--table")
    parser.add_argument("--groups", default="32,128")
    parser.add_argument("--peers", default="default,symmetric,hqq,k_quant,gptq")
    parser.add_argument("--samples", type=int, default=64)
    parser.add_argument("--length", type=int, default=128)
    parser.add_argument("--mixed", type=int, default=0)
    parser.add_argument("--time", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--folder")
    parser.add_argument("--json")
    o = parser.parse_args()
    o.mscgym = os.path.abspath(o.mscgym)
    o.groups = [int(group) for group in o.groups.split(",") if group]
    o.peers = [peer for peer in o.peers.split(",") if peer]
    logging.disable(logging.WARNING)
    failures = []
    with tempfile.TemporaryDirectory() as made:
        o.folder = os.path.abspath(o.folder or made)
        os.makedirs(o.folder, exist_ok=True)
        rows = compare(o, failures) if o.groups else []
        rows += compare_mixed(o, failures) if o.mixed else []
    if o.json:
        with open(o.json, "w") as file:
            json.dump(rows, file, indent=1)
    print("\n".join(failures), file=sys.stderr)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
