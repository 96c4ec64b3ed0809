"""What sessions are called: by their owners, and by others; and how rooms may be called."""

from __future__ import annotations

import hashlib
import secrets

#: The names of rooms, which are part of addresses, as a regular expression and in words.
ROOM_NAME = r"^[a-z0-9][a-z0-9_-]{0,62}$"
ROOM_RULE = "1 to 63 lower-case letters, digits, hyphens and underscores, the first a letter or a digit"


def new_token() -> str:
    """A fresh secret that names a session to its owner."""
    return secrets.token_urlsafe(24)


def public_name(token: str) -> str:
    """What names a session to viewers; the same after a restart of the server, and no way back to the token."""
    return hashlib.sha256(token.encode()).hexdigest()[:32]
