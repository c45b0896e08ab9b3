"""Realistic inputs for the models of scripts/fetch-models.

    inputs(NAME, COUNT) -> array of the network's main input
    feeds(NAME, COUNT) -> {input: array} for all inputs

Photographs come from scikit-learn; text lines are rendered with DejaVu by Pillow; speech is from
Debian's asterisk-core-sounds-en-wav; digits are from the example, fashion images from the models'
folder. Networks that are stored with calibration inputs (SAVED) use these, at most 64 samples.
Other torchvision networks have random weights and get seeded noise.
"""
import glob
import os
import wave

import numpy
from PIL import Image, ImageDraw, ImageFont

HERE = os.path.dirname(os.path.abspath(__file__))
DIGITS = os.path.join(HERE, "..", "..", "examples", "digits")
LICENCE = "/usr/share/common-licenses/Apache-2.0"
FONT = "/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf"
SOUNDS = "/usr/share/asterisk/sounds/en_US_f_Allison"
RATE = 16000  # of the speech networks, in Hz; the prompts have half of it


def models_folder():
    return os.environ.get("MSC_MODELS", os.path.expanduser("~/.cache/mscgym/models"))


def model_path(name):
    return (os.path.join(DIGITS, "digits.onnx") if name == "digits"
            else os.path.join(models_folder(), name + ".onnx"))


def photographs(count, size):
    """Crops of scikit-learn's two photographs, [count, size, size, 3], values 0 to 255."""
    from sklearn.datasets import load_sample_images
    images = load_sample_images().images
    generator = numpy.random.RandomState(0)
    crops = []
    for i in range(count):
        image = images[i % len(images)]
        edge = generator.randint(200, 427)
        top, left = generator.randint(0, 427 - edge + 1), generator.randint(0, 640 - edge + 1)
        crop = Image.fromarray(image[top:top + edge, left:left + edge])
        crops.append(numpy.asarray(crop.resize((size, size), Image.BILINEAR)))
    return numpy.stack(crops).astype(numpy.float32)


def licence_words():
    with open(LICENCE) as file:
        return file.read().split()


def text_lines(count):
    """Rendered lines of a licence, [count, 3, 48, 320], values -1 to 1."""
    words = licence_words()
    font = ImageFont.truetype(FONT, 28)
    lines = []
    for i in range(count):
        image = Image.new("RGB", (320, 48), "white")
        ImageDraw.Draw(image).text((6, 6), " ".join(words[3 * i + 40:3 * i + 43]), "black", font)
        lines.append(numpy.asarray(image).transpose(2, 0, 1))
    return (numpy.stack(lines) / 255 - 0.5).astype(numpy.float32) / numpy.float32(0.5)


def mlsd(count):
    alpha = numpy.full((count, 320, 320, 1), 255, numpy.float32)
    return numpy.concatenate([photographs(count, 320), alpha], 3)


def ocr_det(count):
    """Photographs with lines of text. Without text, the network's output is almost 0."""
    mean = numpy.array([0.485, 0.456, 0.406])
    std = numpy.array([0.229, 0.224, 0.225])
    words = licence_words()
    pages = []
    for i, photograph in enumerate(photographs(count, 640)):
        page = Image.fromarray(photograph.astype(numpy.uint8))
        draw = ImageDraw.Draw(page)
        for line in range(8):
            text = " ".join(words[40 * i + 4 * line:40 * i + 4 * line + 4])
            draw.text((30, 40 + 70 * line), text, "white" if line % 2 else "black",
                      ImageFont.truetype(FONT, 24 + 2 * line))
        pages.append((numpy.asarray(page) / 255 - mean) / std)
    return numpy.stack(pages).transpose(0, 3, 1, 2).astype(numpy.float32)


def noise(count):
    return numpy.random.RandomState(1).uniform(-1, 1, (count, 3, 224, 224)).astype(numpy.float32)


def speech(count):
    """Concatenated prompts, [count] samples at 16 kHz, values -1 to 1."""
    parts, n = [], 0
    for path in sorted(glob.glob(os.path.join(SOUNDS, "*.wav"))):
        with wave.open(path) as file:
            parts.append(numpy.frombuffer(file.readframes(file.getnframes()), "<i2"))
        n += len(parts[-1])
        if 2 * (n - 1) >= count:
            break
    else:
        raise FileNotFoundError(f"{SOUNDS}: install asterisk-core-sounds-en-wav")
    times = numpy.arange(count) / 2
    return numpy.interp(times, numpy.arange(n), numpy.concatenate(parts) / 32768)


def chunks(count):
    """Successive chunks of 32 ms, [count, 512]."""
    return speech(512 * count).reshape(count, 512).astype(numpy.float32)


def mel_filters(bands, size):
    """Triangular mel filters of equal width from 60 Hz to 3.8 kHz, [bands, size / 2 + 1]."""
    def mel(hertz):
        return 1127 * numpy.log1p(hertz / 700)

    edges = numpy.linspace(mel(60), mel(3800), bands + 2)
    places = (mel(numpy.fft.rfftfreq(size, 1 / RATE))[None] - edges[:-1, None]) / \
        numpy.diff(edges)[:, None]
    return numpy.clip(numpy.minimum(places[:-1], 1 - places[1:]), 0, None)


def spectrograms(count):
    """Log-mel spectrograms of 0.76 s, [count, 76, 32, 1]: frames of 25 ms every 10 ms."""
    frame, hop, size = 400, 160, 512
    sound = speech(76 * count * hop + frame)
    starts = hop * numpy.arange(76 * count)
    frames = sound[starts[:, None] + numpy.arange(frame)] * numpy.hanning(frame)
    power = numpy.abs(numpy.fft.rfft(frames, size)) ** 2
    decibels = 10 * numpy.log10(power @ mel_filters(32, size).T + 1e-10)
    return (decibels / 10 + 2).reshape(count, 76, 32, 1).astype(numpy.float32)


def saved(name):
    """The calibration inputs stored with a network, a row per sample."""
    return numpy.load(os.path.join(models_folder(), SAVED[name] + ".inputs.npz"))


SAVED = {  # name of the calibration inputs
    **dict.fromkeys(("mobilenet_v3_small", "efficientnet_b0", "shufflenet_v2_x1_0", "densenet121",
                     "regnet_y_400mf", "swin_t", "vit_b_16", "convnext_tiny"), "photographs"),
    "unet": "unet",
    "bert": "bert",
    "gpt": "gpt",
}
MAKERS = {
    "digits": lambda n: numpy.load(os.path.join(DIGITS, "calibration.npz"))["image"][:n],
    "fashion": lambda n: numpy.load(os.path.join(models_folder(), "fashion.npz"))["image"][:n],
    "mlsd-tiny": mlsd,
    "ocr-det": ocr_det,
    "ocr-rec": text_lines,
    "resnet18": noise,
    "mobilenet_v2": noise,
    "squeezenet1_1": noise,
    "vad": chunks,
    "speech-embedding": spectrograms,
    **{name: lambda n, name=name: saved(name)[NAMES.get(name, "input")][:n] for name in SAVED},
}
NAMES = {  # the name of each network's main input
    "digits": "image",
    "fashion": "image",
    "mlsd-tiny": "input_image_with_alpha:0",
    "ocr-det": "x",
    "ocr-rec": "x",
    "speech-embedding": "input_1",
    "unet": "image",
    "bert": "input_ids",
    "gpt": "input_ids",
}  # "input" for other networks


def inputs(name, count):
    return numpy.ascontiguousarray(MAKERS[name](count))


def feeds(name, count):
    values = {NAMES.get(name, "input"): inputs(name, count)}
    if name == "vad":  # also its state, and the sampling rate
        values["state"] = numpy.zeros((2, count, 128), numpy.float32)
        values["sr"] = numpy.array(RATE)
    elif name in SAVED:
        values.update((key, array[:count]) for key, array in saved(name).items())
    return values
