"""The HTTP endpoints, and the API in one table; `tools.api` makes its description from the same."""

from __future__ import annotations

import asyncio
import io
import re
from collections import OrderedDict, defaultdict
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import asdict
from functools import cache, wraps
from typing import Any, Literal, Self, TypeVar

import segno
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.datastructures import QueryParams
from starlette.requests import ClientDisconnect, HTTPConnection, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from redraft import deadlines, protocol
from redraft.captions import events, languages
from redraft.captions.formats.write import FORMATS, TRANSCRIPTS
from redraft.captions.sentence import cut_text
from redraft.captions.spoken import AUTO
from redraft.captions.talk import load_talk
from redraft.errors import OptionError
from redraft.protocol import MOST_CHARACTERS, Line, Sentences, Text, Translate, Translations
from redraft.protocol.codes import CODES, Refused, describe
from redraft.serve.access import Rate, Rates, one_client
from redraft.serve.http.security import parsed_url
from redraft.serve.sessions.hub import Hub
from redraft.serve.sessions.live import LiveSession
from redraft.serve.sessions.rooms import Room, Session
from redraft.tasks import beside

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


T = TypeVar("T")
Endpoint = Callable[[Request], Awaitable[Response]]

MOST_BYTES = 6 * MOST_CHARACTERS
#: Maximum number of languages in a query; a session has fewer.
MOST_LANGUAGES = 64


def refusal(refused: Refused, status: int, headers: Mapping[str, str] | None = None) -> Response:
    """Return the response to a refused request."""
    return JSONResponse(refused.body, status, {**(headers or {}), **refused.headers})


def answering(endpoint: Endpoint, refuse: Callable[[Refused, int], Response] = refusal) -> Endpoint:
    """Wrap an endpoint to convert refusals to responses; ``refuse`` makes one, given the status of our own API."""

    @wraps(endpoint)
    async def answer(request: Request) -> Response:
        try:
            return await endpoint(request)
        except Refused as refused:
            request.app.state.hub.metrics.count_refusal(refused.code)
            return refuse(refused, CODES[refused.code].status)
        except ClientDisconnect:  # disconnected while sending the body
            return Response(status_code=400)

    return answer


def allowed(request: Request) -> tuple[Hub, str]:
    """Return the hub and the owner of the request's API key."""
    hub: Hub = request.app.state.hub
    return hub, hub.admission.owner(bearer(request))


def bearer(request: HTTPConnection, scheme: str = "bearer") -> str | None:
    """Return the key in the ``Authorization`` header of a request."""
    found, _, key = request.headers.get("authorization", "").partition(" ")
    return key.strip() if found.lower() == scheme else None


def address_of(request: HTTPConnection) -> str:
    """Return a client's address, by which sessions are counted; see `one_client`."""
    return one_client(request.client.host) if request.client else ""


def owned(request: Request) -> LiveSession:
    """Return the session of the token in a request's path.  Raises `Refused` if the session does not exist."""
    found: LiveSession = request.app.state.hub.owned(request.path_params["token"])
    return found


async def viewed(request: Request) -> Session:
    """Return the session with the public name in a request's path.  Raises `Refused` if the session does not exist."""
    return await request.app.state.hub.session_named(request.path_params["session"])


async def room_of(request: Request) -> Room:
    """Return the room in a request's path.  Raises `Refused` if the room does not exist."""
    try:
        return await request.app.state.hub.room_named(request.path_params["room"])
    except Refused as refused:
        raise Refused("missing", refused.sentence) from None


def language_of(name: str, field: str = "language") -> languages.Language:
    """Return the language with a tag or an English name.  Raises `Refused`, which names the field, if it is unknown."""
    try:
        return languages.parse_language(name, field)
    except OptionError as error:
        raise Refused.of("option", error) from None


def wanted_languages(query: QueryParams) -> frozenset[str]:
    """Return the canonical tags of the languages that a viewer asks for; empty for all.

    The session need not have them, since a later session in the same room may; `auto` is what is spoken where any
    language may be.

    Raises:
        Refused: one of them is no language, or there are too many.
    """
    wanted = query.getlist("language")
    if len(wanted) > MOST_LANGUAGES:
        raise Refused("option", f"language must be given at most {MOST_LANGUAGES} times, not {len(wanted)}", "language")
    return frozenset(AUTO if each == AUTO else language_of(each).canonical for each in wanted)


class Lenient(BaseModel):
    """A query or a body whose other fields are ignored: services and tools that send captions add their own."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    @classmethod
    def checked(cls, found: Mapping[str, Any] | str, code: str = "protocol") -> Self:
        """Validate fields, or JSON.  Raises `Refused` with this code if one is missing or invalid."""
        try:
            return cls.model_validate_json(found) if isinstance(found, str) else cls.model_validate(found)
        except ValidationError as error:
            raise Refused.of(code, describe(error, cls)) from None


class Query(Lenient):
    """A query."""

    @classmethod
    def of(cls, request: Request) -> Self:
        """Parse the query of a request; only ``language`` may be repeated.  Raises `Refused` if it is invalid."""
        found = request.query_params
        return cls.checked(
            {name: found.getlist(name) if name == "language" else found[name] for name in found}, "option"
        )


async def read_bytes(request: Request, most: int | None = None) -> bytes:
    """Read a body of at most ``most`` bytes, or the operator's limit.  Raises `Refused` if it is larger, or late."""
    most = request.app.state.hub.settings.message_bytes if most is None else most
    body = bytearray()
    try:
        async with asyncio.timeout(deadlines.REQUEST):
            async for piece in request.stream():
                body += piece
                if len(body) > most:
                    raise Refused("size", f"a request must have at most {most} bytes")
    except TimeoutError:
        raise Refused("protocol", f"the body must arrive within {deadlines.REQUEST:g} seconds") from None
    return bytes(body)


async def body_of(request: Request, read: Callable[[bytes], T], *kinds: type, most: int | None = None) -> T:
    """Read a message of one of these kinds from a JSON body.  Raises `Refused` if it is missing or invalid."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise Refused("protocol", "the content type must be application/json")
    try:
        return read(await read_bytes(request, most))
    except ValidationError as error:
        raise Refused.of("protocol", describe(error, *kinds)) from None


def answer_of(message: protocol.Message, status: int = 200) -> Response:
    """Return a message as a response."""
    return Response(message.wire(), status, media_type="application/json")


def split(text: Text) -> Sentences:
    """Split a text into sentences, as texts are before they are translated; a line break always ends one.

    Browsers can split text too (`Intl.Segmenter`), but end a sentence after "Dr.": they do not use ICU's lists of
    abbreviations, even with ``en-u-ss-standard``.
    """
    return Sentences(sentences=tuple(sentence for sentence, _ in cut_text(text.text) if sentence))


async def while_connected(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """Return the result of work, which is given up once the client has gone.  Raises `ClientDisconnect` then."""

    async def gone() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    async with beside(work, gone()) as tasks:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        if not tasks[0].done():
            raise ClientDisconnect
        result: T = tasks[0].result()
    return result


async def translate_text(request: Request) -> Response:
    """Translate one text, sentence by sentence."""
    hub, _ = allowed(request)
    wanted = await body_of(request, Translate.model_validate_json, Translate)
    work = hub.admission.translate(wanted, [wanted.text], address_of(request))
    (found,) = await while_connected(request, work)
    failures = dict.fromkeys(remark for each in found.values() for remark in each.remarks)
    texts = {language: each.text for language, each in found.items()}
    return answer_of(Translations(translations=texts, failures=list(failures)))


async def sentences(request: Request) -> Response:
    """Split a text into sentences."""
    allowed(request)
    text = await body_of(request, Text.model_validate_json, Text, most=MOST_BYTES)
    return answer_of(await asyncio.to_thread(split, text))


async def begin(request: Request) -> Response:
    """Start a session that receives captions by POST."""
    hub, owner = allowed(request)
    wanted = await body_of(request, protocol.Begin.model_validate_json, protocol.Begin)
    session, _ = await hub.open(wanted, owner, address_of(request))
    return answer_of(session.started(hub.name, hub.settings.message_bytes), 201)


class CaptionQuery(Query):
    """The query of a caption by POST."""

    seq: int = Field(ge=0, le=2**53, description="counts the captions")
    final: bool = Field(True, description="false while the text still grows")
    speaker: Line = Field("", max_length=100, description="who is speaking")


async def ingest(request: Request) -> Response:
    """Send a caption; the response is the seq of the newest one.

    The body is its text, perhaps with YouTube's lines with times.  A repeated caption is ignored, so that a client
    without a response can send it again.
    """
    hub: Hub = request.app.state.hub
    session = owned(request)
    query = CaptionQuery.of(request)
    try:
        text = (await read_bytes(request)).decode()
    except UnicodeDecodeError:
        raise Refused("protocol", "the body must be UTF-8: send it as text/plain; charset=utf-8") from None
    if len(text) > events.LONGEST_TEXT:
        raise Refused("size", f"a caption must have at most {events.LONGEST_TEXT} characters")
    await session.rate.turn()
    await session.room()
    hub.admission.check_working()
    session.posted(query.seq, text, final=query.final, speaker=query.speaker or None)
    return PlainTextResponse(f"{session.posts.newest}\n")


async def ingested(request: Request) -> Response:
    """Get the seq of the newest caption; -1 before the first."""
    return PlainTextResponse(f"{owned(request).posts.newest}\n")


async def finish(request: Request) -> Response:
    """End a session that receives captions by POST."""
    owned(request).end()
    return Response(status_code=204)


async def decide(request: Request) -> Response:
    """Pause captions for viewers, hide one or correct one."""
    session = owned(request)
    message = await body_of(request, protocol.FROM_CONTROL.validate_json, *protocol.CONTROL)
    await session.rate.turn()
    session.control(message)
    return Response(status_code=204)


async def about(request: Request) -> Response:
    """Get the languages of a session, as viewers see them."""
    session = await viewed(request)
    body = {
        "session": session.name,
        "source_language": session.transcript.source,
        "targets": session.transcript.targets,
        "done": session.done,
    }
    return JSONResponse(body)


async def room(request: Request) -> Response:
    """Get the current session of a room."""
    return answer_of((await room_of(request)).message())


class TranscriptQuery(Query):
    """The query of a transcript."""

    format: Literal[TRANSCRIPTS] = Field("txt", description="form")  # type: ignore[valid-type]
    language: tuple[str, ...] = Field(
        (),
        max_length=MOST_LANGUAGES,
        description="languages, of which one may be the language that is spoken; all target languages if absent",
    )
    live: bool = Field(False, description="keep sending until the session ends")


async def transcript(request: Request) -> Response:
    """Get the final captions of a session, or of the latest session of a room, also for a while after its end."""
    if "room" not in request.path_params:
        session = await viewed(request)
    elif (latest := (await room_of(request)).latest) is not None:
        session = latest
    else:
        raise Refused("missing", "the room has had no session, or its transcript has been deleted")
    found, query = session.transcript, TranscriptQuery.of(request)
    form, live = query.format, query.live
    languages = list(dict.fromkeys(map(found.language, query.language))) or list(found.targets)
    kind = f"{FORMATS[form].media_type}; charset=utf-8"
    if live and request.method == "GET" and not session.done:
        request.app.state.hub.check_places(session)
        return StreamingResponse(session.broadcast.read(form, languages), media_type=kind)
    # Hours of talk take a while to export, and must not block others.
    async with request.app.state.hub.exports:
        if form == "txt" and len(languages) > 1:
            text = await asyncio.to_thread(found.document, languages)
        else:
            text = await asyncio.to_thread(found.text, form, languages)
    some = () if languages == list(found.targets) else languages
    name = "-".join([session.begin.room or session.name[:8], *some])
    name = re.sub(r"[^\w-]+", "-", name, flags=re.ASCII)
    return Response(text, headers={"content-disposition": f'attachment; filename="{name}.{form}"'}, media_type=kind)


async def health(request: Request) -> Response:
    """Report whether the server works; 503 if it should be restarted."""
    return _state(request.app.state.hub.engines.alive, "the engine has stopped, or hangs")


async def ready(request: Request) -> Response:
    """Report whether the server accepts new sessions; 503 if not."""
    hub: Hub = request.app.state.hub
    late = any(each.late for each in hub.engines.all)
    well = hub.engines.alive and not late and not hub.admission.draining
    return _state(well, "the server is being stopped, or its model does not answer")


async def metrics(request: Request) -> Response:
    """Get metrics for Prometheus."""
    hub, _ = allowed(request)
    return Response(hub.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")


async def offer(request: Request) -> Response:
    """Get the methods, languages and limits of this server."""
    hub: Hub = request.app.state.hub
    wire = await hub.fanout.offer() if hub.settings.viewers_only else hub.offer.wire()
    return Response(wire, media_type="application/json")


async def talk(request: Request) -> Response:
    """Return the updates of the demo talk."""
    return Response(demo_talk(), media_type="application/json")


@cache
def demo_talk() -> bytes:
    """Return the updates of the demo talk as JSON."""
    return bytes(JSONResponse([asdict(update) for update in load_talk()]).body)


class Link(Query):
    """The query of a QR code."""

    link: str = Field(max_length=MOST_LINK, description="the link")


async def qr(request: Request) -> Response:
    """Get the QR code of a viewer's link, as SVG."""
    return Response(
        await request.app.state.qr_codes.code(Link.of(request).link, address_of(request)), media_type="image/svg+xml"
    )


def _state(well: bool, sentence: str) -> Response:
    return JSONResponse({"status": "ok"}) if well else refusal(Refused("engine", sentence), 503)


#: Method, path with parameter names in braces, and endpoint, whose docstring's first line is the summary.
OPERATIONS: tuple[tuple[str, str, Endpoint], ...] = (
    ("POST", "/v1/translate", translate_text),
    ("POST", "/v1/sentences", sentences),
    ("POST", "/v1/sessions", begin),
    ("GET", "/v1/sessions/{session}", about),
    ("GET", "/v1/sessions/{session}/transcript", transcript),
    ("GET", "/v1/rooms/{room}", room),
    ("GET", "/v1/rooms/{room}/transcript", transcript),
    ("POST", "/v1/control/{token}", decide),
    ("POST", "/v1/ingest/{token}", ingest),
    ("GET", "/v1/ingest/{token}", ingested),
    ("GET", "/v1/ingest/{token}/seq", ingested),
    ("DELETE", "/v1/ingest/{token}", finish),
    ("GET", "/v1/offer", offer),
    ("GET", "/v1/talk", talk),
    ("GET", "/v1/qr", qr),
    ("GET", "/health", health),
    ("GET", "/ready", ready),
    ("GET", "/metrics", metrics),
)


def _by_method(endpoints: Mapping[str, Endpoint]) -> Endpoint:
    """Make one endpoint for all methods of a path, so that a 405 response lists them all."""

    async def answer(request: Request) -> Response:
        return await endpoints["GET" if request.method == "HEAD" else request.method](request)

    return answer


def routes() -> list[Route]:
    """Return a route for every path of the table."""
    found: dict[str, dict[str, Endpoint]] = defaultdict(dict)
    for method, path, endpoint in OPERATIONS:
        found[path][method] = endpoint
    return [Route(path, answering(_by_method(each)), methods=list(each)) for path, each in found.items()]
