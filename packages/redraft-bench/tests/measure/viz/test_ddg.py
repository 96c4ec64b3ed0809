"""Which tokens wait for which: on hand-made iterations, and on a table model against iterations written out here."""

from __future__ import annotations

import pytest

from measure.viz.traces import decoded, iterations
from redraft_bench.viz.ddg import SOURCE, Graph, graph
from tests.fakes import END, RandomModel, greedy

PAD = 1


def resolved(found: Graph) -> list[int]:
    return [token.iteration for token in found.tokens]


def waited_for(found: Graph) -> list[int]:
    return [token.waited_for for token in found.tokens]


def test_tokens_of_one_iteration_do_not_depend_on_each_other() -> None:
    # As y_4, y_5 and y_6 of Figure 4: the second and the third token both wait for the first alone.
    found = graph(iterations([PAD] * 4, [5, 9, 9, 9], [5, 6, 7, 9], [5, 6, 7, 8]))
    assert resolved(found) == [1, 2, 2, 3]
    assert waited_for(found) == [SOURCE, 0, 0, 2]
    assert [token.parallel for token in found.tokens] == [False, True, True, False]
    assert [found.dependencies(place) for place in range(4)] == [(), (0,), (0,), (0, 1, 2)]
    assert found.iterations == 4  # the last one confirms


def test_token_waits_for_last() -> None:
    # The third token is known at once, so the fourth waits for the second and not for its neighbour.
    found = graph(iterations([PAD] * 4, [5, 9, 7, 9], [5, 6, 7, 9], [5, 6, 7, 8]))
    assert resolved(found) == [1, 2, 1, 3]
    assert waited_for(found) == [SOURCE, 0, SOURCE, 1]
    assert found.dependencies(3) == (0, 1, 2)
    assert [token.parallel for token in found.tokens] == [True, False, True, False]


@pytest.mark.parametrize("stopping", ["paper", "fast-forward"])
@pytest.mark.parametrize("seed", range(3))
def test_jacobi_on_table_is_jacobi_written_out(seed: int, stopping: str) -> None:
    model, prompt = RandomModel(seed, vocabulary=5, end_bias=-99.0), (1, 2, 3, 4)
    model.pad_token = END  # nothing that the output could hold
    output, trace = decoded(model, "jacobi", prompt=prompt, options={"stopping": stopping}, limit=8)
    guesses = [[END] * 8]
    while guesses[-1] != list(output.tokens):
        read = [*prompt, *guesses[-1]]
        guesses.append([int(model.logits(read[: len(prompt) + place]).argmax()) for place in range(8)])
    wrong = [
        max(when for when, guess in enumerate(guesses) if guess[place] != output.tokens[place]) for place in range(8)
    ]
    assert resolved(graph(trace)) == [when + 1 for when in wrong]


@pytest.mark.parametrize("method", ["jacobi", "gs-jacobi", "hybrid-jacobi"])
@pytest.mark.parametrize("seed", range(3))
def test_no_dependence_on_later_iterations(seed: int, method: str) -> None:
    model = RandomModel(seed, vocabulary=5, shift=0.2, end_bias=-1.0)
    output, trace = decoded(model, method, limit=16)
    found = graph(trace)
    assert [token.token for token in found.tokens][: len(output.tokens)] == greedy(model, (1, 2, 3, 4), 16)
    assert found.iterations == output.passes
    for place, token in enumerate(found.tokens):
        assert 0 <= token.iteration <= output.passes
        assert token.waited_for < place
        assert (token.waited_for == SOURCE) == (not found.dependencies(place))
        if token.waited_for != SOURCE:
            assert found.tokens[token.waited_for].iteration < token.iteration
            assert token.waited_for in found.dependencies(place)


def test_autoregression_is_chain() -> None:
    output, trace = decoded(RandomModel(1, end_bias=-9.0), "ar", limit=6)
    found = graph(trace)
    assert resolved(found) == [1, 2, 3, 4, 5, 6]
    assert waited_for(found) == [SOURCE, 0, 1, 2, 3, 4]
    assert found.dependencies(5) == (0, 1, 2, 3, 4)
    assert output.passes == found.iterations
