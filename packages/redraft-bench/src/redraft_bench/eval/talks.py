"""Timed streams of talks: the ACL 60/60 development set, and a recogniser's output for one of its talks.

All times are seconds from the start of a talk's recording.
"""

from __future__ import annotations

import difflib
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from redraft.captions.events import Update
from redraft.captions.formats.read import finished
from redraft.captions.languages import parse_language
from redraft.errors import whole
from redraft_bench.eval.sets import load_set, read_data, reveal
from redraft_bench.eval.stream import Segment, Stream

SET = "acl6060.dev"
#: Name of these streams, whose updates differ from those of the test set.
NAME = "acl6060.talks"
LANGUAGES = ("de", "zh", "ja")
#: The talk with a recogniser's output.
RECOGNISED = "2022.acl-long.110"

#: Sentence-final punctuation at the end of a word, with closing quotation marks and brackets.
_SENTENCE_END = re.compile(r"""[.?!]["')\]”’]*(?=\s|$)""")


@dataclass(frozen=True, slots=True)
class _Sentence:
    """A segment of the set: number, talk, time in seconds, text, and references by language."""

    number: int
    talk: str
    start: float
    end: float
    text: str
    references: Mapping[str, str]


def talk_stream(*, languages: Sequence[str] = LANGUAGES, lag: int = 3, limit: int = 0) -> Stream:
    """Return the transcripts of ACL 60/60 (development set), revealed ``lag`` words at a time as they are spoken.

    All characters of a segment take the same time.

    Args:
        languages: languages of the references, as tags or English names: German, Chinese, Japanese.
        lag: words added by each update; 0 gives whole segments.
        limit: maximum number of segments; 0 takes all.

    Raises:
        OptionError: an argument is invalid.
        InputError: the data are not in the data folder.
    """
    whole("lag", lag, 0)
    whole("limit", limit, 0)
    return Stream(NAME, tuple(_segment(sentence, lag) for sentence in _sentences(languages)[: limit or None]))


def _segment(sentence: _Sentence, lag: int) -> Segment:
    length, letters = sentence.end - sentence.start, len(sentence.text)
    updates = (
        replace(update, time=round(sentence.start + length * len(update.text) / letters, 3))
        for update in reveal(str(sentence.number), sentence.text, lag)
    )
    return Segment(tuple(updates), sentence.references, sentence.start, sentence.end, sentence.talk)


def _sentences(languages: Sequence[str]) -> list[_Sentence]:
    """Return the segments of all talks."""
    spans = json.loads("".join(read_data(f"test/{SET}.segments.json")))
    sets = {parse_language(to).code: load_set(SET, to) for to in languages}
    texts = read_data(f"test/{SET}.en.txt")
    return [
        _Sentence(
            number,
            span["doc"],
            span["start"],
            span["end"],
            texts[number],
            {code: test.references[number] for code, test in sets.items()},
        )
        for number, span in enumerate(spans)
    ]


def recogniser_stream(*, languages: Sequence[str] = LANGUAGES, limit: int = 0) -> Stream:
    """Return a streaming recogniser's output for the talk `RECOGNISED`, with errors but without revisions.

    Each output line is an update, at its time of emission.  An utterance ends at a full stop, question mark or
    exclamation mark at the end of a word; the rest of the line starts the next one.

    A sentence of the set belongs to the utterance that contains most of its words, found by aligning all words of the
    talk (longest matching blocks).  Times alone would not suffice: the recogniser's are about a second late.  The
    references and times of an utterance are those of its sentences, joined.  An utterance to which no sentence belongs
    has neither.

    Args:
        languages: languages of the references, as tags or English names: German, Chinese, Japanese.
        limit: maximum number of utterances; 0 takes all.

    Raises:
        OptionError: an argument is invalid.
        InputError: the data are not in the data folder.
    """
    whole("limit", limit, 0)
    utterances = _utterances(read_data(f"asr/ufal-asr_latency.candidate.{RECOGNISED}.txt"))
    held: list[list[_Sentence]] = [[] for _ in utterances]
    sentences = [each for each in _sentences(languages) if each.talk == RECOGNISED]
    texts = [updates[-1].text for updates in utterances]
    for sentence, place in zip(sentences, places_of(texts, [each.text for each in sentences]), strict=True):
        held[place].append(sentence)
    segments = [_covering(updates, found) for updates, found in zip(utterances, held, strict=True)]
    return Stream(f"{NAME}.{RECOGNISED}.asr", tuple(segments[: limit or None]))


def _utterances(output: Sequence[str]) -> list[list[Update]]:
    """Split the recogniser's lines (emission time, start and end in milliseconds, new text) into utterances."""
    utterances: list[list[Update]] = [[]]
    for line in output:
        emitted, _, _, new = line.split(" ", 3)
        cuts = [0, *(end.end() for end in _SENTENCE_END.finditer(new)), len(new)]
        for start, end in pairwise(cuts):
            if new[start:end].strip():
                utterance = utterances[-1]
                text = (utterance[-1].text if utterance else "") + new[start:end]
                final = end in cuts[1:-1]
                utterance.append(Update(str(len(utterances) - 1), len(utterance), text, final, float(emitted) / 1000))
                if final:
                    utterances.append([])
    if utterances[-1]:
        utterances[-1].append(finished(utterances[-1][-1]))
    return [utterance for utterance in utterances if utterance]


def places_of(texts: Sequence[str], sentences: Sequence[str]) -> list[int]:
    """Return the index of the text that contains most words of each sentence.

    If none does, that of the previous sentence.
    """
    recognised = [(word, number) for number, text in enumerate(texts) for word in _plain(text)]
    spoken = [(word, number) for number, text in enumerate(sentences) for word in _plain(text)]
    matcher = difflib.SequenceMatcher(
        None, [word for word, _ in recognised], [word for word, _ in spoken], autojunk=False
    )
    votes: list[Counter[int]] = [Counter() for _ in sentences]
    for block in matcher.get_matching_blocks():
        for offset in range(block.size):
            votes[spoken[block.b + offset][1]][recognised[block.a + offset][1]] += 1
    places: list[int] = []
    for found in votes:
        places.append(found.most_common(1)[0][0] if found else (places[-1] if places else 0))
    return places


def _plain(text: str) -> list[str]:
    """Return the words of a text in lower case, without punctuation."""
    return re.findall(r"[\w']+", text.lower())


def _covering(updates: Sequence[Update], sentences: Sequence[_Sentence]) -> Segment:
    """Return the segment of an utterance that contains these sentences."""
    if not sentences:
        return Segment(tuple(updates), recording=RECOGNISED)
    references = {
        code: (" " if parse_language(code).spaced else "").join(sentence.references[code] for sentence in sentences)
        for code in sentences[0].references
    }
    return Segment(tuple(updates), references, sentences[0].start, sentences[-1].end, RECOGNISED)
