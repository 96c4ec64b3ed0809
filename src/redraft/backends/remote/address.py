"""The address of a model on a server: ``vllm:http://host:8000/MODEL#TOKENIZER``.

Uses only the standard library, so that names can be recognised and rejected without the extra.
"""

from __future__ import annotations

from dataclasses import dataclass

from redraft.errors import ModelError
from redraft.proxies import address_parts

ENGINES = ("vllm", "sglang")
FORM = "ENGINE:http://HOST:PORT/MODEL#TOKENIZER"

#: Environment variable with the server's API key.
KEY_VARIABLE = "REDRAFT_REMOTE_KEY"


@dataclass(frozen=True, slots=True)
class Address:
    """A model on a server.

    Attributes:
        engine: one of `ENGINES`.
        server: scheme, host and port, such as ``http://127.0.0.1:8000``.
        model: name of the model on the server; empty if it serves only one.
        tokenizer: folder or hub name of the tokenizer; empty for the model's own.
    """

    engine: str
    server: str
    model: str = ""
    tokenizer: str = ""

    @classmethod
    def parse(cls, name: str) -> Address:
        """Parse an address.

        Raises:
            ModelError: it is invalid.
        """
        engine, _, url = name.partition(":")
        parts = address_parts(url, "http", "https")
        if engine not in ENGINES or parts is None or parts.query:
            raise ModelError(f"model {name!r} is not {FORM}, where ENGINE is {' or '.join(ENGINES)}")
        if parts.username is not None:
            raise ModelError(f"the address of {engine} holds a user name: put the API key into {KEY_VARIABLE} instead")
        return cls(engine, f"{parts.scheme}://{parts.netloc}", parts.path.removeprefix("/"), parts.fragment)


def is_remote(name: str) -> bool:
    """Whether a name is the address of a model on a server."""
    return name.partition(":")[0] in ENGINES
