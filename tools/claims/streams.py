"""Claims about streams: the bias, mask-k, and other libraries (`tools.claims`)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from redraft.captions.languages import parse_language
from redraft.decoding.methods import all_methods
from redraft_bench.bench.pick import number, options, pick
from redraft_bench.bench.tables import BETA as USUAL
from redraft_bench.bench.tables import MASKS
from redraft_bench.eval.figures import Row
from tools.claims.compare import Claim, Compared, against, bounded, present, ranked

#: NE of systems that retract nothing, except for loops that are cut off.
NEARLY_NONE = 0.02
#: Minimum share of translations that must equal `ar`'s if wide and narrow passes are rounded differently: near ties
#: then change, which in long outputs happens eventually.
ROUNDED = 0.5
#: Relative change of NE that this rounding may cause.
NEAR = 0.05

UNITS = ("tokens", "words")


def as_ar(rows: Iterable[Row], share: float) -> Compared:
    """Check that rows have the translations of `ar` in this share of their segments."""
    for row in rows:
        segments = row.get("segments")
        if isinstance(segments, int):
            yield from bounded([row], "same_as_ar", low=share * segments)


# The bias


def _betas(rows: Iterable[Row]) -> list[Row]:
    """Return SSBD by ascending beta."""
    return sorted((row for row in pick(rows, "ssbd") if "beta" in options(row)), key=lambda row: number(row, "beta"))


def _continuous(rows: Sequence[Row]) -> list[Row]:
    """Return the rows that accept the whole draft."""
    return [*(row for row in _betas(rows) if number(row, "beta") >= 0.5), *pick(rows, "cd")]


def _between(rows: Sequence[Row]) -> list[Row]:
    return [*pick(rows, "cd"), *pick(rows, "ssbd", beta=f"{USUAL:g}"), *pick(rows, "ar")]


def _nothing_back(rows: Iterable[Row], field: str) -> Compared:
    yield from bounded(rows, field, high=NEARLY_NONE)


def _behind(rows: Sequence[Row]) -> Compared:
    for alone in _betas(rows):
        further = pick(rows, "ssbd-pld", "ssbd-bild", beta=options(alone)["beta"])
        yield from against(further, "<=", [alone], "target_passes")


BETWEEN = (
    Claim(
        "`ssbd` needs fewer target passes than `ar` and more than `cd`.",
        lambda rows: ranked(_between(rows), "<", "target_passes"),
    ),
    Claim(
        "`ssbd` retracts no more than `ar` and no less than `cd`.",
        lambda rows: ranked(_between(rows), "<=", "ne_output"),
    ),
    Claim(
        "Continuous decoding, and `ssbd` from `beta` 0.5 on, retracts nothing.",
        lambda rows: _nothing_back(_continuous(rows), "ne_output"),
    ),
)


def _erasure(rows: Sequence[Row]) -> Compared:
    for baseline in pick(rows, "ar"):
        erased = float(baseline.get("ne_output") or 0)
        exact = pick(rows, "pld", "gs-jacobi")
        yield from bounded(exact, "ne_output", low=(1 - NEAR) * erased, high=(1 + NEAR) * erased)


COMBINED = (
    Claim("Drafting after the previous translation was abandoned saves passes.", _behind),
    Claim(
        "The bias keeps more of the previous translation than AASD's threshold.",
        lambda rows: against(_betas(rows), ">=", pick(rows, "ssbd-aasd"), "draft_acceptance"),
    ),
    Claim(
        "A larger part of the previous translation is accepted leniently than of other drafts exactly.",
        lambda rows: against(pick(rows, "ssbd", "ssbd-aasd"), ">=", pick(rows, "pld", "gs-jacobi"), "draft_acceptance"),
    ),
    Claim("Exact methods retract what `ar` retracts, except for rounding.", _erasure),
)
BETA = (
    Claim(
        "A/D and A/O do not fall as `beta` grows.",
        lambda rows: ranked(_betas(rows), "<=", "draft_acceptance", "output_acceptance"),
    ),
    Claim("Target passes do not grow with `beta`.", lambda rows: ranked(_betas(rows), ">=", "target_passes")),
    Claim("NE of the output does not grow with `beta`.", lambda rows: ranked(_betas(rows), ">=", "ne_output")),
    Claim(
        "`cd`, and `ssbd` from `beta` 0.5 on, give the same tokens in the same passes.",
        lambda rows: ranked(_continuous(rows), "==", "target_passes", "output_tokens"),
    ),
)


# Mask-k


def _k(row: Row) -> int:
    """Return the number at the start of the field ``mask``, as in ``3 tokens, plain``."""
    return int(str(row["mask"]).split()[0])


def _masked(rows: Sequence[Row], kind: str) -> list[Row]:
    """Return SSBD by ascending k; ``kind`` is the end of the field ``mask``."""
    found = [row for row in rows if row["method"] == "ssbd" and str(row.get("mask") or "").endswith(f" {kind}")]
    return sorted(found, key=_k)


def _from_none(rows: Sequence[Row], kind: str) -> list[Row]:
    """Return the same, preceded by the row that hides nothing."""
    masked = _masked(rows, kind)
    return [*pick(rows, "ssbd")[:1], *masked] if masked else []


def _shown(rows: Sequence[Row]) -> Compared:
    for unit in UNITS:
        yield from ranked(_from_none(rows, unit), ">=", "ne_display")


def _plain_shown(rows: Sequence[Row]) -> Compared:
    # A shorter draft makes the output itself less stable, so the unmasked row may be more stable.
    for unit in UNITS:
        yield from ranked(_masked(rows, f"{unit}, plain"), ">=", "ne_display")


def _display_only(rows: Sequence[Row]) -> Compared:
    fields = ("target_passes", "output_tokens", "draft_acceptance", "output_acceptance", "ne_output")
    for unit in UNITS:
        yield from ranked(_from_none(rows, unit), "==", *fields)


def _plain(rows: Sequence[Row]) -> Compared:
    for unit in UNITS:
        masked = _from_none(rows, f"{unit}, plain")
        yield from ranked(masked, ">", "output_acceptance")
        yield from ranked(masked, "<", "target_passes")


def _words(rows: Sequence[Row]) -> Compared:
    if rows and parse_language(str(rows[0]["target_language"])).spaced:
        for words in _masked(rows, "words"):
            tokens = [row for row in _masked(rows, "tokens") if _k(row) == _k(words)]
            yield from against([words], "<=", tokens, "ne_display")


def _margin(row: Row) -> float:
    """Return the number at the end of the field ``mask``, as in ``below margin 0.02``."""
    return float(str(row["mask"]).split()[-1])


def _margins(rows: Iterable[Row]) -> list[Row]:
    """Return SSBD by ascending margin."""
    return sorted((row for row in rows if "margin" in str(row.get("mask"))), key=_margin)


def _margin_shown(rows: Sequence[Row]) -> Compared:
    yield from ranked(_margins(rows), ">", "ne_display")
    yield from ranked(_margins(rows), "<", "laal")


def _margin_against(rows: Sequence[Row]) -> Compared:
    none = [row for row in _margins(rows) if _margin(row) == 0]
    least = [row for row in _masked(rows, "tokens") if _k(row) == min(MASKS)]
    yield from against(none, "<", least, "ne_display", "laal")


MARGIN = (
    Claim("A margin of 0 retracts less than the smaller mask of tokens, and shows text earlier.", _margin_against),
)
MASK = (
    Claim("The larger the margin, the less is visibly retracted, and the later text is shown.", _margin_shown),
    *MARGIN,
    Claim("The more display-only mask-k hides, the less is visibly retracted.", _shown),
    Claim("The same is true of plain mask-k, from the smallest k on.", _plain_shown),
    Claim("Display-only mask-k changes neither passes nor tokens, acceptance nor output.", _display_only),
    Claim("Plain mask-k lowers A/O and costs passes, more with a larger k.", _plain),
    Claim("In a language with spaces, k words hide no less than k tokens.", _words),
)


# Other libraries


def _peers(rows: Iterable[Row]) -> list[Row]:
    return [row for row in rows if row["method"] not in all_methods()]


def _drafting(rows: Sequence[Row]) -> Compared:
    for row in _peers(rows):
        yield from against([row], "<", pick(rows, str(row["method"]).rpartition("-")[0]), "target_passes")


PEERS = (
    Claim(
        "Libraries that decode every update from scratch give the translations of `ar`, except for rounding.",
        lambda rows: as_ar([row for row in _peers(rows) if row["method"] != "local-agreement"], ROUNDED),
    ),
    Claim("A library needs fewer target passes with drafts than without.", _drafting),
    Claim(
        "Of the other libraries' methods, only the assistant uses a small model.",
        lambda rows: present(_peers(rows), "draft_passes", lambda row: "assistant" in str(row["method"])),
    ),
    Claim(
        "LocalAgreement retracts nothing that it has shown.",
        lambda rows: _nothing_back(pick(rows, "local-agreement"), "ne_display"),
    ),
)
