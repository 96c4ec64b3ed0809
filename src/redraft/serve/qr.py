"""QR codes for viewers' links."""

from __future__ import annotations

import io
import re
from functools import lru_cache
from urllib.parse import urlsplit

import segno

from redraft.serve.refusals import Refused

#: Maximum length of a link in characters; making the code for one of this length takes 0.1 seconds.
MOST_LINK = 500
#: End of the path of a link to a session or a room.
_WATCH = re.compile(r"/watch(/[^/]+)?$")


@lru_cache(maxsize=256)
def qr_code(link: str) -> bytes:
    """Make the QR code of a viewer's link as an SVG: black on white, with the quiet zone that readers need.

    The caller passes the full link, since a server behind a proxy does not know its public address.

    Raises:
        Refused: it is not a viewer's link.
    """
    try:
        parts = urlsplit(link)
        fits = parts.scheme in ("http", "https") and parts.hostname and _WATCH.search(parts.path)
    except ValueError:
        fits = False
    if not fits or len(link) > MOST_LINK or not link.isascii() or not link.isprintable():
        raise Refused(
            "option",
            f"link must be a viewer's, as https://example.org/watch?session=NAME, of at most {MOST_LINK} characters",
        )
    out = io.BytesIO()
    segno.make(link, error="m", micro=False).save(
        out, kind="svg", xmldecl=False, omitsize=True, border=4, dark="#000", light="#fff"
    )
    return out.getvalue()
