"""Inputs of a session: facts about the model, and the user's settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from redraft.decoding.display import Display
from redraft.decoding.ends import NO_BREAKS, LineBreaks
from redraft.decoding.method import Method, Value
from redraft.decoding.methods.ssbd import KEEPS_ALL
from redraft.decoding.search import Search


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


@dataclass(frozen=True, slots=True)
class Writing:
    """How the captions of a language are written.

    Attributes:
        convert: returns the text of a caption in the script of the language.
        problem: returns what is wrong with the text of a final caption, as a sentence; empty if nothing.
        labels: names of the language, with which models label translations.
    """

    convert: Callable[[str], str] = str
    problem: Callable[[str], str] = lambda text: ""
    labels: frozenset[str] = frozenset()


#: As the model writes it.
PLAIN = Writing()


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of a session.

    Attributes:
        method: the decoding method.
        options: its options; checked, and completed with the defaults.

    Raises:
        OptionError: an option is unknown or has an invalid value.
    """

    method: Method
    options: Mapping[str, Value] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "options", self.method.check(self.options))

    @property
    def display(self) -> Display:
        """What is shown of partial captions."""
        return Display.of(self.options)

    @property
    def context(self) -> int:
        """Number of earlier sentences in the prompt."""
        return int(self.options["context"])

    @property
    def max_tokens(self) -> int:
        """Maximum length of a translation in tokens; lower for short prompts (`LONGEST_RATIO`).

        Reaching it is reported as a failure.
        """
        return int(self.options["max_tokens"])

    @property
    def search(self) -> Search | None:
        """How final texts are searched for; None if only the method decodes them.

        A bias that keeps everything that was shown is meant to.
        """
        method = self.method
        if "search" not in self.options or (method.bias and float(self.options[method.bias.name]) >= KEEPS_ALL):
            return None
        return Search.of(self.options)
