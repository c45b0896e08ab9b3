#!/usr/bin/env python3
"""Checks that no external text gets into a record, a page or an export unless it is UTF-8.

    check_text.py MSCGYM [--runs N]

(a) Each kind of external text is given each kind of invalid bytes. mscgym must refuse it, as Python's
    strict decoder does, in a line that names the file or program and the place.
(b) N times, random bytes of a file are replaced and every command that reads it is run. All that they
    print and write must be strict UTF-8, and valid JSON if it claims to be JSON.

Prints a line for each failure; exits with 1 if there is one.
"""
import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile

FILES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cli", "files")
LIMIT_S = 60
# Byte sequences that are invalid in UTF-8 (RFC 3629), and NUL, which mscgym does not allow.
WRONG = {"Latin-1": b"\xe9", "no start": b"\x80", "no byte of UTF-8": b"\xff", "cut off": b"\xe2\x82",
         "overlong NUL": b"\xc0\x80", "overlong slash": b"\xe0\x80\xaf", "a surrogate": b"\xed\xa0\x80",
         "too large": b"\xf4\x90\x80\x80", "NUL": b"\x00"}
ESCAPED = {"NUL": b"\\u0000", "a high surrogate": b"\\ud800", "a low surrogate": b"\\udc00",
           "surrogates in the wrong order": b"\\udc00\\ud800"}
CSV = "first,second,distill_loss\n" + "".join(
    f"{a},{b},{ord(a) * 0.01 + len(b)}\n" for a in "xyz" for b in ("one", "three", "seven"))
TABLE = {"schema": "mscgym.table.1", "tasks": [{"name": "first", "choices": ["a", "b"]},
                                               {"name": "second", "choices": ["c", "d"]}],
         "metrics": [{"name": "distill_loss", "alone": [[0.5, 0.25], [1, 2]]}]}
PROGRAM = """import json, sys
for line in sys.stdin:
    request = json.loads(line)
    answer = open("answers/" + request["method"], "rb").read() if request["method"] != "done" else b"{}"
    sys.stdout.buffer.write(answer + b"\\n")
    sys.stdout.flush()
"""
SPACE = {"schema": "mscgym.space.1", "tasks": [{"name": "first", "choices": ["a", "b"]}],
         "metrics": [{"name": "distill_loss"}]}


class Room:
    """A folder with files, and mscgym run in it."""

    def __init__(self, mscgym):
        self.mscgym = mscgym
        self.folder = tempfile.mkdtemp(prefix="check_text_")
        self.failures = 0

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, data):
        data = json.dumps(data) if isinstance(data, (dict, list)) else data
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        with open(self.path(name), "wb") as file:
            file.write(data.encode() if isinstance(data, str) else data)

    def read(self, name):
        with open(self.path(name), "rb") as file:
            return file.read()

    def copy(self, name):
        shutil.copy(os.path.join(FILES, name), self.folder)
        return self.read(name)

    def clean(self):
        for item in os.listdir(self.folder):
            if item not in ("tiny.onnx", "inputs.npz", "x.npy", "program.py"):
                path = self.path(item)
                shutil.rmtree(path) if os.path.isdir(path) else os.unlink(path)

    def fail(self, what):
        self.failures += 1
        print(f"FAILED  {what}")

    def run(self, what, *arguments, **variables):
        """Runs mscgym; returns its exit code and output. Checks that the output and all files are UTF-8."""
        environment = {**os.environ, "MSCGYM_RUNTIME": "no/runtime", "LC_ALL": "C.UTF-8"}
        environment = {os.fsencode(k): os.fsencode(v) for k, v in {**environment, **variables}.items()}
        try:
            result = subprocess.run([self.mscgym, *arguments], cwd=self.folder, env=environment,
                                    capture_output=True, timeout=LIMIT_S, stdin=subprocess.DEVNULL)
        except subprocess.TimeoutExpired:
            self.fail(f"{what}: {arguments} takes more than {LIMIT_S} s")
            return -1, ""
        said = []
        for name, data in (("output", result.stdout), ("errors", result.stderr)):
            try:
                said.append(data.decode("utf-8", "strict"))
            except UnicodeDecodeError as error:
                self.fail(f"{what}: {arguments}: {name}: {error}")
                said.append("")
        if "--json" in arguments and result.returncode == 0:
            self.parse(f"{what}: {arguments}", said[0])
        return result.returncode, said[0] + said[1]

    def parse(self, what, text):
        try:
            json.loads(text)
        except ValueError as error:
            self.fail(f"{what}: {error}")

    def check_written(self, what, given):
        """Checks every file that mscgym has written, but not those in `given`."""
        for folder, _, names in os.walk(self.folder):
            for name in names:
                path = os.path.join(folder, name)
                inner = os.path.relpath(path, self.folder)
                if inner in given or inner.endswith((".onnx", ".npz", ".npy", ".safetensors", ".params", ".cut")) or \
                        "events.out" in inner:
                    continue
                with open(path, "rb") as file:
                    data = file.read()
                try:
                    text = data.decode("utf-8", "strict")
                    for line in text.split("\n")[:-1] if inner.endswith((".jsonl", ".log")) else []:
                        self.parse(f"{what}: {inner}", line)
                    if inner.endswith(".json"):
                        self.parse(f"{what}: {inner}", text)
                except UnicodeDecodeError as error:
                    self.fail(f"{what}: {inner}: {error}")

    def expect_refused(self, what, places, *arguments, **variables):
        """The command must fail with one line that names the places."""
        code, said = self.run(what, *arguments, **variables)
        missing = [place for place in places if place not in said]
        if code == 0 or missing:
            self.fail(f"{what}: exit {code}, {missing} not in {said[-300:]!r}")
        self.check_written(what, self.given)

    def prepare(self, **files):
        """Puts these files into the folder, which is otherwise empty except for the network's files."""
        self.clean()
        for name, data in files.items():
            self.write(name.replace("__", "/").replace("_json", ".json").replace("_csv", ".csv"), data)
        self.given = {os.path.relpath(os.path.join(folder, name), self.folder)
                      for folder, _, names in os.walk(self.folder) for name in names}


def table_search(file, **more):
    return {"workspace": "w", "gym": [{"record": "r.jsonl", "env": {"type": "table", "file": file, **more},
                                       "agent": {"type": "random"}, "budget": {"trials": 4}}]}


def tiny_search(**more):
    return {"workspace": "w", "model": "tiny.onnx", "dataset": {"inputs": "inputs.npz"},
            "quantize": {"target": "generic", **more,
                         "gym": [{"record": "r.jsonl", "budget": {"trials": 2}, "agent": {"type": "random"}}]}}


def spoil(data, old, wrong):
    """Inserts `wrong` after the first `old`."""
    at = data.index(old) + len(old)
    return data[:at] + wrong + data[at:]


# ---- (a) ---------------------------------------------------------------------------------------

def check_files(room):
    csv, table = CSV.encode(), json.dumps(TABLE).encode()
    config = json.dumps(table_search("t.csv"))
    tiny = json.dumps(tiny_search()).encode()
    for name, wrong in WRONG.items():
        for old, place in ((b"fir", "t.csv:1:4"), (b"\nx", "t.csv:2:2"), (b"one,", "t.csv:2:7")):
            room.prepare(c_json=config, t_csv=spoil(csv, old, wrong))
            room.expect_refused(f"CSV, {name} behind {old}", [place], "search", "c.json")
        # A label in quotes that contains a line break, as RFC 4180 allows.
        room.prepare(c_json=config, t_csv=csv + b'"a\nb' + wrong + b'",one,3\n')
        room.expect_refused(f"CSV, {name} in quotes", ["t.csv:12:2"], "search", "c.json")
        room.prepare(c_json=table_search("t.json"), t_json=spoil(table, b'"fir', wrong))
        room.expect_refused(f"a table, {name}", ["t.json:1:"], "search", "c.json")
        room.prepare(c_json=spoil(tiny, b'"workspace": "w', wrong))
        room.expect_refused(f"a configuration, {name}", ["c.json:1:17"], "search", "c.json")
        room.prepare(s_json=spoil(b'{"schema": "x"}', b'"x', wrong))
        room.expect_refused(f"a strategy, {name}", ["s.json:1:14"], "run", "tiny.onnx", "--strategy", "s.json",
                            "--input", "x=x.npy", "--output", "o")
    for name, wrong in ESCAPED.items():
        room.prepare(c_json=table_search("t.json"), t_json=spoil(table, b'"fir', wrong))
        room.expect_refused(f"a table, escaped {name}", ["t.json:1:"], "search", "c.json")
        room.prepare(c_json=spoil(tiny, b'"workspace": "w', wrong))
        room.expect_refused(f"a configuration, escaped {name}", ["c.json:1:"], "search", "c.json")
    room.prepare(c_json=config, t_csv=CSV.encode("utf-16"))
    room.expect_refused("CSV as UTF-16", ["t.csv:1:1", "UTF-16"], "search", "c.json")
    room.prepare(c_json=config, t_csv=csv.replace(b"\n", b"\r"))
    room.expect_refused("CSV with carriage returns alone", ["t.csv:1"], "search", "c.json")
    room.prepare(c_json=config.encode("utf-16"))
    room.expect_refused("a configuration as UTF-16", ["c.json:1:1", "UTF-16"], "search", "c.json")


def check_numbers(room):
    """Text after a NUL counts, so `8\\0zzz` is not the number 8."""
    room.prepare(c_json=table_search("t.csv"), t_csv=CSV.encode().replace(b"6.2", b"8\0zzz", 1))
    room.expect_refused("a number with NUL", ["t.csv:"], "search", "c.json")
    for said in (b"8\\0zzz", b"8\\377", b"\\0"):
        config = tiny_search()
        config["quantize"]["gym"][0]["env"] = {"command": ["sh", "-c", f"printf '{said.decode()}'", "{model}"],
                                               "objectives": ["command"]}
        room.prepare(c_json=config)
        room.run(f"command says {said}", "search", "c.json", "--quiet")
        record = room.read("w/r.jsonl").decode("utf-8", "strict").splitlines()
        trials = [line for line in map(json.loads, record) if line["kind"] == "trial"]
        if not trials or any(trial["state"] != "failed" for trial in trials):
            room.fail(f"command says {said}: {trials[:1]}")


def check_good(room):
    """Text in other scripts, a byte-order mark and CR LF are valid, and text is written as it was read."""
    labels = ("naïve", "速い", "🙂", "x\u2028y")
    csv = "größe,distill_loss\r\n" + "".join(f'"{label}",{i}\r\n' for i, label in enumerate(labels))
    for mark in (b"", b"\xef\xbb\xbf"):
        room.prepare(c_json=mark + json.dumps(table_search("t.csv"), ensure_ascii=False).encode(),
                     t_csv=mark + csv.encode())
        code, said = room.run("good text", "search", "c.json", "--quiet")
        header = json.loads(room.read("w/r.jsonl").splitlines()[0])
        task = header["space"]["tasks"][0]
        if code != 0 or task["name"] != "größe" or task["choices"] != list(labels):
            room.fail(f"good text: exit {code}, {task}, {said}")
        room.check_written("good text", room.given)
        room.prepare(c_json=table_search("t.json"), t_json=mark + json.dumps(TABLE).encode())
        if room.run("a table with a mark", "search", "c.json", "--quiet")[0] != 0:
            room.fail("a table with a byte-order mark is refused")


def check_network(room, model):
    for name, wrong in WRONG.items():
        if len(wrong) > len("conv.weight"):
            continue
        spoiled = model.replace(b"conv.weight", b"conv.weight"[:-len(wrong)] + wrong)
        room.prepare(m_onnx=spoiled)
        os.rename(room.path("m_onnx"), room.path("m.onnx"))
        room.given.add("m.onnx")
        room.expect_refused(f"ONNX, {name}", ["m.onnx: byte"], "graph", "m.onnx")
    for name, wrong in WRONG.items():
        room.prepare()
        room.run("a graph", "graph", "tiny.onnx", "-o", "g.json")
        header = room.read("g.safetensors")
        spoiled = header.replace(b"conv.weight", b"conv.weight"[:-len(wrong)] + wrong)
        room.write("g.safetensors", spoiled)
        room.given |= {"g.json", "g.safetensors"}
        room.expect_refused(f"safetensors, {name}", ["g.safetensors"], "graph", "g.json", "--json")
        room.write("g.safetensors", header)
        room.write("g.json", spoil(room.read("g.json"), b"conv.weight", wrong))
        room.expect_refused(f"a graph as JSON, {name}", ["g.json:"], "graph", "g.json", "--json")


def check_arguments(room):
    for name, wrong in WRONG.items():
        if name != "NUL":
            room.prepare(c_json=tiny_search())
            room.expect_refused(f"an argument, {name}", ["argument 1"], "show", b"r" + wrong + b".jsonl")
            room.expect_refused(f"a value, {name}", ["argument 3"], "search", "c.json", "--entry", wrong)
            room.expect_refused(f"a command, {name}", ["unknown command"], b"show" + wrong)


def check_programs(room):
    """Agents and environments that are programs and send invalid text."""
    good = {"ask": {"proposals": [{"choices": [0, 0]}]}, "init": {}, "tell": {}}
    agent = table_search("t.json")
    agent["gym"][0]["agent"] = {"type": "process", "command": [sys.executable, "program.py"]}
    for name, wrong in {**WRONG, **ESCAPED}.items():
        answers = {f"answers__{method}": json.dumps(answer) for method, answer in good.items()}
        answers["answers__ask"] = b'{"error": "no' + wrong + b'"}'
        room.prepare(c_json=agent, t_json=TABLE, **answers)
        room.expect_refused(f"an agent says {name}", ["agent process"], "search", "c.json")
        env = {"workspace": "w", "gym": [{"record": "r.jsonl", "budget": {"trials": 2}, "env": {
            "type": "process", "command": [sys.executable, "program.py"]}}]}
        space = spoil(json.dumps({"protocol": 1, "space": SPACE}).encode(), b'"name": "fir', wrong)
        room.prepare(c_json=env, answers__init=space, answers__evaluate=b"{}")
        room.expect_refused(f"an environment says {name}", ["env"], "search", "c.json")


def check_names_of_files(room):
    """Folders may have names that are not UTF-8, and so may files found in them."""
    room.prepare(c_json=table_search("t.csv"), t_csv=CSV)
    room.run("a record", "search", "c.json", "--quiet")
    shutil.copy(room.path("w/r.jsonl"), os.fsencode(room.path("w")) + b"/caf\xe9.jsonl")
    room.run("a page", "report", "w/r.jsonl", "-o", "page.html")
    room.check_written("a file of another name", room.given)
    inner = os.fsencode(room.folder) + b"/\xff\xe9"
    outer, room.folder = room.folder, os.fsdecode(inner)
    os.mkdir(inner)
    try:
        for name in ("tiny.onnx", "inputs.npz"):
            shutil.copy(os.path.join(outer, name), room.folder)
        for config in (tiny_search(), table_search("t.csv")):
            room.write("c.json", config)
            room.write("t.csv", CSV)
            room.given = {"c.json", "t.csv"}
            for command in (("search", "c.json"), ("show", "w/r.jsonl", "--json"), ("resume", "w/r.jsonl"),
                            ("report", "w/r.jsonl", "-o", "page.html"),
                            ("export", "w/r.jsonl", "--optuna", "o.log")):
                code, said = room.run("in a folder of another name", *command)
                if code != 0:
                    room.fail(f"in a folder of another name: {command}: {said[-300:]}")
            room.check_written("in a folder of another name", room.given)
            shutil.rmtree(room.path("w"))
    finally:
        room.folder = outer


# ---- (b) ---------------------------------------------------------------------------------------

COMMANDS = {
    "c.json": [("search", "c.json", "--quiet"), ("config", "--show", "c.json"), ("sensitivity", "c.json"),
               ("search", "c.json", "--dry-run")],
    "t.csv": [("search", "c.json", "--quiet"), ("search", "c.json", "--dry-run", "--json")],
    "w/r.jsonl": [("show", "w/r.jsonl"), ("show", "w/r.jsonl", "--json"), ("resume", "w/r.jsonl"),
                  ("show", "w/r.jsonl", "--canonical"), ("report", "w/r.jsonl", "-o", "page.html"),
                  ("export", "w/r.jsonl", "--optuna", "o.log"), ("salvage", "w/r.jsonl"),
                  ("show", "w/r.jsonl", "w/r.jsonl")],
}
AFTER = [("show", "w/r.jsonl", "--json"), ("show", "w/r.jsonl", "--top", "3"), ("report", "w/r.jsonl", "-o", "all.html"),
         ("export", "w/r.jsonl", "--optuna", "after.log"), ("verify", "w/r.jsonl")]


def fuzz(room, n, seed):
    rng = random.Random(seed)
    for run in range(n):
        name = rng.choice(list(COMMANDS))
        room.prepare(c_json=table_search("t.csv"), t_csv=CSV)
        if name == "w/r.jsonl":
            room.run("a record", "search", "c.json", "--quiet")
        data = bytearray(room.read(name))
        for _ in range(rng.randint(1, 3)):
            at = rng.randrange(len(data))
            wrong = rng.choice(list(WRONG.values()) + list(ESCAPED.values()))
            data[at:at + rng.randint(0, 2)] = wrong
        room.write(name, bytes(data))
        room.given = {"c.json", "t.csv", name}
        for command in COMMANDS[name] + (AFTER if name == "t.csv" else []):
            what = f"seed {seed}, run {run}"
            if room.run(what, *command)[0] < 0:
                room.fail(f"{what}: {command} crashes")
        kept = {f"w/{item}" for item in os.listdir(room.path("w")) if "before" in item or "old" in item} \
            if os.path.isdir(room.path("w")) else set()
        room.check_written(f"seed {seed}, run {run}", room.given | kept)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("mscgym")
    parser.add_argument("--runs", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    values = parser.parse_args()
    room = Room(os.path.abspath(values.mscgym))
    try:
        model = room.copy("tiny.onnx")
        room.copy("inputs.npz")
        room.copy("x.npy")
        room.write("program.py", PROGRAM)
        check_files(room)
        check_numbers(room)
        check_good(room)
        check_network(room, model)
        check_arguments(room)
        check_programs(room)
        check_names_of_files(room)
        fuzz(room, values.runs, values.seed)
    finally:
        shutil.rmtree(room.folder)
    print(f"{room.failures} failures")
    return 1 if room.failures else 0


if __name__ == "__main__":
    sys.exit(main())
