"""The draft view: origins and counts agree with the loop's, notes say why nothing was decoded, and texts are drawn."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

import pytest

from redraft.captions.events import Caption, Event, Failure, Update
from redraft.decoding.backend import Capability
from redraft.decoding.decode import decode
from redraft.decoding.drafters import Nothing
from redraft.decoding.drive import run
from redraft.decoding.method import Setup
from redraft.decoding.methods import all_methods, get_method
from redraft.decoding.types import Draft, Prompt, Provenance, Verdict
from redraft_bench.viz import ORIGINS, DraftRow, Given, Trace, Traced, look, summary_of, svg, texts, traced, view
from tests.fakes import END, RandomModel, greedy

METHODS = [
    name
    for name, method in all_methods().items()
    if not method.small_model and not method.needs & {Capability.EARLY_EXIT}
]
WORDS = {2: b" <b>", 3: b" two", 4: b"\xe6\x97", 5: b"\xa5"}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("seed", range(2))
def test_tracing_counts_what_the_loop_counts_and_changes_nothing(method: str, seed: int) -> None:
    plain, watched = (RandomModel(seed, vocabulary=5, end_bias=-1.0) for _ in range(2))
    prompt, previous = (1, 2, 3, 1, 2), tuple(greedy(plain, (1, 2, 3, 1), 12))
    traces: list[Trace] = []

    def made(model: RandomModel, *, watch: bool) -> object:
        chosen = traced(get_method(method), traces) if watch else get_method(method)
        drafter, rule = chosen.build(Setup(chosen.check({}), model.end_tokens, model.pad_token))
        ends = model.end_tokens
        asking = decode(Prompt(prompt, source_ids=prompt), drafter, rule, previous=previous, end_tokens=ends, limit=20)
        return run(asking, model, model.open_slot())

    output = made(watched, watch=True)
    assert output == made(plain, watch=False) and plain.requests[-len(watched.requests) :] == watched.requests
    (trace,) = traces
    row = DraftRow(None, trace)
    assert tuple(token for token, _ in trace.tokens) == output.tokens  # type: ignore[attr-defined]
    counts = output.passes, output.drafted, output.accepted  # type: ignore[attr-defined]
    assert (trace.passes, trace.drafted, row.accepted) == counts


def stepped(*passes: tuple[list[int], int, int]) -> Trace:
    """A trace of chains: drafted tokens, how many were accepted, and the model's own token."""
    trace = Trace(frozenset({END}))
    watched = Traced(Nothing(), trace)
    for drafted, accepted, token in passes:
        verdict = Verdict(tuple(range(accepted)), token)
        watched.observe(Draft.chain(drafted, Provenance.ITERATION), None, verdict)  # type: ignore[arg-type]
    return trace


def test_tokens_know_where_they_came_from() -> None:
    trace = stepped(([5, 6, 7], 2, 8), ([4], 1, 3), ([], 0, 2), ([END], 1, 9))
    assert trace.tokens == [
        (5, Provenance.ITERATION),
        (6, Provenance.ITERATION),
        (8, Given.CORRECTION),
        (4, Provenance.ITERATION),
        (3, Given.BONUS),
        (2, Given.ALONE),
    ]


def rows_of(*made: tuple[Update | Failure, Trace | None, list[Event]]) -> list[DraftRow]:
    """Rows of a stream, from its updates with their traces and events."""
    traces: list[Trace] = []
    found = iter([each for each in made if isinstance(each[0], Update)])

    def translate(update: Update) -> list[Event]:
        _, trace, events = next(found)
        traces.extend([trace] if trace else [])
        return events

    return [*view([item for item, _, _ in made], translate, traces, lambda token: WORDS[token])]


def test_rows_and_picture() -> None:
    first, second = stepped(([], 0, 2)), stepped(([2, 3], 1, 4), ([], 0, 5), ([], 0, END))
    rows = rows_of(
        (Update("u", 0, "one"), first, [Caption("u", 0, "de", "")]),
        (Update("u", 1, "one & two", final=True), second, [Caption("u", 1, "de", "<b>日")]),
    )
    assert [(row.texts, row.shown, row.accepted) for row in rows] == [((" <b>",), 0, 0), ((" <b>", "", "日"), 3, 1)]
    assert summary_of(rows) == "2 updates, 4 tokens in 4 passes, 1 of 2 draft tokens accepted"
    root = ElementTree.fromstring(svg([(rows, "title <x>")]))
    found = "|".join("".join(each.itertext()) for each in root.iter("{http://www.w3.org/2000/svg}text"))
    found = found.replace("\N{NO-BREAK SPACE}", " ")
    for text in ("title <x>", "one & two", "<b>", "日", "1/2", "u.1", ORIGINS[Given.ALONE][0], "not shown yet"):
        assert text in found
    assert ORIGINS[Given.BONUS][0] not in found  # the legend has what occurs


def test_origin_of_a_plug_in_is_in_the_legend() -> None:
    recycled = "recycled tokens"
    trace = Trace(frozenset({END}), [(2, recycled)], passes=1, drafted=1, accepted=1)
    rows = rows_of((Update("u", 0, "one"), trace, [Caption("u", 0, "de", "x")]))
    found = svg([(rows, "title")]).replace("&#160;", " ")
    assert "kept from recycled tokens" in found
    assert look(recycled)[1] in found
    assert look(recycled)[1] not in {colour for _, colour in ORIGINS.values()}


def test_update_without_pass_says_why() -> None:
    rows = rows_of(
        (Update("u", 0, "one"), None, [Caption("u", 0, "de", "eins", source="one")]),
        (Update("u", 1, ""), None, [Caption("u", 1, "de", "")]),
        (Update("u", 2, "long"), None, [Failure("too long")]),
        (Failure("line 4 is broken", 4), None, []),
    )
    assert [row.note for row in rows] == [
        "the same source: no pass; still 'eins'",
        "nothing to translate",
        "too long",
        "line 4 is broken",
    ]
    assert "line 4 is broken" in svg([(rows, "")]).replace("&#160;", " ")


def test_character_of_several_tokens_belongs_to_last() -> None:
    assert texts([b"a\xe6", b"\x97", b"\xa5b", b" c"]) == ("a", "", "日b", " c")
