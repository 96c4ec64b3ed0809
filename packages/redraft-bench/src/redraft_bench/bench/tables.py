"""The benchmark tables: the lines of each (``tables.toml``), how it reveals the text, and its columns."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files

from redraft_bench.bench.lines import contenders
from redraft_bench.eval.contender import Contender
from redraft_bench.eval.losses import LOSSES
from redraft_bench.eval.tasks import SCORES

#: Columns that tell lines apart.
_LINE = ("method", "display", "threads", "batch")
#: Columns of the table in the terminal by name.
COLUMNS: dict[str, tuple[str, ...]] = {
    "streamed": (
        *(*_LINE, "target_passes", "draft_passes", "draft_acceptance", "output_acceptance"),
        *("ne_output", "ne_display", "speedup", "pass_speedup", "cpu_speedup", "limit_distance", "chrf"),
    ),
    "peers": (
        *(*_LINE, "chrf", "same_as_ar", "ne_display", "target_passes", "draft_passes", "tokens_per_second"),
        *("pass_speedup", "speedup", "cpu_speedup", "limit_distance"),
    ),
    "cold": (
        *(*_LINE, "target_passes", "draft_passes", "mean_acceptance_length", "draft_acceptance"),
        *("same_as_ar", "speedup", "pass_speedup", "limit_distance", "bleu", "chrf"),
    ),
    "quality": ("method", "bleu", "chrf", *LOSSES),
    "trade": (
        *(*_LINE, "chrf", "bleu", "ne_display", "retracted", "stood", "lag_first", "lag_good"),
        *("dal", "dal_ca", "cpu_ms", "cpu_speedup"),
    ),
    "recognised": (
        *(*_LINE, "target_passes", "pass_speedup", "cpu_seconds", "cpu_speedup"),
        *("ne_output", "ne_display", "retracted", "stood", "lag_first", "lag_good"),
        *("resegmented_bleu", "resegmented_chrf", "chrf_change"),
    ),
    # those of SSBD v2; COMET is computed elsewhere, from the files of texts
    "paper": (
        *(*_LINE, "bleu", "chrf", "ne_output", "ne_display", "ne_flores", "draft_acceptance", "output_acceptance"),
        *("tokens_per_second", "speedup", "pass_speedup", "second_passes"),
    ),
    "iterations": (
        *(*_LINE, "same_as_ar", "bleu", "target_passes", "second_passes", "speedup", "pass_speedup"),
        *("positions", "relative_flops", "flops_by_speed"),
    ),
    "tasks": (
        *(*_LINE, "chrf", "f1", "rouge_l", "edit_similarity", "same_as_ar", "target_passes", "draft_passes"),
        *("mean_acceptance_length", "draft_acceptance", "tokens_per_second", "speedup", "pass_speedup"),
    ),
    "by_task": (
        *(*_LINE, "target_passes", "mean_acceptance_length", "speedup"),
        *(f"{name}_{kind}" for kind in SCORES for name in ("acceptance_length", "later_speed", "later_speedup")),
    ),
    "replaced": (*_LINE, "rollback_share", "bleu", "chrf", "same_as_ar", "target_passes", "draft_passes"),
    "bild": (
        *(*_LINE, "bleu", "chrf", "f1", "rouge_l", "same_as_ar", "target_passes", "draft_passes"),
        *("fallback_share", "rollback_share"),
        *("speedup", "pass_speedup"),
    ),
}
STREAMED = COLUMNS["streamed"]

#: Columns for live talks against a server (`redraft_bench.loadtest`).
LIVE = (
    *("method", "admission", "talks", "refused", "broken", "passed_over"),
    *("caption_lag_p50_ms", "caption_lag_p95_ms", "caption_lag_max_ms", "ne_units"),
    *("server_cpu", "client_cpu", "server_mb", "server_mb_slope", "left_over"),
)

VIEWERS = (
    *("method", "viewers", "replicas", "sent", "lost", "doubled", "disordered"),
    *("added_lag_p50_ms", "added_lag_p95_ms", "added_lag_max_ms", "messages_a_second"),
    *("viewers_cpu", "viewers_a_core", "server_cpu", "client_cpu"),
)


@dataclass(frozen=True, slots=True)
class Table:
    """One benchmark.

    Attributes:
        name: name of the command.
        summary: one sentence; also the help text.
        lines: its lines (`redraft_bench.bench.lines`), the baseline `ar` first.
        lag: words added by each update; 0 gives whole sentences.
        columns: columns of the table in the terminal.
        data: default data set.
    """

    name: str
    summary: str
    lines: tuple[str, ...]
    lag: int = 3
    columns: tuple[str, ...] = STREAMED
    data: str = "talk"

    @property
    def recognised(self) -> bool:
        """Whether it is for the text of recognisers, which is scored as whole recordings."""
        return self.columns == COLUMNS["recognised"]

    def contenders(self, language: str, smalls: Sequence[str] = ()) -> list[Contender]:
        """Return its contenders into a language; methods that need a draft model have the first of ``smalls``."""
        return contenders(self.lines, language, next(iter(smalls), ""))


def _read() -> dict[str, Table]:
    text = (files(__package__) / "tables.toml").read_text("utf-8")
    found = {}
    for name, fields in tomllib.loads(text).items():
        columns = COLUMNS[fields.pop("columns", "streamed")]
        found[name] = Table(name, lines=tuple(fields.pop("lines")), columns=columns, **fields)
    return found


TABLES = _read()
#: Those that are no tables or figures of papers.
OWN = tuple(name for name in TABLES if "-" not in name)
