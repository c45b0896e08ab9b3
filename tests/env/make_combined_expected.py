#!/usr/bin/env python3
"""Prints the expected values of test_env_combined.c. Channels of the small network of
make_quantize_expected.py are pruned in numpy as in make_prune_expected.py. Then the repaired
weights, including removed rows, are quantised, and activations with the ranges of the float
network."""
import sys

import numpy as np

sys.path.insert(0, __file__.rsplit("/", 1)[0])
from make_prune_expected import order, repair, windows  # noqa: E402
from make_quantize_expected import SAMPLES, losses, quantiser, run, values  # noqa: E402


def main():
    x, w1, w2, head = params = (values((SAMPLES, 2, 6, 6), 11), values((4, 2, 3, 3), 12),
                                values((3, 4, 3, 3), 13), values((5, 3), 14))
    seen = {}
    y = run(params, lambda name, array: seen.setdefault(name, array))
    rows, flat = windows(seen["relu:0"]), w2.reshape(3, -1).astype(np.float64)
    means = seen["flat:0"].astype(np.float64)
    c1, c2 = rows.T @ rows / len(rows), means.T @ means / len(means)
    first = order("hessian", w1, flat, c1, 9)
    second = order("hessian", w2, head.astype(np.float64), c2, 1)

    def pruned(n1, n2, repairs):
        kept1, kept2 = np.sort(first[4 - n1:]), np.sort(second[3 - n2:])
        columns = np.concatenate([np.arange(u * 9, u * 9 + 9) for u in kept1])
        w = repair(flat, c1, columns) if repairs else flat * np.isin(np.arange(36), columns)
        last = (repair(head.astype(np.float64), c2, kept2) if repairs
                else head * np.isin(np.arange(3), kept2))
        return x, w1, w.reshape(w2.shape).astype(np.float32), last.astype(np.float32)

    names = ("x:0", "conv1.w", "relu:0", "conv2.w", "flat:0", "head.w")
    choices = {8: quantiser(seen, (8, "minmax")), 4: quantiser(seen, (4, "minmax"))}
    for repairs in (True, False):
        for n1, n2, bits in ((2, 2, (8,) * 6), (2, 2, (4,) * 6), (4, 2, (8, 4, 8, 4, 8, 8)),
                             (2, 3, (8, 4, 4, 8, 8, 4)), (1, 1, (8, 8, 8, 4, 8, 4)),
                             (4, 3, (4,) * 6)):
            chosen = dict(zip(names, bits))
            z = run(pruned(n1, n2, repairs), lambda n, a: choices[chosen[n]](n, a))
            print(f"{{{str(repairs).lower()}, {{{n1}, {n2}}}, {{{', '.join(map(str, bits))}}}, "
                  f"{losses(y, z)[0]:.9g}}},")


if __name__ == "__main__":
    main()
