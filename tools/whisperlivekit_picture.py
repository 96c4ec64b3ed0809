"""Draw docs/whisperlivekit.webp: WhisperLiveKit's page in two languages, while a recording is spoken into it.

    python -m tools.whisperlivekit_picture RECORDING.wav

RECORDING is what Chromium hears as its microphone, once for each language, since every page has a recogniser of its
own.  The one that was drawn is the beginning of the demo talk, with pauses of 4.5 seconds.  Needs the extra `browser`,
Pillow, Debian's chromium, and on this machine `redraft serve --compat alignatt-mt` and WhisperLiveKit, as
docs/compat.md starts them.
"""

from __future__ import annotations

import io
import math
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from tools.pictures import keep, opened

if TYPE_CHECKING:
    from PIL.Image import Image
    from playwright.sync_api import ViewportSize

PICTURE = Path(__file__).resolve().parents[1] / "docs" / "whisperlivekit.webp"
ADDRESS = "localhost:8000"
LANGUAGES = ("de", "zh")
SIZE: ViewportSize = {"width": 440, "height": 360}
#: Seconds that are shown, between two looks at a page, the most for which a frame is shown, and for which the last is.
LENGTH, PERIOD, LONGEST, PAUSE = 60.0, 0.6, 1.8, 5.0
COLOURS = 24
#: What the page shows of the transcript, without its times and lags.
TEXT = "[...document.querySelectorAll('.textcontent')].map(each => each.innerText).join(' ')"


@dataclass(frozen=True, slots=True)
class Frame:
    """A screenshot of a page, taken so many seconds after the recording began."""

    time: float
    picture: bytes


def watch(recording: Path, language: str) -> Iterator[Frame]:
    """Speak a recording into the page; yield a frame whenever its text has changed."""
    options = [
        "--use-fake-ui-for-media-stream",
        "--use-fake-device-for-media-stream",
        f"--use-file-for-fake-audio-capture={recording.resolve()}%noloop",
    ]
    with opened(f"http://{ADDRESS}", SIZE, *options) as page:
        page.locator("#settingsToggle").click()
        page.locator("#websocketInput").fill(f"ws://{ADDRESS}/asr?target_language={language}")
        page.locator("#settingsToggle").click()
        page.locator("#recordButton").click()
        begin, text = time.monotonic(), None
        while (now := time.monotonic() - begin) < LENGTH:
            before, text = text, page.evaluate(TEXT)
            if text != before:
                yield Frame(now, page.screenshot())
            page.wait_for_timeout(1000 * PERIOD)


def together(films: Sequence[Sequence[Frame]]) -> Iterator[tuple[float, list[bytes]]]:
    """Yield times with what each film shows then; changes that follow each other closely are one."""
    times = sorted(frame.time for film in films for frame in film)
    for now, after in pairwise([*times, math.inf]):
        if after - now > PERIOD:
            yield (
                now,
                [[frame for frame in film if frame.time <= now or frame is film[0]][-1].picture for film in films],
            )


def beside(pictures: Sequence[bytes]) -> Image:
    """Return pictures side by side, in few colours."""
    from PIL import Image

    parts = [Image.open(io.BytesIO(each)).convert("RGB") for each in pictures]
    whole = Image.new("RGB", (sum(each.width for each in parts), max(each.height for each in parts)), "white")
    place = 0
    for each in parts:
        whole.paste(each, (place, 0))
        place += each.width
    return whole


def animation(films: Sequence[Sequence[Frame]]) -> bytes:
    """Return films side by side, in the colours of their last frame; long waits are shortened."""
    from PIL.Image import Dither

    frames = [*together(films)]
    images = [beside(pictures) for _, pictures in frames]
    palette = images[-1].quantize(COLOURS)
    first, *others = [image.quantize(palette=palette, dither=Dither.NONE) for image in images]
    lengths = [min(LONGEST, after - now) for (now, _), (after, _) in pairwise(frames)]
    times = [round(1000 * each) for each in (*lengths, PAUSE)]
    file = io.BytesIO()
    first.save(file, "WEBP", save_all=True, append_images=others, duration=times, loop=0, lossless=True, method=6)
    return file.getvalue()


def main() -> None:
    """Write the picture."""
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    picture = animation([[*watch(Path(sys.argv[1]), language)] for language in LANGUAGES])
    keep(picture, PICTURE, "lower LENGTH or SIZE")


if __name__ == "__main__":
    main()
