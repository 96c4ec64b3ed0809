"""The only decode loop, and rows without impossible tokens.

It is a generator that yields `Score` requests and receives `Rows`. It knows nothing about models, threads or time; a
driver (`redraft.decoding.drive`) answers, for one decoding or for many at once. Autoregression is the empty draft, so
it needs no second loop.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from redraft.decoding.ends import NO_BREAKS, LineEnd, loop_at_end
from redraft.decoding.selection import Next, Selection
from redraft.decoding.types import (
    NOTHING_BARRED,
    ROOT,
    Asking,
    Barred,
    Context,
    Draft,
    Drafter,
    Follow,
    Output,
    Prompt,
    Rows,
    Rule,
    Score,
    Verdict,
    WholeDistribution,
    counted,
)

_ANYTHING = Next()


class AllowedRows:
    """Rows in which some tokens are impossible; implements `redraft.decoding.types.Rows`.

    The probabilities of the other tokens stay as they are, and are not scaled to add up to 1.

    Nearly all tokens are possible whatever precedes them, and rules ask for several in every row.  So each question is
    first put to the sets of the selection, and the words around a token are looked at only where these do not settle
    it.

    Args:
        draft: the draft that they are of.
        output: output ids before the draft.
        selection: which tokens the output may contain.
        barred: which tokens are impossible at some positions in the output.  The only token that may follow inside a
            word is never barred.

    Attributes:
        rows: the model's rows, once the draft has been scored.
    """

    rows: Rows

    def __init__(
        self, draft: Draft, output: tuple[int, ...], selection: Selection, barred: Barred = NOTHING_BARRED
    ) -> None:
        self._draft, self._output, self._selection, self._barred = draft, output, selection, barred
        #: By node: the last item is that of `ROOT`, which is -1.
        self._tokens = (*draft.tokens, *output[-1:]) if output else (*draft.tokens, None)
        self._next: dict[int, Next] = {}

    def possible_nodes(self) -> list[int]:
        """Return the nodes of the draft that can be accepted: without impossible tokens and what follows them."""
        parents, kept = self._draft.parents, {ROOT}
        for node, token in enumerate(self._draft.tokens):
            if parents[node] in kept and self._allows(parents[node], token):
                kept.add(node)
        kept.remove(ROOT)
        return sorted(kept)

    def argmax(self, node: int) -> int:
        """Return the most probable possible token after ``node``."""
        token = self.rows.argmax(node)
        return token if self._allows(node, token) else self.best(node, 1)[0]

    def best(self, node: int, k: int) -> list[int]:
        """Return the ``k`` most probable possible tokens after ``node``, or all."""
        asked, after = k, self._after(node)
        if after.only is not None:
            return sorted(after.only, key=lambda token: (-self.rows.logprob(node, token), token))[:k]
        while True:
            found = self.rows.best(node, asked)
            allowed = after.among(found)
            if len(allowed) >= k or len(found) < asked:
                return allowed[:k]
            asked *= 2

    def logprob(self, node: int, token: int) -> float:
        """Return the natural log of the probability of ``token`` after ``node``; minus infinity if it is impossible."""
        return self.rows.logprob(node, token) if self._allows(node, token) else -math.inf

    def entropy(self, node: int) -> float:
        """Return the entropy of the model's distribution after ``node`` in nats, impossible tokens included."""
        return self.rows.entropy(node)

    def distribution(self, node: int, temperature: float) -> WholeDistribution:
        """Return the distribution among the possible tokens after ``node``."""
        whole, after = self.rows.distribution(node, temperature), self._after(node)
        if after.only is not None:
            return whole.without(None, after.only)
        return whole.without(after.foreign, after.possible) if after.foreign else whole

    def _allows(self, node: int, token: int) -> bool:
        selection = self._selection
        if node < ROOT or (
            token not in selection.special and self._tokens[node] not in selection.pieces and not self._barred
        ):
            return True
        return bool(self._after(node).among((token,)))

    def _after(self, node: int) -> Next:
        """Return which tokens may follow a node; nodes of the prompt are free."""
        if node < ROOT:
            return _ANYTHING
        if node not in self._next:
            path = (*self._output, *[self._draft.tokens[each] for each in self._draft.path(node)])
            self._next[node] = self._selection.after(path).without(self._barred.get(len(path), frozenset()))
        return self._next[node]


def decode(
    prompt: Prompt,
    drafter: Drafter,
    rule: Rule,
    *,
    previous: tuple[int, ...] = (),
    shown: int = 0,
    barred: Barred = NOTHING_BARRED,
    end_tokens: frozenset[int],
    line_end: LineEnd = NO_BREAKS.end,
    limit: int,
    stop_loops: bool = False,
    follow: Follow | None = None,
) -> Asking[Output]:
    """Decode at most ``limit`` tokens after ``prompt``.

    Args:
        prompt: what the model reads, with at least one id, and which tokens the output may contain.
        drafter: made for this decoding.
        rule: the acceptance rule.
        previous: output ids of the previous update, for drafters that reuse them.
        shown: how many of these, from the first on, the reader sees.
        barred: which ids must not stand at some positions in the output.
        end_tokens: ids that end the output; the first one ends it, also inside an accepted draft.
        line_end: finds the line break that ends the output like an end token; by default, none does.
        limit: maximum output tokens, at least 1.
        stop_loops: cut an output that repeats itself (`redraft.decoding.ends`), keeping one cycle.
        follow: follows the output, and may stop it behind what the reader sees.

    Returns:
        The output ids without the end token, with the counts that the papers report.
    """
    output: tuple[int, ...] = ()
    selection = prompt.selection
    passes = drafted = accepted = draft_passes = 0
    finished = end_drafted = False
    while not finished and len(output) < limit:
        # A pass yields one token more than it accepts, so a draft of the full remaining length would waste its last
        # token.
        context = Context(prompt, output, previous, limit - len(output) - 1, shown, line_end)
        draft, asked = yield from counted(drafter.drafting(context))
        draft = draft.truncated(context.room)
        draft_passes += asked
        allowed = AllowedRows(draft, output, selection, barred)
        possible = draft.keeping(allowed.possible_nodes())
        if not draft.is_chain:
            draft, allowed = possible, AllowedRows(possible, output, selection, barred)
        drafted += draft.depth
        before, rows = len(output), None
        settled = bool(draft) and draft.settled and possible == draft
        if settled:
            verdict = Verdict(tuple(range(len(draft))), None)
        else:
            bars = [place - before for place in barred if 0 <= place - before <= draft.depth]
            biases = _biases(rule, draft, bars)
            rows = yield Score(prompt.ids + output, draft, draft.prompt_rows, encoder=prompt.encoder, biases=biases)
            if selection or bars:
                allowed.rows = rows
                rows = allowed
                # A rule might accept what is impossible, at ``beta`` 0.5 all of it.  That of a sampled draft must see
                # what was drawn; it rejects tokens of probability 0.
                verdict = rule.judge(draft if draft.distributions else possible, rows)
            else:
                verdict = rule.judge(draft, rows)
            drafter.observe(draft, rows, verdict)
            passes += 1
        stops = follow is not None and follow(draft, rows, verdict)
        output += tuple([token for _node, token in verdict.added(draft)])
        output, finished = _until_end(output, end_tokens, line_end)
        # Draft tokens count that were added to the output, and the end among them.
        kept = min(len(verdict.accepted), len(output) - before + finished)
        end_drafted = kept > len(output) - before
        accepted += kept
        if settled:
            continue
        for length in range(before + 1, len(output) + 1) if stop_loops else ():
            if repeated := loop_at_end(output[:length]):
                left = output[: length - repeated]
                while selection.is_forced(left):  # a word that nothing else could follow: the loop begins with it
                    left = left[:-1]
                accepted = min(accepted, len(left))
                return Output(left, False, passes, drafted, accepted, draft_passes, loop=output[len(left)])
        if stops and not finished and len(output) > shown and not selection.is_forced(output):
            return Output(output, False, passes, drafted, accepted, draft_passes, stopped=True)
    return Output(output, finished, passes, drafted, accepted, draft_passes, end_drafted)


def _biases(rule: Rule, draft: Draft, bars: Sequence[int]) -> tuple[float, ...] | None:
    """Return the biases for a server that verifies the draft itself.

    It knows no barred tokens, so it keeps what is drafted in their places, which the rule then judges here.
    """
    biases = rule.biases(draft)
    if not biases or not bars:
        return biases
    return tuple(1.0 if depth - 1 in bars else bias for depth, bias in zip(draft.depths, biases, strict=True))


def _until_end(output: tuple[int, ...], end_tokens: frozenset[int], line_end: LineEnd) -> tuple[tuple[int, ...], bool]:
    length = None
    if not end_tokens.isdisjoint(output):
        length = next(place for place, token in enumerate(output) if token in end_tokens)
    line = line_end(output[:length])
    length = length if line is None else line
    return output[:length], length is not None
