"""The benchmark tables: the contenders of each, and how it reveals the text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from redraft.decoding.display import Display
from redraft.decoding.methods import get_method
from redraft_bench.eval.contender import Contender

#: Bias of the main tables in SSBD v2.
BETA = 0.2
#: What SSBD v2 hides in its upper tables.
MASK = Display(mask_k=3)
#: Shows everything.
WHOLE = Display()
LEAD = get_method("redraft").display.lead
#: The setting of `redraft` that never retracts a word: LocalAgreement's output, with the rest of it as a draft.
CALM: dict[str, Any] = {"beta": 0.5, "hidden_beta": 0.0}

#: Columns of the table in the terminal, for streams and for whole sentences.
STREAMED = (
    *("method", "display", "target_passes", "draft_passes", "draft_acceptance", "output_acceptance"),
    *("ne_output", "ne_display", "speedup", "pass_speedup", "limit_distance", "chrf"),
)
COLD = (
    *("method", "target_passes", "draft_passes", "mean_acceptance_length", "draft_acceptance"),
    *("same_as_ar", "speedup", "pass_speedup", "limit_distance", "bleu", "chrf"),
)

LOSSES = ("empty", "cut_short", "number_lost", "name_lost", "negation_lost", "wrong_language")
QUALITY = ("method", "bleu", "chrf", *LOSSES)

TRADE = (
    *("method", "hold_back", "display", "chrf", "bleu", "ne_display", "retracted", "stood", "lag_first", "lag_good"),
    *("dal", "dal_ca", "cpu_ms", "cpu_speedup"),
)

RECOGNISED = (
    *("method", "hold_back", "display", "target_passes", "pass_speedup", "cpu_seconds", "cpu_speedup"),
    *("ne_output", "ne_display", "retracted", "stood", "lag_first", "lag_good"),
    *("resegmented_bleu", "resegmented_chrf", "chrf_change"),
)

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
        contenders: ``contenders(language, smalls)`` returns the contenders, the baseline `ar` first; ``smalls`` are
            names of draft models.
        lag: words added by each update; 0 gives whole sentences.
        columns: columns of the table in the terminal.
        recognised: whether it is for the text of recognisers, which is scored as whole recordings.
    """

    name: str
    summary: str
    contenders: Callable[[str, Sequence[str]], list[Contender]]
    lag: int = 3
    columns: tuple[str, ...] = STREAMED
    recognised: bool = False


def _line(
    method: str,
    language: str,
    display: Display | None = None,
    *,
    small: str = "",
    hold_back: bool = False,
    **options: Any,
) -> Contender:
    return Contender(method, language, tuple(options.items()), display, small=small, hold_back=hold_back)


def _stream(language: str, _smalls: Sequence[str]) -> list[Contender]:
    def both(method: str, **options: Any) -> list[Contender]:
        return [_line(method, language, hold_back=hold_back, **options) for hold_back in (False, True)]

    return [*both("ar"), *both("ssbd", beta=BETA), *both("redraft"), _line("local-agreement", language, n=2)]


def _ssbd(language: str, smalls: Sequence[str]) -> list[Contender]:
    return [
        _line("ar", language),
        _line("ssbd", language, beta=BETA),
        _line("ssbd", language, MASK, beta=BETA),
        _line("cd", language),
        _line("redraft", language),
        # With the learned cost of a pass, nothing is guessed for a small model.
        _line("redraft-tree", language, cost="flat"),
        # The same output as that of ssbd.
        _line("redraft", language, WHOLE, beta=BETA, hidden_beta=BETA),
        _line("redraft-tree", language, WHOLE, beta=BETA, hidden_beta=BETA, cost="flat"),
        _line("local-agreement", language, n=2),
        _line("ssbd-pld", language, beta=BETA),
        _line("ssbd-aasd", language),
        *(_line("ssbd-bild", language, small=small, beta=BETA) for small in smalls[:1]),
        _line("pld", language),
        _line("gs-jacobi", language, start="previous"),
        *(_line("bild", language, small=small) for small in smalls[:1]),
    ]


def _trade(language: str, _smalls: Sequence[str]) -> list[Contender]:
    def redraft(agree: int = 2, lead: float = LEAD, hold_back: bool = False, **options: Any) -> Contender:
        return _line("redraft", language, Display(agree, lead), hold_back=hold_back, **options)

    return [
        _line("ar", language),
        _line("ssbd", language, beta=BETA),
        *(redraft(hold_back=hold_back) for hold_back in (False, True)),
        redraft(beta=0.3),
        redraft(lead=1.0),
        redraft(lead=1.0, **CALM),
        Contender("redraft", language, lines=2.0),
        # Without its last k tokens, the output is shown and forced on the next one: hold-k, a kind of wait-k.
        *(_line("cd", language, display) for display in (None, Display(mask_k=3, plain=True))),
        _line("local-agreement", language, n=2),
    ]


def _cold(language: str, smalls: Sequence[str]) -> list[Contender]:
    return [
        _line("ar", language),
        _line("gs-jacobi", language, block=3, stopping="paper"),
        _line("gs-jacobi", language, block=3),
        _line("gs-jacobi", language, block=5),
        _line("hybrid-jacobi", language, block=3, stopping="paper"),
        _line("pld", language),
        _line("aasd", language),
        _line("aasd", language, verification="exact"),
        *(_line("bild", language, small=small, fallback=0.6, rollback=2.0) for small in smalls[:1]),
        *(_line("speculative-sampling", language, small=small, temperature=0.0) for small in smalls[:1]),
    ]


def _quality(language: str, _smalls: Sequence[str]) -> list[Contender]:
    return [_line("ar", language)]


def _peers(language: str, _smalls: Sequence[str]) -> list[Contender]:
    from redraft_bench.bench.peers import PEERS

    return [
        _line("ar", language),
        _line("ssbd", language, beta=BETA),
        _line("redraft", language),
        *(_line(name, language) for name in PEERS),
    ]


TABLES = {
    table.name: table
    for table in (
        Table(
            "stream",
            "What readers get on the text of real recognisers.",
            _stream,
            3,
            RECOGNISED,
            recognised=True,
        ),
        Table("ssbd", "Methods on a stream, language by language (Tables 2 and 6 of SSBD v2).", _ssbd),
        Table(
            "trade",
            "Quality, lag, flicker and processor time of every method and display (Tables 3 and 4 of SSBD v2).",
            _trade,
            columns=TRADE,
        ),
        Table("cold", "All decoders on whole sentences, each from scratch.", _cold, 0, COLD),
        Table("quality", "BLEU and chrF of greedy decoding on whole sentences.", _quality, 0, QUALITY),
        Table("peers", "Redraft and other libraries on the same model and text.", _peers),
    )
}
