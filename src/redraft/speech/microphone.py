"""Microphone input, and the sound that the computer plays, through PortAudio.

Systems offer that sound in different ways: as a device of its own (WASAPI's loopback, a monitor source), as an input
of the sound card (Stereo Mix), through a virtual cable that programs play into (BlackHole, VB-Cable), or, from
PulseAudio and PipeWire, to a program that asks for it in its environment.
"""

from __future__ import annotations

import os
import queue
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from itertools import count
from types import ModuleType

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
_NO_PORTAUDIO = (
    "the PortAudio library is missing, which microphones need: install it with the system's packages "
    "(Debian and Ubuntu: apt install libportaudio2)"
)
_NO_MICROPHONE = "no microphone was found: connect one, or pass a file"
NO_SYSTEM = "nothing records the sound of this computer: docs/listen.md says what you can install for that"


def sounddevice() -> ModuleType:
    """Import the library.

    Raises:
        MissingExtra: it, or the PortAudio library, is not installed.
    """
    try:
        return library("sounddevice")
    except OSError as error:
        raise MissingExtra(_NO_PORTAUDIO) from error


def devices() -> dict[int, str]:
    """Return the number of each recording device with its name.

    Raises:
        MissingExtra: the extra ``listen`` or PortAudio is not installed.
    """
    found = sounddevice().query_devices()
    return {number: str(each["name"]) for number, each in enumerate(found) if each["max_input_channels"] > 0}


def system_device() -> int | None:
    """Return the number of the device that records what the computer plays; None if there is none.

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


def system_source(devices: Mapping[int, str], outputs: Sequence[str] = ()) -> int | None:
    """Return the number of the device that records what the computer plays; None if there is none.

    Args:
        devices: names of all devices by number.
        outputs: names of the outputs that are used by default; a device that records one of them comes first.
    """
    own = {f"{output} Monitor" for output in outputs}  # PipeWire's for JACK
    named = [number for number, name in devices.items() if name in own or _RECORD_OUTPUT.search(name)]
    current = [each for each in named if any(output and output in devices[each] for output in outputs)]
    servers = [number for server in _SERVERS for number, name in devices.items() if name == server]
    return next(iter((*current, *servers, *named)), None)


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
        self._library, self._asked = sounddevice(), device
        self._device: int | str | None = None
        #: Whether the device gives no blocks, not even of silence, while there is no sound.
        self._sleeps = False
        self._rate, self._channels = RATE, 1
        try:
            name = self._find()
        except InputError:
            raise
        except (self._library.PortAudioError, ValueError) as error:
            if device is None or not devices():
                raise InputError(_NO_MICROPHONE) from error
            known = ", ".join(f"{number} {name!r}" for number, name in devices().items())
            raise InputError(f"device must be one of {known}, a part of one name, or system, not {device!r}") from error
        self.name = f"system: {name}" if is_system(device) else name
        self._queue: queue.Queue[Samples] = queue.Queue(round(_WAITING / BLOCK_SECONDS))
        self._lost, self._stopped, self._over = 0, False, False
        self._mixer = Mixer()
        self.dropped = 0.0

    def _find(self) -> str:
        """Find the device, and a rate and channels that it supports, close to 16 kHz mono; return its name."""
        self._device = int(self._asked) if self._asked is not None and self._asked.isdecimal() else self._asked
        if system := is_system(self._asked):
            if (number := system_device()) is None:
                raise InputError(NO_SYSTEM)
            self._device = number
        found = self._library.query_devices(self._device, "input")
        name, rate = str(found["name"]), int(found["default_samplerate"])
        self._sleeps = system and "[loopback]" in name.lower()
        if system and name in _SERVERS:  # unless the user has chosen a source
            os.environ.setdefault(*_SERVERS[name])
        for self._rate, self._channels in ((RATE, 1), (rate, 1), (rate, int(found["max_input_channels"]))):
            with suppress(self._library.PortAudioError):
                self._library.check_input_settings(self._device, self._channels, "float32", samplerate=self._rate)
                break
        return name

    def blocks(self) -> Iterator[Samples | Failure]:
        """Yield the recorded blocks, and a failure where audio was dropped.

        If the device is disconnected, silence is yielded until it is connected again.

        Raises:
            InputError: while iterating, the device cannot be opened.
        """
        opened = False
        while not (opened and self._stopped):
            try:
                yield from self._recorded_blocks()
            except self._library.PortAudioError as error:
                if not opened:
                    raise InputError(f"microphone {self.name!r} cannot be used: {first_sentence(error)}") from error
            opened = True
            if not self._stopped:
                yield Failure(f"microphone {self.name!r} has stopped recording: connect it again, or end with Ctrl-C")
                yield from self._silence()

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
            if next(blocks) % round(_RETRY / BLOCK_SECONDS) == 0:
                # PortAudio looks for devices only when it starts.
                self._library._terminate()
                self._library._initialize()
                with suppress(self._library.PortAudioError, ValueError):  # an InputError too
                    self._find()
                    return

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
    sounds = False
    with ExitStack() as stack:
        with suppress(MissingExtra):
            sound = sounddevice()
            with suppress(sound.PortAudioError):
                sound.play(*library("soundfile").read(path, dtype="int16"))
                stack.callback(sound.stop)
                sounds = True
        yield sounds
