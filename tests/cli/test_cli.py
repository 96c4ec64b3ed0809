"""The command line with the model that ships: help, tables, and how the process ends."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import click
import pytest

from redraft.backends import costs, selftest
from redraft.backends.machine import Processor
from redraft.backends.selftest import SelfTestResult
from redraft.cli.main import COMMANDS, ELSEWHERE, cli
from redraft.cli.shared.options import Grouped
from redraft.decoding.methods import all_methods
from redraft.errors import ModelError, install
from redraft.models import shipped_path
from redraft.models.hub import CATALOGUE, SPEECH
from tests.cli.conftest import Run
from tests.cli.refusals import check_refusal

# The package has a function and a command under these names.
doctor, main = import_module("redraft.cli.doctor"), import_module("redraft.cli.main")

SHORT = ["translate", "--to", "de", "--engine", "threads=1", "--option", "max_tokens=4", "--output", "jsonl"]

NEEDS_FULL = pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no file that is always full")


def commands(group: click.Group, *path: str) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        found = group.get_command(context, name)
        assert found is not None
        yield (*path, name), found
        if isinstance(found, click.Group):
            yield from commands(found, *path, name)


@pytest.mark.parametrize("command", ["translate", "listen"])
def test_help_loads_no_model_code(command: str) -> None:
    """It comes at once: a constant of the options must not import the decoders."""
    program = f"""
import sys
from redraft.cli.main import main
try:
    main([{command!r}, "--help"])
finally:
    assert not [name for name in sys.modules if name.startswith(("redraft.decoding", "redraft.backends", "numpy"))]
"""
    subprocess.run([sys.executable, "-c", program], stdout=subprocess.DEVNULL, check=True, timeout=200)


class TestHelp:
    @pytest.mark.parametrize("path", [(), *(path for path, _ in commands(cli))], ids=" ".join)
    def test_every_command_explains_itself(self, redraft: Run, path: tuple[str, ...]) -> None:
        done = redraft(*path, "--help")
        assert (done.status, done.err) == (0, "")
        assert done.out.startswith(f"Usage: {' '.join(('redraft', *path))} ")
        assert redraft(*path, "-h") == done

    @pytest.mark.parametrize("path", [(), *(path for path, _ in commands(cli))], ids=" ".join)
    def test_help_fits_80_columns(self, redraft: Run, path: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("COLUMNS", "80")
        assert [line for line in redraft(*path, "--help").out.splitlines() if len(line) > 80] == []

    @pytest.mark.parametrize("found", [found for _, found in commands(cli)], ids=lambda found: str(found.name))
    def test_every_option_does_too(self, found: click.Command) -> None:
        options = [each for each in found.params if isinstance(each, click.Option)]
        assert [each.name for each in options if not each.help] == []
        assert found.help

    def test_choices_ranges_defaults_and_examples_are_shown(self, redraft: Run) -> None:
        text = " ".join(redraft("translate", "--help").out.split())
        for shown in (
            "[text|lines|jsonl|simulstreaming|NAME:URL]",
            "[x>0]",
            "[16<=x<=80]",
            "[default: redraft]",
            "redraft translate t",
        ):
            assert shown in text

    @pytest.mark.parametrize(
        ("command", "default"), [("listen", "on"), ("translate", "on for text, else off"), ("serve", "on")]
    )
    def test_default_is_shown_once(self, redraft: Run, command: str, default: str) -> None:
        rest = redraft(command, "--help").out.partition("--no-sentences")[2]
        own = rest.partition("\n  --")[0].partition("\n\n")[0]
        assert re.findall(r"\[default: .*?\]", own) == [f"[default: {default}]"]

    def test_every_first_command_shows_examples(self, redraft: Run) -> None:
        assert [name for name in ("", *COMMANDS) if "Examples:" not in redraft(*name.split(), "-h").out] == []

    @pytest.mark.parametrize("path", [path for path, _ in commands(cli)], ids=" ".join)
    def test_long_help_has_headings(self, redraft: Run, path: tuple[str, ...]) -> None:
        found = dict(commands(cli))[path]
        options = [each for each in found.params if isinstance(each, click.Option)]
        if not isinstance(found, Grouped):
            assert len(options) < 20
            return
        text = redraft(*path, "--help").out
        headings = dict.fromkeys(each.heading for each in options if hasattr(each, "heading"))
        headings["Options"] = headings.pop("Options", None)
        assert re.findall(r"^(\S.*):\n  (?:-\w, )?--", text, re.MULTILINE) == [*headings]
        text = text.partition(f"\n{next(iter(headings))}:\n")[2]
        grouped, _, others = text.partition("\nOptions:\n")
        counts = [len(re.findall(r"^  (?:-\w, )?--", part, re.MULTILINE)) for part in (grouped, others)]
        assert sum(counts) == len(options) + 1 and counts[1] <= 4  # --help too

    @pytest.mark.parametrize(
        ("path", "extra"),
        [
            ("listen", "listen"),
            ("serve", "serve"),
            ("bench load", "serve"),
            ("bench capacity", "serve"),
            ("bench viewers", "serve"),
            ("models get", "hub"),
            ("translate", "client"),
        ],
    )
    def test_extra_is_named(self, redraft: Run, path: str, extra: str) -> None:
        assert install(extra) in " ".join(redraft(*path.split(), "--help").out.split())

    def test_letter_means_same_everywhere(self) -> None:
        options = {each for _, found in commands(cli) for each in found.params if isinstance(each, click.Option)}
        meanings = {(name, max(each.opts, key=len)) for each in options for name in each.opts if len(name) == 2}
        assert sorted(name for name, _ in meanings) == ["-i", "-m", "-o", "-t"]

    def test_first_command_listed_is_first_to_try(self, redraft: Run) -> None:
        listed = re.findall(r"^  (\w+) ", redraft("--help").out.partition("Commands:")[2], re.MULTILINE)
        assert listed[:3] == ["demo", "translate", "listen"]

    def test_commands_elsewhere(self) -> None:
        listed = {name: found.get_short_help_str(80) for (name, *rest), found in commands(cli) if not rest}
        assert {name: line for name, (line, _) in ELSEWHERE.items()}.items() <= listed.items()

    def test_without_command(self, redraft: Run) -> None:
        assert redraft() == redraft("--help")

    def test_version(self, redraft: Run) -> None:
        assert re.fullmatch(r"redraft \d+\.\d+\.\d+\n", redraft("--version").out)


class TestTables:
    def test_methods(self, redraft: Run) -> None:
        rows = redraft("methods", "--json").rows
        assert [row["method"] for row in rows] == list(all_methods())
        ssbd = next(row for row in rows if row["method"] == "ssbd")
        assert ssbd["options"]["beta"] == {"default": 0.2, "range": [0, 1]}
        assert {"ssbd", "beta"} <= {*re.findall(r"\w+", redraft("methods", "ssbd").out)}
        listed = redraft("methods").out
        assert all(name in listed for name in all_methods())
        (row,) = redraft("methods", "gs-jacobi", "--json").rows
        assert row["options"]["stopping"] == {"default": "paper", "words": ["paper", "fast-forward"]}
        assert redraft("methods", "nope").status == 2

    def test_default_model(self, redraft: Run, tmp_path: Path) -> None:
        file = tmp_path / "mine.gguf"
        file.write_bytes(shipped_path("demo-tiny").read_bytes())
        for name, known in (("demo-tiny", "demo-tiny"), (str(file), str(file)), ("vllm:http://127.0.0.1:9/m", None)):
            done = redraft("models", "use", name)
            assert done.status == 0 and name in done.out
            if known:
                done = redraft(
                    "translate", "--to", "de", "--option", "max_tokens=4", "--output", "jsonl", stdin=b"Hello.\n"
                )
                assert done.status == 0 or "was cut at 4 tokens" in done.out
        assert redraft("models", "use", "demo-tiny").status == 0
        assert [row["model"] for row in redraft("models", "--json").rows if row["default"]] == ["demo-tiny"]
        check_refusal(redraft("models", "use", "hy-mt2-7b"), ["redraft models get hy-mt2-7b"])
        check_refusal(redraft("models", "use", "wonder"), ["model 'wonder'"])
        assert redraft("models", "use", "demo").status == 0

    def test_headings_of_commands(self, redraft: Run) -> None:
        first, second = redraft("--help").out.split("Other texts, measurements and training:\n")
        assert re.findall(r"^  (\w+)  ", second, re.MULTILINE) == ["generate", "bench", "finetune", "viz"]
        listed = re.findall(r"^  (\w+)  ", first.partition("Commands:\n")[2], re.MULTILINE)
        assert sorted(listed) == sorted({*COMMANDS} - {"generate"})

    def test_few_options(self) -> None:
        """What an expert does not miss; the method and the engine have their own."""
        found = {path: {each.name for each in command.params} for path, command in commands(cli)}
        assert len(found["translate",] - {"file"}) <= 20 and found["translate",] - found["listen",] == {"form"}

    def test_models(self, redraft: Run) -> None:
        rows = redraft("models", "--json").rows
        states = {row["model"]: row["state"] for row in rows}
        assert states == {"demo": "ships", "demo-tiny": "ships"} | dict.fromkeys(
            [*CATALOGUE, *SPEECH], "not downloaded"
        )
        assert {row["model"]: row["megabytes"] for row in rows}["demo"] > 1

    @pytest.mark.parametrize("terminal", [True, False])
    def test_models_are_listed_with_names_unbroken_at_80_columns(
        self, redraft: Run, monkeypatch: pytest.MonkeyPatch, terminal: bool
    ) -> None:
        monkeypatch.setenv("COLUMNS", "80")
        if terminal:
            monkeypatch.setenv("FORCE_COLOR", "1")
        shown = re.sub(r"\x1b\[[\d;]*m", "", redraft("models").out)
        words = shown.split()
        for row in redraft("models", "--json").rows:
            assert row["model"] in words
            assert row["provenance"] in words
            assert f"{row['megabytes']:,} MB" in shown
        table = shown.split("\n\n")[0].splitlines()
        assert max(map(len, table)) <= (80 if terminal else 160) and " GB" not in shown and "…" not in shown

    def test_demo(self, redraft: Run) -> None:
        done = redraft("demo", "--sentences", "1", "--to", "de", "--engine", "threads=1", "--json")
        assert [(row["method"], row["target_language"]) for row in done.rows] == [("ar", "de"), ("redraft", "de")]
        assert {"draft_acceptance", "ne_display", "speedup", "signature"} <= done.rows[1].keys()
        assert done.status == 0

    def test_doctor_text(self, redraft: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
        short = redraft("doctor", "--model", "demo-tiny", "--engine", "threads=1")
        able = r"^This model translates about \d+ updates a second here, enough for live speech in [^.]*\.\n"
        needs = r"memory: \d+ MB for the weights, \d+ MB for each language of a session\n"
        assert re.match(able + needs, short.out) and "kernels" not in short.out and "T(n)" not in short.out
        done = redraft("doctor", "--model", "demo-tiny", "--engine", "threads=1", "--verbose")
        assert done.status == 0
        assert "kernels: passed the self-test\n" in done.out
        assert re.search(r"writes at most \d+ tokens per second\.\nA draft of 16 tokens saves (no )?time", done.out)

    def test_doctor_without_working_llama(self, redraft: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(selftest, "examine", lambda _: SelfTestResult("crash", "SIGILL"))
        done = redraft("doctor", "--model", "demo-tiny")
        assert done.status == 2
        assert "llama.cpp crashes on this processor (SIGILL); compile it here: pip install" in done.err

    def test_doctor_mark(self, redraft: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        features, here = b"CPU : SSE3 = 1 | LLAMAFILE = 1", Processor("Some", frozenset({"avx2"}))
        monkeypatch.setattr("llama_cpp.llama_print_system_info", lambda: features)
        monkeypatch.setattr("redraft.backends.machine.processor", lambda: here)
        verbose = ("doctor", "--model", "demo-tiny", "--engine", "threads=1", "--verbose")
        assert "\nRedraft's kernels: not in this build; see docs/install.md\n" in redraft(*verbose).out
        features = b"CPU : REDRAFT_KERNELS = 12ab34cd | AVX2 = 1"
        assert "\nRedraft's kernels: 12ab34cd\n" in redraft(*verbose).out
        here = Processor("Apple M2", frozenset())
        assert "Redraft's kernels" not in redraft(*verbose).out

    def test_doctor(self, redraft: Run) -> None:
        done = redraft("doctor", "--model", "demo-tiny", "--engine", "threads=1", "--json")
        assert [row["new_tokens"] for row in done.rows] == list(costs.SIZES)
        assert done.rows[0]["over_one"] == 1 and done.rows[-1]["milliseconds"] > 0

    def test_doctor_slow_model(self, redraft: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(costs, "MEASURED", -1.0)
        done = redraft("doctor", "--model", "demo-tiny", "--engine", "threads=1", "--json")
        assert [row["new_tokens"] for row in done.rows] == [1, 2] and done.status == 0
        assert "measuring ended after -1 s: passes over more than 2 tokens are estimated" in done.err

    def test_doctor_model_that_hangs(self, redraft: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        ended = threading.Event()
        monkeypatch.setattr(costs, "MEASURED", 0.0)
        monkeypatch.setattr("redraft.deadlines.FIRST_PASS", 0.1)
        monkeypatch.setattr(costs, "measure", lambda *_: ended.wait(60))
        done = redraft("doctor", "--model", "demo-tiny")
        ended.set()
        assert done.status == 2 and "is too slow to be measured: a pass has not ended" in done.err

    def test_doctor_model_that_fails(self, redraft: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        def fail(*_: object) -> None:
            raise ModelError("the model failed")

        monkeypatch.setattr(costs, "measure", fail)
        assert redraft("doctor", "--model", "demo-tiny").err.count("the model failed") == 1


def program(*arguments: str, **more: Any) -> subprocess.Popen[bytes]:
    """The command line as a process of its own."""
    start = [sys.executable, "-m", "redraft", *arguments]
    return subprocess.Popen(start, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more)


class TestProcess:
    def test_help_and_short_commands_load_no_engine(self) -> None:
        query = """import contextlib, io, sys
from redraft.cli import main
for arguments in ["--help"], ["translate", "-h"], ["demo", "-h"], ["doctor", "-h"], ["models"], ["methods"]:
    with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()):
        main(arguments)
print({"llama_cpp", "numpy", "jinja2", "iso639", "pysubs2"} & {*sys.modules})"""
        done = subprocess.run([sys.executable, "-c", query], capture_output=True, text=True, check=True, timeout=200)
        assert done.stdout == "set()\n"

    @pytest.mark.parametrize("stream", ["stdout", "stderr"])
    def test_what_goes_to_file_is_utf_8(self, redraft: Run, monkeypatch: pytest.MonkeyPatch, stream: str) -> None:
        written = io.BytesIO()
        monkeypatch.setattr(sys, stream, io.TextIOWrapper(written, encoding="ascii"))
        data = '{"utterance": "日 \U0001f600", "seq": 0, "text": "", "final": true}\n'.encode()
        redraft(*SHORT[:-1], "jsonl" if stream == "stdout" else "lines", "-i", "jsonl", stdin=data * 2)
        assert "日 \U0001f600" in written.getvalue().decode()

    def test_reader_that_goes_away_is_no_error(self) -> None:
        with program(*SHORT) as process:
            assert process.stdin and process.stdout and process.stderr
            process.stdin.write(b"One\n")
            process.stdin.flush()
            process.stdout.readline()
            process.stdin.write(b"Two.\n" * 10)
            process.stdin.flush()
            while json.loads(process.stdout.readline())["source"] != "Two.":  # so that it has been read
                pass
            process.stdout.close()
            process.stdin.close()
            assert process.wait(20) == 0
            assert process.stderr.read() == b"redraft: utterance 1, de: no caption: Two.\n"

    @pytest.mark.parametrize("arguments", [["methods"], ["models"], ["--help"], ["listen", "--help"]], ids=" ".join)
    def test_output_is_not_read(self, arguments: list[str]) -> None:
        reading, writing = os.pipe()
        os.close(reading)
        command = [sys.executable, "-m", "redraft", *arguments]
        with open(writing, "wb") as closed:  # noqa: PTH123 - there is no path
            done = subprocess.run(command, stdout=closed, stderr=subprocess.PIPE, timeout=60, check=False)
        assert (done.returncode, done.stderr) == (0, b"")

    def test_pause(self) -> None:
        with program(*SHORT[:5], "--output", "jsonl", "--option", "first_sight=1") as process:
            assert process.stdin and process.stdout
            process.stdin.write(b"I have a dog\n")
            process.stdin.flush()
            texts = [json.loads(process.stdout.readline())["text"] for _ in range(2)]
            assert (texts[0], bool(texts[1])) == ("", True)
            process.stdin.close()
            assert process.wait(20) == 0

    def test_interrupted(self) -> None:
        # A shell's background jobs ignore the signal, and so would all that they start.
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            process = program(*SHORT)
        finally:
            signal.signal(signal.SIGINT, before)
        with process:
            assert process.stdin and process.stdout and process.stderr
            process.stdin.write(b"One\n")
            process.stdin.flush()
            process.stdout.readline()
            process.send_signal(signal.SIGINT)
            assert process.wait(20) == 130
            assert json.loads(process.stdout.read().splitlines()[-1])["type"] == "final"
            said = b"redraft: stopping, and finishing what was recognised; press Ctrl-C again to stop at once\n"
            assert process.stderr.read() == said

    @pytest.mark.parametrize(
        ("redirection", "status", "message"),
        [
            ("<&-", 2, "redraft: standard input is closed: name a file to read\n"),
            (">&-", 2, "redraft: 'standard output': Bad file descriptor\n"),
            ("2>&-", 0, ""),
            pytest.param(">/dev/full", 2, "redraft: 'standard output': No space left on device\n", marks=NEEDS_FULL),
        ],
    )
    def test_streams_that_are_closed_or_full(self, redirection: str, status: int, message: str) -> None:
        command = f"{sys.executable} -c 'from redraft.cli import main; main()' translate --to de {redirection}"
        text = (
            b'{"utterance": 1, "seq": 0, "text": ""}\n'  # nothing recognised yet: no failure of the model can come in
        )
        done = subprocess.run(
            ["sh", "-c", f"{command} --input jsonl --output jsonl"], input=text, capture_output=True, timeout=200
        )
        assert (done.returncode, done.stderr.decode()) == (status, message)


def test_commands_are_lazy() -> None:
    context = click.Context(cli)
    assert [name for name in COMMANDS if cli.get_command(context, name) is None] == []
    query = "from redraft.cli.main import cli, COMMANDS; import sys; cli.main(['--help'], standalone_mode=False)"
    query += "; print([name for name in COMMANDS if f'redraft.cli.{name}' in sys.modules])"
    done = subprocess.run([sys.executable, "-c", query], capture_output=True, text=True, check=True, timeout=200)
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("name", ELSEWHERE)
def test_command_not_installed(redraft: Run, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(main, "entry_points", lambda group: ())
    assert name not in redraft("--help").out.partition("Commands:")[2].split()
    done = redraft(name)
    assert (done.status, done.out) == (2, "") and f"./{ELSEWHERE[name][1][-1]} in a clone" in done.err
