#!/usr/bin/env python3
"""Checks that a built program or shared library has the usual protections.

    check_hardening.py FILE...

Every file must have read-only relocations bound at start (full RELRO), a stack that is not
executable, and calls of the stack protector and of the checked functions of _FORTIFY_SOURCE. A
program must be position-independent. Prints a line for each missing protection. Needs readelf.
"""
import re
import subprocess
import sys


def readelf(option, path):
    done = subprocess.run(
        ["readelf", "-W", option, path], capture_output=True, text=True, check=True
    )
    return done.stdout


def missing(path):
    segments = readelf("-l", path)
    dynamic = readelf("-d", path)
    symbols = readelf("--dyn-syms", path)
    stack = re.search(r"GNU_STACK.*", segments)
    checks = {
        "read-only relocations (-z relro)": "GNU_RELRO" in segments,
        "relocations bound at start (-z now)": re.search(r"BIND_NOW|FLAGS_1.*\bNOW\b", dynamic),
        "a stack without execution": stack and "RWE" not in stack.group(),
        "position independence": re.search(r"file type is DYN", segments),
        "the stack protector": "__stack_chk_fail" in symbols,
        "checked functions (_FORTIFY_SOURCE)": re.search(r"__\w+_chk@", symbols),
    }
    return [name for name, is_there in checks.items() if not is_there]


def main(paths):
    found = [f"{path}: lacks {name}" for path in paths for name in missing(path)]
    for line in found:
        print(line)
    if not found:
        print(f"{len(paths)} files carry every protection")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
