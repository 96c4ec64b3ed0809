"""The documentation: its examples run, its commands exist, its links lead somewhere, its generated parts are fresh."""

from __future__ import annotations

import io
import json
import re
import shlex
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from redraft.captions.events import Caption, Failure, Update
from redraft.captions.formats.cues import SubtitleWriter
from redraft.captions.formats.read import read_jsonl, read_lines
from redraft.captions.formats.write import JsonlWriter, Output
from redraft.cli.main import cli
from redraft.cli.shared.options import INPUTS
from redraft.decoding.decode import decode
from redraft.decoding.drive import run
from redraft.decoding.method import Method, Setup
from redraft.decoding.methods import all_methods, get_method, registry
from redraft.decoding.types import Prompt
from redraft.translator import Translator
from tests.fakes import RandomModel, greedy
from tools import build_docs
from tools.build_docs import between, stale, write

ROOT = Path(__file__).resolve().parents[1]
PAGES = [
    ROOT / "README.md",
    ROOT / "ATTRIBUTION.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs" / "benchmarks").glob("*.md")),
    *sorted((ROOT / "docs" / "api").glob("*.md")),
]

#: Files of the worked example in docs/development.md.
TO_BE_WRITTEN = {"src/redraft/decoding/methods/resume.py", "redraft_resume.py"}


def blocks(page: Path, language: str) -> list[str]:
    """The fenced blocks of a page in one language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def commands() -> Iterator[list[str]]:
    """The words of every redraft command in a block of a page or in the tables of the papers, without the program."""
    for page in PAGES:
        for block in blocks(page, "sh"):
            for part in re.split(r"[|\n]", block.replace("\\\n", " ")):
                words = shlex.split(part.partition(">")[0], comments=True)
                if words[:1] == ["redraft"]:
                    yield words[1:]
    papers = (ROOT / "docs" / "papers.md").read_text(encoding="utf-8")
    for line in re.findall(r"^\|.*", papers, re.MULTILINE):
        for command in re.findall(r"`redraft ([^`]*)`", line):
            # Without files, which must exist.
            yield shlex.split(re.sub(r"--(prompt-file|previous) [a-z]+\.txt", "", command))


def anchors(page: Path) -> set[str]:
    """What can stand after # in a link to the page."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings}


# Examples


def test_example_of_readme_runs(capsys: pytest.CaptureFixture[str]) -> None:
    (example,) = blocks(ROOT / "README.md", "python")
    exec(compile(example, "README.md", "exec"), {})
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(" ")[0] for line in lines] == ["de", "ja"] * 4
    assert "\n".join(lines[-2:]) in blocks(ROOT / "README.md", "text")[-1]


@pytest.mark.parametrize("number", [0, 1])
def test_examples_of_captions_run(number: int, capsys: pytest.CaptureFixture[str]) -> None:
    examples = blocks(ROOT / "docs" / "captions.md", "python")
    assert len(examples) == 4
    exec(compile(examples[number], "captions.md", "exec"), {})
    shown = blocks(ROOT / "docs" / "captions.md", "text")[number - 2].splitlines()
    assert sorted(capsys.readouterr().out.splitlines()[-2:]) == sorted(shown)


def test_example_of_shared_model_runs(capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(blocks(ROOT / "docs" / "captions.md", "python")[2], "captions.md", "exec"), {})
    assert capsys.readouterr().out.splitlines() == ["de Ich habe einen Hund.", "ja 私は犬を飼っています。"]


def test_example_of_fastapi_runs() -> None:
    pytest.importorskip("fastapi", reason="needs fastapi")
    from starlette.testclient import TestClient

    place: dict[str, Any] = {}
    exec(compile(blocks(ROOT / "docs" / "captions.md", "python")[3], "captions.md", "exec"), place)
    with TestClient(place["app"]) as client, ExitStack() as sockets:
        for _ in range(4):  # at the same time
            socket = sockets.enter_context(client.websocket_connect("/captions"))
            socket.send_text("I have")
            socket.send_text("I have a dog.\n")
            texts = {"de": "", "ja": ""}
            while texts != {"de": "Ich habe einen Hund.", "ja": "私は犬を飼っています。"}:
                message = socket.receive_json()
                texts[message["language"]] = message["text"]


def test_public_names_are_listed() -> None:
    import redraft

    assert set(redraft.__all__) <= set(dir(redraft)) and hasattr(redraft, "Translator")


def test_example_of_readme_has_ten_lines() -> None:
    (example,) = blocks(ROOT / "README.md", "python")
    assert len([line for line in example.splitlines() if line.strip()]) <= 10


@pytest.fixture
def resume(monkeypatch: pytest.MonkeyPatch) -> Method:
    """The plug-in of docs/development.md, registered for one test."""
    monkeypatch.setattr(registry, "_REGISTRY", all_methods())
    module, registering, _ = blocks(ROOT / "docs" / "development.md", "python")
    exec(compile(module + registering, "development.md", "exec"), {"__name__": "redraft_resume"})
    return get_method("resume")


@given(st.integers(0, 999), st.lists(st.integers(0, 4), max_size=20), st.integers(1, 20))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_developers_method_is_greedy(resume: Method, seed: int, previous: list[int], window: int) -> None:
    model, prompt = RandomModel(seed, vocabulary=5), (1, 2, 3)
    drafter, rule = resume.build(Setup(resume.check({"window": window}), model.end_tokens))
    asking = decode(Prompt(prompt), drafter, rule, previous=tuple(previous), end_tokens=model.end_tokens, limit=30)
    output = run(asking, model, model.open_slot())
    assert list(output.tokens) == greedy(model, prompt, 30)
    assert output.passes == len(model.requests)


def test_method_of_developers_page_saves_passes(resume: Method) -> None:
    source, tallies = "The children who lived near the river were playing in the garden.", {}
    words = source.split()
    for method in ("ar", "ssbd", "resume"):
        options = {"beta": 0} if method == "ssbd" else {}  # both have the output of ar
        with Translator.open("demo", to=["de"], method=method, options=options) as translator:
            for seq in range(len(words)):
                text = " ".join(words[: seq + 1])
                for event in translator.translate(Update("1", seq, text, final=text == source)):
                    assert isinstance(event, Caption)
            tallies[method] = translator.state("de").tally
    assert tallies["resume"].tokens == tallies["ar"].tokens
    assert tallies["resume"].output_acceptance > 0.5
    assert tallies["resume"].passes < tallies["ssbd"].passes < tallies["ar"].passes


def test_format_of_developers_page() -> None:
    *_, module = blocks(ROOT / "docs" / "development.md", "python")
    exec(compile(module, "development.md", "exec"), names := dict[str, Any]())
    writer = names["MarkdownWriter"](out := io.StringIO(), ["de", "ja"])
    for language, text, final in (("de", "Wir", False), ("ja", "家", True), ("de", "Wir leben", True)):
        writer.write(Caption("1", 0, language, text, final=final))
    writer.close()
    assert out.getvalue() == "| Wir leben | 家 |\n"


# Commands and links


@pytest.mark.repository
def test_commands_are_found() -> None:
    assert ["models"] in [*commands()]


@pytest.mark.repository
@pytest.mark.parametrize("words", [*commands()], ids=" ".join)
def test_every_command_shown_exists_with_its_options(words: list[str]) -> None:
    command: click.Command = cli
    rest = list(words)
    while isinstance(command, click.Group) and rest and (found := command.get_command(click.Context(cli), rest[0])):
        command = found
        rest.pop(0)
    assert command is not cli
    program = click.Context(cli, **cli.context_settings)  # a command keeps the settings of its first parent for good
    command.make_context("redraft", rest, program).close()  # an unknown option raises


@pytest.mark.repository
@pytest.mark.parametrize(
    "page",
    [ROOT / "README.md", ROOT / "docs" / "captions.md", ROOT / "docs" / "serving.md"],
    ids=lambda page: page.name,
)
def test_files_of_commands_exist(page: Path) -> None:
    written = set[str]()
    for line in "".join(blocks(page, "sh")).splitlines():
        command, _, target = line.partition(" > ")
        for name in re.findall(r"(?<![\w/~.-])[\w-]+\.(?:txt|jsonl)\b", command):
            assert name in written or name.startswith("my-") or "--keys" in command, f"{name}: {line}"
        written.add(target.strip())
    assert "talk.txt" in written


@pytest.mark.repository
@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\((?!https?:)([^)\s]+)\)", page.read_text(encoding="utf-8")):
        path, _, anchor = target.partition("#")
        linked = page.parent / path if path else page
        assert linked.exists(), target
        assert not anchor or anchor in anchors(linked), target


@pytest.mark.repository
@pytest.mark.parametrize("folder", ["docs", "docs/api", "docs/benchmarks"])
def test_index_names_every_page(folder: str) -> None:
    index = (ROOT / folder / "README.md").read_text(encoding="utf-8")
    names = [page.name for page in PAGES if page.parent == ROOT / folder]
    assert [name for name in names if f"({name})" not in index] == ["README.md"]


@pytest.mark.repository
def test_navigation_of_site_has_every_page() -> None:
    navigation = (ROOT / "zensical.toml").read_text(encoding="utf-8")
    pages = [path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")]
    assert [page for page in pages if f'"{page}"' not in navigation] == []


@pytest.mark.repository
def test_index_of_all_pages_leads_to_benchmarks() -> None:
    assert "(benchmarks/README.md)" in (ROOT / "docs" / "README.md").read_text(encoding="utf-8")


@pytest.mark.repository
@pytest.mark.parametrize("page", ["design.md", "development.md", "training.md"])
def test_files_named_in_text_exist(page: str) -> None:
    text = re.sub(
        r"^```.*?^```$", "", (ROOT / "docs" / page).read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE
    )
    named = re.findall(r"`((?:[\w.-]+/)*[\w-]+\.(?:py|md|svg))`", text)
    places = (ROOT, ROOT / "src" / "redraft", ROOT / "docs", *(ROOT / "packages").glob("*/src"))
    assert named
    assert {name for name in named if not any((place / name).exists() for place in places)} <= TO_BE_WRITTEN


# Formats, as docs/streams.md and the README describe them


@pytest.mark.parametrize("page", ["docs/captions.md", "docs/streams.md"])
def test_jsonl_shown_is_read(page: str) -> None:
    shown = blocks(ROOT / page, "json")[0]
    items = [*read_jsonl(io.BytesIO(shown.encode()))]
    assert all(isinstance(item, Update) for item in items)
    assert len(items) == len(shown.splitlines())


@pytest.mark.parametrize("page", ["docs/captions.md", "docs/streams.md"])
def test_lines_shown_are_read_as_two_utterances(page: str) -> None:
    items = [*read_lines(io.BytesIO(blocks(ROOT / page, "text")[0].encode()))]
    assert [item.utterance for item in items if isinstance(item, Update) and item.final] == ["1", "2"]


def test_jsonl_shown_is_what_is_written() -> None:
    shown = [
        fields
        for block in blocks(ROOT / "docs" / "streams.md", "json")[1:]
        for fields in map(json.loads, block.splitlines())
        if "type" in fields  # what comes in has none
    ]
    out = io.StringIO()
    writer = JsonlWriter(out)
    for fields in shown:
        arguments = {name: value for name, value in fields.items() if name != "type"}
        final = fields["type"] == "final"
        writer.write(Failure(**arguments) if fields["type"] == "error" else Caption(final=final, **arguments))
    assert [json.loads(line) for line in out.getvalue().splitlines()] == shown
    assert [[*json.loads(line)] for line in out.getvalue().splitlines()] == [[*fields] for fields in shown]


def test_error_shown_is_what_reader_says() -> None:
    (shown,) = [json.loads(block) for block in blocks(ROOT / "docs" / "streams.md", "json") if '"error"' in block]
    lines = b"\n" * (shown["line"] - 1) + b'{"utterance": "1", "seq": -1, "text": ""}'
    assert [*read_jsonl(io.BytesIO(lines))] == [Failure(shown["message"], shown["line"])]


def test_cue_shown_is_what_is_written() -> None:
    shown = next(block for block in blocks(ROOT / "docs" / "streams.md", "text") if "-->" in block)
    lines = shown.splitlines()[2:]
    german, japanese = " ".join(lines[:2]), "".join(lines[2:])
    out = io.StringIO()
    writer = SubtitleWriter(Output("srt", out, io.StringIO(), ["de", "ja"]))
    for language, text in (("de", german), ("ja", japanese)):
        writer.write(Caption("7", 0, language, "", start=12.1, time=12.1))
        writer.write(Caption("7", 1, language, text, final=True, start=12.1, time=14.5))
    writer.close()
    assert out.getvalue().strip() == shown.strip()


# The generator


def test_stale_page_is_named_and_written_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "models.md").write_text("<!-- engine -->\n<!-- /engine -->\n", encoding="utf-8")
    (tmp_path / "docs" / "serving.md").write_text("<!-- settings -->\n<!-- /settings -->\n", encoding="utf-8")
    marked = "a\n<!-- codes -->\nold\n<!-- /codes -->\nb\n<!-- messages -->\n<!-- /messages -->\nz\n"
    (tmp_path / "docs" / "protocol.md").write_text(marked, encoding="utf-8")
    (tmp_path / "docs" / "api").mkdir()
    (tmp_path / "docs" / "api" / "README.md").write_text("<!-- names -->\n<!-- /names -->\n", encoding="utf-8")
    api = "src/redraft/serve/api"
    (tmp_path / api).mkdir(parents=True)
    pages = [
        f"docs/{name}.md" for name in ("cli", "methods", "contracts", "api/README", "models", "serving", "protocol")
    ]
    assert stale(tmp_path) == [*pages, *(f"{api}/{name}" for name in ("openapi.json", "asyncapi.json", "docs.html"))]
    write(tmp_path)
    assert stale(tmp_path) == []
    page = (tmp_path / "docs" / "protocol.md").read_text(encoding="utf-8")
    assert page.startswith("a\n<!-- codes -->\n| code |")
    assert "|\n<!-- /codes -->\nb\n<!-- messages -->\n" in page
    assert page.endswith("|\n<!-- /messages -->\nz\n")
    assert "old\n" not in page
    monkeypatch.setattr(build_docs, "stale", lambda: ["docs/cli.md"])
    assert build_docs.main(["--check"]) == "docs: out of date, run `make docs`: docs/cli.md"


def test_every_input_has_a_contract() -> None:
    assert [*build_docs.CONTRACTS] == [*INPUTS, "NAME:URL"]


@pytest.mark.parametrize("page", ["", "<!-- x -->", "<!-- /x --><!-- x -->", "<!-- x --><!-- x --><!-- /x -->"])
def test_marks_must_be_pair(page: str) -> None:
    with pytest.raises(ValueError, match="must hold"):
        between(page, "x", "")


def test_help_has_every_command_and_no_colours() -> None:
    page = build_docs.cli_page()
    for path in (
        "redraft",
        "redraft translate",
        "redraft demo",
        "redraft models",
        "redraft models get",
        "redraft doctor",
    ):
        assert f"## {path}\n" in page
    assert "\x1b" not in page
    assert max(map(len, page.splitlines())) <= build_docs.WIDTH
