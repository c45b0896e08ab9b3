"""Trains a U-Net to find characters on photographs: train_unet.py NAME FOLDER.

Writes NAME.onnx, which scores each pixel as background or character, and NAME.inputs.npz: 64 pages
of 128 x 128 that were not used for training. Pages are crops (photographs.py) with characters drawn
over them, in the fonts of Debian's fonts-dejavu-core. Encoder and decoder are convolutions with
batch normalisation, joined by concatenations. The decoder upsamples by transposed convolutions, and
at last by bilinear resizing. Takes about a minute on two cores.
"""
import glob
import os
import string
import sys

import numpy
import torch
from PIL import Image, ImageDraw, ImageFont

from exported import save
from photographs import crops, normalised

FONTS = sorted(glob.glob("/usr/share/fonts/truetype/dejavu/DejaVu*.ttf"))
SIZE, WINDOW = 128, 64  # size of pages, and of the windows that are used for training
CHARACTERS = list(string.ascii_letters + string.digits)
STEPS, BATCH = 500, 8


def pages(count, seed):
    """Images [count, SIZE, SIZE, 3], values 0 to 255, and the label of each pixel."""
    if not FONTS:
        sys.exit("train_unet.py: install the Debian package fonts-dejavu-core")
    random, images = numpy.random.RandomState(seed), crops(count, SIZE, seed)
    labels = numpy.zeros((count, SIZE, SIZE), numpy.int64)
    for image, label in zip(images, labels):
        for _ in range(random.randint(6, 14)):
            text = "".join(random.choice(CHARACTERS, random.randint(1, 5)))
            font = ImageFont.truetype(FONTS[random.randint(len(FONTS))], random.randint(14, 44))
            mask = Image.new("L", (SIZE, SIZE))
            ImageDraw.Draw(mask).text(tuple(random.randint(-10, SIZE - 10, 2)), text, 255, font)
            cover = numpy.asarray(mask, numpy.float32)[:, :, None] / 255
            image[:] = image * (1 - cover) + random.randint(0, 256, 3) * cover
            label[cover[:, :, 0] > 0.5] = 1
    return images, labels


def convolutions(before, after):
    layers = []
    for channels in (before, after):
        layers += [torch.nn.Conv2d(channels, after, 3, padding=1, bias=False),
                   torch.nn.BatchNorm2d(after), torch.nn.ReLU()]
    return torch.nn.Sequential(*layers)


class UNet(torch.nn.Module):
    def __init__(self, widths=(16, 32, 64, 128)):
        super().__init__()
        befores = (3,) + widths[:-1]
        self.down = torch.nn.ModuleList(map(convolutions, befores, widths))
        self.grow = torch.nn.ModuleList(
            torch.nn.ConvTranspose2d(wide, narrow, 2, stride=2)
            for narrow, wide in zip(widths[1:], widths[2:]))
        self.grow.insert(0, torch.nn.Sequential(
            torch.nn.Upsample(scale_factor=2, mode="bilinear"),
            torch.nn.Conv2d(widths[1], widths[0], 1)))
        self.up = torch.nn.ModuleList(convolutions(2 * width, width) for width in widths[:-1])
        self.head = torch.nn.Conv2d(widths[0], 2, 1)

    def forward(self, x):
        skipped = []
        for down in self.down[:-1]:
            skipped.append(down(x))
            x = torch.nn.functional.max_pool2d(skipped[-1], 2)
        x = self.down[-1](x)
        for grow, up, skip in zip(reversed(self.grow), reversed(self.up), reversed(skipped)):
            x = up(torch.cat([skip, grow(x)], 1))
        return self.head(x)


def train(model):
    images, labels = pages(384, seed=1)
    images, labels = torch.from_numpy(normalised(images)), torch.from_numpy(labels)
    random = numpy.random.RandomState(0)
    optimiser = torch.optim.AdamW(model.parameters(), lr=4e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 4e-3, STEPS)
    for _ in range(STEPS):
        some = random.choice(len(images), BATCH, replace=False)
        top, left = random.randint(SIZE - WINDOW + 1, size=2)
        window = slice(top, top + WINDOW), slice(left, left + WINDOW)
        scores = model(images[some][:, :, window[0], window[1]])
        optimiser.zero_grad()
        torch.nn.functional.cross_entropy(scores, labels[some][:, window[0], window[1]]).backward()
        optimiser.step()
        schedule.step()
    model.eval()


def main(name, folder):
    torch.manual_seed(0)
    torch.set_num_threads(2)
    model = UNet()
    train(model)
    images, labels = pages(64, seed=2)
    inputs = normalised(images)
    with torch.no_grad():
        found = model(torch.from_numpy(inputs)).argmax(1).numpy()
    overlaps = [((found == k) & (labels == k)).sum() / ((found == k) | (labels == k)).sum()
                for k in range(2)]
    print(f"{name}: intersection over union", " ".join(f"{o:.3f}" for o in overlaps))
    path = os.path.join(folder, name)
    numpy.savez_compressed(path + ".inputs.npz", image=inputs)
    save(model, torch.from_numpy(inputs[:1]), path + ".onnx", 13, ["image"], ["scores"],
         {"image": {0: "N"}, "scores": {0: "N"}})


main(*sys.argv[1:])
