"""What the drafter of `redraft` guesses, and when it stops guessing."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from redraft.decoding.cost import FLAT, Cost, CostCurve
from redraft.decoding.decode import decode
from redraft.decoding.drafters.redraft import Memory, Redraft, TreeShape
from redraft.decoding.drive import run
from redraft.decoding.rules.biased import Biased
from redraft.decoding.types import Draft, Provenance
from tests.fakes import END, RandomModel

SHOWN, HIDDEN, RECYCLED = Provenance.SHOWN, Provenance.PREVIOUS, Provenance.RECYCLED
#: A guess pays off from a probability of three tenths on.
SLOPE = CostCurve((1, 2), (1.0, 1.3))


class Ranked(RandomModel):
    """Ranks the tokens after each token by a table, which may change between updates; ends after all others."""

    def __init__(self, ranking: dict[int, list[int]]) -> None:
        super().__init__(vocabulary=40)
        self.ranking = ranking

    def logits(self, ids: Sequence[int]) -> np.ndarray:
        row = np.zeros(self.vocabulary)
        ranked = self.ranking.get(ids[-1], [END])
        row[ranked] = range(20, 20 - len(ranked), -1)
        return row


class Stream:
    """Updates of one model with one memory; each update returns its drafts."""

    def __init__(self, model: Ranked, shape: TreeShape, cost: Cost = FLAT) -> None:
        self.model, self.shape, self.cost, self.memory = model, shape, cost, Memory()
        self.output: tuple[int, ...] = ()

    def update(
        self, *prompt: int, previous: tuple[int, ...] = (), shown: int = 0, limit: int = 20
    ) -> list[tuple[int, ...]]:
        return [draft.tokens for draft in self.drafts(*prompt, previous=previous, shown=shown, limit=limit)]

    def drafts(self, *prompt: int, previous: tuple[int, ...] = (), shown: int = 0, limit: int = 20) -> list[Draft]:
        self.model.requests.clear()
        drafter = Redraft(self.shape, self.memory, self.cost, self.model.end_tokens)
        rule = Biased(0.2, 0.0, self.model.end_tokens)
        asking = decode(
            prompt, drafter, rule, previous=previous, shown=shown, end_tokens=self.model.end_tokens, limit=limit
        )
        self.output = run(asking, self.model, 0).tokens
        return [request.draft for request in self.model.requests]


def test_latest_successors_are_guessed_up_to_the_end() -> None:
    stream = Stream(Ranked({9: [5], 5: [6], 6: [7], 7: [END]}), TreeShape(lookup=False, beyond=False))
    assert stream.update(1, 9) == [()] * 4
    assert stream.update(2, 9) == [(5, 6, 7)], "also the first token, and no end"
    stream.model.ranking[5] = [8]
    stream.model.ranking[8] = [END]
    assert stream.update(3, 9) == [(5, 6, 7), ()]
    stream.shape = TreeShape(length=2, lookup=False, beyond=False)
    assert stream.update(4, 9) == [(5, 8)]


def test_first_token_follows_the_last_id_of_the_prompt() -> None:
    stream = Stream(Ranked({9: [5]}), TreeShape(lookup=False, beyond=False))
    stream.update(1, 9)
    stream.model.ranking[9] = [6]
    stream.update(2, 9)
    assert stream.update(1, 9) == [(6,)], "the latest, whatever the source ends with"


def test_two_earlier_places_are_guessed() -> None:
    stream = Stream(Ranked({}), TreeShape(6, 2, recycle=False, beyond=False))
    (draft,) = stream.drafts(3, 4, 5, 3, 6, 7, 3, 8, 8, 3)
    assert (draft.tokens, draft.parents) == ((4, 5, 6, 7), (-1, 0, -1, 2))


def test_continuation_behind_previous_output() -> None:
    model = Ranked({9: [5], 5: [6], 6: [END, 7, 8], 7: [8], 8: [7, 10], 10: [END]})
    stream = Stream(model, TreeShape(1, 3, lookup=False))
    stream.update(1, 7, limit=3)
    stream.update(1, 9)
    model.ranking[6] = [7]
    draft = stream.drafts(2, 9, previous=(5, 6), shown=1)[0]
    assert draft == Draft((5, 6, 7, 8, 7), (-1, 0, 1, 2, 3), (SHOWN, HIDDEN, *[RECYCLED] * 3))
    assert stream.update(2, 9, previous=(5,))[0] == (5,), "it was learnt from another output"


def test_continuations_branch_behind_previous_output() -> None:
    stream = Stream(Ranked({9: [5], 5: [6], 6: [END, 7, 8, 10]}), TreeShape(2, recycle=False, lookup=False))
    stream.update(1, 9)
    draft = stream.drafts(1, 9, previous=(5, 6))[0]
    assert (draft.tokens, draft.parents) == ((5, 6, 7, 8), (-1, 0, 1, 1))


def test_kinds_of_guesses_that_are_off_are_not_learnt() -> None:
    model = Ranked({9: [5], 5: [6], 6: [END, 7], 7: [6]})
    stream = Stream(model, TreeShape(recycle=False, lookup=False))
    stream.update(1, 7)
    stream.update(1, 9)
    assert stream.update(1, 9, previous=(5, 6))[0] == (5, 6, 7), "what follows 7 would be recycled"
    stream = Stream(model, TreeShape(lookup=False, beyond=False))
    stream.update(1, 9)
    assert stream.update(1, 9, previous=(5, 6))[0] == (5, 6)


def test_guesses_that_are_always_wrong_stop() -> None:
    stream = Stream(Ranked({9: [5], 5: [END], 6: [END]}), TreeShape(lookup=False, beyond=False), SLOPE)
    drafted = []
    for _ in range(8):
        stream.model.ranking[9] = [6] if stream.model.ranking[9] == [5] else [5]
        drafted.append(len(stream.update(1, 9)[0]))
    assert drafted[1] == 1 and drafted[-1] == 0


def test_rank_counts() -> None:
    stream = Stream(Ranked({9: [5], 5: [END], 6: [END]}), TreeShape(2, lookup=False, beyond=False), SLOPE)
    for _ in range(20):
        right = 6 if stream.model.ranking[9] == [5] else 5
        stream.model.ranking[9] = [right]
        drafts = stream.update(1, 9)
    assert drafts == [(right,)], "the latest is always wrong, the one before it right"


def test_rank_of_continuations_counts() -> None:
    stream = Stream(Ranked({9: [5], 5: [6]}), TreeShape(2, recycle=False, lookup=False), SLOPE)
    for _ in range(20):
        stream.model.ranking[6] = [END, 7, 8]
        stream.update(1, 9)
        stream.model.ranking[6] = [8]
        drafts = stream.update(2, 9, previous=(5, 6))
    assert drafts == [(5, 6, 8)]


def test_depth_counts() -> None:
    model = Ranked({9: [5], 5: [6], 6: [7], 7: [8], 8: [END], 10: [END]})
    stream, drafted = Stream(model, TreeShape(lookup=False, beyond=False), SLOPE), []
    for _ in range(40):
        model.ranking[7] = [10] if model.ranking[7] == [8] else [8]
        drafted.append(len(stream.update(1, 9)[0]))
    assert drafted[-10:] == [3] * 10, "the fourth token is always wrong, those before it right"


def test_end_of_previous_output_counts() -> None:
    """Its last token is always revised, so what follows it is not worth a guess, whatever its place."""
    model = Ranked({9: [5], 5: [6], 6: [7]} | {token: [END, 30] for token in range(10, 30)})
    stream = Stream(model, TreeShape(recycle=False, lookup=False), SLOPE)
    drafted = []
    for token in range(10, 22):
        model.ranking[7] = [token]
        drafted.append(len(stream.update(1, 9, previous=stream.output)[0]))
    assert drafted[1] == 5 and drafted[-1] == 4
    model.ranking[6] = [22]
    stream.update(1, 9)
    assert len(stream.update(1, 9, previous=stream.output)[0]) == 3


def test_cost_counts_what_the_pass_reads_anyway() -> None:
    ranking = {9: [5], 5: [6], 6: [7], 7: [8], 8: [END, 10]}
    for curve, drafted in ((CostCurve((1, 5, 6), (1.0, 1.01, 3.0)), 4), (CostCurve((1, 4, 6), (1.0, 3.0, 3.0)), 5)):
        stream = Stream(Ranked(ranking), TreeShape(recycle=False, lookup=False), curve)
        stream.update(1, 9)
        assert len(stream.update(1, 9, previous=(5, 6, 7, 8))[0]) == drafted


def test_ids_of_prompt_that_cannot_be_cached() -> None:
    memory = Memory()
    assert [memory.tail(prompt) for prompt in ((1, 2, 3), (1, 2, 3), (1, 2, 3, 4), (1, 5, 6), (1,))] == [3, 1, 1, 2, 1]


def test_throughput_is_that_of_passes_with_guesses() -> None:
    stream = Stream(Ranked({9: [5], 5: [6], 6: [7], 7: [END]}), TreeShape(lookup=False, beyond=False))
    stream.update(1, 9)
    stream.update(1, 9, previous=(5, 6, 7))
    assert stream.memory.throughput.per_second(FLAT) == 1.0, "the previous output is not counted"
    stream.update(1, 2, 3, 9)
    assert stream.memory.throughput.per_second(FLAT) == 1.0, "nor is a pass that reads a prompt"
    stream.update(1, 2, 3, 9)
    assert stream.memory.throughput.per_second(FLAT) > 1.5
