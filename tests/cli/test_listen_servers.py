"""Captions of what servers recognise: `redraft listen --recogniser` and `redraft translate --input`."""

from __future__ import annotations

import json
from typing import Any

from tests.cli.conftest import Run
from tests.speech.servers import serving


def test_captions_of_server_that_listens_by_itself(redraft: Run) -> None:
    def broadcasts(socket: Any) -> None:
        socket.send('{"text": "I have a dog.", "segment": 0, "is_final": true}')
        socket.send("Done!")

    with serving(broadcasts) as url:
        done = redraft("translate", "--input", f"sherpa:{url}", "--to", "de")
    assert done.status == 0 and done.out.startswith("final\tde\t")


def test_captions_by_way_of_server(redraft: Run) -> None:
    def talk(socket: Any) -> None:
        for message in socket:
            if message == '{"eof" : 1}':
                socket.send(json.dumps({"text": "I have a dog"}))
                return

    with serving(talk) as url:
        done = redraft(
            "listen", "-", "--recogniser", f"vosk:{url}", "--to", "de", "--output", "jsonl", stdin=bytes(64_000)
        )
    assert [row.get("source", row) for row in done.rows if row["type"] != "partial"] == ["I have a dog"]


def test_refusals(redraft: Run) -> None:
    for arguments, complaint in {
        ("--input", "kaldi:ws://127.0.0.1:1"): "server 'kaldi' is not known",
        ("talk.txt", "--input", "vosk:ws://127.0.0.1:1"): "--input vosk:ws://127.0.0.1:1 reads from a server, so leave",
        ("--input", "vosk:ws://127.0.0.1:1"): "the recogniser at ws://127.0.0.1:1/ cannot be reached",
        ("--input", "nothing"): "'simulstreaming', or a server such as vosk:ws://127.0.0.1:2700",
    }.items():
        done = redraft("translate", "--to", "de", *arguments)
        assert done.status == 2 and complaint in done.err and done.err.count("\n") == 1
