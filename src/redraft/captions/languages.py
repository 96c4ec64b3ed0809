"""Languages by tag or name: `zh`, `zh-CN`, `zh_Hans` and `Chinese` are the same.

Tags and likely subtags come from Unicode's CLDR, through the library langcodes; English names come from ISO 639,
through iso639-lang.  (CLDR's names, in language_data, would take 30 MB.)
"""

from __future__ import annotations

import re
import reprlib
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, lru_cache

import langcodes
from iso639 import Lang, iter_langs
from iso639.exceptions import DeprecatedLanguageValue, InvalidLanguageValue
from langcodes.tag_parser import LanguageTagError

from redraft.errors import OptionError

#: Common names where ISO 639 has another one or no territory; by tag as given, otherwise by canonical tag.
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

#: Names of languages in themselves with which models have labelled translations, by code.
_OWN_NAMES = {"ja": "日本語", "zh": "中文"}

#: Names that are accepted but not used, and tags that came before BCP 47.
_ALIASES = {
    "chinese (simplified)": "zh-Hans",
    "chinese (traditional)": "zh-Hant",
    "mandarin": "zh",
    "simplified chinese": "zh-Hans",
    "zh-chs": "zh-Hans",
    "zh-cht": "zh-Hant",
}

#: Remarks in ISO 639 names: "Modern Greek (1453-)", "Swahili (macrolanguage)".
_REMARK = re.compile(r" \((?:macrolanguage|individual language|[^)]*[0-9][^)]*)\)")

#: ISO 639 scopes of codes for a single language, rather than a family, several, none or an unknown one.
_ONE_LANGUAGE = {"Individual", "Macrolanguage"}

#: ISO 15924 codes of scripts written without spaces between words or sentences.
_UNSPACED_SCRIPTS = {"Hans", "Hant", "Hani", "Jpan", "Thai", "Laoo", "Khmr", "Mymr", "Tibt"}

#: ISO 15924 codes of scripts written from right to left.
_LEFTWARDS = {"Adlm", "Arab", "Aran", "Hebr", "Mand", "Mend", "Nkoo", "Rohg", "Samr", "Syrc", "Thaa", "Yezi"}

#: Members of macrolanguages that stand for the whole, besides CLDR's aliases.
_STANDS_FOR = {"fuv": "ff", "nb": "no", "pbt": "ps", "quy": "qu"}

#: Scripts that are variants or parts of another one (ISO 15924).
_FORMS = {"Aran": "Arab", "Cyrs": "Cyrl", "Hang": "Kore", "Latf": "Latn", "Latg": "Latn"}

#: Maximum length of a tag or name in characters; searching for longer ones takes minutes.
_LONGEST = 100


@dataclass(frozen=True, slots=True)
class Language:
    """A language, as returned by `parse_language`.

    Attributes:
        tag: the user's text, stripped.
        standard: the same language as a BCP 47 tag in its usual spelling: `de` for "German", `zh-CN` for `zh_cn`.
        canonical: the shortest BCP 47 tag with the same language, likely script and likely territory; languages are the
            same if these are equal.  Variants and extensions (`de-1996`, `de-u-co-phonebk`) are ignored.
        code: the primary subtag, such as `de`.
        name: the English name for prompts: "German", "Chinese" (simplified, as in the SSBD paper), "Traditional
            Chinese", "European Portuguese"; followed by the tag if script or territory has no common name: "German
            (de-AT)".
    """

    tag: str
    standard: str
    canonical: str
    code: str
    name: str

    @property
    def script(self) -> str | None:
        """ISO 15924 code of its script, or of the likely one: `Hans` for `zh`."""
        return langcodes.Language.get(self.canonical).maximize().script

    @property
    def spaced(self) -> bool:
        """Whether its script separates words by spaces; false for Chinese, Japanese, Thai and a few more."""
        return self.script not in _UNSPACED_SCRIPTS

    @property
    def right_to_left(self) -> bool:
        """Whether its script is written from right to left."""
        return self.script in _LEFTWARDS

    @property
    def labels(self) -> frozenset[str]:
        """Its names in lower case, with which models label translations; none for English.

        In English, such a name may be part of the translation.
        """
        if self.code == "en":
            return frozenset()
        known = Lang(self.code)
        names = {self.name, known.name, *known.other_names(), _NAMES.get(self.code), _OWN_NAMES.get(self.code)}
        return frozenset(_REMARK.sub("", name).casefold() for name in names if name)


def parse_language(text: str, field: str = "target language") -> Language:
    """Parse a BCP 47 tag (`de`, `zh-CN`, `zh_cn`) or an English name ("German", "Chinese (Traditional)").

    Args:
        text: tag or name, in any case.
        field: name of the field in the error message.

    Raises:
        OptionError: the language is unknown.
    """
    tag = text.strip()
    found = _find(tag)
    if found is None:
        given = reprlib.repr(text)
        raise OptionError(f"{given} is not known: use a BCP 47 tag such as de, ja or zh-CN for each language", field)
    canonical, code = _shortest(found), found.language or ""
    name = _NAMES.get(found.to_tag()) or _NAMES.get(canonical)
    if name is None:
        name = _NAMES.get(code) or _REMARK.sub("", Lang(code).name)
        name = name if canonical == code else f"{name} ({canonical})"
    return Language(tag, found.to_tag(), canonical, code, name)


@lru_cache(maxsize=4096)
def known_language(text: str) -> Language | None:
    """Return the language given by tag or name; None if it is unknown."""
    try:
        return parse_language(text)
    except OptionError:
        return None


def standard_tag(text: str) -> str:
    """Return the standard tag of a language given by tag or name; the text itself if it is unknown."""
    known = known_language(text)
    return known.standard if known else text


def canonical_tag(text: str) -> str:
    """Return the canonical tag of a language given by tag or name; the text itself if it is unknown."""
    known = known_language(text)
    return known.canonical if known else text


def same_of(text: str, tags: Iterable[str]) -> str | None:
    """Return the one of these tags that stands for the language given by tag or name; None if none does."""
    return next((tag for tag in tags if canonical_tag(tag) == canonical_tag(text)), None)


def as_tags(to: object, field: str = "to") -> list[str]:
    """Check that languages are a list of strings; return them as a list.

    Raises:
        OptionError: they are not; a single string would be read as a list of letters.
    """
    if isinstance(to, Sequence) and not isinstance(to, str) and all(isinstance(tag, str) for tag in to):
        return list(to)
    example = [to] if isinstance(to, str) else ["de", "ja"]
    raise OptionError(f"must be a list of languages such as {example!r}, not {reprlib.repr(to)}", field)


def parse_languages(tags: Iterable[str], field: str = "target language") -> list[str]:
    """Check languages given as tags or names, and return their standard tags, without duplicates.

    Args:
        tags: target languages, or others.
        field: name of the field in the error message.

    Raises:
        OptionError: a language is unknown, or two different names stand for the same one.
    """
    found: dict[str, Language] = {}
    for text in tags:
        language = parse_language(text, field)
        first = found.setdefault(language.canonical, language)
        if first.tag != language.tag:
            raise OptionError(f"{field}s {first.tag!r} and {language.tag!r} are the same, so leave one out")
    return [language.standard for language in found.values()]


def closest(wanted: Language, supported: Iterable[Language]) -> Language | None:
    """Return the supported language that is the same as ``wanted`` in the same script, or None.

    Only territories may differ: `de` serves `de-AT`, but `zh` does not serve `zh-Hant`, nor `de` Luxembourgish.  The
    members of a macrolanguage that have its code in CLDR (Northern and Southern Pashto) are the same.  Of several
    candidates the nearest is returned: first one with an explicit script, then one with the requested code.  If the
    script is unknown and several are supported, the result is None.
    """
    script = _script(wanted)
    same = [each for each in same_language(wanted, supported) if script is None or _script(each) in (None, script)]
    if script is None and len({_script(each) for each in same}) > 1:
        return None

    def rank(language: Language) -> tuple[int, bool, bool]:
        distance = langcodes.tag_distance(wanted.canonical, language.canonical)
        return distance, _tag(language).script is None, _alpha3(wanted) != _alpha3(language)

    return min(same, key=rank, default=None)


def _alpha3(language: Language) -> str | None:
    with suppress(LookupError):  # of an old tag such as i-default
        return _tag(language).to_alpha3()
    return None


def same_language(wanted: Language, supported: Iterable[Language]) -> list[Language]:
    """Return the supported languages that are ``wanted`` in any script."""
    code = _STANDS_FOR.get(wanted.code, wanted.code)
    return [each for each in supported if code == _STANDS_FOR.get(each.code, each.code)]


def _script(language: Language) -> str | None:
    """Return the explicit or likely script of a tag; None if CLDR does not know the language."""
    script = _tag(language).script or langcodes.Language.get(language.canonical).script
    if script is None:
        full = langcodes.Language.get(language.canonical).maximize()
        # CLDR's fallback for unknown languages is American English.
        unknown = (full.script, full.territory) == ("Latn", "US") and language.code != "en"
        script = None if unknown else full.script
    return _FORMS.get(script or "", script)


def _tag(language: Language) -> langcodes.Language:
    """Parse the user's text as a tag; a name gives the empty tag."""
    return _tagged(language.tag, normalize=False)


def _find(tag: str) -> langcodes.Language | None:
    """Return language, script and territory of a tag or name; None if unknown."""
    if len(tag) > _LONGEST:
        return None
    found = _tagged(_ALIASES.get(tag.casefold(), tag))
    # Three letters are never a name, since there are languages called "The" and "A".
    if not _is_known(found) and len(tag) > 3:
        found = _tagged(_names().get(tag.casefold(), "und"))
    if not _is_known(found):
        return None
    found = found.prefer_macrolanguage()
    return langcodes.Language.make(found.language, script=found.script, territory=found.territory)


def _tagged(tag: str, *, normalize: bool = True) -> langcodes.Language:
    """Parse a tag; a name gives the empty tag."""
    try:
        return langcodes.Language.get(tag, normalize=normalize)
    except LanguageTagError:
        return langcodes.Language.make()


def _is_known(language: langcodes.Language) -> bool:
    # these codes are valid but mean "unknown"
    if not language.is_valid() or language.script == "Zzzz" or language.territory == "ZZ":
        return False
    try:
        return Lang(language.language).scope() in _ONE_LANGUAGE
    except (InvalidLanguageValue, DeprecatedLanguageValue):
        return False


@cache
def _names() -> dict[str, str]:
    """Return English name in lower case -> tag; of two languages with the same name, the more widely used."""
    tags = {name.casefold(): tag for tag, name in _NAMES.items()} | _ALIASES
    languages = [language for language in iter_langs() if language.scope() in _ONE_LANGUAGE]
    for language in sorted(languages, key=lambda each: not each.pt1):  # widely used languages have two-letter codes
        for name in (language.name, *language.other_names()):
            tags.setdefault(_REMARK.sub("", name).casefold(), language.pt1 or language.pt3)
    return tags


def _shortest(language: langcodes.Language) -> str:
    """Remove likely subtags from a tag: CLDR's minimisation, preferring script to territory."""
    make, full = langcodes.Language.make, language.maximize()
    code, script, territory = full.language, full.script, full.territory
    tags = make(code), make(code, script=script), make(code, territory=territory), full
    return next(tag.to_tag() for tag in tags if tag.maximize() == full)
