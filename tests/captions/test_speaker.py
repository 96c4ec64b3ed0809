"""The name of a speaker, from an update to every kind of output."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from rich.console import Console

from redraft.captions.events import Caption, Failure, Update, as_object
from redraft.captions.formats.cues import SubtitleWriter
from redraft.captions.formats.live import LiveWriter
from redraft.captions.formats.read import read_jsonl
from redraft.captions.formats.write import JsonlWriter, LinesWriter, Output, TextWriter
from redraft.errors import InputError

UPDATE = {"utterance": "1", "seq": 0, "text": "we saw"}
FINAL = Caption("1", 0, "de", "wir sahen", "", True, 1.0, "we saw", speaker="Anna")


def read(**fields: Any) -> Update | Failure:
    (item,) = read_jsonl(io.BytesIO(json.dumps({**UPDATE, **fields}).encode()))
    return item


def test_read() -> None:
    assert read(speaker=" Anna\tWeiß ") == Update("1", 0, "we saw", speaker="Anna Weiß")
    assert read(speaker=None) == read() == Update("1", 0, "we saw")


@pytest.mark.parametrize("speaker", ["", " \n", "a" * 101, 7, ["Anna"], "\ud800"])
def test_not_name(speaker: Any) -> None:
    found = read(speaker=speaker)
    assert isinstance(found, Failure) and found.message.startswith("speaker must be a name of 1 to 100 characters")


@pytest.mark.parametrize("speaker", ["", "a" * 101, "two\nlines", 7])
def test_invalid(speaker: Any) -> None:
    with pytest.raises(InputError, match="speaker must be a name"):
        Update("1", 0, "we saw", speaker=speaker)


def test_jsonl() -> None:
    out = io.StringIO()
    JsonlWriter(out).write(FINAL)
    assert json.loads(out.getvalue())["speaker"] == "Anna"
    assert "speaker" not in as_object(Caption("1", 0, "de", "wir"))


def test_plain() -> None:
    lines, text = io.StringIO(), io.StringIO()
    LinesWriter(lines, io.StringIO()).write(FINAL)
    TextWriter(text, ["de"]).write(FINAL)
    assert (lines.getvalue(), text.getvalue()) == ("final\tde\tAnna: wir sahen\n", "Anna: wir sahen\n")


@pytest.mark.parametrize("form", ["srt", "vtt"])
def test_subtitles(form: str) -> None:
    out = io.StringIO()
    writer = SubtitleWriter(Output(form, out, io.StringIO(), ["de", "ja"]))
    writer.write(FINAL)
    writer.write(Caption("1", 0, "ja", "見た", "", True, 1.0, "we saw", speaker="Anna"))
    writer.close()
    assert "\nAnna: wir sahen\n見た\n" in out.getvalue()


def test_terminal() -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=60, legacy_windows=False)
    writer = LiveWriter(["de"], console)
    writer.write(FINAL)
    with console.capture() as shown:
        console.print(writer.render())
    writer.close()
    assert "Anna: we saw" in shown.get() and "Anna: wir" not in shown.get()
