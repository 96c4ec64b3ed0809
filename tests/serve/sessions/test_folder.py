"""The operator's folder of transcripts: whatever the disk does, files follow, and nobody waits."""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from redraft import deadlines
from redraft.captions.events import Caption
from redraft.serve.sessions.broadcast import Broadcast
from redraft.serve.sessions.cells import Key, key_of
from redraft.serve.sessions.folder import Folder, SessionFile
from tests.serve.servers import SECONDS, running
from tests.serve.talking import expected, finals, say
from tests.waiting import eventually


def talk(folder: Folder) -> Broadcast:
    """A session with a file."""
    broadcast = Broadcast(("de", "ja"))
    broadcast.transcript.changes = partial(folder.add, SessionFile("1", broadcast.transcript))
    return broadcast


def end(broadcast: Broadcast, key: Key, text: str = "wir") -> None:
    broadcast.final(Caption(key[0], 0, key[1], text, final=True, speaker=key[0]), 0.0)


def rows(path: Path) -> list[tuple[Key, str]]:
    lines = map(json.loads, (path / "1.jsonl").read_text("utf-8").splitlines())
    return [((line["utterance"], line["language"]), f"{line['speaker']}: {line['text']}") for line in lines]


def settled(folder: Folder) -> None:
    eventually(lambda: not folder._files)


@pytest.mark.parametrize("seed", range(20))
def test_random_talks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """A server is killed and started again, and now and then the disk is full: a file has each caption once."""
    monkeypatch.setattr(deadlines, "RETRY", 0.01)
    drawn, full, write = random.Random(seed), threading.Event(), SessionFile.write

    def write_if_possible(file: SessionFile, path: Path, keys: dict[Key | None, None]) -> None:
        if full.is_set():
            raise OSError("the disk is full")
        write(file, path, keys)
        if drawn.random() < 0.2:
            full.set()
            raise OSError("the disk is full")

    monkeypatch.setattr(SessionFile, "write", write_if_possible)
    before: dict[Key, str] = {}
    for life in range(3):
        folder = Folder(tmp_path)
        broadcast = talk(folder)
        for _ in range(60):
            key = str(drawn.randrange(20)), drawn.choice(("de", "ja"))
            speak, correct = (
                partial(end, broadcast, key, f"{life} {key}"),
                partial(broadcast.correct, key, f"{life} besser"),
            )
            hide, show = partial(broadcast.hide, key, True), partial(broadcast.hide, key, False)
            name = partial(broadcast.name, key[0], f"{life} Anna")
            drawn.choice((speak, speak, correct, hide, show, name))()
            if drawn.random() < 0.1:
                full.clear()
        while folder._files:
            full.clear()
            time.sleep(0.001)
        kept = {key_of(caption): f"{caption.speaker}: {caption.text}" for caption in broadcast.transcript.kept}
        cells = [each for utterance in broadcast.transcript.utterances.values() for each in utterance.keyed()]
        # Lines of an earlier life that were hidden in this one are gone, also if they were shown again.
        gone = {key for key, cell in cells if cell.decided} - kept.keys()
        found, wanted = rows(tmp_path), before | kept
        assert len(found) == len(dict(found)) and not {key for key, cell in cells if cell.hidden} & dict(found).keys()
        assert {key: text for key, text in found if key not in gone} == {
            key: text for key, text in wanted.items() if key not in gone
        }
        before = dict(found)
        if life < 2:
            with (tmp_path / "1.jsonl").open("ab") as file:
                file.write('{"text": "日'.encode()[:-1])  # killed while it wrote
        folder.close()
    assert [each.name for each in tmp_path.iterdir()] == ["1.jsonl"]


def test_order_after_edit(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    broadcast = talk(folder)
    for utterance in "123":
        end(broadcast, (utterance, "de"))
        settled(folder)
    broadcast.hide(("1", "de"), True)
    settled(folder)
    assert [key[0] for key, _ in rows(tmp_path)] == ["2", "3"]
    broadcast.pause(True)
    broadcast.hide(("1", "de"), False)
    settled(folder)
    assert [key[0] for key, _ in rows(tmp_path)] == ["1", "2", "3"]  # it has what is held back from viewers
    folder.close()


def test_folder_comes_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """What is missing is written without another caption, and a failure that lasts is logged once."""
    monkeypatch.setattr(deadlines, "RETRY", 0.01)
    folder = Folder(path := tmp_path / "transcripts")
    broadcast = talk(folder)
    end(broadcast, ("1", "de"))
    eventually(lambda: folder.late > 0.1)
    assert len(caplog.records) == 1
    path.mkdir()
    settled(folder)
    assert rows(path) == [(("1", "de"), "1: wir")] and folder.late == 0
    folder.close()


@pytest.fixture
def hold(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """The disk hangs until this is set."""
    goes_on, write = threading.Event(), SessionFile.write

    def wait(file: SessionFile, path: Path, keys: dict[Key | None, None]) -> None:
        assert goes_on.wait(SECONDS * 3)
        write(file, path, keys)

    monkeypatch.setattr(SessionFile, "write", wait)
    yield goes_on
    goes_on.set()
    eventually(lambda: "redraft-transcripts" not in [each.name for each in threading.enumerate()])


def test_close_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hold: threading.Event) -> None:
    monkeypatch.setattr(deadlines, "DISK", 0.2)
    folder = Folder(tmp_path)
    end(talk(folder), ("1", "de"))
    began = time.monotonic()
    folder.close()
    assert time.monotonic() - began < SECONDS
    assert folder.late > 0
    hold.set()  # it is still written, unless the process has ended
    settled(folder)
    assert rows(tmp_path) == [(("1", "de"), "1: wir")]


def test_disk_hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hold: threading.Event) -> None:
    """Captions go on, their owner is told, and the server can be stopped; the file has all of them afterwards."""
    monkeypatch.setattr(deadlines, "DISK", 0.3)
    said = [("1", "we saw"), ("2", "her duck")]
    with running(transcripts=tmp_path) as server, server.socket() as socket:
        socket.start()
        for utterance, text in said:
            say(socket, text, utterance=utterance)
            assert finals(socket.until("final")) == [(utterance, "de", expected(text))]
        assert socket.until("error")[-1]["code"] == "transcript"
        assert server.ask("/health").status == 200
        assert "redraft_unwritten_seconds 0.0\n" not in server.ask("/metrics").text
    hold.set()
    settled(server.hub.folder)
    (file,) = tmp_path.iterdir()
    lines = map(json.loads, file.read_text("utf-8").splitlines())
    german = [(each["utterance"], each["text"]) for each in lines if each["language"] == "de"]
    assert german == [(utterance, expected(text)) for utterance, text in said]
