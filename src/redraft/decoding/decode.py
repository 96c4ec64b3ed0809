"""The only decode loop: propose a draft, score it in one target pass, accept a path and one more token.

It is a generator that yields `Score` requests and receives `Rows`. It knows nothing about models, threads or time; a
driver (`redraft.decoding.drive`) answers, for one decoding or for many at once. Autoregression is the empty draft, so
it needs no second loop.
"""

from __future__ import annotations

from collections.abc import Sequence

from redraft.decoding.allowed import AllowedRows
from redraft.decoding.ends import NO_BREAKS, LineEnd, loop_at_end
from redraft.decoding.selection import Selection
from redraft.decoding.types import (
    NOTHING_BARRED,
    Asking,
    Barred,
    Context,
    Draft,
    Drafter,
    Follow,
    Output,
    Prompt,
    Rule,
    Score,
    Verdict,
    counted,
)


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
        drafted += draft.depth
        allowed = AllowedRows(draft, output, selection, barred)
        possible = draft.keeping(allowed.possible_nodes())
        if not draft.is_chain:
            draft, allowed = possible, AllowedRows(possible, output, selection, barred)
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
                left = _before_word(output[: length - repeated], selection)
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
    """Return the part of an output before its end, and whether it has ended."""
    length = None
    if not end_tokens.isdisjoint(output):
        length = next(place for place, token in enumerate(output) if token in end_tokens)
    line = line_end(output[:length])
    length = length if line is None else line
    return output[:length], length is not None


def _before_word(output: tuple[int, ...], selection: Selection) -> tuple[int, ...]:
    """Return ``output`` without the beginning of a word that the selection forces it to finish.

    Nothing else could follow there, so a loop is left where the word begins.
    """
    while selection.is_forced(output):
        output = output[:-1]
    return output
