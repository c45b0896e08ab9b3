#!/usr/bin/env python3
"""Applies the diffs of a documentation page, in order, to a copy of the files that they change.

usage: check_diffs.py REPOSITORY PAGE... [--build FOLDER --target NAME... --run REGEX]

A diff is a block of ```diff with lines `--- a/FILE` (`--- /dev/null` for a new file) and
`+++ b/FILE`. With --build, the whole tree is copied and configured in FOLDER, the targets are
built, and the tests that match REGEX are run.
"""

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

BLOCK = re.compile(r"^```diff\n(.*?)^```$", re.M | re.S)
TARGET = re.compile(r"^\+\+\+ b/(\S+)$", re.M)


def tracked(root):
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=root, capture_output=True, check=True).stdout
    return [name for name in listing.decode().split("\0") if name and (root / name).is_file()]


def copy(root, names, to):
    for name in names:
        (to / name).parent.mkdir(parents=True, exist_ok=True)
        if (root / name).is_file():
            shutil.copy2(root / name, to / name)


def apply(page, diffs, to):
    """The reason why a diff of the page does not apply, or None."""
    for number, diff in enumerate(diffs, 1):
        done = subprocess.run(["git", "apply", "-"], cwd=to, input=diff.encode(), capture_output=True)
        if done.returncode != 0:
            return f"{page}: diff {number} does not apply: {done.stderr.decode().strip()}"
    return None


def build_and_run(to, folder, targets, regex):
    # The copy has another path each time, so a cache of an earlier run does not fit.
    subprocess.run(["cmake", "--fresh", "-S", to, "-B", folder, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Debug",
                    "-DMSC_VULKAN=OFF", "-DMSC_BENCH=OFF"], check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["cmake", "--build", folder, "--target", *targets], check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["ctest", "--test-dir", folder, "--output-on-failure", "--no-tests=error", "-R", regex],
                   check=True)


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("root", type=Path)
    parser.add_argument("pages", nargs="+")
    parser.add_argument("--build", type=Path)
    parser.add_argument("--target", nargs="+", default=["all"])
    parser.add_argument("--run", default=".")
    o = parser.parse_args()
    for page in o.pages:
        diffs = BLOCK.findall((o.root / page).read_text(encoding="utf-8"))
        changed = {t for d in diffs for t in TARGET.findall(d)}
        names = tracked(o.root) if o.build else changed
        with tempfile.TemporaryDirectory() as folder:
            copy(o.root, names, Path(folder))
            error = apply(page, diffs, folder)
            if not diffs or error:
                print(error or f"{page}: it has no diffs")
                return 1
            if o.build:
                build_and_run(folder, o.build, o.target, o.run)
        n = sum(not name.startswith(("docs/", "tests/")) for name in changed)
        print(f"{page}: {len(diffs)} diffs apply; they change {n} files outside docs and tests")
    return 0


if __name__ == "__main__":
    sys.exit(main())
