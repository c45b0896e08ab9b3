"""Operators of the domain "made.up" as Python functions: Blur and Fold (make_model.py wrote a network with them).

It needs numpy.

    mscgym run made_up.onnx --operators made_up_operators.py --inputs made_up.npz -o out.npz
"""
import numpy as np

from mscgym import operators


def fold_types(x, **_):
    dtype, dims = x
    return (dtype, (*dims[:-1], dims[-1] // 2)), (dtype, dims[:-1])


@operators.operator("made.up", "Blur", infer=lambda x, kernel, **_: x)
def blur(x, kernel, *, step=1, gain=1.0, **_):
    moved = np.roll(x, step, axis=-1)
    return (kernel[0] * moved + kernel[1] * x) * np.float32(gain)


@operators.operator("made.up", "Fold", infer=fold_types)
def fold(x, *, mode="add"):
    half = x.shape[-1] // 2
    y = x[..., :half] + x[..., half:] if mode == "add" else x[..., :half] - x[..., half:]
    return y, y.max(axis=-1)


if __name__ == "__main__":
    operators.run()
