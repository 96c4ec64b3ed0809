"""The interface to a peer's library, and the counting of its passes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol

from redraft_bench.eval.record import PassRecord


@dataclass(frozen=True, slots=True)
class Generated:
    """The result of one call of a library.

    Attributes:
        tokens: output ids, without the end token.
        finished: whether the model ended the output; False if the limit did.
        seconds: wall time of the call.
        model_seconds: the part of ``seconds`` spent in passes.
        passes: target passes.
        draft_passes: number of passes of the draft model.
        elsewhere: processor time of other processes in seconds.
    """

    tokens: tuple[int, ...] = ()
    finished: bool = True
    seconds: float = 0.0
    model_seconds: float = 0.0
    passes: tuple[PassRecord, ...] = ()
    draft_passes: int = 0
    elsewhere: float = 0.0


class Library(Protocol):
    """A library with a loaded model."""

    def generate(self, prompt: tuple[int, ...], limit: int) -> Generated:
        """Decode greedily after ``prompt`` (at least one id), up to ``limit`` tokens."""

    def close(self) -> None:
        """Free the model."""


@dataclass(slots=True)
class PassLog:
    """Records the passes of one call.

    Attributes:
        seconds: wall time of all passes, including those of a draft model.
        draft_passes: number of passes of a draft model.
    """

    seconds: float = 0.0
    draft_passes: int = 0
    _seen: list[tuple[int, int]] = field(default_factory=list)

    @contextmanager
    def target(self, cached: int, new: int) -> Iterator[None]:
        """Time a target pass over ``new`` ids with ``cached`` ids in the cache."""
        self._seen.append((cached, new))
        with self._timed():
            yield

    @contextmanager
    def small(self) -> Iterator[None]:
        """Time a pass of the draft model."""
        self.draft_passes += 1
        with self._timed():
            yield

    @contextmanager
    def _timed(self) -> Iterator[None]:
        started = time.perf_counter()
        yield
        self.seconds += time.perf_counter() - started

    def passes(self, prompt: int, output: int, finished: bool) -> tuple[PassRecord, ...]:
        """Return the target passes, each with its draft length.

        Before a pass, the cache holds all of the text except its newest token (the first pass reads the prompt).  Any
        further tokens that a pass processes are its draft.
        """
        lengths = [max(prompt, cached + 1) for cached, _new in self._seen]
        # Each pass adds its accepted tokens and one more; in the last one, that may be the end token.
        ends = [*(length - 1 for length in lengths[1:]), prompt + output - (not finished)]
        found = []
        for (cached, new), length, end in zip(self._seen, lengths, ends, strict=False):
            depth = cached + new - length
            found.append(PassRecord(cached, new, depth, depth, min(max(0, end - length), depth)))
        return tuple(found)
