#!/usr/bin/env python3
"""Prints the expected values of test_env_prune.c. Channels of the small network of
make_quantize_expected.py are pruned in numpy by the formulas of tools/pruner.h, over all
positions of all samples in float64."""
import sys

import numpy as np

sys.path.insert(0, __file__.rsplit("/", 1)[0] + "/../tools")
from case_values import SAMPLES, values  # noqa: E402

RIDGE = 1e-3


def windows(x):
    """The windows that a 3x3 convolution multiplies, as rows: [positions, channels * 9]."""
    n, c, h, w = x.shape
    padded = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (1, 1), (1, 1)))
    taps = [padded[:, :, i:i + h, j:j + w] for i in range(3) for j in range(3)]
    return np.stack(taps, 2).transpose(0, 3, 4, 1, 2).reshape(n * h * w, c * 9)


def conv(x, w):
    n, _, h, width = x.shape
    y = windows(x) @ w.reshape(len(w), -1).astype(np.float64).T
    return y.reshape(n, h, width, len(w)).transpose(0, 3, 1, 2).astype(np.float32)


def mse(y, z):
    return ((y - z) ** 2).mean() / (y ** 2).mean()


def damped(c):
    return c + RIDGE * np.diag(c).mean() * np.eye(len(c))


def repair(w, c, kept):
    """Rows w [rows, columns] whose kept columns are refitted to compensate for the others, now 0."""
    gone = np.setdiff1d(np.arange(w.shape[1]), kept)
    out = np.zeros_like(w)
    out[:, kept] = w[:, kept] + w[:, gone] @ c[np.ix_(gone, kept)] @ np.linalg.inv(
        c[np.ix_(kept, kept)] + RIDGE * np.diag(c).mean() * np.eye(len(kept)))
    return out


def order(criterion, maker, w, c, size):
    """The units in the order in which they are pruned."""
    n = maker.shape[0]
    rows = maker.reshape(n, -1).astype(np.float64)
    if criterion == "l1":
        return np.argsort(np.abs(rows).sum(1), kind="stable")
    if criterion == "l2":
        return np.argsort((rows ** 2).sum(1), kind="stable")
    blocks = [slice(u * size, (u + 1) * size) for u in range(n)]
    if criterion == "energy":
        return np.argsort([np.trace(w[:, b] @ c[b, b] @ w[:, b].T) for b in blocks], kind="stable")
    inverse, w, alive, out = np.linalg.inv(damped(c)), w.copy(), list(range(n)), []
    while alive:
        scores = [np.trace(w[:, blocks[u]] @ np.linalg.inv(inverse[blocks[u], blocks[u]])
                           @ w[:, blocks[u]].T) for u in alive]
        u = alive.pop(int(np.argmin(scores)))
        out.append(u)
        inside = np.linalg.inv(inverse[blocks[u], blocks[u]])
        w -= w[:, blocks[u]] @ inside @ inverse[blocks[u], :]
        inverse = inverse - inverse[:, blocks[u]] @ inside @ inverse[blocks[u], :]
    return np.array(out)


def thin(w, c, share, worth, repairs, columns=None):
    """Rows w with single weights removed among the remaining columns, those with the least w^2 *
    worth."""
    columns = np.arange(w.shape[1]) if columns is None else columns
    part, out = w[:, columns], np.zeros_like(w)
    kept = np.ones(part.size, bool)
    kept[np.argsort((part ** 2 * worth[columns]).ravel(), kind="stable")
         [:int(share * part.size + 0.5)]] = False
    for row, of, stays in zip(out, part, kept.reshape(part.shape)):
        gone, stays = columns[~stays], columns[stays]
        row[stays] = of[np.isin(columns, stays)]
        if repairs:
            row[stays] += of[np.isin(columns, gone)] @ c[np.ix_(gone, stays)] @ np.linalg.inv(
                c[np.ix_(stays, stays)] + RIDGE * np.diag(c).mean() * np.eye(len(stays)))
    return out


def main():
    x, w1, w2, head = (values((SAMPLES, 2, 6, 6), 11), values((4, 2, 3, 3), 12),
                       values((3, 4, 3, 3), 13), values((5, 3), 14))
    hidden = np.maximum(conv(x, w1), 0)
    means = conv(hidden, w2).astype(np.float64).mean(axis=(2, 3))
    y = means @ head.T
    rows = windows(hidden)
    c1, c2 = rows.T @ rows / len(rows), means.T @ means / len(means)
    flat = w2.reshape(3, -1).astype(np.float64)

    def loss(kept1, kept2, repairs):
        columns = np.concatenate([np.arange(u * 9, u * 9 + 9) for u in kept1])
        small = repair(flat, c1, columns) if repairs else flat * np.isin(np.arange(36), columns)
        out = (conv(hidden, small.reshape(w2.shape).astype(np.float32))
               .astype(np.float64).mean(axis=(2, 3)))
        last = repair(head.astype(np.float64), c2, kept2) if repairs else \
            head * np.isin(np.arange(3), kept2)
        return mse(y, out @ last.T)

    for criterion in ("l1", "l2", "energy", "hessian"):
        first = order(criterion, w1, flat, c1, 9)
        second = order(criterion, w2, head.astype(np.float64), c2, 1)
        print(f"// {criterion}: conv1 {first.tolist()}, conv2 {second.tolist()}")
        for n1, n2 in ((2, 3), (4, 2), (2, 2), (1, 1)):
            kept = np.sort(first[4 - n1:]), np.sort(second[3 - n2:])
            print(f'{{"{criterion}", {n1}, {n2}, {loss(*kept, True):.9g}, '
                  f'{loss(*kept, False):.9g}}},')
    ones, damped2 = np.ones(36), np.diag(damped(c1))
    print("// conv2 sparse, and the same with two channels of conv1 gone by l1")
    for criterion, worth in (("l2", ones), ("energy", damped2)):
        for repairs in (True, False):
            first = order("l1", w1, flat, c1, 9)
            columns = np.concatenate([np.arange(u * 9, u * 9 + 9) for u in np.sort(first[2:])])
            less = repair(flat, c1, columns) if repairs else flat * np.isin(np.arange(36), columns)
            both = (thin(flat, c1, 0.6, worth, repairs),
                    thin(less, c1, 0.6, worth, repairs, columns))
            losses = [mse(y, conv(hidden, w.reshape(w2.shape).astype(np.float32))
                          .astype(np.float64).mean(axis=(2, 3)) @ head.T) for w in both]
            print(f'{{"{criterion}", {str(repairs).lower()}, {losses[0]:.9g}, {losses[1]:.9g}}},')


if __name__ == "__main__":
    main()
