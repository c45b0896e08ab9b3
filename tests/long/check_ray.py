#!/usr/bin/env python3
"""Whether searches by workers on a Ray cluster write the record that a single process writes.

    check_ray.py MSCGYM EXAMPLES/DIGITS

A head and two nodes run on addresses of a network namespace of the test's own. The digits network and
the toy environment are searched; while the latter goes on, an actor and a worker are killed. Needs
Python's package ray, and to be allowed a network namespace; else it says so, exit code 77.
"""
import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time

PYTHON = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "python")
TOY = {"workspace": ".", "verbose": "error", "gym": [{
    "record": "toy.jsonl",
    "env": {"type": "toy", "tasks": 6, "choices": 3, "seed": 1, "interaction": 0.5, "delay_us": 20000},
    "agent": {"type": "evolutionary", "population": 8},
    "budget": {"trials": 400}, "seed": 3, "parallel": 8}]}


def skip(why):
    print(f"skipped: {why}")
    sys.exit(77)


def enter_namespace():
    if os.environ.get("MSC_RAY_TEST") == "inside":
        return
    if subprocess.run(["unshare", "-rn", "true"], capture_output=True).returncode != 0:
        skip("no network namespace is allowed")
    os.environ["MSC_RAY_TEST"] = "inside"
    os.execvp("unshare", ["unshare", "-rn", "--kill-child", "--fork", sys.executable, *sys.argv])


def ray(*words):
    command = [sys.executable, "-m", "ray.scripts.scripts", "start", "--disable-usage-stats", *words]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"ray {' '.join(words)}: {done.stdout}{done.stderr}")


def start_cluster(folder):
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    for i in (1, 2, 3):
        subprocess.run(["ip", "addr", "add", f"10.99.0.{i}/24", "dev", "lo"], check=True)
    os.environ.update(RAY_AUTH_MODE="token", RAY_AUTH_TOKEN=secrets.token_hex(32), RAY_USAGE_STATS_ENABLED="0",
                      RAY_health_check_period_ms="1000", RAY_health_check_timeout_ms="1000",
                      RAY_health_check_failure_threshold="3", PYTHONPATH=PYTHON,
                      PATH=os.path.dirname(sys.executable) + ":" + os.environ["PATH"])
    common = ["--object-store-memory", "100000000", "--include-dashboard", "false"]
    ray("--head", "--node-ip-address", "10.99.0.1", "--port", "6379", "--num-cpus", "0", "--temp-dir", folder, *common)
    for i in (2, 3):
        ray("--address", "10.99.0.1:6379", "--node-ip-address", f"10.99.0.{i}", "--num-cpus", "1", *common[:2])


def canonical(mscgym, record):
    return subprocess.run([mscgym, "show", record, "--canonical"], check=True, capture_output=True).stdout


def by_name(word, n=1):
    """Processes that have the word in their command line."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                if word in file.read().replace(b"\0", b" ") and int(pid) != os.getpid():
                    found.append(int(pid))
        except OSError:
            pass
    return found[:n]


def search(mscgym, config, record, kills=()):
    command = [mscgym, "search", config, "--quiet"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    alone = canonical(mscgym, record)
    begin = time.monotonic()
    going = subprocess.Popen([*command, "--restart", "--cluster", "ray:10.99.0.1:6379", "--worker-program", mscgym],
                             stdout=subprocess.DEVNULL)
    n_killed = 0
    for word in kills:
        end = time.monotonic() + 60
        while not by_name(word) and going.poll() is None and time.monotonic() < end:
            time.sleep(0.1)
        time.sleep(1)
        for pid in by_name(word):
            os.kill(pid, signal.SIGKILL)
            n_killed += 1
    code = going.wait(timeout=300)
    same = code == 0 and canonical(mscgym, record) == alone
    print(f"{record}: {'the same' if same else 'DIFFERS'}, exit {code}, {n_killed} killed, "
          f"{time.monotonic() - begin:.1f} s", flush=True)
    return same and n_killed == len(kills)


def main():
    mscgym, digits = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    try:
        import ray  # noqa: F401
    except ImportError:
        skip("Python's package ray is not installed")
    enter_namespace()
    with tempfile.TemporaryDirectory(prefix="r", ignore_cleanup_errors=True) as folder:
        start_cluster(folder)
        try:
            shutil.copytree(digits, os.path.join(folder, "digits"))
            os.chdir(os.path.join(folder, "digits"))
            with open("toy.json", "w") as file:
                json.dump(TOY, file)
            worker = mscgym.encode() + b" worker"
            good = search(mscgym, "toy.json", "toy.jsonl", [b"ray::Node", worker])
            good = search(mscgym, "digits.json", "msc_workspace/digits.jsonl") and good
        finally:
            subprocess.run([sys.executable, "-m", "ray.scripts.scripts", "stop", "--force"], capture_output=True)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
