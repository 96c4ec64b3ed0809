"""What the programs that draw pictures of pages have in common: Debian's chromium, films, and a limit of bytes."""

from __future__ import annotations

import io
import math
import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from PIL.Image import Image
    from playwright.sync_api import Browser, Page, ViewportSize

MOST_BYTES = 200_000
#: Seconds between two looks at a page that is filmed, and for which the last frame is shown.
PERIOD, PAUSE = 0.6, 5.0
#: Number of colours of a film.
COLOURS = 24


@contextmanager
def chromium(*options: str) -> Iterator[Browser]:
    """Run a browser while the block runs, with further options."""
    from playwright.sync_api import sync_playwright

    path = shutil.which("chromium") or shutil.which("chromium-browser")
    with sync_playwright() as playwright:
        arguments = [*options, *["--no-sandbox"] * (os.geteuid() == 0)]
        browser = playwright.chromium.launch(executable_path=path, args=arguments)
        yield browser
        browser.close()


@contextmanager
def opened(url: str, size: ViewportSize, *options: str) -> Iterator[Page]:
    """Open a page of a size in pixels while the block runs, with further options of the browser."""
    with chromium(*options) as browser:
        page = browser.new_page(viewport=size, color_scheme="light")
        page.goto(url)
        yield page


@dataclass(frozen=True, slots=True)
class Frame:
    """A screenshot of a page, taken so many seconds after the recording began."""

    time: float
    picture: bytes


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


def animation(films: Sequence[Sequence[Frame]], longest: float = math.inf) -> bytes:
    """Return films side by side, in the colours of their last frame; no frame is shown for longer than ``longest``."""
    from PIL.Image import Dither

    frames = [*together(films)]
    images = [beside(pictures) for _, pictures in frames]
    palette = images[-1].quantize(COLOURS)
    first, *others = [image.quantize(palette=palette, dither=Dither.NONE) for image in images]
    lengths = [min(longest, after - now) for (now, _), (after, _) in pairwise(frames)]
    times = [round(1000 * each) for each in (*lengths, PAUSE)]
    file = io.BytesIO()
    first.save(file, "WEBP", save_all=True, append_images=others, duration=times, loop=0, lossless=True, method=6)
    return file.getvalue()


def keep(picture: bytes, path: Path, remedy: str) -> None:
    """Write a picture to its file; end the program if it is too large, with what to do about that."""
    if len(picture) > MOST_BYTES:
        sys.exit(f"the picture has {len(picture)} bytes, and at most {MOST_BYTES} are meant: {remedy}")
    path.write_bytes(picture)
    print(f"{path}: {len(picture)} bytes")
