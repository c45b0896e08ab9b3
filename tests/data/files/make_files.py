#!/usr/bin/env python3
"""Makes the files next to it: arrays written by numpy 1.24 and safetensors 0.8, images written by
Pillow 9.4, and the pixels that Pillow and numpy compute from the images.

    python3 make_files.py
"""
import io
import os
import zipfile

import numpy as np
from PIL import Image
from safetensors.numpy import save_file

os.chdir(os.path.dirname(os.path.abspath(__file__)))


def ramp(dtype, shape):
    """0, 1, 2, ..., minus 3 unless unsigned, halved for floats."""
    x = np.arange(int(np.prod(shape)))
    dtype = np.dtype(dtype)
    if dtype.kind == "f":
        x = (x - 3) * 0.5
    elif dtype.kind == "i":
        x = x - 3
    elif dtype.kind == "b":
        x = x % 2
    return x.astype(dtype).reshape(shape)


def npy_bytes(array, version=None):
    out = io.BytesIO()
    np.lib.format.write_array(out, array, version=version, allow_pickle=True)
    return out.getvalue()


for name in ("float16 float32 float64 int8 int16 int32 int64 uint8 uint16 uint32 uint64 "
             "bool").split():
    np.save(f"{name}.npy", ramp(name, (3, 4)))
np.save("scalar.npy", np.float32(2.5))
np.save("empty.npy", np.zeros((0, 3), np.float32))
np.save("vector.npy", ramp("float32", (5,)))
np.save("fortran.npy", np.asfortranarray(ramp("float32", (2, 3, 4))))
np.save("big_endian.npy", ramp("float64", (3, 4)).astype(">f8"))
np.save("big_endian_fortran.npy", np.asfortranarray(ramp("int32", (3, 4)).astype(">i4")))
for version in ((2, 0), (3, 0)):
    with open(f"version{version[0]}.npy", "wb") as f:
        f.write(npy_bytes(ramp("float32", (3, 4)), version))
np.save("bad_object.npy", np.array([{"a": 1}, None], dtype=object), allow_pickle=True)
np.save("bad_text.npy", np.array(["one", "two"]))
np.save("bad_complex.npy", np.zeros(3, np.complex64))
np.save("bad_fields.npy", np.zeros(3, [("a", "<f4"), ("b", "<i4")]))
np.save("bad_long_double.npy", np.zeros(3, np.longdouble))
np.save("bad_nine_dims.npy", np.zeros((1,) * 9, np.float32))

np.savez("stored.npz", x=ramp("float32", (3, 4)), ids=ramp("int64", (3,)))
np.savez_compressed("deflated.npz", x=ramp("float32", (3, 4)),
                    zeros=np.zeros((100, 10), np.float32))
# Arrays next to a model's samples that it does not use, of types that no model could read.
np.savez("beside.npz", x=ramp("float32", (3, 4)), file_names=np.array(["a.png", "b.png", "c.png"]),
         facts=np.array([{"a": 1}, None, 2], dtype=object), wave=np.zeros(3, np.complex64))


def write_zip(path, members, method=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", method) as z:
        for name, data in members:
            z.writestr(zipfile.ZipInfo(name), data, method)


plain = npy_bytes(ramp("float32", (3, 4)))
write_zip("bad_member.npz", [("x.npy", plain), ("readme.txt", b"text")])
write_zip("bad_content.npz", [("x.npy", b"this is no array at all")])
write_zip("bad_method.npz", [("x.npy", plain)], zipfile.ZIP_BZIP2)
with zipfile.ZipFile("beside.npz", "a") as z:
    z.writestr(zipfile.ZipInfo("readme.txt"), b"text")
    z.writestr(zipfile.ZipInfo("packed.npy"), plain, zipfile.ZIP_BZIP2)
import warnings
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    write_zip("bad_twice.npz", [("x.npy", plain), ("x.npy", plain)])

save_file({"b": ramp("float32", (3, 4)), "a": ramp("int64", (2, 2)), "c": ramp("float16", (3,)),
           "flag": ramp("bool", (5,)), "nothing": np.zeros((0, 7), np.float32),
           "scalar": np.array(7, np.int16)},
          "numpy.safetensors", metadata={"format": "np", "note": "a \"quoted\" word"})

# Images of smooth colours with some texture, so that a shifted or swapped axis shows.
def picture(height, width, seed):
    y, x = np.mgrid[0:height, 0:width]
    rng = np.random.default_rng(seed)
    rgb = np.stack([255 * x / max(width - 1, 1), 255 * y / max(height - 1, 1),
                    127 + 100 * np.sin(x * 0.7 + y * 0.3)], -1)
    return np.clip(rgb + rng.uniform(-20, 20, rgb.shape), 0, 255).astype(np.uint8)


mean, std = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
files = [("a.png", 20, 30), ("b.jpg", 24, 16), ("c.BMP", 9, 11)]
for i, (name, h, w) in enumerate(files):
    image = Image.fromarray(picture(h, w, i))
    image.save(f"images/{name}", **({"quality": 95} if name.endswith("jpg") else {}))
with open("images/notes.txt", "w") as f:
    f.write("Not an image.\n")

images = [Image.open(f"images/{name}").convert("RGB") for name, _, _ in files]
resized = np.stack([np.asarray(i.resize((12, 10), Image.BILINEAR)) for i in images])
np.save("images_10x12.npy", resized)
x = (resized.astype(np.float64) / 255 - mean) / std
np.save("images_10x12_normalised.npy", x.transpose(0, 3, 1, 2).astype(np.float32))
np.save("images_a.npy", np.asarray(images[0]))
np.save("images_b.npy", np.asarray(images[1]))
np.save("images_a_grey.npy", np.asarray(images[0].convert("L")))
