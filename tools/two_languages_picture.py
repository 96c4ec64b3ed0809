"""Draw docs/two-languages.webp: two people speak English and German in turn, and viewers of each language read along.

    python -m tools.two_languages_picture speak VOICES RECORDING.wav
    python -m tools.two_languages_picture draw RECORDING.wav WHISPER MODEL

`speak` speaks the talk below: English with Kokoro-82M, as `tools.talk` does, and German with espeak-ng.  `draw` lets
Whisper hear it, sends what was heard to a server, and films two viewers' pages.  Every update waits until the one
before has been translated, so the film shows a machine that keeps up.  WHISPER is a folder with a multilingual model
for faster-whisper, and MODEL translates in both directions; Whisper base and Qwen2.5-Coder 1.5B were drawn.  Needs the
extras `browser`, `detect`, `listen-whisper` and `serve`, Pillow, and Debian's chromium and espeak-ng.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from redraft.captions.events import Update
from redraft.protocol import UpdateMessage
from redraft.speech.audio import library
from tools.page_picture import served
from tools.pictures import Frame, animation, chromium, keep
from tools.talk import PAUSE, SPOKEN_RATE, hear, voice

if TYPE_CHECKING:
    from playwright.sync_api import ViewportSize
    from websockets.sync.client import ClientConnection

PICTURE = Path(__file__).resolve().parents[1] / "docs" / "two-languages.webp"
TALK = (
    ("en", "Good morning, and welcome to our meeting."),
    ("de", "Guten Morgen, ich freue mich, heute hier zu sein."),
    ("en", "Please ask us anything you like."),
    ("de", "Vielen Dank, ich habe eine Frage."),
)
LANGUAGES = ("en", "de")
ROOM = "hall-1"
SIZE: ViewportSize = {"width": 390, "height": 600}
#: Seconds for which an update waits for captions that do not change, and that a page takes to show one.
WAIT, SHOWN = 10.0, 0.5
TEXT = "document.body.innerText"


def speak(voices: Path, recording: Path) -> None:
    """Write the recording."""
    import numpy as np

    english, parts = voice(voices, "af_heart"), []
    for language, text in TALK:
        if language == "en":
            spoken = english(text)
        else:
            with tempfile.NamedTemporaryFile(suffix=".wav") as file:
                subprocess.run(["espeak-ng", "-v", "de+m3", "-s", "150", "-w", file.name, text], check=True)
                samples, rate = library("soundfile").read(file.name, dtype="float32")
            places = np.arange(0, len(samples), rate / SPOKEN_RATE)
            spoken = np.interp(places, np.arange(len(samples)), samples).astype(np.float32)
        parts += [spoken, np.zeros(round(2 * PAUSE * SPOKEN_RATE), np.float32)]
    library("soundfile").write(recording, np.concatenate(parts), SPOKEN_RATE)


def wait_for_captions(socket: ClientConnection, update: Update) -> None:
    """Receive messages until the update has been translated."""
    end, missing = time.monotonic() + WAIT, {*LANGUAGES}
    with suppress(TimeoutError):
        while missing:
            message = json.loads(socket.recv(max(0.0, end - time.monotonic())))
            if (message.get("utterance"), message.get("seq")) == (update.utterance, update.seq):
                missing.discard(message.get("language"))


def film(url: str, updates: Sequence[Update]) -> list[list[Frame]]:
    """Return a film of the page of a viewer of each language while a server gets the updates."""
    from websockets.sync.client import connect

    films: list[list[Frame]] = [[] for _ in LANGUAGES]
    with chromium() as browser, connect(f"{url.replace('http', 'ws')}/v1/live", proxy=None) as socket:
        pages = [browser.new_page(viewport=SIZE, color_scheme="light", locale=each) for each in LANGUAGES]
        texts = [""] * len(pages)
        for page in pages:
            page.goto(f"{url}/watch/{ROOM}")

        def look(now: float) -> None:
            pages[0].wait_for_timeout(1000 * SHOWN)
            for place, page in enumerate(pages):
                if (text := page.evaluate(TEXT)) != texts[place]:
                    films[place].append(Frame(now, page.screenshot()))
                    texts[place] = text

        first, *others = LANGUAGES
        start = {"source_language": first, "also_spoken": others, "targets": LANGUAGES, "room": ROOM}
        socket.send(json.dumps({"type": "start", **start}))
        for update in updates:
            socket.send(UpdateMessage(**asdict(update)).wire())
            wait_for_captions(socket, update)
            look(update.time or 0.0)
    return films


def main() -> None:
    """Run one of the two steps."""
    parser = argparse.ArgumentParser(prog=f"python -m {__spec__.name}", description="Film a talk in two languages.")
    steps = parser.add_subparsers(dest="step", required=True)
    speaking, drawing = steps.add_parser("speak"), steps.add_parser("draw")
    speaking.add_argument("voices", type=Path, metavar="VOICES")
    for each in (speaking, drawing):
        each.add_argument("recording", type=Path, metavar="RECORDING")
    drawing.add_argument("whisper", metavar="WHISPER")
    drawing.add_argument("model", metavar="MODEL")
    chosen = parser.parse_args()
    if chosen.step == "speak":
        speak(chosen.voices, chosen.recording)
        return
    updates = [*hear(f"whisper:{chosen.whisper}", chosen.recording, ",".join(LANGUAGES))]
    with served(chosen.model) as url:
        keep(animation(film(url, updates)), PICTURE, "lower SIZE")


if __name__ == "__main__":
    main()
