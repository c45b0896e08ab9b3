#!/usr/bin/env python3
"""Checks that every header compiles by itself as C11. check_install.py does the same for installed
headers, also as C++.

usage: check_headers.py REPOSITORY --cc CC [--include FOLDER]... [--skip PREFIX]...
"""

import argparse
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

FOLDERS = ["base", "data", "graph", "kernels", "tools", "env", "agents", "records", "search",
           "pipeline", "cli"]
OPTIONS = ["-std=c11", "-x", "c", "-Wall", "-Wextra", "-Wpedantic", "-Werror",
           "-D_XOPEN_SOURCE=700", "-fsyntax-only"]


def compile_alone(command, header):
    """The compiler's errors for a file that only includes `header`, or None."""
    # The declaration is for headers with only macros: C forbids an empty translation unit.
    source = f'#include "{header}"\nextern int nothing;\n'
    done = subprocess.run(command + ["-"], input=source, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False)
    return None if done.returncode == 0 else f"{header}: {' '.join(command)}\n{done.stdout}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("root", type=Path)
    parser.add_argument("--cc", required=True)
    parser.add_argument("--include", action="append", default=[])
    parser.add_argument("--skip", action="append", default=[])
    arguments = parser.parse_args()

    headers = sorted(path.relative_to(arguments.root).as_posix()
                     for folder in FOLDERS for path in (arguments.root / folder).rglob("*.h"))
    headers = [header for header in headers
               if not any(header.startswith(skip) for skip in arguments.skip)]
    places = [f"-I{place}" for place in [arguments.root] + arguments.include]
    command = [arguments.cc] + OPTIONS + places
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        found = pool.map(lambda header: compile_alone(command, header), headers)
        complaints = [text for text in found if text]
    print("\n".join(complaints + [f"{len(headers)} headers, {len(complaints)} complaints"]))
    return 1 if complaints or not headers else 0


if __name__ == "__main__":
    sys.exit(main())
