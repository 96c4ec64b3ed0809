"""Shared by the HTTP endpoints: reading requests, finding sessions and rooms, and returning errors."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from email.message import EmailMessage
from typing import TypeVar

from pydantic import ValidationError
from starlette.datastructures import QueryParams
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response

from redraft.captions.languages import parse_language
from redraft.errors import OptionError
from redraft.serve import protocol
from redraft.serve.hub import Hub
from redraft.serve.live import LiveSession
from redraft.serve.refusals import CODES, Refused, error_body
from redraft.serve.rooms import Room, Session

T = TypeVar("T")
Endpoint = Callable[[Request], Awaitable[Response]]

#: Names of UTF-8 and of its subset ASCII.
_CHARSETS = {"utf-8", "utf8", "us-ascii", "ascii"}


def answering(endpoint: Endpoint) -> Endpoint:
    """Wrap an endpoint to convert refusals to responses."""

    async def answer(request: Request) -> Response:
        try:
            return await endpoint(request)
        except Refused as refused:
            return refusal(refused.code, refused.sentence)
        except ClientDisconnect:  # disconnected while sending the body
            return Response(status_code=400)

    return answer


def refusal(code: str, sentence: str, status: int | None = None, headers: Mapping[str, str] | None = None) -> Response:
    """Return an error response."""
    headers = {**(headers or {}), **({"www-authenticate": "Bearer"} if code == "key" else {})}
    headers |= {"retry-after": "5"} if CODES[code].status in (429, 503) else {}
    return JSONResponse(error_body(code, sentence), status or CODES[code].status, headers)


def allowed(request: Request) -> tuple[Hub, str]:
    """Return the hub and the owner of the request's API key."""
    hub: Hub = request.app.state.hub
    return hub, hub.admission.owner(bearer(request.headers.get("authorization", "")))


def bearer(header: str) -> str | None:
    """Return the key in an ``Authorization`` header."""
    scheme, _, key = header.partition(" ")
    return key.strip() if scheme.lower() == "bearer" else None


def address_of(request: Request) -> str:
    """Return a client's address, by which sessions are counted."""
    return request.client.host if request.client else ""


def owned(request: Request) -> LiveSession:
    """Return the session of the token in a request's path.

    Raises:
        Refused: the session does not exist.
    """
    found: LiveSession = request.app.state.hub.owned(request.path_params["token"])
    return found


async def viewed(request: Request) -> Session:
    """Return the session with the public name in a request's path.

    Raises:
        Refused: the session does not exist.
    """
    return await request.app.state.hub.session_named(request.path_params["session"])


async def room_of(request: Request) -> Room:
    """Return the room in a request's path.

    Raises:
        Refused: the room does not exist.
    """
    try:
        return await request.app.state.hub.room_named(request.path_params["room"])
    except Refused as refused:
        raise Refused("missing", refused.sentence) from None


def languages(request: Request, known: Sequence[str]) -> list[str]:
    """Return the target languages in a query; all if it has none.

    Raises:
        Refused: the session does not have a language.
    """
    wanted = list(dict.fromkeys(request.query_params.getlist("language"))) or list(known)
    if unknown := [target for target in wanted if target not in known]:
        raise Refused("option", f"language must be one of {', '.join(known)}, not {unknown[0][:100]!r}")
    return wanted


def wanted_languages(query: QueryParams) -> frozenset[str]:
    """Return the languages that a viewer asks for; empty for all.

    The session need not have them, since a later session in the same room may.

    Raises:
        Refused: one of them is no language.
    """
    try:
        return frozenset(parse_language(each, "language").tag for each in query.getlist("language"))
    except OptionError as error:
        raise Refused("option", str(error)) from None


def whole(request: Request, name: str) -> int:
    """Return an integer from the query.

    Raises:
        Refused: it is missing or invalid.
    """
    text = request.query_params.get(name, "")
    if not (text.isascii() and text.isdigit() and len(text) <= 15):
        raise Refused("option", f"{name} must be given, as a whole number of 0 or more with at most 15 digits")
    return int(text)


def flag(request: Request, name: str, *, default: bool) -> bool:
    """Return a boolean from the query.

    Raises:
        Refused: it is invalid.
    """
    text = request.query_params.get(name)
    if text not in (None, "true", "false", "1", "0"):
        raise Refused("option", f"{name} must be true or false")
    return default if text is None else text in ("true", "1")


async def read_bytes(request: Request, most: int | None = None) -> bytes:
    """Read a body of at most ``most`` bytes; None uses the operator's limit.

    Raises:
        Refused: the body is larger.
    """
    most = request.app.state.hub.settings.message_bytes if most is None else most
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > most:
            raise Refused("size", f"a request must have at most {most} bytes")
    return bytes(body)


def text_of(body: bytes, content_type: str) -> str:
    """Decode a plain-text body as UTF-8.

    Raises:
        Refused: it has another encoding.
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


async def body_of(request: Request, read: Callable[[bytes], T], *kinds: type, most: int | None = None) -> T:
    """Read a message from a JSON body.

    Args:
        request: the request.
        read: parses the message.
        kinds: its possible types.
        most: see `read_bytes`.

    Raises:
        Refused: the body is missing or invalid.
    """
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise Refused("protocol", "the content type must be application/json")
    try:
        return read(await read_bytes(request, most))
    except ValidationError as error:
        raise Refused("protocol", protocol.sentence(error, *kinds)) from None


def answer_of(message: protocol.Message, status: int = 200) -> Response:
    """Return a message as a response."""
    return Response(message.wire(), status, media_type="application/json")
