#!/usr/bin/env python3
"""Reads a record as a table: prints the best trial, and the least loss for each size. Needs pandas.

    cp -r ../../examples/digits .
    mscgym search agent.json --quiet
    python3 front.py msc_workspace/agent.jsonl

A second argument names a CSV file for the table.
"""
import sys

import mscgym


def main() -> None:
    record = mscgym.Record(sys.argv[1])
    best = record.best()
    if best is None:
        sys.exit(f"{record.path}: no trial meets every bound")
    table = record.to_pandas()
    cost = next(name for name in record.metrics if name in ("size_bytes", "image_bits"))
    complete = table[table.state == "complete"].sort_values([cost, "distill_loss"])
    front = complete[complete.distill_loss < complete.distill_loss.cummin().shift(fill_value=float("inf"))]
    print(f"{len(record)} trials; the best is {best.id}, distill_loss {best.metrics['distill_loss']:.5g}")
    print(front[[cost, "distill_loss"]].to_string())
    if len(sys.argv) > 2:
        front.to_csv(sys.argv[2])


if __name__ == "__main__":
    main()
