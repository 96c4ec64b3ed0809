"""The dependency graph: what the paper defines holds for random models, any Jacobi method and both stopping rules."""

from __future__ import annotations

import io
import xml.etree.ElementTree as ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from redraft.decoding.decode import decode
from redraft.decoding.drive import run
from redraft.decoding.method import Setup
from redraft.decoding.methods import get_method
from redraft.decoding.types import Prompt
from redraft.errors import InputError
from redraft_bench.ddg import END as ENDED
from redraft_bench.ddg import SOURCE, Graph, Guess, Iteration, Iterations, Node, graph, layout, svg
from tests.fakes import END, RandomModel, greedy

JACOBI = ("jacobi", "gs-jacobi", "hybrid-jacobi")


def name(token: int) -> str:
    return f" t{token}"


def iterations(model: RandomModel, method: str, stopping: str, limit: int = 20) -> Iterations:
    chosen = get_method(method)
    drafter, rule = chosen.build(Setup(chosen.check({"stopping": stopping}), model.end_tokens, 1))
    found = Iterations(drafter)
    run(decode(Prompt((1, 2)), found, rule, end_tokens=model.end_tokens, limit=limit), model, 0)
    return found


@given(st.integers(0, 10_000), st.sampled_from(JACOBI), st.sampled_from(["paper", "fast-forward"]))
def test_nodes(seed: int, method: str, stopping: str) -> None:
    model = RandomModel(seed, vocabulary=5, end_bias=-1.0)
    found = graph(iterations(model, method, stopping), model.end_tokens, name)
    tokens = [each.token for each in found.nodes]
    expected = greedy(model, (1, 2), 20)
    assert tokens in (expected, [*expected, END])
    for place, each in enumerate(found.nodes):
        # From its iteration on, and not in the one before, every guess is the token.
        guesses = [row[place] for row in found.grid]
        label = ENDED if each.token == END else name(each.token)
        assert all(guess in (None, label) for guess in guesses[max(0, each.iteration - 1) :])
        assert 0 < each.probability <= 1
        earlier = [p for p in range(place) if found.nodes[p].iteration < each.iteration]
        assert found.as_json()["tokens"][place]["depends_on"] == earlier and each.depends_on == len(earlier)
        assert each.waited_for == SOURCE if not earlier else each.waited_for in earlier
    assert len(found.grid) <= len(expected) + 1


def stepped(*passes: tuple[int, list[int], list[int]], output: list[int]) -> Iterations:
    """Iterations by hand: tokens before each, what it reads, and what it predicts."""
    made = Iterations(None)  # type: ignore[arg-type]
    made.passes = [Iteration(s, tuple(read), tuple(Guess(each, 0.5) for each in best)) for s, read, best in passes]
    made.output = output
    return made


def test_tokens_that_become_final_together_wait_for_the_same() -> None:
    found = graph(
        stepped(
            (0, [1, 1, 1], [5, 9, 7, 8]),  # the third is right by chance, before the second
            (1, [9, 7, 8], [6, 4, 3, 2]),
            (2, [4, 3, 2], [7, 8, END, 2]),
            output=[5, 6, 7, 8, END],
        ),
        frozenset({END}),
        str,
    )
    shape = [(each.text, each.iteration, each.waited_for, each.together) for each in found.nodes]
    assert shape == [
        *[("5", 1, SOURCE, False), ("6", 2, 0, False)],
        *[("7", 3, 1, True), ("8", 3, 1, True), (ENDED, 3, 1, True)],
    ]
    assert found.grid[0] == ("5", "9", "7", "8", None)


def test_output_that_is_not_greedy_is_refused() -> None:
    with pytest.raises(InputError, match="greedy"):
        graph(stepped((0, [4], [5, 6]), output=[4, 6]), frozenset({END}), str)


@pytest.mark.parametrize("width", [30, 60, 200])
def test_picture_fits_and_shows_all(width: int) -> None:
    texts = ["我们", "在", "Bahnhof", "getroffen", ".", "日本語", "e", "f", "g", "h"]
    nodes = [Node(n, text, n // 3 + 1, 0.91, n // 3 * 3 - 1, 0, True) for n, text in enumerate(texts)]
    found = Graph(tuple(nodes), tuple(tuple(texts) for _ in range(4)))
    console = Console(width=width, record=True, file=io.StringIO())
    console.print(layout(found, "x" * 10, width))
    lines = console.export_text().splitlines()
    assert all(cell_len(line) <= width for line in lines)
    for text in texts:
        assert any(text[:6] in line for line in lines)
    assert sum(line.count(".91") for line in lines) == len(texts)
    # Every edge is drawn whole, or its other end is named.
    drawn = [line for line in lines if {*line.strip()} <= {*"╭─┬╮│┼├┤ "} and "─" in line]
    assert all(line.count("╭") + line.count("├") == line.count("╮") + line.count("┤") for line in drawn)
    assert any("←" in line for line in lines) == (width < 200) and any("┬" in line for line in drawn) == (width > 30)
    root = ElementTree.fromstring(svg([(found, "title")]))
    for element in root.iter("{http://www.w3.org/2000/svg}text"):
        content = "".join(element.itertext())
        assert float(element.get("textLength", 0)) == pytest.approx(12.2 * cell_len(content))
