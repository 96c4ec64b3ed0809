"""Equation 3 against its definition, and the end token's exemption from the bias."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from redraft.backends.numpy_rows import NumpyRows
from redraft.decoding.decode import decode
from redraft.decoding.drive import run
from redraft.decoding.method import Setup
from redraft.decoding.methods import get_method
from redraft.decoding.methods.ssbd import Biased
from redraft.decoding.types import ROOT, Draft, Prompt, Provenance
from tests.fakes import END, RandomModel, greedy


def rows(*distributions: list[float]) -> NumpyRows:
    with np.errstate(divide="ignore"):
        return NumpyRows(np.log(np.array(distributions)), 0)


def chain(*tokens: int) -> Draft:
    return Draft.chain(tokens, Provenance.PREVIOUS)


@given(
    st.lists(st.floats(0.01, 1), min_size=3, max_size=6),
    st.integers(1, 5),
    st.floats(0.0, 0.49),
)
def test_argmax_of_mixture(weights: list[float], token: int, beta: float) -> None:
    assume(token < len(weights))
    p = np.array(weights) / sum(weights)
    mixed = (1 - beta) * p
    mixed[token] += beta
    best = int(np.log(p).argmax())  # probabilities that differ in the last bit may have the same logarithm
    assume(best != END)
    # Near ties of the mixture are decided by rounding, which the definition does not fix.
    others = np.delete(mixed, token)
    assume(abs(mixed[token] - others.max()) > 1e-9)
    verdict = Biased(beta, 0.0, frozenset({END})).judge(chain(token), rows(list(p), list(p)))
    assert bool(verdict.accepted) == (int(mixed.argmax()) == token)
    assert verdict.token == best


def test_rule_is_difference_not_ratio() -> None:
    # p_max - p_draft = 0.2 <= 0.25, though the ratio 0.05 / 0.25 is far below (1 - 2 beta) / (1 - beta).
    spread = [0.0, 0.25, 0.05, 0.2, 0.2, 0.15, 0.15]
    assert Biased(0.2).judge(chain(2), rows(spread, spread)).accepted == (0,)


def test_token_as_probable_as_bound_is_kept() -> None:
    # beta / (1 - beta) = 0.5 - 0.25
    spread = [0.0, 0.5, 0.25, 0.25]
    assert Biased(0.2).judge(chain(2), rows(spread, spread)).accepted == (0,)
    assert Biased(0.19).judge(chain(2), rows(spread, spread)).accepted == ()


@pytest.mark.parametrize("beta", [0.5, 1.0])
def test_from_one_half_on_even_end_does_not_count(beta: float) -> None:
    ending = [0.98, 0.01, 0.01]
    assert Biased(beta, 0.0, frozenset({END})).judge(chain(1), rows(ending, ending)).accepted == (0,)
    assert Biased(beta, 0.001, frozenset({END})).judge(chain(1), rows(ending, ending)).accepted == ()


def test_floor_stops_improbable_tokens() -> None:
    spread = [0.0, 0.25, 0.05, 0.2, 0.2, 0.15, 0.15]
    assert Biased(0.2, floor=0.1).judge(chain(2), rows(spread, spread)).accepted == ()
    assert Biased(0.2, floor=0.1).judge(chain(3), rows(spread, spread)).accepted == (0,)


@pytest.mark.parametrize("beta", [0.0, 0.2, 0.49])
def test_bias_does_not_refuse_end(beta: float) -> None:
    ending = [0.41, 0.4, 0.19]
    verdict = Biased(beta, 0.0, frozenset({END})).judge(chain(1), rows(ending, ending))
    assert (verdict.accepted, verdict.token) == ((), END)


@pytest.mark.parametrize("beta", [0.0, 0.2, 0.49])
def test_bias_does_not_keep_end(beta: float) -> None:
    going_on = [0.4, 0.41, 0.19]
    verdict = Biased(beta, 0.0, frozenset({END})).judge(chain(END), rows(going_on, going_on))
    assert (verdict.accepted, verdict.token) == ((), 1)


def test_end_that_target_wants_is_kept() -> None:
    ending = [0.41, 0.4, 0.19]
    assert Biased(0.2, 0.0, frozenset({END})).judge(chain(END), rows(ending, ending)).accepted == (0,)


def test_zero_bias_does_not_accept_ties() -> None:
    tie = [0.0, 0.5, 0.5]
    assert Biased(0.0).judge(chain(2), rows(tie, tie)).accepted == ()
    assert Biased(0.0).judge(chain(1), rows(tie, tie)).accepted == (0,)


def test_stops_at_first_refusal() -> None:
    sure = [0.0, 0.9, 0.05, 0.05]
    verdict = Biased(0.2).judge(chain(1, 2, 1), rows(sure, sure, sure, sure))
    assert (verdict.accepted, verdict.token) == ((0,), 1)


#: Prefers token 1 by 0.2 to token 2.
CLOSE = [0.0, 0.4, 0.2, 0.2, 0.1, 0.1]


@pytest.mark.parametrize(("beta", "hidden", "kept"), [(0.3, 0.0, 2), (0.3, 0.05, 2), (0.3, 0.3, 4), (0.0, 0.3, 0)])
def test_bias_where_it_is_seen(beta: float, hidden: float, kept: int) -> None:
    draft = Draft.previous((2, 2, 2, 2), 2)
    verdict = Biased(beta, hidden=hidden).judge(draft, rows(*[CLOSE] * 5))
    assert (verdict.accepted, verdict.token) == (tuple(range(kept)), 1)
    assert Biased(beta, hidden=hidden).biases(draft) == (beta, beta, hidden, hidden)


@given(
    st.lists(st.lists(st.floats(0.01, 1), min_size=4, max_size=4), min_size=5, max_size=5),
    st.lists(st.integers(0, 3), min_size=4, max_size=4),
    st.sampled_from([0.0, 0.1, 0.2, 0.45, 0.5, 1.0]),
    st.sampled_from([0.0, 0.15]),
    st.integers(0, 4),
)
def test_equal_betas_are_one(
    weights: list[list[float]], tokens: list[int], beta: float, floor: float, shown: int
) -> None:
    spread = rows(*(list(np.array(each) / sum(each)) for each in weights))
    ends = frozenset({END})
    one = Biased(beta, floor, ends).judge(chain(*tokens), spread)
    assert Biased(beta, floor, ends, beta).judge(Draft.previous(tokens, shown), spread) == one
    assert Biased(beta, floor, ends).judge(Draft.previous(tokens, shown), spread) == one


@pytest.mark.parametrize("hidden", [0.0, 0.3, 1.0])
def test_hidden_beta_is_for_hidden_tokens_alone(hidden: float) -> None:
    draft = Draft.previous((2, 2), 2)
    assert Biased(0.3, hidden=hidden).judge(draft, rows(CLOSE, CLOSE, CLOSE)).accepted == (0, 1)


def test_floor_holds_for_both_betas() -> None:
    for shown in (0, 1):
        rule = Biased(1.0, 0.15, hidden=1.0)
        assert rule.judge(Draft.previous((2,), shown), rows(CLOSE, CLOSE)).accepted == (0,)
        assert rule.judge(Draft.previous((4,), shown), rows(CLOSE, CLOSE)).accepted == ()


@pytest.mark.parametrize("shown", [0, 1])
def test_bias_does_not_keep_end_that_is_hidden_or_shown(shown: int) -> None:
    going_on = [0.4, 0.41, 0.19]
    verdict = Biased(0.4, 0.0, frozenset({END}), 0.3).judge(Draft.previous((END,), shown), rows(going_on, going_on))
    assert (verdict.accepted, verdict.token) == ((), 1)


@pytest.mark.parametrize("beta", [0.3, 0.5, 1.0])
@pytest.mark.parametrize("provenance", [Provenance.PROMPT, Provenance.MODEL, "from a plug-in"])
def test_guesses_behind_are_exact(provenance: str, beta: float) -> None:
    """Two branches of guesses behind two tokens of the previous output, one of them shown."""
    draft = Draft((2, 3, 2, 1, 2), (ROOT, 0, 1, 1, 3), (Provenance.SHOWN, Provenance.PREVIOUS, *[provenance] * 3))
    rule = Biased(beta, hidden=beta)
    verdict = rule.judge(draft, rows(*[CLOSE] * 6))
    assert (verdict.accepted, verdict.token) == ((0, 1, 3), 1), "the target's own token, and not the bias's"
    assert rule.biases(draft) == (beta, beta, 0.0, 0.0, 0.0)


def algorithm_1(
    model: RandomModel, prompt: tuple[int, ...], previous: tuple[int, ...], beta: float, limit: int
) -> list[int]:
    """SSBD v2, Algorithm 1, for tokens that are drawn greedily; the bias decides on the end like on any token."""
    output: list[int] = []
    for drafted in previous[: limit - 1]:
        p = np.exp(model.logits([*prompt, *output]))
        biased = (1 - beta) * p / p.sum()
        biased[drafted] += beta
        if int(biased.argmax()) != drafted:
            break
        output.append(drafted)
    while len(output) < limit:
        token = int(model.logits([*prompt, *output]).argmax())
        if token == END:
            break
        output.append(token)
    return output


def test_end_by_the_paper() -> None:
    """With ``end=biased``, outputs are those of Algorithm 1; by default, some of them end where the model ends them."""
    different = 0
    for seed in range(200):
        model = RandomModel(seed, end_bias=0.5)
        prompt, previous = (1, 2, 3, seed % 9 + 1), tuple(greedy(RandomModel(seed), (1, 2, 3), 12))
        found = []
        for end in ("biased", "model"):
            method = get_method("ssbd")
            drafter, rule = method.build(Setup(method.check({"beta": 0.4, "end": end}), model.end_tokens))
            asking = decode(Prompt(prompt), drafter, rule, previous=previous, end_tokens=model.end_tokens, limit=20)
            found.append(list(run(asking, model, 0).tokens))
        assert found[0] == algorithm_1(model, prompt, previous, 0.4, 20)
        different += found[0] != found[1]
    assert different > 3
