"""Finds what is installed with the package: the program, and the headers for plug-ins.

A wheel has them inside the package. If the package is used from its sources, the program is the first
one in PATH.
"""
from __future__ import annotations

import os
import sys

FOLDER = os.path.dirname(os.path.abspath(__file__))
EXIT_ENVIRONMENT = 3  # the program's own exit code for environment errors


def program() -> str:
    """The path of the program mscgym: the package's own, else the first in PATH."""
    own = os.path.join(FOLDER, "bin", "mscgym")
    if os.path.isfile(own):
        return own
    for folder in os.get_exec_path():
        path = os.path.join(folder, "mscgym")
        if os.path.isfile(path) and os.access(path, os.X_OK) and not is_own_script(path):
            return path
    raise FileNotFoundError(f"there is no program mscgym in {FOLDER} or in PATH: install the wheel, or the program "
                            "by cmake --install")


def is_own_script(path: str) -> bool:
    """True for a script that pip made for this package, in any folder: it would start what
    `program` finds.
    """
    with open(path, "rb") as file:
        head = file.read(4096)
    return head.startswith(b"#!") and b"mscgym.installed" in head


def environment() -> dict[str, str]:
    """The program's environment variables: it starts modules of this package with this Python."""
    return {**os.environ, "MSCGYM_PYTHON": sys.executable}


def get_include() -> str:
    """The folder of the headers that plug-ins in C are compiled with."""
    folder = os.path.join(FOLDER, "include")
    if not os.path.isdir(folder):
        raise FileNotFoundError(f"there are no headers in {FOLDER}: install the wheel")
    return folder


def main() -> int:
    """Replaces this process with the program."""
    try:
        path = program()
    except FileNotFoundError as error:
        print(f"mscgym: {error}", file=sys.stderr)
        return EXIT_ENVIRONMENT
    os.execve(path, ["mscgym", *sys.argv[1:]], environment())
