"""The draft pool against a search written without it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from redraft.decoding.methods.lookup import Pool
from redraft.decoding.types import Context, Prompt, Provenance

END = 0
ids = st.lists(st.integers(0, 3), max_size=12).map(tuple)


def context(prompt: tuple[int, ...], output: tuple[int, ...] = (), encoder: tuple[int, ...] = ()) -> Context:
    return Context(Prompt(prompt, encoder=encoder), output, (), 10)


def searched(text: tuple[int, ...], longest: int) -> list[int]:
    """The places after the earlier occurrences of the longest end of the text that has any."""
    for length in range(min(longest, len(text)), 0, -1):
        key = text[-length:]
        places = [place for place in range(length, len(text)) if text[place - length : place] == key]
        if places:
            return places
    return []


@given(ids, ids, ids, st.integers(1, 5), st.data())
def test_finds_longest_key_however_output_comes_in(
    encoder: tuple[int, ...], prompt: tuple[int, ...], output: tuple[int, ...], longest: int, data: st.DataObject
) -> None:
    pool = Pool(longest)
    stops = sorted(data.draw(st.lists(st.integers(0, len(output)), max_size=4)))
    for stop in (0, *stops, len(output)):
        pool.read(context(prompt, output[:stop], encoder))
        assert list(pool.find()) == searched(encoder + prompt + output[:stop], longest)
    assert tuple(pool.text) == encoder + prompt + output


def test_longer_keys_come_first() -> None:
    pool = Pool(3)
    pool.read(context((1, 2, 7, 3, 2, 8, 1, 2)))
    assert list(pool.find()) == [2], "after 1 2, not after 3 2"
    pool = Pool(1)
    pool.read(context((1, 2, 7, 3, 2, 8, 1, 2)))
    assert list(pool.find()) == [2, 5]


def test_end_that_has_not_been_read_before_finds_nothing() -> None:
    pool = Pool(6)
    assert list(pool.find()) == []
    pool.read(context((1, 2, 3)))
    assert list(pool.find()) == []


def test_ngrams_stop_at_text_s_end_and_before_end_token() -> None:
    pool = Pool(6, frozenset({END}))
    pool.read(context((1, 2), (3, 4, END, 5)))
    given_, generated = Provenance.PROMPT, Provenance.GENERATED
    assert pool.ngram(1, 2) == [(2, given_), (3, generated)], "it may begin in the prompt and end in the output"
    assert pool.ngram(1, 9) == [(2, given_), (3, generated), (4, generated)]
    assert pool.ngram(4, 3) == []
    assert pool.ngram(5, 3) == [(5, generated)]
    assert pool.ngram(1, 0) == pool.ngram(9, 3) == []


def test_what_encoder_reads_counts_as_prompt() -> None:
    pool = Pool(6)
    pool.read(context((9,), (1,), encoder=(1, 2)))
    assert list(pool.find()) == [1]
    assert pool.ngram(1, 3) == [(2, Provenance.PROMPT), (9, Provenance.PROMPT), (1, Provenance.GENERATED)]
