"""``--server``: a stream is translated on a server, whose viewers keys can control."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import Any

from redraft.captions.formats.write import Writer
from redraft.cli.shared import keys
from redraft.cli.shared.driver import Place
from redraft.cli.shared.ending import Ending
from redraft.cli.shared.keys import Keys
from redraft.cli.shared.notice import notice
from redraft.cli.shared.stream import show_to
from redraft.client import Client, ServerError

_NO_KEY = "the server needs an API key: set REDRAFT_KEY in the environment, or use --key"


def place(
    to: Sequence[str], key: str | None, news: Callable[[str], object], *, controls: bool = False, **wanted: Any
) -> Place:
    """Return a server as the place of a stream; the URL of its viewers' page goes to standard error when it begins.

    Args:
        to: target languages.
        key: API key, if the server needs one.
        news: called with one sentence when the server stays away, and when it is back.
        controls: whether keys of the terminal control what viewers see (`redraft.cli.shared.keys`), if there is one.
        wanted: further arguments of `redraft.client.Client`.

    Raises:
        OptionError: the address or an option is invalid.
    """
    client = _Client(to=to, key=key, **wanted)
    client.news, client.refused = news, _NO_KEY if key is None else ""
    return Place(client, partial(_beside, client, controls), viewers=True)


class _Client(Client):
    """A client that names the options of an API key."""

    refused = ""

    async def __aenter__(self) -> Client:
        try:
            return await super().__aenter__()
        except ServerError as error:
            if error.code != "key":
                raise
            sentence = self.refused or f"{error}; it was given by --key or REDRAFT_KEY"
            raise ServerError(error.code, sentence) from None


@contextmanager
def _beside(client: Client, controls: bool, writer: Writer, ending: Ending) -> Iterator[Keys | None]:
    ending.when_asked(client.hurry)
    show_to(client.control, writer)
    print(f"viewers: {client.viewers_page}", file=sys.stderr, flush=True)
    line = keys.TerminalLine(writer)
    pressed = Keys(client.control, notice, line)
    with keys.from_terminal(pressed.press, line) if controls else nullcontext(False) as possible:
        if not possible:
            yield None
            return
        notice(keys.HELP)
        ending.when_asked(pressed.leave)  # drops a line that is being typed
        try:
            yield pressed
        finally:
            pressed.leave()
