"""Decide how many tokens to request behind a draft that is verified.

A verification needs one token behind the draft.  If the request asks for more, and the whole draft is accepted, the
continuation comes with the same response, and the second request is saved.  If the draft is rejected, these tokens were
computed in vain, and the response came later, because servers do not stream the response to a verification.

Which is better depends on the costs of a request and of a token, and on how many drafts are accepted.  The costs are
measured (`redraft.backends.remote.price`), and the outcomes of the last drafts are remembered.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Generator
from dataclasses import dataclass

from redraft.decoding.cost import CostCurve
from redraft.errors import ModelError

log = logging.getLogger(__name__)

#: Number of drafts that are remembered; texts and speakers change, so older ones say little.
REMEMBERED = 64


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a verified draft, in tokens behind the one that every verification returns.

    Attributes:
        used: tokens by which the output continued behind the draft, up to and including its end; 0 if the draft was
            rejected, or if the output ended with it.
        generated: tokens that the server generates there until it ends the output; None if it was not observed.
    """

    used: int
    generated: int | None = None

    def gain(self, count: int, request: float, token: float) -> float:
        """Return the seconds that ``count`` requested tokens would have saved; negative if they would have cost time.

        Args:
            count: tokens requested.
            request: seconds that a further request takes longer than a further token.
            token: seconds per token.
        """
        if self.used:
            # If the output is longer, a second request is needed, and is shorter by as many tokens.
            return request if self.used <= count else 0.0
        return -token * (count if self.generated is None else min(count, self.generated))


#: What the next draft is assumed to be, in addition to the outcomes of those before: the worst.  So a single success
#: decides nothing, unless requests are expensive.
_WORST = Outcome(0)


class JointRequests:
    """Decides for all backends of one server; thread-safe.

    Attributes:
        curve: cost of passes on the server; None until it has been measured.
    """

    def __init__(self) -> None:
        self.curve: CostCurve | None = None
        self._outcomes: deque[Outcome] = deque(maxlen=REMEMBERED)
        self._second = 0
        self._steps: Generator[None, None, CostCurve] | None = None
        self._measuring, self._noting = threading.Lock(), threading.Lock()

    def measured(self, measure: Callable[[], CostCurve]) -> CostCurve:
        """Return the curve; the first call measures it."""
        with self._measuring:
            if self.curve is None:
                self.curve = measure()
            return self.curve

    def approach(self, begin: Callable[[], Generator[None, None, CostCurve]], requests: int) -> None:
        """Take one step towards the curve, if it is unknown and worth its requests.

        It is measured once as many second requests have been observed as the measurement takes: until then it might
        not pay for itself.  A step is one request, so that no caption waits for the whole measurement.

        Args:
            begin: begins the measurement; called again if it fails.
            requests: number of requests that it takes.
        """
        if self.curve is not None or self._second < requests or not self._measuring.acquire(blocking=False):
            return
        try:
            self._steps = self._steps or begin()
            next(self._steps)
        except StopIteration as done:
            self.curve = done.value
        except ModelError as error:
            log.warning("the costs of the server could not be measured: %s", error)
            self._second, self._steps = 0, None
        finally:
            self._measuring.release()

    def note(self, outcome: Outcome) -> None:
        """Remember what became of a draft."""
        with self._noting:
            self._outcomes.append(outcome)
            self._second += bool(outcome.used)

    def further(self, most: int) -> int:
        """Return the number of tokens, at most ``most``, to request besides the one that a verification returns.

        This maximises the expected gain.  It is 0, which leaves the continuation to a second request, if no number has
        a gain, and as long as the costs are unknown.
        """
        if self.curve is None:
            return 0
        with self._noting:
            outcomes = (*self._outcomes, _WORST)
        token = self.curve(1)
        request = self.curve(2) - token

        def gain(count: int) -> float:
            return sum(outcome.gain(count, request, token) for outcome in outcomes)

        # The gain grows only where another continuation becomes complete.
        lengths = {outcome.used for outcome in outcomes if outcome.used <= most}
        return max(sorted({0} | lengths), key=gain)


class DraftWatch:
    """Observes what becomes of one draft.

    Args:
        ids: prefix and draft.
        generated: see `Outcome`.
    """

    def __init__(self, ids: tuple[int, ...], generated: int | None) -> None:
        self._ids, self._used, self._generated = ids, 0, generated

    def sees(self, prefix: tuple[int, ...]) -> bool:
        """Observe the prefix of the slot's next request; return False if it does not continue the draft."""
        if len(prefix) <= len(self._ids) or prefix[: len(self._ids)] != self._ids:
            return False
        self._used = len(prefix) - len(self._ids)
        return True

    @property
    def outcome(self) -> Outcome:
        """What became of the draft, once a request does not continue it."""
        return Outcome(self._used, self._generated)
