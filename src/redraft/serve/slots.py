"""The slots of the models' caches, lent to the lanes that are translating.

A slot is one sequence of the target's cache and, for methods that draft with a model of their own, one of that
model's.  There may be more lanes than slots.  A lane keeps its slot while nobody else needs it; a slot that is taken
away costs its former owner a pass over its prompt at the next update, and nothing else.
"""

from __future__ import annotations

from bisect import insort
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field

from redraft.decoding.backend import Backend
from redraft.decoding.types import Score, common_prefix


@dataclass(slots=True, eq=False)
class Slot:
    """One sequence of every model's cache.

    Attributes:
        numbers: the sequence by model (`redraft.decoding.types.TARGET`, `DRAFT_MODEL`).
        held: the ids that the sequence holds, as far as the requests so far tell.
    """

    numbers: dict[str, int]
    held: dict[str, tuple[int, ...]] = field(default_factory=dict)

    def reused(self, score: Score) -> int:
        """How many ids of a request's prefix need not be run again; rows that are wanted always are."""
        first_row = len(score.prefix) - score.prompt_rows
        return min(common_prefix(self.held.get(score.model, ()), score.prefix), first_row)

    def hold(self, score: Score) -> None:
        """Note what the cache holds after a pass; of a tree, the nodes that follow the prefix in one line."""
        line = score.draft.tokens if score.draft.is_chain else ()
        self.held[score.model] = score.prefix + line


class SlotPool:
    """All slots of the models.

    Args:
        backends: the models by name, each opened with enough slots.
        size: how many slots there are.

    Raises:
        CapabilityError: a model has fewer.
    """

    def __init__(self, backends: Mapping[str, Backend], size: int) -> None:
        self._backends, self.size = backends, size
        self._free: list[Slot] = []
        #: By owner, the one that has used its slot longest ago first.
        self._owned: OrderedDict[Hashable, Slot] = OrderedDict()
        for _ in range(size):
            self._add_free(Slot(self._open()))

    def _open(self) -> dict[str, int]:
        return {name: backend.open_slot() for name, backend in self._backends.items()}

    def _add_free(self, slot: Slot) -> None:
        # The lowest is lent first: a backend runs slots best that are neighbours.
        insort(self._free, slot, key=lambda each: -min(each.numbers.values()))

    @property
    def lent(self) -> int:
        """How many slots have an owner."""
        return len(self._owned)

    def take(self, owner: Hashable, idle: Callable[[Hashable], bool]) -> Slot | None:
        """The owner's slot: the one it has, a free one, or that of an idle owner; None if there is none.

        Args:
            owner: who asks.
            idle: whether an owner can do without its slot for now.
        """
        if owner not in self._owned:
            found = self._free.pop() if self._free else self._taken_away(idle)
            if found is None:
                return None
            self._owned[owner] = found
        self._owned.move_to_end(owner)
        return self._owned[owner]

    def _taken_away(self, idle: Callable[[Hashable], bool]) -> Slot | None:
        former = next((each for each in self._owned if idle(each)), None)
        if former is None:
            return None
        return self._owned.pop(former)

    def give_back(self, owner: Hashable) -> None:
        """Take the slot of an owner that has ended; its cache is wiped, so that nothing of its text stays behind."""
        slot = self._owned.pop(owner, None)
        if slot is not None:
            self.renew(slot)
            self._add_free(slot)

    def renew(self, slot: Slot) -> None:
        """Empty a slot, such as one whose cache is not to be trusted any more."""
        for name, number in slot.numbers.items():
            self._backends[name].close_slot(number)
            slot.numbers[name] = self._backends[name].open_slot()
        slot.held.clear()

    def close(self) -> None:
        """Give all slots back to the models."""
        for slot in (*self._free, *self._owned.values()):
            for name, number in slot.numbers.items():
                self._backends[name].close_slot(number)
        self._free, self._owned = [], OrderedDict()
