"""Which device records what the computer plays, by the names that systems give it."""

from __future__ import annotations

import pytest

from redraft.speech.microphone import Device, ask_for, how_to_install, is_system, sleeps, system_source

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
    devices = [Device(number, name) for number, name in enumerate([*MICROPHONES, *names])]
    found = system_source(devices, outputs)
    assert (found and found.number) == expected


@pytest.mark.parametrize(
    ("name", "variable"), [("pulse", "PULSE_SOURCE"), ("pipewire", "PIPEWIRE_ALSA"), ("BlackHole 2ch", "")]
)
def test_what_sound_servers_are_asked_for(name: str, variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    environment: dict[str, str] = {}
    monkeypatch.setattr("os.environ", environment)
    ask_for(Device(0, name))
    assert [*environment] == [variable] * bool(variable)
    environment[variable] = "a source of the user's"
    ask_for(Device(0, name))
    assert [*environment.values()] == ["a source of the user's"]


def test_names() -> None:
    assert is_system("system") and is_system("System") and not is_system("system microphone") and not is_system(None)
    assert sleeps(Device(0, "Speakers [Loopback]")) and not sleeps(Device(0, "pulse"))


@pytest.mark.parametrize(
    ("platform", "words"), [("linux", "libasound2-plugins"), ("darwin", "BlackHole"), ("win32", "VB-Cable")]
)
def test_what_to_install(platform: str, words: str) -> None:
    assert words in how_to_install(platform)
    assert how_to_install("plan9")
