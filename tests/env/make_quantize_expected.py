#!/usr/bin/env python3
"""Prints the expected values of test_env_quantize.c: a small network quantised in numpy.

Fake quantisation follows ONNX, in float32; layers are computed in float64 and rounded to float32.
Ranges are the minimum and maximum or, for mse, found by brute force over the candidates that
tools/range.h lists.
"""
import sys

import numpy as np
from scipy.special import rel_entr, softmax

sys.path.insert(0, __file__.rsplit("/", 1)[0] + "/../tools")
from case_values import SAMPLES, values  # noqa: E402
from make_expected import by_error, by_error_of_ends_of_histogram, fake, fit, whole  # noqa: E402


def conv(x, w):
    n, _, h, width = x.shape
    padded = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (1, 1), (1, 1)))
    y = np.zeros((n, w.shape[0], h, width))
    for i in range(3):
        for j in range(3):
            y += np.einsum("nchw,oc->nohw", padded[:, :, i:i + h, j:j + width], w[:, :, i, j])
    return y.astype(np.float32)


def run(params, quantise):
    """Runs the network; quantise(name, array) returns the array as the layer reads it."""
    x, w1, w2, head = params
    y = np.maximum(conv(quantise("x:0", x), quantise("conv1.w", w1)), 0).astype(np.float32)
    y = conv(quantise("relu:0", y), quantise("conv2.w", w2))
    y = (y.astype(np.float64).mean(axis=(2, 3))).astype(np.float32)
    y = quantise("flat:0", y).astype(np.float64) @ quantise("head.w", head).astype(np.float64).T
    return y.astype(np.float32)


def ranges(array, kind, bits, weight):
    if kind == "minmax":
        return whole(array)
    # Activations are observed only through a histogram.
    find = by_error if weight else by_error_of_ends_of_histogram
    return find(array, bits, weight, weight)[1:]


def quantiser(seen, choice):
    bits, kind = choice

    def quantise(name, array):
        if name.endswith(".w"):
            rows = [fake(row, *fit(*ranges(row, kind, bits, True), bits, True, True))
                    for row in array]
            return np.array(rows, np.float32)
        scheme = fit(*ranges(seen[name], kind, bits, False), bits, False, False)
        return fake(array, *scheme).astype(np.float32)
    return quantise


def losses(y, z):
    y, z = y.astype(np.float64), z.astype(np.float64)
    mse = (((y - z) ** 2).mean(axis=1) / (y ** 2).mean()).mean()
    kl = rel_entr(softmax(y, axis=1), softmax(z, axis=1)).sum(axis=1).mean()
    cosine = (1 - (y * z).sum(axis=1) / np.linalg.norm(y, axis=1) / np.linalg.norm(z, axis=1)).mean()
    return mse, kl, cosine


def main():
    params = (values((SAMPLES, 2, 6, 6), 11), values((4, 2, 3, 3), 12), values((3, 4, 3, 3), 13),
              values((5, 3), 14))
    seen = {}

    def look(name, array):
        seen[name] = array
        return array

    y = run(params, look)
    # Labels: the float model's predicted classes, except for two samples.
    labels = y.argmax(axis=1)
    labels[[3, 7]] = (labels[[3, 7]] + 1) % 5
    print("// labels:", labels.tolist())
    choices = {"8": (8, "minmax"), "4": (4, "minmax"), "3 mse": (3, "mse")}
    for name in ("x:0", "conv1.w", "relu:0", "conv2.w", "flat:0", "head.w"):
        for label, (bits, kind) in choices.items():
            weight = name.endswith(".w")
            array = seen[name]
            rows = array if weight else [array]
            fits = [fit(*ranges(row, kind, bits, weight), bits, weight, weight) for row in rows]
            print(f"// {name} {label}:", ", ".join(f"{s:.9g}/{z}" for s, z, _, _ in fits))
    everything = {label: quantiser(seen, choice) for label, choice in choices.items()}
    float_ = lambda name, array: array  # noqa: E731
    plans = [("8",) * 6, ("4",) * 6, ("3 mse",) * 6, ("8", "4", "8", "3 mse", "8", "4"),
             ("4", None, "3 mse", "8", None, None)]
    order = ("x:0", "conv1.w", "relu:0", "conv2.w", "flat:0", "head.w")
    print("// plan: mse, kl, cosine, accuracy")
    for plan in plans:
        chosen = dict(zip(order, plan))
        z = run(params, lambda n, a: (everything[chosen[n]] if chosen[n] else float_)(n, a))
        print(plan, ", ".join(f"{v:.9g}" for v in losses(y, z)), (z.argmax(axis=1) == labels).mean())
    alone = 0
    for site in order:
        quantise = everything["4"]
        z = run(params, lambda n, a: quantise(n, a) if n == site else a)
        alone += losses(y, z)[0]
    print("// sum of the mse losses of \"4\" at each site alone:", f"{alone:.9g}")


if __name__ == "__main__":
    main()
