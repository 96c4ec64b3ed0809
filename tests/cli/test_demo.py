"""The demo: what it shows on terminals of all sizes, how it stops, and what it leaves behind."""

from __future__ import annotations

import io
import re
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import pytest
from rich.cells import cell_len
from rich.console import Console

from redraft import interrupt
from redraft.captions.events import Update
from redraft.cli.demo import stage
from redraft.cli.demo.scene import Scene, View, draw
from redraft.measure.eval.measure import Run
from tests.cli.conftest import Run as Command
from tests.cli.terminals import Terminal, program

#: What switches to a terminal's second screen and back.
OWN_SCREEN, BACK = "\x1b[?1049h", "\x1b[?1049l"


def scene(languages: Sequence[str] = ("de", "zh", "ja"), methods: Sequence[str] = ("ar", "ssbd")) -> Scene:
    texts = {
        "de": "Guten Abend, meine Damen und Herren. ",
        "zh": "晚上好，女士们先生们。",
        "ja": "皆さん、こんばんは。",
    }
    views = tuple(
        View(tag, method, method, (texts[tag] * 4,), texts[tag] * 3, "NEWEST", 12345, 67890)
        for tag in languages
        for method in methods
    )
    return Scene("good evening " * 30 + "LATEST", False, 3, 55, views)


def drawn(shown: Scene, width: int, height: int) -> list[str]:
    console = Console(width=width, height=height, file=io.StringIO(), force_terminal=True, record=True)
    console.print(draw(shown, console))
    return console.export_text().splitlines()


@pytest.mark.parametrize(("width", "height"), [(80, 24), (100, 32), (200, 60), (60, 20), (40, 24), (30, 16)])
@pytest.mark.parametrize("languages", [("de",), ("de", "zh", "ja")])
def test_the_picture_fits_the_screen_and_shows_what_is_newest(
    width: int, height: int, languages: tuple[str, ...]
) -> None:
    lines = drawn(scene(languages), width, height)
    assert len(lines) <= height and max(map(cell_len, lines)) <= width
    text = "\n".join(lines)
    assert text.count("NEWEST") == 2 * len(languages) and text.count("LATEST") == 1
    assert "Redraft demo" in lines[0] and "sentence 3 of 55" in lines[0]
    assert "━" in lines[0] or width < 40


def test_a_legend_explains_what_is_shown_where_there_is_room() -> None:
    text = "\n".join(drawn(scene(), 100, 40))
    for explained in (
        "re-translation from scratch",
        "may still change",
        "removed after they were shown",
        "of the model",
    ):
        assert explained in text
    assert "runs of the model" not in "\n".join(drawn(scene(), 100, 16))


def test_titles_name_language_method_and_cost() -> None:
    lines = drawn(scene(("de",), ("ar",)), 100, 30)
    assert "a talk, live into German" in lines[0]
    text = "\n".join(lines)
    assert "German · ar" in text and "12345 erased · 67890 passes" in text


def test_the_demo_keeps_its_last_screen(redraft: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")  # Rich takes this for a terminal
    monkeypatch.setenv("LINES", "40")
    done = redraft("demo", "--sentences", "2", "--to", "de", "--method", "cd", "--threads", "1", "--speed", "0")
    assert done.status == 0 and done.out.count(OWN_SCREEN) == 1
    left = re.sub(r"\x1b\[[\d;?]*[a-zA-Z]", "", done.out.partition(BACK)[2])
    for shown in ("Redraft demo", "sentence 2 of 2", "My name is Mary", "German · cd", "erased", "redraft:", "A/D:"):
        assert shown in left
    assert left.index("German · cd") < left.index("method") < left.index("redraft:")


def stopping(after: int) -> object:
    """The talk, at whose update number ``after`` somebody presses Ctrl-C."""

    def timed(talk: Iterable[Update], speed: float) -> Iterator[Update]:
        for number, update in enumerate(talk):
            if number == after:
                raise KeyboardInterrupt
            yield replace(update, time=speed)

    return timed


@pytest.mark.parametrize(("after", "finished"), [(1, 0), (14, 2)])
def test_ctrl_c_prints_the_last_screen_and_the_table_so_far(
    redraft: Command, monkeypatch: pytest.MonkeyPatch, after: int, finished: int
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setattr(stage, "_timed", stopping(after))
    done = redraft("demo", "--sentences", "4", "--to", "de", "--threads", "1")
    assert done.status == 130
    assert done.err.startswith(f"redraft: stopped after {finished} of 4 sentences")
    left = done.out.partition(BACK)[2]
    assert "German" in left and ("tokens/s" in left) is (finished > 0)


def test_ctrl_c_leaves_every_method_with_the_same_sentences(redraft: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = 0
    translate = Run.translate

    def interrupted(run: Run, update: Update, segment: int) -> None:
        nonlocal calls
        translate(run, update, segment)
        calls += update.final
        if calls == 5:  # of three methods: two have finished the second sentence, one has not
            raise KeyboardInterrupt

    monkeypatch.setattr(Run, "translate", interrupted)
    methods = ("--method", "ar", "--method", "ssbd", "--method", "cd")
    done = redraft("demo", "--sentences", "4", "--to", "de", "--threads", "1", "--json", *methods)
    assert done.status == 130 and [row["segments"] for row in done.rows] == [1, 1, 1]


def test_a_demo_in_a_terminal_is_resized_and_stopped() -> None:
    with Terminal(100, 30, program("demo", "--to", "de", "--threads", "1", "--speed", "20")) as terminal:
        terminal.wait_for("sentence 2 of 55")
        before = len(terminal.output)
        terminal.resize(60, 20)
        terminal.wait_for("─" * 56 + "╯", before)  # the frame of the source, at its new width
        terminal.type("\x03")
        assert terminal.ended() == 130
    left = terminal.output.rpartition(BACK)[2]
    assert "Redraft demo" in left and "passes" in left.rpartition("╯")[2] and "stopped after" in left
    assert "Traceback" not in terminal.output and terminal.output.rstrip().endswith("which the table counts")


def test_who_starts_it_without_an_input_is_told_what_is_read() -> None:
    with Terminal(80, 24, program("translate", "--to", "de", "--threads", "1", "--output", "lines")) as terminal:
        terminal.wait_for("redraft: reading one growing hypothesis per line")
        terminal.type("Good morning.\n\x04")
        assert terminal.ended() == 0
    assert "final\tde\t" in terminal.output


PRESS_AT = """
import os, signal, sys

signal.signal(signal.SIGINT, signal.default_int_handler)
where, sys.argv[1:] = sys.argv[1], ["demo", "--threads", "1", "--sentences", "1"]

class Press:
    def find_spec(self, name, path=None, target=None):
        if name == where:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Press())
from redraft.__main__ import main
main()
"""


@pytest.mark.parametrize(
    "imported", ["click", "redraft.cli.demo", "rich.console", "llama_cpp", "redraft.cli.demo.stage"]
)
def test_ctrl_c_while_modules_are_imported_shows_no_traceback(imported: str) -> None:
    done = subprocess.run([sys.executable, "-c", PRESS_AT, imported], capture_output=True, text=True, timeout=100)
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "", "")


def test_outside_of_them_ctrl_c_is_python_s_own() -> None:
    before = signal.getsignal(signal.SIGINT)
    for handler in (signal.default_int_handler, signal.SIG_IGN):
        signal.signal(signal.SIGINT, handler)
        try:
            with interrupt.ends_process():
                expected = signal.SIG_DFL if handler is signal.default_int_handler else signal.SIG_IGN
                assert signal.getsignal(signal.SIGINT) is expected
            assert signal.getsignal(signal.SIGINT) is handler
        finally:
            signal.signal(signal.SIGINT, before)
