"""The report of a folder: it reads what runs write, leaves nothing unescaped, fetches nothing, and overlaps nowhere."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redraft.errors import InputError
from redraft_bench.bench import report
from redraft_bench.bench.plots.labels import spread
from redraft_bench.bench.read import Result, read_result, read_results
from redraft_bench.eval.columns import COLUMNS, cell, column, filled

RECORDED = [json.loads(line) for line in Path(__file__).with_name("recorded.jsonl").read_text().splitlines()]
CURVE = {"sizes": [1, 2, 4, 8], "seconds": [0.001, 0.0011, 0.0014, 0.002]}


def rows(bench: str, language: str = "de", **more: Any) -> list[dict[str, Any]]:
    found = [row for row in RECORDED if (row["bench"], row["target_language"]) == (bench, language)]
    return [{**row, "signature": f"redraft:0|bench:{bench}", **more} for row in found]


def save(folder: Path, name: str, objects: list[dict[str, Any]], **rest: Any) -> Path:
    """A file of rows, with the one object that is no row if there is something to put into it."""
    more = [{**{key: objects[0][key] for key in ("bench", "data", "target_language")}, **rest}] if rest else []
    path = folder / f"{name}.rows.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in [*objects, *more]), encoding="utf-8")
    return path


def acceptance(objects: list[dict[str, Any]]) -> dict[str, list[list[int]]]:
    return {
        f"{row['method']} {row['options']}".strip(): [[9, 10], [4, 5]] for row in objects if row["draft_acceptance"]
    }


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Every bench, into a page."""
    pytest.importorskip("matplotlib")
    folder = tmp_path_factory.mktemp("runs")
    for bench in dict.fromkeys(row["bench"] for row in RECORDED):
        found = rows(bench)
        save(folder, bench, found, curve=CURVE, acceptance_by_position=acceptance(found))
    save(folder, "ssbd-ja", rows("ssbd", "ja"))
    replayed = [{**row, "ne_output": None, "ne_display": None, "chrf": None} for row in rows("ssbd", replay=True)[:3]]
    save(folder, "replay", replayed, curve=CURVE)
    path = report.write(folder)
    assert path == folder / "report.html"
    return path.read_text(encoding="utf-8")


# The page


def test_the_page_fetches_nothing(page: str) -> None:
    assert page.startswith("<!doctype html>")
    assert not re.findall(r"<(?:link|img|iframe|object|embed|image)\b|<script[^>]+src|@import|url\((?!#)", page)
    assert {found for found in re.findall(r'href="([^"]*)"', page) if not found.startswith("#")} == set()
    addresses = set(re.findall(r"https?://[^\s\"'<>]*", page))
    assert addresses <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}  # names, not places


def test_all_references_lead_to_one_place(page: str) -> None:
    ids = re.findall(r'\bid="([^"]*)"', page)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'href="#([^"]*)"|url\(#([^)]*)\)', page)) - {("", "")}
    assert {first or second for first, second in re.findall(r'href="#([^"]*)"|url\(#([^)]*)\)', page)} <= set(ids)


def test_all_elements_are_closed(page: str) -> None:
    class Balance(HTMLParser):
        def __init__(self) -> None:
            super().__init__()
            self.open: list[str] = []

        def handle_starttag(self, tag: str, attrs: object) -> None:
            if tag not in ("meta", "br"):
                self.open.append(tag)

        def handle_startendtag(self, tag: str, attrs: object) -> None:
            pass

        def handle_endtag(self, tag: str) -> None:
            assert self.open.pop() == tag

    checker = Balance()
    checker.feed(page)
    checker.close()
    assert checker.open == []


def test_sections_stand_in_the_order_of_the_tables_and_replays_last(page: str) -> None:
    headings = re.findall(r"<h2>(.*?)</h2>", page)
    assert headings[0] == "Methods on a stream, language by language (Tables 2 and 6 of SSBD v2)."
    assert headings[1:4] == [
        "What each part of `redraft` saves, with measured costs and with a flat curve.",
        "Effect of the bias (Table 3 of SSBD v2).",
        "Effect of mask-k, plain and display-only (Table 4 of SSBD v2).",
    ]
    assert headings[-1].startswith("Replay: Methods on a stream")
    assert re.findall(r"<h3>(.*?)</h3>", page)[:2] == [
        "Flores-200 devtest, to German",
        "Flores-200 devtest, to Japanese",
    ]


def test_a_replay_says_so_in_table_and_plots(page: str) -> None:
    before, after = page.split("<h2>Replay", 1)
    assert "(replay)" not in before
    titles = re.findall(r"<tr>\s*<td[^>]*>(.*?)</td>", after)
    assert titles == ["ar (replay)", "ssbd beta=0.2 (replay)", "cd (replay)"]
    plots = re.findall(r"<svg.*?</svg>", after, re.DOTALL)
    assert len(plots) == 3
    assert all("replay" in "".join(re.findall(r">([^<]*)</text>", plot)) for plot in plots)


def test_every_plot_is_drawn_and_described(page: str) -> None:
    labels = re.findall(r'<div role="img" aria-label="([^"]*)">\s*<svg', page)
    assert len(labels) == page.count("<svg")
    shown = " ".join(labels)
    for words in (
        "Quality against flicker",
        "Speed-up over re-translation (ar), as the bias grows",
        "by how much of a partial caption is hidden",
        "Quality against speed",
        "Speed-up over ar, in time and in passes",
        "Distance to the limit",
        "draft tokens accepted at each position",
        "T(n)",
    ):
        assert words in shown
    for words in ("bias β", "speed-up over ar (×)", "time of the pass (ms)", "n · T(1)", "k (tokens or words hidden)"):
        assert f">{words}</text>" in page


def test_signatures_stand_below_each_table(page: str) -> None:
    assert page.count('class="signature"') == page.count("<h3>")
    assert '<p class="signature">redraft:0|bench:beta|processor:not recorded</p>' in page


def test_nothing_comes_in_unescaped(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    evil = '<script>alert("$x_1$")</script>&'
    objects = [{**row, "data": evil, "signature": evil, evil: 1} for row in rows("cold")]
    objects[1]["method"] = objects[2]["options"] = evil
    save(tmp_path, "evil", objects, acceptance_by_position={evil: [[1, 2]]}, curve=CURVE, signature=evil)
    text = report.write(tmp_path).read_text(encoding="utf-8")
    assert "<script>alert" not in text
    assert text.count("<script>") == 1  # the page's own
    assert text.count("&lt;script&gt;alert") > 8
    assert len(re.findall(r"&lt;script&gt;[^<]*</text>", text)) >= 3  # not read as mathematics either


def test_the_cost_of_a_pass_is_drawn_once_a_model(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    for language, model in (("de", "a"), ("ja", "a"), ("zh", "b")):
        table = [{**row, "target_language": language, "signature": f"model:{model}"} for row in rows("beta")[:1]]
        save(tmp_path, language, table, curve=CURVE)
    text = report.write(tmp_path).read_text(encoding="utf-8")
    assert text.count(">n · T(1)</text>") == 2


# Missing figures


def test_what_is_missing_leaves_out_its_column_and_its_plot(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    bare = [{**row, "chrf": None, "draft_passes": None, "limit_distance": None} for row in rows("beta")]
    for row in bare:
        row.pop("laal", None)
    save(tmp_path, "beta", bare)
    text = report.write(tmp_path).read_text(encoding="utf-8")
    for words in ("chrF", "small model's passes", "× limit", "LAAL", "Quality against", "T(n)", "at a position"):
        assert words not in text
    assert "as the bias grows" in text
    save(tmp_path, "beta", [{**row, "speedup": None} for row in bare])
    assert "<svg" not in report.write(tmp_path).read_text(encoding="utf-8")


def test_columns_that_say_nothing_are_left_out() -> None:
    table = rows("cold", failures=0)
    assert {"ne_output", "mask", "target_language", "failures", "laal", "options", "bench"} & {*filled(table)} == set()
    assert "failures" in filled([*table[1:], {**table[0], "failures": 1}])
    assert "ne_output" in filled(rows("beta"))
    assert "mask" in filled(rows("mask"))
    assert filled(rows("beta"), ["chrf", "method", "comet"]) == ["chrf", "method"]


def test_a_field_that_is_not_known_has_a_column_of_its_own_name() -> None:
    table = rows("beta", my_figure=1.5, my_words="so so")
    assert filled(table)[-2:] == ["my_figure", "my_words"]
    assert column("my_figure", table) == ("my figure", "g", "")
    assert column("my_words", table) == ("my words", "", "")


def test_lags_are_headed_by_their_unit() -> None:
    assert column("laal", rows("ssbd")).heading == "LAAL (words)"
    assert column("laal", rows("ssbd", latency_unit="seconds")).heading == "LAAL (seconds)"
    assert column("laal", rows("ssbd", latency_unit=None)).heading == "LAAL"
    assert column("ap", rows("ssbd")).heading == "AP"


@pytest.mark.parametrize(
    ("name", "figures", "shown"),
    [
        ("method", {"method": "ssbd", "options": "beta=0"}, "ssbd beta=0"),
        ("method", {"method": "cd", "options": None, "replay": True}, "cd (replay)"),
        ("chrf", {"chrf": 37.482}, "37.5"),
        ("chrf", {"chrf": 37.482, "chrf_low": 36.55, "chrf_high": 38}, "37.5 (36.5–38.0)"),
        ("chrf", {"chrf": None}, "–"),
        ("ne_output", {}, "–"),
        ("ne_output", {"ne_output": 0}, "0.00"),
        ("same_as_ar", {"same_as_ar": 0, "segments": 8}, "0/8"),
        ("target_passes", {"target_passes": 12206}, "12,206"),
        ("draft_acceptance", {"draft_acceptance": 0.917}, "91.7%"),
    ],
)
def test_figures_read_well(name: str, figures: dict[str, Any], shown: str) -> None:
    assert cell(figures, name, COLUMNS[name].form) == shown


# Reading


def test_results_are_read_as_they_were_written(tmp_path: Path) -> None:
    table = rows("ssbd")
    path = save(
        tmp_path, "x", table, curve=CURVE, acceptance_by_position={"cd": [[3, 4]]}, signature="redraft:0|bench:ssbd"
    )
    result = read_result(path)
    assert (result.bench, result.data, result.language, result.replayed) == ("ssbd", "flores200.devtest", "de", False)
    assert list(result.rows) == table
    assert result.signatures == ("redraft:0|bench:ssbd",)
    assert result.facts == {"redraft": "0", "bench": "ssbd"}
    assert result.curve is not None and result.curve(4) == 0.0014
    assert result.acceptance == {"cd": [(3, 4)]}


def test_results_come_in_the_order_of_the_papers(tmp_path: Path) -> None:
    for bench, language in (("beta", "de"), ("ssbd", "fr"), ("ssbd", "ja"), ("ssbd", "de"), ("my own", "de")):
        save(tmp_path, f"{bench}{language}", [{**rows("ssbd")[0], "bench": bench, "target_language": language}])
    save(tmp_path, "a", [{**rows("ssbd")[0], "replay": True}])
    assert [(each.bench, each.language, each.replayed) for each in read_results(tmp_path)] == [
        ("ssbd", "de", False),
        ("ssbd", "ja", False),
        ("ssbd", "fr", False),
        ("beta", "de", False),
        ("my own", "de", False),
        ("ssbd", "de", True),
    ]


ROW = {"bench": "beta", "data": "x", "target_language": "de", "method": "ar"}


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("{", "line 1: this is not valid JSON"),
        ("[]", "line 1: a row must be a JSON object"),
        (json.dumps({**ROW, "data": 3}), "line 1: data must be a string, not 3"),
        (json.dumps(ROW) + "\n{}", "line 2: bench must be a string, not None"),
        (json.dumps({**ROW, "chrf": "high"}), "line 1: chrf must be a number or null, not 'high'"),
        (json.dumps({**ROW, "mask": 3}), "line 1: mask must be a string or null, not 3"),
        (json.dumps({**ROW, "other": []}), r"line 1: other must be a string, a number or null, not \[\]"),
        (json.dumps(ROW) + "\n" + json.dumps({**ROW, "data": "y"}), "must hold the rows of one bench, .*, not of 2"),
        ("", "must hold the rows of one bench, data set and language, not of 0"),
        (json.dumps({**ROW, "method": None}), "line 1: method must be a string, not None"),
    ],
)
def test_broken_rows_are_refused_with_file_and_line(tmp_path: Path, lines: str, message: str) -> None:
    path = tmp_path / "x.rows.jsonl"
    path.write_text(lines, encoding="utf-8")
    with pytest.raises(InputError, match=message) as caught:
        report.write(tmp_path)
    assert str(caught.value).startswith(str(path))


@pytest.mark.parametrize(
    "more", [{"curve": {"sizes": [1]}}, {"curve": {"sizes": [2, 3], "seconds": [1, 1]}}, {"curve": 3}]
)
def test_a_broken_curve_is_refused(tmp_path: Path, more: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="curve must hold sizes and the seconds of each"):
        read_result(save(tmp_path, "x", rows("beta"), **more))


@pytest.mark.parametrize("given_", [{"cd": 3}, {"cd": [[1]]}, {"cd": [["a", "b"]]}, [1]])
def test_broken_acceptance_is_refused(tmp_path: Path, given_: object) -> None:
    with pytest.raises(InputError, match="acceptance_by_position must hold pairs of counts"):
        read_result(save(tmp_path, "x", rows("beta"), acceptance_by_position=given_))


def test_an_empty_folder_has_no_report(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"contains no results: benchmarks write them to files that end in \.rows\.jsonl"
    ):
        report.write(tmp_path)


# Labels


@given(st.lists(st.floats(0, 100), max_size=8), st.floats(1, 15))
def test_labels_at_the_ends_of_lines_are_spread(heights: list[float], gap: float) -> None:
    placed = spread(sorted(heights), gap, 100)
    assert len(placed) == len(heights)
    assert all(second - first >= gap - 1e-6 for first, second in pairwise(placed))
    assert all(height <= 100 for height in placed)
    if all(second - first >= gap for first, second in pairwise(sorted(heights))):
        assert placed == pytest.approx(sorted(heights))


@pytest.mark.parametrize("bench", ["ssbd", "beta", "peers", "mask", "bild"])
def test_no_two_labels_overlap(bench: str) -> None:
    pytest.importorskip("matplotlib")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    from redraft_bench.bench.plots.kinds import plots_of

    result = Result(bench, "x", "de", tuple(rows(bench)))
    plots = [plot for plot in plots_of(result) if plot.name not in ("speedups", "limit")]
    assert plots
    for plot in plots:
        figure = Figure(figsize=(4.1, 3.0), dpi=72)
        canvas = FigureCanvasAgg(figure)
        axes = figure.add_axes((0.15, 0.17, 0.55, 0.78))
        plot.draw(axes, result)
        canvas.draw()
        boxes = [(each.get_text(), each.get_window_extent()) for each in axes.texts if each.get_text()]
        assert len(boxes) > 1
        for (_, first), (_, second) in combinations(boxes, 2):
            assert not first.shrunk(0.9, 0.75).overlaps(second.shrunk(0.9, 0.75)), (plot.name, boxes)


def test_margins_are_a_line_of_the_lag_plot() -> None:
    pytest.importorskip("matplotlib")
    from matplotlib.figure import Figure

    from redraft_bench.bench.plots import masks

    first = next(row for row in rows("mask") if row["mask"])
    figures = [("0.05", 8.0, 0.03), ("0", 6.0, 0.08), ("0.02", 7.0, 0.05)]
    margins = [{**first, "mask": f"below margin {m}", "laal": x, "ne_display": y} for m, x, y in figures]
    other = {**margins[0], "mask": "3 tokens, below margin 0.05"}
    axes = Figure().add_subplot()
    others = [row for row in rows("mask") if "margin" not in str(row["mask"])]
    masks.lag(axes, Result("mask", "x", "de", (*others, *margins, other)))
    drawn = [line.get_xydata().tolist() for line in axes.lines]
    assert [[6.0, 0.08], [7.0, 0.05], [8.0, 0.03]] in drawn
    assert {"margin 0", "margin 0.02", "margin 0.05"} <= {text.get_text() for text in axes.texts}
