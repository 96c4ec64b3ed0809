"""The contract between clients and servers, which imports neither: messages, and bodies of requests.

A client sends `Start`, then `Declare`, then any number of `UpdateMessage` (type "update"), `Ack`, `Restore`, `Pause`,
`Hide` and `Correct`, then `End`.  The server answers with `Started`, `Partial`, `Final`, `Stats`, `Error` and `Alive`,
and finally `Done`; it reports `Pause` and `Hide` to all whom they concern.  Viewers of a room get `RoomState` as well.
Each is a JSON object with a ``type``, in a text frame.  If the server recognises speech, a client can send audio
instead of updates: `Audio`, then binary frames, then `AudioEnd`; the server answers with `Listening` and `Recognised`.
docs/protocol.md describes their order.
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
from collections.abc import Mapping
from dataclasses import asdict, field, fields
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias, TypeVar, dataclass_transform, get_args

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, TypeAdapter, model_validator
from pydantic.dataclasses import dataclass
from pydantic.json_schema import SkipJsonSchema
from pydantic.types import FailFast

from redraft.captions import events
from redraft.captions.formats.read import cleaned, one_line
from redraft.captions.languages import same_of, standard_tag
from redraft.captions.spoken import AUTO
from redraft.protocol.codes import CODES, tag_of

T = TypeVar("T")

#: Increased when a message changes in a way that older clients or servers would misread.
VERSION = 1
#: Maximum seconds of audio that wait for the recogniser, or that a client is ahead of real time.
BACKLOG_SECONDS = 30.0
#: Allowed names of rooms, which are part of URLs: as a regular expression and in words.
ROOM_NAME = r"^[a-z0-9][a-z0-9_-]{0,62}$"
ROOM_RULE = "1 to 63 lower-case letters, digits, hyphens and underscores, the first a letter or a digit"


def new_token() -> str:
    """Return a new secret token, by which the owner of a session resumes it."""
    return secrets.token_urlsafe(24)


def public_name(token: str) -> str:
    """Return the name of a session for viewers: stable across server restarts, and not reversible to the token."""
    return hashlib.sha256(token.encode()).hexdigest()[:32]


class Frame(NamedTuple):
    """A message of the server as it is sent: its type, and its JSON, which is made once for all connections."""

    type: str
    text: str


class Message(BaseModel):
    """A message: a JSON object; unknown fields are rejected."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    def wire(self) -> str:
        """Return the message as JSON, without fields that are None."""
        return str(self.model_dump_json(exclude_none=True))

    @property
    def frame(self) -> Frame:
        """The message as it is sent."""
        return Frame(tag_of(type(self)), self.wire())


class Told(Message):
    """A message of the server.  Clients ignore fields that they do not know, which a later server may send."""

    model_config = ConfigDict(extra="ignore")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def _validated(kind: type[T]) -> type[T]:
    """Make a message of a dataclass whose fields are declared elsewhere; it is validated as other messages are."""
    extra: Literal["forbid", "ignore"] = "ignore" if issubclass(kind, events.Caption) else "forbid"
    made: type[T] = dataclass(config=ConfigDict(extra=extra, strict=True), frozen=True, slots=True)(kind)
    return made


def _json(fields: Mapping[str, object]) -> str:
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":"))


#: Names of languages and methods.
ShortText: TypeAlias = Annotated[str, Field(min_length=1, max_length=100)]
#: A language; a name, or a tag in another spelling, becomes the standard tag.
Language: TypeAlias = Annotated[
    ShortText,
    AfterValidator(standard_tag),
    Field(description="BCP 47 tag or English name of a language", examples=["de"]),
]
Token: TypeAlias = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{22,128}$")]


def room_name(name: str) -> str:
    """Return a name of a room.  Raises `ValueError` if it is invalid."""
    if not re.fullmatch(ROOM_NAME, name):
        raise ValueError(f"must be {ROOM_RULE}")
    return name


#: Name of a room; it is part of URLs.
RoomName: TypeAlias = Annotated[
    str, AfterValidator(room_name), Field(json_schema_extra={"pattern": ROOM_NAME}, examples=["hall-1"])
]
Seconds: TypeAlias = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Line: TypeAlias = Annotated[str, BeforeValidator(lambda value: cleaned(value) if isinstance(value, str) else value)]


#: At most 1000 values; the first invalid one is the only one to be described.
Many: TypeAlias = Annotated[tuple[T, ...], Field(max_length=1000), FailFast()]


def _as_text(value: Any) -> Any:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


#: Name of an utterance; 7 and "7" are the same.
Utterance: TypeAlias = Annotated[ShortText, BeforeValidator(_as_text, json_schema_input_type=ShortText | int)]


class Audio(Message):
    """Audio follows in binary frames: signed 16-bit little-endian samples, mono.  Begins a stream of it, or resumes it.

    The utterances that are recognised in it are named ``STREAM.1``, ``STREAM.2`` and so on.
    """

    type: Literal["audio"] = "audio"
    stream: Annotated[str, Field(min_length=1, max_length=50)] = Field(description="name of the stream of audio")
    rate: Literal[16000] = Field(16000, description="samples per second")
    time: Seconds = Field(0.0, description="when the stream's first sample was spoken, in seconds")
    samples: int = Field(0, ge=0, le=2**53, description="position in the stream of the next sample that can be sent")
    utterance: int = Field(
        1, ge=1, le=2**53, description="number of the first utterance whose final text is not known to the client"
    )


class AudioEnd(Message):
    """No more audio follows in this stream; the last utterance becomes final."""

    type: Literal["audio_end"] = "audio_end"


class Listening(Told):
    """How far a stream of audio has been received and recognised; sent every second."""

    type: Literal["listening"] = "listening"
    stream: str
    listening: bool = Field(description="false once the stream has ended")
    received: int = Field(description="position of the sample that the server wants next")
    recognised: int = Field(description="position up to which the audio was recognised")


class Recognised(Told):
    """What the server has recognised: an update of the session as if the client had sent it.

    If a restarted server has forgotten the session, the client sends those that are unanswered as `update`.
    """

    type: Literal["recognised"] = "recognised"
    stream: str
    utterance: str
    seq: int
    text: str
    final: bool = False
    time: float | None = None
    start: float | None = None
    speaker: str | None = None
    language: str | None = None
    recognised: int = Field(description="position in the stream up to which the audio was recognised")


class Wanted(Message):
    """How to translate; the operator sets the bounds and the defaults."""

    targets: tuple[Language, ...] = Field(min_length=1, max_length=64)
    source_language: Language = Field("en", description="language that is spoken, or `auto` if any may be")
    also_spoken: tuple[Language, ...] = Field(
        (), max_length=16, description="further languages; each utterance is translated from its own"
    )
    method: ShortText | None = Field(None, description="decoding method, one that the operator allows")
    options: dict[ShortText, float | ShortText] = Field(
        default_factory=dict, max_length=32, description="options of the method by name, such as `agree`"
    )
    glossary: dict[Language, Many[tuple[ShortText, ShortText]]] = Field(
        default_factory=dict, max_length=64, description="target language -> source terms and their translations"
    )


class Begin(Wanted):
    """A new session, optionally in a room, whose name stays the same from session to session."""

    room: RoomName | None = Field(None, description="viewers of the room see this session")
    take_over: bool = Field(False, description="replace the session that is running in the room")
    sentences: bool | None = Field(
        None, description="cut recognised speech into sentences, whatever the pauses; the server's setting if absent"
    )

    @property
    def original(self) -> str:
        """The language of the captions that show what is spoken; `auto` if it is one of several, not all targets."""
        spoken = (self.source_language, *self.also_spoken)
        several = len(spoken) > 1 and any(same_of(each, self.targets) is None for each in spoken)
        return AUTO if several else self.source_language


class Start(Begin):
    """The first message of a connection: begins a session, or resumes one after a drop."""

    type: Literal["start"] = "start"
    protocol: int = Field(VERSION, description="version of this protocol")
    key: str | None = Field(None, max_length=200, description="API key, if the server needs one")
    token: Token | None = Field(None, description="token from `started`, to resume a session after a drop")
    connection: int = Field(
        0, ge=0, le=2**53, description="with a token: higher with every attempt to resume; an older one never wins"
    )
    server: ShortText | None = Field(
        None, description="`server` from the last `started`; another server's copy of the session is out of date"
    )


@_validated
class UpdateMessage(events.Update):
    """The whole text of an utterance so far, not only the new words; it may change earlier ones."""

    utterance: Utterance
    type: Literal["update"] = "update"

    def __post_init__(self) -> None:
        """Check nothing: pydantic has."""

    @model_validator(mode="before")
    @classmethod
    def _clean(cls, found: Any) -> Any:
        return one_line(found) if isinstance(found, dict) else found

    def wire(self) -> str:
        """Return the message as JSON, without fields that are None."""
        return _json({name: value for name, value in asdict(self).items() if value is not None})


class Ack(Message):
    """Acknowledges a final caption, or the error in its place; it will not be sent again."""

    type: Literal["ack"] = "ack"
    utterance: Utterance
    language: Language
    corrected: int = Field(0, ge=0, le=2**53, description="`corrected` of the caption; a later one is sent again")


#: Highest number of a decision, as of all whole numbers in JavaScript.
MOST_DECISIONS = 2**53
_COUNTED = "counts the decisions on this subject; the highest one counts, the next if absent"
#: Number of a decision about what viewers see.
Decision: TypeAlias = Annotated[int, Field(ge=1, le=MOST_DECISIONS, description=_COUNTED)]


class Pause(Message):
    """Hold captions back from viewers, or release them; reported to all.  The owner sees all of them."""

    type: Literal["pause"] = "pause"
    paused: bool = True
    decision: Decision | None = None


class Hide(Message):
    """Hide captions of an utterance from viewers and the transcript, or show them again; reported by language."""

    type: Literal["hide"] = "hide"
    utterance: Utterance
    language: Language | None = Field(None, description="all languages if absent")
    hidden: bool = True
    decision: Decision | None = None


class Correct(Message):
    """Replace the text of a final caption, for everyone and in the transcript."""

    type: Literal["correct"] = "correct"
    utterance: Utterance
    language: Language
    text: Line = Field(min_length=1, max_length=events.LONGEST_TEXT)
    decision: Decision | None = None


class NameSpeaker(Message):
    """Name a speaker, in all captions from now on and in the whole transcript; reported to the owner."""

    type: Literal["name"] = "name"
    speaker: Line = Field(min_length=1, max_length=100, description="`speaker` of the updates")
    name: Line = Field(min_length=1, max_length=100, examples=["Anna"])
    decision: Decision | None = None


#: Messages that control viewers' captions; also used over HTTP.
Control: TypeAlias = Annotated[Pause | Hide | Correct | NameSpeaker, Field(discriminator="type")]


def subject_of(message: Control) -> tuple[str, ...]:
    """Return what a decision is about: its `type`, and the caption or the speaker.  Of many, the newest counts."""
    return message.type, *filter(None, (getattr(message, each, None) for each in ("utterance", "language", "speaker")))


class Declare(Message):
    """All that the owner has decided about what viewers see, with numbers; sent first on every connection.

    It may be about captions that the server does not have yet.
    """

    type: Literal["declare"] = "declare"
    decisions: Many[Control] = ()


class End(Message):
    """No more updates follow; the server finishes what is left, then sends `done`."""

    type: Literal["end"] = "end"


_HEARTBEAT = "the server sends something at least every so many seconds; after two without anything, connect again"


class Started(Told):
    """The session that a connection belongs to.

    ``resumed`` is false for a new session.  If a token was given all the same, the server does not have the session, or
    no longer the latest copy of it, because it was restarted or is another one: `Restore` sends what the client has.
    """

    type: Literal["started"] = "started"
    protocol: int = VERSION
    session: str = Field(description="name of the session for viewers, who can only watch")
    token: Token = Field(description="for resuming after a drop; a secret")
    targets: tuple[str, ...]
    room: str | None = None
    resumed: bool = False
    server: str = Field(description="identifies this process among all that clients may reach at this address")
    message_bytes: int = Field(description="maximum length of a message from the client")
    heartbeat: float = Field(description=_HEARTBEAT)


class Alive(Told):
    """The connection works: sent first to viewers, and whenever nothing else was for a while."""

    type: Literal["alive"] = "alive"
    heartbeat: float = Field(description=_HEARTBEAT)


_AGE = {"description": "to viewers: milliseconds since it was made, in a caption from before they came"}


@_validated
class Partial(events.Caption):
    """A translation that may still change."""

    final: SkipJsonSchema[Literal[False]] = False
    type: Literal["partial"] = "partial"
    lag_ms: float = field(
        default=0,
        metadata={"description": "milliseconds since its oldest new word was spoken or, as text, reached the server"},
    )
    age_ms: float | None = field(default=None, metadata=_AGE)


@_validated
class Final(events.Caption):
    """The final translation of an utterance; there is exactly one per target language."""

    utterance: Utterance
    unstable: SkipJsonSchema[str] = ""
    final: SkipJsonSchema[Literal[True]] = True
    type: Literal["final"] = "final"
    lag_ms: float = 0
    made: Seconds | None = field(default=None, metadata={"description": "when it was made, in seconds since 1970"})
    age_ms: float | None = field(default=None, metadata=_AGE)
    corrected: Annotated[int, Field(ge=1, le=2**53)] | None = field(
        default=None, metadata={"description": "how often it has been corrected; the highest number counts"}
    )

    def wire(self) -> str:
        """Return the message as JSON, without fields that are None."""
        return _json(events.as_object(self))


def frame_of(caption: events.Caption, **more: object) -> Frame:
    """Return the message for a caption, `Partial` or `Final`, with the other fields that are not None."""
    found = {**events.as_object(caption), **{name: value for name, value in more.items() if value is not None}}
    return Frame(found["type"], _json(found))


def caption_of(message: Partial | Final) -> events.Caption:
    """Return the caption in a message."""
    return events.Caption(**{each.name: getattr(message, each.name) for each in fields(events.Caption)})


class Restore(Message):
    """Final captions from another server, or from before a restart; they are not translated again."""

    type: Literal["restore"] = "restore"
    finals: Many[Final] = ()


class TargetStats(Told):
    """Counts for one target language since the session began."""

    updates: int = Field(0, description="updates translated")
    tokens: int = Field(0, description="tokens of all outputs")
    passes: int = Field(0, description="passes of the model")
    plain_passes: int = Field(0, description="passes that re-translation would have needed for the same outputs")
    drafted: int = Field(0, description="tokens drafted")
    accepted: int = Field(0, description="drafted tokens accepted")
    shown: int = Field(0, description="words of the final captions")
    erased: int = Field(0, description="retracted words; erased / shown is the normalized erasure (NE)")
    coalesced: int = Field(0, description="updates skipped for a newer one")
    abandoned: int = Field(0, description="updates abandoned for a newer one")


class Stats(Told):
    """Statistics of the session, sent every few seconds while there are captions."""

    type: Literal["stats"] = "stats"
    targets: dict[str, TargetStats]
    lag_ms: float = Field(0, description="median lag of the last captions")
    lag_p95_ms: float = 0
    able: str | None = Field(
        None,
        description="what the model can do on this server, if it does not keep up with all languages",
    )


class RoomState(Told):
    """The state of a room, sent to viewers when they connect and when a session begins or ends."""

    type: Literal["room"] = "room"
    room: RoomName
    state: Literal["waiting", "live", "over"] = Field(description="before a session, in one, or after it")
    session: str | None = Field(None, description="name of the session, if there is one")
    source_language: str | None = Field(None, description="language of the captions of what is spoken, perhaps `auto`")
    targets: tuple[str, ...] = ()


class Error(Told):
    """Something went wrong; ``fatal`` if that ends the session.

    With ``final`` it stands in place of a final caption that could not be made, and is acknowledged like one.
    """

    type: Literal["error"] = "error"
    code: Literal[tuple(CODES)]  # type: ignore[valid-type]
    message: str = Field(description="one sentence that says what is wrong and what is allowed")
    field: str | None = Field(None, description="the field that is wrong, such as `options.beta`, if it is one")
    fatal: bool = False
    request: str | None = Field(None, description="`type` of the message that was refused, if it was one")
    utterance: str | None = None
    seq: int | None = None
    language: str | None = None
    final: bool | None = None


class Done(Told):
    """Everything has been translated and sent."""

    type: Literal["done"] = "done"


FromClient: TypeAlias = (
    Start | UpdateMessage | Audio | AudioEnd | Ack | Declare | Restore | Pause | Hide | Correct | NameSpeaker | End
)
#: Messages that viewers can get.
ToViewer: TypeAlias = Alive | Partial | Final | Stats | Pause | Hide | RoomState | Error | Done
FromServer: TypeAlias = Started | ToViewer | NameSpeaker | Listening | Recognised
#: The same as tuples.
CONTROL, CLIENT, VIEWED, SERVER = map(
    get_args, (Pause | Hide | Correct | NameSpeaker, FromClient, ToViewer, FromServer)
)
_BY_TYPE = Field(discriminator="type")
FROM_CONTROL: TypeAdapter[Control] = TypeAdapter(Control)
FROM_CLIENT: TypeAdapter[FromClient] = TypeAdapter(Annotated[FromClient, _BY_TYPE])
FROM_SERVER: TypeAdapter[FromServer] = TypeAdapter(Annotated[FromServer, _BY_TYPE])


#: Maximum length of the page's text field in characters, each up to four bytes in UTF-8 and more in JSON escapes.
MOST_CHARACTERS = 500_000


class Translate(Wanted):
    """A text to translate (HTTP)."""

    text: str = Field(min_length=1, max_length=events.LONGEST_TEXT)


class Translations(Message):
    """The translations of one text (HTTP)."""

    translations: dict[str, str] = Field(description="by target language")
    failures: list[str] = Field(default_factory=list, description="what went wrong, one sentence each")


class Text(Message):
    """A text to split into sentences (HTTP)."""

    text: str = Field(min_length=1, max_length=MOST_CHARACTERS)


class Sentences(Message):
    """The sentences of a text (HTTP)."""

    sentences: tuple[str, ...]


class OfferedOption(Message):
    """An option of a decoding method: a number, or one of ``words``."""

    name: str
    help: str = Field(description="what it is")
    default: float | str
    allowed: str = Field(description="the allowed values in words")
    words: tuple[str, ...] = Field((), description="the allowed values, if they are words")


class OfferedMethod(Message):
    """A decoding method."""

    summary: str = Field(description="what it does")
    options: tuple[OfferedOption, ...]


class Offer(Message):
    """What a client may ask for on this server (HTTP)."""

    protocol: int = VERSION
    methods: tuple[str, ...] = Field(description="decoding methods, the default first")
    about: dict[str, OfferedMethod] = Field(description="these methods with their options")
    source_languages: tuple[str, ...] = Field((), description="languages that the model was trained on; any if empty")
    target_languages: tuple[str, ...] = Field((), description="languages that the model was trained on; any if empty")
    most_targets: int = Field(description="maximum target languages per session")
    most_glossary: int = Field(description="maximum entries of a glossary for one language")
    key: bool = Field(description="whether an API key is needed")
    model: str = Field(description="name of the model that translates")
    recogniser: str | None = Field(None, description="what recognises audio that is sent; null if audio is refused")
    sentences: bool = Field(True, description="whether recognised speech is cut into sentences by default")
    audio_backlog: float = Field(BACKLOG_SECONDS, description="seconds of audio that may wait to be recognised")
    transcript_seconds: float = Field(0, description="seconds for which a transcript is kept after its session ends")
    transcripts: dict[str, str] = Field(description="formats of transcripts, with names for people")
    demo: bool = Field(description="whether that is the small model for trying Redraft out")
