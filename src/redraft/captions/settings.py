"""Inputs of a session: facts about the model, and the user's settings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from redraft.decoding.display import Display
from redraft.decoding.lines import NO_BREAKS, LineBreaks
from redraft.decoding.method import Method, Value
from redraft.decoding.methods.ssbd import KEEPS_ALL
from redraft.decoding.search import Search
from redraft.errors import expect, whole


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """What a session needs to know about the model.

    Attributes:
        end_tokens: ids that end an output.
        token_bytes: returns the bytes of a token.
        tokenize: returns the ids of a text at the beginning of an output.
        context_length: maximum number of ids of prompt and output together; also the maximum of encoder input.
        pad_token: id of the padding token.
        final_mark: mark that a final text needs at its end (`redraft.captions.sentence`); empty if it needs none.
        breaks: its tokens with a line break, which ends a translation.
        hypotheses: most hypotheses of a search that it scores in one pass; 0 if it cannot search.
    """

    end_tokens: frozenset[int]
    token_bytes: Callable[[int], bytes]
    tokenize: Callable[[str], Sequence[int]]
    context_length: int
    pad_token: int = 0
    final_mark: str = ""
    breaks: LineBreaks = NO_BREAKS
    hypotheses: int = 0


def _no_problem(text: str) -> str:
    return ""


@dataclass(frozen=True, slots=True)
class Writing:
    """How the captions of a language are written.

    Attributes:
        convert: returns the text of a caption in the script of the language.
        problem: returns what is wrong with the text of a final caption, as a sentence; empty if nothing.
        labels: names of the language, with which models label translations.
    """

    convert: Callable[[str], str] = str
    problem: Callable[[str], str] = _no_problem
    labels: frozenset[str] = frozenset()


#: As the model writes it.
PLAIN = Writing()


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of a session.

    Attributes:
        method: the decoding method.
        options: its checked options (`Method.check`).
        display: what is shown of partial captions.
        context: number of earlier sentences in the prompt, at least 0.
        max_tokens: maximum length of a translation in tokens, at least 1; lower for short prompts (`LONGEST_RATIO`).
            Reaching it is reported as a failure.

    Raises:
        OptionError: a number is out of range.
    """

    method: Method
    options: dict[str, Value]
    display: Display = Display()
    context: int = 0
    max_tokens: int = 256

    def __post_init__(self) -> None:
        expect(self.display, Display, "display", "Display(agree=2)")
        whole("context", self.context, 0)
        whole("max_tokens", self.max_tokens, 1)

    @property
    def stop(self) -> float:
        """Joint probability of new tokens below which a partial output ends (`redraft.decoding.certainty`); 0 never."""
        return 0.0 if self.method.stop is None else float(self.options[self.method.stop.name])

    @property
    def search(self) -> Search | None:
        """How final texts are searched for; None if only the method decodes them.

        A bias that keeps everything that was shown is meant to.
        """
        method = self.method
        if not method.search or (method.bias and float(self.options[method.bias.name]) >= KEEPS_ALL):
            return None
        return Search.of(self.options)

    @property
    def searches(self) -> bool:
        """Whether there is time for a search."""
        return bool(self.search and self.search.seconds)
