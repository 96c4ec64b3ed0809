"""What a client keeps so that nothing is lost: updates without an answer, and the final captions that it has."""

from __future__ import annotations

from collections.abc import Container, Iterator

from redraft.serve import protocol

#: Final updates without an answer at which a client waits.
MOST_OPEN = 64
#: Bytes of one `restore` message; servers take at least as many.
_RESTORE_BYTES = 16_000


class Ledger:
    """The books of one session.

    Attributes:
        targets: its languages.
        open: by utterance, the newest update that is still to be answered.
    """

    def __init__(self, targets: tuple[str, ...]) -> None:
        self.targets = targets
        self.open: dict[str, protocol.UpdateMessage] = {}
        self._unsent: dict[str, protocol.UpdateMessage] = {}
        self._begun: dict[str, float | None] = {}
        #: By utterance and language, what ended it: the final caption, or None where there is none.
        self._ends: dict[tuple[str, str], protocol.Final | None] = {}

    def add(self, update: protocol.UpdateMessage) -> None:
        """Take an update that is to be sent.  Of utterances that never end only the latest are kept."""
        # The server may never get the first one: it is not sent again after a drop.
        begun = self._begun.setdefault(update.utterance, update.time)
        update = update.model_copy(update={"begun": begun})
        self.open[update.utterance] = self._unsent[update.utterance] = update
        for name in self._partial[:-MOST_OPEN]:
            del self.open[name]

    @property
    def _partial(self) -> list[str]:
        return [name for name, update in self.open.items() if not update.final]

    @property
    def full(self) -> bool:
        """Whether too many final updates are unanswered."""
        return len(self.open) - len(self._partial) >= MOST_OPEN

    def next(self) -> protocol.UpdateMessage | None:
        """The next update to be sent."""
        return self._unsent.pop(next(iter(self._unsent))) if self._unsent else None

    def again(self) -> None:
        """After a drop, have all that is unanswered sent once more."""
        self._unsent = dict(self.open)

    def drop(self, utterance: str) -> None:
        """There will be no answer for an utterance."""
        self.open.pop(utterance, None)

    def conclude(self, utterance: str, language: str, final: protocol.Final | None) -> bool:
        """Note what has ended an utterance in a language; whether that is news.

        Args:
            final: None if there is no caption.
        """
        key = utterance, language
        news = key not in self._ends
        if news:
            begun = self._begun.get(utterance)
            self._ends[key] = final and final.model_copy(update={"begun": begun})
        elif final and final.corrected:
            self._ends[key] = final
        if all((utterance, each) in self._ends for each in self.targets):
            self.open.pop(utterance, None)
            self._unsent.pop(utterance, None)
            self._begun.pop(utterance, None)
        return news

    def restoring(self, hidden: Container[tuple[str, str]]) -> Iterator[str]:
        """Messages that tell a server the captions that it has forgotten.

        Args:
            hidden: utterances and languages that viewers are not to see.
        """
        held: list[protocol.Final] = []
        size = 0
        for key, final in self._ends.items():
            if final is None:
                continue
            final = final.model_copy(update={"hidden": key in hidden or None})
            length = len(final.wire().encode())
            if held and size + length > _RESTORE_BYTES:
                yield protocol.Restore(finals=tuple(held)).wire()
                held, size = [], 0
            held.append(final)
            size += length
        if held:
            yield protocol.Restore(finals=tuple(held)).wire()
