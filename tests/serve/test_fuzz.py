"""Anything at all, sent to a session and to a server; `make fuzz` sends more than 20,000 frames and requests."""

from __future__ import annotations

import asyncio
import json
import logging
import logging.handlers
from contextlib import suppress
from typing import Any
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from websockets.exceptions import ConnectionClosed

from redraft import protocol
from redraft.decoding.method import COMMON
from redraft.engine.engine import Engine
from redraft.engine.lanes import Lane
from redraft.protocol.codes import Refused, describe
from redraft.serve.http.sockets import _execute
from tests.serve.fakes import CachedModel, offline
from tests.serve.servers import FUZZED, Running, running

names = st.text(max_size=5) | st.integers(-1, 5)
#: Counts, and the highest that clients can send.
counts = st.integers(-1, 9) | st.sampled_from([2**53, 2**53 + 1])
texts = st.text(max_size=30) | st.sampled_from(
    ["we saw", "日" * 90, "\u202e", "\x00\x1b[2J", "<script>", "日本", " " * 9]
)
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
    max_leaves=6,
)
well_made = st.one_of(
    st.fixed_dictionaries(
        {"type": st.just("update"), "utterance": names, "seq": counts, "text": texts},
        optional={"final": st.booleans() | st.integers(), "time": st.floats() | st.none(), "more": anything},
    ),
    st.fixed_dictionaries({"type": st.just("ack"), "utterance": names, "language": st.sampled_from(["de", "ja", ""])}),
    st.fixed_dictionaries(
        {
            "type": st.just("restore"),
            "finals": st.lists(
                st.fixed_dictionaries(
                    {"type": st.just("final"), "utterance": names, "seq": st.integers(0, 9), "text": texts},
                    optional={"language": st.sampled_from(["de", "fr"]), "start": st.floats(0, 9)},
                ),
                max_size=2,
            ),
        }
    ),
    st.fixed_dictionaries(
        {"type": st.just("pause")}, optional={"paused": st.booleans() | anything, "decision": counts}
    ),
    st.fixed_dictionaries(
        {"type": st.sampled_from(["hide", "correct"]), "utterance": names},
        optional={
            "language": st.sampled_from(["de", "fr"]),
            "text": texts,
            "hidden": st.booleans(),
            "decision": counts,
        },
    ),
    st.fixed_dictionaries({"type": st.sampled_from(["start", "end", "final", ""])}, optional={"targets": anything}),
)
frames = st.one_of(well_made.map(json.dumps), anything.map(json.dumps), st.text(max_size=40), st.binary(max_size=40))


@pytest.mark.fuzz
@given(st.lists(frames, max_size=40))
def test_fuzz_session(sent: list[str | bytes]) -> None:
    engine = mock.Mock(Engine, scheduler=mock.Mock(able=lambda: ""))
    session = offline(engine=engine)
    session.lanes = {"de": mock.Mock(Lane, translation=None, coalesced=0, abandoned=0)}
    sentences = []

    async def act() -> None:
        for frame in sent:
            try:
                message = protocol.FROM_CLIENT.validate_json(frame)
            except ValidationError as error:
                sentences.append(str(describe(error, *protocol.CLIENT)))
            else:
                with suppress(Refused):
                    _execute(message, session, mock.Mock())

    asyncio.run(act())
    assert all(0 < len(sentence) <= 300 for sentence in sentences)
    seen: dict[str, int] = {}
    submitted = [call.args[1] for call in engine.submit.call_args_list if not call.kwargs["rest"]]
    for update in submitted:  # what reaches the engine is in order, and nothing comes twice
        assert update.seq > seen.get(update.utterance, -1)
        seen[update.utterance] = update.seq
        assert update.text == update.text.strip() and not any(ord(each) < 32 for each in update.text)
    session.transcript.text("srt", ["de"])


@pytest.mark.fuzz
@given(st.lists(frames, min_size=1, max_size=30))
def test_fuzz_frames(fuzzed: Running, sent: list[str | bytes]) -> None:
    with fuzzed.socket() as socket:
        socket.start()
        FUZZED["frames"] += 2
        with suppress(ConnectionClosed):
            for frame in sent:
                socket.connection.send(frame)
                FUZZED["frames"] += 1
            socket.say("end")
            socket.until("done")
    assert socket.connection.close_code in (1000, 1002)
    assert fuzzed.hub.engines.alive


@pytest.fixture(scope="module")
def fuzzed() -> Any:
    """A server in whose logs there must be no exception."""
    raised = logging.handlers.BufferingHandler(1000)
    raised.setLevel(logging.ERROR)
    loggers = [logging.getLogger(name) for name in ("redraft", "uvicorn.error", "asyncio")]
    for logger in loggers:
        logger.addHandler(raised)
    many = ("sessions", "sessions_per_address", "starts_per_second", "updates_per_second")
    with running(CachedModel(2), **dict.fromkeys(many, 10_000), keep_seconds=0) as server:
        yield server
    for logger in loggers:
        logger.removeHandler(raised)
    assert not raised.buffer


beginnings = st.fixed_dictionaries(
    {"type": st.just("start"), "targets": st.lists(texts | st.sampled_from(["de", "ja"]), max_size=3) | anything},
    optional={
        "source_language": texts | st.just("en"),
        "method": texts | st.sampled_from(["ar", "ssbd"]),
        "options": st.dictionaries(
            texts | st.sampled_from(["beta", *COMMON]), st.floats() | st.integers(-1, 9) | texts, max_size=3
        ),
        "glossary": st.dictionaries(texts, st.lists(st.tuples(texts, texts), max_size=2), max_size=2),
        "key": texts,
        "token": texts | st.text("abc", min_size=22, max_size=22),
        "connection": st.integers(0, 9) | anything,
        "protocol": st.integers(0, 2),
        "room": texts | st.sampled_from(["hall-1", "hall-2"]),
        "take_over": st.booleans(),
        "日本" * 60: st.none(),
    },
)


@pytest.mark.fuzz
@given(beginnings)
def test_fuzz_start(fuzzed: Running, start: Any) -> None:
    with fuzzed.socket() as socket, suppress(ConnectionClosed):
        socket.connection.send(json.dumps(start))
        FUZZED["frames"] += 1
        if socket.hear()["type"] == "started":
            socket.say("end")
        while True:
            socket.hear()
    assert socket.connection.close_code in (1000, 1002, 1008, 1013)


paths = st.sampled_from(
    [
        "/v1/translate",
        "/v1/sessions",
        "/v1/ingest/x",
        "/v1/sessions/x",
        "/v1/sessions/x/transcript",
        "/docs",
        "/%00",
        "/v1/control/x",
        "/v1/rooms/x",
        "/v1/rooms/%FF/transcript",
        "/watch/x",
    ]
)
queries = st.sampled_from(["", "?seq=1", "?seq=%FF", "?format=srt", "?live=1", "?language=", "?final=0&seq=0"])
bodies = st.one_of(
    anything.map(lambda value: json.dumps(value).encode()),
    st.fixed_dictionaries({"targets": st.lists(texts, max_size=3) | anything, "text": texts}).map(
        lambda value: json.dumps(value).encode()
    ),
    st.binary(max_size=60),
)


@pytest.mark.fuzz
@given(paths, queries, bodies, st.sampled_from(["GET", "POST", "DELETE", "PUT"]))
def test_fuzz_http(fuzzed: Running, path: str, query: str, body: bytes, method: str) -> None:
    answer = fuzzed.ask(path + query, body, method)
    FUZZED["requests"] += 1
    assert answer.status < 500 or answer.status == 503
