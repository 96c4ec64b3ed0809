"""Effect of masks on flicker and lag (`redraft_bench.bench.plots.kinds`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from redraft_bench.bench.pick import pick
from redraft_bench.bench.plots.chart import BLUE, GREEN, INK, ORANGE, PURPLE
from redraft_bench.bench.plots.labels import Label, at_ends, beside
from redraft_bench.bench.plots.scatter import draw_line, leave_room, measured, points_of, value
from redraft_bench.bench.read import Result
from redraft_bench.eval.columns import column
from redraft_bench.eval.figures import Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Kind of mask -> its colour.
KINDS = {"tokens": BLUE, "words": GREEN, "tokens, plain": ORANGE, "words, plain": PURPLE}


def _kinds(rows: Sequence[Row], *fields: str) -> Iterator[tuple[str, list[tuple[int, Row]]]]:
    """Yield kind of mask -> (k, row) by ascending k, starting with the unmasked row."""
    bare = [(0, row) for row in measured(pick(rows, "ssbd"), *fields)[:1]]
    masked = measured((row for row in rows if row["method"] == "ssbd" and row.get("mask")), *fields)
    for kind in KINDS:
        words = [(str(row["mask"]).partition(" "), row) for row in masked]
        found = sorted(((int(k), row) for (k, _, rest), row in words if rest == kind), key=lambda pair: pair[0])
        if found:
            yield kind, [*bare, *found]


def _margins(rows: Sequence[Row]) -> list[tuple[str, Row]]:
    """Return (margin, row) by ascending margin, for rows with both figures of the lag plot."""
    masked = measured((row for row in rows if row["method"] == "ssbd"), "laal", "ne_display")
    words = [(str(row.get("mask") or "").partition("below margin "), row) for row in masked]
    found = [(margin, row) for (others, sign, margin), row in words if sign and not others and "," not in margin]
    return sorted(found, key=lambda pair: float(pair[0]))


def has_flicker(result: Result) -> bool:
    """Whether a row masks output."""
    return any(True for _ in _kinds(result.rows, "ne_display"))


def flicker(axes: Axes, result: Result) -> None:
    """Draw NE of the display over k."""
    labels = []
    for kind, rows in _kinds(result.rows, "ne_display"):
        points = [(float(k), value(row, "ne_display")) for k, row in rows]
        draw_line(axes, points, KINDS[kind])
        labels.append(Label(*points[-1], kind, KINDS[kind]))
    axes.set_xticks(sorted({k for _, rows in _kinds(result.rows, "ne_display") for k, _ in rows}))
    axes.set_xlabel("k (tokens or words hidden)")
    axes.set_ylabel("NE shown (per final token)")
    axes.set_ylim(bottom=0)
    at_ends(axes, labels)


def has_lag(result: Result) -> bool:
    """Whether the lag of at least two masks was measured."""
    return any(len(rows) > 1 for _, rows in _kinds(result.rows, "laal", "ne_display"))


def lag(axes: Axes, result: Result) -> None:
    """Draw NE of the display over the lag."""
    labels, lines = [], []
    for kind, rows in _kinds(result.rows, "laal", "ne_display"):
        lines.append(points_of((row for _, row in rows), "laal", "ne_display"))
        draw_line(axes, lines[-1], KINDS[kind])
        labels += [
            Label(*point, f"{k} {kind}", KINDS[kind]) for point, (k, _) in zip(lines[-1], rows, strict=True) if k
        ]
    if margins := _margins(result.rows):
        lines.append(points_of((row for _, row in margins), "laal", "ne_display"))
        draw_line(axes, lines[-1], PURPLE, "--")
        labels += [Label(*at, f"margin {m}", PURPLE) for at, (m, _) in zip(lines[-1], margins, strict=True)]
    for row in measured(pick(result.rows, "ssbd", "cd"), "laal", "ne_display"):
        point = value(row, "laal"), value(row, "ne_display")
        axes.plot(*point, "o", color=INK)
        labels.append(Label(*point, str(row["method"]), INK))
    axes.set_xlabel(column("laal", result.rows).heading)
    axes.set_ylabel("NE shown (per final token)")
    leave_room(axes)
    beside(axes, labels, lines)
