"""Languages by tag or name, so that `zh`, `zh-CN`, `zh_Hans` and `Chinese` are one and the same.

Tags and what they imply are those of Unicode's CLDR, through the library langcodes; English names are those of ISO 639,
through iso639-lang.  (CLDR's own names, in language_data, would take 30 MB.)
"""

from __future__ import annotations

import re
import reprlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache

import langcodes
from iso639 import Lang, iter_langs
from iso639.exceptions import DeprecatedLanguageValue, InvalidLanguageValue
from langcodes.tag_parser import LanguageTagError

from redraft.errors import OptionError

#: Names that translators use, where ISO's is another or has no territory; by tag as given, or else by canonical tag.
_NAMES = {
    "el": "Greek",
    "en-GB": "British English",
    "ht": "Haitian Creole",
    "ia": "Interlingua",
    "ky": "Kyrgyz",
    "or": "Odia",
    "pa": "Punjabi",
    "ps": "Pashto",
    "pt-BR": "Brazilian Portuguese",
    "pt-PT": "European Portuguese",
    "to": "Tongan",
    "ug": "Uyghur",
    "yue": "Cantonese",
    "zh-HK": "Traditional Chinese (Hong Kong)",
    "zh-Hant": "Traditional Chinese",
    "zh-MO": "Traditional Chinese (Macao)",
}

#: Names that are understood but not used.
_ALIASES = {"mandarin": "zh", "simplified chinese": "zh-Hans"}

#: What ISO 639 adds to a name and no speaker would: "Modern Greek (1453-)", "Swahili (macrolanguage)".
_REMARK = re.compile(r" \((?:macrolanguage|individual language|[^)]*[0-9][^)]*)\)")

#: What ISO 639 says of a code that stands for one language, and not for a family, several, none or an unknown one.
_ONE_LANGUAGE = {"Individual", "Macrolanguage"}

#: Scripts written without a space between words or sentences, as ISO 15924 codes.
_UNSPACED_SCRIPTS = {"Hans", "Hant", "Hani", "Jpan", "Thai", "Laoo", "Khmr", "Mymr", "Tibt"}

#: Members of macrolanguages that writers mean by the macrolanguage's name, beside those that CLDR has aliases for.
_STANDS_FOR = {"fuv": "ff", "nb": "no", "pbt": "ps", "quy": "qu"}

#: Scripts that are forms or parts of another (ISO 15924): what is written in them is written in that one too.
_FORMS = {"Aran": "Arab", "Cyrs": "Cyrl", "Hang": "Kore", "Latf": "Latn", "Latg": "Latn"}

#: No tag or name has more characters; searching for longer ones takes minutes.
_LONGEST = 100


@dataclass(frozen=True, slots=True)
class Language:
    """A language as `parse_language` found it.

    Attributes:
        tag: what the user wrote, without space around it.
        canonical: the shortest BCP 47 tag with the same language, likely script and likely territory; two languages are
            the same if these are equal.  Variants and extensions (`de-1996`, `de-u-co-phonebk`) do not count.
        code: the primary subtag, such as `de`.
        name: the English name that prompts use: "German", "Chinese" (simplified, as in the SSBD paper), "Traditional
            Chinese", "European Portuguese"; with its tag where script or territory has no usual name: "German (de-AT)".
    """

    tag: str
    canonical: str
    code: str
    name: str

    @property
    def spaced(self) -> bool:
        """Whether its usual writing puts spaces between words; false for Chinese, Japanese, Thai and a few more."""
        return langcodes.Language.get(self.canonical).maximize().script not in _UNSPACED_SCRIPTS


def parse_language(text: str, field: str = "target language") -> Language:
    """The language that a BCP 47 tag (`de`, `zh-CN`, `zh_cn`) or an English name ("German") stands for.

    Args:
        text: tag or name, in any case.
        field: what the error message calls it.

    Raises:
        OptionError: there is no such language.
    """
    tag = text.strip()
    found = _find(tag)
    if found is None:
        raise OptionError(f"{field} {reprlib.repr(text)} is not known: use a BCP 47 tag such as de, ja or zh-CN")
    canonical, code = _shortest(found), found.language or ""
    name = _NAMES.get(found.to_tag()) or _NAMES.get(canonical)
    if name is None:
        name = _NAMES.get(code) or _REMARK.sub("", Lang(code).name)
        name = name if canonical == code else f"{name} ({canonical})"
    return Language(tag, canonical, code, name)


def as_tags(to: object) -> list[str]:
    """The target languages that a caller has given, if they are a list of strings.

    Raises:
        OptionError: they are something else; the letters of a string would be taken for languages.
    """
    if isinstance(to, Sequence) and not isinstance(to, str) and all(isinstance(tag, str) for tag in to):
        return list(to)
    example = [to] if isinstance(to, str) else ["de", "ja"]
    raise OptionError(f"to must be a list of languages such as {example!r}, not {reprlib.repr(to)}")


def parse_targets(tags: Iterable[str]) -> list[str]:
    """The target languages that tags or names stand for, without those that are there already, as they are written.

    Raises:
        OptionError: there is no such language, or two stand for the same one under different names.
    """
    found: dict[str, str] = {}
    for text in tags:
        language = parse_language(text)
        first = found.setdefault(language.canonical, language.tag)
        if first != language.tag:
            raise OptionError(f"target languages {first!r} and {language.tag!r} are the same, so leave one out")
    return list(found.values())


def closest(wanted: Language, supported: Iterable[Language]) -> Language | None:
    """The supported language that ``wanted`` stands for: the same one in the same script, or None.

    Only territories may differ: `de` serves `de-AT`, but `zh` does not serve `zh-Hant`, nor `de` Luxembourgish.  A
    macrolanguage and the member that writes for it (`ps` and Southern Pashto) are the same, two members are not.  Of
    several the nearest is taken, one that names its script before one that does not, then the code that was asked for.
    None too where the script is unknown and several are offered.
    """
    script = _script(wanted)
    same = [each for each in same_language(wanted, supported) if _same_script(script, _script(each))]
    if script is None and len({_script(each) for each in same}) > 1:
        return None

    def rank(language: Language) -> tuple[int, bool, bool]:
        distance = langcodes.tag_distance(wanted.canonical, language.canonical)
        return distance, _tag(language).script is None, _alpha3(wanted) != _alpha3(language)

    return min(same, key=rank, default=None)


def same_language(wanted: Language, supported: Iterable[Language]) -> list[Language]:
    """The supported languages that are ``wanted`` in some script."""
    return [each for each in supported if _standard(wanted) == _standard(each) and not _are_siblings(wanted, each)]


def _standard(language: Language) -> str:
    """The language's code, or that of the macrolanguage that it writes for."""
    return _STANDS_FOR.get(language.code, language.code)


def _are_siblings(one: Language, other: Language) -> bool:
    """Whether two are different members of one macrolanguage, as Northern and Southern Pashto are."""
    first, second = _alpha3(one), _alpha3(other)
    if first is None or second is None or first == second:
        return False
    macro = Lang(first).macro()
    return macro is not None and macro == Lang(second).macro()


def _alpha3(language: Language) -> str | None:
    """The three letters of the code as it was written; None where a name was written, or a code since withdrawn."""
    try:
        return str(Lang(_tag(language).language).pt3)
    except (InvalidLanguageValue, DeprecatedLanguageValue):
        return None


def _script(language: Language) -> str | None:
    """The script that a tag names or makes likely; None for a language of which CLDR says nothing."""
    named = _tag(language).script or langcodes.Language.get(language.canonical).script
    if named is not None:
        return named
    full = langcodes.Language.get(language.canonical).maximize()
    # What CLDR does not know is filled up from its very last guess, American English.
    unknown = (full.script, full.territory) == ("Latn", "US") and language.code != "en"
    return None if unknown else full.script


def _same_script(one: str | None, other: str | None) -> bool:
    return one is None or other is None or _FORMS.get(one, one) == _FORMS.get(other, other)


def _tag(language: Language) -> langcodes.Language:
    """What was written, as a tag; the empty one for a name."""
    try:
        return langcodes.Language.get(language.tag, normalize=False)
    except LanguageTagError:
        return langcodes.Language.make()


def _find(tag: str) -> langcodes.Language | None:
    """Language, script and territory of a tag or name; None if unknown."""
    if len(tag) > _LONGEST:
        return None
    try:
        found = langcodes.Language.get(tag)
    except LanguageTagError:
        found = langcodes.Language.make()
    # Three letters are never a name: some language is called "The", and another "A".
    if not _is_known(found) and len(tag) > 3:
        found = langcodes.Language.get(_by_name().get(tag.casefold(), "und"))
    if not _is_known(found):
        return None
    found = found.prefer_macrolanguage()
    return langcodes.Language.make(found.language, script=found.script, territory=found.territory)


def _is_known(language: langcodes.Language) -> bool:
    if not language.is_valid() or language.script == "Zzzz" or language.territory == "ZZ":  # valid: "unknown"
        return False
    try:
        return Lang(language.language).scope() in _ONE_LANGUAGE
    except (InvalidLanguageValue, DeprecatedLanguageValue):
        return False


@cache
def _by_name() -> dict[str, str]:
    """The tag for every English name, in lower case; of two languages with one name, the more widely used."""
    tags = {name.casefold(): tag for tag, name in _NAMES.items()} | _ALIASES
    languages = [language for language in iter_langs() if language.scope() in _ONE_LANGUAGE]
    for language in sorted(languages, key=lambda each: not each.pt1):  # two-letter codes are for the widely used
        for name in (language.name, *language.other_names()):
            tags.setdefault(_REMARK.sub("", name).casefold(), language.pt1 or language.pt3)
    return tags


def _shortest(language: langcodes.Language) -> str:
    """The tag without likely subtags: CLDR's minimisation, but for a script rather than a territory."""
    full = language.maximize()
    for shorter in (
        langcodes.Language.make(full.language),
        langcodes.Language.make(full.language, script=full.script),
        langcodes.Language.make(full.language, territory=full.territory),
    ):
        if shorter.maximize() == full:
            return shorter.to_tag()
    return full.to_tag()
