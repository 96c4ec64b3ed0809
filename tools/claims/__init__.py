"""Claims about benchmark results that can fail."""

from tools.claims.verdicts import Verdict, broken, verdicts

__all__ = ["Verdict", "broken", "verdicts"]
