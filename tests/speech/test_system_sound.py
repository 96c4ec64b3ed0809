"""Which device records what the computer plays, by the names that systems give it."""

from __future__ import annotations

import pytest

from redraft.speech.microphone import is_system, system_source

MICROPHONES = ["Built-in Microphone", "Studio Monitor 5 USB", "HD Webcam"]


@pytest.mark.parametrize(
    ("names", "outputs", "expected"),
    [
        (["Monitor of Built-in Audio Analog Stereo"], [], 3),
        (["alsa_output.pci-0000_00_1f.3.analog-stereo.monitor"], [], 3),
        (["Built-in Audio Analog Stereo Monitor"], ["Built-in Audio Analog Stereo"], 3),
        (["default", "pulse"], [], 4),
        (["default", "pipewire"], [], 4),
        (["BlackHole 2ch"], ["MacBook Pro Speakers"], 3),
        (["CABLE Output (VB-Audio Virtual Cable)"], ["Speakers"], 3),
        (["Stereo Mix (Realtek High Definition Audio)"], [], 3),
        (["Stereomix (Realtek High Definition Audio)"], [], 3),
        (["HDMI [Loopback]", "Speakers (Realtek) [Loopback]"], ["Speakers (Realtek)"], 4),
        (["Stereo Mix", "Speakers (Realtek) [Loopback]"], ["Speakers (Realtek)"], 4),
        (["Monitor of Headset", "pulse"], ["Built-in Audio"], 4),
        (["default", "Line In"], ["Speakers"], None),
        ([], ["Speakers", ""], None),
    ],
)
def test_found_by_name(names: list[str], outputs: list[str], expected: int | None) -> None:
    assert system_source(dict(enumerate([*MICROPHONES, *names])), outputs) == expected


def test_names() -> None:
    assert is_system("system") and is_system("System") and not is_system("system microphone") and not is_system(None)
