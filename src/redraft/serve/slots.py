"""Cache slots of the models, lent to the lanes that are translating.

A slot is one sequence in the target's cache and, for methods with a draft model, one in that model's.  There may be
more lanes than slots.  A lane keeps its slot until another lane needs it; losing it costs one pass over the prompt at
the lane's next update.
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
    """One sequence in the cache of every model.

    Attributes:
        numbers: sequence number by model (`redraft.decoding.types.TARGET`, `DRAFT_MODEL`).
        held: token ids in the cache by model.
    """

    numbers: dict[str, int]
    held: dict[str, tuple[int, ...]] = field(default_factory=dict)

    def reused(self, score: Score) -> int:
        """Return how many ids of a request's prefix are reused from the cache; rows that are wanted are recomputed."""
        first_row = len(score.prefix) - score.prompt_rows
        return min(common_prefix(self.held.get(score.model, ()), score.prefix), first_row)

    def hold(self, score: Score) -> None:
        """Record what the cache holds after a pass; the tokens of a draft tree are not counted."""
        line = score.draft.tokens if score.draft.is_chain else ()
        self.held[score.model] = score.prefix + line


class SlotPool:
    """All slots of the models.

    Args:
        backends: the models by name, opened with enough slots.
        size: number of slots.

    Raises:
        CapabilityError: a model has fewer slots.
    """

    def __init__(self, backends: Mapping[str, Backend], size: int) -> None:
        self._backends, self.size = backends, size
        self._free: list[Slot] = []
        #: By owner, the least recently used slot first.
        self._owned: OrderedDict[Hashable, Slot] = OrderedDict()
        for _ in range(size):
            self._add_free(Slot(self._open()))

    def _open(self) -> dict[str, int]:
        return {name: backend.open_slot() for name, backend in self._backends.items()}

    def _add_free(self, slot: Slot) -> None:
        # Lend the lowest number first: backends are fastest on adjacent sequences.
        insort(self._free, slot, key=lambda each: -min(each.numbers.values()))

    @property
    def lent(self) -> int:
        """Number of slots in use."""
        return len(self._owned)

    def take(self, owner: Hashable, idle: Callable[[Hashable], bool]) -> Slot | None:
        """Return the owner's slot: the one it has, a free one, or that of an idle owner; None if all are busy.

        Args:
            owner: the lane that needs a slot.
            idle: returns whether an owner can give up its slot.
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
        """Free the slot of an owner that has ended, and clear its cache, so that no text stays behind."""
        slot = self._owned.pop(owner, None)
        if slot is not None:
            self.renew(slot)
            self._add_free(slot)

    def renew(self, slot: Slot) -> None:
        """Clear a slot's cache, for example after a failed pass."""
        for name, number in slot.numbers.items():
            self._backends[name].close_slot(number)
            slot.numbers[name] = self._backends[name].open_slot()
        slot.held.clear()

    def close(self) -> None:
        """Release all slots of the models."""
        for slot in (*self._free, *self._owned.values()):
            for name, number in slot.numbers.items():
                self._backends[name].close_slot(number)
        self._free, self._owned = [], OrderedDict()
