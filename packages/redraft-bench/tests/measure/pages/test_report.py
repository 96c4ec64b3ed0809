"""The report of a folder: it reads what runs write and names its pictures; labels overlap nowhere."""

from __future__ import annotations

import json
import re
from itertools import combinations, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redraft.errors import InputError
from redraft_bench.bench.plots import METHODS, OTHERS, SWEEP, colours, spread
from redraft_bench.bench.read import Result, read_result
from redraft_bench.eval.columns import filled
from redraft_bench.pages import report

if TYPE_CHECKING:
    pass

RECORDED = [json.loads(line) for line in Path(__file__).with_name("recorded.jsonl").read_text().splitlines()]


def rows(bench: str, language: str = "de", **more: Any) -> list[dict[str, Any]]:
    found = [row for row in RECORDED if (row["bench"], row["target_language"]) == (bench, language)]
    return [{**row, "signature": f"redraft:0|bench:{bench}", **more} for row in found]


def save(folder: Path, name: str, objects: list[dict[str, Any]], **rest: Any) -> Path:
    """A file of rows, with the one object that is no row if there is something to put into it."""
    more = [{**{key: objects[0][key] for key in ("bench", "data", "target_language")}, **rest}] if rest else []
    path = folder / f"{name}.rows.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in [*objects, *more]), encoding="utf-8")
    return path


def test_report_names_every_picture_and_explains_every_column(tmp_path: Path) -> None:
    for bench in dict.fromkeys(row["bench"] for row in RECORDED):
        save(tmp_path, bench, rows(bench))
    save(tmp_path, "ssbd-ja", rows("ssbd", "ja"))
    path = report.write(tmp_path)
    assert path == tmp_path / "report.md"
    text = path.read_text(encoding="utf-8")
    pictures = re.findall(r"!\[[^]]*\]\(([^)]*)\)", text)
    assert len(pictures) == len({*pictures}) and {*pictures} == {each.name for each in tmp_path.glob("*.svg")}
    tables, _, columns = text.partition("## Columns")
    explained = {*re.findall(r"- \*\*(.*?)\*\*: ", columns)}
    (headings, *_) = [line.strip("| ").split(" | ") for line in tables.split("\n") if line.startswith("| method")]
    assert {heading.partition(" (words)")[0] for heading in headings} <= {
        each.partition(" (")[0] for each in explained
    } | explained


def test_mark_of_columns_in_cell(tmp_path: Path) -> None:
    save(tmp_path, "cold", [{**row, "options": "a|b"} for row in rows("cold")])
    assert "a\\|b" in report.write(tmp_path).read_text(encoding="utf-8")


# Missing figures


def test_what_is_missing_leaves_out_its_column_and_its_plot(tmp_path: Path) -> None:
    bare = [{**row, "chrf": None, "draft_passes": None, "limit_distance": None} for row in rows("peers")]
    save(tmp_path, "peers", bare)
    text = report.write(tmp_path).read_text(encoding="utf-8")
    for words in ("chrF", "small model's passes", "× limit"):
        assert words not in text
    save(tmp_path, "trade", rows("trade"))
    assert "![trade]" in report.write(tmp_path).read_text(encoding="utf-8")
    save(tmp_path, "trade", [{**row, "dal": None, "speedup": None} for row in rows("trade")])
    assert "![" not in report.write(tmp_path).read_text(encoding="utf-8")


def test_columns_that_say_nothing_are_left_out() -> None:
    assert filled(rows("cold"), ["method", "display", "target_language", "empty"]) == ["method"]
    assert filled(rows("trade"), ["chrf", "method", "display", "empty"]) == ["chrf", "method", "display"]


def test_runs_of_one_method_with_other_talks_are_lines(tmp_path: Path) -> None:
    row = {"bench": "load", "data": "talk", "target_language": "de", "method": "ssbd", "signature": "redraft:0"}
    save(tmp_path, "load", [{**row, "talks": talks, "caption_lag_p95_ms": 9.0 * talks} for talks in (2, 4)])
    text = report.write(tmp_path).read_text(encoding="utf-8")
    assert "| ssbd | 2 | 18 |" in text and "| ssbd | 4 | 36 |" in text


# Reading


def test_results_are_read_as_they_were_written(tmp_path: Path) -> None:
    table = rows("ssbd")
    path = save(tmp_path, "x", table, trials={"cd": [[3, 4], [5, None]]}, signature="redraft:0|bench:ssbd")
    result = read_result(path)
    assert (result.bench, result.data, result.language) == ("ssbd", "flores200.devtest", "de")
    assert list(result.rows) == table
    assert result.signatures == ("redraft:0|bench:ssbd",)
    assert result.facts == {"redraft": "0", "bench": "ssbd"}
    assert result.trials == {"cd": [(3, 4)]}


ROW = {"bench": "trade", "data": "x", "target_language": "de", "method": "ar"}


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("{", "line 1: this is not a row of a bench"),
        ("[]", "line 1: this is not a row of a bench"),
        (json.dumps(ROW) + "\n{}", "line 2: .*'bench'"),
        (json.dumps({**ROW, "chrf": "high"}), "line 1: .*chrf must be a number or null, not 'high'"),
        (json.dumps({**ROW, "display": 3}), "line 1: .*display must be text or null, not 3"),
        (json.dumps({**ROW, "other": []}), r"line 1: .*other must be a string, a number, .* not \[\]"),
        (json.dumps(ROW) + "\n" + json.dumps({**ROW, "data": "y"}), "must hold the rows of one bench, .*, not of 2"),
        ("", "must hold the rows of one bench, data set and language, not of 0"),
    ],
)
def test_broken_rows_are_refused_with_file_and_line(tmp_path: Path, lines: str, message: str) -> None:
    path = tmp_path / "x.rows.jsonl"
    path.write_text(lines, encoding="utf-8")
    with pytest.raises(InputError, match=message) as caught:
        report.write(tmp_path)
    assert str(caught.value).startswith(str(path))


def test_broken_data_of_plots(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="this is not a row of a bench"):
        read_result(save(tmp_path, "x", rows("trade"), trials=[1]))


def test_empty_folder_has_no_report(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"contains no results: benchmarks write them to files that end in \.rows\.jsonl"
    ):
        report.write(tmp_path)


# Labels


@given(st.lists(st.floats(0, 100), max_size=8), st.floats(1, 15))
def test_labels_at_ends_of_lines_are_spread(heights: list[float], gap: float) -> None:
    placed = spread(sorted(heights), gap, 100)
    assert len(placed) == len(heights)
    assert all(second - first >= gap - 1e-6 for first, second in pairwise(placed))
    assert all(height <= 100 for height in placed)
    if all(second - first >= gap for first, second in pairwise(sorted(heights))):
        assert placed == pytest.approx(sorted(heights))


@pytest.mark.parametrize("place", range(3))
def test_no_two_labels_overlap(place: int) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    result = Result("trade", "x", "de", tuple(rows("trade")))
    figure = Figure(figsize=(4.1, 3.8), dpi=72)
    canvas = FigureCanvasAgg(figure)
    axes = figure.add_axes((0.15, 0.17, 0.8, 0.65))
    SWEEP.panels(result)[place](axes, result)
    canvas.draw()
    boxes = [(each.get_text(), each.get_window_extent()) for each in axes.texts if each.get_text()]
    assert len(boxes) > 1
    for (_, first), (_, second) in combinations(boxes, 2):
        assert not first.shrunk(0.9, 0.75).overlaps(second.shrunk(0.9, 0.75)), boxes


def swept(*settings: dict[str, Any]) -> Result:
    """A table with a line of a method for each of these settings, which are faster and worse from line to line."""
    made = [
        {"method": "x", "speedup": 1 + place, "chrf": 50.0 - place, "ne_display": 0.0, **each}
        for place, each in enumerate(settings)
    ]
    return Result("x", "x", "de", ({"method": "ar", "speedup": 1.0, "chrf": 50.0, "ne_display": 0.0}, *made))


def test_settings_that_differ_last_are_a_line() -> None:
    from matplotlib.figure import Figure

    result = swept(*({"options": f"a={a} b={b} same=1"} for a in "12" for b in "345"))
    assert len(SWEEP.panels(result)) == 1, "a figure that is the same everywhere is not drawn"
    axes = Figure().add_subplot()
    SWEEP.panels(result)[0](axes, result)
    lines = [line for line in axes.lines if line.get_linewidth() > 1]  # others lead to labels
    assert [len(line.get_xdata()) for line in lines] == [1, 3, 3]
    markers = [line.get_marker() for line in lines]
    assert markers[1] != markers[2], "a line of a method is told from another by its marker"
    legend = axes.get_legend()
    assert legend and [text.get_text() for text in legend.get_texts()] == ["ar", "x, a 1", "x, a 2"]
    written = " ".join(text.get_text() for text in axes.texts)
    assert "b 4" in written and "a 1" not in written and "same" not in written


def test_lines_are_named_by_their_difference_from_the_first_without_options() -> None:
    from matplotlib.figure import Figure

    result = swept({"display": "2 agree"}, {"options": "beta=0.3", "display": "2 agree"}, {"display": ""})
    axes = Figure().add_subplot()
    SWEEP.panels(result)[0](axes, result)
    written = {word for text in axes.texts for word in text.get_text().split(" / ") if word}
    assert written == {"ar", "x", "beta 0.3", "no agree"}


@given(st.lists(st.sampled_from([*METHODS, "a", "b", "c"]), unique=True))
def test_methods_keep_their_colours(methods: list[str]) -> None:
    result = Result("x", "x", "de", tuple({"method": method} for method in methods))
    found = colours(result)
    assert all(found[method] == METHODS.get(method, found[method]) for method in methods)
    others = [found[method] for method in methods if method not in METHODS]
    free = {*OTHERS} - {found[method] for method in methods if method in METHODS}
    assert len({*others}) == min(len(others), len(free or OTHERS)) and (not free or {*others} <= free)


@pytest.mark.parametrize("axis", ["threads", "batch"])
def test_speed_is_drawn_over_threads_and_batches(axis: str) -> None:
    result = swept({axis: 1}, {axis: 2})
    assert len(SWEEP.panels(result)) == 1


def test_without_settings_that_differ_there_is_no_plot() -> None:
    assert SWEEP.panels(swept({})) == ()
