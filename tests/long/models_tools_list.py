"""Entries of models_list.py that other tools than torch's exporters make."""
from models_list import Entry


def tool(name, exporter, maker, *more, type="quantised", quantise=False, **options):
    return Entry(name, exporter.partition(" ")[0] + " tools" if exporter.startswith("onnxruntime") else "types",
                 exporter, f"models_tools.{maker}", *more, type=type, quantise=quantise, **options)


STATIC, DYNAMIC = "onnxruntime quantize_static", "onnxruntime quantize_dynamic"
LEVEL, OPTIMIZER = "onnxruntime session", "onnxruntime transformers.optimizer"
NBITS = "onnxruntime MatMulNBitsQuantizer"

TOOLS = [
    tool("resnet18 static qdq", STATIC, "static", "resnet18"),
    tool("mobilenet_v2 static qdq channels", STATIC, "static", "mobilenet_v2", per_channel=True),
    tool("mobilenet_v3 static qdq s8", STATIC, "static", "mobilenet_v3", activation_type="QInt8"),
    tool("cnn static qoperator", STATIC, "static", "cnn", quant_format="QOperator"),
    tool("resnet18 static qoperator channels", STATIC, "static", "resnet18", quant_format="QOperator",
         per_channel=True),
    tool("unet static qdq entropy", STATIC, "static", "unet", calibrate_method="Entropy"),
    tool("encoder static qdq", STATIC, "static", "encoder"),
    tool("bert static qdq", STATIC, "static", "bert", refused="is infinite"),  # of its mask
    tool("vit static qdq u8u8", STATIC, "static", "vit", activation_type="QUInt8",
         weight_type="QUInt8"),
    tool("cnn static qdq 16 bits", STATIC, "static", "cnn", activation_type="QUInt16"),
    tool("mlp static qoperator", STATIC, "static", "mlp", quant_format="QOperator"),
    tool("bert dynamic", DYNAMIC, "dynamic", "bert"),
    tool("gpt2 dynamic u8", DYNAMIC, "dynamic", "gpt2", weight_type="QUInt8"),
    tool("lstm dynamic", DYNAMIC, "dynamic", "lstm", refused="DynamicQuantizeLSTM"),
    tool("mlp dynamic channels", DYNAMIC, "dynamic", "mlp", per_channel=True),
    tool("cnn dynamic", DYNAMIC, "dynamic", "cnn", weight_type="QUInt8"),
    tool("llama nbits", NBITS, "bits", "llama"),
    tool("bert nbits asymmetric", NBITS, "bits", "bert", symmetric=False),
    tool("swiglu nbits qdq", NBITS, "bits", "swiglu", operator=False),
    tool("resnet18 float16", "onnxconverter_common float16", "half", "resnet18", type="16 bits", quantise=True),
    tool("bert float16", "onnxconverter_common float16", "half", "bert", type="16 bits", quantise=True,
         keep_io_types=True),
    tool("gpt2 float16", "onnxruntime transformers.float16", "half", "gpt2", tool="transformers", type="16 bits",
         quantise=True, keep_io_types=True),
    tool("unet float16", "onnxruntime transformers.float16", "half", "unet", tool="transformers", type="16 bits",
         quantise=True),
    tool("cnn torch half", "torch script opset 17", "torch_type", "cnn", "float16", "script", 17, type="16 bits",
         quantise=True),
    tool("mlp torch half", "torch dynamo opset 20", "torch_type", "mlp", "float16", "dynamo", 20,
         type="16 bits", quantise=True),
    tool("mlp torch bfloat16", "torch dynamo opset 18", "torch_type", "mlp", "bfloat16", "dynamo", 18, type="16 bits"),
    tool("resnet18 basic", LEVEL, "optimised", "resnet18", "basic", type="float32", quantise=True),
    tool("mobilenet_v3 extended", LEVEL, "optimised", "mobilenet_v3", "extended", type="float32", quantise=True),
    tool("resnet18 all", LEVEL, "optimised", "resnet18", "all", type="float32", refused="nchwc"),
    tool("bert extended", LEVEL, "optimised", "bert", "extended", type="float32", quantise=True),
    tool("vit extended", LEVEL, "optimised", "vit", "extended", type="float32", quantise=True),
    tool("gpt2 all", LEVEL, "optimised", "gpt2", "all", type="float32", quantise=True),
    tool("mlp all", LEVEL, "optimised", "mlp", "all", type="float32", quantise=True),
    tool("bert optimizer", OPTIMIZER, "optimizer", "bert", "bert", type="float32", quantise=True),
    tool("distilbert optimizer", OPTIMIZER, "optimizer", "distilbert", "bert", type="float32", quantise=True),
    tool("gpt2 optimizer", OPTIMIZER, "optimizer", "gpt2", "gpt2", type="float32", quantise=True),
    tool("llama optimizer", OPTIMIZER, "optimizer", "llama", "gpt2", type="float32", quantise=True),
    tool("bert optimizer float16", OPTIMIZER, "optimizer", "bert", "bert", float16=True, type="16 bits", quantise=True),
    tool("functions", "onnxscript functions", "functions", type="float32", quantise=True),
]

SKLEARN = "skl2onnx"
for what, quantised, reason in (
        ("scaler + logistic", True, None), ("scaler + mlp", True, None), ("normaliser + ridge", True, None),
        ("minmax + mlp regressor", True, None), ("imputer + pca + logistic", True, None),
        ("forest", False, "TreeEnsemble"), ("svm", False, "SVM")):
    TOOLS.append(Entry(f"sklearn {what}", "sklearn", SKLEARN, "models_tools.sklearn", what, quantise=quantised,
                       refused=reason))
for what, n in (("ocr-rec", 64), ("ocr-det", 32), ("mlsd-tiny", 16), ("vad", 64), ("speech-embedding", 64)):
    TOOLS.append(Entry(what, "published", "npm", "models_tools.published", what, samples=n,
                       bind=["sr=16000", "input.1=512"] if what == "vad" else ()))
