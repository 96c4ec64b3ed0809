"""The address of Redis."""

from __future__ import annotations

from urllib.parse import urlsplit

from redraft.errors import OptionError


def place_of(url: str) -> str:
    """Return the address of Redis without user and password.

    Raises:
        OptionError: the address is invalid.
    """
    try:
        parts = urlsplit(url)
        number = parts.path.strip("/")
        if parts.scheme not in ("redis", "rediss") or not parts.hostname or not (number.isdigit() or not number):
            raise invalid_address()
        return f"{parts.hostname}:{parts.port or 6379}"
    except ValueError:
        raise invalid_address() from None


def invalid_address() -> OptionError:
    """Return the error to raise for an address that cannot be used."""
    return OptionError("fanout must be an address such as redis://host:6379/0, or rediss://host:6379/0 with TLS")
