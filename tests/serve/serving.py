"""Starts `mscgym serve` and kills it, for the tests of this folder."""
import http.server
import json
import os
import shutil
import signal
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "python"))

from mscgym.client import Client  # noqa: E402

# The library of disk.c, which makes the server's disk slow or lets it fail; None: it cannot be preloaded.
DISK = os.environ.get("MSC_TEST_DISK")

# Without Vulkan devices, whose drivers leak memory.
os.environ.update(VK_DRIVER_FILES="/dev/null", VK_ICD_FILENAMES="/dev/null")

DIGITS = os.path.join(ROOT, "examples", "digits")
ANN, BOB = "ann-0123456789abcdef", "bob-0123456789abcdef"
TOY = {"type": "toy", "tasks": 8, "choices": 3, "seed": 1, "interaction": 0.5}


def toy(trials, delay_us=0, **members):
    """A search that needs no model."""
    return {"verbose": "error", "gym": [{
        "env": {**TOY, "delay_us": delay_us}, "agent": {"type": "evolutionary", "population": 8},
        "budget": {"trials": trials}, "seed": 3, "parallel": 4, **members}]}


def digits(section, trials, **env):
    """A search of the digits network; its files are uploaded beside it."""
    return {"verbose": "error", "model": "digits.onnx",
            "dataset": {"inputs": "calibration.npz", "labels": "calibration_labels.npy", "batch": 64},
            section: {"target": "generic", "runtime": False,
                      "gym": [{"env": env, "agent": {"type": "random"}, "budget": {"trials": trials},
                               "seed": 1, "parallel": 8}]}}


def files_of(config):
    return [os.path.join(DIGITS, name) for name in ("digits.onnx", "calibration.npz", "calibration_labels.npy")
            if "model" in config]


class Service:
    """A server in a folder; a context that ends it."""

    def __init__(self, mscgym, folder, *words, users=None):
        self.mscgym, self.folder, self.words = mscgym, folder, list(words)
        self.jobs = os.path.join(folder, "jobs")
        self.users = os.path.join(folder, "users.json")
        self.rules = os.path.join(folder, "rules")
        with open(self.users, "w", encoding="utf-8") as file:
            json.dump({"users": users or [{"name": "ann", "token": ANN}, {"name": "bob", "token": BOB}]}, file)
        os.chmod(self.users, 0o600)
        self.process, self.port = None, 0

    def start(self):
        command = [self.mscgym, "serve", self.jobs, "--users", self.users, "--port", str(self.port),
                   *self.words]
        environment = {**os.environ, "LD_PRELOAD": DISK, "MSC_DISK_RULES": self.rules} if DISK else None
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=open(self.folder + "/err", "ab"),
                                        text=True, env=environment)
        line = self.process.stdout.readline()
        assert line.startswith("service: http"), f"{line!r}, {open(self.folder + '/err').read()}"
        self.url = line.split()[1]
        self.port = int(self.url.rstrip("/").rsplit(":", 1)[1])
        return self

    def set_disk(self, *rules):
        """From now on, calls of the server follow these rules (disk.c)."""
        with open(self.rules + ".new", "w", encoding="utf-8") as file:
            file.write("".join(rule + "\n" for rule in rules))
        os.rename(self.rules + ".new", self.rules)

    def client(self, token=ANN, **more):
        return Client(self.url, token, **more)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        """Ends the server as a user does; returns its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)

    def __enter__(self):
        return self.start()

    def __exit__(self, *of_error):
        if self.process.poll() is None:
            self.kill()


def children(process):
    """All processes below a process."""
    found, queue = [], [process]
    while queue:
        parent = queue.pop()
        try:
            threads = os.listdir(f"/proc/{parent}/task")
        except OSError:
            continue
        for thread in threads:
            try:
                with open(f"/proc/{parent}/task/{thread}/children", encoding="ascii") as file:
                    below = [int(word) for word in file.read().split()]
            except OSError:
                continue
            found += below
            queue += below
    return found


def by_hand(mscgym, folder, config, name="by_hand"):
    """The canonical form of the record of `mscgym search`, and its model. The header has the paths of the files,
    which lie as in a job's folder."""
    place = os.path.join(folder, name, "files")
    os.makedirs(place)
    for path in files_of(config):
        shutil.copy(path, place)
    with open(os.path.join(place, "c.json"), "w", encoding="utf-8") as file:
        json.dump({**config, "workspace": "../work"}, file)
    subprocess.run([mscgym, "search", os.path.join(place, "c.json"), "--quiet"], check=True,
                   stdout=subprocess.DEVNULL)
    work = os.path.join(folder, name, "work")
    record = next(name for name in os.listdir(work) if name.endswith(".jsonl"))
    models = [os.path.join(work, name) for name in os.listdir(work) if name.endswith(".onnx")]
    return canonical(mscgym, os.path.join(work, record)), models[0] if models else None


def canonical(mscgym, record):
    """The lines of a record that do not depend on the machine and its speed."""
    return subprocess.run([mscgym, "show", record, "--canonical"], check=True, stdout=subprocess.PIPE).stdout


def wait_for(what, seconds=60):
    end = time.monotonic() + seconds
    while not (found := what()) and time.monotonic() < end:
        time.sleep(0.02)
    return found


class Other(http.server.BaseHTTPRequestHandler):
    """Answers as no service does: with other objects, and with a model that is cut off."""

    def do_GET(self):
        body, length = (b"x" * 1000, 5000) if self.path.endswith("/model") else (b"[1]", 3)
        body, length = (b"data: [1]\n\n", 11) if self.path.endswith("/events") else (body, length)
        self.send_response(200)
        self.send_header("Content-Length", str(length))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *words):
        pass
