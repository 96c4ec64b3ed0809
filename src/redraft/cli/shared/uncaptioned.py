"""Text that has been recognised but has no final caption yet, which is named if a stream ends too early."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace

import click

from redraft.captions.events import Caption, Event, Failure, Update
from redraft.captions.formats.read import Item
from redraft.captions.formats.write import failure_line
from redraft.cli.shared.ending import Ending, Interrupted
from redraft.speech.backlog import Backlog

#: Seconds for reading the rest of an input after a failure: of a pipe, which ends at once, and of others.
_DRAINED, _LAST = 10.0, 0.5


@dataclass(slots=True)
class _Open:
    """An utterance: its newest update, and the languages without a final caption."""

    newest: Update
    missing: list[str]


class Uncaptioned:
    """The utterances without a final caption in every language; can be used from any thread."""

    def __init__(self, languages: Sequence[str]) -> None:
        self._languages = tuple(languages)
        self._open: dict[str, _Open] = {}
        self._lock = threading.Lock()

    def __len__(self) -> int:
        with self._lock:
            return sum(bool(each.newest.text.strip()) for each in self._open.values())

    def recognised(self, items: Iterable[Item], ending: Ending) -> Iterator[Item]:
        """Pass on what is recognised; if the end is asked for before anything is, no failure either."""
        begun = False
        for item in items:
            if isinstance(item, Update):
                begun = True
                with self._lock:
                    each = self._open.setdefault(item.utterance, _Open(item, list(self._languages)))
                    each.newest = item
            if begun or not ending.asked:
                yield item

    def written(self, event: Event) -> None:
        """Note an event that has been written; the failure of a final update ends its utterance too."""
        with self._lock:
            each = self._open.get(event.utterance or "")
            if each is None:
                return
            last = each.newest
            if event.final if isinstance(event, Caption) else last.final and event.seq == last.seq:
                each.missing = [one for one in each.missing if event.language not in (one, None)]
            if not each.missing:
                del self._open[last.utterance]

    def failures(self) -> list[Failure]:
        """Return a failure for each utterance with words, which names the missing languages and has the whole text."""
        with self._lock:
            return [
                Failure(f"no caption: {text}", utterance=name, language=", ".join(each.missing))
                for name, each in self._open.items()
                if (text := each.newest.text.strip())
            ]


@contextmanager
def accounted(
    items: Iterable[Item], ending: Ending, languages: Sequence[str], *, timed: bool = False
) -> Iterator[tuple[Backlog, Callable[[Event], None]]]:
    """Read items on a thread; if the block fails, name what has no caption on standard error.

    Args:
        ending: asks for the end of the items.
        timed: whether live updates without a time get that at which they came, in seconds from now.

    Yields:
        The items, and what to call with each event once it is written.

    Raises:
        Exit: a second signal has ended the block.
    """
    uncaptioned = Uncaptioned(languages)
    items = _timed(items) if timed and ending.live else items
    backlog = Backlog(uncaptioned.recognised(items, ending), live=ending.live)
    ending.open, ending.settle = uncaptioned.__len__, backlog.wait
    ending.when_asked(backlog.hurry)
    try:
        yield backlog, uncaptioned.written
    except BaseException as error:
        ending.stop()
        backlog.wait(_DRAINED if ending.drains else _LAST)
        with suppress(OSError):
            for failure in uncaptioned.failures():
                click.echo(failure_line(failure), err=True)
        if isinstance(error, Interrupted) and ending.signal is not None:
            raise click.exceptions.Exit(128 + ending.signal) from None
        raise
    finally:
        ending.stop()
        backlog.close()


def _timed(items: Iterable[Item], clock: Callable[[], float] = time.monotonic) -> Iterator[Item]:
    """Time what has no time by the clock."""
    opened = clock()
    for item in items:
        if isinstance(item, Update) and item.time is None:
            yield replace(item, time=round(clock() - opened, 3))
        else:
            yield item
