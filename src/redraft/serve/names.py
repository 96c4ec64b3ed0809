"""Names of sessions, for owners and for viewers, and of rooms."""

from __future__ import annotations

import hashlib
import secrets

#: Allowed names of rooms, which are part of URLs: as a regular expression and in words.
ROOM_NAME = r"^[a-z0-9][a-z0-9_-]{0,62}$"
ROOM_RULE = "1 to 63 lower-case letters, digits, hyphens and underscores, the first a letter or a digit"


def new_token() -> str:
    """Return a new secret token, by which the owner of a session resumes it."""
    return secrets.token_urlsafe(24)


def public_name(token: str) -> str:
    """Return the name of a session for viewers: stable across server restarts, and not reversible to the token."""
    return hashlib.sha256(token.encode()).hexdigest()[:32]
