"""Streams through models with recurrent layers: more languages than slots, sources that change, cancelled updates.

With ``HYPOTHESIS_PROFILE=thorough``, each model translates 1,000 updates, and its memory is watched; ``-rP`` shows the
counts.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import cast

import pytest
from hypothesis import settings

from redraft import Update
from redraft.backends.llama_model import LlamaModel
from redraft.backends.llama_slot import ANCHORS, AnchoredSlot
from redraft.backends.llamacpp import LlamaCpp
from redraft.backends.options import LlamaOptions
from redraft.captions.state import START
from redraft.decoding.drive import run
from redraft.engine.lanes import Answer, Lane
from redraft.protocol import Wanted
from tests.backends.test_going_back import OPTIONS, SLOTS, Fresh
from tests.gguf_models import CONTROL, VOCABULARY
from tests.hybrids import HYBRIDS
from tests.serve.fakes import CachedModel, Rig

#: Updates of all sessions and languages together, and of these those before memory is watched in a long run.
UPDATES, WARM = settings().max_examples // 2, 200
#: Growth of memory that can be fragments of the heap, in bytes.
MOST_GROWTH = 4 << 20
WORDS = "we saw her duck under the old table and it was there again".split()
LANGUAGES = ("de", "ja")
#: Re-translation, SSBD that must write the same, the default method, LocalAgreement, and copied drafts.
SESSIONS = (
    Wanted(targets=LANGUAGES, method="ar", options={"max_tokens": 16}),
    Wanted(targets=LANGUAGES, method="ssbd", options={"beta": 0.0, "max_tokens": 16}),
    Wanted(targets=LANGUAGES, method="redraft", options={"max_tokens": 16}),
    Wanted(targets=LANGUAGES, method="ar", options={"agree": 2, "max_tokens": 16}),
    Wanted(targets=LANGUAGES, method="pld", options={"max_tokens": 16}),
)


class Talk:
    """Utterances that grow, shrink and change."""

    def __init__(self, seed: int) -> None:
        self.draw, self.seq, self.utterance = random.Random(seed), 0, 0
        self.words: list[str] = []

    def next(self) -> Update:
        draw, kind = self.draw, self.draw.random()
        if kind < 0.2 and self.words:
            self.words[draw.randrange(len(self.words))] = draw.choice(WORDS)
        elif kind < 0.3:
            del self.words[draw.randint(0, len(self.words)) :]
        self.words += draw.choices(WORDS, k=draw.randint(1, 3))
        self.seq += 1
        final = len(self.words) > 12 or draw.random() < 0.1
        update = Update(str(self.utterance), self.seq, " ".join(self.words), final)
        if final:
            self.utterance, self.words = self.utterance + 1, []
        return update


class Sessions:
    """Sessions on a model, each answer of which is compared with what a fresh context gives in the same state."""

    def __init__(self, backend: LlamaCpp, fresh: Fresh) -> None:
        self.rig = Rig(cast("CachedModel", backend), slots=SLOTS, budget=32)
        self.fresh, self.slot = fresh, fresh.open_slot()
        self.greedy = {lane.translation.language: lane.translation for lane in self._lanes(0)}
        self.counts: Counter[str] = Counter()
        self.talks = [Talk(max(number, 1)) for number in range(len(SESSIONS))]  # the first two hear the same
        self.lanes = [self._begun(number) for number in range(len(SESSIONS))]

    def _lanes(self, number: int) -> list[Lane]:
        states = dict.fromkeys(LANGUAGES, START)

        def answered(answer: Answer) -> None:
            lane = made[answer.language]
            translation, before = lane.translation, states[answer.language]
            again = translation.rest(before) if answer.rest else translation.translate(before, answer.update)
            events, after = run(again, self.fresh, self.slot)
            assert (answer.events, lane.state.output) == (events, after.output)
            assert (lane.state.shown, lane.state.draft) == (after.shown, after.draft)
            if SESSIONS[number].method == "ssbd" and not answer.rest:
                greedy = self.greedy[answer.language].translate(START, answer.update)
                assert lane.state.output == run(greedy, self.fresh, self.slot)[1].output
            states[answer.language] = lane.state
            self.counts["updates"] += 1

        made = {each.language: Lane(each, answered) for each in self.rig.service.translations(SESSIONS[number])}
        return [*made.values()]

    def _begun(self, number: int) -> list[Lane]:
        lanes = self._lanes(number)
        for lane in lanes:
            self.rig.scheduler.add(lane)
        return lanes

    def replace(self, number: int) -> None:
        """End a session, and begin one like it."""
        for lane in self.lanes[number]:
            self.counts += Counter(cancelled=lane.abandoned, replaced=lane.coalesced)
            self.rig.scheduler.remove(lane)
        self.lanes[number] = self._begun(number)
        self.counts["sessions"] += 1

    def step(self, draw: random.Random) -> None:
        """Send a few updates to a session, or begin it again; then run passes, mostly until all is translated."""
        number, kind = draw.randrange(len(SESSIONS)), draw.random()
        if kind < 0.02:
            self.replace(number)
        for _ in range(draw.randint(1, 3)):
            update = self.talks[number].next()
            for lane in self.lanes[number]:
                self.rig.offer(lane, update)
                if kind > 0.95 and lane.state.update is not None:
                    self.rig.scheduler.offer(lane, lane.state.update, self.rig.clock(), rest=True)
            self._run(draw.randint(1, 6))
        if kind < 0.7:
            self._run(sys.maxsize)

    def _run(self, passes: int) -> None:
        while passes and self.rig.scheduler.step():
            passes -= 1
        self.counts["passes"] += len(self.rig.passes)
        self.rig.passes.clear()


def resident() -> int:
    """The memory of this process in bytes; 0 where it is unknown."""
    pages = Path("/proc/self/statm")
    return int(pages.read_text().split()[1]) * 4096 if sys.platform == "linux" and pages.exists() else 0


@pytest.mark.parametrize("name", ["LFM2", "Nemotron-H", "Qwen3.5"])
def test_streams(name: str, tmp_path: Path) -> None:
    model = LlamaModel(HYBRIDS[name](tmp_path / "model.gguf"), LlamaOptions(gpu_layers=0), anchored=True)
    with (
        closing(model),
        closing(LlamaCpp(model.path, OPTIONS, model)) as backend,
        closing(Fresh(model.path, OPTIONS, model)) as fresh,
    ):
        for each in (backend, fresh):  # random models would hardly ever end
            each.end_tokens = frozenset(range(len(CONTROL), VOCABULARY, 12))
            each.metadata = {"redraft.prompt": "Translate: {source}<2{code}>", "redraft.final_mark": ""}
        sessions, draw, before = Sessions(backend, fresh), random.Random(1), 0
        while sessions.counts["updates"] < UPDATES:
            sessions.step(draw)
            before = before or (resident() if sessions.counts["updates"] > WARM else 0)
        growth = resident() - before if before else 0
        for number in range(len(SESSIONS)):
            sessions.replace(number)
        for slot in backend._slots.values():
            assert isinstance(slot, AnchoredSlot)
            assert len(slot.anchors) + len(slot.spare) == ANCHORS
        print(f"{name}: {dict(sessions.counts)}; memory {before / 2**20:.1f} MiB, then {growth / 2**20:+.1f} MiB")
        assert not before or (sessions.counts["cancelled"] and sessions.counts["replaced"])
        assert growth < MOST_GROWTH
