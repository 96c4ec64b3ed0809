"""Several contexts of one small model side by side, each on a core of its own.

The threads of one context wait for each other after every operation.  Where an operation takes microseconds, that costs
more than a second thread brings; contexts wait for each other once a pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, wait

from redraft.backends.llamacpp import LlamaCpp
from redraft.types import Rows, Score


class Replicas:
    """Shares slots and requests out among backends of the same model; implements `redraft.types.Backend`.

    With n replicas slot s is slot s // n of replica s % n, so that neighbours run side by side.

    Args:
        replicas: two or more that differ in nothing and have no open slots; the first one owns the weights.
    """

    def __init__(self, replicas: Sequence[LlamaCpp]) -> None:
        self._replicas = tuple(replicas)
        first = self._replicas[0]
        self.capabilities, self.metadata = first.capabilities, first.metadata
        self.context_length, self.vocabulary_size = first.context_length, first.vocabulary_size
        self.end_tokens, self.pad_token = first.end_tokens, first.pad_token
        self.tokenize, self.token_bytes = first.tokenize, first.token_bytes
        #: What a pass of one lane costs is the same with and without the others.
        self.identity = first.identity
        self._open = [0 for _ in self._replicas]
        self._threads = ThreadPoolExecutor(len(self._replicas) - 1, "redraft-replica")

    def open_slot(self) -> int:
        """A free slot of the replica that has the fewest open ones.

        Raises:
            CapabilityError: all are in use.
        """
        replica = self._open.index(min(self._open))
        slot = self._replicas[replica].open_slot()
        self._open[replica] += 1
        return slot * len(self._replicas) + replica

    def close_slot(self, slot: int) -> None:
        """Forget a sequence."""
        own, replica = divmod(slot, len(self._replicas))
        self._replicas[replica].close_slot(own)
        self._open[replica] -= 1

    def score(self, requests: Sequence[tuple[int, Score]]) -> list[Rows]:
        """Answer requests of different slots, each replica its own with one pass, all at the same time.

        Raises:
            RedraftError: what a replica raises; the others have finished their passes.
        """
        shares: dict[int, list[tuple[int, Score]]] = {}
        for slot, score in requests:
            own, replica = divmod(slot, len(self._replicas))
            shares.setdefault(replica, []).append((own, score))
        if not shares:
            return []
        here, *elsewhere = shares
        passes = {each: self._threads.submit(self._replicas[each].score, shares[each]) for each in elsewhere}
        try:
            answers = {here: iter(self._replicas[here].score(shares[here]))}
        finally:
            wait(passes.values())
        answers |= {each: iter(done.result()) for each, done in passes.items()}
        return [next(answers[slot % len(self._replicas)]) for slot, _score in requests]

    def close(self) -> None:
        """Close all replicas."""
        self._threads.shutdown()
        for replica in reversed(self._replicas):
            replica.close()
