"""Access control: API keys and rate limits."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import ipaddress
import re
import secrets
import time
from functools import lru_cache
from pathlib import Path

from redraft.errors import OptionError
from redraft.serve.settings import ip_of

#: Random bytes of a new key: 256 bits, so its plain hash cannot be reversed by guessing.
_KEY_BYTES = 32
#: Maximum number of addresses whose rates are tracked.
_MOST_ADDRESSES = 10_000


class ApiKeys:
    """API keys, stored as hashes: one line ``name:sha256`` per key, with unique names.

    Raises:
        OptionError: the file cannot be read, a line is invalid, or a name occurs twice.
    """

    def __init__(self, path: Path) -> None:
        self._hashes: dict[str, bytes] = {}
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            why = getattr(error, "strerror", None) or error
            raise OptionError(f"keys file {str(path)!r} cannot be read: {why}") from None
        for number, line in enumerate(lines, 1):
            if not line.strip() or line.startswith("#"):
                continue
            found = re.fullmatch(r"(.+):([0-9a-fA-F]{64})", line.strip())
            if found is None or found[1] in self._hashes:
                problem = "must be NAME:SHA256, as --new-key writes it, with a name that no other line has"
                raise OptionError(f"keys file {str(path)!r}, line {number}: {problem}")
            self._hashes[found[1]] = bytes.fromhex(found[2])

    def __contains__(self, name: str) -> bool:
        """Whether a key has this name."""
        return name in self._hashes

    def owner(self, key: str) -> str | None:
        """Return the name of a key, or None if it is unknown.  Takes the same time for every wrong key."""
        digest, found = hashlib.sha256(key.encode()).digest(), None
        for name, known in self._hashes.items():
            if hmac.compare_digest(digest, known):
                found = name
        return found


def new_key(path: Path, name: str) -> str:
    """Create a key, append its hash to the file, and return it.  The key itself is not stored.

    Raises:
        OptionError: the name is invalid or taken, or the file cannot be read or written.
    """
    if not name or ":" in name or name.strip() != name or not name.isprintable() or name.startswith("#"):
        raise OptionError(
            f"the name of a key must not contain a colon, begin with # or have spaces around it, not {name!r}"
        )
    if path.exists() and name in ApiKeys(path):
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
    """A token bucket, which is full at first and may be overdrawn.

    Args:
        per_second: tokens that come in a second.
        burst: maximum number of tokens.
    """

    __slots__ = ("_burst", "_filled", "_per_second", "left")

    def __init__(self, per_second: float, burst: float) -> None:
        self._per_second, self._burst = per_second, burst
        #: Number of tokens; less than 0 if it is overdrawn.
        self.left = burst
        self._filled = 0.0

    def fill(self, now: float) -> bool:
        """Add the tokens that have come until ``now``, in seconds of a clock; return whether it is full."""
        self.left = min(self._burst, self.left + (now - self._filled) * self._per_second)
        self._filled = now
        return self.left >= self._burst

    def wait(self, tokens: float = 0.0) -> float:
        """Return the seconds until it has so many tokens; 0 if it has."""
        return max(0.0, tokens - self.left) / self._per_second

    def take(self, now: float | None = None) -> float:
        """Take a token and return 0; if it is empty, return the seconds until the next one.

        A full one that holds less than a token lends the rest.

        Args:
            now: the time, in seconds of the monotonic clock; None reads it.
        """
        self.fill(time.monotonic() if now is None else now)
        if not (wait := self.wait(min(1.0, self._burst))):
            self.left -= 1
        return wait

    async def turn(self) -> None:
        """Wait for a token, and take it."""
        while wait := self.take():
            await asyncio.sleep(wait)


def one_client(address: str) -> str:
    """Return what counts as one client: an address, but of IPv6 the /64, all of which a single client may use."""
    found = ip_of(address.partition("%")[0])
    if not isinstance(found, ipaddress.IPv6Address):
        return address
    return str(found.ipv4_mapped or ipaddress.ip_network((found, 64), strict=False))


class Rates:
    """A `Rate` per client, for the most recent ones; see `one_client`."""

    def __init__(self, per_second: float, burst: float) -> None:
        self._rate_of = lru_cache(_MOST_ADDRESSES)(lambda client: Rate(per_second, burst))

    def take(self, address: str) -> float:
        """Take a token for an address; see `Rate.take`."""
        return self._rate_of(one_client(address)).take()
