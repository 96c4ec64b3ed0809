"""The agent for SimulEval: what it writes and when, with SimulEval's own states."""

from __future__ import annotations

import json
import subprocess
import sys
from argparse import ArgumentParser
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from redraft.captions.events import Caption, Event, Failure, Update
from redraft.translator import Translator

segments = pytest.importorskip("simuleval.data.segments")

AGENT = Path(__file__).parents[3] / "src/redraft_bench/eval/simuleval_agent.py"


class Translations:
    """Stands in for a translator: every update has a caption waiting."""

    def __init__(self, captions: list[str]) -> None:
        self.captions = iter(captions)
        self.updates: list[Update] = []

    def translate(self, update: Update) -> list[Event]:
        self.updates.append(update)
        text = next(self.captions)
        if not text:
            return [Failure("too long", None, update.utterance)]
        return [Caption(update.utterance, update.seq, "de", text, final=update.final)]


def agent(*arguments: str, captions: list[str] | None = None, monkeypatch: pytest.MonkeyPatch) -> Any:
    from redraft_bench.eval.simuleval_agent import RedraftAgent

    translations = Translations(captions or [])
    monkeypatch.setattr(Translator, "open", lambda *_args, **_options: translations)
    parser = ArgumentParser()
    RedraftAgent.add_args(parser)
    return RedraftAgent.from_args(parser.parse_args(arguments))


def written(agent: Any, source: str) -> Iterator[tuple[int, str]]:
    """After how many words what was written; the last with the end of the sentence."""
    words = source.split()
    for number, word in enumerate(words, 1):
        segment = segments.TextSegment(index=number - 1, content=word, finished=number == len(words))
        answer = agent.pushpop(segment)
        if answer.content:
            yield number, answer.content
    assert answer.finished
    agent.reset()


def test_only_what_two_captions_agree_on_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    captions = ["Ich bin", "Ich habe einen", "Ich habe keinen Hund", "Ich habe keinen Hund."]
    made = agent("--to", "de", "--lag", "1", captions=captions, monkeypatch=monkeypatch)
    assert [*written(made, "I have no dog.")] == [(2, "Ich"), (3, "habe"), (4, "keinen Hund.")]
    assert [(each.text, each.seq, each.final) for each in made._translator.updates] == [
        ("I", 1, False),
        ("I have", 2, False),
        ("I have no", 3, False),
        ("I have no dog.", 4, True),
    ]


def test_what_was_written_stays_and_text_goes_on_behind_it(monkeypatch: pytest.MonkeyPatch) -> None:
    captions = ["a b", "a b", "x c d", "x c d e"]
    made = agent("--to", "de", "--lag", "1", captions=captions, monkeypatch=monkeypatch)
    assert [*written(made, "1 2 3 4")] == [(2, "a b"), (4, "d e")]


def test_translation_every_few_words_and_at_end(monkeypatch: pytest.MonkeyPatch) -> None:
    made = agent("--to", "de", "--lag", "3", captions=["a", "a b", "a b c"], monkeypatch=monkeypatch)
    assert [*written(made, "1 2 3 4 5 6 7")] == [(6, "a"), (7, "b c")]
    assert [len(each.text.split()) for each in made._translator.updates] == [3, 6, 7]


def test_every_sentence_is_utterance_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    made = agent("--to", "de", "--lag", "1", captions=["a", "a b", "a", "a c"], monkeypatch=monkeypatch)
    assert [*written(made, "1 2")] == [(2, "a b")]
    assert [*written(made, "1 2")] == [(2, "a c")]
    assert len({each.utterance for each in made._translator.updates}) == 2


def test_failure_is_logged_and_last_caption_stays(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    made = agent("--to", "de", "--lag", "1", captions=["a b", "", "a b c"], monkeypatch=monkeypatch)
    assert [*written(made, "1 2 3")] == [(2, "a b"), (3, "c")]
    assert caplog.messages == [f"sentence {made._translator.updates[0].utterance}: too long"]


def test_options_reach_translator(monkeypatch: pytest.MonkeyPatch) -> None:
    from redraft_bench.eval.simuleval_agent import RedraftAgent

    given: dict[str, Any] = {}
    monkeypatch.setattr(Translator, "open", lambda model, **options: given.update(model=model, **options))
    parser = ArgumentParser()
    RedraftAgent.add_args(parser)
    words = "--to ja --from de --model m --draft-model d --method ar --mask-k 2 --threads 1".split()
    RedraftAgent(parser.parse_args([*words, "--method-options", '{"beta": 0.1}']))
    assert (given["model"], given["draft_model"], given["to"], given["method"]) == ("m", "d", ["ja"], "ar")
    assert (given["options"], given["display"].mask_k, given["engine"].threads) == ({"beta": 0.1}, 2, 1)
    assert given["style"].source == "de"


def test_simuleval_finds_agent() -> None:
    from redraft_bench.eval.simuleval_agent import RedraftAgent

    listed = pytest.importorskip("simuleval.utils.agent").EVALUATION_SYSTEM_LIST
    assert RedraftAgent in listed
    assert (RedraftAgent.source_type, RedraftAgent.target_type) == ("text", "text")


def test_simulevals_command_runs_it_with_demo_model(tmp_path: Path) -> None:
    pytest.importorskip("tornado")
    for name, text in (("en", "I have a dog and a cat.\nThis is good.\n"), ("de", "Ein Hund.\nDas ist gut.\n")):
        (tmp_path / name).write_text(text, encoding="utf-8")
    options = "--source en --target de --to de --lag 2 --threads 1 --output out".split()
    command = [sys.executable, "-m", "simuleval.cli", "--agent", str(AGENT), *options]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    log = [json.loads(line) for line in (tmp_path / "out" / "instances.log").read_text("utf-8").splitlines()]
    assert [each["source_length"] for each in log] == [7, 3]
    for each in log:
        assert each["prediction_length"] == len(each["delays"]) > 1
        assert each["delays"] == sorted(each["delays"])
        # Two captions must agree before anything is written.
        assert each["delays"][0] > 2 and each["delays"][-1] == each["source_length"]
