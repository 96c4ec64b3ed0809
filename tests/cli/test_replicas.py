"""Two ``redraft serve`` behind a proxy: if one is killed, its clients resume on the other and lose nothing."""

from __future__ import annotations

import asyncio
import json
import signal
from contextlib import suppress
from itertools import cycle
from pathlib import Path

import pytest

from tests.cli.served import served
from tests.client.crowd import Crowd, Speaker
from tests.client.lines import Line, line

SESSIONS = 6


class RoundRobin(Line):
    """Leads each connection to the next server that accepts it."""

    def __init__(self, *ports: int) -> None:
        super().__init__(ports[0])
        self._turns = cycle(ports)

    async def open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        for _ in range(2):
            with suppress(OSError):
                return await asyncio.open_connection("127.0.0.1", next(self._turns))
        raise ConnectionRefusedError


@pytest.mark.slow
def test_killed_replica_costs_nothing_but_moment(tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("one", "two")]
    arguments = []
    for folder in folders:
        folder.mkdir()
        config = folder / "serve.toml"
        config.write_text(f"transcripts = {json.dumps(str(folder))}\nstarts_per_second = 1000\nbusy = 1000\n")
        arguments.append(("--port", "0", "--config", str(config)))

    async def work(port: int) -> None:
        speakers = [Speaker(f"http://127.0.0.1:{port}", ["de", "ja"], pause=0.2) for _ in range(SESSIONS)]
        async with Crowd(speakers) as crowd:
            await crowd.progress()
            first.send_signal(signal.SIGKILL)
            await crowd.progress()
            away = crowd.away("connection")
            assert len(away) == SESSIONS // 2 and away[-1] < 5
            await crowd.finish()
        for speaker in speakers:
            (file,) = folders[1].glob(f"*-{speaker.client.session}.jsonl")
            rows = map(json.loads, file.read_text(encoding="utf-8").splitlines())
            kept = [(row["utterance"], row["language"], row["text"]) for row in rows if row["language"] != "en"]
            assert sorted(kept) == sorted(speaker.finals)

    async def behind_a_proxy(*ports: int) -> None:
        async with line(RoundRobin(*ports)) as proxy:
            await work(proxy.port)

    with served(*arguments[0]) as (first, port), served(*arguments[1]) as (_, other):
        asyncio.run(asyncio.wait_for(behind_a_proxy(port, other), 180))
