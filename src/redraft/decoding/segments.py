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


class PromptTokenizer:
    """Makes the ids of prompts.

    Args:
        tokenize: the model's tokenizer, without start and end tokens.
        functional: its functional tokens by text.
        before: text of one of them.  Some tokenizers put a space before a text, but not after such a token.
        unknown: id of the one that also replaces characters missing from the vocabulary; None if there is none.
    """

    def __init__(
        self,
        tokenize: Tokenize,
        functional: Mapping[str, FunctionalToken],
        before: str = "",
        unknown: int | None = None,
    ) -> None:
        self._tokenize, self._before = tokenize, before
        self._functional = {text: token for text, token in functional.items() if text}
        parsed = {text: token.token for text, token in self._functional.items() if token.parsed}
        self._parsed, self._starts = re.compile(f"({_any_of(parsed)})"), re.compile(f"(?={_any_of(self._functional)})")
        self._ids = frozenset(parsed.values()) - {unknown}

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
                first, *rest = self._parsed.split(segment.text)
                text += first
                for token, after in zip(rest[::2], rest[1::2], strict=True):
                    yield text, self._functional[token]
                    text = after
            else:
                text += segment.text
        yield text, None

    def _plain(self, text: str, start: bool) -> list[int]:
        """Return the ids of a text without recognising functional tokens."""
        places = [0, *[match.start() + 1 for match in self._starts.finditer(text)], len(text)]
        ids = self._joined([text[begin:end] for begin, end in pairwise(places) if begin < end], start)
        if self._ids.isdisjoint(ids):
            return ids
        return self._joined(list(text), start)  # other tokens were merged into a functional one

    def _joined(self, parts: Sequence[str], start: bool) -> list[int]:
        ids = list(self._first(parts[0], start))
        for part in parts[1:]:
            # It continues another, so no tokenizer may add a space before it.
            line, after = self._tokenize("\n", False), self._tokenize("\n" + part, False)
            ids += after[len(line) :] if after[: len(line)] == line else self._tokenize(part, False)
        return ids

    def _first(self, text: str, start: bool) -> Sequence[int]:
        """Return the ids of a text at the start of a prompt or after a functional token."""
        if start or not self._before:
            return self._tokenize(text, False)
        ids = self._tokenize(self._before + text, True)
        return ids[1:] if ids[0] == self._functional[self._before].token else self._tokenize(text, False)


def _any_of(texts: Iterable[str]) -> str:
    """Return a pattern that matches any of several texts, the longest one possible."""
    return "|".join(map(re.escape, sorted(texts, key=len, reverse=True))) or "(?!)"
