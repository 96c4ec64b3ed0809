"""Mask-k on the display and in the draft; whole characters only."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redraft.captions.stabilise import Mask, stabilise, whole_characters
from redraft.errors import OptionError

PIECES = [b" Ich", b" habe", b" einen", b" Hu", b"nd"]


def test_nothing_is_hidden_without_mask_or_when_final() -> None:
    for mask, final in [(Mask(), False), (Mask(3), True), (Mask(3, "words", False), True)]:
        view = stabilise(PIECES, mask, final=final)
        assert (view.shown, view.hidden, view.draft_length) == ("Ich habe einen Hund", "", 5)


def test_display_only_mask() -> None:
    view = stabilise(PIECES, Mask(2), final=False)
    assert (view.shown, view.hidden, view.draft_length) == ("Ich habe einen", " Hund", 5)


def test_plain_mask_takes_hidden_tokens_from_draft() -> None:
    assert stabilise(PIECES, Mask(2, display_only=False), final=False).draft_length == 3


def test_words_are_hidden_whole() -> None:
    view = stabilise(PIECES, Mask(1, "words", display_only=False), final=False)
    assert (view.shown, view.hidden, view.draft_length) == ("Ich habe einen", " Hund", 3)


def test_word_is_character_in_scripts_without_spaces() -> None:
    pieces = ["今日は".encode(), "いい天気".encode()]
    view = stabilise(pieces, Mask(3, "words", display_only=False), final=False)
    assert (view.shown, view.hidden, view.draft_length) == ("今日はい", "い天気", 1)


@pytest.mark.parametrize("space", ["", " ", "\u3000", "\u00a0", "\u2003 "])
def test_white_space_of_any_script_in_front(space: str) -> None:
    pieces = [f"{space}今日は".encode(), "いい天気".encode(), "です".encode()]
    view = stabilise(pieces, Mask(2, "words", display_only=False), final=False)
    assert (view.shown, view.shown_length, view.draft_length) == ("今日はいい天気", 2, 2)


@given(st.text("a \u3000今é", max_size=12), st.binary(max_size=2), st.integers(1, 8), st.integers(1, 4))
def test_tokens_shown_hold_what_is_shown(text: str, broken: bytes, k: int, size: int) -> None:
    data = broken + text.encode()
    pieces = [data[start : start + size] for start in range(0, len(data), size)]
    view = stabilise(pieces, Mask(k, "words"), final=False)
    begun = [whole_characters(b"".join(pieces[:count])).lstrip() for count in range(len(pieces) + 1)]
    assert len(begun[view.shown_length]) <= len(view.shown)
    assert all(len(each) >= len(view.shown) for each in begun[view.shown_length + 1 :])


def test_more_hidden_than_there_is_shows_nothing() -> None:
    for unit in ("tokens", "words"):
        view = stabilise(PIECES, Mask(50, unit, display_only=False), final=False)
        assert (view.shown, view.hidden, view.draft_length) == ("", "Ich habe einen Hund", 0)


@given(st.text(max_size=20), st.integers(0, 80))
def test_no_broken_character_is_shown(text: str, cut: int) -> None:
    shown = whole_characters(text.encode()[:cut])
    assert "\ufffd" not in shown or "\ufffd" in text
    assert text.startswith(shown)


@given(st.binary(max_size=6), st.text(max_size=4), st.integers(0, 16))
def test_broken_bytes_before_it_do_not_show_half_character(broken: bytes, text: str, cut: int) -> None:
    shown = whole_characters(broken + b"a" + text.encode()[:cut])
    assert whole_characters(text.encode()[:cut]) == shown[len(broken.decode(errors="replace")) + 1 :]


@given(st.text(max_size=30), st.integers(0, 12), st.sampled_from(["tokens", "words"]), st.integers(1, 4))
def test_shown_and_hidden_make_whole(text: str, k: int, unit: str, size: int) -> None:
    data = text.encode()
    pieces = [data[start : start + size] for start in range(0, len(data), size)]
    view = stabilise(pieces, Mask(k, unit), final=False)
    assert view.shown + view.hidden == stabilise(pieces, Mask(), final=True).shown
    assert view.draft_length == len(pieces)


def test_bytes_that_are_no_text_are_replaced_not_raised() -> None:
    assert whole_characters(b"a\xffb") == "a\ufffdb"


def test_line_breaks_become_spaces() -> None:
    assert stabilise([b"a\n", b"b"], Mask(), final=True).shown == "a b"


@pytest.mark.parametrize("k", [-1, 1.5, True])
def test_k_out_of_range(k: int) -> None:
    with pytest.raises(OptionError, match=r"mask_k must be a whole number of 0 or more, not"):
        Mask(k)


def test_unknown_unit() -> None:
    with pytest.raises(OptionError, match="mask unit must be one of tokens, words, not 'letters'"):
        Mask(1, "letters")


MARGIN = Mask(margin=0.05)


def test_margin_hides_from_first_doubtful_token_on() -> None:
    view = stabilise(PIECES, MARGIN, final=False, sure=2)
    assert (view.shown, view.hidden, view.shown_length, view.draft_length) == ("Ich habe", " einen Hund", 2, 5)
    assert stabilise(PIECES, MARGIN, final=False, sure=0).shown == ""
    for enough in (5, 6, None):  # an end token counts too
        assert stabilise(PIECES, MARGIN, final=False, sure=enough).hidden == ""
    assert stabilise(PIECES, MARGIN, final=True, sure=2).hidden == ""


def test_doubt_after_display() -> None:
    view = stabilise(PIECES, MARGIN, final=False, sure=2, standing=4)
    assert (view.shown, view.shown_length) == ("Ich habe einen Hu", 4)


def test_margin_in_words_hides_word_whole() -> None:
    for unit, shown, length in (("tokens", "Ich habe einen Hu", 4), ("words", "Ich habe einen", 3)):
        view = stabilise(PIECES, Mask(0, unit, margin=0.5), final=False, sure=4)
        assert (view.shown, view.shown_length) == (shown, length)


@pytest.mark.parametrize("unit", ["tokens", "words"])
def test_of_mask_k_and_margin_one_that_hides_more_counts(unit: str) -> None:
    both = Mask(2, unit, False, 0.05)
    view = stabilise(PIECES, both, final=False, sure=2)
    assert (view.shown, view.draft_length) == ("Ich habe", 2)
    view = stabilise(PIECES, both, final=False, sure=5)
    assert view == stabilise(PIECES, Mask(2, unit, False), final=False)


def test_margin_inside_character() -> None:
    pieces = ["日".encode(), "本".encode()[:1], "本".encode()[1:]]
    view = stabilise(pieces, Mask(margin=0.5), final=False, sure=2)
    assert (view.shown, view.hidden) == ("日", "本")


@pytest.mark.parametrize("margin", [-1.1, 1.1, float("nan"), True, "0"])
def test_margin_out_of_range_is_refused(margin: object) -> None:
    with pytest.raises(OptionError, match=r"mask margin must be a number from -1 to 1, not"):
        Mask(margin=margin)  # type: ignore[arg-type]
