"""python3 -m mscgym.examples FOLDER: copies the examples to FOLDER, where they can be run.

The quick start is `mscgym search FOLDER/digits/digits.json`.
"""
from __future__ import annotations

import os
import shutil
import sys

from mscgym.installed import FOLDER


class CopyError(Exception):
    """Nothing was copied; the text is one line that says why."""


def files(source: str) -> list[str]:
    """The paths of the examples, relative to their folder."""
    found = [os.path.relpath(os.path.join(folder, name), source)
             for folder, _, names in os.walk(source) for name in names]
    if not found:
        raise CopyError(f"{source}: there are no examples: install the wheel, or take them from the sources, examples/")
    return sorted(found)


def copy(target: str, source: str = os.path.join(FOLDER, "share", "examples")) -> list[str]:
    """Copies the examples, or none if one of the files exists already. Returns their relative paths."""
    names = files(source)
    for name in names:
        if os.path.lexists(os.path.join(target, name)):
            raise CopyError(f"{os.path.join(target, name)}: it is there already: name another folder")
    try:
        for name in names:
            os.makedirs(os.path.dirname(os.path.join(target, name)), exist_ok=True)
            shutil.copyfile(os.path.join(source, name), os.path.join(target, name))
    except OSError as error:
        raise CopyError(f"{error.filename}: {error.strerror}") from None
    return names


def main() -> int:
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        print(__doc__.strip(), file=sys.stderr)
        return 0 if sys.argv[1:] in (["-h"], ["--help"]) else 2
    try:
        copy(sys.argv[1])
    except CopyError as error:
        print(f"mscgym.examples: {error}", file=sys.stderr)
        return 1
    print(f"next: mscgym search {os.path.join(sys.argv[1], 'digits', 'digits.json')}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
