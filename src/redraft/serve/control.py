"""Session owner's control over the captions that viewers see: pause, hide, correct."""

from __future__ import annotations

from dataclasses import replace

from redraft.serve import protocol
from redraft.serve.live import LiveSession


def control(session: LiveSession, message: protocol.Control) -> str:
    """Execute a control message; return an error message, or an empty string on success."""
    if isinstance(message, protocol.Pause):
        session.delivery.pause(message.paused)
        return ""
    if problem := _unknown(session, message.utterance, message.language):
        return problem
    if isinstance(message, protocol.Correct):
        return _correct(session, message)
    for language in session.targets if message.language is None else (message.language,):
        session.delivery.hide((message.utterance, language), message.hidden)
    session.file.outdated = True
    return ""


def _correct(session: LiveSession, message: protocol.Correct) -> str:
    caption = session.transcript.get((message.utterance, message.language))
    if caption is None:
        return "only a final caption can be corrected, and the utterance has none in this language"
    session.kept += len(message.text) - len(caption.text)
    session.delivery.correct(replace(caption, text=message.text))
    session.file.outdated = True
    return ""


def _unknown(session: LiveSession, utterance: str, language: str | None) -> str:
    if language is not None and language not in session.targets:
        return f"language must be one of {', '.join(session.targets)}"
    if utterance not in session.inbox and not any((utterance, each) in session.transcript for each in session.targets):
        return "utterance must be the name of one that the session has had an update of"
    return ""
