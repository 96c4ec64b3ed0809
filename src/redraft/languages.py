"""Languages by tag or name, so that `zh`, `zh-CN`, `zh_Hans` and `Chinese` are one and the same.

The tables are Unicode's CLDR, through the libraries langcodes and language_data.
"""

from __future__ import annotations

import reprlib
from collections.abc import Iterable
from dataclasses import dataclass

import langcodes
from langcodes.tag_parser import LanguageTagError

from redraft.errors import OptionError

#: Names that translators use where CLDR's would be "Chinese (Traditional)"; by tag as given, or else by canonical tag.
_NAMES = {
    "en-GB": "British English",
    "pt-BR": "Brazilian Portuguese",
    "pt-PT": "European Portuguese",
    "zh-HK": "Traditional Chinese (Hong Kong)",
    "zh-Hant": "Traditional Chinese",
    "zh-MO": "Traditional Chinese (Macao)",
}

#: Valid codes that stand for no one language: many, none, not coded, artificial.
_NO_LANGUAGE = {"mul", "zxx", "mis", "art"}

#: Scripts written without a space between words or sentences, as ISO 15924 codes.
_UNSPACED_SCRIPTS = {"Hans", "Hant", "Hani", "Jpan", "Thai", "Laoo", "Khmr", "Mymr", "Tibt"}

#: CLDR's distance below which readers of one language are well served by the other (Austrian and German German: 4;
#: European and Brazilian Portuguese: 5; Traditional and Simplified Chinese: 54).
_NEAR = 10

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
            Chinese", "European Portuguese".
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
    """The language that a BCP 47 tag (`de`, `zh-CN`, `zh_cn`) or a name ("German", "deutsch") stands for.

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
    canonical = _shortest(found)
    name = _NAMES.get(found.to_tag()) or _NAMES.get(canonical) or langcodes.Language.get(canonical).display_name("en")
    return Language(tag, canonical, found.language or "", name)


def closest(wanted: Language, supported: Iterable[Language]) -> Language | None:
    """The supported language that serves readers of ``wanted`` best; None if none does well.

    `de-AT` is served by `de`, and `pt-PT` by `pt`, but not `zh-Hant` by `zh`.
    """

    def distance(language: Language) -> int:
        return langcodes.tag_distance(wanted.canonical, language.canonical)

    nearest = min(supported, key=distance, default=None)
    return nearest if nearest is not None and distance(nearest) < _NEAR else None


def _find(tag: str) -> langcodes.Language | None:
    """Language, script and territory of a tag or name; None if unknown."""
    if len(tag) > _LONGEST:
        return None
    try:
        found = langcodes.Language.get(tag)
    except LanguageTagError:
        found = langcodes.Language.make()
    # Three letters are never a name: some language is called "The", and another "A".
    if not _is_known(found) and (len(tag) > 3 or not tag.isascii()):
        try:
            found = langcodes.find(tag)
        except LookupError:
            return None
    if not _is_known(found):
        return None
    found = found.prefer_macrolanguage()
    return langcodes.Language.make(found.language, script=found.script, territory=found.territory)


def _is_known(language: langcodes.Language) -> bool:
    if not language.is_valid() or language.language in _NO_LANGUAGE:
        return False
    return "Unknown " not in language.display_name("en")  # CLDR's word for `und`, `qaa` and the territory ZZ


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
