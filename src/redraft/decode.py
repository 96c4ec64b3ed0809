"""The only decode loop: propose a draft, score it in one target pass, accept a path and one token more.

It is a generator: it yields `Score` requests and is sent `Rows`.  It knows neither model, nor thread, nor clock; a
driver (`redraft.drive`) answers, for one decoding or for many at once.  Autoregression is the empty draft, so there is
no second loop.
"""

from __future__ import annotations

from redraft.types import Asking, Context, Drafter, Output, Rule, Score


def decode(
    prompt: tuple[int, ...],
    drafter: Drafter,
    rule: Rule,
    *,
    previous: tuple[int, ...] = (),
    end_tokens: frozenset[int],
    limit: int,
) -> Asking[Output]:
    """Decode at most ``limit`` tokens after ``prompt``.

    Args:
        prompt: at least one id.
        drafter: fresh for this decoding.
        rule: the acceptance rule.
        previous: output ids of the previous update, for drafters that reuse them.
        end_tokens: ids that end the output; the first one met ends it, inside an accepted draft too.
        limit: the most output tokens, at least 1.

    Returns:
        The output ids without the end token, with the counts that the papers report.
    """
    output: tuple[int, ...] = ()
    passes = drafted = accepted = 0
    while len(output) < limit:
        # The pass gives one token more than it accepts, so a draft as long as what is left would waste its last token.
        context = Context(prompt, output, previous, room=limit - len(output) - 1)
        draft = (yield from drafter.propose(context)).truncated(context.room)
        rows = yield Score(prompt + output, draft)
        verdict = rule.judge(draft, rows)
        drafter.observe(draft, rows, verdict)
        passes += 1
        drafted += draft.depth
        for node in verdict.accepted:
            if draft.tokens[node] in end_tokens:
                return Output(output, True, passes, drafted, accepted)
            output += (draft.tokens[node],)
            accepted += 1
        if verdict.token in end_tokens:
            return Output(output, True, passes, drafted, accepted)
        output += (verdict.token,)
    return Output(output, False, passes, drafted, accepted)
