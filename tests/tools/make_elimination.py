#!/usr/bin/env python3
"""Prints the expected values of test_elimination.c, computed with numpy. A unit's score is the
increase of the least squared error of the outputs if it is removed, where the rows are refitted
by least squares each time."""
import numpy as np

from make_rounding import numbers

ROWS, COLUMNS, SAMPLES, UNITS, STEP = 3, 360, 600, 37, 40
GOING = ([], [5], [1, 20, 36], [u for u in range(UNITS) if u not in (1, 5, 7, 12, 20, 36)])
ASKED = (7, 12)


def columns_of(units):
    return [k for k in range(COLUMNS) if k % STEP in units]


def problem():
    x = numbers(SAMPLES * COLUMNS, 2).reshape(SAMPLES, COLUMNS).astype(np.float64)
    for k in range(1, COLUMNS):
        x[:, k] += 0.8 * x[:, k - 1]
    return numbers(ROWS * COLUMNS, 1).reshape(ROWS, COLUMNS).astype(np.float64), x.T @ x / SAMPLES


def error(w, c, gone):
    """tr(d C d') for the best rows without these columns."""
    kept = np.setdiff1d(np.arange(COLUMNS), gone)
    if len(gone) == 0:
        return 0
    left = c[np.ix_(gone, gone)] - c[np.ix_(gone, kept)] @ np.linalg.solve(
        c[np.ix_(kept, kept)], c[np.ix_(kept, gone)])
    return np.trace(w[:, gone] @ left @ w[:, gone].T)


def main():
    w, c = problem()
    gone = []
    for going in GOING:
        gone = gone + going
        before = error(w, c, columns_of(gone))
        print("{" + ", ".join(f"{error(w, c, columns_of(gone + [unit])) - before:.12g}"
                              for unit in ASKED) + "},")


if __name__ == "__main__":
    main()
