"""Read transcripts: parse the lines of a pipe or file into updates as they arrive.

Each reader takes a binary file (``sys.stdin.buffer``, or a file opened with ``"rb"``), reads a line only when the next
item is requested, and yields `Update` and `Failure` in the order of the lines. Invalid content never raises: it becomes
one `Failure`, and reading continues with the next line.  Lines are numbered from 1.

Lines longer than `MAX_LINE_BYTES` are skipped with a failure.  All readers accept LF and CR LF as the end of a line, a
last line without one, and a UTF-8 byte order mark at the start.  Control characters (NUL, tab, escape, ...) and
Unicode's line and paragraph separators in a text become spaces, and spaces around the text are dropped.  In plain text,
terminal escapes vanish, a backspace erases, and a carriage return begins the line again.  An empty input is one
failure.
"""

from __future__ import annotations

import io
import math
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import fields
from functools import wraps
from itertools import pairwise
from typing import ParamSpec, Protocol, TypeAlias, TypeVar

from redraft.captions.align import distance, end_of, in_common
from redraft.captions.events import CONTROLS, Failure, Update, is_text
from redraft.captions.formats.screen import Screen
from redraft.captions.sentence import ends_sentence
from redraft.captions.words import WORD, bare_words, has_words, is_silence
from redraft.errors import OptionError, whole

#: Sequences with which programs move a terminal's cursor, erase and colour.
ESCAPES = re.compile(
    "(?:\x1b\\[|\x9b)[0-?]*[ -/]*[@-~]"  # such as colours
    "|(?:\x1b\\]|\x9d)[^\x07\x1b\x9c\x9d\n]*(?:\x07|\x1b\\\\|\x9c)"  # such as titles
    "|\x1b[ -/]*[0-Z\\\\^-~]"
)
#: Invisible characters that stand alone: those that Unicode calls ignorable, and the empty Braille cell.
_LONE_INVISIBLE = re.compile(
    "(?<!\\S)[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u2800"
    "\u3164\ufe00-\ufe0f\ufeff\uffa0\U000e0000-\U000e0fff]+(?!\\S)"
)
#: Moves a terminal's cursor to the beginning of the line, like a carriage return.
_TO_LINE_START = re.compile(r"\x1b\[1?G")
#: Maximum length of a line in bytes; a spoken utterance has a few hundred.
MAX_LINE_BYTES = 65_536


class LineSource(Protocol):
    """An input; any binary file has this method."""

    def readline(self, size: int = -1, /) -> bytes:
        """Return the next line with its end, truncated to ``size`` bytes; empty at the end of the file."""


def decoded(source: LineSource, limit: int = MAX_LINE_BYTES) -> Iterator[tuple[int, str | Failure, bool]]:
    """Yield lines in bounded memory: the number, the text or what is wrong with it, and whether the line ends there."""
    number, begins = 0, True
    while raw := source.readline(limit + 2):  # 2 more for CR LF
        number += begins
        line = raw.removesuffix(b"\n").removesuffix(b"\r")
        if len(line) > limit:
            yield number, Failure(f"the line is longer than {limit} bytes and was skipped", number), True
            while raw and not raw.endswith(b"\n"):
                raw = source.readline(limit)
            begins = True
            continue
        first, begins = begins and number == 1, not raw.endswith(b"\r")
        try:
            text = line.decode()
        except UnicodeDecodeError as error:
            found = f"byte 0x{line[error.start]:02x} at offset {error.start}"
            yield number, Failure(f"the line must be UTF-8, but {found} of the line is not", number), begins
            continue
        yield number, text.removeprefix("\ufeff") if first else text, begins


class _Rewritten:
    """A line source that also ends a line at a carriage return, as soon as it comes."""

    def __init__(self, source: io.BufferedReader) -> None:
        self._source = source

    def readline(self, size: int = -1, /) -> bytes:
        """Return the text up to a line feed or carriage return, with it; empty at the end of the file."""
        found = bytearray()
        while (size < 0 or len(found) < size) and (ahead := self._source.peek(1)):
            place = min((each for each in map(ahead.find, (b"\n", b"\r")) if each >= 0), default=len(ahead) - 1) + 1
            found += self._source.read(place if size < 0 else min(place, size - len(found)))
            if found.endswith((b"\n", b"\r")):
                break
        return bytes(found)


def _rewritten(source: LineSource) -> Iterator[tuple[int, str | Failure, bool]]:
    """Yield the texts of each line, which carriage returns separate: its number, a text, and whether the line ends."""
    reader = _Rewritten(source) if isinstance(source, io.BufferedReader) else source
    for number, text, ends in decoded(reader):
        if isinstance(text, Failure):
            yield number, text, ends
            continue
        *before, last = _TO_LINE_START.sub("\r", text).rstrip("\r").split("\r")
        for each in before:
            yield number, each, False
        yield number, last, ends


Item: TypeAlias = Update | Failure
_Item = TypeVar("_Item", bound=Item)
_Parameters = ParamSpec("_Parameters")

#: Maximum number of words in a line of plain text: some minutes of speech without a pause.
MAX_TEXT_WORDS = 500


def not_empty(read: Callable[_Parameters, Iterator[Item]]) -> Callable[_Parameters, Iterator[Item]]:
    """Let a reader yield a failure if it has yielded nothing."""

    @wraps(read)
    def reading(*arguments: _Parameters.args, **options: _Parameters.kwargs) -> Iterator[Item]:
        empty = True
        for item in read(*arguments, **options):
            empty = False
            yield item
        if empty:
            yield Failure("the input is empty: at least one line of text was expected")

    return reading


def printable(text: str) -> str:
    """Replace control characters and line breaks by spaces, so that the text is one line without terminal escapes."""
    return CONTROLS.sub(" ", text)


#: What recognisers write where there is no speech, also among words.
_SILENCE = re.compile(
    r"\[ ?(?:BLANK_AUDIO|SILENCE|NO[ _]SPEECH|_BEG_|_TT_\d+) ?\]|<\|(?:nospeech|nocaptions|\d+\.\d+)\|>"
)


def cleaned(text: str) -> str:
    """Return a text as one line, without outer spaces, invisible characters that stand alone, and signs of silence."""
    text = _LONE_INVISIBLE.sub("", printable(text)).strip()
    return " ".join(_SILENCE.sub(" ", text).split()) if _SILENCE.search(text) else text


def received(text: str) -> str:
    """Return a received text as one line (`cleaned`); empty if nothing is said in it (`is_silence`)."""
    text = cleaned(text)
    return "" if is_silence(text) and is_text(text) else text  # half a character is refused


def _typed(text: str) -> str:
    """Return a text that may have been written for a terminal, without its escapes and what backspaces erase."""
    text = ESCAPES.sub("", text)
    return received(_erased(text) if "\b" in text else text)


def _erased(text: str) -> str:
    """Return a text without backspaces and the characters that they erase."""
    kept: list[str] = []
    for character in text:
        if character != "\b":
            kept.append(character)
        elif kept:
            kept.pop()
    return "".join(kept)


#: Fewest words that a recogniser does not replace all at once, and the share of words that it may replace from one line
#: of a growing transcript to the next.
_KEPT_WORDS, _REPLACED = 4, 1 / 3


def grows(before: str, after: str) -> bool:
    """Whether a line is another version of the one before: it continues it, or revises its end.

    A sentence after another one is a new one unless it is longer, as in a list of similar sentences.
    """
    old, new = bare_words(before), bare_words(after)
    if len(new) <= len(old) and old != new and ends_sentence(before) and ends_sentence(after):
        return False
    shorter, longer = sorted((old, new), key=len)
    kept = longer[: end_of(shorter, longer)]
    if old[:1] == new[:1] and not ends_sentence(before):
        return True
    return 2 * in_common(shorter, longer) >= len(shorter) and distance(shorter, kept) <= _REPLACED * len(shorter)


#: Fewest pairs of lines that show whether one goes on from the other, in an input with blank lines.
_PAIRS = 4


def is_list(lines: Sequence[str]) -> bool:
    """Whether each line is another text, rather than another version of a growing one, which blank lines separate."""
    pairs = [(before, after) for before, after in pairwise(lines) if has_words(before) and has_words(after)]
    separated = any(has_words(line) and not has_words(after) for line, after in pairwise(lines[:-1]))
    if len(pairs) < (_PAIRS if separated else 2) and (separated or not pairs or not ends_sentence(pairs[0][0])):
        return False
    return 2 * sum(grows(*pair) for pair in pairs) < len(pairs)


def _begins_another(before: str, after: str, *, listed: bool) -> bool:
    """Whether a line begins another text.

    Args:
        listed: whether most lines do; otherwise it does only if its first word is another one, and it has so little in
            common with the line before that a recogniser would hardly have replaced the rest.
    """
    old, new = bare_words(before), bare_words(after)
    if listed:
        kept = len(old) if ends_sentence(before) else len(old) - 1
        return new[:kept] != old[:kept]
    fewest = min(len(old), len(new))
    return fewest >= _KEPT_WORDS and old[0] != new[0] and 3 * in_common(old, new) < fewest


def _waiting(source: LineSource) -> list[str]:
    """Return the lines that can be read at once."""
    if not isinstance(source, io.BufferedReader):
        return []
    return [_typed(line) for line in source.peek(1).decode(errors="replace").split("\n")]


@not_empty
def read_lines(source: LineSource, news: Callable[[str], object] = str) -> Iterator[Item]:
    """Read one hypothesis per line, the whole text so far; a blank line ends the utterance.

    A line that clearly does not continue the one before begins another utterance, so that no sentence of a list is
    lost; ``news`` is then called once with a sentence that says so.

    Every line is immediately yielded as a partial update.  At a blank line or the end of the input, the last one is
    repeated as a final update with the next ``seq``.  Utterances are named "1", "2", ...  A line of only spaces and
    control characters counts as blank.

    Programs that write for a terminal rewrite a line after a carriage return: each version is an update, and the end of
    the line ends the utterance.  For programs that clear the screen at least twice, each line of the screen is an
    utterance (`redraft.captions.formats.screen`).
    """
    utterance, last = 1, None
    returned = again = False  # whether there was a carriage return in this line, and something behind it
    screen, listed, told = Screen(), is_list(_waiting(source)), False
    for number, text, ends in _rewritten(source):
        again = again or (returned and text != "")
        if isinstance(text, Failure):
            yield text
        else:
            screen.see(text)
            hypothesis = _typed(text)
            new = screen.begins(hypothesis) if hypothesis else None
            if last and new is False and not (returned or screen.used):
                new = _begins_another(last.text, hypothesis, listed=listed)
                if new and not told:
                    news(f"line {number} does not continue the previous one: such lines start new utterances")
                    told = True
            if last and (new or not (hypothesis or returned or screen.used)):
                yield finished(last)
                utterance, last = utterance + 1, None
            if new is not None:
                last = Update(str(utterance), 0 if last is None else last.seq + 1, hypothesis)
                yield last
        if ends and again and last and not screen.used:
            yield finished(last)
            utterance, last = utterance + 1, None
        returned, again = not ends, again and not ends
    if last:
        yield finished(last)


def lines_of(text: str) -> list[tuple[str, str]]:
    """Split a text into lines: each stripped and printable, with the line breaks and spaces between it and the next.

    Line breaks before and after the text are kept too: callers send files piece by piece, and join what they get.
    """
    found = []
    for line in text.rstrip(" \t").splitlines(keepends=True):
        words = line.rstrip()
        found.append((printable(words).strip(), line[len(words) :]))
    return found


def finished(last: Update) -> Update:
    """Return the last update of an unfinished utterance as a final one, with the next ``seq``.

    A message becomes a plain update, since its ``seq`` may have been the highest that clients can send.
    """
    given = {each.name: getattr(last, each.name) for each in fields(Update)}
    return Update(**{**given, "seq": last.seq + 1, "final": True})


def ended(items: Iterable[Item]) -> Iterator[Item]:
    """Yield the items, then a final update for every utterance that has none."""
    unfinished: dict[str, Update] = {}
    for item in items:
        if isinstance(item, Update):
            unfinished[item.utterance] = item
            if item.final:
                del unfinished[item.utterance]
        yield item
    yield from map(finished, unfinished.values())


def prefixes(text: str, lag: int = 3) -> list[str]:
    """Return the prefixes of a text as a recogniser would reveal them, ``lag`` words at a time.

    The last is the whole text.

    A word is a run of non-spaces or, in Chinese and Japanese, a character.  SSBD v2 (section 4.1) streams Flores like
    this with a lag of 3.  A blank text has no prefixes.

    Raises:
        OptionError: ``lag`` is below 1.
    """
    return [prefix for prefix, _ in _prefixes(text.strip(), whole("lag", lag, 1))]


def _prefixes(text: str, lag: int) -> list[tuple[str, int]]:
    """Return each prefix with its number of words."""
    ends = [word.end() for word in WORD.finditer(text)]
    counts = [*range(lag, len(ends), lag), len(ends)] if ends else []
    return [(text[: ends[count - 1]], count) for count in counts]


def read_text(source: LineSource, *, lag: int = 3, rate: float | None = None) -> Iterator[Item]:
    """Stream plain text: every non-blank line is an utterance, revealed ``lag`` words at a time.

    Lines of more than `MAX_TEXT_WORDS` words are skipped with a failure, since each of their many updates would
    translate all the words so far.

    Args:
        source: the text.
        lag: words added by each update, at least 1; see `prefixes`.
        rate: words per second, above 0; updates then have the time at which their last word is spoken, from the start
            of the text, which `paced` waits for.  None for no times.

    Raises:
        OptionError: ``lag`` or ``rate`` is out of range.
    """
    if rate is not None and (isinstance(rate, bool) or not (math.isfinite(rate) and rate > 0)):
        raise OptionError(f"must be a number of words a second over 0, not {rate!r}", "rate")
    return _read_text(source, whole("lag", lag, 1), rate)


@not_empty
def _read_text(source: LineSource, lag: int, rate: float | None) -> Iterator[Item]:
    utterance, spoken, shown = 0, 0, ""
    for number, text, ends in _rewritten(source):
        if isinstance(text, Failure):
            yield text
            continue
        shown = _typed(text) or shown
        if not ends:
            continue
        text, shown = shown, ""
        if (length := len(WORD.findall(text))) > MAX_TEXT_WORDS:
            message = f"the line has {length} words and was skipped, since an utterance may have {MAX_TEXT_WORDS}"
            yield Failure(f"{message}: put each sentence on a line of its own", number)
            continue
        revealed = _prefixes(text, lag)
        utterance += bool(revealed)
        for seq, (prefix, words) in enumerate(revealed):
            when = None if rate is None else (spoken + words) / rate
            yield Update(str(utterance), seq, prefix, seq == len(revealed) - 1, when)
        spoken += revealed[-1][1] if revealed else 0


def paced(
    items: Iterable[_Item],
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], object] = time.sleep,
    *,
    speed: float = 1.0,
) -> Iterator[_Item]:
    """Yield each item when its ``time`` has passed since the first one was requested, at ``speed`` times the pace.

    Items without a time, and late ones, are not delayed.
    """
    start = clock()
    for item in items:
        if isinstance(item, Update) and item.time is not None:
            while (wait := start + item.time / speed - clock()) > 0:
                sleep(min(wait, 3600.0))  # a longer wait can overflow the system's timer
        yield item
