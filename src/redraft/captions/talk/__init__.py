"""The talk of ``redraft demo``: a short story for two voices, its recording, and what a streaming recogniser sent.

``python -m tools.talk`` makes the recording and the transcript from the script.
"""

from __future__ import annotations

import json
from pathlib import Path

from redraft.captions.events import Update

#: The text as it is spoken, the recording, and the recogniser's updates.
SCRIPT, RECORDING, TRANSCRIPT = (Path(__file__).with_name(f"talk.{kind}") for kind in ("txt", "ogg", "jsonl"))


def load_talk() -> list[Update]:
    """Return all updates of the talk in order of time; times are seconds of the recording."""
    lines = TRANSCRIPT.read_text(encoding="utf-8").splitlines()
    return [Update(**json.loads(line)) for line in lines]
