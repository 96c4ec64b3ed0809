"""Captions by POST: their numbers, and the forms of services."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from redraft.captions.events import Caption, Event
from redraft.captions.formats.push import CaptionService, PushWriter
from redraft.captions.formats.write import Writer
from redraft.serve.sessions.posts import Posts, texts_of
from tests.serve.fakes import Clock
from tests.serve.servers import Running, running
from tests.serve.talking import expected
from tests.waiting import eventually

TIME = "2026-11-22T20:15:00.000"


def texts(posts: Posts, *captions: tuple[int, str]) -> list[str]:
    return [update.text for number, body in captions for update in posts.updates(number, body, final=True)]


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("Good morning.\n", ["Good morning."]),
        (f"{TIME}\nGood morning.\n", ["Good morning."]),
        (f"{TIME} region:reg1#cue1\r\nGood\r\nmorning.\r\n", ["Good morning."]),
        ("2026-11-22T20:15:00Z\nOne.\n2026-11-22T20:15:03\nTwo.", ["One.", "Two."]),
        (f"{TIME}\n", []),
        (f"At\n{TIME}\nwe saw", [f"At {TIME} we saw"]),
        ("", [""]),
    ],
)
def test_texts(body: str, found: list[str]) -> None:
    assert [" ".join(text.split()) for text in texts_of(body)] == found


def test_repeated() -> None:
    posts = Posts()
    assert texts(posts, (1, "a"), (1, "a"), (2, "b"), (1, "a"), (2, "b"), (3, "b")) == ["a", "b", "b"]
    assert posts.newest == 3


@pytest.mark.parametrize("first", [0, 1, 3])
def test_begun_again(first: int) -> None:
    posts = Posts()
    before = [(number, f"a{number}") for number in range(1, 6)]
    after = [(number, f"b{number}") for number in range(first, 9)]
    assert texts(posts, *before, *after) == [text for _, text in before + after]
    assert posts.newest == 8


def test_begun_again_with_the_same_text() -> None:
    clock = Clock()
    posts = Posts(clock)
    assert texts(posts, (1, "Welcome."), (2, "a")) == ["Welcome.", "a"]
    clock.now += 3600
    assert texts(posts, (1, "Welcome."), (2, "b")) == ["Welcome.", "b"]


def test_begun_again_after_many() -> None:
    posts = Posts()
    assert len(texts(posts, *((number, str(number)) for number in range(1, 500)))) == 499
    assert texts(posts, (1, "1"), (2, "2")) == ["1", "2"]


def test_late() -> None:
    posts = Posts()
    assert texts(posts, (1, "a"), (3, "c"), (2, "b"), (4, "d")) == ["a", "c", "b", "d"]
    assert posts.updates(6, "we saw", final=False) and not posts.updates(5, "we", final=False)
    assert posts.newest == 6


def test_sender_lost_in_a_caption() -> None:
    posts = Posts()
    found = posts.updates(1, "we", final=False) + posts.updates(2, "we saw", final=False)
    again = posts.updates(1, "her", final=False)
    assert [(each.utterance, each.text, each.final) for each in found + again] == [
        *(("post-0", "we", False), ("post-0", "we saw", False)),
        *(("post-0", "we saw", True), ("post-1", "her", False)),
    ]
    assert [each.seq for each in found + again[:1]] == sorted({each.seq for each in found + again[:1]})


class Kept(Writer):
    """Events that were passed on."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def write(self, event: Event) -> None:
        self.events.append(event)

    def close(self) -> None:
        pass


@pytest.fixture(scope="module")
def server() -> Iterator[Running]:
    with running() as found:
        yield found


@pytest.mark.parametrize("service", ["zoom", "youtube"])
def test_own_push(server: Running, service: str) -> None:
    started = server.ask("/v1/sessions", {"targets": ["de"], "method": "ar"}).json
    url = f"{server.url}/v1/ingest/{started['token']}?cid=a"
    spoken = (("we saw", "her duck"), ("it was", "her duck"))
    for said in spoken:  # the second by a program that was started again
        kept = Kept()
        writer = PushWriter(kept, CaptionService(f"{service}:{url}", "en"), "en", pace=0)
        for text in said:
            writer.write(Caption("1", 0, "en", text, final=True))
        writer.close()
        assert all(isinstance(event, Caption) for event in kept.events)
    lines = [expected(text) for said in spoken for text in said]
    path = f"/v1/sessions/{started['session']}/transcript"
    eventually(lambda: server.ask(path).text.splitlines() == lines)
    newest = "3" if service == "zoom" else "2"
    assert server.ask(f"/v1/ingest/{started['token']}/seq").text == f"{newest}\n"


def test_times() -> None:
    """Captions have the time at which they came, for subtitles."""
    clock = Clock()
    posts = Posts(clock)
    made = []
    for number, (text, final) in enumerate((("We", False), ("We saw.", True), ("Yes.", True))):
        clock.now += 2.5
        made += posts.updates(number, text, final=final)
    assert [(each.utterance, each.time) for each in made] == [("post-0", 2.5), ("post-0", 5.0), ("post-1", 7.5)]
