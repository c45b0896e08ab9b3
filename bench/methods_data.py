"""Calibration and validation samples for seven networks, and four transformers. The networks have never
seen them, and there are enough of them to distinguish methods.

    calibration(NAME, SEED), validation(NAME) -> an array, for networks of one input
    calibration_by_input(NAME, SEED), validation_by_input(NAME) -> {input: array}
    labels(NAME) -> the labels of validation, or None

Samples of transformers are stored with them (scripts/models/export_transformers.py): 64 for calibration,
of which seeds other than 0 draw 48, and 64 others.

Digits are scikit-learn's; the images of fashion, resnet and vit are from Debian's dataset-fashion-mnist;
photographs from mate-backgrounds, scikit-learn and python3-scipy; speech from asterisk-core-sounds-en-wav.
Lines of text are licences rendered with fonts-dejavu-core. MSC_DEBIAN names a folder with unpacked
packages, if they are not installed. Calibration samples never overlap validation samples; each seed draws others.
"""
import bz2
import functools
import gzip
import os

import numpy
from PIL import Image, ImageDraw, ImageFilter, ImageFont

import common  # noqa: F401: where model_inputs is
import model_inputs

LICENCES = "/usr/share/common-licenses"
FONTS = [os.path.join("/usr/share/fonts/truetype/dejavu", name + ".ttf") for name in
         ("DejaVuSans", "DejaVuSerif", "DejaVuSansMono", "DejaVuSans-Bold", "DejaVuSerif-Bold")]


def package_file(path, package):
    """The path of a file of a Debian package."""
    for root in (os.environ.get("MSC_DEBIAN", "/"), "/"):
        found = os.path.join(root, path)
        if os.path.exists(found):
            return found
    raise FileNotFoundError(f"/{path}: install {package}")


# ---- Digits -----------------------------------------------------------------------------------

def digits_calibration(seed):
    if seed == 0:
        return numpy.load(os.path.join(model_inputs.DIGITS, "calibration.npz"))["image"]
    from sklearn.datasets import load_digits
    images = load_digits().images
    # The same split as in its train.py.
    order = numpy.random.RandomState(0).permutation(len(images))[:1257]
    drawn = numpy.random.RandomState(seed).choice(order, 256, replace=False)
    return (images[drawn] / 16).astype(numpy.float32)[:, None]


def digits_validation():
    return numpy.load(os.path.join(model_inputs.DIGITS, "validation.npz"))["image"]


def digits_labels():
    return numpy.load(os.path.join(model_inputs.DIGITS, "validation_labels.npy"))


# ---- Fashion ----------------------------------------------------------------------------------

def fashion_file(name, header):
    path = package_file(f"usr/share/datasets/fashion-mnist/{name}.gz", "dataset-fashion-mnist")
    with gzip.open(path) as file:
        return numpy.frombuffer(file.read(), numpy.uint8, offset=header)


def fashion_images(name):
    return fashion_file(name, 16).reshape(-1, 1, 28, 28)


def fashion_calibration(seed):
    images = fashion_images("train-images-idx3-ubyte")
    drawn = (numpy.arange(512) if seed == 0 else
             numpy.random.RandomState(seed).choice(len(images), 512, replace=False))
    return (images[drawn] / 255).astype(numpy.float32)


def held_out_calibration(seed):
    """Images on which resnet and vit were not trained (scripts/models/train_images.py)."""
    images = fashion_images("train-images-idx3-ubyte")[:2048]
    drawn = (numpy.arange(512) if seed == 0 else
             numpy.random.RandomState(seed).choice(len(images), 512, replace=False))
    return (images[drawn] / 255).astype(numpy.float32)


def fashion_validation():
    return (fashion_images("t10k-images-idx3-ubyte") / 255).astype(numpy.float32)


def fashion_labels():
    return fashion_file("t10k-labels-idx1-ubyte", 8).astype(numpy.int64)


# ---- Photographs ------------------------------------------------------------------------------

def background(name, width=960):
    path = package_file(f"usr/share/backgrounds/mate/{name}.jpg", "mate-backgrounds")
    image = Image.open(path).convert("RGB")
    height = int(image.height * width / image.width)
    return numpy.asarray(image.resize((width, height), Image.BILINEAR))


def raccoon():
    path = package_file("usr/lib/python3/dist-packages/scipy/misc/face.dat", "python3-scipy")
    with open(path, "rb") as file:
        return numpy.frombuffer(bz2.decompress(file.read()), numpy.uint8).reshape(768, 1024, 3)


def crops(images, count, seed):
    """Squares of 320 x 320 with an opaque alpha channel, cut from at least six tenths of the image."""
    generator = numpy.random.RandomState(seed)
    found = []
    for i in range(count):
        image = images[i % len(images)]
        least = min(image.shape[:2])
        edge = generator.randint(int(least * 0.6), least)
        top = generator.randint(0, image.shape[0] - edge + 1)
        left = generator.randint(0, image.shape[1] - edge + 1)
        crop = Image.fromarray(numpy.ascontiguousarray(image[top:top + edge, left:left + edge]))
        found.append(numpy.asarray(crop.resize((320, 320), Image.BILINEAR)))
    found = numpy.stack(found).astype(numpy.float32)
    return numpy.concatenate([found, numpy.full(found.shape[:3] + (1,), 255, numpy.float32)], 3)


def mlsd_calibration(seed):
    from sklearn.datasets import load_sample_images
    china = load_sample_images().images[0][:, :320]
    names = ("abstract/Elephants", "nature/Blinds", "nature/Garden", None, "nature/LadyBird",
             "nature/Storm")
    images = [china] + [background(name) if name else china for name in names]
    return crops(images, 48, 1 if seed == 0 else 10 + seed)


def mlsd_validation():
    from sklearn.datasets import load_sample_images
    china, flower = load_sample_images().images
    china = china[:, 320:]
    return crops([china, flower, raccoon(), background("nature/Wood"), china,
                  background("nature/Dune"), background("nature/RainDrops"),
                  background("nature/TwoWings")], 64, 2)


# ---- Lines of text ----------------------------------------------------------------------------

def draw_line(text, font, size, generator):
    paper, ink = generator.randint(150, 256, 3), generator.randint(0, 100, 3)
    if generator.rand() < 0.25:
        paper, ink = ink, paper
    image = Image.new("RGB", (320, 48), tuple(int(value) for value in paper))
    place = (generator.randint(2, 10), (48 - size) // 2 - generator.randint(0, 6))
    ImageDraw.Draw(image).text(place, text, tuple(int(value) for value in ink), font)
    if generator.rand() < 0.4:
        image = image.filter(ImageFilter.GaussianBlur(generator.uniform(0.3, 1.2)))
    noise = generator.normal(0, generator.uniform(0, 10), (48, 320, 3))
    noisy = numpy.asarray(image).astype(numpy.float32) + noise
    return numpy.clip(noisy, 0, 255).round().transpose(2, 0, 1)


def text_lines(licence, count, seed, first=40):
    """Lines in five fonts, dark on light or light on dark; some are blurred, all are noisy."""
    with open(os.path.join(LICENCES, licence), errors="ignore") as file:
        words = file.read().split()
    generator = numpy.random.RandomState(seed)
    lines, i = [], first
    while len(lines) < count:
        size = generator.randint(20, 33)
        font = ImageFont.truetype(FONTS[len(lines) % len(FONTS)], size)
        text = words[i]
        i += 1
        while font.getlength(text + " " + words[i]) < 305:
            text += " " + words[i]
            i += 1
        if font.getlength(text) <= 310:
            lines.append(draw_line(text, font, size, generator))
    return ((numpy.stack(lines) / 255 - 0.5) / 0.5).astype(numpy.float32)


def ocr_calibration(seed):
    return text_lines("GPL-3", 64, 1 if seed == 0 else 10 + seed, 40 + 500 * seed)


def ocr_validation():
    return numpy.concatenate([text_lines("Apache-2.0", 64, 2), text_lines("MPL-2.0", 64, 3)])


# ---- Speech -----------------------------------------------------------------------------------

@functools.lru_cache(1)
def speech():
    folder = "usr/share/asterisk/sounds/en_US_f_Allison"
    model_inputs.SOUNDS = package_file(folder, "asterisk-core-sounds-en-wav")
    return model_inputs.spectrograms(900)


def speech_calibration(seed):
    others = numpy.r_[0:300, 812:900]
    drawn = others[:256] if seed == 0 else numpy.random.RandomState(seed).choice(others, 256, False)
    return speech()[drawn]


def speech_validation():
    return speech()[300:812]


# ---- Transformers -----------------------------------------------------------------------------

TRANSFORMERS = ("bert-8m", "gpt2-8m", "llama-8m", "encoder")


def stored(name, end):
    with numpy.load(os.path.splitext(common.model_path(name))[0] + end) as file:
        return dict(file)


def transformer_calibration(name, seed):
    samples = stored(name, ".inputs.npz")
    n = len(next(iter(samples.values())))
    drawn = numpy.arange(n) if seed == 0 else numpy.random.RandomState(seed).choice(n, 3 * n // 4, False)
    return {k: v[drawn] for k, v in samples.items()}


NETWORKS = {  # functions for calibration, validation and labels
    "digits": (digits_calibration, digits_validation, digits_labels),
    "fashion": (fashion_calibration, fashion_validation, fashion_labels),
    "resnet": (held_out_calibration, fashion_validation, fashion_labels),
    "vit": (held_out_calibration, fashion_validation, fashion_labels),
    "speech-embedding": (speech_calibration, speech_validation, lambda: None),
    "mlsd-tiny": (mlsd_calibration, mlsd_validation, lambda: None),
    "ocr-rec": (ocr_calibration, ocr_validation, lambda: None),
}


def calibration(name, seed):
    return NETWORKS[name][0](seed)


def validation(name):
    return NETWORKS[name][1]()


def by_input(name, samples):
    """{input: array} of samples for a network's first input."""
    import onnx
    model = onnx.load(common.model_path(name), load_external_data=False)
    return {model.graph.input[0].name: numpy.ascontiguousarray(samples)}


def calibration_by_input(name, seed):
    return transformer_calibration(name, seed) if name in TRANSFORMERS else by_input(name, calibration(name, seed))


def validation_by_input(name):
    return stored(name, ".unseen.npz") if name in TRANSFORMERS else by_input(name, validation(name))


def labels(name):
    return None if name in TRANSFORMERS else NETWORKS[name][2]()
