#!/usr/bin/env python3
"""Checks that tests are skipped, rather than missing, if a machine lacks what they need.

usage: check_skips.py SOURCE BUILD CMAKE CTEST [CMAKE-OPTION...]

Configures SOURCE in another folder, with the options, as if Python and the tools that tests look
for were not installed. Every test of BUILD must exist there. Tests of the source tree must be
skipped and say why.
"""

import json
import subprocess
import sys
import tempfile

ABSENT = ["-DCMAKE_DISABLE_FIND_PACKAGE_Python3=ON"]
ABSENT += [f"-DMSC_{tool}=" for tool in ("CXX_COMPILER", "PKG_CONFIG", "READELF", "SPIRV_VAL")]


def run(*command):
    done = subprocess.run(command, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}\n{done.stdout}")
    return done.stdout


def tests(ctest, build):
    listed = json.loads(run(ctest, "--test-dir", build, "--show-only=json-v1"))
    return {test["name"] for test in listed["tests"]}


def main():
    if len(sys.argv) < 5:
        print(__doc__.strip(), file=sys.stderr)
        return 2
    source, build, cmake, ctest, *options = sys.argv[1:]
    expected = tests(ctest, build)
    with tempfile.TemporaryDirectory() as folder:
        run(cmake, "-S", source, "-B", folder, *options, *ABSENT)
        found = tests(ctest, folder)
        said = run(ctest, "--test-dir", folder, "-V", "-R", "^tree_")
    wrong = [f"{name}: vanished" for name in sorted(expected - found)]
    n_tree = sum(name.startswith("tree_") for name in found)
    n_said = sum(": skipped: no " in line for line in said.splitlines())
    if n_said != n_tree or said.count("***Skipped") != n_tree:
        wrong.append(f"{n_tree} tests of the tree, of which {n_said} say why they are skipped:\n{said}")
    print("\n".join(wrong + [f"{len(expected)} tests, {len(expected & found)} without tools"]))
    return 1 if wrong or not expected else 0


if __name__ == "__main__":
    sys.exit(main())
