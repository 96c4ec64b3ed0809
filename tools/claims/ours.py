"""Claims about `redraft`, whose output equals SSBD's: what its guesses save (`tools.claims`)."""

from __future__ import annotations

from collections.abc import Sequence

from redraft_bench.bench.pick import options, pick
from redraft_bench.bench.tables import PARTS
from redraft_bench.eval.figures import Row
from tools.claims.compare import Claim, Compared, against, bounded

OURS = ("redraft", "redraft-tree")
#: Relative change of NE that rounding may cause: guesses make passes wider, so long outputs eventually differ.
ROUNDED = 0.3


def _parts(row: Row) -> set[str]:
    """Return the guesses that are on."""
    return {part for part in PARTS if options(row).get(part) != "off"}


def _saved(rows: Sequence[Row]) -> Compared:
    found = pick(rows, "redraft-tree", cost="flat")
    for more in found:
        fewer = [row for row in found if options(row)["beta"] == options(more)["beta"] and _parts(row) < _parts(more)]
        yield from against([more], "<=", fewer, "target_passes")


def _tree(rows: Sequence[Row]) -> Compared:
    for chain in pick(rows, "redraft", cost="flat"):
        trees = [row for row in pick(rows, "redraft-tree") if options(row) == options(chain)]
        yield from against(trees, "<=", [chain], "target_passes")


def _ssbd(rows: Sequence[Row]) -> Compared:
    for free in (row for row in pick(rows, *OURS, cost="flat") if _parts(row)):
        yield from against([free], "<", pick(rows, "ssbd", beta=options(free)["beta"]), "target_passes", "passes_again")


def _output(rows: Sequence[Row]) -> Compared:
    for alone in pick(rows, "ssbd"):
        erased = float(alone.get("ne_output") or 0)
        same = [row for row in pick(rows, *OURS) if options(row).get("beta") == options(alone).get("beta")]
        yield from bounded(same, "ne_output", low=(1 - ROUNDED) * erased, high=(1 + ROUNDED) * erased)


REDRAFT = (
    Claim("`redraft` retracts what `ssbd` retracts at the same `beta`, except for rounding.", _output),
    Claim("If passes cost the same whatever their length, guesses save passes, mostly wasted ones.", _ssbd),
    Claim("A tree of guesses needs no more passes than the likeliest one.", _tree),
    Claim("In a tree, every kind of guess saves passes and costs none.", _saved),
)
