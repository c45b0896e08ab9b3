"""The printed forms of a graph, as `mscgym graph FILE` and `--prototxt` write them (docs/graph.md)."""
from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Iterable

if TYPE_CHECKING:
    from mscgym.graph import Graph, Joint, Tensor

_WITHOUT_SCOPE = ("input", "constant")
_NOTES = ("opset", "model_version", "doc", "graph_doc", "domain")
_OBEYED = r"\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069"
"""Control characters, marks of text direction, and separators of lines, as a class of a regular expression."""
_NOT_IN_VALUES = rf'[\s"#\\{_OBEYED}]'
_NOT_IN_NAMES = rf'[\s"#\\,|<>(){{}}={_OBEYED}]|:$'
_ESCAPES = {"\n": r"\n", "\r": r"\r", "\t": r"\t", '"': r"\"", "\\": r"\\"}


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    return _ESCAPES.get(match[0]) or (f"\\x{code:02x}" if code < 0x80 else f"\\u{code:04x}")


def _quoted(text: str) -> str:
    return '"' + re.sub(rf'["\\{_OBEYED}]', _escape, text) + '"'


def name_text(name: str) -> str:
    """A name, in quotes if it would not be read back without them."""
    return name if name and not re.search(_NOT_IN_NAMES, name, re.ASCII) else _quoted(name)


def _names(names: Iterable[str]) -> str:
    return ",".join(map(name_text, names))


def _pairs(label: str, pairs: Iterable[tuple[str, Any]]) -> list[str]:
    """A line with a space after each pair; none without pairs."""
    texts = [f"{name_text(key)}={value if not re.search(_NOT_IN_VALUES, value, re.ASCII) else _quoted(value)} "
             for key, value in ((key, str(value)) for key, value in pairs)]
    return [label + "".join(texts)] if texts else []


def tensor_text(tensor: Tensor, has_alias: bool = False) -> str:
    """"conv:0(alias)<n,3,8,8|float32|NCHW>". With `has_alias`, an empty alias is written, too."""
    lengths = [_symbol(tensor.prims[i]) if length < 0 and i < len(tensor.prims) else str(length)
               for i, length in enumerate(tensor.shape)]
    parts = [",".join(lengths)] * bool(lengths) + [tensor.dtype] + [name_text(tensor.layout)] * bool(tensor.layout)
    alias = f"({name_text(tensor.alias)})" if tensor.alias or has_alias else ""
    return f"{name_text(tensor.name)}{alias}<{'|'.join(parts)}>"


def _symbol(name: str) -> str:
    return _quoted(name) if re.fullmatch(r"[+-]?\d+", name, re.ASCII) else name_text(name)


def _tensor_texts(graph: Graph, joint: Joint) -> dict[str, str]:
    """The texts of a joint's inputs and outputs, by name. The graph's own have an alias, which may be empty."""
    names = {*joint.inputs, *(tensor.name for tensor in joint.outputs)}
    return {tensor.name: tensor_text(tensor, other.optype == "input" or tensor.name in graph.outputs)
            for other in graph.joints for tensor in other.outputs if tensor.name in names}


def _first_reader(graph: Graph, joint: Joint) -> str:
    """The name of an earlier joint that has a weight of this joint, or ""."""
    own = {weight.name for weight in joint.weights.values()}
    first = next((other for other in graph.joints if own & {weight.name for weight in other.weights.values()}), joint)
    return "" if first is joint else first.name


def joint_text(graph: Graph, joint: Joint) -> str:
    """One joint, with its parents and children, as `mscgym graph` prints it; ends with a line break."""
    shared, tensors = _first_reader(graph, joint), _tensor_texts(graph, joint)
    parents, children = (_names(other.name for other in others)
                         for others in (graph.parents(joint), graph.children(joint)))
    scope = joint.scope or ("" if joint.optype in _WITHOUT_SCOPE else "block")
    index = next(i for i, other in enumerate(graph.joints) if other is joint or other.name == joint.name)
    lines = [f"ID_{index} {name_text(joint.name)}{f'(M: {name_text(shared)})' if shared else ''} "
             f"<PARENTS: {parents}| CHILDERN: {children}>"]
    if any(joint.inputs):
        lines.append("  IN: " + ",".join(tensors[name] if name else '""' for name in joint.inputs))
    lines += ["  OUT: " + ",".join(tensors[tensor.name] for tensor in joint.outputs), f"  OPTYPE: {joint.optype}"]
    lines += [f"  SCOPE: {name_text(scope)}"] if scope else []
    lines += _pairs("  ATTRS: ", joint.attrs.items() if graph.keeps_attr_order else sorted(joint.attrs.items()))
    if joint.weights:
        lines += ["  WEIGHTS: "] + [f"    {role}: {tensor_text(weight)}" for role, weight in joint.weights.items()]
    for value in joint.graphs:
        body = type(graph).from_json(value, joint.name)
        body.keeps_attr_order = graph.keeps_attr_order
        inner = _joints_text(body).rstrip("\n").split("\n")
        lines += ["  GRAPH: {", *[f"    {line}" if line else "" for line in inner], "  }"]
    return "\n".join(lines) + "\n"


def _joints_text(graph: Graph) -> str:
    text = f"{name_text(graph.name)} <INPUTS: {_names(graph.inputs)}| OUTPUTS: {_names(graph.outputs)}>\n"
    for index, prim in enumerate(graph.prims):
        children = _names(other["name"] for other in graph.prims if prim["name"] in other["parents"])
        lines = [f"P_{index} {name_text(prim['name'])} <PARENTS: {_names(prim['parents'])}| CHILDERN: {children}>",
                 f"  OPTYPE: {name_text(prim['optype'])}", *_pairs("  ATTRS: ", prim["attrs"].items())]
        text += "\n".join(lines) + "\n\n"
    return text + "".join(joint_text(graph, joint) + "\n" for joint in graph.joints)


def graph_text(graph: Graph) -> str:
    """A graph as `mscgym graph` prints it."""
    notes = graph.notes
    lines = _pairs("NOTES: ", [(key, notes[key]) for key in _NOTES if notes.get(key)]) or ["NOTES: "]
    for key in ("metadata", "input_docs", "output_docs"):
        lines += _pairs(f"  {key.upper()}: ", notes.get(key, {}).items())
    return _joints_text(graph) + ("\n".join(lines) + "\n\n" if any(notes.values()) else "")


def _prototxt_text(text: str) -> str:
    escaped = re.sub(r'["\\]', r"\\\g<0>", text)
    octal = re.sub(r"[\x00-\x1f]", lambda match: f"\\{ord(match[0]):03o}", escaped)
    return '"' + re.sub(f"[{_OBEYED}]", _escape, octal) + '"'


def prototxt(graph: Graph) -> str:
    """A graph in the form that viewers of Caffe networks read."""
    text = f"name: {_prototxt_text(graph.name)}"
    for prim in graph.prims:
        lines = [f"  name: {_prototxt_text(prim['name'])}", f"  type: {_prototxt_text(prim['optype'])}",
                 *[f"  bottom: {_prototxt_text(parent)}" for parent in prim["parents"]], "  prim_param {",
                 *[f"    {key}: {_prototxt_text(value)}" for key, value in prim["attrs"].items()], "  }"]
        text += "\nprim {\n" + "\n".join(lines) + "\n}"
    for index, joint in enumerate(graph.joints):
        entries, tensors = {"idx": str(index)}, _tensor_texts(graph, joint)
        for kind, names in (("input", filter(None, joint.inputs)), ("output", [item.name for item in joint.outputs])):
            entries.update({f"{kind}_{i}": _prototxt_text(tensors[name]) for i, name in enumerate(names)})
        entries.update({f"param_{role}": _prototxt_text(tensor_text(item)) for role, item in joint.weights.items()})
        entries.update({key: _prototxt_text(value) for key, value in joint.attrs.items()})
        if joint.scope:
            entries["scope"] = _prototxt_text(joint.scope)
        lines = [f"  name: {_prototxt_text(joint.name)}", f"  type: {_prototxt_text(joint.optype.replace('.', '_'))}",
                 f"  top: {_prototxt_text(joint.name)}",
                 *[f"  bottom: {_prototxt_text(parent.name)}" for parent in graph.parents(joint)], "  layer_param {",
                 *[f"    {key}: {value}" for key, value in sorted(entries.items())], "  }"]
        text += "\nlayer {\n" + "\n".join(lines) + "\n}"
    return text + "\n"
