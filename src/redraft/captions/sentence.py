"""Where sentences end, and how a final text becomes a complete sentence in the prompt.

Most recognisers write no full stop, and many no capitals.  A model trained on incomplete sentences takes such a text
for incomplete and translates only part of it: "I have a dog" gave an empty caption.  So the prompt of a final update
has a capital and a full stop; captions show the text as received.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise

from redraft.captions.metadata import FINAL_MARK_KEY, PROMPT_KEY
from redraft.captions.words import UNSPACED, joined

#: The mark for models with their own prompt format whose metadata do not specify it, as the demo models need it.
DEFAULT_MARK = "."

#: Marks that end a sentence before a space, and those of scripts in which no space follows or the mark has one of its
#: own: Chinese and Japanese, Burmese, Khmer, Tibetan, Mongolian.
_SPACED_ENDS = ".!?…‥؟।॥۔։።፧\u037e\u2048\u2049\u203d"
_OTHER_ENDS = "。！？．｡︒။។៕།༎᠃᠉"
_ENDS = frozenset(_SPACED_ENDS + _OTHER_ENDS)
#: The question mark of Greek, which is written as a semicolon.
_GREEK_QUESTION = re.compile(r"(?<=[\u0370-\u03ff\u1f00-\u1fff]);")
#: Unicode categories of characters allowed after the mark: closing quotes and brackets.
_CLOSING = {"Pe", "Pf", "Pi"}
#: Trailing characters that the mark replaces.
_BREAKS = " ,;:-–—、，；："


def final_mark(metadata: Mapping[str, str]) -> str:
    """Return the mark that a model needs at the end of a sentence, by its GGUF metadata; empty if it needs none."""
    return metadata.get(FINAL_MARK_KEY, DEFAULT_MARK if PROMPT_KEY in metadata else "")


def as_sentence(text: str, mark: str) -> str:
    """Return the text with an initial capital and ``mark`` at its end, where these are missing.

    A name with a capital inside, such as iPhone, stays as it is.  A text without words is unchanged, as is every text
    if ``mark`` is empty.
    """
    first = _WORD.search(text)
    if not mark or first is None:
        return text
    word, text = first[0], text.rstrip()
    if word[1:] == word[1:].lower():
        text = text[: first.start()] + word[0].title() + text[first.start() + 1 :]
    return text if ends_sentence(text) else text.rstrip(_BREAKS) + mark


def ends_sentence(text: str) -> bool:
    """Whether a text ends with sentence-final punctuation, ignoring closing quotes and brackets."""
    for place in range(len(text) - 1, -1, -1):
        if text[place] not in "\"' " and unicodedata.category(text[place]) not in _CLOSING:
            return text[place] in _ENDS or _GREEK_QUESTION.match(text, place) is not None
    return False


#: Marks that may end a sentence, with closing quotes and brackets behind them.  In spaced scripts a space follows.
#: Nothing is tried twice, or a line of dots would take the square of its length.
_END = re.compile(
    rf"(?:(?<![{_SPACED_ENDS}])[{_SPACED_ENDS}]++|{_GREEK_QUESTION.pattern})[\"'’”»›)\]]*+(?=\s|$|[{UNSPACED}])"
    rf"|[{_OTHER_ENDS}]++[」』）”’\"]*+"
)
_WORD_BEFORE = re.compile(r"[\w.'’]*$")
#: Number of characters before a mark in which its word is looked for.
_LONGEST_WORD = 100
_LETTER = re.compile(r"[^\W_]")
_WORD = re.compile(r"[^\W_][\w.'’-]*")
#: Abbreviations before a name or a number, in lower case without their last full stop.
_GOES_ON = frozenset(
    "approx bzw ca capt cf col d.h dr e.g fig fr ft gen gov hon hr i.e lt mlle mme mr mrs ms mt nr pp prof rep rev sen "
    "sgt sr sra st u.a usw vol vs z.b "
    "dipl evtl fa frl geb ggf inkl ing jh o.a sog stv u.u v.a vgl zzgl "  # German
    "dhr mevr bijv blz "  # Dutch
    "avda dª dña núm pág uds exmo exma "  # Spanish and Portuguese
    "avv dott dott.ssa egr sig sig.ra prof.ssa "  # Italian
    "mgr inż np tzn tzw godz ul hab "  # Polish
    "např tzv tj mudr judr phdr "  # Czech
    "bl.a dvs f.d t.ex "  # Swedish and Danish
    "г-н г-жа ул им проф акад т.е т.н стр "  # Russian
    "κ κα κος δρ π.χ".split()  # Greek
)
#: Abbreviations before a number.
_BEFORE_NUMBER = frozenset(
    "abs apr art aug bd ch dec feb hrsg jan jul jun kap mar no nov oct okt sec sep sept tel ziff "
    "cap déc févr janv juil num pag págs párr rozdz str č".split()
)
#: Abbreviations of thousands, millions and more, which go on behind a number: "5 Mio. Euro".
_MAGNITUDES = frozenset("tsd mio mill mrd bio bln mln mld tys млн млрд трлн тыс хил εκατ δισ χιλ mn bn md mds".split())
_NUMBER_BEFORE = re.compile(r"[\d)½¼¾]\s*$")
#: Abbreviations behind a name, after which a sentence may end.
_BEHIND_NAME = frozenset("bros co corp inc jr ltd".split())


def sentence_ends(text: str, *, cased: bool = True) -> Iterator[int]:
    """Yield the places where sentences end, after the mark and closing quotes, from the first to the last.

    The end of the text counts if it has a mark.  In doubt a sentence goes on, since two sentences in one are translated
    better than half a one: after abbreviations ("Mr.", "e.g."), an ellipsis or a word in lower case behind the mark,
    and inside the text also after initials, "Inc.", "p.m." and numbers of one or two digits, which are ordinals in
    German.

    Args:
        cased: whether sentences begin with capitals, so that one goes on if a word in lower case follows the mark.
    """
    letter = -1  # the place of the first letter or number behind the mark
    for mark in _END.finditer(text):
        place = mark.end()
        if letter < place:
            found = _LETTER.search(text, place)
            letter = found.start() if found else len(text)
        first = text[letter : letter + 1]
        if mark[0][0] not in _OTHER_ENDS and ((cased and first.islower()) or _is_abbreviated(text, mark, first)):
            continue
        yield place


def cut_text(text: str, *, lines: bool = True, marks: bool = True) -> list[tuple[str, str]]:
    """Cut a whole text into sentences, each with the white space behind it; joined, they are the text.

    White space before the first sentence stands behind an empty one.  In a line without capitals, a mark ends a
    sentence whatever follows.

    Args:
        lines: whether a line break ends a sentence.
        marks: whether a mark does (`sentence_ends`).
    """
    sentences, gaps = [""], [[""]]
    for line in text.splitlines(keepends=True) if lines else [text]:
        ends = sentence_ends(line, cased=line != line.lower()) if marks else ()
        for begin, end in pairwise([0, *ends, len(line)]):
            part = line[begin:end]
            sentence = part.strip()
            start = len(part) - len(part.lstrip())
            gaps[-1].append(part[:start])
            if sentence:
                sentences.append(sentence)
                gaps.append([part[start + len(sentence) :]])
    found = [(sentence, "".join(gap)) for sentence, gap in zip(sentences, gaps, strict=True)]
    return found if found[0][1] else found[1:]


def join_text(sentences: Iterable[tuple[str, str]]) -> str:
    """Join translations of sentences with the white space behind each, as `cut_text` returns it.

    Scripts without spaces have none between two sentences; it is added where the translation needs one.
    """
    parts: list[str] = []
    before = ""  # the sentence that ends here, without a space
    for sentence, gap in sentences:
        parts += [joined(before[-1:], sentence[:1])[1:-1], sentence, gap]
        before = "" if gap else sentence
    return "".join(parts)


def _is_abbreviated(text: str, mark: re.Match[str], after: str) -> bool:
    """Whether a mark belongs to a word or is an ellipsis, rather than ending a sentence; ``after`` is what follows."""
    marks = mark[0].rstrip("\"'’”»›)]")
    if marks in ("…", "‥") or marks.startswith(".."):
        return not after
    if marks != ".":
        return False
    found = _WORD_BEFORE.search(text, max(0, mark.start() - _LONGEST_WORD), mark.start())
    word = found[0] if found else ""
    if word.casefold() in _GOES_ON or (word.casefold() in _BEFORE_NUMBER and after.isdigit()):
        return True
    before = text[max(0, mark.start() - len(word) - 4) : mark.start() - len(word)]
    if after and word.casefold() in _MAGNITUDES and _NUMBER_BEFORE.search(before):
        return True
    short = (word.isdigit() and len(word) < 3) or (len(word) == 1 and word.isalpha() and word != "I") or "." in word
    return bool(after) and (short or word.casefold() in _BEHIND_NAME)
