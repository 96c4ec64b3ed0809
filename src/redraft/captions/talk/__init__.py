"""The talk that ``redraft demo`` plays: a short story as a streaming recogniser would send it, with its revisions."""

from __future__ import annotations

import json
from importlib.resources import files

from redraft.captions.events import Update


def load_talk() -> list[Update]:
    """All updates of the talk in the order of time; times are in seconds from its start."""
    lines = files(__name__).joinpath("talk.jsonl").read_text(encoding="utf-8").splitlines()
    return [Update(**json.loads(line)) for line in lines]
