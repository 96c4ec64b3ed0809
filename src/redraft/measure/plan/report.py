"""A plan as rows for JSON, and as tables."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from redraft.measure.plan.assumptions import assumptions
from redraft.measure.plan.capacity import CapacityPlan, MethodPlan
from redraft.measure.plan.check import TOLERANCE, Check
from redraft.measure.plan.costs import Roofline


def estimated(plan: CapacityPlan) -> bool:
    """Whether a plan's costs come from a data sheet."""
    return isinstance(plan.supply.cost, Roofline)


def json_lines(plan: CapacityPlan, checks: Sequence[Check]) -> Iterator[str]:
    """Yield JSON objects, one per line; ``kind`` is ``method``, ``check`` or ``assumption``.

    A method that cannot meet the deadline has ``possible`` false and a ``problem``.
    """
    found = [("method", _row(plan, each)) for each in plan.methods]
    found += [("check", _check_row(each)) for each in checks]
    found += [("assumption", asdict(each)) for each in assumptions(plan)]
    for kind, fields in found:
        yield json.dumps({"kind": kind, **fields}, ensure_ascii=False)


def _row(plan: CapacityPlan, each: MethodPlan) -> dict[str, Any]:
    found: dict[str, Any] = {"method": each.method, "possible": each.possible, "estimated": estimated(plan)}
    if each.best is None:
        return {**found, "problem": each.limit}
    return {
        **found,
        "unit": plan.supply.unit,
        "units": each.units,
        "machines": each.machines,
        "sessions_per_unit": each.sessions,
        "limit": each.limit,
        "lag_p95_seconds": round(each.best.lag, 4),
        "busy": round(each.best.busy, 4),
        "pass_ms": round(1e3 * each.best.pass_seconds, 4),
        "session_replicas": each.session_replicas,
        "viewer_replicas": plan.viewer_replicas,
        "weights_gb": round(each.weight_bytes / 1e9, 3),
        "cache_gb": round(each.cache_bytes / 1e9, 3),
    }


def _check_row(each: Check) -> dict[str, Any]:
    return {**{name: _rounded(value) for name, value in asdict(each).items()}, "difference": round(each.difference, 4)}


def _rounded(value: Any) -> Any:
    return round(value, 4) if isinstance(value, float) else value


def report(plan: CapacityPlan, checks: Sequence[Check]) -> RenderableType:
    """Return the plan, its assumptions, and the comparison of formula and simulation."""
    parts: list[RenderableType] = [_title(plan), Padding(_methods(plan), (1, 0))]
    parts += [Text(f"{each.method}: {each.limit}") for each in plan.methods if not each.possible]
    if plan.demand.viewers:
        parts.append(Text(f"Viewers: {plan.demand.viewers:,} need {_count(plan.viewer_replicas, 'viewer replica')}."))
    if checks:
        parts += [Padding(_checks(checks), (1, 0))]
    return Group(*parts, Padding(_assumptions(plan), (1, 0, 0, 0)))


def _title(plan: CapacityPlan) -> Text:
    text = f"{plan.demand.sessions:,} sessions, {plan.demand.lanes:,} languages in all, on {_units(plan)}."
    if estimated(plan):
        return Text.assemble(text, (" An estimate from a data sheet: nothing was measured on this hardware.", "bold"))
    return Text(text)


def _methods(plan: CapacityPlan) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    machines = plan.supply.per_machine > 1
    table.add_column("method")
    names = (_units(plan), *(["machines"] if machines else []), "sessions\non each", "limit", "p95 lag", "busy")
    for name in (*names, "pass (ms)", "session\nreplicas", "weights", "cache"):
        table.add_column(name, justify="right")
    for each in plan.methods:
        best = each.best
        if best is None:
            table.add_row(each.method, "not possible")
            continue
        table.add_row(
            each.method,
            f"{each.units:,}",
            *([f"{each.machines:,}"] if machines else []),
            *(f"{each.sessions:,}", each.limit, f"{best.lag:.2f} s", f"{best.busy:.0%}"),
            *(f"{1e3 * best.pass_seconds:.3g}", f"{each.session_replicas:,}"),
            *(f"{size / 1e9:,.1f} GB" for size in (each.weight_bytes, each.cache_bytes)),
        )
    return table


def _checks(checks: Sequence[Check]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("one engine")
    for name in ("sessions", "busy", "p95 lag"):
        table.add_column(f"{name},\nformula", justify="right")
        table.add_column(f"{name},\nsimulation", justify="right")
    table.add_column("difference\nin sessions", justify="right")
    for each in checks:
        apart = f"{each.difference:+.0%}"
        table.add_row(
            each.method,
            *(f"{number:,}" for number in (each.formula, each.simulation)),
            *(f"{value:.0%}" for value in (each.busy, each.simulated_busy)),
            *(f"{value:.2f} s" for value in (each.lag, each.simulated_lag)),
            apart if abs(each.difference) <= TOLERANCE else Text(apart, style="red"),
        )
    return table


def _assumptions(plan: CapacityPlan) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("what it rests on", "", "source"):
        table.add_column(name, overflow="fold")
    for each in assumptions(plan):
        table.add_row(each.what, each.value, each.source)
    return table


def _units(plan: CapacityPlan) -> str:
    return {"core": "cores", "machine": "machines"}.get(plan.supply.unit, plan.supply.unit)


def _count(number: int, word: str) -> str:
    return f"{number:,} {word}{'' if number == 1 else 's'}"


def show(renderable: RenderableType, console: Console) -> None:
    """Print it; lines in files and pipes are not wrapped, since these have no width."""
    if not console.is_terminal:
        console.width = max(console.width, 160)
    console.print(renderable, highlight=False)
