"""The bodies of HTTP requests and responses that are no messages of a websocket."""

from __future__ import annotations

from pydantic import Field

from redraft.captions import events
from redraft.protocol.messages import BACKLOG_SECONDS, VERSION, Message, Wanted

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
