"""What a chat model writes in one line beside the translation: labels, the source, notes, marks and mark-up.

All of it is left out only where the source has nothing like it, so that no model that answers well loses a word.
"""

from __future__ import annotations

import html
import re
from collections.abc import Sequence

from redraft.captions.thoughts import thoughts_at

#: Words of many languages for "translation".
TRANSLATES = re.compile(
    r"translat|traduc|traduz|traducció|übersetz|oversæt|oversett|översätt|vertal|tłumacz|přelož|překlad|preklad|prevod|"
    r"prijevod|перевод|перевед|переклад|превод|käänn|käänt|fordít|μετάφρα|çevir|tercüme|terjemah|dịch|翻译|翻譯|翻訳|"
    r"[語和英独仏]訳|译文|譯文|訳文|번역|ترجم|תרגו|अनुवाद|অনুবাদ|แปล",
    re.IGNORECASE,
)
_LANGUAGES = (
    "German Deutsch English Englisch French Français Spanish Español Italian Italiano Portuguese Português Dutch "
    "Nederlands Polish Polski Russian Русский Ukrainian Українська Czech Čeština Slovak Slovenčina Slovenian Bulgarian "
    "Български Croatian Hrvatski Serbian Swedish Svenska Danish Dansk Norwegian Norsk Finnish Suomi Suomeksi Romanian "
    "Română Hungarian Magyar Greek Ελληνικά Turkish Türkçe Arabic العربية Hebrew עברית Persian فارسی Hindi हिन्दी Thai "
    "ไทย Bengali Vietnamese Indonesian Malay Korean 한국어 Japanese 日本語 Chinese 中文 汉语 漢語 Catalan Català"
).split()
#: What announces the language of what follows: "German", "In German", "German translation", "Chinese (Simplified)".
LABEL = re.compile(
    rf"((in|auf|en|em|på|na|po|по)\s+)?(the\s+)?((simplified|traditional|brazilian|british)\s+)?({'|'.join(_LANGUAGES)})"
    r"(\s*\([^()]*\))?(\s+(translation|version|text))?",
    re.IGNORECASE,
)
_LABELLED = re.compile(rf"{LABEL.pattern}\s*[:：]\s*", re.IGNORECASE)
#: A colon, except in times and proportions.
COLON = re.compile(r"[:：](?![0-9/])")
_BEFORE_COLON = re.compile(r"[^:：\n]{0,100}[:：]\s*")
_ARROWS = r"-+>|=+>|→|⇒|➡️?|⟶"
#: Notes of the model, in brackets: their first words.
_NOTES = (
    r"note|n\.?b\.?|literal(ly)?|lit\.|explanation|translation|translated|pronounced|pronunciation|formal|informal|"
    r"anmerkung|hinweis|wörtlich|remarque|littéralement|nota|literalmente|nb|注|备注|備註|说明|說明|直译|補足|説明|直訳|참고|примечание"
)
NOTE = re.compile(rf"[*_]*([(\[（【].*|({_NOTES})\b[^\n]*[:：].*)", re.IGNORECASE)
_BRACKETED = re.compile(r"\s*[(\[（【]([^()\[\]（）【】]*)[)\]）】]?\s*([.。!！?？]?)$")
_NOTED = re.compile(rf"\s*(({_NOTES})(?!\w)|{LABEL.pattern}\s*[:：])", re.IGNORECASE)
_BRACKETS = re.compile(r"[(\[（【]")
#: Pairs of emphasis and code in Markdown.
_MARKED = re.compile(r"(?<![A-Za-z0-9*])(\*\*\*?|`{1,3})(?=[^\s*`])(.+?)(?<=[^\s*`])\1(?![A-Za-z0-9*])")
_ROUND = re.compile(r"(\*|_)(?=\S)([^*_]+)(?<=\S)\1")
_OPENED = re.compile(r"\*\*(?=[^\s*])|`+(?=[^\s`])")
#: Bullets, headings and quotations in Markdown; "- 5" is a number.
_BULLET = re.compile(r"([-*•>]|#{1,6})\s+(?=[^\W\d])")
TAG = re.compile(r"<(/?[A-Za-z][\w-]*(\s+[\w-]+=\"[^\"<>]*\")*\s*/?|\|[^|<>]*\|)>")
_LATIN = re.compile("[a-z]")
_ENTITY = re.compile(r"&(amp|lt|gt|quot|apos|nbsp|#\d{2,5}|#x[0-9a-fA-F]{2,4});")
_JSON = (
    re.compile(
        rf'\{{?\s*"(\w*(translat|text|result|output|answer|response|target)\w*|{LABEL.pattern})"\s*:\s*"',
        re.IGNORECASE,
    ),
    re.compile(r'"\s*,?\s*\}?$'),
)
#: Quotation marks, by what may close them, and those that are apostrophes too.
_CLOSING = {
    '"': '"', "„": '“”"', "“": '”"', "”": "”", "‟": "”", "«": "»", "»": "«", "‹": "›", "›": "‹", "「": "」", "『": "』",
    "﹁": "﹂", "﹃": "﹄", "〝": "〟〞", "＂": "＂", "'": "'", "‘": "’", "‚": "‘’'", "״": "״",
}  # fmt: skip
_APOSTROPHES = frozenset("'‘’‚״")
_QUOTES = frozenset("".join((*_CLOSING, *_CLOSING.values())))
_WITHIN_WORD = re.compile(r"(?<=\w)['’״](?=\w)")
_ENDS = ".。!！?？"
#: Characters without which, anywhere or at the beginning, nothing is left out.
_TELLING = frozenset(":：=>→⇒➡⟶*`<&([（【{◁") | (_QUOTES - _APOSTROPHES)
_TELLING_FIRST = frozenset("-•#_") | _APOSTROPHES
_REFUSES = re.compile(
    r"((i['’]?m|i am) sorry|sorry|i apologi[sz]e|unfortunately)\b.{0,40}\b(can['’]?t|cannot|unable|not able)\b.{0,30}"
    r"\b(assist|help|fulfill?|provide|translate|comply|answer|do (that|this))\b"
    r"|i (can['’]?t|cannot) (assist|help you|fulfill?|translate|comply|provide)\b"
    r"|as an? (ai|artificial intelligence|large language model|language model)\b",
    re.IGNORECASE,
)


class Line:
    """A text in pieces, of which parts are left out.

    Attributes:
        text: what is left.
    """

    def __init__(self, pieces: Sequence[bytes]) -> None:
        self._pieces = list(pieces)
        self.text = b"".join(pieces).decode(errors="surrogateescape")
        self._original = self.text
        #: For each character of ``text``, its place in the original one.
        self._places = list(range(len(self.text)))

    def cut(self, start: int, end: int, instead: str = "") -> None:
        """Leave out a part of the text, or put at most as many characters in its place."""
        kept = self._places[start : start + len(instead)]
        self.text = self.text[:start] + instead + self.text[end:]
        self._places[start:end] = kept

    def pieces(self) -> list[bytes]:
        """Return the bytes of what is left, piece by piece."""
        if self.text == self._original:
            return self._pieces
        found = [bytearray() for _ in self._pieces]
        owners = [number for number, piece in enumerate(self._pieces) for _ in piece]
        starts, place = [], 0
        for character in self._original:
            starts.append(place)
            place += len(character.encode(errors="surrogateescape"))
        for character, place in zip(self.text, self._places, strict=True):
            data = character.encode(errors="surrogateescape")
            same = character == self._original[place]
            for offset, byte in enumerate(data):
                found[owners[starts[place] + (offset if same else 0)]].append(byte)
        return [bytes(each) for each in found]


def translation_in(line: Line, source: str) -> None:
    """Leave out all that is not the translation of a source."""
    if _TELLING.isdisjoint(line.text) and line.text.strip()[:1] not in _TELLING_FIRST:
        return
    _without_thoughts(line, source)
    _without_markup(line, source)
    while True:
        before = line.text
        _without_beginning(line, source)
        _without_note(line, source)
        _without_quotes(line, source)
        if line.text == before:
            return


def echoes(text: str, source: str, *, labelled: bool = False) -> bool:
    """Whether a text is a source, apart from case and punctuation; with a label before it if it is ``labelled``."""
    label = _LABELLED.match(text)
    if labelled and not label:
        return False
    said = text[label.end() :] if labelled and label else text
    return bool(_plain(source)) and _plain(said) == _plain(source)


def is_refusal(text: str, source: str, target: str) -> bool:
    """Whether a model answers in English that it does not translate; into English, that may be the translation."""
    english = target.partition("-")[0] in ("", "en")
    return not english and bool(_REFUSES.match(text.strip())) and not _REFUSES.search(source)


def _plain(text: str) -> str:
    return " ".join(re.sub(r"[\W_]+", " ", text).casefold().split())


def _without_thoughts(line: Line, source: str) -> None:
    while not thoughts_at(source) and (end := thoughts_at(line.text)):
        line.cut(0, end + len(line.text[end:]) - len(line.text[end:].lstrip()))


def _without_markup(line: Line, source: str) -> None:
    if "<" not in source:
        while found := TAG.search(line.text):
            breaks = found[0].startswith("<br")
            line.cut(*found.span(), instead=" " if breaks else "")
    if "&" not in source:
        place = 0
        while found := _ENTITY.search(line.text, place):
            line.cut(*found.span(), instead=html.unescape(found[0]))
            place = found.start() + 1
    if "*" not in source and "`" not in source:
        while found := _MARKED.search(line.text):
            line.cut(*found.span(2)[1:], found.end())
            line.cut(found.start(), found.start(2))
        start = len(line.text) - len(line.text.lstrip())
        if opened := _OPENED.match(line.text, start):
            line.cut(*opened.span())
        elif (around := _ROUND.match(line.text, start)) and not line.text[around.end() :].strip():
            line.cut(around.end() - 1, around.end())
            line.cut(start, start + 1)


def _without_beginning(line: Line, source: str) -> None:
    """Leave out a bullet, the source with an arrow, and what announces the translation, up to a colon."""
    start = len(line.text) - len(line.text.lstrip())
    if (bullet := _BULLET.match(line.text, start)) and bullet[1] not in source:
        line.cut(*bullet.span())
    if '":' not in source and (opened := _JSON[0].match(line.text, start)):
        line.cut(*opened.span())
        if closed := _JSON[1].search(line.text):
            line.cut(*closed.span())
        while (escaped := line.text.find('\\"')) >= 0:
            line.cut(escaped, escaped + 1)
    if repeated := _repeated(line.text, source):
        line.cut(start, repeated)
    elif announced := _announced(line.text, source, start):
        line.cut(start, announced)


def _announced(text: str, source: str, start: int) -> int:
    """Return where a translation begins behind what announces it, up to a colon; 0 if it does not.

    If nothing follows, it may be a guess how a text such as "Sure! Here is the" goes on.
    """
    if COLON.search(source):
        return 0
    found = _LABELLED.match(text, start)
    if not found and not TRANSLATES.search(source):
        found = _BEFORE_COLON.match(text, start)
        found = found if found and TRANSLATES.search(found[0]) else None
    return found.end() if found and text[found.end() :].strip() else 0


def _repeated(text: str, source: str) -> int:
    """Return where a translation begins behind its source; 0 if it does not."""
    words = re.findall(r"\w+", source)
    if not words or f" {_plain(source)} " not in f" {_plain(text)} ":
        return 0  # without compiling anything
    said = r"\W+".join(map(re.escape, words)) + r"[^\w\s\-=→⇒➡⟶]*"
    label = LABEL.pattern + r"\s*[:：]\s*"
    ways = [] if re.search(_ARROWS, source) else [rf"\s*({label})?\W*{said}\s*({_ARROWS})\s*"]
    if len(words) > 1 and "=" not in source:
        ways.append(rf"\W*{said}\s*=\s*")
    if not COLON.search(source):
        ways.append(rf"\s*{label}\W*{said}\W*(?={label})")
    if not TRANSLATES.search(source):
        means = r"(is|is translated as|translates to|translates as|can be translated as|means|in \w+ is)"
        ways.append(rf"[^\n]{{0,60}}[{''.join(_QUOTES)}]{said}\s+{means}:?\s*(?=[{''.join(_QUOTES)}])")
    found = next(filter(None, (re.match(way, text, re.IGNORECASE) for way in ways)), None)
    return found.end() if found and text[found.end() :].strip() else 0


def _without_note(line: Line, source: str) -> None:
    """Leave out a note in brackets at the end: the model's, the source, or how the translation is pronounced."""
    found = _BRACKETED.search(line.text)
    if not found or _BRACKETS.search(source) or not line.text[: found.start()].strip():
        return
    note, before = found[1], line.text[: found.start()]
    sounds = _is_latin(note) and note.casefold() not in source.casefold()
    if _NOTED.match(note) or _plain(note) == _plain(source) or (sounds and not re.search("[A-Za-z]", before)):
        ends = before.rstrip()[-1] in _ENDS
        line.cut(found.start(), found.end() if ends else found.start(2))


def _is_latin(text: str) -> bool:
    """Whether a text has small Latin letters, and letters of no other script."""
    return bool(_LATIN.search(text)) and not re.search(
        r"[^\W\d_]", re.sub("[A-Za-z\u00c0-\u024f\u1e00-\u1eff]", "", text)
    )


def _without_quotes(line: Line, source: str) -> None:
    """Leave out quotation marks round the whole, if the source has none, or none at its ends.

    The closing mark may still be missing: if the opening one were shown until then, all of the caption would move.
    """
    text = line.text.strip()
    closing = _CLOSING.get(text[:1], "")
    if not closing:
        return
    after = text[-1] if text[-1] in _ENDS and text[-2:-1] in closing else ""
    end = len(text) - len(after)
    closed = end > 1 and text[end - 1] in closing
    inner = _WITHIN_WORD.sub("", text[1 : end - 1] if closed else text[1:])
    quoting = _WITHIN_WORD.sub("", source).strip(" .,;:!?。！？…")
    if not _QUOTES.isdisjoint(quoting):
        if not closed or quoting[0] in _QUOTES or quoting[-1] in _QUOTES or not {text[0], *closing}.isdisjoint(inner):
            return
    elif not _QUOTES.isdisjoint(inner.strip("".join(_QUOTES)) if closed else inner):
        return
    if text[0] in _APOSTROPHES and not closed:
        return
    opened = line.text.index(text)
    if closed:
        twice = after and text[end - 2 : end - 1] in _ENDS
        line.cut(opened + end - 1, opened + end + bool(twice))
    line.cut(opened, opened + 1)
