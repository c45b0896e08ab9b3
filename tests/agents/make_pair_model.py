#!/usr/bin/env python3
"""The numbers in test_pair_model.c: posterior means by the definition of the model, with dense matrices.

Three tasks of three choices; every choice of the first two is known alone, of the third only the
cheapest. Strengths: those of the greatest marginal likelihood on the whole grid. The second numbers are of two
points being estimates.
"""
import itertools

import numpy as np

RHO = 0.5
MEANS = np.array([[0, 0.5, 2.0], [0, 0.25, 1.0], [0, 0.75, 3.0]])
KNOWN = np.array([[1, 1, 1], [1, 1, 1], [1, 0, 1]], bool)
BASE = 0.125
POINTS = np.array([[1, 1, 0], [2, 2, 0], [2, 0, 2], [0, 1, 1], [1, 2, 2], [2, 1, 1], [2, 2, 2]])
ERRORS = np.array([0, 0.2, 0, 0, 0, 0, 0.2])
VALUES = np.array([1.0, 4.5, 4.0, 1.25, 5.5, 3.75, 8.0])
GRIDS = ((0.1, 0.3, 1.0), (0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 2.0), (0.001, 0.02, 0.06, 0.15))


def scales():
    s = np.abs(MEANS)
    s = np.maximum(s, 0.02 * np.sort(s[s > 0])[(s > 0).sum() // 2])
    s[:, 0] = 0
    return s


def covariance(x, z, unknown, pairs):
    s, sum_alone, sum_pairs = scales(), 0.0, 0.0
    for t in range(3):
        if x[t] == z[t] and not KNOWN[t, x[t]]:
            sum_alone += (unknown * s[t, x[t]]) ** 2

    def of_task(t):
        return np.sqrt(s[t, x[t]] * s[t, z[t]]) * (1 if x[t] == z[t] else RHO)
    for i, j in itertools.combinations(range(3), 2):
        sum_pairs += pairs ** 2 * of_task(i) * of_task(j)
    return sum_alone + sum_pairs


def matrices(strengths, errors):
    unknown, pairs, noise = strengths
    k = np.array([[covariance(x, z, unknown, pairs) for z in POINTS] for x in POINTS])
    distance = VALUES - BASE
    spread = noise * np.maximum(distance, distance[distance > 0].min())
    error = errors * np.maximum(distance, distance[distance > 0].min())
    k += np.diag(spread ** 2 + error ** 2 + 1e-8 * np.mean(np.diag(k)))
    residuals = VALUES - BASE - MEANS[np.arange(3), POINTS].sum(1)
    return k, residuals


def likelihood(strengths, errors):
    k, r = matrices(strengths, errors)
    return -0.5 * r @ np.linalg.solve(k, r) - 0.5 * np.linalg.slogdet(k)[1]


def show(errors):
    places = max(itertools.product(*(range(len(g)) for g in GRIDS)),
                 key=lambda p: likelihood([g[i] for g, i in zip(GRIDS, p)], errors))
    strengths = [g[i] for g, i in zip(GRIDS, places)]
    print("strengths", places)
    k, r = matrices(strengths, errors)
    weights = np.linalg.solve(k, r)
    for x in itertools.product(range(3), repeat=3):
        row = np.array([covariance(x, z, *strengths[:2]) for z in POINTS])
        print(f"    {BASE + MEANS[np.arange(3), x].sum() + row @ weights:.12g},")


show(0 * ERRORS)
show(ERRORS)
