"""docs/benchmarks: it is what the checked-in results make of it, with a page for each table."""

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
from tools import build_benchmarks as build
from tools.benchmark_pages import page
from tools.checks import below, checks

RECORDED = Path(__file__).parent / "measure" / "bench" / "recorded.jsonl"
ROWS = [json.loads(line) for line in RECORDED.read_text(encoding="utf-8").splitlines()]
FACTS = "redraft:0|model:redraft-demo-q8_0.gguf@1|data:flores200.devtest@2|segments:8|threads:1|exact:False|lag:3"


def save(root: Path, bench: str, language: str, signature: str = FACTS, **more: Any) -> None:
    rows = [{**row, "signature": signature, **more} for row in ROWS if row["bench"] == bench]
    text = "".join(json.dumps({**row, "target_language": language}) + "\n" for row in rows[:9])
    name = f"{bench}-{language}{'-replay' * ('replay' in more)}.rows.jsonl"
    (root / "benchmarks" / "results" / name).write_text(text, encoding="utf-8")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A repository with nothing but a README, results and a note."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "benchmarks" / "results").mkdir(parents=True)
    (tmp_path / "benchmarks" / "notes").mkdir()
    (tmp_path / "benchmarks" / "notes" / "beta.md").write_text("Our models differ, because.\n", encoding="utf-8")
    (tmp_path / "README.md").write_text("a\n<!-- results -->\nold\n<!-- /results -->\nz\n", encoding="utf-8")
    for bench in ("beta", "ssbd"):
        for language in ("de", "ja"):
            save(tmp_path, bench, language)
    return tmp_path


def test_a_page_is_written_and_then_fresh(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib")
    folder = root / "docs" / "benchmarks"
    pictures = ["ssbd-flores200.devtest-quality.svg", "beta-flores200.devtest-speed.svg"]
    names = [f"docs/benchmarks/{name}" for name in ("README.md", "ssbd.md", "beta.md", *pictures)]
    assert {*names} <= {*build.stale(root)}
    build.write(root)
    assert build.stale(root) == []
    pages = [path.read_text(encoding="utf-8") for path in folder.glob("*.md")]
    shown = re.findall(r"!\[[^]]*\]\(([^)]*)\)", "".join(pages))
    assert {*shown} >= {*pictures}
    assert {path.name for path in folder.glob("*.svg")} == {*shown}
    before = {path: path.read_bytes() for path in folder.iterdir()}
    build.write(root)
    assert {path: path.read_bytes() for path in folder.iterdir()} == before
    monkeypatch.setattr(build, "stale", lambda: ["docs/benchmarks/beta.md"])
    assert build.main(["--check"]) == (
        "benchmarks: out of date, run `python -m tools.build_benchmarks`: docs/benchmarks/beta.md"
    )


def test_pages_and_pictures_of_no_result_are_noticed_and_removed(root: Path) -> None:
    pytest.importorskip("matplotlib")
    build.write(root)
    folder = root / "docs" / "benchmarks"
    for path in (root / "benchmarks" / "results").glob("ssbd-*"):
        path.unlink()
    (folder / "old.svg").write_text("<svg/>")
    found = build.stale(root)
    assert found[0] == "docs/benchmarks/README.md"
    assert {"docs/benchmarks/ssbd.md", "docs/benchmarks/old.svg"} <= {*found}
    build.write(root)
    assert build.stale(root) == []
    assert {path.name for path in folder.glob("*.md")} == {"README.md", "beta.md"}
    assert not [*folder.glob("ssbd-*"), *folder.glob("old*")]


def test_the_index_says_what_each_table_answers_and_its_figures(root: Path) -> None:
    index = build.documents(root)[root / "docs" / "benchmarks" / "README.md"]
    assert "## Live captions\n\n- [Methods on a stream" in index and "\n- [Effect of the bias](beta.md): " in index
    assert "faster and calmer captions, at a cost in quality. *Measured on earlier weights.*\n" in index
    assert "- Flores-200 devtest, to German and Japanese: `ssbd beta=0.2` speed-up 1.77, by passes " in index


def test_another_model_has_a_table_a_command_and_pictures_of_its_own(root: Path) -> None:
    pytest.importorskip("matplotlib")
    save(root, "beta", "de", FACTS.replace("redraft-demo-q8_0", "other"))
    saved = root / "benchmarks" / "results" / "beta-de.rows.jsonl"
    saved.rename(saved.with_name("beta-de-other.rows.jsonl"))
    save(root, "beta", "de")
    build.write(root)
    page = (root / "docs" / "benchmarks" / "beta.md").read_text(encoding="utf-8")
    assert "## Flores-200 devtest, to German\n" in page
    assert "## Flores-200 devtest, to German, by other\n" in page
    assert "--to de --to ja --limit 8 --threads 1" in page and "--to de --model other.gguf --limit 8" in page
    for name in ("flores200.devtest-speed", "flores200.devtest-other-speed"):
        assert (root / "docs" / "benchmarks" / f"beta-{name}.svg").exists()


def test_results_that_change_and_pictures_that_vanish_are_noticed(root: Path) -> None:
    pytest.importorskip("matplotlib")
    build.write(root)
    save(root, "ssbd", "de", chrf=1.25)
    assert build.stale(root) == ["docs/benchmarks/ssbd.md"]
    save(root, "beta", "de", speedup=2.5)
    assert build.stale(root) == [f"docs/benchmarks/{name}.md" for name in ("README", "ssbd", "beta")]
    build.write(root)
    (root / "docs" / "benchmarks" / "beta-flores200.devtest-speed.svg").unlink()
    assert build.stale(root) == ["docs/benchmarks/beta-flores200.devtest-speed.svg"]


def test_without_results_there_is_nothing_to_write(tmp_path: Path) -> None:
    assert build.documents(tmp_path) == {}
    assert build.stale(tmp_path) == []


def test_the_pages_hold_tables_signatures_and_notes(root: Path) -> None:
    pages = build.documents(root)
    first, second = (pages[root / "docs" / "benchmarks" / f"{name}.md"] for name in ("ssbd", "beta"))
    assert first.startswith("# Methods on a stream, language by language (Tables 2 and 6 of SSBD v2)\n")
    assert second.startswith("# Effect of the bias (Table 3 of SSBD v2)\n")
    assert "## Flores-200 devtest, to German\n" in second and "## Flores-200 devtest, to Japanese\n" in second
    assert "| method | chrF | NE | NE shown | A/D | A/O | passes | speed-up | by passes | × limit |\n" in second
    assert "| ssbd beta=0.2 | 35.6 | 0.60 | 0.60 | 88.6% | 74.4% | 751 | 1.77 |" in second
    signature = (
        f'<details markdown="1"><summary>Signature</summary>\n\n`{FACTS}|processor:not recorded`  \n\n</details>'
    )
    assert second.count(signature) == 2
    assert second.index("Our models differ") > second.rindex("beta-flores200.devtest-speed.svg")
    assert "Our models differ" not in first
    index = pages[root / "docs" / "benchmarks" / "README.md"]
    assert "- **A/D**: share of the drafted tokens that were accepted, without those of a repetition" in index
    assert "COMET" not in index


def test_streams_of_recognisers_are_summed_up_on_their_page_and_in_the_readme(root: Path) -> None:
    row = {"bench": "stream", "data": "talk", "target_language": "de", "signature": "processor:Z80", "source": "raw"}
    before = {
        **row,
        "method": "ar",
        "mask": "",
        "cpu_seconds": 6.0,
        "ne_display": 1.5,
        "lag_first": 0.2,
        "lag_good": 0.9,
    }
    raw = {**before, "method": "ssbd", "mask": "below margin 0", "cpu_seconds": 5.0, "ne_display": 1.2}
    after = {**raw, "source": "stable", "cpu_seconds": 4.0, "cpu_speedup": 1.5, "ne_display": 0.5, "lag_good": 1.3}
    scored = {**after, "chrf_change": 0.4, "chrf_change_low": -0.5, "chrf_change_high": 1.0}
    for data, last in (("talk", after), ("acl", scored)):
        text = "".join(json.dumps({**each, "data": data}) + "\n" for each in (before, raw, last))
        (root / "benchmarks" / "results" / f"stream-{data}-de.rows.jsonl").write_text(text, encoding="utf-8")
    pages = build.documents(root)
    readme = " ".join(pages[root / "README.md"].split())
    assert "1.5× faster" in readme and "67% fewer" in readme and "old" not in readme
    text = pages[root / "docs" / "benchmarks" / "stream.md"]
    assert "| the demo talk | German | 1.20 → 0.50 | 0.20 → 0.20 | 0.90 → 1.30 | 5.0 → 4.0 | 1.50 |  |" in text
    assert "| 1.50 | +0.4 (-0.5–+1.0) |" in text
    assert "- NE shown at most a third: missed (0 of 2)" in text
    assert "- chrF not lower by more than its interval: reached (1 of 1)" in text


def test_a_table_of_other_weights_than_those_that_ship_says_so() -> None:
    shipped = f"model:redraft-demo-q8_0.gguf@{file_hash(shipped_path('demo'))}"
    line = f"{shipped}|data:talk@1|processor:any"
    folded = f'<details markdown="1"><summary>Signature</summary>\n\n`{line}`  \n\n</details>\n'
    assert below([line, line]) == f"{folded}\n*Processor: any.*\n"
    both = below([shipped, "model:redraft-demo-q8_0.gguf@1|small:redraft-demo-tiny-q8_0.gguf@2"])
    names = "redraft-demo-q8_0.gguf and redraft-demo-tiny-q8_0.gguf"
    assert both.endswith(f"\n*Processor: not recorded. Measured on earlier weights of {names}.*\n")


def test_long_tables_are_folded(root: Path) -> None:
    result = next(each for each in read_results(root / "benchmarks" / "results") if each.bench == "beta")
    long = replace(result, rows=result.rows * 21)
    assert f"<summary>{len(long.rows)} rows</summary>" in page([long], root)
    assert "rows</summary>" not in page([result], root)


def test_replays_say_so(root: Path) -> None:
    save(root, "ssbd", "de", replay=True)
    pages = build.documents(root)
    plain, replayed = (pages[root / "docs" / "benchmarks" / f"{name}.md"] for name in ("ssbd", "replay-ssbd"))
    assert "(replay)" not in plain
    assert replayed.startswith("# Replay: ")
    assert "## Flores-200 devtest, to German (replay)\n" in replayed
    assert "| ssbd beta=0.2 (replay) |" in replayed


def save_live(root: Path, bench: str, rows: list[dict[str, Any]], **more: Any) -> None:
    """Rows of a load test; what all share counts after what is given."""
    shared = {"bench": bench, "data": "talk", "target_language": "de,ja", "signature": "redraft:0"}
    lines = [{**row, "caption_lag_p95_ms": 412.5, "ne_units": 0.21, **shared} for row in rows]
    text = "".join(json.dumps(line) + "\n" for line in [*lines, *([{**shared, **more}] if more else [])])
    (root / "benchmarks" / "results" / f"{bench}-talk.rows.jsonl").write_text(text, encoding="utf-8")


def test_load_tests_have_their_tables_and_a_plot(root: Path) -> None:
    pytest.importorskip("matplotlib")
    settings = ("slots=64", "slots=64 batch_lanes=1")
    rows = [{"method": "ssbd", "options": text, "talks": talks} for text, talks in zip(settings, (48, 9), strict=True)]
    trials = {"ssbd slots=64": [[1, 90], [64, None]], "ssbd slots=64 batch_lanes=1": [[1, 95], [16, 2500]]}
    save_live(root, "capacity", rows, trials=trials)
    save_live(root, "load", [{**rows[0], "admission": "on", "refused": 7, "refusals": "capacity 7"}])
    build.write(root)
    folder = root / "docs" / "benchmarks"
    search, load = ((folder / f"{name}.md").read_text(encoding="utf-8") for name in ("capacity", "load"))
    assert search.startswith("# How many live talks a server carries\n")
    assert search.count("## the demo talk, to German and Japanese\n") == 1
    assert "| ssbd slots=64 batch_lanes=1 | 9 | 412 | 0.21 |" in search
    assert "| on | 48 | 7 | 412 |" in load
    picture = (folder / "capacity-talk-talks.svg").read_text(encoding="utf-8")
    assert "batch_lanes=1" in picture and "slots=64 batch_lanes=1" not in picture  # what all have says nothing
    assert build.stale(root) == []


def test_trials_that_are_none_are_refused(root: Path) -> None:
    save_live(root, "capacity", [{"method": "ar", "options": "", "talks": 1}], trials={"ar": [[1, 90, 3]]})
    with pytest.raises(InputError, match="trials must hold pairs of talks and lag for every title"):
        read_results(root / "benchmarks" / "results")


def test_languages_share_a_table(root: Path) -> None:
    german, japanese = (
        replace(each, rows=tuple({**row, "speedup": speedup} for row in each.rows[:lines]))
        for each, speedup, lines in zip(
            [each for each in read_results(root / "benchmarks" / "results") if each.bench == "ssbd"],
            (1.5, 1.25),
            (2, 1),
            strict=True,
        )
    )
    text = page([german, japanese], root).replace("\N{NO-BREAK SPACE}", " ")
    assert text.count("| 1.50 · 1.25 |") == 1 and text.count("| 1.50 · – |") == 1
    assert "\nGerman · Japanese." in text


def test_one_command_measures_all_languages(root: Path) -> None:
    pages = build.documents(root)
    for bench in ("ssbd", "beta"):
        page = pages[root / "docs" / "benchmarks" / f"{bench}.md"]
        assert re.findall(r"^```sh\n(.*)\n```$", page, re.MULTILINE) == [
            f"redraft bench run {bench} --data flores200.devtest --to de --to ja --limit 8 --threads 1"
        ]


def test_threads_are_shown_with_what_else_ran(tmp_path: Path) -> None:
    row = {"model": "demo", "busy": 1, "setting": "default", "updates_per_second": 56.816, "of_one_thread": 1.1}
    line = json.dumps({**row, "of_best": 0.96, "signature": "redraft:0|processor:any"})
    (tmp_path / "threads.jsonl").write_text(f"{line}\n", encoding="utf-8")
    (found,) = checks(tmp_path)
    page = found.page()
    assert found.headline() == "of the best 96%"
    assert "| demo | 1 | default | 56.8 | 96% |" in page
    assert "`redraft:0|processor:any`" in page


def test_language_model_leads(root: Path) -> None:
    row: dict[str, Any] = {"target_language": "de", "method": "ar", "options": "", "draft_acceptance": None}
    row |= {
        "target_passes": 82,
        "pass_speedup": 1.0,
        "seconds": 2.65,
        "speedup": 1.0,
        "model_share": 0.9896,
        "limit_distance": 1.428,
    }
    row |= {"ne_output": 1.39, "ne_display": 1.39, "chrf": 16.0, "chrf_low": 12.0, "chrf_high": 20.0}
    line = json.dumps({**row, "signature": "redraft:0|processor:any"})
    (root / "benchmarks" / "results" / "language_model.jsonl").write_text(f"{line}\n", encoding="utf-8")
    pages = build.documents(root)
    index = pages[root / "docs" / "benchmarks" / "README.md"]
    assert index.index("(language_model.md)") < index.index("(ssbd.md)")
    page = pages[root / "docs" / "benchmarks" / "language_model.md"]
    assert "| de | ar |  | 82 | 1.00 | 3 | 1.00 | 99.0% | 1.43 | 1.39 | 1.39 | 16.0 (12.0–20.0) |" in page
