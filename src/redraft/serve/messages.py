"""Convert captions and failures to messages and back."""

from __future__ import annotations

from redraft.captions.events import Caption, Failure, as_object
from redraft.serve import protocol


def partial_of(caption: Caption, lag_ms: float) -> protocol.Partial:
    """Return the message for a partial caption."""
    return protocol.Partial(**as_object(caption), lag_ms=lag_ms)


def final_of(caption: Caption, begun: float | None = None, lag_ms: float = 0.0) -> protocol.Final:
    """Return the message for a final caption; ``begun`` is the start time of its utterance in seconds."""
    return protocol.Final(**as_object(caption), begun=begun, lag_ms=lag_ms)


def error_of(failure: Failure, language: str, *, final: bool) -> protocol.Error:
    """Return the message for a failure; ``final`` means the utterance gets no final caption because of it."""
    return protocol.Error(**{**as_object(failure), "language": language}, code="translation", final=final or None)


def caption_of(message: protocol.Partial | protocol.Final) -> Caption:
    """Return the caption in a message."""
    final = isinstance(message, protocol.Final)
    unstable = "" if isinstance(message, protocol.Final) else message.unstable
    place = message.utterance, message.seq, message.language
    return Caption(*place, message.text, unstable, final, message.time, message.source, bool(message.cut))


def failure_of(message: protocol.Error) -> Failure:
    """Return the failure in a message."""
    return Failure(message.message, None, message.utterance, message.seq, message.language)
