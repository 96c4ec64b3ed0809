"""From speech to captions: word errors, erasure, lag and CPU share of the demo talk, read by espeak-ng.

The talk is played in real time, recognised and translated live, as by `redraft listen --speed 1`.  Then all updates are
translated again by each method, at full speed, to compare erasure.  Lag is the time from the end of an update's audio
to its caption; for final captions it includes the pause that ends the utterance.  NE is in words, CPU share in cores.

python -m benchmarks.listening --sentences 14
python -m benchmarks.listening --recogniser sherpa:zipformer-en --json
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np

from redraft.captions.events import Caption, Update
from redraft.captions.formats.read import Item
from redraft.captions.stabilise import Mask
from redraft.captions.talk import load_talk
from redraft.speech.audio import Samples, at_speed, file_blocks
from redraft.speech.newest import newest
from redraft.speech.recogniser import transcribe
from redraft.speech.registry import open_recogniser
from redraft.translator import Translator

METHODS = {"ar": -1.0, "ssbd": 0.0}


class Clock:
    """Seconds since the first block of audio was requested."""

    def __init__(self, blocks: Iterator[Samples]) -> None:
        self._blocks, self._start = blocks, 0.0

    def __iter__(self) -> Iterator[Samples]:
        self._start = time.monotonic()
        return self._blocks

    def now(self) -> float:
        """Return the seconds."""
        return time.monotonic() - self._start


def live(path: str, recogniser: str, pause: float) -> tuple[list[Update], dict[str, Any]]:
    """Return all updates of the talk, and the figures of its live translation."""
    clock, heard = Clock(at_speed(file_blocks(path), 1.0)), list[Update]()
    partial, final, shown = list[float](), list[float](), list[Caption]()

    def noted(items: Iterable[Item]) -> Iterator[Item]:
        for item in items:
            if isinstance(item, Update):
                heard.append(item)
            yield item

    recognising = open_recogniser(recogniser, "en", pause)
    with Translator.open("demo", to=["de"], mask=Mask(margin=METHODS["ssbd"])) as translator:
        translator.translate(Update("warm-up", 0, "Good evening.", final=True))
        cpu = time.process_time()
        for update in newest(noted(transcribe(clock, recognising))):
            for event in translator.translate(update) if isinstance(update, Update) else []:
                if isinstance(event, Caption):
                    shown.append(event)
                    if update.final or update.seq:  # the first update has the start time instead
                        (final if event.final else partial).append(clock.now() - (update.time or 0.0))
        share = (time.process_time() - cpu) / clock.now()
    figures = {"updates": len(heard), "translated": len({(each.utterance, each.seq) for each in shown})}
    figures["ne_live"] = erasure([(each.utterance, each.text, each.final) for each in shown])
    for name, lags in (("partial", partial), ("final", final)):
        figures |= {f"{name}_lag_p{each}": round(float(np.percentile(lags, each)), 2) for each in (50, 95)}
    return heard, {**figures, "cpu_share": round(share, 2)}


def erasure(texts: Sequence[tuple[str, str, bool]]) -> float:
    """Return NE in words of growing texts, given as utterance, text, and whether it is the last."""
    before: dict[str, list[str]] = {}
    erased = length = 0
    for utterance, text, final in texts:
        old, new = before.get(utterance, []), text.split()
        same = next((n for n, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
        erased += len(old) - same
        before[utterance] = new
        length += len(new) * final
    return round(erased / max(1, length), 2)


def again(updates: Sequence[Update], method: str) -> float:
    """Return NE of the captions that a method makes of all updates."""
    with Translator.open("demo", to=["de"], method=method, mask=Mask(margin=METHODS[method])) as translator:
        events = [event for update in updates for event in translator.translate(update)]
    return erasure([(each.utterance, each.text, each.final) for each in events if isinstance(each, Caption)])


def word_errors(said: str, heard: str) -> float:
    """Return the word error rate: wrong, missing and extra words per spoken word."""
    reference, found = (re.findall(r"[a-z0-9']+", text.lower()) for text in (said, heard))
    row = list(range(len(found) + 1))
    for word in reference:
        last, row[0] = row[0], row[0] + 1
        for place, other in enumerate(found, 1):
            last, row[place] = row[place], min(row[place] + 1, row[place - 1] + 1, last + (word != other))
    return round(row[-1] / len(reference), 3)


@click.command(help=__doc__)
@click.option("--recogniser", default="pocketsphinx", show_default=True)
@click.option("--voice", default="en-us+klatt4", show_default=True, help="Of espeak-ng.")
@click.option("--words", default=140, show_default=True, help="A minute.")
@click.option("--pause", default=0.24, show_default=True, help="espeak-ng's pauses are short.")
@click.option("--sentences", type=click.IntRange(1), help="Of the talk, from its beginning.  [default: all]")
@click.option("--json", "as_json", is_flag=True, help="One object instead of lines.")
def main(recogniser: str, voice: str, words: int, pause: float, sentences: int | None, as_json: bool) -> None:
    """Measure and print."""
    if shutil.which("espeak-ng") is None:
        raise click.ClickException("espeak-ng is not installed, which reads the talk")
    said = "\n".join([update.text for update in load_talk() if update.final][:sentences])
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "talk.wav")
        subprocess.run(["espeak-ng", "-v", voice, "-s", str(words), "-w", path, said], check=True)
        heard, figures = live(path, recogniser, pause)
    finals = [update.text for update in heard if update.final]
    row = {"recogniser": recogniser, "voice": voice, "utterances": len(finals)}
    row |= {"word_errors": word_errors(said, " ".join(finals)), **figures}
    row |= {"ne_source": erasure([(each.utterance, each.text, each.final) for each in heard])}
    row |= {f"ne_{method}": again(heard, method) for method in METHODS}
    click.echo(json.dumps(row) if as_json else "\n".join(f"{name:<16}{value}" for name, value in row.items()))


if __name__ == "__main__":
    main()
