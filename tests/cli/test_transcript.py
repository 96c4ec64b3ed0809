"""Transcripts of servers in other forms."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from click.testing import CliRunner

from redraft.captions.events import Caption
from redraft.cli.transcript import transcript
from redraft.errors import InputError, OptionError
from redraft.serve.sessions.broadcast import Broadcast
from redraft.serve.sessions.folder import Folder, SessionFile
from tests.waiting import eventually


@pytest.fixture
def file(tmp_path: Path) -> Path:
    broadcast = Broadcast(("de", "ja"))
    folder, kept = Folder(tmp_path), SessionFile("hall-1", broadcast.transcript)
    for number, tag, text in ((1, "de", "Guten Tag."), (1, "ja", "こんにちは。"), (2, "de", "Ich habe einen Hund.")):
        time = 4.0 * number
        caption = Caption(str(number), 0, tag, text, final=True, time=time, start=time - 2.5, source="We saw.")
        broadcast.final(caption, 0.0)
        folder.add(kept, (caption.utterance, tag))
    folder.close()
    return tmp_path / "hall-1.jsonl"


def convert(*arguments: object) -> str:
    return CliRunner().invoke(transcript, [*map(str, arguments)], catch_exceptions=False).output


def test_forms(file: Path) -> None:
    assert convert(file, "--to", "German") == "Guten Tag.\nIch habe einen Hund.\n"
    subtitles = convert(file, "--output", "srt", "--to", "de")
    assert subtitles.startswith("1\n00:00:01,500 --> 00:00:04,000\n")
    assert "2\n00:00:05,500 --> 00:00:08,000\n" in subtitles
    moved = convert(file, "--output", "srt:web,width=16,start=10:00:00", "--to", "de")
    assert "2\n10:00:05,500 --> 10:00:08,000\nIch habe\neinen Hund.\n" in moved
    assert convert(file, "--output", "vtt").startswith("WEBVTT\n") and "こんにちは。" in convert(file)
    assert convert(file, "--output", "jsonl").count("\n") == 3


def test_names(tmp_path: Path) -> None:
    broadcast, folder = Broadcast(("de",)), Folder(tmp_path)
    broadcast.transcript.changes = partial(folder.add, SessionFile("hall-1", broadcast.transcript))
    for name, speaker in (("1", "Speaker 1"), ("2", "Speaker 2")):
        caption = Caption(name, 0, "de", "Ja.", final=True, speaker=speaker)
        broadcast.final(caption, 0.0)
    eventually(lambda: not folder.late)
    file = tmp_path / "hall-1.jsonl"
    assert convert(file, "--name", "Speaker 1 = Anna") == "Anna: Ja.\nSpeaker 2: Ja.\n"
    broadcast.name("Speaker 2", "Ben")
    folder.close()
    assert convert(file) == "Speaker 1: Ja.\nBen: Ja.\n"
    with pytest.raises(OptionError, match="Speaker 1=Anna"):
        convert(file, "--name", "Anna")


def test_line_that_was_cut(file: Path) -> None:
    """A server was killed while it wrote, or writes now; an editor may have left out the last line break only."""
    file.write_text((whole := file.read_text("utf-8")).removesuffix("\n"), "utf-8")
    assert convert(file, "--to", "de") == "Guten Tag.\nIch habe einen Hund.\n"
    file.write_text(whole, "utf-8")
    with file.open("ab") as out:
        out.write('{"type": "final", "text": "日'.encode()[:-1])
    assert convert(file, "--to", "de") == "Guten Tag.\nIch habe einen Hund.\n"


@pytest.mark.parametrize("separator", ["\u2028", "\u2029", "\x85"])
def test_separator_within_a_caption(file: Path, separator: str) -> None:
    file.write_text(file.read_text("utf-8").replace("Guten ", f"Guten{separator}"), "utf-8")
    assert convert(file, "--output", "jsonl").count("\n") == 3


def test_other_files(file: Path) -> None:
    with pytest.raises(OptionError, match="must be one of broadcast, web, cart"):
        convert(file, "--output", "srt:film")
    with pytest.raises(OptionError, match="de, ja"):
        convert(file, "--to", "fr")
    text = file.read_text("utf-8")
    timed = '{"type": "final", "utterance": "9", "seq": 0, "language": "de", "text": "Ja.", "time": "12"}'
    for line in (
        '{"type": "partial"}',
        timed,
        timed.replace('"text": "Ja.", ', ""),
        timed.replace('"Ja."', "null"),
        "[]",
        "7",
    ):
        file.write_text(f"{text}{line}\n", "utf-8")
        with pytest.raises(InputError, match="line 4"):
            convert(file)


def test_lines_of_the_server(file: Path) -> None:
    """What a client or the API saved has more fields, and perhaps a caption twice."""
    text = file.read_text("utf-8")
    again = text.replace('"type"', '"lag_ms": 3.5, "made": 1.5, "corrected": 1, "type"')
    file.write_text(again + text.replace("Guten", "Gute"), "utf-8")
    assert convert(file, "--to", "de") == "Guten Tag.\nIch habe einen Hund.\n"
