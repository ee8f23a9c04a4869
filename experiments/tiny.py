"""The actor of the experiments: a Llama of a million weights with a tokenizer made for element lists.

Real transformers classes and files, so that `agent.serving` decodes it by its own forward pass and
every trainer opens it. Phrases that all prompts share are one token each: a prompt of twelve elements
is then about 70 tokens, an answer about ten, and a CPU plays hundreds of episodes a minute.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

from agent.serving.manifest import Manifest, write_manifest
from experiments.tasks import TOOL

END, START, STOP = "<|endoftext|>", "<|im_start|>", "<|im_end|>"
TEMPLATE = (
    "{% for message in messages %}{% if message['role'] != 'system' %}"
    "<|im_start|>{{ message['content'] }}<|im_end|>{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>{% endif %}"
)
ROLES = (
    "button", "link", "text", "textbox", "textarea", "checkbox", "radio", "tab", "shape", "heading",
    "combobox",
)  # fmt: skip
PHRASES = (
    "Task: ", "\nScreen:\n[", "\nDone:\n1. ", '"\n[', '" focused\n[', '" value "', "\nOutput: ",
    *(f'] {role} "' for role in ROLES), *(f'click {role} "' for role in ROLES),
    "Thought:", "\nAction: click(element=", "\nAction: type(content='", "\nAction: hotkey(key='",
    "\nAction: execute_bash(command='grep ", "\nAction: finished(content='", "')", f" {TOOL}",
)  # fmt: skip
LONG = 90
"""Instructions of at least so many characters that come again and again are one token each."""

WIDTH, LAYERS, HEADS, INNER, VOCABULARY, CONTEXT = 128, 4, 4, 384, 1024, 1024


def make(folder: Path, texts: Iterable[str], *, seed: int = 0) -> Path:
    """Write a checkpoint folder with random weights; its tokenizer is trained on `texts`."""
    from transformers import LlamaConfig, LlamaForCausalLM

    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = _tokenizer(list(texts))
    tokenizer.save(str(folder / "tokenizer.json"))
    settings: dict[str, Any] = {
        "tokenizer_class": "PreTrainedTokenizerFast", "eos_token": STOP, "pad_token": END,
        "chat_template": TEMPLATE,
    }  # fmt: skip
    (folder / "tokenizer_config.json").write_text(json.dumps(settings, indent=2) + "\n")
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=tokenizer.get_vocab_size(), hidden_size=WIDTH, intermediate_size=INNER,
        num_hidden_layers=LAYERS, num_attention_heads=HEADS, num_key_value_heads=HEADS,
        max_position_embeddings=CONTEXT, tie_word_embeddings=True, bos_token_id=None,
        eos_token_id=tokenizer.token_to_id(STOP), pad_token_id=tokenizer.token_to_id(END),
        initializer_range=0.05,
    )  # fmt: skip
    LlamaForCausalLM(config).save_pretrained(folder)
    write_manifest(
        folder,
        Manifest(dialect="element", observation="elements", coordinates="frame", version="tiny"),
    )
    return folder


def _tokenizer(texts: list[str]) -> Tokenizer:
    """Return byte-level BPE in which a word is cut the same way wherever it stands."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(r"[A-Za-z]+|\d{1,2}"), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY, min_frequency=4, show_progress=False,
        special_tokens=[END, START, STOP],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )  # fmt: skip
    numbers = [f" {n} {n} {n} {n}" for n in range(100)]  # so that each number is one token
    tokenizer.train_from_iterator([*texts, *numbers * 50], trainer)
    phrases = [*PHRASES, *_instructions(texts)]
    tokenizer.add_tokens([AddedToken(p, normalized=False) for p in phrases])
    return tokenizer


def _instructions(texts: list[str]) -> list[str]:
    """Return the long instructions that all of a task's prompts share, such as a game's rules."""
    count: dict[str, int] = {}
    for text in texts:
        if match := re.match(r"Task: (.+)", text):
            count[match.group(1)] = count.get(match.group(1), 0) + 1
    return sorted(words for words, n in count.items() if n >= 5 and len(words) >= LONG)
