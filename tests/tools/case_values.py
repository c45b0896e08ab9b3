"""Weights and samples of the small network of quantize_case.h."""
import numpy as np

SAMPLES = 10


def values(shape, seed, divisor=32768.0):
    """The same numbers as quantize_array in quantize_case.c: sums of four uniform numbers."""
    state = np.uint64(seed)
    out = np.empty(int(np.prod(shape)), np.float32)
    with np.errstate(over="ignore"):
        for i in range(out.size):
            total = 0
            for _ in range(4):
                state = state * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
                total += int(state >> np.uint64(48))
            out[i] = np.float32((total - 131070) / divisor)
    return out.reshape(shape)
