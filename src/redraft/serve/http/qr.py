"""QR codes of viewers' links, made one at a time in a thread, since requests for them need no key."""

from __future__ import annotations

import asyncio
import io
import re
from collections import OrderedDict

import segno

from redraft.protocol.codes import Refused
from redraft.serve.access import Rate, Rates
from redraft.serve.http.security import parsed_url

#: Maximum length of a link in characters; making its code takes 0.05 seconds.
MOST_LINK = 500
#: Number of codes that are kept.
_MOST_KEPT = 256
#: New codes per second, and at once: of one address, and of all.  Making one holds up captions, though in a thread.
_EACH, _ALL = (0.2, 5), (0.5, 8)
#: End of the path of a link to a session or a room.
_WATCH = re.compile(r"/watch(/[^/]+)?$")


class QrCodes:
    """Makes codes, and keeps the latest."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, bytes] = OrderedDict()
        self._rates, self._rate = Rates(*_EACH), Rate(*_ALL)
        self._turn = asyncio.Lock()

    async def code(self, link: str, address: str) -> bytes:
        """Return the code of a viewer's link as an SVG: black on white, with the quiet zone that readers need.

        The caller passes the full link, since a server behind a proxy does not know its public address.

        Args:
            address: the address of the client, whose rate is limited.

        Raises:
            Refused: it is not a viewer's link, or too many codes have been asked for.
        """
        _check(link)
        async with self._turn:
            if link not in self._kept:
                if wait := self._rates.take(address) or self._rate.take():
                    raise Refused("limit", f"too many QR codes in a short time: try again in {wait:.1f} seconds")
                self._kept[link] = await asyncio.to_thread(_made, link)
                if len(self._kept) > _MOST_KEPT:
                    self._kept.popitem(last=False)
            self._kept.move_to_end(link)
            return self._kept[link]


def _check(link: str) -> None:
    parts = parsed_url(link)
    fits = parts.scheme in ("http", "https") and parts.hostname and _WATCH.search(parts.path)
    if not fits or not link.isascii() or not link.isprintable():
        raise Refused("option", "link must be a viewer's, such as https://example.org/watch?session=NAME", "link")


def _made(link: str) -> bytes:
    out = io.BytesIO()
    segno.make(link, error="m", micro=False).save(
        out, kind="svg", xmldecl=False, omitsize=True, border=4, dark="#000", light="#fff"
    )
    return out.getvalue()
