"""The sound that the computer plays, as a recording device.

Systems offer it in different ways: as a device of its own (WASAPI's loopback, a monitor source), as an input of the
sound card (Stereo Mix), through a virtual cable that programs play into (BlackHole, VB-Cable), or, from PulseAudio and
PipeWire, to a program that asks for it in its environment.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import NamedTuple

#: Stands for a device in ``--device``.
SYSTEM = "system"

#: Parts of the names of devices that record what is played, in lower case.
_RECORD_OUTPUT = (
    "[loopback]",
    "monitor of ",
    ".monitor",
    "blackhole",
    "cable output",
    "vb-cable",
    "loopback audio",
    "soundflower",
    "stereo mix",
    "stereomix",
    "mixage stéréo",
    "mezcla estéreo",
    "missaggio stereo",
    "ステレオ ミキサー",
    "立体声混音",
    "what u hear",
    "wave out mix",
)
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


def is_system(device: str | None) -> bool:
    """Whether a value of ``--device`` stands for the sound that the computer plays."""
    return device is not None and device.lower() == SYSTEM


class Device(NamedTuple):
    """A device that can record: its number and name."""

    number: int
    name: str


def find(devices: Sequence[Device], outputs: Sequence[str] = ()) -> Device | None:
    """Return the device that records what the computer plays; None if there is none.

    Args:
        outputs: names of the outputs that are used by default; a device that records one of them comes first.
    """
    named = [each for each in devices if _records_output(each.name, outputs)]
    current = [each for each in named if any(output and output in each.name for output in outputs)]
    servers = [each for name in _SERVERS for each in devices if each.name == name]
    return next(iter((*current, *servers, *named)), None)


def _records_output(name: str, outputs: Sequence[str]) -> bool:
    if any(name == f"{output} Monitor" for output in outputs):  # PipeWire's for JACK
        return True
    return any(part in name.lower() for part in _RECORD_OUTPUT)


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
