#!/usr/bin/env python3
"""Checks that a served page remains reachable, whatever connections other clients hold.

    check_served.py MSCGYM

256 connections send a request byte by byte: each is closed in time, and the page is available again
within half a minute. Host headers must name the server with its port; on port 80 (if this user may
listen there) also without it. Prints failures; exits with 1 if there are any.
"""
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time

PATIENCE_S = 30.0


class Server:
    def __init__(self, mscgym, record, port=0):
        command = [mscgym, "report", record, "--serve"] + (["--port", str(port)] if port else [])
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        line = self.process.stdout.readline()
        self.is_there = line.startswith("page: http://127.0.0.1:")
        if self.is_there:
            port, token = line.split("127.0.0.1:")[1].strip().split("/")[:2]
            self.port, self.path = int(port), f"/{token}/"

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE_S)

    def ask(self, host, timeout=PATIENCE_S):
        """The status of the response, or None without a response."""
        try:
            with self.connect() as connection:
                connection.settimeout(timeout)
                connection.sendall(f"GET {self.path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
                return int(connection.recv(64).split()[1])
        except (OSError, IndexError):
            return None

    def close(self):
        self.process.terminate()
        self.process.wait(30)


def trickle(server, n, stop):
    """Sends a header that never ends on n connections, a byte every 1.5 seconds."""
    held = [server.connect() for _ in range(n)]
    for connection in held:
        connection.sendall(b"GET / HTTP/1.1\r\nX: ")

    def go_on():
        while not stop.wait(1.5):
            for connection in held:
                try:
                    connection.sendall(b"x")
                except OSError:
                    pass
    thread = threading.Thread(target=go_on)
    thread.start()
    return held, thread


def check_trickle(server, check):
    stop = threading.Event()
    held, thread = trickle(server, 256, stop)
    begin = time.monotonic()
    status = None
    while status != 200 and time.monotonic() - begin < PATIENCE_S:
        status = server.ask(f"127.0.0.1:{server.port}", 5)
    took = time.monotonic() - begin
    stop.set()
    thread.join()
    for connection in held:
        connection.close()
    check(status == 200, f"beside 256 connections: {status} after {took:.1f} s")
    check(server.ask(f"localhost:{server.port}") == 200, "after 256 connections the page is gone")
    print(f"beside 256 connections that trickle the page came after {took:.1f} s")


def check_hosts(server, check):
    port = server.port
    for host, status in ((f"127.0.0.1:{port}", 200), (f"localhost:{port}", 200), (f"LOCALHOST:{port}", 200),
                         (f"127.0.0.1:{port + 1}", 403), (f"127.0.0.1:{port}0", 403), ("", 403),
                         (f"localhost.evil.example:{port}", 403), (f"[::1]:{port}", 403),
                         ("evil.example", 403), ("127.0.0.1", 200 if port == 80 else 403),
                         ("localhost", 200 if port == 80 else 403), ("localhost:", 403)):
        check(server.ask(host) == status, f"port {port}, Host {host!r}: {server.ask(host)}, expected {status}")


def make_record(mscgym, folder):
    path = os.path.join(folder, "c.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"workspace": "w", "gym": [{"record": "r.jsonl", "env": {"type": "toy", "tasks": 4, "choices": 3},
                                              "budget": {"trials": 8}}]}, file)
    subprocess.run([mscgym, "search", path, "--quiet"], stdout=subprocess.DEVNULL, check=True)
    return os.path.join(folder, "w", "r.jsonl")


def main():
    if len(sys.argv) != 2:
        print(__doc__.strip(), file=sys.stderr)
        return 2
    wrong = []

    def check(is_good, text):
        if not is_good:
            wrong.append(text)
            print(f"FAILED  {text}", flush=True)
    mscgym = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        record = make_record(mscgym, folder)
        for port in (0, 80):
            server = Server(mscgym, record, port)
            try:
                if server.is_there:
                    check_hosts(server, check)
                elif port:
                    print(f"skipped: this user may not listen at port {port}")
                if server.is_there and not port:
                    check_trickle(server, check)
                check(server.is_there or port, "no server")
            finally:
                server.close()
    print(f"{len(wrong)} failures")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
