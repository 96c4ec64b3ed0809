"""Claims about benchmark results that can fail.

Claims compare counts: passes, acceptance, erasure, translations.  Times are not compared, since they are noisy on a
busy machine; only the limit bounds them.  If the labels of two rows are swapped, a claim fails wherever the rows differ
in kind.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from redraft.decoding.methods import all_methods
from redraft_bench.bench.pick import pick
from redraft_bench.eval.figures import Row
from tools.claims import decoders, ours, streams
from tools.claims.compare import Claim, Compared, bounded, present

#: Minimum distance to the limit with noise, since T(n) and the updates are timed separately.
NOISY_LIMIT = 0.95


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of a claim: a sentence for each failed comparison; none if it holds."""

    claim: str
    broken: tuple[str, ...]


def verdicts(rows: Sequence[Row]) -> list[Verdict]:
    """Return the verdicts on the rows of one benchmark, data set and language.

    Claims with nothing to compare are left out.
    """
    found = []
    for claim in (*ALWAYS, *CLAIMS.get(str(rows[0].get("bench")) if rows else "", ())):
        compared = list(claim.check(rows))
        if compared:
            found.append(Verdict(claim.text, tuple(each for each in compared if each)))
    return found


def broken(rows: Iterable[Row]) -> list[str]:
    """Return a sentence for each failed comparison in the rows, from any number of benchmarks."""

    def place(row: Row) -> tuple[str, ...]:
        return tuple(str(row.get(name)) for name in ("bench", "data", "target_language"))

    return [
        f"{bench} on {data} into {language}: {sentence}"
        for (bench, data, language), group in groupby(sorted(rows, key=place), key=place)
        for verdict in verdicts(list(group))
        for sentence in verdict.broken
    ]


def _baseline(rows: Sequence[Row]) -> Compared:
    baseline = pick(rows, "ar")
    yield from present(baseline, "draft_acceptance", lambda row: False)
    for field in ("speedup", "pass_speedup"):
        yield from bounded(baseline, field, low=1, high=1)


def _small_models(rows: Sequence[Row]) -> Compared:
    own = [row for row in rows if row["method"] in all_methods()]
    yield from present(own, "draft_passes", lambda row: bool(all_methods()[str(row["method"])].draft_model))


ALWAYS = (
    Claim("`ar` drafts nothing, and speed-ups are relative to it.", _baseline),
    Claim("Only methods with a small model run one.", _small_models),
    Claim(
        "Nothing is faster than the limit.",
        lambda rows: bounded(rows, "limit_distance", low=NOISY_LIMIT),
    ),
)

#: Benchmark -> its claims, in addition to `ALWAYS`.
CLAIMS: Mapping[str, Sequence[Claim]] = {
    "ssbd": (*streams.BETWEEN, *streams.MARGIN, *streams.COMBINED, *decoders.EXACT, *ours.REDRAFT),
    "redraft": (*streams.BETWEEN, *ours.REDRAFT),
    "beta": (*streams.BETWEEN, *streams.BETA),
    "mask": (*streams.BETWEEN, *streams.MASK),
    "peers": (*streams.BETWEEN, *streams.PEERS),
    "replay": streams.BETWEEN,
    "cold": (*decoders.EXACT, *decoders.JACOBI, *decoders.AASD, *decoders.COLD),
    "jacobi": (*decoders.EXACT, *decoders.JACOBI),
    "bild": decoders.BILD,
    "aasd": (*decoders.EXACT, *decoders.AASD, *decoders.POSTEDIT),
}
