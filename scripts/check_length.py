#!/usr/bin/env python3
"""Checks the length of files and functions, in lines, and of comments, in columns.

usage: check_length.py REPOSITORY

Fails above 600 lines per file or 60 per function, and above 100 columns in a line that is a comment
(clang-format does not wrap comments). Lines between the braces of a const array do not count,
because a table is as long as what it lists. Lists in .def files are not checked.
"""

import re
import sys
from pathlib import Path

FOLDERS = ["base", "data", "graph", "kernels", "tools", "env", "agents", "records", "supervise", "cluster", "search",
           "checks", "results", "config", "model", "codegen", "pipeline", "report", "serve", "cli", "tests", "bench",
           "examples"]
FILE_LINES, FUNCTION_LINES, COMMENT_COLUMNS = 600, 60, 100
TEXT = re.compile(r"\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'")
# "static const struct row rows[] = {" or, after the members of an unnamed struct, "} rows[] = {".
TABLE = re.compile(r"^(\s*)[^=;()]*\w(?:\[[^\]]*\])+ = \{$")


def is_const(lines, at, indent):
    """True if the declaration that ends in line `at`, and begins with this indent, is const."""
    while at > 0 and (not lines[at].startswith(indent) or lines[at][len(indent):][:1] in (" ", "}")):
        at -= 1
    return re.search(r"\bconst\b", lines[at]) is not None


def depth(line):
    """The change of brace nesting in a line, without braces in strings."""
    bare = TEXT.sub("", line).split("//")[0]
    return bare.count("{") - bare.count("}")


def counted(lines):
    """For each line whether it counts: all except those inside tables."""
    counts = []
    inside = 0
    for at, line in enumerate(lines):
        table = None if inside else TABLE.match(line)
        if table and is_const(lines, at, table.group(1)):
            counts.append(True)
            inside = 1
            continue
        inside += depth(line) if inside else 0
        counts.append(inside == 0)
    return counts


def functions(lines, counts):
    """Yields (first line, length) of each function. Bodies open with ") {" and close in column 0."""
    signature = None
    inside = False
    for number, line in enumerate(lines, 1):
        if inside:
            if line.startswith("}"):
                yield signature, sum(counts[signature - 1:number])
                inside, signature = False, None
        elif line[:1].isalpha() or line[:1] == "_":
            signature = number
        if not inside and signature and line.rstrip().endswith(") {"):
            inside = True


def main():
    if len(sys.argv) != 2:
        print(__doc__.strip(), file=sys.stderr)
        return 2
    root = Path(sys.argv[1])
    errors = []
    n_files = n_functions = 0
    for folder in FOLDERS:
        for file in sorted((root / folder).rglob("*.[ch]")):
            path = file.relative_to(root).as_posix()
            lines = file.read_text(encoding="utf-8").splitlines()
            counts = counted(lines)
            n_files += 1
            if sum(counts) > FILE_LINES:
                errors.append(f"{path} has {sum(counts)} lines, at most {FILE_LINES} are allowed")
            for number, line in enumerate(lines, 1):
                if len(line) > COMMENT_COLUMNS and line.lstrip().startswith("//"):
                    errors.append(f"{path}:{number}: comment has {len(line)} columns, at most "
                                  f"{COMMENT_COLUMNS} are allowed")
            for number, length in functions(lines, counts):
                n_functions += 1
                if length > FUNCTION_LINES:
                    errors.append(f"{path}:{number}: function has {length} lines, at most "
                                  f"{FUNCTION_LINES} are allowed")
    if n_files == 0:
        errors.append(f"{root}: no source file found")
    print("\n".join(errors + [f"{n_files} files, {n_functions} functions, {len(errors)} errors"]))
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
