#!/usr/bin/env python3
"""Checks the length of files and functions, in lines.

usage: check_length.py REPOSITORY

Fails above 1000 lines a file or 150 a function; warns above 600 and 80.
"""

import sys
from pathlib import Path

FOLDERS = ["base", "data", "graph", "kernels", "tools", "env", "agents", "records", "search",
           "pipeline", "cli", "tests", "bench", "examples"]
FILE_WARN, FILE_FAIL = 600, 1000
FUNCTION_WARN, FUNCTION_FAIL = 80, 150


def functions(lines):
    """Yields (first line, length) of each function: bodies open with ") {" and close in column 0."""
    signature = None
    inside = False
    for number, line in enumerate(lines, 1):
        if inside:
            if line.startswith("}"):
                yield signature, number - signature + 1
                inside, signature = False, None
        elif line[:1].isalpha() or line[:1] == "_":
            signature = number
        if not inside and signature and line.rstrip().endswith(") {"):
            inside = True


def judge(what, length, warn, fail):
    """Returns (is error, text), or None when the length is fine."""
    if length > fail:
        return True, f"error: {what} has {length} lines, at most {fail} are allowed"
    if length > warn:
        return False, f"warning: {what} has {length} lines, more than {warn}"
    return None


def main():
    if len(sys.argv) != 2:
        print(__doc__.strip(), file=sys.stderr)
        return 2
    root = Path(sys.argv[1])
    findings = []
    n_files = n_functions = 0
    for folder in FOLDERS:
        for file in sorted((root / folder).rglob("*.[ch]")):
            path = file.relative_to(root).as_posix()
            lines = file.read_text(encoding="utf-8").splitlines()
            n_files += 1
            findings.append(judge(path, len(lines), FILE_WARN, FILE_FAIL))
            for number, length in functions(lines):
                n_functions += 1
                findings.append(judge(f"{path}:{number}: function", length, FUNCTION_WARN,
                                      FUNCTION_FAIL))
    findings = [finding for finding in findings if finding]
    for _, text in findings:
        print(text)
    print(f"{n_files} files, {n_functions} functions")
    return 1 if n_files == 0 or any(is_error for is_error, _ in findings) else 0


if __name__ == "__main__":
    sys.exit(main())
