"""python3 -m mscgym_ray ADDRESS: requests on standard input, events on standard output."""

from __future__ import annotations

import os
import sys


def main() -> int:
    # Ray prints to standard output, which must have only events for the coordinator.
    output = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    from .bridge import fail, run
    from .connect import BridgeError, first_line

    if len(sys.argv) != 2:
        fail(output, "it is started by mscgym search --cluster ray:HOST:PORT")
        return 2
    try:
        run(sys.argv[1], output)
    except BridgeError as error:
        fail(output, str(error))
        return 1
    except Exception as error:
        fail(output, f"{type(error).__name__}: {first_line(error)}")
        return 1
    return 0


sys.exit(main())
