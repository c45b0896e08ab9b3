#!/usr/bin/env python3
"""Verifies records made here with --isa on other, emulated processors.

    check_isa.py MSCGYM EXAMPLES/DIGITS [--trials 24]

For each level that both this machine and some emulated processor support, the numerics id must be
the same on both, and every trial of a search of digits must have the same bits there (mscgym
verify). A processor without the level must refuse it. Emulation covers instructions, not caches.
Needs Debian's qemu-user; exits with 77 without it.
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile

EMULATOR = "qemu-x86_64"
# Level, processors that have it, and one that does not.
ROWS = [
    ("sse41", ["Penryn", "Westmere"], None),
    ("avx", ["SandyBridge", "Opteron_G4"], "Westmere"),
    ("avx2", ["Haswell", "EPYC"], "SandyBridge"),
]


def run(*command):
    environment = dict(os.environ, VK_DRIVER_FILES="/dev/null", VK_ICD_FILENAMES="/dev/null")
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


def there(processor, *command):
    return run(EMULATOR, "-cpu", processor, *command)


def numerics(result):
    return json.loads(result.stdout)["devices"][0]["numerics"] if result.returncode == 0 else result.stderr


class Check:
    is_good = True

    def expect(self, what, is_so, more):
        self.is_good &= is_so
        print(f"{'ok  ' if is_so else 'FAIL'} {what}: {more}", flush=True)


def check_level(check, options, folder, level, processors, before):
    work = os.path.join(folder, level)
    shutil.copytree(options.digits, work)
    record = os.path.join(work, "msc_workspace", "digits.jsonl")
    made = run(options.mscgym, "search", os.path.join(work, "digits.json"), "--restart", "--quiet", "--isa", level,
               "--trials", str(options.trials))
    if not os.path.exists(record):
        sys.exit(f"{level}: {made.stderr}")
    own = numerics(run(options.mscgym, "devices", "--isa", level, "--json"))
    for processor in processors:
        other = numerics(there(processor, options.mscgym, "devices", "--isa", level, "--json"))
        check.expect(f"{level} on {processor}", other == own, other)
        verified = there(processor, options.mscgym, "verify", record, "--isa", level, "--quiet", "--json")
        told = json.loads(verified.stdout) if verified.returncode == 0 else {}
        check.expect(f"{level} on {processor}, trials", is_equal(told, options.trials),
                     {key: told[key] for key in told if not isinstance(told[key], list)} or verified.stderr.strip())
    if before:
        refused = there(before, options.mscgym, "devices", "--isa", level)
        line = refused.stderr.strip().splitlines()[-1]
        check.expect(f"{level} on {before}", refused.returncode == 3 and "this processor lacks it" in line, line)


def is_equal(told, n_trials):
    """All trials were verified, and each has the same bits."""
    return told.get("equal", 0) >= n_trials and not any(told[key] for key in ("within_noise", "different", "skipped"))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("mscgym", type=os.path.abspath)
    parser.add_argument("digits", type=os.path.abspath)
    parser.add_argument("--trials", type=int, default=24)
    options = parser.parse_args()
    if not shutil.which(EMULATOR):
        print(f"skipped: {EMULATOR} is missing: install qemu-user")
        sys.exit(77)
    levels = json.loads(run(options.mscgym, "devices", "--json").stdout)["isa"]
    check = Check()
    with tempfile.TemporaryDirectory() as folder:
        for level, processors, before in ROWS:
            if level in levels:
                check_level(check, options, folder, level, processors, before)
    sys.exit(0 if check.is_good else 1)


if __name__ == "__main__":
    main()
