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


found = []
for errors, other, tasks, base, uniform, known in SEARCHES:
    columns = [centred(np.log(errors)), centred(other), centred(np.repeat(np.array(tasks)[:, None], 2, 1))]
    deviations = np.array([np.sqrt((c ** 2).mean()) for c in columns])
    means = (np.array(uniform) - base) / 4
    a, b = np.diag([.5, .5, .5, .5 / .25]), np.array([.5 * deviations[0], 0, 0, 0])
    for (t, p), loss in known.items():
        share = 1 / sum(key[0] == t for key in known)
        row = np.array([c[t, p] / d for c, d in zip(columns, deviations)] + [1])
        a += share * np.outer(row, row)
        b += share * row * np.log(loss / means[p])
    mean, variance = np.linalg.solve(a, b)[:3], .5 * np.diag(np.linalg.inv(a))[:3]
    own = 1 / (1 / variance - 1)
    estimate = own * (mean / variance - np.array([deviations[0], 0, 0])) / deviations
    found.append((estimate, (own + .1) / deviations ** 2, deviations ** 2))
for i in range(3):
    e, v, square = (np.array([search[k][i] for search in found]) for k in range(3))
    w = 1 / v
    mean = (w * e).sum() / w.sum()
    between = max(0, (w * (e - mean) ** 2).sum() - 1) / (w.sum() - (w ** 2).sum() / w.sum())
    print(f"{{{mean:.12g}, {1 / w.sum() + between + .3 / square.sum():.12g}}},")
