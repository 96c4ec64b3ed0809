"""docs/benchmarks is up to date with the results in the repository, with a page for each table."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from redraft.errors import InputError
from redraft.models import shipped_path
from redraft.signature import file_hash
from redraft_bench.bench.read import read_results
from redraft_bench.pages import build
from redraft_bench.pages.checks import below, finals
from redraft_bench.pages.page import page
from redraft_bench.pages.typed_figures import figures, typed

RECORDED = Path(__file__).with_name("recorded.jsonl")
ROWS = [json.loads(line) for line in RECORDED.read_text(encoding="utf-8").splitlines()]
FACTS = "redraft:0|model:redraft-demo-q8_0.gguf@1|data:flores200.devtest@2|segments:8|threads:1|exact:False|lag:3"


def save(root: Path, bench: str, language: str, signature: str = FACTS, **more: Any) -> None:
    rows = [{**row, "signature": signature, **more} for row in ROWS if row["bench"] == bench]
    text = "".join(json.dumps({**row, "target_language": language}) + "\n" for row in rows[:9])
    name = f"{bench}-{language}.rows.jsonl"
    (root / "benchmarks" / "results" / name).write_text(text, encoding="utf-8")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A repository with nothing but a README, results and a note."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "benchmarks" / "results").mkdir(parents=True)
    (tmp_path / "benchmarks" / "notes").mkdir()
    (tmp_path / "benchmarks" / "notes" / "trade.md").write_text("Our models differ, because.\n", encoding="utf-8")
    for file, name in (("README.md", "results"), ("docs/calm.md", "costs")):
        (tmp_path / file).write_text(f"a\n<!-- {name} -->\nold\n<!-- /{name} -->\nz\n", encoding="utf-8")
    for bench in ("trade", "ssbd"):
        for language in ("de", "ja"):
            save(tmp_path, bench, language)
    return tmp_path


def test_pages_become_stale(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, picture = root / "docs" / "benchmarks", "trade-acl6060.talks-trade.svg"
    names = [f"docs/benchmarks/{name}" for name in ("README.md", "ssbd.md", "trade.md", picture)]
    assert {*names} <= {*build.stale(root)}
    build.write(root)
    assert build.stale(root) == []
    pages = [path.read_text(encoding="utf-8") for path in folder.glob("*.md")]
    shown = re.findall(r"!\[[^]]*\]\(([^)]*)\)", "".join(pages))
    assert [picture] == shown == [path.name for path in folder.glob("*.svg")]
    save(root, "ssbd", "de", chrf=1.25)
    assert build.stale(root) == ["docs/benchmarks/ssbd.md"]
    save(root, "trade", "de", dal=2.5, retracted=40.5)
    (folder / picture).unlink()
    changed = [f"docs/benchmarks/{name}.md" for name in ("README", "ssbd", "trade")]
    assert build.stale(root) == [*changed, f"docs/benchmarks/{picture}"]
    for path in (root / "benchmarks" / "results").glob("ssbd-*"):
        path.unlink()
    (folder / "old.svg").write_text("<svg/>")
    assert {"docs/benchmarks/ssbd.md", "docs/benchmarks/old.svg"} <= {*build.stale(root)}
    build.write(root)
    assert build.stale(root) == []
    assert {path.name for path in folder.glob("*.md")} == {"README.md", "trade.md"}
    assert not [*folder.glob("ssbd-*"), *folder.glob("old*")]
    monkeypatch.setattr(build, "stale", lambda: ["docs/benchmarks/trade.md"])
    message = "benchmarks: out of date, run `python -m redraft_bench.pages.build`: docs/benchmarks/trade.md"
    assert build.main(["--check"]) == message


def test_without_results_there_is_nothing_to_write(tmp_path: Path) -> None:
    assert build.documents(tmp_path) == {}
    assert build.stale(tmp_path) == []


def test_streams_page_and_readme(root: Path) -> None:
    row = {"bench": "stream", "target_language": "de", "signature": "processor:Z80", "target_passes": 9}
    figures = ("method", "options", "ne_display", "retracted", "stood", "lag_first", "lag_good", "cpu_seconds")
    lines = [
        ("ar", "", 1.5, 30.0, 0.5, 0.2, 0.9, 6.0),
        ("ssbd", "beta=0.2", 0.6, 12.0, 0.8, 0.5, 1.2, 5.0),
        ("local-agreement", "n=2", 0.0, 0.0, 1.0, 1.4, 1.4, 8.0),
        ("redraft", "", 0.25, 3.0, 0.92, 1.1, 1.3, 4.0),
    ]
    lines.insert(3, ("redraft", "stop=0", 0.5, 6.0, 0.9, 1.2, 1.4, 5.0))  # is not compared
    rows = [{**row, **dict(zip(figures, line, strict=True))} for line in lines]
    scored = {**rows[-1], "ne_display": 0.1, "chrf_change": 0.4, "chrf_change_low": -0.5, "chrf_change_high": 1.0}
    for data, last in (("talk", rows[-1]), ("acl", scored)):
        text = "".join(json.dumps({**each, "data": data}) + "\n" for each in (*rows[:-1], last))
        (root / "benchmarks" / "results" / f"stream-{data}-de.rows.jsonl").write_text(text, encoding="utf-8")
    pages = build.documents(root)
    readme = " ".join(pages[root / "README.md"].split())
    assert "retract 3 words a minute, compared with 30 for" in readme and " old " not in readme
    assert "92% of the words never change" in readme and "needs 67% of the processor time" in readme
    assert "| LocalAgreement | 0 | 1.40 | 1.40 | 100% |" in pages[root / "docs" / "calm.md"]
    text = pages[root / "docs" / "benchmarks" / "stream.md"]
    assert "| The demo talk | 30 | 12 | 0 | 3 |" in text and "| The demo talk | 0.90 | 1.20 | 1.40 | 1.30 |" in text
    assert text.count("(-0.5–+1.0)") == 1 and "recognised by Moonshine | +0.4 (-0.5–+1.0) |" in text
    assert "- NE shown at most a third of that of `ssbd`: 1 of 2" in text
    assert "- at most 0.8 of LocalAgreement's processor time: 2 of 2" in text
    assert "by more than its interval: 1 of 1" in text


def test_trends_of_a_sweep_are_those_of_its_rows(root: Path) -> None:
    (root / "docs" / "papers.md").write_text("a\n<!-- trends -->\nold\n<!-- /trends -->\nz\n", encoding="utf-8")
    (root / "benchmarks" / "papers").mkdir()
    figures = dict.fromkeys(("output_acceptance", "ne_output", "ne_display", "pass_speedup", "speedup"), 1.0)
    lines = [("", "0", 0.5), ("", "0.2", 0.75), ("", "0.5", 0.625), ("", "1", 1.0), ("mask 3, plain", "0.2", 0.25)]
    shared = {"bench": "ssbd-table-3", "data": "x", "target_language": "de", "method": "ssbd", "signature": FACTS}
    rows = [
        {**shared, **figures, "display": shown, "options": f"beta={beta}", "draft_acceptance": accepted}
        for shown, beta, accepted in lines
    ]
    path = root / "benchmarks" / "papers" / "x.rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    page = build.documents(root)[root / "docs" / "papers.md"]
    assert "|  | beta 0 | beta 0.2 | beta 0.5 | mask 3 in the draft |" in page and "old" not in page
    assert "| A/D | 50.0% | 75.0% | 62.5% | 25.0% |" in page
    assert "A/D 1 of 2, A/O 2 of 2" in page


def test_table_of_other_weights_than_those_that_ship_says_so() -> None:
    shipped = f"model:redraft-demo-q8_0.gguf@{file_hash(shipped_path('demo'))}"
    line = f"{shipped}|data:talk@1|processor:any"
    folded = f'<details markdown="1"><summary>Signature</summary>\n\n`{line}`  \n\n</details>\n'
    assert below([line, line]) == f"{folded}\n*Processor: any.*\n"
    both = below([shipped, "model:redraft-demo-q8_0.gguf@1|small:redraft-demo-tiny-q8_0.gguf@2"])
    names = "redraft-demo-q8_0.gguf and redraft-demo-tiny-q8_0.gguf"
    assert both.endswith(f"\n*Processor: not recorded. Measured on earlier weights of {names}.*\n")


def save_live(root: Path, bench: str, rows: list[dict[str, Any]], **more: Any) -> None:
    """Rows of a load test; what all share counts after what is given."""
    shared = {"bench": bench, "data": "talk", "target_language": "de,ja", "signature": "redraft:0"}
    lines = [{**row, "caption_lag_p95_ms": 412.5, "ne_units": 0.21, **shared} for row in rows]
    text = "".join(json.dumps(line) + "\n" for line in [*lines, *([{**shared, **more}] if more else [])])
    (root / "benchmarks" / "results" / f"{bench}-talk.rows.jsonl").write_text(text, encoding="utf-8")


def test_trials_that_are_none_are_refused(root: Path) -> None:
    save_live(root, "capacity", [{"method": "ar", "options": "", "talks": 1}], trials={"ar": [[1, 90, 3]]})
    with pytest.raises(InputError, match="line 2: this is not a row of a bench"):
        read_results(root / "benchmarks" / "results")


def test_languages_share_table(root: Path) -> None:
    german, japanese = (
        replace(each, rows=tuple({**row, "speedup": speedup} for row in each.rows[:lines]))
        for each, speedup, lines in zip(
            [each for each in read_results(root / "benchmarks" / "results") if each.bench == "ssbd"],
            (1.5, 1.25),
            (2, 1),
            strict=True,
        )
    )
    lines = [line for line in page([german, japanese], root).splitlines() if line.startswith("| ")][2:]
    assert ["| 1.38 |" in line for line in lines] == [True, False] and lines[1].endswith("| – | – |")
    assert "\nMeans of German and Japanese." in page([german, japanese], root)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("`ssbd` is 1.4 to 2.1 times as fast.", ["1.4 to 2.1 times as fast"]),
        ("It erases 40% as much in 18 passes, and 79 ms later.", ["40%", "18 passes", "79 ms"]),
        ("A quarter fewer, or twice as many: two to three times.", ["twice", "two to three times"]),
        ("takes a third longer and loses 0.8 chrF", ["a third", "0.8 chrF"]),
        ("`beam:4`, `beta=0.2`, 95% intervals, 32-bit floats, 8 of 40 sentences, [exact](exact.md#1.5)", []),
        ("models of 0.5 and 1.5 billion parameters, 8% slower", ["8%"]),
        ("| lag | 1.5 ms |\n", []),
    ],
)
def test_typed_figures(text: str, found: list[str]) -> None:
    assert figures(text) == found


def test_typed_figures_fail(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "ROOT", root)
    assert not list(typed(root))
    (root / "benchmarks" / "notes" / "trade.md").write_text("It is 1.5 times as fast.\n", encoding="utf-8")
    (root / "native" / "llama.cpp").mkdir(parents=True)
    (root / "native" / "llama.cpp" / "README.md").write_text("Passes are two to three times as fast.\n")
    (root / "README.md").write_text("![x](docs/drafts.svg)\n\n*They take 19 passes.*\n\nz\n", encoding="utf-8")
    found = build.main(["--check"])
    assert found is not None and "benchmarks/notes/trade.md: '1.5 times as fast'" in found
    assert "README.md, below the picture: '19 passes'" in found
    assert "native/llama.cpp/README.md: 'two to three times'" in found


def test_findings_are_those_of_the_rows() -> None:
    cells = [("de", "no search", 0.0, (0.0, 0.0), 50), ("de", "exact", -0.17, (-1.2, 0.8), 150)]
    cells += [("ja", "no search", 0.0, (0.0, 0.0), 40), ("ja", "exact", 1.5, (0.2, 2.8), 60)]
    rows = [
        {"data": "x", "target_language": to, "final": final, "chrf_gain": gain, "chrf_gain_low": low, "signature": "s"}
        | {"chrf_gain_high": high, "chrf_gain_over_ar": 0.5, "milliseconds": ms}
        for to, final, gain, (low, high), ms in cells
    ]
    assert finals(rows) == (
        "*Exact* gains +0.7 chrF on average (-0.2 to +1.5) over no search, and +0.5 over `ar`. It is better than no "
        "search beyond chance in 1 of 2 cells and worse in 0, and a final caption takes 1.5 to 3.0 times as long."
    )
