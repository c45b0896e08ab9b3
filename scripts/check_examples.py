#!/usr/bin/env python3
"""Runs the commands in the heads of the examples, as users would.

usage: check_examples.py BUILD SOURCE --cmake CMAKE --cc CC --pkg-config PKG_CONFIG

The head of an example is its first comment or docstring. It has the commands that build and run the
example in its folder: lines indented by four spaces, except lines of a configuration, which start
with a quote. BUILD is installed into an empty folder. Each example runs in a fresh copy of
examples/ and python/, and the shell finds the installed program, pkg-config file, library and
Python package. An example without a command is an error. An example in Python is skipped if a
package that its head names is not installed.
"""

import argparse
import ast
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

FOLDERS = ("examples", "python/examples")
# A folder without modules, such as Debian's data of onnx, has no known location.
MISSING = re.compile(r"ModuleNotFoundError: No module named '(\w+)|"
                     r"ImportError: cannot import name '\w+' from '(\w+)' \(unknown location\)")


def head(path):
    """The text of a C file's first comment, or of a Python file's docstring."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        return ast.get_docstring(ast.parse(text), clean=False) or ""
    lines = []
    for line in text.splitlines():
        if not line.startswith("//"):
            break
        lines.append(line[2:].removeprefix(" "))
    return "\n".join(lines)


def commands(path):
    lines = [line[4:] for line in head(path).splitlines() if line.startswith("    ")]
    return [line for line in lines if line[0] not in '"{ ']


def missing_package(path, output):
    """The missing package, if a Python example failed because of a package that its head names;
    otherwise None.
    """
    found = MISSING.search(output) if path.suffix == ".py" else None
    package = found and (found[1] or found[2])
    return package if package and package in head(path) else None


def install(arguments, folder):
    """Installs the build. Returns environment variables with which a shell finds it."""
    prefix = folder / "prefix"
    subprocess.run([arguments.cmake, "--install", arguments.build, "--prefix", prefix], check=True,
                   stdout=subprocess.DEVNULL)
    pc = next(prefix.glob("lib*/**/mscgym.pc"))
    tools = folder / "tools"
    tools.mkdir()
    for name, program in (("cc", arguments.cc), ("pkg-config", arguments.pkg_config), ("python3", sys.executable)):
        program = shutil.which(program) or sys.exit(f"{program}: not found")
        (tools / name).write_text(f'#!/bin/sh\nexec "{program}" "$@"\n', encoding="utf-8")
        (tools / name).chmod(0o755)
    return os.environ | {
        "PATH": os.pathsep.join((str(tools), str(prefix / "bin"), os.environ["PATH"])),
        "PKG_CONFIG_PATH": str(pc.parent), "LD_LIBRARY_PATH": str(pc.parent.parent),
        "PYTHONDONTWRITEBYTECODE": "1"}


def copy(source, to):
    for folder in ("examples", "python"):
        shutil.copytree(source / folder, to / folder,
                        ignore=shutil.ignore_patterns("msc_workspace", "__pycache__", "build", "*.so"))


def run_example(name, source, folder, variables):
    """Runs an example. Returns what is wrong with it, or None."""
    lines = commands(source / name)
    if not lines:
        return f"{name}: its head has no command that builds or runs it"
    copy(source, folder)
    variables = variables | {"PYTHONPATH": str(folder / "python")}
    for line in lines:
        done = subprocess.run(["sh", "-c", line], cwd=(folder / name).parent, env=variables, text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        package = missing_package(source / name, done.stdout)
        if done.returncode != 0 and package:
            print(f"skipped: {name.as_posix()}: no {package}", flush=True)
            return None
        if done.returncode != 0:
            return f"{name}: {line}: exit code {done.returncode}\n{done.stdout}"
    print(f"{name.as_posix()}: {len(lines)} lines", flush=True)
    return None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=Path)
    parser.add_argument("source", type=Path)
    for tool in ("--cmake", "--cc", "--pkg-config"):
        parser.add_argument(tool, required=True)
    arguments = parser.parse_args()
    names = sorted(path.relative_to(arguments.source) for folder in FOLDERS for suffix in ("*.c", "*.py")
                   for path in (arguments.source / folder).rglob(suffix)
                   if "build" not in path.parts[len(arguments.source.parts):])
    with tempfile.TemporaryDirectory() as folder:
        variables = install(arguments, Path(folder))
        wrong = [run_example(name, arguments.source, Path(folder) / f"copy_{at}", variables)
                 for at, name in enumerate(names)]
    wrong = [text for text in wrong if text]
    print("\n".join(wrong + [f"{len(names)} examples, {len(wrong)} wrong"]))
    return 1 if wrong or not names else 0


if __name__ == "__main__":
    sys.exit(main())
