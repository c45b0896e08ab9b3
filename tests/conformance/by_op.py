#!/usr/bin/env python3
"""Sums up the table of conformance cases by operator.

usage: by_op.py [--check] CASES SUMMARY

CASES was written by `test_conformance --markdown`. Writes SUMMARY; with --check it fails if
SUMMARY differs from what it would write.
"""

import re
import sys
from collections import Counter, defaultdict
from pathlib import Path

HEAD = """# ONNX conformance

This page has the results of the backends `cpu` and `vulkan` on ONNX's own backend test data, by
operator.
`ninja -C build/release conformance` writes this page and the list of all cases,
[tests/conformance/cases.md](../tests/conformance/cases.md).

A case passes if all outputs are close enough to the expected ones. Floats may differ by
2e-7 + 1e-3 |expected|; ONNX's own runner allows 1e-7 + 1e-3 |expected|. bfloat16 may differ by two
units in the last place (2^-6), as in ONNX's runner, and float16 by two as well (2^-9), because the
data round each operator of a formula to the type. Integers must be equal.

A column such as "cases of onnx 1.12" counts the cases of this version that are in scope and pass on
both backends. If some cases fail, the entry has the form "7 of 8 pass". A dash means that no case
is in scope.

Notes are about the newest version that has the operator:

- *vulkan falls back to cpu*: the backend `vulkan` lets the backend `cpu` compute the operators that
  the note names, and copies their inputs and outputs.
- *runs joint by joint*: the reference kernels run some joints of the case one at a time. These are
  joints whose lengths depend on data, joints without elements, and all joints after them.
- *out of scope*: features that mscgym does not support, each with the number of cases that test it.
  `float4`, `float6`, `float8`, `optional`, `sequence`, `string` and `map` are types.
"""
TITLE = re.compile(r"^## onnx (\S+)")
ELSEWHERE = re.compile(r"\(cpu: ([^)]*)\)")
OUT = "out of scope: "
TYPES = ("float8", "map", "optional", "sequence", "string")


def read(path):
    """Returns {version: {operator: [(cell of cpu, cell of vulkan), ...]}}, versions in order."""
    sets = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        title = TITLE.match(line)
        if title:
            ops = sets[title.group(1)] = defaultdict(list)
        elif line.startswith("| test_"):
            _, op, *cells = [cell.strip() for cell in line.strip("|").split(" | ")]
            ops[op].append(cells)
    return sets


def in_scope(cases):
    return [cells for cells in cases if not cells[0].startswith(OUT)]


def count(cases):
    """How many pass on both backends: "8 pass", "7 of 8 pass", or a dash if there are none."""
    scope = in_scope(cases)
    n = sum(all(cell.startswith("pass") for cell in cells) for cells in scope)
    if n < len(scope):
        return f"{n} of {len(scope)} pass"
    return f"{n} pass" if n else "–"


def cases_of(n):
    return "1 case" if n == 1 else f"{n} cases"


def feature(why):
    return f"type `{why}`" if why in TYPES else why


def notes(cases):
    elsewhere = [names for cells in cases for names in ELSEWHERE.findall(cells[1])]
    n_stepwise = sum("joint by joint" in cells[0] for cells in cases)
    out = Counter(cells[0].removeprefix(OUT) for cells in cases if cells[0].startswith(OUT))
    found = []
    if elsewhere:
        names = sorted({name for names in elsewhere for name in names.split(", ")})
        found.append(f"vulkan falls back to cpu for {', '.join(names)} in {cases_of(len(elsewhere))}")
    if n_stepwise:
        found.append(f"runs joint by joint in {cases_of(n_stepwise)}")
    if out:
        counts = (f"{feature(why)} ({cases_of(n)})" for why, n in sorted(out.items()))
        found.append(OUT + ", ".join(counts))
    return "; ".join(found)


def summary(sets):
    lines = ["| data | cases | in scope | `cpu` passes | `vulkan` passes |", "|---|---|---|---|---|"]
    for version, ops in sets.items():
        cases = [cells for of_op in ops.values() for cells in of_op]
        scope = in_scope(cases)
        passed = [sum(cells[d].startswith("pass") for cells in scope) for d in (0, 1)]
        lines.append(f"| onnx {version} | {len(cases)} cases | {len(scope)} in scope | {passed[0]} pass | "
                     f"{passed[1]} pass |")
    columns = " | ".join(f"cases of onnx {version}" for version in sets)
    lines += ["", f"| operator | {columns} | notes |",
              "|---" * (len(sets) + 2) + "|"]
    for op in sorted({op for ops in sets.values() for op in ops}, key=str.lower):
        newest = [ops[op] for ops in sets.values() if op in ops][-1]
        counts = [count(ops.get(op, [])) for ops in sets.values()]
        lines.append("| " + " | ".join([op] + counts + [notes(newest)]) + " |")
    return HEAD + "\n" + "\n".join(lines) + "\n"


def main():
    arguments = sys.argv[1:]
    is_check = arguments[:1] == ["--check"]
    paths = [Path(path) for path in arguments[is_check:]]
    if len(paths) != 2:
        print(__doc__.strip(), file=sys.stderr)
        return 2
    text = summary(read(paths[0]))
    if not is_check:
        paths[1].write_text(text, encoding="utf-8")
    elif paths[1].read_text(encoding="utf-8") != text:
        print(f"{paths[1]} is not what {paths[0]} adds up to: build the target `conformance`, or run\n"
              f"tests/conformance/by_op.py {paths[0]} {paths[1]}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
