"""The page, the views for viewers, and what they need to know; their files are in ``web`` as they are served."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import FileResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

WEB = Path(__file__).parent / "web"
#: Path -> file: the page, captions on a transparent ground for streaming programs and the form that builds their
#: address, and somebody else's session.
PAGES = {
    "/": "index.html",
    "/overlay": "overlay.html",
    "/overlay-form": "overlay-form.html",
    "/watch": "watch.html",
    "/icon.svg": "icon.svg",
}


async def watch_room(request: Request) -> Response:
    """A short link to a room leads to the page of its viewers; what it asks for stays."""
    query = [("room", request.path_params["room"]), *request.query_params.multi_items()]
    return RedirectResponse(f"/watch?{urlencode(query)}")


def routes() -> list[BaseRoute]:
    """All of the above, and every file; nothing at the root that would take the paths of others."""
    return [
        *(Route(path, _file(name), methods=["GET"]) for path, name in PAGES.items()),
        Route("/watch/{room}", watch_room, methods=["GET"]),
        *(Mount(f"/{folder}", StaticFiles(directory=WEB / folder)) for folder in ("css", "js")),
    ]


def _file(name: str) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        return FileResponse(WEB / name)

    return answer
