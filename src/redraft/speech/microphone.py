"""Microphone input, and the sound that the computer plays, through PortAudio.

Systems offer that sound in different ways: as a device of its own (WASAPI's loopback, a monitor source), as an input
of the sound card (Stereo Mix), through a virtual cable that programs play into (BlackHole, VB-Cable), or, from
PulseAudio and PipeWire, to a program that asks for it in its environment.
"""

from __future__ import annotations

import os
import queue
import re
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import count
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from redraft.captions.events import Failure
from redraft.errors import InputError, MissingExtra, first_sentence
from redraft.speech.audio import BLOCK_SECONDS, RATE, Mixer, Samples, library, resampled

#: Seconds of audio buffered for a slow recogniser before some is dropped.
_WAITING = 60.0
#: Seconds without a block after which the device is gone, and between two attempts to find it again.
_GONE, _RETRY = 3.0, 1.0

#: Stands for a device in ``--device``.
SYSTEM = "system"

#: What the names of devices that record what is played contain: loopback of WASAPI, monitors of PulseAudio and
#: PipeWire, BlackHole, VB-Cable and Stereo Mix.
_RECORD_OUTPUT = re.compile(r"\[loopback\]|monitor of |\.monitor|blackhole|cable output|stereo ?mix", re.IGNORECASE)
#: ALSA devices of sound servers -> the variable in which a program asks for a source, and its value.
_SERVERS = {
    "pulse": ("PULSE_SOURCE", "@DEFAULT_MONITOR@"),
    "pipewire": ("PIPEWIRE_ALSA", "{ stream.capture.sink = true }"),
}
_INSTALL = {
    "linux": "run PulseAudio or PipeWire, and install its plug-in for ALSA (Debian and Ubuntu: apt install "
    "libasound2-plugins; Fedora: dnf install pipewire-alsa)",
    "darwin": "install BlackHole (brew install blackhole-2ch), and let the sound go to it too, with a multi-output "
    "device in Audio MIDI Setup",
    "win32": "turn on Stereo Mix among the recording devices, or install VB-Cable and play into it",
}

_NO_PORTAUDIO = (
    "the PortAudio library is missing, which microphones need: install it with the system's packages "
    "(Debian and Ubuntu: apt install libportaudio2)"
)
_NO_MICROPHONE = "no microphone was found: connect one, or pass a file"


class Device(NamedTuple):
    """A device that can record: its number and name."""

    number: int
    name: str


def sounddevice() -> ModuleType:
    """Import the library.

    Raises:
        MissingExtra: it, or the PortAudio library, is not installed.
    """
    try:
        return library("sounddevice")
    except OSError as error:
        raise MissingExtra(_NO_PORTAUDIO) from error


def devices() -> list[Device]:
    """Return the number and name of each recording device.

    Raises:
        MissingExtra: the extra ``listen`` or PortAudio is not installed.
    """
    found = sounddevice().query_devices()
    return [Device(number, str(each["name"])) for number, each in enumerate(found) if each["max_input_channels"] > 0]


def system_device() -> Device | None:
    """Return the device that records what the computer plays; None if there is none.

    Raises:
        MissingExtra: the extra ``listen`` or PortAudio is not installed.
    """
    library = sounddevice()
    found = library.query_devices()
    played = [each["default_output_device"] for each in library.query_hostapis()]
    return system_source(devices(), [str(found[number]["name"]) for number in played if number >= 0])


def is_system(device: str | None) -> bool:
    """Whether a value of ``--device`` stands for the sound that the computer plays."""
    return device is not None and device.lower() == SYSTEM


def system_source(devices: Sequence[Device], outputs: Sequence[str] = ()) -> Device | None:
    """Return the device that records what the computer plays; None if there is none.

    Args:
        outputs: names of the outputs that are used by default; a device that records one of them comes first.
    """
    own = {f"{output} Monitor" for output in outputs}  # PipeWire's for JACK
    named = [each for each in devices if each.name in own or _RECORD_OUTPUT.search(each.name)]
    current = [each for each in named if any(output and output in each.name for output in outputs)]
    servers = [each for name in _SERVERS for each in devices if each.name == name]
    return next(iter((*current, *servers, *named)), None)


def ask_for(device: Device) -> None:
    """Before the device is opened, have a sound server record what is played, unless the user has chosen a source."""
    if device.name in _SERVERS:
        os.environ.setdefault(*_SERVERS[device.name])


def sleeps(device: Device) -> bool:
    """Whether the device records nothing at all, not even silence, while nothing is played."""
    return "[loopback]" in device.name.lower()


def how_to_install(platform: str = sys.platform) -> str:
    """Return what makes the sound of a computer recordable."""
    return _INSTALL.get(platform, "install a virtual audio cable, and play into it")


class Microphone:
    """Records blocks of mono samples at 16 kHz until `stop`.

    Attributes:
        name: name of the device.
        dropped: seconds of audio dropped so far.

    Args:
        device: number, or part of the name; ``system`` is the sound that the computer plays. None uses the system's
            default.

    Raises:
        InputError: there is no such microphone, or nothing records the computer's sound.
        MissingExtra: the extra ``listen`` or PortAudio is not installed.
    """

    def __init__(self, device: str | None = None) -> None:
        self._library = sounddevice()
        self._asked = device
        self._device: int | str | None = None
        #: Whether the device gives no blocks while there is no sound.
        self._sleeps = False
        try:
            found = self._found()
        except InputError:
            raise
        except (self._library.PortAudioError, ValueError) as error:
            if device is None or not devices():
                raise InputError(_NO_MICROPHONE) from error
            known = ", ".join(f"{number} {name!r}" for number, name in devices())
            raise InputError(f"device must be one of {known}, a part of one name, or system, not {device!r}") from error
        self.name = f"system: {found['name']}" if is_system(self._asked) else str(found["name"])
        self._rate, self._channels = self._settings(found)
        self._queue: queue.Queue[Samples] = queue.Queue(round(_WAITING / BLOCK_SECONDS))
        self._lost, self._stopped, self._over = 0, False, False
        self._mixer = Mixer()
        self.dropped = 0.0

    def _found(self) -> Any:
        """Find the device, and return what PortAudio knows about it."""
        self._device = int(self._asked) if self._asked is not None and self._asked.isdecimal() else self._asked
        if is_system(self._asked):
            if (device := system_device()) is None:
                raise InputError(f"no device records the sound of this computer: {how_to_install()}")
            ask_for(device)
            self._device, self._sleeps = device.number, sleeps(device)
        return self._library.query_devices(self._device, "input")

    def _settings(self, found: Any) -> tuple[int, int]:
        """Return a supported sample rate and number of channels, as close to 16 kHz mono as possible."""
        for rate, channels in ((RATE, 1), (int(found["default_samplerate"]), 1)):
            try:
                self._library.check_input_settings(self._device, channels, "float32", samplerate=rate)
            except self._library.PortAudioError:
                continue
            return rate, channels
        return int(found["default_samplerate"]), int(found["max_input_channels"])

    def blocks(self) -> Iterator[Samples | Failure]:
        """Yield the recorded blocks, and a failure where audio was dropped.

        If the device is disconnected, silence is yielded until it is connected again.

        Raises:
            InputError: while iterating, the device cannot be opened.
        """
        try:
            yield from self._recorded_blocks()
        except self._library.PortAudioError as error:
            raise InputError(f"microphone {self.name!r} cannot be used: {first_sentence(error)}") from error
        while not self._stopped:
            yield Failure(f"microphone {self.name!r} has stopped recording: connect it again, or end with Ctrl-C")
            yield from self._silence()
            with suppress(self._library.PortAudioError):  # it has gone again
                yield from self._recorded_blocks()

    def _recorded_blocks(self) -> Iterator[Samples | Failure]:
        """Record until `stop`, or until the device is gone."""
        self._over = self._stopped
        with self._library.InputStream(
            device=self._device,
            channels=self._channels,
            samplerate=self._rate,
            blocksize=round(self._rate * BLOCK_SECONDS),
            dtype="float32",
            callback=self._recorded,
            finished_callback=self._ended,
        ):
            for block in resampled(self._recording(), self._rate):
                yield block
                if lost := self._lost:
                    self._lost = 0
                    self.dropped += lost / self._rate
                    seconds = f"{lost / self._rate:.1f} s of audio were dropped"
                    yield Failure(f"{seconds}, since the recogniser is slower than the speaker")

    def _silence(self) -> Iterator[Samples]:
        """Yield silence at the pace of speech until the device is there again, so that the utterance ends."""
        blocks = count(1)
        while not self._stopped:
            time.sleep(BLOCK_SECONDS)
            yield np.zeros(round(RATE * BLOCK_SECONDS), np.float32)
            if next(blocks) % round(_RETRY / BLOCK_SECONDS) == 0 and self._is_back():
                return

    def _is_back(self) -> bool:
        # PortAudio looks for devices only when it starts.
        self._library._terminate()
        self._library._initialize()
        try:
            found = self._found()
        except (self._library.PortAudioError, ValueError):  # an InputError too
            return False
        self._rate, self._channels = self._settings(found)
        return True

    def stop(self) -> None:
        """Stop recording; audio already recorded is still yielded."""
        self._stopped = True
        self._ended()

    def _recorded(self, block: Samples, frames: int, *_: object) -> None:
        if self._over:  # the queue would never be empty
            return
        try:
            self._queue.put_nowait(self._mixer.mixed(block))
        except queue.Full:
            self._lost += frames

    def _ended(self) -> None:
        self._over = True

    def _recording(self) -> Iterator[Samples]:
        last = time.monotonic()
        while True:
            try:
                yield self._queue.get(timeout=BLOCK_SECONDS)
                last = time.monotonic()
            except queue.Empty:
                if self._over:
                    return
                if self._sleeps:
                    yield np.zeros(round(self._rate * BLOCK_SECONDS), np.float32)
                elif time.monotonic() - last > _GONE:  # not every system reports that a device is gone
                    return


@contextmanager
def playing(path: str) -> Iterator[bool]:
    """Play an audio file while the block runs; yield whether there is sound.

    Without an output device, PortAudio or the extra ``listen``, the block runs in silence.
    """
    try:
        sound, soundfile = sounddevice(), library("soundfile")
    except MissingExtra:
        yield False
        return
    try:
        sound.play(*soundfile.read(path, dtype="int16"))
    except sound.PortAudioError:
        yield False
        return
    try:
        yield True
    finally:
        sound.stop()
