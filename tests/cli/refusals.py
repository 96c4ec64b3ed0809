"""Commands, what they write, and what they refuse."""

from __future__ import annotations

import json
import re
from typing import Any

from tests.cli.conftest import Done

T = ["translate", "--to", "de"]


def check_refusal(done: Done, words: list[str]) -> None:
    """Exit status 2, nothing on standard output, one sentence on standard error."""
    assert (done.status, done.out) == (2, "")
    (line,) = done.err.splitlines()
    assert line.startswith("redraft: ")
    assert [word for word in words if word not in line] == []
    assert not re.search(r"[.!?)] \(?[A-Z]|Traceback", line)


def final(utterance: str, text: str = "Hello.") -> bytes:
    return json.dumps({"utterance": utterance, "seq": 0, "text": text, "final": True}).encode()


def events(done: Done) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Captions, and failures but for those of a model that did not end in time."""
    captions = [row for row in done.rows if row["type"] != "error"]
    return captions, [
        row for row in done.rows if row["type"] == "error" and "was cut at 4 tokens" not in row["message"]
    ]


RUN = [*T, "--engine", "threads=1", "--option", "max_tokens=4"]
