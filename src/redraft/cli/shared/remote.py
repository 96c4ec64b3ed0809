"""``--server``: a stream is translated on a server."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from redraft.captions.formats.write import Writer
from redraft.cli.shared.driver import Place
from redraft.cli.shared.ending import Ending
from redraft.client import Client, ServerError

_NO_KEY = "the server needs an API key: set REDRAFT_KEY in the environment, or use --key"


def place(to: Sequence[str], key: str | None, news: Callable[[str], object], **wanted: Any) -> Place:
    """Return a server as the place of a stream; its addresses go to standard error when the stream begins.

    Args:
        to: target languages.
        key: API key, if the server needs one.
        news: called with one sentence when the server stays away, and when it is back.
        wanted: further arguments of `redraft.client.Client`.

    Raises:
        OptionError: the address or an option is invalid.
    """
    client = _Client(to=to, key=key, **wanted)
    client.news, client.refused = news, _NO_KEY if key is None else ""
    return Place(client, partial(_begun, client), viewers=True)


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


def _begun(client: Client, writer: Writer, ending: Ending) -> None:
    ending.when_asked(client.hurry)
    writer.show_to(client.control)
    print(f"viewers: {client.viewers_page}", file=sys.stderr)
    if sys.stderr.isatty():  # who has it controls what viewers see, so it stays out of logs
        print(f"control: {client.control_address}", file=sys.stderr)
    sys.stderr.flush()
