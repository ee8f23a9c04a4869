"""Tiny random checkpoints of real classes, made in a second or two; nothing is downloaded.

A conftest imports the fixtures that its tests use; a script calls the makers.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

CHATML = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n"
    "{% if message['content'] is string %}{{ message['content'] }}"
    "{% else %}{% for part in message['content'] %}"
    "{% if part['type'] == 'image' %}<|vision_start|><|image_pad|><|vision_end|>"
    "{% else %}{{ part['text'] }}{% endif %}{% endfor %}{% endif %}"
    "<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
SPECIAL = [
    "<|endoftext|>",
    "<|im_start|>",
    "<|im_end|>",
    "<|vision_start|>",
    "<|vision_end|>",
    "<|image_pad|>",
    "<|video_pad|>",
    "<|box_start|>",
    "<|box_end|>",
]


def make_llama(folder: Path, *, seed: int = 0, version: str = "tiny-llama") -> Path:
    """Write a text checkpoint: a Llama of two layers over bytes; reads elements.

    Written by hand, in the layout of transformers: importing that costs more than most tests.
    """
    import torch
    from safetensors.torch import save_file

    from agent.serving.manifest import Manifest, write_manifest

    size = _tokenizer(folder)
    width, inner, heads, kv_heads, head = 64, 128, 4, 2, 16
    config = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": size,
        "hidden_size": width,
        "intermediate_size": inner,
        "num_hidden_layers": 2,
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "head_dim": head,
        "max_position_embeddings": 4096,
        "rms_norm_eps": 1e-6,
        "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0},
        "hidden_act": "silu",
        "attention_bias": False,
        "mlp_bias": False,
        "tie_word_embeddings": True,
        "bos_token_id": None,
        "eos_token_id": _number("<|im_end|>"),
        "dtype": "float32",
    }
    shapes = {
        "self_attn.q_proj": (heads * head, width),
        "self_attn.k_proj": (kv_heads * head, width),
        "self_attn.v_proj": (kv_heads * head, width),
        "self_attn.o_proj": (width, heads * head),
        "mlp.gate_proj": (inner, width),
        "mlp.up_proj": (inner, width),
        "mlp.down_proj": (width, inner),
    }
    random = torch.Generator().manual_seed(seed)
    weights = {
        f"model.layers.{n}.{name}.weight": torch.randn(shape, generator=random) * 0.2
        for n in range(2)
        for name, shape in shapes.items()
    }
    for norm in ("input_layernorm", "post_attention_layernorm"):
        weights |= {f"model.layers.{n}.{norm}.weight": torch.ones(width) for n in range(2)}
    weights["model.norm.weight"] = torch.ones(width)
    weights["model.embed_tokens.weight"] = torch.randn((size, width), generator=random) * 0.2
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "config.json").write_text(json.dumps(config, indent=2))
    write_manifest(
        folder,
        Manifest(dialect="element", observation="elements", coordinates="frame", version=version),
    )
    return folder


def make_lora(folder: Path, base: Path, *, seed: int = 1, version: str = "tiny-lora") -> Path:
    """Write a LoRA adapter with random (not zero) weights on a text checkpoint."""
    import torch
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForCausalLM

    from agent.serving.manifest import Manifest, write_manifest

    torch.manual_seed(seed)
    model = get_peft_model(
        AutoModelForCausalLM.from_pretrained(base),
        LoraConfig(r=4, lora_alpha=8, target_modules="all-linear", init_lora_weights=False),
    )
    model.save_pretrained(folder)
    write_manifest(
        folder,
        Manifest(
            base=str(base),
            kind="lora",
            dialect="element",
            observation="elements",
            coordinates="frame",
            version=version,
        ),
    )
    return folder


def make_qwen3_vl(folder: Path, *, seed: int = 0, version: str = "tiny-qwen3-vl") -> Path:
    """Write a Qwen3-VL checkpoint of two layers; reads pictures, thousandths, point dialect."""
    import torch
    from transformers import Qwen3VLConfig, Qwen3VLForConditionalGeneration

    text = _text(_tokenizer(folder), {"mrope_section": [4, 2, 2], "mrope_interleaved": True})
    vision = {
        "depth": 2,
        "hidden_size": 32,
        "num_heads": 2,
        "intermediate_size": 64,
        "patch_size": 16,
        "spatial_merge_size": 2,
        "temporal_patch_size": 2,
        "out_hidden_size": 64,
        "num_position_embeddings": 256,
        "deepstack_visual_indexes": [0],
    }
    torch.manual_seed(seed)
    config = Qwen3VLConfig(text_config=text, vision_config=vision, **_marks())
    return _save_vl(folder, Qwen3VLForConditionalGeneration(config), 16, "thousandth", version)


def make_qwen2_5_vl(folder: Path, *, seed: int = 0, version: str = "tiny-qwen2.5-vl") -> Path:
    """Write a Qwen2.5-VL checkpoint (the class of UI-TARS 1.5); box dialect, resized pixels."""
    import torch
    from transformers import Qwen2_5_VLConfig, Qwen2_5_VLForConditionalGeneration

    text = _text(_tokenizer(folder), {"mrope_section": [4, 2, 2]})
    vision = {
        "depth": 2,
        "hidden_size": 32,
        "num_heads": 2,
        "intermediate_size": 64,
        "patch_size": 14,
        "spatial_merge_size": 2,
        "temporal_patch_size": 2,
        "window_size": 112,
        "fullatt_block_indexes": [1],
        "out_hidden_size": 64,
    }
    torch.manual_seed(seed)
    config = Qwen2_5_VLConfig(text_config=text, vision_config=vision, **_marks())
    return _save_vl(folder, Qwen2_5_VLForConditionalGeneration(config), 14, "resized", version)


@pytest.fixture(scope="session")
def tiny_llama(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a tiny text checkpoint."""
    return make_llama(tmp_path_factory.mktemp("tiny") / "llama")


@pytest.fixture(scope="session")
def tiny_lora(tmp_path_factory: pytest.TempPathFactory, tiny_llama: Path) -> Path:
    """A folder with a LoRA adapter on `tiny_llama`."""
    return make_lora(tmp_path_factory.mktemp("tiny") / "lora", tiny_llama)


@pytest.fixture(scope="session")
def tiny_qwen3_vl(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a tiny Qwen3-VL."""
    return make_qwen3_vl(tmp_path_factory.mktemp("tiny") / "qwen3-vl")


@pytest.fixture(scope="session")
def tiny_qwen2_5_vl(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a tiny Qwen2.5-VL."""
    return make_qwen2_5_vl(tmp_path_factory.mktemp("tiny") / "qwen2.5-vl")


def _tokenizer(folder: Path) -> int:
    """Write a byte-level tokenizer (256 bytes, SPECIAL) into `folder`; return its size."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    folder.mkdir(parents=True, exist_ok=True)
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE({c: n for n, c in enumerate(alphabet)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(SPECIAL)
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(
        json.dumps(
            {
                "tokenizer_class": "PreTrainedTokenizerFast",
                "eos_token": "<|im_end|>",
                "pad_token": "<|endoftext|>",
                "chat_template": CHATML,
            }
        )
    )
    return int(tokenizer.get_vocab_size())


def _number(token: str) -> int:
    return 256 + SPECIAL.index(token)


def _text(size: int, rope: dict[str, Any]) -> dict[str, Any]:
    return {
        "vocab_size": size,
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 16,
        "max_position_embeddings": 8192,
        "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0, **rope},
        "bos_token_id": None,
        "eos_token_id": _number("<|im_end|>"),
        "initializer_range": 0.2,
    }


def _marks() -> dict[str, int]:
    return {
        "image_token_id": _number("<|image_pad|>"),
        "video_token_id": _number("<|video_pad|>"),
        "vision_start_token_id": _number("<|vision_start|>"),
        "vision_end_token_id": _number("<|vision_end|>"),
    }


def _save_vl(folder: Path, model: Any, patch: int, coordinates: str, version: str) -> Path:
    from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil

    from agent.serving.manifest import Manifest, write_manifest

    model.save_pretrained(folder)
    edge = (2 * patch) ** 2
    Qwen2VLImageProcessorPil(
        patch_size=patch,
        merge_size=2,
        temporal_patch_size=2,
        size={"shortest_edge": edge * 4, "longest_edge": edge * 256},
    ).save_pretrained(folder)
    write_manifest(
        folder,
        Manifest(
            dialect="box" if coordinates == "resized" else "point",
            observation="screenshot",
            coordinates=coordinates,
            version=version,
        ),
    )
    return folder
