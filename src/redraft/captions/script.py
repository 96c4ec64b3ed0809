"""Vocabulary selection: keep a caption in the script of its language.

A small model occasionally writes a word of another language into a caption ("很kalt").  A model whose metadata ask for
it may write Latin words into Chinese and Japanese, kana into Chinese, and either script into other languages, only if
the source has them: names, abbreviations, product names.  Marian's shortlists restrict a vocabulary in the same way.

Models for general use must be free to write "DNA" where the source says "genetic material", so this is off by default.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache

import langcodes

from redraft.captions.languages import Language

#: Metadata key: ``true`` for models that write other scripts only where the source has them.
OWN_SCRIPT_KEY = "redraft.own_script"

#: Single capitals are common in Chinese and Japanese: "X光", "Tシャツ".
_LATIN = re.compile("[A-Za-z\u00c0-\u024f]{2}|[a-z\u00df-\u00ff]")
_KANA = re.compile("[\u3041-\u3096\u30a1-\u30fa]")
_HAN = re.compile("[\u3400-\u4dbf\u4e00-\u9fff]")
_WORD = re.compile(r"\w+")

#: Script of a language (ISO 15924) -> scripts that are foreign to it.
_FOREIGN = {"Hans": (_LATIN, _KANA), "Hant": (_LATIN, _KANA), "Jpan": (_LATIN,), "Latn": (_KANA, _HAN)}

#: Number of source words whose tokens are kept.
_KEPT = 2048


def foreign_tokens(tokens: Iterable[bytes], language: Language) -> frozenset[int]:
    """Return the ids of tokens in a script that is foreign to a language; none without a rule for its script.

    Args:
        tokens: the bytes of every token of the vocabulary.
        language: the target language.
    """
    scripts = _FOREIGN.get(langcodes.Language.get(language.canonical).maximize().script or "", ())
    texts = (piece.decode("utf-8", errors="ignore") for piece in tokens)
    return frozenset(token for token, text in enumerate(texts) if any(script.search(text) for script in scripts))


class OwnScript:
    """The tokens that a language's captions must not contain, by source.

    Args:
        foreign: the language's `foreign_tokens`.
        tokenize: returns the ids of a text.
    """

    def __init__(self, foreign: frozenset[int], tokenize: Callable[[str], list[int]]) -> None:
        self._foreign = foreign
        self._tokens_of = lru_cache(_KEPT)(lambda word: frozenset([*tokenize(word), *tokenize(f" {word}")]))

    def forbidden(self, source: str) -> frozenset[int]:
        """Return the tokens of foreign scripts except for those that spell the words of ``source``."""
        if not self._foreign:
            return self._foreign
        return self._foreign.difference(*map(self._tokens_of, set(_WORD.findall(source))))


def writes_own_script(metadata: Mapping[str, str]) -> bool:
    """Whether a model writes other scripts only where the source has them, by its GGUF metadata."""
    return metadata.get(OWN_SCRIPT_KEY, "").lower() == "true"
