"""Subtitles: cues that can be read, near the voice.

A `Profile` says what can be read: how fast, how many lines of which width, how short and how long.  A text that needs
more lines, or takes longer, becomes several cues, which are cut where a clause ends, as its lines are.  A cue stays
until it has been read, or until the next one if that begins soon; it may delay the next one a little.  Short texts
share a cue if the second would come before the first has been read.
"""

from __future__ import annotations

import html
import unicodedata
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from datetime import date, datetime, time
from functools import cache, lru_cache
from itertools import accumulate, pairwise, zip_longest
from math import ceil, inf
from typing import Any

import budoux
from pysubs2.time import ms_to_times

from redraft.captions.breaks import cells, words
from redraft.captions.clauses import goodness
from redraft.captions.events import Caption, Event, Failure
from redraft.captions.formats.read import printable
from redraft.captions.formats.write import Output, Writer, by, failure_line, put
from redraft.captions.languages import known_language
from redraft.captions.words import UNBREAKABLE
from redraft.errors import OptionError

#: Latest time in SRT in seconds: 99:59:59,999.
LATEST = 359_999.999
#: Maximum number of utterances that wait for another language.
MOST_UNPAIRED = 8
#: Seconds between two cues that are too short to be noticed: the first one stays.
_SOON = 1.0
#: Scripts with wide letters, in which lines are shorter and letters say more: cells of a line, and reading speed beside
#: that of Latin letters.  Netflix's guides have 16 letters and 9 a second in Chinese, 13 and 4 in Japanese, 16 and 12
#: in Korean, 42 and 17 in English.
_WIDE = {"Hans": (32, 18 / 17), "Hant": (32, 18 / 17), "Jpan": (26, 8 / 17), "Kore": (32, 24 / 17)}
#: How much clauses count beside parts of equal length, and how bad it is to end a line with a short word.
_CLAUSE, _SHORT_WORD = 0.5, 0.3
#: A part ends within so many words of where it would with equal lengths.
_NEAR = 8


def _within(default: float, low: float, high: float) -> Any:
    """Return a field with these bounds, a whole number if its default is one."""
    return field(default=default, metadata={"bounds": (type(default), low, high)})


@dataclass(frozen=True, slots=True)
class Profile:
    """What readers need.

    Attributes:
        speed: character cells that are read per second, in Latin letters.
        width: cells of a line, in Latin letters.
        lines: lines of each language.
        shortest: seconds that a cue lasts at least.
        longest: seconds that a cue lasts at most.
        gap: seconds between two cues, if there is time.
        late: seconds by which a cue may begin after its words, so that the one before can be read.
        start: seconds that are added to all times.
    """

    speed: float = _within(17.0, 5, 60)
    width: float = _within(42, 16, 80)
    lines: float = _within(2, 1, 4)
    shortest: float = _within(1.0, 0.5, 5)
    longest: float = _within(7.0, 2, 60)
    gap: float = _within(0.08, 0, 1)
    late: float = _within(1.0, 0, 10)
    start: float = 0.0

    def seconds(self, text: str, language: str) -> float:
        """Return how long a text is read."""
        return cells(text) / self.speed / _wide(language)[1]

    def line(self, language: str) -> int:
        """Return the cells of a line."""
        return min(int(self.width), _wide(language)[0])


#: Profiles by name.  Television, with the reading speed and lines of the BBC and the EBU; streaming services; and live
#: captions that leave nothing out, for people who read along.
PROFILES = {
    "broadcast": Profile(speed=15, width=37, late=1.5),
    "web": Profile(),
    "cart": Profile(speed=21, longest=10, gap=0, late=2),
}


def profile(text: str) -> Profile:
    """Return a profile by its name, with fields that replace its own: ``web,speed=20,start=10:00:00``.

    Raises:
        OptionError: the name, a field or its value is invalid.
    """
    name, *changes = text.split(",")
    if name not in PROFILES:
        raise OptionError(f"must be one of {', '.join(PROFILES)}, not {name!r}", "profile")
    known = {each.name: each.metadata for each in fields(Profile)}
    given: dict[str, float] = {}
    for change in changes:
        key, _, value = change.partition("=")
        if key not in known:
            raise OptionError(f"has no field {key!r}: the fields are {', '.join(known)}", "profile")
        kind, low, high = known[key].get("bounds", (_seconds, 0, inf))
        given[key] = -1
        with suppress(ValueError, TypeError):  # of a time with a zone
            given[key] = kind(value)
        if not low <= given[key] <= high:
            number = f"{'a whole number' if kind is int else 'a number'} from {low} to {high}"
            wanted = "a time such as 10:00:00" if kind is _seconds else number
            raise OptionError(f"must have {key} as {wanted}, not {value!r}", "profile")
    return replace(PROFILES[name], **given)


def _seconds(text: str) -> float:
    """Return a time of day in seconds.  Raises `ValueError` unless it is written in full: 00:10 could be two times."""
    if text.count(":") != 2 or text.startswith("T"):
        raise ValueError
    return (datetime.combine(date.min, time.fromisoformat(text)) - datetime.min).total_seconds()


@lru_cache(maxsize=256)
def _wide(language: str) -> tuple[int, float]:
    known = known_language(language)
    return _WIDE.get((known and known.script) or "", (80, 1.0))


@dataclass(slots=True)
class Cue:
    """A cue.

    Attributes:
        start: its start in seconds.
        end: when its words ended, then its own end.
        lines: language -> its lines.
    """

    start: float
    end: float
    lines: dict[str, list[str]]


class Pacer:
    """Turns texts with the times of their words into cues, of which none begins before the one before has ended."""

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        #: The earliest start of the next cue.
        self._clock = 0.0
        self._waiting: Cue | None = None

    def add(self, begun: float | None, ended: float | None, texts: dict[str, str]) -> Iterator[Cue]:
        """Take texts, with the times of their words in seconds; yield the cues that are complete."""
        lasts = self._reading({language: [text] for language, text in texts.items()})
        if begun is None:
            yield from self.close()
            begun = self._clock
        elif begun == ended:
            free = self._clock if self._waiting is None else self._waiting.start + self._profile.shortest
            begun = max(ended - max(self._profile.shortest, lasts), min(free, ended), 0.0)
        if ended is None or ended <= begun:
            ended = begun + lasts
        parts = self._parts(texts, ended - begun)
        pace = (ended - begun) / sum(map(_size, parts))
        for part in parts:
            start, begun = begun, begun + pace * _size(part)
            yield from self._place(start, begun, part)

    def close(self) -> Iterator[Cue]:
        """Yield the cue that still waits for the next one."""
        return self._release(inf)

    def _place(self, begun: float, ended: float, lines: dict[str, list[str]]) -> Iterator[Cue]:
        waiting = self._waiting
        if waiting is not None and self._is_shared(waiting, begun, ended, lines):
            for language, more in lines.items():
                waiting.lines.setdefault(language, []).extend(more)
            waiting.end = max(waiting.end, ended)
            return
        yield from self._release(begun)
        self._waiting = Cue(round(max(begun, self._clock), 3), ended, lines)  # as it is written

    def _is_shared(self, cue: Cue, begun: float, ended: float, lines: dict[str, list[str]]) -> bool:
        """Whether lines belong to the cue that waits: they come before it has been read, and there is room."""
        if any(len(cue.lines.get(each, ())) + len(more) > self._profile.lines for each, more in lines.items()):
            return False
        soon = begun < cue.start + self._profile.shortest
        return soon or (begun < self._read(cue) and ended - cue.start <= self._profile.longest)

    def _release(self, following: float) -> Iterator[Cue]:
        """Yield the cue that waits, given when the words of the next one begin."""
        if (cue := self._waiting) is None:
            return
        profile, self._waiting = self._profile, None
        end = max(cue.end, self._read(cue))
        if end > following:
            end = min(end, following + profile.late)
        elif following - profile.gap - end < _SOON:
            end = following - profile.gap
        self._clock = round(max(min(end, cue.start + profile.longest), cue.start + profile.shortest), 3)
        yield Cue(cue.start, self._clock, cue.lines)

    def _read(self, cue: Cue) -> float:
        """Return when a cue has been read."""
        return cue.start + max(self._profile.shortest, self._reading(cue.lines))

    def _reading(self, lines: dict[str, list[str]]) -> float:
        return max(sum(self._profile.seconds(line, each) for line in texts) for each, texts in lines.items())

    def _parts(self, texts: dict[str, str], spoken: float) -> list[dict[str, list[str]]]:
        """Return the lines of each cue of texts that were spoken for so many seconds."""
        profile = self._profile
        units = {each: _phrases(text, each, profile.line(each)) for each, text in texts.items()}
        filled = [cells(text) / profile.line(each) for each, text in texts.items()]
        long = min(spoken // profile.longest + 1, *filled)  # but no cue of a few words
        first = max(1, int(long), ceil(max(filled) / profile.lines))
        for count in range(first, max(first, *map(len, units.values())) + 1):
            found = {each: self._lines(units[each], each, count) for each in texts}
            if all(len(lines) <= profile.lines for cues in found.values() for lines in cues):
                break
        together = zip_longest(*found.values(), fillvalue=[])
        return [{each: lines for each, lines in zip(found, cue, strict=True) if lines} for cue in together]

    def _lines(self, units: Sequence[str], language: str, count: int) -> list[list[str]]:
        """Return the lines of a text in so many cues; more lines than allowed if they do not fit."""
        width = self._profile.line(language)
        cues = []
        for cue in divided(units, count, int(width * self._profile.lines)):
            lines, number = [cue], 1
            while number < len(cue) and any(cells("".join(line).rstrip()) > width for line in lines):
                number += 1
                lines = divided(cue, number, width)
            cues.append(["".join(line).strip() for line in lines])
        return cues


def divided(units: Sequence[str], count: int, most: int) -> list[list[str]]:
    """Divide words into ``count`` parts of at most ``most`` cells if possible, of similar lengths, at clauses.

    Fewer words than that are a part each.
    """
    count = min(count, len(units))
    widths = [0, *accumulate(map(cells, units))]
    ideal = widths[-1] / count
    turns = [0.0, *(_cost_of_end(units, place) for place in range(1, len(units))), 0.0]

    def cost(start: int, end: int) -> float:
        width = widths[end] - widths[start]
        excess = max(0, width - (units[end - 1][-1:] == " ") - most)
        return (width / ideal - 1) ** 2 * 4 + excess * 10 + turns[end]

    #: Where so many parts may end -> the least cost of such parts, and where each ends.
    best: dict[int, tuple[float, list[int]]] = {0: (0.0, [0])}
    for number in range(1, count + 1):
        place = min(bisect_left(widths, ideal * number), len(units) - count + number)
        last = min(len(units) - count + number, max(place, min(best) + 1) + _NEAR)  # many may end in one long word
        near = range(max(number, place - _NEAR), last + 1)
        best = {
            end: min((before + cost(start, end), [*ends, end]) for start, (before, ends) in best.items() if start < end)
            for end in (near if number < count else [len(units)])
            if min(best) < end
        }
    return [[*units[begin:end]] for begin, end in pairwise(best[len(units)][1])]


def _cost_of_end(units: Sequence[str], place: int) -> float:
    """Return how bad it is to end a part before a word; negative if it is good."""
    last = units[place - 1].strip()
    return _SHORT_WORD * (last.isalpha() and len(last) <= 3) - _CLAUSE * goodness(units[place - 1], units[place])


#: What loads the model that finds the phrases of a script.
_PARSERS = {
    "Jpan": cache(budoux.load_default_japanese_parser),
    "Hans": cache(budoux.load_default_simplified_chinese_parser),
    "Hant": cache(budoux.load_default_traditional_chinese_parser),
}


def _phrases(text: str, language: str, width: int) -> list[str]:
    """Return the words of a text; in Chinese and Japanese its phrases, as far as they fit into a line."""
    known = known_language(language)
    load = _PARSERS.get(known.script or "") if known else None
    if load is None:
        return ["".join(word) for word in words(UNBREAKABLE.findall(text))]
    phrases = ([phrase] if cells(phrase) <= width else UNBREAKABLE.findall(phrase) for phrase in load().parse(text))
    return [part for phrase in phrases for part in phrase]


def _size(lines: dict[str, list[str]]) -> int:
    """Return the length of the lines of the longest language in cells."""
    return max(1, *(sum(map(cells, texts)) for texts in lines.values()))


class SubtitleWriter(Writer):
    """Writes SRT or WebVTT: cues from the final captions of each utterance, with the lines of all languages.

    The words of an utterance begin at the ``start`` of its captions, and end at their ``time``.  If these are the same,
    as with recognisers that send only final texts, they begin their reading time before.  If the start is unknown, the
    cue follows the previous one; if the end is unknown or before the start, it lasts for its reading time.
    `redraft.captions.formats.cues` makes cues of that.  A cue is written when the next one is known, which decides how
    long it stays.  Utterances without text have no cue.

    Cues are in the order of the first final captions.  A language that has none for an utterance, because it failed for
    example, holds up `MOST_UNPAIRED` utterances; in reading mode, so many lines.

    A time after `LATEST`, such as seconds since 1970, is reported once and treated as unknown.
    """

    #: Whether all times were usable.
    whole = True

    def __init__(self, to: Output) -> None:
        self._to, self._profile, self._cues = to, to.profile or PROFILES["web"], 0
        self._pacer = Pacer(self._profile)
        #: Utterance -> its final captions by language.
        self._waiting: dict[str, dict[str, Caption]] = {}
        if to.form == "vtt":
            put(to.out, "WEBVTT\n\n")

    def write(self, event: Event) -> None:
        """Put a final caption into a cue; failures go to the errors, and other captions are ignored."""
        if isinstance(event, Failure):
            self._report(event)
        elif event.final:
            self._waiting.setdefault(event.utterance, {})[event.language] = event
            while self._waiting:
                utterance, captions = next(iter(self._waiting.items()))
                if len(self._waiting) <= MOST_UNPAIRED and not captions.keys() >= {*self._to.languages}:
                    break
                del self._waiting[utterance]
                self.write_together([*captions.values()])

    def write_together(self, captions: Sequence[Caption]) -> None:
        """Write the final captions of an utterance as the next cue."""
        ordered = sorted(captions, key=lambda caption: self._to.languages.index(caption.language))
        texts = {each.language: text for each in ordered if (text := printable(each.text).strip())}
        last = captions[0]
        begun, ended = self._usable(last.start), self._usable(last.time)
        if texts:
            first = next(iter(texts))
            texts[first] = by(last.speaker, texts[first])
            self._put_cues(self._pacer.add(ended if begun is None else begun, ended, texts))

    def close(self) -> None:
        """Write the cues that still wait."""
        for captions in self._waiting.values():
            self.write_together([*captions.values()])
        self._waiting.clear()
        self._put_cues(self._pacer.close())

    def _usable(self, time: float | None) -> float | None:
        """Return a time of the stream if it is one."""
        if time is None or 0 <= time <= LATEST - self._profile.start:
            return time
        if self.whole:
            self.whole = False
            hours = f"time must be seconds from the start of the stream, under 100 hours, not {time:g}"
            self._report(Failure(f"{hours}; such cues get an estimate"))
        return None

    def _report(self, failure: Failure) -> None:
        put(self._to.errors, failure_line(failure) + "\n")

    def _put_cues(self, cues: Iterable[Cue]) -> None:
        for cue in cues:
            self._cues += 1
            lines = directed([(each, line) for each in self._to.languages for line in cue.lines.get(each, ())])
            times = f"{self._clock(cue.start)} --> {self._clock(cue.end)}"
            if self._to.form == "vtt":
                times, lines = times.replace(",", "."), [html.escape(line, quote=False) for line in lines]
            put(self._to.out, "\n".join([str(self._cues), times, *lines, "", ""]))

    def _clock(self, seconds: float) -> str:
        hours, minutes, seconds, rest = ms_to_times(round((seconds + self._profile.start) * 1000))
        return f"{hours:02}:{minutes:02}:{seconds:02},{rest:03}"


#: Invisible marks round a line that is written from right to left, or not; none if that is unknown.
_MARKS = {True: "\u200f", False: "\u200e", None: ""}


def directed(lines: Sequence[tuple[str, str]]) -> list[str]:
    """Return the lines of a cue, which come with their languages, as players show them in the right direction.

    By default, players take that of the first letter, which may be of a name in another script, perhaps for all lines.
    So if any line has letters or a language from right to left, there are marks round all of them.
    """
    texts = [line for _, line in lines]
    leftwards = [known.right_to_left if (known := known_language(language)) else None for language, _ in lines]
    if True not in leftwards and not any(unicodedata.bidirectional(each) in ("R", "AL") for each in "".join(texts)):
        return texts
    return [text.join([_MARKS[each]] * 2) for each, text in zip(leftwards, texts, strict=True)]
