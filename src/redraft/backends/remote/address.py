"""What a user types for a model on a server: ``vllm:http://host:8000/MODEL#TOKENIZER``.

Standard library only, so that names can be recognised and refused without the extra.
"""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit

from redraft.captions.events import is_whole
from redraft.errors import ModelError, OptionError

ENGINES = ("vllm", "sglang")
FORM = "ENGINE:http://HOST:PORT/MODEL#TOKENIZER"

#: Environment variable that holds the API key of the server.
KEY_VARIABLE = "REDRAFT_REMOTE_KEY"


@dataclass(frozen=True, slots=True)
class RemoteOptions:
    """Options of a remote backend; all are checked.

    Attributes:
        context_length: ids that prompt and output may have together; what the server allows lowers it.
        slots: how many independent sequences, and so how many requests at a time.
        ahead: tokens that one request continues an output by where nothing is drafted; 1 asks for every token.
        timeout: seconds to wait for an answer, or for the next token of one.
        plugin: whether the server verifies drafts by itself if it can (`docs/vllm-plugin.md`).

    Raises:
        OptionError: a value is not allowed.
    """

    context_length: int = 2048
    slots: int = 1
    ahead: int = 64
    timeout: float = 60.0
    plugin: bool = True

    def __post_init__(self) -> None:
        for name, low, high in (("context_length", 16, 1 << 20), ("slots", 1, 4096), ("ahead", 1, 1024)):
            value = getattr(self, name)
            if not is_whole(value) or not low <= value <= high:
                raise OptionError(f"{name} must be a whole number from {low} to {high}, not {value!r}")
        if not 0 < self.timeout <= 3600:
            raise OptionError(f"timeout must be a number of seconds up to 3600, not {self.timeout!r}")


@dataclass(frozen=True, slots=True)
class Address:
    """A model on a server.

    Attributes:
        engine: one of `ENGINES`.
        server: scheme, host and port, such as ``http://127.0.0.1:8000``.
        model: what the server calls the model; empty for the only one that it serves.
        tokenizer: folder or hub name of the tokenizer; empty for the model's own.
    """

    engine: str
    server: str
    model: str = ""
    tokenizer: str = ""

    @classmethod
    def parse(cls, name: str) -> Address:
        """The address that a name stands for.

        Raises:
            ModelError: it is no such address.
        """
        engine, _, url = name.partition(":")
        try:
            parts = urlsplit(url)
            host, _port, user = parts.hostname, parts.port, parts.username
        except ValueError as error:
            raise ModelError(f"model {name!r} is not {FORM}: {error}") from error
        if engine not in ENGINES or parts.scheme not in ("http", "https") or not host or parts.query:
            raise ModelError(f"model {name!r} is not {FORM}, where ENGINE is {' or '.join(ENGINES)}")
        if user is not None:
            raise ModelError(f"the address of {engine} holds a user name: put the API key into {KEY_VARIABLE} instead")
        return cls(engine, f"{parts.scheme}://{parts.netloc}", parts.path.removeprefix("/"), parts.fragment)


def is_remote(name: str) -> bool:
    """Whether a name is that of a model on a server."""
    return name.partition(":")[0] in ENGINES
