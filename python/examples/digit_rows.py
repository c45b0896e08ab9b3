#!/usr/bin/env python3
"""An environment: the number of bits that the rows of an image need to recognise its digit.

A digit is classified by the nearest of ten mean images. Each of the eight rows is rounded to the
chosen number of bits. The loss is the change of the distances; the cost is the number of bits of an
image. Needs numpy.

    cp -r ../../examples/digits .
    mscgym search environment.json
"""
import numpy

import mscgym

BITS = [8, 6, 5, 4, 3, 2, 1]


class DigitRows(mscgym.Environment):
    def start(self) -> None:
        folder = self.params.get("folder", "digits")
        with numpy.load(f"{folder}/calibration.npz") as arrays:
            images = next(iter(arrays.values()))
        self.labels = numpy.load(f"{folder}/calibration_labels.npy").ravel()
        self.images = images.reshape(len(images), -1).astype(numpy.float64)
        self.images /= self.images.max()
        self.images = self.images.reshape(len(images), 8, -1)
        self.means = numpy.stack([self.images[self.labels == digit].mean(axis=0) for digit in range(10)])
        self.distances = self.distances_of(self.images)

    def distances_of(self, images: numpy.ndarray) -> numpy.ndarray:
        return ((images[:, None] - self.means[None]) ** 2).sum(axis=(2, 3))

    def space(self) -> dict[str, object]:
        spread = self.images.std(axis=(0, 2))
        n_columns = self.images.shape[2]
        return {
            "version": 1,
            "features": ["row", "spread"],
            "tasks": [self.task(f"row_{i}", BITS, features=[i, float(spread[i])]) for i in range(8)],
            "metrics": [self.metric("distill_loss", help="how far the distances move, relative to their size"),
                        self.metric("accuracy", help="of the nearest mean image", maximised=True)],
            "costs": [self.cost("image_bits", unit="bits", alone=[[n_columns * bits for bits in BITS]] * 8)],
            "reference": {"distill_loss": 0.0, "accuracy": self.accuracy(self.distances)},
        }

    def accuracy(self, distances: numpy.ndarray) -> float:
        return float((distances.argmin(axis=1) == self.labels).mean())

    def evaluate(self, choices: tuple[int, ...], bound: float | None) -> dict[str, float | None]:
        steps = numpy.array([2.0 ** BITS[choice] - 1 for choice in choices])[None, :, None]
        distances = self.distances_of(numpy.round(self.images * steps) / steps)
        moved = ((distances - self.distances) ** 2).sum() / (self.distances ** 2).sum()
        return {"distill_loss": float(moved), "accuracy": self.accuracy(distances)}


if __name__ == "__main__":
    DigitRows.run()
