"""What sessions are called: by their owners, and by others."""

from __future__ import annotations

import hashlib
import secrets


def new_token() -> str:
    """A fresh secret that names a session to its owner."""
    return secrets.token_urlsafe(24)


def public_name(token: str) -> str:
    """What names a session to viewers; the same after a restart of the server, and no way back to the token."""
    return hashlib.sha256(token.encode()).hexdigest()[:32]
