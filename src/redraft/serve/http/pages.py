"""The page, the views for viewers, and their static files in ``web``."""

from __future__ import annotations

import gzip
import hashlib
import html
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import cache
from mimetypes import guess_type
from pathlib import Path
from urllib.parse import quote, unquote

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from redraft.captions.breaks import rules
from redraft.captions.talk import RECORDING
from redraft.serve.http.security import HEADERS

WEB = Path(__file__).parents[1] / "web"
#: What `tools.api` makes: the descriptions of the API.
API = Path(__file__).parents[1] / "api"
#: Path -> file: the page, the form for the overlay, the pages of rooms and of viewers, and the element.
PAGES = {
    "/": "index.html",
    "/overlay-form": "overlay-form.html",
    "/rooms": "rooms.html",
    "/watch": "watch.html",
    "/redraft-captions.js": "redraft-captions.js",
    "/icon.svg": "icon.svg",
}

#: Pages whose address may end with the name of a room.
OF_ROOMS = ("watch", "overlay", "rooms")

#: The policy of the overlay: OBS adds its "Custom CSS" as text.
STYLED = HEADERS["content-security-policy"].replace("style-src 'self'", "style-src 'self' 'unsafe-inline'")

#: Path of the module `break_rules`, which no file holds.
BREAK_RULES = "js/captions/breaks.js"


def document(title: str, body: str, root: str = "./") -> str:
    """Return a page to read, with the look of the others.

    Like all addresses in pages, its addresses are relative, since a proxy may show the server under a path that the
    server does not know.

    Args:
        body: HTML.
        root: relative address of the server's root.
    """
    return _template("document.html").format(title=html.escape(title), body=body, root=root)


@cache
def _template(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


def missing(path: str) -> str:
    """Return the page for an address where there is nothing; ``path`` is the path in the request, as sent."""
    root = "../" * (path.count("/") - 1) or "./"
    shown = html.escape(unquote(path)[:200])
    return document("not found", _template("missing.html").format(path=shown, root=root), root)


async def of_room(request: Request) -> Response:
    """Redirect the short address of a room's page to the page, keeping the query."""
    query = request.url.query and f"&{request.url.query}"
    page = request.url.path.split("/")[-2]
    return RedirectResponse(f"../{page}?room={quote(request.path_params['room'], safe='')}{query}")


async def overlay(request: Request) -> Response:
    """Return the overlay or, where its address names neither a room nor a session, the form that builds one."""
    if not request.query_params.keys() & {"room", "session"}:
        return RedirectResponse("overlay-form")
    answer = _file(WEB / "overlay.html").answer(request)
    answer.headers["content-security-policy"] = STYLED
    return answer


def routes() -> list[BaseRoute]:
    """Return the routes of pages and static files; none at the root hides other paths."""
    pages = {path: WEB / name for path, name in PAGES.items()} | {"/docs": API / "docs.html"}
    pages |= {f"/{name}": API / name for name in ("openapi.json", "asyncapi.json")}
    return [
        *(Route(path, _files({"": file})) for path, file in pages.items()),
        Route("/talk.ogg", _talk, methods=["GET"]),
        Route("/overlay", overlay, methods=["GET"]),
        *(Route(f"/{page}/{{room}}", of_room, methods=["GET"]) for page in OF_ROOMS),
        *(Route(f"/{folder}/{{name:path}}", _files(_below(WEB / folder))) for folder in ("css", "js")),
    ]


@dataclass(frozen=True, slots=True)
class _File:
    """A text of the pages, compressed once: an audience that opens a page together must not delay captions."""

    plain: bytes
    packed: bytes
    kind: str
    tag: str

    def answer(self, request: Request) -> Response:
        """Return the text, or that the browser has it already."""
        headers = {"etag": self.tag, "vary": "accept-encoding"}
        if self.tag in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        if "gzip" not in request.headers.get("accept-encoding", ""):
            return Response(self.plain, media_type=self.kind, headers=headers)
        return Response(self.packed, media_type=self.kind, headers=headers | {"content-encoding": "gzip"})


@cache
def _file(path: Path) -> _File:
    """Return a file as it was when it was first asked for."""
    plain = break_rules() if path == WEB / BREAK_RULES else path.read_bytes()
    kind = guess_type(path)[0] or "application/octet-stream"
    # Everyone gets the same texts, so their compressed length reveals nothing.
    return _File(plain, gzip.compress(plain, mtime=0), kind, f'"{hashlib.sha256(plain).hexdigest()[:32]}"')


def break_rules() -> bytes:
    """Return the module with the rules of line breaks, for reading mode in a page as here."""
    return f"export default {json.dumps(rules(), ensure_ascii=False)};\n".encode()


def prepare() -> None:
    """Read and compress all files."""
    for path in (*_below(WEB).values(), *API.iterdir()):
        _file(path)


def _below(folder: Path) -> dict[str, Path]:
    """Return the files in a folder of `WEB`, with the one that is made, by their paths there."""
    paths = [WEB / BREAK_RULES, *(path for path in WEB.rglob("*") if path.is_file())]
    return {path.relative_to(folder).as_posix(): path for path in paths if path.is_relative_to(folder)}


def _files(files: Mapping[str, Path]) -> Callable[[Request], Awaitable[Response]]:
    """Return an endpoint that returns the file with the name in a path."""

    async def answer(request: Request) -> Response:
        if (path := files.get(request.path_params.get("name", ""))) is None:
            raise HTTPException(404)
        return _file(path).answer(request)

    return answer


async def _talk(request: Request) -> Response:
    """Return the recording of the talk, or a part of it."""
    return FileResponse(RECORDING, media_type="audio/ogg")
