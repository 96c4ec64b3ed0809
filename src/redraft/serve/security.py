"""Who may connect: API keys, web origins, host names, how often; and the headers that every answer carries."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, MutableMapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from redraft.errors import OptionError

#: A fresh key has 256 random bits, so a plain hash of it cannot be reversed by trying.
_KEY_BYTES = 32
#: Addresses whose rates are remembered.
_MOST_ADDRESSES = 10_000

HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
    ),
    "cache-control": "no-cache",  # of the page: parts of two versions must not meet
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=(self)",
}


class Keys:
    """API keys, kept as hashes: a file with a line ``name:sha256`` for each; every name has one key.

    Raises:
        OptionError: the file cannot be read, or has a line that is invalid or has the name of an earlier one.
    """

    def __init__(self, path: Path) -> None:
        self._hashes: dict[str, bytes] = {}
        lines_of: dict[str, int] = {}
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise OptionError(f"keys file {str(path)!r} cannot be read: {error}") from None
        for number, line in enumerate(lines, 1):
            if not line.strip() or line.startswith("#"):
                continue
            name, _, digest = line.strip().rpartition(":")
            try:
                known = bytes.fromhex(digest)
            except ValueError:
                known = b""
            if not name or len(known) != hashlib.sha256().digest_size:
                raise OptionError(
                    f"keys file {str(path)!r}, line {number}: must be NAME:SHA256, as --new-key writes it"
                )
            if name in lines_of:
                raise OptionError(
                    f"keys file {str(path)!r}, line {number}: line {lines_of[name]} has a key named {name!r} already; "
                    "delete the line of the key that is no longer used, or rename one"
                )
            self._hashes[name], lines_of[name] = known, number

    def __contains__(self, name: str) -> bool:
        """Whether there is a key of this name."""
        return name in self._hashes

    def owner(self, key: str) -> str | None:
        """Whose key it is; takes the same time whatever is wrong with it."""
        digest, found = hashlib.sha256(key.encode()).digest(), None
        for name, known in self._hashes.items():
            if hmac.compare_digest(digest, known):
                found = name
        return found


def new_key(path: Path, name: str) -> str:
    """Make a key, append its hash to the file, and return it; nobody can read it from there again.

    Raises:
        OptionError: the name is invalid or taken, or the file cannot be read or written.
    """
    if not name or ":" in name or name.strip() != name or not name.isprintable() or name.startswith("#"):
        raise OptionError(
            f"the name of a key must not contain a colon, begin with # or have spaces around it, not {name!r}"
        )
    if path.exists() and name in Keys(path):
        raise OptionError(
            f"keys file {str(path)!r} has a key named {name!r} already: choose another name, or delete its line first, "
            "which revokes that key"
        )
    key = f"rd_{secrets.token_urlsafe(_KEY_BYTES)}"
    try:
        path.touch(mode=0o600, exist_ok=True)
        apart = "" if path.read_bytes()[-1:] in (b"", b"\n") else "\n"
        with path.open("a", encoding="utf-8") as file:
            file.write(f"{apart}{name}:{hashlib.sha256(key.encode()).hexdigest()}\n")
    except OSError as error:
        raise OptionError(f"keys file {str(path)!r} cannot be written: {error}") from None
    return key


class Rate:
    """A bucket of tokens: so many a second, and some saved up.

    Args:
        per_second: how fast it fills.
        burst: how much it holds; at least one.
    """

    def __init__(self, per_second: float, burst: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_second, self._burst, self._clock = per_second, max(1.0, burst), clock
        self._left, self._when = self._burst, clock()

    def take(self) -> float:
        """Take one and return 0; if there is none, in how many seconds there will be."""
        now = self._clock()
        self._left = min(self._burst, self._left + (now - self._when) * self._per_second)
        self._when = now
        if self._left >= 1:
            self._left -= 1
            return 0.0
        return (1 - self._left) / self._per_second


class Rates:
    """A `Rate` for every address, as far as they are remembered."""

    def __init__(self, per_second: float, burst: float) -> None:
        self._per_second, self._burst = per_second, burst
        self._rates: OrderedDict[str, Rate] = OrderedDict()

    def take(self, address: str) -> float:
        """As `Rate.take`, for one address."""
        rate = self._rates.setdefault(address, Rate(self._per_second, self._burst))
        self._rates.move_to_end(address)
        if len(self._rates) > _MOST_ADDRESSES:
            self._rates.popitem(last=False)
        return rate.take()


class Guard:
    """Middleware: refuses foreign hosts and origins, and adds `HEADERS` to every answer.

    A browser lets any page open a websocket anywhere and tells its origin; who asks without one is no browser.  The
    check of the host keeps names that somebody else points here from passing for this server's own.

    Args:
        app: what is guarded.
        hosts: names under which the server is reached; empty allows all.
        origins: further origins whose pages may connect.
    """

    def __init__(self, app: ASGIApp, hosts: Iterable[str] = (), origins: Iterable[str] = ()) -> None:
        self._app, self._origins = app, frozenset(origins)
        self._hosts = frozenset(host.lower() for host in hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or hand it on."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return

        async def with_headers(message: Message) -> None:
            if message["type"] in ("http.response.start", "websocket.http.response.start"):
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        if sentence := self._refusal(scope):
            await JSONResponse({"error": {"code": "origin", "sentence": sentence}}, 403)(scope, receive, with_headers)
            return
        await self._app(scope, receive, with_headers)

    def _refusal(self, scope: MutableMapping[str, Any]) -> str:
        headers = Headers(scope=scope)
        host, origin = headers.get("host", ""), headers.get("origin")
        if self._hosts and _name(host) not in self._hosts:
            return "the server is not known by this host name: the operator can allow it with the setting hosts"
        safe = scope["type"] == "http" and scope["method"] in ("GET", "HEAD")
        if origin is not None and not safe and origin not in self._origins and _place(origin) != host:
            return "pages of this origin may not connect: the operator can allow it with the setting origins"
        return ""


def _name(host: str) -> str:
    """A host without its port."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def _place(origin: str) -> str:
    """An origin's host and port."""
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return ""
