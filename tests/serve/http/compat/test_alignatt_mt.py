"""WhisperLiveKit's translation protocol: what is committed only grows, whatever a client sends."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from websockets.exceptions import ConnectionClosed

from redraft import deadlines
from redraft.captions.ending import LONG_PAUSE
from redraft.serve.access import new_key
from redraft.serve.http.compat.alignatt_mt import MOST_WORDS, MtUpdate
from tests.serve.fakes import CachedModel
from tests.serve.servers import Running, Socket, running
from tests.waiting import eventually

WORDS = "we saw her duck under the table and left house before it rained".split()
SETTINGS: dict[str, Any] = {
    "compat": ("alignatt-mt",),
    "methods": ("redraft", "ssbd", "ar"),
    "busy": 1000,
    "updates_per_second": 10_000,
    "sessions_per_address": 128,
}


@pytest.fixture(scope="module")
def server() -> Iterator[Running]:
    with running(**SETTINGS) as found:
        yield found


@contextmanager
def session(server: Running, **fields: Any) -> Iterator[Socket]:
    """A connection that was accepted."""
    with server.socket("/") as socket:
        found = begun(socket, **fields)
        assert found["type"] == "init_ok", found
        yield socket


def begun(socket: Socket, **fields: Any) -> dict[str, Any]:
    socket.say("init", **{"protocol_version": 1, "source_lang": "en", "target_lang": "de", **fields})
    return socket.hear()


def update(words: Sequence[str], tail: Sequence[str] = (), **fields: Any) -> dict[str, Any]:
    more = {"tail": {"words": [[word, None, None] for word in tail]}} if tail else {}
    timed = [[word, 100.0 * at, 100.0 * at + 90] for at, word in enumerate(words)]
    return {"utterance_id": 0, "words": timed, "clock_ms": 100.0 * len(words), "is_final": False, **more, **fields}


def ask(socket: Socket, words: Sequence[str], tail: Sequence[str] = (), **fields: Any) -> dict[str, Any]:
    socket.say("update", **update(words, tail, **fields))
    return socket.hear()


def test_init(server: Running) -> None:
    with server.socket("/") as socket:
        found = begun(socket, preset="gemma_low_latency", context_text="A talk", overrides={"unknown": 1}, new_field=2)
    assert {name: found[name] for name in ("protocol_version", "direction", "preset")} == {
        "protocol_version": 1,
        "direction": "en-de",
        "preset": "gemma_low_latency",
    }


def test_answer_has_all_fields(server: Running) -> None:
    with session(server) as socket:
        found = ask(socket, WORDS[:3], WORDS[3:5], seq=42, utterance_id=3)
        last = ask(socket, WORDS[:5], seq=43, utterance_id=3, is_final=True)
    assert (found["type"], found["seq"], found["utterance_id"], found["final"]) == ("translation", 42, 3, False)
    assert found["covered_source_units"] is None  # there is a tail
    assert found["committed_text"] == found["committed_delta"]
    assert (last["final"], last["forced_final"], last["buffer_text"]) == (True, False, "")
    assert last["covered_source_units"] == 5
    assert last["committed_text"]


@given(st.integers(0, 100_000))
@settings(max_examples=25)
def test_committed_text_only_grows(server: Running, seed: int) -> None:
    """Tails change, words are committed, utterances end, and the connection is lost now and then."""
    rng = random.Random(seed)
    seq, shown, utterance, words = 0, "", 0, list[str]()
    for _ in range(rng.randint(1, 3)):
        with session(server, accepted_target_prefix=shown) as socket:
            for _ in range(rng.randint(1, 6)):
                seq += 1
                words += rng.choices(WORDS, k=rng.randint(0, 3))
                tail = rng.choices(WORDS, k=rng.randint(0, 3)) if rng.random() < 0.7 else []
                final = rng.random() < 0.2
                found = ask(socket, words, tail, seq=seq, utterance_id=utterance, is_final=final)
                assert (found["type"], found["seq"], found["utterance_id"]) == ("translation", seq, utterance)
                assert found["final"] is final
                if final:
                    if found["committed_delta"]:
                        assert found["committed_text"] == shown + found["committed_delta"]
                    shown, utterance, words = "", utterance + 1, []
                else:
                    assert found["committed_text"] == shown + found["committed_delta"]
                    shown = found["committed_text"]


@given(st.integers(0, 100_000))
@settings(max_examples=15)
def test_tail_is_not_committed(server: Running, seed: int) -> None:
    """What is committed is the beginning of a translation of words that are all committed."""
    rng, made, words = random.Random(seed), [("", "")], list[str]()
    with session(server) as socket:
        for _ in range(rng.randint(2, 7)):
            words += rng.choices(WORDS, k=rng.randint(0, 2))
            tail = rng.choices(WORDS, k=rng.randint(0, 3))
            found = ask(socket, words, tail)
            tail = [] if tail == words[-len(tail) :] else tail  # an old one
            whole = f"{found['committed_text']} {found['buffer_text']}".split()
            made.append((" ".join([*words, *tail]), " ".join(whole)))
            known = [text for source, text in made if f"{' '.join(words)} ".startswith(f"{source} ".lstrip())]
            assert any(f"{text} ".startswith(f"{found['committed_text']} ".lstrip()) for text in known)


def test_commit_of_translated_words_needs_no_pass() -> None:
    """It may release words, and asks the model for nothing."""
    released = 0
    for seed in range(12):
        model, rng = CachedModel(seed), random.Random(seed)
        with running(model, **SETTINGS) as server, session(server) as socket:
            words = rng.choices(WORDS, k=6)
            for count in (1, 2, 3):
                ask(socket, words[:count], rng.choices(WORDS, k=2))
            before = ask(socket, words[:4], words[4:])
            passes = len(model.new)
            after = ask(socket, words)
            assert len(model.new) == passes
            assert after["committed_text"] == before["committed_text"] + after["committed_delta"]
            released += bool(after["committed_delta"])
    assert released


def test_pause_needs_no_pass_where_nobody_watches() -> None:
    """The rest of a translation would count as another output, on which the next answer may agree."""
    model = CachedModel(1)
    with running(model, **SETTINGS) as server, session(server) as socket:
        ask(socket, WORDS[:3], WORDS[3:5])
        passes = len(model.new)
        time.sleep(LONG_PAUSE + 0.5)
        assert len(model.new) == passes


@pytest.mark.parametrize("words", [["we", "saw"], ["Yes", ",", "we", "saw", "her", "."]])
def test_commit_of_whole_tail_needs_no_pass(words: list[str]) -> None:
    """WhisperLiveKit sends the tail again with its words, until it has another one."""
    tail = "Yes, we saw her.".split() if "Yes" in words else words
    model = CachedModel(1)
    with running(model, **SETTINGS) as server, session(server) as socket:
        ask(socket, [], tail)
        passes = len(model.new)
        found = ask(socket, words, tail)
        assert len(model.new) == passes
        assert found["committed_text"]
        assert ask(socket, words)["committed_text"] == found["committed_text"]


def test_pieces_of_words() -> None:
    """WhisperLiveKit's pieces of a text come without the space before them."""

    def text(*words: str, tail: str = "") -> str:
        sent: dict[str, Any] = {
            "words": [[word] for word in words],
            "tail": {"words": [[word] for word in tail.split()]},
        }
        return MtUpdate.checked({"type": "update", **sent}).text

    assert text("Yes", ",", "at", "5", "o", "'clock", ".") == "Yes, at 5 o'clock."
    assert text("twenty", "-five", "or", "3", ".5", "%") == "twenty-five or 3.5%"
    assert text("(", "he", "said", ":", '"', "no", "-", "never") == '( he said: " no - never'
    assert text("Yes", tail=", I do") == text("Yes", ",", tail="I do") == "Yes, I do"
    assert text("日", "本", "、", tail="東京") == "日本、東京"
    assert text(tail="it is 'so") == "it is 'so"
    assert text(tail="日 本") == "日本"
    assert text("I", "do", tail="I do") == "I do"
    assert text("I", "do", tail="not") == "I do not"


def test_full_stop_after_pause(server: Running) -> None:
    """WhisperLiveKit ends an utterance in a pause, and sends the full stop of its sentence as the next one."""
    with session(server) as socket:
        assert ask(socket, WORDS[:4], is_final=True)["committed_text"]
        found = ask(socket, ["."], utterance_id=1, is_final=True)
        assert (found["final"], found["committed_text"], found["committed_delta"]) == (True, "", "")
        assert ask(socket, [], ["..."], utterance_id=2)["buffer_text"] == ""
        assert ask(socket, WORDS[:4], utterance_id=2, is_final=True)["committed_text"]


def test_finals_stay_and_partials_coalesce(server: Running) -> None:
    """Final updates are answered once and in order; of partial ones that wait, only the newest."""
    with session(server) as socket:
        sent = []
        for utterance in range(5):
            for count in range(1, 6):
                sent.append((utterance, 10 * utterance + count, False))
            sent.append((utterance, 10 * utterance + 9, True))
        for utterance, seq, final in sent:
            words = WORDS[: min(seq % 10, 6)]
            socket.say("update", **update(words, utterance_id=utterance, seq=seq, is_final=final))
        heard = [socket.hear()]
        while heard[-1].get("seq") != 49:
            heard.append(socket.hear())
    answers = [each for each in heard if each["type"] == "translation"]
    assert [each["seq"] for each in answers if each["final"]] == [9, 19, 29, 39, 49]
    assert [each["seq"] for each in answers] == sorted({each["seq"] for each in answers})


def test_many_at_once(server: Running) -> None:
    """Sessions do not wait for each other, and each gets its own translation."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(session(server, target_lang=language)) for language in ("de", "fr", "ja") * 4]
        for socket in sockets:
            socket.say("update", **update(WORDS[:4], is_final=True))
        texts = [socket.hear()["committed_text"] for socket in sockets]
    assert texts == texts[:3] * 4
    assert len(set(texts)) > 1


def test_utterance_too_long_is_ended(server: Running) -> None:
    words = random.Random(1).choices(WORDS, k=MOST_WORDS + 1)
    with session(server) as socket:
        found = ask(socket, words, ["and"], utterance_id=7)
        assert (found["final"], found["forced_final"]) == (True, True)
        late = ask(socket, words, utterance_id=7, seq=5)
        assert (late["type"], late["code"], late["seq"]) == ("error", "processing_failed", 5)
        assert ask(socket, WORDS[:2], utterance_id=8)["final"] is False


def test_new_utterance_without_final(server: Running) -> None:
    with session(server) as socket:
        ask(socket, WORDS[:4], utterance_id=0)
        found = ask(socket, WORDS[:2], utterance_id=1)
    assert found["utterance_id"] == 1
    assert found["committed_text"] == found["committed_delta"]


def test_empty_and_strange_words(server: Running) -> None:
    with session(server) as socket:
        assert ask(socket, [])["committed_text"] == ""
        assert ask(socket, ["", " ", "\u2028"], ["\x00"])["committed_text"] == ""
        socket.say("update", words=[["alone"], ["日本", 1.0]], utterance_id=0)
        assert socket.hear()["type"] == "translation"


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"protocol_version": 2}, "bad_protocol"),
        ({"type": "start"}, "bad_protocol"),
        ({"target_lang": "nolanguage"}, "unsupported_direction"),
        ({"source_lang": ""}, "unsupported_direction"),
        ({"history": [["one"]]}, "bad_protocol"),
    ],
)
def test_refused_init(server: Running, fields: dict[str, Any], code: str) -> None:
    message = {"type": "init", "protocol_version": 1, "source_lang": "en", "target_lang": "de", **fields}
    with server.socket("/") as socket:
        socket.connection.send(json.dumps(message))
        found = socket.hear()
        assert (found["type"], found["code"]) == ("error", code)
        assert ("supported" in found) == (code == "unsupported_direction")
        with pytest.raises(ConnectionClosed):
            socket.hear()


@pytest.mark.parametrize("sent", ["{", "[]", "1", '{"type": "update", "words": 1}', '{"type": "other"}', '{"seq": -1}'])
def test_invalid_message_is_answered(server: Running, sent: str) -> None:
    with session(server) as socket:
        socket.connection.send(b"\x00")  # binary messages are passed over
        socket.connection.send(sent)
        found = socket.hear()
        assert (found["type"], found["code"]) == ("error", "bad_protocol")
        assert ask(socket, WORDS[:2])["type"] == "translation"


def test_failed_pass() -> None:
    """An update that cannot be translated is dropped; the session goes on."""
    broken: list[bool] = [False]
    with running(CachedModel(1, broken=lambda _: broken[0]), **SETTINGS) as server, session(server) as socket:
        before = ask(socket, WORDS[:2])
        broken[0] = True
        failed = ask(socket, WORDS[:3], seq=8)
        broken[0] = False
        assert (failed["code"], failed["seq"]) == ("processing_failed", 8)
        found = ask(socket, WORDS[:4])
        assert found["committed_text"] == before["committed_text"] + found["committed_delta"]


def test_full_server() -> None:
    with running(**{**SETTINGS, "sessions": 1}) as server, session(server), server.socket("/") as socket:
        assert begun(socket)["code"] == "busy"


def test_session_is_given_back(server: Running) -> None:
    before = set(server.hub.sessions)
    with session(server):
        (name,) = server.hub.sessions.keys() - before
    for _ in range(200):
        if name not in server.hub.sessions and server.hub.past.find(name) is None:
            return
        with server.socket("/v1/live"):
            pass
    raise AssertionError("the session is still there")


def test_key(tmp_path: Any) -> None:
    keys = tmp_path / "keys.txt"
    key = new_key(keys, "talk")
    with running(**SETTINGS, keys=keys) as server:
        with server.socket("/") as socket:  # refused at once, before any message
            assert socket.hear()["code"] == "bad_protocol"
        with server.socket(f"/?key={key}") as socket:
            assert begun(socket)["type"] == "init_ok"
        with server.socket("/", additional_headers={"Authorization": f"Bearer {key}"}) as socket:
            assert begun(socket)["type"] == "init_ok"


def test_page_is_still_there(server: Running) -> None:
    assert server.ask("/").status == 200


def test_idle_connection_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """WhisperLiveKit leaves the connection of every browser open, and an address may only have so many.

    A connection that waits for a translation is not idle.
    """
    monkeypatch.setattr(deadlines, "IDLE_PEER", 0.5)
    pauses = [1.0]

    def broken(_: object) -> bool:
        time.sleep(pauses.pop() if pauses else 0)
        return False

    model = CachedModel(broken=broken)
    with running(model, **SETTINGS | {"sessions_per_address": 1}) as server, session(server) as left:
        with server.socket("/") as refused:
            assert begun(refused)["code"] == "busy"
        assert ask(left, WORDS[:3])["type"] == "translation"
        assert not pauses
        with pytest.raises(ConnectionClosed):
            left.hear()
        with session(server, accepted_target_prefix="left") as again:
            assert ask(again, WORDS[:3])["committed_text"].startswith("left")


# --- rooms


@pytest.fixture
def room(request: pytest.FixtureRequest) -> str:
    """A room for each test, since a room keeps its last session for a while."""
    return str(request.node.name).replace("_", "-")


def test_room(server: Running, room: str) -> None:
    """Viewers get the captions of what is committed in the end, and a file of all of them."""
    with server.socket(f"/v1/rooms/{room}/watch") as viewer, server.socket(f"/?room={room}") as socket:
        assert begun(socket)["type"] == "init_ok"
        answers = []
        for utterance, words in enumerate((WORDS[:4], ["."], WORDS[4:7])):
            for count in range(1, len(words)):
                ask(socket, words[:count], words[count : count + 1], utterance_id=utterance)
            begin = 5000 * utterance
            times = [[word, begin + 700 * at, begin + 700 * at + 500] for at, word in enumerate(words)]
            socket.say("update", **{**update(words, utterance_id=utterance, is_final=True), "words": times})
            answers.append(socket.hear())
        texts = [each["committed_text"] for each in answers if each["committed_text"]]
        heard = [viewer.until("final")[-1] for _ in texts]
        assert [each["text"] for each in heard] == texts and len(texts) == 2
        assert [each["source"] for each in heard] == [" ".join(WORDS[:4]), " ".join(WORDS[4:7])]
        times = [[word, 15_000 + 700 * at, 15_000 + 700 * at + 500] for at, word in enumerate(WORDS[:2])]
        socket.say("update", **{**update(WORDS[:2], utterance_id=3), "words": times})
        socket.hear()
    last = viewer_of_end(server, room)  # an utterance that was open
    assert [each["source"] for each in last] == [*(each["source"] for each in heard), " ".join(WORDS[:2])]
    subtitles = server.ask(f"/v1/rooms/{room}/transcript?format=srt").text
    assert all(f"\n{text}\n" in subtitles for text in texts)
    assert "00:00:00,000 --> 00:00:07,000" in subtitles  # from the first word on, while nothing follows


def viewer_of_end(server: Running, room: str) -> list[dict[str, Any]]:
    """The final captions of a room whose session has ended."""
    eventually(lambda: server.ask(f"/v1/rooms/{room}").json["state"] == "over")
    with server.socket(f"/v1/rooms/{room}/watch") as viewer:
        assert viewer.hear()["state"] == "over"
        rows = server.ask(f"/v1/rooms/{room}/transcript?format=jsonl").text.splitlines()
        return [viewer.until("final")[-1] for _ in rows]


def test_utterance_without_final_in_room(server: Running, room: str) -> None:
    with server.socket(f"/v1/rooms/{room}/watch") as viewer, server.socket(f"/?room={room}") as socket:
        begun(socket)
        ask(socket, WORDS[:3], utterance_id=0)
        ask(socket, WORDS[:2], utterance_id=1)
        assert viewer.until("final")[-1]["source"] == " ".join(WORDS[:3])


def test_room_in_use(server: Running, room: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """WhisperLiveKit leaves its connections open, so one that is silent gives way; it tries again by itself."""
    with (
        server.socket(f"/?room={room}") as first,
        server.socket(f"/?room={room}") as second,
        server.socket(f"/?room={room}") as third,
    ):
        begun(first)
        ask(first, WORDS[:3])
        assert begun(second)["code"] == "busy"
        monkeypatch.setattr(deadlines, "QUIET", 0.0)
        assert begun(third)["type"] == "init_ok"
        assert ask(third, WORDS[:3])["type"] == "translation"
        replaced = ask(first, WORDS[:4])
        assert replaced["type"] == "error" and f"another session has taken over room {room!r}" in replaced["message"]
        with pytest.raises(ConnectionClosed):
            first.hear()


def test_room_of_a_client_that_has_said_nothing(server: Running, room: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deadlines, "QUIET", 0.0)
    with server.socket(f"/?room={room}") as first, server.socket(f"/?room={room}") as second:
        assert begun(first)["type"] == begun(second)["type"] == "init_ok"


def test_session_of_a_page_is_not_replaced(server: Running, room: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deadlines, "QUIET", 0.0)
    with server.socket() as page, server.socket(f"/?room={room}") as socket:
        assert page.start(room=room)["type"] == "started"
        assert begun(socket)["code"] == "busy"


def test_room_that_is_refused(tmp_path: Any) -> None:
    keys = tmp_path / "keys.txt"
    stage, other = new_key(keys, "stage"), new_key(keys, "other")
    with running(**SETTINGS, keys=keys, rooms={"hall-1": ["stage"]}) as server:
        for path, code in {
            f"/?room=hall-1&key={other}": "busy",
            f"/?room=Hall&key={stage}": "busy",
            "/?room=hall-1": "bad_protocol",
        }.items():
            with server.socket(path) as socket:
                assert (begun(socket) if "key" in path else socket.hear())["code"] == code
        with server.socket(f"/?room=hall-1&key={stage}") as socket:
            assert begun(socket)["type"] == "init_ok"
