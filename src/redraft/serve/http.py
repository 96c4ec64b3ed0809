"""What is asked for over plain HTTP: one text, transcripts, captions by POST, health and metrics."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from email.message import EmailMessage
from typing import TypeVar

from pydantic import ValidationError
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse

from redraft.captions import events
from redraft.captions.formats.read import printable
from redraft.errors import OptionError
from redraft.serve import protocol
from redraft.serve.bodies import Translate, Translations
from redraft.serve.hub import Hub
from redraft.serve.live import FULL, LiveSession
from redraft.serve.refusals import Refused
from redraft.serve.rooms import Room
from redraft.serve.schema import asyncapi, openapi, page
from redraft.serve.sentences import MOST_BYTES, Text, split
from redraft.serve.sockets import bearer, started_of
from redraft.serve.transcript import FORMS

T = TypeVar("T")
Endpoint = Callable[[Request], Awaitable[Response]]

#: Names of UTF-8, and of its first half.
_CHARSETS = {"utf-8", "utf8", "us-ascii", "ascii"}
#: Code of a refusal -> HTTP status; 400 for the rest.
STATUS = {
    "key": 401,
    "capacity": 503,
    "draining": 503,
    "engine": 503,
    "limit": 429,
    "missing": 404,
    "size": 413,
    "stale": 409,
    "room": 409,
    "caption": 409,
}


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


def by_method(endpoints: Mapping[str, Endpoint]) -> Endpoint:
    """One endpoint for several methods of a path, so that whoever takes another one is told of all of them."""

    async def answer(request: Request) -> Response:
        return await endpoints["GET" if request.method == "HEAD" else request.method](request)

    return answer


def refusal(code: str, sentence: str, status: int | None = None, headers: Mapping[str, str] | None = None) -> Response:
    """An error as it is sent."""
    headers = {**(headers or {}), **({"www-authenticate": "Bearer"} if code == "key" else {})}
    headers |= {"retry-after": "5"} if STATUS.get(code) in (429, 503) else {}
    body = {"error": {"code": code, "message": sentence}}
    return JSONResponse(body, status or STATUS.get(code, 400), headers)


async def translate(request: Request) -> Response:
    """Translate one text."""
    hub, _ = _allowed(request)
    wanted = await _body(request, Translate.model_validate_json, Translate)
    found = await hub.exchanges.once(wanted, printable(wanted.text).strip(), address_of(request))
    captions = [event for each in found.values() for event in each if isinstance(event, events.Caption)]
    failures = [event for each in found.values() for event in each if isinstance(event, events.Failure)]
    answer = Translations(
        translations={caption.language: caption.text for caption in captions},
        failures=[failure.message for failure in failures],
    )
    return _json(answer)


async def sentences(request: Request) -> Response:
    """Split a text into sentences."""
    _allowed(request)
    text = await _body(request, Text.model_validate_json, Text, most=MOST_BYTES)
    try:
        return _json(await asyncio.to_thread(split, text))
    except OptionError as error:
        raise Refused("option", str(error)) from None


async def begin(request: Request) -> Response:
    """Begin a session whose captions come by POST."""
    hub, owner = _allowed(request)
    wanted = await _body(request, protocol.Begin.model_validate_json, protocol.Begin)
    session, _ = await hub.open(wanted, owner, address_of(request), by_post=True)
    return _json(started_of(session), 201)


async def ingest(request: Request) -> Response:
    """Take a caption: the body is its text, ``seq`` counts the POSTs.

    One whose ``seq`` came before is passed over, so that a client that got no answer can send it again.
    """
    hub: Hub = request.app.state.hub
    session = _owned(hub, request)
    seq = _whole(request, "seq")
    final = _flag(request, "final", default=True)
    text = _text(await read_bytes(request), request.headers.get("content-type", ""))
    if len(text) > 20_000:
        raise Refused("size", "a caption must have at most 20000 characters")
    while wait := hub.posts.take(session.token):
        await asyncio.sleep(wait)
    await session.inbox.room()
    hub.admission.check_working()
    if session.full:
        raise Refused("limit", FULL)
    if problem := session.posted(seq, printable(text).strip(), final=final):
        raise Refused("stale", problem)
    return PlainTextResponse(f"{session.last_post}\n")


async def ingested(request: Request) -> Response:
    """The ``seq`` of the last POST that was taken, -1 before the first."""
    return PlainTextResponse(f"{_owned(request.app.state.hub, request).last_post}\n")


async def finish(request: Request) -> Response:
    """End a session whose captions come by POST."""
    _owned(request.app.state.hub, request).end()
    return Response(status_code=204)


async def control(request: Request) -> Response:
    """Pause captions for viewers, hide one or correct one."""
    session = _owned(request.app.state.hub, request)
    message = await _body(request, protocol.FROM_CONTROL.validate_json, *protocol.CONTROL)
    while wait := request.app.state.hub.posts.take(session.token):
        await asyncio.sleep(wait)
    if isinstance(message, protocol.Correct) and session.full:
        raise Refused("limit", FULL)
    if problem := session.control(message):
        raise Refused("caption", problem)
    return Response(status_code=204)


async def about(request: Request) -> Response:
    """What viewers may know of a session."""
    session = _viewed(request)
    body = {"session": session.name, "source": session.begin.source, "targets": session.targets, "done": session.done}
    return JSONResponse(body)


async def room(request: Request) -> Response:
    """What a room shows."""
    return _json(_room(request).message())


async def transcript(request: Request) -> Response:
    """The final captions of a session, or of the latest one of a room, all that there are or as they come."""
    session = _room(request).session if "room" in request.path_params else _viewed(request)
    if session is None:
        raise Refused("missing", "no session has begun in this room, or it was forgotten some time after its end")
    form = request.query_params.get("format", "txt")
    if form not in FORMS:
        raise Refused("option", f"format must be one of {', '.join(FORMS)}")
    targets = _targets(request, session.targets)
    kind = f"{FORMS[form]}; charset=utf-8"
    if _flag(request, "live", default=False) and request.method == "GET":
        request.app.state.hub.check_places(session)
        return StreamingResponse(session.read(form, targets), media_type=kind)
    # Hours of talk take a while to be written, in which others must not wait.
    return Response(await asyncio.to_thread(session.transcript.text, form, targets), media_type=kind)


async def health(request: Request) -> Response:
    """Whether the process can do anything at all; if not, it is to be started again."""
    return _state(request.app.state.hub.alive, "the engine has stopped")


async def ready(request: Request) -> Response:
    """Whether newcomers should be sent here."""
    return _state(request.app.state.hub.ready, "the server is being stopped, or its engine has stopped")


async def metrics(request: Request) -> Response:
    """Counters for Prometheus."""
    hub, _ = _allowed(request)
    return Response(hub.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")


async def openapi_json(request: Request) -> Response:
    """The description of what is asked for over HTTP."""
    return JSONResponse(openapi())


async def asyncapi_json(request: Request) -> Response:
    """The description of the websockets."""
    return JSONResponse(asyncapi())


async def docs(request: Request) -> Response:
    """Both descriptions, to be read."""
    return Response(page(), media_type="text/html; charset=utf-8")


def _state(well: bool, sentence: str) -> Response:
    return JSONResponse({"status": "ok"}) if well else refusal("engine", sentence)


def _allowed(request: Request) -> tuple[Hub, str]:
    """The hub and whose key was given."""
    hub: Hub = request.app.state.hub
    return hub, hub.owner(bearer(request.headers.get("authorization", "")))


def address_of(request: Request) -> str:
    """Where a request came from, by which sessions are counted."""
    return request.client.host if request.client else ""


def _owned(hub: Hub, request: Request) -> LiveSession:
    try:
        return hub.owned(request.path_params["token"])
    except Refused as refused:
        raise Refused("missing", refused.sentence) from None


def _viewed(request: Request) -> LiveSession:
    try:
        found: LiveSession = request.app.state.hub.find(request.path_params["session"])
    except Refused as refused:
        raise Refused("missing", refused.sentence) from None
    return found


def _room(request: Request) -> Room:
    try:
        found: Room = request.app.state.hub.rooms.find(request.path_params["room"])
    except Refused as refused:
        raise Refused("missing", refused.sentence) from None
    return found


def _targets(request: Request, known: Sequence[str]) -> list[str]:
    wanted = list(dict.fromkeys(request.query_params.getlist("language"))) or list(known)
    if unknown := [target for target in wanted if target not in known]:
        raise Refused("option", f"language must be one of {', '.join(known)}, not {unknown[0][:100]!r}")
    return wanted


def _whole(request: Request, name: str) -> int:
    text = request.query_params.get(name, "")
    if not (text.isascii() and text.isdigit() and len(text) <= 15):
        raise Refused("option", f"{name} must be given, as a whole number of 0 or more with at most 15 digits")
    return int(text)


def _flag(request: Request, name: str, *, default: bool) -> bool:
    text = request.query_params.get(name)
    if text not in (None, "true", "false", "1", "0"):
        raise Refused("option", f"{name} must be true or false")
    return default if text is None else text in ("true", "1")


async def read_bytes(request: Request, most: int | None = None) -> bytes:
    """The body, of at most so many bytes: those that the operator allows, if None."""
    most = request.app.state.hub.settings.message_bytes if most is None else most
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > most:
            raise Refused("size", f"a request must have at most {most} bytes")
    return bytes(body)


def _text(body: bytes, content_type: str) -> str:
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


async def _body(
    request: Request, read: Callable[[bytes], T], *kinds: type[protocol.Message], most: int | None = None
) -> T:
    """The message in a body of JSON.

    Args:
        request: what has the body.
        read: makes the message.
        kinds: what it could be.
        most: as of `read_bytes`.
    """
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise Refused("protocol", "the content type must be application/json")
    try:
        return read(await read_bytes(request, most))
    except ValidationError as error:
        raise Refused("protocol", protocol.sentence(error, *kinds)) from None


def _json(message: protocol.Message, status: int = 200) -> Response:
    return Response(message.wire(), status, media_type="application/json")
