"""The talk of ``redraft demo``: a short story as a streaming recogniser would send it, with revisions."""

from __future__ import annotations

import json
from importlib.resources import files

from redraft.captions.events import Update


def load_talk() -> list[Update]:
    """Return all updates of the talk in order of time; times are seconds from its start."""
    lines = files(__name__).joinpath("talk.jsonl").read_text(encoding="utf-8").splitlines()
    return [Update(**json.loads(line)) for line in lines]
