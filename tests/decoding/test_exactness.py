"""Every method with an exact rule decodes as greedy decoding does, over random models, prompts and previous outputs.

Ids, the end, and passes: no more than greedy decoding needs, trees and Jacobi's confirming passes included.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redraft.decoding.decode import decode
from redraft.decoding.drive import run_together
from redraft.decoding.ends import NO_BREAKS, LineBreaks
from redraft.decoding.method import Setup, Value
from redraft.decoding.methods import all_methods, get_method
from redraft.decoding.selection import EVERYTHING, Selection
from redraft.decoding.types import DRAFT_MODEL, TARGET, Output, Prompt
from tests.fakes import RandomModel, greedy

#: Method -> options with which its rule is exact.
EXACT: list[tuple[str, dict[str, Value]]] = [
    ("ar", {}),
    ("ssbd", {"beta": 0}),
    ("redraft", {"beta": 0, "hidden_beta": 0}),
    ("pld", {}),
    ("ssbd-pld", {"beta": 0}),
    ("aasd", {"verification": "exact"}),
    ("aasd", {"verification": "exact", "width": 0}),
    ("jacobi", {}),
    ("jacobi", {"stopping": "paper"}),
    ("jacobi", {"start": "previous"}),
    ("gs-jacobi", {"block": 4}),
    ("gs-jacobi", {"block": 4, "stopping": "paper", "start": "source"}),
    ("hybrid-jacobi", {"block": 3, "parallel": 7}),
    ("hybrid-jacobi", {"block": 3, "parallel": 7, "stopping": "paper"}),
    ("bild", {"fallback": 1}),
    ("bild-early-exit", {"fallback": 1}),
    ("bild-replacement", {"rollback": 0}),
    ("ssbd-bild", {"beta": 0, "fallback": 1}),
    ("fly", {"entropy": 2}),
    ("ssbd-aasd", {"verification": "exact"}),
    ("ssbd-aasd", {"alpha": 0, "beta": 1}),
    ("sampling", {"temperature": 0}),
    ("speculative-sampling", {"temperature": 0}),
]
#: Methods that have no exact setting.
OTHERS = {"beam", "cd"}

ids = st.lists(st.integers(1, 5), min_size=1, max_size=10).map(tuple)


def decoded(
    name: str,
    options: dict[str, Value],
    model: RandomModel,
    prompt: tuple[int, ...],
    previous: tuple[int, ...],
    limit: int,
    selection: Selection = EVERYTHING,
    breaks: LineBreaks = NO_BREAKS,
) -> Output:
    method, small = get_method(name), RandomModel(model.seed, model.vocabulary, shift=1.5)
    drafter, rule = method.build(Setup(method.check(options), model.end_tokens | breaks.ends, model.pad_token))
    asking = decode(
        Prompt(prompt, source_ids=prompt, selection=selection),
        drafter,
        rule,
        previous=previous,
        end_tokens=model.end_tokens,
        line_end=breaks.end,
        limit=limit,
    )
    return run_together([(asking, {TARGET: 0, DRAFT_MODEL: 0})], {TARGET: model, DRAFT_MODEL: small})[0]


@pytest.mark.parametrize(("name", "options"), EXACT, ids=lambda value: str(value))
@given(
    st.integers(0, 10_000),
    ids,
    ids,
    st.integers(1, 30),
    st.sampled_from([-3.0, 0.0, 0.5]),
    st.sampled_from(
        [
            EVERYTHING,
            Selection(frozenset({2, 4})),
            Selection(
                frozenset({2, 4, 5}), frozenset({3, 4, 5}), frozenset({2, 3, 4, 5}), frozenset({(2, 4), (3, 5, 4)})
            ),
        ]
    ),
    st.sampled_from([NO_BREAKS, LineBreaks(frozenset({3}), frozenset({5}), frozenset({2, 3}))]),
)
def test_greedy_ids_in_no_more_passes(
    name: str,
    options: dict[str, Value],
    seed: int,
    prompt: tuple[int, ...],
    previous: tuple[int, ...],
    limit: int,
    end_bias: float,
    selection: Selection,
    breaks: LineBreaks,
) -> None:
    model = RandomModel(seed, vocabulary=6, end_bias=end_bias)
    expected = greedy(model, prompt, limit, selection, breaks)
    output = decoded(name, options, model, prompt, previous, limit, selection, breaks)
    assert list(output.tokens) == expected
    assert output.finished == (len(expected) < limit or not breaks.within.isdisjoint(expected))
    assert output.passes == len(model.requests)
    assert output.passes <= len(expected) + output.finished


@pytest.mark.parametrize(("name", "options"), EXACT, ids=lambda value: str(value))
def test_drafts_are_worth_something(name: str, options: dict[str, Value]) -> None:
    """On models whose next token hangs on the last two only, every drafter that is to save passes does."""
    saved = 0
    for seed in range(30):
        model = RandomModel(seed, vocabulary=6, shift=0.0, end_bias=-9.0)
        prompt = (1, 2, *greedy(model, (1, 2), 30)[:20])
        previous = tuple(greedy(model, prompt, 12))
        output = decoded(name, options, model, prompt, previous, 30)
        saved += len(output.tokens) - output.passes
    assert (saved == 0) == (name in ("ar", "sampling", "bild-replacement") or options == {"fallback": 1})
    assert saved >= 0


def test_every_method_is_covered() -> None:
    assert {name for name, _ in EXACT} | OTHERS == set(all_methods())
