"""The models of models.py: their names, kinds and exporters, and what makes each.

`entries()` lists them. `entry.make(path, count)` writes the model and returns {input: array} of
`count` samples, the samples along the first axis; an array without axes is given to every run.
Packages such as torch are only imported to make a model.
"""
import importlib
import re


class Entry:
    """A model of the list.

    `maker` is MODULE.FUNCTION, called with the path, the count and `more`. `type` names the limit of
    the outputs. `refused` is a part of the reason for which mscgym refuses the model.
    """

    def __init__(self, name, kind, exporter, maker, *more, type="float32", quantise=True, refused=None, samples=64,
                 bind=(), **options):
        self.name, self.kind, self.exporter, self.type = name, kind, exporter, type
        self.quantise, self.refused, self.samples = quantise, refused, samples
        self.maker, self.more, self.options = maker, more, options
        self.bind = [f"--bind={binding}" for binding in bind]

    def make(self, path, count):
        module, _, function = self.maker.partition(".")
        return getattr(importlib.import_module(module), function)(path, count, *self.more, **self.options)


def exported(kind, maker, names):
    """Entries of torch's exporters. A name is NAME[@SIDE] EXPORTER OPSET, with SIDE of the pictures."""
    for name in (" ".join(part.split()) for part in names.split(",")):
        network, exporter, opset = re.fullmatch(r"(\S+) ([a-z]+)(\d+)", name).groups()
        network, _, side = network.partition("@")
        yield Entry(name, kind, f"torch {exporter} opset {opset}", maker, network, exporter, int(opset),
                    **({"side": int(side)} if side else {}))


def preload():
    """Imports what most models need, so that processes that are forked for them share it."""
    for name in ("models_torch", "models_transformers", "torchvision", "timm", "onnxruntime.quantization"):
        importlib.import_module(name)


LAYERS = """
    mlp dynamo18, mlp script11, cnn script13, depthwise dynamo20, lstm dynamo18, lstm script17, gru
    dynamo21, rnn script12, encoder dynamo18, encoder script17, encoder dynamo23, sdpa dynamo23,
    sdpa script15, swiglu dynamo23, tcn dynamo19, conv3d script16, unet dynamo18, unet script11,
    norms dynamo21, super_resolution dynamo22, crnn script17, bag script13, gan script13, vae
    dynamo18, siamese dynamo20, recommender dynamo18, wavenet script17
"""

VISION = """
    resnet18@224 dynamo18, mobilenet_v2@224 dynamo18, resnet18 script13, mobilenet_v2 script11,
    mobilenet_v3_small dynamo18, mobilenet_v3_large script17, efficientnet_b0 dynamo18,
    shufflenet_v2_x1_0 script12, squeezenet1_1 dynamo19, densenet121 script14, googlenet script13,
    mnasnet0_5 dynamo18, regnet_y_400mf dynamo21, swin_t dynamo18,
    segmentation.lraspp_mobilenet_v3_large dynamo18, segmentation.deeplabv3_mobilenet_v3_large
    script17, detection.fasterrcnn_mobilenet_v3_large_320_fpn script16
"""

TIMM = """
    mobilenetv3_small_050 dynamo18, mobilenetv4_conv_small dynamo20, efficientnet_lite0 script13,
    convnext_atto dynamo18, convnextv2_atto script17, vit_tiny_patch16_224 dynamo18,
    swin_tiny_patch4_window7_224 dynamo18, mixer_s32_224 dynamo18, resmlp_12_224 script14,
    gmlp_ti16_224 dynamo21, edgenext_xx_small dynamo18, mobilevit_xxs script17, mobilevitv2_050
    dynamo18, mobileone_s0 dynamo18, repvgg_a0 script12, ghostnet_050 dynamo18, levit_128s@224 dynamo18,
    fastvit_t8 dynamo18, efficientformer_l1@224 dynamo18, efficientvit_b0 dynamo18,
    eva02_tiny_patch14_224 dynamo23
"""

TRANSFORMERS = """
    bert dynamo18, bert script14, distilbert dynamo20, roberta script17, albert dynamo18, electra
    dynamo23, deberta_v2 dynamo18, mpnet dynamo18, gpt2 dynamo18, gpt_neox dynamo18, opt dynamo21,
    llama dynamo18, llama dynamo23, qwen3 dynamo23, gemma2 dynamo18, phi3 dynamo18, bloom dynamo18,
    t5 dynamo18, bart dynamo18, whisper dynamo18, wav2vec2 dynamo18, clip dynamo18, vit dynamo18,
    vit script17, swin dynamo18, segformer dynamo18, yolos dynamo18
"""


def entries():
    from models_tools_list import TOOLS
    return [*exported("layers", "models_torch.layers", LAYERS),
            *exported("torchvision", "models_torch.vision", VISION),
            *exported("timm", "models_torch.timm", TIMM),
            *exported("transformers", "models_transformers.make", TRANSFORMERS), *TOOLS]
