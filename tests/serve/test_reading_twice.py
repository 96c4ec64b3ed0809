"""Reading mode in Python and in the pages' JavaScript: one algorithm, compared on random cases."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import unicodedata
from pathlib import Path
from typing import Any

import pytest

from redraft.captions.events import Caption
from redraft.captions.reading import Reading, cells, continued
from redraft.serve.pages import WEB

NODE = shutil.which("node")
pytestmark = pytest.mark.skipif(NODE is None, reason="node is not installed")

SCRIPT = """
import { readFileSync } from "node:fs";
import { cells, continued, Reading } from "./reading.mjs";
const run = {
  continued: ([shown, units]) => continued(shown, units),
  cells,
  lines: ([width, steps]) => {
    const reading = new Reading(width);
    return steps.map(([text, final, now]) => (text === null ? reading.due(now) : reading.read({ text, final }, now)));
  },
};
const { name, cases } = JSON.parse(readFileSync(0, "utf-8"));
console.log(JSON.stringify(cases.map(run[name])));
"""
#: Words of many scripts, few of them, so that texts repeat themselves.
#: U+FEFF, white space in JavaScript only, is left out.
WORDS = (
    *("hund ", "auf ", "Straßenbahnhaltestelle, ", "naïve ", "a ", "\u00a0", "\t"),
    *("彼女", "が", "。", "」", "ー", "ダックｶﾞ", "か\u3099", "한국어 "),
    *("ไม่", "မြန်မာ", "ၘ\u1058", "ខ្មែរ", "葛\U000e0100"),
    *("🦆", "🇩🇪 ", "👍🏽", "ﷺ ", "\u200b", "①", "—", "𠀋", "\u3000"),
)


def in_node(folder: Path, name: str, cases: list[Any]) -> Any:
    """What a function of reading.js returns for each case."""
    (folder / "reading.mjs").write_bytes((WEB / "js" / "reading.js").read_bytes())
    (folder / "run.mjs").write_text(SCRIPT, encoding="utf-8")
    given = json.dumps({"name": name, "cases": cases})
    done = subprocess.run([str(NODE), "run.mjs"], input=given, capture_output=True, text=True, cwd=folder, timeout=60)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_continued(tmp_path: Path) -> None:
    drawn = random.Random(0)
    cases = [[drawn.choices("abcd", k=drawn.randrange(9)) for _ in "12"] for _ in range(4000)]
    cases.append([["hund", "hund", "auf"], ["hund", "auf", "auf"]])
    assert in_node(tmp_path, "continued", cases) == [continued(*case) for case in cases]


def test_cells(tmp_path: Path) -> None:
    points = (chr(point) for point in range(32, 0x40000))
    # Engines have different versions of Unicode, so that one may know more characters than the other.
    known = [each for each in points if unicodedata.category(each) not in ("Cn", "Cs", "Co")]
    found = in_node(tmp_path, "cells", known)
    assert [each for each, width in zip(known, found, strict=True) if width != cells(each)] == []


def steps_of(drawn: random.Random) -> list[tuple[str | None, bool, float]]:
    """Revisions of an utterance as text, whether it is final, and time; None only lets time pass."""
    words, steps, now = list[str](), list[tuple[str | None, bool, float]](), 0.0
    for _ in range(drawn.randrange(1, 12)):
        now += drawn.choice((0.1, 0.5, 1.0, 3.0))
        if drawn.random() < 0.3:
            steps.append((None, False, now))
            continue
        words[drawn.randrange(len(words) + 1) :] = drawn.choices(WORDS, k=drawn.randrange(8))
        steps.append(("".join(words), False, now))
    return [*steps, ("".join(words), True, now)]


def read(width: int, steps: list[tuple[str | None, bool, float]]) -> list[list[str]]:
    reading = Reading(width)
    return [
        reading.due(now) if text is None else reading.read(Caption("1", 0, "de", text, final=final), now)
        for text, final, now in steps
    ]


def test_lines(tmp_path: Path) -> None:
    drawn = random.Random(0)
    cases = [(drawn.randrange(16, 40), steps_of(drawn)) for _ in range(2000)]
    assert in_node(tmp_path, "lines", cases) == [read(*case) for case in cases]
