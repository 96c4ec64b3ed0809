"""Streamed responses: read as far as needed, closed early, and lost half-way."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import httpx2
import pytest

from redraft import Translator, Update
from redraft.backends.remote.rows import RemoteRow, RowLine, Steps
from redraft.captions.events import Caption, Failure
from redraft.decoding.types import Draft, Provenance, Score
from redraft.errors import ModelError
from tests.backends.remote.servers import FakePlugin, FakeVllm, Table, connected, sent_by


def row(*tokens: int) -> RemoteRow:
    """A row with these tokens, the most probable one first."""
    return RemoteRow.of({token: -1.0 - rank for rank, token in enumerate(tokens)}, len(tokens))


class Told:
    """Tells tokens one by one, and notes how many were asked for and whether it was closed."""

    def __init__(self, *tokens: int) -> None:
        self.tokens, self.asked, self.closed = tokens, 0, False

    def steps(self) -> Steps:
        try:
            for token in self.tokens:
                self.asked += 1
                yield token, row(token, 90)
        finally:
            self.closed = True


def score(prefix: tuple[int, ...], *draft: int) -> Score:
    return Score(prefix, Draft.chain(draft, Provenance.PREVIOUS))


def best(rows: tuple[RemoteRow, ...]) -> list[int]:
    return [next(iter(each.known)) for each in rows]


def test_line_is_read_as_far_as_it_is_needed() -> None:
    told = Told(5, 6, 7, 8)
    line = RowLine(score((1, 2)), steps=told.steps())
    assert best(line.answer(score((1, 2)))) == [5] and told.asked == 1
    assert best(line.answer(score((1, 2)))) == [5] and told.asked == 1
    assert best(line.answer(score((1, 2, 5), 6, 9))) == [6, 7] and told.asked == 3
    assert line.answer(score((1, 2, 9))) == line.answer(score((1,))) == line.answer(score((3, 2, 5))) == ()
    assert told.asked == 3
    assert best(line.answer(score((1, 2, 5, 6, 7, 8)))) == [] and told.closed
    assert best(line.answer(score((1, 2, 5, 6), 7, 8, 4))) == [7, 8]


def test_closing_line_ends_request() -> None:
    told = Told(5, 6)
    line = RowLine(score((1,)), steps=told.steps())
    line.answer(score((1,)))
    line.close()
    assert told.closed and line.answer(score((1, 5))) == ()
    line.close()


def test_line_of_draft_knows_its_rows_and_nothing_more() -> None:
    line = RowLine(score((1,), 5, 6), (row(5), row(6), row(7)))
    assert best(line.answer(score((1,), 5, 6))) == [5, 6, 7]
    assert best(line.answer(score((1, 5), 9))) == [6]
    assert line.answer(score((1, 5, 6, 7))) == ()
    assert RowLine().answer(score((1,))) == ()


def test_rows_have_what_was_drafted() -> None:
    line = RowLine(score((1,), 5, 90, 4), steps=Told(5, 6, 7).steps())
    first, second, third = line.answer(score((1,), 5, 6))
    assert (first, third) == (row(5, 90), row(7, 90))
    assert second == row(6, 90)  # 90 is among the best already
    told = Told(6, 7)
    other = RowLine(score((1,), 8), steps=told.steps())
    assert other.answer(score((1,), 8)) == (RemoteRow({6: -1.0, 90: -2.0, 8: -math.inf}, 2),)
    other.close()
    assert told.asked == 1 and told.closed


class Cut(FakeVllm):
    """Loses the connection after some events of an answer."""

    after = 10**9

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        found = super().__call__(request)
        events = found.text.split("\n\n")

        def content() -> Iterator[bytes]:
            for number, event in enumerate(events):
                if number == self.after:
                    raise httpx2.ReadError("connection reset")
                yield f"{event}\n\n".encode()

        return httpx2.Response(found.status_code, content=content()) if request.url.path.endswith("ions") else found


def test_slot_may_be_closed_after_backend() -> None:
    with closing(connected(FakeVllm(Table()))) as backend:
        slot = backend.open_slot()
    backend.close_slot(slot)


def test_connection_that_is_lost_is_one_failure() -> None:
    server = Cut(Table())
    updates = [Update("1", seq, text) for seq, text in enumerate(("the cats", "the cats of", "the cats of our"))]
    with closing(connected(server)) as backend, Translator(backend, ["de"], method="ar") as translator:
        assert isinstance(translator.translate(updates[0])[0], Caption)
        server.after = 2
        sent = sent_by(backend.client)
        (failure,) = translator.translate(updates[1])
        assert isinstance(failure, Failure) and failure.message.endswith("cannot be reached: connection reset")
        assert len(sent) == 1, "an answer that has begun is not asked for again"
        server.after = 10**9
        assert isinstance(translator.translate(updates[2])[0], Caption)


@pytest.mark.parametrize(
    ("event", "words"),
    [
        ('data: {"error": {"message": "out of\\nmemory", "code": 500}}', "failed while it answered: .*out of"),
        ("data: {", "gave an answer that is not JSON"),
        ("data: 5", "gave an answer without a completion"),
        ("data: [DONE]", "gave an answer without a completion"),
    ],
)
def test_events_that_are_no_tokens(event: str, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    server = FakeVllm(Table())
    with closing(connected(server)) as backend:
        slot = backend.open_slot()
        reply: Any = lambda *_: (200, f"{event}\n\n")  # noqa: E731
        monkeypatch.setattr(server, "reply", reply)
        with pytest.raises(ModelError, match=words):
            backend.score([(slot, Score((3,)))])


def test_malformed_answer_to_draft_is_failure() -> None:
    server = FakePlugin(Table())
    plain = server.spoil
    with closing(connected(server)) as backend, Translator(backend, ["de"]) as translator:
        assert isinstance(translator.translate(Update("1", 0, "the cats"))[0], Caption)
        server.spoil = lambda _answer: {}
        (failure,) = translator.translate(Update("1", 1, "the cats of"))
        assert isinstance(failure, Failure) and "gave an answer without" in failure.message
        server.spoil = plain
        assert isinstance(translator.translate(Update("1", 2, "the cats of our"))[0], Caption)
