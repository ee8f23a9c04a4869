"""Messages to tokens and pictures to patches, without torchvision and without the hub's classes.

transformers' own processors of the Qwen-VL family need torchvision (for videos). What a screen
needs of them is small: the chat template, one placeholder per picture patch, and the patches.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jinja2
import jinja2.sandbox
import torch
from tokenizers import Tokenizer

from agent.serving.manifest import CheckpointError, read_json

if TYPE_CHECKING:
    from PIL.Image import Image

IMAGE = "<|image_pad|>"
# A page may show these as text; as tokens they would end a message or fake a picture.
_CONTROL = re.compile(r"<\|(im_start|im_end|endoftext|vision_\w+|image_pad|video_pad)\|>")

Picture = Callable[[Mapping[str, Any]], "Image"]


class PromptError(ValueError):
    """Messages can't be turned into a prompt for this checkpoint."""


@dataclass(slots=True)
class Encoded:
    """A prompt: `ids` are its tokens; `extra` are the tensors that go with pictures.

    `extra` holds pixel_values (patches, channels x patch²), image_grid_thw (pictures, 3) and
    mm_token_type_ids (1, tokens), or nothing.
    """

    ids: list[int]
    extra: dict[str, torch.Tensor] = field(default_factory=dict)


class Processor:
    """The tokenizer, the chat template and, where the model sees, the picture processor."""

    def __init__(self, folder: Path) -> None:
        try:
            self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        except Exception as error:
            raise CheckpointError(f"{folder / 'tokenizer.json'} can't be read: {error}") from error
        settings = read_json(folder / "tokenizer_config.json")
        template = folder / "chat_template.jinja"
        text = template.read_text() if template.exists() else settings.get("chat_template")
        if not text:
            raise CheckpointError(f"{folder} has no chat template")
        environment = jinja2.sandbox.ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
        )
        environment.globals["raise_exception"] = _raise
        self._template = environment.from_string(text)
        self._tokens = {
            key: _token(settings.get(key)) for key in ("bos_token", "eos_token", "pad_token")
        }
        self.eos_ids = self._find_eos(folder)
        self.pad_id = self.tokenizer.token_to_id(self._tokens["pad_token"]) or 0
        self._pictures = _picture_processor(folder)

    @property
    def sees(self) -> bool:
        """Whether the model reads pictures."""
        return self._pictures is not None

    def prompt(
        self, messages: Sequence[Mapping[str, Any]], picture: Picture | None = None
    ) -> Encoded:
        """Return the tokens that end where the assistant's answer begins.

        `picture` opens an image part ({"type": "image", "sha256"} or {"type": "image_url"}).
        Raises PromptError.
        """
        text, parts = self._text(messages, picture)
        if not parts or self._pictures is None or picture is None:
            return Encoded(self._ids(text))
        batch = self._pictures(images=[picture(part) for part in parts], return_tensors="pt")
        merge = self._pictures.merge_size**2
        ids = self._ids(_filled(text, [int(g.prod()) // merge for g in batch["image_grid_thw"]]))
        pad = self.tokenizer.token_to_id(IMAGE)
        extra = {
            "pixel_values": batch["pixel_values"],
            "image_grid_thw": batch["image_grid_thw"],
            "mm_token_type_ids": torch.tensor([[int(token == pad) for token in ids]]),
        }
        return Encoded(ids, extra)

    def count(
        self, messages: Sequence[Mapping[str, Any]], picture: Picture | None = None
    ) -> list[int]:
        """Return the tokens of `prompt` without cutting the pictures into patches.

        `picture` need only open the file: its size says how many tokens it has. Raises PromptError.
        """
        text, parts = self._text(messages, picture)
        if not parts or self._pictures is None or picture is None:
            return self._ids(text)
        merge = self._pictures.merge_size**2
        counts = []
        for part in parts:
            width, height = picture(part).size
            counts.append(self._pictures.get_number_of_image_patches(height, width) // merge)
        return self._ids(_filled(text, counts))

    def _text(
        self, messages: Sequence[Mapping[str, Any]], picture: Picture | None
    ) -> tuple[str, list[Any]]:
        """Return the templated text with one IMAGE per picture, and the image parts."""
        plain, parts = _plain(messages)
        if parts and (self._pictures is None or picture is None):
            raise PromptError("this model does not read pictures")
        try:
            text = self._template.render(
                messages=plain if self.sees else _texts_only(plain),
                add_generation_prompt=True,
                **self._tokens,
            )
        except jinja2.TemplateError as error:
            raise PromptError(f"the chat template refuses the messages: {error}") from error
        return text, parts

    def target_ids(self, text: str) -> list[int]:
        """Return the tokens of an assistant's answer, with the token that ends it."""
        return [*self._ids(text), self.eos_ids[0]]

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of tokens, without the ones that end a message."""
        kept = [token for token in ids if token not in self.eos_ids]
        return str(self.tokenizer.decode(kept, skip_special_tokens=False))

    def _ids(self, text: str) -> list[int]:
        return list(self.tokenizer.encode(text, add_special_tokens=False).ids)

    def _find_eos(self, folder: Path) -> list[int]:
        """Return the end tokens; the first one ends a message of the chat template."""
        ids: list[int] = []
        for token in ("<|im_end|>", self._tokens["eos_token"]):
            number = self.tokenizer.token_to_id(token) if token else None
            if number is not None and number not in ids:
                ids.append(number)
        path = folder / "generation_config.json"
        stated = read_json(path).get("eos_token_id") if path.exists() else None
        for number in [stated] if isinstance(stated, int) else stated or []:
            if number not in ids:
                ids.append(number)
        if not ids:
            raise CheckpointError(f"{folder} names no end token")
        return ids


def _filled(text: str, counts: Sequence[int]) -> str:
    """Return the text with each picture's one IMAGE repeated as often as it has tokens."""
    pieces = text.split(IMAGE)
    if len(pieces) != len(counts) + 1:
        raise PromptError(f"{len(counts)} pictures, {len(pieces) - 1} places in the prompt")
    return pieces[0] + "".join(
        IMAGE * count + piece for count, piece in zip(counts, pieces[1:], strict=True)
    )


def _plain(messages: Sequence[Mapping[str, Any]]) -> tuple[list[dict[str, Any]], list[Any]]:
    """Return messages with bare image parts and without control tokens, and the image parts."""
    plain: list[dict[str, Any]] = []
    pictures: list[Any] = []
    for message in messages:
        role, content = message.get("role"), message.get("content")
        if role not in ("system", "user", "assistant"):
            raise PromptError(f"unknown role {role!r}")
        if isinstance(content, str):
            plain.append({"role": role, "content": _CONTROL.sub(r"<\1>", content)})
            continue
        if not isinstance(content, list):
            raise PromptError("content must be a text or a list of parts")
        kept: list[dict[str, str]] = []
        for part in content:
            kind = part.get("type") if isinstance(part, Mapping) else None
            if kind == "text" and isinstance(part.get("text"), str):
                kept.append({"type": "text", "text": _CONTROL.sub(r"<\1>", part["text"])})
            elif kind in ("image", "image_url"):
                pictures.append(part)
                kept.append({"type": "image"})
            else:
                raise PromptError(f"unknown content part {kind!r}")
        plain.append({"role": role, "content": kept})
    return plain, pictures


def _texts_only(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    # Templates of text models expect a string.
    return [
        m
        if isinstance(m["content"], str)
        else {**m, "content": "\n".join(part["text"] for part in m["content"])}
        for m in messages
    ]


def _picture_processor(folder: Path) -> Any:
    if not (folder / "preprocessor_config.json").exists():
        return None
    from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil

    return Qwen2VLImageProcessorPil.from_pretrained(str(folder))


def _token(value: object) -> str:
    if isinstance(value, dict):
        value = value.get("content")
    return value if isinstance(value, str) else ""


def _raise(message: str) -> None:
    raise jinja2.TemplateError(message)
