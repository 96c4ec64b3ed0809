"""StreamLAAL: the lag of the captions of whole recordings, independent of utterances.

Papi et al. 2024 (StreamAtt): the captions of a recording are joined and split to match the reference segments (minimum
word errors, by the library mweralign); then LAAL is computed for each segment from its start, with its duration as |X|.
Needs the ``stream-laal`` extra.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from statistics import fmean
from typing import NamedTuple

from redraft.captions.languages import parse_language
from redraft.errors import InputError, MissingExtra
from redraft_bench import install
from redraft_bench.eval.delays import Delays, delays, pairs, split, unit
from redraft_bench.eval.latency import laal
from redraft_bench.eval.record import Record
from redraft_bench.eval.stream import Stream

_ALIGN = """
import json, sys
from mweralign import align_texts
from mweralign.segmenter import CJSegmenter
texts, by_character = json.load(sys.stdin)
cut = (lambda text: " ".join(CJSegmenter().encode(text))) if by_character else str
found = [align_texts("\\n".join(map(cut, references)), cut(caption)) for references, caption in texts]
json.dump(found, sys.stdout)
"""


class StreamLaal(NamedTuple):
    """StreamLAAL in seconds, averaged over the reference segments to which captions were aligned.

    Attributes:
        ideal: from the times of the updates.
        computation_aware: from the times of the answers.
    """

    ideal: float
    computation_aware: float


@dataclass(slots=True)
class _Recording:
    """The captions of a recording, and its reference segments as units, start and duration."""

    units: list[str] = field(default_factory=list)
    delays: list[float] = field(default_factory=list)
    shown: list[float] = field(default_factory=list)
    references: list[tuple[list[str], float, float]] = field(default_factory=list)

    def add(self, found: Delays) -> None:
        """Append a caption."""
        self.units += found.units
        self.delays += found.delays
        self.shown += found.shown


def stream_laal(records: Sequence[Record], stream: Stream, language: str) -> StreamLaal:
    """Compute StreamLAAL of one contender's records.

    Args:
        stream: the stream; segments need a reference in ``language``, a start and an end.

    Raises:
        MissingExtra: mweralign is not installed.
        InputError: the stream is not timed, or no segment has a reference and times.
    """
    recordings = [each for each in _recordings(records, stream, language) if each.references]
    if not recordings:
        raise InputError(
            f"StreamLAAL needs segments with start, end and a reference in {language}; {stream.name!r} has none"
        )
    ideal: list[float | None] = []
    aware: list[float | None] = []
    for recording, counts in zip(recordings, _cut(recordings, language), strict=True):
        first = 0
        for (reference, start, duration), count in zip(recording.references, counts, strict=True):
            part = slice(first, first + count)
            ideal.append(laal([each - start for each in recording.delays[part]], duration, len(reference)))
            aware.append(laal([each - start for each in recording.shown[part]], duration, len(reference)))
            first += count
    scored = [each for each in ideal if each is not None]
    if not scored:
        raise InputError(f"StreamLAAL needs captions; those of {stream.name!r} in {language} are empty")
    return StreamLaal(fmean(scored), fmean(each for each in aware if each is not None))


def _recordings(records: Sequence[Record], stream: Stream, language: str) -> list[_Recording]:
    code = parse_language(language).code
    found: dict[str, _Recording] = {}
    for (record, segment), caption in zip(pairs(records, stream), delays(records, stream, language), strict=True):
        if not caption.timed:
            raise InputError(f"StreamLAAL needs a time for every update; utterance {record.utterance!r} lacks one")
        recording = found.setdefault(segment.recording, _Recording())
        recording.add(caption)
        reference = split(segment.references.get(code, ""), language)
        if reference and segment.start is not None and segment.end is not None:
            recording.references.append((reference, segment.start, segment.end - segment.start))
    return [*found.values()]


def _cut(recordings: Sequence[_Recording], language: str) -> list[list[int]]:
    """Return, for each recording, how many units of its captions are aligned to each reference segment.

    The library runs in a separate process, since it prints to stderr, configures logging, and can crash.
    """
    if find_spec("mweralign") is None:
        raise MissingExtra(f"StreamLAAL needs the stream-laal extra: {install('stream-laal')}")
    by_character = unit(language) == "char"
    space = "" if by_character else " "
    texts = [
        ([space.join(units) for units, _, _ in recording.references], space.join(recording.units))
        for recording in recordings
    ]
    command = [sys.executable, "-c", _ALIGN]
    done = subprocess.run(
        command, input=json.dumps([texts, by_character]), capture_output=True, encoding="utf-8", check=False
    )
    if done.returncode:
        raise InputError(f"mweralign could not fit the captions to the references: {done.stderr[-200:].strip()!r}")
    lines = [aligned.split("\n") for aligned in json.loads(done.stdout)]
    return [[len(split(line, language)) for line in each] for each in lines]
