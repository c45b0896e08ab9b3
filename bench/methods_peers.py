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

PEERS = {"quantize_static": "compress_static.py", "quantize_dynamic": "compress_dynamic.py",
         "nncf": "compress_nncf.py", "aimet": "compress_aimet.py", "brevitas": "compress_brevitas.py",
         "torchao": "compress_torchao.py", "onnxsim": "compress_onnxsim.py"}
# Programs for torch read the network itself.
FROM_TORCH = ("brevitas", "torchao")


def parse(text):
    """{peer: its Python} from "PEER=PYTHON,…"; without PYTHON, the Python that runs this."""
    found = {}
    for part in filter(None, text.split(",")):
        name, _, python = part.partition("=")
        if name not in PEERS:
            sys.exit(f"--peers: {name}: not one of {', '.join(PEERS)}")
        found[name] = python or sys.executable
    return found


def lines(python, peer, network, bits, seed, folder, minutes):
    """(the lines that a program printed on its presets, whether it finished)"""
    model, program = network.path, PEERS[peer]
    if not (network.is_linear and peer in FROM_TORCH):
        model = os.path.join(folder, "ready.onnx")
        static.prepare(network.path, model, folder)
    files = [os.path.join(folder, name) for name in ("calibration.npz", "validation.npz")]
    numpy.savez(files[0], **methods_data.calibration_by_input(network.name, seed))
    numpy.savez(files[1], **network.samples)
    path = os.path.join(common.HERE, "peers", program)
    command = [python, path, model, *files, *map(str, bits), folder]
    command += ["--linear"] if network.is_linear else []
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
    found, is_through = lines(python, peer, network, bits, seed, folder, minutes)
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
        if loss == 0:
            print(f"{network.name}: {peer} {line['preset']}: nothing was quantised", file=sys.stderr)
            continue
        if best["loss"] is None or loss < best["loss"]:
            best = {"loss": loss, "score": score, "preset": line["preset"],
                    "version": line["version"], "seconds": line["seconds"]}
    return {**best, "presets": tried} if tried or is_through else None
