"""Claims about decoders of whole sentences: exact ones, Jacobi decoding, AASD and BiLD."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from math import inf

from redraft_bench.bench.pick import number, options, pick
from redraft_bench.eval.figures import Row
from tools.claims.compare import Claim, Compared, against, bounded, ranked
from tools.claims.streams import ROUNDED, as_ar

FAMILY = ("jacobi", "gs-jacobi", "hybrid-jacobi")

#: Methods whose output equals greedy decoding by their rule, with the options that make it so.
ALIKE: dict[str, dict[str, str]] = {
    **{method: {} for method in ("pld", *FAMILY)},
    "aasd": {"verification": "exact"},
    "speculative-sampling": {"temperature": "0"},
}


def _exact(rows: Iterable[Row]) -> list[Row]:
    return [row for method, wanted in ALIKE.items() for row in pick(rows, method, **wanted)]


def _translations(rows: Sequence[Row]) -> Compared:
    kernels = all("|exact:True" in str(row.get("signature")) for row in rows)
    yield from as_ar(_exact(rows), 1.0 if kernels else ROUNDED)


def _passes(rows: Sequence[Row]) -> Compared:
    # The paper's stopping condition iterates a whole block even after greedy decoding has stopped a loop.
    prompt = [row for row in _exact(rows) if options(row).get("stopping") != "paper"]
    yield from against(prompt, "<=", pick(rows, "ar"), "target_passes")


EXACT = (
    Claim("Exact methods give the translations of `ar`; with default kernels, except for rounding.", _translations),
    Claim("Exact methods that accept certain tokens immediately need no more target passes than `ar`.", _passes),
)


# Jacobi decoding


def _stops(rows: Iterable[Row], stopping: str, *methods: str) -> list[Row]:
    return [row for row in pick(rows, *methods) if options(row).get("stopping", "fast-forward") == stopping]


def _block(row: Row) -> float:
    """Return the positions solved together; a whole sentence is the longest block."""
    return inf if row["method"] == "jacobi" else float(options(row).get("block", "3"))


def _padded(rows: Iterable[Row], stopping: str) -> list[Row]:
    """Return the rows that start from padding, by ascending block."""
    found = _stops(rows, stopping, "gs-jacobi", "jacobi")
    return sorted((row for row in found if "start" not in options(row)), key=_block)


def _later(rows: Sequence[Row]) -> Compared:
    for method in FAMILY:
        for fast in _stops(rows, "fast-forward", method):
            slow = [row for row in _stops(rows, "paper", method) if _block(row) == _block(fast)]
            yield from against([fast], "<=", slow, "target_passes")


def _whole(rows: Sequence[Row]) -> Compared:
    paper, fast = _stops(rows, "paper", *FAMILY), _stops(rows, "fast-forward", *FAMILY)
    yield from bounded(paper, "output_acceptance", low=0.5)
    yield from bounded(fast, "output_acceptance", high=0.5)


def _hybrid(rows: Sequence[Row]) -> Compared:
    for stopping in ("paper", "fast-forward"):
        for row in _stops(rows, stopping, "hybrid-jacobi"):
            if "parallel" not in options(row):
                blocks = [each for each in _padded(rows, stopping) if _block(each) == _block(row)]
                yield from against([row], "==", blocks, "target_passes")


def _longer(rows: Sequence[Row]) -> Compared:
    for stopping in ("paper", "fast-forward"):
        yield from ranked(_padded(rows, stopping), ">=", "draft_acceptance")


JACOBI = (
    Claim("Fast-forward needs no more iterations than the paper's stopping condition.", _later),
    Claim("The paper's stopping condition keeps whole blocks, fast-forward mostly single tokens.", _whole),
    Claim("The longer the block, the smaller the share of correct guesses.", _longer),
    Claim("Within its length limit, which no output here reaches, hybrid decoding equals decoding by blocks.", _hybrid),
)


# AASD


def _aasd(rows: Iterable[Row], **wanted: str) -> list[Row]:
    """Return AASD with these options and no others."""
    return [row for row in pick(rows, "aasd") if options(row) == wanted]


def _growing_lenience(rows: Sequence[Row]) -> list[Row]:
    fixed = (_aasd(rows, verification=each) for each in ("threshold", "top-k"))
    return [row for group in (_aasd(rows, verification="exact"), _aasd(rows), *fixed) for row in group]


def _further(rows: Sequence[Row]) -> Compared:
    yield from ranked(_growing_lenience(rows), ">=", "same_as_ar")
    set_otherwise = [*_aasd(rows, width="0"), *_aasd(rows, end_guard="on")]
    yield from against(_aasd(rows, verification="exact"), ">=", set_otherwise, "same_as_ar")


AASD = (
    Claim(
        "A tree of n-grams, verified exactly, needs no more target passes than a chain.",
        lambda rows: against(_aasd(rows, verification="exact"), "<=", pick(rows, "pld"), "target_passes"),
    ),
    Claim(
        "The more lenient the verification, the further the output is from that of `ar`.",
        _further,
    ),
)
POSTEDIT = (
    Claim(
        "Lenient n-grams, even without alignment sampling, yield more tokens per pass than exact ones.",
        lambda rows: against(pick(rows, "pld"), "<=", _aasd(rows, width="0"), "mean_acceptance_length"),
    ),
    Claim(
        "The more lenient the verification, the more tokens per pass.",
        lambda rows: ranked(_growing_lenience(rows), "<=", "mean_acceptance_length"),
    ),
    Claim(
        "Alignment sampling yields more tokens per pass.",
        lambda rows: against(
            _aasd(rows, width="0"), "<=", [*_aasd(rows), *_aasd(rows, end_guard="on")], "mean_acceptance_length"
        ),
    ),
)


# BiLD


def _grid(rows: Sequence[Row], fixed: str, growing: str) -> Iterator[list[Row]]:
    """Yield rows that differ only in one threshold, by that threshold."""

    def rest(row: Row) -> tuple[str, float]:
        return str(row.get("small_model") or ""), number(row, fixed)

    found = [row for row in pick(rows, "bild") if {fixed, growing} <= options(row).keys()]
    found.sort(key=lambda row: (*rest(row), number(row, growing)))
    for _, group in groupby(found, key=rest):
        yield list(group)


def _fallback(rows: Sequence[Row]) -> Compared:
    for group in _grid(rows, "rollback", "fallback"):
        yield from ranked(group, "<=", "target_passes", "same_as_ar")


def _rollback(rows: Sequence[Row]) -> Compared:
    for group in _grid(rows, "fallback", "rollback"):
        yield from ranked(group, ">=", "same_as_ar")
        yield from ranked(group, "<=", "draft_acceptance")


BILD = (
    Claim("The sooner the small model falls back, the more target passes, and the closer to `ar`.", _fallback),
    Claim("The more lenient the rollback, the more is accepted, and the further from `ar`.", _rollback),
)


# All of them side by side

COLD = (
    Claim(
        "N-grams are accepted more often than refined padding.",
        lambda rows: against(pick(rows, "pld", "aasd"), ">=", _padded(rows, "fast-forward"), "draft_acceptance"),
    ),
    Claim(
        "BiLD, which stops drafting when unsure, runs the small model no more often than a fixed window.",
        lambda rows: against(pick(rows, "bild"), "<=", pick(rows, "speculative-sampling"), "draft_passes"),
    ),
)
