"""``redraft serve`` as a process, and ``redraft translate --server``: started, killed, started again, stopped."""

from __future__ import annotations

import asyncio
import json
import re
import signal
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import urlopen

import pytest

from redraft.captions.events import Caption, Event
from redraft.captions.talk import load_talk
from redraft.cli.serve import serve
from redraft.client import Backoff, Client
from redraft.engine.engine import Stopped
from redraft.errors import OptionError, RedraftError
from redraft.serve.access import new_key
from tests.cli.conftest import Run
from tests.cli.served import served
from tests.cli.terminals import Terminal, program
from tests.serve.servers import running
from tests.serve.talking import expected, finals


@pytest.mark.slow
def test_killed_and_started_again() -> None:
    talk = [update for update in load_talk() if int(update.utterance) <= 6]
    kills = [2, 5, 9]  # each as soon as there are so many finals, whatever else is under way
    #: Utterance -> number of reconnections for which its final update waits, so that it is open when a server dies.
    held = {"3": 1, "5": 2, "6": 3}
    seen: list[Event] = []

    def finals() -> list[tuple[str, str]]:
        return [(event.utterance, event.language) for event in seen if isinstance(event, Caption) and event.final]

    async def work(stack: ExitStack) -> None:
        process, port = stack.enter_context(served("--port", "0"))
        address = f"http://127.0.0.1:{port}"

        async def reconnected(client: Client, number: int) -> None:
            while client.reconnected < number:
                await asyncio.sleep(0.02)

        async def speak(client: Client) -> None:
            for update in talk:
                if update.final:
                    await reconnected(client, held.get(update.utterance, 0))
                await client.send(update)
                await asyncio.sleep(0.02)
            await client.end()

        async with Client(address, ["de", "ja"], method="ar", backoff=Backoff(0.1, 0.5, 120)) as client:
            speaking = asyncio.create_task(speak(client))
            async for event in client:
                seen.append(event)
                if kills and len(finals()) >= kills[0]:
                    kills.pop(0)
                    process.send_signal(signal.SIGKILL)
                    process.wait()
                    process, _ = await asyncio.to_thread(stack.enter_context, served("--port", str(port)))
                    await reconnected(client, 3 - len(kills))  # finals that came before the kill may be unread
            await speaking
            assert client.reconnected == 3
            with urlopen(f"{address}/v1/sessions/{client.session}/transcript?format=jsonl") as answer:
                rows = [json.loads(row) for row in answer.read().decode().splitlines()]
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
        assert process.stderr is not None and "drained" in process.stderr.read()
        everything = [(str(number), target) for number in range(1, 7) for target in ("de", "ja")]
        assert sorted(finals()) == sorted((row["utterance"], row["language"]) for row in rows) == everything
        texts = {(row["utterance"], row["language"]): row["text"] for row in rows}
        assert texts == {(e.utterance, e.language): e.text for e in seen if isinstance(e, Caption) and e.final}

    with ExitStack() as stack:
        asyncio.run(asyncio.wait_for(work(stack), 180))


def test_stream_is_translated_by_server(redraft: Run) -> None:
    with running() as server:
        done = redraft(
            *("translate", "--to", "de", "--to", "ja", "--server", server.url, "--method", "ar", "--output", "srt"),
            stdin=b"we\nwe saw\n\nher duck\n",
        )
    assert done.status == 0
    assert re.fullmatch(rf"viewers: {server.url}/watch\?session=[0-9a-f]{{32}}\n", done.err)
    cues = [" ".join(cue.splitlines()[2:]) for cue in done.out.strip().split("\n\n")]
    assert cues == [f"{expected(text)} {expected(text, 'ja')}" for text in ("we saw", "her duck")]


def test_stream_is_shown_in_room(redraft: Run) -> None:
    with running() as server, server.socket("/v1/rooms/hall-1/watch") as viewer:
        at = ("translate", "--to", "de", "--server", server.url, "--method", "ar", "--room", "hall-1")
        for text in ("we saw", "her duck"):
            done = redraft(*at, stdin=text.encode())
            assert (done.status, done.err) == (0, f"viewers: {server.url}/watch/hall-1\n")
            assert finals(viewer.until("final")) == [("1", "de", expected(text))]
        with server.socket() as socket:
            socket.start(room="hall-1")
            assert "room 'hall-1' is in use" in redraft(*at, stdin=b"we saw").err


def test_addresses_on_a_terminal() -> None:
    """Of viewers, and one with which other programs decide what they see."""
    with running() as server:
        command = program("translate", "--to", "de", "--server", server.url, "--method", "ar", "--output", "lines")
        with Terminal(200, 30, command) as terminal:
            terminal.wait_for("control: ")
            terminal.wait_for("\n", terminal.output.index("control: "))
            (session,) = server.hub.sessions.values()
            assert f"viewers: {server.url}/watch?session={session.name}" in terminal.output
            found = re.search(rf"control: {server.url}(/v1/control/\S+)", terminal.output)
            assert found and server.ask(found[1], {"type": "pause"}).status < 300
            assert session.transcript.paused
            terminal.type("we saw\n\n\x04")
            terminal.wait_for("final\tde")
            assert terminal.ended() == 0


def test_cue_begins_with_its_utterance(redraft: Run) -> None:
    rows = [
        {"utterance": "1", "seq": seq, "text": "we saw", "time": 2.0 + seq / 2, "final": seq == 9} for seq in range(10)
    ]
    data = "\n".join(map(json.dumps, rows)).encode()
    with running() as server:
        done = redraft(
            *("translate", "--to", "de", "--server", server.url, "--input", "jsonl", "--output", "srt"), stdin=data
        )
    assert done.out.splitlines()[1] == "00:00:02,000 --> 00:00:06,500"


def test_what_server_refuses_and_what_it_decides(redraft: Run) -> None:
    with running() as server:
        at = ("translate", "--to", "de", "--server", server.url)
        assert "method must be one of ssbd, ar" in redraft(*at, "--method", "redraft", stdin=b"a\n").err
        done = redraft(*at, "--model", "demo", "--engine", "threads=1", stdin=b"a\n")
        assert (done.status, done.err) == (
            2,
            "redraft: --model is for translating here, so leave it out with --server, which decides this itself\n",
        )
        assert redraft(*at, stdin=b"").status == 1  # an empty input is a failure
        done = redraft(*at, "--output", "jsonl", stdin=b"we saw {her}\n")
        assert done.status == 0
    done = redraft("translate", "--to", "de", "--server", "http://127.0.0.1:1", stdin=b"a\n")
    assert done.status == 2 and "cannot be reached" in done.err


def test_key_that_is_missing_or_wrong_is_told_apart(
    redraft: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("REDRAFT_KEY", raising=False)
    key = new_key(tmp_path / "keys", "stage")
    with running(keys=tmp_path / "keys") as server:
        at = ("translate", "--to", "de", "--server", server.url, "--output", "lines")
        missing, wrong = redraft(*at, stdin=b"we saw\n"), redraft(*at, "--key", "wrong", stdin=b"we saw\n")
        good = redraft(*at, "--key", key, stdin=b"we saw\n")
    assert (missing.status, wrong.status, good.status) == (2, 2, 0)
    assert "an API key is needed" in missing.err and "REDRAFT_KEY" in missing.err
    assert "the API key is not known to this server" in wrong.err and "--key" in wrong.err
    assert expected("we saw") in good.out


def test_key_in_the_environment_is_for_servers_only(redraft: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REDRAFT_KEY", "some")
    done = redraft("translate", "--to", "de", "--model", "demo-tiny", "--output", "lines", stdin=b"I have a dog.\n\n")
    assert done.status == 0 and "final\tde\t" in done.out


def test_key_is_made_and_shown_once(redraft: Run, tmp_path: Path) -> None:
    keys = tmp_path / "keys"
    done = redraft("serve", "--keys", str(keys), "--new-key", "stage")
    assert done.status == 0 and done.out.startswith("rd_")
    assert keys.read_text().startswith("stage:") and done.out.strip() not in keys.read_text()
    assert "--new-key needs --keys" in redraft("serve", "--new-key", "stage").err


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (("--host", "0.0.0.0"), "needs API keys"),
        (("--config", "nowhere.toml"), "settings file 'nowhere.toml'"),
        (("--method", "none"), "method"),
        (("--model", "none"), "model 'none' is neither"),
        (("--method", "bild-early-exit"), "bild-early-exit"),
        (("--keys", "nowhere"), "keys file 'nowhere' cannot be read: No such file or directory\n"),
        (("--recogniser", "nothing"), "recogniser 'nothing' is not known; known recognisers: moonshine"),
        (("--punctuation", "punct"), "it needs the setting recogniser"),
    ],
)
def test_server_cannot_be_started(
    redraft: Run, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], part: str
) -> None:
    done = redraft("serve", "--port", "0", *arguments)
    assert done.status == 2 and part in done.err and done.err.count("\n") == 1


def test_viewers_link(redraft: Run) -> None:
    with running() as server:
        at = ("translate", "--to", "de", "--server", f"{server.url}/", "--output", "jsonl")
        done = redraft(*at, stdin=b"we saw\n")
        link = done.err.removeprefix("viewers: ").strip()
        with urlopen(link) as answer:
            assert "<html" in answer.read().decode()
        with urlopen(f"{server.url}/v1/sessions/{link.rpartition('=')[2]}/transcript?format=txt") as answer:
            assert answer.read().decode() == expected("we saw") + "\n"


def test_greeting() -> None:
    arguments = ("serve", "--model", "demo-tiny", "--engine", "threads=1", "--port", "0")
    with Terminal(80, 24, program(*arguments)) as terminal:
        terminal.wait_for("Ctrl-C finishes the current captions")
        terminal.wait_for("\n", terminal.output.index("Ctrl-C"))
        shown = re.sub(r"\x1b\[[\d;]*m|\x1b\]8;[^\x1b]*\x1b\\", "", terminal.output)
        addresses = re.findall(r"http://127\.0\.0\.1:\d+/\w*", shown)
        assert [urlsplit(each).path for each in addresses] == ["/", "/rooms", "/docs"]
        for address in addresses:
            with urlopen(address) as answer:
                assert answer.status == 200
        # On a busy machine, a warning that the cost of a pass could not be measured well.
        greeting = [line for line in shown.splitlines() if " warning: " not in line]
        assert "{" not in shown and max(map(len, greeting)) <= 80
        terminal.type("\x03")
        assert terminal.ended() == 0
    assert "stopping" in terminal.output and "Traceback" not in terminal.output


@pytest.mark.parametrize(("error", "status"), [(Stopped("it has stopped"), 1), (OptionError("port is taken"), 2)])
def test_status_of_stopped_server(
    redraft: Run, monkeypatch: pytest.MonkeyPatch, error: RedraftError, status: int
) -> None:
    def serve(*_: object) -> None:
        raise error

    monkeypatch.setattr("redraft.serve.run.serve", serve)
    found = redraft("serve", "--port", "0")
    assert (found.status, found.err) == (status, f"redraft: {error}\n")


def test_recogniser_without_name() -> None:
    parsed = serve.make_context("serve", ["--recogniser", "--port", "0"]).params
    assert (parsed["recogniser"], parsed["port"]) == ("auto", 0)
    assert serve.make_context("serve", ["--recogniser", "whisper:base"]).params["recogniser"] == "whisper:base"
