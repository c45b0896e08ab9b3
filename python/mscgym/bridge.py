"""Connects a program that mscgym starts with the Python process that started mscgym.

    python3 bridge.py agent                  lines of the agent's protocol, on standard input and output
    python3 bridge.py metric OUTPUTS         prints the metric of the outputs in this file

mscgym starts this file by its path, for an agent or a metric that is an object of the calling process
(mscgym.serving). It imports little, because a metric starts it for each trial. MSCGYM_BRIDGE is the address.
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
        link.sendall("\t".join(sys.argv[1:]).encode("utf-8", "surrogateescape") + b"\n")
        answers = link.makefile("rb")
        if role == "metric":
            line = answers.readline()
            sys.stdout.buffer.write(line)
            return 0 if line else 1
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
