"""Plots of live talks against a server (`redraft_bench.bench.plots.kinds`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from redraft_bench.bench.plots.chart import COLOURS, INK
from redraft_bench.bench.plots.labels import Label, at_ends
from redraft_bench.bench.plots.scatter import draw_line
from redraft_bench.bench.read import Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Caption lag in seconds that is marked.
BOUND = 1.0
#: Line styles, one per setting.
STYLES = ("-", "--", "-.")


def talks(axes: Axes, result: Result) -> None:
    """Draw p95 of the caption lag over the number of talks: a colour per method, a line style per setting."""
    from matplotlib.lines import Line2D
    from matplotlib.ticker import ScalarFormatter

    labels: list[Label] = []
    same = set.intersection(*(set(title.split()) for title in result.trials))
    colours: dict[str, str] = {}
    styles: dict[str, str] = {}
    for title, trials in result.trials.items():
        method, *settings = title.split()
        setting = " ".join(word for word in settings if word not in same)
        colour = colours.setdefault(method, COLOURS[len(colours) % len(COLOURS)])
        style = styles.setdefault(setting, STYLES[len(styles) % len(STYLES)])
        points = [(number, lag / 1e3) for number, lag in sorted(trials)]
        draw_line(axes, points, colour, style)
        if all(label.text != method for label in labels):
            labels.append(Label(*points[-1], method, colour))
    axes.axhline(BOUND, color=INK, linewidth=1, linestyle=":")
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(ScalarFormatter())
    if len(styles) > 1:
        words = {setting: setting.replace(" ", "\n") or "default" for setting in styles}
        lines = [Line2D([], [], color=INK, linestyle=style, label=words[each]) for each, style in styles.items()]
        axes.legend(handles=lines, frameon=False, fontsize="small", loc="lower left", bbox_to_anchor=(1, 0))
    axes.set_xlabel("talks at once")
    axes.set_ylabel("caption lag, p95 (s)")
    at_ends(axes, labels)
