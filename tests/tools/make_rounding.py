#!/usr/bin/env python3
"""Prints the expected values of test_rounding.c and test_quantizer_affine.c, computed with numpy.

GPTQ runs column by column as in the paper, without blocks, with an explicit inverse; coordinate
descent tries all integers of each weight; scales are found by brute force.
"""
import numpy as np

ROWS, COLUMNS, SAMPLES = 3, 70, 160
LONG, LONG_SAMPLES = 300, 400
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
    for k in range(1, COLUMNS):  # correlated neighbours
        x[:, k] += 0.8 * x[:, k - 1]
    x[:, 5] = 0  # an input that is always 0
    return x


def problem():
    w, x = numbers(ROWS * COLUMNS, 1).reshape(ROWS, COLUMNS), inputs()
    return w, (x.T @ x / SAMPLES).astype(np.float32)


def affine(w, q):
    """Lines fitted from outputs of q to outputs of w, for inputs whose mean is far from 0."""
    x = inputs() + 0.7
    x[:, 5] = 0
    return [np.polyfit(x @ q[r], x @ w[r].astype(np.float64), 1) for r in range(ROWS)]


def error(w, q, h):
    d = q - w.astype(np.float64)
    return np.einsum("ri,ij,rj->r", d, h.astype(np.float64), d)


def best_scales(w, h, low, high):
    """The least errors of rounding to nearest, and their scales."""
    best, scales = np.full(len(w), np.inf), np.zeros(len(w))
    for i in range(RANGES):
        s = np.abs(w).max(1).astype(np.float64) * (1.1 - 0.8 * i / RANGES) / high
        found = error(w, np.clip(np.rint(w / s[:, None]), low, high) * s[:, None], h)
        scales[found < best] = s[found < best]
        best = np.minimum(best, found)
    return best, scales


def long_rows():
    """Rows for non-negative inputs, whose second moment is mostly in one direction."""
    w = numbers(ROWS * LONG, 3).reshape(ROWS, LONG)
    x = numbers(LONG_SAMPLES * LONG, 4).reshape(LONG_SAMPLES, LONG).astype(np.float64)
    for k in range(1, LONG):
        x[:, k] += 0.8 * x[:, k - 1]
    x = np.maximum(x + 0.3, 0)
    return w, (x.T @ x / LONG_SAMPLES).astype(np.float32)


def gptq(w, h, s, low, high):
    a = h.astype(np.float64).copy()
    dead = np.diag(a) <= 0
    a[dead, dead] = 1
    order = np.argsort(-np.diag(a), kind="stable")
    a += 0.01 * np.diag(a).mean() * np.eye(len(a))
    inverse = np.linalg.inv(a[np.ix_(order, order)])
    left = w.astype(np.float64)[:, order]
    codes = np.zeros(w.shape, int)
    for k in range(len(order)):
        codes[:, order[k]] = np.clip(np.rint(left[:, k] / s), low, high)
        e = (left[:, k] - codes[:, order[k]] * s) / inverse[0, 0]
        left[:, k:] -= np.outer(e, inverse[0])
        # Removes this column: the inverse of the remaining matrix.
        inverse = inverse[1:, 1:] - np.outer(inverse[1:, 0], inverse[0, 1:]) / inverse[0, 0]
    return codes


def descend(w, h, s, codes, low, high):
    codes = codes.copy()
    for _ in range(50):
        before = codes.copy()
        for r in range(len(w)):
            for k in range(len(h)):
                if h[k, k] <= 0:
                    continue
                trials = np.repeat(codes[r][None].astype(np.float64), high - low + 1, 0)
                trials[:, k] = np.arange(low, high + 1)
                d = trials * s[r] - w[r].astype(np.float64)
                codes[r, k] = low + np.einsum("ti,ij,tj->t", d, h.astype(np.float64), d).argmin()
        if (codes == before).all():
            return codes
    raise SystemExit("no end")


def affine_windows():
    """The windows that the convolution of test_quantizer_affine.c multiplies, and its weights."""
    def values(n, seed):
        parts, state = [], seed
        for _ in range(4 * n):
            state = (state * 6364136223846793005 + 1442695040888963407) % 2 ** 64
            parts.append(state >> 48)
        return (np.array(parts).reshape(n, 4).sum(1) - 131070) / 32768
    x = values(10 * 2 * 36, 11).reshape(10, 2, 6, 6) + 3
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), (2, 3))
    return windows.transpose(0, 2, 3, 1, 4, 5).reshape(160, 18), values(4 * 18, 21).reshape(4, 18)


def affine_errors(bits):
    """Mean squared errors of the outputs: weights are rounded by the second moments around the
    means, alternating with the best gain, then corrected by the best line."""
    x, w = affine_windows()
    high, low = 2 ** (bits - 1) - 1, -2 ** (bits - 1)
    around = x - x.mean(0)
    h = around.T @ around / len(x)
    s = best_scales(w, h, low, high)[1]
    codes = descend(w, h, s, gptq(w, h, s, low, high), low, high)
    for _ in range(2):
        q = codes * s[:, None]
        s = s * np.einsum("ri,ij,rj->r", w, h, q) / np.einsum("ri,ij,rj->r", q, h, q)
        codes = descend(w, h, s, codes, low, high)
    found = []
    for r in range(len(w)):
        line = np.polyfit(x @ codes[r], x @ w[r], 1)
        found.append(np.mean((np.polyval(line, x @ codes[r]) - x @ w[r]) ** 2))
    return found


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
    print("least_errors", [float(f"{e:.9g}") for e in best_scales(w, h, low, high)[0]])
    w, h = long_rows()
    print("least_errors_of_long_rows", [float(f"{e:.9g}") for e in best_scales(w, h, -128, 127)[0]])
    print("affine_errors", [float(f"{e:.9g}") for e in affine_errors(3)])


if __name__ == "__main__":
    main()
