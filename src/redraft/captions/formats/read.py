"""Read transcripts: parse the lines of a pipe or file into updates as they arrive.

Each reader takes a binary file (``sys.stdin.buffer``, or a file opened with ``"rb"``), reads a line only when the next
item is requested, and yields `Update` and `Failure` in the order of the lines. Invalid content never raises: it becomes
one `Failure`, and reading continues with the next line.  Lines are numbered from 1.

Lines longer than `MAX_LINE_BYTES`, or `MAX_TEXT_BYTES` of plain text, are skipped with a failure.  All readers accept
LF and CR LF as the end of a line, a last line without one, and a UTF-8 byte order mark at the start.  Control
characters (NUL, tab, escape, ...) and Unicode's line and paragraph separators in a text become spaces, and spaces
around the text are dropped.  In lines and plain text, terminal escapes vanish, and a carriage return begins the line
again.
"""

from __future__ import annotations

import io
import re
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields
from itertools import pairwise
from typing import TypeAlias, TypeVar, cast

from redraft.captions.events import CONTROLS, Failure, Update, is_text
from redraft.captions.sentence import sentence_ends
from redraft.captions.words import WORD, bare_words, is_silence, joined
from redraft.errors import whole

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
#: Maximum length of a line in bytes; a spoken utterance has a few hundred.
MAX_LINE_BYTES = 65_536
#: The same for plain text: a book without a line break.
MAX_TEXT_BYTES = 1 << 20


def decoded(readline: Callable[[int], bytes], limit: int = MAX_LINE_BYTES) -> Iterator[tuple[int, str | Failure, bool]]:
    """Yield lines in bounded memory: the number, the text or what is wrong with it, and whether the line ends there."""
    number, begins = 0, True
    while raw := readline(limit + 2):  # 2 more for CR LF
        number += begins
        line = raw.removesuffix(b"\n").removesuffix(b"\r")
        if len(line) > limit:
            yield number, Failure(f"the line is longer than {limit} bytes and was skipped", number), True
            while raw and not raw.endswith(b"\n"):
                raw = readline(limit)
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


def _redrawn(source: io.IOBase) -> Callable[[int], bytes]:
    """Return a ``readline`` that also ends a line at a carriage return, as soon as it comes."""
    reader = source if isinstance(source, io.BufferedReader) else io.BufferedReader(cast(io.RawIOBase, source))

    def readline(size: int) -> bytes:
        found = bytearray()
        while len(found) < size and (ahead := reader.peek(1)):
            place = min((each for each in map(ahead.find, (b"\n", b"\r")) if each >= 0), default=len(ahead) - 1) + 1
            found += reader.read(min(place, size - len(found)))
            if found.endswith((b"\n", b"\r")):
                break
        return bytes(found)

    return readline


Item: TypeAlias = Update | Failure
_Item = TypeVar("_Item", bound=Item)

#: Maximum number of words in a sentence of plain text: some minutes of speech without a pause.
MAX_TEXT_WORDS = 500


def not_empty(items: Iterator[Item]) -> Iterator[Item]:
    """Yield the items of an input; a failure if there are none."""
    yield next(items, Failure("the input is empty: at least one line of text was expected"))
    yield from items


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
    """Return a text that may have been written for a terminal as one line, without escapes."""
    return _LONE_INVISIBLE.sub("", printable(ESCAPES.sub("", text))).strip()


#: Number of lines without an empty one after which it is reported that none has grown.
UNGROWN = 20


def read_lines(source: io.IOBase) -> Iterator[Item]:
    """Read one hypothesis per line: the whole text so far, which replaces the last one; an empty line ends it.

    Every line is immediately yielded as a partial update.  At an empty line or the end of the input, the last one is
    repeated as a final update with the next ``seq``.  Utterances are named "1", "2", ...  A line of only spaces and
    control characters counts as empty.

    After a carriage return the line begins again, as on a terminal: each version is an update, and the end of the line
    ends the utterance.

    Lines that have never grown are reported as a failure, after `UNGROWN` of them without an empty line, or at the end
    of a shorter input without one: each is probably a text of its own, and all but the last would be lost.
    """
    utterance, last = 1, None
    returned = again = False  # whether there was a carriage return in this line, and something behind it
    replaced, sound = 1, False  # number of lines of the utterance, and whether any has ever grown, or this was reported
    for number, text, ends in decoded(_redrawn(source)):
        again, over = again or (returned and text != ""), False
        if isinstance(text, Failure):
            yield text
        elif (text := _typed(text)) and not received(text):
            pass  # says nothing: neither replaces the last hypothesis nor ends it
        elif hypothesis := text:
            if last and hypothesis != last.text:
                replaced, sound = replaced + 1, sound or returned or _goes_on(last.text, hypothesis)
            last = Update(str(utterance), 0 if last is None else last.seq + 1, hypothesis)
            yield last
            if replaced == UNGROWN and not sound:
                sound = True
                yield _ungrown(replaced, number)
        else:
            over = not returned
        if last and (over or (ends and again)):
            yield finished(last)
            utterance, last, replaced = utterance + 1, None, 1
        returned, again = not ends, again and not ends
    if last:
        yield finished(last)
    if replaced > 1 and utterance == 1 and not sound:
        yield _ungrown(replaced)


def _goes_on(before: str, after: str) -> bool:
    """Whether a text has more words than one before it, and begins with those."""
    old, new = bare_words(before), bare_words(after)
    return 0 < len(old) < len(new) and new[: len(old)] == old


def _ungrown(count: int, line: int | None = None) -> Failure:
    return Failure(
        f"{count} lines have replaced each other and none has grown: with --input lines, each line is the whole text "
        "so far, and an empty line ends it; if each line is a text of its own, use --input text",
        line,
    )


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


def read_text(source: io.IOBase, *, lag: int = 3, rate: float | None = None, by_line: bool = False) -> Iterator[Item]:
    """Stream plain text: every sentence is an utterance, revealed ``lag`` words at a time.

    A sentence ends at its mark (`redraft.captions.sentence.sentence_ends`) or at an empty line, so a line may be a
    sentence, a paragraph, or a part of one.  After `MAX_TEXT_WORDS` words it ends in any case, since each of its many
    updates translates all the words so far.

    Args:
        source: the text.
        lag: words added by each update, at least 1; see `prefixes`.
        rate: words per second, above 0; updates then have the time at which their last word is spoken, from the start
            of the text, which `paced` waits for.  None for no times.
        by_line: whether every line that is not empty is an utterance instead.
    """
    number, said = 0, 0
    for text in _texts(source, by_line):
        if isinstance(text, Failure):
            yield text
            continue
        number += 1
        found = _prefixes(text, lag)
        for seq, (prefix, words) in enumerate(found):
            time = None if rate is None else (said + words) / rate
            yield Update(str(number), seq, prefix, seq == len(found) - 1, time)
        said += found[-1][1]


def _texts(source: io.IOBase, by_line: bool) -> Iterator[str | Failure]:
    """Yield the sentences of a text, or its lines; none is blank or too long."""
    rest = line = ""
    for _, text, ends in decoded(_redrawn(source), MAX_TEXT_BYTES):
        if isinstance(text, Failure):
            yield text
            continue
        line = _typed(text) or line
        if not ends:
            continue
        over, rest, line = by_line or not line, joined(rest, line), ""
        *sentences, last = pairwise([0, *([] if by_line else sentence_ends(rest)), len(rest)])
        for begin, end in sentences:
            yield from _short(rest[begin:end])
        parts = [*_short(rest[slice(*last)])]
        rest = "" if over or not parts else parts.pop()
        yield from parts
    if rest:
        yield rest


def _short(text: str) -> Iterator[str]:
    """Yield the parts of a text, of which each has as many words as an utterance may have."""
    ends = [word.end() for word in WORD.finditer(text)]
    for begin, end in pairwise([0, *ends[MAX_TEXT_WORDS - 1 : -1 : MAX_TEXT_WORDS], *ends[-1:]]):
        yield text[begin:end].strip()


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
