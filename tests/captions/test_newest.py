"""The rule of everything that waits to be translated."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from redraft.captions.events import Newest, Update

#: A partial or a final update of an utterance; or one is taken.
STEPS = st.lists(st.just("take") | st.tuples(st.sampled_from("uvw"), st.booleans()), max_size=40)


@given(STEPS)
def test_newest(steps: list[str | tuple[str, bool]]) -> None:
    """Finals all come out; a partial one does unless a newer one of its utterance came; both in the order they came."""
    waiting, come, replaced, taken = Newest[Update](), list[Update](), list[Update](), list[Update]()
    for number, step in enumerate(steps):
        if step == "take" and waiting:
            taken.append(waiting.take())
        elif isinstance(step, tuple):
            update = Update(step[0], number, "", final=step[1])
            come.append(update)
            if older := waiting.put(update, update.utterance, final=update.final):
                assert update.overtakes(older)
                replaced.append(older)
        partial = [each.utterance for each in waiting.values() if not each.final]
        assert len(partial) == len({*partial})  # what waits is bounded by utterances and finals
    taken += [waiting.take() for _ in list(waiting)]
    assert taken == [each for each in come if each not in replaced]
    assert not any(each.final for each in replaced)
