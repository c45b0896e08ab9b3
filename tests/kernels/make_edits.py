#!/usr/bin/env python3
"""Writes edits_expected.h, the results of joints under edits computed by numpy, for test_edits.c.

Joints, numbers and edits equal those of test_edits.c. Sums are exact in int64 or float64. In
integer arithmetic every later step is in float32: y = t * float32(sum), y += bias.
"""
import sys

import numpy as np

f = np.float32


def numbers(n, factor, modulus, divisor):
    return ((np.arange(n) * factor % modulus - modulus // 2) / divisor).astype(f)


class Joint:
    def __init__(self, x, w, groups, padding, channels, out_axis):
        self.x = numbers(np.prod(x), 37, 101, 16).reshape(x)
        self.w = numbers(np.prod(w), 53, 97, 64).reshape(w)
        self.b = numbers(channels, 29, 31, 8)
        self.other_w = numbers(np.prod(w), 41, 89, 32).reshape(w)
        self.other_b = numbers(channels, 13, 17, 4)
        self.groups, self.padding, self.out_axis = groups, padding, out_axis

    def sums(self, x, w):
        if x.ndim == 2:
            return x @ w.T
        if self.out_axis == 1:  # without padding, everything is transposed
            w = np.flip(w.swapaxes(0, 1), (2, 3))
        n, c, height, width = x.shape
        p, k = self.padding, w.shape[2]
        padded = np.zeros((n, c, height + 2 * p, width + 2 * p), x.dtype)
        padded[:, :, p:p + height, p:p + width] = x
        y = np.zeros((n, w.shape[0], height + 2 * p - k + 1, width + 2 * p - k + 1), x.dtype)
        per_in, per_out = c // self.groups, w.shape[0] // self.groups
        for o in range(w.shape[0]):
            first = o // per_out * per_in
            for i in range(y.shape[2]):
                for j in range(y.shape[3]):
                    window = padded[:, first:first + per_in, i:i + k, j:j + k]
                    y[:, o, i, j] = (window * w[o]).sum((1, 2, 3))
        return y


X_SCALE, X_ZERO, STEP, SHIFT = f(0.053), 117, f(0.03), f(0.37)


def masked(a, axis, period):
    """Sets channels period - 1, 2 * period - 1, ... to 0."""
    kept = np.arange(a.shape[axis]) % period != period - 1
    shape = [1] * a.ndim
    shape[axis] = -1
    return np.where(kept.reshape(shape), a, f(0)).astype(f)


def quantised(a, scale, zero, low, high):
    return np.clip(np.rint((a / scale).astype(f)) + zero, low, high).astype(np.int64) - zero


def rounded(b, step, shift=f(0)):
    q = np.clip(np.rint(((b + shift) / step).astype(f)).astype(np.float64), -2**31, 2**31 - 1)
    return q.astype(np.int64)


def run(joint, case):
    x, w, b = joint.x, joint.w, joint.b
    w_scales = (f(0.006) + f(0.001) * np.arange(w.shape[joint.out_axis]).astype(f)).astype(f)
    shape = [1] * w.ndim
    shape[joint.out_axis] = -1
    w = joint.other_w if 'w' in case else w
    b = joint.other_b if 'b' in case else b
    b = (b * f(1e4)).astype(f) if 'L' in case else b
    b = (b * f(1e9)).astype(f) if 'H' in case else b
    x = masked(x, 1, 3) if 'X' in case else x
    w = masked(w, joint.out_axis, 2) if 'W' in case else w
    b = masked(b, 0, 2) if 'B' in case else b
    by_channel = [1, -1] + [1] * (x.ndim - 2)
    channels = joint.b.size
    shift = SHIFT if 's' in case else f(0)
    if 'q' not in case:
        b = rounded(b, STEP, shift).astype(f) * STEP - shift if 'r' in case else b
        y = joint.sums(x.astype(np.float64), w.astype(np.float64))
        return (y + b.reshape(by_channel)).astype(f)
    qx = quantised(x, X_SCALE, X_ZERO, 0, 255)
    qw = quantised(w, w_scales.reshape(shape), 0, -127, 127)
    sums = joint.sums(qx, qw)
    t = (X_SCALE * w_scales).astype(f)
    t = np.resize(t, channels)
    if 'j' in case:  # rounded to the step of the integer sums
        q = rounded(b, t, shift)
        if 'H' not in case and 's' not in case:
            return (t.reshape(by_channel) * (sums + q.reshape(by_channel)).astype(f)).astype(f)
        b = q.astype(f) * t - shift
    b = (rounded(b, STEP).astype(f) * STEP).astype(f) if 'r' in case else b
    return ((t.reshape(by_channel) * sums.astype(f)).astype(f) + b.reshape(by_channel)).astype(f)


JOINTS = {
    'conv': Joint((1, 6, 4, 4), (4, 6, 3, 3), 1, 1, 4, 0),
    'depthwise': Joint((1, 8, 3, 3), (8, 1, 3, 3), 8, 1, 8, 0),
    'grouped': Joint((1, 8, 3, 3), (4, 4, 2, 2), 2, 0, 4, 0),
    'transposed': Joint((1, 5, 3, 3), (5, 3, 2, 2), 1, 1, 3, 1),
    'linear': Joint((3, 9), (5, 9), 1, 0, 5, 0),
}
CASES = ['', 'X', 'w', 'wW', 'b', 'r', 'bB', 'wbXr', 'q', 'qX', 'qw', 'qwW', 'qb', 'qr', 'qj',
         'qjL', 'qjH', 'qwbXWBj', 'rs', 'qjs', 'qbjs']


def main():
    out = ['// Made by make_edits.py with numpy %s.' % np.__version__,
           'static const char *const cases[] = {%s};' % ', '.join('"%s"' % c for c in CASES)]
    for name, joint in JOINTS.items():
        results = [run(joint, case).ravel() for case in CASES]
        out.append('static const uint32_t %s_expected[%d][%d] = {' %
                   (name, len(CASES), results[0].size))
        for r in results:
            words = ['0x%08x' % v for v in r.view(np.uint32)]
            lines = [', '.join(words[i:i + 8]) for i in range(0, len(words), 8)]
            out.append('    {' + ',\n     '.join(lines) + '},')
        out.append('};')
    sys.stdout.write('\n'.join(out) + '\n')


if __name__ == '__main__':
    main()
