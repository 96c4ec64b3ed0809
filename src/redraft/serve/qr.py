"""QR codes of viewers' links."""

from __future__ import annotations

import io
import re
from functools import lru_cache
from urllib.parse import urlsplit

import segno

from redraft.serve.refusals import Refused

#: The most characters of a link; the code of as many takes 0.1 seconds to make.
MOST_LINK = 500
#: The end of the path of a link to a session, or to a room.
_WATCH = re.compile(r"/watch(/[^/]+)?$")


@lru_cache(maxsize=256)
def qr_code(link: str) -> bytes:
    """An SVG, black on white with the margin that readers need.

    The browser knows the address under which it has reached the server, and the server behind a proxy does not.  So the
    link is given whole; what does not look like a viewer's is refused.

    Raises:
        Refused: it is not the link of a viewer.
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
