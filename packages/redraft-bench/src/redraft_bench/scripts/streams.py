"""Make the recognised streams of the benchmark `stream` again: speak texts, let recognisers hear them, time the words.

    python -m redraft_bench.scripts.streams VOICES WHISPER [NAME ...]

VOICES is the folder package/voices of npm's kokoro-js (docs/development.md), and WHISPER a folder with Whisper base for
faster-whisper.  The texts are read from REDRAFT_DATA (docs/metrics.md).  Recordings go to runs/streams; if one is
there, it is not spoken again.  Updates are those of `redraft listen`: cut into sentences, with the seconds of audio
that had been heard.  The ends of words come from Whisper, aligned with the words that the recogniser wrote.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from importlib.resources import files
from itertools import groupby
from pathlib import Path

import numpy as np

from redraft.captions.talk import RECORDING, TRANSCRIPT
from redraft.captions.words import WORD, bare
from redraft.speech.audio import library
from redraft_bench.bench.data import STREAMS
from redraft_bench.eval.sets import load_set, read_data
from redraft_bench.eval.stream import Segment, Stream
from redraft_bench.eval.talks import places_of
from tools.talk import SPOKEN_RATE, hear, voice

FOLDER = Path("runs") / "streams"
ACL, TATOEBA = "acl6060.dev", "tatoeba2021"
#: A reading of A Tale of Two Cities.
READING = Path(str(files("moonshine_voice"))) / "assets" / "two_cities.wav"
#: Silence after a line in seconds.
PAUSE = 0.4
#: The end of a sentence before another one, in a line with several.
WITHIN = re.compile(r"[.?!]['\"”]? +['\"“]?\w")


@dataclass(frozen=True, slots=True)
class Spoken:
    """How a stream is made.

    Attributes:
        set: name of the test set that is spoken; empty if none is.
        first: its first line that is spoken.
        last: the line after the last one.
        voice: name of the voice.
        noise: signal-to-noise ratio in dB; None for no noise.
        recogniser: name of the recogniser; Whisper's folder is added.
        recording: an existing recording, which is not spoken.
        heard: file with existing updates, which is only given times.
    """

    set: str = ""
    first: int = 0
    last: int = 0
    voice: str = "af_heart"
    noise: float | None = None
    recogniser: str = "moonshine"
    recording: Path | None = None
    heard: Path | None = None


#: Name of a stream -> how it is made.
MADE = {
    "talk": Spoken(recording=RECORDING, heard=TRANSCRIPT),
    "talk-whisper": Spoken(recording=RECORDING, recogniser="whisper"),
    "dickens": Spoken(recording=READING),
    "acl": Spoken(ACL, 0, 20),
    "acl-second": Spoken(ACL, 108, 116, "am_michael"),
    "acl-noise": Spoken(ACL, 108, 116, "am_michael", noise=10.0),
    "acl-whisper": Spoken(ACL, 108, 116, "am_michael", recogniser="whisper"),
    "tatoeba": Spoken(TATOEBA, 0, 13, "bf_emma"),
}


def lines_of(how: Spoken) -> list[str]:
    """Return the lines that are spoken.

    Those of Tatoeba are dialogues and other lines of several sentences that are translated into German and Japanese or,
    first, into Chinese and one of these.
    """
    if how.set == ACL:
        lines = read_data(f"test/{ACL}.en.txt")
    else:
        german, chinese, japanese = (dict.fromkeys(load_set(how.set, to).sources) for to in ("de", "zh", "ja"))
        lines = [line for line in chinese if line in german or line in japanese]
        lines += [line for line in german if line in japanese and line not in chinese]
        lines = list(filter(WITHIN.search, lines))
    return lines[how.first : how.last]


def record(how: Spoken, voices: Path) -> Path:
    """Return the recording, which is spoken if it is missing."""
    if how.recording:
        return how.recording
    soundfile = library("soundfile")
    plain = FOLDER / f"{how.set}-{how.first}-{how.last}-{how.voice}.wav"
    plain.parent.mkdir(parents=True, exist_ok=True)
    if not plain.exists():
        say = voice(voices, how.voice)
        silence = np.zeros(round(PAUSE * SPOKEN_RATE), np.float32)
        audio = np.concatenate([part for line in lines_of(how) for part in (say(line), silence)])
        soundfile.write(plain, audio, SPOKEN_RATE)
    if how.noise is None:
        return plain
    noisy = plain.with_name(f"{plain.stem}-{how.noise:g}dB.wav")
    audio, _ = soundfile.read(plain, dtype="float32")
    power = np.mean(audio**2) / 10 ** (how.noise / 10)
    noise = np.random.default_rng(0).normal(0, np.sqrt(power), len(audio)).astype(np.float32)
    soundfile.write(noisy, audio + noise, SPOKEN_RATE)
    return noisy


def times(path: Path, whisper: Path) -> list[tuple[str, float]]:
    """Return the words of a recording and the ends of them in seconds, by Whisper."""
    kept = FOLDER / f"{path.stem}.words.json"
    if not kept.exists():
        model = library("faster_whisper").WhisperModel(str(whisper), device="cpu", compute_type="int8", cpu_threads=1)
        segments, _ = model.transcribe(
            str(path), language="en", word_timestamps=True, beam_size=1, condition_on_previous_text=False
        )
        found = [(bare(word.word.strip()), round(word.end, 2)) for each in segments for word in each.words]
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(json.dumps(found), "utf-8")
    return [(word, end) for word, end in json.loads(kept.read_text("utf-8")) if word]


def ends(words: Sequence[str], spoken: Sequence[tuple[str, float]]) -> list[float]:
    """Return when each word of a text ends; times of words that were heard differently are interpolated."""
    matcher = SequenceMatcher(None, [word for word, _ in spoken], words, autojunk=False)
    places, found = [-1.0], [0.0]
    for block in matcher.get_matching_blocks():
        for offset in range(block.size):
            places.append(block.b + offset)
            found.append(max(found[-1], spoken[block.a + offset][1]))
    return [round(float(each), 2) for each in np.interp(range(len(words)), places, found)]


def timed(stream: Stream, spoken: Sequence[tuple[str, float]]) -> Stream:
    """Return a stream with the ends of words, and with starts and ends of utterances."""
    words = [[bare(word) for word in WORD.findall(segment.source)] for segment in stream.segments]
    all_ends, segments, before = iter(ends([word for each in words for word in each], spoken)), [], 0.0
    for segment, found in zip(stream.segments, words, strict=True):
        own = tuple(next(all_ends) for _ in found)
        last = max((before, *own))
        segments.append(replace(segment, start=before, end=last, ends=own))
        before = last
    return replace(stream, segments=tuple(segments))


def make(name: str, voices: Path, whisper: Path) -> Stream:
    """Return a stream."""
    how = MADE[name]
    path = record(how, voices)
    if how.heard:
        return timed(Stream.load(how.heard), times(path, whisper))
    recogniser = f"whisper:{whisper}" if how.recogniser == "whisper" else how.recogniser
    updates = groupby(hear(recogniser, path), key=lambda update: update.utterance)
    segments = (Segment(tuple(each), recording=path.stem) for _, each in updates)
    return timed(Stream(name, tuple(segments)), times(path, whisper))


def main() -> None:
    """Make the streams that are named, or all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("voices", type=Path)
    parser.add_argument("whisper", type=Path)
    parser.add_argument("name", nargs="*", choices=[[], *MADE])
    chosen = parser.parse_args()
    for name in chosen.name or MADE:
        stream = make(name, chosen.voices, chosen.whisper)
        how = MADE[name]
        stream.save(how.heard or STREAMS / f"{name}.jsonl")
        if how.set:
            lines = lines_of(how)
            places = places_of([each.source for each in stream.segments], lines)
            spoken = {"set": how.set, "lines": list(zip(lines, places, strict=True))}
            (STREAMS / f"{name}.lines.json").write_text(
                json.dumps(spoken, ensure_ascii=False, indent=0) + "\n", "utf-8"
            )
        print(f"{name}: {len(stream.segments)} utterances, {len(stream.updates)} updates", flush=True)


if __name__ == "__main__":
    main()
