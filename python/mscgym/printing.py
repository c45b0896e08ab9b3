"""The printed forms of a graph, as `mscgym graph FILE` and `--prototxt` write them (docs/graph.md)."""
from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mscgym.graph import Graph, Joint, Tensor

_WITHOUT_SCOPE = ("input", "constant")


def tensor_text(tensor: Tensor) -> str:
    """"conv:0(alias)<n,3,8,8|float32|NCHW>"."""
    lengths = [tensor.prims[i] if length < 0 and i < len(tensor.prims) else str(length)
               for i, length in enumerate(tensor.shape)]
    parts = [",".join(lengths)] * bool(lengths) + [tensor.dtype] + [tensor.layout] * bool(tensor.layout)
    return f"{tensor.name}{f'({tensor.alias})' if tensor.alias else ''}<{'|'.join(parts)}>"


def _first_reader(graph: Graph, joint: Joint) -> str:
    """The name of an earlier joint that has a weight of this joint, or ""."""
    own = {weight.name for weight in joint.weights.values()}
    first = next((other for other in graph.joints if own & {weight.name for weight in other.weights.values()}), joint)
    return "" if first is joint else first.name


def joint_text(graph: Graph, joint: Joint) -> str:
    """One joint, with its parents and children, as `mscgym graph` prints it; ends with a line break."""
    shared, tensors = _first_reader(graph, joint), {tensor.name: tensor for tensor in graph.tensors()}
    parents, children = (",".join(other.name for other in others)
                         for others in (graph.parents(joint), graph.children(joint)))
    scope = joint.scope or ("" if joint.optype in _WITHOUT_SCOPE else "block")
    lines = [f"ID_{graph.joints.index(joint)} {joint.name}{f'(M: {shared})' if shared else ''} <PARENTS: {parents}| "
             f"CHILDERN: {children}>"]
    if joint.inputs:
        lines.append("  IN: " + ",".join(tensor_text(tensors[name]) for name in joint.inputs if name))
    lines += ["  OUT: " + ",".join(map(tensor_text, joint.outputs)), f"  OPTYPE: {joint.optype}"]
    lines += [f"  SCOPE: {scope}"] if scope else []
    if joint.attrs:
        lines.append("  ATTRS: " + "".join(f"{key}={value} " for key, value in sorted(joint.attrs.items())))
    if joint.weights:
        lines += ["  WEIGHTS: "] + [f"    {role}: {tensor_text(weight)}" for role, weight in joint.weights.items()]
    return "\n".join(lines) + "\n"


def graph_text(graph: Graph) -> str:
    """A graph as `mscgym graph` prints it."""
    text = f"{graph.name} <INPUTS: {','.join(graph.inputs)}| OUTPUTS: {','.join(graph.outputs)}>\n"
    for index, prim in enumerate(graph.prims):
        children = ",".join(other["name"] for other in graph.prims if prim["name"] in other["parents"])
        attrs = "".join(f"{key}={value} " for key, value in prim["attrs"].items())
        text += (f"P_{index} {prim['name']} <PARENTS: {','.join(prim['parents'])}| CHILDERN: {children}>\n"
                 f"  OPTYPE: {prim['optype']}\n" + (f"  ATTRS: {attrs}\n" if attrs else "") + "\n")
    return text + "\n".join(joint_text(graph, joint) for joint in graph.joints) + "\n"


def prototxt(graph: Graph) -> str:
    """A graph in the form that viewers of Caffe networks read."""
    tensors = {tensor.name: tensor for tensor in graph.tensors()}
    text = f"name: {json.dumps(graph.name)}"
    for prim in graph.prims:
        lines = [f"  name: {json.dumps(prim['name'])}", f"  type: {json.dumps(prim['optype'])}",
                 *[f"  bottom: {json.dumps(parent)}" for parent in prim["parents"]], "  prim_param {",
                 *[f"    {key}: {json.dumps(value)}" for key, value in prim["attrs"].items()], "  }"]
        text += "\nprim {\n" + "\n".join(lines) + "\n}"
    for index, joint in enumerate(graph.joints):
        entries = {"idx": str(index)}
        for kind, items in (("input", [tensors[name] for name in joint.inputs if name]), ("output", joint.outputs)):
            entries.update({f"{kind}_{i}": json.dumps(tensor_text(item)) for i, item in enumerate(items)})
        entries.update({f"param_{role}": json.dumps(tensor_text(item)) for role, item in joint.weights.items()})
        entries.update({key: json.dumps(value) for key, value in joint.attrs.items()})
        if joint.scope:
            entries["scope"] = json.dumps(joint.scope)
        lines = [f"  name: {json.dumps(joint.name)}", f"  type: {json.dumps(joint.optype.replace('.', '_'))}",
                 f"  top: {json.dumps(joint.name)}",
                 *[f"  bottom: {json.dumps(parent.name)}" for parent in graph.parents(joint)], "  layer_param {",
                 *[f"    {key}: {value}" for key, value in sorted(entries.items())], "  }"]
        text += "\nlayer {\n" + "\n".join(lines) + "\n}"
    return text + "\n"
