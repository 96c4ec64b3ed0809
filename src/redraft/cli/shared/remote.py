"""``redraft translate --server``: translate a stream on a server."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from typing import Any, TypeAlias

from redraft.captions.events import Caption, Event, Failure
from redraft.captions.formats.read import Item
from redraft.captions.formats.rows import RowsWriter
from redraft.captions.formats.write import Ends, SubtitleWriter, Writer
from redraft.cli.shared import keys
from redraft.cli.shared.ending import Ending
from redraft.cli.shared.keys import Keys
from redraft.cli.shared.notice import notice
from redraft.cli.shared.stream import show_to
from redraft.client import Client, ServerError
from redraft.errors import InputError

#: Maximum number of items read ahead of sending.
_AHEAD = 16
#: Maximum number of utterances for which subtitles wait for a missing language.
_PATIENCE = 8

_NO_KEY = "the server needs an API key: set REDRAFT_KEY in the environment, or use --key"

#: Passed on by the reading thread: an item, its exception, or None at the end.
_Read: TypeAlias = "Item | Exception | None"


def run(
    items: Iterable[Item],
    writer: Writer,
    to: Sequence[str],
    watch: Callable[[Event], object] | None = None,
    *,
    key: str | None = None,
    ending: Ending | None = None,
    controls: bool = False,
    opened: Callable[[Client], object] = lambda client: None,
    news: Callable[[str], object] = notice,
    **wanted: Any,
) -> bool:
    """Translate a stream on a server; return whether everything succeeded.

    The URL of the viewers' page is printed to standard error when the session starts.  If the output is closed, the
    server still gets what has been recognised, for its viewers.

    Args:
        items: the updates.
        writer: writes the captions.
        to: target languages.
        watch: called with each event once it is written.
        key: API key, if the server needs one.
        ending: the end of the updates, which is asked for if an event cannot be written; None if they cannot be ended.
        controls: whether keys of the terminal control what viewers see (`redraft.cli.shared.keys`), if there is one.
        opened: called with the client before it connects.
        news: called with one sentence when the server stays away, and when it is back.
        wanted: further arguments of `redraft.client.Client`.

    Raises:
        ServerError: the server cannot be reached, refuses, or the connection is lost for good.
        OptionError: the address or an option is invalid.
        OSError: the output cannot be written.
    """
    client = Client(to=to, key=key, **wanted)
    opened(client)
    show_to(client.control, writer)
    ordered = InOrder(writer, to) if isinstance(writer, SubtitleWriter) else writer
    try:
        return asyncio.run(_run(items, ordered, client, watch, ending, controls, news))
    except ServerError as error:
        if error.code != "key":
            raise
        raise ServerError(
            error.code, _NO_KEY if key is None else f"{error}; it was given by --key or REDRAFT_KEY"
        ) from None
    finally:
        if isinstance(ordered, InOrder):
            ordered.close()


async def _run(
    items: Iterable[Item],
    writer: Writer,
    client: Client,
    watch: Callable[[Event], object] | None,
    ending: Ending | None,
    controls: bool,
    news: Callable[[str], object],
) -> bool:
    whole, closed = True, None
    client.news = news
    async with client:
        if ending is not None:
            ending.when_asked(partial(_in_loop, client.hurry, asyncio.get_running_loop()))
        print(f"viewers: {client.viewers_page}", file=sys.stderr, flush=True)
        with _controlled(client, writer, ending) if controls else nullcontext() as pressed:
            reading = asyncio.create_task(_send(ReadAhead(items), client, writer))
            try:
                async for event in client:
                    # The error message may be lost with a connection, but the truncated final caption is not.
                    whole = whole and not (isinstance(event, Failure) or (event.final and event.cut))
                    if pressed is not None:
                        await pressed.free()
                        pressed.seen(event)
                    if closed is not None:
                        continue
                    try:
                        writer.write(event)
                    except OSError as error:
                        closed = error
                        if ending is not None:
                            ending.stop()
                        continue
                    if watch:
                        watch(event)
                whole = await reading and whole
                if closed is not None:
                    raise closed
                return whole
            finally:
                reading.cancel()
                with suppress(asyncio.CancelledError):
                    await reading


@contextmanager
def _controlled(client: Client, writer: Writer, ending: Ending | None) -> Iterator[Keys | None]:
    """Control what viewers see by keys, if there is a terminal; a line that is edited is left when the end is near."""
    pressed = Keys(client.control, notice, keys.draw, lambda: keys.held(writer))
    with keys.from_terminal(pressed.press) as possible:
        if not possible:
            yield None
            return
        notice(keys.HELP)
        if ending is not None:
            ending.when_asked(partial(_in_loop, pressed.leave, asyncio.get_running_loop()))
        try:
            yield pressed
        finally:
            pressed.leave()


def _in_loop(call: Callable[[], object], loop: asyncio.AbstractEventLoop) -> None:
    with suppress(RuntimeError):  # the loop has been closed
        loop.call_soon_threadsafe(call)


async def _send(ahead: ReadAhead, client: Client, writer: Writer) -> bool:
    """Send the items; return whether all could be sent."""
    whole = True
    try:
        while (item := await ahead.get()) is not None:
            if isinstance(item, Failure):
                whole = False
                writer.write(item)
                continue
            if isinstance(writer, InOrder | RowsWriter):  # a server may skip the first updates of an utterance
                writer.begin(item.utterance, item.time)
            try:
                await client.send(item)
            except InputError as error:
                whole = False
                writer.write(Failure(str(error), None, item.utterance, item.seq))
    finally:
        await client.end()
    return whole


class ReadAhead:
    """Reads items on a daemon thread, since a terminal may never deliver another line."""

    def __init__(self, items: Iterable[Item]) -> None:
        self._items, self._loop = items, asyncio.get_running_loop()
        self._queue: asyncio.Queue[_Read] = asyncio.Queue()
        self._ahead = threading.Semaphore(_AHEAD)
        threading.Thread(target=self._read, name="redraft-reader", daemon=True).start()

    def _read(self) -> None:
        with suppress(RuntimeError):  # the event loop has closed
            try:
                for item in self._items:
                    self._hand(item)
            except Exception as error:
                self._hand(error)
            else:
                self._hand(None)

    def _hand(self, item: _Read) -> None:
        self._ahead.acquire()
        self._loop.call_soon_threadsafe(self._queue.put_nowait, item)

    async def get(self) -> Item | None:
        """Return the next item, or None at the end; raises the reading thread's exception."""
        item = await self._queue.get()
        self._ahead.release()
        if isinstance(item, Exception):
            raise item
        return item


class InOrder:
    """Passes final captions to a subtitle writer in order of utterances, even if languages finish at different times.

    Args:
        writer: the subtitle writer.
        languages: the languages of an utterance's captions.
    """

    def __init__(self, writer: SubtitleWriter, languages: Sequence[str]) -> None:
        self._writer, self._languages = writer, tuple(languages)
        self._held: dict[str, tuple[list[Caption], Ends]] = {}

    def begin(self, utterance: str, time: float | None) -> None:
        """Record the start of an utterance in seconds."""
        self._writer.begin(utterance, time)

    def write(self, event: Event) -> None:
        """Write an event; a final caption waits for its turn."""
        if isinstance(event, Failure) or not event.final:
            self._writer.write(event)
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
            self._writer.write(caption)

    def close(self) -> None:
        """Write everything that still waits; the writer stays open."""
        while self._held:
            self._release()
