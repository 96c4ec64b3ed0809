"""What is shown: whole words and characters on which outputs agree, and what stands; mask-k on display and in draft."""

from __future__ import annotations

from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redraft.captions.stabilise import Stabilised, stabilise, whole_characters, whole_words
from redraft.captions.words import WORD, bare

PIECES = [b" Ich", b" habe", b" einen", b" Hu", b"nd"]


def pieces_of(*texts: str) -> list[bytes]:
    return [text.encode() for text in texts]


def shown(view: Stabilised) -> tuple[str, str, int]:
    return view.shown, view.hidden, view.shown_length


def test_nothing_is_hidden_without_mask_or_when_final() -> None:
    for view in (
        stabilise(PIECES, final=False),
        stabilise(PIECES, final=True, mask_k=3),
        stabilise(PIECES, final=True, mask_k=3, plain=True),
        stabilise(PIECES, final=True, confirmed=1),
    ):
        assert (view.shown, view.hidden, view.shown_length, view.draft_length) == ("Ich habe einen Hund", "", 5, 5)


def test_display_only_mask() -> None:
    view = stabilise(PIECES, final=False, mask_k=1)
    assert (view.shown, view.hidden, view.shown_length, view.draft_length) == ("Ich habe einen Hu", "nd", 4, 5)


def test_plain_mask_takes_hidden_tokens_from_draft() -> None:
    view = stabilise(PIECES, final=False, mask_k=2, plain=True)
    assert (view.shown, view.shown_length, view.draft_length) == ("Ich habe einen", 3, 3)


def test_more_hidden_than_there_is_shows_nothing() -> None:
    view = stabilise(PIECES, final=False, mask_k=50, plain=True)
    assert (view.shown, view.hidden, view.draft_length) == ("", "Ich habe einen Hund", 0)


@pytest.mark.parametrize(
    ("confirmed", "text", "length"),
    [
        (0, "", 0),
        (1, "Ich", 1),
        (3, "Ich habe einen", 3),
        (4, "Ich habe einen", 3),  # no half word
        (5, "Ich habe einen Hund", 5),
        (6, "Ich habe einen Hund", 5),  # an end token counts too
        (None, "Ich habe einen Hund", 5),
    ],
)
def test_words_are_shown_whole(confirmed: int | None, text: str, length: int) -> None:
    view = stabilise(PIECES, final=False, confirmed=confirmed)
    assert shown(view) == (text, "Ich habe einen Hund"[len(text) :], length)
    assert view.draft_length == 5, "what is hidden stays in the draft"


@pytest.mark.parametrize(
    ("pieces", "confirmed", "count"),
    [
        ([" Hund", ".", " Er"], 1, 1),  # closing punctuation may follow its word
        ([" Hund", ".”", " Er"], 1, 1),
        ([" Hund", ","], 1, 1),
        ([" (", "Hund", ")"], 1, 0),
        ([" (", "Hund", ")"], 2, 2),
        ([" we", "'re"], 1, 0),
        ([" E", "-", "Mail"], 2, 0),
        ([" 3", ".", "5"], 1, 0),
        ([" 3", ".", "5"], 2, 0),
        ([" 5", "%"], 1, 0),  # read aloud
        ([" C", "#"], 1, 0),
        ([" Hund ", "Er"], 1, 1),
        ([" Hund", " ", "Er"], 1, 1),
        ([" Hund", " ", "Er"], 2, 2),
        (["今日は", "いい", "天気"], 1, 1),  # each character is a word
        (["今日は", "、", "いい"], 1, 1),
        (["か", "\u3099き"], 1, 0),  # with its marks
        (["私は", " iP", "hone"], 2, 1),
        (["ฉ", "ัน"], 1, 0),
        (["", "Hund"], 1, 1),
        ([], 0, 0),
    ],
)
def test_whole_words(pieces: list[str], confirmed: int, count: int) -> None:
    assert whole_words(pieces_of(*pieces), confirmed) == count


def test_characters_are_shown_whole() -> None:
    pieces = ["日".encode(), "本".encode()[:1], "本".encode()[1:]]
    for confirmed, length in ((1, 1), (2, 1), (3, 3)):
        view = stabilise(pieces, final=False, confirmed=confirmed)
        assert shown(view) == ("日本"[: min(length, 2)], "日本"[min(length, 2) :], length)
    bytes_ = [bytes([byte]) for byte in "日".encode()]
    assert [whole_words([*bytes_, b"a"], confirmed) for confirmed in range(4)] == [0, 0, 0, 3]


def test_shown_token_stands() -> None:
    view = stabilise(PIECES, final=False, confirmed=2, standing=3)
    assert shown(view) == ("Ich habe einen", " Hund", 3)
    view = stabilise(PIECES, final=False, confirmed=5, standing=3)
    assert view.shown_length == 5


def test_word_that_goes_on_stands() -> None:
    """What a reader sees does not go because more of it may come: from "Hund" to "Hunde"."""
    view = stabilise([b" Ein", b" Hund", b"e"], final=False, confirmed=2, standing=2)
    assert shown(view) == ("Ein Hund", "e", 2)


def test_of_mask_k_and_agreement_one_that_hides_more_counts() -> None:
    both = partial(stabilise, PIECES, final=False, mask_k=2, plain=True)
    view = both(confirmed=2)
    assert (view.shown, view.draft_length) == ("Ich habe", 3)
    for confirmed, standing in ((3, 0), (5, 0), (0, 5)):
        assert both(confirmed=confirmed, standing=standing) == both()
    for confirmed in (4, 5):  # the mask may tear a word, also where both hide as much
        view = stabilise(PIECES, final=False, mask_k=1, confirmed=confirmed)
        assert view == stabilise(PIECES, final=False, mask_k=1)


def cut(data: bytes, sizes: list[int]) -> list[bytes]:
    pieces: list[bytes] = []
    while data:
        size = sizes[len(pieces) % len(sizes)]
        pieces.append(data[:size])
        data = data[size:]
    return pieces


mixed = st.text("aé .,%3\u3000今か\u3099ั-'()\n", max_size=16)
sizes_ = st.lists(st.integers(1, 5), min_size=1, max_size=4)


@given(mixed, st.binary(max_size=2), sizes_, st.integers(0, 16), st.integers(0, 16), st.integers(0, 3))
def test_shown_is_beginning_of_text(
    text: str, broken: bytes, sizes: list[int], confirmed: int, standing: int, k: int
) -> None:
    pieces = cut(broken + text.encode(), sizes)
    whole = stabilise(pieces, final=True)
    view = stabilise(pieces, final=False, mask_k=k, confirmed=confirmed, standing=standing)
    assert view.shown + view.hidden == whole.shown and whole.hidden == ""
    assert stabilise(pieces[: view.shown_length], final=True).shown == view.shown, "it is what these tokens contain"
    assert view.shown_length <= max(0, len(pieces) - k) or view.shown_length == 0
    assert view.draft_length == len(pieces)


@given(mixed, sizes_, st.integers(0, 40))
def test_no_word_is_torn(text: str, sizes: list[int], confirmed: int) -> None:
    pieces = cut(text.encode(), sizes)
    count = whole_words(pieces, confirmed)
    before = b"".join(pieces[:count])
    assert before.decode() or not before, "no half character"
    place = len(before.decode())
    for word in WORD.finditer(text):
        torn = word.start() < place < word.end()
        assert not torn or not bare(text[place : word.end()])
    # More of what is confirmed would tear one.
    assert count <= confirmed
    for more in range(count + 1, min(confirmed, len(pieces)) + 1):
        assert whole_words(pieces, more) == count


@pytest.mark.parametrize("confirmed", [0, 3, 9])
def test_what_stands_only_adds(confirmed: int) -> None:
    lengths = [
        stabilise(PIECES, final=False, confirmed=confirmed, standing=standing).shown_length for standing in range(6)
    ]
    least = stabilise(PIECES, final=False, confirmed=confirmed).shown_length
    assert lengths == [max(least, standing) for standing in range(6)]


@given(st.text(max_size=20), st.integers(0, 80))
def test_no_broken_character_is_shown(text: str, cut: int) -> None:
    shown = whole_characters(text.encode()[:cut])
    assert "\ufffd" not in shown or "\ufffd" in text
    assert text.startswith(shown)


@given(st.binary(max_size=6), st.text(max_size=4), st.integers(0, 16))
def test_broken_bytes_before_it_do_not_show_half_character(broken: bytes, text: str, cut: int) -> None:
    shown = whole_characters(broken + b"a" + text.encode()[:cut])
    assert whole_characters(text.encode()[:cut]) == shown[len(broken.decode(errors="replace")) + 1 :]


def test_bytes_that_are_no_text_are_replaced_not_raised() -> None:
    assert whole_characters(b"a\xffb") == "a\ufffdb"


def test_line_breaks_become_spaces() -> None:
    assert stabilise([b"a\n", b"b\r\n", b"c"], final=True).shown == "a b c"
