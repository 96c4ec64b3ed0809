"""A stream whose captions show what outputs agree on: what a reader sees and when, and which ids the biases give."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from functools import reduce
from itertools import pairwise, zip_longest
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from redraft.captions.ending import LONG_PAUSE, UPDATES
from redraft.captions.events import Caption, Update
from redraft.captions.metadata import PROMPT_KEY
from redraft.captions.words import WORD
from redraft.decoding.drive import run
from redraft.decoding.method import Value
from redraft.decoding.types import common_prefix
from redraft.translator import Translator
from redraft_bench.bench.peers.local_agreement import LocalAgreement
from redraft_bench.bench.peers.retranslate import Task
from tests.captions.streams import BY_DEFAULT, Speaker, Stream, showing, shown
from tests.fakes import END, RandomModel

TWO = showing(2)
#: Texts of a speaker; each is followed by another one.
WORDS = ["a", "a b", "a b c", "a d", "a d y", "a d y z", "日本"]  # the model has other ids for each
talks = st.lists(st.sampled_from(WORDS), min_size=1, max_size=8).map(
    lambda talk: [text for text, before in zip(talk, ["", *talk], strict=False) if text != before]
)


class Table(RandomModel):
    """Says for each source what a table says: a word for each letter."""

    def __init__(self, table: Mapping[str, str]) -> None:
        super().__init__(vocabulary=128)
        self.table = table

    def logits(self, ids: Sequence[int]) -> np.ndarray:
        source, output = bytes(ids).split(b">de")
        wanted = self.table[source.decode()].encode()
        row = np.zeros(self.vocabulary)
        row[wanted[len(output)] if len(output) < len(wanted) else END] = 9.0
        return row

    def tokenize(self, text: str, *, special: bool = False, start: bool = False) -> list[int]:
        return list(text.encode())

    def token_bytes(self, token: int) -> bytes:
        return b"" if token == END else f" {chr(token)}".encode()


TABLE = {"1": "abc", "12": "abd", "123": "abde", "1234": "xbde", "12345": "xbdef", "0": "abq"}


def told(*sources: str, final: bool = False, **settings: Any) -> list[tuple[str, str]]:
    """What is shown and hidden of the captions for these sources, as letters."""
    stream = Stream(Table(TABLE), method="ar", **settings)
    captions = [stream.caption(each, final=final and each == sources[-1]) for each in sources]
    return [(each.text.replace(" ", ""), each.unstable.replace(" ", "")) for each in captions]


def test_word_is_shown_once_two_outputs_agree() -> None:
    assert told("1", "12", "123", display=TWO) == [("", "abc"), ("ab", "d"), ("abd", "e")]


def test_word_is_shown_once_three_outputs_agree() -> None:
    found = told("1", "12", "123", "1234", "12345", display=showing(3))
    assert found == [("", "abc"), ("", "abd"), ("ab", "de"), ("", "xbde"), ("", "xbdef")]


def test_shown_word_stands_until_it_changes() -> None:
    found = told("1", "12", "0", "12", "1234", "12345", display=TWO)
    assert found == [("", "abc"), ("ab", "d"), ("ab", "q"), ("ab", "d"), ("", "xbde"), ("xbde", "f")]


def test_final_is_shown_whole() -> None:
    for sources in (("1",), ("1", "12"), ("1", "1")):
        text, hidden = told(*sources, display=TWO, final=True)[-1]
        assert (text, hidden) == (TABLE[sources[-1]], "")


def test_all_is_shown_by_default() -> None:
    assert told("1", "12") == [("abc", ""), ("abd", "")]


def test_new_utterance_starts_empty() -> None:
    stream = Stream(Table(TABLE), method="ar", display=TWO)
    stream.send("1")
    assert stream.caption("12").text == " a b".strip()
    rest, first = stream.send("12", "v")
    assert isinstance(rest, Caption) and isinstance(first, Caption)
    assert (rest.utterance, rest.text, rest.unstable, rest.final) == ("u", "a b d", "", False)
    assert (first.utterance, first.text, first.unstable) == ("v", "", "a b d")
    assert stream.caption("123", "v", final=True).text == "a b d e"
    assert stream.caption("123", "w").text == ""


def joint_probability(model: RandomModel, prefix: Sequence[int], tokens: Sequence[int]) -> float:
    """The probability that these tokens follow."""
    found = 1.0
    for place, token in enumerate(tokens):
        weights = np.exp(model.logits([*prefix, *tokens[:place]]))
        found *= float(weights[token] / weights.sum())
    return found


@given(
    st.integers(0, 50),
    talks,
    st.sampled_from(["ar", "ssbd", "redraft"]),
    st.integers(2, 4),
    st.sampled_from([1.0, 0.5, 0.1, 0.0]),
    st.sampled_from([0.0, 0.3]),
)
def test_what_agrees_is_probable_or_stands_is_shown(
    seed: int, talk: list[str], method: str, agree: int, sight: float, stop: float
) -> None:
    model = RandomModel(seed, end_bias=0.5)
    options: dict[str, Value] = {"stop": stop} if method == "redraft" else {}
    stream = Stream(model, method=method, options=options, display=showing(agree, sight), max_tokens=12)
    for utterance in ("one", "two"):
        before: tuple[int, ...] = ()  # a new utterance has shown nothing yet
        outputs: list[tuple[int, ...]] = []
        for source in talk:
            caption = stream.send(source, utterance)[-1]
            assert isinstance(caption, Caption)
            output, prompt = tuple(stream.output()), stream.prompt(source)
            known = reduce(common, outputs[1 - agree :]) if len(outputs) >= agree - 1 else ()
            outputs += [] if caption.cut else [output]
            agreed = length = common_prefix(known, output)
            trust = stream.states[0].ending.trust
            while (
                sight < 1
                and not caption.cut
                and length < len(output)
                and trust * joint_probability(model, [*prompt, *output[:agreed]], output[agreed : length + 1]) >= sight
            ):
                length += 1
            stopped = stream.states[0].decoded.output.stopped  # perhaps within its last word
            whole = max(len(output) - stopped, common_prefix(before, output))
            length = min(whole, max(length, common_prefix(before, output)))
            assert caption.text == shown(model, output[:length])
            assert (caption.text + caption.unstable).strip() == shown(model, output[:whole])
            assert stop or not stopped
            before = output[:length]
    final = stream.send(talk[-1], "two", final=True)[-1]
    assert isinstance(final, Caption) and final.text == shown(model, stream.output()) and final.unstable == ""
    assert not stream.states[0].decoded.output.stopped


class Pieces(RandomModel):
    """Says words of several tokens."""

    def token_bytes(self, token: int) -> bytes:
        return super().token_bytes(token) if token % 2 else b"x"


def torn_words(seed: int, sight: float, stop: float) -> int:
    """Send a talk whose captions keep all that was decoded; return how many outputs stopped within a word.

    Words are committed, updates passed over, and translations decoded to their end, now and then.
    """
    options: dict[str, Value] = {"beta": 1.0, "hidden_beta": 1.0, "stop": stop}
    stream = Stream(
        Pieces(seed, shift=0.1, end_bias=0.5),
        method="redraft",
        options=options,
        display=showing(2, sight),
        max_tokens=12,
    )
    (translation,), rng, torn = stream.translations, random.Random(seed), 0
    text, time = "we", 0.0
    seen: list[str] = []
    for _ in range(8):
        text += rng.choice(["", f" {rng.choice('abcdef')}"])
        time, stream.seq = time + rng.choice([0.5, 3.0]), stream.seq + rng.choice([0, 2])
        committed = rng.choice([None, len(text.split())])
        caption = stream.send(text, time=time, committed=committed)[-1]
        assert isinstance(caption, Caption)
        found = WORD.findall(caption.text + caption.unstable)
        if stream.states[0].decoded.output.stopped:
            _, state = run(translation.rest(stream.states[0]), stream.model, 0)
            decoded, whole = WORD.findall(shown(stream.model, stream.output())), WORD.findall(state.decoded.text)
            # A word that was seen whole may have become the beginning of another one.
            assert all(word in (kept, old) for word, kept, old in zip_longest(found, whole[: len(found)], seen) if word)
            torn += decoded != whole[: len(decoded)]
        seen = WORD.findall(caption.text)
    return torn


def test_final_that_is_too_long_has_no_torn_word() -> None:
    """It shows the last output that was not, which may have stopped within a word."""
    stopped = 0
    for seed in range(40):
        stream = Stream(Pieces(seed, end_bias=-1.0), method="redraft", options={"stop": 0.9}, display=TWO, room=40)
        partial = stream.send("we saw her duck")[-1]
        events = stream.send("we saw her duck under the table and left house", final=True)
        assert isinstance(partial, Caption)
        texts = [each.text for each in events if isinstance(each, Caption)]  # none if it is empty
        assert "".join(texts) == (partial.text + partial.unstable).strip()
        stopped += stream.states[0].decoded.output.stopped
    assert stopped > 20


@given(st.integers(0, 100_000), st.sampled_from([1.0, 0.4, 0.1]), st.sampled_from([0.1, 0.4, 0.9]))
def test_no_caption_has_a_torn_word(seed: int, sight: float, stop: float) -> None:
    """Whether words are shown at first sight, by a commit, because the model is slow, or not at all."""
    torn_words(seed, sight, stop)


def test_outputs_stop_within_words() -> None:
    """Otherwise, the test above would prove nothing."""
    assert sum(torn_words(seed, 0.4, 0.4) for seed in range(20)) > 5


def common(first: tuple[int, ...], second: tuple[int, ...]) -> tuple[int, ...]:
    return first[: common_prefix(first, second)]


def test_rest_shows_what_is_hidden_once() -> None:
    stream = Stream(Table(TABLE), ["de", "de"], method="ar", display=TWO)
    assert stream.rest() == []
    stream.send("1")
    before = len(stream.model.requests)
    events = stream.rest()
    assert [(each.text, each.unstable, each.final) for each in events if isinstance(each, Caption)] == [
        ("a b c", "", False)
    ] * 2
    assert len(stream.model.requests) == before, "without a pass"
    assert stream.rest() == []
    stream.send("1")
    assert stream.rest() == [], "the same text hides nothing again"
    assert [each.text for each in stream.send("123") if isinstance(each, Caption)] == ["a b"] * 2, "c has gone"
    assert len(stream.rest()) == 2
    stream.send("123", final=True)
    assert stream.rest() == []


def test_rest_hides_no_less_than_mask() -> None:
    stream = Stream(Table(TABLE), method="ar", display=showing(mask_k=1))
    assert stream.caption("1").text == "a b"
    assert stream.rest() == [], "no other output would show it"


@pytest.mark.parametrize("agree", [2, 3])
def test_source_unchanged_for_long_is_shown(agree: int) -> None:
    stream = Stream(Table(TABLE), method="ar", display=showing(agree))
    shown_ = [
        stream.caption("1", time=10 + waited).text for waited in (0, 1, LONG_PAUSE - 0.1, LONG_PAUSE, LONG_PAUSE + 1)
    ]
    assert shown_ == ["", "", "", "a b c", "a b c"]
    texts = [stream.caption("12", time=20 + waited).text for waited in (0, LONG_PAUSE / 2, LONG_PAUSE)]
    assert texts == ["a b", "a b", "a b d"], "what is shown stands, and what is new waits again"


@pytest.mark.parametrize(("missed", "gap", "text"), [(0, 3.0, "a b"), (2, 1.0, "a b"), (2, LONG_PAUSE, "a b d")])
def test_model_that_passes_over_updates_shows_all(missed: int, gap: float, text: str) -> None:
    """A word does not wait for another translation that is seconds away; a pause of the speaker is none of that."""
    stream = Stream(Table(TABLE), method="ar", display=TWO)
    assert stream.caption("1", time=1.0).text == ""
    stream.seq += missed
    assert stream.caption("12", time=1.0 + gap).text == text
    assert stream.caption("123", time=1.2 + gap).text == "a b d", "once the model keeps up, e waits"


def test_source_unchanged_for_many_updates_is_shown() -> None:
    stream = Stream(Table(TABLE), method="ar", display=TWO)
    texts = [stream.caption("1").text for _ in range(UPDATES + 2)]
    assert texts == [""] * UPDATES + ["a b c"] * 2
    assert [stream.caption("12").text for _ in range(2)] == ["a b"] * 2


def test_unchanged_source_is_not_another_output() -> None:
    assert told("1", "1", "12", display=showing(3)) == [("", "abc"), ("", "abc"), ("", "abd")]


def test_words_that_change_go_whole() -> None:
    """No part of a word stays of what was shown, but a shown word may go on."""
    stream = Stream(Letters({"1": "ein Hund", "12": "ein Hund", "123": "ein Hunde", "1234": "ein Hut"}), display=TWO)
    texts = [(each.text, each.unstable) for each in map(stream.caption, ("1", "12", "123", "1234"))]
    assert texts == [("", "ein Hund"), ("ein Hund", ""), ("ein Hund", "e"), ("ein", " Hut")]


class Letters(Table):
    """Its tokens are letters."""

    def token_bytes(self, token: int) -> bytes:
        return b"" if token == END else bytes([token])


SEEDS = range(40)


def ids_and_passes(
    seed: int, method: str, display: Mapping[str, Value], **options: Value
) -> list[tuple[list[int], int]]:
    stream = Stream(RandomModel(seed, end_bias=0.5), method=method, options=options, display=display, max_tokens=12)
    found = []
    for utterance in ("one", "two"):
        for source in WORDS:
            stream.send(source, utterance, final=source == WORDS[-1])
            found.append((stream.output(), len(stream.asked)))
    return found


@pytest.mark.parametrize("beta", [0.2, 0.5])
def test_equal_biases_give_output_of_ssbd(beta: float) -> None:
    both: dict[str, Value] = {"beta": beta, "hidden_beta": beta, "search": 0}
    for seed in SEEDS[:12]:
        expected = ids_and_passes(seed, "ssbd", showing(), beta=beta)
        assert ids_and_passes(seed, "redraft", showing(), **both) == expected
        assert ids_and_passes(seed, "redraft", TWO, **both, stop=0.0) == ids_and_passes(seed, "ssbd", TWO, beta=beta)


@pytest.mark.parametrize("display", [showing(), TWO, showing(2, 0.3), showing(3)])
def test_without_bias_output_is_that_of_ar(display: Mapping[str, Value]) -> None:
    for seed in SEEDS[:20]:
        found = ids_and_passes(seed, "redraft", display, beta=0, hidden_beta=0, stop=0)
        expected = ids_and_passes(seed, "ar", display)
        assert [ids for ids, _ in found] == [ids for ids, _ in expected]


def test_bias_is_towards_what_is_shown() -> None:
    """Of the first output nothing is shown, so it is decoded again exactly; what is shown then is kept."""
    stream = Stream(Speaker(), method="redraft", options={"beta": 1, "hidden_beta": 0, "stop": 0}, display=TWO)
    plain = Stream(Speaker(), method="ar")
    for number, source in enumerate(("a b", "a b c", "a b d", "a b d e", "x y")):
        stream.send(source)
        plain.send(source)
        draft = stream.asked[0].draft
        kept = sum(each == 1 for each in stream.asked[0].biases or ())
        assert number > 1 or kept == 0
        assert number > 1 or stream.output() == plain.output()
        assert stream.output()[:kept] == list(draft.tokens[:kept])


class Prompted(Speaker):
    """Ends all its outputs; its prompts are those of a model for translation."""

    metadata: Mapping[str, str] = {PROMPT_KEY: "{source}<2{code}>"}

    def __init__(self, seed: int) -> None:
        super().__init__(period=13, shift=0.3)
        self.seed = seed


@pytest.mark.parametrize("n", [2, 3])
def test_full_bias_towards_what_is_shown_is_local_agreement(n: int) -> None:
    options: dict[str, Value] = {"beta": 0.5, "hidden_beta": 0.0, "stop": 0.0}
    compared = visible = withheld = saved = 0
    for seed in range(40):
        model = Prompted(seed)
        task = Task(model, "de", 24)
        peer = LocalAgreement(task, n)
        with Translator(model, ["de"], options={**options, **showing(n), "max_tokens": 24}) as ours:
            texts = []
            for seq in range(9):
                update = Update("1", seq, "aaaa bbbb cccc dddd eeee"[: 8 + 2 * seq], final=seq == 8)
                step, failures = peer.translate(update)
                if not step.tokens or failures:  # a final one would be decoded again; an endless one is no draft
                    break
                before = ours.state("de").tally.passes
                (caption,) = ours.translate(update)
                assert isinstance(caption, Caption)
                assert ours.state("de").output == step.tokens
                assert (caption.text, caption.unstable) == (step.text, step.unstable)
                texts.append(caption.text)
                compared += 1
                visible += bool(caption.text) and not caption.final
                withheld += bool(caption.unstable)
                saved += len(step.passes) - (ours.state("de").tally.passes - before)
            assert all(after.startswith(earlier) for earlier, after in pairwise(texts)), "no word is taken back"
        peer.close()
    assert compared > 200 and visible > 40 and withheld > 40 and saved > 0


class Growing(RandomModel):
    """Says "A", and "A B" for a source of two words or more, but there the end after "A" is half as probable."""

    A, B, MARK = 290, 291, 292

    def __init__(self) -> None:
        super().__init__(vocabulary=300)

    def logits(self, ids: Sequence[int]) -> np.ndarray:
        grown = self.tokenize(" ")[0] in ids
        after = {self.A: {self.B: 0.6, self.MARK: 0.3} if grown else {self.MARK: 0.9}, self.B: {self.MARK: 0.9}}
        chosen = after.get(ids[-1], {END: 0.9} if ids[-1] == self.MARK else {self.A: 0.9})
        row = np.full(self.vocabulary, math.log(0.1 / self.vocabulary))
        for token, probability in chosen.items():
            row[token] = math.log(probability)
        return row

    def token_bytes(self, token: int) -> bytes:
        return {self.A: b" A", self.B: b" B", self.MARK: b"."}.get(token, b"")


@pytest.mark.parametrize(
    ("method", "options", "text", "again"),
    [
        ("redraft", {}, "A B.", 1),
        ("redraft", {"search": 0}, "A B.", 1),  # needed, whatever the time
        ("redraft", {"beta": 0.5, "hidden_beta": 0.0}, "A.", 0),  # LocalAgreement: nothing is retracted
        ("ssbd", {"beta": 0.4}, "A.", 0),
        ("ar", {}, "A B.", 0),
    ],
)
def test_bias_does_not_keep_old_end(method: str, options: dict[str, Value], text: str, again: int) -> None:
    display = BY_DEFAULT if method == "redraft" else showing()
    stream = Stream(Growing(), method=method, options=options, display=display)
    for _ in range(2):
        assert stream.caption("one").text in ("", "A.")
    assert stream.caption("one more", final=True).text == text
    assert stream.states[0].tally.reopened == again


def test_same_words_keep_their_translation() -> None:
    stream = Stream(Growing(), method="redraft", options={}, display=BY_DEFAULT)
    stream.caption("one")
    assert stream.caption("One.", final=True).text == "A."
    assert stream.states[0].tally.reopened == 0
