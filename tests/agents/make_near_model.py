#!/usr/bin/env python3
"""Prints the expected values of test_auto_near.c, computed with numpy from the definitions in
agents/chance.h and agents/near_model.h.

There are three tasks of four, three and two choices. Of POINTS, those with WORKS 1 were measured,
with VALUES. The rates and the noise come from the same coordinate ascent on the grid; everything
else from dense matrices.
"""
import itertools

import numpy as np

COUNTS = (4, 3, 2)
POINTS = np.array([[0, 0, 0], [1, 0, 0], [2, 1, 0], [3, 2, 1], [1, 2, 1], [2, 2, 0], [3, 0, 1],
                   [2, 0, 1], [1, 1, 1], [3, 1, 0]])
WORKS = np.array([0, 0, 1, 1, 1, 1, 0, 1, 1, 1])
VALUES = np.array([0, 0, 2.5, 1.25, 3.0, 1.5, 0, 4.0, 3.5, 2.0])
RATES, NOISES = (0.03, 0.1, 0.3, 1.0, 3.0), (0.001, 0.01, 0.1)
ASKED = [(0, 1, 1), (1, 0, 1), (2, 2, 1), (3, 0, 0)]


def distance(task, a, b):
    return 0 if a == b else 0.5 + 0.5 * abs(int(a) - int(b)) / (COUNTS[task] - 1)


def breaks():
    b = [np.full(n, 0.1) for n in COUNTS]
    for _ in range(12):
        blame, count = [np.zeros(n) for n in COUNTS], [np.zeros(n) for n in COUNTS]
        for x, works in zip(POINTS, WORKS):
            fails = 1 - np.prod([1 - b[t][c] for t, c in enumerate(x)])
            for t, c in enumerate(x):
                count[t][c] += 1
                blame[t][c] += 0 if works else b[t][c] / fails
        b = [(0.1 + blame[t]) / (1 + count[t]) for t in range(len(COUNTS))]
    return b


def chance(x):
    weights = np.array([np.exp(-2 * sum(distance(t, a, c) for t, (a, c) in enumerate(zip(x, z))))
                        for z in POINTS])
    own = np.prod([1 - row[c] for row, c in zip(breaks(), x)])
    return (0.6 * own + weights @ WORKS) / (0.6 + weights.sum())


def correlations(xs, zs, rates):
    return np.array([[np.exp(-sum(r * distance(t, x[t], z[t]) for t, r in enumerate(rates)))
                      for z in zs] for x in xs])


def fitted(rates, noise):
    points, y = POINTS[WORKS == 1], np.log(VALUES[WORKS == 1])
    k = correlations(points, points, rates) + noise * np.eye(len(y))
    inverse, ones = np.linalg.inv(k), np.ones(len(y))
    mean = ones @ inverse @ y / (ones @ inverse @ ones)
    variance = (y - mean) @ inverse @ (y - mean) / len(y)
    value = -0.5 * len(y) * np.log(variance) - 0.5 * np.linalg.slogdet(k)[1]
    return value, points, y, inverse, mean, variance


def main():
    print("breaks", *(f"{v:.12g}" for row in breaks() for v in row), sep=", ")
    print("chances", *(f"{chance(x):.12g}" for x in ASKED), sep=", ")
    rates, noise = [1.0, 1.0, 1.0], 0.01
    best = fitted(rates, noise)[0]
    for t, r in itertools.product(range(3), RATES):
        tried = [r if i == t else v for i, v in enumerate(rates)]
        if fitted(tried, noise)[0] > best:
            best, rates = fitted(tried, noise)[0], tried
    for n in NOISES:
        if fitted(rates, n)[0] > best:
            best, noise = fitted(rates, n)[0], n
    _, points, y, inverse, mean, variance = fitted(rates, noise)
    print("rates", rates, "noise", noise, f"mean {mean:.12g} variance {variance:.12g}")
    for x in ASKED:
        row = correlations([x], points, rates)[0]
        print(f"    {{{mean + row @ inverse @ (y - mean):.12g}, {1 - row @ inverse @ row:.12g}}},")


main()
