"""Plots of live talks against a server (`redraft.bench.plots.kinds`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from redraft.bench.load import Result
from redraft.bench.plots.chart import COLOURS, INK
from redraft.bench.plots.labels import Label, at_ends
from redraft.bench.plots.scatter import draw_line

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Seconds of caption lag that are marked.
BOUND = 1.0


def has_trials(result: Result) -> bool:
    """Whether some line was tried with two numbers of talks or more."""
    return any(len(trials) > 1 for trials in result.trials.values())


def talks(axes: Axes, result: Result) -> None:
    """p95 of the caption lag over the number of talks, a line for each method and setting."""
    labels = []
    same = set.intersection(*(set(title.split()) for title in result.trials))
    styles = [(colour, style) for style in ("-", "--") for colour in COLOURS]
    for (title, trials), (colour, style) in zip(result.trials.items(), styles * len(result.trials), strict=False):
        points = [(number, lag / 1e3) for number, lag in sorted(trials)]
        draw_line(axes, points, colour, style)
        words = [word for word in title.split() if word not in same] or [title]
        labels.append(Label(*points[-1], " ".join(words), colour))
    axes.axhline(BOUND, color=INK, linewidth=1, linestyle="--")
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xlabel("talks at once")
    axes.set_ylabel("caption lag, p95 (s)")
    at_ends(axes, labels)
