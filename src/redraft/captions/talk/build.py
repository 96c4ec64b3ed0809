"""Convert the script ``talk.txt`` to the stream ``talk.jsonl``: ``python -m redraft.captions.talk.build``.

The script has one sentence per line, in its final form, with marks for the recogniser's intermediate forms:

``{two>to}``        sends "two" in one update, then "to"; ``{two*3>to}`` for three updates ``{ten>tenth>10}``  any
number of forms, the last is correct; an empty form is a temporarily missing word ``=``               repeats the update
that ends here, unchanged ``<``               sends the update that ends here, then removes its last word ``+2``
adds two words of the next sentence to this one, until its final update

Partial updates have no punctuation and start in lower case, except for "I" and names.  Nothing is random.
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
DELAY = 0.2  # seconds until an update without a new word: a repetition, a removed word, a final update
STEPS = (3, 2, 4, 2)  # numbers of new words per update, in turn
NAMES = {"I", "John", "Tom"}
WORD = r"(?:\{((?:[\w' :]*(?:\*\d+)?>)+[\w' :]+)\}|([\w':]+))([.,?!]?)"  # {heard*2>said} or said, then punctuation


def parse(line: str, number: int) -> tuple[list[list[str]], dict[int, str], int]:
    """Return the forms of each word, one per update; word count -> marks; and the number after ``+``."""
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
    """Return the start of a sentence as partial updates write it."""
    text = " ".join(re.sub(r"[.,?!]", "", text).split())
    return text if re.split("[ ']", text)[0] in NAMES else text[:1].lower() + text[1:]


def partials(words: list[list[str]], marks: dict[int, str], turn: int) -> Iterator[tuple[float, str]]:
    """Yield seconds since the start of the sentence, and text; ``turn`` is the first index in `STEPS`."""
    born: list[int] = []  # for each word, the update that first contained it
    while len(born) < len(words):
        update = born[-1] + 1 if born else 0
        last = min(len(born) + STEPS[(turn + update) % len(STEPS)], len(words), *(m for m in marks if m > len(born)))
        born += [update] * (last - len(born))
        heard = [forms[min(update - first, len(forms) - 1)] for first, forms in zip(born, words, strict=False)]
        # A number takes as long as its words rather than its digits: the longest form counts.
        seconds = SECONDS_A_WORD * sum(max(len(form.split()) for form in forms) for forms in words[:last])
        yield seconds, as_partial(" ".join(heard))
        if last in marks:
            yield seconds + DELAY, as_partial(" ".join(heard if marks[last] == "=" else heard[:-1]))


def build(script: str) -> list[Update]:
    """Return all updates of a script; raises `InputError` for a line that is empty or has an invalid mark."""
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
            # Extra words delay a final update; the next sentence's first update must not come before it.
            clock = max(clock, seconds)
            updates.append(Update(str(index + 1), seq, text, seq == len(heard), round(clock, 2)))
    return updates


def to_jsonl(updates: list[Update]) -> str:
    """Return the updates as one JSON object per line."""
    return "".join(json.dumps(asdict(update), ensure_ascii=False) + "\n" for update in updates)


if __name__ == "__main__":
    SCRIPT = Path(__file__).with_name("talk.txt")
    SCRIPT.with_name("talk.jsonl").write_text(to_jsonl(build(SCRIPT.read_text("utf-8"))), "utf-8", newline="\n")
