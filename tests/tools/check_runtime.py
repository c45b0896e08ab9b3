#!/usr/bin/env python3
"""Checks mscgym-runtime with the installed runtimes, and `mscgym bench` on top of it.

    check_runtime.py MSCGYM RUNTIME

RUNTIME is tools/mscgym-runtime. Outputs must equal those of onnxruntime called here sample by
sample. A request that a runtime cannot serve must give a one-line message that names the file.
Needs numpy, onnx and onnxruntime; openvino, ai-edge-litert, apache-tvm and, from npm, onnxruntime-web and
puppeteer-core are tested if they are installed. Exits with 77 without onnxruntime.
"""
import glob
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
    from onnx import TensorProto as types
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

HERE = os.path.dirname(os.path.abspath(__file__))
DIGITS = os.path.join(HERE, "..", "..", "examples", "digits")
COUNT = 6  # number of samples


def model(path, nodes, inputs, outputs, weights=()):
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node(*node[:3], **(node[3] if len(node) > 3 else {})) for node in nodes],
        "net", [onnx.helper.make_tensor_value_info(*i) for i in inputs],
        [onnx.helper.make_tensor_value_info(*o) for o in outputs],
        [onnx.numpy_helper.from_array(array, name) for name, array in weights])
    made = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)])
    made.ir_version = 8
    onnx.save(made, path)
    return path


class Helper:
    """Talks to the program line by line."""

    def __init__(self, command):
        self.process = subprocess.Popen(command, text=True, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE)

    def ask(self, method, **request):
        self.process.stdin.write(json.dumps({"method": method, **request}) + "\n")
        self.process.stdin.flush()
        while True:
            answer = json.loads(self.process.stdout.readline())
            if "note" not in answer:
                return answer

    def close(self):
        self.process.stdin.close()
        return self.process.wait(60)


def networks(folder):
    """Models with inputs of every form, their samples, and the feeds of each sample."""
    random = numpy.random.RandomState(0)
    w = random.randn(3, 5).astype(numpy.float32)
    x = random.randn(COUNT, 3).astype(numpy.float32)
    ids = random.randint(0, 7, (COUNT, 4))
    gain = numpy.array(1.5, numpy.float32)
    square = random.randn(2, 3).astype(numpy.float32)
    product = [("MatMul", ["x", "w"], ["y"])]
    place = folder + "/"
    yield (model(place + "open.onnx", product, [("x", types.FLOAT, ["n", 3])],
                 [("y", types.FLOAT, ["n", 5])], [("w", w)]),
           {"x": x}, [{"x": x[i:i + 1]} for i in range(COUNT)])
    yield (model(place + "one.onnx", product, [("x", types.FLOAT, [1, 3])],
                 [("y", types.FLOAT, [1, 5])], [("w", w)]),
           {"other": x}, [{"x": x[i:i + 1]} for i in range(COUNT)])
    yield (model(place + "parts.onnx", product, [("x", types.FLOAT, [2, 3])],
                 [("y", types.FLOAT, [2, 5])], [("w", w)]),
           {"x": x.reshape(3, 2, 3)}, [{"x": x[2 * i:2 * i + 2]} for i in range(3)])
    yield (model(place + "shared.onnx", [("Mul", ["x", "gain"], ["s"]),
                                         ("ReduceMean", ["q"], ["m"], {"keepdims": 0}),
                                         ("Add", ["s", "m"], ["y"])],
                 [("x", types.FLOAT, [1, 3]), ("gain", types.FLOAT, []), ("q", types.FLOAT, [2, 3])],
                 [("y", types.FLOAT, [1, 3])]),
           {"x": x, "gain": gain, "q": square},
           [{"x": x[i:i + 1], "gain": gain, "q": square} for i in range(COUNT)])
    yield (model(place + "ids.onnx", [("Gather", ["table", "ids"], ["y"])],
                 [("ids", types.INT64, ["n", "seq"])], [("y", types.FLOAT, ["n", "seq", 5])],
                 [("table", random.randn(7, 5).astype(numpy.float32))]),
           {"ids": ids.astype(numpy.int32)}, [{"ids": ids[i:i + 1]} for i in range(COUNT)])


def check(wrong, holds, text):
    if not holds:
        wrong.append(text)


def check_outputs(helper, runtime, folder, wrong):
    for path, arrays, feeds in networks(folder):
        session = onnxruntime.InferenceSession(path)
        expected = numpy.concatenate([session.run(None, feed)[0] for feed in feeds])
        numpy.savez(folder + "/x.npz", **arrays)
        for batch in (1, 4):
            out = folder + "/y.npz"
            answer = helper.ask("outputs", runtime=runtime, model=path, inputs=folder + "/x.npz",
                                batch=batch, outputs=out)
            what = f"{runtime}, {os.path.basename(path)}, batch {batch}"
            if answer.get("samples") != len(feeds):
                wrong.append(f"{what}: {answer}")
                continue
            found = numpy.load(out)
            check(wrong, found.files == ["y"], f"{what}: outputs {found.files}")
            check(wrong, found["y"].shape == expected.shape and
                  numpy.allclose(found["y"], expected, 1e-5, 1e-5), f"{what}: other values")
            os.remove(out)
        check(wrong, not [name for name in os.listdir(folder) if ".tmp." in name], "files are left")


def check_latency(helper, runtime, folder, wrong):
    paths = [path for path, _, _ in networks(folder)]
    digits = os.path.join(DIGITS, "digits.onnx")
    requests = [{"models": [digits, digits], "inputs": os.path.join(DIGITS, "calibration.npz"),
                 "batch": 8, "threads": 2}, {"models": paths}]
    if runtime.startswith("onnxruntime"):
        requests.append({"models": paths[4:], "lengths": {"seq": 16}})
    for request in requests:
        answer = helper.ask("latency", runtime=runtime, rounds=5, **request)
        rows = answer.get("models", [])
        check(wrong, [row["model"] for row in rows] == request["models"] and
              all(len(row["us"]) == 5 and min(row["us"]) > 0 and row["runs"] >= 1 for row in rows),
              f"{runtime}: {answer}")


def check_profile(helper, runtime, folder, wrong):
    """Every node of a float model is found by its name, and a QDQ pair counts as conversions."""
    random = numpy.random.RandomState(0)
    w = random.randn(8, 8, 3, 3).astype(numpy.float32)
    scale = [("s", numpy.array(0.05, numpy.float32)), ("z", numpy.array(128, numpy.uint8))]
    conv = {"pads": [1, 1, 1, 1]}
    nodes = [("Conv", ["x", "w"], ["a"], conv), ("Relu", ["a"], ["b"]),
             ("QuantizeLinear", ["b", "s", "z"], ["q"]), ("DequantizeLinear", ["q", "s", "z"], ["d"]),
             ("Conv", ["d", "w"], ["e"], conv), ("Softmax", ["e"], ["y"])]
    shape = [1, 8, 64, 64]
    path = model(folder + "/profiled.onnx", nodes, [("x", types.FLOAT, shape)],
                 [("y", types.FLOAT, shape)], [("w", w)] + scale)
    answer = helper.ask("profile", runtime=runtime, models=[path, path], rounds=3)
    rows = answer.get("models", [])
    check(wrong, [row["model"] for row in rows] == [path, path], f"{runtime}, profile: {answer}")
    for row in rows:
        found = [(kernel["kind"], [name.split("_")[0].split("/")[0] for name in kernel["names"]])
                 for kernel in row["kernels"]]
        total = sum(kernel["us"] for kernel in row["kernels"])
        check(wrong, row["us"] > 0 and 0.3 < total / row["us"] < 5,
              f"{runtime}, profile: {row['us']} us, its kernels {total}")
        check(wrong, any(kind == "compute" and "y" in names for kind, names in found) and
              any("a" in names or "b" in names for _, names in found),
              f"{runtime}, profile: {row['kernels']}")
        check(wrong, any(kind == "quantize" for kind, _ in found), f"{runtime}, profile: {found}")


def check_killed(command, mscgym, path, folder, wrong):
    """Files of a killed helper are removed by the next run of mscgym, not earlier."""
    place = os.path.join(folder, "temporary")
    os.mkdir(place)
    environment = os.environ | {"TMPDIR": place}
    with subprocess.Popen(command, text=True, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                          env=environment) as process:
        process.stdin.write(json.dumps({"method": "profile", "runtime": "onnxruntime", "models": [path],
                                        "rounds": 1000000}) + "\n")
        process.stdin.flush()
        end = time.monotonic() + 60
        while not glob.glob(place + "/mscgym-*/*") and time.monotonic() < end:
            time.sleep(0.05)
        subprocess.run([mscgym, "agents"], stdout=subprocess.DEVNULL, env=environment, check=True)
        check(wrong, glob.glob(place + "/mscgym-*"), f"beside a helper that runs: {os.listdir(place)}")
        process.kill()
    subprocess.run([mscgym, "agents"], stdout=subprocess.DEVNULL, env=environment, check=True)
    check(wrong, not glob.glob(place + "/mscgym-*"), f"a helper that was killed has left {os.listdir(place)}")


def check_refusals(helper, runtime, has_profile, folder, wrong):
    with open(folder + "/text.onnx", "w", encoding="utf-8") as file:
        file.write("no model")
    good = folder + "/open.onnx"
    numpy.savez(folder + "/names.npz", a=numpy.zeros((2, 3)), b=numpy.zeros(2))
    numpy.savez(folder + "/shape.npz", x=numpy.zeros((2, 4), numpy.float32))
    numpy.savez(folder + "/kind.npz", x=numpy.zeros((2, 3), numpy.int64))
    numpy.savez(folder + "/none.npz", x=numpy.zeros((0, 3), numpy.float32))
    numpy.savez(folder + "/counts.npz", x=numpy.zeros((2, 3), numpy.float32))
    bad = model(folder + "/bad.onnx", [("Reshape", ["x", "s"], ["y"])],
                [("x", types.FLOAT, ["n", 3])], [("y", types.FLOAT, None)],
                [("s", numpy.array([5, 7]))])
    text = model(folder + "/texts.onnx", [("Identity", ["x"], ["y"])], [("x", types.STRING, [1])],
                 [("y", types.STRING, [1])])
    cases = [
        ("latency", {"models": [good, folder + "/absent.onnx"]}, "absent.onnx: there is no such file"),
        ("latency", {"models": [good, folder + "/text.onnx"]}, "text.onnx: " + runtime),
        ("latency", {"models": [bad]}, "bad.onnx: " + runtime),
        ("latency", {"models": [text]}, "texts.onnx: "),
        ("latency", {"models": []}, "models must be a list of files"),
        ("profile", {"models": [good, bad]}, f"bad.onnx: {runtime}" if has_profile else
         f"open.onnx: {runtime} does not tell the times of its kernels"),
        ("latency", {"models": [good], "threads": 0}, "threads is 0"),
        ("latency", {"models": [good], "batch": "1"}, 'batch is "1"'),
        ("latency", {"models": [good], "lengths": {"m": 2}}, "open.onnx: no length of its inputs is"),
        ("outputs", {"model": good}, "outputs is null"),
        ("outputs", {"model": good, "outputs": folder + "/y.npz"}, "inputs is null"),
    ]
    cases += [("outputs", {"model": good, "inputs": f"{folder}/{name}.npz",
                           "outputs": folder + "/y.npz"}, f"{name}.npz: {said}")
              for name, said in (("names", "there is no array x"), ("shape", "x is [2, 4]"),
                                 ("kind", "int64 for the input x"), ("none", "it has no samples"),
                                 ("absent", "there is no such file"))]
    cases.append(("outputs", {"model": good, "inputs": folder + "/counts.npz",
                              "outputs": folder + "/no/y.npz"}, "cannot write " + folder + "/no/y.npz"))
    for method, request, expected in cases:
        said = helper.ask(method, runtime=runtime, **request).get("error", "nothing")
        check(wrong, expected in said and "\n" not in said and "Traceback" not in said,
              f"{runtime}, {request}: says {said!r}, expected {expected!r}")


def check_litert(helper, mscgym, folder, wrong):
    """A float model in LiteRT gives the outputs of onnxruntime."""
    path, data = os.path.join(DIGITS, "digits.onnx"), os.path.join(DIGITS, "calibration.npz")
    written, out = folder + "/digits.tflite", folder + "/y.npz"
    subprocess.run([mscgym, "export", "--model", path, "-o", written, "--quiet"], check=True)
    with numpy.load(data) as file:
        feeds = {name: file[name] for name in file.files}
    expected = onnxruntime.InferenceSession(path).run(["scores"], feeds)[0]
    for batch in (1, 100):
        answer = helper.ask("outputs", runtime="litert", model=written, inputs=data, batch=batch, outputs=out)
        check(wrong, answer.get("samples") == len(expected) and
              numpy.allclose(numpy.load(out)["scores"], expected, 1e-4, 1e-4), f"litert, batch {batch}: {answer}")
    answer = helper.ask("latency", runtime="litert", models=[written, written], rounds=5, threads=2)
    check(wrong, [len(row["us"]) for row in answer.get("models", [])] == [5, 5], f"litert: {answer}")
    for name, said in (("text.onnx", "text.onnx: litert"), ("absent.tflite", "there is no such file")):
        answer = helper.ask("latency", runtime="litert", models=[os.path.join(folder, name)])
        check(wrong, said in answer.get("error", "nothing"), f"litert: {answer}")
    return written


def check_memory(helper, folder, wrong):
    """Models of 200 MB, one after the other, need more than the 4 GiB of WebAssembly if none is closed."""
    path = model(folder + "/large.onnx", [("MatMul", ["x", "w"], ["y"])], [("x", types.FLOAT, [1, 7000])],
                 [("y", types.FLOAT, [1, 7000])], [("w", numpy.zeros((7000, 7000), numpy.float32))])
    for turn in range(24):
        answer = helper.ask("latency", runtime="onnxruntime-web", models=[path], rounds=1)
        if "models" not in answer:
            wrong.append(f"onnxruntime-web, large model {turn}: {answer}")
            break
    os.remove(path)


def check_chains(helper, folder, wrong):
    """Chains of a piece that is 5 % off, and of the pieces that computed the values: the errors of these are 0."""
    made = [model(f"{folder}/{name}.onnx", [("Mul", [source, "w"], [target])], [(source, types.FLOAT, [2, 3])],
                  [(target, types.FLOAT, [2, 3])], [("w", numpy.array(w, numpy.float32))])
            for name, source, target, w in (("half", "x", "h", 2), ("off", "x", "h", 2.1), ("last", "h", "y", 3))]
    half, off, last = ({"model": path, "backend": "onnxruntime", "outputs": [name]} for path, name in zip(made, "hhy"))
    for parts in ({}, {"parts": 0.1}):
        answer = helper.ask("chains", values=[half, last], rounds=2, chains=[
            {"pieces": pieces, **parts} for pieces in ([off, last], [half, last], [last])])
        found = [row.get("error", row) for row in answer.get("chains", [answer])]
        inner = [part["error"] for row in answer["chains"] for part in row.get("parts", [])]
        wanted = [0.05, 0, 0] if not parts else [0.05, 0, 0, 0, 0]
        check(wrong, numpy.allclose(inner if parts else found, wanted, atol=1e-6), f"chains {parts}: {found}, {inner}")


def check_bench(command, mscgym, runtime, path, wrong):
    done = subprocess.run([mscgym, "bench", path, path, "--runtime", runtime, "--threads", "1",
                           "--rounds", "5", "--json"], text=True, stdout=subprocess.PIPE,
                          env=os.environ | {"MSCGYM_RUNTIME": " ".join(command)}, check=False)
    found = json.loads(done.stdout) if done.returncode == 0 else {"models": []}
    rows = found["models"]
    check(wrong, len(rows) == 2 and found["runtime"] == runtime and rows[0]["ratio"]["median"] == 1
          and rows[1]["file_bytes"] == os.path.getsize(path) and len(rows[1]["us_by_round"]) == 5,
          f"mscgym bench --runtime {runtime}: exit code {done.returncode}, {found}")


def main():
    if len(sys.argv) != 3:
        print(__doc__.strip(), file=sys.stderr)
        return 2
    mscgym, program = sys.argv[1:]
    command = [sys.executable, program]
    helper = Helper(command)
    hello = helper.ask("hello")
    runtimes = [row["name"] for row in hello["runtimes"] if "version" in row]
    wrong = [] if "onnxruntime" in runtimes else [f"hello: {hello}"]
    with_profile = [row["name"] for row in hello["runtimes"] if row.get("profile", True)]
    digits = os.path.join(DIGITS, "digits.onnx")
    with tempfile.TemporaryDirectory() as folder:
        for runtime in runtimes:
            if runtime == "litert":
                check_bench(command, mscgym, runtime, check_litert(helper, mscgym, folder, wrong), wrong)
                continue
            check_outputs(helper, runtime, folder, wrong)
            check_latency(helper, runtime, folder, wrong)
            if runtime in with_profile:
                check_profile(helper, runtime, folder, wrong)
            check_refusals(helper, runtime, runtime in with_profile, folder, wrong)
            check_bench(command, mscgym, runtime, digits, wrong)
        if "onnxruntime-web" in runtimes:
            check_memory(helper, folder, wrong)
        check_chains(helper, folder, wrong)
        check_killed(command, mscgym, os.path.join(folder, "profiled.onnx"), folder, wrong)
    check(wrong, helper.close() == 0, "the program did not end well")
    print("\n".join(wrong + [f"{', '.join(runtimes)}: {len(wrong)} errors"]))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
