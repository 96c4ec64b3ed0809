"""A client of several servers at one address that share no state."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path

from redraft.captions.events import Caption, Event, Update
from redraft.client import Client
from tests.client.lines import EXACT, QUICK, ended, line, run, talk
from tests.serve.servers import Running, running
from tests.serve.talking import expected

UTTERANCES = 12


async def heard(client: Client, count: int) -> list[Event]:
    """Events until so many final captions have come."""
    events: list[Event] = []
    async for event in client:
        events.append(event)
        if len(ended(events)) == count:
            break
    return events


def test_return_to_earlier_server(tmp_path: Path) -> None:
    """The first server still has its old copy of the session; both write into one folder."""

    async def work(*servers: Running) -> None:
        wanted = [
            (str(n), target, expected(f"{n} it was her duck", target)) for n in range(12) for target in ("de", "ja")
        ]
        events: list[Event] = []
        async with (
            line(servers[0].port) as cable,
            Client(f"http://127.0.0.1:{cable.port}", ["de", "ja"], method=EXACT, backoff=QUICK) as client,
        ):
            for turn in range(4):
                cable.to = servers[turn % 2].port
                cable.cut()
                for update in talk(UTTERANCES)[12 * turn : 12 * (turn + 1)]:
                    await client.send(update)
                if turn == 3:
                    await client.end()
                events += await heard(client, 6)
            assert client.reconnected >= 3
            events += [event async for event in client]
            assert sorted(ended(events)) == sorted(wanted)
            for target in ("de", "ja"):
                in_order = [text for _, language, text in ended(events) if language == target]
                assert in_order == [text for _, language, text in wanted if language == target]
                path = f"/v1/sessions/{client.session}/transcript?language={target}"
                assert servers[1].ask(path).text.splitlines() == in_order
        (file,) = tmp_path.glob("*.jsonl")

        def captions() -> set[tuple[str, str]]:
            rows = map(json.loads, file.read_text(encoding="utf-8").splitlines())
            return {(row["utterance"], row["language"]) for row in rows if row["language"] in ("de", "ja")}

        until = time.monotonic() + 20
        while len(captions()) < len(wanted) and time.monotonic() < until:
            await asyncio.sleep(0.05)
        assert len(captions()) == len(wanted)

    with running(transcripts=tmp_path) as first, running(transcripts=tmp_path) as second:
        run(work(first, second))


def test_resume_needs_complete_session(tmp_path: Path) -> None:
    async def work(first: Running, second: Running) -> None:
        async with (
            line(first.port) as cable,
            Client(f"http://127.0.0.1:{cable.port}", ["de"], method=EXACT, backoff=QUICK) as client,
        ):
            await client.send(Update("1", 0, "we saw", final=True))
            await heard(client, 1)
            cable.to = second.port
            copies = []
            for count in range(1, 4):
                cable.cut()
                while client.reconnected < count:
                    await asyncio.sleep(0.01)
                copies.append(second.hub.sessions[client.session])
                if count == 2:  # an answer, so what was said before it has arrived
                    await client.send(Update("2", 0, "her duck", final=True))
                    await heard(client, 1)
            assert copies[0] is not copies[1] and copies[1] is copies[2]
            await client.end()
            assert [event async for event in client] == []
            text = second.ask(f"/v1/sessions/{client.session}/transcript").text
            assert text.splitlines() == [expected("we saw"), expected("her duck")]

    with running() as first, running() as second:
        run(work(first, second))


def test_start_time_after_drop() -> None:
    async def work(first: Running, second: Running) -> None:
        async with (
            line(first.port) as cable,
            Client(f"http://127.0.0.1:{cable.port}", ["de"], method=EXACT, backoff=QUICK) as client,
        ):
            await client.send(Update("1", 0, "we", time=2.0))
            async for event in client:
                assert isinstance(event, Caption) and not event.final
                break
            cable.to = second.port
            cable.cut()
            await client.send(Update("1", 1, "we saw", final=True, time=9.0))
            await heard(client, 1)
            srt = second.ask(f"/v1/sessions/{client.session}/transcript?format=srt").text
            assert srt.splitlines()[1] == "00:00:02,000 --> 00:00:09,000"

    with running() as first, running() as second:
        run(work(first, second))
