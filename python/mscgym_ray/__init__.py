"""Workers of mscgym on a Ray cluster. `mscgym search CONFIG --cluster ray:HOST:PORT` starts this package.

The coordinator, mscgym, exchanges lines of JSON with `python3 -m mscgym_ray` (docs/cluster.md). For
each worker process (`mscgym worker`) there is one actor on its node, which forwards lines in both
directions. It does not interpret them, except that it adds to `init` where the search's files are
on the node, and the worker's share of the node.
"""
