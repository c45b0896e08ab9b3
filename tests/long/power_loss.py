#!/usr/bin/env python3
"""Simulates power cuts at every moment of a search, and continues from what the disk may then hold.

    power_loss.py MSCGYM POWER_LOG.so [--states N] [--seed 0] [--search NAME ...] [--verbose]

POWER_LOG.so (tests/faults/power_log.c) logs every write, sync and rename of an undisturbed search.
For each moment between two of them, a disk is made as a power cut may leave it. It has all that was
synced. Of the rest it has everything, nothing, or any part: writes in another order, cut at sector
boundaries, with zeros where a file has already grown, and any prefix of the changes of each folder.

The search then continues with the same command. Its record and strategy file must be those of the
undisturbed search. If the record is refused, the message must name the line, as documented for damage
before good lines, and what `salvage` saves must continue to the same result. Synced lines must remain
byte by byte. Prints a table of outcomes and each state that went wrong; exits with 1 if any did.
"""
import argparse
import collections
import json
import os
import random
import re
import shutil
import struct
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
FILES = os.path.join(HERE, "..", "cli", "files")
NOTE = struct.Struct("=IIQQQ")
CREATE, DATA, LENGTH, SYNC_FILE, SYNC_FOLDER, RENAME, REMOVE, FOLDER = range(8)
SECTOR = 512
LIMIT_S = 120
MODES = ("nothing", "everything", "names alone", "data alone", "mixed", "mixed", "mixed", "torn")

Op = collections.namedtuple("Op", "kind path inode offset data")


def toy(trials, parallel):
    return {"workspace": "ws", "verbose": "error", "gym": [{
        "record": "search.jsonl", "seed": 3, "parallel": parallel, "budget": {"trials": trials},
        "env": {"type": "toy", "tasks": 6, "choices": 3, "seed": 1, "interaction": 0.5},
        "agent": {"type": "evolutionary", "population": 4}}]}


def tiny():
    return {"workspace": "ws", "verbose": "error", "model": "tiny.onnx",
            "dataset": {"inputs": "inputs.npz", "labels": "labels.npy", "batch": 2, "validation": 0.2},
            "quantize": {"target": "generic", "gym": [{
                "record": "search.jsonl", "parallel": 4, "budget": {"trials": 12}, "agent": {"type": "random"},
                "env": {"choices": [{"bits": 8}, {"bits": 4, "rounding": "gptq"}]}}]}}


SEARCHES = {"toy": toy(40, 4), "long rounds": toy(60, 16), "network": tiny(),
            "torn before": {**toy(50, 8), "stopped": True}}


def read_log(path):
    with open(path, "rb") as file:
        data = file.read()
    ops, at = [], 0
    while at < len(data):
        kind, n_path, inode, offset, n_data = NOTE.unpack_from(data, at)
        at += NOTE.size
        name = data[at:at + n_path].decode()
        ops.append(Op(kind, name, inode, offset, data[at + n_path:at + n_path + n_data]))
        at += n_path + n_data
    return ops


def overlay(content, offset, data):
    grown = content.ljust(offset, b"\0")
    return grown[:offset] + data + grown[offset + len(data):]


class Disk:
    """What a disk has for certain after a power cut, and what it may have."""

    def __init__(self, before):
        self.content = {}  # by inode: synced content
        self.pending = {}  # by inode: operations since the last sync
        self.names = []  # changes of names, in order; certain ones first
        self.n_sure = {}  # by folder: number of changes that are certain
        self.folders = {""}
        for path, (inode, content) in before.items():  # by path: content at the start
            self.folders.add(os.path.dirname(path))
            self.do(Op(CREATE, path, inode, 0, b""))
            self.content[inode] = content
            self.do(Op(SYNC_FOLDER, os.path.dirname(path), 0, 0, b""))

    def do(self, op):
        if op.kind in (CREATE, RENAME, REMOVE, FOLDER):
            self.names.append(op)
        if op.kind == CREATE:
            self.content[op.inode], self.pending[op.inode] = b"", []
        elif op.kind in (DATA, LENGTH) and op.inode in self.content:
            self.pending[op.inode].append(op)
        elif op.kind == SYNC_FILE and op.inode in self.content:
            self.content[op.inode] = self.written(op.inode, self.pending[op.inode])
            self.pending[op.inode] = []
        elif op.kind == SYNC_FOLDER:
            self.n_sure[op.path] = len(self.changes(op.path))

    def changes(self, folder):
        return [op for op in self.names if os.path.dirname(op.path) == folder]

    def written(self, inode, ops):
        content = self.content[inode]
        for op in ops:
            if op.kind == LENGTH:
                content = content[:op.offset].ljust(op.offset, b"\0")
            else:
                content = overlay(content, op.offset, op.data)
        return content

    def torn(self, inode, ops, generator, is_kept):
        """Applies some of the writes, some sectors of each, with zeros where the file has grown."""
        content = self.content[inode]
        for op in ops:
            if op.kind == LENGTH:
                if generator.random() < is_kept:
                    content = content[:op.offset].ljust(op.offset, b"\0")
                continue
            if generator.random() < 0.3:
                content = content.ljust(op.offset + len(op.data), b"\0")
            at = op.offset
            while at < op.offset + len(op.data):
                end = min((at // SECTOR + 1) * SECTOR, op.offset + len(op.data))
                if generator.random() < is_kept:
                    content = overlay(content, at, op.data[at - op.offset:end - op.offset])
                at = end
        return content

    def state(self, mode, generator):
        """A possible state after a power cut at this moment: {path: content}, and folders."""
        tree, folders = {}, set(self.folders)
        kept = {}
        for folder in {os.path.dirname(op.path) for op in self.names}:
            n, sure = len(self.changes(folder)), self.n_sure.get(folder, 0)
            whole = {"nothing": sure, "data alone": sure, "everything": n, "names alone": n}
            kept[folder] = whole[mode] if mode in whole else generator.randint(sure, n)
        seen = collections.Counter()
        for op in self.names:
            folder = os.path.dirname(op.path)
            seen[folder] += 1
            if seen[folder] > kept[folder] or folder not in folders:
                continue
            if op.kind == FOLDER:
                folders.add(op.path)
            elif op.kind == CREATE:
                tree[op.path] = op.inode
            elif op.kind == REMOVE:
                tree.pop(op.path, None)
            elif op.data.decode() in tree:
                tree[op.path] = tree.pop(op.data.decode())
        files = {}
        for path, inode in tree.items():
            ops = self.pending[inode]
            if mode in ("everything", "data alone"):
                files[path] = self.written(inode, ops)
            elif mode in ("nothing", "names alone"):
                files[path] = self.content[inode]
            else:
                files[path] = self.torn(inode, ops, generator, 0.5 if mode == "mixed" else 0.9)
        return files, folders


class Search:
    def __init__(self, mscgym, library, folder, config):
        self.mscgym, self.library, self.folder = mscgym, library, folder
        self.config = {key: value for key, value in config.items() if key != "stopped"}
        self.reference = os.path.join(folder, "reference")
        self.log = os.path.join(folder, "log")
        self.make(self.reference)
        self.before = {}
        if config.get("stopped"):
            self.stop()
        self.run(self.reference, "search", "search.json", environment={
            "LD_PRELOAD": library, "MSC_POWER_LOG": self.log,
            "MSC_POWER_FOLDER": os.path.realpath(self.reference)})
        self.ops = read_log(self.log)
        self.expected = self.canonical(self.reference)
        self.strategies = self.read_strategy(self.reference)

    def stop(self):
        """Prepares an earlier search whose last write was torn."""
        path = os.path.join(self.reference, "ws", "search.jsonl")
        self.run(self.reference, "search", "search.json", "--quiet")
        with open(path, "rb") as file:
            content = file.read()[:-3000]
        shutil.rmtree(os.path.dirname(path))
        os.makedirs(os.path.dirname(path))
        with open(path, "wb") as file:
            file.write(content)
        self.before = {"ws/search.jsonl": (os.stat(path).st_ino, content)}

    def make(self, folder):
        os.makedirs(folder)
        if "model" in self.config:
            for name in ("tiny.onnx", "inputs.npz", "labels.npy"):
                shutil.copy(os.path.join(FILES, name), folder)
        with open(os.path.join(folder, "search.json"), "w", encoding="utf-8") as file:
            json.dump(self.config, file)

    def run(self, folder, *arguments, environment=None):
        done = subprocess.run([self.mscgym, *arguments], cwd=folder, capture_output=True, text=True,
                              timeout=LIMIT_S, errors="replace",
                              env={**os.environ, "OMP_NUM_THREADS": "1", **(environment or {})})
        return done.returncode, done.stderr

    def canonical(self, folder, record="ws/search.jsonl"):
        done = subprocess.run([self.mscgym, "show", record, "--canonical"], cwd=folder,
                              capture_output=True, timeout=LIMIT_S)
        return done.stdout if done.returncode == 0 else None

    def read_strategy(self, folder):
        path = os.path.join(folder, "ws", "msc_quantize.json")
        return open(path, "rb").read() if os.path.exists(path) else None

    def disk_at(self, n_ops):
        disk = Disk(self.before)
        for op in self.ops[:n_ops]:
            disk.do(op)
        return disk

    def check(self, n_ops, mode, seed):
        """Tests one state; returns its outcome, or what is wrong."""
        folder = os.path.join(self.folder, "state")
        shutil.rmtree(folder, ignore_errors=True)
        self.make(folder)
        disk = self.disk_at(n_ops)
        files, folders = disk.state(mode, random.Random(seed))
        for name in sorted(folders - {""}):
            os.makedirs(os.path.join(folder, name), exist_ok=True)
        for path, content in files.items():
            with open(os.path.join(folder, path), "wb") as file:
                file.write(content)
        sure, _ = disk.state("nothing", None)
        synced = sure.get("ws/search.jsonl", b"")
        # An incomplete last line does not count, and is cut off.
        synced = synced[:synced.rfind(b"\n") + 1]
        code, said = self.run(folder, "search", "search.json", "--quiet")
        if code != 0:
            return self.check_refused(folder, synced, said)
        return self.compare(folder, "ws/search.jsonl", synced) or (
            "went on" if synced else "began anew")

    def compare(self, folder, record, synced):
        with open(os.path.join(folder, record), "rb") as file:
            if file.read(len(synced)) != synced:
                return "WRONG: synced lines are lost"
        if self.canonical(folder, record) != self.expected:
            return "WRONG: another record"
        if self.read_strategy(folder) != self.strategies:
            return "WRONG: another strategy file"
        return None

    def check_refused(self, folder, synced, said):
        if not synced and re.search(r"search\.jsonl: .*line 1 ", said):
            os.remove(os.path.join(folder, "ws/search.jsonl"))  # only an incomplete header
            code, said = self.run(folder, "search", "search.json", "--quiet")
            wrong = f"WRONG: {said.strip()!r}" if code else self.compare(folder, "ws/search.jsonl", b"")
            return wrong or "refused, with a torn header"
        if not re.search(r"search\.jsonl: line \d+ is damaged.*salvage", said):
            return f"WRONG: refused without the line: {said.strip()!r}"
        code, said = self.run(folder, "salvage", "ws/search.jsonl", "-o", "ws/saved.jsonl")
        if code != 0:
            return f"WRONG: not salvaged: {said.strip()!r}"
        code, said = self.run(folder, "resume", "ws/saved.jsonl", "--quiet")
        if code != 0:
            return f"WRONG: what was salvaged does not go on: {said.strip()!r}"
        with open(os.path.join(folder, "ws/saved.jsonl"), "rb") as file:
            if file.read(len(synced)) != synced:
                return "WRONG: synced lines are lost in what was salvaged"
        same = self.canonical(folder, "ws/saved.jsonl") == self.expected
        return "refused, salvaged" if same else "WRONG: another record of what was salvaged"


def check_search(name, options, folder):
    search = Search(os.path.abspath(options.mscgym), os.path.abspath(options.library), folder,
                    SEARCHES[name])
    if not search.expected or not any(op.kind == SYNC_FILE for op in search.ops):
        sys.exit(f"{name}: the undisturbed search did not work")
    generator = random.Random(f"{options.seed} {name}")
    n = len(search.ops)
    states = [(at, mode) for at in range(n + 1) for mode in MODES]
    states = sorted(generator.sample(states, min(options.states, len(states))))
    found = collections.Counter()
    for at, mode in states:
        seed = f"{options.seed} {name} {at} {mode}"
        outcome = search.check(at, mode, seed)
        found[outcome.split(":")[0]] += 1
        if outcome.startswith("WRONG") or options.verbose:
            print(f"{name}: after {at} of {n} operations, {mode}: {outcome}")
    print(f"{name}: {len(states)} states of {n} operations: " +
          ", ".join(f"{count} {outcome}" for outcome, count in sorted(found.items())))
    return found["WRONG"] == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("mscgym")
    parser.add_argument("library")
    parser.add_argument("--states", type=int, default=2000, help="of each search, at most")
    parser.add_argument("--seed", default="0")
    parser.add_argument("--search", nargs="+", choices=SEARCHES, default=list(SEARCHES))
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    is_good = True
    for name in options.search:
        with tempfile.TemporaryDirectory() as folder:
            is_good = check_search(name, options, folder) and is_good
    sys.exit(0 if is_good else 1)


main()
