"""The languages of translation models, as their publishers name them, and which models of the catalogue have one.

Sources: Hy-MT2 and HY-MT1.5 (Tencent-Hunyuan/Hy-MT2, README.md), TranslateGemma (the languages of WMT24++, on which its
report evaluates it), Tower+ (model card of Unbabel/Tower-Plus-2B), MiLMMT-46 (xiaomi-research/gemmax, README.md) and
CAT-Translate (model card of cyberagent/CAT-Translate-1.4b).  Chat models name too many, or none.
"""

from __future__ import annotations

import logging
from functools import lru_cache

from redraft.captions.languages import Language, closest, parse_language
from redraft.errors import OptionError

HUNYUAN = (
    "zh en fr pt es ja tr ru ar ko th it de vi ms id tl hi zh-Hant pl cs nl km my fa gu ur te mr he bn ta uk bo kk mn "
    "ug yue"
)
TRANSLATEGEMMA = (
    "en ar bg bn ca cs da de el es et fa fi fil fr gu he hi hr hu id is it ja kn ko lt lv ml mr nl no pa pl pt ro ru "
    "sk sl sr sv sw ta te th tr uk ur vi zh zh-Hant zu"
)
TOWER = "en de es fr it ko nl ru pt zh zh-Hant cs uk hi is ja pl sv hu ro da no fi"
MILMMT = (
    "en ar az bg bn ca cs da de el es fa fi fr he hi hr hu id it ja kk km ko lo ms my no nl pl pt ro ru sk sl sv ta th "
    "tl tr ur uz vi yue zh zh-Hant"
)
CAT = "ja en"
#: Models of the catalogue by name, those to suggest first.
COVERED = {
    "hy-mt2-1.8b": HUNYUAN,
    "translategemma-4b": TRANSLATEGEMMA,
    "milmmt-46-4b": MILMMT,
    "hy-mt2-7b": HUNYUAN,
    "hy-mt1.5-1.8b": HUNYUAN,
    "translategemma-12b": TRANSLATEGEMMA,
    "tower-plus-2b": TOWER,
    "tower-plus-9b": TOWER,
    "cat-translate-1.4b": CAT,
    "cat-translate-0.8b": CAT,
}
#: How many models are suggested.
_SUGGESTED = 2
log = logging.getLogger(__name__)


@lru_cache(1024)  # finding it takes milliseconds, and every prompt needs it
def tag_among(language: Language, tags: str) -> str:
    """Return which of ``tags`` serves for a language; empty if none does."""
    found = closest(language, [parse_language(tag) for tag in tags.split()])
    return found.tag if found else ""


def suggestion(language: Language) -> str:
    """Return which models support a language, as a clause, such as "translategemma-4b supports it"."""
    names = [name for name, tags in COVERED.items() if tag_among(language, tags)][:_SUGGESTED]
    if not names:
        return "`redraft models` lists models with more languages"
    return f"{' and '.join(names)} {'support' if len(names) > 1 else 'supports'} it (see `redraft models`)"


def supported_tag(language: Language, tags: str, field: str) -> str:
    """Return which of a model's languages serves for a language.

    Raises:
        OptionError: none does; it names models that have the language.
    """
    found = tag_among(language, tags)
    if not found:
        allowed = ", ".join(tags.split())
        raise OptionError(
            f"{language.tag!r} is not supported by this model (allowed: {allowed}); {suggestion(language)}", field
        )
    return found


def warn_outside(model: str, tags: str, *languages: Language) -> None:
    """Log a warning for each language that a model's publisher does not name, with models that support it."""
    for language in languages:
        if not tag_among(language, tags):
            log.warning("%s is not among the languages of %s; %s", language.name, model, suggestion(language))
