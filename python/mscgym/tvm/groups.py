"""Groups: joints that together compute one operator of Relax, which has no joint of its own.

from_relax names such joints after their group: "silu/sigmoid" and "silu". `collect` replaces them by one joint of the
type "relax.silu", whose inputs are those of its joints one after the other, if they are still the joints of the operator
and nothing else reads a tensor inside the group.
"""
from __future__ import annotations

import re

from mscgym.graph import Graph, Joint

FORMS: dict[str, str] = {
    "silu": "sigmoid multiply", "rsqrt": "sqrt reciprocal", "not_equal": "equal logical_not", "square": "multiply",
    "floor_divide": "divide floor|floor_mod subtract divide", "trunc": "abs floor sign multiply",
    "isfinite": "isnan isinf logical_or logical_not", "ewise_fma": "multiply add", "outer": "expand_dims multiply",
    "log_add_exp": "maximum subtract exp subtract exp add log add", "prelu": "reshape nn.prelu",
    "attention": "permute_dims permute_dims matmul multiply (add )?nn.softmax permute_dims matmul permute_dims",
    "attention_bias": "permute_dims permute_dims matmul multiply add (add )?nn.softmax permute_dims matmul "
    "permute_dims",
    **{f"adaptive_avg_pool{n}d": f"nn.avg_pool{n}d|matmul( matmul)?" for n in (1, 2, 3)}, "argmax": "reshape argmax",
    "argmin": "reshape argmin", "flatten": "reshape",
    "rms_norm": "multiply mean add sqrt divide multiply", "variance": "mean subtract multiply mean",
    "std": "mean subtract multiply mean sqrt", "stack": "(expand_dims )+concat", "grid_sample": "permute_dims "
    "image.grid_sample", "index_tensor": "take|(broadcast_to |expand_dims |astype )+concat gather_nd",
    "flip": "strided_slice", "full": "broadcast_to", "zeros": "broadcast_to", "ones": "broadcast_to",
    "full_like": "broadcast_to", "zeros_like": "broadcast_to", "ones_like": "broadcast_to", "argsort": "topk( astype)?",
    "sort": "topk", "topk": "topk astype", "repeat": "expand_dims tile reshape"}
"""For each operator, the types of its joints in order, as a regular expression."""

def collect(graph: Graph) -> list[Joint]:
    """The joints of a graph, with one joint in place of each group that is still whole."""
    members: dict[str, list[Joint]] = {}
    for joint in graph.joints:
        members.setdefault(joint.name.rpartition("/")[0] or joint.name, []).append(joint)
    readers: dict[str, set[str]] = {}
    for joint in graph.joints:
        for name in joint.inputs:
            readers.setdefault(name, set()).add(joint.name)
    for name in graph.outputs:
        readers.setdefault(name, set()).add("")
    replaced: dict[str, Joint | None] = {}
    for name, joints in members.items():
        whole = _whole(name, joints, readers)
        if whole is not None:
            replaced.update({joint.name: None for joint in joints})
            replaced[name] = whole
    result = [replaced.get(joint.name, joint) for joint in graph.joints]
    return [joint for joint in result if joint is not None]


def _whole(name: str, joints: list[Joint], readers: dict[str, set[str]]) -> Joint | None:
    base = re.sub(r"_\d+$", "", name)
    base = base if base in FORMS else name
    last = joints[-1]
    types = " ".join(joint.optype for joint in joints)
    if base not in FORMS or last.name != name or not re.fullmatch(FORMS[base], types):
        return None
    outputs = last.outputs
    if base in ("sort", "argsort") and last.optype == "topk":
        outputs = last.outputs[:1] if base == "sort" else last.outputs[1:]
        if any(tensor.name in readers for tensor in last.outputs if tensor not in outputs):
            return None
    if base == "topk" and joints[0].attrs.get("ret_type", "both") == "both":
        outputs = [joints[0].outputs[0], *last.outputs]
    inside = {tensor.name for joint in joints[:-1] for tensor in joint.outputs if tensor not in outputs}
    own = {joint.name for joint in joints}
    if any(readers.get(tensor, set()) - own for tensor in inside) or any(joint.weights for joint in joints):
        return None
    inputs: list[str] = []
    for joint in joints:
        inputs += [item for item in joint.inputs if item and item not in inside]
    attrs: dict[str, str] = {}
    for joint in joints:
        local = "" if joint is last else re.sub(r"_\d+$", "", joint.name.rpartition("/")[2]) + "."
        attrs.update({local + key: value for key, value in joint.attrs.items()} if joint.attrs else {local: ""})
    return Joint(name, f"relax.{base}", inputs, outputs, attrs, scope=last.scope)
