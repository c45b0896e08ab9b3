#!/usr/bin/env python3
"""Prints the expected values of test_range.c, computed with numpy and PyTorch.

It does not follow the C sources: ranges are found by brute force over the candidates that
tools/range.h lists, histograms come from numpy, and scales from PyTorch's observers.
"""
import numpy as np
import torch
from torch.ao.quantization import MinMaxObserver

BINS = 4096
CANDIDATES = 96


def values(n, shape):
    """The same numbers as fill_values in test_range.c."""
    state = np.uint64(1)
    out = np.empty(n, np.float32)
    with np.errstate(over="ignore"):
        for i in range(n):
            total = 0
            for _ in range(4):
                state = state * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
                total += int(state >> np.uint64(48))
            out[i] = np.float32((total - 131070) / 16384)
    if shape == "heavy":
        out = out * out * out
    if shape == "relu":
        out = np.maximum(out, np.float32(0))
    if shape == "skew":
        out = np.where(out < 0, out, out * out * out)
    return out.astype(np.float32)


def limits(bits, symmetric, weight):
    half = 1 << (bits - 1)
    if not symmetric:
        return 0, 2 * half - 1
    return (-(half - 1) if weight else -half), half - 1


def fit(low, high, bits, symmetric, weight):
    qmin, qmax = limits(bits, symmetric, weight)
    if symmetric:
        return np.float32(max(-float(low), float(high)) / qmax), 0, qmin, qmax
    scale = np.float32((float(high) - float(low)) / qmax)
    zero = int(np.clip(np.rint(-float(low) / float(scale)), qmin, qmax))
    return scale, zero, qmin, qmax


def fake(x, scale, zero, qmin, qmax):
    q = np.clip(np.rint(x / scale) + zero, qmin, qmax)
    return (q - zero) * scale


def candidates(low, high):
    for c in range(CANDIDATES):
        f = 1.0 - 0.75 * c / CANDIDATES
        yield np.float32(low * f), np.float32(high * f)


def whole(x):
    return min(float(x.min()), 0.0), max(float(x.max()), 0.0)


def by_error(x, bits, symmetric, weight):
    best = None
    for low, high in candidates(*whole(x)):
        y = fake(x, *fit(low, high, bits, symmetric, weight))
        error = np.sum((x.astype(np.float64) - y.astype(np.float64)) ** 2)
        if best is None or error < best[0]:
            best = error, low, high
    return best


def by_error_of_histogram(x, bits, symmetric, weight):
    bottom, top = whole(x)
    counts, edges = np.histogram(x.astype(np.float64), BINS, (bottom, top))
    centre = (edges[1:] + edges[:-1]) / 2
    best = None
    for low, high in candidates(bottom, top):
        scale, zero, qmin, qmax = fit(low, high, bits, symmetric, weight)
        y = fake(centre, np.float64(scale), zero, qmin, qmax)
        error = np.sum(counts * (centre - y) ** 2)
        if best is None or error < best[0]:
            best = error, low, high
    return best


def by_error_of_ends(x, bits, symmetric, weight, counts=None):
    """Each end is at one of CANDIDATES positions: first the best pair of equal positions, then one
    end at a time, the higher first, until neither moves. `counts` are the frequencies of `x`."""
    whole_range = whole(x) if counts is None else counts[1]
    weights = 1 if counts is None else counts[0]
    x = x.astype(np.float64)
    known = {}

    def ends(low, high):
        return (np.float32(whole_range[0] * (1 - low / CANDIDATES)),
                np.float32(whole_range[1] * (1 - high / CANDIDATES)))

    def error(low, high):
        if (low, high) not in known:
            scale, zero, qmin, qmax = fit(*ends(low, high), bits, symmetric, weight)
            # Values are rounded in float32, bins of a histogram in double.
            y = fake(x.astype(np.float32), scale, zero, qmin, qmax) if counts is None else \
                fake(x, np.float64(scale), zero, qmin, qmax)
            known[low, high] = np.sum(weights * (x - y) ** 2)
        return known[low, high]

    low = high = min(range(CANDIDATES), key=lambda c: error(c, c))
    while True:
        before = low, high
        best = min(range(CANDIDATES), key=lambda c: error(low, c))
        high = best if error(low, best) < error(low, high) else high
        best = min(range(CANDIDATES), key=lambda c: error(c, high))
        low = best if error(best, high) < error(low, high) else low
        if (low, high) == before:
            return (error(low, high), *ends(low, high))


def by_error_of_ends_of_histogram(x, bits, symmetric, weight):
    counts, edges = np.histogram(x.astype(np.float64), BINS, whole(x))
    return by_error_of_ends((edges[1:] + edges[:-1]) / 2, bits, symmetric, weight,
                            (counts, whole(x)))


def row(*numbers):
    print("    {" + ", ".join(str(n) for n in numbers) + "},")


def number(x):
    return f"{np.float32(x):.9g}f" if "." in f"{np.float32(x):.9g}" else f"{np.float32(x):.9g}.0f"


def main():
    print("// scheme_fit: low, high, bits, symmetric, weight, scale, zero point")
    for low, high in ((-1, 1), (0, 6), (-0.3, 2.7), (-4, 0), (-7.5, 0.1)):
        for bits, symmetric, weight in ((8, 0, 0), (4, 0, 0), (8, 1, 1), (4, 1, 1), (16, 0, 0)):
            qmin, qmax = limits(bits, symmetric, weight)
            kind = torch.per_tensor_symmetric if symmetric else torch.per_tensor_affine
            observer = MinMaxObserver(dtype=torch.qint32, qscheme=kind, quant_min=qmin,
                                      quant_max=qmax)
            observer(torch.tensor([low, high], dtype=torch.float32))
            scale, zero = observer.calculate_qparams()
            row(number(low), number(high), bits, symmetric, weight, number(scale.item()), int(zero))
    for shape in ("bell", "heavy", "relu", "skew"):
        x = values(20000, shape)
        print(f"// {shape}: min, max, sum", number(x.min()), number(x.max()),
              repr(float(np.sum(x.astype(np.float64)))))
        # No percentile hits a value exactly, where numpy's own rounding could go either way.
        for p in (99.993, 99.913, 98.7654, 91.237, 100.0):
            high = np.percentile(x, p, method="inverted_cdf")
            low = -np.percentile(-x, p, method="inverted_cdf")
            print("// percentile: shape, p, low, high")
            row(f"SHAPE_{shape.upper()}", p, number(min(low, 0)), number(max(high, 0)))
        for name, find in (("mse of values", by_error), ("mse of histogram", by_error_of_histogram),
                           ("mse apart of values", by_error_of_ends),
                           ("mse apart of histogram", by_error_of_ends_of_histogram)):
            print(f"// {name}: shape, bits, symmetric, weight, low, high, score")
            for bits, symmetric, weight in ((8, 0, 0), (6, 0, 0), (4, 0, 0), (3, 1, 0), (4, 1, 1)):
                if "apart" in name and symmetric:
                    continue
                score, low, high = find(x, bits, symmetric, weight)
                row(f"SHAPE_{shape.upper()}", bits, symmetric, weight, number(low), number(high),
                    f"{score:.6g}")


if __name__ == "__main__":
    main()
