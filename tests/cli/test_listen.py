"""``redraft listen``: from speech to captions, and its refusals."""

from __future__ import annotations

import re
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from redraft.captions.events import Failure, Update
from redraft.cli import main
from redraft.speech import registry
from redraft.speech.audio import RATE
from tests.cli.conftest import Run
from tests.speech.recognisers import Scripted, silence, spoken

soundfile = pytest.importorskip("soundfile")
pytest.importorskip("pocketsphinx")


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch) -> Scripted:
    """What `redraft listen` recognises with, in place of any recogniser."""
    made = Scripted(words=4, sentence="I have a dog")
    module = SimpleNamespace(SUMMARY="for tests", MODELS={"small": "a model"}, recogniser=lambda _: made)
    point = SimpleNamespace(name="pocketsphinx", load=lambda: module)
    monkeypatch.setattr(registry, "entry_points", lambda group: [point] if group == registry.ENTRY_POINT_GROUP else [])
    return made


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    """Four seconds of silence, in stereo."""
    path = tmp_path / "talk.flac"
    soundfile.write(path, np.zeros((180_000, 2), np.int16), 44_100)
    return path


def test_speech_becomes_captions_and_subtitles(redraft: Run, tmp_path: Path) -> None:
    path = spoken(tmp_path / "talk.wav", ["My name is Mary.", "We also found two bicycles."])
    done = redraft("listen", str(path), "--to", "de", "--pause", "0.24", "--output", "jsonl")
    finals = [row for row in done.rows if row["type"] == "final"]
    assert len(finals) == 2 and done.status == 0
    assert "my name is mary" in finals[0]["source"]
    assert "Mar" in finals[0]["text"]
    done = redraft("listen", str(path), "--to", "de", "--pause", "0.24", "--output", "srt")
    assert done.out.startswith("1\n00:00:00,000 --> 00:00:01,") and "\n\n2\n00:00:01," in done.out
    assert finals[1]["text"] in done.out


def test_what_a_recogniser_hears_is_translated(redraft: Run, scripted: Scripted, recording: Path) -> None:
    done = redraft("listen", str(recording), "--to", "de", "--output", "jsonl")
    assert done.status == 0, done.err
    assert [row["source"] for row in done.rows if row["type"] == "final"] == ["I have a dog", "I have a dog"]
    assert [row["time"] for row in done.rows if row["type"] == "final"] == [2.0, 4.0]
    assert scripted.closed


@pytest.mark.usefixtures("scripted")
def test_what_is_heard_is_translated_by_a_server(redraft: Run, recording: Path) -> None:
    pytest.importorskip("starlette")
    from tests.serve.servers import running
    from tests.serve.test_sockets import expected

    with running() as server:
        done = redraft(
            "listen", str(recording), "--to", "de", "--server", server.url, "--method", "ar", "--output", "srt"
        )
    assert done.status == 0 and done.err.startswith("viewers: http://127.0.0.1:")
    assert done.out.count(expected("I have a dog")) == 2 and "00:00:02,000 --> 00:00:04,000" in done.out


@pytest.mark.usefixtures("scripted")
def test_a_recording_at_its_own_pace(redraft: Run, recording: Path) -> None:
    began = time.monotonic()
    done = redraft("listen", str(recording), "--to", "de", "--output", "jsonl", "--speed", "4")
    assert done.status == 0 and time.monotonic() - began > 1
    assert [row["source"] for row in done.rows if row["type"] == "final"] == ["I have a dog", "I have a dog"]


@pytest.mark.usefixtures("scripted")
def test_raw_audio_from_a_pipe(redraft: Run) -> None:
    pcm = bytes(2 * 2 * 48_000 * 2)
    done = redraft("listen", "-", "--to", "de", "--rate", "48000", "--channels", "2", "--output", "jsonl", stdin=pcm)
    assert [row["source"] for row in done.rows if row["type"] == "final"] == ["I have a dog"]


def test_a_recogniser_that_dies_keeps_what_it_has_recognised(redraft: Run, scripted: Scripted, recording: Path) -> None:
    scripted.dies_after = 3.1
    done = redraft("listen", str(recording), "--to", "de", "--output", "srt")
    assert done.status == 1
    assert re.fullmatch("error: the recogniser stopped after 3.. s of audio: RuntimeError: out of memory\n", done.err)
    assert "00:00:00,000 --> 00:00:02,000" in done.out and "\n2\n" in done.out


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["absent.wav"], "input file 'absent.wav' cannot be read: No such file or directory"),
        ([__file__], "is not audio that can be read, such as WAV, FLAC, MP3 or Ogg"),
        (["talk.wav", "--recogniser", "nothing"], "recogniser 'nothing' is not known; known recognisers: pocketsphinx"),
        (["talk.wav", "--recogniser", "pocketsphinx:huge"], "pocketsphinx has one model, so leave 'huge' out"),
        (["talk.wav", "--from", "fr"], "pocketsphinx recognises en, not 'fr'"),
        (["talk.wav", "--rate", "8000"], "--rate is for raw audio from standard input, so leave it out without -"),
        (["-", "--rate", "10"], "'10' is not a whole number from 4000 to 384000"),
        (["-", "--channels", "0"], "'0' is not a whole number from 1 to 64"),
        (["talk.wav", "--device", "2"], "--device is for the microphone, so leave it out with a file"),
        (["--speed", "2"], "--speed is for a file, so leave it out with the microphone"),
        (["talk.wav", "--speed", "0"], "'0' is not a number over 0"),
        (["talk.wav", "--room", "hall-1"], "--room needs --server"),
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
    soundfile.write(tmp_path / "silence.wav", np.zeros(20 * RATE, np.int16), RATE)
    assert redraft("listen", str(tmp_path / "silence.wav"), "--to", "de").out == ""


class PortAudioError(Exception):
    """As sounddevice raises it."""


class Sound(ModuleType):
    """A sounddevice with one microphone at 44.1 kHz that records 11 blocks of half a second, and then waits or dies."""

    PortAudioError = PortAudioError

    def __init__(
        self, names: tuple[str, ...] = ("Desk microphone",), refuses: bool = False, dies: bool = False
    ) -> None:
        super().__init__("sounddevice")
        self.names, self.refuses, self.dies, self.blocks = names, refuses, dies, 11
        self.recorded = threading.Event()

    def query_devices(self, device: str | int | None = None, kind: str | None = None) -> Any:
        found = [{"name": name, "max_input_channels": 2, "default_samplerate": 44_100.0} for name in self.names]
        found.append({"name": "Loudspeaker", "max_input_channels": 0, "default_samplerate": 44_100.0})
        if kind is None:
            return found
        if not self.names:
            raise PortAudioError("Error querying device -1")
        if device is None or isinstance(device, int):
            return found[device or 0]
        if not (fitting := [each for each in found if device.lower() in str(each["name"]).lower()]):
            raise ValueError(f"No input device matching {device!r}")
        return fitting[0]

    def check_input_settings(self, device: Any, channels: int, dtype: str, samplerate: int) -> None:
        if samplerate != 44_100 or channels != 2:
            raise PortAudioError("Invalid sample rate")

    def InputStream(self, callback: Any, finished_callback: Any, blocksize: int, **_: Any) -> Any:
        if self.refuses:
            raise PortAudioError("Device unavailable [PaErrorCode -9985]")
        over = threading.Event()

        def record() -> None:
            for _ in range(self.blocks):
                callback(np.zeros((22_050, 2), np.float32), 22_050, None, None)
                over.wait(0.01)
            self.recorded.set()
            if self.dies or over.wait():
                finished_callback()

        thread = threading.Thread(target=record)

        class Stream:
            def __enter__(self) -> None:
                thread.start()

            def __exit__(self, *_: object) -> None:
                over.set()
                thread.join()

        return Stream()


@pytest.fixture
def sound(monkeypatch: pytest.MonkeyPatch) -> Iterator[Sound]:
    made = Sound()
    monkeypatch.setitem(sys.modules, "sounddevice", made)
    return made


def test_the_microphone_until_ctrl_c(redraft: Run, scripted: Scripted, sound: Sound) -> None:
    def interrupt() -> None:
        while scripted.heard < 5.1:
            time.sleep(0.01)
        signal.raise_signal(signal.SIGINT)

    before = signal.getsignal(signal.SIGINT)
    threading.Thread(target=interrupt).start()
    done = redraft("listen", "--to", "de", "--output", "jsonl")
    assert done.status == 0
    assert done.err == "redraft: listening to 'Desk microphone'; Ctrl-C ends it\n"
    finals = [row["source"] for row in done.rows if row["type"] == "final"]
    assert finals == ["I have a dog", "I have a dog", "I have a"]  # what was cut off is not lost
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.usefixtures("scripted")
def test_a_microphone_that_goes_away(redraft: Run, sound: Sound) -> None:
    sound.dies, sound.blocks = True, 3
    done = redraft("listen", "--to", "de", "--output", "jsonl", "--device", "desk")
    assert done.status == 1
    assert done.rows[-1]["message"] == "microphone 'Desk microphone' has stopped recording"
    assert [row["source"] for row in done.rows[:-1] if row["type"] == "final"] == ["I have a"]


@pytest.mark.usefixtures("scripted")
def test_a_microphone_in_use(redraft: Run, sound: Sound) -> None:
    sound.refuses = True
    done = redraft("listen", "--to", "de")
    assert done.status == 1
    assert "microphone 'Desk microphone' cannot be used: Device unavailable [PaErrorCode -9985]" in done.err


def test_microphones_are_listed(redraft: Run, sound: Sound) -> None:
    assert redraft("listen", "--list-devices").out == "0\tDesk microphone\n"
    done = redraft("listen", "--to", "de", "--device", "head")
    assert done.status == 2
    assert done.err == "redraft: device must be one of 0 'Desk microphone', or a part of one name, not 'head'\n"
    sound.names = ()
    assert redraft("listen", "--list-devices").err == "redraft: no microphone was found\n"
    done = redraft("listen", "--to", "de")
    assert done.err == "redraft: no microphone was found: connect one, or name a file to listen to\n"


def test_without_portaudio(redraft: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    class Missing:
        def find_spec(self, name: str, *_: object) -> None:
            if name == "sounddevice":
                raise OSError("PortAudio library not found")

    monkeypatch.delitem(sys.modules, "sounddevice", raising=False)
    monkeypatch.setattr(sys, "meta_path", [Missing(), *sys.meta_path])
    done = redraft("listen", "--to", "de")
    assert done.status == 2
    assert "the PortAudio library is missing" in done.err and "apt install libportaudio2" in done.err


@pytest.mark.parametrize("missing", ["pocketsphinx", "soundfile", "soxr", "sounddevice"])
def test_without_the_extra(redraft: Run, monkeypatch: pytest.MonkeyPatch, missing: str, recording: Path) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    done = redraft("listen", "--to", "de", *([] if missing == "sounddevice" else [str(recording)]))
    assert done.status == 2
    assert done.err == f"redraft: this needs {missing}, which is not installed: pip install 'redraft[listen]'\n"


@pytest.mark.usefixtures("scripted")
def test_recognisers_are_listed(redraft: Run) -> None:
    assert redraft("listen", "--list-recognisers").out == "pocketsphinx\tfor tests\npocketsphinx:small\ta model\n"


def test_a_slow_recogniser_is_told_of(monkeypatch: pytest.MonkeyPatch, sound: Sound) -> None:
    from redraft.speech import microphone

    monkeypatch.setattr(microphone, "_WAITING", 0.2)
    recorded = microphone.Microphone()
    blocks = recorded.blocks()
    next(blocks)
    sound.recorded.wait()
    recorded.stop()
    found = [each.message for each in blocks if isinstance(each, Failure)]
    assert found == ["4.0 s of audio were dropped, since the recogniser is slower than the speaker"]


def test_newest_drops_what_is_overtaken() -> None:
    from redraft.speech.newest import newest
    from redraft.speech.recogniser import transcribe

    done = threading.Event()

    def all_at_once() -> Iterator[Any]:
        yield from transcribe(silence(10.1), Scripted(words=5))
        done.set()

    items = newest(all_at_once())
    first = next(items)
    done.wait()
    time.sleep(0.05)
    rest = [item for item in items if isinstance(item, Update)]
    assert isinstance(first, Update) and sum(item.final for item in rest) + first.final == 4
    assert len(rest) <= 5  # of what waited, only finals were left

    def broken() -> Iterator[Any]:
        yield first
        raise ValueError("torn")

    items = newest(broken())
    assert next(items) == first
    with pytest.raises(ValueError, match="torn"):
        next(items)


def test_standard_input_that_is_closed(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(SystemExit):
        main(("listen", "-", "--to", "de"))
    assert capsys.readouterr().err == "redraft: standard input is closed: name a file to read\n"
