#!/usr/bin/env python3
"""Trains the digits network and writes the example's files.

It is a small convolutional network for the 1,797 8x8 images of the UCI digits (scikit-learn's copy). 1,257 of
them are for training, of which 256 are also for calibration; 540 are held out for validation. Needs torch,
scikit-learn and numpy (Debian: python3-torch python3-sklearn). In this folder, the command

    python3 train.py

writes the committed files again within seconds; only the last bits of the weights may differ.
"""
import numpy
import torch
from sklearn.datasets import load_digits

TRAIN, CALIBRATION, EPOCHS = 1257, 256, 60


def network():
    return torch.nn.Sequential(
        torch.nn.Conv2d(1, 16, 3, padding=1), torch.nn.ReLU(),
        torch.nn.Conv2d(16, 32, 3, padding=1), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
        torch.nn.Conv2d(32, 32, 3, padding=1), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
        torch.nn.Flatten(), torch.nn.Dropout(0.3), torch.nn.Linear(128, 10))


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    digits = load_digits()
    order = numpy.random.RandomState(0).permutation(len(digits.target))
    images = (digits.images[order] / 16).astype(numpy.float32)[:, None]
    labels = digits.target[order].astype(numpy.int64)
    x, y = torch.from_numpy(images[:TRAIN]), torch.from_numpy(labels[:TRAIN])

    model = network()
    optimiser = torch.optim.Adam(model.parameters(), lr=2e-3, weight_decay=1e-4)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, EPOCHS)
    for _ in range(EPOCHS):
        for batch in torch.randperm(TRAIN).split(64):
            optimiser.zero_grad()
            noisy = x[batch] + 0.1 * torch.randn_like(x[batch])
            loss = torch.nn.functional.cross_entropy(model(noisy), y[batch])
            loss.backward()
            optimiser.step()
        schedule.step()

    model.eval()
    with torch.no_grad():
        right = model(torch.from_numpy(images[TRAIN:])).argmax(1).numpy() == labels[TRAIN:]
    print(f"validation accuracy {right.mean():.4f} on {right.size} images")

    torch.onnx.export(model, x[:1], "digits.onnx", opset_version=13, input_names=["image"],
                      output_names=["scores"], dynamic_axes={"image": {0: "N"}, "scores": {0: "N"}})
    numpy.savez_compressed("calibration.npz", image=images[:CALIBRATION])
    numpy.save("calibration_labels.npy", labels[:CALIBRATION])
    numpy.savez_compressed("validation.npz", image=images[TRAIN:])
    numpy.save("validation_labels.npy", labels[TRAIN:])


main()
