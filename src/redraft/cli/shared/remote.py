"""A stream that is translated by a server; needs the extra ``client``."""

from __future__ import annotations

import sys

from redraft.client import Client, ServerError


class CommandClient(Client):
    """A client that names the options of an API key; its addresses go to standard error when the session begins."""

    async def __aenter__(self) -> Client:
        try:
            await super().__aenter__()
        except ServerError as error:
            if error.code != "key":
                raise
            raise ServerError("key", f"{error} (give it by REDRAFT_KEY in the environment, or --key)") from None
        print(f"viewers: {self.viewers_page}", file=sys.stderr)
        if sys.stderr.isatty():  # who has it controls what viewers see, so it stays out of logs
            print(f"control: {self.control_address}", file=sys.stderr)
        sys.stderr.flush()
        return self
