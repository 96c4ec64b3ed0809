"""What a peer's library is asked to do, and the counting of its passes from outside."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol

from redraft.measure.eval.record import PassRecord


@dataclass(frozen=True, slots=True)
class Generated:
    """What came of one call of a library.

    Attributes:
        tokens: ids of the output, the end token left out.
        finished: whether the model ended it; False means the limit did.
        seconds: wall time of the call; ``model_seconds`` of it were spent in passes.
        passes: target passes.
        draft_passes: passes of the small model.
    """

    tokens: tuple[int, ...] = ()
    finished: bool = True
    seconds: float = 0.0
    model_seconds: float = 0.0
    passes: tuple[PassRecord, ...] = ()
    draft_passes: int = 0


class Library(Protocol):
    """A library with a model loaded."""

    def generate(self, prompt: tuple[int, ...], limit: int) -> Generated:
        """Decode greedily at most ``limit`` tokens after ``prompt``, at least one id."""

    def close(self) -> None:
        """Free the model."""


@dataclass(slots=True)
class PassLog:
    """The passes of one call, noted as the library makes them.

    Attributes:
        seconds: wall time of all passes, those of a small model too.
        draft_passes: passes of a small model.
    """

    seconds: float = 0.0
    draft_passes: int = 0
    _seen: list[tuple[int, int]] = field(default_factory=list)

    @contextmanager
    def target(self, cached: int, new: int) -> Iterator[None]:
        """Time a target pass over ``new`` ids behind ``cached`` ones."""
        self._seen.append((cached, new))
        with self._timed():
            yield

    @contextmanager
    def small(self) -> Iterator[None]:
        """Time a pass of the small model."""
        self.draft_passes += 1
        with self._timed():
            yield

    @contextmanager
    def _timed(self) -> Iterator[None]:
        started = time.perf_counter()
        yield
        self.seconds += time.perf_counter() - started

    def passes(self, prompt: int, output: int, finished: bool) -> tuple[PassRecord, ...]:
        """The target passes, with what of them was draft.

        Of the text so far the cache lacks the newest token alone, but for the first pass, which reads the prompt.  What
        a pass runs over behind the text so far is its draft.

        Args:
            prompt, output: how many ids the prompt had, and what came of it.
            finished: whether the model ended the output.
        """
        lengths = [max(prompt, cached + 1) for cached, _new in self._seen]
        # A pass adds the accepted tokens and one more; only the last may add an end token in its place.
        ends = [*(length - 1 for length in lengths[1:]), prompt + output - (not finished)]
        found = []
        for (cached, new), length, end in zip(self._seen, lengths, ends, strict=False):
            depth = cached + new - length
            found.append(PassRecord(cached, new, depth, depth, min(max(0, end - length), depth)))
        return tuple(found)
