"""Connects a program that mscgym starts with the Python process that started mscgym.

    python3 bridge.py agent                  lines of the agent's protocol, on standard input and output
    python3 bridge.py metric {outputs}       lines of the protocol of a lasting metric

mscgym starts this file by its path, for an agent or a metric that is an object of the calling process
(mscgym.serving). MSCGYM_BRIDGE is the address.
"""
import os
import socket
import sys


def main() -> int:
    address = os.environ.get("MSCGYM_BRIDGE")
    role = sys.argv[1]
    if not address:
        print(f"the {role} is an object of a Python program: call mscgym.search there again", file=sys.stderr)
        return 1
    with socket.socket(socket.AF_UNIX) as link:
        link.connect(address)
        link.sendall(role.encode() + b"\n")
        answers = link.makefile("rb")
        for request in sys.stdin.buffer:
            link.sendall(request)
            line = answers.readline()
            if not line:  # the answer to "done"
                break
            sys.stdout.buffer.write(line)
            sys.stdout.buffer.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
