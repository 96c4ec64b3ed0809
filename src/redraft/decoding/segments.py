"""A prompt's pieces, and the ids of the whole text that they make.

Tokenizers read *functional* tokens first, such as ``<|im_start|>`` and ``<think>``, and then each stretch of text
between them as one.  So do the ids here: pieces are joined up to the next functional token of the template, and a
prompt has the ids that the tokenizer gives for its whole text.  Only in the user's text functional tokens are not read:
what looks like one is cut behind its first character, and the parts are read one after the other.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

#: ``tokenize(text, special)`` -> ids; ``special`` says whether functional tokens are read.
Tokenize: TypeAlias = Callable[[str, bool], Sequence[int]]

#: Tokens that are markup rather than words or white space: in brackets of some kind.
_MARKUP = re.compile(r"<.*\S.*>|\[.*\S.*\]|\{.*\S.*\}|\|.*\S.*\|", re.DOTALL)
_WHITE_SPACE = " \t\n\v\f\r"


def is_markup(text: str) -> bool:
    """Whether a token that vocabularies list apart from words is one that does something, by its text."""
    return bool(_MARKUP.fullmatch(text))


@dataclass(frozen=True, slots=True)
class PromptSegment:
    """A piece of a prompt.

    Attributes:
        text: never empty, but for a ``token``.
        special: whether functional tokens are read in it: true for the template, false for the user's text.
        token: the id of a token whose text is not known, which stands here instead of text.
    """

    text: str
    special: bool
    token: int | None = None


@dataclass(frozen=True, slots=True)
class FunctionalToken:
    """A token that does something.

    Attributes:
        token: its id.
        strips_left, strips_right: whether it swallows the white space before and behind it.
        parsed: whether tokenizers read it in a text; false for a byte's token, whose text some put together of others.
    """

    token: int
    strips_left: bool = False
    strips_right: bool = False
    parsed: bool = True


class FunctionalTokens:
    """The tokens of a vocabulary that do something, by their texts.

    Args:
        tokens: all of them.
        unknown: the one that also stands for characters that the vocabulary lacks; None if there is none.
    """

    def __init__(self, tokens: Mapping[str, FunctionalToken], unknown: int | None = None) -> None:
        self._tokens = {text: token for text, token in tokens.items() if text}
        letters = "".join(map(re.escape, sorted({text[0] for text in self._tokens})))
        self._starts = re.compile(f"[{letters}]" if letters else "(?!)")
        self._lengths = sorted({len(text) for text in self._tokens}, reverse=True)
        self.ids = frozenset(token.token for token in self._tokens.values() if token.parsed) - {unknown}

    def __getitem__(self, text: str) -> FunctionalToken:
        return self._tokens[text]

    def parsed(self, text: str) -> list[str]:
        """The text in parts: every second one is what a tokenizer would read as such a token."""
        parts, done = [], 0
        for start, end in self._all(text):
            if start >= done and self._tokens[text[start:end]].parsed:
                parts += [text[done:start], text[start:end]]
                done = end
        return [*parts, text[done:]]

    def cut(self, text: str) -> list[str]:
        """The text in parts none of which has the text of such a token."""
        places = [0, *sorted({start + 1 for start, _end in self._all(text)}), len(text)]
        return [text[start:end] for start, end in pairwise(places) if start < end]

    def _all(self, text: str) -> Iterator[tuple[int, int]]:
        """Start and end of every one, those that overlap too: first ones first, and long ones before short ones."""
        for match in self._starts.finditer(text):
            start = match.start()
            for length in self._lengths:
                if start + length <= len(text) and text[start : start + length] in self._tokens:
                    yield start, start + length


class PromptTokenizer:
    """Makes the ids of prompts.

    Args:
        tokenize: of the model, adding neither start nor end token.
        functional: its tokens that do something.
        before: the text of one of them.  Some tokenizers put a space before a text, but not behind such a token.
    """

    def __init__(self, tokenize: Tokenize, functional: FunctionalTokens, before: str = "") -> None:
        self._tokenize, self._functional, self._before = tokenize, functional, before

    def __call__(self, segments: Sequence[PromptSegment]) -> list[int]:
        """The ids of the whole text."""
        ids: list[int] = []
        swallows = False  # whether the token before swallows white space
        parts = [*self._parts(segments), ""]
        for index in range(0, len(parts) - 1, 2):
            text, token = parts[index], parts[index + 1]
            assert isinstance(text, str)  # noqa: S101  # for the type checker
            text = text.lstrip(_WHITE_SPACE) if swallows else text
            swallows = isinstance(token, str) and token != "" and self._functional[token].strips_right
            if isinstance(token, str) and token and self._functional[token].strips_left:
                text = text.rstrip(_WHITE_SPACE)
            ids += self._plain(text, start=index == 0) if text else ()
            if token != "":
                ids.append(token if isinstance(token, int) else self._functional[token].token)
        return ids

    def _parts(self, segments: Sequence[PromptSegment]) -> Iterator[str | int]:
        """Text, which may be empty, and in every second place a functional token: its text, or its id if given."""
        text = ""
        for segment in segments:
            if segment.token is not None:
                yield text
                yield segment.token
                text = ""
            elif segment.special:
                first, *rest = self._functional.parsed(segment.text)
                text += first
                for token, after in zip(rest[::2], rest[1::2], strict=True):
                    yield text
                    yield token
                    text = after
            else:
                text += segment.text
        yield text

    def _plain(self, text: str, start: bool) -> list[int]:
        """Ids of a text in which nothing functional is read."""
        ids = self._joined(self._functional.cut(text), start)
        if self._functional.ids.isdisjoint(ids):
            return ids
        return self._joined(list(text), start)  # such a token was put together of others

    def _joined(self, parts: Sequence[str], start: bool) -> list[int]:
        ids = list(self._first(parts[0], start))
        for part in parts[1:]:
            ids += self._going_on(part)
        return ids

    def _first(self, text: str, start: bool) -> Sequence[int]:
        """Ids of a text at the start of a prompt, or behind a functional token."""
        if start or not self._before:
            return self._tokenize(text, False)
        ids = self._tokenize(self._before + text, True)
        return ids[1:] if ids[0] == self._functional[self._before].token else self._tokenize(text, False)

    def _going_on(self, text: str) -> Sequence[int]:
        """Ids of a text that goes on behind another, where no tokenizer puts a space before it."""
        line = self._tokenize("\n", False)
        ids = self._tokenize("\n" + text, False)
        return ids[len(line) :] if ids[: len(line)] == line else self._tokenize(text, False)
