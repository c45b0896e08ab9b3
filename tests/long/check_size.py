#!/usr/bin/env python3
"""Checks that exported models are as small as size_bytes says, and that packing only affects loading.

    check_size.py MSCGYM [MODEL ...]

For each model, uniform plans of every width are exported for every target, also with groups. For
each:
(a) The file is at most 1.05 times size_bytes, plus its size with empty initialisers.
And for targets onnxruntime and generic:
(b) ONNX Runtime's default optimisation leaves no node that unpacks weights.
(c) Outputs, there and in mscgym, have the same bits if the weights are unpacked in advance and
    stored as bytes.

Prints a table with the time to load the file, packed and unpacked. Exits with 1 if a plan fails, 77
without onnx, onnxruntime or Pillow.
"""
import json
import os
import subprocess
import sys
import tempfile
import time

try:
    import numpy
    import onnx
    import onnxruntime
    from onnx import numpy_helper

    from model_inputs import feeds, model_path
except ImportError as error:
    print(f"skipped: {error}; needs numpy, onnx, onnxruntime and Pillow")
    sys.exit(77)

NETWORKS = ("digits", "mobilenet_v2", "resnet18", "mlsd-tiny", "ocr-rec")
WIDTHS = (2, 3, 4, 5, 6, 7, 8, 16)
BYTES = {"choices": [{"bits": 8}], "weights": {"symmetric": True},
         "activations": {"symmetric": True}}
PLANS = {  # for each target, environments of the searches
    "onnxruntime": [{"choices": [{"bits": bits} for bits in WIDTHS]},
                    {"choices": [{"bits": bits, "group_size": 32} for bits in WIDTHS]},
                    {"choices": [{"bits": bits} for bits in (3, 6)], "weights": {"symmetric": False}}],
    "generic": [{"choices": [{"bits": bits} for bits in WIDTHS]},
                {"choices": [{"bits": bits, "group_size": 32} for bits in WIDTHS],
                 "activations": {"float": True}}],
    "openvino": [BYTES], "tensorrt": [BYTES], "tflite": [BYTES]}


def run(*command):
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode != 0:
        sys.exit(f"{' '.join(command[:3])}: {result.stderr}")
    return result.stdout


def search(mscgym, name, target, env, data, folder):
    """Searches; returns the trials that are uniform plans."""
    config = {"workspace": folder, "model": model_path(name), "dataset": {"inputs": data, "batch": 1},
              "quantize": {"target": target,
                           "gym": [{"record": "r.jsonl", "env": env, "agent": {"type": "random"},
                                    "budget": {"trials": 1}}]}}
    path = os.path.join(folder, "search.json")
    with open(path, "w") as file:
        json.dump(config, file)
    run(mscgym, "search", path, "--quiet", "--restart")
    with open(os.path.join(folder, "r.jsonl")) as file:
        lines = [json.loads(line) for line in file]
    return [line for line in lines if line.get("baseline")]


def empty_bytes(model):
    """Size of the file without the data of its initialisers."""
    left = onnx.ModelProto()
    left.CopyFrom(model)
    for tensor in left.graph.initializer:
        tensor.raw_data = b""
    return left.ByteSize()


def unpack(model):
    """The model with unpacked weights, and the number of nodes that unpacked them."""
    made = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}
    made.update((node.output[0], numpy.array(node.attribute[0].ints)) for node in model.graph.node
                if node.op_type == "Constant")
    unpacked = {name for name in made if "_packed" in name}
    kept, weights = [], {}
    for node in model.graph.node:
        inputs = [made.get(name) for name in node.input]
        is_end = node.op_type == "DequantizeLinear" or \
            node.op_type == "Cast" and inputs[0] is not None and inputs[0].dtype.itemsize == 1 and \
            node.input[0].endswith("_quantized")
        if is_end or not unpacked.intersection(node.input):
            kept.append(node)
            continue
        to = node.attribute[0].i if node.op_type == "Cast" else 0
        made[node.output[0]] = {
            "Cast": lambda x: x.astype(onnx.helper.tensor_dtype_to_np_dtype(to)),
            "Gather": lambda table, rows: table[rows],
            "Reshape": lambda x, dims: x.reshape([x.shape[i] if d == 0 else d
                                                  for i, d in enumerate(dims)]),
            "Add": lambda a, b: a + b, "BitwiseOr": lambda a, b: a | b,
            "Slice": lambda x, begin, end: x[begin[0]:end[0]]}[node.op_type](*inputs)
        unpacked.add(node.output[0])
        if node.output[0].endswith("_quantized"):
            weights[node.output[0]] = made[node.output[0]]
    out = onnx.ModelProto()
    out.CopyFrom(model)
    del out.graph.node[:]
    out.graph.node.extend(kept)
    out.graph.initializer.extend(numpy_helper.from_array(w, name) for name, w in weights.items())
    return out, len(model.graph.node) - len(kept)


def session(path, optimised=None):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = 1
    if optimised:
        options.optimized_model_filepath = optimised
    start = time.process_time()
    made = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return made, 1000 * (time.process_time() - start)


def ours(mscgym, path, values, folder):
    archive = os.path.join(folder, "out.npz")
    command = [mscgym, "run", path, "-o", archive, "--quiet", "--repeat", "0"]
    for k, (key, value) in enumerate(values.items()):
        array = os.path.join(folder, f"in{k}.npy")
        numpy.save(array, value)
        command += ["--input", f"{key}={array}"]
    run(*command)
    return dict(numpy.load(archive))


def equal(a, b):
    return all(x.tobytes() == y.tobytes() for x, y in zip(a, b))


def check(mscgym, target, trial, values, folder):
    """Tests one plan; returns (faults, columns of the table)."""
    path, flat, optimised = (os.path.join(folder, n) for n in ("q.onnx", "flat.onnx", "o.onnx"))
    run(mscgym, "export", os.path.join(folder, "r.jsonl"), "--trial", str(trial["id"]), "-o", path,
        "--quiet")
    model, said = onnx.load(path), trial["metrics"]["size_bytes"]
    unpacked, n_nodes = unpack(model)
    onnx.save(unpacked, flat)
    size, left = os.path.getsize(path), empty_bytes(model)
    columns = [int(said), size, left, f"{(size - left) / said:.3f}", n_nodes]
    faults = [] if size <= 1.05 * said + left else [f"of {size - left} bytes"]
    if target not in ("onnxruntime", "generic"):
        return faults, columns + ["", ""]
    (packed, slow), (stored, fast) = session(path, optimised), session(flat)
    left_nodes = onnx.load(optimised).graph.node
    if any(node.op_type == "BitwiseOr" or "bits_of" in node.input[0] for node in left_nodes):
        faults.append("unpacks at each run")
    if not equal(packed.run(None, values), stored.run(None, values)):
        faults.append("other outputs in onnxruntime")
    if n_nodes > 0 and not equal(ours(mscgym, path, values, folder).values(),
                                 ours(mscgym, flat, values, folder).values()):
        faults.append("other outputs of our own reading")
    return faults, columns + [f"{slow:.0f}", f"{fast:.0f}"]


def main():
    mscgym, names = os.path.abspath(sys.argv[1]), sys.argv[2:] or NETWORKS
    failed = False
    print("| network | target | plan | size_bytes | file | emptied | stored / said | nodes | ms to load "
          "| of bytes | |")
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    for name in names:
        values = {key: value[:2] for key, value in feeds(name, 2).items()}
        first = {key: value[:1] for key, value in values.items()}
        for target, env in ((t, e) for t, envs in PLANS.items() for e in envs):
            with tempfile.TemporaryDirectory() as folder:
                data = os.path.join(folder, "inputs.npz")
                numpy.savez(data, **values)
                for trial in search(mscgym, name, target, env, data, folder):
                    faults, columns = check(mscgym, target, trial, first, folder)
                    failed = failed or bool(faults)
                    print(f"| {name} | {target} | {trial['baseline']} | "
                          f"{' | '.join(map(str, columns))} | {'; '.join(faults)} |", flush=True)
    sys.exit(int(failed))


main()
