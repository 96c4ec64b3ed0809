"""Segments of a prompt, and their conversion to ids.

Tokenizers first recognise *functional* tokens such as ``<|im_start|>`` and ``<think>``, then tokenize each stretch of
text between them as a unit.  So segments are joined up to the next functional token of the template, and a prompt has
the ids that the tokenizer gives for its whole text.  The exception is the user's text, in which functional tokens are
not recognised: text that looks like one is split after its first character, and the parts are tokenized separately.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

#: ``tokenize(text, special)`` returns ids; ``special`` means that functional tokens are recognised.
Tokenize: TypeAlias = Callable[[str, bool], Sequence[int]]

#: Tokens that are markup rather than words or white space: some kind of brackets around text.
_MARKUP = re.compile(r"<.*\S.*>|\[.*\S.*\]|\{.*\S.*\}|\|.*\S.*\|", re.DOTALL)
_WHITE_SPACE = " \t\n\v\f\r"


def is_markup(text: str) -> bool:
    """Whether an added token of a vocabulary is functional, judged by its text."""
    return bool(_MARKUP.fullmatch(text))


@dataclass(frozen=True, slots=True)
class PromptSegment:
    """A piece of a prompt.

    Attributes:
        text: not empty, except for a ``token``.
        special: whether functional tokens are recognised: true for the template, false for the user's text.
        token: id of a token with unknown text, which replaces the text.
    """

    text: str
    special: bool
    token: int | None = None


@dataclass(frozen=True, slots=True)
class FunctionalToken:
    """A functional token.

    Attributes:
        token: its id.
        strips_left: whether it removes the white space before it.
        strips_right: whether it removes the white space after it.
        parsed: whether tokenizers recognise it in text; false for byte tokens, whose text may be composed of other
            tokens.
    """

    token: int
    strips_left: bool = False
    strips_right: bool = False
    parsed: bool = True


class FunctionalTokens:
    """The functional tokens of a vocabulary by text.

    Args:
        tokens: all of them.
        unknown: id of the one that also replaces characters missing from the vocabulary; None if there is none.
    """

    def __init__(self, tokens: Mapping[str, FunctionalToken], unknown: int | None = None) -> None:
        self._tokens = {text: token for text, token in tokens.items() if text}
        self._parsed = re.compile(f"({_any_of(text for text, token in self._tokens.items() if token.parsed)})")
        self._starts = re.compile(f"(?={_any_of(self._tokens)})")
        self.ids = frozenset(token.token for token in self._tokens.values() if token.parsed) - {unknown}

    def __getitem__(self, text: str) -> FunctionalToken:
        return self._tokens[text]

    def parsed(self, text: str) -> list[str]:
        """Split a text; every second part is a token that a tokenizer would recognise."""
        return self._parsed.split(text)

    def cut(self, text: str) -> list[str]:
        """Split a text so that no part contains a functional token."""
        places = [0, *[match.start() + 1 for match in self._starts.finditer(text)], len(text)]
        return [text[start:end] for start, end in pairwise(places) if start < end]


def _any_of(texts: Iterable[str]) -> str:
    """Return a pattern that matches any of several texts, the longest one possible."""
    return "|".join(map(re.escape, sorted(texts, key=len, reverse=True))) or "(?!)"


class PromptTokenizer:
    """Makes the ids of prompts.

    Args:
        tokenize: the model's tokenizer, without start and end tokens.
        functional: its functional tokens.
        before: text of one of them.  Some tokenizers put a space before a text, but not after such a token.
    """

    def __init__(self, tokenize: Tokenize, functional: FunctionalTokens, before: str = "") -> None:
        self._tokenize, self._functional, self._before = tokenize, functional, before

    def __call__(self, segments: Sequence[PromptSegment]) -> list[int]:
        """Return the ids of the whole prompt."""
        ids: list[int] = []
        swallows = False  # whether the previous token strips the white space after it
        for index, (text, token) in enumerate(self._parts(segments)):
            text = text.lstrip(_WHITE_SPACE) if swallows else text
            if token is not None and token.strips_left:
                text = text.rstrip(_WHITE_SPACE)
            ids += self._plain(text, start=index == 0) if text else ()
            if token is not None:
                ids.append(token.token)
                swallows = token.strips_right
        return ids

    def _parts(self, segments: Sequence[PromptSegment]) -> Iterator[tuple[str, FunctionalToken | None]]:
        """Yield each text (may be empty) with the functional token after it, None after the last."""
        text = ""
        for segment in segments:
            if segment.token is not None:
                yield text, FunctionalToken(segment.token)
                text = ""
            elif segment.special:
                first, *rest = self._functional.parsed(segment.text)
                text += first
                for token, after in zip(rest[::2], rest[1::2], strict=True):
                    yield text, self._functional[token]
                    text = after
            else:
                text += segment.text
        yield text, None

    def _plain(self, text: str, start: bool) -> list[int]:
        """Return the ids of a text without recognising functional tokens."""
        ids = self._joined(self._functional.cut(text), start)
        if self._functional.ids.isdisjoint(ids):
            return ids
        return self._joined(list(text), start)  # other tokens were merged into a functional one

    def _joined(self, parts: Sequence[str], start: bool) -> list[int]:
        ids = list(self._first(parts[0], start))
        for part in parts[1:]:
            ids += self._continuation(part)
        return ids

    def _first(self, text: str, start: bool) -> Sequence[int]:
        """Return the ids of a text at the start of a prompt or after a functional token."""
        if start or not self._before:
            return self._tokenize(text, False)
        ids = self._tokenize(self._before + text, True)
        return ids[1:] if ids[0] == self._functional[self._before].token else self._tokenize(text, False)

    def _continuation(self, text: str) -> Sequence[int]:
        """Return the ids of a text that continues another, where no tokenizer adds a space before it."""
        line = self._tokenize("\n", False)
        ids = self._tokenize("\n" + text, False)
        return ids[len(line) :] if ids[: len(line)] == line else self._tokenize(text, False)
