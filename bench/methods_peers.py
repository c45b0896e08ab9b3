"""Other tools for methods.py: programs of bench/peers, each run by a Python that has its tool.
compress.py describes their arguments.
"""
import json
import os
import subprocess
import sys

import numpy

import common
import methods_data
import static

PEERS = {"quantize_static": "compress_static.py", "nncf": "compress_nncf.py",
         "aimet": "compress_aimet.py", "brevitas": "compress_brevitas.py"}


def parse(text):
    """{peer: its Python} from "PEER=PYTHON,…"; without PYTHON, the Python that runs this."""
    found = {}
    for part in filter(None, text.split(",")):
        name, _, python = part.partition("=")
        if name not in PEERS:
            sys.exit(f"--peers: {name}: not one of {', '.join(PEERS)}")
        found[name] = python or sys.executable
    return found


def lines(python, program, network, bits, seed, folder, minutes):
    """(the lines that a program printed on its presets, whether it finished)"""
    ready = os.path.join(folder, "ready.onnx")
    static.prepare(network.path, ready, folder)
    files = [os.path.join(folder, name) for name in ("calibration.npy", "validation.npy")]
    numpy.save(files[0], methods_data.calibration(network.name, seed))
    numpy.save(files[1], network.samples)
    path = os.path.join(common.HERE, "peers", program)
    command = [python, path, ready, *files, *map(str, bits), folder]
    is_through = True
    try:
        text = subprocess.run(command, check=True, stdout=subprocess.PIPE, timeout=60 * minutes,
                              stderr=subprocess.DEVNULL).stdout
    except subprocess.TimeoutExpired as stopped:
        print(f"{network.name}: {program} was stopped after {minutes} minutes", file=sys.stderr)
        text, is_through = stopped.stdout or b"", False
    return [json.loads(line) for line in text.decode().splitlines()
            if line.startswith('{"preset"')], is_through


def measure(peer, python, network, bits, seed, folder, minutes):
    """The row of the tool's best preset. Its loss is None if no preset has one. Returns None if no
    preset finished in time.
    """
    best, tried = {"loss": None, "score": None}, []
    found, is_through = lines(python, PEERS[peer], network, bits, seed, folder, minutes)
    for line in found:
        if "failed" in line:
            print(f"{network.name}: {peer} {line['preset']}: {line['failed']}", file=sys.stderr)
            continue
        if "model" in line:
            outputs = network.outputs(line["model"])
        else:
            with numpy.load(line["outputs"]) as arrays:
                outputs = [arrays[name] for name in arrays.files]
        tried.append(line["preset"])
        loss, score = network.judge(outputs)
        if best["loss"] is None or loss < best["loss"]:
            best = {"loss": loss, "score": score, "preset": line["preset"],
                    "version": line["version"]}
    return {**best, "presets": tried} if tried or is_through else None
