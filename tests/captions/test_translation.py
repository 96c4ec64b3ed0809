"""A stream on a table model: passes, drafts, captions and failures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from redraft.captions import translation
from redraft.captions.events import Caption, Failure, Update
from redraft.captions.state import PLAIN, Settings, Writing
from redraft.captions.translation import UNANSWERED
from redraft.decoding.display import Display
from redraft.decoding.drive import run
from redraft.decoding.ends import NO_BREAKS, LineBreaks
from redraft.decoding.methods import get_method
from redraft.errors import OptionError
from tests.captions.streams import Pairs, Speaker, Stream, not_at_once, shown
from tests.fakes import END, RandomModel, greedy

texts = st.lists(st.sampled_from(["a", "a b", "a b c", "a x", "a x y", "", "  ", "日本"]), min_size=1, max_size=6)


@given(st.integers(0, 50), texts, st.sampled_from(["ar", "ssbd"]))
def test_exact_methods(seed: int, sources: list[str], method: str) -> None:
    model = RandomModel(seed, end_bias=0.5)
    stream = Stream(model, method=method, max_tokens=12)
    for number, source in enumerate(sources):
        final = number == len(sources) - 1
        event = stream.send(source, final=final)[-1]
        expected = greedy(model, stream.prompt(source), 12) if source.strip() else []
        if final and source.strip() and not expected:
            expected = not_at_once(model, stream.prompt(source), 12)
        assert stream.output() == expected
        assert isinstance(event, Caption) and event.text == shown(model, expected)
        assert (event.source, event.final) == (source, final)


def test_events_carry_fields_of_update() -> None:
    stream = Stream(Speaker())
    asking = stream.translations[0].translate(stream.states[0], Update("talk", 7, "a b", False, 2.5))
    (event,), _ = run(asking, stream.model, 0)
    text = shown(stream.model, greedy(stream.model, stream.prompt("a b"), 99))
    assert event == Caption("talk", 7, "de", text, "", False, 2.5, "a b")


def test_previous_output_is_draft() -> None:
    stream = Stream(Speaker())
    stream.send("a b")
    first = stream.output()
    assert first and len(stream.asked[0].draft) == 0
    for source in ("a b c", "a", "x y"):  # grown, shrunk, rewritten
        before = stream.output()
        stream.send(source)
        assert list(stream.asked[0].draft.tokens) == before
        assert stream.asked[0].prefix == stream.prompt(source)
        assert all(not score.draft for score in stream.asked[1:])


def test_draft_that_holds_saves_passes() -> None:
    model = Speaker(shift=0.0)  # nothing but the last two ids matters, so all sources of one ending agree
    drafted, plain = Stream(model), Stream(model, method="ar")
    for stream in (drafted, plain):
        stream.send("a b")
        stream.send("c b")
    assert drafted.output() == plain.output()
    assert (len(drafted.asked), len(plain.asked)) == (1, len(plain.output()) + 1)


@pytest.mark.parametrize("method", ["ar", "cd", "ssbd"])
def test_unchanged_source_costs_no_request(method: str) -> None:
    stream = Stream(Speaker(), method=method, display=Display(mask_k=1))
    first = stream.caption("a b")
    assert stream.asked
    again = stream.caption("a b")
    assert not stream.asked
    assert (again.text, again.unstable, again.seq) == (first.text, first.unstable, 2)
    last = stream.caption("a b", final=True)
    assert not stream.asked
    assert (last.text, last.unstable, last.final) == (f"{first.text}{first.unstable}", "", True)


@pytest.mark.parametrize("nothing", ["", " ", "\n\t", "\u3000"])
def test_empty_text_is_empty_caption_without_request(nothing: str) -> None:
    stream = Stream(Speaker())
    assert stream.caption(nothing).text == ""
    assert stream.caption("a b").text
    emptied = stream.caption(nothing, final=True)
    assert not stream.asked
    assert (emptied.text, emptied.unstable, emptied.final, emptied.source) == ("", "", True, nothing)
    assert stream.caption("a b").text == shown(stream.model, greedy(stream.model, stream.prompt("a b"), 99))


def test_new_utterance_forgets_draft() -> None:
    stream = Stream(Speaker())
    stream.send("a b", "one")
    assert stream.output()
    stream.send("a b c", "two")
    assert len(stream.asked[0].draft) == 0
    stream.send("a b c d", "two", final=True)
    assert len(stream.asked[0].draft) > 0
    stream.send("a b c d", "two")  # the name is used again
    assert stream.asked and len(stream.asked[0].draft) == 0


def test_languages_are_independent_and_asked_together() -> None:
    model = Speaker()
    stream = Stream(model, ["de", "ja", "zh-Hans"])
    for source in ("a b", "a b c"):
        model.batches.clear()
        events = stream.send(source)
        assert model.batches[0] == 3
        for number, (language, event) in enumerate(zip(["de", "ja", "zh-Hans"], events, strict=True)):
            expected = greedy(model, stream.prompt(source, language), 99)
            assert stream.output(number) == expected
            assert isinstance(event, Caption)
            assert (event.language, event.text) == (language, shown(model, expected))
    assert len({tuple(stream.output(number)) for number in range(3)}) == 3


def test_partial_captions_are_masked_and_finals_never() -> None:
    stream, bare = Stream(Speaker(), display=Display(mask_k=2)), Stream(Speaker())
    whole = bare.caption("a b").text
    partial = stream.caption("a b")
    assert len(stream.output()) > 2
    assert partial.text == shown(stream.model, stream.output()[:-2])
    assert partial.unstable and partial.text + partial.unstable == whole
    final = stream.caption("a b c", final=True)
    assert (final.text, final.unstable) == (shown(stream.model, stream.output()), "")


def test_only_prompt_of_final_update_is_made_sentence() -> None:
    stream = Stream(Speaker(), final_mark="!", context=1)
    partial = stream.caption("a b")
    final = stream.caption("a b", final=True)
    assert (partial.source, final.source) == ("a b", "a b")
    assert [source for _, source, _ in stream.encoded] == ["a b", "A b!"]
    assert final.text == shown(stream.model, greedy(stream.model, stream.prompt("A b!"), 99))
    first = stream.asked[0]
    assert first.prefix == stream.prompt("A b!") and len(first.draft) > 0, "the partial output is the draft"
    stream.caption("c", "v")
    assert stream.encoded[-1] == ("de", "c", [("A b!", final.text)])


@pytest.mark.parametrize(("plain", "dropped"), [(False, 0), (True, 2)])
def test_only_plain_mask_shortens_draft(plain: bool, dropped: int) -> None:
    stream = Stream(Speaker(), display=Display(mask_k=2, plain=plain))
    stream.send("a b")
    before = stream.output()
    assert len(before) > 2
    stream.send("a b c")
    assert list(stream.asked[0].draft.tokens) == before[: len(before) - dropped]


def test_runaway_reported_once() -> None:
    stream = Stream(Speaker(period=0), max_tokens=8)
    failure, caption = stream.send("a b")
    assert failure == Failure(
        "the translation was cut at 8 tokens, the most that are allowed: "
        "end the utterance earlier, or raise the maximum tokens or the context length",
        None,
        "u",
        1,
        "de",
    )
    assert isinstance(caption, Caption) and caption.cut and len(stream.output()) == 8
    for source in ("a b c", "a b c d", "a b c d"):
        assert isinstance(stream.caption(source), Caption)
        assert all(not score.draft for score in stream.asked)
    assert [type(event) for event in stream.send("x", "another")] == [Failure, Caption]


def test_capitals_are_translated_in_lower_case() -> None:
    stream = Stream(Speaker())
    caption = stream.caption("THE END", final=True)
    assert caption.source == "the end" and stream.encoded[-1][1] == "the end"
    for text in ("The NATO", "NATO"):
        stream.send(text, text, final=True)
        assert stream.encoded[-1][1] == text


@pytest.mark.parametrize(("max_tokens", "reason"), [(8, "the most that are allowed"), (256, "did not end it")])
def test_limit_is_no_defect_of_the_model(monkeypatch: pytest.MonkeyPatch, max_tokens: int, reason: str) -> None:
    monkeypatch.setattr(translation, "longest_output", lambda prompt: 16)
    failure, _ = Stream(Speaker(period=0), max_tokens=max_tokens).send("a b")
    assert isinstance(failure, Failure) and reason in failure.message


def test_cut_final_is_reported() -> None:
    stream = Stream(Speaker(period=0), max_tokens=8)
    assert len(stream.send("a b")) == 2
    for source in ("a b", "a b c"):  # the same text once more, which costs no pass, and a longer one
        failure, caption = stream.send(source, final=True)
        assert isinstance(failure, Failure) and failure.seq == stream.seq and "was cut at 8 tokens" in failure.message
        assert isinstance(caption, Caption) and caption.final and caption.cut
        stream.send("a b")


class Silent(RandomModel):
    """Ends every output at once where the prompt is longer than so many ids, all others after one token."""

    def __init__(self, longest: int = 0) -> None:
        super().__init__(3)
        self.longest = longest

    def logits(self, ids: Sequence[int]) -> np.ndarray:
        row = super().logits(ids)
        row[END] = -100.0 if len(ids) <= self.longest else 100.0
        return row


class Mute(Silent):
    """Does not end at once where it may not, but says nothing then either."""

    def token_bytes(self, token: int) -> bytes:
        return b" "


@pytest.mark.parametrize(("text", "fails"), [("a b", True), ("3", True), ("日本", True), (" ", False)])
def test_empty_final_is_failure_where_text_has_words(text: str, fails: bool) -> None:
    stream = Stream(Mute(), context=1)
    assert stream.caption(text).text == ""  # of a partial text nothing need be known yet
    (event,) = stream.send(text, final=True)
    if fails:
        assert event == Failure(UNANSWERED.format("''"), None, "u", stream.seq, "de")
    else:
        assert isinstance(event, Caption) and (event.text, event.final) == ("", True)
    stream.send("c", "v")
    assert stream.encoded[-1] == ("de", "c", []), "no prompt carries an empty translation"
    assert len(stream.asked[0].draft) == 0, "the utterance has ended"


def test_empty_final_without_context() -> None:
    stream = Stream(Silent(longest=9), context=1)
    stream.caption("a b", "1", final=True)
    assert stream.caption("c d e", "2").text == ""
    assert stream.caption("c d e", "2", final=True).text
    assert [len(pairs) for _, _, pairs in stream.encoded] == [0, 1, 1, 0]

    assert stream.states[0].tally.reopened == 0


def test_repeated_text_is_no_context() -> None:
    """After one such example, chat models repeat all sentences instead of translating them."""
    stream = Stream(RandomModel(), context=3)
    for source, answer in (("a b", "x y"), ("[laughter]", "[Laughter]"), ("Rex.", "Rex")):
        stream.states = [stream.translations[0].remember(stream.states[0], source, answer)]
    stream.send("c")
    assert stream.encoded[-1] == ("de", "c", [("a b", "x y")])


class Breaking(Silent):
    """Begins with a line break, id 2, and then ends."""

    def logits(self, ids: Sequence[int]) -> np.ndarray:
        row = super().logits(ids)
        row[2] = 200.0 if ids[-1] not in (2, 3) else -100.0
        row[3] = 50.0
        return row

    def token_bytes(self, token: int) -> bytes:
        return b"\n" if token == 2 else super().token_bytes(token)


BREAKS = LineBreaks(before=frozenset({2}), blank=frozenset({END, 2}))


@pytest.mark.parametrize("method", ["ar", "ssbd", "cd", "redraft"])
@pytest.mark.parametrize(("model", "breaks"), [(Silent(), NO_BREAKS), (Breaking(), BREAKS)])
@pytest.mark.parametrize("partial", [True, False])
def test_final_answered_with_nothing_is_decoded_again(
    model: RandomModel, breaks: LineBreaks, method: str, partial: bool
) -> None:
    stream = Stream(model, method=method, breaks=breaks)
    if partial:
        assert stream.caption("a b").text == ""
        assert stream.states[0].tally.reopened == 0, "of a partial text nothing need be known yet"
    caption = stream.caption("a b", final=True)
    assert caption.final and caption.text and not caption.cut
    assert caption.text == shown(model, stream.output()) and len(stream.output()) == 1
    assert stream.states[0].tally.reopened == 1
    assert stream.caption("c", "v").text == "", "nothing is barred in the next one"


@pytest.mark.parametrize("text", [".", "...", "?", "- -", "。", "♪", "😀", "«»", "$"])
def test_text_without_words_is_its_caption_without_request(text: str) -> None:
    """A small model answered a full stop with "Ich"."""
    stream = Stream(Speaker(), context=1)
    for final in (False, True):
        caption = stream.caption(f" {text}\n", final=final)
        assert not stream.asked
        assert (caption.text, caption.unstable, caption.final) == (text, "", final)
    stream.caption("a b", "v")
    assert stream.encoded == [("de", "a b", [])], "nothing of it is context"


def test_text_that_loses_its_words() -> None:
    stream = Stream(Speaker())
    assert stream.caption("a b").text
    assert stream.caption("...").text == "..."
    assert stream.caption("... a b").text != "..."
    assert stream.asked


def test_draft_comes_back_after_runaway() -> None:
    model = Speaker()
    stream = Stream(model, max_tokens=8)
    model.period = 0
    stream.send("a b")
    model.period = 11
    stream.send("a b c")
    good = stream.output()
    assert 0 < len(good) < 8
    stream.send("a b c d")
    assert list(stream.asked[0].draft.tokens) == good


def test_runaway_after_empty_text() -> None:
    stream = Stream(Speaker(period=0), max_tokens=8)
    assert len(stream.send("a b")) == 2
    stream.caption("")
    stream.caption("a b c")


def test_source_too_long() -> None:
    stream = Stream(Speaker(), room=20)
    before = stream.caption("a b")
    too_long = "a" * 30
    (failure,) = stream.send(too_long)
    assert not stream.asked
    assert failure == Failure(
        "the source is too long: its prompt has 33 tokens and the context length is 20; "
        "end the utterance earlier or raise the context length",
        None,
        "u",
        2,
        "de",
    )
    assert stream.caption("a b").text == before.text
    stream.send("a b c")
    assert stream.output() == greedy(stream.model, stream.prompt("a b c"), 20 - len(stream.prompt("a b c")))
    failure, last = stream.send(too_long, final=True)
    assert isinstance(failure, Failure)
    assert isinstance(last, Caption)
    assert last.final
    assert last.text.startswith(stream.caption("a b c", "other").text[:2])
    assert stream.caption("a b", "two").text == before.text


@given(st.integers(0, 99), st.lists(st.integers(1, 20), max_size=6), st.sampled_from(["ar", "cd", "ssbd"]))
def test_no_request_is_longer_than_context(seed: int, lengths: list[int], method: str) -> None:
    stream = Stream(RandomModel(seed, end_bias=-0.5), method=method, room=20, context=1)
    for number, length in enumerate(lengths):
        final = number % 3 == 2
        events = stream.send("a" * length, str(number // 3), final=final)
        captioned = bool(events) and isinstance(events[-1], Caption)
        assert captioned <= (length <= 16 or final)
        assert captioned or length > 16 or not stream.output()
        assert length <= 16 or not events or isinstance(events[0], Failure)
    assert all(len(score.prefix) + score.draft.depth <= 20 for score in stream.model.requests)


@pytest.mark.parametrize(("length", "fits"), [(16, True), (17, False)])
def test_prompt_must_leave_room_for_one_token(length: int, fits: bool) -> None:
    stream = Stream(Speaker(period=0), room=20)
    failure, *captions = stream.send("a" * length)
    assert isinstance(failure, Failure)
    assert bool(captions) is fits
    assert ("cut at 1 tokens" in failure.message) is fits


def test_utterance_that_ended_too_long_has_ended() -> None:
    stream = Stream(Speaker(), room=20)
    stream.send("a b")
    stream.send("a" * 30, final=True)
    stream.send("a b c")
    assert len(stream.asked[0].draft) == 0


def test_one_language_may_fail_alone() -> None:
    stream = Stream(Speaker(), ["de", "a-very-long-name"], room=19)
    caption, failure = stream.send("a b")
    assert isinstance(caption, Caption) and caption.language == "de"
    assert isinstance(failure, Failure) and failure.language == "a-very-long-name"


def test_earlier_sentences_are_given_oldest_first() -> None:
    stream = Stream(Speaker(), context=2)
    pairs: Pairs = []
    for number, source in enumerate(["a", "b", "c", "d"]):
        stream.send(source, str(number))
        final = stream.caption(f"{source} {source}", str(number), final=True)
        assert [context for _, _, context in stream.encoded] == [pairs[-2:]] * 2
        pairs.append((f"{source} {source}", final.text))
        stream.encoded.clear()


def test_without_context_nothing_is_given() -> None:
    stream = Stream(Speaker(), context=0)
    stream.send("a", "1", final=True)
    stream.send("b", "2", final=True)
    assert [context for _, _, context in stream.encoded] == [[], []]


def test_only_whole_sentences_are_remembered() -> None:
    model = Speaker()
    stream = Stream(model, context=3, max_tokens=8)
    stream.send("partial only", "1")
    stream.send("", "2", final=True)
    model.period = 0
    stream.send("endless", "3", final=True)
    model.period = 11
    ours = stream.caption("whole", "4", final=True).text
    stream.encoded.clear()
    stream.send("next", "5")
    assert stream.encoded == [("de", "next", [("whole", ours)])]


def test_every_language_has_its_own_earlier_sentences() -> None:
    stream = Stream(Speaker(), ["de", "ja"], context=1)
    german, japanese = stream.send("a", "1", final=True)
    assert isinstance(german, Caption) and isinstance(japanese, Caption) and german.text != japanese.text
    stream.encoded.clear()
    stream.send("b", "2")
    assert stream.encoded == [("de", "b", [("a", german.text)]), ("ja", "b", [("a", japanese.text)])]


def test_earlier_sentences_are_dropped_when_too_long() -> None:
    stream = Stream(Speaker(), context=1, room=60)
    stream.caption("a" * 45, "1", final=True)
    stream.encoded.clear()
    stream.caption("b b b b b b b b", "2")
    assert [len(context) for _, _, context in stream.encoded] == [1, 0]
    assert stream.asked[0].prefix == stream.prompt("b b b b b b b b")


def test_room_of_translation() -> None:
    for length in range(20, 46):
        stream = Stream(Speaker(), context=1, room=60)
        stream.send("a" * length, "1", final=True)
        stream.caption("b b", "2")  # takes 11 ids alone, and must not be cut


def test_outputs_are_counted() -> None:
    stream = Stream(Speaker())
    for source in ("a b", "a b", "a b c"):
        stream.send(source)
    tally = stream.states[0].tally
    assert (tally.updates, tally.passes) == (2, len(stream.model.requests))
    assert tally.drafted == sum(len(score.draft) for score in stream.model.requests)


@pytest.mark.parametrize(
    ("name", "low", "high", "values"),
    [("context", 0, 100, (-1, 101, 1.5, True)), ("max_tokens", 1, 65_536, (0, -1, 1.5, False))],
)
def test_lengths_out_of_range(name: str, low: int, high: int, values: tuple[Any, ...]) -> None:
    for value in (*values, None, "1", float("nan"), float("inf")):
        with pytest.raises(OptionError) as raised:
            Settings(get_method("ar"), {name: value})
        assert str(raised.value) == f"{name} must be a whole number from {low} to {high}, not {value!r}"
    assert Settings(get_method("ar"), {name: low})[name] == low


def test_captions_are_converted() -> None:
    plain, upper = (Stream(RandomModel(), writing=each, context=1) for each in (PLAIN, Writing(str.upper)))
    for final in (False, True):
        expected, found = (stream.caption("we saw", final=final) for stream in (plain, upper))
        assert (found.text, found.unstable) == (expected.text.upper(), expected.unstable.upper())
        assert found.text and upper.output() == plain.output()
    upper.send("her duck", "v")
    assert upper.encoded[-1][2] == [("we saw", found.text)]


def test_wrong_writing_is_reported_once() -> None:
    stream = Stream(RandomModel(), writing=Writing(problem=lambda text: f"wrong: {text}"))
    assert [type(event) for event in stream.send("we saw")] == [Caption]
    failure, caption = stream.send("we saw", final=True)
    assert isinstance(failure, Failure) and isinstance(caption, Caption)
    assert (failure.message, failure.language) == (f"wrong: {caption.text}", "de")
    assert [type(event) for event in stream.send("her duck", "v", final=True)] == [Caption]
