"""What is visible of a session, decided in one place for viewers, the transcript and its file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from redraft.captions.events import Caption
from redraft.serve.sessions.broadcast import Broadcast
from redraft.serve.sessions.transcript import SessionFile
from redraft.serve.sessions.visibility import Key, Visibility

KEYS: list[Key] = [("1", "de"), ("1", "ja"), ("2", "de")]
#: A decision by name, and what it does to a plain list of what arrived during the pause.
STEPS = st.lists(st.tuples(st.sampled_from(["arrive", "hide", "show", "pause", "release"]), st.sampled_from(KEYS)))


@given(STEPS)
def test_any_decisions(steps: list[tuple[str, Key]]) -> None:
    visible, hidden, paused, held = Visibility(), set[Key](), False, set[Key]()
    does: dict[str, Callable[[Key], object]] = {
        "arrive": visible.arrived,
        "hide": lambda key: visible.hide(key, True),
        "show": lambda key: visible.hide(key, False),
        "pause": lambda _: visible.pause(),
        "release": lambda _: visible.release(),
    }
    for name, key in steps:
        does[name](key)
        paused = name == "pause" or (paused and name != "release")
        held = set() if name == "release" else held | ({key} if name == "arrive" and paused else set())
        hidden = hidden | {key} if name == "hide" else hidden - {key} if name == "show" else hidden
        shown = [each not in hidden | held for each in KEYS]
        assert [visible.shows(each) for each in KEYS] == shown
        assert [visible.sends(each) for each in KEYS] == [each and not paused for each in shown]


def test_file_follows_edits(tmp_path: Path) -> None:
    broadcast = Broadcast(("de",))
    file = SessionFile(tmp_path, "1", broadcast.transcript)

    def rows() -> int:
        file.rewrite()
        return len((tmp_path / "1.jsonl").read_text(encoding="utf-8").splitlines())

    for utterance in "12":
        broadcast.final(caption := Caption(utterance, 0, "de", "wir", "", True), 0.0)
        file.add(caption)
    assert rows() == 2
    broadcast.hide(("1", "de"), True)
    assert rows() == 1
    broadcast.pause(True)
    broadcast.hide(("1", "de"), False)
    assert rows() == 2  # the operator's file has what is held back from viewers
