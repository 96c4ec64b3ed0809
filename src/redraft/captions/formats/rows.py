"""Reading mode for any writer: it receives complete lines, each as a final caption."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace

from redraft.captions.events import Caption, Event, Failure
from redraft.captions.formats.write import Writer
from redraft.captions.reading import Layout, Reading


class RowsWriter:
    """Converts growing captions to lines that never change (`redraft.captions.reading`).

    Lines are named after their utterance: ``7.1``, ``7.2``.

    Args:
        writer: receives the lines; closed together with this one.
        layout: layout of the lines.
        clock: returns the time in seconds.
    """

    def __init__(self, writer: Writer, layout: Layout, clock: Callable[[], float] = time.monotonic) -> None:
        self.writer, self._clock = writer, clock
        self._languages: defaultdict[str, Reading] = defaultdict(lambda: Reading(layout))
        self._counts: defaultdict[tuple[str, str], int] = defaultdict(int)

    def write(self, event: Event) -> None:
        """Write the lines that an event completes; failures are passed on."""
        if isinstance(event, Failure):
            self.writer.write(event)
            return
        for line in self._languages[event.language].read(event, self._clock()):
            self._put(event, line)
        if event.final:
            self._counts.pop((event.utterance, event.language), None)

    def _put(self, caption: Caption, line: str) -> None:
        key = caption.utterance, caption.language
        self._counts[key] += 1
        name = f"{caption.utterance}.{self._counts[key]}"
        # Only the last line of an utterance can be cut off.
        cut = caption.cut and caption.final
        self.writer.write(replace(caption, utterance=name, text=line, unstable="", final=True, cut=cut))

    def close(self) -> None:
        """Close the writer; incomplete lines of unfinished utterances are dropped."""
        self.writer.close()
