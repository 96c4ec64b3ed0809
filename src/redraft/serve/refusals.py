"""What is said to a client whose request is not granted: every code that an error can have, and what it means."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Code:
    """A code of errors.

    Attributes:
        means: what it says to the client.
        status: of the answer, over HTTP.
        close: with which a connection is closed that is refused (RFC 6455); 1008 is "against the server's policy".
    """

    means: str
    status: int = 400
    close: int = 1008


CODES = {
    "protocol": Code("a message is not as this page says", close=1002),
    "version": Code("another version of the protocol is needed", close=1002),
    "key": Code("an API key is needed, or the one given is not known", 401),
    "option": Code("something was asked for that is unknown or not allowed here"),
    "room": Code("the room is in use, or this API key may not use it", 409),
    "caption": Code("there is no such caption to hide or to correct", 409),
    "capacity": Code("the server has no room for another session; try again later", 503, 1013),
    "limit": Code("one of the operator's limits is reached", 429),
    "draining": Code("the server is being stopped; connect again in a moment", 503, 1012),
    "stale": Code("an update is older than one that came before", 409),
    "translation": Code("an update could not be translated, or not to its end"),
    "replaced": Code("another connection goes on with this session"),
    "slow": Code("the connection was dropped, since messages were not read in time"),
    "engine": Code("the server cannot translate any more", 503, 1011),
    "missing": Code("there is nothing under this address", 404),
    "size": Code("a request is larger than is allowed here", 413),
}


class Refused(Exception):
    """A request that is not granted; ``code`` is one of `CODES`."""

    def __init__(self, code: str, sentence: str) -> None:
        super().__init__(sentence)
        self.code, self.sentence = code, sentence
