"""Keep captions in the script of their language: what a model may write, simplified and traditional Chinese.

A small model occasionally writes a word of another language into a caption ("很kalt").  A model whose metadata ask for
it may write Latin words into Chinese and Japanese, kana into Chinese, and kana and characters into languages with
Latin letters, only if the source has them: names, abbreviations, product names.  Marian's shortlists restrict a
vocabulary in the same way.

Models for general use must be free to write "DNA" where the source says "genetic material", so this is off by default.

Some models answer a request for Traditional Chinese in Simplified.  With OpenCC (extra ``chinese``) such captions are
converted; without it they are reported.  The script is recognised by characters that only one of two national
character sets has, GB 2312 and Big5.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import cache, lru_cache

from redraft.captions.languages import Language
from redraft.captions.metadata import OWN_SCRIPT_KEY
from redraft.captions.state import Writing
from redraft.decoding.selection import Selection

_LETTERS = "A-Za-z\u00c0-\u024f\u1e00-\u1eff"
_LETTER = re.compile(f"[{_LETTERS}]")
#: Single capitals are common in Chinese and Japanese: "X光", "Tシャツ".
_LATIN = re.compile(f"[{_LETTERS}]{{2}}|[a-z\u00df-\u00ff]")
#: A byte that begins a letter of those beyond ASCII; byte-level vocabularies have tokens that end with one.
_BEGINS_LETTER = re.compile(rb"[\xc3-\xc9]\Z")
_KANA = re.compile("[\u3041-\u3096\u30a1-\u30fa]")
_HAN = re.compile("[\u3400-\u4dbf\u4e00-\u9fff]")
#: Words of one script: Chinese and Japanese write "我的iPhone" without a space.
_WORD = re.compile(rf"[{_LETTERS}]+|[^\W\d_{_LETTERS}]+")

#: Script of a language (ISO 15924) -> scripts that are foreign to it.
_FOREIGN: dict[str | None, tuple[re.Pattern[str], ...]] = {
    "Hans": (_LATIN, _KANA),
    "Hant": (_LATIN, _KANA),
    "Jpan": (_LATIN,),
    "Latn": (_KANA, _HAN),
}


def foreign_tokens(tokens: Iterable[bytes], language: Language) -> Selection:
    """Return the tokens in a script that is foreign to a language, and no words; none without a rule for its script.

    Args:
        tokens: the bytes of every token of the vocabulary.
    """
    scripts = _FOREIGN.get(language.script, ())
    foreign, begins, ends = set(), set(), set()
    for token, piece in enumerate(tokens):
        text = piece.decode("utf-8", errors="ignore")
        if any(script.search(text) for script in scripts) or (_LATIN in scripts and _BEGINS_LETTER.search(piece)):
            foreign.add(token)
        if _LATIN in scripts and _LETTER.match(text):
            begins.add(token)
        if _LATIN in scripts and _LETTER.match(text[-1:]):
            ends.add(token)
    return Selection(frozenset(foreign), frozenset(begins), frozenset(ends))


def spelling_rule(
    language: Language, foreign: Selection, tokenize: Callable[[str], list[int]]
) -> Callable[[str], Selection]:
    """Return what a language's captions may contain, by source: its foreign tokens only to spell words of the source.

    Only words with a character of a foreign script are spelt as in the source. A German caption may translate every
    word in Latin letters, even if it has begun with the same pieces.

    Args:
        foreign: its `foreign_tokens`.
        tokenize: returns the ids of a text.
    """
    scripts = _FOREIGN.get(language.script, ())

    @lru_cache(2048)  # words of the sources
    def spelt(word: str) -> frozenset[tuple[int, ...]]:
        if not any(script.search(word) for script in scripts):
            return frozenset()
        spellings = {tuple(tokenize(word)), tuple(tokenize(f" {word}"))}
        if not _LATIN.search(word):  # Han and kana have no spaces, so these are whole sentences
            spellings = {(token,) for spelling in spellings for token in spelling}
        return frozenset(each for each in spellings if len(each) > 1 or not foreign.foreign.isdisjoint(each))

    def selection(source: str) -> Selection:
        words = frozenset().union(*map(spelt, set(_WORD.findall(source)))) if foreign else None
        return replace(foreign, words=words) if words else foreign

    return selection


def writes_own_script(metadata: Mapping[str, str]) -> bool:
    """Whether a model writes other scripts only where the source has them, by its GGUF metadata."""
    return metadata.get(OWN_SCRIPT_KEY, "").lower() == "true"


#: The two scripts of Chinese: their names, and national character sets.
_SCRIPTS = {"Hans": ("Simplified", "gb2312"), "Hant": ("Traditional", "big5")}
#: Characters of the other script from which on a text is in it; a single one may be a rare character or a name.
_TELLING = 2


def writing_of(language: Language) -> Writing:
    """Return how captions of a language are written."""
    if (script := language.script) not in _SCRIPTS:
        return Writing(labels=language.labels)
    (other,) = _SCRIPTS.keys() - {script}
    convert = _converter(script, language.canonical.rpartition("-")[2])
    if convert is not None:
        return Writing(lambda text: convert(text) if other in map(_only, text) else text, labels=language.labels)
    problem = (
        f"the model wrote {_SCRIPTS[other][0]} Chinese although the target language is {language.tag}: "
        "install redraft[chinese], which converts it, or use another model"
    )
    return Writing(problem=lambda text: problem if script_of(text) == other else "", labels=language.labels)


def script_of(text: str) -> str | None:
    """Return the script of a Chinese text, ``Hans`` or ``Hant``; None if both are as likely."""
    simplified, traditional = map([_only(each) for each in text].count, _SCRIPTS)
    if max(simplified, traditional) < _TELLING or simplified == traditional:
        return None
    return "Hans" if simplified > traditional else "Hant"


@cache
def _only(character: str) -> str | None:
    """Return the only script that has a Chinese character; None if both or neither have it."""
    found = [script for script, (_, encoding) in _SCRIPTS.items() if character.encode(encoding, "ignore")]
    return found[0] if len(found) == 1 and character >= "\u4e00" else None


@cache
def _converter(script: str, territory: str) -> Callable[[str], str] | None:
    """Return what converts to a script, with the forms of Taiwan or Hong Kong; None without OpenCC."""
    try:
        from opencc import OpenCC
    except ImportError:
        return None
    to = "t2s" if script == "Hans" else "s2hk" if territory in ("HK", "MO", "yue") else "s2tw"
    convert: Callable[[str], str] = OpenCC(to).convert
    return convert
