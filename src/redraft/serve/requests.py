"""What the endpoints share: reading requests, finding what they are about, and saying why one is refused."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from email.message import EmailMessage
from typing import TypeVar

from pydantic import ValidationError
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response

from redraft.serve import protocol
from redraft.serve.hub import Hub
from redraft.serve.live import LiveSession
from redraft.serve.refusals import CODES, Refused
from redraft.serve.rooms import Room
from redraft.serve.viewing import room_named, session_named
from redraft.serve.watched import Watched

T = TypeVar("T")
Endpoint = Callable[[Request], Awaitable[Response]]

#: Names of UTF-8, and of its first half.
_CHARSETS = {"utf-8", "utf8", "us-ascii", "ascii"}


def answering(endpoint: Endpoint) -> Endpoint:
    """The endpoint, with refusals turned into answers."""

    async def answer(request: Request) -> Response:
        try:
            return await endpoint(request)
        except Refused as refused:
            return refusal(refused.code, refused.sentence)
        except ClientDisconnect:  # in the middle of the body: nobody reads the answer
            return Response(status_code=400)

    return answer


def refusal(code: str, sentence: str, status: int | None = None, headers: Mapping[str, str] | None = None) -> Response:
    """An error as it is sent."""
    headers = {**(headers or {}), **({"www-authenticate": "Bearer"} if code == "key" else {})}
    headers |= {"retry-after": "5"} if CODES[code].status in (429, 503) else {}
    body = {"error": {"code": code, "message": sentence}}
    return JSONResponse(body, status or CODES[code].status, headers)


def allowed(request: Request) -> tuple[Hub, str]:
    """The hub and whose key was given."""
    hub: Hub = request.app.state.hub
    return hub, hub.owner(bearer(request.headers.get("authorization", "")))


def bearer(header: str) -> str | None:
    """The key in an ``Authorization`` header."""
    scheme, _, key = header.partition(" ")
    return key.strip() if scheme.lower() == "bearer" else None


def address_of(request: Request) -> str:
    """Where a request came from, by which sessions are counted."""
    return request.client.host if request.client else ""


def owned(request: Request) -> LiveSession:
    """The session of the token in a request's path.

    Raises:
        Refused: there is none.
    """
    found: LiveSession = request.app.state.hub.owned(request.path_params["token"])
    return found


async def viewed(request: Request) -> Watched:
    """The session that viewers know by the name in a request's path.

    Raises:
        Refused: there is none.
    """
    return await session_named(request.app.state.hub, request.path_params["session"])


async def room_of(request: Request) -> Room:
    """The room in a request's path.

    Raises:
        Refused: there is none.
    """
    try:
        return await room_named(request.app.state.hub, request.path_params["room"])
    except Refused as refused:
        raise Refused("missing", refused.sentence) from None


def languages(request: Request, known: Sequence[str]) -> list[str]:
    """The target languages that a query asks for; all, if it names none.

    Raises:
        Refused: one is not among those that are known.
    """
    wanted = list(dict.fromkeys(request.query_params.getlist("language"))) or list(known)
    if unknown := [target for target in wanted if target not in known]:
        raise Refused("option", f"language must be one of {', '.join(known)}, not {unknown[0][:100]!r}")
    return wanted


def whole(request: Request, name: str) -> int:
    """A whole number in the query.

    Raises:
        Refused: it is missing, or is none.
    """
    text = request.query_params.get(name, "")
    if not (text.isascii() and text.isdigit() and len(text) <= 15):
        raise Refused("option", f"{name} must be given, as a whole number of 0 or more with at most 15 digits")
    return int(text)


def flag(request: Request, name: str, *, default: bool) -> bool:
    """Yes or no in the query.

    Raises:
        Refused: it is neither.
    """
    text = request.query_params.get(name)
    if text not in (None, "true", "false", "1", "0"):
        raise Refused("option", f"{name} must be true or false")
    return default if text is None else text in ("true", "1")


async def read_bytes(request: Request, most: int | None = None) -> bytes:
    """The body, of at most so many bytes: those that the operator allows, if None.

    Raises:
        Refused: it has more.
    """
    most = request.app.state.hub.settings.message_bytes if most is None else most
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > most:
            raise Refused("size", f"a request must have at most {most} bytes")
    return bytes(body)


def text_of(body: bytes, content_type: str) -> str:
    """A body of plain text, which must be UTF-8 and not be called anything else.

    Raises:
        Refused: it is in another encoding.
    """
    header = EmailMessage()
    header["content-type"] = content_type or "text/plain"
    charset = header.get_content_charset("utf-8")
    try:
        if charset not in _CHARSETS:
            raise UnicodeError
        return body.decode()
    except UnicodeError:
        raise Refused("protocol", "the body must be UTF-8: send it as text/plain; charset=utf-8") from None


async def body_of(
    request: Request, read: Callable[[bytes], T], *kinds: type[protocol.Message], most: int | None = None
) -> T:
    """The message in a body of JSON.

    Args:
        request: what has the body.
        read: makes the message.
        kinds: what it could be.
        most: as of `read_bytes`.

    Raises:
        Refused: there is none, or it is not as it should be.
    """
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise Refused("protocol", "the content type must be application/json")
    try:
        return read(await read_bytes(request, most))
    except ValidationError as error:
        raise Refused("protocol", protocol.sentence(error, *kinds)) from None


def answer_of(message: protocol.Message, status: int = 200) -> Response:
    """A message as an answer."""
    return Response(message.wire(), status, media_type="application/json")
