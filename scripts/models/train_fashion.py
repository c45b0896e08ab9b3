"""Trains a 61,000-parameter network on fashion-MNIST (Debian's dataset-fashion-mnist) and exports
it with some test images: train_fashion.py FOLDER. About 80 seconds on two cores."""
import gzip
import os
import sys

import numpy
import torch

DATA = "/usr/share/datasets/fashion-mnist"


def read(name, header):
    for folder in (DATA, "/usr/share/dataset-fashion-mnist"):
        path = os.path.join(folder, name + ".gz")
        if os.path.exists(path):
            with gzip.open(path) as file:
                return numpy.frombuffer(file.read(), numpy.uint8, offset=header)
    sys.exit("train_fashion.py: install the Debian package dataset-fashion-mnist")


def images(name):
    return (read(name, 16).reshape(-1, 1, 28, 28) / 255).astype(numpy.float32)


def network():
    return torch.nn.Sequential(
        torch.nn.Conv2d(1, 16, 3, padding=1), torch.nn.BatchNorm2d(16), torch.nn.ReLU(),
        torch.nn.MaxPool2d(2),
        torch.nn.Conv2d(16, 32, 3, padding=1), torch.nn.BatchNorm2d(32), torch.nn.ReLU(),
        torch.nn.MaxPool2d(2),
        torch.nn.Conv2d(32, 32, 3, stride=2, padding=1), torch.nn.ReLU(),
        torch.nn.Flatten(), torch.nn.Linear(512, 88), torch.nn.ReLU(), torch.nn.Linear(88, 10))


def main(folder):
    torch.manual_seed(0)
    x, y = torch.from_numpy(images("train-images-idx3-ubyte")), torch.from_numpy(
        read("train-labels-idx1-ubyte", 8).astype(numpy.int64))
    model = network()
    optimiser = torch.optim.Adam(model.parameters(), lr=2e-3)
    for _ in range(4):
        for batch in torch.randperm(len(y)).split(128):
            optimiser.zero_grad()
            torch.nn.functional.cross_entropy(model(x[batch]), y[batch]).backward()
            optimiser.step()
    model.eval()
    test, labels = images("t10k-images-idx3-ubyte"), read("t10k-labels-idx1-ubyte", 8)
    with torch.no_grad():
        right = model(torch.from_numpy(test)).argmax(1).numpy() == labels
    print(f"fashion: accuracy {right.mean():.4f}")
    numpy.savez_compressed(os.path.join(folder, "fashion.npz"), image=test[:512])
    numpy.save(os.path.join(folder, "fashion_labels.npy"), labels[:512].astype(numpy.int64))
    path = os.path.join(folder, "fashion.onnx")
    torch.onnx.export(model, x[:1], path + ".part", opset_version=13, input_names=["image"],
                      output_names=["scores"], dynamic_axes={"image": {0: "N"}, "scores": {0: "N"}})
    os.rename(path + ".part", path)


main(sys.argv[1])
