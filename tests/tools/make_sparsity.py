#!/usr/bin/env python3
"""Prints the expected values of test_sparsity.c, computed with numpy: each row is refitted by its
own normal equations."""
import numpy as np

from make_rounding import numbers

ROWS, COLUMNS, SAMPLES, RUN, STAGES = 6, 10, 40, 5, 8


def problem():
    x = numbers(SAMPLES * COLUMNS, 2).reshape(SAMPLES, COLUMNS).astype(np.float64)
    for k in range(1, COLUMNS):
        x[:, k] += 0.8 * x[:, k - 1]
    return numbers(ROWS * COLUMNS, 1).reshape(ROWS, COLUMNS).astype(np.float64), x.T @ x / SAMPLES


def fit(w, c, kept):
    out = np.zeros_like(w)
    for row, of, stays in zip(out, w, kept):
        row[stays] = np.linalg.solve(c[np.ix_(stays, stays)], c[stays] @ of)
    return out


def least(scores, n):
    """The n elements that are removed."""
    gone = np.zeros(scores.size, bool)
    gone[np.argsort(scores.ravel(), kind="stable")[:n]] = True
    return gone.reshape(scores.shape)


def choose(w, worth, share, pattern):
    scores = w ** 2 * worth
    if pattern is None:
        return ~least(scores, int(share * w.size + 0.5))
    kept = np.ones(w.shape, bool)
    for begin in range(0, COLUMNS, RUN):
        for first in range(begin, begin + RUN, pattern[1]):
            at = slice(first, min(first + pattern[1], begin + RUN))
            for row in range(ROWS):
                kept[row, at] = ~least(scores[row, at], max(0, len(scores[row, at]) - pattern[0]))
    return kept


def by_stages(w, c, share, pattern):
    now = w
    for stage in range(1, STAGES + 1):
        part = 1 - (1 - stage / STAGES) ** 3
        here = pattern and (pattern[1] - int((pattern[1] - pattern[0]) * part + 0.5), pattern[1])
        kept = choose(now, 1 / np.diag(np.linalg.inv(c)), share * part, here)
        now = fit(w, c, kept)
    return kept


def main():
    w, c = problem()
    for share, pattern in ((0.55, None), (0.5, (2, 4))):
        for criterion in ("l2", "energy", "hessian"):
            kept = (by_stages(w, c, share, pattern) if criterion == "hessian" else
                    choose(w, np.diag(c) if criterion == "energy" else np.ones(COLUMNS), share, pattern))
            d = fit(w, c, kept) - w
            rows = ", ".join('"' + "".join(".x"[int(k)] for k in row) + '"' for row in kept)
            print(f"{{MSC_CRITERION_{criterion.upper()}, {'true' if pattern else 'false'},")
            print(f" {{{rows}}}, {np.trace(d @ c @ d.T):.9g}}},")


if __name__ == "__main__":
    main()
