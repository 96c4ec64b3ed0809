"""Subtitles in order of utterances, although languages finish at different times."""

from __future__ import annotations

from collections.abc import Sequence

from redraft.captions.events import Caption, Event, Failure
from redraft.captions.formats.write import Ends, SubtitleWriter

#: Maximum number of utterances for which subtitles wait for a missing language.
_PATIENCE = 8


class InOrder:
    """Passes final captions to a subtitle writer in order of utterances, even if languages finish at different times.

    Args:
        writer: the subtitle writer, which is closed together with this one.
        languages: the languages of an utterance's captions.
    """

    def __init__(self, writer: SubtitleWriter, languages: Sequence[str]) -> None:
        self.writer, self._languages = writer, tuple(languages)
        self._held: dict[str, tuple[list[Caption], Ends]] = {}

    def write(self, event: Event) -> None:
        """Write an event; a final caption waits for its turn."""
        if isinstance(event, Failure) or not event.final:
            self.writer.write(event)
        if event.utterance is None or (isinstance(event, Caption) and not event.final):
            return
        captions, ends = self._held.setdefault(event.utterance, ([], Ends()))
        ends.note(event)
        if isinstance(event, Caption):
            captions.append(event)
        while self._held and self._complete():
            self._release()

    def _complete(self) -> bool:
        _, ends = next(iter(self._held.values()))
        return not ends.missing(self._languages) or len(self._held) > _PATIENCE

    def _release(self) -> None:
        captions, _ = self._held.pop(next(iter(self._held)))
        for caption in captions:
            self.writer.write(caption)

    def close(self) -> None:
        """Write everything that still waits."""
        while self._held:
            self._release()
        self.writer.close()
