"""``redraft listen``: from speech to captions, and its refusals."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import soundfile

from redraft.cli import main
from redraft.errors import install
from redraft.speech import delay
from redraft.speech.audio import RATE, Samples
from redraft.speech.recogniser import Recognised
from tests.cli.conftest import Run
from tests.speech.recognisers import Scripted, dickens


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    """Four seconds of silence, in stereo."""
    path = tmp_path / "talk.flac"
    soundfile.write(path, np.zeros((180_000, 2), np.int16), 44_100)
    return path


def test_speech_becomes_captions_and_subtitles(redraft: Run, tmp_path: Path) -> None:
    path = dickens(tmp_path / "talk.wav", seconds=7)
    done = redraft("listen", str(path), "--to", "de", "--pause", "0.25", "--output", "jsonl")
    finals = [row for row in done.rows if row["type"] == "final"]
    assert done.status == 0 and done.err == f"redraft: recogniser moonshine:tiny-en, audio from {str(path)!r}\n"
    assert "it was the best of times" in finals[0]["source"].lower()
    assert "Zeit" in finals[0]["text"]
    done = redraft("listen", str(path), "--to", "de", "--pause", "0.25", "--output", "srt")
    assert done.out.startswith("1\n00:00:0") and "\n\n2\n00:00:0" in done.out
    assert done.out.count(" --> ") >= len(finals)  # a long one has several cues


def test_what_recogniser_hears_is_translated(redraft: Run, scripted: Scripted, recording: Path) -> None:
    done = redraft("listen", str(recording), "--to", "de", "--output", "jsonl")
    assert done.status == 0, done.err
    assert [row["source"] for row in done.rows if row["type"] == "final"] == ["I have a dog", "I have a dog"]
    assert [row["time"] for row in done.rows if row["type"] == "final"] == [2.0, 4.0]
    assert scripted.closed


@pytest.mark.usefixtures("scripted")
def test_what_is_heard_is_translated_by_server(redraft: Run, recording: Path) -> None:
    from tests.serve.servers import running
    from tests.serve.talking import expected

    with running() as server:
        done = redraft(
            "listen", str(recording), "--to", "de", "--server", server.url, "--method", "ar", "--output", "srt"
        )
    assert done.status == 0 and "viewers: http://127.0.0.1:" in done.err
    assert done.out.count(expected("I have a dog")) == 2 and "00:00:02,000 --> 00:00:04,000" in done.out


@pytest.mark.usefixtures("scripted")
def test_recording_at_its_own_pace(redraft: Run, recording: Path) -> None:
    began = time.monotonic()
    done = redraft("listen", str(recording), "--to", "de", "--output", "jsonl", "--speed", "4")
    assert done.status == 0 and time.monotonic() - began > 1
    assert [row["source"] for row in done.rows if row["type"] == "final"] == ["I have a dog", "I have a dog"]


@pytest.mark.parametrize("speed", ["4", None])
def test_slow_recogniser(
    redraft: Run, scripted: Scripted, recording: Path, monkeypatch: pytest.MonkeyPatch, speed: str | None
) -> None:
    monkeypatch.setattr(delay, "LATE", 0.5)
    hear = scripted.hear

    def slowly(samples: Samples) -> Iterator[Recognised]:
        time.sleep(0.05)  # twice as long as the audio at this speed
        yield from hear(samples)

    monkeypatch.setattr(scripted, "hear", slowly)
    done = redraft("listen", str(recording), "--to", "de", *(("--speed", speed) if speed else ()))
    warned = re.search(r"redraft: the recogniser is \d+ s behind the speech: choose a smaller model or .*\n", done.err)
    assert done.status == 0 and bool(warned) == bool(speed)  # a recording that is not live cannot be behind


@pytest.mark.usefixtures("scripted")
def test_raw_audio_from_pipe(redraft: Run) -> None:
    pcm = bytes(2 * 2 * 48_000 * 2)
    done = redraft("listen", "-", "--to", "de", "--rate", "48000", "--channels", "2", "--output", "jsonl", stdin=pcm)
    assert [row["source"] for row in done.rows if row["type"] == "final"] == ["I have a dog"]


def test_recogniser_that_dies_keeps_what_it_has_recognised(redraft: Run, scripted: Scripted, recording: Path) -> None:
    scripted.dies_after = 3.1
    done = redraft("listen", str(recording), "--to", "de", "--output", "srt")
    assert done.status == 1
    assert re.search("redraft: the recogniser stopped after 3.. s of audio: RuntimeError: out of memory\n$", done.err)
    assert "00:00:00,000 --> 00:00:01,920" in done.out and "\n2\n" in done.out


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["absent.wav"], "input file 'absent.wav' cannot be read: No such file or directory"),
        ([__file__], "is not audio that can be read, such as WAV, FLAC, MP3 or Ogg"),
        (["absent.wav", "--recogniser", "nothing"], "recogniser 'nothing' is not known; known recognisers: moonshine"),
        (["talk.wav", "--recogniser", "moonshine:huge"], "moonshine has no model 'huge': name one of tiny-en"),
        (["talk.wav", "--recogniser", "moonshine", "--from", "fr"], "moonshine recognises ar, en, es"),
        (
            ["talk.wav", "--rate", "8000"],
            "--rate is for raw audio from standard input, so leave it out unless the file is -",
        ),
        (["-", "--rate", "10"], "10 is not in the range 4000<=x<=384000"),
        (["-", "--channels", "0"], "0 is not in the range 1<=x<=64"),
        (["talk.wav", "--device", "2"], "--device is for the microphone, so leave it out with a file"),
        (["--speed", "2"], "--speed is for a file, so leave it out with the microphone"),
        (["talk.wav", "--speed", "0"], "0.0 is not in the range x>0"),
        (["talk.wav", "--room", "hall-1"], "--room is for a session on a server"),
    ],
)
def test_refusals(
    redraft: Run, arguments: list[str], complaint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    soundfile.write("talk.wav", np.zeros(RATE, np.int16), RATE)
    done = redraft("listen", "--to", "de", *arguments)
    assert done.status == 2 and done.out == ""
    assert complaint in done.err and done.err.count("\n") == 1


def test_silence_has_no_captions(redraft: Run, tmp_path: Path) -> None:
    soundfile.write(tmp_path / "silence.wav", np.zeros(6 * RATE, np.int16), RATE)
    done = redraft("listen", str(tmp_path / "silence.wav"), "--to", "de")
    assert done.out == "" and done.status == 0
    assert "redraft: no speech was recognised: if somebody is speaking, check " in done.err


@pytest.mark.parametrize("missing", ["soundfile", "soxr", "sounddevice"])
def test_without_extra(redraft: Run, monkeypatch: pytest.MonkeyPatch, missing: str, recording: Path) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    done = redraft("listen", "--to", "de", *([] if missing == "sounddevice" else [str(recording)]))
    assert done.status == 2
    assert done.err == f"redraft: this needs {missing}, which is not installed: {install('listen')}\n"


@pytest.mark.usefixtures("scripted")
def test_recognisers_are_listed(redraft: Run) -> None:
    assert redraft("listen", "--list-recognisers").out == "moonshine\tfor tests\nmoonshine:small\ta model\n"


def test_standard_input_that_is_closed(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(SystemExit):
        main(("listen", "-", "--to", "de"))
    assert capsys.readouterr().err == "redraft: standard input is closed: name a file to read\n"
