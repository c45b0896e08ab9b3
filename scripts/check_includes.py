#!/usr/bin/env python3
"""Checks every #include "folder/..." against the table of allowed includes, and headers for circles.

usage: check_includes.py REPOSITORY
"""

import re
import sys
from pathlib import Path

# The layers, lowest first, and the layers that each may include besides itself. A nested folder
# that is named here is a layer of its own: the longest matching name counts. A layer may not
# include one that is further down in this table.
GRAPH = ["base", "data", "graph"]
BACKEND = GRAPH + ["graph/reference", "kernels", "kernels/lowering"]
BELOW_ENV = GRAPH + ["graph/passes", "graph/reference", "graph/rules", "graph/onnx", "kernels",
                     "kernels/vulkan", "kernels/engine", "tools"]
ENV = BELOW_ENV + ["env/api", "env"]
ABOVE_ENV = ENV + ["env/quantize", "env/prune", "env/combined", "env/placement", "env/schedule",
                   "agents", "records"]
BELOW_PIPELINE = ABOVE_ENV + ["supervise", "cluster", "search", "checks", "results", "config", "model"]
ALLOWED = {
    "base": [],
    "data": ["base"],
    "graph": ["base", "data"],
    "graph/infer": GRAPH,
    "graph/channels": GRAPH,
    "graph/reference": GRAPH,
    "graph/passes": GRAPH + ["graph/reference"],
    "graph/rules": GRAPH + ["graph/passes", "graph/reference"],
    "graph/gguf": GRAPH,
    "graph/onnx": GRAPH + ["graph/passes", "graph/gguf"],
    "graph/tflite": GRAPH + ["graph/passes", "graph/onnx"],
    "kernels": GRAPH,
    "kernels/lowering": GRAPH + ["graph/reference", "kernels"],
    "kernels/cpu": BACKEND,
    "kernels/vulkan": BACKEND,
    "kernels/engine": GRAPH + ["graph/reference", "graph/passes", "kernels", "kernels/cpu",
                               "kernels/vulkan"],
    "tools": GRAPH + ["graph/reference", "graph/passes", "graph/onnx", "kernels", "kernels/lowering",
                      "kernels/engine"],
    "env/api": ["base"],
    "env": BELOW_ENV + ["env/api"],
    "env/quantize": ENV,
    "env/prune": ENV,
    "env/combined": ENV + ["env/quantize", "env/prune"],
    "env/placement": ENV,
    "env/schedule": ENV,
    "agents": ["base", "env/api"],
    "records": ["base", "env/api"],
    "supervise": ["base", "records"],
    "cluster": ["base", "kernels/vulkan", "env/api", "env", "supervise"],
    "search": ABOVE_ENV + ["supervise", "cluster"],
    "checks": ABOVE_ENV,
    "results": ABOVE_ENV + ["search", "checks"],
    "config": ABOVE_ENV + ["supervise", "search"],
    "model": BELOW_ENV + ["graph/tflite", "env/api", "env", "env/placement", "records", "config"],
    "codegen": GRAPH + ["graph/onnx", "tools", "model"],
    "pipeline": BELOW_PIPELINE,
    "pipeline/quick": BELOW_PIPELINE + ["pipeline"],
    "report": BELOW_PIPELINE + ["pipeline"],
    "serve": BELOW_PIPELINE + ["pipeline", "report"],
    "cli": BELOW_PIPELINE + ["codegen", "pipeline", "pipeline/quick", "report", "serve"],
}
SHADERS = [".comp", ".glsl"]
SUFFIXES = [".c", ".cpp", ".h", ".def"] + SHADERS
GENERATED = ["onnx.pb-c.h", "event.pb-c.h"]
QUOTED = re.compile(r'^\s*#\s*include\s*"([^"]+)"')
VULKAN = re.compile(r"^\s*#\s*include\s*[<\"]vulkan/")


def check_table():
    """Errors in the table itself: a layer that includes one that is not above it."""
    order = list(ALLOWED)
    return [f"{layer}/ may not be built on {below}/, which stands further down"
            for layer, names in ALLOWED.items() for below in names
            if order.index(below) >= order.index(layer)]


def layer_of(path):
    """The layer to which a path such as env/api/space.h belongs, or None."""
    parts = path.split("/")[:-1]
    for n in range(len(parts), 0, -1):
        name = "/".join(parts[:n])
        if name in ALLOWED:
            return name
    return None


def is_path(root, file, target):
    """True if `target` is a file relative to the repository root or, for a shader, to its own folder."""
    if {".", ".."} & set(target.split("/")):
        return False
    is_beside = file.suffix in SHADERS and "/" not in target and (file.parent / target).is_file()
    return is_beside or target in GENERATED or (root / target).is_file()


def check_include(root, file, target, layer):
    """The reason why a file in `layer` may not include `target`, or None."""
    if not is_path(root, file, target):
        return f'"{target}": write the path from the repository root'
    target_layer = layer_of(target)
    if target_layer and target_layer != layer and target_layer not in ALLOWED[layer]:
        return f'{layer}/ may not include "{target}"'
    return None


def find_circles(included):
    """One text for each circle of headers; `included` has each header's own includes."""
    circles = []
    done = set()

    def visit(header, path):
        if header in path:
            circle = path[path.index(header):] + [header]
            circles.append("headers include each other: " + " -> ".join(circle))
        elif header not in done:
            for target in included.get(header, []):
                visit(target, path + [header])
            done.add(header)

    for header in sorted(included):
        visit(header, [])
    return circles


def main():
    if len(sys.argv) != 2:
        print(__doc__.strip(), file=sys.stderr)
        return 2
    root = Path(sys.argv[1])
    n_files = 0
    errors = check_table()
    included = {}
    tops = sorted({name.split("/")[0] for name in ALLOWED})
    files = (file for top in tops for file in (root / top).rglob("*") if file.suffix in SUFFIXES)
    for file in sorted(files):
        n_files += 1
        path = file.relative_to(root).as_posix()
        layer = layer_of(path)
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
            match = QUOTED.match(line)
            why = check_include(root, file, match.group(1), layer) if match else None
            if VULKAN.match(line) and not path.startswith("kernels/vulkan/"):
                why = "Vulkan headers belong to kernels/vulkan/ alone"
            if why:
                errors.append(f"{path}:{number}: {why}")
            if match and path.endswith(".h"):
                included.setdefault(path, []).append(match.group(1))
    errors += find_circles(included)
    if n_files == 0:
        errors.append(f"{root}: no source file found")
    print("\n".join(errors + [f"{n_files} files, {len(errors)} errors"]))
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
