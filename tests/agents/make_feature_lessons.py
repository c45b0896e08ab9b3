#!/usr/bin/env python3
"""Prints the expected values of test_feature_lessons.c: coefficients of features that two searches
teach, computed with numpy from the definition in agents/feature_lessons.h.

Each search has four tasks of three choices, and three numbers: the error of a choice (a logarithm),
another number of a choice, and one of a task. Uniform plans give the mean losses of the two positions.
"""
import numpy as np

SEARCHES = (  # errors, other, of tasks, base, uniform plans, {(task, position - 1): isolated loss}
    ([[1, 8], [2, 4], [4, 32], [.5, 16]], [[1, 1.5], [1.25, 1], [np.nan, np.nan], [1.75, 1.5]], [1, 1.5, 1, 1.25],
     .5, [2.5, 8.5], {(0, 1): 1.0, (1, 1): 3.0, (2, 0): .25}),
    ([[3, 9], [1, 5], [2, 40], [6, 7]], [[1, 1.5], [1.25, 1], [1.5, 1.25], [1.75, 1.5]], [1.5, 1, 1.25, 1.75],
     2.0, [3.0, 6.0], {(0, 0): .5, (0, 1): 1.5, (1, 0): .125, (3, 1): 2.0}),
)


def centred(values):
    values = np.asarray(values, float)
    values = values - np.nanmean(values, axis=0)
    return np.where(np.isnan(values), 0, values)


matrix, vector = np.zeros((3, 3)), np.zeros(3)
for errors, other, tasks, base, uniform, known in SEARCHES:
    columns = [centred(np.log(errors)), centred(other), centred(np.repeat(np.array(tasks)[:, None], 2, 1))]
    squares = np.array([(c ** 2).mean() for c in columns])
    means = (np.array(uniform) - base) / 4
    a, b = np.zeros((4, 4)), np.zeros(4)
    for (t, p), loss in known.items():
        share = 1 / sum(key[0] == t for key in known)
        row = np.array([c[t, p] for c in columns] + [1])
        a += share * np.outer(row, row)
        b += share * row * np.log(loss / means[p])
    a[3, 3] += .5 / .25
    # Eliminating the level is the same as dropping it from the inverse.
    left = a[:3, :3] - np.outer(a[:3, 3], a[:3, 3]) / a[3, 3]
    matrix += left + .5 * np.diag(squares)
    vector += b[:3] - a[:3, 3] * b[3] / a[3, 3] + .5 * squares * [1, 0, 0]
for mean, variance in zip(np.linalg.solve(matrix, vector), .5 * np.diag(np.linalg.inv(matrix))):
    print(f"{{{mean:.12g}, {variance:.12g}}},")
