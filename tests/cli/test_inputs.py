"""The inputs of ``redraft translate``: the contract of each, and what is refused by name."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path

import pytest

from redraft.captions.events import Update
from redraft.cli.shared.options import INPUTS, input_of
from redraft.cli.shared.stream import OTHERS, Other, other_format, updates
from tests.cli.conftest import Run
from tests.cli.refusals import RUN, check_refusal, events

#: Input -> an example and its final texts.
EXAMPLES: dict[str, tuple[bytes, list[str]]] = {
    "text": (b"It was\nthe best. It was\n\nthe worst", ["It was the best.", "It was", "the worst"]),
    "lines": (b"It\nIt was\n\nthe\rthe worst\r\nof\n\n", ["It was", "the worst", "of"]),
    "jsonl": (b'{"utterance": 1, "seq": 0, "text": "It was", "final": true}\n', ["It was"]),
    "simulstreaming": (b'{"text": " It was", "emission_time": 1, "is_final": true}\n', ["It was"]),
}

others = pytest.mark.parametrize("other", OTHERS, ids=lambda other: f"{other.what} {OTHERS.index(other)}")


@pytest.mark.parametrize("form", INPUTS)
def test_contract(form: str) -> None:
    data, texts = EXAMPLES[form]
    items = list(updates(io.BufferedReader(io.BytesIO(data)), form, None))
    assert [item.text for item in items if isinstance(item, Update) and item.final] == texts


def test_file_is_text_and_pipe_is_lines(tmp_path: Path) -> None:
    file = tmp_path / "talk.txt"
    file.write_bytes(b"One. Two\nthree.")
    assert input_of(None, str(file)) == "text" and input_of("lines", str(file)) == "lines"
    query = "from redraft.cli.shared.options import input_of; print(input_of(None, '-'))"
    command = [sys.executable, "-c", query]
    with file.open("rb") as stdin:
        assert subprocess.run(command, stdin=stdin, capture_output=True, check=True, timeout=200).stdout == b"text\n"
    assert subprocess.run(command, input=b"One.", capture_output=True, check=True, timeout=200).stdout == b"lines\n"


def test_file(redraft: Run, tmp_path: Path) -> None:
    (tmp_path / "talk.txt").write_bytes(b"Good morning.\nI have a dog.\n\xe2\x99\xaa\nThe dog\nis big. We go.\n")
    done = redraft(*RUN, str(tmp_path / "talk.txt"), "--output", "jsonl")
    sources = [row["source"] for row in events(done)[0] if row["type"] == "final"]
    assert sources == ["Good morning.", "I have a dog.", "♪ The dog is big.", "We go."]
    lines = redraft(*RUN, str(tmp_path / "talk.txt"), "--output", "jsonl", "--no-sentences")
    sources = [row["source"] for row in events(lines)[0] if row["type"] == "final"]
    assert sources == ["Good morning.", "I have a dog.", "♪", "The dog", "is big. We go."]


def test_list_in_a_pipe(redraft: Run) -> None:
    done = redraft(*RUN, "--output", "lines", stdin=b"Good morning.\nI have a dog.\n\xe2\x99\xaa\nThe dog is big.\n")
    assert done.status == 1 and "redraft: 3 lines have replaced each other and none has grown" in done.err


@others
@pytest.mark.parametrize("form", INPUTS)
@pytest.mark.parametrize("before", ["", "\ufeff\n \n", "Loading model\nDone.\n"])
def test_other_format(other: Other, form: str, before: str) -> None:
    if other.example.isascii() or not before:  # signatures are at the beginning
        found = other_format(before.encode() + other.example.encode("latin-1"), form)
        assert (found is None) if form in other.reads else found == f"{other.what}: {other.remedy}"


@pytest.mark.parametrize(
    "data",
    [
        b'\xef\xbb\xbf {"seq": 0}\n',
        b"1\r\n0:00:01-->0:00:03\r\nHi\r\n",
        b"80.40->84.40    Hi\n",
        b"[0.00s -> 4.00s]  Hi\n",
        b"0001\n00:00:01:12  -->  00:00:03:10 X1:4\nHi\n",
        b"[ti:Song]\n[00:12.00]Hi\n",
        b"{100}{150}Hi\n",
        b"Dialogue: 0,0:00:01.00,0:00:03.00,,Hi\n",
        b"[Anna] 12:00:01\nHi\n\n[Bo] 12:00:05\nHi.\n",
        b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR",
        b"spinner |\x08/\x08-\n",
        b"\x1bcHello\n",
        b"\xff\xfe\0\0H\0\0\0",
        b"\0H\0i",
        b"PK\x03\x04",
        b"{\\rtf1",
        b"\x1f\x8b\x08",
        b"[00:00.000 --> 00:03.000]  Hi",
        b"0:00\nhello\n0:03\nwelcome",
        b"00:00:01.000 Hi",
        b"0:00:01.00,0:00:02.00\nHi",
        b"start,end,text\n",
        b"2691.4399 300 1380 Hi",
        b'{"text": "hi", "segment": 0}',
        b'{"lines": [], "buffer_transcription": "hi"}',
        b'{\n  "text": "Hi",',
        b'[{"text": "Hi"}]',
    ],
)
def test_more_beginnings(data: bytes) -> None:
    assert other_format(data, "text") and other_format(data, "lines")


@pytest.mark.parametrize("data", [b"RIFF\x24\x08\x00\x00WAVEfmt ", b"\0\0\0 ftypisom\0\0\x02\0"])
@pytest.mark.parametrize("form", INPUTS)
def test_recording(data: bytes, form: str) -> None:
    found = other_format(data, form)
    assert found and found.startswith("a recording (") and "`redraft listen FILE`" in found


def test_refusal(redraft: Run, tmp_path: Path) -> None:
    """With the name of the file; a pipe is refused as well."""
    data = b"WEBVTT\n\n00:01.000 --> 00:02.500\nHi\n"
    (tmp_path / "talk").write_bytes(data)
    named = redraft("translate", str(tmp_path / "talk"), "--to", "de")
    check_refusal(named, [f"input file {str(tmp_path / 'talk')!r} has text with times: write only its texts"])
    piped = redraft("translate", "--to", "de", stdin=data)
    check_refusal(piped, ["standard input has text with times: write only its texts"])


@pytest.mark.parametrize(
    "text",
    [
        "1 000 000 people",
        "1 234 567 people",
        "2026 11 26 was cold.",
        "9:30\nYes.",
        "1 2 3 go.",
        "[Sic]",
        "3 2 1\nGo!",
        "12:30 we meet.",
        "12:30:15,5 runners came",
        "caffeine keeps me awake.",
        "FORMULA one is loud.",
        "{sic} he said.",
        "--> here",
        "15 16 17 years",
        "\x1b[1mbold\x1b[0m",
        "\x1b[2K\rIt was\x1b[2K\rIt was it.",
        "曛\u009b[H",
    ],
)
@pytest.mark.parametrize("form", ["text", "lines"])
def test_text_that_only_looks_odd(text: str, form: str) -> None:
    assert other_format(text.encode(), form) is None
