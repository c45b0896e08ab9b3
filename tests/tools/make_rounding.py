#!/usr/bin/env python3
"""Prints the expected values of test_rounding.c, computed with numpy.

GPTQ is column by column as in the paper's algorithm, without blocks, by the inverse itself;
coordinate descent tries all integers of each weight; scales are found by brute force.
"""
import numpy as np

ROWS, COLUMNS, SAMPLES = 3, 70, 160
RANGES = 80


def numbers(n, seed):
    """The same numbers as `fill` in test_rounding.c."""
    state = np.uint64(seed)
    out = np.empty(n, np.float32)
    with np.errstate(over="ignore"):
        for i in range(n):
            state = state * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
            out[i] = np.float32(int(state >> np.uint64(48)) - 32768) / np.float32(32768)
    return out


def inputs():
    x = numbers(SAMPLES * COLUMNS, 2).reshape(SAMPLES, COLUMNS).astype(np.float64)
    for k in range(1, COLUMNS):  # neighbours that go together
        x[:, k] += 0.8 * x[:, k - 1]
    x[:, 5] = 0  # an input that is always 0
    return x


def problem():
    w, x = numbers(ROWS * COLUMNS, 1).reshape(ROWS, COLUMNS), inputs()
    return w, (x.T @ x / SAMPLES).astype(np.float32)


def affine(w, q):
    """The lines through (outputs of q, outputs of w), of inputs whose mean is far from 0."""
    x = inputs() + 0.7
    x[:, 5] = 0
    return [np.polyfit(x @ q[r], x @ w[r].astype(np.float64), 1) for r in range(ROWS)]


def error(w, q, h):
    d = q - w.astype(np.float64)
    return np.einsum("ri,ij,rj->r", d, h.astype(np.float64), d)


def best_scales(w, h, low, high):
    best = np.full(ROWS, np.inf)
    for i in range(RANGES):
        s = (np.abs(w).max(1).astype(np.float64) * (1.1 - 0.8 * i / RANGES) / high)[:, None]
        best = np.minimum(best, error(w, np.clip(np.rint(w / s), low, high) * s, h))
    return best


def gptq(w, h, s, low, high):
    a = h.astype(np.float64).copy()
    dead = np.diag(a) <= 0
    a[dead, dead] = 1
    order = np.argsort(-np.diag(a), kind="stable")
    a += 0.01 * np.diag(a).mean() * np.eye(COLUMNS)
    inverse = np.linalg.inv(a[np.ix_(order, order)])
    left = w.astype(np.float64)[:, order]
    codes = np.zeros(w.shape, int)
    for k in range(COLUMNS):
        codes[:, order[k]] = np.clip(np.rint(left[:, k] / s), low, high)
        e = (left[:, k] - codes[:, order[k]] * s) / inverse[0, 0]
        left[:, k:] -= np.outer(e, inverse[0])
        # Without this column: the inverse of what is left of the matrix.
        inverse = inverse[1:, 1:] - np.outer(inverse[1:, 0], inverse[0, 1:]) / inverse[0, 0]
    return codes


def descend(w, h, s, codes, low, high):
    codes = codes.copy()
    for _ in range(50):
        before = codes.copy()
        for r in range(ROWS):
            for k in range(COLUMNS):
                if h[k, k] <= 0:
                    continue
                trials = np.repeat(codes[r][None].astype(np.float64), high - low + 1, 0)
                trials[:, k] = np.arange(low, high + 1)
                d = trials * s[r] - w[r].astype(np.float64)
                codes[r, k] = low + np.einsum("ti,ij,tj->t", d, h.astype(np.float64), d).argmin()
        if (codes == before).all():
            return codes
    raise SystemExit("no end")


def show(name, codes):
    text = ", ".join(str(c) for c in codes.ravel())
    print(f"static const int8_t {name}[] = {{{text}}};")


def main():
    w, h = problem()
    bits = 3
    high, low = 2 ** (bits - 1) - 1, -2 ** (bits - 1)
    s = (np.abs(w).max(1) / np.float32(high)).astype(np.float32).astype(np.float64)
    nearest = np.clip(np.rint(w / s[:, None]), low, high).astype(int)
    g = gptq(w, h, s, low, high)
    d = descend(w, h, s, nearest, low, high)
    show("gptq_integers", g)
    show("descended_integers", d)
    for name, q in (("nearest", nearest), ("gptq", g), ("descended", d)):
        print(f"{name}_errors", [float(f"{e:.9g}") for e in error(w, q * s[:, None], h)])
    lines = affine(w, nearest * s[:, None])
    print("gains, shifts", [[float(f"{v:.9g}") for v in line] for line in lines])
    print("least_errors", [float(f"{e:.9g}") for e in best_scales(w, h, low, high)])


if __name__ == "__main__":
    main()
