"""Between captions and failures and the messages that tell of them."""

from __future__ import annotations

from redraft.captions.events import Caption, Failure, as_object
from redraft.serve import protocol


def partial_of(caption: Caption, lag_ms: float) -> protocol.Partial:
    """The message for a caption that may still change."""
    return protocol.Partial(**as_object(caption), lag_ms=lag_ms)


def final_of(caption: Caption, begun: float | None = None, lag_ms: float = 0.0) -> protocol.Final:
    """The message for a final caption; ``begun`` is when its utterance had begun, in seconds."""
    return protocol.Final(**as_object(caption), begun=begun, lag_ms=lag_ms)


def error_of(failure: Failure, language: str, *, final: bool) -> protocol.Error:
    """The message for a failure; ``final`` if there is no final caption because of it."""
    return protocol.Error(**{**as_object(failure), "language": language}, code="translation", final=final or None)


def caption_of(message: protocol.Partial | protocol.Final) -> Caption:
    """The caption in a message."""
    final = isinstance(message, protocol.Final)
    unstable = "" if isinstance(message, protocol.Final) else message.unstable
    place = message.utterance, message.seq, message.language
    return Caption(*place, message.text, unstable, final, message.time, message.source, bool(message.cut))


def failure_of(message: protocol.Error) -> Failure:
    """The failure in a message."""
    return Failure(message.message, None, message.utterance, message.seq, message.language)
