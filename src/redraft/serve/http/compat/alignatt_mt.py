"""WhisperLiveKit's translation protocol: a websocket over which a recogniser sends committed words and a tail.

It is version 1 of the protocol of AlignAtt4LLM's ``alignatt-mt-server`` (its docs/mt_server_protocol.md).  An update
holds all words of the open utterance, those that the recogniser has committed and a tail that may change.  The answer
holds a translation that only grows within the utterance (``committed_text``) and a draft of the rest (``buffer_text``).

The translation that is shown of a text (`redraft.decoding.display`) is committed as soon as all words of that text are:
a translation of a tail waits for its words, which then release it without a pass.  A bias keeps what was committed; all
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
from dataclasses import replace
from functools import reduce
from typing import Any, Literal

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
from redraft.serve.access import Rate
from redraft.serve.http.endpoints import Lenient, address_of, bearer, language_of
from redraft.serve.http.sockets import first_message, next_frame, until_one_ends
from redraft.serve.service import STOPPED, refused_option
from redraft.serve.sessions.hub import Hub
from redraft.serve.sessions.live import LiveSession

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
        return _text(self.words)

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


def _text(words: _Words) -> str:
    return reduce(_with_piece, (cleaned(word) for word, *_ in words), "")


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


class Conversation:
    """One connection's translation, through a session with one language.

    Args:
        prefix: what the reader saw of the open utterance on an earlier connection.

    Raises:
        Refused: the session is over.
    """

    def __init__(self, hub: Hub, session: LiveSession, prefix: str) -> None:
        if (engine := session.engine) is None:
            raise Refused("engine", STOPPED)
        self._hub, self._session, self._engine, (self._lane,) = hub, session, engine, session.lanes.values()
        session.heard = self._heard
        #: Utterance and seq of the update that was sent last, and its captions and failures.
        self._sent = "", 0
        self._answer: asyncio.Future[list[Event]]
        #: What was committed of the open utterance, and what was shown of its texts that are not committed.
        self._committed = prefix
        self._waiting: list[tuple[str, str]] = []
        #: Name of the open utterance for the engine, and the number of the next update in it.
        self._name, self._seq = 0, 1
        #: The client's number of the open utterance, and of the last one that has ended.
        self._open: int | None = None
        self._ended = -1
        #: Whether the open utterance has had words.
        self._begun = False

    def remember(self, history: Sequence[tuple[str, str]]) -> None:
        """Add sentences of an earlier connection to the context of prompts."""
        lane, pairs = self._lane, [(cleaned(source), cleaned(translation)) for source, translation in history]

        def work() -> None:
            for pair in pairs:
                lane.remember(*pair)

        self._engine.post(work)

    def _keep(self) -> None:
        """Have the next output begin with what was committed, and with nothing else that was shown."""
        lane, text, name = self._lane, self._committed, str(self._name)

        def work() -> None:
            state = lane.state
            if text or (state.update and state.update.utterance == name):
                lane.state = kept(state, text, lane.translation, name)

        self._engine.post(work)

    def _heard(self, answer: Answer) -> None:
        sent = (answer.update.utterance, answer.update.seq) == self._sent and not answer.rest
        if sent and not self._answer.done():
            self._answer.set_result(answer.events)

    async def _ask(self, update: Update) -> list[Event]:
        """Return captions and failures of an update.  Raises `Refused` if it is not accepted or not answered."""
        if self._session.ended:
            room = self._session.begin.room
            raise Refused("replaced", f"another session has taken over room {room!r}", "room")
        self._sent, self._answer = (update.utterance, update.seq), asyncio.get_running_loop().create_future()
        self._engine.asked.add(self._answer)
        try:
            self._session.check_room()
            self._session.accept(update)
            async with asyncio.timeout(deadlines.TRANSLATION):
                return await self._answer
        except TimeoutError:
            raise Refused("capacity", f"no translation came within {deadlines.TRANSLATION:g} seconds") from None
        except Stopped as error:
            raise refused_option(error) from None
        finally:
            self._engine.asked.discard(self._answer)

    async def answer(self, update: MtUpdate) -> dict[str, Any]:
        """Return the answer to an update.  Raises `Refused` if it cannot be translated."""
        self._session.touched = time.monotonic()
        if update.utterance_id <= self._ended:
            raise Refused("stale", f"utterance {update.utterance_id} has ended: utterance_id must be greater")
        if self._open is not None and update.utterance_id != self._open:  # it ends without a final update
            self._next()
            if self._session.begin.room is not None:  # otherwise nobody sees its final caption
                self._session.end_open()
        self._open = update.utterance_id
        forced = not update.is_final and len(update.words) > MOST_WORDS
        final, committed = update.is_final or forced, update.committed
        text = committed if final else update.text
        if len(text) > LONGEST_TEXT:
            raise Refused("size", f"the words must have at most {LONGEST_TEXT} characters")
        count = len(WORD.findall(committed))
        sent = Update(str(self._name), self._seq, text, final, update.time, committed=count, start=update.begun)
        self._seq += 1
        self._keep()
        # A pause may end a sentence before its full stop, which comes as the next one: its translation has its own.
        self._begun = self._begun or has_words(text)
        events = await self._ask(sent) if self._begun else []
        captions = [each for each in events if isinstance(each, Caption) and each.utterance == sent.utterance]
        if not captions and not final and self._begun:
            raise Refused("translation", next((each.message for each in events if isinstance(each, Failure)), "failed"))
        before = self._committed
        shown, hidden = (captions[-1].text, captions[-1].unstable) if captions else (before, "")
        if not has_words(text):
            shown = before
        if final:
            now, draft = shown, ""
            self._next()
            self._ended = update.utterance_id
        else:
            now = self._committed = self._released(text, shown, committed)
            draft = (shown + hidden)[len(now) :] if shown.startswith(now) else ""
        return {
            "type": "translation",
            "seq": update.seq,
            "utterance_id": update.utterance_id,
            "final": final,
            "forced_final": forced,
            "committed_text": now,
            "committed_delta": now[len(before) :] if now.startswith(before) else "",
            "buffer_text": draft.strip(),
            "covered_source_units": self._covered(update, draft, final=final),
            "stop_reason": None,
        }

    def _released(self, text: str, shown: str, committed: str) -> str:
        """Return what is committed after an answer: what was shown of the longest text that is committed."""
        waiting = [(each, was) for each, was in (*self._waiting, (text, shown)) if is_beginning(each, text)]
        ready = [was for each, was in waiting if is_beginning(each, committed)]
        self._waiting = [each for each in waiting if not is_beginning(each[0], committed)]
        # The newest answer decides what the translation is, so only what it still has.
        fit = [was for was in ready if shown.startswith(was) and was.startswith(self._committed)]
        return max(fit, key=len, default=self._committed)

    def _next(self) -> None:
        self._name, self._seq, self._committed, self._open = self._name + 1, 1, "", None
        self._waiting, self._begun = [], False

    def _covered(self, update: MtUpdate, draft: str, *, final: bool) -> int | None:
        """Return how many words the committed translation covers: all of them, or unknown."""
        tail = update.tail is not None and bool(update.tail.words)
        output = self._lane.state.decoded.output
        return None if (tail and not final) or draft or not output.finished else len(update.words)


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
    init = Init.checked(await first_message(_next_message(websocket, hub), "init"))
    room, address = websocket.query_params.get("room"), address_of(websocket)

    begin = _begin(hub, init, room)
    try:
        session, _ = await hub.open(begin, owner, address, by_post=True)
    except Refused as refused:
        if refused.field != "context":
            raise
        begin = begin.model_copy(update={"options": {**begin.options, "context": 0}})
        session, _ = await hub.open(begin, owner, address, by_post=True)
    try:
        conversation, mailbox = Conversation(hub, session, init.accepted_target_prefix.strip()), Mailbox(_MOST_WAITING)
        conversation.remember(init.history)
        started = {
            "type": "init_ok",
            "protocol_version": VERSION,
            "direction": _direction(init.source_lang, init.target_lang),
            "preset": init.preset or "redraft",
            "model": hub.offer.model,
        }
        await _send(websocket, started)
        reading, working = _read(websocket, hub, mailbox), _work(websocket, hub, mailbox, conversation)
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
    method = next(iter(hub.service.methods.values()))
    before = hub.rooms.find(room).session if room is not None else None
    quiet = isinstance(before, LiveSession) and before.heard and time.monotonic() - before.touched > deadlines.QUIET
    return Begin(
        targets=(language_of(init.target_lang, "target_lang").tag,),
        source_language=language_of(init.source_lang, "source_lang").tag,
        options={
            **({method.bias.name: KEEPS_ALL} if method.bias else {}),
            "agree": max(_AGREE, method.display.agree),
            "context": context if isinstance(context, int) and 0 < context <= _MOST_CONTEXT else 0,
        },
        room=room,
        take_over=bool(quiet),
    )


async def _next_message(websocket: WebSocket, hub: Hub) -> dict[str, Any]:
    """Return the next message; binary ones are passed over.

    Raises:
        Refused: it is too long, or no JSON object.
        WebSocketDisconnect: the client has gone.
    """
    while not isinstance(text := await next_frame(websocket), str):
        pass
    if len(text.encode(errors="replace")) > hub.settings.message_bytes:
        raise Refused("protocol", f"the message must have at most {hub.settings.message_bytes} bytes")
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        raise Refused("protocol", "the message must be valid JSON") from None
    if not isinstance(found, dict):
        raise Refused("protocol", "the message must be a JSON object")
    return found


async def _read(websocket: WebSocket, hub: Hub, mailbox: Mailbox) -> None:
    """Read updates; ends after too many invalid messages."""
    rate = Rate(hub.settings.updates_per_second, hub.settings.updates_per_second)
    wrong = 0
    while wrong < _MOST_WRONG:
        try:
            update = MtUpdate.checked(await _next_message(websocket, hub))
        except Refused as refused:
            wrong += 1
            await _refuse(websocket, hub, refused, fatal=wrong == _MOST_WRONG)
        else:
            wrong = 0
            await mailbox.put(update)
        await rate.turn()


async def _work(websocket: WebSocket, hub: Hub, mailbox: Mailbox, conversation: Conversation) -> None:
    """Answer updates, one at a time; ends if the server cannot go on.

    Raises `TimeoutError` if none comes for `deadlines.IDLE_PEER` after the last answer, or if the client does not read.
    """
    while True:
        async with asyncio.timeout(deadlines.IDLE_PEER):
            update = await mailbox.get()
        try:
            hub.admission.check_working()
            answer = await conversation.answer(update)
        except Refused as refused:
            over = refused.code in ("draining", "engine", "missing", "replaced")
            await _refuse(websocket, hub, refused, "processing_failed", seq=update.seq, fatal=over)
            if over:
                return
        else:
            await _send(websocket, answer)


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
        sources, targets = hub.service.languages
        more["supported"] = [_direction(source, target) for source in sources for target in targets]
    with suppress(WebSocketDisconnect, RuntimeError):
        await _send(websocket, {"type": "error", "code": code, "message": refused.sentence, **more})
        if fatal:
            await websocket.close(1008)


def _direction(*languages: str) -> str:
    return "-".join(languages).lower()
