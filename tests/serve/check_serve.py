#!/usr/bin/env python3
"""Checks `mscgym serve` by a client in another process.

    check_serve.py MSCGYM [CASE ...]

Submits jobs of two users, compares their records and models with those of `mscgym search`, checks what must be
refused, and kills the server and its searches. The case `disk` preloads the library MSC_TEST_DISK (disk.c) into the
server. Prints failures; exits with 1 if there are any.
"""
import fcntl
import http.server
import json
import os
import random
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from unittest import mock

from serving import (ANN, BOB, DIGITS, ROOT, Other, Service, by_hand, canonical, children, digits, files_of, toy,
                     wait_for)

from mscgym.client import Client, ServiceError

wrong = []


def check(is_good, text):
    if not is_good:
        wrong.append(text)
        print(f"FAILED  {text}", flush=True)


def status_of(call, *words, **more):
    """The status of HTTP and the line of a refused request."""
    try:
        call(*words, **more)
        return 200, ""
    except ServiceError as error:
        return error.status, str(error)


def refused(wanted, text, call, *words, **more):
    """The request must be refused with a status and one line with this text."""
    status, line = status_of(call, *words, **more)
    check(status == wanted and text in line and "\n" not in line and "/jobs/" not in line,
          f"{status} {line!r}, expected {wanted} with {text!r}")


def submit(client, config, **texts):
    return client.submit(config=config, files=files_of(config), **texts)["id"]


def record_of(mscgym, service, client, id):
    path = os.path.join(service.folder, "fetched.jsonl")
    with client.read(id, "record") as answer, open(path, "wb") as file:
        file.write(answer.read())
    return canonical(mscgym, path)


def raw(service, text, timeout=40):
    """Sends bytes as they are; returns the status of the answer, 0 if the connection is closed without one."""
    with socket.create_connection(("127.0.0.1", service.port), timeout=timeout) as link:
        try:
            link.sendall(text)
            answer = link.recv(4096)
        except ConnectionError:
            return 0
        return int(answer.split()[1]) if answer.startswith(b"HTTP/") else 0


def get(service, path, token=ANN, method="GET", **headers):
    request = urllib.request.Request(service.url.rstrip("/") + path, method=method,
                                     headers={"Authorization": f"Bearer {token}", **headers})
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


# ---- Cases --------------------------------------------------------------------------------------

def check_results(mscgym, folder):
    """Records and models equal those of a search by hand; every file of a job can be had."""
    config = digits("quantize", 24, choices=[{"bits": 8}, {"bits": 4}])
    record, model = by_hand(mscgym, folder, config)
    with Service(mscgym, folder) as service:
        client = service.client()
        id = submit(client, config, name="first")
        seen = list(client.events(id))
        check(seen and seen[-1]["state"] == "done", f"the last event is {seen[-1:]}")
        check(len({event["state"] for event in seen}) > 1, "the events show one state only")
        check(record_of(mscgym, service, client, id) == record, "the record differs from that of mscgym search")
        out = os.path.join(folder, "out")
        names = [os.path.basename(path) for path in client.fetch(id, out)]
        check(names == ["model.onnx", "plan.json", "record.jsonl", "result.json", "report.html", "log.txt"],
              f"fetched {names}")
        check(open(os.path.join(out, "model.onnx"), "rb").read() == open(model, "rb").read(), "the model differs")
        job = client.jobs()[0]
        check(job["name"] == "first" and job["progress"]["trials"] >= 24, f"the job is {job}")
        first = client.submit(model=f"{DIGITS}/digits.onnx", inputs=f"{DIGITS}/calibration.npz",
                              labels=f"{DIGITS}/calibration_labels.npy", time="1s", target="generic")
        check(client.wait(first["id"])["state"] == "done", f"without a configuration: {client.job(first['id'])}")
        page = get(service, "/")[1].decode()
        check("Jobs" in page, "the overview is no page")
        check("At most 1 job runs at once, on " in page, f"the overview does not say what the service has: {page[-2000:]}")
        check_commands(service, folder, id)
        config = digits("quantize", 4, choices=[{"bits": 8}, {"float": True}])
        config["quantize"]["target"] = "tflite"
        lite = submit(client, config)
        check(client.wait(lite)["state"] == "done", f"for LiteRT: {client.job(lite)}")
        with open(client.fetch(lite, os.path.join(folder, "lite"))[0], "rb") as file:
            check(file.name.endswith("model.tflite") and file.read(8)[4:] == b"TFL3", f"fetched {file.name}")
        check(service.stop() == 0, "the server did not end in order")


def check_commands(service, folder, id):
    """The client as a command."""
    def ran(*words):
        command = [service.mscgym, *words, "--server", service.url, "--token-file", token]
        done = subprocess.run(command, capture_output=True, text=True, check=False,
                              env={**os.environ, "PYTHONPATH": os.path.join(ROOT, "python")})
        return done.returncode, done.stdout + done.stderr, done.stdout

    def json_of(*words):
        """What a command prints on standard output only: one JSON value."""
        code, _, text = ran(*words, "--json")
        check(code == 0 and text.startswith(("{", "[")), f"{words} --json: {code} {text!r}")
        return json.loads(text)

    def run(*words):
        return ran(*words)[:2]
    token = _named(folder, "token", ANN + "\n")
    code, text = run("submit", f"{DIGITS}/digits.onnx", "--inputs", f"{DIGITS}/calibration.npz", "--labels",
                     f"{DIGITS}/calibration_labels.npy", "--time", "1s", "--target", "generic", "--name", "command",
                     "--wait")
    check(code == 0 and "done  command  best" in text, f"submit: {code} {text!r}")
    code, text = run("jobs")
    check(code == 0 and len(text.splitlines()) == 3 and f"{id}  done  first" in text, f"jobs: {code} {text!r}")
    code, text = run("fetch", id, "-o", os.path.join(folder, "by_command"))
    check(code == 0 and len(text.splitlines()) == 6, f"fetch: {code} {text!r}")
    check(json_of("jobs", id)["id"] == id, "jobs ID --json prints another job")
    check([job["id"] for job in json_of("jobs")][-1] == id, "jobs --json does not list the oldest job last")
    check(len(json_of("fetch", id, "-o", os.path.join(folder, "by_command"))) == 6, "fetch --json lacks files")
    code, text = run("jobs", id, "--watch")
    check(code == 0 and text.startswith(f"{id}  done"), f"jobs --watch: {code} {text!r}")
    code, text = run("jobs", "--watch")
    check(code == 2 and text.count("\n") == 1, f"jobs --watch without a job: {code} {text!r}")
    code, text = run("submit")
    check(code == 2 and text.count("\n") == 1, f"submit without a model: {code} {text!r}")
    code, text = run("jobs", "0" * 12, "--watch")
    check(code == 1 and text == "error: there is no such job\n", f"watch: {code} {text!r}")


def check_access(mscgym, folder):
    """Tokens, other users, methods, addresses that lead elsewhere."""
    with Service(mscgym, folder) as service:
        ann, bob = service.client(), service.client(BOB)
        id = submit(ann, toy(8))
        ann.wait(id)
        for token in ("", "wrong", ANN[:-1], ANN + "x", BOB.upper()):
            refused(401, "token", Client(service.url, token).jobs)
        with mock.patch.dict(os.environ, {"http_proxy": "http://127.0.0.1:9"}):
            check(len(service.client().jobs()) == 1, "requests for this machine went to a proxy")
        check(get(service, "/openapi.json", "")[0] == 200, "the OpenAPI document needs a token")
        for call in (bob.job, bob.cancel, bob.resume, bob.remove):
            refused(404, "no such job", call, id)
        for what in ("record", "log", "report", "result", "plan", "model", "events"):
            check(get(service, f"/v1/jobs/{id}/{what}", BOB)[0] == 404, f"{what} of another user's job")
        check(bob.jobs() == [], "bob sees jobs of ann")
        for path in ("/v1/jobs/../../etc/passwd", f"/v1/jobs/{id}/../../token", "/v1/jobs/%2e%2e/log", "/v1/jobs/..",
                     f"/v1/jobs/{id}/files/config.json", f"/v1/jobs/{id}%00/log", "//v1/jobs", "/v1/jobs/"):
            code = raw(service, f"GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {ANN}\r\n"
                                "Connection: close\r\n\r\n".encode())
            check(code in (400, 404), f"{path}: {code}")
        check(get(service, "/v1/jobs", method="PUT")[0] == 405, "PUT is accepted")
        basic = {"Authorization": "Basic YW5uOmFubi0wMTIzNDU2Nzg5YWJjZGVm"}  # ann and her token
        check(get(service, "/", **basic)[0] == 200, "basic authentication is refused for a page")
        check(get(service, f"/v1/jobs/{id}", method="DELETE", **basic)[0] == 401, "a password changes something")
        ann.remove(id)
        refused(404, "no such job", ann.job, id)
        check(wait_for(lambda: os.listdir(service.jobs) == ["lock"]), f"left: {os.listdir(service.jobs)}")


def check_submissions(mscgym, folder):
    """Configurations that name code or files elsewhere, and forms that are wrong, are refused with one line."""
    secret = os.path.join(folder, "secret.npz")
    with open(secret, "wb") as file:
        file.write(open(f"{DIGITS}/calibration.npz", "rb").read())
    root = os.path.join(folder, "root")
    os.makedirs(root)
    for inside in (folder, os.path.join(folder, "jobs", "mine")):  # a root must not show jobs and tokens
        os.makedirs(inside, exist_ok=True)
        ran = subprocess.run([mscgym, "serve", os.path.join(folder, "jobs"), "--root", inside, "--port", "0"],
                             capture_output=True, text=True, timeout=60, check=False)
        check(ran.returncode == 2 and "must not contain the folder of the jobs" in ran.stderr
              and ran.stderr.count("\n") == 1, f"--root {inside}: {ran}")
    for name in ("digits.onnx", "calibration.npz", "calibration_labels.npy"):
        os.symlink(f"{DIGITS}/{name}", f"{root}/{name}.link")
        with open(f"{root}/{name}", "wb") as file:
            file.write(open(f"{DIGITS}/{name}", "rb").read())
    os.symlink(secret, f"{root}/out.npz")
    with Service(mscgym, folder, "--root", root) as service:
        client = service.client()

        def config(**members):
            return {**digits("quantize", 4, choices=[{"bits": 8}, {"bits": 4}]), **members}

        def sent(value):
            return lambda: client.submit(config=value, files=files_of(value))
        data = {"labels": "calibration_labels.npy", "batch": 64}
        outside = "outside of the folders"
        for path in (secret, "../../../secret.npz", f"{root}/out.npz", f"{root}/../secret.npz"):
            refused(400, outside, sent(config(dataset={**data, "inputs": path})))
        refused(400, outside, sent(config(model="/etc/passwd")))
        refused(400, outside, sent(config(model="../job.json")))
        refused(400, outside, sent(config(passes=[{"rules": "/etc/passwd"}])))
        refused(400, outside, sent(config(log_file="/tmp/mscgym-log")))
        weights = config()
        weights["quantize"]["gym"][0]["env"]["imatrix"] = "/etc/passwd"
        refused(400, outside, sent(weights))
        refused(400, outside, sent(toy(4, record="../job.json")))
        refused(400, outside, sent(toy(4, record=f"{root}/r.jsonl")))
        refused(400, outside, sent(toy(4, env={"type": "table", "file": "/etc/passwd"})))
        refused(400, "", lambda: client.submit_paths(model="/etc/passwd", inputs=f"{root}/calibration.npz"))
        refused(400, "no such file", lambda: client.submit_paths(model="../secret.npz", inputs="calibration.npz"))
        code = "names a library or a program"
        refused(403, code, sent(config(operators=["./a.so"])))
        refused(403, code, sent(toy(4, env={"type": "./a.so"})))
        refused(403, code, sent(toy(4, env={"type": "process", "command": ["touch", "x"]})))
        refused(403, code, sent(toy(4, agent={"type": "process", "command": ["touch", "x"]})))
        refused(403, code, sent(toy(4, agent={"type": "library", "path": "./a.so"})))
        command = config()
        command["quantize"]["gym"][0]["env"] = {"command": {"argv": ["touch", "x"]}, "choices": [{"bits": 8}]}
        refused(403, code, sent(command))
        rerank = config()
        rerank["quantize"]["gym"][0]["rerank"] = {"command": {"argv": ["touch", "{model}"]}}
        refused(403, code, sent(rerank))
        refused(400, "did you mean", sent(config(modle="x")))
        refused(400, "\"model\" is missing", lambda: client.submit(name="nothing"))
        refused(400, "not allowed", lambda: client.submit(files=[_named(folder, ".hidden")]))
        refused(400, "two files", lambda: client.submit(files=[secret, secret]))
        refused(400, "unknown part", lambda: client.submit(colour="red"))
        refused(400, "unexpected", lambda: client.submit(config=_named(folder, "bad.json", "{\"gym\": ")))
        refused(415, "Content-Type", lambda: client._json("POST", "/v1/jobs", b"x", {"Content-Type": "text/plain"}))
        refused(400, "body:1:", lambda: client._json("POST", "/v1/jobs", b"{", {"Content-Type": "application/json"}))
        check(client.jobs() == [], "a refused request left a job")
        id = client.submit_paths(config={**config(), "model": f"{root}/digits.onnx", "dataset": {
            "inputs": f"{root}/calibration.npz", "labels": f"{root}/calibration_labels.npy", "batch": 64}})["id"]
        check(client.wait(id)["state"] == "done", f"files under a root: {client.job(id)}")
        id = client.submit_paths(model="digits.onnx", inputs="calibration.npz", time="1s", target="generic")["id"]
        check(client.wait(id)["state"] == "done", f"files under a root, without a configuration: {client.job(id)}")
        left = [name for name in os.listdir(service.jobs) if name.startswith(".")]
        check(not left, f"left: {left}")


def _named(folder, name, text="x"):
    path = os.path.join(folder, name)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


def check_limits(mscgym, folder):
    """Quotas, uploads that are too large or too slow, and a full disk."""
    big = os.path.join(folder, "big.npz")
    with open(big, "wb") as file:
        file.truncate(3 << 20)
    users = [{"name": "ann", "token": ANN, "jobs": 2, "upload": "2M", "disk": "4M", "rate": 200},
             {"name": "bob", "token": BOB, "rate": 1, "upload": "8M", "disk": "1M"},
             {"name": "cat", "token": "cat-0123456789abcdef", "disk": "256K"}]
    with Service(mscgym, folder, users=users) as service:
        ann, bob, cat = service.client(), service.client(BOB), service.client("cat-0123456789abcdef")
        grows = submit(cat, toy(10**6, delay_us=5000))
        refused(413, "more than the", ann.submit, files=[big])
        refused(507, "quota", bob.submit, files=[big])
        head = (f"POST /v1/jobs HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {ANN}\r\nConnection: close\r\n"
                "Content-Type: multipart/form-data; boundary=frontier\r\n")
        part = "--frontier\r\nContent-Disposition: form-data; name=\"file\"; filename=\"x.npz\"\r\n\r\n"
        body = part.encode() + b"x" * (3 << 20) + b"\r\n--frontier--\r\n"  # its size is not announced
        code = raw(service, head.encode() + b"Transfer-Encoding: chunked\r\n\r\n" + f"{len(body):x}\r\n".encode()
                   + body + b"\r\n0\r\n\r\n")
        check(code == 413, f"an upload of unknown size: {code}")
        check(raw(service, head.encode() + b"Content-Length: 99999999999999999999\r\n\r\n") in (0, 400, 413),
              "a size beyond 64 bits")
        job = cat.wait(grows)
        check(job["state"] == "failed" and "quota is used up" in job["message"], f"a search beyond its quota: {job}")
        ids = [submit(ann, toy(4)) for _ in range(2)]
        refused(429, "which is the limit", submit, ann, toy(4))
        ann.wait(ids[0])
        ann.remove(ids[0])
        ids[0] = submit(ann, toy(4))
        codes = [status_of(bob.jobs)[0] for _ in range(8)]
        check(429 in codes and status_of(ann.jobs)[0] == 200, f"rates: {codes}")
        begin = time.monotonic()
        check(raw(service, head.encode() + b"Content-Length: 100000\r\n\r\n" + part.encode() + b"x") in (0, 408),
              "a slow upload got an answer")
        check(10 < time.monotonic() - begin < 30, f"a slow upload was ended after {time.monotonic() - begin:.0f} s")
        left = wait_for(lambda: not [name for name in os.listdir(service.jobs) if name.startswith(".new")])
        check(left, f"left: {os.listdir(service.jobs)}")
        ann.wait(ids[0])
        check(ann.wait(ids[1])["state"] == "done", "the jobs did not end")


def check_pieces(mscgym, folder):
    """A form arrives in pieces that end shortly after the head of a part."""
    head = ("POST /v1/jobs HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nConnection: close\r\n"
            "Content-Type: multipart/form-data; boundary=frontier\r\nContent-Length: %d\r\n\r\n")
    config = json.dumps(toy(4)).encode()
    part = b"--frontier\r\nContent-Disposition: form-data; name=\"config\"; filename=\"c.json\"\r\n\r\n"
    body = part + config + b"\r\n--frontier--\r\n"
    large = part + b'{"x": "' + b"x" * (1 << 20) + b'"}\r\n--frontier--\r\n'
    with Service(mscgym, folder) as service:
        for n in range(6):
            with socket.create_connection(("127.0.0.1", service.port), timeout=40) as link:
                link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                link.sendall((head % (ANN, len(body))).encode() + body[:len(part) + n])
                time.sleep(0.2)
                link.sendall(body[len(part) + n:])
                answer = link.recv(4096)
                check(b" 201 " in answer, f"cut {n} bytes after the head of a part: {answer}")
        code = raw(service, (head % (ANN, len(large))).encode() + large)
        check(code == 400, f"a configuration of 1 MiB: {code}")


def check_uploads_together(mscgym, folder):
    """Two uploads begin while there is room for each of them, but not for both."""
    users = [{"name": "ann", "token": ANN, "disk": "5M", "upload": "4M"}]
    config = json.dumps(toy(4)).encode()
    parts = b"".join(b"--frontier\r\nContent-Disposition: form-data; name=\"%s\"; filename=\"%s\"\r\n\r\n%s\r\n" % part
                     for part in ((b"config", b"c.json", config), (b"file", b"x.npz", b"x" * (3 << 20))))
    body = parts + b"--frontier--\r\n"
    head = (f"POST /v1/jobs HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {ANN}\r\nConnection: close\r\n"
            f"Content-Type: multipart/form-data; boundary=frontier\r\nContent-Length: {len(body)}\r\n\r\n").encode()
    with Service(mscgym, folder, users=users) as service:
        links = []
        for _ in range(2):
            links.append(socket.create_connection(("127.0.0.1", service.port), timeout=40))
            links[-1].sendall(head + body[:2 << 20])
            wait_for(lambda: [name for name in os.listdir(service.jobs) if name.startswith(".new")])
        codes = []
        for link in links:
            with link:
                link.sendall(body[2 << 20:])
                codes.append(int(link.recv(4096).split()[1]))
        check(codes == [201, 507], f"uploads together: {codes}")
        check(len(service.client().jobs()) == 1, "both uploads became jobs")


def check_full_disk(mscgym, folder):
    """Writes that fail, as on a full disk: the request gets one line, and the jobs go on."""
    big = os.path.join(folder, "big.npz")
    with open(big, "wb") as file:
        file.truncate(3 << 20)
    with Service(mscgym, folder) as service:
        client = service.client()
        id = submit(client, toy(200, 4000))
        limit = resource.prlimit(service.process.pid, resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
        refused(507, "File too large", client.submit, files=[big])
        resource.prlimit(service.process.pid, resource.RLIMIT_FSIZE, (16, 1 << 20))
        refused(507, "", submit, client, toy(4))
        check(client.job(id)["state"] in ("queued", "running"), f"a failed request changed the job: {client.job(id)}")
        check(len(client.jobs()) == 1, "a failed request left a job")
        client.cancel(id)  # stops what fills the disk
        check(client.wait(id)["state"] == "cancelled", f"cancelled with a full disk: {client.job(id)}")
        resource.prlimit(service.process.pid, resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
        check(wait_for(lambda: json.loads(Path(service.jobs, id, "job.json").read_text())["state"] == "cancelled"),
              "the state was not written once there was room")
        client.resume(id)
        check(client.wait(id)["state"] == "done", f"after a full disk: {client.job(id)}")
        check(limit == (resource.RLIM_INFINITY, resource.RLIM_INFINITY), "this user has a limit on files")


def check_starts(mscgym, folder):
    """A job that cannot start, or whose files are damaged, holds up no other."""
    with Service(mscgym, folder) as service:
        client = service.client()

        def trials(id):
            return client.job(id).get("progress", {}).get("trials", 0)

        def submit_behind():  # jobs behind one that runs
            first = submit(client, toy(10**6, 2000))
            check(wait_for(lambda: trials(first)), "the first job does not run")
            return first, submit(client, toy(4)), submit(client, toy(4))
        first, bad, good = submit_behind()
        os.mkdir(os.path.join(service.jobs, bad, "log"))
        client.cancel(first)
        job = client.wait(bad)
        check(job["state"] == "failed" and job["message"] == "cannot open the job's files: Is a directory",
              f"a job whose log is a folder: {job}")
        check(client.wait(good)["state"] == "done", "a job that cannot start fails another")
        first, held, good = submit_behind()
        with open(os.path.join(service.jobs, held, "lock"), "w", encoding="ascii") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # as a process of its last run that does not end
            client.cancel(first)
            check(client.wait(good)["state"] == "done", "a job whose last process still ends holds up another")
            check(client.job(held)["state"] == "queued", f"a job whose last process still ends: {client.job(held)}")
        check(client.wait(held)["state"] == "done", "a job does not start after its last process has ended")
        service.kill()
        path = Path(service.jobs, held, "job.json")
        path.write_text(path.read_text(encoding="utf-8")[:40], encoding="utf-8")
        service.start()
        check(client.job(good)["state"] == "done", "a damaged job.json takes other jobs along")
        refused(404, "no such job", client.job, held)
        check(f"job {held} is left out" in Path(folder, "err").read_text(encoding="utf-8"),
              "there is no word of a damaged job.json")


def check_disk(mscgym, folder):
    """Calls of the system are slow or fail: states are shown at once, long answers arrive, no result is lost."""
    def seconds(call, *words):
        begin = time.monotonic()
        call(*words)
        return time.monotonic() - begin

    with Service(mscgym, folder) as service, ThreadPoolExecutor() as pool:
        client, bob = service.client(), service.client(BOB)
        id = submit(client, toy(8))
        client.wait(id)
        for rule, call in (("open .jsonl 2500 0", lambda: get(service, f"/v1/jobs/{id}/report")),
                           ("fsync job.json 1500 0", lambda: submit(bob, toy(4))),
                           ("open work 1500 0", lambda: submit(bob, toy(4)))):
            service.set_disk(rule)
            begin = time.monotonic()
            slow = pool.submit(call)
            time.sleep(0.1)
            for what in (client.jobs, lambda: client.job(id), lambda: get(service, "/")):
                taken = max(seconds(what) for _ in range(3))
                check(taken < 0.5, f"{rule}: a request for states took {taken:.1f} s")
            check(not slow.done(), f"{rule}: it was not slow")
            answer = slow.result()
            check(time.monotonic() - begin > (16 if "jsonl" in rule else 1.4), f"{rule}: it was not slow")
            if "jsonl" in rule:
                check(answer[0] == 200 and answer[1].rstrip().endswith(b"</html>"),
                      f"an answer after a long time: {answer[0]}, {len(answer[1])} bytes")
        service.set_disk("fsync result.json 0 5")
        job = client.wait(submit(client, toy(4)))
        check(job["state"] == "failed" and job["message"] == "cannot sync result.json: Input/output error",
              f"a result that cannot be written: {job}")
        service.set_disk("fork - 0 11")
        id = submit(client, toy(4))
        time.sleep(1)
        check(client.job(id)["state"] == "queued", f"no process can be started: {client.job(id)}")
        service.set_disk()
        check(client.wait(id)["state"] == "done", "a job does not start once processes can be started")
        check("waits: the search cannot be started" in Path(folder, "err").read_text(encoding="utf-8"),
              "there is no word of a job that waits")
        record = next(Path(service.jobs, id, "work").glob("*.jsonl"))
        lines = record.read_bytes().split(b"\n")
        record.write_bytes(b"\n".join([lines[0], b"{", *lines[2:]]))
        code, body = get(service, f"/v1/jobs/{id}/report")
        check(code == 500 and service.jobs.encode() not in body and b"work/" in body and b"\n" not in body,
              f"the report of a damaged record: {code} {body!r}")


def check_crowd(mscgym, folder):
    """One address takes as many connections as it can; others are still served."""
    with Service(mscgym, folder) as service:
        held = [socket.create_connection(("127.0.0.1", service.port), timeout=40) for _ in range(256)]
        time.sleep(0.5)
        with socket.create_connection(("127.0.0.1", service.port), 10, ("127.0.0.2", 0)) as other:
            other.sendall(b"GET /openapi.json HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            check(other.recv(4096).startswith(b"HTTP/1.1 200 "), "256 connections of one address lock out another")
        for link in held:
            link.close()
        check(wait_for(lambda: status_of(service.client().jobs)[0] == 200), "the connections are not given back")


def check_control(mscgym, folder):
    """Cancel, resume, remove while it runs, two at once, fair turns, an orderly stop."""
    config = toy(400, 4000)
    record, _ = by_hand(mscgym, folder, config)
    with Service(mscgym, folder, "--jobs", "2", "--threads", "2") as service:
        ann, bob = service.client(), service.client(BOB)
        ids = [submit(ann, config) for _ in range(3)]
        of_bob = submit(bob, config)

        def has_trials(client, id):
            return client.job(id).get("progress", {}).get("trials", 0) > 8
        check(wait_for(lambda: has_trials(ann, ids[0])), "the first job does not run")
        refused(409, "cannot be resumed", ann.resume, ids[0])
        ann.cancel(ids[0])
        check(ann.wait(ids[0])["state"] == "cancelled", "cancel does not stop a job")
        refused(409, "cannot be cancelled", ann.cancel, ids[0])
        check(wait_for(lambda: has_trials(bob, of_bob)), "bob's job waits for all of ann's")
        ann.remove(ids[1])
        ann.cancel(ids[2])
        ann.wait(ids[2])
        ann.resume(ids[0])
        ann.resume(ids[2])
        check(wait_for(lambda: has_trials(ann, ids[2])), "a resumed job does not run")
        check(service.stop() == 0, "the server did not end in order")
        check(not children(service.process.pid), "processes are left")
        service.start()
        ann, bob = service.client(), service.client(BOB)
        for client, id in ((ann, ids[0]), (ann, ids[2]), (bob, of_bob)):
            check(client.wait(id)["state"] == "done", f"after the stop: {client.job(id)}")
            check(record_of(mscgym, service, client, id) == record, "a record differs after stops")
        other = subprocess.run([mscgym, "serve", service.jobs, "--port", "0"], capture_output=True, text=True,
                               check=False)
        check(other.returncode != 0 and "another server uses this folder" in other.stderr, f"second: {other}")


def check_kills(mscgym, folder):
    """Servers and searches die at any moment; every job ends with the record of an undisturbed search."""
    configs = [toy(300, 3000), digits("quantize", 40, choices=[{"bits": 8}, {"bits": 6}, {"bits": 4}])]
    records = [by_hand(mscgym, folder, config, f"hand{i}")[0] for i, config in enumerate(configs)]
    chance = random.Random(1)
    with Service(mscgym, folder, "--jobs", "2", "--threads", "2") as service:
        tokens = [(ANN, 0), (BOB, 1), (BOB, 0)]
        ids = [(token, kind, submit(service.client(token), configs[kind])) for token, kind in tokens]
        for n in range(6):
            time.sleep(chance.uniform(0.02, 0.5))
            below = children(service.process.pid)
            if n % 2 == 0 or not below:
                service.kill()
                service.start()
            else:
                os.kill(chance.choice(below), signal.SIGKILL)
        for token, kind, id in ids:
            client = service.client(token)
            job = client.wait(id)
            check(job["state"] == "done", f"after kills: {job}")
            check(record_of(mscgym, service, client, id) == records[kind], f"a record differs after kills: {job}")
        left = [name for name in os.listdir(service.jobs) if name.startswith(".")]
        check(not left, f"left: {left}")


def check_document(mscgym, folder):
    """The OpenAPI document is valid, and names every address."""
    with Service(mscgym, folder) as service:
        document = json.loads(get(service, "/openapi.json")[1])
        check(document["openapi"].startswith("3.1"), f"openapi: {document['openapi']}")
        for path, methods in document["paths"].items():
            for method in methods:
                if method == "parameters":
                    continue
                code = get(service, path.replace("{id}", "0" * 12), "", method.upper())[0]
                check(code == (200 if path == "/openapi.json" else 401), f"{method} {path} without a token: {code}")
        try:
            from openapi_spec_validator import validate
        except ImportError:
            print("no openapi-spec-validator: the document's schema is not checked")
            return
        validate(document)


def check_client(mscgym, folder):
    """The client at wrong addresses, with wrong tokens and names; what it fetches is whole or not there."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Other) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        client = Client(f"http://127.0.0.1:{server.server_address[1]}", ANN)
        for call in (client.jobs, lambda: client.job("1"), lambda: list(client.events("1"))):
            refused(0, "not from mscgym serve", call)
        out = os.path.join(folder, "cut")
        refused(0, "4000 bytes too early", client.fetch, "1", out)
        check(os.listdir(out) == [], f"of a model that was cut off: {os.listdir(out)}")
        server.shutdown()
    refused(0, "nowhere: ", Client("nowhere", ANN).jobs)
    refused(0, "the token has", Client, "http://127.0.0.1", "\u20ac")
    big, quoted = _named(folder, "big.onnx", "x" * 40000000), _named(folder, 'q"uoted.onnx')
    with Service(mscgym, folder) as service:
        client = service.client()
        for id in ("a b", "\u00e9", "../x", "?"):
            refused(404, "there is no such job", client.job, id)
        refused(404, "there is no such job", client.fetch, "0" * 12, os.path.join(folder, "none"))
        check(not os.path.exists(os.path.join(folder, "none")), "there is a folder of a job that is not there")
        refused(0, "rename the file", client.submit, model=quoted, inputs=quoted)
        refused(401, "the token is missing or unknown", service.client("bad").submit, model=big, inputs=big)


CASES = {"results": check_results, "access": check_access, "submissions": check_submissions, "limits": check_limits,
         "together": check_uploads_together, "pieces": check_pieces, "full_disk": check_full_disk,
         "starts": check_starts, "disk": check_disk, "crowd": check_crowd,
         "control": check_control, "kills": check_kills, "document": check_document, "client": check_client}


def main():
    if len(sys.argv) < 2:
        print(__doc__.strip(), file=sys.stderr)
        return 2
    for name in sys.argv[2:] or CASES:
        begin = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            CASES[name](os.path.abspath(sys.argv[1]), folder)
            errors = open(folder + "/err", encoding="utf-8").read()
            check("ERROR: " not in errors and "runtime error" not in errors, f"{name}: {errors[:2000]}")
        print(f"{name}: {time.monotonic() - begin:.1f} s", flush=True)
    print(f"{len(wrong)} failures")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
