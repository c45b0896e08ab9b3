"""Records of searches, as checks compare and watch them."""
import subprocess


def lines_of(record):
    """How many; 0 where there is none."""
    try:
        with open(record, "rb") as file:
            return file.read().count(b"\n")
    except OSError:
        return 0


def canonical(mscgym, record):
    return subprocess.run([mscgym, "show", record, "--canonical"], check=True, capture_output=True).stdout
