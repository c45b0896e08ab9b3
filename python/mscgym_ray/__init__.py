"""Workers of mscgym on a Ray cluster: `mscgym search CONFIG --cluster ray:HOST:PORT` starts this.

The coordinator, mscgym, speaks with `python3 -m mscgym_ray` in lines of JSON (docs/cluster.md). One
actor stands for one worker, `mscgym worker`, on its node, and carries lines to and fro. What the lines
say is nothing to it but for `init`, which is told where on the node the search's files are, and its
share of the node.
"""
