"""Files on a node. A file that the node has under the same path is used in place; others are stored by
their hashes.

They are stored in mscgym-UID in the folder for temporary files: `blobs` has each file once, and a
folder per search links to them in the layout of the coordinator. Files that were not used for a
week are deleted.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import BinaryIO, NamedTuple

READ_BYTES = 1 << 20
KEPT_S = 7 * 86400.0


class File(NamedTuple):
    path: str  # path on the coordinator
    first_line: bool  # only the first line is read, because the file grows
    digest: str


def look_at(path: str, first_line: bool) -> File:
    digest = hashlib.sha256()
    with open(path, "rb") as stream:
        if first_line:
            digest.update(stream.readline())
        else:
            while block := stream.read(READ_BYTES):
                digest.update(block)
    return File(path, first_line, digest.hexdigest())


def is_here(file: File) -> bool:
    """True if this node has the same file under the same path, for example on a shared file system."""
    try:
        return look_at(file.path, file.first_line) == file
    except OSError:
        return False


def home() -> str:
    folder = os.path.join(tempfile.gettempdir(), f"mscgym-{os.getuid()}")
    with contextlib.suppress(FileExistsError):
        os.mkdir(folder, mode=0o700)
    if os.stat(folder, follow_symlinks=False).st_uid != os.getuid():
        raise OSError(f"{folder} is somebody else's")
    os.makedirs(os.path.join(folder, "blobs"), exist_ok=True)
    return folder


@contextlib.contextmanager
def locked(folder: str) -> Iterator[None]:
    """Prevents workers of one node from writing the same file twice."""
    with open(os.path.join(folder, "lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def blob_of(digest: str) -> str:
    return os.path.join(home(), "blobs", digest)


def missing(files: list[File]) -> list[str]:
    """Hashes of the files that this node lacks."""
    here = [is_here(file) for file in files]
    if all(here):
        return []
    return [
        file.digest
        for file, is_there in zip(files, here)
        if not is_there and not os.path.exists(blob_of(file.digest))
    ]


def keep(digest: str, write: Callable[[BinaryIO], None]) -> None:
    """Writes a file under a temporary name first, so that a file with its final name is complete."""
    path = blob_of(digest)
    if os.path.exists(path):
        return
    handle, new = tempfile.mkstemp(dir=os.path.dirname(path))
    try:
        with os.fdopen(handle, "wb") as stream:
            write(stream)
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(new, 0o400)
        os.rename(new, path)
    except BaseException:
        os.unlink(new)
        raise


def lay_out(files: list[File]) -> str:
    """The root of the search's files on this node; "" if all are in place."""
    if all(is_here(file) for file in files):
        return ""
    key = hashlib.sha256(repr([(file.path, file.digest) for file in files]).encode())
    root = os.path.join(home(), key.hexdigest()[:32])
    for file in files:
        blob, place = blob_of(file.digest), root + file.path
        if not os.path.exists(blob):
            keep(file.digest, lambda stream, file=file: copy(file, stream))  # type: ignore[misc]
        os.utime(blob)
        os.makedirs(os.path.dirname(place), exist_ok=True)
        with contextlib.suppress(FileExistsError):
            os.link(blob, place)
    os.utime(root)
    return root


def copy(file: File, stream: BinaryIO) -> None:
    with open(file.path, "rb") as source:
        if file.first_line:
            stream.write(source.readline())
        else:
            shutil.copyfileobj(source, stream)


def prune() -> None:
    folder, oldest = home(), time.time() - KEPT_S
    for parent in (folder, os.path.join(folder, "blobs")):
        for name in os.listdir(parent):
            path = os.path.join(parent, name)
            if name in ("lock", "blobs") or os.stat(path).st_mtime >= oldest:
                continue
            if os.path.isdir(path):
                shutil.rmtree(path, ignore_errors=True)
            else:
                os.unlink(path)
