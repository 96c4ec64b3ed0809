"""Captions pushed to servers written from the two documented protocols: each once, in order, whatever is lost."""

from __future__ import annotations

import socketserver
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import pytest

from redraft import deadlines
from redraft.captions.events import Caption, Event, Failure
from redraft.captions.formats.push import CaptionService, PushWriter, zoom_language
from redraft.captions.formats.write import Writer
from redraft.deadlines import Backoff
from redraft.errors import OptionError
from tests.waiting import eventually

QUICK = Backoff(0.01, 0.02, 0.2)
#: For captions that must arrive, on a busy machine too.
PATIENT = Backoff(0.01, 0.02, 30.0)


class Kept(Writer):
    """A writer that records its calls."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.closed = False

    def write(self, event: Event) -> None:
        self.events.append(event)

    def close(self) -> None:
        self.closed = True


class Captions:
    """What a service has got, and how it behaves."""

    def __init__(self) -> None:
        self.got: dict[int, str] = {}
        self.asked: list[tuple[int, str]] = []
        self.languages: set[str] = set()
        self.last = 0
        #: Statuses of the next answers, before all go well again; a negative one is taken all the same.
        self.answers: list[int] = []
        #: Where redirects lead, and what answers say.
        self.location, self.says = "", "2026-11-22T20:15:00.000"


@contextmanager
def serving(captions: Captions) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(200, str(captions.last))

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"])).decode()
            query = parse_qs(urlsplit(self.path).query)
            assert self.headers["content-type"].startswith("text/plain") and query["id"] == ["meeting"]
            seq = int(query["seq"][0])
            captions.asked.append((seq, body))
            captions.languages |= set(query.get("lang", ()))
            status = captions.answers.pop(0) if captions.answers else 200
            if status == 200 or status < 0:
                captions.got.setdefault(seq, body)
            self._answer(abs(status), captions.says)

        def _answer(self, status: int, text: str) -> None:
            self.send_response(status)
            if captions.location:
                self.send_header("location", captions.location)
            self.send_header("content-length", str(len(text)))
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *_: object) -> None:
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/closedcaption?id=meeting"
    finally:
        server.shutdown()
        thread.join(10)
        server.server_close()


def final(text: str, language: str = "de", *, final: bool = True) -> Caption:
    return Caption("1", 0, language, text, final=final)


def push(target: str, *events: Event, patience: Backoff = QUICK) -> Kept:
    kept = Kept()
    writer = PushWriter(
        kept, CaptionService(target, "de"), "de", patience=patience, pace=0, clock=lambda: 1_700_000_000.5
    )
    for event in events:
        writer.write(event)
    writer.close()
    assert kept.closed
    return kept


def test_zoom() -> None:
    captions = Captions()
    captions.last = 41
    with serving(captions) as url:
        kept = push(
            f"zoom:{url}", final("Ich", final=False), final("Ich sah."), final("見た。", "ja"), final("Sie ging.")
        )
    assert captions.got == {42: "Ich sah.\n", 43: "Sie ging.\n"}
    assert captions.languages == {"de-DE"}
    assert len(kept.events) == 4


def test_speaker() -> None:
    captions = Captions()
    with serving(captions) as url:
        push(f"zoom:{url}", replace(final("Ich sah."), speaker="Anna"))
    assert list(captions.got.values()) == ["Anna: Ich sah.\n"]


def test_youtube_gets_time_in_utc_before_text() -> None:
    captions = Captions()
    with serving(captions) as url:
        push(f"youtube:{url}", final("Ich sah."))
    assert captions.got == {1: "2023-11-14T22:13:20.500\nIch sah.\n"}
    assert CaptionService("youtube:http://a/?b=", "de").request("x", 0, 7).full_url == "http://a/?b=&seq=7"
    found = CaptionService("zoom:http://a/?id=1&lang=en-US&seq=0", "de").request("x", 0, 7).full_url
    assert found.count("seq=") == found.count("lang=") == 1 and "id=1" in found and "seq=7" in found


def test_retried_captions() -> None:
    captions = Captions()
    captions.answers = [503, -500, 200, 429]  # the second was taken, though its answer denies it
    with serving(captions) as url:
        kept = push(f"zoom:{url}", final("eins"), final("zwei"), final("drei"), patience=PATIENT)
    assert captions.got == {1: "eins\n", 2: "zwei\n", 3: "drei\n"}
    assert [seq for seq, _ in captions.asked] == [1, 1, 1, 2, 2, 3]
    assert not any(isinstance(event, Failure) for event in kept.events)


def failures(kept: Kept) -> list[str]:
    return [event.message for event in kept.events if isinstance(event, Failure)]


def test_busy_for_too_long() -> None:
    captions = Captions()
    captions.answers = [503] * 1000
    with serving(captions) as url:
        kept = push(f"zoom:{url}", final("eins"), patience=Backoff(0.01, 0.02, 1.0))
    assert failures(kept) == ["a caption could not be sent and was dropped: the service answered 503"]
    assert len(captions.asked) > 2


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410, 451])
def test_refusal_is_final(status: int) -> None:
    """It is not repeated, its reason is shown, and the next caption does not wait."""
    captions = Captions()
    captions.answers, captions.says = [status], "<p>Timestamp skew\nlarger than 60 sec"
    with serving(captions) as url:
        kept = push(f"zoom:{url}", final("eins"), final("zwei"))
    assert failures(kept) == [
        f"a caption was refused: the service answered {status}: Timestamp skew larger than 60 sec"
    ]
    assert [seq for seq, _ in captions.asked] == [1, 2] and captions.got == {2: "zwei\n"}


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirects(status: int) -> None:
    """They are refused at once: the address is a secret, and the failure names only the host."""
    captions = Captions()
    with serving(captions) as url:
        captions.answers, captions.location = [status], "http://user:pw@elsewhere.invalid/cc?key=secret"
        assert failures(push(f"zoom:{url}", final("eins"), final("zwei"))) == [
            "a caption was refused: the service has moved to elsewhere.invalid, so use the URL that it gives now"
        ]
    assert [body for _, body in captions.asked] == ["eins\n", "zwei\n"]


def test_service_that_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    """What waits behind a caption grows old with it."""
    monkeypatch.setattr(deadlines, "PUSH_LEAST", 0.05)
    with socketserver.TCPServer(("127.0.0.1", 0), socketserver.BaseRequestHandler) as server:  # never answers
        url = f"http://127.0.0.1:{server.server_address[1]}/cc"
        began = time.monotonic()
        kept = push(f"youtube:{url}", *(final(f"{number}") for number in range(20)))
    assert len(failures(kept)) == 20 and time.monotonic() - began < 20 * 0.2


def test_end_while_service_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    """What has not been sent after a while is reported, not waited for."""
    monkeypatch.setattr(deadlines, "PUSHED", 0.2)
    monkeypatch.setattr(deadlines, "PUSH_LEAST", 0.1)
    with socketserver.TCPServer(("127.0.0.1", 0), socketserver.BaseRequestHandler) as server:  # never answers
        kept = push(f"youtube:http://127.0.0.1:{server.server_address[1]}/cc", *map(final, map(str, range(100))))
    unsent = [message for message in failures(kept) if message.startswith("a caption was not sent")]
    assert len(failures(kept)) == 100 and len(unsent) > 50


def test_answers_that_are_not_http() -> None:
    """They cost the captions that they are for, and no others."""
    answers = [b"SSH-2.0-OpenSSH\r\n"] * 2 + [b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"] * 9
    asked: list[bytes] = []

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            asked.append(self.rfile.readline())
            self.wfile.write(answers.pop(0))

    with socketserver.TCPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        kept = Kept()
        service = CaptionService(f"zoom:http://127.0.0.1:{server.server_address[1]}/cc", "de")
        writer = PushWriter(kept, service, "de", patience=Backoff(0.01, 0.01, 0), pace=0)
        for text in ("Ich sah.", "Sie ging."):
            writer.write(final(text))
        writer.close()
        server.shutdown()
        thread.join(10)
    assert [line.split(b"?")[-1].split(b"&")[0] for line in asked[-2:]] == [b"seq=1", b"seq=2"]
    failure = "a caption could not be sent and was dropped: the service's answer is not HTTP"
    assert [event for event in kept.events if isinstance(event, Failure)] == [Failure(failure)]
    assert not writer.whole


def test_service_that_is_not_there() -> None:
    with serving(Captions()) as url:
        pass
    (failure,) = [event for event in push(f"zoom:{url}", final("eins")).events if isinstance(event, Failure)]
    assert "refused" in failure.message


@pytest.mark.parametrize(
    ("language", "name"),
    [
        *[("de", "de-DE"), ("German", "de-DE"), ("de-AT", "de-AT"), ("ja", "jp-JP"), ("en", "en-US"), ("fr", "fr-FR")],
        *[("zh", "zh-CN"), ("zh-Hant", "zh-TW"), ("zh-HK", "zh-HK"), ("pt", "pt-BR"), ("pt-PT", "pt-PT")],
        *[("sv", "sv-SE"), ("ko", "ko-KR"), ("uk", "uk-UA"), ("cs", "cs-CZ"), ("da", "da-DK"), ("sr-Latn", "sr-RS")],
    ],
)
def test_zoom_tags_have_a_territory(language: str, name: str) -> None:
    assert zoom_language(language) == name


@pytest.mark.parametrize(
    "target",
    [
        *("zoom", "zoom:", "zoom:ftp://a", "teams:https://a", "https://a", "zoom:https://["),
        *("zoom:https://a/b c", "youtube:https://a/\u00e4"),
    ],
)
def test_what_is_no_service_is_refused(target: str) -> None:
    with pytest.raises(OptionError, match="push must be zoom:URL or youtube:URL"):
        CaptionService(target, "de")


class Decided:
    """What the audience may see, as somebody decides."""

    def __init__(self) -> None:
        self.paused, self.hidden = False, set[str]()

    def is_hidden(self, utterance: str, language: str) -> bool:
        return utterance in self.hidden


def said(utterance: str) -> Caption:
    return Caption(utterance, 0, "de", f"Satz {utterance}", final=True)


def test_only_what_the_audience_may_see() -> None:
    captions, decided = Captions(), Decided()
    with serving(captions) as url:
        pushing = PushWriter(Kept(), CaptionService(f"zoom:{url}", "de"), "de", decided, patience=QUICK, pace=0.0)
        decided.paused = True
        pushing.write(said("1"))
        pushing.write(said("2"))
        decided.hidden.add("1")
        decided.paused = False
        eventually(lambda: len(captions.got) == 1)
        decided.paused = True
        pushing.write(said("3"))  # still held back at the end
        pushing.close()
    assert list(captions.got.values()) == ["Satz 2\n"] and pushing.whole


@pytest.mark.parametrize("reading", [None, 20])
def test_hidden_lines(reading: int | None) -> None:
    from redraft.captions.formats.rows import RowsWriter

    captions, decided = Captions(), Decided()
    decided.hidden = {"1.2"}
    with serving(captions) as url:
        service = CaptionService(f"zoom:{url}", "de")
        writer: Writer = PushWriter(Kept(), service, "de", decided, lines=reading is not None, patience=QUICK, pace=0.0)
        writer = RowsWriter(writer, reading) if reading else writer
        for utterance in ("1", "1.2", "2"):
            writer.write(said(utterance))
        writer.close()
    assert list(captions.got.values()) == ["Satz 1\n", "Satz 2\n"]
