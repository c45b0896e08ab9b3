#!/usr/bin/env python3
"""Runs the configurations that `mscgym init` writes, unchanged, and compares their models with those of `mscgym
quantize`.

usage: check_init.py MSCGYM FOLDER [--time TIME] [--target NAME] [NAME ...]

FOLDER has models NAME.onnx with NAME.npz, as tests/long/models.py makes them; samples that the search does not see may
be in NAME.unseen.npz. The search lasts TIME (default: 2m). For each model, the winner must meet the bound that `init`
wrote, and be better there than the model of `quantize`: that model either breaks the bound, or has a greater loss. The
loss is the mean squared error of the outputs relative to their mean square, in ONNX Runtime. If check-jsonschema is
installed, it must accept the configurations. Needs onnxruntime and numpy; exits with 77 without them.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

NAMES = ["cnn_script13", "tcn_dynamo19", "gru_dynamo21", "lstm_dynamo18", "unet_dynamo18", "encoder_dynamo23",
         "vit_dynamo18", "bert_dynamo18", "gpt2_dynamo18", "llama_dynamo18", "mlsd-tiny", "mobilenet_v2_script11"]


def run(*words):
    made = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False)
    assert made.returncode == 0, f"{words[1]}: {made.stderr.strip()[-400:]}"
    return made.stdout


def outputs(model, feed):
    """The outputs of a model for all samples, one run for each if the model wants one."""
    import numpy
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 3
    session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    wanted = {i.name: i for i in session.get_inputs()}
    feed = {name: value for name, value in feed.items() if name in wanted}
    n, first = len(next(iter(feed.values()))), next(iter(wanted.values())).shape[0]
    step = first if isinstance(first, int) and first > 0 else 1
    made = [session.run(None, {name: value[i:i + step] for name, value in feed.items()})
            for i in range(0, n - n % step, step)]
    return [numpy.concatenate([numpy.asarray(one[k], numpy.float64).ravel() for one in made])
            for k in range(len(made[0]))]


def loss_of(model, wanted, feed):
    got = outputs(model, feed)
    pairs = [(x, y) for x, y in zip(wanted, got) if (x * x).sum() > 0]
    return sum(((x - y) ** 2).mean() / (x * x).mean() for x, y in pairs) / len(pairs)


def check(mscgym, folder, name, time, target):
    import numpy
    model, inputs = folder / f"{name}.onnx", folder / f"{name}.npz"
    unseen = folder / f"{name}.unseen.npz"
    words = ["--target", target] if target else []
    run(mscgym, "init", model, "--inputs", inputs, "-o", f"{name}/search.yaml", "--time", time, *words)
    if shutil.which("check-jsonschema"):
        Path("schema.json").write_text(run(mscgym, "config", "--schema"), encoding="utf-8")
        run("check-jsonschema", "--schemafile", "schema.json", f"{name}/search.yaml")
    run(mscgym, "search", f"{name}/search.yaml", "--quiet")
    record = json.loads(run(mscgym, "show", f"{name}/msc_workspace/quantize_0.jsonl", "--json"))
    quick = json.loads(run(mscgym, "quantize", model, "--inputs", inputs, "-o", f"{name}/quantize.onnx", "--json",
                           "--quiet", *words))
    paths = [Path(f"{name}/msc_workspace/{name}.onnx"), Path(f"{name}/quantize.onnx")]
    feed = dict(numpy.load(unseen if unseen.exists() else inputs))
    wanted = outputs(model, feed)
    bound = record["bounds"][0]["max"] if record["bounds"] else None
    found = {"trials": record["counts"]["trials"], "bound": bound,
             "size_ratio": [one["metrics"]["size_ratio"] for one in (record["winner"], quick["plans"][0])],
             "loss": [loss_of(path, wanted, feed) for path in paths],
             "file_bytes": [path.stat().st_size for path in (model, *paths)]}
    (ours, theirs), (our_loss, their_loss) = found["size_ratio"], found["loss"]
    is_better = bound is None or theirs > bound or our_loss < their_loss
    return found, (bound is None or ours <= bound) and is_better


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("mscgym", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--time", default="2m")
    parser.add_argument("--target")
    parser.add_argument("names", nargs="*", default=NAMES)
    given = parser.parse_intermixed_args()
    try:
        import numpy, onnxruntime  # noqa: E401, F401
    except ImportError as error:
        print(f"skipped: {error}")
        return 77
    wrong = 0
    mscgym, folder = given.mscgym.resolve(), given.folder.resolve()
    with tempfile.TemporaryDirectory() as work:
        os.chdir(work)
        for name in given.names:
            os.mkdir(name)
            found, is_good = check(mscgym, folder, name, given.time, given.target)
            wrong += not is_good
            print(f"{name}: {'ok' if is_good else 'WORSE'} {json.dumps(found)}", flush=True)
    print(f"{len(given.names)} models, {wrong} failures")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
