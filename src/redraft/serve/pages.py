"""The page, the views for those who only watch, and what pages need to know; their files lie in ``web`` as served."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from redraft.serve.hub import Hub
from redraft.talk import load_talk

WEB = Path(__file__).parent / "web"


async def offer(request: Request) -> Response:
    """What a client may ask for here."""
    hub: Hub = request.app.state.hub
    return Response(hub.offer().wire(), media_type="application/json")


async def talk(request: Request) -> Response:
    """The updates of the demo talk."""
    return JSONResponse([asdict(update) for update in load_talk()])


async def overlay(request: Request) -> Response:
    """Captions on a transparent ground, for streaming programs."""
    return FileResponse(WEB / "overlay.html")


async def watch(request: Request) -> Response:
    """Captions of somebody else's session."""
    return FileResponse(WEB / "watch.html")


def routes() -> list[BaseRoute]:
    """All of the above; everything else that is asked for is looked for among the files."""
    plain = {"/v1/offer": offer, "/v1/talk": talk, "/overlay": overlay, "/watch": watch}
    return [
        *(Route(path, endpoint, methods=["GET"]) for path, endpoint in plain.items()),
        Mount("/", StaticFiles(directory=WEB, html=True)),
    ]
