#!/usr/bin/env python3
"""Stands in for mscgym-runtime without numpy. The variable FAKE, a JSON object, sets what it does:

- "us": for each model, microseconds of a round.
- "refuse": models with this text in their name are refused.
- "kernels": for each model, a profile: a list of [kind, name, microseconds], which add up to its
  time.
- "end" or "hang": the method at which the program ends or stops answering.
- "lie": [KIND, PART]: success is reported for models with PART in their name, but their outputs
  are "absent", "torn", "named" otherwise, of "fewer" samples, of another "shape" or "type", or
  "nan".

Outputs are an array y of zeros, three per sample. Requests are appended to the file FAKE_LOG.
"""
import json
import os
import struct
import sys
import time
import zipfile

FAKE = json.loads(os.environ.get("FAKE", "{}"))


def n_samples(path):
    """The first dimension of the only array, from the header of its .npy."""
    with zipfile.ZipFile(path) as file:
        data = file.read(file.namelist()[0])
    header = eval(data[10:10 + struct.unpack("<H", data[8:10])[0]])
    return header["shape"][0]


def save_outputs(path, n, kind):
    """Saves zeros, or outputs that are invalid in the way that `kind` names."""
    if kind == "absent":
        return
    n -= kind == "fewer"
    shape = (3, n) if kind == "shape" else (n, 3)
    descr = "<i4" if kind == "type" else "<f4"
    header = str({"descr": descr, "fortran_order": False, "shape": shape}).encode()
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    values = struct.pack("<f", float("nan")) * 3 * n if kind == "nan" else bytes(12 * n)
    data = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + values
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("z.npy" if kind == "named" else "y.npy", data)
    if kind == "torn":
        os.truncate(path, os.path.getsize(path) // 2)


def answer(request):
    method = request["method"]
    if FAKE.get("end") == method:
        sys.exit(3)
    if FAKE.get("hang") == method:
        time.sleep(1000)
    if method == "hello":
        runtimes = [{"name": "onnxruntime", "version": "1.2.3"},
                    {"name": "openvino", "missing": "pip install openvino"}]
        return {"protocol": 1, "processor": "A chip", "features": [], "threads": 2,
                "runtimes": runtimes}
    if any(FAKE.get("refuse", "?") in m for m in request.get("models", [request.get("model", "")])):
        return {"error": "it is too new"}
    if method == "outputs":
        n = n_samples(request["inputs"])
        kind, part = FAKE.get("lie", ["", ""])
        save_outputs(request["outputs"], n, kind if part in request["model"] else "")
        return {"version": "1.2.3", "samples": n}
    if method == "profile":
        return {"version": "1.2.3", "models": [
            {"us": sum(kernel[2] for kernel in FAKE["kernels"][i]), "kernels": [
                {"kind": kind, "names": [name], "us": us} for kind, name, us in FAKE["kernels"][i]]}
            for i, _ in enumerate(request["models"])]}
    base = FAKE.get("us", [10] * 100)
    return {"version": "1.2.3", "models": [
        {"model": model, "runs": 1, "us": [base[i] + r for r in range(request["rounds"])]}
        for i, model in enumerate(request["models"])]}


for line in sys.stdin:
    request = json.loads(line)
    if request["method"] == "done":
        break
    reply = answer(request)
    with open(os.environ.get("FAKE_LOG", os.devnull), "a") as log:
        log.write(line)
    print(json.dumps(reply), flush=True)
