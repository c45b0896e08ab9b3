"""Writes a graph as a Relax module: the text of main.py.

`source` makes the text and needs no TVM. `to_relax` writes the folder and loads the module from it:

    main.py                 module(), load(), and a test that compares with recorded outputs
    weights.safetensors     the weights, by their names in the graph
    baseline.safetensors    recorded inputs and outputs, if they are given
    NAME.txt                a function of loops that from_relax did not recognise

Each joint becomes one line, by its row in expressions.py. Joints of a group (groups.py) become one line.
"""
from __future__ import annotations

import importlib.util
import json
import re
import tempfile
from pathlib import Path
from typing import Any, Mapping, Sequence

from mscgym.emitter import Emit, free_name, identifier, without_fused
from mscgym.graph import Array, Graph, GraphError, Joint, Tensor
from mscgym.safetensors import write_safetensors
from mscgym.tvm import groups
from mscgym.tvm.loops import loops_name, loops_text

RESULT = "relax.result"
"""The key of a graph's metadata with the form of the result if it is not the default: "[0, [1, 2]]", nested tuples."""

_HELPERS = ["call_loops", "const", "dynamic_quantize", "largest", "recurrent", "shifted", "smallest", "value"]
_RESERVED = {"FOLDER", "Path", "bb", "bind", "dataflow", "float", "load", "main", "module", "op", "relax", "symbol",
             "tensor", *_HELPERS}
_OPERATORS = {"Add": "+", "Sub": "-", "Mul": "*", "FloorDiv": "//", "FloorMod": "%"}


def default_form(n: int) -> Any:
    """One output is a tensor, several are a tuple."""
    return 0 if n == 1 else [*range(n)]


class Writer:
    """Collects the lines of module()."""
    language = "Relax"

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.joints = groups.collect(graph)
        self.tensors = {tensor.name: tensor for joint in self.joints for tensor in joint.outputs}
        self.constants: dict[str, Tensor] = {}
        self.texts: dict[str, str] = {}        # how a line reads a tensor
        self.weights: dict[str, tuple[str, Tensor]] = {}   # by name: the variable, and what it holds
        self.names: set[str] = set()
        self.lines: list[tuple[str, str]] = []
        self.functions: list[tuple[str, list[str]]] = []   # of external joints with a body: name and lines
        self.prims = {prim["name"]: prim for prim in graph.prims}
        inputs = [tensor for tensor in self.tensors.values() if tensor.name in graph.inputs]
        self.symbols = {name: free_name(identifier(name, _RESERVED), self.names) for tensor in inputs
                        for name in self._symbols(tensor)}

    # ---- Lengths

    def _symbols(self, tensor: Tensor) -> list[str]:
        found: list[str] = []
        stack = [name for length, name in zip(tensor.shape, tensor.prims) if length < 0]
        while stack:
            prim = self.prims.get(stack.pop())
            if prim is not None:
                found += [prim["name"]] if prim["optype"] == "shape" else []
                stack += prim["parents"]
        return found

    def is_known(self, tensor: Tensor) -> bool:
        """True if the tensor's lengths follow from the inputs'."""
        return (-1 not in tensor.shape or len(tensor.prims) == len(tensor.shape)) and all(
            name in self.symbols for name in self._symbols(tensor))

    def _length(self, name: str) -> str:
        prim = self.prims[name]
        if prim["optype"] == "shape":
            return self.symbols[name]
        if prim["optype"] == "Int":
            return str(prim["attrs"]["value"])
        parts = [self._length(parent) for parent in prim["parents"]]
        if prim["optype"] in ("Max", "Min"):
            return f"{'largest' if prim['optype'] == 'Max' else 'smallest'}({', '.join(parts)})"
        return "(" + f" {_OPERATORS[prim['optype']]} ".join(parts) + ")"

    def lengths(self, tensor: Tensor) -> str:
        """The text of a tensor's shape: "[n, 3]"."""
        texts = [str(length) if length >= 0 else self._length(name)
                 for length, name in zip(tensor.shape, tensor.prims or [""] * len(tensor.shape))]
        return "[" + ", ".join(re.sub(r"^\((.*)\)$", r"\1", text) if text.count("(") == 1 else text
                               for text in texts) + "]"

    # ---- Operands

    def weight(self, weight: Tensor) -> str:
        if weight.name not in self.weights:
            base = identifier(weight.name, _RESERVED)
            self.weights[weight.name] = (free_name(base, self.names), weight)
        return self.weights[weight.name][0]

    def read(self, joint: Joint, name: str) -> str:
        """How a joint reads a tensor: a variable, or a number."""
        constant = self.constants.get(name)
        if constant is None:
            return self.texts[name]
        array = self.graph.arrays.get(constant.name)
        if constant.shape or array is None or constant.dtype == "float16":
            return self.weight(constant)
        value = array.item()
        text = f"float('{value}')" if value in (float("inf"), float("-inf")) or value != value else repr(value)
        return f"const({text}, {constant.dtype!r})"

    # ---- Lines

    def add(self, joint: Joint) -> None:
        from mscgym.tvm.expressions_moves import ROWS
        if joint.optype == "constant":
            self.constants[joint.outputs[0].name] = joint.weights["const"]
            return
        name = free_name(identifier(joint.name, _RESERVED), self.names)
        n = len(joint.outputs)
        parts = [name] if n == 1 else [free_name(f"{name}_{i}", self.names) for i in range(n)]
        self.texts.update({tensor.name: part for tensor, part in zip(joint.outputs, parts)})
        if joint.optype == "input":
            return
        if joint.optype == "msc.external" and joint.graphs:
            text = self.library(joint)
        elif joint.optype in ROWS:
            row, e = ROWS[joint.optype], Emit(self, joint, "")
            text = row.format(*e.all()) if isinstance(row, str) else row(e)
        else:
            raise GraphError(f"joint '{joint.name}' has the type {joint.optype}, which has no expression in Relax")
        self.lines.append((name, f"bb.emit({text}, {name!r})"))
        self.lines += [(part, f"bb.emit({name}[{i}], {part!r})") for i, part in enumerate(parts) if n > 1]

    def result(self) -> str:
        """The text of the result, in the form that the graph's metadata have."""
        texts = [self.read(Joint("", "output"), name) for name in self.graph.outputs]
        form = self.graph.notes.get("metadata", {}).get(RESULT)
        n = len(texts)
        shape: Any = json.loads(form) if form else default_form(n)
        return _nested(shape if sorted(_leaves(shape)) == [*range(n)] else default_form(n), texts)

    def function(self, name: str, attrs: str = "") -> tuple[list[str], list[str], list[str]]:
        """The lines that make the variables of a function of this name, and those that make the function. The third
        list has the names of its weights."""
        for joint in self.joints:
            self.add(joint)
        result = self.result()
        kept, read = [], set(re.findall(r"\w+", result))
        for variable, text in reversed(self.lines):
            if variable in read:
                kept.append(f"{variable} = {text}")
                read.update(re.findall(r"\w+", text))
        inputs = [(self.texts[item], self.tensors[item]) for item in self.graph.inputs]
        weights = [(variable, tensor) for variable, tensor in self.weights.values() if variable in read]
        head = [f"{variable} = symbol({label!r})" for label, variable in self.symbols.items()]
        head += [f"{variable} = tensor({label!r}, {self.lengths(item)}, {item.dtype!r})" for variable, label, item in [
            *[(variable, item.alias or variable, item) for variable, item in inputs],
            *[(variable, item.name, item) for variable, item in weights]]]
        parameters = ", ".join([variable for variable, _ in inputs + weights])
        lines = [f"with bb.function({name!r}, [{parameters}]{attrs}):", *[f"    {line}" for line in reversed(kept)],
                 f"    bb.emit_func_output({result})"]
        return head, lines, [tensor.name for _, tensor in weights]

    def library(self, joint: Joint) -> str:
        """A call of the function that an external joint's body becomes. Its attributes are those of TVM's
        FuseOpsByPattern, so a backend can take it."""
        body = Graph.from_json(joint.graphs[0], joint.name)
        body.arrays = self.graph.arrays
        inner = Writer(without_fused(body))
        title = f"{joint.attrs['domain']}.{joint.attrs['op']}"
        name = free_name(identifier(joint.attrs["op"], _RESERVED), self.names)
        attrs = f", {{'Composite': {title!r}, 'Primitive': True}}, private=True"
        head, lines, weights = inner.function(name, attrs)
        self.functions.append((name, [f"def add_{name}(bb):", *[f"    {line}" for line in [
            f'"""{title}."""', *head, *lines, f"return bb.get().get_global_var({name!r})"]]]))
        held = {tensor.name: tensor for _, tensor in inner.weights.values()}
        operands = [self.read(joint, item) for item in joint.inputs] + [self.weight(held[item]) for item in weights]
        return f"relax.Call({name}, [{', '.join(operands)}])"

    def write(self) -> str:
        head, lines, _ = self.function(self.graph.name)
        blocks = [block for _, block in self.functions]
        blocks.append(["def module():", *[f"    {line}" for line in [
            *head, "bb = relax.BlockBuilder()", *[f"{name} = add_{name}(bb)" for name, _ in self.functions], *lines,
            "return dataflow(bb.finalize())"]]])
        text = "\n\n\n".join("\n".join(block) for block in blocks)
        helpers = ["bind", "dataflow", "main", "tensor",
                   *[name for name in [*_HELPERS, "symbol"] if re.search(rf"\b{name}\(", text)]]
        return "\n".join([
            f'"""{self.graph.name}: a Relax module that mscgym wrote from a graph.', "",
            "module() returns it with its weights as parameters, load() with its weights as constants. `python3 "
            "main.py`", "compiles it and compares it with recorded outputs.", '"""',
            "from pathlib import Path", "", "from tvm import relax", "from tvm.relax import op", "",
            f"from mscgym.tvm.module import {', '.join(sorted(helpers))}", "",
            "FOLDER = Path(__file__).resolve().parent", "", "", text, "", "", "def load():",
            f'    return bind(module(), {self.graph.name!r}, FOLDER / "weights.safetensors")', "", "",
            'if __name__ == "__main__":', f"    main(load(), {self.graph.name!r}, FOLDER)"]) + "\n"


def _leaves(form: Any) -> list[int]:
    return [leaf for part in form for leaf in _leaves(part)] if isinstance(form, list) else [form]


def _nested(form: Any, texts: Sequence[str]) -> str:
    if isinstance(form, int):
        return texts[form]
    parts = [_nested(part, texts) for part in form]
    return f"bb.emit(relax.Tuple([{', '.join(parts)}]), 'result')"


def source(graph: Graph) -> str:
    """The text of main.py. GraphError names a joint that has no expression in Relax."""
    return Writer(without_fused(graph, keeps_marked=True)).write()


def to_relax(graph: Graph, folder: str | Path | None = None, *, weights: Mapping[str, Array] | None = None,
             bind: bool = True, inputs: Mapping[str, Array] | None = None,
             outputs: Sequence[Array] | None = None) -> Any:
    """Writes a graph as a Relax module to a folder, and returns the module, a tvm.IRModule. Without a folder, no files
    remain.

    `weights` replaces the elements of weights by name. `bind=False` leaves the weights parameters of the function,
    after the inputs, under their names. `inputs`, arrays by the names of the graph's inputs, and `outputs` are recorded
    for the test of main.py.

    GraphError names a joint without an expression in Relax.
    """
    if folder is None:
        with tempfile.TemporaryDirectory(prefix="mscgym_relax_") as place:
            return to_relax(graph, place, weights=weights, bind=bind)
    folder, text = Path(folder), source(graph)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "main.py").write_text(text, encoding="utf-8")
    for joint in graph.joints:
        if loops_name(joint):
            (folder / f"{loops_name(joint)}.txt").write_text(loops_text(joint), encoding="utf-8")
    unknown = [name for name in weights or {} if name not in graph.arrays]
    if unknown:
        raise GraphError(f"the graph has no weight '{unknown[0]}'")
    arrays = {**graph.arrays, **(weights or {})}
    write_safetensors(str(folder / "weights.safetensors"), {name: [array] for name, array in arrays.items()})
    if inputs is not None and outputs is not None:
        write_safetensors(str(folder / "baseline.safetensors"), {
            **{f"input/{name}": [array] for name, array in inputs.items()},
            **{f"output/{i}": [array] for i, array in enumerate(outputs)}})
    return load(folder, bind)


def load(folder: str | Path, bind: bool = True) -> Any:
    """The module of a folder that `to_relax` wrote, with the weights of its file as constants, or with `bind=False` as
    parameters. Runs the folder's main.py."""
    spec = importlib.util.spec_from_file_location("mscgym_generated", Path(folder) / "main.py")
    assert spec is not None and spec.loader is not None
    space = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(space)
    return space.load() if bind else space.module()
