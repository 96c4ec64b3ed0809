"""The assumptions of a plan in words, with sources."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from redraft.measure.plan.capacity import CapacityPlan, host_seconds
from redraft.measure.plan.costs import LinearCost, Roofline


@dataclass(frozen=True, slots=True)
class Assumption:
    """An assumption: name, value and source in words."""

    what: str
    value: str
    source: str


def assumptions(plan: CapacityPlan) -> list[Assumption]:
    """Return all assumptions of a plan."""
    parts = (_demand, _model, _work, _speed, _python, _tiers)
    return [Assumption(*each) for part in parts for each in part(plan)]


def _demand(plan: CapacityPlan) -> Iterator[tuple[str, str, str]]:
    demand, trace = plan.demand, plan.trace
    languages = "1 language" if demand.targets == 1 else f"{demand.targets} languages"
    yield "sessions", f"{demand.sessions:,} at once, each into {languages}", "given"
    yield "speech", f"{demand.words_per_second:g} words per second", "--words-per-second"
    updates = f"{trace.updates_per_word:.2f} per word, so {plan.updates_per_second:.2f} per second"
    yield "updates", updates, trace.source
    yield "in time", f"95 % of the updates within {demand.deadline:g} s", "--deadline"


def _model(plan: CapacityPlan) -> Iterator[tuple[str, str, str]]:
    model = plan.model
    size = f"{model.parameters / 1e6:,.0f} million weights, {model.weight_bytes / 1e9:.2f} GB"
    yield f"model {model.name}", size, model.source
    heads = f"{model.layers} layers of {model.kv_heads} heads of {model.head}, in 16 bits"
    yield "cache of a token", f"{model.cell_bytes / 1e3:,.1f} kB", heads
    why = "the server's default" if plan.supply.in_process else "prompt and translation of a sentence"
    yield "cache of a language", f"{plan.tiers.context} tokens", f"assumed: {why}; change with --context-length"


def _work(plan: CapacityPlan) -> Iterator[tuple[str, str, str]]:
    source = f"{plan.trace.source}; assumed for {plan.model.name} and every language; change with --trace"
    for each in plan.methods:
        work = each.work
        passes = f"{work.passes:.1f} passes per update, at most {work.passes_quantile(0.95)} in 95 %"
        yield f"work of {each.method}", f"{passes}; {work.tokens:.1f} new tokens per pass", source


def _speed(plan: CapacityPlan) -> Iterator[tuple[str, str, str]]:
    cost = plan.supply.cost
    if isinstance(cost, Roofline):
        sheet = cost.hardware
        memory = f"{cost.memory_share:.0%} of {sheet.bandwidth / 1e12:.2f} TB/s"
        compute = f"{cost.compute_share:.0%} of {sheet.flops / 1e12:,.0f} TFLOPS"
        shares = "shares assumed; change with --memory-share, --compute-share"
        yield f"speed of one {sheet.name}", f"{memory}, {compute}", f"data sheet of {sheet.sheet}; {shares}"
        overhead = "assumed: launches and the engine's own work; change with --overhead"
        yield "besides, per pass", f"{1e3 * cost.overhead:g} ms", overhead
    elif isinstance(cost, LinearCost):
        parts = f"{1e3 * cost.request:.3g} ms per language + {1e3 * cost.token:.3g} ms per new token"
        yield "cost of a pass", f"{1e3 * cost.base:.3g} ms + {parts}", cost.source
    yield "languages in a pass", f"at most {plan.supply.batch_lanes}", "--batch-lanes"


def _python(plan: CapacityPlan) -> Iterator[tuple[str, str, str]]:
    for each in plan.methods:
        host, source = host_seconds(plan.supply.cost, each.work)
        yield f"Python of {each.method}", f"{1e3 * host:.3g} ms per language and pass", source
    if plan.supply.in_process:
        yield "Python runs", "between the passes", "llama.cpp and the scheduler share a process"
    else:
        yield "Python runs", "in session replicas", "assumed: a vLLM or SGLang server on each GPU"


def _tiers(plan: CapacityPlan) -> Iterator[tuple[str, str, str]]:
    yield "load of a replica", f"{plan.tiers.replica_load:.0%} of one core", "assumed; change with --replica-load"
    if plan.demand.viewers:
        yield "viewers", f"{plan.demand.viewers:,} in all, one language each", "given"
        cost = f"{1e6 * plan.tiers.message:g} µs of a viewer replica"
        yield "caption to a viewer", cost, "assumed; `redraft bench viewers` measures it; change with --viewer-cost"
