"""Find figures of measurements that were typed by hand, and go stale when the measurement is repeated.

Figures belong in tables and in sentences that are made from the rows.  What is typed may name settings: ``beam:4``,
8-bit weights, 95% intervals, the sizes of models.  Code, tables and the targets of links are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from redraft_bench.pages.checks import CHECKS

_LEFT_OUT = re.compile(
    r"`[^`]*`|^\|.*$|\]\([^)]*\)|95% (?:intervals|of the captions)"
    r"|\d[\d.]*(?: and \d[\d.]*)? billion parameters",
    re.MULTILINE,
)
_SMALL = "two|three|four|five|six|seven|eight|nine|ten"
#: A decimal, a number with a unit in which results are given, or such a ratio in words.
_FIGURE = re.compile(
    r"\d+\.\d+[^.,;:)\n]*(?:\.\d[^.,;:)\n]*)*|\d[\d,]*\s*(?:%|×|(?:times|chrF|points|passes|ms)\b)"
    rf"|\b(?:twice|half (?:as|of)|a (?:third|quarter|fifth|sixth|eighth|tenth)\b|(?:{_SMALL}) (?:to \w+ )?times\b)",
)
#: The picture of the README, and the text below it.
_CAPTION = re.compile(r"!\[[^\]]*\]\(docs/drafts\.svg\)\n\n(\*.*?\*)\n\n", re.DOTALL)


def figures(text: str) -> list[str]:
    """Return the figures in a text that a person has typed."""
    return [found[0].strip() for found in _FIGURE.finditer(_LEFT_OUT.sub("", text))]


def typed(root: Path) -> Iterator[str]:
    """Yield where a figure is typed by hand, and which.

    It looks in notes, in remarks on checks, below README's picture, and in the page on the kernels.
    """
    paths = [*sorted((root / "benchmarks" / "notes").glob("*.md")), *root.glob("native/llama.cpp/README.md")]
    texts = {path.relative_to(root).as_posix(): path.read_text(encoding="utf-8") for path in paths}
    texts |= {f"checks.py, {each.name}": f"{each.about} {each.remark}" for each in CHECKS}
    readme = root / "README.md"
    if readme.exists() and (caption := _CAPTION.search(readme.read_text(encoding="utf-8"))):
        texts["README.md, below the picture"] = re.sub(r"\d+", r"\g<0> passes", caption[1])  # any number
    for place, text in texts.items():
        yield from (f"{place}: {found!r}" for found in figures(text))
