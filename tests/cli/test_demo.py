"""The demo: what it shows on terminals of all sizes, how it stops, and what it leaves behind."""

from __future__ import annotations

import io
import re
import signal
import subprocess
import sys
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
import soundfile
from rich.cells import cell_len
from rich.console import Console

from redraft import interrupt
from redraft.captions.events import Update
from redraft.captions.talk import RECORDING, load_talk
from redraft.cli.demo import stage
from redraft.cli.demo.stage import FIGURES, Counts, Player, print_table
from redraft.decoding.methods import get_method
from redraft.decoding.types import Tally
from redraft.speech import microphone, process
from redraft.speech.audio import RATE, Samples, at_speed
from redraft.speech.recogniser import Hypothesis, Recognised
from tests.cli.conftest import Run as Command
from tests.cli.terminals import Terminal, program

#: What switches to a terminal's second screen and back.
OWN_SCREEN, BACK = "\x1b[?1049h", "\x1b[?1049l"


TEXTS = {"de": "Guten Abend, meine Damen und Herren. ", "zh": "晚上好，女士们先生们。", "ja": "皆さん、こんばんは。"}


def drawn(
    width: int, height: int, languages: Sequence[str] = tuple(TEXTS), methods: Sequence[str] = ("ar", "ssbd")
) -> str:
    """A moment of the talk on a terminal of this size."""
    console = Console(width=width, height=height, file=io.StringIO(), force_terminal=True, record=True)
    tally = Tally(passes=67890)
    players: list[Any] = [
        SimpleNamespace(
            language=tag,
            method=get_method(method),
            now=Counts("2", TEXTS[tag] * 3 + "NEWEST", tally=tally, erased=12345),
            finished=[Counts("1", TEXTS[tag] * 4)],
        )
        for tag in languages
        for method in methods
    ]
    update = Update("2", 0, "good evening " * 30 + "LATEST", time=83.5)
    console.print(stage.Stage(players, console, 290.0).draw(update))
    return console.export_text()


@pytest.mark.parametrize(("width", "height"), [(80, 24), (100, 32), (200, 60), (60, 20), (40, 24), (30, 16)])
@pytest.mark.parametrize("languages", [("de",), ("de", "zh", "ja")])
def test_picture_fits_screen_and_shows_what_is_newest(width: int, height: int, languages: tuple[str, ...]) -> None:
    text = drawn(width, height, languages)
    lines = text.splitlines()
    assert len(lines) <= height and max(map(cell_len, lines)) <= width
    assert text.count("NEWEST") == 2 * len(languages) and text.count("LATEST") == 1
    assert "Redraft demo" in lines[0] and "1:23 of 4:50" in text


def test_picture_explains_itself_where_there_is_room() -> None:
    text = drawn(100, 40, ("de",), ("ar",))
    for explained in (
        "a talk, live into German",
        "German · ar",
        "12345 erased · 67890 passes",
        "re-translation from scratch",
        "removed after they were shown",
        "of the model",
    ):
        assert explained in text
    assert "runs of the model" not in drawn(100, 16)


def test_demo_ends_with_whole_talk(redraft: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")  # Rich takes this for a terminal
    monkeypatch.setenv("LINES", "40")
    done = redraft(
        "demo",
        "--sentences",
        "2",
        "--to",
        "de",
        "--method",
        "ar",
        "--method",
        "cd",
        "--engine",
        "threads=1",
        "--speed",
        "0",
    )
    assert done.status == 0 and done.out.count(OWN_SCREEN) == 1
    left = re.sub(r"\x1b\[[\d;?]*[a-zA-Z]", "", done.out.partition(BACK)[2])
    assert "sentence 2 of 2" not in left and "German" not in left
    assert left.index("updates") < left.index("de ar") < left.index("de cd")


def stopping(after: int) -> object:
    """The talk, of which Ctrl-C leaves this many sentences and one more update."""

    def timed(talk: Iterable[Update], speed: float) -> Iterator[Update]:
        finished = 0
        for update in talk:
            yield replace(update, time=speed)
            if finished == after:
                raise KeyboardInterrupt
            finished += update.final

    return timed


@pytest.mark.parametrize("finished", [0, 2])
def test_ctrl_c_prints_table_so_far(redraft: Command, monkeypatch: pytest.MonkeyPatch, finished: int) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setattr(stage, "timed", stopping(finished))
    done = redraft("demo", "--sentences", "4", "--to", "de", "--engine", "threads=1")
    assert done.status == 130
    assert done.err.startswith(f"redraft: stopped after {finished} sentences")
    left = done.out.partition(BACK)[2]
    assert ("erased" in left) is (finished > 0)


def test_ctrl_c_leaves_every_method_with_same_sentences(redraft: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = 0
    translate = Player.take

    def interrupted(player: Player, update: Update) -> None:
        nonlocal calls
        translate(player, update)
        calls += update.final
        if calls == 5:  # of three methods: two have finished the second sentence, one has not
            raise KeyboardInterrupt

    monkeypatch.setattr(Player, "take", interrupted)
    methods = ("--method", "ar", "--method", "ssbd", "--method", "cd")
    done = redraft("demo", "--sentences", "4", "--to", "de", "--engine", "threads=1", "--json", *methods)
    assert done.status == 130 and [row["segments"] for row in done.rows] == [1, 1, 1]


def recognises(blocks: Iterator[Samples], *, dies: bool = False) -> Generator[Recognised, None, None]:
    """Recognise a word more every half second, and a sentence every three."""
    samples = 0
    for block in blocks:
        before, samples = samples // (RATE // 2), samples + len(block)
        if (now := samples // (RATE // 2)) > before:
            if dies and now > 8:
                raise OSError("it has died")
            words = "We went home and ate soup.".split()[: (now - 1) % 6 + 1]
            yield Hypothesis(" ".join(words), (now - 1) // 6 * 3.0, now / 2, len(words) == 6)
        yield samples / RATE


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the recording pass, and the screen be redrawn, ten times as fast."""
    monkeypatch.setattr(stage, "at_speed", lambda blocks, speed: at_speed(blocks, 10 * speed))
    monkeypatch.setattr(stage.Stage, "INTERVAL", stage.Stage.INTERVAL / 10)


@pytest.mark.usefixtures("hurried")
def test_live_translates_what_is_recognised_now(redraft: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "isolated", lambda *_: recognises)
    monkeypatch.setenv("FORCE_COLOR", "1")
    done = redraft("demo", "--live", "--sentences", "2", "--to", "de", "--method", "cd", "--engine", "threads=1")
    drawn = re.sub(r"\x1b\[[\d;?]*[a-zA-Z]", "", done.out.partition(BACK)[0])
    assert done.status == 0 and "We went home and ate soup." in drawn and "0:06 of 0:" in drawn
    assert re.search(r"English, as \w+(:\S+)? sends it", drawn)


@pytest.mark.usefixtures("hurried")
def test_live_recogniser_that_dies_is_reported(redraft: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "isolated", lambda *_: partial(recognises, dies=True))
    done = redraft("demo", "--live", "--to", "de", "--method", "cd", "--engine", "threads=1")
    assert (
        done.status == 1
        and "seconds for all updates" in done.out
        and re.search(r"stopped after 4.\d s of audio: OSError", done.err)
    )


def test_live_has_one_speed(redraft: Command) -> None:
    done = redraft("demo", "--live", "--speed", "2")
    assert done.status == 2 and "--live plays at real speed, so leave --speed out" in done.err


def test_updates_are_those_of_the_talk(redraft: Command) -> None:
    """Final ones that the default method decodes again count once."""
    done = redraft("demo", "--sentences", "4", "--to", "de", "--engine", "threads=1", "--json")
    assert [row["updates"] for row in done.rows] == [len(list(stage.first(load_talk(), 4)))] * 2


@pytest.mark.slow
def test_live_with_real_recogniser(redraft: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("moonshine_voice", reason="needs the extra listen")
    samples, rate = soundfile.read(RECORDING, frames=8 * 24_000)
    soundfile.write(tmp_path / "start.wav", samples, rate)
    monkeypatch.setattr(stage, "RECORDING", tmp_path / "start.wav")
    done = redraft("demo", "--live", "--to", "de", "--engine", "threads=1", "--json")
    assert done.status == 0 and done.rows[0]["segments"] >= 2
    assert "|recogniser:moonshine:tiny-en|" in done.rows[0]["signature"]


def test_demo_in_terminal_is_resized_and_stopped() -> None:
    with Terminal(100, 30, program("demo", "--to", "de", "--engine", "threads=1", "--speed", "20")) as terminal:
        terminal.wait_for(f" of {stage.minutes(load_talk()[-1].time or 0.0)}")
        terminal.wait_for("My name is")  # the second sentence
        before = len(terminal.output)
        terminal.resize(60, 20)
        terminal.wait_for("─" * 56 + "╯", before)  # the frame of the source, at its new width
        terminal.type("\x03")
        assert terminal.ended() == 130
    left = terminal.output.rpartition(BACK)[2]
    assert "Redraft demo" not in left and "erased" in left and "stopped after" in left
    assert "Traceback" not in terminal.output and terminal.output.rstrip().endswith("which the table counts")
    assert left.count("Next: ") == 1


@pytest.mark.parametrize("languages", [("de",), ("de", "zh", "ja"), ("de", "zh", "ja", "fr", "es", "it")])
@pytest.mark.parametrize("width", [80, 120])
def test_table_fits_terminal(languages: tuple[str, ...], width: int) -> None:
    rows = [
        {
            **{"method": method, "target_language": tag, "segments": 40},
            **dict.fromkeys(FIGURES, 12345.678),
            **{"other_than_ar": 39, "more_probable": 21},
        }
        for tag in languages
        for method in ("ar", "ssbd")
    ]
    console = Console(width=width, file=io.StringIO(), force_terminal=True, record=True)
    print_table(rows, console)
    lines = console.export_text().splitlines()
    assert max(map(cell_len, lines)) <= width
    assert sum(line.count("12,346") for line in lines) >= 3 * len(rows) and "…" not in "".join(lines)


@pytest.mark.usefixtures("hurried")
@pytest.mark.parametrize(("live", "silent"), [((), False), (("--live",), True)])
def test_sound_that_cannot_be_heard_is_reported(
    redraft: Command, monkeypatch: pytest.MonkeyPatch, live: Sequence[str], silent: bool
) -> None:
    """Only a talk at its own speed has sound."""
    monkeypatch.setattr(process, "isolated", lambda *_: recognises)
    monkeypatch.setattr(microphone, "playing", lambda path: nullcontext(False))
    done = redraft("demo", *live, "--sentences", "1", "--to", "de", "--method", "cd", "--engine", "threads=1")
    assert ("the talk could not be heard" in done.err) is silent and done.status == 0


@pytest.mark.parametrize("speed", [1.0, 4.0, 1000.0])
def test_clock_is_that_of_the_talk(monkeypatch: pytest.MonkeyPatch, speed: float) -> None:
    paced = Mock(side_effect=lambda talk, speed: iter(talk))
    monkeypatch.setattr(stage, "paced", paced)
    talk = load_talk()
    assert list(stage.timed(talk, speed)) == talk
    paced.assert_called_once_with(talk, speed=speed)


def test_keyboard_input_has_hint() -> None:
    with Terminal(80, 24, program("translate", "--to", "de", "--engine", "threads=1", "--output", "lines")) as terminal:
        terminal.wait_for("redraft: type a sentence, Enter after each change; an empty line ends it\r\n")
        terminal.wait_for("redraft: Ctrl-D ends the input")
        terminal.type("Good morning.\n\x04")
        assert terminal.ended() == 0
    assert "final\tde\t" in terminal.output


PRESS_AT = """
import os, signal, sys

signal.signal(signal.SIGINT, signal.default_int_handler)
where, sys.argv[1:] = sys.argv[1], ["demo", "--engine", "threads=1", "--sentences", "1"]

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


def test_ctrl_c_raises_where_there_is_something_to_finish() -> None:
    before = signal.getsignal(signal.SIGINT)
    try:
        for handler, expected in (
            (signal.SIG_DFL, signal.default_int_handler),
            (signal.SIG_IGN, signal.SIG_IGN),
            (signal.default_int_handler, signal.default_int_handler),
        ):
            signal.signal(signal.SIGINT, handler)
            interrupt.raises()
            assert signal.getsignal(signal.SIGINT) is expected
    finally:
        signal.signal(signal.SIGINT, before)
