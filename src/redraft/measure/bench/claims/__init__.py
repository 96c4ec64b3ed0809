"""What the rows of a bench ought to show, as claims that can fail."""

from redraft.measure.bench.claims.verdicts import Verdict, broken, verdicts

__all__ = ["Verdict", "broken", "verdicts"]
