"""The slots of the models' caches: who has which, and what is reused of those that are free.

A slot of a session is cleared when the session ends.  That of a one-shot request stays as it is, and serves the next
request that begins with the same ids.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from redraft.decoding.backend import Backend
from redraft.decoding.types import TARGET, Score, common_prefix
from redraft.engine.lanes import Ids, Wish, Work


@dataclass(slots=True, eq=False)
class Slot:
    """One sequence in the cache of every model, with the token ids that it holds.

    Attributes:
        wish: the last one-shot request that was answered in it.
        answer: ids of its answer.
        used: number of the last use; lower ones are longer ago.
    """

    numbers: dict[str, int]
    held: dict[str, Ids] = field(default_factory=dict)
    wish: Wish = field(default_factory=Wish)
    answer: Ids = ()
    used: int = 0

    def reused(self, score: Score) -> int:
        """Return how many ids of a request's prefix are reused from the cache; rows that are wanted are recomputed."""
        first_row = len(score.prefix) - score.prompt_rows
        return min(common_prefix(self.held.get(score.model, ()), score.prefix), first_row)

    def hold(self, score: Score) -> None:
        """Record what the cache holds after a pass; the tokens of a draft tree are not counted."""
        self.held[score.model] = score.prefix + (score.draft.tokens if score.draft.is_chain else ())

    def worth(self, wish: Wish) -> tuple[int, int]:
        """Return how many ids of a request's prompt it holds, and how many of its text."""
        return common_prefix(self.held.get(TARGET, ()), wish.prompt), common_prefix(self.wish.source, wish.source)

    def draft(self, wish: Wish) -> Ids:
        """Return the answer to an earlier request if that text, or half of it, begins this one; otherwise nothing."""
        same = common_prefix(self.wish.source, wish.source)
        return self.answer if self.wish.kind == wish.kind and 2 * same >= len(self.wish.source) else ()


class SlotPool:
    """All slots of the models.

    Args:
        opened: the number of each slot in the cache of every model (`redraft.decoding.drive.open_slots`).
    """

    def __init__(self, backends: Mapping[str, Backend], opened: Sequence[dict[str, int]]) -> None:
        self._backends, self.size, self._uses = backends, len(opened), 0
        self._free = [Slot(numbers) for numbers in opened]
        #: By lane or request, the least recently used slot first.
        self._owned: OrderedDict[Work, Slot] = OrderedDict()

    @property
    def lent(self) -> int:
        """Number of slots in use."""
        return len(self._owned)

    def take(self, work: Work) -> Slot | None:
        """Return the slot of a lane or request, a free one, or that of a lane that is not running; None without one.

        Of the free ones, it is the one that holds most of what is wished for, and of equals the one that was not used
        for the longest time.
        """
        if work not in self._owned:
            former = None if self._free else next((each for each in self._owned if not each.running), None)
            if not self._free and former is None:
                return None
            self._owned[work] = self._owned.pop(former) if former is not None else self._best(work.wish)
        self._owned.move_to_end(work)
        return self._owned[work]

    def _best(self, wish: Wish) -> Slot:
        # Of equals the lowest number: backends are fastest on adjacent sequences.
        best = max(self._free, key=lambda each: (each.worth(wish), -each.used, -min(each.numbers.values())))
        self._free.remove(best)
        return best

    def settle(self, work: Work) -> None:
        """End what was asked ahead for a lane whose update has ended."""
        if (slot := self._owned.get(work)) is not None:
            for name, number in slot.numbers.items():
                self._backends[name].settle(number)

    def give_back(self, lane: Work) -> None:
        """Free the slot of a lane that has ended, and clear its cache, so that no text stays behind."""
        slot = self._owned.pop(lane, None)
        if slot is not None:
            self.renew(slot)
            slot.used = 0
            self._free.append(slot)

    def spare(self, request: Work, answer: Ids) -> None:
        """Free the slot of a one-shot request with its answer, and keep what it holds for the next one."""
        slot = self._owned.pop(request, None)
        if slot is not None:
            self._uses += 1
            slot.wish, slot.answer, slot.used = request.wish, answer, self._uses
            self._free.append(slot)

    def renew(self, slot: Slot) -> None:
        """Clear a slot's cache, for example after a failed pass."""
        for name, number in slot.numbers.items():
            self._backends[name].close_slot(number)
            slot.numbers[name] = self._backends[name].open_slot()
        slot.held.clear()
        slot.wish, slot.answer = Wish(), ()
