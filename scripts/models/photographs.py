"""Crops of the photographs in Debian's python3-sklearn (china, flower) and python3-scipy (face).

photographs.py NAME FOLDER writes FOLDER/NAME.inputs.npz: 64 crops of 224 x 224, normalised for
torchvision's classifiers.
"""
import os
import sys
import warnings

import numpy
from PIL import Image

MEAN = numpy.array([0.485, 0.456, 0.406], numpy.float32)
STD = numpy.array([0.229, 0.224, 0.225], numpy.float32)


def photographs():
    import scipy.misc
    from sklearn.datasets import load_sample_images
    with warnings.catch_warnings():  # newer versions of scipy have moved the face
        warnings.simplefilter("ignore", DeprecationWarning)
        return [*load_sample_images().images, scipy.misc.face()]


def crops(count, size, seed):
    """Squares from all photographs, some mirrored: [count, size, size, 3], values 0 to 255."""
    images, random = photographs(), numpy.random.RandomState(seed)
    result = numpy.empty((count, size, size, 3), numpy.uint8)
    for i in range(count):
        image = images[i % len(images)]
        height, width = image.shape[:2]
        edge = random.randint(200, height + 1)
        top, left = random.randint(height - edge + 1), random.randint(width - edge + 1)
        crop = Image.fromarray(image[top:top + edge, left:left + edge, ::random.choice([1, -1])])
        result[i] = crop.resize((size, size), Image.BILINEAR)
    return result


def normalised(images):
    """The images in the form that networks read: [count, 3, height, width]."""
    scaled = (images / numpy.float32(255) - MEAN) / STD
    return numpy.ascontiguousarray(scaled.transpose(0, 3, 1, 2))


def main(name, folder):
    path = os.path.join(folder, name + ".inputs.npz")
    numpy.savez_compressed(path + ".part.npz", input=normalised(crops(64, 224, seed=0)))
    os.rename(path + ".part.npz", path)


if __name__ == "__main__":
    main(*sys.argv[1:])
