"""The page, the views for viewers, and their static files in ``web``."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import FileResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

WEB = Path(__file__).parent / "web"
#: Path -> file: the page, the overlay with the form for its address, and the page for viewers.
PAGES = {
    "/": "index.html",
    "/overlay": "overlay.html",
    "/overlay-form": "overlay-form.html",
    "/watch": "watch.html",
    "/icon.svg": "icon.svg",
}


async def watch_room(request: Request) -> Response:
    """Redirect a short link to a room to its viewers' page, keeping the query."""
    query = [("room", request.path_params["room"]), *request.query_params.multi_items()]
    return RedirectResponse(f"/watch?{urlencode(query)}")


def routes() -> list[BaseRoute]:
    """Return the routes of pages and static files; none at the root hides other paths."""
    return [
        *(Route(path, _file(name), methods=["GET"]) for path, name in PAGES.items()),
        Route("/watch/{room}", watch_room, methods=["GET"]),
        *(Mount(f"/{folder}", StaticFiles(directory=WEB / folder)) for folder in ("css", "js")),
    ]


def _file(name: str) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        return FileResponse(WEB / name)

    return answer
