"""Turns the script ``talk.txt`` into the stream ``talk.jsonl``: ``python -m redraft.captions.talk.build``.

The script has one sentence a line, as it reads in the end, with marks for what the recogniser makes of it on the way:

``{two>to}``        hears "two" for one update, then "to"; ``{two*3>to}`` for three updates
``{ten>tenth>10}``  any number of forms, the last is right; an empty form is a word that is missing for a while
``=``               sends the update that ends here once more, unchanged
``<``               sends the update that ends here, then takes its last word back
``+2``              hears two words of the next sentence as part of this one, until the final

Partials have no punctuation and begin in lower case, but keep the capitals of "I" and of names.  Nothing is random.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from redraft.captions.events import Update
from redraft.errors import InputError

SECONDS_A_WORD = 0.4
PAUSE = 0.7  # seconds between sentences
DELAY = 0.2  # seconds until an update that no new word has caused: a repetition, a word taken back, a final
STEPS = (3, 2, 4, 2)  # how many new words an update brings, in turn
NAMES = {"I", "John", "Tom"}
WORD = r"(?:\{((?:[\w' :]*(?:\*\d+)?>)+[\w' :]+)\}|([\w':]+))([.,?!]?)"  # {heard*2>said} or said, and punctuation


def parse(line: str, number: int) -> tuple[list[list[str]], dict[int, str], int]:
    """The forms of each word, one an update; the marks by the count of words before them; the number after ``+``."""
    words: list[list[str]] = []
    marks: dict[int, str] = {}
    extra = 0
    for token in re.findall(r"\{[^}]*\}?\S*|\S+", line):
        if token in ("=", "<") and words:
            marks[len(words)] = token
        elif re.fullmatch(r"\+\d+", token):
            extra = int(token[1:])
        elif word := re.fullmatch(WORD, token):
            forms = [form.partition("*") for form in (word[1] or word[2]).split(">")]
            words.append([form + word[3] for form, _, times in forms for _ in range(int(times or 1))])
        else:
            raise InputError(f"{token!r} must be a word, {{heard>said}}, +number, or = or < after a word", number)
    if not words:
        raise InputError("it must hold a sentence", number)
    return words, marks, extra


def as_partial(text: str) -> str:
    """A text that begins a sentence, as partials have it."""
    text = " ".join(re.sub(r"[.,?!]", "", text).split())
    return text if re.split("[ ']", text)[0] in NAMES else text[:1].lower() + text[1:]


def partials(words: list[list[str]], marks: dict[int, str], turn: int) -> Iterator[tuple[float, str]]:
    """Seconds since the start of the sentence, and text; ``turn`` says where in `STEPS` to begin."""
    born: list[int] = []  # the update that first held each word
    while len(born) < len(words):
        update = born[-1] + 1 if born else 0
        last = min(len(born) + STEPS[(turn + update) % len(STEPS)], len(words), *(m for m in marks if m > len(born)))
        born += [update] * (last - len(born))
        heard = [forms[min(update - first, len(forms) - 1)] for first, forms in zip(born, words, strict=False)]
        # A number takes as long as its words, not as its digits: the longest form counts.
        seconds = SECONDS_A_WORD * sum(max(len(form.split()) for form in forms) for forms in words[:last])
        yield seconds, as_partial(" ".join(heard))
        if last in marks:
            yield seconds + DELAY, as_partial(" ".join(heard if marks[last] == "=" else heard[:-1]))


def build(script: str) -> list[Update]:
    """All updates of a script; `InputError` names a line that is empty or has a mark that cannot be read."""
    lines = [parse(line, number) for number, line in enumerate(script.splitlines(), 1)]
    updates: list[Update] = []
    start = clock = 0.0
    for index, (words, marks, extra) in enumerate(lines):
        said = " ".join(forms[-1] for forms in words)
        heard = [(start + seconds, text) for seconds, text in partials(words, marks, index)]
        start = heard[-1][0] + PAUSE
        if more := " ".join(forms[-1] for line in lines[index + 1 : index + 2] for forms in line[0][:extra]):
            heard.append((start + extra * SECONDS_A_WORD, f"{as_partial(said)} {as_partial(more)}"))
        for seq, (seconds, text) in enumerate([*heard, (heard[-1][0] + DELAY, said)]):
            # Words heard too many make a final late; the next sentence's first update must not overtake it.
            clock = max(clock, seconds)
            updates.append(Update(str(index + 1), seq, text, seq == len(heard), round(clock, 2)))
    return updates


def to_jsonl(updates: list[Update]) -> str:
    """One JSON object a line."""
    return "".join(json.dumps(asdict(update), ensure_ascii=False) + "\n" for update in updates)


if __name__ == "__main__":
    SCRIPT = Path(__file__).with_name("talk.txt")
    SCRIPT.with_name("talk.jsonl").write_text(to_jsonl(build(SCRIPT.read_text("utf-8"))), "utf-8", newline="\n")
