"""Words that the recogniser has committed: they are trusted, and a commit of translated words costs no pass."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redraft import Caption, Update
from redraft.captions.events import Failure
from redraft.captions.state import Settings, State, Vocabulary
from redraft.captions.translation import Translation
from redraft.captions.words import WORD
from redraft.decoding.drive import run
from redraft.decoding.methods import get_method
from redraft.decoding.types import Prompt
from redraft.errors import InputError
from redraft.speech.sentences import SentenceCutter
from tests.fakes import RandomModel

WORDS = "we saw her duck under the table and left house. before it rained, again".split()
SEEDS = st.integers(0, 100_000)


class Lane:
    """A translation on a table model, with its requests."""

    def __init__(self, seed: int, first_sight: float, stop: float = 0.0) -> None:
        self.model = RandomModel(seed, shift=0.1, end_bias=1.0)
        method = get_method("redraft")
        model = self.model
        vocabulary = Vocabulary(model.end_tokens, model.token_bytes, model.tokenize, 400)
        settings = Settings(method, {"stop": stop, "first_sight": first_sight, "max_tokens": 12})
        self.translation = Translation(
            "de", lambda text, *_: Prompt(tuple(model.tokenize(f"{text}>"))), vocabulary, settings
        )
        self.state = State()

    def send(self, update: Update) -> tuple[Caption, int]:
        """The caption, and the number of passes."""
        before = len(self.model.requests)
        events, self.state = run(self.translation.translate(self.state, update), self.model, 0)
        captions = [each for each in events if isinstance(each, Caption)]
        return captions[-1], len(self.model.requests) - before


def unstable(rng: random.Random) -> list[Update]:
    """Updates of an utterance whose last word is often taken back, so that the stream's end is not trusted."""
    words, made = [rng.choice(WORDS)], list[Update]()
    for seq in range(rng.randint(1, 6)):
        words = [*words[:-1], *rng.sample(WORDS, rng.randint(1, 3))]
        made.append(Update("1", seq, " ".join(words)))
    return made


@given(SEEDS, st.sampled_from([0.05, 0.2, 0.5]))
def test_commit_releases_without_pass(seed: int, first_sight: float) -> None:
    """A commit of translated words shows at once what they would have shown if they had come committed."""
    updates = unstable(random.Random(seed))
    later, at_once = Lane(seed, first_sight), Lane(seed, first_sight)
    for update in updates[:-1]:
        assert later.send(update) == at_once.send(update)
    last = updates[-1]
    count = len(WORD.findall(last.text))
    before, _ = later.send(last)
    after, passes = later.send(replace(last, seq=last.seq + 1, committed=count))
    expected, _ = at_once.send(replace(last, committed=count))
    assert passes == 0
    assert (after.text, after.unstable) == (expected.text, expected.unstable)
    assert after.text.startswith(before.text)


def test_commit_shows_more() -> None:
    """Somewhere a commit does release words; otherwise the test above would prove nothing."""
    released = 0
    for seed in range(60):
        lane, updates = Lane(seed, 0.2), unstable(random.Random(seed))
        shown = [lane.send(update)[0] for update in updates][-1].text
        last = updates[-1]
        after, _ = lane.send(replace(last, seq=last.seq + 1, committed=100))
        released += len(after.text) > len(shown)
    assert released


@given(SEEDS, st.integers(0, 3))
def test_tail_is_not_trusted(seed: int, tail: int) -> None:
    """As long as a word is not committed, a count changes nothing."""
    plain, counted = Lane(seed, 0.2, 0.1), Lane(seed, 0.2, 0.1)
    for update in unstable(random.Random(seed)):
        count = max(0, len(WORD.findall(update.text)) - 1 - tail)
        assert plain.send(update) == counted.send(replace(update, committed=count))


@pytest.mark.parametrize("value", [-1, 1.0, True, "1"])
def test_invalid(value: object) -> None:
    with pytest.raises(InputError, match="committed"):
        Update("1", 0, "we", committed=value)  # type: ignore[arg-type]


# The sentence cutter


def recognised(rng: random.Random) -> list[Update]:
    """A recogniser that commits its words one by one, behind which it guesses; utterances end now and then."""
    made, time = list[Update](), 0.0
    for utterance in range(1, rng.randint(2, 4)):
        committed: list[str] = []
        for seq in range(rng.randint(1, 8)):
            committed += rng.choices(WORDS, k=rng.randint(0, 3))
            text = [*committed, *rng.choices(WORDS, k=rng.randint(0, 3))]
            time += rng.choice([0.1, 0.4])
            made.append(Update(str(utterance), seq, " ".join(text), False, round(time, 1), None, len(committed)))
        made.append(Update(str(utterance), 99, " ".join(committed), True, round(time, 1)))
    return made


def cut(updates: Sequence[Update], *, whole: bool = False) -> list[Update]:
    cutter = SentenceCutter(whole=whole)
    found = [each for update in updates for each in cutter.update(update)]
    found += cutter.finish()
    assert not any(isinstance(each, Failure) for each in found)
    return [each for each in found if isinstance(each, Update)]


@given(SEEDS, st.booleans())
def test_cutter_keeps_promise(seed: int, whole: bool) -> None:
    """Words that a sentence's update calls committed are those of its final text, and no word is lost."""
    updates = recognised(random.Random(seed))
    made = cut(updates, whole=whole)
    finals = {each.utterance: each.text.split() for each in made if each.final}
    spoken = [word for each in updates if each.final for word in each.text.split()]
    assert [word for words in finals.values() for word in words] == spoken
    for each in made:
        if each.committed is not None and not each.final:
            sure = each.text.split()[: each.committed]
            assert finals[each.utterance][: len(sure)] == sure


def test_committed_end_is_cut_at_once() -> None:
    """A sentence whose end is committed does not wait for two seconds."""
    text = "We left. It"
    cutter = SentenceCutter()
    made = [each for each in cutter.update(Update("1", 0, text, time=1.0, committed=2)) if isinstance(each, Update)]
    assert [(each.text, each.final, each.committed) for each in made if each.final] == [("We left.", True, None)]
    assert (made[-1].text, made[-1].committed) == ("It", 0)
    waits = list(SentenceCutter().update(Update("1", 0, text, time=1.0, committed=1)))
    assert not any(each.final for each in waits if isinstance(each, Update))
