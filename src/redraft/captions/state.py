"""What a stream's translation into a language is given, and what it remembers between two updates.

`redraft.captions.translation` makes the next one; its driver keeps both that and the events, or neither.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from redraft.captions.answer import NO_READER, OutputReader
from redraft.captions.ending import NEVER, Since, TextEnd
from redraft.captions.events import Update
from redraft.decoding.display import Display
from redraft.decoding.ends import NO_BREAKS, LineBreaks
from redraft.decoding.method import Method, Value
from redraft.decoding.methods.ssbd import KEEPS_ALL
from redraft.decoding.types import Output, Prompt, Tally


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
    def searches(self) -> bool:
        """Whether better final texts are searched for (`redraft.decoding.search`).

        A bias that keeps everything that was shown is meant to.
        """
        bias = self.method.bias
        return "search" in self.options and not (bias and self[bias.name] >= KEEPS_ALL)

    def __getitem__(self, name: str) -> Any:
        """Return an option: an integer if it is whole, a number or a word."""
        return self.options[name]


Ids = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Decoded:
    """A source and its output.

    Attributes:
        prompt: the model's input; empty before the first.
        reader: reads the translation in the output.
        output: what the model wrote.
        confirmed: number of tokens that may be shown; None if all of them.
        certain: number of tokens that may be shown once the recogniser has committed the source.
    """

    prompt: Prompt = field(default_factory=Prompt)
    reader: OutputReader = NO_READER
    output: Output = field(default_factory=lambda: Output((), True))
    confirmed: int | None = None
    certain: int = 0

    @property
    def source(self) -> str:
        """The text that was translated."""
        return self.reader.source

    @property
    def pieces(self) -> list[bytes]:
        """The bytes of each token that belong to the translation."""
        return self.reader.pieces(self.output.tokens)

    @property
    def text(self) -> str:
        """The translation, without space around it."""
        return b"".join(self.pieces).decode(errors="ignore").strip()

    @property
    def written(self) -> str:
        """All that the model wrote."""
        return b"".join(map(self.reader.token_bytes, self.output.tokens)).decode(errors="ignore").strip()


@dataclass(frozen=True, slots=True)
class State:
    """A stream in one language after an update.

    Attributes:
        earlier: earlier sentences with their translations and their languages, for the context of prompts.
        mixed: whether the source has written a small letter.
        ending: what is known of the end of its texts.
        memory: what the method's drafters keep, by type; each decoding gets a shallow copy.
        tally: counts of all outputs.
        misspelt: whether a problem of the writing was reported.
        update: the latest update of an unfinished utterance; None if there is none.
        decoded: the latest source with its output.
        draft: ids of the next draft; if the next utterance goes on with words of a final text, those that the output
            before the final one had for them.
        shown: ids that are shown; as in ``draft``.
        outputs: the latest outputs for different sources, as many as must agree with the next one.
        since: since when the source is the latest one, without its first update; once that is settled, all of the
            translation is shown, since no other one may come.
        is_slow: whether words would wait too long for the next translation, since updates are passed over.
        reported: whether a problem of the utterance's partial texts was reported.
    """

    earlier: tuple[tuple[str, str, str | None], ...] = ()
    mixed: bool = False
    ending: TextEnd = field(default_factory=TextEnd)
    memory: dict[type, object] = field(default_factory=dict, repr=False)
    tally: Tally = field(default_factory=Tally)
    misspelt: bool = False
    update: Update | None = None
    decoded: Decoded = field(default_factory=Decoded)
    draft: Ids = ()
    shown: Ids = ()
    outputs: tuple[Ids, ...] = ()
    since: Since = NEVER
    is_slow: bool = False
    reported: bool = False

    @property
    def prompt(self) -> Ids:
        """Ids of the latest prompt."""
        return self.decoded.prompt.ids

    @property
    def output(self) -> Ids:
        """Ids of the latest output."""
        return self.decoded.output.tokens

    @property
    def hides(self) -> bool:
        """Whether tokens of the latest output wait for another one that agrees, or were not decoded."""
        waits = self.decoded.confirmed is not None and len(self.shown) < len(self.output)
        return self.update is not None and (waits or self.decoded.output.stopped)

    def left_by(self, update: Update) -> Update | None:
        """Return the latest update if it hides tokens and another one begins the next utterance; else None."""
        return self.update if self.hides and self.update and self.update.utterance != update.utterance else None


#: At the beginning of a stream.
START = State()
