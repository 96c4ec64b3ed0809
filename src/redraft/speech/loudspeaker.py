"""Play a recording on the loudspeakers, where there are any."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from redraft.errors import MissingExtra
from redraft.speech.audio import library
from redraft.speech.microphone import sounddevice


@contextmanager
def playing(path: str) -> Iterator[bool]:
    """Play an audio file while the block runs; yield whether it can be heard.

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
