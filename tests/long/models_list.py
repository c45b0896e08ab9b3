"""The models of models.py: their names, kinds and exporters, and what makes each.

`entries()` lists them. `entry.make(path, count)` writes the model and returns {input: array} of
`count` samples, the samples along the first axis; an array without axes is given to every run.
Packages such as torch are only imported to make a model.
"""
import importlib


class Entry:
    """A model of the list.

    `maker` is MODULE.FUNCTION, called with the path, the count and `more`. `type` names the limit of
    the outputs. `refused` is a part of the reason for which mscgym refuses the model.
    """

    def __init__(self, name, kind, exporter, maker, *more, type="float32", quantise=True, refused=None, samples=64,
                 **options):
        self.name, self.kind, self.exporter, self.type = name, kind, exporter, type
        self.quantise, self.refused, self.samples = quantise, refused, samples
        self.maker, self.more, self.options = maker, more, options

    def make(self, path, count):
        module, _, function = self.maker.partition(".")
        return getattr(importlib.import_module(module), function)(path, count, *self.more, **self.options)


def exported(kind, maker, rows):
    """Entries of torch's exporters; a row is NAME EXPORTER OPSET and options of the maker."""
    for name, exporter, opset, options in rows:
        yield Entry(f"{name} {exporter}{opset}", kind, f"torch {exporter} opset {opset}", maker,
                    name.partition("@")[0], exporter, opset, **options)


def preload():
    """Imports what most models need, so that processes that are forked for them share it."""
    for name in ("models_torch", "models_transformers", "torchvision", "timm", "onnxruntime.quantization"):
        importlib.import_module(name)


D, T = "dynamo", "script"

LAYERS = [
    ("mlp", D, 18, {}), ("mlp", T, 11, {}), ("cnn", T, 13, {}),
    ("depthwise", D, 20, {}), ("lstm", D, 18, {}), ("lstm", T, 17, {}), ("gru", D, 21, {}),
    ("rnn", T, 12, {}), ("encoder", D, 18, {}), ("encoder", T, 17, {}), ("encoder", D, 23, {}),
    ("sdpa", D, 23, {}), ("sdpa", T, 15, {}), ("swiglu", D, 23, {}), ("tcn", D, 19, {}), ("conv3d", T, 16, {}),
    ("unet", D, 18, {}), ("unet", T, 11, {}), ("norms", D, 21, {}),
    ("super_resolution", D, 22, {}), ("crnn", T, 17, {}), ("bag", T, 13, {}), ("gan", T, 12, {}),
    ("vae", D, 18, {}), ("siamese", D, 20, {}), ("recommender", D, 18, {}), ("wavenet", T, 17, {}),
]

VISION = [
    ("resnet18@224", D, 18, {"side": 224}), ("mobilenet_v2@224", D, 18, {"side": 224}),
    ("resnet18", T, 13, {}), ("mobilenet_v2", T, 11, {}), ("mobilenet_v3_small", D, 18, {}),
    ("mobilenet_v3_large", T, 17, {}), ("efficientnet_b0", D, 18, {}),
    ("shufflenet_v2_x1_0", T, 12, {}), ("squeezenet1_1", D, 19, {}), ("densenet121", T, 14, {}),
    ("googlenet", T, 13, {}), ("mnasnet0_5", D, 18, {}),
    ("regnet_y_400mf", D, 21, {}), ("swin_t", D, 18, {}),
    ("segmentation.lraspp_mobilenet_v3_large", D, 18, {}),
    ("segmentation.deeplabv3_mobilenet_v3_large", T, 17, {}), ("detection.fasterrcnn_mobilenet_v3_large_320_fpn", T, 16, {}),
]

TIMM = [
    ("mobilenetv3_small_050", D, 18, {}), ("mobilenetv4_conv_small", D, 20, {}), ("efficientnet_lite0", T, 13, {}), ("convnext_atto", D, 18, {}), ("convnextv2_atto", T, 17, {}),
    ("vit_tiny_patch16_224", D, 18, {}), ("swin_tiny_patch4_window7_224", D, 18, {}),
    ("mixer_s32_224", D, 18, {}), ("resmlp_12_224", T, 14, {}), ("gmlp_ti16_224", D, 21, {}), ("edgenext_xx_small", D, 18, {}), ("mobilevit_xxs", T, 17, {}),
    ("mobilevitv2_050", D, 18, {}), ("mobileone_s0", D, 18, {}), ("repvgg_a0", T, 12, {}),
    ("ghostnet_050", D, 18, {}), ("levit_128s", D, 18, {}), ("fastvit_t8", D, 18, {}), ("efficientformer_l1", D, 18, {}),
    ("efficientvit_b0", D, 18, {}), ("eva02_tiny_patch14_224", D, 23, {}),
]

TRANSFORMERS = [
    ("bert", D, 18, {}), ("bert", T, 14, {}), ("distilbert", D, 20, {}), ("roberta", T, 17, {}),
    ("albert", D, 18, {}), ("electra", D, 23, {}), ("deberta_v2", D, 18, {}), ("mpnet", D, 18, {}),
    ("gpt2", D, 18, {}), ("gpt_neox", D, 18, {}), ("opt", D, 21, {}), ("llama", D, 18, {}), ("llama", D, 23, {}),
    ("qwen3", D, 23, {}), ("gemma2", D, 18, {}), ("phi3", D, 18, {}), ("bloom", D, 18, {}), ("t5", D, 18, {}),
    ("bart", D, 18, {}), ("whisper", D, 18, {}), ("wav2vec2", D, 18, {}), ("clip", D, 18, {}),
    ("vit", D, 18, {}), ("vit", T, 17, {}), ("swin", D, 18, {}), ("segformer", D, 18, {}), ("yolos", D, 18, {}),
]


def entries():
    from models_tools_list import TOOLS
    return [*exported("layers", "models_torch.layers", LAYERS),
            *exported("torchvision", "models_torch.vision", VISION),
            *exported("timm", "models_torch.timm", TIMM),
            *exported("transformers", "models_transformers.make", TRANSFORMERS), *TOOLS]
