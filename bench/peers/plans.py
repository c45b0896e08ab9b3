"""The plans of a search: the choices of its trials, and the scales of these choices.

All of it comes from the record and RECORD.params, so that a peer evaluates the same plans.
"""
import json
import struct

import numpy

TYPES = {"F32": numpy.float32, "I32": numpy.int32}


def load_safetensors(path):
    with open(path, "rb") as file:
        data = file.read()
    size, = struct.unpack("<Q", data[:8])
    arrays = {}
    for name, entry in json.loads(data[8:8 + size]).items():
        if name == "__metadata__":
            continue
        start, end = (8 + size + offset for offset in entry["data_offsets"])
        arrays[name] = numpy.frombuffer(data[start:end], TYPES[entry["dtype"]]).reshape(
            entry["shape"])
    return arrays


def load_record(path):
    """The header, and the trial lines in order."""
    with open(path) as file:
        lines = [json.loads(line) for line in file]
    return lines[0], [line for line in lines if line["kind"] == "trial"]


class Plans:
    """Tasks by name, with bits, scale and zero point of every choice. Choice 0 is the most expensive."""

    def __init__(self, record):
        header, self.trials = load_record(record)
        tasks = header["space"]["tasks"]
        values = load_safetensors(record + ".params")
        self.names = [task["name"] for task in tasks]
        self.bits = [[int(label.split()[0]) for label in task["choices"]] for task in tasks]
        self.scales = [[values[f"{t['name']}/{c}/scale"] for c in t["choices"]] for t in tasks]
        self.zeros = [[values[f"{t['name']}/{c}/zero_point"] for c in t["choices"]]
                      for t in tasks]
        assert all(bits[0] == max(bits) == 8 for bits in self.bits)

    def evaluated(self):
        """Complete trials of the search that were evaluated; baselines and repeats are left out."""
        return [t for t in self.trials
                if t["state"] == "complete" and "baseline" not in t and "repeat_of" not in t]
