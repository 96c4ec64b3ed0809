"""Both visualizations as self-contained HTML pages, with light and dark themes, for mouse and keyboard."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

from redraft.decoding.types import Provenance
from redraft_bench.viz.ddg import SOURCE, Graph
from redraft_bench.viz.drafts import ORIGINS, DraftRow
from redraft_bench.viz.labels import width
from redraft_bench.viz.trace import Given

#: Width of the grid's first column in pixels.
FIRST = 92

#: Class names and colour names of the style sheet.
NAMES: dict[Provenance | Given, str] = {
    Provenance.SHOWN: "shown",
    Provenance.PREVIOUS: "previous",
    Provenance.PROMPT: "prompt",
    Provenance.GENERATED: "generated",
    Provenance.MODEL: "model",
    Provenance.ITERATION: "iteration",
    Provenance.RECYCLED: "recycled",
    Given.CORRECTION: "correction",
    Given.BONUS: "bonus",
    Given.ALONE: "by-itself",
}


def graph_page(graph: Graph, labels: Mapping[int, str], source: str, translation: str, summary: str) -> str:
    """Return a page with the dependency graph above the grid.

    See `redraft_bench.viz.draw.draw_graph` for the arguments.
    """
    step = 24 + 10 * max((min(16, max(4, width(labels[token.token]))) for token in graph.tokens), default=4)
    arcs = [_arc(token.waited_for, place, step) for place, token in enumerate(graph.tokens)]
    height = 20 + max((12 * (place - token.waited_for) for place, token in enumerate(graph.tokens)), default=0)
    abouts = [
        f"{labels[token.token]}: iteration {token.iteration}, probability {token.probability:.2f}; waited for "
        + ("the source" if token.waited_for == SOURCE else labels[graph.tokens[token.waited_for].token])
        for token in graph.tokens
    ]
    return render(
        "ddg.html",
        title=f"{source} → {translation}",
        summary=summary,
        graph=graph,
        labels=labels,
        abouts=abouts,
        arcs=[arc.format(base=height - 2, top=height - 2 - rise) for arc, rise in arcs],
        height=height,
        first=FIRST,
        step=step,
    )


def _arc(start: int, end: int, step: int) -> tuple[str, float]:
    """Return a curve between two columns as an SVG path, and the height of its control points."""
    left, right = (FIRST + step * (place + 0.5) if place != SOURCE else FIRST / 2 for place in (start, end))
    bend = (right - left) / 8
    path = f"M{left:.1f} {{base}}C{left + bend:.1f} {{top}} {right - bend:.1f} {{top}} {right:.1f} {{base}}"
    return path, (12 + 12 * (end - start)) / 0.75 - 8


def drafts_page(rows: Sequence[DraftRow], heading: str, summary: str) -> str:
    """Return a page with the draft view; see `redraft_bench.viz.draw.draw_drafts` for the arguments."""
    used = {cell.token.origin for row in rows for cell in row.cells}
    legend = [(NAMES[origin], meaning) for origin, meaning in ORIGINS.items() if origin in used]
    return render(
        "drafts.html",
        title=heading,
        summary=summary,
        rows=rows,
        names=NAMES,
        colors=[name for name, _meaning in legend],
        legend=legend,
    )


def render(template: str, **values: object) -> str:
    """Render a template of this folder or of the report's."""
    environment = Environment(
        loader=ChoiceLoader([PackageLoader("redraft_bench.bench"), PackageLoader("redraft_bench.viz")]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    return environment.get_template(template).render(values)
