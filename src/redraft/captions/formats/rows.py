"""Reading mode in front of any writer: it is given complete lines, each as a final caption of its own."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace

from redraft.captions.events import Caption, Event, Failure
from redraft.captions.formats.write import Writer
from redraft.captions.reading import Layout, Reading


class RowsWriter:
    """Turns growing captions into lines that never change (`redraft.captions.reading`).

    Lines are named after their utterance: ``7.1``, ``7.2``.

    Args:
        writer: where they go; closed with this one.
        layout: how lines are made.
        clock: the time in seconds.
    """

    def __init__(self, writer: Writer, layout: Layout, clock: Callable[[], float] = time.monotonic) -> None:
        self.writer, self._clock = writer, clock
        self._languages: defaultdict[str, Reading] = defaultdict(lambda: Reading(layout))
        self._counts: defaultdict[tuple[str, str], int] = defaultdict(int)

    def write(self, event: Event) -> None:
        """Write the lines that an event completes; a failure goes on as it is."""
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
        # A line of several ends where the utterance has not: only the last one can be the cut one.
        cut = caption.cut and caption.final
        self.writer.write(replace(caption, utterance=name, text=line, unstable="", final=True, cut=cut))

    def close(self) -> None:
        """Lines of utterances that never ended stay behind, as their captions do in other forms."""
        self.writer.close()
