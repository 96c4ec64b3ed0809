"""WhisperLiveKit's translation protocol: a websocket over which a recogniser sends committed words and a tail.

It is version 1 of the protocol of AlignAtt4LLM's ``alignatt-mt-server`` (its docs/mt_server_protocol.md).  An update
holds all words of the open utterance, those that the recogniser has committed and a tail that may change.  The answer
holds a translation that only grows within the utterance (``committed_text``) and a draft of the rest (``buffer_text``).

The translation that is shown of a text (`redraft.captions.stabilise`) is committed as soon as all words of it are: a
translation of a tail waits for its words, which then release it without a pass.  A bias keeps what was committed; all
else is the draft.

With ``?room=NAME`` in its address, a connection is a session in this room, whose viewers get the captions.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from typing import Any, Literal, TypeVar

from pydantic import Field
from starlette.routing import BaseRoute, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from redraft import deadlines
from redraft.captions.events import LONGEST_TEXT, Caption, Event, Failure, Newest, Update, is_seconds
from redraft.captions.formats.read import cleaned
from redraft.captions.stabilise import whole_characters
from redraft.captions.state import State
from redraft.captions.translation import Translation, as_output
from redraft.captions.words import WORD, has_words, joined
from redraft.decoding.methods.ssbd import KEEPS_ALL
from redraft.engine.engine import Stopped
from redraft.engine.lanes import Answer
from redraft.protocol import Begin
from redraft.protocol.codes import Refused
from redraft.serve.http.endpoints import Lenient, address_of, bearer, language_of
from redraft.serve.http.sockets import first_message, next_frame, until_one_ends
from redraft.serve.service import STOPPED, refused_option
from redraft.serve.sessions.hub import Hub
from redraft.serve.sessions.live import LiveSession

M = TypeVar("M", bound=Lenient)

VERSION = 1
#: Number of committed words after which an utterance is ended, for clients that never do.
MOST_WORDS = 120
#: Number of invalid messages in a row after which a connection is closed, and of updates that may wait.
_MOST_WRONG, _MOST_WAITING = 20, 100
#: Most earlier sentences in a prompt; clients that ask for more get none.
_MOST_CONTEXT = 4
#: How many translations agree on what is committed, where the method itself shows everything.
_AGREE = 2
#: Refusals -> error codes of the protocol; others are ``bad_protocol``.
_BUSY = "capacity", "limit", "draining", "engine", "room"
_CODES = {"option": "unsupported_direction"} | dict.fromkeys(_BUSY, "busy")


class Init(Lenient):
    """The first message.  ``preset`` is returned; ``context_text`` and other overrides have no effect."""

    type: Literal["init"]
    protocol_version: Literal[1]
    source_lang: str = Field(max_length=100)
    target_lang: str = Field(max_length=100)
    preset: str | None = Field(None, max_length=100)
    overrides: dict[str, Any] = Field(default_factory=dict)
    history: list[tuple[str, str]] = Field(default_factory=list)
    accepted_target_prefix: str = Field("", max_length=LONGEST_TEXT)


#: What goes on with the word before.  Clients send the pieces of a text without the space around them: WhisperLiveKit
#: splits "Yes, at five o'clock." before each mark.
_GOES_ON = re.compile(r"[!%),.:;?\]}’…]|['-]\w")

#: A word, with its start and end in milliseconds.
_Words = list[tuple[str] | tuple[str, float | None] | tuple[str, float | None, float | None]]


class Tail(Lenient):
    """Words that the recogniser may still change."""

    words: _Words = Field(default_factory=list)


class MtUpdate(Lenient):
    """All words of an utterance so far."""

    type: Literal["update"]
    seq: int = Field(0, ge=0, le=2**53)
    utterance_id: int = Field(0, ge=0, le=2**53)
    words: _Words = Field(default_factory=list)
    tail: Tail | None = None
    clock_ms: float | None = Field(None, ge=0, allow_inf_nan=False)
    is_final: bool = False

    @property
    def begun(self) -> float | None:
        """The start of the first committed word in seconds, if it is known."""
        return _seconds(self.words[0][1:2]) if self.words else None

    @property
    def time(self) -> float | None:
        """The time in seconds: of a final update, the end of its last word, and otherwise the clock's."""
        ended = _seconds(self.words[-1][2:3]) if self.words and self.is_final else None
        return _seconds((self.clock_ms,)) if ended is None else ended

    @property
    def committed(self) -> str:
        """The committed words as a text."""
        return reduce(_with_piece, (cleaned(word) for word, *_ in self.words), "")

    @property
    def text(self) -> str:
        """The committed words and the tail.

        A tail with which the committed words end is none: WhisperLiveKit keeps the last one after all of it was
        committed, until it has another.
        """
        committed, tail = self.committed, ""
        if self.tail:
            tail = reduce(joined, (cleaned(word) for word, *_ in self.tail.words), "")
        words, last = WORD.findall(committed), WORD.findall(tail)
        return committed if last and words[-len(last) :] == last else _with_piece(committed, tail)


def _seconds(milliseconds: Sequence[float | None]) -> float | None:
    """Return a time in seconds; None if it is missing or invalid."""
    return next((each / 1000 for each in milliseconds if each is not None and is_seconds(each)), None)


def _with_piece(text: str, piece: str) -> str:
    return text + piece if text[-1:].isalnum() and _GOES_ON.match(piece) else joined(text, piece)


class Mailbox(asyncio.Queue[MtUpdate]):
    """Updates that wait, of each utterance the newest."""

    def _init(self, maxsize: int) -> None:
        self._queue = Newest[MtUpdate]()

    def _put(self, item: MtUpdate) -> None:
        self._queue.put(item, item.utterance_id, final=item.is_final)

    def _get(self) -> MtUpdate:
        return self._queue.take()


@dataclass(slots=True)
class _Open:
    """The open utterance.

    Attributes:
        name: its name for the engine.
        number: the client's number of it; None before the first update.
        seq: number of the newest update.
        committed: what was committed of it.
        waiting: texts that are not committed, with what was shown of them.
        begun: whether it has had words.
    """

    name: int
    number: int | None = None
    seq: int = 0
    committed: str = ""
    waiting: list[tuple[str, str]] = field(default_factory=list)
    begun: bool = False


class Conversation:
    """One connection's translation, through a session with one language.

    Args:
        prefix: what the reader saw of the open utterance on an earlier connection.
        history: sentences of an earlier connection with their translations, for the context of prompts.

    Raises:
        Refused: the session is over.
    """

    def __init__(self, session: LiveSession, prefix: str, history: Sequence[tuple[str, str]] = ()) -> None:
        if (engine := session.engine) is None:
            raise Refused("engine", STOPPED)
        self._session, self._engine, (self._lane,) = session, engine, session.lanes.values()
        session.heard = lambda answer: None  # which says of the session that its client is one of these
        self._open = _Open(0, committed=prefix)
        #: The client's number of the last utterance that has ended.
        self._ended = -1
        for source, translation in history:
            engine.post(partial(self._lane.remember, cleaned(source), cleaned(translation)))

    async def _ask(self, update: Update) -> list[Event]:
        """Return the caption and failures of an update.  Raises `Refused` if it is not accepted or not answered.

        Its output begins with what was committed, and with nothing else that was shown.
        """
        session, engine, lane, text = self._session, self._engine, self._lane, self._open.committed
        answer: asyncio.Future[list[Event]] = asyncio.get_running_loop().create_future()

        def keep() -> None:
            state = lane.state
            if text or (state.update and state.update.utterance == update.utterance):
                lane.state = kept(state, text, lane.translation, update.utterance)

        def heard(found: Answer) -> None:
            same = (found.update.utterance, found.update.seq) == (update.utterance, update.seq)
            if same and not found.rest and not answer.done():
                answer.set_result(found.events)

        if session.ended:
            raise Refused("replaced", f"another session has taken over room {session.begin.room!r}", "room")
        session.heard = heard
        engine.asked.add(answer)
        try:
            session.check_room()
            engine.post(keep)
            session.accept(update)
            async with asyncio.timeout(deadlines.TRANSLATION):
                return await answer
        except TimeoutError:
            raise Refused("capacity", f"no translation came within {deadlines.TRANSLATION:g} seconds") from None
        except Stopped as error:
            raise refused_option(error) from None
        finally:
            engine.asked.discard(answer)

    async def answer(self, update: MtUpdate) -> dict[str, Any]:
        """Return the answer to an update.  Raises `Refused` if it cannot be translated."""
        self._session.touched = time.monotonic()
        if update.utterance_id <= self._ended:
            raise Refused("stale", f"utterance {update.utterance_id} has ended: utterance_id must be greater")
        if self._open.number not in (None, update.utterance_id):  # it ends without a final update
            self._open = _Open(self._open.name + 1)
            if self._session.begin.room is not None:  # otherwise nobody sees its final caption
                self._session.end_open()
        now = self._open
        now.number, now.seq, before = update.utterance_id, now.seq + 1, now.committed
        forced = not update.is_final and len(update.words) > MOST_WORDS
        final, committed = update.is_final or forced, update.committed
        text = committed if final else update.text
        if len(text) > LONGEST_TEXT:
            raise Refused("size", f"the words must have at most {LONGEST_TEXT} characters")
        # A pause may end a sentence before its full stop, which comes as the next one: its translation has its own.
        now.begun = now.begun or has_words(text)
        shown, hidden = before, ""
        if now.begun:
            count = len(WORD.findall(committed))
            sent = Update(str(now.name), now.seq, text, final, update.time, committed=count, start=update.begun)
            events = await self._ask(sent)
            caption = next((each for each in events if isinstance(each, Caption)), None)
            if caption is not None and has_words(text):
                shown, hidden = caption.text, caption.unstable
            elif caption is None and not final:
                failures = (each.message for each in events if isinstance(each, Failure))
                raise Refused("translation", next(failures, "failed"))
        if final:
            self._open, self._ended = _Open(now.name + 1), update.utterance_id
        else:
            now.committed = _released(now, text, shown, committed)
        done = shown if final else now.committed
        draft = (shown + hidden)[len(done) :] if shown.startswith(done) and not final else ""
        tail = not final and update.tail is not None and bool(update.tail.words)
        covered = not tail and not draft and self._lane.state.decoded.output.finished
        return {
            "type": "translation",
            "seq": update.seq,
            "utterance_id": update.utterance_id,
            "final": final,
            "forced_final": forced,
            "committed_text": done,
            "committed_delta": done[len(before) :] if done.startswith(before) else "",
            "buffer_text": draft.strip(),
            "covered_source_units": len(update.words) if covered else None,
            "stop_reason": None,
        }


def _released(now: _Open, text: str, shown: str, committed: str) -> str:
    """Return what is committed after an answer: what was shown of the longest text that is committed."""
    waiting = [(each, was) for each, was in (*now.waiting, (text, shown)) if is_beginning(each, text)]
    ready = [was for each, was in waiting if is_beginning(each, committed)]
    now.waiting = [each for each in waiting if not is_beginning(each[0], committed)]
    # The newest answer decides what the translation is, so only what it still has.
    fit = [was for was in ready if shown.startswith(was) and was.startswith(now.committed)]
    return max(fit, key=len, default=now.committed)


def kept(state: State, text: str, translation: Translation, utterance: str) -> State:
    """Return a state of which the reader has seen a text, the beginning of its output, and no more."""
    pieces = state.decoded.pieces
    beginnings = (
        translation.writing.convert(whole_characters(b"".join(pieces[:n])).strip()) for n in range(len(pieces) + 1)
    )
    count = next((n for n, each in enumerate(beginnings) if each == text), None)
    if count is not None and state.draft[:count] == state.output[:count]:
        return replace(state, shown=state.output[:count])
    # seen on an earlier connection, or the model has left it all the same
    ids = as_output(text, state.output, translation.vocabulary)
    return replace(state, update=state.update or Update(utterance, 0, ""), draft=ids, shown=ids)


def is_beginning(text: str, other: str) -> bool:
    """Whether a text is the other one up to the end of a word."""
    return other.startswith(text) and WORD.findall(other)[: len(words := WORD.findall(text))] == words


def alignatt_mt(hub: Hub) -> list[BaseRoute]:
    """Return the route of the protocol, which is the server's address without a path."""

    async def serve(websocket: WebSocket) -> None:
        """Translate what WhisperLiveKit has recognised, by version 1 of AlignAtt4LLM's protocol."""
        await websocket.accept()
        try:
            await _served(websocket, hub)
        except Refused as refused:
            await _refuse(websocket, hub, refused, fatal=True)
        except (WebSocketDisconnect, TimeoutError):
            pass

    return [WebSocketRoute("/", serve)]


async def _served(websocket: WebSocket, hub: Hub) -> None:
    """Serve a connection until it ends.  Raises `Refused` if the first message is refused."""
    owner = hub.admission.owner(bearer(websocket) or websocket.query_params.get("key"))
    init = await first_message(_next(websocket, hub, Init), "init")
    room, address = websocket.query_params.get("room"), address_of(websocket)

    begin = _begin(hub, init, room)
    try:
        session, _ = await hub.open(begin, owner, address)
    except Refused as refused:
        if refused.field != "context":
            raise
        begin = begin.model_copy(update={"options": {**begin.options, "context": 0}})
        session, _ = await hub.open(begin, owner, address)
    try:
        conversation = Conversation(session, init.accepted_target_prefix.strip(), init.history)
        mailbox = Mailbox(_MOST_WAITING)
        started = {
            "type": "init_ok",
            "protocol_version": VERSION,
            "direction": _direction(init.source_lang, init.target_lang),
            "preset": init.preset or "redraft",
            "model": hub.offer.model,
        }
        await _send(websocket, started)
        reading, working = _read(websocket, hub, session, mailbox), _work(websocket, hub, mailbox, conversation)
        await until_one_ends(reading, working, expected=(TimeoutError,))  # idle, or does not read
    finally:
        if room is None:  # nobody can see it
            hub.forget(session, keep=False)
        else:
            session.end()


def _begin(hub: Hub, init: Init, room: str | None) -> Begin:
    """Return the session to begin, with earlier sentences in the prompt if these were asked for.

    Clients connect again without a name for their session.  So it replaces an earlier one of such a client that has
    sent nothing for `deadlines.QUIET`.
    """
    context = init.overrides.get("max_history_utterances")
    method = next(iter(hub.admission.service.methods.values()))
    before = hub.rooms.find(room).session if room is not None else None
    quiet = isinstance(before, LiveSession) and before.heard and time.monotonic() - before.touched > deadlines.QUIET
    return Begin(
        targets=(language_of(init.target_lang, "target_lang").tag,),
        source_language=language_of(init.source_lang, "source_lang").tag,
        options={
            **({method.bias.name: KEEPS_ALL} if method.bias else {}),
            "agree": max(_AGREE, int(method.check({})["agree"])),
            "context": context if isinstance(context, int) and 0 < context <= _MOST_CONTEXT else 0,
        },
        room=room,
        take_over=bool(quiet),
    )


async def _next(websocket: WebSocket, hub: Hub, kind: type[M]) -> M:
    """Return the next message; binary ones are passed over.

    Raises:
        Refused: it is too long, or not of this kind.
        WebSocketDisconnect: the client has gone.
    """
    while not isinstance(text := await next_frame(websocket), str):
        pass
    if len(text.encode()) > hub.settings.message_bytes:
        raise Refused("protocol", f"the message must have at most {hub.settings.message_bytes} bytes")
    return kind.checked(text)


async def _read(websocket: WebSocket, hub: Hub, session: LiveSession, mailbox: Mailbox) -> None:
    """Read updates; ends after too many invalid messages."""
    wrong = 0
    while wrong < _MOST_WRONG:
        try:
            await mailbox.put(await _next(websocket, hub, MtUpdate))
            wrong = 0
        except Refused as refused:
            wrong += 1
            await _refuse(websocket, hub, refused, fatal=wrong == _MOST_WRONG)
        await session.rate.turn()


async def _work(websocket: WebSocket, hub: Hub, mailbox: Mailbox, conversation: Conversation) -> None:
    """Answer updates, one at a time; ends if the server cannot go on.

    Raises `TimeoutError` if none comes for `deadlines.IDLE_PEER` after the last answer, or if the client does not read.
    """
    over = False
    while not over:
        async with asyncio.timeout(deadlines.IDLE_PEER):
            update = await mailbox.get()
        try:
            hub.admission.check_working()
            await _send(websocket, await conversation.answer(update))
        except Refused as refused:
            over = refused.code in ("draining", "engine", "missing", "replaced")
            await _refuse(websocket, hub, refused, "processing_failed", seq=update.seq, fatal=over)


async def _send(websocket: WebSocket, message: dict[str, Any]) -> None:
    """Send a message.  Raises `TimeoutError` if the client does not read."""
    async with asyncio.timeout(deadlines.SLOW_READER):
        await websocket.send_text(json.dumps(message, ensure_ascii=False))


async def _refuse(
    websocket: WebSocket, hub: Hub, refused: Refused, code: str = "", *, fatal: bool = False, **more: Any
) -> None:
    """Send an error, and close the connection if it is ``fatal``."""
    hub.metrics.count_refusal(refused.code)
    code = code or _CODES.get(refused.code, "bad_protocol")
    if code == "unsupported_direction":
        sources, targets = hub.admission.service.languages
        more["supported"] = [_direction(source, target) for source in sources for target in targets]
    with suppress(WebSocketDisconnect, RuntimeError):
        await _send(websocket, {"type": "error", "code": code, "message": refused.sentence, **more})
        if fatal:
            await websocket.close(1008)


def _direction(*languages: str) -> str:
    return "-".join(languages).lower()
