"""Reads records of searches, for checks that compare and watch them."""
import subprocess


def count(record, what):
    """Number of occurrences of `what` in a record; 0 if there is no record."""
    try:
        with open(record, "rb") as file:
            return file.read().count(what)
    except OSError:
        return 0


def lines_of(record):
    return count(record, b"\n")


def trials_of(record):
    return count(record, b'"kind":"trial"')


def canonical(mscgym, record):
    return subprocess.run([mscgym, "show", record, "--canonical"], check=True, capture_output=True).stdout
