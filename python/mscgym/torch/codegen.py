"""Writes a graph as a torch module: the text of main.py.

`source` makes the text and needs no torch. `to_torch` writes the folder and loads the module from it:

    main.py                 the class Main, load(), and a test that compares with recorded outputs
    weights.safetensors     the weights, by their names in the graph
    baseline.safetensors    recorded inputs and outputs, if they are given

Each joint becomes one line of `forward`, by its row in expressions.py. Layers whose weights are named as torch names
them become modules under their names; other weights become parameters or buffers under their names.
"""
from __future__ import annotations

import importlib.util
import keyword
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Mapping, Sequence

from mscgym.emitter import Emit, free_name, identifier, without_fused
from mscgym.graph import Array, Graph, GraphError, Joint, Tensor
from mscgym.safetensors import write_safetensors
from mscgym.torch.lengths import Lengths

if TYPE_CHECKING:
    from torch import nn

    from mscgym.torch.strategy import Edits

PARAMETERS, PADDING = "torch.parameters", "torch.padding"
"""Keys of a graph's metadata: the weights that are trained, separated by commas, and tables of embeddings with the row
that is not trained ("words.weight=0")."""

_TRAINED = {"weight", "bias", "gamma", "beta", "recurrence", "slope"}
_HELPERS = ["cut", "dequantize", "dynamic_quantize", "expand", "gather_nd", "lengths", "quantize", "recurrent", "shifted",
            "take", "whole"]
_INTEGERS = ["quantize", "msc.conv_integer", "msc.dynamic_quantize", "msc.matmul_integer"]
"""Types of joints whose results are integers that are computed as floats, so that gradients pass."""
_RESERVED = {"F", "nn", "self", "torch", "float", *_HELPERS}


def plain(values: Sequence[int], default: int | None = None) -> Any:
    """A list of equal numbers as one number, None if that is the default; else a tuple."""
    if len(set(values)) > 1:
        return tuple(values)
    return None if not values or values[0] == default else values[0]


def name_of(joint: str) -> str:
    """The name in main.py of a joint or an input."""
    return identifier(joint, _RESERVED)


def default_outputs(n: int) -> list[str]:
    """The names of n outputs that have no names: "output", "output_1" and so on."""
    return ["output" if i == 0 else f"output_{i}" for i in range(n)]


def access(path: str) -> str:
    """The text that reads a layer or a weight by its name: "layer1.0.conv1" becomes "self.layer1[0].conv1"."""
    text = "self"
    for part in path.split("."):
        is_name = part.isidentifier() and not keyword.iskeyword(part)
        text += f".{part}" if is_name else f"[{part}]" if part.isdigit() else f"[{part!r}]"
    return text


class Writer:
    """Collects the lines of `__init__` and `forward`."""
    language = "torch"

    def __init__(self, graph: Graph, edits: Edits | None = None) -> None:
        self.graph, self.edits = graph, edits
        self.joints = graph.joints if edits else _with_flat_states(_with_silu(graph.joints, graph.outputs), graph)
        self.tensors = {tensor.name: tensor for joint in self.joints for tensor in joint.outputs}
        self.constants: dict[str, Tensor] = {}
        self.texts: dict[str, str] = {}        # how a line reads a tensor
        self.declared: dict[str, str] = {}     # weight: the text that reads it
        self.modules: dict[str, str] = {}      # path of a layer: the text that makes it
        self.init: list[str] = []
        self.forward: list[str] = []
        self.names: set[str] = set()
        metadata = graph.notes.get("metadata", {})
        # Exporters write equal weights once, so that a bias may also be a mean.
        self.statistics = {weight.name for joint in self.joints for role, weight in joint.weights.items()
                           if role in ("mean", "var")}
        self.knows_parameters = PARAMETERS in metadata
        self.parameters = set(metadata.get(PARAMETERS, "").split(","))
        self.padding = dict(item.rsplit("=", 1) for item in metadata.get(PADDING, "").split(",") if item)
        self.lengths = Lengths(graph)

    def name(self, joint: str, n: int) -> str:
        return free_name(name_of(joint) + (f"_out{n}" if n else ""), self.names)

    def declare(self, weight: Tensor, is_parameter: bool) -> str:
        """Adds a parameter or a buffer; returns the text that reads it."""
        if weight.name not in self.declared:
            path = repr(weight.name)
            if is_parameter and weight.name not in self.statistics and weight.dtype.startswith("float"):
                self.init.append(f"self.put_parameter({path}, {weight.shape})")
            else:
                kind = "" if weight.dtype == "float32" else f", torch.{weight.dtype}"
                put = "put_constant" if re.fullmatch(r"const(_\d+)?", weight.name) else "put_buffer"
                self.init.append(f"self.{put}({path}, {weight.shape}{kind})")
            self.declared[weight.name] = access(weight.name)
        return self.declared[weight.name]

    def weight(self, weight: Tensor) -> str:
        text = self.declared[weight.name]
        return self.edits.weight(weight.name, text) if self.edits else text

    def read(self, joint: Joint, name: str) -> str:
        """How a joint reads a tensor: a name, a weight, or a number."""
        if not name:
            return "None"
        constant = self.constants.get(name)
        if constant is None:
            text = self.texts[name]
            return self.edits.activation(self.tensors[name], joint, text) if self.edits else text
        from mscgym.torch.expressions import TAKES_NUMBERS
        others = [other for other in joint.inputs if other not in self.constants or self.constants[other].shape]
        is_number = not constant.shape and constant.name not in self.parameters and constant.dtype != "bool"
        if is_number and others and joint.optype in TAKES_NUMBERS:
            value = self.graph.arrays[constant.name].item()
            text = f"float('{value}')" if value in (float("inf"), float("-inf")) or value != value else repr(value)
            return f"({text})" if text.startswith("-") else text
        self.declare(constant, constant.name in self.parameters)
        return self.weight(constant)

    def layer(self, joint: Joint) -> str:
        """Makes the module of a layer; returns the text that reads it, or "" if the joint is not such a layer."""
        from mscgym.torch.expressions import LAYERS
        roles, make = LAYERS.get(joint.optype, ({}, None))
        bases = {weight.name.removesuffix("." + roles.get(role, "?")) for role, weight in joint.weights.items()}
        ends = all(weight.name.endswith("." + roles.get(role, "?")) for role, weight in joint.weights.items())
        needs_all = "gamma" in roles and set(joint.weights) != set(roles) and joint.optype != "nn.layer_norm"
        if make is None or not joint.weights or not ends or len(bases) != 1 or needs_all:
            return ""
        base = bases.pop()
        text = make(Emit(self, joint, ""))
        if text and base not in self.modules and not any(w.name in self.declared for w in joint.weights.values()):
            if any(other == base or other.startswith(base + ".") for other in [*self.modules, *self.declared]):
                return ""
            self.modules[base] = text
            self.init.append(f"self.put({base!r}, {text})")
            for weight in joint.weights.values():
                self.declared[weight.name] = access(weight.name)
        return access(base) if self.modules.get(base) == text and text else ""

    def add(self, joint: Joint) -> None:
        from mscgym.torch.expressions import ROWS
        if joint.optype == "constant":
            self.constants[joint.outputs[0].name] = joint.weights["const"]
            return
        names = [self.name(joint.name, i) for i in range(len(joint.outputs))]
        self.texts.update({tensor.name: name for tensor, name in zip(joint.outputs, names)})
        if joint.optype == "input":
            self.edit_outputs(joint)
            return
        if joint.optype not in ROWS:
            raise GraphError(f"joint '{joint.name}' has the type {joint.optype}, which has no expression in torch")
        module = self.layer(joint)
        for role, weight in joint.weights.items():
            is_parameter = role in _TRAINED and (not self.knows_parameters or weight.name in self.parameters)
            self.declare(weight, is_parameter)
        if self.edits and any(self.edits.has(weight.name) for weight in joint.weights.values()):
            module = ""
        row, e = ROWS[joint.optype], Emit(self, joint, module)
        text = row.format(*e.all()) if isinstance(row, str) else row(e)
        comma = "," if joint.optype == "split" and len(names) == 1 else ""
        self.forward.append(f"{', '.join(names)}{comma} = {text}")
        self.edit_outputs(joint)

    def edit_outputs(self, joint: Joint) -> None:
        for tensor in joint.outputs if self.edits else []:
            edit = self.edits.output(tensor) if self.edits else ""
            if edit:
                self.forward.append(f"{self.texts[tensor.name]} = {edit}({self.texts[tensor.name]})")

    def result(self, name: str) -> str:
        """How the last line reads an output. Integers that are computed as floats get their own type."""
        text, dtype = self.read(Joint("", "output"), name), self.tensors[name].dtype
        is_quantised = any(joint.optype in _INTEGERS for joint in self.joints)
        return f"{text}.to(torch.{dtype})" if is_quantised and re.fullmatch("u?int(8|16|32)", dtype) else text

    def write(self) -> str:
        joints = self.lengths.without_shapes(self.joints, self.graph.outputs)
        for joint in sorted(joints, key=lambda joint: joint.optype != "input"):  # texts of lengths read inputs
            self.add(joint)
        inputs = [self.texts[name] for name in self.graph.inputs]
        results = [self.result(name) for name in self.graph.outputs]
        if self.edits:
            self.init += self.edits.lines()
        body = "\n".join(self.init + self.forward + results)
        helpers = ["GraphModule", "main"] + [name for name in _HELPERS if re.search(rf"(?<![.\w]){name}\(", body)]
        lines = [f'"""{self.graph.name}: a torch module that mscgym wrote from a graph.', "",
                 "load() returns the module with its weights. `python3 main.py` compares it with recorded outputs.",
                 '"""',
                 "from pathlib import Path", "", "import torch", "from torch import nn",
                 "from torch.nn import functional as F", "", f"from mscgym.torch.module import {', '.join(helpers)}"]
        if self.edits and self.edits.imports():
            lines.append(f"from mscgym.torch.fake_quantize import {', '.join(self.edits.imports())}")
        lines += ["", "FOLDER = Path(__file__).resolve().parent", "", "", "class Main(GraphModule):"]
        names = [self.tensors[name].alias or name for name in self.graph.outputs]
        lines += [f"    OUTPUTS = {names}", ""]
        lines += ["    def __init__(self):", "        super().__init__()"]
        lines += [f"        {line}" for line in self.init]
        lines += ["", f"    def forward(self, {', '.join(inputs)}):"] + [f"        {line}" for line in self.forward]
        lines += [f"        return {', '.join(results)}", "", "", "def load():", "    module = Main()",
                  '    module.load_weights(FOLDER / "weights.safetensors")', "    return module.eval()", "", "",
                  'if __name__ == "__main__":', "    main(load(), FOLDER)"]
        text = "\n".join(lines) + "\n"
        for unused, used in (("from torch import nn\n", r"\bnn\."), ("import torch\n", r"\btorch\."),
                             ("from torch.nn import functional as F\n", r"\bF\.")):
            if not re.search(used, body):
                text = text.replace(f"\n{unused}", "\n", 1)
        return text


def _with_silu(joints: list[Joint], outputs: list[str]) -> list[Joint]:
    """The joints, with x * sigmoid(x) as one joint of the type "silu", which only the generated text has."""
    readers: dict[str, int] = {}
    for name in [*outputs, *(name for joint in joints for name in joint.inputs)]:
        readers[name] = readers.get(name, 0) + 1
    gates = {joint.outputs[0].name: joint for joint in joints
             if joint.optype == "sigmoid" and readers.get(joint.outputs[0].name) == 1}
    result, replaced = [], set()
    for joint in joints:
        pairs = [joint.inputs, joint.inputs[::-1]] if joint.optype == "multiply" else []
        gate = next((gates[b] for a, b in pairs if b in gates and gates[b].inputs == [a]), None)
        if gate is not None:
            replaced.add(gate.name)
            joint = Joint(joint.name, "silu", gate.inputs, joint.outputs, scope=joint.scope)
        result.append(joint)
    return [joint for joint in result if joint.name not in replaced]


def _with_layers(graph: Graph) -> Graph:
    """The graph, with names for constants of layers as torch names them, so that these layers become modules.

    Constants have no names in graphs of Relax. A layer that alone has its constants gets them under its own name:
    "conv2d.weight". The other parts of the graph stay.
    """
    from mscgym.torch.expressions import LAYERS
    readers: dict[str, int] = {}
    for joint in graph.joints:
        for weight in joint.weights.values():
            readers[weight.name] = readers.get(weight.name, 0) + 1
    joints, arrays = [], dict(graph.arrays)
    for joint in graph.joints:
        roles, own = LAYERS.get(joint.optype, ({}, None))[0], joint.weights
        is_bare = roles and own and joint.name.isidentifier() and set(own) <= set(roles) and all(
            re.fullmatch(r"const(_\d+)?", weight.name) and readers[weight.name] == 1 for weight in own.values())
        if is_bare and not any(name.split(".")[0] == joint.name for name in arrays):
            named = {role: replace(weight, name=f"{joint.name}.{roles[role]}") for role, weight in own.items()}
            arrays.update({named[role].name: arrays.pop(weight.name) for role, weight in own.items()
                           if weight.name in arrays})
            joint = replace(joint, weights=named)
        joints.append(joint)
    return replace(graph, joints=joints, arrays=arrays)


def _with_flat_states(joints: list[Joint], graph: Graph) -> list[Joint]:
    """The joints, with recurrent layers in torch's form [time, batch, directions * size], where further joints bring
    their outputs into this form. The attribute "is_flat", which only the generated text has, says so.
    """
    readers: dict[str, list[Joint]] = {name: [Joint("", "output")] for name in graph.outputs}
    for joint in joints:
        for name in joint.inputs:
            readers.setdefault(name, []).append(joint)
    replaced: dict[str, Joint | None] = {}
    for joint in joints:
        turned = readers.get(joint.outputs[0].name, []) if joint.optype in ("nn.lstm", "nn.gru", "nn.rnn") else []
        if len(turned) != 1 or turned[0].optype != "permute_dims" or turned[0].ints("axes") != [0, 2, 1, 3]:
            continue
        flat, shape = readers.get(turned[0].outputs[0].name, []), turned[0].outputs[0].shape
        if len(flat) == 1 and flat[0].optype == "reshape" and flat[0].outputs[0].shape[2:] == [shape[2] * shape[3]]:
            outputs = [flat[0].outputs[0], *joint.outputs[1:]]
            replaced |= {turned[0].name: None, flat[0].name: None,
                         joint.name: replace(joint, outputs=outputs, attrs=joint.attrs | {"is_flat": "1"})}
    return [found for joint in joints if (found := replaced.get(joint.name, joint)) is not None]


def source(graph: Graph, edits: Edits | None = None) -> str:
    """The text of main.py. GraphError names a joint that has no expression in torch."""
    graph = without_fused(graph)
    return Writer(graph if edits else _with_layers(graph), edits).write()


def to_torch(graph: Graph, folder: str | Path, *, strategy: str | Path | Mapping[str, Any] | None = None,
             learn_scales: bool = False, inputs: Mapping[str, Array] | None = None,
             outputs: Sequence[Array] | None = None) -> nn.Module:
    """Writes a graph as a module of torch to a folder, and returns the module, in evaluation, with its weights.

    `strategy` (a file or its contents, docs/strategy.md) quantises tensors in the module as the compressed model does,
    with gradients that pass the rounding, and holds weights that it set to zero. `learn_scales` makes scales
    parameters.
    `inputs`, arrays by the names of the graph's inputs, and `outputs` are recorded for the test of main.py.

    GraphError names a joint without an expression in torch, or an edit that fits no tensor of the graph.
    """
    from mscgym.torch.strategy import Edits
    folder, graph = Path(folder), without_fused(graph)
    graph = graph if strategy is not None else _with_layers(graph)
    edits = Edits(graph, strategy, learn_scales) if strategy is not None else None
    text = source(graph, edits)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "main.py").write_text(text, encoding="utf-8")
    arrays = {**graph.arrays, **(edits.arrays if edits else {})}
    write_safetensors(str(folder / "weights.safetensors"), {name: [array] for name, array in arrays.items()})
    if inputs is not None and outputs is not None:
        write_safetensors(str(folder / "baseline.safetensors"), {
            **{f"input/{name_of(name)}": [array] for name, array in inputs.items()},
            **{f"output/{i}": [array] for i, array in enumerate(outputs)}})
    return load(folder)


def load(folder: str | Path) -> nn.Module:
    """The module of a folder that `to_torch` wrote, with the weights of its file. Runs the folder's main.py."""
    spec = importlib.util.spec_from_file_location("mscgym_generated", Path(folder) / "main.py")
    assert spec is not None and spec.loader is not None
    space = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(space)
    module: nn.Module = space.load()
    return module
