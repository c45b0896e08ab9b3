"""Writes the node cases of the installed package onnx, whose wheel lacks them: onnx_node_cases.py
FOLDER. Each case becomes FOLDER/NAME with its model and its arrays."""
import os
import sys
import warnings

import numpy
from onnx import TensorProto, numpy_helper
from onnx.backend.test.case.node import collect_testcases


def to_proto(value, info):
    for kind, convert in (("sequence_type", numpy_helper.from_list), ("map_type", numpy_helper.from_dict),
                          ("optional_type", numpy_helper.from_optional)):
        if info.type.HasField(kind):
            return convert(value, info.name)
    return value if isinstance(value, TensorProto) else numpy_helper.from_array(value, info.name)


def write(path, message):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(message.SerializeToString())


def main(folder):
    numpy.random.seed(0)
    warnings.simplefilter("ignore")  # some cases divide by zero
    for case in collect_testcases(None):
        graph = case.model.graph
        write(os.path.join(folder, case.name, "model.onnx"), case.model)
        for i, arrays in enumerate(case.data_sets):
            for what, values, infos in zip(("input", "output"), arrays, (graph.input, graph.output)):
                for k, (value, info) in enumerate(zip(values, infos)):
                    path = os.path.join(folder, case.name, f"test_data_set_{i}", f"{what}_{k}.pb")
                    write(path, to_proto(value, info))


main(*sys.argv[1:])
