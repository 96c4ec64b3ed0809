"""BiLD and drafting with a small model in the loop: against Algorithm 1 written out, ends of ranges, end tokens."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from redraft.backends.numpy_rows import NumpyRows
from redraft.decoding.decode import decode
from redraft.decoding.drafters import Nothing, SmallModel
from redraft.decoding.drive import run, run_together
from redraft.decoding.method import Setup, Value
from redraft.decoding.methods import get_method
from redraft.decoding.methods.bild import Rollback
from redraft.decoding.rules import Exact, Sampler
from redraft.decoding.selection import EVERYTHING, Selection
from redraft.decoding.types import (
    DRAFT_MODEL,
    EMPTY_DRAFT,
    NOTHING_BARRED,
    TARGET,
    Barred,
    Drafter,
    Output,
    Prompt,
    Provenance,
    Rule,
    Score,
)
from tests.fakes import END, Everything, RandomModel, greedy

GREEDY = Sampler()
seeds = st.integers(0, 10_000)
prompts = st.lists(st.integers(1, 11), min_size=1, max_size=9).map(tuple)
limits = st.integers(1, 20)
windows = st.integers(1, 10)
fallbacks = st.one_of(st.just(0.0), st.just(1.0), st.floats(0, 1))
rollbacks = st.one_of(st.just(0.0), st.just(100.0), st.floats(0, 6))


def decoded(
    target: RandomModel,
    small: RandomModel,
    parts: tuple[Drafter, Rule],
    prompt: tuple[int, ...],
    limit: int,
    previous: tuple[int, ...] = (),
) -> Output:
    asking = decode(Prompt(prompt), *parts, previous=previous, end_tokens=target.end_tokens, limit=limit)
    return run_together([(asking, {TARGET: 0, DRAFT_MODEL: 0})], {TARGET: target, DRAFT_MODEL: small})[0]


def bild(window: int = 10, fallback: float = 0.6, rollback: float = 2.0, *, ends: bool = False) -> tuple[Drafter, Rule]:
    settling = RandomModel.end_tokens if ends else frozenset()
    return SmallModel(GREEDY, window, RandomModel.end_tokens, fallback, settling), Rollback(rollback, GREEDY)


def built(name: str, **options: Value) -> tuple[Drafter, Rule]:
    method = get_method(name)
    return method.build(Setup(method.check(options), RandomModel.end_tokens))


def probabilities(model: RandomModel, ids: Sequence[int]) -> np.ndarray:
    powers = np.exp(model.logits(ids))
    return powers / powers.sum()


def algorithm_1(
    target: RandomModel,
    small: RandomModel,
    prompt: tuple[int, ...],
    limit: int,
    options: tuple[int, float, float, bool],
) -> tuple[list[int], int, int]:
    """Ids, passes of the large model and of the small one, written without the engine."""
    window, fallback, rollback, ends = options
    output: list[int] = []
    passes = small_passes = 0
    while len(output) < limit and END not in output:
        drafted: list[int] = []
        while len(drafted) < min(window, limit - len(output) - 1) and END not in drafted:
            p = probabilities(small, [*prompt, *output, *drafted])
            small_passes += 1
            if p.max() <= fallback:
                break
            drafted.append(int(p.argmax()))
        if ends and END in drafted:  # line 2: y[-1] is the end, whichever model wrote it
            output += drafted
            break
        passes += 1
        for token in drafted:
            p = probabilities(target, [*prompt, *output])
            if -np.log(p[token]) > rollback:
                break
            output.append(token)
        else:
            p = probabilities(target, [*prompt, *output])
        output.append(int(p.argmax()))
    return output[: output.index(END)] if END in output else output, passes, small_passes


@given(seeds, seeds, prompts, limits, windows, fallbacks, rollbacks, st.booleans())
def test_bild_is_algorithm_1(
    large_seed: int,
    small_seed: int,
    prompt: tuple[int, ...],
    limit: int,
    window: int,
    fallback: float,
    rollback: float,
    ends: bool,
) -> None:
    target, small = RandomModel(large_seed), RandomModel(small_seed)
    expected = algorithm_1(target, small, prompt, limit, (window, fallback, rollback, ends))
    output = decoded(target, small, bild(window, fallback, rollback, ends=ends), prompt, limit)
    assert (list(output.tokens), output.passes, output.draft_passes) == expected
    assert (output.passes, output.draft_passes) == (len(target.requests), len(small.requests))
    assert all(score.model == DRAFT_MODEL and score.draft == EMPTY_DRAFT for score in small.requests)


class Ending(RandomModel):
    """Writes one token, and ends the output."""

    def __init__(self, token: int) -> None:
        super().__init__()
        self.token = token

    def logits(self, ids: Sequence[int]) -> np.ndarray:
        row = np.zeros(self.vocabulary)
        row[END if ids[-1] == self.token else self.token] = 99.0
        return row


@pytest.mark.parametrize("token", [END, 5])
@pytest.mark.parametrize("name", ["bild", "cd"])
def test_what_is_impossible_is_not_kept_unverified(name: str, token: int) -> None:
    """By a small model that ends the output, and of the previous output."""
    target, small = RandomModel(3, end_bias=-1.0), Ending(token)
    models = {TARGET: target, DRAFT_MODEL: small}
    asked: list[tuple[Selection, Barred]] = [(EVERYTHING, {0: frozenset({token})})]
    asked += [(Selection(frozenset({token})), NOTHING_BARRED)] if token != END else []
    for selection, barred in asked:
        asking = decode(
            Prompt((1, 2, 3), selection=selection),
            *built(name, **({"fallback": 0.0} if name == "bild" else {})),
            previous=(token, token),
            barred=barred,
            end_tokens=target.end_tokens,
            limit=6,
        )
        output = run_together([(asking, {TARGET: 0, DRAFT_MODEL: 0})], models)[0]
        assert output.passes and output.tokens and output.tokens[0] != token


def test_line_break_of_small_model_settles_nothing() -> None:
    """One before all text ends nothing, and the target may not write it."""
    target, small, method = RandomModel(3), Ending(5), get_method("bild")
    setup = Setup(method.check({"fallback": 0.0, "rollback": 0.0}), target.end_tokens, line_ends=frozenset({5}))
    output = decoded(target, small, method.build(setup), (1, 2, 3), 6)
    assert list(output.tokens) == greedy(target, (1, 2, 3), 6)


@given(seeds, seeds, prompts, limits, windows, st.floats(0, 1))
def test_exact_small_model(
    large_seed: int, small_seed: int, prompt: tuple[int, ...], limit: int, window: int, fallback: float
) -> None:
    target, small = RandomModel(large_seed), RandomModel(small_seed)
    plain = run(decode(Prompt(prompt), Nothing(), Exact(), end_tokens=target.end_tokens, limit=limit), target, 0)
    drafter = SmallModel(GREEDY, window, target.end_tokens, fallback)
    output = decoded(target, small, (drafter, Exact()), prompt, limit)
    assert (output.tokens, output.finished) == (plain.tokens, plain.finished)
    # The end token saves no pass, whether it was drafted or not.
    assert output.passes == plain.passes - output.accepted + output.end_drafted


@given(seeds, prompts, limits)
def test_target_as_its_own_small_model(seed: int, prompt: tuple[int, ...], limit: int) -> None:
    target = RandomModel(seed, end_bias=-100)
    output = decoded(target, RandomModel(seed, end_bias=-100), bild(4, 0.0, 100.0), prompt, limit)
    assert (list(output.tokens), output.passes) == (greedy(target, prompt, limit), -(-limit // 5))
    assert (output.accepted, output.drafted) == (limit - output.passes, limit - output.passes)


@given(seeds, prompts, limits, rollbacks)
def test_fallback_of_one_is_autoregression(seed: int, prompt: tuple[int, ...], limit: int, rollback: float) -> None:
    target, small = RandomModel(seed), RandomModel(seed + 1)
    plain = run(decode(Prompt(prompt), Nothing(), Exact(), end_tokens=target.end_tokens, limit=limit), target, 0)
    output = decoded(target, small, bild(10, 1.0, rollback), prompt, limit)
    assert (output.tokens, output.finished, output.passes) == (plain.tokens, plain.finished, plain.passes)
    # Each pass but the last possible one was preceded by a look at the small model.
    assert (output.drafted, output.draft_passes) == (0, sum(limit - place > 1 for place in range(plain.passes)))


@given(seeds, prompts, limits)
def test_rollback_of_zero_keeps_nothing(seed: int, prompt: tuple[int, ...], limit: int) -> None:
    target, small = RandomModel(seed), RandomModel(seed + 1)
    output = decoded(target, small, bild(3, 0.0, 0.0), prompt, limit)
    assert (list(output.tokens), output.accepted) == (greedy(target, prompt, limit), 0)


@given(seeds, prompts, limits, windows)
def test_no_thresholds(seed: int, prompt: tuple[int, ...], limit: int, window: int) -> None:
    target, small = RandomModel(seed, end_bias=-100), RandomModel(seed + 1, end_bias=-100)
    output = decoded(target, small, bild(window, 0.0, 100.0), prompt, limit)
    expected: list[int] = []
    while len(expected) < limit:
        author = target if len(expected) % (window + 1) == window or len(expected) == limit - 1 else small
        expected += greedy(author, (*prompt, *expected), 1)
    assert list(output.tokens) == expected
    assert (output.passes, output.draft_passes) == (-(-limit // (window + 1)), limit - output.passes)


def test_unsure_small_model_leaves_plain_pass() -> None:
    target, small = RandomModel(3, end_bias=-100), RandomModel(4)
    sure = probabilities(small, (1, 2)).max()
    drafted = decoded(target, small, bild(10, float(sure) - 1e-9), (1, 2), 2)
    unsure = decoded(target, small, bild(10, float(sure) + 1e-9), (1, 2), 2)
    assert (drafted.drafted, unsure.drafted) == (1, 0)
    assert list(unsure.tokens) == greedy(target, (1, 2), 2)


class Script(RandomModel):
    """Writes one text with the same certainty, whatever the prompt of two ids is."""

    def __init__(self, *text: int, certainty: float = 5.0) -> None:
        super().__init__(0)
        self.text, self.certainty = text, certainty

    def logits(self, ids: Sequence[int]) -> np.ndarray:
        logits = np.zeros(self.vocabulary)
        logits[self.text[min(len(ids) - 2, len(self.text) - 1)]] = self.certainty
        return logits


def test_fallback_of_one_and_certain_model() -> None:
    output = decoded(Script(5, 6, END), Script(5, 6, END, certainty=1000.0), bild(fallback=1.0), (1, 2), 9)
    assert (output.drafted, output.passes, output.draft_passes) == (0, 3, 3)


def test_fallback_of_one_and_rounding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(NumpyRows, "logprob", lambda *_: 1e-7)
    assert decoded(Script(5, END), Script(5, END), bild(fallback=1.0), (1, 2), 9).drafted == 0


def test_end_of_small_model() -> None:
    target, small = Script(5, 6, END), Script(5, 6, END, 7)
    output = decoded(target, small, bild(), (1, 2), 9)
    assert output == Output((5, 6), True, passes=1, drafted=3, accepted=3, draft_passes=3, end_drafted=True)
    assert target.requests[0].draft.tokens == (5, 6, END)
    assert set(target.requests[0].draft.provenance) == {Provenance.MODEL}


def test_refused_end_of_small_model() -> None:
    target, small = Script(5, 6, 7, END), Script(5, END, 7, END)
    output = decoded(target, small, bild(), (1, 2), 9)
    assert output == Output((5, 6, 7), True, passes=2, drafted=4, accepted=3, draft_passes=4, end_drafted=True)


def test_kept_end_of_small_model() -> None:
    target, small = Script(5, 6, 7, END, certainty=1.0), Script(5, END)
    assert decoded(target, small, bild(rollback=4.0), (1, 2), 9).tokens == (5,)
    assert decoded(target, small, bild(rollback=2.0), (1, 2), 9).tokens == (5, 6, 7)


def test_end_that_rollback_produces_ends_output() -> None:
    target, small = Script(5, END), Script(5, 6, 7, 8)
    output = decoded(target, small, bild(), (1, 2), 9)
    assert output == Output((5,), True, passes=1, drafted=8, accepted=1, draft_passes=8)


def test_nothing_is_asked_where_draft_has_no_room() -> None:
    small = Script(5)
    output = decoded(Script(5), small, bild(), (1, 2), 1)
    assert (output.tokens, output.passes, output.draft_passes, small.requests) == ((5,), 1, 0, [])


def test_small_model_reads_encoders_ids() -> None:
    small, parts = Script(5), bild(2)
    asking = decode(Prompt((1, 2), encoder=(8, 9)), *parts, end_tokens=small.end_tokens, limit=4)
    run_together([(asking, {TARGET: 0, DRAFT_MODEL: 0})], {TARGET: Script(6), DRAFT_MODEL: small})
    assert [score.encoder for score in small.requests] == [(8, 9)] * len(small.requests)
    assert [score.prefix for score in small.requests[:2]] == [(1, 2), (1, 2, 5)]


SAMPLED: dict[str, Value] = {"temperature": 1.0, "top_p": 0.8, "fallback": 0.3, "window": 4}


class TestSampling:
    """Section 7.4: tokens are drawn from nuclei, the policies stay."""

    def sample(self, seed: int, **options: Value) -> Output:
        target, small = RandomModel(11, end_bias=-3), RandomModel(12, end_bias=-3)
        return decoded(target, small, built("bild", **{**SAMPLED, **options, "seed": seed}), (1, 2), 12)

    def test_seed_decides(self) -> None:
        assert self.sample(1) == self.sample(1)
        assert len({self.sample(seed).tokens for seed in range(10)}) > 5

    @pytest.mark.parametrize("options", [{"top_p": 0.0}, {"temperature": 0.0}, {"temperature": 1e-9}])
    def test_without_spread_it_is_greedy_bild(self, options: dict[str, Value]) -> None:
        target, small = RandomModel(11, end_bias=-3), RandomModel(12, end_bias=-3)
        expected = algorithm_1(target, small, (1, 2), 12, (4, 0.3, 2.0, True))
        for seed in range(3):
            output = self.sample(seed, **options)
            assert (list(output.tokens), output.passes, output.draft_passes) == expected

    def test_every_token_is_one_of_nucleus(self) -> None:
        models = RandomModel(11, end_bias=-3), RandomModel(12, end_bias=-3)
        for seed in range(10):
            tokens = self.sample(seed, top_p=0.5).tokens
            for place, token in enumerate(tokens):
                allowed: set[int] = set()
                for model in models:
                    p = probabilities(model, (1, 2, *tokens[:place]))
                    allowed |= {other for other in range(12) if p[p > p[other]].sum() < 0.5}
                assert token in allowed

    def test_fallback_by_best_probability(self) -> None:
        small = RandomModel(12)
        best = float(probabilities(small, (1, 2)).max())
        for seed in range(5):
            assert self.first_draft(small, best - 1e-9, seed) >= 1
            assert self.first_draft(small, best + 1e-9, seed) == 0

    def first_draft(self, small: RandomModel, fallback: float, seed: int) -> int:
        target = RandomModel(11)
        parts = built("bild", **{**SAMPLED, "fallback": fallback, "seed": seed})
        decoded(target, small, parts, (1, 2), 12)
        return len(target.requests[0].draft)


class TestBehindThePreviousOutput:
    """``ssbd-bild``."""

    @given(seeds, prompts, limits, st.floats(0, 1))
    def test_without_previous_output_it_is_bild(
        self, seed: int, prompt: tuple[int, ...], limit: int, fallback: float
    ) -> None:
        outputs = []
        for parts in (built("bild", fallback=fallback, end="verified"), built("ssbd-bild", fallback=fallback)):
            outputs.append(decoded(RandomModel(seed), RandomModel(seed + 1), parts, prompt, limit))
        assert outputs[0] == outputs[1]

    @given(seeds, prompts, limits, st.lists(st.integers(1, 11), max_size=12).map(tuple), st.floats(0, 1))
    def test_with_small_model_that_is_never_sure_it_is_ssbd(
        self, seed: int, prompt: tuple[int, ...], limit: int, previous: tuple[int, ...], beta: float
    ) -> None:
        target = RandomModel(seed)
        combined = built("ssbd-bild", beta=beta, fallback=1)
        first = decoded(target, RandomModel(seed + 1), combined, prompt, limit, previous)
        second = decoded(target, RandomModel(seed + 1), built("ssbd", beta=beta), prompt, limit, previous)
        assert (first.tokens, first.passes, first.accepted) == (second.tokens, second.passes, second.accepted)

    def test_each_draft_has_its_own_rule(self) -> None:
        # The previous output is refused by the bias, the small model's draft of the same kind is kept by the rollback.
        target, small = Script(5, 6, 7, 8, 9, END, certainty=1.0), Script(5, 6, 4, 8, 4, END)
        output = decoded(target, small, built("ssbd-bild", beta=0.1, rollback=4), (1, 2), 9, previous=(5, 4, 4))
        assert output.tokens == (5, 6, 4, 8, 4)
        assert [set(score.draft.provenance) for score in target.requests] == [
            {Provenance.PREVIOUS},
            {Provenance.MODEL},
        ]
        assert (output.passes, output.drafted, output.accepted, output.draft_passes) == (2, 7, 5, 4)


def test_early_exit_is_bild_by_another_small_model() -> None:
    models = RandomModel(7), RandomModel(8)
    exits = decoded(*models, built("bild-early-exit", layers=1), (1, 2), 12)
    assert exits == decoded(*models, built("bild"), (1, 2), 12)


def test_other_rules_meet_small_models_draft() -> None:
    target, small = RandomModel(7, end_bias=-100), RandomModel(8, end_bias=-100)
    drafter = SmallModel(GREEDY, 5, target.end_tokens)
    output = decoded(target, small, (drafter, Everything()), (1, 2), 6)
    assert list(output.tokens[:5]) == greedy(small, (1, 2), 5)
    assert target.requests == [Score((1, 2), target.requests[0].draft)]


@given(seeds, prompts, limits, rollbacks)
def test_replacement_of_improbable_tokens(seed: int, prompt: tuple[int, ...], limit: int, rollback: float) -> None:
    target, small = RandomModel(seed), RandomModel(seed + 1)
    output = decoded(target, small, built("bild-replacement", rollback=rollback), prompt, limit)
    expected, replaced = list[int](), 0
    while len(expected) < limit and END not in expected:
        large, own = (probabilities(model, [*prompt, *expected]) for model in (target, small))
        token = int(own.argmax())
        if len(expected) == limit - 1:  # no room for a draft
            token = int(large.argmax())
        elif -np.log(large[token]) > rollback:
            token, replaced = int(large.argmax()), replaced + 1
        expected.append(token)
    assert [*output.tokens, *[END] * output.finished] == expected
    assert (output.passes, output.drafted - output.accepted) == (len(expected), replaced)


@given(seeds, prompts, st.floats(0, 1))
def test_confidence_by_the_lead_of_the_best_token(seed: int, prompt: tuple[int, ...], fallback: float) -> None:
    target, small = RandomModel(seed), RandomModel(seed + 1)
    decoded(target, small, built("bild", fallback=fallback, confidence="margin", window=5), prompt, 9)
    drafted = target.requests[0].draft.tokens if target.requests else ()
    for place in range(len(drafted)):
        second, first = sorted(probabilities(small, [*prompt, *drafted[:place]]))[-2:]
        assert first - second > fallback - 1e-9
    if target.requests and len(drafted) < 5 and END not in drafted:
        second, first = sorted(probabilities(small, [*prompt, *drafted]))[-2:]
        assert first - second <= fallback + 1e-9
