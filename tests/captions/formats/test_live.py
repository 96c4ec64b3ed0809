"""The live display, drawn on a recorded console."""

from __future__ import annotations

import io
import re
import sys
import threading
import time
from dataclasses import replace

import pytest
from rich.cells import cell_len
from rich.console import Console, ConsoleDimensions

from redraft.captions.events import Caption, Failure
from redraft.captions.formats.cues import PROFILES
from redraft.captions.formats.live import LiveWriter
from redraft.captions.formats.write import Output, open_writer
from redraft.cli.shared.notice import notice


def terminal(width: int = 100, height: int = 40) -> Console:
    return Console(
        record=True, width=width, height=height, force_terminal=True, file=io.StringIO(), color_system="standard"
    )


def caption(utterance: str, text: str, unstable: str = "", *, language: str = "de", seq: int = 0) -> Caption:
    return Caption(utterance, seq, language, text, unstable, not unstable, None, f"source {utterance}.{seq}")


def drawn(writer: LiveWriter, width: int = 100, *, styles: bool = False) -> str:
    console = terminal(width)
    console.print(writer.render())
    return console.export_text(styles=styles)


def output(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def screen(console: Console) -> list[str]:
    """The lines of an endless terminal that were not overwritten."""
    lines, row = [""], 0
    for token in re.findall(r"\x1b\[[?\d;]*[A-Za-z]|[\r\n]|[^\x1b\r\n]+", output(console)):
        if token == "\n":
            row += 1
            lines += [""] * (row == len(lines))
        elif token == "\x1b[1A":
            row -= 1
        elif token == "\x1b[2K":
            lines[row] = ""
        elif token[0] not in "\x1b\r":
            lines[row] += token
    return [line.rstrip() for line in lines if line.strip()]


def test_one_column_language_with_source_above() -> None:
    writer = LiveWriter(["de", "ja"], terminal())
    writer.write(caption("1", "Guten Abend"))
    writer.write(caption("1", "こんばんは", language="ja"))
    titles, source, captions = (line.rstrip() for line in drawn(writer).splitlines()[:3])
    assert titles.split() == ["de", "ja"] and source == "source 1.0"
    assert captions.split() == ["Guten", "Abend", "こんばんは"]
    assert captions.index("こんばんは") == titles.index("ja")
    writer.close()


def test_source_is_dim_and_unstable_part_is_hidden() -> None:
    writer = LiveWriter(["de"], terminal())
    writer.write(caption("1", "Guten", " Abend"))
    text = drawn(writer, styles=True)
    assert "\x1b[2;3msource 1.0\x1b[0m" in text and "Guten" in text and "Abend" not in text
    writer.write(caption("1", "Guten Abend"))
    assert "Guten Abend" in drawn(writer, styles=True)
    writer.close()


def test_captions_are_redrawn_in_place() -> None:
    console = terminal()
    writer = LiveWriter(["de"], console)
    writer.write(caption("1", "Gu", "t"))
    before = len(output(console))
    writer.write(caption("1", "Guten Tag", seq=1))
    redraw = output(console)[before:]
    assert "\x1b[2K" in redraw and "\x1b[1A" in redraw and "Guten Tag" in redraw
    writer.close()
    assert screen(console) == ["source 1.1", "de Guten Tag"]


def test_older_source_does_not_replace_newer_one() -> None:
    writer = LiveWriter(["de", "ja"], terminal())
    writer.write(caption("1", "neu", seq=2))
    writer.write(caption("1", "旧", language="ja", seq=1))
    assert "source 1.2" in drawn(writer) and "旧" in drawn(writer)
    writer.close()


def test_what_is_spoken_may_be_a_target() -> None:
    """Its caption has no source; what was said stands above, with who said it."""
    writer = LiveWriter(["en", "de"], terminal())
    writer.write(replace(caption("1", "Hello.", language="en"), source="", speaker="Anna"))
    writer.write(replace(caption("1", "Hallo."), source="Hello.", speaker="Anna"))
    assert drawn(writer).splitlines()[1].rstrip() == "Anna: Hello."
    writer.close()


def test_stacked_languages_have_the_room_beside_the_longest_tag() -> None:
    text = "Wir sprechen heute über Boote und über das Meer, das so weit ist wie der Himmel, wie man sagt."
    writer = LiveWriter(["de", "zh-Hant"], terminal(50))
    writer.write(caption("1", text))
    lines = [line.removeprefix("de").strip() for line in drawn(writer, 50).splitlines()[1:] if line.strip()]
    assert " ".join(lines[:-1]) == text and all(len(line) > 25 for line in lines[:-2])
    writer.close()


def test_narrow_terminals_stack_languages() -> None:
    writer = LiveWriter(["de", "ja", "zh"], terminal(50))
    writer.write(caption("1", "Guten Abend"))
    writer.write(caption("1", "晚上好", language="zh"))
    assert [line.rstrip() for line in drawn(writer, 50).splitlines()][:4] == [
        "source 1.0",
        "de Guten Abend",
        "ja",
        "zh 晚上好",
    ]
    writer.close()


@pytest.mark.parametrize("width", [20, 33, 100])
def test_wide_characters_wrap_within_width(width: int) -> None:
    text = "AI 皆さん、こんばんは。お越しいただきありがとうございます。" * 3
    writer = LiveWriter(["ja"], terminal(width))
    writer.write(caption("1", text, language="ja"))
    lines = drawn(writer, width).splitlines()
    assert max(map(cell_len, lines)) <= width
    body = [line[3:].rstrip() for line in lines[1:] if line.strip()]
    assert "".join(body).replace(" ", "") == text.replace(" ", "")
    assert not any(line.startswith(("。", "、")) for line in body)
    assert all(cell_len(line) >= width - 3 - 6 for line in body[:-1])  # no run of characters jumps to a new line
    writer.close()


def test_scrolling(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LiveWriter, "HISTORY", 2)
    console = terminal()
    writer = LiveWriter(["de"], console)
    for number in range(6):
        writer.write(caption(str(number), f"Satz-{number}"))
    assert [word for word in drawn(writer).split() if word.startswith("Satz")] == ["Satz-3", "Satz-4", "Satz-5"]
    writer.close()
    assert screen(console) == [line for number in range(6) for line in (f"source {number}.0", f"de Satz-{number}")]


def test_what_is_redrawn_fits_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LiveWriter, "HISTORY", 5)
    console = terminal(40, 9)
    writer = LiveWriter(["de"], console)
    for number in range(5):
        writer.write(caption(str(number), f"Satz-{number} " + "lang " * 10))
        assert len(drawn(writer, 40).splitlines()) < 9
        assert f"Satz-{number}" in drawn(writer, 40)
    writer.close()
    assert re.findall(r"Satz-(\d)", " ".join(screen(console))) == list("01234")


class Wrapping:
    """A terminal that wraps all lines again when its width changes, and keeps what leaves the screen."""

    def __init__(self, console: Console) -> None:
        self._console, self._read = console, 0
        self.width, self.height = console.size
        #: Rows from the first one on, each with whether it goes on with the one before.
        self.rows: list[tuple[str, bool]] = [("", False)]
        self.row = self.column = 0

    def resize(self, width: int, height: int) -> None:
        """Change the size, also of the console."""
        self.feed()
        lines, at = list[str](), 0
        for number, (text, goes_on) in enumerate(self.rows):
            lines = [*lines[:-1], lines[-1] + text] if goes_on else [*lines, text]
            at = len(lines) - 1 if number == self.row else at
        self.rows = []
        for number, line in enumerate(lines):
            pieces = [line[start : start + width] for start in range(0, len(line), width)] or [""]
            self.rows += [(piece, place > 0) for place, piece in enumerate(pieces)]
            self.row = len(self.rows) - 1 if number == at else self.row
        self.width, self.height = width, height
        self._console.size = ConsoleDimensions(width, height)

    def feed(self) -> None:
        """Draw what has been written since."""
        new, self._read = output(self._console)[self._read :], len(output(self._console))
        for token in re.findall(r"\x1b\[[?\d;]*[A-Za-z]|[\r\n]|[^\x1b\r\n]+", new):
            top = max(0, len(self.rows) - self.height)
            if token in "\r\n":
                self.row, self.column = self.row + (token == "\n"), 0
                self.rows += [("", False)] * (self.row == len(self.rows))
            elif found := re.fullmatch(r"\x1b\[(\d+)([AB])", token):
                moved = self.row + int(found[1]) * (1 if found[2] == "B" else -1)
                self.row = min(max(top, moved), len(self.rows) - 1)
            elif token == "\x1b[2K":
                self.rows[self.row] = "", False
            elif token[0] != "\x1b":
                self._write(token)

    def _write(self, text: str) -> None:
        while text:
            before, goes_on = self.rows[self.row]
            room = self.width - self.column
            self.rows[self.row] = before[: self.column] + text[:room], goes_on
            self.column, text = self.column + len(text[:room]), text[room:]
            if text:
                self.row, self.column = self.row + 1, 0
                self.rows[self.row :] = [("", True), *self.rows[self.row + 1 :]]

    @property
    def lines(self) -> list[str]:
        """Everything on the screen and above it."""
        self.feed()
        return [text.rstrip() for text, _ in self.rows]


@pytest.mark.parametrize("sizes", [[(130, 20)], [(60, 20), (90, 20), (40, 30)], [(90, 12), (100, 24)]])
def test_other_sizes_lose_nothing(sizes: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LiveWriter, "HISTORY", 1)
    console = terminal(100, 20)
    writer, wrapping = LiveWriter(["de", "fr"], console), Wrapping(console)
    writer.write(Failure("far too long", 1))
    for number in range(9):
        for language in ("de", "fr"):
            writer.write(caption(str(number), f"Satz-{number}-{language} " + "lang " * 12, language=language))
    for number, size in enumerate(sizes):
        wrapping.resize(*size)
        writer.write(caption("8", "Satz-8-de kurz", seq=number + 1))
        assert max(map(cell_len, drawn(writer, size[0]).splitlines())) <= size[0]
    writer.write(caption("9", "Satz-9-de"))
    writer.close()
    text = "\n".join(wrapping.lines)
    assert [
        language for number in range(9) for language in ("de", "fr") if f"Satz-{number}-{language}" not in text
    ] == []
    assert text.count("far too long") == 1 and "Satz-9-de" in text
    assert output(console).endswith("\x1b[?25h") and "\x1b[2J" not in output(console)


def test_caption_taller_than_screen() -> None:
    console = terminal(30, 6)
    writer, wrapping = LiveWriter(["de"], console), Wrapping(console)
    for count in range(30):
        writer.write(caption("1", " ".join(map(str, range(10, 11 + count))), seq=count))
    lines = [line for line in wrapping.lines if line.strip()]
    assert len(wrapping.lines) == 6 and lines[-1].split()[-1] == "39"
    writer.close()
    text = " ".join(" ".join(wrapping.lines).split())
    assert text == "source 1.29 de " + " ".join(map(str, range(10, 40)))


def test_failure_is_shown_and_captions_stay() -> None:
    console = terminal()
    writer = LiveWriter(["de"], console)
    writer.write(Failure("before all", 1))
    writer.write(caption("1", "Hallo"))
    writer.write(Failure("seq must grow", 4))
    writer.close()
    assert screen(console) == [
        "redraft: line 1: before all",
        "redraft: line 4: seq must grow",
        "source 1.0",
        "de Hallo",
    ]


class Errors(io.StringIO):
    """Standard error, which is a terminal or not."""

    terminal = True

    def isatty(self) -> bool:
        return self.terminal


@pytest.mark.parametrize("shown", [True, False])
def test_what_others_print_stands_above(shown: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    console, errors = terminal(), Errors()
    errors.terminal = shown
    monkeypatch.setattr(sys, "stderr", errors)
    writer = LiveWriter(["de"], console)
    writer.write(caption("1", "Hal"))
    notice("captions are late")
    writer.write(caption("1", "Hallo", seq=1))
    writer.close()
    assert screen(console) == ["redraft: captions are late"] * shown + ["source 1.1", "de Hallo"]
    assert errors.getvalue() == "redraft: captions are late\n" * (not shown)
    assert sys.stderr is errors


def test_captions_and_messages_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither thread waits for the other for ever."""
    monkeypatch.setattr(sys, "stderr", Errors())
    writer = LiveWriter(["de"], Console(width=80, height=24, force_terminal=True, file=io.StringIO()))
    writer.write(caption("1", "Hal"))

    def write() -> None:
        for seq in range(300):
            writer.write(caption("1", f"Hallo {seq}", seq=seq))

    def tell() -> None:
        for _ in range(300):
            notice("captions are late")

    threads = [threading.Thread(target=each, daemon=True) for each in (write, tell)]
    for each in threads:
        each.start()
    deadline = time.monotonic() + 100
    for each in threads:
        each.join(max(0.0, deadline - time.monotonic()))
    assert not any(each.is_alive() for each in threads)
    writer.close()


def test_closed_output_gives_standard_error_back(monkeypatch: pytest.MonkeyPatch) -> None:
    console, errors = terminal(), Errors()
    monkeypatch.setattr(sys, "stderr", errors)
    writer = LiveWriter(["de"], console)
    writer.write(caption("1", "Hallo"))
    console.file.close()
    with pytest.raises(ValueError, match="closed"):
        writer.close()
    assert sys.stderr is errors


def test_close_gives_cursor_back_and_may_come_twice() -> None:
    console = terminal()
    writer = LiveWriter(["de"], console)
    writer.close()
    writer.write(caption("1", "Hallo"))
    assert output(console).startswith("\x1b[?25l")
    writer.close()
    writer.close()
    assert output(console).endswith("\x1b[?25h") and output(console).count("\x1b[?25h") == 1


def test_markup_and_control_characters_are_shown_as_text() -> None:
    writer = LiveWriter(["de"], terminal())
    writer.write(caption("1", "[bold]a[/bold]\x1b[2J\nb :smile:"))
    assert "[bold]a[/bold] [2J b :smile:" in drawn(writer)
    writer.close()


@pytest.mark.parametrize("dumb", [True, False])
def test_without_terminal_captions_are_lines(
    dumb: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "dumb" if dumb else "xterm")
    monkeypatch.setenv("FORCE_COLOR", "1" if dumb else "")
    out = io.StringIO()
    writer = open_writer(Output("live", out, sys.stderr, ["de", "ja"], PROFILES["web"]))
    writer.write(caption("1", "Ein langer Satz ohne jeden Umbruch", " oder"))
    writer.write(caption("1", "はい", language="ja"))
    writer.write(Failure("bad", 2))
    writer.close()
    assert out.getvalue() == "partial\tde\tEin langer Satz ohne jeden Umbruch\nfinal\tja\tはい\n"
    assert capsys.readouterr().err == "redraft: line 2: bad\n"
