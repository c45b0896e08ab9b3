#!/usr/bin/env python3
"""Checks that searches with workers on a Slurm cluster write the record of a single process.

    check_slurm.py MSCGYM EXAMPLES/DIGITS [--faults 30] [--seed 0]

Starts slurmctld and two slurmd on this machine (Debian's slurm-wlm and munge, as root; exits with
77 without them). First with assigned GPUs; then with nodes that cannot see the search's folder;
then with a shared folder and faults: workers, srun and nodes are killed or stopped, nodes return,
and the coordinator is killed and the search resumed. No record may stand still for longer than
thirty seconds.
"""
import argparse
import glob
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

from search_records import canonical, lines_of

CONFIG = """ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
SlurmctldPort={port}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool.%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
MpiDefault=none
SwitchType=switch/none
ReturnToService=2
SlurmctldTimeout=10
SlurmdTimeout=10
KillWait=2
SlurmdParameters=config_overrides
GresTypes=gpu
NodeName=n1 NodeHostname={host} NodeAddr=127.0.0.1 Port={port1} CPUs={cpus} RealMemory=16000{gpus}
NodeName=n2 NodeHostname={host} NodeAddr=127.0.0.1 Port={port2} CPUs={cpus} RealMemory=16000{gpus}
PartitionName=night Nodes=n1,n2 Default=YES MaxTime=INFINITE State=UP
"""
NODES = ("n1", "n2")
MOST_STILL_S = 30.0


def skip(why):
    print(f"skipped: {why}")
    sys.exit(77)


def check_installed():
    missing = [p for p in ("slurmctld", "slurmd", "srun", "munged") if not shutil.which(p)]
    if missing:
        skip(f"no {', '.join(missing)} (Debian's slurm-wlm and munge)")
    if os.geteuid() != 0:
        skip("only root can start Slurm's daemons")


def free_ports(n):
    sockets = [socket.socket() for _ in range(n)]
    for s in sockets:
        s.bind(("127.0.0.1", 0))
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


class Cluster:
    """A controller and two nodes with `cpus` processors each, whatever this machine has. Nodes cannot
    see the folder `hidden`. The files in `gpus` stand for their GPUs.
    """

    def __init__(self, folder, cpus=1, hidden=None, gpus=()):
        self.folder, self.started, self.hidden = folder, [], hidden
        host = socket.gethostname().split(".")[0]
        port, port1, port2 = free_ports(3)
        self.config = os.path.join(folder, "slurm.conf")
        with open(self.config, "w", encoding="utf-8") as file:
            file.write(CONFIG.format(host=host, folder=folder, port=port, port1=port1, port2=port2,
                                     cpus=cpus, gpus=f" Gres=gpu:{len(gpus)}" if gpus else ""))
        with open(os.path.join(folder, "gres.conf"), "w", encoding="utf-8") as file:
            file.write("AutoDetect=off\n" + "".join(f"Name=gpu File={path}\n" for path in gpus))
        os.environ["SLURM_CONF"] = self.config
        for name in ("state", "spool.n1", "spool.n2"):
            os.mkdir(os.path.join(folder, name))
        self.start_munge()
        self.run("slurmctld", "-D", "-f", self.config)
        for node in NODES:
            self.start_node(node)
        self.wait_idle()

    def run(self, *argv):
        process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
        self.started.append(process)
        return process

    def start_munge(self):
        key = os.path.join(self.folder, "munge.key")
        with open(key, "wb") as file:
            file.write(os.urandom(1024))
        os.chmod(key, 0o400)
        self.run("munged", "--foreground", "--force", f"--key-file={key}",
                 f"--socket={self.folder}/munge.socket", f"--pid-file={self.folder}/munge.pid",
                 f"--seed-file={self.folder}/munge.seed", f"--log-file={self.folder}/munge.log")
        deadline = time.monotonic() + 10
        while not os.path.exists(os.path.join(self.folder, "munge.socket")):
            if time.monotonic() > deadline:
                sys.exit("munged does not start")
            time.sleep(0.05)

    def start_node(self, node):
        apart = []
        if self.hidden:
            apart = ["unshare", "--mount", "--propagation", "private", "sh", "-c",
                     "mount -t tmpfs none \"$0\" && exec \"$@\"", self.hidden]
        self.run(*apart, "slurmd", "-D", "-f", self.config, "-N", node)

    def wait_idle(self):
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            result = subprocess.run(["sinfo", "-h", "-t", "idle", "-o", "%D"], capture_output=True,
                                    text=True, check=False)
            if result.stdout.strip() == "2":
                return
            time.sleep(0.2)
        self.close()
        sys.exit("the nodes do not come up")

    def jobs(self, *options):
        return subprocess.run(["squeue", "-h", "-o", "%i %T", *options], capture_output=True, text=True,
                              check=False).stdout.strip()

    def is_ending_one(self):
        """True while a job is completing. If a node dies then, Slurm does not use it until it has
        asked again, which it does only once a minute.
        """
        return self.jobs("--states=COMPLETING") != ""

    def is_empty(self):
        """True if no job is left, waiting or running."""
        jobs, deadline = "?", time.monotonic() + 15
        while jobs and time.monotonic() < deadline:
            time.sleep(0.5)
            jobs = self.jobs("--states=PENDING,CONFIGURING,RUNNING,SUSPENDED")
        print(f"jobs left: {jobs or 'none'}", flush=True)
        return not jobs

    def close(self):
        subprocess.run(["scancel", "-u", "root"], capture_output=True, check=False)
        for process in reversed(self.started):
            process.terminate()
        for process in self.started:
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()


def processes(*words):
    """Ids of processes whose command line has all of these words."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/cmdline", "rb") as file:
                line = file.read().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if all(word in line for word in words):
            found.append(int(name))
    return found


def children(number):
    try:
        with open(f"/proc/{number}/task/{number}/children", encoding="utf-8") as file:
            return [int(word) for word in file.read().split()]
    except OSError:
        return []


def send(number, what):
    try:
        os.kill(number, what)
    except OSError:
        pass


def are_gone(words):
    """True if no process with these words is left."""
    deadline = time.monotonic() + 15
    while processes(words) and time.monotonic() < deadline:
        time.sleep(0.5)
    left = processes(words)
    print(f"workers left: {left or 'none'}", flush=True)
    return not left


class Faults:
    """Faults, one after another, while a search runs."""

    def __init__(self, cluster, mscgym, seed):
        self.cluster, self.mscgym, self.chance = cluster, mscgym, random.Random(seed)
        self.counts, self.last = {}, ""
        self.due = []  # (time, function) of each fault that is to be undone

    def undo(self, now):
        for item in [item for item in self.due if item[0] <= now]:
            self.due.remove(item)
            item[1]()

    def one(self, search):
        kind = self.chance.choice(("worker", "worker", "srun", "stop", "node", "coordinator"))
        now = time.monotonic()
        # The process itself, or the child that it supervises and restarts.
        if kind == "coordinator":
            victims = [self.chance.choice([search.pid, *children(search.pid)[:1]])]
        elif kind == "node":
            if self.due or self.cluster.is_ending_one():
                return
            node = self.chance.choice(NODES)
            victims = processes("slurmd", "-N", node) + processes("slurmstepd")
            self.due.append((now + 2, lambda: self.cluster.start_node(node)))
        elif kind == "srun":
            victims = processes("srun --quiet")[:1]
        else:
            workers = [n for n in processes(self.mscgym + " worker --quiet") if n not in
                       processes("srun --quiet") and n not in processes("slurmstepd")]
            victims = [self.chance.choice(workers)] if workers else []
        if not victims:
            return
        self.counts[kind] = self.counts.get(kind, 0) + 1
        self.last = kind
        for victim in victims:
            send(victim, signal.SIGSTOP if kind == "stop" else signal.SIGKILL)
        if kind == "stop":
            self.due.append((now + 3, lambda: send(victims[0], signal.SIGCONT)))


def toy(folder, trials):
    path = os.path.join(folder, "toy.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"workspace": folder, "verbose": "warning", "gym": [{
            "record": "toy.jsonl",
            "env": {"type": "toy", "tasks": 12, "choices": 4, "interaction": 0.5, "delay_us": 8000},
            "agent": {"type": "evolutionary"}, "parallel": 16, "seed": 3,
            "budget": {"trials": trials}}]}, file)
    return path, os.path.join(folder, "toy.jsonl")


def check(mscgym, config, record, options, faults, n_faults):
    """True if the records are the same."""
    if subprocess.run([mscgym, "search", config, "--quiet"], stdout=subprocess.DEVNULL,
                      check=False).returncode != 0:
        sys.exit(f"{config}: the search alone failed")
    alone = canonical(mscgym, record)
    start = time.monotonic()
    os.unlink(record)
    search = subprocess.Popen([mscgym, "search", config, "--restart", "--quiet", *options],
                              stdout=subprocess.DEVNULL)
    n_lines, n_suffered, grown_s, still_s = 0, 0, start, 0.0
    while True:
        time.sleep(0.5)
        now = time.monotonic()
        if search.poll() == -signal.SIGKILL:
            word = "resume" if lines_of(record) else "search"
            search = subprocess.Popen([mscgym, word, record if word == "resume" else config, "--quiet", *options],
                                      stdout=subprocess.DEVNULL)
        elif search.returncode is not None:
            break
        if faults:
            faults.undo(now)
            n = sum(faults.counts.values())
            # The search has recovered from the last fault.
            if n < n_faults and n_lines != n_suffered:
                faults.one(search)
                n_suffered = n_lines if sum(faults.counts.values()) > n else n_suffered
        if lines_of(record) != n_lines:
            n_lines, grown_s = lines_of(record), now
        if now - grown_s > still_s and now - grown_s > MOST_STILL_S / 3:
            print(f"still for {now - grown_s:.1f} s after {faults.last if faults else 'nothing'}", flush=True)
        still_s = max(still_s, now - grown_s)
        if now - start > 900:
            search.kill()
            sys.exit(f"{record}: it hangs")
    if faults:
        time.sleep(3)
        faults.undo(float("inf"))
    is_same = search.returncode == 0 and canonical(mscgym, record) == alone
    print(f"{os.path.basename(record)}: {'the same' if is_same else 'DIFFERS'}, "
          f"exit {search.returncode}, {time.monotonic() - start:.1f} s, still for {still_s:.1f} s"
          + (f", faults {faults.counts}" if faults else ""), flush=True)
    if not is_same:
        kept = tempfile.mkdtemp(prefix="check_slurm_differs_")
        shutil.copytree(os.path.dirname(record), kept, dirs_exist_ok=True)
        with open(os.path.join(kept, "alone.canonical"), "wb") as file:
            file.write(alone)
        print(f"kept in {kept}", flush=True)
    return is_same and still_s <= MOST_STILL_S


def check_copied(options):
    """Nodes without a shared folder get the files by sbcast, and keep none of them."""
    with tempfile.TemporaryDirectory(prefix="check_slurm_") as folder, \
            tempfile.TemporaryDirectory(prefix="check_slurm_") as hidden, \
            tempfile.TemporaryDirectory(prefix="check_slurm_") as there:
        cluster = Cluster(folder, hidden=hidden)
        try:
            shutil.copytree(options.digits, os.path.join(hidden, "digits"))
            config = os.path.join(hidden, "digits", "digits.json")
            record = os.path.join(hidden, "digits", "msc_workspace", "digits.jsonl")
            workers = ["--cluster", "slurm:night:2", "--worker-program", options.mscgym]
            bare = subprocess.run([options.mscgym, "search", config, "--quiet", *workers], capture_output=True,
                                  text=True, check=False)
            # After Slurm's messages on cancelled jobs.
            line = (bare.stderr.strip().splitlines() or [""])[-1]
            print(f"without copies: {line}", flush=True)
            good = bare.returncode == 1 and "no worker is left" in line and "; worker " in line and "cannot open" in line
            os.unlink(record)
            good &= check(options.mscgym, config, record, [*workers, "--copy-to", there], None, 0)
            good &= cluster.is_empty()
            archives = os.path.join(tempfile.gettempdir(), "mscgym-run-*")
            kept = [*os.listdir(there), *glob.glob(archives)]
            print(f"copies left: {kept or 'none'}", flush=True)
            return good and not kept
        finally:
            cluster.close()


def check_gpus(options):
    """Workers open the GPU that Slurm assigns. A node has two: one is a software driver, the other has
    no device. Workers that do not have the requested kind of GPU are refused with the name of theirs.
    """
    listed = json.loads(subprocess.run([options.mscgym, "devices", "--json"], capture_output=True, text=True,
                                       check=True).stdout)["vulkan"]
    if not listed or listed[0]["kind"] != "software":
        print("no software driver for Vulkan: GPUs are left out", flush=True)
        return True
    with tempfile.TemporaryDirectory(prefix="check_slurm_") as folder:
        shutil.copytree(options.digits, os.path.join(folder, "digits"))
        tool = os.path.join(folder, "bin", "nvidia-smi")
        os.mkdir(os.path.dirname(tool))
        with open(tool, "w", encoding="utf-8") as file:
            file.write(f"#!/bin/sh\ncase $3 in --id=0) echo GPU-{listed[0]['uuid']};; *) echo GPU-feedfeed;; esac\n")
        os.chmod(tool, 0o700)
        cluster = Cluster(folder, cpus=2, gpus=["/dev/null", "/dev/zero"])
        try:
            path = f"{os.path.dirname(tool)}:{os.environ['PATH']}"
            told = subprocess.run([options.mscgym, "search", os.path.join(folder, "digits", "digits.json"), "--restart",
                                   "--threads", "1", "--cluster", "slurm:night:4", "--worker-program", options.mscgym,
                                   "--numerics", "vulkan/1 a make that nobody has"], env=dict(os.environ, PATH=path),
                                  capture_output=True, text=True, check=False).stderr
            refused = [line for line in told.splitlines() if "is refused" in line and "no worker is left" not in line]
            n_opened = sum('(numerics "vulkan/' in line and listed[0]["device"] in line for line in refused)
            n_missed = sum("device 'vulkan:uuid=GPU-feedfeed': no device matches" in line for line in refused)
            good = len(refused) == 4 and n_opened == n_missed == 2
            print(f"each worker opens the GPU that it was given: {'yes' if good else told}", flush=True)
            return cluster.is_empty() and good
        finally:
            cluster.close()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("mscgym", type=os.path.abspath)
    parser.add_argument("digits", type=os.path.abspath)
    parser.add_argument("--faults", type=int, default=30)
    parser.add_argument("--trials", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    check_installed()
    is_good = check_gpus(options)
    is_good &= check_copied(options)
    with tempfile.TemporaryDirectory(prefix="check_slurm_") as folder:
        cluster = Cluster(folder)
        try:
            work = os.path.join(folder, "work")
            shutil.copytree(options.digits, os.path.join(work, "digits"))
            workers = ["--cluster", "slurm:night", "--worker-program", options.mscgym]
            digits = os.path.join(work, "digits", "msc_workspace", "digits.jsonl")
            good = check(options.mscgym, os.path.join(work, "digits", "digits.json"), digits,
                         workers, None, 0)
            config, record = toy(work, options.trials)
            faults = Faults(cluster, options.mscgym, options.seed)
            good &= check(options.mscgym, config, record, workers, faults, options.faults)
            good &= sum(faults.counts.values()) >= options.faults
            good &= cluster.is_empty()
            good &= are_gone(options.mscgym + " worker --quiet")
        finally:
            cluster.close()
    sys.exit(0 if good and is_good else 1)


if __name__ == "__main__":
    main()
