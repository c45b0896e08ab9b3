#!/usr/bin/env python3
"""Tests bounds on the drop of the accuracy from the float model.

    check_drop.py MSCGYM [digits|fashion|speech]...

(a) digits, fashion and speech: a search for the smallest plan whose accuracy drops by at most 0.01.
    The delivered model is run by ONNX Runtime, and numpy counts its right answers and those of the
    float model, on the samples of the search and on the validation samples. The report's accuracy,
    drop and standard error must equal those that numpy computes from the outputs of `mscgym run`,
    and differ from those of ONNX Runtime by at most two samples. The drop on the validation samples
    is at most 0.01 in both. A record that is continued keeps the limit.
(b) If no plan keeps the bound, the search fails and names the least drop, which is the least of all
    trials.
(c) `quantize --accuracy-drop`: a network whose classes differ by less than a step of 8 bits is
    refused, and no file is written. With a wider bound it is written.

speech is a digit that is spoken at a random place in 0.76 s, with noise: speech-embedding with a
linear layer that is fitted here. fashion and speech-embedding come from scripts/fetch-models; speech
needs the Debian package asterisk-core-sounds-en-wav. Networks that are missing are skipped. Exits
with 77 without numpy, onnx and onnxruntime.
"""
import json
import os
import subprocess
import sys
import tempfile

try:
    import numpy as np
    import onnx
    import onnxruntime
    from onnx import helper, numpy_helper

    import model_inputs
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

MOST = 0.01
CHOICES = [{"bits": 8}, {"bits": 6}, {"bits": 4}, {"bits": 3}, {"bits": 2}]
failed = []


def check(name, holds, why=""):
    print(("ok    " if holds else "BAD   ") + name + ("" if holds else f": {str(why)[:600]}"), flush=True)
    if not holds:
        failed.append(name)


def run(*command):
    return subprocess.run([sys.argv[1], *command], capture_output=True, text=True)


# ---- Networks: (path, input, calibration samples and labels, validation samples and labels) -----

def digits(_):
    folder = model_inputs.DIGITS
    parts = []
    for part in ("calibration", "validation"):
        parts += [np.load(f"{folder}/{part}.npz")["image"], np.load(f"{folder}/{part}_labels.npy")]
    return [model_inputs.model_path("digits"), "image", *parts]


def fashion(_):
    folder = model_inputs.models_folder()
    images, labels = np.load(f"{folder}/fashion.npz")["image"], np.load(f"{folder}/fashion_labels.npy")
    return [model_inputs.model_path("fashion"), "image", images[:256], labels[:256], images[256:],
            labels[256:]]


def spoken(count, seed):
    """Spectrograms [count, 76, 32, 1] of digits, and the digits."""
    rng = np.random.default_rng(seed)
    frame, hop, size = 400, 160, 512
    length = 75 * hop + frame
    sounds = []
    for digit in range(10):
        with model_inputs.wave.open(f"{model_inputs.SOUNDS}/digits/{digit}.wav") as file:
            sound = np.frombuffer(file.readframes(file.getnframes()), "<i2") / 32768
        sounds.append(np.interp(np.arange(2 * len(sound)) / 2, np.arange(len(sound)), sound))
    labels = rng.integers(0, 10, count)
    out = []
    for label in labels:
        sound = sounds[label]
        wave = np.zeros(length + 2 * len(sound))
        start = rng.integers(len(sound) // 2, length + len(sound) // 2)
        wave[start:start + len(sound)] = sound * rng.uniform(0.3, 1)
        wave = wave[len(sound):len(sound) + length] + rng.normal(0, 0.01, length)
        frames = wave[hop * np.arange(76)[:, None] + np.arange(frame)] * np.hanning(frame)
        power = np.abs(np.fft.rfft(frames, size)) ** 2
        out.append(np.log10(power @ model_inputs.mel_filters(32, size).T + 1e-10) + 2)
    return np.stack(out)[..., None].astype(np.float32), labels.astype(np.int64)


def speech(folder):
    path = model_inputs.model_path("speech-embedding")
    model = onnx.load(path)
    name, output = model.graph.input[0].name, model.graph.output[0].name
    x, labels = spoken(1500, 1)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    z = session.run(None, {name: x})[0].reshape(len(x), -1).astype(np.float64)
    z1 = np.concatenate([z, np.ones((len(z), 1))], 1)
    scale = np.trace(z1.T @ z1) / z1.shape[1]
    weight = np.linalg.solve(z1.T @ z1 + 1e-4 * scale * np.eye(z1.shape[1]), z1.T @ np.eye(10)[labels])
    graph = model.graph
    graph.initializer.extend([numpy_helper.from_array(weight[:-1].astype(np.float32), "head"),
                              numpy_helper.from_array(weight[-1].astype(np.float32), "head_bias"),
                              numpy_helper.from_array(np.array([-1, z.shape[1]]), "flat")])
    graph.node.extend([helper.make_node("Reshape", [output, "flat"], ["embedding"]),
                       helper.make_node("Gemm", ["embedding", "head", "head_bias"], ["scores"])])
    del graph.output[:]
    graph.output.append(helper.make_tensor_value_info("scores", 1, [None, 10]))
    path = os.path.join(folder, "speech.onnx")
    onnx.save(model, path)
    return [path, name, *spoken(256, 2), *spoken(400, 3)]


# ---- Figures ------------------------------------------------------------------------------------

def right(scores, labels):
    return (scores.reshape(len(labels), -1).argmax(1) == labels).astype(float)


def figures(of_float, plan, labels):
    """Accuracies, the drop, and its standard error from the differences sample by sample."""
    a, b = right(of_float, labels), right(plan, labels)
    return a.mean(), b.mean(), (a - b).mean(), (a - b).std(ddof=1) / np.sqrt(len(labels))


def infer(path, name, x):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return session.run(None, {name: x})[0]


def own_outputs(folder, net, x, strategy):
    """The outputs of `mscgym run`."""
    np.save(f"{folder}/x.npy", x)
    done = run("run", net[0], "--input", f"{net[1]}={folder}/x.npy", "--output", f"{folder}/y",
               "--repeat", "0", *(["--strategy", strategy] if strategy else []))
    if done.returncode:
        raise RuntimeError(done.stderr)
    files = os.listdir(f"{folder}/y")
    return np.load(f"{folder}/y/{files[0]}")


def write_config(folder, net, choices, bounds, trials):
    path, name, x, labels, held_x, held_labels = net
    np.savez(f"{folder}/c.npz", **{name: x})
    np.savez(f"{folder}/v.npz", **{name: held_x})
    np.save(f"{folder}/c_labels.npy", labels)
    np.save(f"{folder}/v_labels.npy", held_labels)
    config = {"model": path, "verbose": "error", "workspace": "out",
              "dataset": {"inputs": "c.npz", "labels": "c_labels.npy", "batch": 32,
                          "validation": {"inputs": "v.npz", "labels": "v_labels.npy"}},
              "quantize": {"target": "generic", "runtime": False, "gym": [
                  {"record": "r.jsonl", "env": {"choices": choices, "objectives": ["size_bytes"],
                                                "bounds": bounds}, "budget": {"trials": trials}}]}}
    with open(f"{folder}/c.json", "w") as file:
        json.dump(config, file)
    return f"{folder}/c.json"


def check_network(name, net, folder):
    config = write_config(folder, net, CHOICES, {"accuracy_drop": MOST}, 60)
    done = run("search", config, "--json", "--quiet")
    check(f"{name}: a plan is found", done.returncode == 0, done.stderr)
    if done.returncode:
        return
    report = json.loads(done.stdout)[0]
    winner = report["winner"]
    small, strategy = report["files"]["model"], report["files"]["strategy"]
    sets = {"search": (net[2], net[3], {**winner["examined"], "accuracy": winner["metrics"]["accuracy"],
                                        "float_accuracy": report["bounds"][0]["float"]}),
            "validation": (net[4], net[5], winner["examined"]["validation"])}
    for what, (x, labels, told) in sets.items():
        told = [told[k] for k in ("float_accuracy", "accuracy", "accuracy_drop", "accuracy_drop_se")]
        own = figures(own_outputs(folder, net, x, None), own_outputs(folder, net, x, strategy), labels)
        there = figures(infer(net[0], net[1], x), infer(small, net[1], x), labels)
        check(f"{name}: {what}: accuracies {told[0]:.4f}, {told[1]:.4f}, drop {told[2]:.4f} "
              f"(standard error {told[3]:.4f})", np.allclose(told, own, rtol=1e-9, atol=1e-12), own)
        close = np.abs(np.array(told[:3]) - there[:3]).max() <= 2.001 / len(labels)
        check(f"{name}: {what}: ONNX Runtime: {there[0]:.4f}, {there[1]:.4f}, drop {there[2]:.4f}", close)
        check(f"{name}: {what}: the bound is kept", max(told[2], there[2]) <= MOST + 1e-9, (told, there))
    size = winner["metrics"]["size_bytes"] / report["reference"]["metrics"]["size_bytes"]
    left_out = [row for row in report.get("left_out", []) if row.get("held_out")]
    print(f"      {size:.4f} of the bytes; {len(left_out)} better plans broke it on validation samples")
    check(f"{name}: left-out plans break the bound", all(row["drop"] > MOST for row in left_out))
    with open(f"{folder}/out/r.jsonl") as file:
        header = json.loads(file.readline())
    bound = header["bounds"][0]
    check(f"{name}: the record has the limit", bound["drop"] == MOST and bound["metric"] == "accuracy" and
          abs(bound["float"] - MOST - bound["min"]) < 1e-9, bound)
    done = run("resume", f"{folder}/out/r.jsonl", "--trials", "70", "--quiet")
    check(f"{name}: it continues", done.returncode == 0, done.stderr)
    done = run("verify", f"{folder}/out/r.jsonl", "--sample", "10")
    check(f"{name}: it is verified", done.returncode == 0 and "accuracy_drop: at most 0.01" in done.stdout,
          done.stdout + done.stderr)


# ---- Bounds that nothing keeps --------------------------------------------------------------------

def check_infeasible(net, folder):
    config = write_config(folder, net, [{"bits": 2, "observer": "minmax"}, {"bits": 2, "observer": "mse"}],
                          {"accuracy": {"drop": 0.005, "relative": True}}, 20)
    done = run("search", config)
    with open(f"{folder}/out/r.jsonl") as file:
        lines = [json.loads(line) for line in file]
    values = [1 - line["metrics"]["accuracy"] / lines[0]["bounds"][0]["float"]
              for line in lines if line.get("kind") == "trial"]
    check("no plan: the search fails and names the least drop",
          done.returncode == 1 and "no trial meets every bound" in done.stderr and
          f"accuracy_drop_ratio: at most 0.005 is allowed, the least reached is {min(values):.4g}" in done.stdout,
          done.stdout[:500] + done.stderr)


def check_quantize(folder):
    rng = np.random.default_rng(5)
    weight = rng.standard_normal((16, 1)) + 1e-4 * rng.standard_normal((16, 2))
    x = rng.standard_normal((200, 16)).astype(np.float32)
    labels = (x @ weight).argmax(1)
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])], "close",
        [helper.make_tensor_value_info("x", 1, ["N", 16])], [helper.make_tensor_value_info("y", 1, ["N", 2])],
        [numpy_helper.from_array(weight.astype(np.float32), "w")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    onnx.save(model, f"{folder}/close.onnx")
    np.save(f"{folder}/close.npy", x)
    np.save(f"{folder}/close_labels.npy", labels)
    small = f"{folder}/close8.onnx"
    command = ("quantize", f"{folder}/close.onnx", "--inputs", f"{folder}/close.npy", "--labels",
               f"{folder}/close_labels.npy", "-o", small, "--target", "generic", "--float", "0")
    done = run(*command, "--accuracy-drop", "0.01")
    check("quantize: a plan that drops by more is refused", done.returncode == 1 and not os.path.exists(small) and
          "the least reached is" in done.stderr and "held-back samples" in done.stderr, done.stderr)
    done = run(*command, "--accuracy-drop", "0.99", "--json")
    held = json.loads(done.stdout)["plans"][0]["examined"]["validation"] if done.returncode == 0 else {}
    a, b, drop, error = figures(infer(f"{folder}/close.onnx", "x", x[-40:]), infer(small, "x", x[-40:]),
                                labels[-40:]) if held else [0] * 4
    check(f"quantize: with a wider bound it is written, with a drop of {drop:.3f} ({error:.3f})",
          held and np.allclose([held[k] for k in ("float_accuracy", "accuracy", "accuracy_drop")], [a, b, drop],
                               atol=0.051), (held, a, b, drop, error))


def main():
    made = {"digits": digits, "fashion": fashion, "speech": speech}
    wanted = sys.argv[2:] or list(made)
    with tempfile.TemporaryDirectory() as root:
        for name in wanted:
            folder = os.path.join(root, name)
            os.mkdir(folder)
            try:
                net = made[name](folder)
            except (FileNotFoundError, onnxruntime.capi.onnxruntime_pybind11_state.NoSuchFile) as error:
                print(f"skipped {name}: {error}")
                continue
            check_network(name, net, folder)
            if name == "digits":
                os.mkdir(f"{folder}/2")
                check_infeasible(net, f"{folder}/2")
        check_quantize(root)
    print(f"{len(failed)} failed" if failed else "all good")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
