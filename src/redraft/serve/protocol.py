"""What is said over the wire: every message a class, its JSON schema made from it.

A client sends `Start`, then any number of `Hypothesis` (of type "update"), `Ack`, `Restore`, `Pause`, `Hide` and
`Correct`, then `End`.  The server answers with `Started`, `Partial`, `Final`, `Stats`, `Paused`, `Hidden` and `Error`,
and with `Done` at the end.  Viewers of a room get `RoomState` as well.  All are JSON objects with a ``type``, one a
text frame.  docs/protocol.md says how they go together.
"""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from redraft.captions import events
from redraft.captions.stabilise import USUAL, Mask
from redraft.serve import wrong
from redraft.serve.fields import Language, Line, RoomName, Seconds, ShortText, Token, Utterance
from redraft.serve.refusals import CODES

#: Grows when a message changes in a way that older clients or servers would misread.
VERSION = 1


class Message(BaseModel):
    """A JSON object; fields that it does not have are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    def wire(self) -> str:
        """The message as it is sent."""
        return str(self.model_dump_json(exclude_none=True))


class Wanted(Message):
    """How to translate; what is left out is chosen by the operator, who also sets bounds."""

    targets: tuple[Language, ...] = Field(min_length=1, max_length=64)
    source: Language = "en"
    method: ShortText | None = Field(None, description="decoding method, one of those that the operator allows")
    options: dict[ShortText, float | ShortText] = Field(default_factory=dict, max_length=16)
    mask_k: int = Field(0, ge=0, le=100, description="units hidden at the end of partial captions")
    mask_unit: Literal["tokens", "words"] = "tokens"
    mask_margin: float = Field(
        USUAL.margin,
        ge=-1,
        le=1,
        description="by how much a token must be more probable than all others before it is shown; -1 shows all",
    )
    max_tokens: int | None = Field(None, ge=1, description="the most tokens of one translation")
    context: int = Field(0, ge=0, le=100, description="earlier sentences that the prompt carries")
    glossary: tuple[tuple[ShortText, ShortText], ...] = Field((), max_length=1000)

    @property
    def mask(self) -> Mask:
        """What is hidden of partial captions."""
        return Mask(self.mask_k, self.mask_unit, margin=self.mask_margin)


class Begin(Wanted):
    """A new session, and the room that it takes place in, whose name stays the same from session to session."""

    room: RoomName | None = Field(None, description="viewers of the room see this session")
    take_over: bool = Field(False, description="whether to end the session that the room may have now")


class Start(Begin):
    """The first message of a connection: begins a session, or goes on with one after a drop."""

    type: Literal["start"] = "start"
    protocol: int = Field(VERSION, description="version of this protocol")
    key: str | None = Field(None, max_length=200, description="API key, where the server wants one")
    token: Token | None = Field(None, description="that of `started`, to go on with a session after a drop")


class Hypothesis(Message):
    """All of an utterance's text so far, which may revise what was said before; never only what is new."""

    type: Literal["update"] = "update"
    utterance: Utterance
    seq: int = Field(ge=0, le=2**53, description="grows within an utterance")
    text: Line = Field(max_length=20_000)
    final: bool = Field(False, description="whether this is the last update of the utterance")
    time: Seconds | None = Field(None, description="seconds from the start of the stream")

    def event(self) -> events.Update:
        """The same for the engine."""
        return events.Update(self.utterance, self.seq, self.text, self.final, self.time)


class Ack(Message):
    """The client has a final caption, or the error in place of one; it will not be sent again."""

    type: Literal["ack"] = "ack"
    utterance: Utterance
    language: Language


class Pause(Message):
    """Hold captions back from viewers, or let them see what was held back and what comes.  The owner sees them all."""

    type: Literal["pause"] = "pause"
    paused: bool = True


class Hide(Message):
    """Take the captions of an utterance away from viewers and from the transcript, or show them again."""

    type: Literal["hide"] = "hide"
    utterance: Utterance
    language: Language | None = Field(None, description="all languages, if absent")
    hidden: bool = True


class Correct(Message):
    """Give a final caption another text, for everybody and in the transcript."""

    type: Literal["correct"] = "correct"
    utterance: Utterance
    language: Language
    text: Line = Field(min_length=1, max_length=20_000)


class End(Message):
    """No more updates; what is still to be translated is, then comes `done`."""

    type: Literal["end"] = "end"


class Started(Message):
    """The session that a connection belongs to.

    ``resumed`` is false for a new session.  If a token was given all the same, the server does not know it, since it
    was started anew: `Restore` tells it what the client has already.
    """

    type: Literal["started"] = "started"
    protocol: int = VERSION
    session: str = Field(description="names the session to viewers; they can watch and nothing else")
    token: Token = Field(description="for going on after a drop; a secret")
    targets: tuple[str, ...]
    room: str | None = None
    resumed: bool = False


class Partial(Message):
    """A translation that may still change."""

    type: Literal["partial"] = "partial"
    utterance: str
    seq: int = Field(description="of the update that it answers")
    language: str
    text: str = Field(description="what is to be shown")
    unstable: str = Field("", description="the rest of the translation, which the mask hides")
    source: str = ""
    time: float | None = None
    cut: bool | None = Field(None, description="true if the model did not end it, so that it was cut")
    lag_ms: float = Field(0, description="how long the oldest news in it have waited in the server")


class Final(Message):
    """The translation of an utterance; there is one for every target language, and none is lost."""

    type: Literal["final"] = "final"
    utterance: Utterance
    seq: int = Field(ge=0)
    language: Language
    text: str = Field(max_length=100_000)
    source: str = Field("", max_length=100_000)
    time: Seconds | None = None
    begun: Seconds | None = Field(None, description="time of the utterance's first update, for subtitles")
    cut: bool | None = Field(None, description="true if the model did not end it, so that it was cut")
    lag_ms: float = 0
    corrected: bool | None = Field(None, description="whether it takes the place of one that came before")
    hidden: bool | None = Field(None, description="in `restore`: whether viewers are not to see it")


class Restore(Message):
    """Final captions that the client has from a server that has forgotten them; they are not translated again."""

    type: Literal["restore"] = "restore"
    finals: tuple[Final, ...] = Field(max_length=1000)


class TargetStats(Message):
    """Counts of one target language since the session began."""

    updates: int = Field(0, description="updates translated")
    tokens: int = Field(0, description="tokens of all outputs")
    passes: int = Field(0, description="passes of the model")
    plain_passes: int = Field(0, description="passes that plain re-translation would have taken for the same outputs")
    drafted: int = Field(0, description="tokens drafted")
    accepted: int = Field(0, description="drafted tokens kept")
    shown: int = Field(0, description="words of the final captions")
    erased: int = Field(0, description="words taken back; erased / shown is the normalised erasure (NE)")
    coalesced: int = Field(0, description="updates passed over for a newer one")
    abandoned: int = Field(0, description="updates given up half-way for a newer one")


class Stats(Message):
    """How the session goes; comes every few seconds while captions do."""

    type: Literal["stats"] = "stats"
    targets: dict[str, TargetStats]
    lag_ms: float = Field(0, description="median lag of the last captions")
    lag_p95_ms: float = 0


class Paused(Message):
    """Whether captions are held back from viewers."""

    type: Literal["paused"] = "paused"
    paused: bool


class Hidden(Message):
    """An utterance's caption is hidden from viewers, who remove it; or, to the owner, is shown again."""

    type: Literal["hidden"] = "hidden"
    utterance: str
    language: str
    hidden: bool


class RoomState(Message):
    """What a room shows, to its viewers: at first, when a session begins, and when it is over."""

    type: Literal["room"] = "room"
    room: RoomName
    state: Literal["waiting", "live", "over"] = Field(description="before a session, in one, or after it")
    session: str | None = Field(None, description="names the session, if there is one")
    source: str | None = Field(None, description="the language spoken there")
    targets: tuple[str, ...] = ()


class Error(Message):
    """Something that could not be done; the session is over if ``fatal``.

    With ``final`` it stands in place of a final caption that could not be made, and is acknowledged like one.
    """

    type: Literal["error"] = "error"
    code: Literal[tuple(CODES)]  # type: ignore[valid-type]
    message: str = Field(description="one sentence that says what is wrong and what is allowed")
    fatal: bool = False
    utterance: str | None = None
    seq: int | None = None
    language: str | None = None
    final: bool | None = None


class Done(Message):
    """Everything has been translated and sent."""

    type: Literal["done"] = "done"


#: What a client may say of captions that viewers see; over HTTP, too.
Control: TypeAlias = Annotated[Pause | Hide | Correct, Field(discriminator="type")]
FromClient: TypeAlias = Annotated[
    Start | Hypothesis | Ack | Restore | Pause | Hide | Correct | End, Field(discriminator="type")
]
FromServer: TypeAlias = Annotated[
    Started | Partial | Final | Stats | Paused | Hidden | RoomState | Error | Done, Field(discriminator="type")
]
#: The same as tuples.
CONTROL: tuple[type[Message], ...] = (Pause, Hide, Correct)
CLIENT: tuple[type[Message], ...] = (Start, Hypothesis, Ack, Restore, *CONTROL, End)
SERVER: tuple[type[Message], ...] = (Started, Partial, Final, Stats, Paused, Hidden, RoomState, Error, Done)
FROM_CONTROL: TypeAdapter[Control] = TypeAdapter(Control)
FROM_CLIENT: TypeAdapter[FromClient] = TypeAdapter(FromClient)
FROM_SERVER: TypeAdapter[FromServer] = TypeAdapter(FromServer)


def sentence(error: ValidationError, *kinds: type[BaseModel]) -> str:
    """What is wrong with a message, see `redraft.serve.wrong`; ``kinds`` are those of a client if none are given."""
    return wrong.sentence(error, *(kinds or CLIENT))
