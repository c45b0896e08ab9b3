"""The search's files on the coordinator's machine, and how they get to nodes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from . import store

CHUNK_BYTES = 1 << 26


class Files:
    """Files that are put into Ray's store when the first node asks for them. Each node takes them from
    there once.
    """

    def __init__(self, ray: Any) -> None:
        self.ray = ray
        self.named: list[tuple[str, bool]] = []
        self.files: list[store.File] = []
        self.references: dict[str, list[Any]] = {}

    def add(self, path: str, first_line: bool) -> None:
        self.named.append((path, first_line))

    def known(self) -> list[store.File]:
        """The files with their hashes, which are computed once."""
        if not self.files:
            self.files = [store.look_at(*one) for named in self.named for one in inside(*named)]
        return self.files

    def put(self, digest: str) -> list[Any]:
        if digest not in self.references:
            file = next(file for file in self.known() if file.digest == digest)
            if store.look_at(file.path, file.first_line).digest != digest:
                raise OSError(f"{file.path} is another file than when this search began")
            self.references[digest] = [self.ray.put(chunk) for chunk in chunks(file)]
        return self.references[digest]


def inside(path: str, first_line: bool) -> Iterator[tuple[str, bool]]:
    """A file itself, or the files of a folder."""
    if not os.path.isdir(path):
        yield path, first_line
        return
    for name in sorted(os.listdir(path)):
        if not name.startswith(".") and os.path.isfile(os.path.join(path, name)):
            yield os.path.join(path, name), False


def chunks(file: store.File) -> Iterator[bytes]:
    with open(file.path, "rb") as stream:
        if file.first_line:
            yield stream.readline()
            return
        while chunk := stream.read(CHUNK_BYTES):
            yield chunk
