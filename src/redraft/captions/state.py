"""What a stream's translation into a language remembers between two updates: one frozen value.

`redraft.captions.translation` makes the next one; its driver keeps both that and the events, or neither.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from redraft.captions.answer import NO_READER, OutputReader
from redraft.captions.ending import NEVER, Since, TextEnd
from redraft.captions.events import Update
from redraft.decoding.types import Output, Prompt, Tally

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
