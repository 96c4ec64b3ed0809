"""What the rows of a bench ought to show, as claims that can fail."""

from tools.claims.verdicts import Verdict, broken, verdicts

__all__ = ["Verdict", "broken", "verdicts"]
