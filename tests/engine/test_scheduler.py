"""Many lanes on one table model: outputs as alone, fewer passes, the newest update wins, faults affect one lane."""

from __future__ import annotations

import random
import sys
from dataclasses import replace
from itertools import count, pairwise
from statistics import median
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from redraft.backends.costs import busy_share
from redraft.captions.events import Failure, Update
from redraft.captions.languages import Language
from redraft.captions.style import Style
from redraft.decoding.backend import CostCurve
from redraft.decoding.drive import open_slots
from redraft.decoding.types import TARGET, Tally
from redraft.engine.lanes import Lane, Work
from redraft.engine.scheduler import LEAST_BUDGET, MOST_BUDGET, Load, NoCapacity, Scheduler, budget
from redraft.engine.slots import SlotPool
from redraft.errors import CapabilityError, OptionError
from redraft.protocol import Wanted
from redraft.translator import prompt_encoder
from tests.serve.fakes import CURVE, CachedModel, Rig, alone

#: One language keeps up with speech.
SLOW = CostCurve((1, 2, 16, 64), (0.11, 0.125, 0.25, 0.7))

WORDS = "we saw her duck under the old table and it was there again".split()


def talk(seed: int, utterances: int = 2) -> list[Update]:
    """A stream with corrections, every utterance ended."""
    chance, updates = random.Random(seed), []
    for number in range(utterances):
        words = [chance.choice(WORDS) for _ in range(chance.randint(2, 5))]
        for seq in range(1, len(words) + 1):
            if chance.random() < 0.3:
                words[chance.randrange(seq)] = chance.choice(WORDS)
            updates.append(Update(f"u{number}", seq, " ".join(words[:seq]), seq == len(words)))
    return updates


def finals(rig: Rig, lane: Lane) -> list[tuple[str, str]]:
    return [(caption.utterance, caption.text) for caption in rig.captions(lane) if caption.final]


def test_many_sessions() -> None:
    rig = Rig(CachedModel(7, slots=40), slots=40, budget=64)
    methods = ("ar", "ssbd", "redraft", "pld")
    sessions = [(rig.lanes(method=methods[seed % 4])[0], talk(seed, 1)) for seed in range(24)]
    left = {lane: list(updates) for lane, updates in sessions}
    chance = random.Random(0)
    while left:
        lane = chance.choice(list(left))
        rig.offer(lane, left[lane].pop(0))
        if not left[lane]:
            del left[lane]
        for _ in range(chance.randint(0, 2)):
            rig.scheduler.step()
    rig.run()
    for lane, updates in sessions:
        expected = [(each.utterance, each.text) for each in alone(7, updates) if each.final]
        assert finals(rig, lane) == expected
    assert max(each.requests for each in rig.passes) > 5
    assert max(rig.model.new) <= 64


def test_shared_passes() -> None:
    rig = Rig(CachedModel(3))
    lanes = [rig.lanes(method=method)[0] for method in ("ar", "ssbd", "ssbd")]
    for text in ("we saw", "we saw her duck"):
        for lane in lanes:
            rig.offer(lane, Update("u", len(text), text))
        rig.run()
    assert [rig.captions(lane)[-1].text for lane in lanes] == [rig.captions(lanes[0])[-1].text] * 3
    assert any(each.requests == 3 for each in rig.passes)
    longest = max(lane.state.tally.passes for lane in lanes)
    assert len(rig.passes) == longest  # whoever needs fewer shares those of whoever needs most


@settings(max_examples=settings().max_examples // 2)
@given(st.integers(0, 1000), st.integers(1, 6), st.integers(1, 40))
def test_slots_and_budgets(seed: int, slots: int, budget: int) -> None:
    rig = Rig(CachedModel(seed, slots=slots), slots=slots, budget=budget)
    sessions = [(rig.lanes(method="ar")[0], talk(seed + n, 1)) for n in range(4)]
    for lane, updates in sessions:
        for update in updates:
            rig.offer(lane, update)
            rig.scheduler.step()
    rig.run()
    for lane, updates in sessions:
        assert finals(rig, lane) == [(each.utterance, each.text) for each in alone(seed, updates) if each.final]


@pytest.mark.parametrize("most", [1, 3])
def test_most_lanes(most: int) -> None:
    rig = Rig(CachedModel(2), most=most)
    sessions = [(rig.lanes(method="ar")[0], talk(seed, 1)) for seed in range(5)]
    for lane, updates in sessions:
        for update in updates:
            rig.offer(lane, update)
    rig.run()
    for lane, updates in sessions:
        assert finals(rig, lane) == [(each.utterance, each.text) for each in alone(2, updates) if each.final]
    assert max(each.requests for each in rig.passes) == most


def test_budget_splits_prompts() -> None:
    rig = Rig(CachedModel(1), budget=20)
    (long,), (short,) = rig.lanes(method="ar"), rig.lanes(method="ar")
    rig.offer(long, Update("u", 1, "word " * 60))
    rig.offer(short, Update("u", 1, "we"))
    rounds = 0
    while not rig.captions(short):
        rig.scheduler.step()
        rounds += 1
    assert not rig.captions(long)  # who says little does not wait for who says much
    rig.run()
    assert max(rig.model.new) <= 20
    assert rig.captions(long) == alone(1, [Update("u", 1, "word " * 60)])


def test_large_draft() -> None:
    rig = Rig(CachedModel(1), budget=2)
    (lane,), (other,) = rig.lanes(), rig.lanes()
    for number, text in enumerate(("we saw her duck", "we saw her duck under")):
        rig.offer(lane, Update("u", number, text))
        rig.offer(other, Update("u", number, text))
        rig.run()
    assert rig.captions(lane) == rig.captions(other) == alone(1, [each.update for _, each in rig.answers[::2]])
    assert max(rig.model.new) > 2


def test_fair_queue() -> None:
    rig = Rig(CachedModel(2, slots=30), slots=30, budget=10)
    lanes = [rig.lanes(method="ar")[0] for _ in range(30)]
    for lane in lanes:
        rig.offer(lane, Update("u", 1, "we saw"))
    rig.run()
    passes = [lane.state.tally.passes for lane in lanes]
    # Prompts of 8 ids or so, then single tokens, ten a pass.
    assert len(set(passes)) == 1 and len(rig.passes) <= 30 * 2 + 3 * passes[0] + 3


def test_more_lanes_than_slots() -> None:
    rig = Rig(CachedModel(4, slots=2), slots=2)
    lanes = [rig.lanes(method="ar")[0] for _ in range(7)]
    for lane in lanes:
        rig.offer(lane, Update("u", 1, "we saw", final=True))
        rig.offer(lane, Update("v", 1, "her duck", final=True))
    rig.run()
    expected = finals(rig, lanes[0])
    assert len(expected) == 2 and all(finals(rig, lane) == expected for lane in lanes)
    # Everybody's first comes before anybody's second.
    assert [answer.update.utterance for _, answer in rig.answers] == ["u"] * 7 + ["v"] * 7


def test_idle_lane() -> None:
    model = CachedModel(5, slots=1)
    rig = Rig(model, slots=1)
    (first,), (second,) = rig.lanes(), rig.lanes()
    for seq, text in enumerate(("we saw", "we saw her", "we saw her duck")):
        for lane in (first, second):
            rig.offer(lane, Update("u", seq, text))
            rig.run()
    updates = [Update("u", seq, text) for seq, text in enumerate(("we saw", "we saw her", "we saw her duck"))]
    assert rig.captions(first) == rig.captions(second) == alone(5, updates, method="ssbd")
    rig.scheduler.remove(first)
    rig.scheduler.remove(second)
    assert (rig.scheduler.pool.lent, rig.scheduler.lanes) == (0, 0)
    assert model.cache == {0: ()}


# The newest update wins


def test_coalescing() -> None:
    rig = Rig(CachedModel(6))
    (lane,) = rig.lanes(method="ar")
    for update in (
        Update("u", 1, "we"),
        Update("u", 2, "we saw"),
        Update("u", 3, "we saw her", final=True),
        Update("v", 1, "it"),
        Update("v", 2, "it was"),
        Update("w", 1, "there", final=True),
    ):
        rig.offer(lane, update)
        rig.clock.now += 1
    rig.run()
    assert [(c.utterance, c.seq) for c in rig.captions(lane)] == [("u", 3), ("v", 2), ("w", 1)]
    # The lag counts from the oldest news: the first "we", the first "it".
    assert [answer.lag for _, answer in rig.answers] == [6, 3, 1]
    assert lane.coalesced == 3


OFFERED = st.tuples(st.sampled_from("uvw"), st.sampled_from(["partial", "partial", "final", "rest", "begin"]))


@given(st.lists(OFFERED, max_size=30))
@example([("u", "rest"), ("v", "partial"), ("u", "rest")])
def test_queue_as_a_list(offered: list[tuple[str, str]]) -> None:
    """A newer update replaces what waits of its utterance, in a list that is searched for it."""
    rig, queued, now = Rig(CachedModel(1)), list[tuple[Update, float, bool]](), count()
    (lane,) = rig.lanes(method="ar")
    for name, kind in offered:
        time = next(now)
        if kind == "begin":
            if queued and not lane.running:
                begun = next(iter(lane._waiting.values()))
                assert (begun.update, begun.since, begun.rest) == queued.pop(0)
                lane.begin((), time)
            continue
        update, since = Update(name, time, "we saw", kind == "final"), float(time)
        if kind == "rest":
            queued = [each for each in queued if (each[0].utterance, each[2]) != (name, True)]
        else:
            older = [each for each in queued if update.overtakes(each[0])]
            since = min([since, *(each[1] for each in older)])
            queued = [each for each in queued if each not in older]
        queued.append((update, since, kind == "rest"))
        lane.offer(update, time, rest=kind == "rest", abandon=False)
    assert [(each.update, each.since, each.rest) for each in lane._waiting.values()] == queued


def test_cost_of_an_update() -> None:
    """Offering one takes as many calls however many wait."""
    (lane,), calls = Rig(CachedModel(1)).lanes(method="ar"), list[int]()
    for seq in range(300):
        calls.append(0)

        def counted(_frame: object, event: str, _argument: object) -> None:
            calls[-1] += event in ("call", "c_call")

        update = Update(f"u{seq}", 0, "we saw", final=seq % 3 > 0)
        sys.setprofile(counted)
        lane.offer(update, 0.0)
        sys.setprofile(None)
    assert median(calls[:100]) == median(calls[-100:])


def test_remembering_while_translating() -> None:
    """What is being translated goes on; the next update has the sentence in its context, after what that one leaves."""
    rig = Rig(CachedModel(6))
    (lane,) = rig.lanes(method="ar", context=2)
    rig.offer(lane, Update("u", 1, "we saw", final=True))
    rig.scheduler.step()
    running = lane.current
    lane.remember("there", "dort")
    assert lane.running and lane.current is running
    rig.run()
    (before,) = lane.state.earlier
    rig.offer(lane, Update("v", 1, "her duck"))
    rig.run()
    assert lane.state.earlier == (before, ("there", "dort", None)) and len(rig.captions(lane)) == 2


def test_abandoned_update() -> None:
    rig = Rig(CachedModel(6))
    (lane,) = rig.lanes(method="ar")
    rig.offer(lane, Update("u", 1, "we saw"))
    rig.run()
    rig.offer(lane, Update("u", 2, "we saw her"))
    rig.scheduler.step()
    rig.offer(lane, Update("u", 3, "we saw her duck"))
    assert lane.abandoned == 1
    rig.scheduler.step()
    rig.offer(lane, Update("u", 4, "we saw her duck under"))
    assert lane.abandoned == 1  # one that has waited is not: something is to be shown
    rig.run()
    assert [caption.seq for caption in rig.captions(lane)] == [1, 3, 4]
    assert rig.captions(lane)[-1] == alone(6, [Update("u", 4, "we saw her duck under")])[0]


def test_finished_update() -> None:
    rig = Rig(CachedModel(6))
    (lane,) = rig.lanes()
    # One tally says that drafts are nearly all of the output: a finished one saves the next update its passes.
    tally = Tally(updates=10, passes=30, tokens=100, accepted=90)
    lane.state = replace(lane.state, tally=tally)
    rig.offer(lane, Update("u", 1, "we saw"))
    rig.scheduler.step()
    rig.offer(lane, Update("u", 2, "we saw her"))
    assert lane.abandoned == 0


def test_final_never_abandoned() -> None:
    rig = Rig(CachedModel(6))
    (lane,) = rig.lanes(method="ar")
    rig.offer(lane, Update("t", 1, "it was"))
    rig.run()
    rig.offer(lane, Update("u", 1, "we saw", final=True))
    rig.scheduler.step()
    rig.offer(lane, Update("u", 2, "we saw her", final=True))
    rig.run()
    assert [(c.utterance, c.seq) for c in rig.captions(lane)] == [("t", 1), ("u", 1), ("u", 2)]


def test_bounded_lag() -> None:
    rig = Rig(CachedModel(8))
    (lane,) = rig.lanes(method="ar", max_tokens=12)
    text, lags = "", []
    for seq in range(300):
        text = f"{text} {WORDS[seq % len(WORDS)]}"[-60:]
        rig.offer(lane, Update("u", seq, text))
        rig.scheduler.step()
        rig.clock.now += 1
        lags = [answer.lag for _, answer in rig.answers]
    # An update given up and the one after it, of twelve passes each.
    assert len(lags) > 10 and max(lags) <= 24


# Faults


def test_failing_request() -> None:
    rig = Rig(CachedModel(9, broken=lambda scores: any(len(score.prefix) > 200 for score in scores)))
    good = [rig.lanes(method="ar")[0] for _ in range(5)]
    (bad,) = rig.lanes(method="ar")
    for lane in (*good, bad):
        rig.offer(lane, Update("u", 1, "poison" * 40 if lane is bad else "we saw", final=True))
    rig.run()
    assert all(finals(rig, lane) == finals(rig, good[0]) != [] for lane in good)
    (answer,) = [answer for lane, answer in rig.answers if lane is bad]
    (failure,) = answer.events
    assert isinstance(failure, Failure)
    assert (failure.utterance, failure.seq, failure.language) == ("u", 1, "de")
    assert failure.message == "the update could not be translated: the model failed on it"
    # And that session goes on.
    rig.offer(bad, Update("v", 1, "we saw", final=True))
    rig.run()
    assert finals(rig, bad)[0][1] == finals(rig, good[0])[0][1]


def test_flaky_model() -> None:
    chance = random.Random(1)
    rig = Rig(CachedModel(9, broken=lambda scores: len(scores) > 1 and chance.random() < 0.4))
    sessions = [(rig.lanes()[0], talk(seed)) for seed in range(6)]
    for lane, updates in sessions:
        for update in updates:
            rig.offer(lane, update)
    rig.run()
    assert rig.scheduler.failed_passes > 3 and rig.scheduler.failed_lanes == 0
    for lane, updates in sessions:
        assert finals(rig, lane) == [(each.utterance, each.text) for each in alone(9, updates) if each.final]


def test_removed_mid_update() -> None:
    rig = Rig(CachedModel(9))
    (stays,), (leaves,) = rig.lanes(method="ar"), rig.lanes(method="ar")
    for lane in (stays, leaves):
        rig.offer(lane, Update("u", 1, "we saw her", final=True))
    rig.scheduler.step()
    rig.scheduler.remove(leaves)
    rig.scheduler.remove(leaves)
    rig.run()
    assert finals(rig, stays) and not finals(rig, leaves)
    assert rig.scheduler.pool.lent == 1


def test_longest_waiting_first() -> None:
    rig = Rig(CachedModel(3), slots=8, most=2)
    lanes = [lane for _ in range(5) for lane in rig.lanes(method="ar")]
    for lane in lanes:
        rig.offer(lane, Update("u", 1, "we saw her", final=True))
    begun: list[Lane] = []
    while rig.scheduler.step():
        running = [lane for lane in lanes if lane.running]
        assert len(running) <= 2
        begun += [lane for lane in running if lane not in begun]
    assert begun == lanes
    assert [lane for lane, _ in rig.answers] and {lane for lane, _ in rig.answers} == set(lanes)
    assert max(each.requests for each in rig.passes) == 2


# Capacity


def test_refused_by_load() -> None:
    rig = Rig(CachedModel(1))
    load, each = rig.scheduler.load, busy_share(CURVE)
    load.check(round(0.8 / each), 1, 0.0, 0.0)
    with pytest.raises(NoCapacity, match="at its capacity"):
        load.check(round(1.1 / each), 1, 0.0, 0.0)
    with pytest.raises(NoCapacity, match="at its capacity"):  # as many have only just come
        load.check(round(0.6 / each), round(0.6 / each), 0.0, 0.0)
    for tenth in range(100):
        load.worked(0.05, tenth / 10)
    assert load.busy(9.9) == pytest.approx(0.5)
    load.check(9, 10, 100.0, 9.9)  # a bit less than 0.05 each
    with pytest.raises(NoCapacity, match="101% of the time"):
        load.check(11, 10, 100.0, 9.9)
    with pytest.raises(NoCapacity, match="106% of the time"):  # ten have only just come
        load.check(3, 20, 100.0, 9.9)
    with pytest.raises(NoCapacity, match="102% of the time"):  # each was there for half of the time only
        load.check(2, 10, 50.0, 9.9)
    assert load.busy(100.0) == 0


def test_idle_server_admits_a_session(caplog: pytest.LogCaptureFixture) -> None:
    """However slow the model is; the log says what it can do."""
    load = Load(0.85, lambda: SLOW)
    load.check(1, 0, 0.0, 0.0)
    assert not caplog.records
    load.check(3, 0, 0.0, 0.0)
    assert "enough for live speech in 1 language, but not in 3" in caplog.text
    with pytest.raises(NoCapacity, match="3 more languages"):
        load.check(3, 1, 0.0, 0.0)


def test_what_the_model_can_do() -> None:
    rig = Rig(CachedModel(1))
    scheduler = rig.scheduler
    for size, seconds in zip(SLOW.sizes, SLOW.seconds, strict=True):
        for _ in range(8):
            scheduler.costs.took(size, seconds)
    lanes = rig.lanes("de", "ja", "zh")
    assert scheduler.able() == ""  # nobody has spoken
    rig.offer(lanes[0], Update("u", 0, "we"))
    while not lanes[0].worked:
        scheduler.step()
    assert scheduler.able() == ""
    for lane in lanes[1:]:
        lane.worked = rig.clock()
    assert "enough for live speech in 1 language, but not in 3" in scheduler.able()
    rig.clock.now += 60
    assert scheduler.able() == ""


@pytest.mark.parametrize(("targets", "most"), [(("de",), 8), (("de", "ja", "zh"), 8), (("de", "ja", "zh"), 1)])
def test_slow_model_keeps_up(targets: tuple[str, ...], most: int) -> None:
    """Updates come faster than they are translated: the lag stays within two updates' time, in each language.

    The first words of an utterance also wait for the final update before them, which is never passed over.
    """
    rig = Rig(CachedModel(1), most=most)
    lanes, done, said = rig.lanes(*targets, method="ar"), dict[Lane, list[float]](), list[Update]()
    words = [f"word{number}" for number in range(12)]
    for number in range(400):
        utterance, seq = divmod(number, len(words))
        said.append(Update(str(utterance), seq, " ".join(words[: seq + 1]), final=seq == len(words) - 1))
        for lane in lanes:
            rig.offer(lane, said[-1])
        until = rig.clock.now + 0.1
        while rig.clock.now < until:
            assert rig.scheduler.step()
            rig.clock.now += 0.04  # a pass
            for lane, _ in rig.answers[sum(map(len, done.values())) :]:
                done.setdefault(lane, []).append(rig.clock.now)
    counts = [len(times) for times in done.values()]
    assert most > 1 or max(counts) - min(counts) <= 1  # they take turns
    for lane in lanes:
        longest = max(after - before for before, after in pairwise(done[lane]))
        answers = [answer for each, answer in rig.answers if each is lane]
        finals = [int(answer.update.utterance) for answer in answers if answer.update.final]
        assert finals == list(range(len(finals))) and len(finals) > 25
        assert lane.coalesced > 40
        for before, answer in pairwise(answers):
            assert answer.lag <= (3 if before.update.final else 2) * longest + 0.01


def test_the_scheduler_knows_who_works() -> None:
    rig = Rig(CachedModel(1))
    (lane,) = rig.lanes()
    rig.scheduler.check_load(1)
    rig.offer(lane, Update("u", 1, "we"))
    rig.run()
    assert lane.worked == rig.clock.now
    rig.scheduler.check_load(1)


def test_cost_is_learned_from_passes() -> None:
    """Nothing is measured before: a fresh server admits sessions."""
    rig, ticks = Rig(CachedModel(1), slots=1), count()
    backends = {TARGET: rig.model}
    rig.scheduler = Scheduler(backends, open_slots(backends, 1), clock=lambda: next(ticks) / 1000)
    assert not rig.model.requests
    rig.scheduler.check_load(100)
    (lane,) = rig.lanes()
    rig.offer(lane, Update("1", 0, "a b c d e f", final=True))
    rig.run()
    curve = rig.scheduler.costs.curve()
    assert curve is not None and curve(1) >= 0.001
    with pytest.raises(NoCapacity, match="at its capacity"):
        rig.scheduler.load.check(200, 1, 0.0, 1000.0)


def test_idle_lanes_are_free() -> None:
    rig = Rig(CachedModel(1))
    for _ in range(120):
        rig.lanes()
    with pytest.raises(NoCapacity, match="at its capacity"):  # all of them may begin to speak
        rig.scheduler.check_load(1)
    rig.clock.now += 11
    rig.scheduler.check_load(1)


@pytest.mark.parametrize("seconds", [0.0, 0.005, 0.1, 100.0])
def test_budget(seconds: float) -> None:
    found = budget(CURVE, seconds)
    assert LEAST_BUDGET <= found <= MOST_BUDGET
    assert found == MOST_BUDGET or CURVE(found + 1) > seconds
    assert found == LEAST_BUDGET or CURVE(found) <= seconds


def test_adjacent_slots() -> None:
    model = CachedModel(slots=8)
    pool = SlotPool({TARGET: model}, open_slots({TARGET: model}, 8))

    def number(owner: Work) -> int:
        slot = pool.take(owner)
        assert slot is not None
        return slot.numbers[TARGET]

    owners = [Work() for _ in range(9)]
    assert [number(owner) for owner in owners[:5]] == [0, 1, 2, 3, 4]
    for place in (1, 3, 0):
        pool.give_back(owners[place])
    assert [number(owner) for owner in owners[5:]] == [0, 1, 3, 5]


def test_too_few_slots() -> None:
    with pytest.raises(CapabilityError, match="in use"):
        open_slots({TARGET: CachedModel(slots=2)}, 3)


@pytest.mark.parametrize(
    ("wanted", "complaint"),
    [
        (Wanted(targets=("de",) * 2), "targets must be different languages"),
        (Wanted(targets=("de", "German")), "targets must be different languages"),
        (Wanted(targets=("zh", "zh-Hans")), "targets must be different languages"),
        (Wanted(targets=("xx-nonsense",)), "target 'xx-nonsense' is not known"),
        (Wanted(targets=("de",), source_language="?"), "source language '?' is not known"),
        (Wanted(targets=("de",), method="bild"), "method must be one of ssbd, ar, redraft, pld, not 'bild'"),
        (Wanted(targets=("de",), options={"beta": 2}), "beta must be a number from 0 to 1"),
        (Wanted(targets=("de",), options={"max_tokens": 0}), "max_tokens must be a whole number from 1 to 65536"),
        (
            Wanted(targets=("de",), glossary={"de": (("a", "b"),) * 65}),
            "glossary must have at most 64 entries for a language, not 65",
        ),
        (Wanted(targets=("de", "ja"), glossary={"fr": ()}), "glossary must be for one of de, ja, not 'fr'"),
    ],
)
def test_operator_limits(wanted: Wanted, complaint: str) -> None:
    with pytest.raises(OptionError, match=complaint.replace("?", r"\?")):
        Rig(CachedModel()).service.translations(wanted)


def test_glossary_of_each_language(monkeypatch: pytest.MonkeyPatch) -> None:
    terms = dict[str, tuple[tuple[str, str], ...]]()
    service = Rig(CachedModel()).service
    encoder = prompt_encoder
    plain = Style()

    def keep(backend: Any, style: Style, target: Language, context: int) -> Any:
        terms[target.tag] = style.terms(target)
        return encoder(backend, plain, target, context)

    monkeypatch.setattr("redraft.serve.service.prompt_encoder", keep)
    wanted = Wanted(targets=("de", "Japanese", "zh-Hans"), glossary={"de": (("a", "b"),), "zh": (("a", "c"),)})
    service.translations(wanted)
    assert terms == {"de": (("a", "b"),), "ja": (), "zh-Hans": (("a", "c"),)}
