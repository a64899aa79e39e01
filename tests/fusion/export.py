"""Writes the exported fixtures: tiny models of many families, by torch.onnx.export.  Needs torch and transformers.

    python tests/fusion/export.py OUT [family ...] [--opset 18] [--attention eager|sdpa]

Tests do not run this; they read what it wrote.  Weights are random and small, so that results stay near 1.
"""

from __future__ import annotations

import argparse
import sys
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

SMALL: dict[str, Any] = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 64,
    "max_position_embeddings": 64,
    "head_dim": 8,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}


def _text(
    model: str, config: str, decoder: bool = True, dense: bool = False, **more: Any
) -> Callable[[str], tuple[Any, dict[str, Any]]]:
    """A model of token ids.  `dense` puts one SiLU in the place of a mixture of experts, which cannot be exported."""

    def make(attention: str) -> tuple[Any, dict[str, Any]]:
        import torch
        import transformers

        chosen = {k: v for k, v in {**SMALL, **more}.items() if v is not None}
        settings = getattr(transformers, config)(**chosen, attn_implementation=attention)
        made = getattr(transformers, model)(settings)
        inputs = {"input_ids": torch.randint(3, 60, (2, 6)), "attention_mask": torch.ones(2, 6, dtype=torch.int64)}
        inputs["attention_mask"][1, 4:] = 0
        if decoder:
            made.config.use_cache = False
        for layer in made.layers if dense else ():
            layer.mlp = _Dense.make()
        return made, inputs

    return make


class _Dense:
    @staticmethod
    def make() -> Any:
        import torch

        class Dense(torch.nn.Module):
            def forward(self, x: Any) -> Any:
                return torch.nn.functional.silu(x), None

        return Dense()


def _image(model: str, config: str, size: int = 16, **more: Any) -> Callable[[str], tuple[Any, dict[str, Any]]]:
    def make(attention: str) -> tuple[Any, dict[str, Any]]:
        import torch
        import transformers

        base = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4,
                "image_size": size, "patch_size": 4, "num_channels": 3}  # fmt: skip
        chosen = {k: v for k, v in {**base, **more}.items() if v is not None}
        settings = getattr(transformers, config)(**chosen, attn_implementation=attention)
        return getattr(transformers, model)(settings), {"pixel_values": torch.randn(2, 3, size, size)}

    return make


def _sequence(model: str, config: str, **more: Any) -> Callable[[str], tuple[Any, dict[str, Any]]]:
    """Encoder and decoder."""

    def make(attention: str) -> tuple[Any, dict[str, Any]]:
        import torch
        import transformers

        settings = getattr(transformers, config)(**more, attn_implementation=attention, use_cache=False)
        ids = torch.randint(3, 60, (2, 6))
        inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids), "decoder_input_ids": ids[:, :5].clone()}
        return getattr(transformers, model)(settings), inputs

    return make


def _whisper(attention: str) -> tuple[Any, dict[str, Any]]:
    import torch
    import transformers

    settings = transformers.WhisperConfig(
        d_model=32, encoder_layers=1, decoder_layers=1, encoder_attention_heads=4, decoder_attention_heads=4,
        encoder_ffn_dim=48, decoder_ffn_dim=48, vocab_size=64, num_mel_bins=8, max_source_positions=8,
        max_target_positions=16, pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1,
        attn_implementation=attention, use_cache=False,
    )  # fmt: skip
    inputs = {"input_features": torch.randn(2, 8, 16), "decoder_input_ids": torch.randint(3, 60, (2, 5))}
    return transformers.WhisperModel(settings), inputs


def _clip(attention: str) -> tuple[Any, dict[str, Any]]:
    import torch
    import transformers

    text = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4,
            "vocab_size": 64, "max_position_embeddings": 16, "pad_token_id": 0, "bos_token_id": 1,
            "eos_token_id": 2}  # fmt: skip
    settings = transformers.CLIPTextConfig(**text, attn_implementation=attention)
    return transformers.CLIPTextModel(settings), {"input_ids": torch.randint(3, 60, (2, 6))}


_BART = {"d_model": 32, "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 4,
         "decoder_attention_heads": 4, "encoder_ffn_dim": 48, "decoder_ffn_dim": 48, "vocab_size": 64,
         "max_position_embeddings": 32}  # fmt: skip
_GPT = {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 32, "rotary_dim": 4, "n_inner": 48}

FAMILIES: dict[str, Callable[[str], tuple[Any, dict[str, Any]]]] = {
    "bert": _text("BertModel", "BertConfig", decoder=False),
    "roberta": _text("RobertaModel", "RobertaConfig", decoder=False, pad_token_id=1),
    "distilbert": _text("DistilBertModel", "DistilBertConfig", decoder=False, dim=32, n_layers=2, n_heads=4,
                        hidden_dim=48),
    "gpt2": _text("GPT2Model", "GPT2Config", **_GPT),
    "gptj": _text("GPTJModel", "GPTJConfig", **_GPT),
    "gpt_neox": _text("GPTNeoXModel", "GPTNeoXConfig", rotary_pct=0.5),
    "llama": _text("LlamaModel", "LlamaConfig"),
    "mistral": _text("MistralModel", "MistralConfig", sliding_window=4),
    "qwen2": _text("Qwen2Model", "Qwen2Config"),
    "qwen3": _text("Qwen3Model", "Qwen3Config"),
    "gemma2": _text("Gemma2Model", "Gemma2Config", query_pre_attn_scalar=16, sliding_window=4),
    "gemma3": _text("Gemma3TextModel", "Gemma3TextConfig", query_pre_attn_scalar=16, sliding_window=4),
    "phi": _text("PhiModel", "PhiConfig", partial_rotary_factor=0.5),
    "phi3": _text("Phi3Model", "Phi3Config", original_max_position_embeddings=64),
    "cohere": _text("CohereModel", "CohereConfig"),
    "stablelm": _text("StableLmModel", "StableLmConfig", partial_rotary_factor=0.5),
    "olmo2": _text("Olmo2Model", "Olmo2Config"),
    "gpt_oss": _text("GptOssModel", "GptOssConfig", dense=True, sliding_window=4, num_local_experts=2),
    "falcon": _text("FalconModel", "FalconConfig", multi_query=True, new_decoder_architecture=False,
                    head_dim=None, num_key_value_heads=None),
    "bloom": _text("BloomModel", "BloomConfig", n_layer=2, n_head=4),
    "opt": _text("OPTModel", "OPTConfig", ffn_dim=48, word_embed_proj_dim=32),
    "t5": _sequence("T5Model", "T5Config", d_model=32, d_kv=8, d_ff=48, num_layers=1, num_decoder_layers=1,
                    num_heads=4, vocab_size=64, decoder_start_token_id=0, feed_forward_proj="gated-gelu"),
    "bart": _sequence("BartModel", "BartConfig", **_BART, pad_token_id=0, bos_token_id=1, eos_token_id=2),
    "whisper": _whisper,
    "vit": _image("ViTModel", "ViTConfig"),
    "clip": _clip,
    "swin": _image("SwinModel", "SwinConfig", size=16, embed_dim=16, depths=[2], num_heads=[2], window_size=2,
                   num_hidden_layers=None, num_attention_heads=None, hidden_size=None),
    "dinov2": _image("Dinov2Model", "Dinov2Config"),
    "albert": _text("AlbertModel", "AlbertConfig", decoder=False, embedding_size=16),
    "deberta_v2": _text("DebertaV2Model", "DebertaV2Config", decoder=False, relative_attention=True,
                        pos_att_type=["p2c", "c2p"], position_buckets=8),
    "modernbert": _text("ModernBertModel", "ModernBertConfig", decoder=False, global_attn_every_n_layers=2,
                        local_attention=4),
    "esm": _text("EsmModel", "EsmConfig", decoder=False, position_embedding_type="rotary", mask_token_id=5),
    "gpt_neo": _text("GPTNeoModel", "GPTNeoConfig", num_layers=2, num_heads=4, window_size=4,
                     attention_types=[[["global", "local"], 1]], num_hidden_layers=None, num_attention_heads=None),
    "gpt_bigcode": _text("GPTBigCodeModel", "GPTBigCodeConfig", **_GPT),
    "mpt": _text("MptModel", "MptConfig", d_model=32, n_heads=4, n_layers=2, max_seq_len=32, expansion_ratio=2,
                 num_attention_heads=None, num_hidden_layers=None, hidden_size=None),
    "persimmon": _text("PersimmonModel", "PersimmonConfig"),
    "granite": _text("GraniteModel", "GraniteConfig", attention_multiplier=0.3, residual_multiplier=0.5),
    "nemotron": _text("NemotronModel", "NemotronConfig"),
    "glm4": _text("Glm4Model", "Glm4Config"),
    "cohere2": _text("Cohere2Model", "Cohere2Config", sliding_window=4),
    "exaone4": _text("Exaone4Model", "Exaone4Config", sliding_window=4),
    "qwen2_vl_text": _text("Qwen2VLTextModel", "Qwen2VLTextConfig", rope_parameters={
        "rope_type": "default", "mrope_section": [1, 1, 2], "rope_theta": 10000.0}),
    "xglm": _text("XGLMModel", "XGLMConfig", d_model=32, ffn_dim=48, num_layers=2, attention_heads=4),
    "m2m_100": _sequence("M2M100Model", "M2M100Config", **_BART, pad_token_id=0, bos_token_id=1, eos_token_id=2),
    "mt5": _sequence("MT5Model", "MT5Config", d_model=32, d_kv=8, d_ff=48, num_layers=1, num_decoder_layers=1,
                     num_heads=4, vocab_size=64, decoder_start_token_id=0),
    "beit": _image("BeitModel", "BeitConfig"),
    "dinov3": _image("DINOv3ViTModel", "DINOv3ViTConfig"),
    "siglip": _image("SiglipVisionModel", "SiglipVisionConfig"),
    "segformer": _image("SegformerModel", "SegformerConfig", num_encoder_blocks=2, depths=[1, 1], sr_ratios=[2, 1],
                        hidden_sizes=[16, 32], num_attention_heads=[2, 4], patch_sizes=[3, 3], strides=[2, 2],
                        mlp_ratios=[2, 2], hidden_size=None, num_hidden_layers=None),
}  # fmt: skip


def _with_cache(model: Any, inputs: dict[str, Any], past: int = 4) -> tuple[Any, dict[str, Any]]:
    """A decoder whose keys and values of earlier tokens are inputs, and those of all tokens outputs."""
    import torch
    import transformers

    names, config = list(inputs), model.config
    # Every configuration here says num_key_value_heads; only layers that group heads mean it.
    groups = max((getattr(m, "num_key_value_groups", 1) for m in model.modules()), default=1)
    heads, width = config.num_attention_heads // groups, config.hidden_size // config.num_attention_heads
    shape = (2, heads, past, width)
    inputs = {**inputs, "attention_mask": torch.ones(2, past + inputs["input_ids"].shape[1], dtype=torch.int64)}
    for i in range(config.num_hidden_layers):
        inputs |= {f"past_key_{i}": torch.randn(shape), f"past_value_{i}": torch.randn(shape)}

    class Cached(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = model

        def forward(self, **values: Any) -> Any:
            cache = transformers.DynamicCache()
            for i in range(config.num_hidden_layers):
                cache.update(values[f"past_key_{i}"], values[f"past_value_{i}"], i)
            given = {name: values[name] for name in names}
            out = self.inner(**given, past_key_values=cache, use_cache=True)
            present = [t for layer in out.past_key_values.layers for t in (layer.keys, layer.values)]
            return ((out.last_hidden_state, *present),)

    return Cached(), inputs


def export(
    family: str,
    attention: str,
    opset: int,
    path: Path,
    dynamic: bool = False,
    cache: bool = False,
    torchscript: bool = False,
) -> None:
    """One file; the inputs are those of the example, in its order.  `torchscript`: by the exporter of earlier years."""
    import torch

    torch.manual_seed(0)
    model, inputs = FAMILIES[family](attention)
    if cache:
        model, inputs = _with_cache(model, inputs)
    model = model.eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.dim() == 1 and "norm" in name.lower() and name.endswith("weight"):
                parameter.copy_(1 + 0.1 * torch.randn_like(parameter))

    class Wrapped(torch.nn.Module):
        def __init__(self, inner: Any) -> None:
            super().__init__()
            self.inner = inner

        def forward(self, *values: Any) -> Any:
            return self.inner(**dict(zip(inputs, values, strict=True)))[0]

    if torchscript:
        axes = {n: {0: "batch", 1: "length"} if v.dim() == 2 else {0: "batch"} for n, v in inputs.items()}
        torch.onnx.export(
            Wrapped(model), tuple(inputs.values()), str(path), dynamo=False, opset_version=opset,
            input_names=list(inputs), dynamic_axes=axes,
        )  # fmt: skip
        strip(path)
        return

    shapes = None
    if dynamic:
        batch, length = torch.export.Dim("batch", min=2, max=64), torch.export.Dim("length", min=3, max=32)
        shapes = (tuple({0: batch, 1: length} if v.dim() == 2 else {0: batch} for v in inputs.values()),)
        if cache:
            total, past = (torch.export.Dim(n, min=2, max=64) for n in ("total", "past"))
            by_name: dict[str, Any] = {"input_ids": {0: batch, 1: length}, "attention_mask": {0: batch, 1: total}}
            shapes = (tuple(by_name.get(name, {0: batch, 2: past}) for name in inputs),)
    program = torch.onnx.export(
        Wrapped(model), tuple(inputs.values()), dynamo=True, opset_version=opset, input_names=list(inputs),
        dynamic_shapes=shapes, verbose=False,
    )  # fmt: skip
    program.save(str(path))
    strip(path)


def strip(path: Path) -> None:
    """Take out what only people who debug the exporter read: traces, names of modules, shapes of inner values."""
    import onnx

    model = onnx.load(str(path))
    model.ClearField("metadata_props")
    for graph in (model.graph, *model.functions):
        graph.ClearField("value_info")
        graph.ClearField("metadata_props")
        for item in (*graph.node, *getattr(graph, "initializer", ()), *graph.input, *graph.output):
            for name in ("metadata_props", "doc_string"):
                if hasattr(item, name):
                    item.ClearField(name)
    onnx.save(model, str(path))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("families", nargs="*")
    parser.add_argument("--opset", type=int, default=18)
    parser.add_argument("--attention", default="eager")
    parser.add_argument("--dynamic", action="store_true")
    parser.add_argument("--torchscript", action="store_true", help="the older exporter; always with dynamic sizes")
    parser.add_argument("--cache", action="store_true", help="keys and values of earlier tokens are inputs")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    failed = 0
    for family in options.families or FAMILIES:
        variant = "".join(f"_{word}" for word in ("cache", "torchscript", "dynamic") if getattr(options, word))
        path = options.out / f"{family}_{options.attention}_{options.opset}{variant}.onnx"
        try:
            export(
                family, options.attention, options.opset, path, options.dynamic, options.cache, options.torchscript
            )
            print(f"{path.name}: {path.stat().st_size} bytes", flush=True)
        except Exception as error:
            failed += 1
            traceback.print_exc()
            print(f"{family}: {type(error).__name__}: {str(error)[:300]}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
