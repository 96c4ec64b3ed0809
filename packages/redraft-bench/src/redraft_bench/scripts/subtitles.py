"""Measure subtitles: how many cues are too fast to read, how they are laid out, and how late they come.

The final captions are those of the demo model for the demo talk, and the references of two talks of ACL 60/60, so each
writer has the same words at the same times.  Whisper's writer, ``whisper/utils.py`` of its package, gets each caption
as a segment, with a time for each word; once as it writes by default, once with lines of the profile.

python -m redraft_bench.scripts.subtitles --whisper UTILS.PY > benchmarks/results/subtitles.jsonl
"""

from __future__ import annotations

import io
import json
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.util import module_from_spec, spec_from_file_location
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

import click
import numpy as np
import pysubs2

from redraft.captions.breaks import cells, words
from redraft.captions.events import Caption, Update
from redraft.captions.formats.cues import PROFILES, Profile, SubtitleWriter
from redraft.captions.formats.write import Output
from redraft.captions.words import UNBREAKABLE
from redraft.models import shipped_path
from redraft.signature import signature, text_hash
from redraft.translator import Translator
from redraft_bench.bench.data import TALK, open_stream
from redraft_bench.eval.stream import Segment

LANGUAGES = ("de", "ja", "zh")
#: Talks of ACL 60/60.
TALKS = ("2022.acl-long.110", "2022.acl-long.367")
_SPACE = re.compile(r"[\s\u200e\u200f]+")


@dataclass(frozen=True, slots=True)
class Spoken:
    """A final caption, and when its words were spoken, in seconds."""

    start: float
    end: float
    text: str


@dataclass(frozen=True, slots=True)
class Read:
    """A cue as players read it: its times in seconds, and its lines."""

    start: float
    end: float
    lines: tuple[str, ...]


def captions(data: str, to: str) -> list[Spoken]:
    """Return the final captions of the demo talk or of a talk of ACL 60/60, in order."""
    if data == TALK:
        with Translator.open("demo", to=[to], options={"search": 0}) as translator:
            return [_translated(translator, each) for each in open_stream(TALK, to).segments]
    segments = [each for each in open_stream("acl6060.talks", to).segments if each.recording == data]
    return [Spoken(each.start or 0.0, each.end or 0.0, each.references[to]) for each in segments]


def _translated(translator: Translator, segment: Segment) -> Spoken:
    first, last = segment.updates[0], segment.updates[-1]
    found = translator.translate(Update(last.utterance, 0, last.text, final=True))
    (text,) = (each.text for each in found if isinstance(each, Caption))
    return Spoken(first.time or 0.0, last.time or 0.0, text)


def ours(spoken: Sequence[Spoken], to: str, profile: Profile) -> str:
    """Return Redraft's subtitles."""
    out = io.StringIO()
    writer = SubtitleWriter(Output("srt", out, sys.stderr, [to], profile))
    for number, each in enumerate(spoken):
        writer.write(Caption(str(number), 1, to, each.text, final=True, time=each.end, start=each.start))
    writer.close()
    return out.getvalue()


def whispers(module: ModuleType, spoken: Sequence[Spoken], to: str, profile: Profile | None) -> str:
    """Return the subtitles of Whisper's writer; with lines of a profile, or as it writes by default."""
    segments = [
        {"start": each.start, "end": each.end, "text": each.text, "words": list(_timed(each))} for each in spoken
    ]
    # It counts characters, of which wide ones have two cells.
    wide = max(cells(each.text) / len(each.text) for each in spoken) > 1.5
    lines = profile and {
        "max_line_width": profile.line(to) // (2 if wide else 1),
        "max_line_count": int(profile.lines),
    }
    out = io.StringIO()
    module.WriteSRT(".").write_result({"segments": segments}, file=out, options=lines or {})
    return out.getvalue()


def _timed(caption: Spoken) -> Iterator[dict[str, Any]]:
    """Yield the words of a caption, each with its share of the time."""
    done, whole, pace, space = 0, cells(caption.text), caption.end - caption.start, ""
    for word in map("".join, words(UNBREAKABLE.findall(caption.text))):
        start, done = done, done + cells(word)
        times = {"start": caption.start + pace * start / whole, "end": caption.start + pace * done / whole}
        text = word.rstrip()
        yield {"word": space + text, **times}
        space = word[len(text) :]  # which belongs to the word behind it


def figures(subtitles: str, spoken: Sequence[Spoken], to: str, profile: Profile) -> dict[str, float]:
    """Return the figures of subtitles for readers of a profile.

    Raises:
        ValueError: they do not have the words of the captions, in order.
    """
    found = pysubs2.SSAFile.from_string(subtitles, format_="srt")
    cues = [Read(each.start / 1000, each.end / 1000, tuple(each.plaintext.split("\n"))) for each in found]
    shown = _SPACE.sub("", "".join(line for cue in cues for line in cue.lines))
    if shown != _SPACE.sub("", "".join(each.text for each in spoken)):
        raise ValueError("the subtitles have other words than the captions")
    reading = [sum(profile.seconds(line, to) for line in cue.lines) for cue in cues]
    seconds = [cue.end - cue.start for cue in cues]
    lags = list(_lags(cues, spoken))
    return {
        "cues": len(cues),
        # Times are written in milliseconds.
        "fast": float(np.mean([need > had + 0.002 for need, had in zip(reading, seconds, strict=True)])),
        "needed": sum(reading) / (spoken[-1].end - spoken[0].start),
        "wide": float(np.mean([max(map(cells, cue.lines)) > profile.line(to) for cue in cues])),
        "tall": float(np.mean([len(cue.lines) > profile.lines for cue in cues])),
        "shortest": min(seconds),
        "longest": max(seconds),
        "overlaps": sum(one.end > other.start + 0.0005 for one, other in pairwise(cues)),
        "late_p50": float(np.percentile(lags, 50)),
        "late_p95": float(np.percentile(lags, 95)),
    }


def _lags(cues: Sequence[Read], spoken: Sequence[Spoken]) -> Iterator[float]:
    """Yield how long after its first word was spoken each cue begins, in seconds."""
    lengths = [len(_SPACE.sub("", each.text)) for each in spoken]
    place, number = 0, 0
    for cue in cues:
        while place >= lengths[number]:
            place, number = place - lengths[number], number + 1
        each = spoken[number]
        yield cue.start - (each.start + (each.end - each.start) * place / lengths[number])
        place += len(_SPACE.sub("", "".join(cue.lines)))


def _loaded(path: Path) -> ModuleType:
    spec = spec_from_file_location("whisper_utils", path)
    if spec is None or spec.loader is None:
        raise click.BadParameter(f"{path} is not a Python file")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@click.command(help=__doc__)
@click.option("--whisper", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="Its utils.py.")
def main(whisper: Path | None) -> None:
    """Measure, and print one row for each talk, language, profile and writer."""
    module = _loaded(whisper) if whisper else None
    for data in (TALK, *TALKS):
        for to in LANGUAGES:
            spoken = captions(data, to)
            facts = signature(shipped_path("demo"), data, text_hash(" ".join(each.text for each in spoken)))
            for name, profile in PROFILES.items():
                made = {"Redraft": ours(spoken, to, profile)}
                if module:
                    made["Whisper"] = whispers(module, spoken, to, None)
                    made["Whisper, lines set"] = whispers(module, spoken, to, profile)
                for writer, subtitles in made.items():
                    row = {"data": data, "target_language": to, "profile": name, "writer": writer}
                    found = {key: round(value, 3) for key, value in figures(subtitles, spoken, to, profile).items()}
                    click.echo(json.dumps({**row, **found, "signature": facts}, ensure_ascii=False))


if __name__ == "__main__":
    main()
