"""Draw docs/whisperlivekit.webp: WhisperLiveKit's page in two languages, while a recording is spoken into it.

    python -m tools.whisperlivekit_picture RECORDING.wav

RECORDING is what Chromium hears as its microphone, once for each language, since every page has a recogniser of its
own.  The one that was drawn is the beginning of the demo talk, with pauses of 4.5 seconds.  Needs the extra `browser`,
Pillow, Debian's chromium, and on this machine `redraft serve --compat alignatt-mt` and WhisperLiveKit, as
docs/compat.md starts them.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from tools.pictures import PERIOD, Frame, animation, keep, opened

if TYPE_CHECKING:
    from playwright.sync_api import ViewportSize

PICTURE = Path(__file__).resolve().parents[1] / "docs" / "whisperlivekit.webp"
ADDRESS = "localhost:8000"
LANGUAGES = ("de", "zh")
SIZE: ViewportSize = {"width": 440, "height": 360}
#: Seconds that are shown, and the most for which a frame is shown.
LENGTH, LONGEST = 60.0, 1.8
#: What the page shows of the transcript, without its times and lags.
TEXT = "[...document.querySelectorAll('.textcontent')].map(each => each.innerText).join(' ')"


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


def main() -> None:
    """Write the picture."""
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    picture = animation([[*watch(Path(sys.argv[1]), language)] for language in LANGUAGES], LONGEST)
    keep(picture, PICTURE, "lower LENGTH or SIZE")


if __name__ == "__main__":
    main()
