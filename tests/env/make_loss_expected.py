#!/usr/bin/env python3
"""Prints the expected values of test_loss.c, computed with scipy in double."""
import numpy as np
from scipy.spatial.distance import cosine
from scipy.special import rel_entr, softmax


def sample(n):
    """The same numbers as fill in test_loss.c; they are exact in float32."""
    i = np.arange(n, dtype=np.uint64) + np.uint64(1000)
    bits = (i * np.uint64(2654435761)) & np.uint64(0xFFFFFFFF)
    return (bits >> np.uint64(12)).astype(np.float64) / 65536 - 8


def change(n):
    """The same numbers as `change` in test_loss.c; sums with those of fill are exact in float32."""
    bits = (np.arange(n, dtype=np.uint64) * np.uint64(2246822519)) & np.uint64(0xFFFFFFFF)
    return ((bits >> np.uint64(22)).astype(np.float64) - 512) / 8192


def main():
    for outer, axis, inner in ((1, 10, 1), (3, 5, 4), (1, 1000, 1), (2, 3, 7), (24, 1, 1)):
        n = outer * axis * inner
        y = sample(n)
        z = y + change(n)
        shape = (outer, axis, inner)
        p, q = softmax(y.reshape(shape), axis=1), softmax(z.reshape(shape), axis=1)
        kl_logits = rel_entr(p, q).sum(axis=1).mean()
        a, b = np.abs(y) + 1, np.abs(z) + 1
        a = (a.reshape(shape) / a.reshape(shape).sum(axis=1, keepdims=True)).astype(np.float32)
        b = (b.reshape(shape) / b.reshape(shape).sum(axis=1, keepdims=True)).astype(np.float32)
        kl_probs = rel_entr(a.astype(np.float64), b.astype(np.float64)).sum(axis=1).mean()
        print("    {{%d, %d, %d}, %.17g, %.17g, %.17g, %.17g, %.17g}," % (
            outer, axis, inner, np.mean((y - z) ** 2), np.sum(y * y), cosine(y, z), kl_logits,
            kl_probs))


if __name__ == "__main__":
    main()
