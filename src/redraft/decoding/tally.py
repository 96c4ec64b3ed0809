"""Totals over several outputs."""

from __future__ import annotations

from dataclasses import dataclass

from redraft.decoding.types import Output


@dataclass(slots=True)
class Tally:
    """Totals over several outputs, for the papers' acceptance figures."""

    updates: int = 0
    tokens: int = 0
    finished: int = 0
    passes: int = 0
    drafted: int = 0
    accepted: int = 0
    draft_passes: int = 0

    def add(self, output: Output) -> None:
        """Add one output."""
        self.updates += 1
        self.tokens += len(output.tokens)
        self.finished += output.finished
        self.passes += output.passes
        self.drafted += output.drafted
        self.accepted += output.accepted
        self.draft_passes += output.draft_passes

    @property
    def output_acceptance(self) -> float:
        """A/O: accepted draft tokens divided by output tokens, 0-1."""
        return self.accepted / self.tokens if self.tokens else 0.0
