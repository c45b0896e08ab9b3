#!/usr/bin/env python3
"""Prints the expected values of test_auto.c: posterior means and standard deviations of the pair
model, computed from its definition with dense matrices.

Three tasks have three choices. Every single choice of the first two tasks is known, and the
cheapest one of the third. The strengths maximise the marginal likelihood over the whole grid. The
second set of numbers treats two points as estimates; the third uses other values and the likelier
correlation. Then come standard deviations, without and with the point BELIEVED.
"""
import itertools

import numpy as np

CORRELATIONS = (0.5, 0.0)
MEANS = np.array([[0, 0.5, 2.0], [0, 0.25, 1.0], [0, 0.75, 3.0]])
KNOWN = np.array([[1, 1, 1], [1, 1, 1], [1, 0, 1]], bool)
BASE = 0.125
POINTS = np.array([[1, 1, 0], [2, 2, 0], [2, 0, 2], [0, 1, 1], [1, 2, 2], [2, 1, 1], [2, 2, 2]])
ERRORS = np.array([0, 0.2, 0, 0, 0, 0, 0.2])
BELIEVED = np.array([1, 2, 1])
VALUES = np.array([1.0, 4.5, 4.0, 1.25, 5.5, 3.75, 8.0])
OTHER_VALUES = np.array([1.12, 3.38, 6.12, 2.12, 4.12, 2.12, 7.62])
GRIDS = ((0.1, 0.3, 1.0), (0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 2.0), (0.001, 0.02, 0.06, 0.15))


def scales():
    s = np.abs(MEANS)
    s = np.maximum(s, 0.02 * np.sort(s[s > 0])[(s > 0).sum() // 2])
    s[:, 0] = 0
    return s


def covariance(x, z, unknown, pairs, correlation):
    s, sum_alone, sum_pairs = scales(), 0.0, 0.0
    for t in range(3):
        if x[t] == z[t] and not KNOWN[t, x[t]]:
            sum_alone += (unknown * s[t, x[t]]) ** 2

    def of_task(t):
        return np.sqrt(s[t, x[t]] * s[t, z[t]]) * (1 if x[t] == z[t] else correlation)
    for i, j in itertools.combinations(range(3), 2):
        sum_pairs += pairs ** 2 * of_task(i) * of_task(j)
    return sum_alone + sum_pairs


def matrices(strengths, errors, correlation, values=VALUES):
    unknown, pairs, noise = strengths
    k = np.array([[covariance(x, z, unknown, pairs, correlation) for z in POINTS] for x in POINTS])
    distance = values - BASE
    spread = noise * np.maximum(distance, distance[distance > 0].min())
    error = errors * np.maximum(distance, distance[distance > 0].min())
    k += np.diag(spread ** 2 + error ** 2 + 1e-8 * np.mean(np.diag(k)))
    residuals = values - BASE - MEANS[np.arange(3), POINTS].sum(1)
    return k, residuals


def likelihood(strengths, errors, correlation, values):
    k, r = matrices(strengths, errors, correlation, values)
    return -0.5 * r @ np.linalg.solve(k, r) - 0.5 * np.linalg.slogdet(k)[1]


def choose(errors, correlation, values=VALUES):
    """The greatest likelihood and the grid point that has it."""
    return max((likelihood([g[i] for g, i in zip(GRIDS, p)], errors, correlation, values), p)
               for p in itertools.product(*(range(len(g)) for g in GRIDS)))


def show(errors, correlation, values=VALUES):
    places = choose(errors, correlation, values)[1]
    strengths = [g[i] for g, i in zip(GRIDS, places)]
    print("correlation", correlation, "strengths", places)
    k, r = matrices(strengths, errors, correlation, values)
    weights = np.linalg.solve(k, r)
    for x in itertools.product(range(3), repeat=3):
        row = np.array([covariance(x, z, *strengths[:2], correlation) for z in POINTS])
        print(f"    {BASE + MEANS[np.arange(3), x].sum() + row @ weights:.12g},")


def show_spreads(believed):
    """Standard deviations at all points, with `believed` points added as exact."""
    strengths = [g[i] for g, i in zip(GRIDS, choose(0 * ERRORS, 0.5)[1])]
    k = matrices(strengths, 0 * ERRORS, 0.5)[0]
    points = list(POINTS) + believed

    def of(x, z):
        return covariance(x, z, *strengths[:2], 0.5)
    whole = np.array([[of(x, z) for z in points] for x in points])
    whole[:len(POINTS), :len(POINTS)] = k
    print("spreads")
    for x in itertools.product(range(3), repeat=3):
        row = np.array([of(x, z) for z in points])
        left = of(x, x) - row @ np.linalg.solve(whole, row)
        print(f"    {np.sqrt(max(left, 0)):.9g},")


show(0 * ERRORS, 0.5)
show(ERRORS, 0.5)
show(0 * ERRORS, max(CORRELATIONS, key=lambda c: choose(0 * ERRORS, c, OTHER_VALUES)[0]), OTHER_VALUES)
show_spreads([])
show_spreads([BELIEVED])
