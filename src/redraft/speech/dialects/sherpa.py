"""The protocol of sherpa-onnx's streaming websocket servers, in C++ and in Python.

The client sends 32-bit floats.  Responses contain the ``text`` so far of a ``segment``, whose number changes when a
segment ends.  The C++ server also sends ``is_final`` with a segment's last text, and its start time; it ends with
``Done!``.  A segment may be sent again after its end.
"""

from __future__ import annotations

import json
from dataclasses import replace

from redraft.speech.audio import Samples
from redraft.speech.dialect import Dialect
from redraft.speech.recogniser import Hypothesis

SUMMARY = "streaming websocket server of sherpa-onnx: ws://HOST:6006"
PATH = "/"


class SherpaDialect(Dialect):
    """State of one connection; see `redraft.speech.dialect.Dialect`."""

    goodbye = "Done"

    def __init__(self) -> None:
        self._segment = 0
        #: The newest text of the segment, unless it is final.
        self._open: Hypothesis | None = None
        #: Text of the current segment that is final already; empty before its end.
        self._ended = ""

    def audio(self, samples: Samples) -> bytes:
        """Return 32-bit floats, little-endian."""
        return samples.astype("<f4").tobytes()

    def read(self, message: str | bytes, now: float) -> list[Hypothesis]:
        """Return the current segment, preceded by the final previous one if the server did not mark its end."""
        if message == "Done!":
            self.over = True
            return []
        found = json.loads(message)
        ended: list[Hypothesis] = []
        if found["segment"] != self._segment:
            if self._open and self._open.text:
                ended.append(replace(self._open, final=True))
            self._segment, self._open, self._ended = found["segment"], None, ""
        text, before = found["text"].strip(), self._ended
        if before and f"{before} ".startswith(f"{text} "):
            return ended
        if before and text.startswith(f"{before} "):
            text = text[len(before) :].lstrip()
        start, times = found.get("start_time"), found.get("timestamps")
        end = start + times[-1] if start is not None and times else now
        made = Hypothesis(text, end if start is None else start, end, found.get("is_final", False))
        self._open = None if made.final else made
        if made.final:
            self._ended = found["text"].strip()
        return [*ended, made]


dialect = SherpaDialect
