"""The protocol of vosk-server.

The client sends raw samples, and each message is answered: ``{"partial": "..."}`` with the utterance so far, or
``{"text": "...", "result": [{"word", "start", "end", "conf"}, ...]}`` when it has ended.  Its microphone server sends
the latter to all clients.  An end with the words and times of the one before is the same end.
"""

from __future__ import annotations

import json
from collections import deque
from typing import Any

from redraft.errors import InputError
from redraft.speech.audio import RATE, Samples
from redraft.speech.dialect import Dialect, pcm
from redraft.speech.recogniser import Hypothesis

SUMMARY = "vosk-server: ws://HOST:2700"
PATH = "/"


class Vosk(Dialect):
    """State of one connection; see `redraft.speech.dialect.Dialect`."""

    greeting = json.dumps({"config": {"sample_rate": RATE, "words": True}})
    #: Spelled as in the server's own clients, since the server compares the text.
    goodbye = '{"eof" : 1}'  # then the server closes the connection

    def __init__(self) -> None:
        #: Samples in each unanswered message; then the samples in all answered ones.
        self._sent: deque[int] = deque()
        self._answered = 0
        self._last: list[dict[str, Any]] = []

    def audio(self, samples: Samples) -> bytes:
        """Return signed 16-bit samples."""
        self._sent.append(len(samples))
        return pcm(samples)

    def read(self, message: str | bytes, now: float) -> list[Hypothesis]:
        """Return the current utterance; it is final if the message has its end."""
        if self._sent:
            self._answered += self._sent.popleft()
            now = self._answered / RATE
        found = json.loads(message)
        if "alternatives" in found:
            raise InputError("run the server without VOSK_ALTERNATIVES")
        if "text" in found:
            before, self._last = self._last, found.get("result") or []
            if self._last and self._last == before:
                return []
            words = self._last or [{"start": now, "end": now}]
            return [Hypothesis(found["text"], words[0]["start"], words[-1]["end"], True)]
        return [Hypothesis(found["partial"], now, now)]


dialect = Vosk
