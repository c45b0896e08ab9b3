"""Models of transformers: tiny configurations with random weights, as torch exports them."""
import numpy
import torch
import transformers
from models_torch import enliven, export, mask, noise, pictures, words
from torch import nn

WORDS, WIDTH, LENGTH = 200, 64, 16
SMALL = {"hidden_size": WIDTH, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128}
TEXT = {**SMALL, "vocab_size": WORDS, "max_position_embeddings": 64}
EMBEDDED = {**TEXT, "embedding_size": 32}
GROUPED = {**TEXT, "num_key_value_heads": 2, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
PICTURE = {**SMALL, "image_size": 32, "patch_size": 8, "num_labels": 10}
SPEECH = {"d_model": WIDTH, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4,
          "decoder_attention_heads": 4, "encoder_ffn_dim": 128, "decoder_ffn_dim": 128, "vocab_size": WORDS}


def text(n):
    return {"input_ids": words(n, LENGTH, WORDS), "attention_mask": mask(n, LENGTH)}


def prompt(n):
    return {"input_ids": words(n, LENGTH, WORDS)}


def pair(n):
    return {**text(n), "decoder_input_ids": words(n, 8, WORDS, 3)}


def picture(n):
    return {"pixel_values": pictures(n, 32)}


MODELS = {  # class of the model, of its configuration, the configuration's values, and samples
    "bert": ("BertForSequenceClassification", "BertConfig", TEXT, text),
    "distilbert": ("DistilBertForSequenceClassification", "DistilBertConfig",
                   {"dim": WIDTH, "n_layers": 2, "n_heads": 4, "hidden_dim": 128, "vocab_size": WORDS,
                    "max_position_embeddings": 64}, text),
    "roberta": ("RobertaForTokenClassification", "RobertaConfig", TEXT, text),
    "albert": ("AlbertModel", "AlbertConfig", EMBEDDED, text),
    "electra": ("ElectraForSequenceClassification", "ElectraConfig", EMBEDDED, text),
    "deberta_v2": ("DebertaV2ForSequenceClassification", "DebertaV2Config",
                   {**TEXT, "relative_attention": True, "pos_att_type": ["p2c", "c2p"], "position_buckets": 16}, text),
    "mpnet": ("MPNetModel", "MPNetConfig", TEXT, text),
    "gpt2": ("GPT2LMHeadModel", "GPT2Config",
             {"n_embd": WIDTH, "n_layer": 2, "n_head": 4, "vocab_size": WORDS, "n_positions": 64}, prompt),
    "gpt_neox": ("GPTNeoXForCausalLM", "GPTNeoXConfig", TEXT, prompt),
    "opt": ("OPTForCausalLM", "OPTConfig",
            {**TEXT, "ffn_dim": 128, "word_embed_proj_dim": WIDTH, "pad_token_id": 1}, text),
    "llama": ("LlamaForCausalLM", "LlamaConfig", GROUPED, prompt),
    "qwen3": ("Qwen3ForCausalLM", "Qwen3Config", {**GROUPED, "head_dim": 16}, prompt),
    "gemma2": ("Gemma2ForCausalLM", "Gemma2Config", {**GROUPED, "head_dim": 16, "sliding_window": 8}, prompt),
    "phi3": ("Phi3ForCausalLM", "Phi3Config", GROUPED, prompt),
    "bloom": ("BloomForCausalLM", "BloomConfig",
              {"hidden_size": WIDTH, "n_layer": 2, "n_head": 4, "vocab_size": WORDS}, text),
    "t5": ("T5ForConditionalGeneration", "T5Config",
           {"d_model": WIDTH, "d_kv": 16, "d_ff": 128, "num_layers": 2, "num_heads": 4, "vocab_size": WORDS}, pair),
    "bart": ("BartForConditionalGeneration", "BartConfig", {**SPEECH, "max_position_embeddings": 64}, pair),
    "whisper": ("WhisperForConditionalGeneration", "WhisperConfig",
                {**SPEECH, "num_mel_bins": 20, "max_source_positions": 20, "max_target_positions": 32,
                 "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1},
                lambda n: {"input_features": noise(n, 20, 40), "decoder_input_ids": words(n, 8, WORDS)}),
    "wav2vec2": ("Wav2Vec2ForCTC", "Wav2Vec2Config",
                 {**SMALL, "vocab_size": 32, "conv_dim": (32, 32, 32), "conv_stride": (5, 2, 2),
                  "conv_kernel": (10, 3, 3), "num_feat_extract_layers": 3, "num_conv_pos_embeddings": 16,
                  "num_conv_pos_embedding_groups": 4}, lambda n: {"input_values": noise(n, 800)}),
    "clip": ("CLIPModel", "CLIPConfig",
             {"text_config": {**TEXT, "projection_dim": 32}, "vision_config": {**PICTURE, "projection_dim": 32},
              "projection_dim": 32}, lambda n: {**text(n), **picture(n)}),
    "vit": ("ViTForImageClassification", "ViTConfig", PICTURE, picture),
    "swin": ("SwinForImageClassification", "SwinConfig",
             {"image_size": 32, "patch_size": 2, "embed_dim": 32, "depths": [2, 2], "num_heads": [2, 4],
              "window_size": 4, "num_labels": 10}, picture),
    "segformer": ("SegformerForSemanticSegmentation", "SegformerConfig",
                  {"hidden_sizes": [16, 32, 32, 64], "depths": [1, 1, 1, 1], "decoder_hidden_size": 32,
                   "num_labels": 5}, lambda n: {"pixel_values": pictures(n, 64)}),
    "yolos": ("YolosForObjectDetection", "YolosConfig",
              {**PICTURE, "image_size": [32, 32], "num_detection_tokens": 5}, picture),
}


class Outputs(nn.Module):
    """The logits of a network, or its first outputs, for named inputs."""

    def __init__(self, model, names):
        super().__init__()
        self.model = model
        arguments = ", ".join(names)
        given = ", ".join(f"{name}={name}" for name in names)
        space = {}
        # pylint: disable-next=exec-used
        exec(f"def forward(self, {arguments}):\n    return self.pick(self.model({given}))", space)
        self.__class__ = type("Outputs", (Outputs,), {"forward": space["forward"]})

    def pick(self, result):
        for names in (("logits", "pred_boxes"), ("image_embeds", "text_embeds"), ("logits",), ("last_hidden_state",)):
            if all(getattr(result, name, None) is not None for name in names):
                values = tuple(getattr(result, name) for name in names)
                return values if len(values) > 1 else values[0]
        raise ValueError(f"outputs {list(result)}")


def build(name):
    kind, config, values, _ = MODELS[name]
    settings = getattr(transformers, config)(**values)
    settings.use_cache = False
    torch.manual_seed(0)
    model = getattr(transformers, kind)(settings).eval()
    for part in model.modules():  # initial weights of 0.02 leave attention without effect
        if isinstance(part, (nn.Linear, nn.Embedding)) or type(part).__name__ == "Conv1D":
            nn.init.normal_(part.weight, std=min(part.weight.shape) ** -0.5 if part.weight.dim() > 1 else 1)
    enliven(model)
    return model


def make(path, count, name, exporter, opset, **options):
    transformers.logging.set_verbosity_error()
    values = MODELS[name][3](count)
    values = {k: v.astype(numpy.int64) if v.dtype.kind == "i" else v for k, v in values.items()}
    export(Outputs(build(name), [*values]), values, path, exporter, opset, **options)
    return values
