#!/usr/bin/env python3
"""Places networks with the installed runtimes, and runs the delivered pieces in every way.

    check_placement.py MSCGYM RUNTIME LIBRARY

RUNTIME is tools/mscgym-runtime, LIBRARY libmscgym.so. Outputs of pieces must equal those of the whole
network in onnxruntime. Latencies are checked only where the reason for a difference is of the order of
ten: a cubic enlargement, which onnxruntime computes slowly. Needs numpy, onnx and onnxruntime; openvino
takes part if it is installed. Exits with 77 without onnxruntime.
"""
import json
import os
import subprocess
import sys
import tempfile

try:
    import numpy
    import onnx
    import onnxruntime
    from onnx import TensorProto, helper, numpy_helper
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

HERE = os.path.dirname(os.path.abspath(__file__))
DIGITS = os.path.join(HERE, "..", "..", "examples", "digits")
sys.path.insert(0, os.path.join(HERE, "..", "..", "python"))


def check(holds, what):
    if not holds:
        print(f"failed: {what}")
        sys.exit(1)


def enlarging(path):
    """Convolutions around a cubic enlargement, with two inputs, one of them for the last joint."""
    generator = numpy.random.default_rng(3)
    weights = [numpy_helper.from_array(generator.standard_normal((16, c, 3, 3)).astype(numpy.float32) / 8, f"w{i}")
               for i, c in enumerate((4, 16))]
    nodes = [helper.make_node("Conv", ["x", "w0"], ["c0"], pads=[1] * 4),
             helper.make_node("Relu", ["c0"], ["r0"]),
             helper.make_node("Conv", ["r0", "w1"], ["c1"], pads=[1] * 4),
             helper.make_node("Add", ["c1", "r0"], ["a"]),
             helper.make_node("Resize", ["a", "", "scales"], ["e"], mode="cubic"),
             helper.make_node("Mul", ["e", "gain"], ["y"])]
    graph = helper.make_graph(
        nodes, "enlarging", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 4, 24, 24]),
                             helper.make_tensor_value_info("gain", TensorProto.FLOAT, [1, 1, 1, 1])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 16, 48, 48])],
        weights + [numpy_helper.from_array(numpy.array([1, 1, 2, 2], numpy.float32), "scales")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
    model.ir_version = 9
    onnx.save(onnx.shape_inference.infer_shapes(model), path)


def place(mscgym, *arguments):
    made = subprocess.run([mscgym, "place", *arguments, "--threads", "1", "--rounds", "5", "--json", "--quiet"],
                          check=True, stdout=subprocess.PIPE)
    return json.loads(made.stdout)


def mix(folder, first, second):
    """Changes latencies so that the first half of the groups prefers one backend, the rest the other."""
    path = os.path.join(folder, "placement.json")
    with open(path, encoding="utf-8") as file:
        table = json.load(file)
    names = [backend["name"] for backend in table["backends"]]
    half = len(table["groups"]) // 2
    for run in table["runs"]:
        length = run["last"] - run["first"] + 1
        for i, name in enumerate(names):
            fits = (name == first and run["last"] < half) or (name == second and run["first"] >= half)
            run["us"][i] = length if fits else 1000 * length
    with open(path, "w", encoding="utf-8") as file:
        json.dump(table, file)
    return path


def close(a, b):
    return all(numpy.allclose(a[name], b[name], rtol=1e-4, atol=1e-5) for name in a)


def check_pieces(mscgym, folder, manifest, samples, wanted):
    """The chain of `mscgym run` and that of the Python package give the whole network's outputs."""
    from mscgym import Pieces
    inputs, outputs = os.path.join(folder, "in.npz"), os.path.join(folder, "out.npz")
    numpy.savez(inputs, **samples[0])
    subprocess.run([mscgym, "run", manifest, "--inputs", inputs, "-o", outputs, "--quiet"], check=True)
    with numpy.load(outputs) as found:
        check(close(dict(found), wanted[0]), f"{manifest}: mscgym run")
    pieces = Pieces(manifest)
    for sample, expected in zip(samples, wanted):
        check(close(pieces.run(sample), expected), f"{manifest}: Pieces")


def check_chain(mscgym, folder, model, samples, wanted):
    """A manifest whose pieces run in onnxruntime and in mscgym."""
    folder = os.path.join(folder, "chain")
    subprocess.run([mscgym, "split", model, "--by", "cut", "--at", "a", "-o", folder], check=True,
                   stdout=subprocess.DEVNULL)
    path = os.path.join(folder, "manifest.json")
    for first, second in (("onnxruntime", "mscgym"), ("mscgym", "onnxruntime")):
        with open(path, encoding="utf-8") as file:
            manifest = json.load(file)
        check(len(manifest["pieces"]) == 2, manifest)
        for piece, runtime in zip(manifest["pieces"], (first, second)):
            piece.update({"runtime": runtime, "device": "cpu"})
        with open(path, "w", encoding="utf-8") as file:
            json.dump(manifest, file)
        check_pieces(mscgym, folder, path, samples, wanted)
        check_refusals(path, samples)


def check_mix(mscgym, folder, model, first, second):
    """A mix that cannot pay is measured, but not delivered."""
    table = mix(folder, first, second)
    result = place(mscgym, model, "-o", os.path.join(folder, f"{first}_{second}"), "--table", table,
                   "--processes", "1")
    half = len(result["plan"]) // 2
    check(result["plan"] == [first] * half + [second] * (len(result["plan"]) - half), result)
    plan = [row for row in result["measured"] if row["form"] == "plan"]
    check(plan[0]["error"] < 1e-4, result)
    return result


def check_network(mscgym, folder, model, samples):
    """Places the network, and measures mixes of every pair of backends."""
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    wanted = [dict(zip(names, session.run(None, sample))) for sample in samples]
    result = place(mscgym, model, "-o", folder, "--groups", "4")
    check(result["predicted_us"] > 0 and len(result["plan"]) >= 2, result)
    backends = [row["backend"] for row in result["measured"] if row["form"] == "model"]
    check(all(row["error"] < 1e-4 for row in result["measured"]), result)
    check_pieces(mscgym, folder, result["manifest"], samples, wanted)
    for first in backends:
        for second in backends:
            if first != second:
                check_mix(mscgym, folder, model, first, second)
    return wanted


def check_refusals(manifest, samples):
    """Broken manifests and inputs raise mscgym.Error, with the file's name."""
    from mscgym import Error, Pieces

    def refuses(action, words):
        try:
            action()
        except Error as error:
            check(manifest in str(error) or path in str(error), error)
            check(words in str(error), error)
        else:
            check(False, f"no error: {words}")

    path = os.path.join(os.path.dirname(manifest), "broken.json")
    with open(manifest, encoding="utf-8") as file:
        whole = json.load(file)
    last = whole["pieces"][-1]
    for change, words in (
            ({"pieces": None}, "is no manifest of pieces"), ({"inputs": 3}, "is no manifest of pieces"),
            ({"outputs": ["nothing"]}, "no piece computes nothing"),
            ({"pieces": [{**last, "model": None}]}, "is no manifest of pieces"),
            ({"pieces": [{**last, "model": "../a.onnx"}]}, "outside the manifest's folder")):
        with open(path, "w", encoding="utf-8") as file:
            json.dump({**whole, **change}, file)
        refuses(lambda: Pieces(path), words)
    with open(path, "w", encoding="utf-8") as file:
        file.write("{")
    refuses(lambda: Pieces(path), "Expecting")
    pieces = Pieces(manifest)
    refuses(lambda: pieces.run({}), "needs an input")
    refuses(lambda: pieces.run({name: value.reshape(-1) for name, value in samples[0].items()}), "")
    pieces.run(samples[0])


def check_request(runtime, folder, model):
    """Values that every backend refuses are computed by later pieces, if the request says so."""
    def piece(path, backend, **more):
        return {"model": path, "backend": backend, "outputs": ["y"], **more}

    absent = os.path.join(folder, "absent.onnx")
    request = {"method": "chains", "rounds": 2, "others": ["cpu"],
               "values": [piece(absent, "onnxruntime", may_fail=True), piece(model, "onnxruntime")],
               "chains": [{"pieces": [piece(model, "cpu")]}, {"pieces": [piece(absent, "cpu")]}]}
    lines = [request, {**request, "values": [piece(absent, "onnxruntime")]}]
    made = subprocess.run([sys.executable, runtime], input="".join(json.dumps(line) + "\n" for line in lines),
                          check=True, stdout=subprocess.PIPE, text=True)
    answers = [line for line in map(json.loads, made.stdout.splitlines()) if "note" not in line]
    measured, missing = answers[0]["chains"]
    check(len(measured["us"]) == 2 and measured["error"] < 1e-4, answers)
    check("absent.onnx" in missing["missing"] and "absent.onnx" in answers[1]["error"], answers)


def check_divided(runtime, folder, model):
    """Pieces are timed in their place, and those that cannot run are left out."""
    pieces = os.path.join(folder, "chain")
    with open(os.path.join(pieces, "manifest.json"), encoding="utf-8") as file:
        rows = json.load(file)["pieces"]

    def piece(i, backend, **more):
        return {"model": os.path.join(pieces, rows[i]["model"]), "backend": backend,
                "outputs": [value["name"] for value in rows[i]["outputs"]], **more}

    absent = {"model": os.path.join(folder, "absent.onnx"), "backend": "cpu", "outputs": ["y"]}
    strange = {**piece(0, "cpu"), "outputs": ["a"], "model": os.path.join(folder, "strange.onnx")}
    graph = onnx.load(piece(0, "cpu")["model"])
    for weight in graph.graph.initializer:
        if len(weight.dims) == 4:
            weight.CopyFrom(numpy_helper.from_array(-numpy_helper.to_array(weight), weight.name))
    onnx.save(graph, strange["model"])
    request = {"method": "chains", "rounds": 3, "values": [piece(0, "onnxruntime"), piece(1, "onnxruntime")],
               "chains": [{"parts": 0.1, "pieces": [piece(0, "onnxruntime"), piece(1, "cpu")]},
                          {"parts": 0.1, "pieces": [strange, piece(1, "cpu"), absent]},
                          {"parts": 0.1, "pieces": [absent]}, {"pieces": [piece(0, "onnxruntime"), piece(1, "cpu")]}]}
    made = subprocess.run([sys.executable, runtime], input=json.dumps(request) + "\n", check=True,
                          stdout=subprocess.PIPE, text=True)
    answer = [line for line in map(json.loads, made.stdout.splitlines()) if "note" not in line][0]
    both, partly, none, plain = answer["chains"]
    check([len(part["us"]) for part in both["parts"]] == [3, 3] and "parts" not in plain, answer)
    check(both["parts"][1]["bytes"] == 4 * 16 * 48 * 48, answer)
    for i in range(3):  # medians of the same runs
        total = sum(part["us"][i] for part in both["parts"])
        check(0.5 * both["us"][i] < total < 2 * both["us"][i], answer)
    check("computes something else" in partly["parts"][0]["missing"] and partly["parts"][0]["error"] > 0.1, answer)
    check(len(partly["parts"][1]["us"]) == 3 and "No such file" in partly["parts"][2]["missing"], answer)
    check("No such file" in none["missing"] and "parts" not in none, answer)


def check_bytes(mscgym, folder, model, data):
    """Pieces of a quantised network hold its bytes, so that backends compute in integers."""
    small = os.path.join(folder, "small.onnx")
    subprocess.run([mscgym, "quantize", model, "--inputs", data, "--effort", "fast", "-o", small, "--quiet"],
                   check=True, stdout=subprocess.DEVNULL)
    stored = {weight.name: numpy_helper.to_array(weight) for weight in onnx.load(small).graph.initializer}
    wanted = {name: array for name, array in stored.items() if array.dtype in (numpy.int8, numpy.uint8) and array.ndim}
    check(len([array for array in wanted.values() if array.ndim > 1]) > 1, stored.keys())
    result = place(mscgym, small, "-o", os.path.join(folder, "placed"), "--groups", "2", "--backend", "onnxruntime")
    check(all(row["error"] < 1e-4 for row in result["measured"]), result)
    with open(result["manifest"], encoding="utf-8") as file:
        rows = json.load(file)["pieces"]
    found = {}
    for row in rows:
        graph = onnx.load(os.path.join(os.path.dirname(result["manifest"]), row["model"])).graph
        found.update({weight.name: numpy_helper.to_array(weight) for weight in graph.initializer})
    for name, array in wanted.items():
        if array.ndim > 1:
            check(name in found and numpy.array_equal(found[name], array), f"{name}: not as in the network")


def main():
    mscgym, runtime, library = sys.argv[1:4]
    os.environ["MSCGYM_RUNTIME"] = f"{sys.executable} {os.path.abspath(runtime)}"
    os.environ["MSCGYM_LIBRARY"] = os.path.abspath(library)
    os.environ["PATH"] = os.path.dirname(os.path.abspath(mscgym)) + os.pathsep + os.environ["PATH"]
    generator = numpy.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        with numpy.load(os.path.join(DIGITS, "calibration.npz")) as data:
            name = data.files[0]
            samples = [{name: data[name][i:i + 1].astype(numpy.float32)} for i in range(3)]
        check_network(mscgym, os.path.join(folder, "digits"), os.path.join(DIGITS, "digits.onnx"), samples)
        check_bytes(mscgym, folder, os.path.join(DIGITS, "digits.onnx"), os.path.join(DIGITS, "calibration.npz"))
        model = os.path.join(folder, "enlarging.onnx")
        enlarging(model)
        samples = [{"x": generator.standard_normal((1, 4, 24, 24)).astype(numpy.float32),
                    "gain": numpy.full((1, 1, 1, 1), gain, numpy.float32)} for gain in (1, -2)]
        wanted = check_network(mscgym, os.path.join(folder, "enlarging"), model, samples)
        check_chain(mscgym, folder, model, samples, wanted)
        check_request(runtime, folder, model)
        check_divided(runtime, folder, model)
        result = place(mscgym, model, "-o", os.path.join(folder, "two"), "--backend", "onnxruntime",
                       "--backend", "cpu")
        check(result["plan"][-1] == "cpu" and "cpu" in result["result"], result)
    print("passed")


if __name__ == "__main__":
    main()
