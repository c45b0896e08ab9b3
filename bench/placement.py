#!/usr/bin/env python3
"""Places networks with `mscgym place` and compares predictions with measurements.

    placement.py MSCGYM OUT.csv [--threads 1,2] [--rounds 10] [--groups 8] [MODEL.onnx | separable | two_sided]...

Writes a line per network and number of threads about the best mix, which has two pieces or more, whether
or not it is predicted to pay: the whole network on each backend, the predicted and measured latency of
the mix relative to the fastest backend alone (as one piece) in the same rounds, the ratio to the network's own
file in the worst process, and the largest difference of two equal copies of any backend or of the mix. `optimum` is the point of least
predicted latency. `separable` and `two_sided` are networks of this script, with an operator that is slow in
one runtime, and in each of two. Needs numpy and onnx, and the runtimes for mscgym-runtime.
"""
import argparse
import csv
import json
import os
import subprocess
import sys
import tempfile
import time

BACKENDS = ("onnxruntime", "openvino", "tvm", "cpu")
COLUMNS = ("network", "threads", *BACKENDS, "optimum", "mix", "pieces", "shortest_us", "predicted_us", "measured_us",
           "predicted_ratio", "measured_ratio", "off_percent", "worst_ratio", "spread", "wins", "error", "seconds")

CHECK_ROUNDS = 4  # rounds of the check for each round of the table


def save(path, nodes, size, channels, weights):
    import onnx
    from onnx import TensorProto, helper
    graph = helper.make_graph(
        nodes, "constructed", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 64, 56, 56])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, channels, size, size])], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
    model.ir_version = 9
    onnx.save(onnx.shape_inference.infer_shapes(model), path)


class Layers:
    """Nodes and random weights of a chain of layers."""

    def __init__(self):
        import numpy
        self.generator = numpy.random.default_rng(0)
        self.nodes, self.weights, self.last = [], [], "x"

    def add(self, operator, constants=(), is_last=False, **attributes):
        from onnx import helper
        name = "y" if is_last else f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, [self.last, *constants], [name], **attributes))
        self.last = name

    def conv(self, outputs, inputs, size=1, is_last=False, **attributes):
        import numpy
        from onnx import numpy_helper
        values = self.generator.standard_normal((outputs, inputs, size, size)) / (inputs * size * size) ** 0.5
        self.weights.append(numpy_helper.from_array(values.astype(numpy.float32), f"w{len(self.weights)}"))
        self.add("Conv", [self.weights[-1].name], is_last, pads=[size // 2] * 4, **attributes)


def separable(path):
    """Eight depthwise separable blocks, which onnxruntime 1.32 computes fastest, and a cubic
    enlargement, which it computes slowly.
    """
    import numpy
    from onnx import numpy_helper
    layers = Layers()
    for _ in range(8):
        layers.conv(64, 1, 3, group=64)
        layers.add("Relu")
        layers.conv(64, 64)
        layers.add("Relu")
    layers.conv(8, 64)
    layers.weights.append(numpy_helper.from_array(numpy.array([1, 1, 2, 2], numpy.float32), "scales"))
    layers.add("Resize", ["", "scales"], is_last=True, mode="cubic")
    save(path, layers.nodes, 112, 8, layers.weights)


def two_sided(path):
    """A local response normalisation, slow in onnxruntime 1.32, between two arc tangents, slow in
    openvino 2026.4.
    """
    layers = Layers()
    layers.conv(64, 64)
    layers.add("Atan")
    layers.conv(64, 64)
    layers.add("LRN", size=5)
    layers.conv(64, 64)
    layers.add("Atan")
    layers.conv(8, 64, is_last=True)
    save(path, layers.nodes, 56, 8, layers.weights)


MADE = {"separable": separable, "two_sided": two_sided}


def pieces(plan):
    """The backends of a plan's pieces, such as cpu 2 + onnxruntime 1 (numbers of groups)."""
    parts = []
    for backend in plan:
        if parts and parts[-1][0] == backend:
            parts[-1][1] += 1
        else:
            parts.append([backend, 1])
    return " + ".join(f"{backend} {count}" for backend, count in parts)


def place(program, model, folder, rounds, *more):
    command = [program, "place", model, "-o", folder, "--json", "--quiet", "--rounds", str(rounds), *more]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)


def whole_run(table):
    """The entry of the whole network."""
    last = len(table["groups"]) - 1
    return next(run for run in table["runs"] if run["first"] == 0 and run["last"] == last)


def shortest(table, plan):
    """The predicted latency of the shortest piece of a plan."""
    names = [backend["name"] for backend in table["backends"]]
    runs = {(run["first"], run["last"]): run["us"] for run in table["runs"]}
    ends = [i for i in range(len(plan)) if i + 1 == len(plan) or plan[i + 1] != plan[i]]
    times, first = [], 0
    for last in ends:
        i = names.index(plan[last])
        cut = table["cuts"][first - 1]["us"][names.index(plan[first - 1])][i] if first > 0 else 0.0
        times.append(runs[first, last][i] + cut)
        first = last + 1
    return min(times)


def compare(program, model, folder, threads, options):
    begin = time.monotonic()
    optimum = place(program, model, folder, options.rounds, "--threads", str(threads), "--groups", str(options.groups),
                    "--processes", "1", *(f"--backend={name}" for name in options.backend))
    path = os.path.join(folder, "placement.json")
    with open(path, encoding="utf-8") as file:
        table = json.load(file)
    names = [backend["name"] for backend in table["backends"]]
    alone = dict(zip(names, whole_run(table)["us"]))
    whole_run(table)["us"] = [None] * len(names)  # so that the optimum is a mix
    with open(path, "w", encoding="utf-8") as file:
        json.dump(table, file)
    result = place(program, model, folder, CHECK_ROUNDS * options.rounds, "--table", path, "--processes", str(options.processes))
    rows = {(row["form"], row.get("backend")): row for row in result["measured"]}
    wholes = {name: rows["model", name]["us"] for name in names if "us" in rows["model", name]}
    fastest, plan = min(wholes, key=wholes.get), rows["plan", None]
    predicted = result["predicted_us"] / alone[fastest]
    row = {**wholes, "network": os.path.basename(model).rsplit(".", 1)[0], "threads": threads,
           "optimum": pieces(optimum["plan"]), "mix": pieces(result["plan"]),
           "pieces": len(pieces(result["plan"]).split(" + ")), "shortest_us": shortest(table, result["plan"]),
           "predicted_us": result["predicted_us"], "measured_us": plan["us"], "predicted_ratio": predicted,
           "measured_ratio": result["measured_ratio"],
           "off_percent": 100 * (predicted / result["measured_ratio"] - 1), "worst_ratio": result["ratio"],
           "spread": result["spread"], "wins": result["wins"], "error": plan["error"],
           "seconds": time.monotonic() - begin}
    return {key: round(value, 4) if isinstance(value, float) else value for key, value in row.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("out")
    parser.add_argument("models", nargs="+")
    parser.add_argument("--threads", default="1")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--groups", type=int, default=8)
    parser.add_argument("--processes", type=int, default=3)
    parser.add_argument("--backend", action="append", default=[], help="default: all found")
    options = parser.parse_args()
    is_new = not os.path.exists(options.out)
    with tempfile.TemporaryDirectory() as folder, open(options.out, "a", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS, extrasaction="ignore")
        if is_new:
            writer.writeheader()
        for model in options.models:
            if model in MADE:
                name, model = model, os.path.join(folder, model + ".onnx")
                MADE[name](model)
            for threads in options.threads.split(","):
                try:
                    row = compare(options.program, model, os.path.join(folder, "placed"), int(threads), options)
                except subprocess.CalledProcessError as error:
                    print(f"{model}: mscgym place exits with {error.returncode}", file=sys.stderr)
                    continue
                writer.writerow(row)
                file.flush()
                print(row, flush=True)


if __name__ == "__main__":
    main()
