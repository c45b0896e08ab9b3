#!/usr/bin/env python3
"""Lets schemathesis send requests to `mscgym serve` for SECONDS (default: 1800), by the service's OpenAPI document.
It must find no answer that the document does not describe, no failure of the server, and no line about a fault.

usage: check_schemathesis.py MSCGYM [SECONDS]

Needs the package schemathesis (PyPI) in the Python that runs this; exits with 77 without it.
"""

import importlib.util
import os
import subprocess
import sys
import tempfile

from serving import ANN, BOB, Service

# A body of the right form may still be a configuration that makes no sense, which is refused.
SETTINGS = """
[[operations]]
include-operation-id = "submit"
checks.positive_data_acceptance.enabled = false
"""
USERS = [{"name": "ann", "token": ANN, "disk": "500M", "upload": "1M"}, {"name": "bob", "token": BOB}]


def main():
    if not 2 <= len(sys.argv) <= 3:
        print(__doc__.strip(), file=sys.stderr)
        return 2
    if not importlib.util.find_spec("schemathesis"):
        print("skipped: no schemathesis")
        return 77
    seconds = int(sys.argv[2]) if len(sys.argv) > 2 else 1800
    with tempfile.TemporaryDirectory() as folder, \
            Service(os.path.abspath(sys.argv[1]), folder, "--jobs", "1", "--threads", "1", users=USERS) as service:
        with open(f"{folder}/settings.toml", "w", encoding="utf-8") as file:
            file.write(SETTINGS)
        found = subprocess.run(
            [sys.executable, "-m", "schemathesis.cli", "--config-file", f"{folder}/settings.toml", "run",
             f"{service.url}openapi.json", "--max-time", str(seconds), "--header", f"Authorization: Bearer {ANN}",
             "--continue-on-failure", "--generation-database", "none", "--no-color"], cwd=folder, check=False).returncode
        lives = service.process.poll() is None
        ended = service.stop()
        errors = open(f"{folder}/err", encoding="utf-8").read()
    if not lives or ended != 0 or "ERROR: " in errors or "runtime error" in errors:
        print(f"the server ended with {ended}: {errors[-2000:]}")
        return 1
    return found


if __name__ == "__main__":
    sys.exit(main())
