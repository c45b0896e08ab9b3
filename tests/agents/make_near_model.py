#!/usr/bin/env python3
"""Prints the expected values of test_auto_near.c, computed with numpy and scipy from the definitions in
agents/chance.h and agents/near_model.h.

There are three tasks of four, three and two choices. Of POINTS, those with WORKS 1 were measured,
with VALUES. The rates, the noise and the share of the sum come from the same coordinate ascent on
the grid; everything else from dense matrices.
"""
import itertools

import numpy as np
from scipy.stats import rankdata

COUNTS = (4, 3, 2)
POINTS = np.array([[0, 0, 0], [1, 0, 0], [2, 1, 0], [3, 2, 1], [1, 2, 1], [2, 2, 0], [3, 0, 1],
                   [2, 0, 1], [1, 1, 1], [3, 1, 0]])
WORKS = np.array([0, 0, 1, 1, 1, 1, 0, 1, 1, 1])
VALUES = np.array([0, 0, 2.5, 1.25, 3.0, 1.5, 0, 4.0, 3.5, 2.0])
RATES, NOISES = (0.03, 0.1, 0.3, 1.0, 3.0), (0.001, 0.01, 0.1)
SHARES = (0.0, 0.25, 0.5, 0.75, 0.9)
ASKED = [(0, 1, 1), (1, 0, 1), (2, 2, 1), (3, 0, 0)]


def distance(task, a, b):
    return 0 if a == b else 0.2 + 0.8 * abs(int(a) - int(b)) / (COUNTS[task] - 1)


def causes(x):
    """The causes that may break a point: its choices, and the pairs of them."""
    alone = list(enumerate(int(c) for c in x))
    return alone + list(itertools.combinations(alone, 2))


def breaks():
    """The probability of each cause."""
    prior = {c: 0.02 if isinstance(c[0], tuple) else 0.1
             for x in itertools.product(*map(range, COUNTS)) for c in causes(x)}
    b = dict(prior)
    for _ in range(12):
        blame, count = dict.fromkeys(b, 0.0), dict.fromkeys(b, 0)
        for x, works in zip(POINTS, WORKS):
            fails = 1 - np.prod([1 - b[c] for c in causes(x)])
            for c in causes(x):
                count[c] += 1
                blame[c] += 0 if works else b[c] / fails
        b = {c: (prior[c] + blame[c]) / (1 + count[c]) for c in b}
    return b


def chance(x):
    weights = np.array([np.exp(-3 * sum(distance(t, a, c) for t, (a, c) in enumerate(zip(x, z))))
                        for z in POINTS])
    b = breaks()
    own = np.prod([1 - b[c] for c in causes(x)])
    return (0.6 * own + weights @ WORKS) / (0.6 + weights.sum())


def correlations(xs, zs, rates, summed):
    far = np.array([[sum(r * distance(t, x[t], z[t]) for t, r in enumerate(rates)) for z in zs]
                    for x in xs])
    return (1 - summed) * np.exp(-far) + summed * (1 - far / sum(rates))


def targets(ranked):
    values = VALUES[WORKS == 1]
    share = (rankdata(values) - 0.5) / len(values)
    return np.log(share / (1 - share)) if ranked else np.log(values)


def fitted(rates, noise, summed, ranked):
    points, y = POINTS[WORKS == 1], targets(ranked)
    k = correlations(points, points, rates, summed) + noise * np.eye(len(y))
    inverse, ones = np.linalg.inv(k), np.ones(len(y))
    mean = ones @ inverse @ y / (ones @ inverse @ ones)
    variance = (y - mean) @ inverse @ (y - mean) / len(y)
    value = -0.5 * len(y) * np.log(variance) - 0.5 * np.linalg.slogdet(k)[1]
    value -= 0.5 * np.sum(np.log(np.array(rates) / 0.3) ** 2)  # the prior of the rates
    return value, points, y, inverse, mean, variance


def model(ranked):
    rates, noise, summed = [1.0, 1.0, 1.0], 0.01, 0.5
    best = fitted(rates, noise, summed, ranked)[0]
    for t, r in itertools.product(range(3), RATES):
        tried = [r if i == t else v for i, v in enumerate(rates)]
        if fitted(tried, noise, summed, ranked)[0] > best:
            best, rates = fitted(tried, noise, summed, ranked)[0], tried
    for n in NOISES:
        if fitted(rates, n, summed, ranked)[0] > best:
            best, noise = fitted(rates, n, summed, ranked)[0], n
    for share in SHARES:
        if fitted(rates, noise, share, ranked)[0] > best:
            best, summed = fitted(rates, noise, share, ranked)[0], share
    _, points, y, inverse, mean, variance = fitted(rates, noise, summed, ranked)
    print("rates", rates, "noise", noise, "summed", summed, f"mean {mean:.12g} variance {variance:.12g}")
    for x in ASKED:
        row = correlations([x], points, rates, summed)[0]
        print(f"    {{{mean + row @ inverse @ (y - mean):.12g}, {1 - row @ inverse @ row:.12g}}},")


def main():
    print("breaks", *(f"{breaks()[t, c]:.12g}" for t, n in enumerate(COUNTS) for c in range(n)),
          sep=", ")
    print("chances", *(f"{chance(x):.12g}" for x in ASKED), sep=", ")
    model(False)
    model(True)


main()
