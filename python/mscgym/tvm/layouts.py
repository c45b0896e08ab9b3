"""Layouts of tensors, which follow from the layers that read or make them."""
from __future__ import annotations

from mscgym.graph import Graph, Joint, Tensor

_STARTS = ("nn.conv", "msc.conv", "nn.max_pool", "nn.avg_pool", "nn.global_avg_pool", "image.resize2d")
_SAME = {"add", "subtract", "multiply", "divide", "clip", "nn.relu", "sigmoid", "tanh", "nn.batch_norm", "nn.gelu",
         "nn.leaky_relu", "nn.prelu", "concat", "maximum", "minimum", "identity", "quantize", "dequantize", "astype",
         "nn.pad", "exp", "sqrt", "nn.softmax", "mean", "max"}


def infer(graph: Graph) -> None:
    """Fills layouts that are left out, from layers to the joints between them."""
    tensors = {tensor.name: tensor for tensor in graph.tensors()}
    for joint in graph.joints:
        layout = joint.attrs.get("data_layout") or joint.attrs.get("layout", "")
        if joint.optype.startswith(_STARTS) and layout:
            for tensor in [tensors[joint.inputs[0]], joint.outputs[0]]:
                tensor.layout = tensor.layout or layout
    for joints in (graph.joints, reversed(graph.joints)):
        for joint in joints:
            if joint.optype in _SAME:
                _share([*joint.outputs, *[tensors[name] for name in joint.inputs if name]], joint)


def _share(parts: list[Tensor], joint: Joint) -> None:
    rank = len(joint.outputs[0].shape)
    known = next((part.layout for part in parts if part.layout and len(part.shape) == rank), "")
    for part in parts:
        if len(part.shape) == rank and not part.layout and len(known) == rank:
            part.layout = known
