"""``redraft listen`` with a microphone, which a stand-in for PortAudio has."""

from __future__ import annotations

import os
import random
import signal
import sys
import threading
import time
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from redraft.captions.events import Failure, Update
from redraft.captions.formats.read import Item
from redraft.speech import microphone
from redraft.speech.recogniser import transcribe
from tests.cli.conftest import Run
from tests.speech.recognisers import Scripted


class PortAudioError(Exception):
    """As sounddevice raises it."""


class Stream:
    """A stream of PortAudio: ``record`` runs on a thread, and ``over`` is set at its end."""

    def __init__(self, record: Callable[[], None], over: threading.Event) -> None:
        self._thread, self._over = threading.Thread(target=record), over

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()


class Sound(ModuleType):
    """A sounddevice with one microphone at 44.1 kHz that records 11 blocks of half a second, and then waits or dies."""

    PortAudioError = PortAudioError

    def __init__(
        self, names: tuple[str, ...] = ("Desk microphone",), refuses: bool = False, dies: bool = False
    ) -> None:
        super().__init__("sounddevice")
        self.names, self.refuses, self.dies, self.blocks = names, refuses, dies, 11
        self.sample: Any = 0.0
        self.recorded = threading.Event()
        self.silently, self.starts = False, 0

    def _terminate(self) -> None:
        self.starts += 1
        if self.starts == 2 and not isinstance(self, Punctual):
            self.names = ("Desk microphone",)

    def _initialize(self) -> None:
        pass

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

    def query_hostapis(self) -> Any:
        return [{"default_output_device": len(self.names)}, {"default_output_device": -1}]

    def check_input_settings(self, device: Any, channels: int, dtype: str, samplerate: int) -> None:
        if samplerate != 44_100 or channels != 2:
            raise PortAudioError("Invalid sample rate")

    def InputStream(self, callback: Any, finished_callback: Any, blocksize: int, **_: Any) -> Any:
        if self.refuses:
            raise PortAudioError("Device unavailable [PaErrorCode -9985]")
        over = threading.Event()

        def record() -> None:
            for _ in range(self.blocks):
                callback(np.full((22_050, 2), self.sample, np.float32), 22_050, None, None)
                over.wait(0.01)
            self.recorded.set()
            if (self.dies and not self.silently) or over.wait():
                finished_callback()

        return Stream(record, over)


@pytest.fixture
def sound(monkeypatch: pytest.MonkeyPatch) -> Sound:
    made = Sound()
    monkeypatch.setitem(sys.modules, "sounddevice", made)
    return made


def test_microphone_until_ctrl_c(redraft: Run, scripted: Scripted, sound: Sound) -> None:
    over = threading.Event()

    def interrupt() -> None:
        while scripted.recorded < 5.1:
            if over.wait(0.01):
                return
        signal.raise_signal(signal.SIGINT)

    before = signal.getsignal(signal.SIGINT)
    thread = threading.Thread(target=interrupt)
    thread.start()
    try:
        done = redraft("listen", "--to", "de", "--output", "jsonl")
    finally:
        over.set()
        thread.join()
    assert done.status == 0
    opened, stopping = done.err.splitlines()
    assert opened == "redraft: recogniser moonshine, audio from 'Desk microphone'; press Ctrl-C to stop"
    assert stopping == "redraft: stopping, and finishing what was recognised; press Ctrl-C again to stop at once"
    finals = [row["source"] for row in done.rows if row["type"] == "final"]
    assert finals == ["I have a dog", "I have a dog", "I have a"]  # what was cut off is not lost
    assert signal.getsignal(signal.SIGINT) is before


def test_channels_that_cancel(sound: Sound) -> None:
    sound.sample = np.array([0.5, -0.5])
    recording = microphone.Microphone()
    block = next(recording.blocks())
    recording.stop()
    assert isinstance(block, np.ndarray) and abs(block).max() > 0.4


@pytest.mark.parametrize("silently", [False, True])
def test_unplugged_and_plugged_in_again(
    silently: bool, scripted: Scripted, sound: Sound, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(microphone, "_GONE", 0.5)
    sound.dies, sound.silently, sound.blocks = True, silently, 3
    recorded = microphone.Microphone("desk")
    items: list[Item] = []
    for item in transcribe(recorded.blocks(), scripted):
        items.append(item)
        if isinstance(item, Failure):
            sound.names, sound.dies, sound.blocks = (), False, 11
        if len(items) == 14:
            recorded.stop()
    failures = [item.message for item in items if isinstance(item, Failure)]
    assert failures == ["microphone 'Desk microphone' has stopped recording: connect it again, or end with Ctrl-C"]
    assert isinstance(items[3], Failure) and sound.starts == 2
    finals = [item.text for item in items if isinstance(item, Update) and item.final]
    assert finals[:3] == ["I have a dog"] * 3


@pytest.mark.usefixtures("scripted")
def test_unplugged_until_ctrl_c(sound: Sound) -> None:
    sound.dies, sound.blocks = True, 3
    recorded = microphone.Microphone()
    failures = []
    for block in recorded.blocks():
        if isinstance(block, Failure):
            failures.append(block.message)
            recorded.stop()
    assert len(failures) == 1


@pytest.mark.usefixtures("scripted")
def test_microphone_in_use(redraft: Run, sound: Sound) -> None:
    sound.refuses = True
    done = redraft("listen", "--to", "de")
    assert done.status == 1
    assert "microphone 'Desk microphone' cannot be used: Device unavailable [PaErrorCode -9985]" in done.err


def test_microphones_are_listed(redraft: Run, sound: Sound) -> None:
    listed = redraft("listen", "--list-devices").out.splitlines()
    assert listed[0] == "0\tDesk microphone" and listed[1].startswith(
        "system\tnothing records the sound of this computer: "
    )
    done = redraft("listen", "--to", "de", "--device", "head")
    assert done.status == 2
    assert done.err == "redraft: device must be one of 0 'Desk microphone', a part of one name, or system, not 'head'\n"
    sound.names = ()
    assert redraft("listen", "--list-devices").err == "redraft: no microphone was found\n"
    done = redraft("listen", "--to", "de")
    assert done.err == "redraft: no microphone was found: connect one, or pass a file\n"


def test_system_sound(redraft: Run, scripted: Scripted, sound: Sound, monkeypatch: pytest.MonkeyPatch) -> None:
    done = redraft("listen", "--to", "de", "--device", "system")
    assert done.status == 2
    assert "nothing records the sound of this computer: " in done.err
    monkeypatch.setenv("PULSE_SOURCE", "")  # so that it is as before in the end
    monkeypatch.delenv("PULSE_SOURCE")
    sound.names = ("Desk microphone", "pulse")
    assert redraft("listen", "--list-devices").out.splitlines()[2] == "system\twhat this computer plays, from 'pulse'"
    recording = microphone.Microphone("System")
    assert (recording.name, os.environ["PULSE_SOURCE"]) == ("system: pulse", "@DEFAULT_MONITOR@")
    sound.names = ("pulse", "Desk microphone")  # the numbers change when PortAudio starts again
    assert recording._find() == "pulse" and recording._device == 0
    monkeypatch.setenv("PULSE_SOURCE", "a source of the user's")
    monkeypatch.setenv("PIPEWIRE_ALSA", "")
    monkeypatch.delenv("PIPEWIRE_ALSA")
    for sound.names in (("pulse",), ("pipewire",)):
        microphone.Microphone("system")
    assert os.environ["PULSE_SOURCE"] == "a source of the user's" and os.environ["PIPEWIRE_ALSA"]


def test_loopback_without_sound(sound: Sound, monkeypatch: pytest.MonkeyPatch) -> None:
    """WASAPI records nothing at all while nothing is played."""
    monkeypatch.setattr(microphone, "_GONE", 0.1)
    sound.names, sound.blocks = ("Desk microphone", "Loudspeaker [Loopback]"), 1
    recording = microphone.Microphone("system")
    blocks = recording.blocks()
    found = [next(blocks) for _ in range(4)]
    recording.stop()
    assert all(isinstance(each, np.ndarray) for each in found)
    assert not [each for each in blocks if isinstance(each, Failure)]


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


def test_slow_recogniser(monkeypatch: pytest.MonkeyPatch, sound: Sound) -> None:
    monkeypatch.setattr(microphone, "_WAITING", 0.2)
    recorded = microphone.Microphone()
    blocks = recorded.blocks()
    next(blocks)
    sound.recorded.wait()
    recorded.stop()
    found = [each.message for each in blocks if isinstance(each, Failure)]
    assert found == ["4.0 s of audio were dropped, since the recogniser is slower than the speaker"]


class Punctual(Sound):
    """A device that gives a block every 100 ms, as real ones do: none is ever late."""

    lost = False

    def lose(self) -> None:
        self.lost, self.names = True, ()

    def InputStream(self, callback: Any, finished_callback: Any, blocksize: int, **_: Any) -> Any:
        over = threading.Event()

        def record() -> None:
            while not over.wait(0.1) and not self.lost:
                callback(np.zeros((blocksize, 2), np.float32), blocksize, None, None)
            if self.lost:
                finished_callback()

        return Stream(record, over)


@pytest.mark.parametrize("device", [None, "system"])
def test_stop_of_punctual_device(device: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """It ends within a second at any moment, with all that was recorded before; it went on for good."""
    names = ("Desk microphone",) if device is None else ("Loudspeaker [Loopback]",)
    monkeypatch.setitem(sys.modules, "sounddevice", Punctual(names))
    drawn = random.Random(0)
    for _ in range(20):
        recording = microphone.Microphone(device)
        stopped: list[float] = []

        def stop(recording: microphone.Microphone = recording, stopped: list[float] = stopped) -> None:
            recording.stop()
            stopped.append(time.monotonic())

        timer = threading.Timer(drawn.uniform(0.05, 0.4), stop)
        timer.start()
        for _block in recording.blocks():
            assert not stopped or time.monotonic() - stopped[0] < 1
        timer.join()
        assert time.monotonic() - stopped[0] < 1
