"""Delays: when a unit of the final caption was last changed on the display, and when that was shown."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from measure.eval.recorded import GOLDEN, GOLDEN_STREAM, record, segment_of
from redraft.errors import InputError, OptionError
from redraft_bench.eval.delays import Change, changes, delays, join, split, unit, words
from redraft_bench.eval.record import Record
from redraft_bench.eval.stream import Stream


def stream_of(*records: Record, recordings: str = "") -> Stream:
    names = recordings or "a" * len(records)
    return Stream(
        "any", tuple(segment_of(each, None, "de", None, name) for each, name in zip(records, names, strict=True))
    )


def test_words_where_there_are_spaces_and_characters_elsewhere() -> None:
    assert split(" Ich  habe\u00a0einen Hund.", "de-AT") == ["Ich", "habe", "einen", "Hund."]
    assert split("我 是 GPT 。", "zh-CN") == ["我", "是", "G", "P", "T", "。"]
    assert [unit(language) for language in ("de", "German", "ja", "th", "zh-Hant")] == ["word", "word"] + ["char"] * 3
    assert (join(["a", "b"], "de"), join(["你", "好"], "zh")) == ("a b", "你好")
    with pytest.raises(OptionError, match="target language"):
        unit("xx")


def test_chinese_source_counts_by_characters() -> None:
    assert (words("I have  a dog."), words("我有狗。"), words("")) == (4, 4, 0)


def test_golden_case() -> None:
    (found,) = delays([GOLDEN], GOLDEN_STREAM, "de")
    assert found.timed
    assert found.units == ("Ich", "habe", "einen", "Hunde.")
    assert found.delays == (1.0, 2.0, 2.0, 3.0)
    assert found.shown == (1.1, 2.2, 2.2, 3.1)


def test_what_stands_behind_change_is_shown_anew() -> None:
    made = record(0, ["a b c", "a x c", "a x c"])
    assert changes(made, "de") == [Change((), ("a", "b", "c")), Change(("b", "c"), ("x", "c")), Change((), ())]
    assert delays([made], stream_of(made), "de")[0].delays == (1, 2, 2)


def test_word_that_came_back_counts_from_its_return() -> None:
    made = record(0, ["a b", "a", "a b"])
    assert delays([made], stream_of(made), "de")[0].delays == (1, 3)


def test_hidden_text_is_not_there_yet() -> None:
    made = record(0, ["", "a", "a b c"], hidden="b c")
    assert delays([made], stream_of(made), "de")[0].delays == (2, 3, 3)


def test_characters_have_delays_of_their_own() -> None:
    made = record(0, ["我是", "我 不是"])
    assert delays([made], stream_of(made), "zh")[0].delays == (1, 2, 2)


def test_words_that_were_heard_and_taken_back_stay_read() -> None:
    made = record(0, ["a", "a b", "a b c"], sources=["one two three", "one", "one two"])
    assert delays([made], stream_of(made), "de")[0].delays == (3, 3, 3)


def test_empty_caption_has_no_delays() -> None:
    made = record(0, ["a b", ""], times=[1.0, 2.0])
    found = delays([made], stream_of(made), "de")[0]
    assert (found.units, found.delays, found.shown) == ((), (), ())


def test_untimed_stream_is_not_computation_aware() -> None:
    made = record(0, ["a"], seconds=[0.5])
    found = delays([made], stream_of(made), "de")[0]
    assert not found.timed
    assert found.shown == ()


def test_updates_wait_for_ones_before_them() -> None:
    first = record(0, ["a", "a b"], times=[1.0, 1.5], seconds=[1.0, 1.0])
    second = record(1, ["c"], times=[2.0], seconds=[0.25])
    found = delays([first, second], stream_of(first, second), "de")
    assert found[0].shown == (2.0, 3.0)
    assert found[1].shown == (3.25,)


def test_every_recording_has_clock_of_its_own() -> None:
    first = record(0, ["a"], times=[1.0], seconds=[9.0])
    second = record(1, ["c"], times=[2.0], seconds=[0.25])
    found = delays([first, second], stream_of(first, second, recordings="ab"), "de")
    assert found[1].shown == (2.25,)


def test_records_of_another_stream_are_refused() -> None:
    made = record(0, ["a"])
    with pytest.raises(InputError, match="no utterance '1' as its segment 1"):
        delays([record(1, ["a"])], stream_of(made), "de")
    with pytest.raises(InputError, match="no utterance '7' as its segment 0"):
        delays([Record(0, "7", "any", made.steps)], stream_of(made), "de")


@given(st.lists(st.lists(st.sampled_from("abc"), max_size=5), min_size=1, max_size=6))
def test_unit_of_stable_text(captions: list[list[str]]) -> None:
    made = record(0, [" ".join(caption) for caption in captions])
    final = captions[-1]
    expected = [
        next(n for n in range(len(captions)) if all(each[: i + 1] == final[: i + 1] for each in captions[n:])) + 1
        for i in range(len(final))
    ]
    found = delays([made], stream_of(made), "de")[0]
    assert list(found.delays) == expected
    assert expected == sorted(expected)
