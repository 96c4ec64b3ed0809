"""The page, the views for viewers, and their static files in ``web``."""

from __future__ import annotations

import html
from collections.abc import Awaitable, Callable
from pathlib import Path
from urllib.parse import unquote, urlencode

from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import FileResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from redraft.captions.talk import RECORDING

#: For texts that are the same for everyone, so that their length tells nothing.
COMPRESSED = [Middleware(GZipMiddleware)]
WEB = Path(__file__).parents[1] / "web"
#: Path -> file: the page, the overlay with the form for its address, and the page for viewers.
PAGES = {
    "/": "index.html",
    "/overlay": "overlay.html",
    "/overlay-form": "overlay-form.html",
    "/watch": "watch.html",
    "/icon.svg": "icon.svg",
}


#: A page to read, with the look of the others.  Like all addresses in pages, its addresses are relative, since a proxy
#: may show the server under a path that the server does not know.
_DOCUMENT = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>Redraft: {title}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="description" content="Redraft, a server for live translation: {title}">
<link rel="icon" href="{root}icon.svg">
<link rel="stylesheet" href="{root}css/base.css">
<link rel="stylesheet" href="{root}css/document.css">
<script src="{root}js/pages/theme.js"></script>
</head>
<body>
<header>
<h1><a href="{root}"><img src="{root}icon.svg" alt="" width="26" height="26">Redraft</a></h1>
<button type="button" id="theme" role="switch" aria-checked="false">Dark</button>
</header>
<main>
{body}
</main>
</body>
</html>
"""
_MISSING = """<h2>There is nothing at this address</h2>
<p><code>{path}</code> is not a page of this server. Its pages are:</p>
<ul>
<li><a href="{root}">Speak</a>: start a session</li>
<li><a href="{root}watch">Watch</a>: captions of a session</li>
<li><a href="{root}overlay-form">Overlay for OBS</a></li>
<li><a href="{root}docs">API</a></li>
</ul>"""


def document(title: str, body: str, root: str = "./") -> str:
    """Return a page to read.

    Args:
        body: HTML.
        root: relative address of the server's root.
    """
    return _DOCUMENT.format(title=html.escape(title), body=body, root=root)


def missing(path: str) -> str:
    """Return the page for an address where there is nothing; ``path`` is the path in the request, as sent."""
    root = "../" * (path.count("/") - 1) or "./"
    return document("not found", _MISSING.format(path=html.escape(unquote(path)[:200]), root=root), root)


async def watch_room(request: Request) -> Response:
    """Redirect a short link to a room to its viewers' page, keeping the query."""
    query = [("room", request.path_params["room"]), *request.query_params.multi_items()]
    return RedirectResponse(f"../watch?{urlencode(query)}")


def routes() -> list[BaseRoute]:
    """Return the routes of pages and static files; none at the root hides other paths."""
    return [
        *(Route(path, _file(WEB / name), methods=["GET"], middleware=COMPRESSED) for path, name in PAGES.items()),
        Route("/talk.ogg", _file(RECORDING, "audio/ogg"), methods=["GET"]),
        Route("/watch/{room}", watch_room, methods=["GET"]),
        *(Mount(f"/{path}", StaticFiles(directory=WEB / path), middleware=COMPRESSED) for path in ("css", "js")),
    ]


def _file(path: Path, kind: str | None = None) -> Callable[[Request], Awaitable[Response]]:
    """Return an endpoint that returns a file, by default as what its name says."""

    async def answer(request: Request) -> Response:
        return FileResponse(path, media_type=kind)

    return answer
