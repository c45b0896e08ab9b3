"""Folders for the files that pass between this process and the program."""
from __future__ import annotations

import os
import shutil
import tempfile
import weakref

from mscgym.options import AnyPath

SHARED_MEMORY = "/dev/shm"


class Room(tempfile.TemporaryDirectory[str]):
    """A folder for files that only this call needs: in memory, if they take at most half of what is free."""

    def __init__(self, n_bytes: int = 0):
        try:
            is_roomy = 2 * n_bytes < shutil.disk_usage(SHARED_MEMORY).free and os.access(SHARED_MEMORY, os.W_OK)
        except OSError:
            is_roomy = False
        super().__init__(prefix="mscgym_", dir=SHARED_MEMORY if is_roomy else None)


class Held:
    """A folder that exists as long as this object, or until Python ends."""

    def __init__(self) -> None:
        self.path = tempfile.mkdtemp(prefix="mscgym_")
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)


def made(folder: AnyPath) -> str:
    os.makedirs(folder, exist_ok=True)
    return os.path.abspath(folder)
