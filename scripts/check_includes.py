#!/usr/bin/env python3
"""Checks every #include "folder/..." against the table of who may use whom.

usage: check_includes.py REPOSITORY
"""

import re
import sys
from pathlib import Path

# What each folder may include, besides itself. The longest matching folder counts.
BELOW_ENV = ["base", "data", "graph", "kernels", "tools"]
ALLOWED = {
    "base": [],
    "data": ["base"],
    "graph": ["base", "data"],
    "kernels": ["base", "data", "graph"],
    "tools": ["base", "data", "graph", "kernels"],
    "env/api": ["base"],
    "env": BELOW_ENV + ["env/api"],
    "agents": ["base", "env/api"],
    "records": ["base", "env/api"],
    "search": BELOW_ENV + ["env", "env/api", "agents", "records"],
    "pipeline": BELOW_ENV + ["env", "env/api", "agents", "records", "search"],
    "cli": BELOW_ENV + ["env", "env/api", "agents", "records", "search", "pipeline"],
}
QUOTED = re.compile(r'^\s*#\s*include\s*"([^"]+)"')
VULKAN = re.compile(r"^\s*#\s*include\s*[<\"]vulkan/")


def layer_of(path):
    """The row of the table that a path such as env/api/space.h belongs to, or None."""
    parts = path.split("/")[:-1]
    for n in range(len(parts), 0, -1):
        name = "/".join(parts[:n])
        if name in ALLOWED:
            return name
    return None


def check_line(line, path, layer):
    """Why this line of a file in `layer` is wrong, or None."""
    if VULKAN.match(line) and not path.startswith("kernels/vulkan/"):
        return "Vulkan headers belong to kernels/vulkan/ alone"
    match = QUOTED.match(line)
    if not match:
        return None
    target = match.group(1)
    if target.startswith(".") or "/../" in target:
        return f'"{target}": write the path from the repository root'
    target_layer = layer_of(target)
    if target_layer and target_layer != layer and target_layer not in ALLOWED[layer]:
        return f'{layer}/ may not include "{target}"'
    return None


def main():
    if len(sys.argv) != 2:
        print(__doc__.strip(), file=sys.stderr)
        return 2
    root = Path(sys.argv[1])
    n_files = 0
    errors = []
    tops = sorted({name.split("/")[0] for name in ALLOWED})
    for file in sorted(file for top in tops for file in (root / top).rglob("*.[ch]")):
        n_files += 1
        path = file.relative_to(root).as_posix()
        layer = layer_of(path)
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
            why = check_line(line, path, layer)
            if why:
                errors.append(f"{path}:{number}: {why}")
    if n_files == 0:
        errors.append(f"{root}: no source file found")
    print("\n".join(errors + [f"{n_files} files, {len(errors)} errors"]))
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
