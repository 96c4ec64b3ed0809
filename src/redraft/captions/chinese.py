"""Keep Chinese captions in the script of their target language, simplified or traditional.

Some models answer a request for Traditional Chinese in Simplified.  With OpenCC (extra ``chinese``) such captions are
converted; without it they are reported.  The script is recognised by characters that only one of two national
character sets has, GB 2312 and Big5.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from redraft.captions.languages import Language
from redraft.captions.settings import Writing

_CHARACTER_SETS = {"Hans": "gb2312", "Hant": "big5"}
_OTHER = {"Hans": "Hant", "Hant": "Hans"}
_NAMES = {"Hans": "Simplified", "Hant": "Traditional"}
#: Characters of the other script from which on a text is in it; a single one may be a rare character or a name.
_TELLING = 2


def writing_of(language: Language) -> Writing:
    """Return how captions of a language are written."""
    script = language.script
    if script not in _CHARACTER_SETS:
        return Writing(labels=language.labels)
    convert = _converter(script, language.canonical.rpartition("-")[2])
    if convert is not None:
        return Writing(lambda text: convert(text) if _foreign(text, script) else text, labels=language.labels)
    other = _OTHER[script]
    problem = (
        f"the model wrote {_NAMES[other]} Chinese although the target language is {language.tag}: "
        "install redraft[chinese], which converts it, or use another model"
    )
    return Writing(problem=lambda text: problem if script_of(text) == other else "", labels=language.labels)


def script_of(text: str) -> str | None:
    """Return the script of a Chinese text, ``Hans`` or ``Hant``; None if both are as likely."""
    simplified, traditional = _foreign(text, "Hant"), _foreign(text, "Hans")
    if max(simplified, traditional) < _TELLING or simplified == traditional:
        return None
    return "Hans" if simplified > traditional else "Hant"


def _foreign(text: str, script: str) -> int:
    """Return how many characters of a text exist in the other script only."""
    return sum(_in_set(each, _OTHER[script]) and not _in_set(each, script) for each in text if each >= "\u4e00")


@cache
def _in_set(character: str, script: str) -> bool:
    try:
        character.encode(_CHARACTER_SETS[script])
    except UnicodeEncodeError:
        return False
    return True


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
