#!/usr/bin/env python3
"""A client of `mscgym serve`: submit models, follow their searches, fetch the results. It needs only Python.

    from mscgym.client import Client
    client = Client("http://127.0.0.1:8642", open("jobs/token").read())
    job = client.submit(model="digits.onnx", inputs="calibration.npz", labels="calibration_labels.npy", time="1m")
    print(client.wait(job["id"])["progress"]["best_metrics"])
    client.fetch(job["id"], "result")

The same as commands: `mscgym submit`, `mscgym jobs` and `mscgym fetch`, which run this file as the program
mscgym-client, or `python3 -m mscgym.client --help`.
"""
from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import os
import secrets
import ssl
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, BinaryIO

try:
    from mscgym.errors import Error
except ModuleNotFoundError:  # this file is the program mscgym-client, and the package is not installed
    Error = RuntimeError  # type: ignore[misc,assignment]

FINAL = ("done", "failed", "cancelled")
# What a job gives: the name of the request, and of the file that `fetch` writes.
FILES = {"model": "model.onnx", "plan": "plan.json", "record": "record.jsonl", "result": "result.json",
         "report": "report.html", "log": "log.txt"}
BLOCK = 1 << 18
LOOPBACK = ("127.0.0.1", "::1", "localhost")
PATIENCE_S = 60  # `wait` goes on for so long while the server does not answer


class ServiceError(Error):
    """The service refused a request. The text is its line; `status` is the status of HTTP, 0 without an answer."""

    def __init__(self, line: str, status: int):
        super().__init__(line)
        self.status = status


class Form:
    """A form with files, read while it is sent. Its length is known beforehand.

    Args:
        texts: Values by name.
        files: For each file the name of its part, the file's name, and its path.
    """

    def __init__(self, texts: Mapping[str, str], files: Sequence[tuple[str, str, str]]):
        self.boundary = secrets.token_hex(16)
        self._parts: list[tuple[bytes, str | None]] = []
        for name, value in texts.items():
            self._parts.append((self._head(name) + b"\r\n" + value.encode() + b"\r\n", None))
        for name, file, path in files:
            self._parts.append((self._head(name, file) + b"Content-Type: application/octet-stream\r\n\r\n", path))
        self._end = f"--{self.boundary}--\r\n".encode()
        sizes = [len(head) + (os.path.getsize(path) + 2 if path else 0) for head, path in self._parts]
        self.length = sum(sizes) + len(self._end)

    def _head(self, name: str, file: str | None = None) -> bytes:
        if set(file or "") & set('"\r\n'):  # a form cannot say it
            raise ServiceError(f"{file!r}: expected a name without quotes and line breaks; rename the file", 0)
        shown = f'; filename="{file}"' if file is not None else ""
        return f'--{self.boundary}\r\nContent-Disposition: form-data; name="{name}"{shown}\r\n'.encode()

    def __iter__(self) -> Iterator[bytes]:
        for head, path in self._parts:
            yield head
            if path:
                with open(path, "rb") as file:
                    while block := file.read(BLOCK):
                        yield block
                yield b"\r\n"
        yield self._end


class Client:
    """Requests of one user.

    Args:
        url: The address that `mscgym serve` prints.
        token: The user's token.
        timeout: Seconds without a byte after which a request fails.
        context: For HTTPS with a certificate of one's own.

    Every method raises `ServiceError`.
    """

    def __init__(self, url: str, token: str, timeout: float = 60.0, context: ssl.SSLContext | None = None):
        self.url = url.rstrip("/")
        self._token = token.strip()
        if not self._token.isascii():
            raise ServiceError("the token has characters that no token has; copy it again", 0)
        self._timeout = timeout
        # What is meant for this machine, with a token, does not go to a proxy.
        direct = urllib.parse.urlsplit(self.url).hostname in LOOPBACK
        self._opener = urllib.request.build_opener(urllib.request.HTTPSHandler(context=context),
                                                   *([urllib.request.ProxyHandler({})] if direct else []))

    @contextlib.contextmanager
    def _answer(self) -> Iterator[None]:
        """Makes a ServiceError of an answer that breaks off or is no JSON."""
        try:
            yield
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise ServiceError(f"{self.url}: {getattr(error, 'reason', None) or error!r}", 0) from None

    def _open(self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None) -> Any:
        try:
            request = urllib.request.Request(self.url + path, body, {"Authorization": f"Bearer {self._token}",
                                                                      **(headers or {})}, method=method)
            return self._opener.open(request, timeout=self._timeout)
        except urllib.error.HTTPError as error:
            with error:
                text = error.read()
            try:
                line = str(json.loads(text)["error"])
            except (ValueError, KeyError, TypeError):
                line = f"{self.url}: status {error.code}"
            raise ServiceError(line, error.code) from None
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise ServiceError(f"{self.url}: {getattr(error, 'reason', error)}", 0) from None

    def _json(self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None,
              member: str = "id") -> dict[str, Any]:
        """The service's answer, an object that has this member."""
        with self._open(method, path, body, headers) as answer, self._answer():
            return self._checked(json.load(answer), member)

    def _checked(self, answer: Any, member: str) -> dict[str, Any]:
        if not isinstance(answer, dict) or member not in answer:
            raise ServiceError(f"{self.url}: this answer is not from mscgym serve", 0)
        return answer

    def submit(self, model: str | None = None, inputs: str | None = None, labels: str | None = None,
               config: str | Mapping[str, Any] | None = None, files: Sequence[str] = (),
               **texts: str) -> dict[str, Any]:
        """Uploads a job and returns it.

        Args:
            model: Path of the network here.
            inputs: Path of the samples here.
            labels: Path of the class of each sample here.
            config: A configuration, as a path or an object. Without one, the service makes a first one.
            files: Further files that the configuration names, by their names without folders.
            **texts: `name`; without a configuration also `target` and `time`.
        """
        named = {"model": model, "inputs": inputs, "labels": labels,
                 "config": config if isinstance(config, str) else None}
        uploads = [(part, os.path.basename(path), path) for part, path in named.items() if path is not None]
        uploads += [("file", os.path.basename(path), path) for path in files]
        if isinstance(config, Mapping):
            texts = {**texts, "config": json.dumps(config)}
        form = Form(texts, uploads)
        try:
            return self._json("POST", "/v1/jobs", iter(form), {
                "Content-Type": f"multipart/form-data; boundary={form.boundary}", "Content-Length": str(form.length)})
        except ServiceError as error:
            if error.status == 0:  # a service with an unknown token ends a large upload without an answer
                self.jobs()
            raise

    def submit_paths(self, **wish: Any) -> dict[str, Any]:
        """Submits files that the service has under one of its roots: `config` (an object) or `model`, `inputs`."""
        return self._json("POST", "/v1/jobs", json.dumps(wish).encode(), {"Content-Type": "application/json"})

    def jobs(self) -> list[dict[str, Any]]:
        """The user's jobs, newest first."""
        return list(self._json("GET", "/v1/jobs", member="jobs")["jobs"])

    def job(self, id: str) -> dict[str, Any]:
        return self._json("GET", f"/v1/jobs/{_quoted(id)}")

    def cancel(self, id: str) -> dict[str, Any]:
        """Stops a job after its current round; called again, at once."""
        return self._json("POST", f"/v1/jobs/{_quoted(id)}/cancel")

    def resume(self, id: str) -> dict[str, Any]:
        return self._json("POST", f"/v1/jobs/{_quoted(id)}/resume")

    def remove(self, id: str) -> None:
        self._json("DELETE", f"/v1/jobs/{_quoted(id)}")

    def events(self, id: str) -> Iterator[dict[str, Any]]:
        """The job each time that it changes, until it ends."""
        with self._open("GET", f"/v1/jobs/{_quoted(id)}/events") as answer, self._answer():
            for line in answer:
                if line.startswith(b"data: "):
                    job = json.loads(line[6:])
                    if not job:
                        raise ServiceError(f"job {id} was removed", 404)
                    yield self._checked(job, "id")

    def wait(self, id: str) -> dict[str, Any]:
        """Follows a job to its end and returns it. A server that restarts meanwhile is waited for."""
        last: dict[str, Any] = {}
        heard = time.monotonic()
        while True:
            try:
                for last in self.events(id):
                    heard = time.monotonic()
            except ServiceError as error:
                if error.status or time.monotonic() - heard > PATIENCE_S:
                    raise
            if last.get("state") in FINAL:
                return last
            time.sleep(1)

    def read(self, id: str, what: str) -> BinaryIO:
        """A file of the job, to be read and closed: one of `FILES`."""
        stream: BinaryIO = self._open("GET", f"/v1/jobs/{_quoted(id)}/{what}")
        return stream

    def _blocks(self, answer: BinaryIO) -> Iterator[bytes]:
        with self._answer():
            while block := answer.read(BLOCK):
                yield block
        if missing := getattr(answer, "length", None):  # Python does not tell
            raise ServiceError(f"{self.url}: the answer ended {missing} bytes too early", 0)

    def _save(self, answer: BinaryIO, path: str) -> None:
        """Writes a file whole or not at all."""
        part = path + ".part"
        try:
            with open(part, "wb") as file:
                file.writelines(self._blocks(answer))
            os.replace(part, path)
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.remove(part)

    def fetch(self, id: str, folder: str) -> list[str]:
        """Writes every file that the job has so far to a folder, and returns their paths."""
        written = []
        for what, name in FILES.items():
            try:
                with self.read(id, what) as answer:
                    os.makedirs(folder, exist_ok=True)
                    path = os.path.join(folder, _model_name(name, answer) if what == "model" else name)
                    self._save(answer, path)
                written.append(path)
            except ServiceError as error:
                if error.status != 409:  # the job does not have it
                    raise
        return written


def _quoted(id: str) -> str:
    return urllib.parse.quote(id, safe="")


def _model_name(name: str, answer: BinaryIO) -> str:
    """The name with the ending of the service's file, which is .tflite for searches with that target."""
    headers = getattr(answer, "headers", None)
    served = headers.get_filename() if headers else None
    return os.path.splitext(name)[0] + os.path.splitext(served)[1] if served else name


def _line(job: Mapping[str, Any]) -> str:
    progress = job.get("progress", {})
    best = progress.get("best")
    shown = f"best {best:.5g} of {progress.get('trials', 0):.0f} trials" if best is not None else ""
    return "  ".join(word for word in (job["id"], job["state"], job["name"], shown, job.get("message", "")) if word)


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="mscgym-client", description="Asks a server, mscgym serve.")
    parser.add_argument("--server", metavar="URL", default=os.environ.get("MSCGYM_SERVER", "http://127.0.0.1:8642"))
    parser.add_argument("--token-file", metavar="FILE", help="default: the token in the variable MSCGYM_TOKEN")
    parser.add_argument("--json", action="store_true", help="print jobs and paths as JSON")
    commands = parser.add_subparsers(dest="command", required=True)
    submit = commands.add_parser("submit", help="upload a model with samples, or a configuration")
    submit.add_argument("model", nargs="?")
    for name in ("inputs", "labels", "config", "name", "target", "time"):
        submit.add_argument(f"--{name}")
    submit.add_argument("--file", dest="files", action="append", default=[])
    submit.add_argument("--wait", action="store_true", help="follow the job to its end")
    commands.add_parser("jobs", help="list the jobs, or one of them").add_argument("id", nargs="?")
    for name, text in (("watch", "follow a job"), ("cancel", "stop a job"), ("resume", "continue a job"),
                       ("remove", "remove a job with its files"), ("fetch", "write the files of a job to a folder")):
        command = commands.add_parser(name, help=text)
        command.add_argument("id")
        if name == "fetch":
            command.add_argument("-o", "--output", metavar="DIR", required=True)
    return parser


def _run(client: Client, given: argparse.Namespace) -> None:
    def show(job: Mapping[str, Any]) -> None:
        print(json.dumps(job) if given.json else _line(job), flush=True)

    if given.command == "submit":
        texts = {name: value for name in ("name", "target", "time") if (value := getattr(given, name)) is not None}
        job = client.submit(given.model, given.inputs, given.labels, given.config, given.files, **texts)
        show(client.wait(job["id"]) if given.wait else job)
    elif given.command == "jobs":
        if given.json and not given.id:
            print(json.dumps(client.jobs()))
            return
        for job in [client.job(given.id)] if given.id else client.jobs():
            show(job)
    elif given.command == "watch":
        for job in client.events(given.id):
            show(job)
    elif given.command == "fetch":
        paths = client.fetch(given.id, given.output)
        print(json.dumps(paths) if given.json else "\n".join(paths))
    elif given.command == "remove":
        client.remove(given.id)
    else:
        show(client.cancel(given.id) if given.command == "cancel" else client.resume(given.id))


def _token(given: argparse.Namespace) -> str:
    if given.token_file is None:
        if "MSCGYM_TOKEN" not in os.environ:
            raise Error("the token is missing: name its file by --token-file, or set MSCGYM_TOKEN")
        return os.environ["MSCGYM_TOKEN"]
    with open(given.token_file, encoding="utf-8") as file:
        return file.read()


def main(words: Sequence[str] | None = None) -> int:
    given = _arguments().parse_args(words)
    try:
        _run(Client(given.server, _token(given)), given)
    except (Error, OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
